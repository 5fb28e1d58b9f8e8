"""Checks of the broker and its topics, and what is said of a broker that is away."""

import threading
import time

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from contracts.topics import TIMELINE, TOPICS, TopicNames
from flows.brokers import EmbeddedBroker, free_port
from operators.broker.kafka_link import (
    BrokerLink,
    BrokerUnreachable,
    BrokerWatch,
    TopicProblem,
    broker_watch,
    check_topics,
    create_topics,
)
from operators.log import Event


class Broker:
    """Answers or not, as told; a watch that asks it is told at once."""

    def __init__(self) -> None:
        self.there = True
        self.asked = 0
        self.said: list[str] = []
        self.watch = BrokerWatch("flow", "broker:9092", answers=self.answers, tell=self.tell, pause_s=0.001)

    def tell(self, line: str, event: Event) -> None:
        self.said.append(line)
        assert event == ("broker_back" if line.endswith("again") else "broker_away")

    def answers(self) -> bool:
        self.asked += 1
        return self.there

    def until(self, lines: int) -> None:
        deadline = time.monotonic() + 10
        while len(self.said) < lines or any(t.name == "broker-watch" for t in threading.enumerate()) != (
            lines % 2 == 1
        ):
            assert time.monotonic() < deadline, self.said
            time.sleep(0.001)


def test_an_outage_is_told_once_and_its_end_once() -> None:
    broker = Broker()
    broker.there = False
    for _ in range(5):
        broker.watch.suspect()
    broker.until(1)
    assert broker.said == [
        "flow: no broker answers at broker:9092; waiting for it, nothing is lost meanwhile"
    ]
    broker.there = True
    broker.until(2)
    assert broker.said[1:] == ["flow: the broker at broker:9092 answers again"]
    broker.there = False
    broker.watch.suspect()
    broker.until(3)
    broker.there = True
    broker.until(4)


def test_a_report_that_comes_late_says_nothing() -> None:
    broker = Broker()
    broker.watch.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    broker.until(0)
    assert (broker.said, broker.asked) == ([], 1)


def test_other_errors_are_no_reason_to_ask() -> None:
    broker = Broker()
    broker.watch.on_error(KafkaError(KafkaError._TRANSPORT))
    broker.until(0)
    assert broker.asked == 0


def test_source_sink_and_journal_share_a_watch() -> None:
    link = BrokerLink("127.0.0.1:1")
    assert broker_watch("flows.minutes", link) is broker_watch("flow", BrokerLink("127.0.0.1:1"))


# Against a broker


@pytest.fixture
def link(embedded_broker: EmbeddedBroker, topic_prefix: str) -> BrokerLink:
    return BrokerLink(
        embedded_broker.bootstrap, TopicNames(topic_prefix, 2), embedded_broker.client_overrides
    )


def test_missing_topics_are_named_with_what_makes_them(link: BrokerLink) -> None:
    with pytest.raises(TopicProblem) as caught:
        check_topics(link, "test", wait_s=10)
    said = str(caught.value)
    assert said.startswith(
        f"{link.names.of(TOPICS[0])} and {len(TOPICS) - 1} more topics do not exist at {link.bootstrap}"
    )
    assert "`minuted topics create`" in said
    assert "\n" not in said


def test_topics_are_made_once(link: BrokerLink) -> None:
    assert create_topics(link) == [link.names.of(topic) for topic in TOPICS]
    assert create_topics(link) == []
    check_topics(link, "test", wait_s=10)


def test_one_topic_with_another_number_of_partitions(link: BrokerLink) -> None:
    admin = AdminClient(link.client())
    admin.create_topics([NewTopic(link.names.of(TIMELINE), 3, 1)])[link.names.of(TIMELINE)].result(10)
    create_topics(link)
    with pytest.raises(TopicProblem) as caught:
        check_topics(link, "test", wait_s=10)
    assert str(caught.value) == (
        f"{link.names.of(TIMELINE)} has 3 partitions, MINUTED_SHARDS is 2: delete the topic and run "
        "`minuted topics create`, which makes it with the right number"
    )


def test_a_setting_that_does_not_fit_the_topics(link: BrokerLink) -> None:
    create_topics(link)
    other = BrokerLink(link.bootstrap, TopicNames(link.names.prefix, 3))
    with pytest.raises(
        TopicProblem, match="the topics have 2 partitions, MINUTED_SHARDS is 3; both must be the same"
    ):
        check_topics(other, "test", wait_s=10)


def test_nobody_there() -> None:
    nowhere = BrokerLink(f"127.0.0.1:{free_port()}")
    for attempt in (
        lambda: check_topics(nowhere, "test", wait_s=0.3),
        lambda: create_topics(nowhere, wait_s=0.3),
    ):
        with pytest.raises(BrokerUnreachable, match=r"no broker answers at 127.0.0.1:\d+ \(waited 0.3 s\)"):
            attempt()


@pytest.mark.parametrize("address", ["", "no such host:9092", "127.0.0.1:port", ","])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises((BrokerUnreachable, TopicProblem)):
        check_topics(BrokerLink(address), "test", wait_s=0.3)
