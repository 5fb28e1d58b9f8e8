"""Who looks on from outside sees what comes from now on, and does not read what stood there before."""

from pathlib import Path

from confluent_kafka import Producer

from contracts.topics import TIMELINE, Topic, TopicNames
from flows.brokers import EmbeddedBroker
from flows.observer import Observer, wait_for
from operators.broker.kafka_link import BrokerLink, create_topics

OLD = 300


def test_what_stood_there_before_is_not_read_again(tmp_path: Path) -> None:
    names = TopicNames(shards=1)
    with EmbeddedBroker(tmp_path) as broker:
        link = BrokerLink(broker.bootstrap, names, broker.client_overrides)
        create_topics(link)
        producer = Producer(link.producer())
        for number in range(OLD):
            producer.produce(names.of(TIMELINE), value=f"old {number}".encode(), partition=0)
            producer.flush()
        seen: list[bytes] = []

        def on_message(topic: Topic, value: bytes, seen_ns: int, sent_ns: int) -> None:
            del topic, seen_ns, sent_ns
            seen.append(value)

        observer = Observer(link, ("m",), on_message, (TIMELINE,))
        # Sent after it was made and before it reads: nothing of this may be missed.
        for number in range(3):
            producer.produce(names.of(TIMELINE), value=f"new {number}".encode(), partition=0)
            producer.flush()
        observer.start()
        try:
            assert wait_for(lambda: b"new 2" in seen, 20.0)
        finally:
            observer.close()
    assert [value for value in seen if value.startswith(b"new")] == [b"new 0", b"new 1", b"new 2"]
    # The embedded broker may tell the end as the last batch's first message: never more than that one again.
    assert set(seen) - {b"new 0", b"new 1", b"new 2"} <= {f"old {OLD - 1}".encode()}
