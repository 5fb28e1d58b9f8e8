"""Both brokers for real: they serve what the product asks of them, come back, and leave nothing behind."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flows.brokers import (
    ApacheKafka,
    BrokerError,
    EmbeddedBroker,
    ServerProcess,
    find_java,
    free_port,
    kafka_jars,
    listens,
    wait_until_ready,
)
from flows.standing_broker import broker_down, broker_info, broker_up


def create(server: ServerProcess, topic: str, partitions: int = 1, **config: str) -> None:
    """Make a topic; underscores of the settings' names stand for dots."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(20)


def producer(server: ServerProcess, **config: str | int | bool) -> Producer:
    """An idempotent producer, as the product uses it."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True, **settings})


def read_to_end(server: ServerProcess, topic: str, partition: int = 0) -> list[Message]:
    """All messages of a partition, up to the event that says there are no more."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            **server.client_overrides,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    messages: list[Message] = []
    try:
        for message in iter(lambda: consumer.poll(20), None):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return messages
            else:
                pytest.fail(str(error))
    finally:
        consumer.close()
    pytest.fail(f"no end of {topic} within 20 s")


def ends_within(seconds: float, alive: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive()


def process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_carries_what_the_product_sends(broker: ServerProcess, topic_prefix: str) -> None:
    topic = topic_prefix + "video"
    create(broker, topic, partitions=16, max_message_bytes=str(4 << 20))
    frame = os.urandom(2_000_000)
    sender = producer(broker, message_max_bytes=4 << 20)
    sender.produce(topic, b"first", "room 1/Größe", 13, timestamp=1_000, headers=[("ce_id", b"1")])
    sender.produce(topic, frame, "room 1/Größe", 13, timestamp=2_000)
    sender.produce(topic, None, "gone", 13)
    assert sender.flush(20) == 0

    first, second, third = read_to_end(broker, topic, 13)
    assert (first.value(), first.timestamp()[1], first.headers()) == (b"first", 1_000, [("ce_id", b"1")])
    assert (second.value(), second.key(), second.offset()) == (frame, "room 1/Größe".encode(), 1)
    assert (third.value(), third.key()) == (None, b"gone")
    assert read_to_end(broker, topic, 12) == []


def test_hands_messages_on_at_once(broker: ServerProcess, topic_prefix: str) -> None:
    topic = topic_prefix + "audio"
    create(broker, topic)
    sender = producer(broker, linger_ms=0)
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "test", **broker.client_overrides})
    reader.assign([TopicPartition(topic, 0, 0)])
    waits_ms = []
    for number in range(40):
        started_ns = time.perf_counter_ns()
        sender.produce(topic, str(number).encode(), partition=0)
        sender.poll(0)
        message = reader.poll(20)
        assert message is not None and message.value() == str(number).encode()
        waits_ms.append((time.perf_counter_ns() - started_ns) / 1e6)
    reader.close()
    # Some milliseconds; without the override the embedded broker takes about 130.
    assert statistics.median(waits_ms) < 60


