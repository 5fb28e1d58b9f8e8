"""The log seen from its writer: fence off older runs, and read back what already stands there.

A restarted writer replays packets from its snapshot. What it had written after that snapshot is on the
log already and is decided: it is taken from there, never decided a second time.
"""

import time
from typing import Final, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pydantic import ValidationError

from contracts.packet import MAGIC
from contracts.timeline import TIMELINE_RECORD, AnyRecord, Fence
from contracts.topics import TIMELINE
from operators.broker.kafka_link import BrokerLink, broker_watch

_POLL_S: Final = 0.5
_FLUSH_S: Final = 5.0
_ASK_EVERY_S: Final = 30.0


class Journal(Protocol):
    """What the perceive step needs of the log."""

    def end_offset(self, shard: int) -> int:
        """An offset not beyond the true end of the shard's partition."""

    def fence(self, shard: int, run: int, from_offset: int) -> list[AnyRecord]:
        """Append the fence of a new run, then return all records that stand from ``from_offset`` up to it.

        Records of runs that an earlier fence has cut off are left out, as every reader leaves them out.
        """


class NoJournal:
    """For a run that has no past: files in, files out."""

    def end_offset(self, shard: int) -> int:
        """Nothing was written before."""
        del shard
        return 0

    def fence(self, shard: int, run: int, from_offset: int) -> list[AnyRecord]:
        """Nothing stands on the log yet."""
        del shard, run, from_offset
        return []


class KafkaJournal:
    """The timeline topic. Used by one thread at a time."""

    def __init__(self, link: BrokerLink) -> None:
        self._link = link
        self._topic = link.names.of(TIMELINE)
        self._watch = broker_watch("flows.perceive", link)
        self._consumer: Consumer | None = None
        self._ends: dict[int, tuple[float, int]] = {}

    def end_offset(self, shard: int) -> int:
        # To ask takes a round trip on the dataflow's thread, at each snapshot. An older answer only makes a restart
        # read a little more, so the broker is asked twice a minute.
        known = self._ends.get(shard)
        if known is not None and time.monotonic() - known[0] < _ASK_EVERY_S:
            return known[1]
        end = self._ask_end(shard)
        self._ends[shard] = time.monotonic(), end
        return end

    def _ask_end(self, shard: int) -> int:
        if self._consumer is None:
            self._consumer = Consumer(self._link.consumer(self._watch))
        while True:
            try:
                _, high = self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, shard), timeout=_FLUSH_S
                )
                return int(high)
            except KafkaException:
                self._watch.suspect()

    def fence(self, shard: int, run: int, from_offset: int) -> list[AnyRecord]:
        self._append(shard, Fence(run=run, shard=shard))
        consumer = Consumer(self._link.consumer(self._watch))
        try:
            start = from_offset if from_offset > 0 else OFFSET_BEGINNING
            consumer.assign([TopicPartition(self._topic, shard, start)])
            return self._read_to_fence(consumer, shard, run)
        finally:
            consumer.close()

    def _append(self, shard: int, fence: Fence) -> None:
        failed: list[KafkaError] = []
        producer = Producer(self._link.producer(self._watch))
        producer.produce(
            self._topic, key=b"", value=fence.to_bytes(), partition=shard,
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )  # fmt: skip
        while producer.flush(_FLUSH_S) > 0:
            self._watch.suspect()
        if failed:
            raise KafkaException(failed[0])

    def _read_to_fence(self, consumer: Consumer, shard: int, run: int) -> list[AnyRecord]:
        records: list[AnyRecord] = []
        current: int | None = None
        while True:
            for message in consumer.consume(2_000, timeout=_POLL_S):
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._AUTO_OFFSET_RESET:
                        # The log no longer reaches back so far: what is left of it is what can be known.
                        consumer.assign([TopicPartition(self._topic, shard, OFFSET_BEGINNING)])
                    elif error.code() != KafkaError._PARTITION_EOF:
                        time.sleep(_POLL_S / 10)
                    continue
                value = message.value() or b""
                if value[:4] == MAGIC:
                    continue
                try:
                    record = TIMELINE_RECORD.validate_json(value)
                except ValidationError:
                    # Not ours; `flows.minutes` makes a dead letter of it.
                    continue
                if isinstance(record, Fence):
                    if record.run == run:
                        return records
                    current = record.run
                elif current is None or record.run == current:
                    records.append(record)
