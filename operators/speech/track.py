"""One microphone on its way from frames to pieces: what is undecided, whose voice it is, where speech begins and ends."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models.voice_activity import FRAME_SAMPLES
from operators.speech.delay import Arrangement, DelayScores, clear_seat
from operators.speech.endpointing import Endpointer, EndpointSettings, Step
from operators.speech.spoken import MOST_PAUSE_FRAMES
from operators.speech.stream import Frame, SoundStream, index_of
from operators.speech.telephone import Line

_TURN_FRAMES = 10
"""Voiced frames that somebody else must have spoken before a piece is cut in two (0.3 s): shorter is an "mm-hm"."""


_DEAD_FRAMES = 313
"""Frames of others' speech (10 s) during which a microphone that gives nothing is taken for dead."""

_DEAD_RUN = 32

_LATE_FRAMES = 32
"""Frames (1 s) for which others did not wait, after which a microphone is told to be late."""

_STILL = 2
"""Steps of 16 bits within which a frame counts as no sound: a live microphone has noise, dither has one step."""


_STEPS_KEPT = 8

_STEP_NS = 8_000_000
"""What frames that follow each other are apart by where the clock was set; less moves a piece by nothing."""


@dataclass(slots=True)
class Placement:
    """Where frames from `index` on lie: raw minus timeline, and the number of the clock record that says so."""

    index: int
    offset_ns: int
    clock: int


def track_key(device: str, channel: int) -> str:
    """Name of a microphone within its meeting."""
    return f"{device}#{channel}"


