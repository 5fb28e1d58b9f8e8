"""Speech of one meeting: sound blocks in, recognition requests and decided pieces out.

No threads, no clocks, no Kafka. The caller pushes blocks, calls `advance`, hands the requests to a pool of its own and
brings the answers back by `result`, in any order and whenever they are there. What is decided depends on the sound
and on what was heard in it, never on when an answer came.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.speech.echo import is_echo
from operators.speech.endpointing import (
    Closed,
    Dropped,
    Endpointer,
    EndpointSettings,
    Grew,
    Opened,
    Proposed,
    Resumed,
    Step,
)
from operators.speech.events import (
    Kind,
    PieceClosed,
    PieceText,
    PieceWithdrawn,
    RecognitionRequest,
    SpeechEvent,
    SpeechResumed,
)
from operators.speech.piece import Piece, echo_margin_db, mean_level_db, mean_margin_db, range_end_ns, sound
from operators.speech.seats import Level, Seats, SeatSettings
from operators.speech.stream import FRAME_NS, Frame, SoundStream, StreamName

_PRIORITY: dict[Kind, int] = {"final": 0, "speculative": 1, "partial": 2}

STATE_FORMAT = 1


@dataclass(frozen=True)
class SpeechSettings:
    """How speech is cut and whose it is.

    `wait_for_others_ns`: a frame waits until the other microphones' sound of the same time is there, but not longer
    than this much of its own sound. A microphone whose sound is older than `live_within_ns` is not waited for.
    `echo_memory_ns`: how long closed pieces are compared with later ones.
    """

    endpoint: EndpointSettings = field(default_factory=EndpointSettings)
    seats: SeatSettings = field(default_factory=SeatSettings)
    wait_for_others_ns: int = 60_000_000
    live_within_ns: int = 500_000_000
    echo_memory_ns: int = 20_000_000_000
    partials: bool = True

    def __post_init__(self) -> None:
        if self.live_within_ns < self.wait_for_others_ns:
            raise ValueError(
                "live_within_ns below wait_for_others_ns: no microphone would ever be waited for"
            )


class _Microphone:
    """One stream with its undecided frames and its endpointer."""

    def __init__(self, stream: SoundStream, endpointer: Endpointer) -> None:
        self.stream = stream
        self.endpointer = endpointer
        self.undecided: deque[Frame] = deque()
        self.margin_db = 0.0
        self.own = False
        self.piece: Piece | None = None
        self.flushed = False


class MeetingSpeech:
    """All microphones of one meeting."""

    def __init__(self, settings: SpeechSettings, voice_activity: VoiceActivity) -> None:
        """`voice_activity` may be shared by all meetings of a thread."""
        self.settings = settings
        self._voice = voice_activity
        self._microphones: dict[str, _Microphone] = {}
        self._seats = Seats(settings.seats)
        self._offsets_ns: dict[str, int] = {}
        self._hotwords: tuple[str, ...] = ()
        self._pieces: dict[str, Piece] = {}
        self._events: list[SpeechEvent] = []

    # --- what the caller tells

    def open_stream(
        self, device: str, channel: int, speaker: str | None, sample_rate_hz: int, stream_epoch: int
    ) -> None:
        """Announce a channel of a device, before its first block. A new epoch closes what the old one left open.

        Raises:
            UnsupportedRate: the rate cannot be converted.
        """
        key = _key(device, channel)
        before = self._microphones.get(key)
        if before is not None:
            same = before.stream.name.stream_epoch == stream_epoch
            if same and before.stream.sample_rate_hz == sample_rate_hz:
                before.stream.speaker = speaker
                return
            self._finish_stream(before)
        stream = SoundStream(StreamName(device, channel, stream_epoch), speaker, sample_rate_hz)
        self._microphones[key] = _Microphone(stream, Endpointer(self.settings.endpoint))

    def push(self, device: str, stream_epoch: int, timestamp_ns: int, samples: npt.NDArray[np.int16]) -> None:
        """Add a block of all channels, int16 shape (n, channels), captured from `timestamp_ns` (raw) on.

        Raises:
            KeyError: no channel of this device and epoch is open.
        """
        known = False
        for microphone in self._of(device):
            if microphone.stream.name.stream_epoch != stream_epoch:
                continue
            known = True
            channel = microphone.stream.name.channel
            if channel < samples.shape[1]:
                microphone.stream.push(timestamp_ns, np.ascontiguousarray(samples[:, channel]))
        if not known:
            raise KeyError(f"no open stream of device {device!r} with epoch {stream_epoch}")

    def end_of_stream(self, device: str) -> None:
        """No more blocks come from this device: what is open is closed by the next `advance`."""
        for microphone in self._of(device):
            microphone.stream.end()

    def set_clock_offset(self, device: str, offset_ns: int) -> None:
        """Raw time minus timeline time of a device; used only to lay microphones side by side."""
        self._offsets_ns[device] = offset_ns

    def set_hotwords(self, hotwords: tuple[str, ...]) -> None:
        """Names and terms for requests from now on."""
        self._hotwords = hotwords

    def result(self, piece_id: str, version: int, recognition: Recognition) -> None:
        """The answer to a request. Unknown and superseded ones are ignored."""
        piece = self._pieces.get(piece_id)
        if piece is None or piece.done:
            return
        if version == piece.settled:
            if piece.recognition is None:
                piece.recognition = recognition
                self._settle(piece)
        elif not piece.closed and version > max(piece.shown, piece.settled):
            self._show(piece, version, "partial", recognition)

    def failed(self, piece_id: str, version: int) -> None:
        """A request could not be answered: the piece goes without text, if it is the decisive one."""
        self.result(piece_id, version, Recognition(text="", suppressed="recognition failed"))

    # --- what the caller gets

    def advance(self) -> list[SpeechEvent]:
        """Work through the sound that is there and return what follows, in order."""
        for microphone in self._microphones.values():
            self._hear(microphone)
        while self._decide_next():
            pass
        for microphone in self._microphones.values():
            if microphone.stream.ended and not microphone.undecided and not microphone.flushed:
                microphone.flushed = True
                self._seats.forget(_key_of(microphone))
                self._follow(microphone, microphone.endpointer.flush())
        self._forget_old()
        events, self._events = self._events, []
        return events

    def mark_ns(self, device: str) -> int:
        """Raw time before which no further piece of this device starts.

        Raises:
            KeyError: unknown device, or nothing has come from it.
        """
        marks = [mark for microphone in self._of(device) if (mark := self._mark_of(microphone)) is not None]
        if not marks:
            raise KeyError(f"no sound of device {device!r} yet")
        return min(marks)

    def _mark_of(self, microphone: _Microphone) -> int | None:
        newest = microphone.stream.next_frame_ns
        if newest is None:
            return None
        held = [
            piece.samples_start_ns
            for piece in self._pieces.values()
            if piece.stream == _key_of(microphone) and not piece.done
        ]
        frames = microphone.endpointer.frames
        if frames:
            held.append(frames[0].start_ns)
        elif microphone.undecided:
            held.append(microphone.undecided[0].start_ns)
        return min([newest, *held])

    # --- frames

    def _of(self, device: str) -> list[_Microphone]:
        return [m for m in self._microphones.values() if m.stream.name.device == device]

    def _corrected(self, microphone: _Microphone, raw_ns: int) -> int:
        return raw_ns - self._offsets_ns.get(microphone.stream.name.device, 0)

    def _hear(self, microphone: _Microphone) -> None:
        """Voice activity and level of the frames that came."""
        waiting = microphone.stream.waiting
        if not waiting:
            return
        frames = list(waiting)
        waiting.clear()
        samples = np.stack([frame.pcm for frame in frames]).astype(np.float32) / 32768.0
        probabilities = self._voice.probabilities(microphone.stream.voice, samples)
        # Differencing keeps rumble and mains hum from passing for loudness.
        edges = samples[:, 1:] - 0.9 * samples[:, :-1]
        levels = 10.0 * np.log10(np.mean(np.square(edges), axis=1) + 1e-12)
        key = _key_of(microphone)
        for frame, probability, level_db in zip(frames, probabilities, levels, strict=True):
            frame.probability, frame.level_db = float(probability), float(level_db)
            level = Level(self._corrected(microphone, frame.start_ns), frame.level_db, frame.probability)
            self._seats.add(key, level)
            microphone.undecided.append(frame)

    def _decide_next(self) -> bool:
        """Decide the earliest frame that can be decided; False if there is none."""
        heads = sorted(
            (self._corrected(microphone, microphone.undecided[0].start_ns), key)
            for key, microphone in self._microphones.items()
            if microphone.undecided
        )
        for start_ns, key in heads:
            if self._ready(self._microphones[key], start_ns):
                self._decide(self._microphones[key])
                return True
        return False

    def _ready(self, microphone: _Microphone, start_ns: int) -> bool:
        if microphone.stream.ended:
            return True
        end_ns = start_ns + FRAME_NS
        newest = microphone.stream.newest_ns
        assert newest is not None
        if self._corrected(microphone, newest) >= end_ns + self.settings.wait_for_others_ns:
            return True
        for other in self._microphones.values():
            if other is microphone or other.stream.ended or other.stream.newest_ns is None:
                continue
            # Only whole frames have a level.
            heard_ns = self._corrected(other, other.stream.next_frame_ns or 0)
            if start_ns - self.settings.live_within_ns < heard_ns < end_ns:
                return False
        return True

    def _decide(self, microphone: _Microphone) -> None:
        """Say whose voice the next frame is and let the endpointer have it."""
        frame = microphone.undecided.popleft()
        seats = self.settings.seats
        key = _key_of(microphone)
        level = Level(self._corrected(microphone, frame.start_ns), frame.level_db, frame.probability)
        margin = self._seats.margin_db(key, level)
        if microphone.stream.speaker is None and self._seat_speaks(level.start_ns):
            margin = -40.0
        if margin is not None:
            limited = min(seats.margin_limit_db, max(-seats.margin_limit_db, margin))
            microphone.margin_db += seats.follow * (limited - microphone.margin_db)
        elif frame.probability < self.settings.endpoint.voiced_below:
            # Silence: whoever spoke last has no claim on what comes next. Between two syllables they have.
            microphone.margin_db *= 0.7
        smooth = microphone.margin_db
        microphone.own = smooth > (seats.keep_above_db if microphone.own else seats.own_above_db)
        frame.margin_db = 40.0 if margin is None else margin
        frame.foreign = smooth < seats.foreign_below_db
        frame.voiced = microphone.endpointer.voiced(frame.probability, microphone.own)
        self._follow(microphone, microphone.endpointer.feed(frame))

    def _seat_speaks(self, start_ns: int) -> bool:
        """Whether somebody with a microphone of their own speaks: a room microphone then has nothing to add."""
        for key, microphone in self._microphones.items():
            history = self._seats.microphones.get(key)
            if microphone.stream.speaker is None or history is None:
                continue
            found = history.loudest(start_ns - FRAME_NS, start_ns + FRAME_NS)
            if found is not None and found.probability >= self.settings.endpoint.voiced_above:
                return True
        return False

    def _finish_stream(self, microphone: _Microphone) -> None:
        """A publisher came back with a new epoch: decide what its old stream left."""
        microphone.stream.end()
        self._hear(microphone)
        while microphone.undecided:
            self._decide(microphone)
        self._follow(microphone, microphone.endpointer.flush())
        self._seats.forget(_key_of(microphone))

    # --- pieces

    def _follow(self, microphone: _Microphone, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case Opened(frames):
                    self._opened(microphone, frames)
                case Grew(frames):
                    if self.settings.partials:
                        self._request(self._piece_of(microphone), frames, "partial")
                case Proposed(frames):
                    self._request(self._piece_of(microphone), frames, "speculative")
                case Resumed():
                    self._resumed(self._piece_of(microphone))
                case Closed():
                    self._closed(microphone, step)
                case Dropped():
                    self._drop(self._piece_of(microphone), "too short")
                    microphone.piece = None

    def _piece_of(self, microphone: _Microphone) -> Piece:
        assert microphone.piece is not None, "the endpointer opens a piece before anything else"
        return microphone.piece

    def _opened(self, microphone: _Microphone, frames: list[Frame]) -> None:
        name = microphone.stream.name
        piece = Piece(
            piece_id=name.piece_id(frames[0].index),
            stream=_key_of(microphone),
            device=name.device,
            speaker=microphone.stream.speaker,
            start_index=frames[0].index,
            samples_start_ns=frames[0].start_ns,
            start_ns=frames[-1].start_ns,
            end_ns=frames[-1].end_ns,
        )
        microphone.piece = piece
        self._pieces[piece.piece_id] = piece

    def _request(self, piece: Piece, frames: list[Frame], kind: Kind) -> None:
        piece.version += 1
        pcm = sound(frames)
        if kind != "partial":
            piece.settled, piece.settled_end = piece.version, frames[-1].index
            piece.recognition = None
            piece.hotwords = self._hotwords
            piece.pcm = pcm.tobytes()
        voiced = [frame for frame in frames if frame.voiced]
        piece.end_ns = voiced[-1].end_ns if voiced else frames[-1].end_ns
        piece.margin_db, piece.level_db = mean_margin_db(frames), mean_level_db(frames)
        self._events.append(
            RecognitionRequest(
                piece_id=piece.piece_id,
                version=piece.version,
                kind=kind,
                device=piece.device,
                samples=pcm.astype(np.float32) / 32768.0,
                start_ns=piece.samples_start_ns,
                end_ns=range_end_ns(frames),
                priority=_PRIORITY[kind],
                hotwords=self._hotwords,
            )
        )

    def _resumed(self, piece: Piece) -> None:
        if piece.settled:
            piece.settled, piece.recognition, piece.pcm = 0, None, b""
            self._events.append(SpeechResumed(piece.piece_id, piece.version, piece.device))

    def _closed(self, microphone: _Microphone, step: Closed) -> None:
        piece = self._piece_of(microphone)
        microphone.piece = None
        if not piece.settled or piece.settled_end != step.frames[-1].index:
            self._request(piece, step.frames, "final")
        piece.closed = True
        piece.start_ns, piece.end_ns = step.first_voiced.start_ns, step.last_voiced.end_ns
        piece.gaps = [
            (start, end)
            for start, end in microphone.stream.gaps
            if start < piece.end_ns and end > piece.samples_start_ns
        ]
        self._settle(piece)

    def _settle(self, piece: Piece) -> None:
        """Show or close a piece whose decisive answer is there."""
        found = piece.recognition
        if found is None:
            return
        if not found.text:
            if piece.closed:
                self._drop(piece, found.suppressed or "no speech")
            return
        if self._withdraw_echo(piece, found.text):
            return
        if not piece.closed:
            self._show(piece, piece.settled, "tentative", found)
            return
        piece.done, piece.shown, piece.pcm = True, piece.settled, b""
        self._events.append(
            PieceClosed(
                piece_id=piece.piece_id,
                version=piece.settled,
                device=piece.device,
                speaker=piece.speaker,
                start_ns=piece.start_ns,
                end_ns=piece.end_ns,
                samples_start_ns=piece.samples_start_ns,
                text=found.text,
                words=found.words,
                average_log_probability=found.average_log_probability,
                boundary_ms=found.boundary_ms,
                gaps=tuple(piece.gaps),
            )
        )

    def _show(self, piece: Piece, version: int, state: str, found: Recognition) -> None:
        if not found.text:
            return
        piece.shown = version
        self._events.append(
            PieceText(
                piece_id=piece.piece_id,
                version=version,
                state="tentative" if state == "tentative" else "partial",
                device=piece.device,
                speaker=piece.speaker,
                start_ns=piece.start_ns,
                end_ns=piece.end_ns,
                samples_start_ns=piece.samples_start_ns,
                text=found.text,
                words=found.words,
                average_log_probability=found.average_log_probability,
                boundary_ms=found.boundary_ms,
            )
        )

    def _drop(self, piece: Piece, reason: str) -> None:
        """End a piece without text; said aloud only where something of it had been shown."""
        piece.done, piece.pcm, piece.recognition = True, b"", None
        if piece.shown:
            self._events.append(PieceWithdrawn(piece.piece_id, piece.version, piece.device, reason))

    def _withdraw_echo(self, piece: Piece, text: str) -> bool:
        """Compare with what other microphones said at the same time; True if this piece is the echo."""
        for other in list(self._pieces.values()):
            heard = other.recognition
            if other.stream == piece.stream or heard is None or not heard.text:
                continue
            spans = (self._span(piece), self._span(other))
            margin_db = echo_margin_db(piece, other)
            if margin_db is not None:
                if is_echo(text, heard.text, *spans, margin_db):
                    self._drop(piece, f"cross-talk of {other.piece_id}")
                    return True
                continue
            margin_db = echo_margin_db(other, piece)
            if margin_db is not None and is_echo(heard.text, text, spans[1], spans[0], margin_db):
                self._drop(other, f"cross-talk of {piece.piece_id}")
        return False

    def _span(self, piece: Piece) -> tuple[int, int]:
        offset = self._offsets_ns.get(piece.device, 0)
        return piece.start_ns - offset, piece.end_ns - offset

    def _forget_old(self) -> None:
        """Let go of pieces that nothing can refer to any more."""
        newest = [
            self._corrected(microphone, microphone.stream.newest_ns)
            for microphone in self._microphones.values()
            if microphone.stream.newest_ns is not None
        ]
        if not newest:
            return
        horizon = max(newest) - self.settings.echo_memory_ns
        for piece in list(self._pieces.values()):
            if piece.done and self._span(piece)[1] < horizon:
                del self._pieces[piece.piece_id]

    # --- state

    def state(self) -> dict[str, Any]:
        """All that is needed to go on exactly, as plain values (dict, list, str, int, float, bytes, None)."""
        return {
            "format": STATE_FORMAT,
            "microphones": [
                {
                    "stream": microphone.stream.dump(),
                    "endpointer": microphone.endpointer.dump(),
                    "undecided": [frame.dump() for frame in microphone.undecided],
                    "margin_db": microphone.margin_db,
                    "own": microphone.own,
                    "piece": microphone.piece.piece_id if microphone.piece else None,
                    "flushed": microphone.flushed,
                }
                for microphone in self._microphones.values()
            ],
            "seats": self._seats.dump(),
            "offsets_ns": dict(self._offsets_ns),
            "hotwords": list(self._hotwords),
            "pieces": [piece.dump() for piece in self._pieces.values()],
        }

    @classmethod
    def from_state(
        cls, settings: SpeechSettings, voice_activity: VoiceActivity, raw: dict[str, Any]
    ) -> "MeetingSpeech":
        """Take up a `state`. The next `advance` repeats requests whose answers had not come (partials aside).

        Raises:
            ValueError: written by another format.
        """
        if raw.get("format") != STATE_FORMAT:
            raise ValueError(f"speech state of format {raw.get('format')}, expected {STATE_FORMAT}")
        meeting = cls(settings, voice_activity)
        meeting._seats.load(raw["seats"])
        meeting._offsets_ns = dict(raw["offsets_ns"])
        meeting._hotwords = tuple(raw["hotwords"])
        pieces = [Piece.load(part) for part in raw["pieces"]]
        meeting._pieces = {piece.piece_id: piece for piece in pieces}
        for part in raw["microphones"]:
            microphone = _Microphone(
                SoundStream.load(part["stream"]), Endpointer.load(settings.endpoint, part["endpointer"])
            )
            microphone.undecided.extend(Frame.load(frame) for frame in part["undecided"])
            microphone.margin_db, microphone.own = part["margin_db"], part["own"]
            microphone.piece = meeting._pieces[part["piece"]] if part["piece"] else None
            microphone.flushed = part["flushed"]
            meeting._microphones[_key_of(microphone)] = microphone
        for piece in pieces:
            meeting._repeat(piece)
        return meeting

    def _repeat(self, piece: Piece) -> None:
        """Ask again for a decisive answer that was outstanding."""
        if piece.done or not piece.settled or piece.recognition is not None:
            return
        samples = np.frombuffer(piece.pcm, dtype=np.int16).astype(np.float32) / 32768.0
        kind: Kind = "final" if piece.closed else "speculative"
        self._events.append(
            RecognitionRequest(
                piece_id=piece.piece_id,
                version=piece.settled,
                kind=kind,
                device=piece.device,
                samples=samples,
                start_ns=piece.samples_start_ns,
                end_ns=piece.samples_start_ns + len(samples) * 62_500,
                priority=_PRIORITY[kind],
                hotwords=piece.hotwords,
            )
        )


def _key(device: str, channel: int) -> str:
    return f"{device}#{channel}"


def _key_of(microphone: _Microphone) -> str:
    return _key(microphone.stream.name.device, microphone.stream.name.channel)
