"""Where a piece of speech begins and ends, decided from two sides.

Waiting for a pause to prove itself costs half a second after every utterance. So the first silent frame already
proposes an end (`Proposed`): text made of exactly that sound can be shown at once. If speech goes on, the proposal is
taken back (`Resumed`); if the pause lasts, the piece is closed with the same range (`Closed`), and nothing is
recognised twice. Everything counts in frames of the microphone's own sound, so the same sound gives the same pieces.

A piece also ends where a sentence does, which only its text can tell: the endpointer asks (`Asked`), at the end of a
pause that alone would not end it, and takes no further frame until it is told by `go_on`. At a seat's own microphone
the pause has to be so long that the answer is mostly there by then. Where several people share a microphone they follow
each other without a pause: there it asks at the shortest, and now and then in speech without one.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from operators.speech.stream import Frame


@dataclass(frozen=True)
class EndpointSettings:
    """Counts are frames of 32 ms.

    `tail_frames` follow the last voiced frame in a piece. A pause of `hang_over_frames` ends a piece; in a long
    piece shorter pauses do (`after_frames`, `pause_frames`), and at `max_frames` it is cut at its quietest recent
    place. Partial passes come `partial_every_frames` after each other or after a proposal, and less often the longer
    a piece gets: each reads all of it, and adds little to what stands.

    A pause of `sentence_pause_frames` ends a piece of at least `sentence_after_frames` where a sentence ends before it.
    At a microphone that several people share those are `shared_sentence_pause_frames` and
    `shared_sentence_after_frames`, and a piece of `look_after_frames` is looked through for the end of a sentence, and
    again every `look_every_frames`.
    """

    voiced_above: float = 0.5
    voiced_below: float = 0.35
    pre_roll_frames: int = 7
    tail_frames: int = 1
    hang_over_frames: int = 22
    resume_frames: int = 2
    min_voiced_frames: int = 4
    shorter_pauses: tuple[tuple[int, int], ...] = ((310, 10), (400, 5))
    max_frames: int = 470
    cut_window_frames: int = 62
    first_partial_frames: int = 18
    partial_every_frames: int = 32
    partial_part: int = 4
    shared_pauses: tuple[tuple[int, int], ...] = ((94, 14), (190, 10), (310, 7))
    sentence_pause_frames: int = 8
    sentence_after_frames: int = 31
    shared_sentence_pause_frames: int = 3
    shared_sentence_after_frames: int = 14
    look_after_frames: int = 62
    look_every_frames: int = 31

    def __post_init__(self) -> None:
        if not 1 <= self.tail_frames < self.hang_over_frames:
            raise ValueError("tail_frames must be at least 1 and below hang_over_frames")
        if self.cut_window_frames >= self.max_frames:
            raise ValueError("cut_window_frames must be below max_frames, or a cut could leave nothing")

    def asks_after(self, shared: bool) -> tuple[int, int]:
        """Silent frames after which it is asked whether a sentence has ended, and the least length of the piece."""
        if shared:
            return self.shared_sentence_pause_frames, self.shared_sentence_after_frames
        return self.sentence_pause_frames, self.sentence_after_frames

    def pause_that_ends(self, frames: int, shared: bool) -> int:
        """Silent frames that end a piece of this length."""
        pause = self.hang_over_frames
        for after, shorter in self.shared_pauses if shared else self.shorter_pauses:
            if frames >= after:
                pause = shorter
        return pause


@dataclass(frozen=True)
class Opened:
    """Speech began."""

    frames: list[Frame]


@dataclass(frozen=True)
class Grew:
    """Enough new speech for another partial pass over `frames`."""

    frames: list[Frame]


@dataclass(frozen=True)
class Proposed:
    """A pause began: the piece may be exactly `frames`."""

    frames: list[Frame]


@dataclass(frozen=True)
class Resumed:
    """Speech goes on: the proposal is void."""


@dataclass(frozen=True)
class Closed:
    """The piece is `frames`, from its first to its last voiced frame."""

    frames: list[Frame]
    first_voiced: Frame
    last_voiced: Frame


@dataclass(frozen=True)
class Dropped:
    """Too short to be speech."""


@dataclass(frozen=True)
class Asked:
    """Whether a sentence ends in `frames`: with them before a `pause`, or else anywhere before their end."""

    frames: list[Frame]
    pause: bool


Step = Opened | Grew | Proposed | Resumed | Closed | Dropped | Asked


@dataclass
class Endpointer:
    """Takes the decided frames of one microphone in order.

    `asking` is the number of frames about which was asked; no frame is to be fed before `go_on`. `shared`: several
    people speak into this microphone.
    """

    settings: EndpointSettings
    frames: list[Frame] = field(default_factory=list)
    open: bool = False
    _in_voice: bool = False
    _voiced: int = 0
    _first_voiced: int = 0
    _last_voiced: int = 0
    _silence: int = 0
    _voiced_run: int = 0
    _proposed: bool = False
    _partial_at: int = 0
    asking: int = 0
    shared: bool = False
    _looked_at: int = 0

    def voiced(self, probability: float, own: bool) -> bool:
        """Whether a frame counts as this person's voice, with hysteresis on the probability."""
        limit = self.settings.voiced_below if self._in_voice else self.settings.voiced_above
        self._in_voice = probability >= limit
        return self._in_voice and own

    def feed(self, frame: Frame) -> list[Step]:
        """Take the next frame and say what follows from it."""
        steps: list[Step] = []
        if frame.after_gap:
            steps.extend(self.flush())
        self.frames.append(frame)
        if not self.open:
            if frame.voiced:
                steps.append(self._begin(max(0, len(self.frames) - 1 - self.settings.pre_roll_frames)))
            else:
                del self.frames[: -self.settings.pre_roll_frames]
            return steps
        if frame.voiced:
            steps.extend(self._speech())
        else:
            steps.extend(self._pause())
        if self.open and not self.asking and len(self.frames) >= self.settings.max_frames:
            steps.extend(self._cut())
        return steps

    def go_on(self, end: int | None) -> list[Step]:
        """The answer to `Asked`: the piece ends before its frame `end`, or goes on."""
        self.asking = 0
        if end is not None:
            return self.cut(end)
        if self._proposed:
            return [Resumed(), *self._resume()]
        return [Resumed()]

    def flush(self) -> list[Step]:
        """The sound ends here, or breaks off: close what is open."""
        steps: list[Step] = []
        if self.open:
            steps.append(
                self._close(min(len(self.frames), self._last_voiced + 1 + self.settings.tail_frames))
            )
        self.frames.clear()
        self.open = self._in_voice = False
        self.asking = 0
        return steps

    def _begin(self, first: int) -> Opened:
        """Open a piece at frame `first`; the newest frame is the first voiced one."""
        del self.frames[:first]
        self.open, self._proposed = True, False
        self._first_voiced = self._last_voiced = len(self.frames) - 1
        self._voiced, self._silence, self._voiced_run, self._partial_at, self._looked_at = 1, 0, 1, 0, 0
        return Opened(list(self.frames))

    def _speech(self, ask: bool = True) -> list[Step]:
        self._voiced_run += 1
        if self._proposed and self._voiced_run < self.settings.resume_frames:
            # A click is no speech. The frame stays in the piece if more follow.
            return []
        if not self._proposed:
            return self._resume(ask)
        end = self._last_voiced + 1 + self.settings.tail_frames
        pause = len(self.frames) - self.settings.resume_frames - 1 - self._last_voiced
        least_pause, least_frames = self.settings.asks_after(self.shared)
        if (
            ask
            and pause >= least_pause
            and self._last_voiced + 1 - self._first_voiced >= least_frames
            and self._voiced >= self.settings.min_voiced_frames
        ):
            self.asking = end
            return [Asked(self.frames[:end], pause=True)]
        return [Resumed(), *self._resume(ask)]

    def _resume(self, ask: bool = True) -> list[Step]:
        """The newest frames are speech that goes on."""
        if self._proposed:
            self._proposed = False
            self._voiced += self.settings.resume_frames - 1
        self._voiced += 1
        self._last_voiced = len(self.frames) - 1
        self._silence = 0
        length = len(self.frames) - self._first_voiced
        if self.shared and ask and self._looks(length):
            self._partial_at = self._looked_at = length
            self.asking = len(self.frames)
            return [Asked(list(self.frames), pause=False)]
        if self._looked_at:
            # What looks through a piece shows its text too.
            return []
        every = max(self.settings.partial_every_frames, length // self.settings.partial_part)
        if length >= self.settings.first_partial_frames and (
            not self._partial_at or length - self._partial_at >= every
        ):
            self._partial_at = length
            return [Grew(list(self.frames))]
        return []

    def _looks(self, length: int) -> bool:
        settings = self.settings
        since = length - self._looked_at if self._looked_at else settings.look_every_frames
        return length >= settings.look_after_frames and since >= settings.look_every_frames

    def _pause(self) -> list[Step]:
        self._voiced_run = 0
        self._silence = len(self.frames) - 1 - self._last_voiced
        end = self._last_voiced + 1 + self.settings.tail_frames
        steps: list[Step] = []
        if not self._proposed and self._silence >= self.settings.tail_frames:
            self._proposed = True
            if self._voiced >= self.settings.min_voiced_frames:
                steps.append(Proposed(self.frames[:end]))
                length = self._last_voiced + 1 - self._first_voiced
                if length >= self.settings.first_partial_frames:
                    self._partial_at = length
        if self._silence >= self.settings.pause_that_ends(end, self.shared):
            steps.append(self._close(end))
            self.frames = self.frames[end:][-self.settings.pre_roll_frames :]
        return steps

    def _close(self, end: int) -> Step:
        self.open = False
        if self._voiced < self.settings.min_voiced_frames:
            return Dropped()
        return Closed(self.frames[:end], self.frames[self._first_voiced], self.frames[self._last_voiced])

    def _cut(self) -> list[Step]:
        """Speech without a pause: cut at the quietest place of the last seconds, and go on from there."""
        window = self.settings.cut_window_frames
        start = len(self.frames) - window
        levels = np.array([frame.level_db for frame in self.frames[start:-2]])
        smooth = np.convolve(levels, np.full(3, 1 / 3), mode="valid")
        return self.cut(start + int(np.argmin(smooth)) + 2)

    def cut(self, end: int) -> list[Step]:
        """Close the open piece before its frame `end`, and go on from there."""
        rest = self.frames[end:]
        self._last_voiced = max(
            (i for i, frame in enumerate(self.frames[:end]) if frame.voiced), default=end - 1
        )
        steps = [self._close(end)]
        in_voice = self._in_voice
        self.frames = []
        for frame in rest:
            frame_after_gap, frame.after_gap = frame.after_gap, False
            steps.extend(self._again(frame))
            frame.after_gap = frame_after_gap
        self._in_voice = in_voice
        return steps

    def _again(self, frame: Frame) -> list[Step]:
        """Feed a frame behind a cut; its proposals would come too late to be of use but are harmless."""
        self.frames.append(frame)
        if not self.open:
            return [self._begin(0)] if frame.voiced else []
        return self._speech(ask=False) if frame.voiced else self._pause()

    def dump(self) -> list[Any]:
        """State as plain values."""
        return [
            [frame.dump() for frame in self.frames],
            self.open,
            self._in_voice,
            self._voiced,
            self._first_voiced,
            self._last_voiced,
            self._silence,
            self._voiced_run,
            self._proposed,
            self._partial_at,
            self.asking,
            self.shared,
            self._looked_at,
        ]

    @classmethod
    def load(cls, settings: EndpointSettings, raw: list[Any]) -> "Endpointer":
        """Inverse of `dump`."""
        frames, *rest = raw
        return cls(settings, [Frame.load(frame) for frame in frames], *rest)
