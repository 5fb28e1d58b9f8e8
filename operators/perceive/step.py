"""Perceive: the step that turns media into the log, and the slow workers that it uses.

The step decides and writes; recognition, decoding and reading run in bounded pools and are collected on
a later activation, in order per stream. Nothing here blocks the dataflow's thread.
"""

import base64
import math
import pickle
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Protocol

import cv2
import numpy as np
from bytewax.operators import KeyedStream

from contracts.leap_seconds import utc_from_tai_ns
from contracts.messages import ALL_MEETINGS, Control, DeadLetter, MeetingPurged, PartialText
from contracts.packet import Modality, Packet, encode
from contracts.timeline import AnyRecord, ClockRecord, ControlRecord, EndedRecord, NoticeRecord
from contracts.topics import AUDIO, DEADLETTER, PARTIALS, TIMELINE, VIDEO
from models.slide_reader import SlideReader, SlideReaderSettings, TextLine, run_niced
from models.speech_recogniser import Recognition, SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators import telemetry
from operators.broker.journal import Journal
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp
from operators.clock import ClockOutput, Timed
from operators.clock.lights import Light, Lights
from operators.ingest import Arrival, in_words, refused
from operators.log import say
from operators.media.client import (
    DecodedPictures,
    DecodedSound,
    DecodeFailed,
    DecoderPool,
    DecodeSettings,
    FullFrame,
)
from operators.perceive.meeting import MeetingPerception
from operators.perceive.overdue import OverdueSettings
from operators.perceive.pictures import DecodePicture, FetchFrame, ReadSlide
from operators.perceive.shedding import Load, SheddingSettings
from operators.perceive.types import Ask, DecodeSound, Emission, PerceiveSettings, Undecodable
from operators.shard import by_shard
from operators.speech.events import RecognitionRequest
from operators.speech.pool import PoolFull, PoolSettings, RecognitionPool
from operators.store import StepStore, Stores

_PREFIX: Final = b"meeting/"
_OFFSET: Final = b"log-offset"
_GLOBAL: Final = b"global"
_COLLECT_EVERY_S: Final = 0.002
_LOOK_EVERY_S: Final = 1.0
_IDLE_STEP_S: Final = 1.0
"""Most that one report of having caught up adds to a silence; they come four times a second."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """Answer to a recognition request."""

    request: RecognitionRequest
    found: Recognition | Exception


@dataclass(frozen=True, slots=True)
class SlideRead:
    """Answer to a reading request; None where the picture could not be read."""

    ask: ReadSlide
    lines: tuple[TextLine, ...] | None


Answer = Recognised | SlideRead | DecodedSound | DecodedPictures | FullFrame | DecodeFailed
Owner = tuple[int, str]
"""Shard and meeting."""


class Workers(Protocol):
    """Slow work, asked for and collected later."""

    def ask(self, owner: Owner, ask: Ask) -> None:
        """Queue a piece of work; never blocks."""

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        """Answers for a shard's meetings that have come since the last call."""

    def outstanding(self, shard: int) -> int:
        """Pieces of work of this shard whose answers have not been collected."""

    def close(self) -> None:
        """End everything that was started."""


