"""Ingest: check and decode device messages, drop duplicates, restore order inside the lateness bound.

What cannot be read becomes a dead letter with its place and bytes; nothing else stops for it.
"""

import base64
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from bytewax.operators import KeyedStream
from pydantic import ValidationError

from contracts.base import Message
from contracts.messages import (
    CONTROL_MESSAGE,
    DEVICE_MESSAGE,
    AnyControl,
    DeadLetter,
    EndOfStream,
    MeetingPurged,
    OcrMessage,
    TranscriptMessage,
)
from contracts.packet import MAX_PAYLOAD_BYTES, Modality, Packet, PacketError, decode, encode, stream_name
from contracts.refusals import refusal_line
from contracts.topics import AUDIO, CONTROL, DEADLETTER, OCR, TRANSCRIPT, VIDEO, TopicNames
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.shard import by_shard
from operators.store import StepStore, Stores

_PREFIX: Final = b"meeting/"
_PURGED: Final = b"purged/"
_START_WINDOW: Final = 64
"""A stream whose first packet seen is below this number is taken to begin at 0."""
_REMEMBERED: Final = 64
"""Lost stretches and past epochs that are remembered of a stream, to tell late packets from repeated ones."""

DeviceBody = Packet | TranscriptMessage | OcrMessage | EndOfStream
_DEVICE_BODIES: Final = (Packet, TranscriptMessage, OcrMessage, EndOfStream)


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """``lateness_ns``: how far a stream may be out of order.

    For media in stream time, so that a replay decides as the live run did; for transcripts and slides,
    whose messages are seconds apart, the time for which a later message waits for a missing one.
    """

    lateness_ns: int = 500_000_000
    max_held: int = 256

    def __post_init__(self) -> None:
        if self.lateness_ns < 0 or self.max_held < 1:
            raise ValueError("the lateness bound must not be negative and at least one packet must be held")


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of a stream that did not come; times on the device's clock."""

    meeting_id: str
    device_id: str
    modality: Modality
    stream_epoch: int
    raw_start_ns: int
    raw_end_ns: int
    packets: int

    @property
    def stream(self) -> str:
        return stream_name(self.device_id, self.modality)


