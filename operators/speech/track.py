"""One microphone on its way from frames to pieces: what is undecided, whose voice it is, where speech begins and ends."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from models.voice_activity import FRAME_SAMPLES
from operators.speech.delay import Arrangement, DelayScores, clear_seat
from operators.speech.endpointing import Endpointer, EndpointSettings, Step
from operators.speech.spoken import MOST_PAUSE_FRAMES
from operators.speech.stream import Frame, SoundStream
from operators.speech.telephone import Line

_TURN_FRAMES = 10
"""Voiced frames that somebody else must have spoken before a piece is cut in two (0.3 s): shorter is an "mm-hm"."""


_DEAD_FRAMES = 313
"""Frames of others' speech (10 s) during which a microphone that gives nothing is taken for dead."""

_DEAD_RUN = 32

_STILL = 2
"""Steps of 16 bits within which a frame counts as no sound: a live microphone has noise, dither has one step."""


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
        self._still_run = 0
        self._missed = 0

    def heard(self, frame: Frame) -> None:
        """Note whether a frame holds any sound at all."""
        still = int(frame.pcm.max()) - int(frame.pcm.min()) <= _STILL
        self._still_run = self._still_run + 1 if still else 0
        if not still and self._missed < _DEAD_FRAMES:
            self._missed = 0

    def others_speak(self) -> bool:
        """Somebody else speaks for another frame; True when this microphone is now held to be dead."""
        if self._still_run < _DEAD_RUN or self._missed >= _DEAD_FRAMES:
            return False
        self._missed += 1
        return self._missed == _DEAD_FRAMES

    @property
    def key(self) -> str:
        """Name within the meeting."""
        return track_key(self.stream.name.device, self.stream.name.channel)

    def feed(self, frame: Frame) -> list[Step]:
        """Let the endpointer have a decided frame."""
        self._recent.append(frame)
        self.endpointer.shared = not self.stream.speaker
        steps = self.endpointer.feed(frame)
        if self.delays is not None and self.endpointer.open and frame.voiced and not self.endpointer.asking:
            place = self._turn()
            if place is not None:
                steps = [*steps, *self.endpointer.cut(place)]
        return steps

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
            "recent": [frame.dump() for frame in self._recent],
            "still": [self._still_run, self._missed],
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
        track.piece_id, track.flushed = raw["piece"], raw["flushed"]
        track._still_run, track._missed = raw["still"]
        track.line.load(raw["line"])
        return track


def _dump_delays(delays: DelayScores) -> list[Any]:
    arrangement = delays.arrangement
    return [list(arrangement.speakers), [list(row) for row in arrangement.travel_s], delays.dump()]
