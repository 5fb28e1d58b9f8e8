"""The chain on Apache Kafka: a broker that dies in mid-meeting, append times, compaction, topic settings."""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from contracts.messages import AttendeesChanged, control_key
from contracts.topics import AUDIO, CONTROL, DEVICE_TOPICS, TOPICS, TopicNames
from devices.inputs import open_inputs
from devices.publisher import Publisher
from flows.brokers import ApacheKafka, wait_until_ready
from flows.installation import Installation
from operators.broker.kafka_link import BrokerLink, check_topics, create_topics, differing_settings
from operators.broker.source import ShardSource
from tests.flows.live_chain import Chain, by_files, meeting_folder, plain

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def link(apache_kafka: ApacheKafka) -> BrokerLink:
    link = BrokerLink(apache_kafka.bootstrap, TopicNames("contract.", 4))
    create_topics(link)
    return link


def test_topics_have_the_settings_of_the_contract(link: BrokerLink) -> None:
    check_topics(link, "test", TOPICS, wait_s=10)
    assert differing_settings(link) == []
    assert create_topics(link) == []


def test_a_topic_that_was_set_up_otherwise_is_told(link: BrokerLink) -> None:
    other = BrokerLink(link.bootstrap, TopicNames("other.", 4))
    name = other.names.of(CONTROL)
    admin = AdminClient(other.client())
    made = admin.create_topics([NewTopic(name, 4, 1, config={"retention.ms": "1000"})])
    made[name].result(30)
    create_topics(other)
    deadline = time.monotonic() + 20
    while not differing_settings(other) and time.monotonic() < deadline:
        time.sleep(0.1)  # a topic just made is not known to every part of the broker at once
    assert set(differing_settings(other)) == {
        f"{name}: cleanup.policy is delete, the contract says compact",
        f"{name}: retention.ms is 1000, the contract says -1",
        f"{name}: max.message.bytes is 1048588, the contract says {CONTROL.max_message_bytes}",
        f"{name}: message.timestamp.type is CreateTime, the contract says LogAppendTime",
    }


def read_all(link: BrokerLink, shard: int, count: int) -> list[Any]:
    """The first messages of a shard as the flow's source hands them on."""
    part = ShardSource(link, DEVICE_TOPICS).build_part("test", f"{shard:02d}", None)
    found: list[Any] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [received for _, (_, received) in part.next_batch() if hasattr(received, "offset")]
        time.sleep(0.005)
    part.close()
    return found


def test_arrival_is_the_brokers_append_time_and_orders_topics(link: BrokerLink) -> None:
    producer = Producer(link.producer())
    for n, topic in enumerate((AUDIO, CONTROL, AUDIO, CONTROL)):
        # A sender whose clock is a year behind: its own time must not count.
        stamp = 1_000 * (1_700_000_000 - n)
        producer.produce(link.names.of(topic), b"%d" % n, partition=3, timestamp=stamp, key=b"k%d" % n)
        producer.flush(10)
        time.sleep(0.02)
    found = read_all(link, 3, 4)
    assert [r.value for r in found] == [b"0", b"1", b"2", b"3"]
    assert all(r.appended for r in found)
    assert all(abs(r.arrival_ns - time.time_ns()) < 600 * 10**9 for r in found)


def test_control_keeps_the_newest_of_a_subject_and_is_read_from_the_beginning(link: BrokerLink) -> None:
    producer = Producer(link.producer())
    for n in range(30):
        message = AttendeesChanged(meeting_id="m", attendees=())
        producer.produce(
            link.names.of(CONTROL), message.to_bytes() + b" " * n, partition=2, key=control_key(message)
        )
    producer.flush(10)
    found = read_all(link, 2, 1)
    assert found[-1].value.startswith(b'{"meeting_id"')


@pytest.fixture
def installation(tmp_path: Path, kafka_parts: None) -> Iterator[Installation]:
    with Installation(
        tmp_path / "installation",
        broker="kafka",
        settings={"MINUTED_PARTIALS": "false", "MINUTED_SHED_AFTER_S": "86400"},
    ) as running:
        yield running


def test_a_broker_that_dies_in_mid_meeting_is_waited_for_and_nothing_is_lost(
    installation: Installation, tmp_path: Path
) -> None:
    chain = Chain(installation)
    room = open_inputs([meeting_folder(tmp_path / "room", "m")], meeting_id="m")
    publisher = Publisher(chain.link.bootstrap, chain.link.names, unreachable_after_s=120)
    publishing = Thread(target=publisher.publish, args=(room,), kwargs={"speed": 4.0})
    publishing.start()
    chain.wait(lambda: len(chain.log("m")) >= 10, "the first records")
    said = {name: len(flow.log.read_bytes()) for name, flow in installation.flows.items()}

    def new_lines() -> dict[str, list[str]]:
        return {
            name: flow.log.read_bytes()[said[name] :].decode().splitlines()
            for name, flow in installation.flows.items()
        }

    installation.broker.kill()
    chain.wait(lambda: all(new_lines().values()), "a line of each flow about the broker", 10.0)
    time.sleep(3)
    where = installation.broker.bootstrap
    assert new_lines() == {
        name: [f"flows.{name}: no broker answers at {where}; waiting for it, nothing is lost meanwhile"]
        for name in installation.flows
    }
    installation.broker.start()
    assert wait_until_ready(where, 60)
    publishing.join()
    document = chain.minutes("m")
    assert {name: lines[1:] for name, lines in new_lines().items()} == {
        name: [f"flows.{name}: the broker at {where} answers again"] for name in installation.flows
    }
    chain.close()
    expected = by_files(open_inputs([meeting_folder(tmp_path / "files", "m")]))
    assert plain(document) == expected
