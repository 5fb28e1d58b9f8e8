"""A snapshot of the sink waits for the broker; writing does not."""

import os
import signal
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from contracts.topics import MINUTES, TopicNames
from flows.brokers import EmbeddedBroker
from operators.broker.kafka_link import BrokerLink, create_topics
from operators.broker.sink import Outgoing, ShardSink


def test_writing_goes_on_and_a_snapshot_waits_while_the_broker_does_not_answer(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        link = BrokerLink(broker.bootstrap, TopicNames(shards=2), broker.client_overrides)
        create_topics(link)
        part = ShardSink(link, "test").build_part("out", "01", None)
        part.write_batch([_message(b"first")])
        part.snapshot()

        os.kill(broker.pid, signal.SIGSTOP)
        while Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)
        part.write_batch([_message(b"second"), _message(b"third")])
        snapshot = threading.Thread(target=part.snapshot, daemon=True)
        snapshot.start()
        snapshot.join(0.5)
        waited = snapshot.is_alive()
        os.kill(broker.pid, signal.SIGCONT)
        snapshot.join(20)

        assert waited and not snapshot.is_alive()
        assert _read(link, 3) == [b"first", b"second", b"third"]


def _message(value: bytes) -> Outgoing:
    return Outgoing(MINUTES, b"m", value, "test")


def _read(link: BrokerLink, count: int) -> list[bytes | None]:
    reader = Consumer({"bootstrap.servers": link.bootstrap, "group.id": "test", **link.overrides})
    reader.assign([TopicPartition(link.names.of(MINUTES), 1, 0)])
    try:
        messages = reader.consume(count, 20)
    finally:
        reader.close()
    return [message.value() for message in messages]
