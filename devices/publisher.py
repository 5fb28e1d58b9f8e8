"""Publishes a room's streams to Kafka as devices would: each message when it could have been captured.

One thread sends; video is read and coded ahead by another. Sound goes out when the last sample of its block
would have been heard, a picture at its stamp. Stamps are PTP (TAI): the meeting's start plus the time in the
file.
"""

import datetime
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from contracts import topics
from contracts.headers import Headers, cloud_event
from contracts.leap_seconds import tai_from_utc_ns
from contracts.messages import (
    AnyControl,
    Calibration,
    ClockState,
    EndOfStream,
    MeetingEnded,
    MeetingStarted,
    SpeakerTurns,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Modality, Packet, encode
from contracts.topics import Topic, TopicNames, compacted_key

from .inputs import Room
from .live import as_they_come
from .streams import Problem, StreamMessage, due_ns, merged, read_ahead

Speed = Literal["realtime", "max"] | float
Stamp = Callable[[str, int], int]
"""Raw stamp that a device gives to a moment: ``(device id, timeline ns) -> ns of the device's clock``."""
Progress = Callable[[int, int | None], None]
"""Called about four times a second with how much of the meeting is out, and its length where known; ns."""

UNREACHABLE_AFTER_S: Final = 30.0
_TOPIC_OF: Final[dict[Modality, Topic]] = {
    Modality.VIDEO: topics.VIDEO,
    Modality.AUDIO: topics.AUDIO,
    Modality.OCR: topics.OCR,
    Modality.TRANSCRIPT: topics.TRANSCRIPT,
}
_AWAY: Final = frozenset({KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
_SLEEP_NS: Final = 50_000_000
_LEAD_NS: Final = 200_000_000
"""How far ahead a live meeting's start lies, so that its control messages are there before its sound."""
_PROGRESS_NS: Final = 250_000_000
_DAY_NS: Final = 86_400 * 10**9
_UNKNOWN_START_NS: Final = 10**18
"""A recording is moved by more only where nobody said when it was made."""


class PublishError(Exception):
    """The broker refuses what is to be sent; one readable line."""


class BrokerUnreachable(PublishError):
    """Nobody answers at the broker's address, or no longer."""


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What was sent. ``max_lateness_ns``: the most a message went out after its moment (0 at full speed)."""

    meeting_id: str
    start_ns: int
    end_ns: int
    sent: Mapping[str, int]
    """Messages by stream, the end of stream included; ``control`` for control messages."""
    bytes_sent: int
    delivered: int
    failed: int
    errors: tuple[str, ...]
    max_lateness_ns: int
    stopped: bool
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Counts:
    sent: dict[str, int] = field(default_factory=dict)
    bytes_sent: int = 0
    delivered: int = 0
    failed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    away: bool = False
    refused: str = ""
    last_answer_ns: int = 0


def tai_now_ns() -> int:
    """Now in TAI: the kernel's own where it keeps the offset to UTC, else by the table of leap seconds."""
    utc_ns = time.time_ns()
    clock = getattr(time, "CLOCK_TAI", None)
    if clock is not None:
        tai_ns = time.clock_gettime_ns(clock)
        if 30 * 10**9 <= tai_ns - utc_ns <= 60 * 10**9:
            return tai_ns
    return tai_from_utc_ns(utc_ns)


def true_stamp(device_id: str, time_ns: int) -> int:
    """Stamp of a device whose clock is right."""
    del device_id
    return time_ns


class Publisher:
    """Sends rooms to one broker.

    Args:
        bootstrap: ``host:port`` of one or more brokers, separated by commas.
        names: topic names and number of partitions of the installation.
        client_overrides: settings of the Kafka client that win over the ones here (security, tuning).
        unreachable_after_s: how long to wait for a broker that does not answer.
        stamp: clocks of the devices.
    """

    def __init__(
        self,
        bootstrap: str,
        names: TopicNames,
        client_overrides: Mapping[str, str | int | float | bool] | None = None,
        *,
        unreachable_after_s: float = UNREACHABLE_AFTER_S,
        stamp: Stamp = true_stamp,
    ) -> None:
        self._bootstrap = bootstrap
        self._names = names
        self._patience_s = unreachable_after_s
        self._stamp = stamp
        self._counts = _Counts()
        self._polled_ns = 0
        config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "client.id": "minuted-publish",
            "acks": "all",
            "enable.idempotence": True,
            # Blocks of a room's microphones are due together: one batch for them all spares the broker most work.
            "linger.ms": 5,
            "message.max.bytes": max(topic.max_message_bytes for topic in topics.DEVICE_TOPICS),
            "message.timeout.ms": round(unreachable_after_s * 1000),
            "queue.buffering.max.kbytes": 64 * 1024,
            "socket.nagle.disable": True,
            "log_level": 2,
            **(client_overrides or {}),
        }
        try:
            self._producer = Producer({**config, "error_cb": self._on_error})
        except KafkaException as error:
            raise PublishError(f"Kafka client settings: {error.args[0].str()}") from error

    def publish(
        self,
        room: Room,
        *,
        speed: Speed = "realtime",
        start_ns: int | None = None,
        announce: bool = True,
        keep_open: bool = False,
        only: frozenset[Modality] | None = None,
        progress: Progress | None = None,
        stop: threading.Event | None = None,
        states: Callable[[], Sequence[ClockState]] | None = None,
    ) -> PublishReport:
        """Send a room, control messages first, and wait until all of it is delivered.

        Args:
            speed: ``realtime``, ``max``, or how many times faster than real time.
            start_ns: timeline time of the files' zero; None is now.
            announce: send the room's control messages.
            keep_open: no ``meeting_ended`` in the end; other publishers go on.
            only: kinds of streams to send; None is all.
            stop: when set, streams are ended where they are.
            states: asked before every message for what is to be said of the devices' clocks.

        A live room goes out as its devices give it: ``speed`` and ``start_ns`` do not count.

        Raises:
            BrokerUnreachable: nobody answered for ``unreachable_after_s``.
            PublishError: a topic is missing or has another number of partitions; the broker refuses.
            ValueError: a speed that is not positive.
        """
        pace = None if room.live else _pace(speed)
        streams = [stream for stream in room.streams if only is None or stream.modality in only]
        self._check_topics({topics.CONTROL, *(_TOPIC_OF[stream.modality] for stream in streams)})
        self._counts = _Counts(last_answer_ns=time.monotonic_ns())
        messages = (
            as_they_come(streams, stop or threading.Event()) if room.live else merged(streams, read_ahead)
        )
        start_ns = room.start_ns if room.live else start_ns
        # Opening files and encoders takes its time: done before the meeting's clock starts.
        first = next(messages, None)
        lead_ns = 0 if pace is None else _LEAD_NS
        begin_wall_ns = time.monotonic_ns() + lead_ns
        begin_ns = tai_now_ns() + lead_ns if start_ns is None else start_ns
        epoch, shift_ns = time.time_ns(), begin_ns - room.start_ns
        if announce:
            for control in moved_control(room.control, shift_ns, self._stamp):
                self.send_control(_with_streams(control, frozenset(stream.name for stream in streams)))
            while len(self._producer) and time.monotonic_ns() < begin_wall_ns:
                self._producer.poll(0.005)
        late_ns, end_ns, told_ns, stopped = 0, begin_ns, 0, False
        open_streams: dict[str, StreamMessage] = {}
        for stream, message in itertools.chain([first] if first is not None else [], messages):
            if pace is not None:
                due_wall_ns = begin_wall_ns + round((due_ns(message) - room.start_ns) / pace)
                stopped = not self._wait_until(due_wall_ns, stop)
                late_ns = max(late_ns, time.monotonic_ns() - due_wall_ns)
            elif stop is not None and stop.is_set():
                stopped = True
            if stopped:
                break
            for state in states() if states is not None else ():
                self.send_control(state)
            sent = self._send_device(self._restamped(message, shift_ns, epoch), stream.modality)
            open_streams[stream.name] = sent
            if isinstance(sent, EndOfStream):
                del open_streams[stream.name]
            end_ns = max(end_ns, message.timestamp_ns + message.duration_ns + shift_ns)
            if progress is not None and time.monotonic_ns() - told_ns > _PROGRESS_NS:
                told_ns = time.monotonic_ns()
                progress(end_ns - begin_ns, room.duration_ns)
        for name, last in open_streams.items():
            self._send_device(_end_after(last, name), Modality[name.rpartition("/")[2].upper()])
        if not keep_open:
            self.send_control(MeetingEnded(meeting_id=room.meeting_id, end_ns=end_ns))
        self._flush()
        return self._report(room, begin_ns, end_ns, late_ns, stopped)

    def send_control(self, message: AnyControl) -> None:
        """Queue one control message; ``publish`` and ``flush`` deliver it."""
        if len(self._producer) == 0:
            # Nothing waited until now: the broker's silence begins here.
            self._counts.last_answer_ns = time.monotonic_ns()
        key = compacted_key(message.meeting_id, message.type, message.subject)
        event_id = f"{key.decode()}/{time.time_ns()}"
        self._produce(
            topics.CONTROL,
            message.meeting_id,
            key,
            message.to_bytes(),
            _headers(message.type, event_id),
            "control",
        )

    def flush(self) -> None:
        """Wait until everything queued is delivered; raises as ``publish`` does."""
        self._flush()

    def _check_topics(self, wanted: set[Topic]) -> None:
        """Refuse to send into topics where nobody would look: missing ones, or with other partitions."""
        try:
            known = self._producer.list_topics(timeout=self._patience_s).topics
        except KafkaException as error:
            self._producer.poll(0)  # takes what the client has been told meanwhile
            raise self._unreachable() from error
        for topic in sorted(wanted, key=lambda topic: topic.name):
            name = self._names.of(topic)
            found = known.get(name)
            if found is None or found.error is not None:
                raise PublishError(f"{self._bootstrap} has no topic {name}: minuted topics create makes it")
            count = len(found.partitions)
            if count != self._names.shards:
                raise PublishError(
                    f"topic {name} has {count} partitions, the settings say {self._names.shards}"
                )

    def _unreachable(self) -> BrokerUnreachable:
        refused = f"; it refuses: {self._counts.refused}" if self._counts.refused else ""
        return BrokerUnreachable(
            f"no broker answers at {self._bootstrap} (waited {self._patience_s:.0f} s){refused}"
        )

    def _wait_until(self, due_wall_ns: int, stop: threading.Event | None) -> bool:
        """Sleep to the moment, taking delivery reports meanwhile; False when asked to stop."""
        while True:
            if stop is not None and stop.is_set():
                return False
            now_ns = time.monotonic_ns()
            rest_ns = due_wall_ns - now_ns
            # Blocks of all microphones are due together: reports are taken once for them all, just before a sleep.
            if rest_ns > 0 or now_ns - self._polled_ns > _SLEEP_NS:
                self._polled_ns = now_ns
                self._producer.poll(0)
                self._check_answers()
            if rest_ns <= 0:
                return True
            time.sleep(min(rest_ns, _SLEEP_NS) / 1e9)

    def _restamped(self, message: StreamMessage, shift_ns: int, epoch: int) -> StreamMessage:
        """The message in the meeting that begins now, stamped by its device's clock."""

        def raw(time_ns: int) -> int:
            return self._stamp(message.device_id, time_ns + shift_ns)

        stamp_ns = raw(message.timestamp_ns)
        if isinstance(message, Packet):
            # Named one by one: ``dataclasses.replace`` takes several times as long, thousands of times a minute.
            return Packet(
                message.meeting_id, message.device_id, message.modality, message.codec, ClockKind.PTP, epoch,
                message.sequence, stamp_ns, message.duration_ns, message.payload, message.rate_hz, message.width,
                message.height, message.channels, message.key_frame, message.key_id, message.tag,
            )  # fmt: skip
        change: dict[str, Any] = {
            "timestamp_ns": stamp_ns,
            "stream_epoch": epoch,
            "clock_kind": ClockKind.PTP,
        }
        if isinstance(message, TranscriptMessage):
            change["words"] = tuple(
                word.model_copy(update={"start_ns": raw(word.start_ns), "end_ns": raw(word.end_ns)})
                for word in message.words
            )
        return message.model_copy(update=change)

    def _send_device(self, message: StreamMessage, modality: Modality) -> StreamMessage:
        key = message.meeting_id.encode("utf-8")
        if isinstance(message, Packet):
            value, headers, name = encode(message), None, message.stream
        else:
            name = f"{message.device_id}/{modality.name.lower()}"
            event_id = f"{message.meeting_id}/{name}/{message.stream_epoch}/{message.sequence}"
            value, headers = message.to_bytes(), _headers(message.type, event_id)
        self._produce(_TOPIC_OF[modality], message.meeting_id, key, value, headers, name)
        return message

    def _produce(
        self, topic: Topic, meeting_id: str, key: bytes, value: bytes, headers: Headers | None, stream: str
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    self._names.of(topic), value=value, key=key, partition=self._names.partition(meeting_id),
                    headers=list(headers or ()), on_delivery=self._on_delivery,
                )  # fmt: skip
                break
            except BufferError:
                # The queue is full: the broker sets the pace.
                self._producer.poll(0.05)
                self._check_answers()
            except KafkaException as error:
                raise PublishError(f"{self._names.of(topic)}: {error.args[0].str()}") from error
        self._counts.sent[stream] = self._counts.sent.get(stream, 0) + 1
        self._counts.bytes_sent += len(value)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        del message
        counts = self._counts
        if error is None:
            counts.delivered += 1
            counts.last_answer_ns = time.monotonic_ns()
            return
        counts.failed += 1
        counts.errors[error.str()] = counts.errors.get(error.str(), 0) + 1
        counts.away = counts.away or error.code() in _AWAY

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._counts.refused = " ".join(error.str().split())
        if error.fatal():
            self._counts.errors[error.str()] = self._counts.errors.get(error.str(), 0) + 1

    def _check_answers(self) -> None:
        """Give up when deliveries time out, or nothing was answered for too long while something waits."""
        counts = self._counts
        if len(self._producer) == 0:
            counts.last_answer_ns = time.monotonic_ns()
        if counts.away or time.monotonic_ns() - counts.last_answer_ns > self._patience_s * 1e9:
            raise self._unreachable()

    def _flush(self) -> None:
        while self._producer.flush(0.2) > 0:
            self._check_answers()
        self._check_answers()

    def _report(self, room: Room, start_ns: int, end_ns: int, late_ns: int, stopped: bool) -> PublishReport:
        counts = self._counts
        errors = tuple(f"{text} ({number} times)" for text, number in counts.errors.items())
        return PublishReport(
            room.meeting_id, start_ns, end_ns, dict(counts.sent), counts.bytes_sent, counts.delivered,
            counts.failed, errors, late_ns, stopped, tuple(room.problems),
        )  # fmt: skip


def moved_control(
    control: tuple[AnyControl, ...], shift_ns: int, stamp: Stamp = true_stamp
) -> tuple[AnyControl, ...]:
    """Control messages of a meeting that begins ``shift_ns`` later."""
    moved: list[AnyControl] = []
    for message in control:
        if isinstance(message, MeetingStarted) and message.start_ns is not None:
            message = message.model_copy(update={"start_ns": message.start_ns + shift_ns})
        elif isinstance(message, SpeakerTurns):
            turns = tuple(
                turn.model_copy(
                    update={"start_ns": turn.start_ns + shift_ns, "end_ns": turn.end_ns + shift_ns}
                )
                for turn in message.turns
            )
            message = message.model_copy(update={"turns": turns})
        elif isinstance(message, Calibration):
            message = _moved_calibration(message, shift_ns)
        moved.append(message)
    return tuple(moved)


def _moved_calibration(message: Calibration, shift_ns: int) -> Calibration:
    """A calibration of a recording that is sent later; its zero is the first stamp, wherever that is moved to."""
    change: dict[str, Any] = {"ref_ns": message.ref_ns + shift_ns} if message.ref_ns else {}
    if message.measured is not None and abs(shift_ns) < _UNKNOWN_START_NS:
        change["measured"] = message.measured + datetime.timedelta(days=shift_ns // _DAY_NS)
    return message.model_copy(update=change)


def _with_streams(message: AnyControl, sent: frozenset[str]) -> AnyControl:
    """A meeting's start that promises only the streams that are sent, spoken words' source included."""
    if not isinstance(message, MeetingStarted):
        return message
    kept = tuple(name for name in message.streams if name in sent)
    change: dict[str, Any] = {"streams": kept}
    if kept and all(name.endswith("/transcript") for name in kept):
        change["speech_source"] = "transcript"
    return message.model_copy(update=change)


def _end_after(last: StreamMessage, name: str) -> EndOfStream:
    return EndOfStream.model_validate(
        {
            "meeting_id": last.meeting_id,
            "device_id": last.device_id,
            "stream_epoch": last.stream_epoch,
            "sequence": last.sequence + 1,
            "clock_kind": last.clock_kind,
            "timestamp_ns": last.timestamp_ns + last.duration_ns,
            "modality": name.rpartition("/")[2],
        }
    )


def _headers(kind: str, event_id: str) -> Headers:
    now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
    return cloud_event(kind, event_id, "devices.publisher", now)


def _pace(speed: Speed) -> float | None:
    if speed == "max":
        return None
    pace = 1.0 if speed == "realtime" else float(speed)
    if not 0.0 < pace < float("inf"):
        raise ValueError(f"speed must be realtime, max or a positive number, got {speed}")
    return pace


__all__ = [
    "BrokerUnreachable", "PublishError", "PublishReport", "Publisher", "moved_control", "tai_now_ns",
]  # fmt: skip