class MediaWorkers:
    """The pools of one process, shared by all its shards and worker threads.

    `behind_s`: speech that has waited for so long is heard without second looks.
    """

    def __init__(
        self,
        recogniser: Callable[[], SpeechRecogniser],
        *,
        recognition_workers: int = 2,
        behind_s: float = math.inf,
        decode: DecodeSettings | None = None,
        reader: SlideReaderSettings | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._recogniser = recogniser
        self._pool_settings = PoolSettings(workers=recognition_workers, behind_s=behind_s)
        self._recognition: RecognitionPool | None = None
        self._decoders = DecoderPool(decode or DecodeSettings())
        reader_settings = reader or SlideReaderSettings()
        self._reader_settings = reader_settings
        self._reader: SlideReader | None = None
        # Reading a slide takes a second of one core; it must not take that from speech.
        self._readers = ThreadPoolExecutor(
            1, "slide-reader", initializer=run_niced, initargs=(reader_settings,)
        )
        self._reading: list[tuple[Owner, ReadSlide, Future[tuple[TextLine, ...]]]] = []
        self._owner_of_request: dict[int, Owner] = {}
        self._answers: dict[int, list[tuple[str, Ask, Answer]]] = {}
        self._outstanding: dict[int, int] = {}

    def warm_up(self) -> None:
        """Start what takes time and wait for it, so that the first packet does not."""
        reader = self._readers.submit(self._reader_of_thread)
        self._pool()
        self._decoders.warm_up()
        reader.result()

    def ask(self, owner: Owner, ask: Ask) -> None:
        shard, meeting = owner
        with self._lock:
            self._outstanding[shard] = self._outstanding.get(shard, 0) + 1
            if isinstance(ask, RecognitionRequest):
                try:
                    self._pool().submit(ask, owner)
                except PoolFull as full:
                    self._answer(owner, ask, Recognised(ask, full))
                else:
                    self._owner_of_request[id(ask)] = owner
            elif isinstance(ask, DecodePicture | DecodeSound):
                packet = ask.packet
                self._decoders.submit(
                    f"{meeting}/{ask.stream}", packet.codec, packet.payload, packet.key_frame,
                    packet.timestamp_ns, (owner, ask), role=ask.role if isinstance(ask, DecodePicture) else "slides",
                    channels=packet.channels,
                )  # fmt: skip
            elif isinstance(ask, FetchFrame):
                self._decoders.request_frame(f"{meeting}/{ask.stream}", ask.frame_ns, (owner, ask))
            else:
                self._reading.append((owner, ask, self._readers.submit(self._read, ask.jpeg)))

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        return [(meeting, answer) for meeting, _, answer in self.take(shard)]

    def take(self, shard: int) -> list[tuple[str, Ask, Answer]]:
        """Like ``collect``, with the ask that each answer is for."""
        with self._lock:
            self._sort_answers()
            mine = self._answers.pop(shard, [])
            self._outstanding[shard] = self._outstanding.get(shard, 0) - len(mine)
            return mine

    def outstanding(self, shard: int) -> int:
        return self._outstanding.get(shard, 0)

    def waited_s(self) -> float:
        """How long the piece of speech has waited that waits longest for recognition."""
        return 0.0 if self._recognition is None else self._recognition.waited_s()

    def close(self) -> None:
        """End all pools and child processes."""
        if self._recognition is not None:
            self._recognition.close()
        self._decoders.close()
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _pool(self) -> RecognitionPool:
        """The pool of recognition, begun when it is first needed: a transcript needs no weights."""
        if self._recognition is None:
            self._recognition = RecognitionPool(self._recogniser, self._pool_settings)
        return self._recognition

    def _sort_answers(self) -> None:
        for request, found in self._recognition.collect() if self._recognition is not None else ():
            self._answer(self._owner_of_request.pop(id(request)), request, Recognised(request, found))
        for result in self._decoders.collect():
            owner, ask = result.meta
            self._answer(owner, ask, replace(result, stream=ask.stream, meta=None))
        done = [entry for entry in self._reading if entry[2].done()]
        self._reading = [entry for entry in self._reading if not entry[2].done()]
        for owner, read, future in done:
            self._answer(
                owner, read, SlideRead(read, None if future.exception() is not None else future.result())
            )

    def _answer(self, owner: Owner, ask: Ask, answer: Answer) -> None:
        self._answers.setdefault(owner[0], []).append((owner[1], ask, answer))

    def _read(self, jpeg: bytes) -> tuple[TextLine, ...]:
        reader = self._reader_of_thread()
        picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        if picture is None:
            raise ValueError("the frame cannot be decoded")
        return reader.read(np.asarray(picture, np.uint8))

    def _reader_of_thread(self) -> SlideReader:
        if self._reader is None:
            self._reader = self._reader_settings.build()
            self._reader.warm_up()
        return self._reader


class Perceive:
    """The step of one shard: timed arrivals in, log records and partial texts out."""

    def __init__(
        self, shard: int, settings: PerceiveSettings, voice: VoiceActivity, workers: Workers, journal: Journal,
        *, live: bool = True, clock_s: Callable[[], float] = time.monotonic, run: Callable[[], int] = time.time_ns,
        lights: Lights | None = None, load: Load | None = None, wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:  # fmt: skip
        """``load`` is shared by all shards of a process; without one, nothing is left out. ``wall_ns``: UTC."""
        self._shard = shard
        self._load = load or Load(SheddingSettings())
        self._wall_ns = wall_ns
        self._settings = settings
        self._voice = voice
        self._workers = workers
        self._journal = journal
        self._live = live
        self._lights = lights
        self._clock_s = clock_s
        self._run = run()
        self._meetings: dict[str, MeetingPerception] = {}
        self._decided: dict[str, list[AnyRecord]] = {}
        self._global: dict[tuple[str, str], Timed] = {}
        """What holds for all meetings, the newest of each subject: also for those that open later."""
        self._touched: set[str] = set()
        self._traces: dict[str, str] = {}
        self._caught_up_at_s: float | None = None
        self._idle_s = 0.0
        """A clock that stands still while this flow is behind: only then is silence the device's."""
        self._resumed: list[tuple[str, list[Emission]]] = []
        self._overdue = OverdueSettings().build()
        self._looked_s = 0.0
        self._told_left_out = 0

    def open(self, store: StepStore) -> None:
        saved = store.get(_OFFSET)
        from_offset = 0 if saved is None else int.from_bytes(saved, "big")
        for record in self._journal.fence(self._shard, self._run, from_offset):
            self._decided.setdefault(record.meeting_id, []).append(record)
        known = store.get(_GLOBAL)
        if known is not None:
            self._global = pickle.loads(known)
        for _, value in store.scan(_PREFIX):
            meeting_id, raw = pickle.loads(value)
            meeting = MeetingPerception.from_state(
                self._settings, meeting_id, self._voice, raw, live=self._live
            )
            meeting.decide(self._decided.pop(meeting_id, ()))
            self._meetings[meeting_id] = meeting
            self._resumed.append((meeting_id, meeting.resume()))

    def save(self, store: StepStore) -> None:
        store.put(_OFFSET, self._journal.end_offset(self._shard).to_bytes(8, "big"))
        for meeting_id in sorted(self._touched):
            meeting = self._meetings.get(meeting_id)
            if meeting is None:
                store.forget(_PREFIX + meeting_id.encode())
            else:
                store.put(_PREFIX + meeting_id.encode(), pickle.dumps((meeting_id, meeting.state())))
        self._touched.clear()
        store.put(_GLOBAL, pickle.dumps(self._global))

    def on_batch(self, values: list[ClockOutput | Outgoing]) -> list[Outgoing]:
        out = self._take_up()
        for value in values:
            if isinstance(value, Outgoing):
                out.append(value)
            elif isinstance(value, CaughtUp):
                self._load.caught_up(self._shard)
                out += self._check_idle()
            elif isinstance(value, ClockRecord | NoticeRecord):
                out += self._handle(value.meeting_id, self._meeting(value.meeting_id).place(value))
            else:
                out += self._arrival(value)
        out += self._collect()
        if self._live:
            self._load.look()
        self._tell_overdue()
        return out

    def on_timer(self) -> list[Outgoing]:
        out = self._take_up() + self._collect()
        self._tell_overdue()
        return out

    def next_timer_s(self) -> float | None:
        if self._resumed or self._workers.outstanding(self._shard):
            return _COLLECT_EVERY_S
        return None

    def finish_input(self) -> list[Outgoing]:
        """No more input will come; call again while ``busy`` (files only)."""
        out = self._collect()
        for meeting_id, meeting in self._meetings.items():
            out += self._handle(meeting_id, meeting.finish_input())
        return out

    @property
    def busy(self) -> bool:
        """Whether a meeting has not ended."""
        return any(not meeting.ended for meeting in self._meetings.values())

    @property
    def held_up(self) -> bool:
        """Whether sound of a meeting waits for an answer."""
        return any(meeting.held_up for meeting in self._meetings.values())

    def _check_idle(self) -> list[Outgoing]:
        """Everything that had come was handled: time that passes from here on is silence."""
        now_s, before_s = self._clock_s(), self._caught_up_at_s
        self._caught_up_at_s = now_s
        if before_s is not None:
            self._idle_s += min(now_s - before_s, _IDLE_STEP_S)
        return [
            o
            for meeting_id, meeting in self._meetings.items()
            if not meeting.ended
            for o in self._handle(meeting_id, meeting.check_idle(self._idle_s))
        ]

    def _tell_overdue(self) -> None:
        """Tell an operator what meetings wait for that should have ended; looked at once a second."""
        now_s = self._clock_s()
        if not self._live or now_s - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = now_s
        waiting = [name for name, m in self._meetings.items() if m.end is not None and not m.ended]
        for name, waited_s in self._overdue.look(now_s, waiting).items():
            reasons = "; ".join(self._meetings[name].waits_for())
            say(
                f"flows.perceive: meeting {name} was told to be over {waited_s:.0f} s ago and has not ended; "
                f"it waits for {reasons}",
                "meeting_overdue",
                meeting=name, seconds=round(waited_s),
            )  # fmt: skip
        probe = telemetry.probe()
        if probe is not None:
            probe.meetings_overdue(self._shard, len(self._overdue.overdue(now_s)))
            left_out = sum(meeting.left_out.dropped for meeting in self._meetings.values())
            probe.meetings_shed(
                self._shard, len(self._load.out & self._meetings.keys()), left_out - self._told_left_out
            )
            self._told_left_out = left_out

    def _arrival(self, timed: Timed) -> list[Outgoing]:
        arrival = timed.arrival
        if arrival.meeting_id == ALL_MEETINGS:
            body = arrival.body
            if isinstance(body, Control):
                self._global[body.type, body.subject] = timed
            targets = [m for m in self._meetings.values() if not m.ended]
            return [o for m in targets for o in self._handle(m.meeting_id, m.feed(timed, self._idle_s))]
        if isinstance(arrival.body, MeetingPurged):
            return self._purge(arrival.body, arrival.source)
        if arrival.traceparent is not None:
            self._traces[arrival.meeting_id] = arrival.traceparent
        meeting = self._meeting(arrival.meeting_id)
        try:
            # An earlier run may have handled what came before this one began: that is decided, and handled again.
            fresh = arrival.arrival_ns > self._run
            shed = self._sheds(meeting, arrival) and fresh
            emissions = meeting.feed(timed, self._idle_s, shed=shed, fresh=fresh)
        except (ValueError, ArithmeticError, LookupError) as error:
            # One message of one device must not end the flow, and end it again after every restart.
            say(
                f"flows.perceive: {arrival.source} was refused: {in_words(error)[:300]}",
                "refused",
            )
            return [refused(arrival, error)]
        return self._handle(arrival.meeting_id, emissions)

    def _sheds(self, meeting: MeetingPerception, arrival: Arrival) -> bool:
        """Whether what came is to be left out, as this process does not keep up."""
        if not self._live or meeting.ended or not isinstance(arrival.body, Packet):
            return False
        name = meeting.meeting_id
        now_ns = self._wall_ns()
        # A recording that is sent faster than it was made waits on the broker and is not late for it.
        captured_ns = utc_from_tai_ns(meeting.captured_ns(arrival.body))
        age_s = (now_ns - max(arrival.arrival_ns, captured_ns)) / 1e9
        self._load.read(self._shard, name, meeting.began_ns, age_s)
        return name in self._load.out

    def _purge(self, purged: MeetingPurged, source: str) -> list[Outgoing]:
        """Forget the meeting, and tell the log so; answers that are still under way find nobody."""
        name = purged.meeting_id
        self._load.gone(name)
        for kept in (self._meetings, self._decided, self._traces):
            kept.pop(name, None)
        self._resumed = [(meeting_id, found) for meeting_id, found in self._resumed if meeting_id != name]
        return self._handle(name, [ControlRecord(meeting_id=name, control=purged, source=source)])

    def _dead_letter(self, refused: Undecodable) -> Outgoing:
        packet = refused.packet
        topic = AUDIO if packet.modality is Modality.AUDIO else VIDEO
        value = encode(packet)
        # Where it stood is known by stream, epoch and sequence; its offset is not carried through the decoders.
        detail = (
            f"{refused.reason} ({packet.stream}, epoch {packet.stream_epoch}, sequence {packet.sequence})"
        )
        letter = DeadLetter(
            reason="undecodable", detail=detail[:1000], topic=topic.name, partition=self._shard, offset=-1,
            meeting_id=packet.meeting_id, bytes_base64=base64.b64encode(value).decode("ascii"), size=len(value),
        )  # fmt: skip
        name = f"{packet.stream}/{packet.stream_epoch}/{packet.sequence}"
        return Outgoing(DEADLETTER, packet.meeting_id.encode(), letter.to_bytes(), "deadletter", name)

    def _meeting(self, meeting_id: str) -> MeetingPerception:
        meeting = self._meetings.get(meeting_id)
        if meeting is None:
            meeting = MeetingPerception(self._settings, meeting_id, self._voice, live=self._live)
            meeting.decide(self._decided.pop(meeting_id, ()))
            self._meetings[meeting_id] = meeting
            for timed in self._global.values():
                self._resumed.append((meeting_id, meeting.feed(timed, self._idle_s)))
        return meeting

    def _take_up(self) -> list[Outgoing]:
        """What resuming brought about, once, at the first activation."""
        resumed, self._resumed = self._resumed, []
        return [o for meeting_id, emissions in resumed for o in self._handle(meeting_id, emissions)]

    def _collect(self) -> list[Outgoing]:
        return [o for answer in self._workers.collect(self._shard) for o in self.answered(*answer)]

    def answered(self, meeting_id: str, answer: Answer) -> list[Outgoing]:
        """Hand an answer of the workers to its meeting."""
        meeting = self._meetings.get(meeting_id)
        if meeting is None:  # purged meanwhile
            return []
        if isinstance(answer, Recognised):
            return self._handle(meeting_id, meeting.recognised(answer.request, answer.found))
        if isinstance(answer, SlideRead):
            return self._handle(meeting_id, meeting.read(answer.ask, answer.lines))
        if self._lights is not None and isinstance(answer, DecodedPictures) and answer.light:
            device = answer.stream.rpartition("/")[0]
            self._lights.put(self._shard, Light(meeting_id, device, answer.light))
        return self._handle(meeting_id, meeting.decoded(answer))

    def _handle(self, meeting_id: str, emissions: Iterable[Emission]) -> list[Outgoing]:
        """Send asks to the workers and turn the rest into messages."""
        self._touched.add(meeting_id)
        out: list[Outgoing] = []
        key, trace = meeting_id.encode(), self._traces.get(meeting_id)
        for emission in emissions:
            if isinstance(emission, PartialText):
                name = f"{emission.piece_id}/{emission.version}"
                out.append(Outgoing(PARTIALS, key, emission.to_bytes(), "partial", name, trace))
            elif isinstance(
                emission, RecognitionRequest | DecodeSound | DecodePicture | FetchFrame | ReadSlide
            ):
                self._workers.ask((self._shard, meeting_id), emission)
            elif isinstance(emission, Undecodable):
                out.append(self._dead_letter(emission))
            elif isinstance(emission, Packet):
                value = encode(replace(emission, stream_epoch=self._run))
                out.append(Outgoing(TIMELINE, key, value, "timeline.picture_features", "", trace))
            else:
                if isinstance(emission, EndedRecord):
                    self._load.gone(meeting_id)
                record = emission.model_copy(update={"run": self._run})
                out.append(
                    Outgoing(
                        TIMELINE, key, record.to_bytes(), f"timeline.{record.type}", record.identity, trace
                    )
                )
        return out


def perceive(
    up: KeyedStream[tuple[int, ClockOutput | Outgoing]], stores: Stores, make: Callable[[int], Perceive]
) -> KeyedStream[tuple[int, Outgoing]]:
    """Read speech and slides; what comes out is the log."""
    return by_shard("perceive", up, stores, make)
