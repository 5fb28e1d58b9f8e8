"""Kafka source: one Bytewax partition a shard, which joins that shard's partition of several topics.

Messages are handed on by append time, control first where times are equal. A topic that is behind
holds the others back for a bounded time, so that a replay of sound does not run hours ahead of the
picture. Polling never blocks: all shards of a worker share one consumer.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from contracts.headers import traceparent_of
from contracts.topics import CONTROL, Topic
from operators import telemetry
from operators.broker.kafka_link import BrokerLink, broker_watch
from operators.broker.turns import MOST, Share, TurnSettings
from operators.log import say
from operators.shard import shard_key

_PUMP_EVERY_S: Final = 0.000_5
_PUMP_MESSAGES: Final = 2_000
_READ_AHEAD: Final = 2_000
"""Messages buffered per topic and shard before that partition is paused."""
_TELL_EVERY_S: Final = 0.25
_TELL_FOR_S: Final = 3600.0
"""A shard that has had nothing for so long has no meeting whose silence matters."""
_LOOK_EVERY_S: Final = 1.0
_HOLD_S: Final = 0.25
"""Longest wait for a topic whose end has not been reported, before the others go on without it."""


@dataclass(frozen=True, slots=True)
class Received:
    """One message as it stood on the broker. ``arrival_ns`` is UTC, exact to the broker's millisecond."""

    topic: str
    shard: int
    offset: int
    arrival_ns: int
    appended: bool
    """``arrival_ns`` is the broker's append time, not the producer's send time."""
    value: bytes
    traceparent: str | None = None


