"""What speech processing asks for and decides. All times are raw device time in ns."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import Before, Word
from operators.speech.prosody import PieceProsody

Kind = Literal["partial", "speculative", "final"]


@dataclass(frozen=True, eq=False)
class RecognitionRequest:
    """Sound to be recognised.

    `samples` is float32 mono at 16 kHz from `start_ns` to `end_ns`; word times of the answer count from `start_ns`.
    A lower `priority` goes first. Answers go back by (`piece_id`, `version`). `before` is what the same microphone
    heard just before, `voice` the mean speech probability of the voiced frames. `hotwords`: names and
    terms to expect, filled in by who knows the meeting. `holds`: the microphone's further sound waits for the answer.
    """

    piece_id: str
    version: int
    kind: Kind
    device: str
    samples: npt.NDArray[np.float32]
    start_ns: int
    end_ns: int
    priority: int
    hotwords: tuple[str, ...] = ()
    before: Before | None = None
    voice: float = 0.0
    holds: bool = False


@dataclass(frozen=True)
class PieceText:
    """Text of a piece that is not closed: partial while somebody speaks, tentative once they pause."""

    piece_id: str
    version: int
    state: Literal["partial", "tentative"]
    device: str
    speaker: str | None
    start_ns: int
    end_ns: int
    samples_start_ns: int
    text: str
    words: tuple[Word, ...]
    average_log_probability: float
    boundary_ms: float


@dataclass(frozen=True)
class PieceClosed:
    """The decided text of a piece. Word times count from `samples_start_ns`.

    `gaps` are stretches (start, end) inside it for which no sound arrived. `follows_ns`: raw start of another one of
    the same microphone that is decided with it and told after it.
    """

    piece_id: str
    version: int
    device: str
    speaker: str | None
    start_ns: int
    end_ns: int
    samples_start_ns: int
    text: str
    words: tuple[Word, ...]
    average_log_probability: float
    boundary_ms: float
    gaps: tuple[tuple[int, int], ...] = ()
    prosody: PieceProsody | None = None
    follows_ns: int | None = None


@dataclass(frozen=True)
class PieceWithdrawn:
    """A piece that turned out not to be this speaker's speech, or no speech at all."""

    piece_id: str
    version: int
    device: str
    reason: str


@dataclass(frozen=True)
class SpeechResumed:
    """The pause was none: a tentative text of this piece is superseded."""

    piece_id: str
    version: int
    device: str


@dataclass(frozen=True)
class MicrophoneDead:
    """A seat's microphone has given nothing but silence while others spoke; told once a stream."""

    device: str
    channel: int
    speaker: str | None


@dataclass(frozen=True)
class SoundLate:
    """A microphone's sound came so much later than that of others that it was not waited for; told once a stream."""

    device: str


SpeechEvent = (
    MicrophoneDead | SoundLate | RecognitionRequest | PieceText | PieceClosed | PieceWithdrawn | SpeechResumed
)
