"""Kafka sink: idempotent; what a snapshot covers has been delivered.

Messages are handed to the client at once and travel while the flow goes on. Bytewax takes a snapshot of each
sink partition that was written to before it commits an epoch: that call waits for every delivery, so a crash
before it repeats the epoch's messages and one after it finds them on the broker. A broker that is away is
waited for; an error that cannot be retried stops the process.
"""

import json
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bytewax.outputs import FixedPartitionedSink, StatefulSinkPartition
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from contracts.headers import cloud_event
from contracts.topics import Topic
from operators import telemetry
from operators.broker.kafka_link import BrokerLink, broker_watch
from operators.log import Sparing, say
from operators.shard import shard_key

_FLUSH_STEP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to be written to its shard's partition of a topic."""

    topic: Topic
    key: bytes
    value: bytes
    """Empty: a tombstone, which takes the key off a compacted topic."""
    kind: str
    """Message type for routers, without prefix."""
    event_id: str = ""
    traceparent: str | None = None


class _Spokesman:
    """Tells people of what they should look into: dead letters, sparingly, and what the minutes will remark."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._letters: dict[str, Sparing] = {}

    def tell(self, item: Outgoing) -> None:
        told = json.loads(item.value)
        if item.kind == "timeline.notice":
            text, meeting = told["text"], told["meeting_id"]
            say(f"{self._source}: meeting {meeting}: {text}", "notice", meeting=meeting, code=told["code"])
            return
        reason = told["reason"]
        count = self._letters.setdefault(reason, Sparing()).due()
        if count:
            what = (
                f"a message, at {item.event_id},"
                if count == 1
                else f"{count} messages, the last at {item.event_id},"
            )
            say(
                f"{self._source}: {what} could not be read ({reason}); the bytes are on the dead-letter topic",
                "dead_letter",
                reason=reason, count=count, at=item.event_id,
            )  # fmt: skip


class _SharedProducer:
    """The producer of one worker thread."""

    def __init__(self, link: BrokerLink, source: str) -> None:
        self._link = link
        self._source = source
        self._watch = broker_watch(source, link)
        self._producer = Producer(link.producer(self._watch))
        self._failed: KafkaError | None = None
        self._probe = telemetry.probe()
        self._spokesman = _Spokesman(source)

    def write(self, shard: int, items: Iterable[Outgoing]) -> None:
        """Hand all items to the client, in order; waits only where its queue is full."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for item in items:
            while True:
                try:
                    self._producer.produce(
                        self._link.names.of(item.topic), key=item.key, value=item.value or None, partition=shard,
                        headers=[*cloud_event(item.kind, item.event_id, self._source, now, item.traceparent)],
                        on_delivery=self._on_delivery,
                    )  # fmt: skip
                    break
                except BufferError:
                    self._deliver_some()
                except KafkaException as error:
                    self._stop(str(error.args[0].str()), self._link.names.of(item.topic))
            if item.kind in ("deadletter", "timeline.notice"):
                self._spokesman.tell(item)
        # Reports are taken in as they come, so that a fatal error stops the flow within a batch, not an epoch.
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until the broker has everything that was written."""
        begun_s = time.monotonic()
        while self._producer.flush(_FLUSH_STEP_S) > 0:
            self._watch.suspect()
        self._check()
        if self._probe is not None:
            self._probe.flushed(time.monotonic() - begun_s)

    def _deliver_some(self) -> None:
        if self._producer.poll(_FLUSH_STEP_S) == 0:
            self._watch.suspect()
        self._check()

    def _check(self) -> None:
        if self._failed is not None:
            self._stop(self._failed.str(), "the topics")

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None and self._failed is None:
            self._failed = error

    def _stop(self, what: str, where: str) -> None:
        say(
            f"{self._source}: cannot write to {where}: {what}. Stopping; nothing that was not written is marked as done",
            "failed",
        )
        # The engine would go on with the other steps of this epoch; state is safe against a hard stop.
        os._exit(1)


class _ShardPartition(StatefulSinkPartition[Outgoing, None]):
    def __init__(self, producer: _SharedProducer, shard: int) -> None:
        self._producer = producer
        self._shard = shard

    def write_batch(self, items: list[Outgoing]) -> None:
        self._producer.write(self._shard, items)

    def snapshot(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.flush()


class ShardSink(FixedPartitionedSink[Outgoing, None]):
    """Writes ``(shard key, Outgoing)`` to the partition that has the shard's number."""

    def __init__(self, link: BrokerLink, source: str) -> None:
        self._link = link
        self._source = source
        self._local = threading.local()

    def list_parts(self) -> list[str]:
        return [shard_key(s) for s in range(self._link.names.shards)]

    def part_fn(self, item_key: str) -> int:
        return int(item_key)

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> _ShardPartition:
        del step_id, resume_state
        shared = getattr(self._local, "producer", None)
        if shared is None:
            shared = self._local.producer = _SharedProducer(self._link, self._source)
        return _ShardPartition(shared, int(for_part))