class Track:
    """One stream with its undecided frames and its endpointer.

    `piece_id` is the piece that is open. With an arrangement of several microphones and seats, frames carry a score
    for each seat and a piece ends where another person goes on.
    """

    def __init__(
        self, stream: SoundStream, settings: EndpointSettings, arrangement: Arrangement | None = None
    ) -> None:
        self.stream = stream
        self.endpointer = Endpointer(settings)
        self.delays = None if arrangement is None else DelayScores(arrangement)
        self.line = Line(stream.sample_rate_hz)
        self.undecided: deque[Frame] = deque()
        self.margin_db = 0.0
        self.own = False
        self.piece_id: str | None = None
        self._recent: deque[Frame] = deque(maxlen=MOST_PAUSE_FRAMES + settings.pre_roll_frames + 1)
        self.flushed = False
        self.given_up = False
        self._placed = [Placement(0, 0, 0)]
        self._still_run = 0
        self._missed = 0
        self._late = 0

    def heard(self, frame: Frame) -> None:
        """Note whether a frame holds any sound at all."""
        still = int(frame.pcm.max()) - int(frame.pcm.min()) <= _STILL
        self._still_run = self._still_run + 1 if still else 0
        if not still and self._missed < _DEAD_FRAMES:
            self._missed = 0

    def late(self, frame: Frame, decided_ns: int) -> bool:
        """Whether this is the frame with which it is certain that the sound comes later than others wait for it."""
        if self._late >= _LATE_FRAMES or frame.at_ns >= decided_ns:
            return False
        self._late += 1
        return self._late == _LATE_FRAMES

    def others_speak(self) -> bool:
        """Somebody else speaks for another frame; True when this microphone is now held to be dead."""
        if self._still_run < _DEAD_RUN or self._missed >= _DEAD_FRAMES:
            return False
        self._missed += 1
        return self._missed == _DEAD_FRAMES

    def push(
        self, timestamp_ns: int, samples: npt.NDArray[np.int16], placed: Placement, *, clock_set: bool
    ) -> int:
        """Add a block to the stream; by how much what is not decided lies later than was thought (timeline, ns)."""
        self.given_up = self.flushed = False
        index = self.stream.next_index
        if self.stream.push(timestamp_ns, samples, clock_set=clock_set):
            self._placed = [*self._placed[-_STEPS_KEPT:], Placement(index, placed.offset_ns, placed.clock)]
            return 0
        return self.place(placed)

    def place(self, placed: Placement) -> int:
        """Take up what is now known of the clock since it was last set; by how much frames moved on the timeline."""
        last = self._placed[-1]
        by_ns = last.offset_ns - placed.offset_ns
        last.offset_ns, last.clock = placed.offset_ns, placed.clock
        return by_ns

    def timeline_ns(self, raw_ns: int) -> int:
        """Where a time of the clock as it is now lies."""
        return raw_ns - self._placed[-1].offset_ns

    def at_ns(self, frame: Frame) -> int:
        """Where a frame that has not been fed lies on the timeline."""
        return frame.start_ns - self._placement(frame.index).offset_ns

    def clock_of(self, piece_id: str) -> int | None:
        """Number of the clock record that the times of a piece refer to, None where it is another stream's."""
        index = index_of(piece_id)
        return self._placement(index).clock if self.stream.name.piece_id(index) == piece_id else None

    def before_step(self, index: int) -> bool:
        """Whether a sample came before the clock was last set."""
        return index < self._placed[-1].index

    def _placement(self, index: int) -> Placement:
        return next((p for p in reversed(self._placed) if p.index <= index), self._placed[0])

    @property
    def key(self) -> str:
        """Name within the meeting."""
        return track_key(self.stream.name.device, self.stream.name.channel)

    def feed(self, frame: Frame) -> list[Step]:
        """Let the endpointer have a decided frame."""
        start_ns = frame.start_ns
        self._on_one_clock(frame)
        self._recent.append(frame)
        self.endpointer.shared = not self.stream.speaker
        steps = self.endpointer.feed(frame)
        if frame.start_ns != start_ns and not self.endpointer.open:
            self._go_over(self.endpointer.frames, start_ns - frame.start_ns)
        if self.delays is not None and self.endpointer.open and frame.voiced and not self.endpointer.asking:
            place = self._turn()
            if place is not None:
                steps = [*steps, *self.endpointer.cut(place)]
        return steps

    def _on_one_clock(self, frame: Frame) -> None:
        """A piece goes on through a step of the clock, in times of the clock as it was where the piece began."""
        held = self.endpointer.frames
        if (
            len(self._placed) == 1
            or not held
            or frame.after_gap
            or frame.index != held[-1].index + FRAME_SAMPLES
        ):
            return
        apart_ns = frame.start_ns - held[-1].end_ns
        if abs(apart_ns) <= _STEP_NS:
            return
        if self.endpointer.open:
            frame.start_ns -= apart_ns
            return
        self._go_over(held, apart_ns)

    def _go_over(self, held: list[Frame], by_ns: int) -> None:
        """What the next piece may begin with has the times of the clock as it was set."""
        for frame in held:
            frame.start_ns += by_ns
        if held:
            self._placed[-1].index = min(self._placed[-1].index, held[0].index)

    def just_before(self, first: Frame, count: int) -> list[Frame] | None:
        """The `count` frames before one that came a moment ago, None where some are missing."""
        start = first.index - count * FRAME_SAMPLES
        found = [frame for frame in self._recent if start <= frame.index < first.index]
        return found if len(found) == count else None

    def speaker(self, frames: Sequence[Frame]) -> str | None:
        """Who speaks in these frames: by seat, by delay, or None."""
        if self.delays is None:
            return self.stream.speaker or None
        seat = clear_seat([frame.seat_scores for frame in frames if frame.voiced and frame.seat_scores])
        return None if seat is None else self.delays.arrangement.speakers[seat]

    def _turn(self) -> int | None:
        """Frame of the open piece at which another person took over, None if nobody did."""
        voiced = [(place, frame) for place, frame in enumerate(self.endpointer.frames) if frame.voiced]
        if len(voiced) < 2 * _TURN_FRAMES:
            return None
        before, now = voiced[:-_TURN_FRAMES], voiced[-_TURN_FRAMES:]
        seat = clear_seat([frame.seat_scores for _, frame in now])
        earlier = clear_seat([frame.seat_scores for _, frame in before[-4 * _TURN_FRAMES :]])
        if seat is None or earlier is None or seat == earlier:
            return None
        # The takeover lies where the scores before are best explained by one and those after by the other.
        gains = [frame.seat_scores[earlier] - frame.seat_scores[seat] for _, frame in voiced]
        best, best_sum, total = 0, float("-inf"), 0.0
        for number, gain in enumerate(gains[:-1]):
            total += gain
            if total > best_sum:
                best, best_sum = number, total
        return voiced[best + 1][0]

    def dump(self) -> dict[str, Any]:
        """State as plain values."""
        return {
            "stream": self.stream.dump(),
            "endpointer": self.endpointer.dump(),
            "undecided": [frame.dump() for frame in self.undecided],
            "margin_db": self.margin_db,
            "own": self.own,
            "piece": self.piece_id,
            "flushed": self.flushed,
            "given_up": self.given_up,
            "placed": [[p.index, p.offset_ns, p.clock] for p in self._placed],
            "recent": [frame.dump() for frame in self._recent],
            "still": [self._still_run, self._missed, self._late],
            "line": self.line.dump(),
            "delays": None if self.delays is None else _dump_delays(self.delays),
        }

    @classmethod
    def load(cls, settings: EndpointSettings, raw: dict[str, Any]) -> "Track":
        """Inverse of `dump`."""
        arrangement = None
        if raw["delays"] is not None:
            speakers, travel, before = raw["delays"]
            arrangement = Arrangement(tuple(speakers), tuple(tuple(row) for row in travel))
        track = cls(SoundStream.load(raw["stream"]), settings, arrangement)
        if track.delays is not None:
            track.delays.load(before)
        track.endpointer = Endpointer.load(settings, raw["endpointer"])
        track._recent.extend(Frame.load(frame) for frame in raw["recent"])
        track.undecided.extend(Frame.load(frame) for frame in raw["undecided"])
        track.margin_db, track.own = raw["margin_db"], raw["own"]
        track.piece_id, track.flushed, track.given_up = raw["piece"], raw["flushed"], raw["given_up"]
        track._placed = [Placement(*part) for part in raw["placed"]]
        track._still_run, track._missed, track._late = raw["still"]
        track.line.load(raw["line"])
        return track


def _dump_delays(delays: DelayScores) -> list[Any]:
    arrangement = delays.arrangement
    return [list(arrangement.speakers), [list(row) for row in arrangement.travel_s], delays.dump()]