@dataclass(frozen=True, slots=True)
class Late:
    """A packet came after its place had been given up, or belongs to an older stream epoch."""

    meeting_id: str
    device_id: str
    modality: Modality
    raw_ns: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that was accepted, and where and when it arrived (UTC, ns)."""

    meeting_id: str
    body: DeviceBody | AnyControl | Loss | Late
    arrival_ns: int
    appended: bool
    source: str
    traceparent: str | None = None


class Misplaced(ValueError):
    """A message on a topic that is not for its kind."""

    def __init__(self, what: str, meeting_id: str) -> None:
        super().__init__(what)
        self.meeting_id = meeting_id


@dataclass(slots=True)
class _StreamOrder:
    """Order of one stream: what is expected next, and what came too early."""

    epoch: int
    began: int
    expected: int
    last_end_ns: int | None = None
    held: dict[int, Arrival] = field(default_factory=dict)
    lost: list[range] = field(default_factory=list)
    """Sequence numbers whose places were given up lately."""
    past_epochs: tuple[int, ...] = ()
    """Not compared by size: a device without a battery clock may start anew with a smaller one."""

    def given_up(self, sequence: int) -> bool:
        return sequence < self.began or any(sequence in numbers for numbers in self.lost)


class MeetingOrder:
    """De-duplication and order of all streams of one meeting; plain data in, accepted arrivals out."""

    def __init__(self, settings: IngestSettings) -> None:
        self._settings = settings
        self._streams: dict[str, _StreamOrder] = {}
        self.duplicates = 0

    def accept(
        self, arrival: Arrival, modality: Modality, device: str, epoch: int, sequence: int
    ) -> list[Arrival]:
        """What may go on now that this one has come, in order."""
        name = stream_name(device, modality)
        order = self._streams.get(name)
        out: list[Arrival] = []
        if order is None or epoch != order.epoch:
            past: tuple[int, ...] = ()
            if order is not None:
                if epoch in order.past_epochs:
                    return [_late(arrival, device, modality)]
                out = list(self._release(order, everything=True))
                past = (*order.past_epochs, order.epoch)[-_REMEMBERED:]
            first = 0 if sequence < _START_WINDOW else sequence
            order = self._streams[name] = _StreamOrder(epoch, first, first, past_epochs=past)
        if sequence < order.expected:
            if order.given_up(sequence):
                return [_late(arrival, device, modality)]
            self.duplicates += 1
            return out
        if sequence in order.held:
            self.duplicates += 1
            return out
        order.held[sequence] = arrival
        # Nothing follows the end of a stream, so nothing would ever push out what waits for a lost packet.
        out.extend(self._release(order, everything=isinstance(arrival.body, EndOfStream)))
        return out

    def waiting(self, device: str, modality: Modality) -> bool:
        """Whether messages of the stream wait for a missing one."""
        order = self._streams.get(stream_name(device, modality))
        return order is not None and bool(order.held)

    def own_bytes(self) -> None:
        """Turn payloads that are views on received messages into bytes, which a snapshot can hold."""
        for order in self._streams.values():
            for sequence, arrival in order.held.items():
                body = arrival.body
                if isinstance(body, Packet) and isinstance(body.payload, memoryview):
                    own = replace(body, payload=bytes(body.payload))
                    order.held[sequence] = replace(arrival, body=own)

    def json_waiting(self) -> list[tuple[str, Modality]]:
        """Streams of JSON messages of which some wait: device and modality."""
        found = []
        for order in self._streams.values():
            for arrival in list(order.held.values())[:1]:
                body = arrival.body
                if isinstance(body, _DEVICE_BODIES) and modality_of(body) in _JSON_MODALITIES:
                    found.append((body.device_id, modality_of(body)))
        return found

    def give_up(self, device: str, modality: Modality) -> list[Arrival]:
        """Hand on what waits; the missing messages are lost."""
        order = self._streams.get(stream_name(device, modality))
        return [] if order is None else list(self._release(order, everything=True))

    def _release(self, order: _StreamOrder, *, everything: bool) -> Iterator[Arrival]:
        while order.held:
            ready = order.held.pop(order.expected, None)
            if ready is None:
                first = min(order.held)
                if not everything and not self._too_long(order):
                    return
                yield from _loss(order.held[first], order, first)
                order.lost = [*order.lost[1 - _REMEMBERED :], range(order.expected, first)]
                order.expected = first
                continue
            order.expected += 1
            order.last_end_ns = _end_ns(ready)
            yield ready

    def _too_long(self, order: _StreamOrder) -> bool:
        if len(order.held) >= self._settings.max_held:
            return True
        last = order.held[max(order.held)].body
        if not isinstance(last, Packet):
            return False
        if last.duration_ns > 0:
            # By its own count: a clock that was set while packets overtook each other makes none of them late.
            return (last.sequence - order.expected) * last.duration_ns > self._settings.lateness_ns
        newest = max(_start_ns(a) for a in order.held.values())
        reference = (
            order.last_end_ns
            if order.last_end_ns is not None
            else min(_start_ns(a) for a in order.held.values())
        )
        return newest - reference > self._settings.lateness_ns


def _start_ns(arrival: Arrival) -> int:
    body = arrival.body
    return body.timestamp_ns if isinstance(body, _DEVICE_BODIES) else 0


def _end_ns(arrival: Arrival) -> int:
    body = arrival.body
    if isinstance(body, _DEVICE_BODIES):
        return body.timestamp_ns + body.duration_ns
    return 0


def _loss(next_one: Arrival, order: _StreamOrder, sequence: int) -> Iterator[Arrival]:
    body = next_one.body
    if not isinstance(body, _DEVICE_BODIES) or order.last_end_ns is None:
        return
    start = min(order.last_end_ns, body.timestamp_ns)
    loss = Loss(
        body.meeting_id, body.device_id, modality_of(body), body.stream_epoch, start, body.timestamp_ns,
        sequence - order.expected,
    )  # fmt: skip
    yield Arrival(next_one.meeting_id, loss, next_one.arrival_ns, next_one.appended, next_one.source)


def _late(arrival: Arrival, device: str, modality: Modality) -> Arrival:
    late = Late(arrival.meeting_id, device, modality, _start_ns(arrival))
    return Arrival(arrival.meeting_id, late, arrival.arrival_ns, arrival.appended, arrival.source)


class Ingest:
    """The step of one shard: bytes in, ``Arrival`` and dead letters out."""

    def __init__(
        self, settings: IngestSettings, names: TopicNames, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._names = names
        self._clock_s = clock_s
        self._waiting: dict[tuple[str, str, Modality], float | None] = {}
        """Streams of JSON messages that wait for a missing one, and since when nothing more has come."""
        self._meetings: dict[str, MeetingOrder] = {}
        self._purged: set[str] = set()
        """Meetings whose data had to go; nothing more of them is taken."""
        self._touched: set[str] = set()

    def open(self, store: StepStore) -> None:
        self._purged = {key.removeprefix(_PURGED).decode() for key, _ in store.scan(_PURGED)}
        for _, value in store.scan(_PREFIX):
            meeting, order = pickle.loads(value)
            self._meetings[meeting] = order
            for device, modality in order.json_waiting():
                self._waiting[meeting, device, modality] = None

    @property
    def repeated(self) -> int:
        """Messages that came a second time, over all meetings."""
        return sum(order.duplicates for order in self._meetings.values())

    def save(self, store: StepStore) -> None:
        for meeting in sorted(self._touched):
            if meeting in self._purged:
                store.put(_PURGED + meeting.encode(), b"")
                store.forget(_PREFIX + meeting.encode())
                continue
            order = self._meetings[meeting]
            order.own_bytes()
            store.put(_PREFIX + meeting.encode(), pickle.dumps((meeting, order)))
        self._touched.clear()

    def on_timer(self) -> Iterable[Arrival | Outgoing | CaughtUp]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Received | CaughtUp]) -> list[Arrival | Outgoing | CaughtUp]:
        out: list[Arrival | Outgoing | CaughtUp] = []
        for received in values:
            if isinstance(received, CaughtUp):
                out += [*self._waited_enough(), received]
            else:
                out.extend(self._read(received))
        return out

    def _read(self, received: Received) -> list[Arrival] | list[Outgoing]:
        bare = self._names.bare(received.topic)
        try:
            body = self._decode(bare, received.value)
        except PacketError as error:
            return [dead_letter(received, error.reason, str(error))]
        except Misplaced as error:
            return [dead_letter(received, "topic", str(error), error.meeting_id)]
        except ValidationError as error:
            return [dead_letter(received, "schema", refusal_line(error))]
        except RecursionError:
            return [dead_letter(received, "schema", "nested too deeply")]
        if body is None:
            return []
        if body.meeting_id != "*" and self._names.partition(body.meeting_id) != received.shard:
            where = self._names.partition(body.meeting_id)
            return [
                dead_letter(
                    received,
                    "partition",
                    f"meeting {body.meeting_id!r} belongs to partition {where}",
                    body.meeting_id,
                )
            ]
        if isinstance(body, MeetingPurged):
            self._purge(body.meeting_id)
        elif body.meeting_id in self._purged:
            return []
        source = f"{bare}/{received.shard}/{received.offset}"
        arrival = Arrival(
            body.meeting_id, body, received.arrival_ns, received.appended, source, received.traceparent
        )
        if not isinstance(body, _DEVICE_BODIES):
            return [arrival]
        order = self._meetings.get(body.meeting_id)
        if order is None:
            order = self._meetings[body.meeting_id] = MeetingOrder(self._settings)
        self._touched.add(body.meeting_id)
        modality = modality_of(body)
        out = order.accept(arrival, modality, body.device_id, body.stream_epoch, body.sequence)
        if modality in _JSON_MODALITIES:
            self._wait(order, (body.meeting_id, body.device_id, modality))
        return out

    def _purge(self, meeting_id: str) -> None:
        self._purged.add(meeting_id)
        self._touched.add(meeting_id)
        self._meetings.pop(meeting_id, None)
        for place in [place for place in self._waiting if place[0] == meeting_id]:
            del self._waiting[place]

    def _wait(self, order: MeetingOrder, place: tuple[str, str, Modality]) -> None:
        if order.waiting(place[1], place[2]):
            self._waiting.setdefault(place, None)
        else:
            self._waiting.pop(place, None)

    def _waited_enough(self) -> Iterator[Arrival]:
        """Messages for which nothing has come for so long, though all that stands on the broker was read."""
        now_s = self._clock_s()
        for place, since in list(self._waiting.items()):
            if since is None:
                self._waiting[place] = now_s
            elif now_s - since >= self._settings.lateness_ns / 1e9:
                del self._waiting[place]
                meeting, device, modality = place
                self._touched.add(meeting)
                yield from self._meetings[meeting].give_up(device, modality)

    def _decode(self, topic: str, value: bytes) -> DeviceBody | AnyControl | None:
        if topic == CONTROL.name:
            # A compacted topic carries tombstones: the subject is gone, there is nothing to read.
            return CONTROL_MESSAGE.validate_json(value) if value else None
        if topic in (OCR.name, TRANSCRIPT.name) or value[:1] == b"{":
            message = DEVICE_MESSAGE.validate_json(value)
            if _TOPIC_OF[modality_of(message)] != topic:
                raise Misplaced(f"a {message.type} message on {topic}", message.meeting_id)
            return message
        packet = decode(value)
        if _TOPIC_OF.get(packet.modality) != topic:
            raise Misplaced(f"a {packet.modality.name.lower()} packet on {topic}", packet.meeting_id)
        return packet


_JSON_MODALITIES: Final = frozenset({Modality.OCR, Modality.TRANSCRIPT})
_TOPIC_OF: Final = {
    Modality.VIDEO: VIDEO.name,
    Modality.AUDIO: AUDIO.name,
    Modality.OCR: OCR.name,
    Modality.TRANSCRIPT: TRANSCRIPT.name,
}


def modality_of(body: DeviceBody) -> Modality:
    """Modality of a device message."""
    if isinstance(body, Packet):
        return body.modality
    if isinstance(body, EndOfStream):
        return Modality[body.modality.upper()]
    return Modality.OCR if isinstance(body, OcrMessage) else Modality.TRANSCRIPT


def in_words(error: Exception) -> str:
    """What is wrong, in one line without the words of a library."""
    said = refusal_line(error) if isinstance(error, ValidationError) else str(error)
    return " ".join(said.split())[:1000]


def dead_letter(received: Received, reason: str, detail: str, meeting_id: str | None = None) -> Outgoing:
    kept = received.value[:MAX_PAYLOAD_BYTES]
    letter = DeadLetter(
        reason=reason, detail=detail[:1000], topic=received.topic, partition=received.shard, offset=received.offset,
        meeting_id=meeting_id, bytes_base64=base64.b64encode(kept).decode("ascii"), size=len(received.value),
    )  # fmt: skip
    name = f"{received.topic}/{received.shard}/{received.offset}"
    return Outgoing(DEADLETTER, name.encode(), letter.to_bytes(), "deadletter", name, received.traceparent)


def refused(arrival: Arrival, error: Exception) -> Outgoing:
    """The dead letter of something that was read but cannot be worked with, so that nothing else stops for it."""
    body = arrival.body
    value = (
        encode(body) if isinstance(body, Packet) else body.to_bytes() if isinstance(body, Message) else b""
    )
    topic, _, place = arrival.source.partition("/")
    shard, _, offset = place.partition("/")
    letter = DeadLetter(
        reason="rejected", detail=in_words(error), topic=topic, partition=int(shard),
        offset=int(offset), meeting_id=arrival.meeting_id, bytes_base64=base64.b64encode(value).decode("ascii"),
        size=len(value),
    )  # fmt: skip
    return Outgoing(
        DEADLETTER,
        arrival.source.encode(),
        letter.to_bytes(),
        "deadletter",
        arrival.source,
        arrival.traceparent,
    )


def ingest(
    up: KeyedStream[tuple[int, Received | CaughtUp]],
    stores: Stores,
    settings: IngestSettings,
    names: TopicNames,
) -> KeyedStream[tuple[int, Arrival | Outgoing | CaughtUp]]:
    """Check, decode, de-duplicate and order device messages."""
    return by_shard("ingest", up, stores, lambda _: Ingest(settings, names))
