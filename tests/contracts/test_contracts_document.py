"""The examples of docs/contracts.md run as they stand, and the wheel holds what it promises."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contracts import asyncapi, examples, packet, topics
from contracts.minutes import MinutesState
from flows.brokers import EmbeddedBroker

ROOT = Path(__file__).parents[2]
SHARD = topics.partition_of(examples.MEETING, topics.DEFAULT_SHARDS)


def example(name: str, broker: EmbeddedBroker, prefix: str) -> str:
    """A code block of the document, pointed at the test's broker and topics."""
    text = (ROOT / "docs" / "contracts.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- example {name} -->\n```python\n(.*?)```", text, re.S)
    assert found is not None
    code = found[1]
    assert len(code.strip().splitlines()) <= 17
    return code.replace("localhost:9092", broker.bootstrap).replace('"minuted.', f'"{prefix}minuted.')


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def prefix(embedded_broker: EmbeddedBroker, topic_prefix: str) -> Iterator[str]:
    """A prefix under which the topics of the examples exist."""
    admin = AdminClient({"bootstrap.servers": embedded_broker.bootstrap})
    wanted = [
        NewTopic(topic_prefix + topic.name, num_partitions=topics.DEFAULT_SHARDS, replication_factor=1)
        for topic in (topics.AUDIO, topics.MINUTES, topics.STATE)
    ]
    for created in admin.create_topics(wanted).values():
        created.result(timeout=20)
    yield topic_prefix
    for deleted in admin.delete_topics([topic.topic for topic in wanted]).values():
        deleted.result(timeout=20)


def test_publishing_example_sends_packets_that_a_reader_takes(
    embedded_broker: EmbeddedBroker, prefix: str
) -> None:
    run(example("publish", embedded_broker, prefix))
    settings = {"bootstrap.servers": embedded_broker.bootstrap, "group.id": "test"}
    consumer = Consumer(settings | embedded_broker.client_overrides)
    try:
        consumer.assign([TopicPartition(prefix + topics.AUDIO.name, SHARD, OFFSET_BEGINNING)])
        messages = consumer.consume(50, timeout=30)
    finally:
        consumer.close()
    packets = [packet.decode(message.value() or b"") for message in messages]
    assert [read.sequence for read in packets] == list(range(50))
    assert {read.stream for read in packets} == {"seat-1/audio"}
    assert {message.key() for message in messages} == {examples.MEETING.encode()}
    assert packets[-1].timestamp_ns - packets[0].timestamp_ns == 980_000_000


def test_reading_example_prints_each_revision_once(embedded_broker: EmbeddedBroker, prefix: str) -> None:
    golden = examples.messages()
    state = golden["minutes_state"]
    assert isinstance(state, MinutesState)
    early = state.model_copy(update={"revision": 1})
    events = [golden[name] for name in ("item_added", "item_changed", "item_changed", "item_withdrawn")]
    events += [golden[name] for name in ("item_added", "summary", "summary", "final")]
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap})
    producer.produce(prefix + topics.STATE.name, early.to_bytes(), early.key, partition=SHARD)
    producer.flush(20)
    for event in events:
        key = examples.MEETING.encode()
        producer.produce(prefix + topics.MINUTES.name, event.to_bytes(), key, partition=SHARD)
    assert producer.flush(20) == 0
    lines = run(example("consume", embedded_broker, prefix)).splitlines()
    told = ["1 item_added", "2 item_changed", "3 item_withdrawn", "4 summary", "5 final"]
    assert lines in (told, told[1:]), "the document may be read before or after the first event"


def test_wheel_works_without_the_checkout(tmp_path: Path) -> None:
    source = tmp_path / "contracts"
    left_out = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(ROOT / "contracts", source, ignore=left_out)
    build = f"from setuptools import build_meta; print(build_meta.build_wheel({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("minuted_contracts-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    site = tmp_path / "site"
    for name in (
        "py.typed",
        "asyncapi.yaml",
        "schema/ocr.json",
        "golden/packets/audio_pcm.bin",
        "rules/default.sal",
    ):
        assert (site / "minuted_contracts" / name).exists()
    code = f"""
import sys
sys.path.insert(0, {str(site)!r})
from minuted_contracts import consumer, headers, messages, minutes, packet, sal, timeline, topics
rules = open({str(site / "minuted_contracts/rules/default.sal")!r}, encoding="utf-8").read()
assert sal.load_rules(rules, "default").rules
data = open({str(site / "minuted_contracts/golden/packets/audio_pcm.bin")!r}, "rb").read()
assert packet.encode(packet.decode(data)) == data
event = open({str(site / "minuted_contracts/golden/messages/summary.json")!r}, "rb").read()
assert consumer.MinutesFold().apply(consumer.read_event(event)) == "applied"
assert not any(name.split(".")[0] == "contracts" for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_versions_of_wheel_and_document_agree() -> None:
    settings = tomllib.loads((ROOT / "contracts" / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["version"] == asyncapi.CONTRACT_VERSION