def test_embedded_ends_with_a_killed_parent(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux ends a process with its parent")
    script = (
        "import sys, time; from pathlib import Path; from flows.brokers import EmbeddedBroker\n"
        "broker = EmbeddedBroker(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert process_exists(pid)
        parent.kill()
        parent.wait()
    assert ends_within(5, lambda: process_exists(pid))


def test_close_frees_the_port_and_start_takes_it_again(tmp_path: Path) -> None:
    server = EmbeddedBroker(tmp_path / "a folder with spaces")
    with server:
        pid, port = server.pid, server.port
        assert listens(port)
        with pytest.raises(BrokerError, match="already running"):
            server.start()
        with pytest.raises(BrokerError, match=f"port {port} of 127.0.0.1 is taken"):
            EmbeddedBroker(tmp_path / "second", port=port).start()
    assert not process_exists(pid)
    assert not listens(port)
    with server:
        assert server.port == port
    server.close()
    with pytest.raises(BrokerError, match="not running"):
        _ = server.pid


class BrokenBroker(EmbeddedBroker):
    """What a binary looks like that cannot run here."""

    def _prepare(self) -> list[str]:
        return ["/bin/sh", "-c", "echo first; echo cannot run here; echo '  at line 7'; exit 3"]


class SilentBroker(EmbeddedBroker):
    """A program that lives and never answers."""

    start_timeout_s = 0.3

    def _prepare(self) -> list[str]:
        return ["/bin/sh", "-c", "exec sleep 60"]


def test_says_why_a_broker_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(
        BrokerError, match=r"ended with code 3 on 127.*: cannot run here .*broker.log"
    ) as caught:
        BrokenBroker(tmp_path).start()
    assert "\n" not in str(caught.value)
    with pytest.raises(BrokerError, match=r"did not answer on 127.*without a word"):
        SilentBroker(tmp_path / "silent").start()


def test_nobody_answers() -> None:
    started = time.monotonic()
    assert not wait_until_ready(f"127.0.0.1:{free_port()}", 0.5)
    assert time.monotonic() - started < 3


@pytest.mark.kafka
def test_kafka_keeps_its_data_over_a_kill(kafka_parts: None, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as server:
        create(server, "kept", partitions=2)
        sender = producer(server)
        for number in range(100):
            sender.produce("kept", str(number).encode(), partition=1)
        assert sender.flush(20) == 0
        server.kill()
        # The same producer waits out the absence: nothing of what it is given meanwhile is lost.
        sender.produce("kept", b"100", partition=1)
        server.start()
        assert sender.flush(30) == 0
        assert [message.value() for message in read_to_end(server, "kept", 1)] == [
            str(number).encode() for number in range(101)
        ]


def test_kafka_stamps_with_append_time(apache_kafka: ApacheKafka, topic_prefix: str) -> None:
    create(apache_kafka, topic_prefix + "audio", message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    sender = producer(apache_kafka)
    sender.produce(topic_prefix + "audio", b"x", partition=0, timestamp=1_000)
    assert sender.flush(20) == 0
    (message,) = read_to_end(apache_kafka, topic_prefix + "audio")
    kind, stamp_ms = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before_ms <= stamp_ms <= time.time_ns() // 1_000_000


def test_kafka_hides_what_was_aborted(apache_kafka: ApacheKafka, topic_prefix: str) -> None:
    topic = topic_prefix + "minutes"
    create(apache_kafka, topic)
    sender = producer(apache_kafka, transactional_id=topic)
    sender.init_transactions(20)
    for value, keep in ((b"kept", True), (b"aborted", False), (b"kept too", True)):
        sender.begin_transaction()
        sender.produce(topic, value, partition=0)
        if keep:
            sender.commit_transaction(20)
        else:
            sender.flush(20)
            sender.abort_transaction(20)
    assert [message.value() for message in read_to_end(apache_kafka, topic)] == [b"kept", b"kept too"]


def test_kafka_compacts(apache_kafka: ApacheKafka, topic_prefix: str) -> None:
    topic = topic_prefix + "control"
    create(
        apache_kafka,
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
    )
    sender = producer(apache_kafka)
    for number in range(20):
        sender.produce(topic, str(number).encode(), b"calibration", 0)
    sender.flush(20)

    def superseded_are_there() -> bool:
        # The segment being written is never compacted: each look adds a message, which rolls it.
        sender.produce(topic, b"", b"other", 0)
        sender.flush(20)
        values = [m.value() for m in read_to_end(apache_kafka, topic) if m.key() == b"calibration"]
        assert values[-1] == b"19"
        return len(values) > 1

    assert ends_within(30, superseded_are_there)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "state"
    broker_down(tmp_path / "state")


def test_a_standing_broker_is_found_again_and_taken_down(state: Path) -> None:
    port = free_port()
    info = broker_up(port, directory=state)
    assert wait_until_ready(info.bootstrap, 5)
    assert broker_up(directory=state) == broker_up(port, directory=state) == broker_info(state) == info
    with pytest.raises(BrokerError, match="is up already"):
        broker_up(free_port(), directory=state)
    with pytest.raises(BrokerError, match="is up already"):
        broker_up(kind="kafka", directory=state)
    assert broker_down(state) == info
    assert not listens(port)
    assert broker_down(state) is None


def test_a_dead_standing_broker_is_replaced(state: Path) -> None:
    first = broker_up(free_port(), directory=state)
    os.kill(first.pid, signal.SIGKILL)
    assert ends_within(5, lambda: broker_info(state) is not None)
    second = broker_up(free_port(), directory=state)
    assert second.pid != first.pid
    (state / "broker.json").write_text("{broken")
    assert broker_info(state) is None
    os.kill(second.pid, signal.SIGKILL)


def fake_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_kafka_without_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, cache = tmp_path / "bin", tmp_path / "cache"
    programs.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(BrokerError, match="needs Java 17 or later; no java was found"):
        find_java()
    with pytest.raises(BrokerError, match="needs Maven"):
        kafka_jars(cache)
    fake_program(programs, "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    with pytest.raises(BrokerError, match=r"needs Java 17 or later; .*11\.0\.2"):
        find_java()
    fake_program(programs, "mvn", "echo 'repository not reached'; exit 1")
    with pytest.raises(BrokerError, match="mvn failed: repository not reached"):
        kafka_jars(cache)
    assert list(cache.iterdir()) == []
