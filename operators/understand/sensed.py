"""What was seen, shown and heard in the voice around an utterance, besides its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GestureKind = Literal["nod", "shake", "raise_hand"]


@dataclass(frozen=True, slots=True)
class Gesture:
    """A movement that a camera saw.

    Attributes:
        start_ns, end_ns: on the timeline.
        place: middle of the movement across the picture, 0 left to 1 right.
        who: speaker label of whoever sits there; None where that is not known.
        confidence: 0 to 1.
        error_ms: clock bound of the camera.
        sampling_ms: spacing of what the movement was read from.
        boundary_ms: how sharply its beginning and end are known.
    """

    kind: GestureKind
    start_ns: int
    end_ns: int
    device: str
    place: float
    who: str | None
    confidence: float
    error_ms: float
    sampling_ms: float
    boundary_ms: float


@dataclass(frozen=True, slots=True)
class Shown:
    """The slide that stood when an utterance ended, its lines as they were read."""

    slide_id: str
    device: str
    lines: tuple[str, ...]
    error_ms: float
    sampling_ms: float


@dataclass(frozen=True, slots=True)
class Tone:
    """How the voice ended.

    Attributes:
        rise_st: pitch at the end against the pitch of the utterance, semitones; below zero it fell.
        slope_st_s: how fast the pitch went at the end, semitones a second.
        voiced_share: of the last stretch in which pitch could be read; the surer the figures, the larger.
        level_db: loudness of the utterance, full scale = 0.
    """

    rise_st: float
    slope_st_s: float
    voiced_share: float
    level_db: float


@dataclass(frozen=True, slots=True)
class Senses:
    """All senses around one utterance.

    ``gestures`` are those that began between its start and the start of the next one. ``moving`` is how much of
    the picture's motion was at the speaker's place, None where no camera watched or the place is not known.
    ``watched``: a camera saw the whole of that stretch, so that no gesture means that none was made.
    """

    gestures: tuple[Gesture, ...] = ()
    shown: tuple[Shown, ...] = ()
    tone: Tone | None = None
    watched: bool = False
    moving: float | None = None


@dataclass(frozen=True, slots=True)
class SensePiece:
    """What an item rests on besides speech, beside the utterance at which it was seen.

    ``quote`` is the line of the slide, or a gesture in words; ``who`` made it (speaker label); ``count`` is how many
    people made it.
    """

    kind: Literal["slide", "picture"]
    utterance_id: str
    quote: str
    start_ns: int
    end_ns: int
    device: str
    who: str | None
    error_ms: float
    sampling_ms: float
    boundary_ms: float
    count: int = 1
