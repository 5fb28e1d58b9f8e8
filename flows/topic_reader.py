"""Reads topics from their beginning to what is their end now, for commands that look at what stands there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from contracts.topics import Topic
from operators.broker.kafka_link import BrokerLink, BrokerUnreachable, check_topics

_POLL_S: Final = 0.05
_BATCH: Final = 500
_QUIET_S: Final = 0.4
"""Nothing has come for so long after the end was reported: some brokers report an end that lags behind."""


@dataclass(frozen=True, slots=True)
class Found:
    """One message; ``topic`` without prefix, ``value`` None for a tombstone."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes | None
    time_ms: int = 0
    """Append time, or the producer's where the broker keeps none; UTC."""


class TopicReader:
    """One consumer over the partitions of a meeting, or over all.

    Raises:
        BrokerUnreachable: no broker answered within ``wait_s``.
        TopicProblem: topics are missing or have another number of partitions.
    """

    def __init__(
        self,
        link: BrokerLink,
        topics: tuple[Topic, ...],
        meeting_id: str | None = None,
        *,
        wait_s: float = 30.0,
    ) -> None:
        check_topics(link, "minuted", topics, wait_s=wait_s)
        names = link.names
        self._names = names
        self._wait_s = wait_s
        self._bootstrap = link.bootstrap
        partitions = range(names.shards) if meeting_id is None else (names.partition(meeting_id),)
        self._consumer = Consumer(link.consumer() | {"auto.offset.reset": "earliest"})
        self._open = {(names.of(t), p) for t in topics for p in partitions}
        self._consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t, p in sorted(self._open)])

    def to_end(self) -> list[Found]:
        """Everything that stands on the topics, each partition in its order.

        Raises:
            BrokerUnreachable: nothing came for ``wait_s``.
        """
        found: list[Found] = []
        last = time.monotonic()
        while self._open or time.monotonic() - last < _QUIET_S:
            new = self.poll()
            if new:
                found += new
                last = time.monotonic()
            elif self._open and time.monotonic() - last > self._wait_s:
                raise BrokerUnreachable(f"no broker answers at {self._bootstrap} (waited {self._wait_s:g} s)")
        return found

    def poll(self) -> list[Found]:
        """What has come; waits a moment for the first."""
        out: list[Found] = []
        for message in self._consumer.consume(_BATCH, _POLL_S):
            place = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                out.append(
                    Found(
                        self._names.bare(place[0]), place[1], message.offset() or 0, message.key() or b"",
                        message.value(), message.timestamp()[1],
                    )
                )  # fmt: skip
            elif error.code() == KafkaError._PARTITION_EOF:
                self._open.discard(place)
        return out

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