class Backlog:
    """Whether a shard is read as fast as it is written, told from how old messages are when they are read."""

    BEHIND_S: Final = 10.0
    CAUGHT_UP_S: Final = 2.0
    EVERY_S: Final = 60.0

    def __init__(self) -> None:
        self._told_s: float | None = None

    def read(self, age_s: float, now_s: float) -> Literal["behind", "caught_up"] | None:
        """What to tell when a message is read that was sent ``age_s`` ago; ``now_s`` is of any clock that goes on."""
        if age_s >= self.BEHIND_S and (self._told_s is None or now_s - self._told_s >= self.EVERY_S):
            self._told_s = now_s
            return "behind"
        if age_s < self.CAUGHT_UP_S and self._told_s is not None:
            self._told_s = None
            return "caught_up"
        return None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything that stood on a shard's partitions has been handed on; said a few times a second.

    Silence of a device can only be told from slowness of ours by this.
    """

    shard: int


Keyed = tuple[str, tuple[int, Received | CaughtUp]]


class _SharedConsumer:
    """The consumer of one worker thread, with a buffer for each of its (topic, partition)."""

    def __init__(self, link: BrokerLink, on_turn: Callable[[], None]) -> None:
        self._on_turn = on_turn
        self._watch = broker_watch("flow", link)
        self._consumer = Consumer(link.consumer(self._watch))
        self._pumped = 0.0
        self.buffers: dict[tuple[str, int], deque[Message]] = {}
        self.at_end: set[tuple[str, int]] = set()
        self._paused: set[tuple[str, int]] = set()

    def add(self, topic: str, partition: int, offset: int) -> None:
        self.buffers[topic, partition] = deque()
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])

    def remove(self, topic: str, partition: int) -> None:
        self.buffers.pop((topic, partition), None)
        self._consumer.incremental_unassign([TopicPartition(topic, partition)])
        if not self.buffers:
            self._consumer.close()

    def pump(self) -> None:
        """Move what has been fetched into the buffers; at most once every half millisecond."""
        now = time.monotonic()
        if now - self._pumped < _PUMP_EVERY_S:
            return
        self._pumped = now
        self._on_turn()
        for message in self._consumer.consume(_PUMP_MESSAGES, timeout=0):
            place = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is not None:
                self._on_error(error, place)
                continue
            buffer = self.buffers.get(place)
            if buffer is None:
                continue
            self.at_end.discard(place)
            buffer.append(message)
            if len(buffer) >= _READ_AHEAD and place not in self._paused:
                self._paused.add(place)
                self._consumer.pause([TopicPartition(*place)])

    def taken(self, place: tuple[str, int]) -> None:
        """A message left a buffer; fetch again once it is half empty."""
        if place in self._paused and len(self.buffers[place]) < _READ_AHEAD // 2:
            self._paused.discard(place)
            self._consumer.resume([TopicPartition(*place)])

    def _on_error(self, error: KafkaError, place: tuple[str, int]) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self.at_end.add(place)
        elif code == KafkaError._AUTO_OFFSET_RESET:
            say(
                f"flow: {place[0]} partition {place[1]} no longer holds the messages where this flow stopped "
                "(retention); going on with the oldest that is there",
                "messages_expired",
                topic=place[0],
                partition=place[1],
            )
            self._consumer.incremental_unassign([TopicPartition(*place)])
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING)])
        elif error.fatal():
            raise RuntimeError(f"reading {place[0]}: {error.str()}")


class _ShardPartition(StatefulSourcePartition[Keyed, dict[str, int]]):
    def __init__(
        self,
        shared: _SharedConsumer,
        shard: int,
        topics: tuple[str, ...],
        first: str,
        offsets: dict[str, int],
        tell_caught_up: bool,
        share: Share | None,
    ) -> None:
        self._shared = shared
        self._shard = shard
        self._key = shard_key(shard)
        self._first = first
        self._offsets = dict(offsets)
        self._topics = topics
        self._holding_since: float | None = None
        self._tell_caught_up = tell_caught_up
        self._told_at = self._handed_at = time.monotonic()
        self._backlog = Backlog()
        self._looked_at = 0.0
        self._probe = telemetry.probe()
        self._share = share
        self._handed = 0
        self._turned_at = time.monotonic()
        for topic in topics:
            shared.add(topic, shard, offsets.get(topic, OFFSET_BEGINNING))

    def next_batch(self) -> list[Keyed]:
        self._shared.pump()
        out: list[Keyed] = []
        most = (
            MOST
            if self._share is None
            else self._share.next(self._handed, time.monotonic() - self._turned_at)
        )
        while len(out) < most:
            topic = self._next_topic()
            if topic is None:
                break
            place = (topic, self._shard)
            message = self._shared.buffers[place].popleft()
            self._shared.taken(place)
            received = _received(message, self._shard)
            self._offsets[topic] = received.offset + 1
            out.append((self._key, (self._shard, received)))
            newest = received
        self._handed, self._turned_at = len(out), time.monotonic()
        if out and time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            self._look(newest)
        if self._tell_caught_up and self._offsets:
            out += self._caught_up(bool(out))
        return out

    def _look(self, newest: Received) -> None:
        self._looked_at = time.monotonic()
        age_s = max(0.0, time.time() - newest.arrival_ns / 1e9)
        if self._probe is not None:
            self._probe.read_behind(self._shard, age_s)
        told = self._backlog.read(age_s, self._looked_at)
        if told == "behind":
            say(
                f"flow: shard {self._shard} now reads what was sent {age_s:.0f} s ago: it takes up what came while it was "
                "stopped, or the flow or the broker does not keep up",
                "behind",
                shard=self._shard, seconds=round(age_s, 1),
            )  # fmt: skip
        elif told == "caught_up":
            say(f"flow: shard {self._shard} has caught up", "caught_up", shard=self._shard)

    def _caught_up(self, busy: bool) -> list[Keyed]:
        now = time.monotonic()
        if busy:
            self._handed_at = now
        if now - self._told_at < _TELL_EVERY_S or now - self._handed_at > _TELL_FOR_S:
            return []
        places = [(topic, self._shard) for topic in self._topics]
        if any(self._shared.buffers[p] for p in places) or not all(p in self._shared.at_end for p in places):
            return []
        self._told_at = now
        return [(self._key, (self._shard, CaughtUp(self._shard)))]

    def _next_topic(self) -> str | None:
        """Topic whose oldest message is to be handed on now."""
        best: tuple[tuple[int, bool], str] | None = None
        behind = False
        for topic in self._topics:
            buffer = self._shared.buffers[topic, self._shard]
            if buffer:
                rank = (buffer[0].timestamp()[1], topic != self._first)
                if best is None or rank < best[0]:
                    best = (rank, topic)
            elif (topic, self._shard) not in self._shared.at_end:
                behind = True
        if best is None or not behind:
            self._holding_since = None
            return None if best is None else best[1]
        now = time.monotonic()
        if self._holding_since is None:
            self._holding_since = now
        return best[1] if now - self._holding_since >= _HOLD_S else None

    def next_awake(self) -> datetime | None:
        return None

    def snapshot(self) -> dict[str, int]:
        return dict(self._offsets)

    def close(self) -> None:
        for topic in self._topics:
            self._shared.remove(topic, self._shard)


class ShardSource(FixedPartitionedSource[Keyed, dict[str, int]]):
    """Reads the given topics, shard by shard, from the beginning or from where a snapshot stopped."""

    def __init__(
        self, link: BrokerLink, topics: Iterable[Topic], *, tell_caught_up: bool = False,
        turns: TurnSettings | None = None, on_turn: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """``tell_caught_up``: hand on ``CaughtUp`` between messages; ``turns`` keeps one shard from holding up the
        others, where messages are dear; ``on_turn`` is called as the loop turns."""
        self._tell_caught_up = tell_caught_up
        self._turns = turns
        self._on_turn = on_turn
        self._link = link
        self._topics = tuple(link.names.of(t) for t in topics)
        self._first = link.names.of(CONTROL)
        self._local = threading.local()

    def list_parts(self) -> list[str]:
        return [shard_key(s) for s in range(self._link.names.shards)]

    def build_part(self, step_id: str, for_part: str, resume_state: dict[str, int] | None) -> _ShardPartition:
        del step_id
        shared = getattr(self._local, "consumer", None)
        if shared is None:
            shared = self._local.consumer = _SharedConsumer(self._link, self._on_turn)
        share = Share(self._turns) if self._turns is not None else None
        return _ShardPartition(
            shared, int(for_part), self._topics, self._first, resume_state or {}, self._tell_caught_up, share
        )


def _received(message: Message, shard: int) -> Received:
    kind, milliseconds = message.timestamp()
    headers = message.headers()
    return Received(
        topic=message.topic() or "",
        shard=shard,
        offset=message.offset() or 0,
        arrival_ns=milliseconds * 1_000_000,
        appended=kind == TIMESTAMP_LOG_APPEND_TIME,
        value=message.value() or b"",
        traceparent=traceparent_of(headers.items() if isinstance(headers, dict) else headers)
        if headers
        else None,
    )
