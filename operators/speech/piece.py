"""A piece of speech between its first frame and its decided text."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import Before, Recognition, Word
from models.voice_activity import FRAME_SAMPLES
from operators.speech.spoken import dump_before, dump_words, load_before, load_words
from operators.speech.stream import FRAME_NS, Frame

_FOREIGN_GAIN = 0.06
"""What other people say at this microphone while its owner pauses is turned down to this, not cut out: a hard zero
would sound like a word boundary."""

_FOREIGN_RUN = 3

_EDGE_FRAMES = 7
"""How far a word's end may be from where it was heard to be (0.2 s)."""

_LEAST_FRAMES = 5

_SHORTEST_WORD_S = 0.15

_LATER_DB = 0.3
"""What a place must be quieter for each frame that it is later."""

ALONE_DB = 35.0
"""A mean margin above this means that no other microphone was there to compare with."""


@dataclass
class Piece:
    """Book-keeping of one piece.

    `version` is that of the newest request, `settled` that of the newest proposal. `heard` is the answer to that
    proposal, whatever becomes of the piece: the next one is told of it. `waits_for` is an earlier piece whose answer
    this one is to be told of (`before`) and that has not come; `pause` is the sound between the two. `look`: the
    newest proposal is none, the piece is only looked through for the end of a sentence. `shared`: several people
    speak into its microphone. `voided`: the last proposal that was none; `told`: what the piece was said to begin with
    while it went on. `sentences`: what seemed to be whole sentences, from its beginning, in passes that were waited for.
    `logged`: the newest version whose whole text stands on the log. `parts`: identities under which the rest of it
    was told besides its own.
    """

    piece_id: str
    stream: str
    device: str
    speaker: str | None
    start_index: int
    samples_start_ns: int
    start_ns: int
    end_ns: int
    version: int = 0
    settled: int = 0
    settled_end: int = 0
    shown: int = 0
    closed: bool = False
    done: bool = False
    margin_db: float = 40.0
    level_db: float = -120.0
    voice: float = 0.0
    pcm: bytes = b""
    recognition: Recognition | None = None
    heard: Recognition | None = None
    waits_for: str | None = None
    pause: bytes = b""
    before: Before | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    look: bool = False
    shared: bool = False
    voided: int = 0
    told: str = ""
    logged: int = 0
    sentences: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    @property
    def dropped(self) -> bool:
        """Whether nothing of it stands: no speech, or what another microphone heard better."""
        return self.done and self.recognition is None

    def dump(self) -> dict[str, Any]:
        """Plain values."""
        raw = dict(self.__dict__)
        raw["recognition"] = None if self.recognition is None else _dump_recognition(self.recognition)
        raw["heard"] = None if self.heard is None else _dump_recognition(self.heard)
        raw["before"] = dump_before(self.before)
        raw["gaps"] = [list(gap) for gap in self.gaps]
        raw["sentences"], raw["parts"] = list(self.sentences), list(self.parts)
        return raw

    @classmethod
    def load(cls, raw: dict[str, Any]) -> "Piece":
        """Inverse of `dump`."""
        values = dict(raw)
        for name in ("recognition", "heard"):
            found = values[name]
            values[name] = None if found is None else _load_recognition(found)
        values["before"] = load_before(values["before"])
        values["gaps"] = [(start, end) for start, end in values["gaps"]]
        return cls(**values)


def sound(frames: list[Frame]) -> npt.NDArray[np.int16]:
    """Samples of consecutive frames, int16 shape (n,), with longer stretches of other people's voices turned down."""
    pcm = np.concatenate([frame.pcm for frame in frames])
    foreign = _long_runs([frame.foreign and not frame.voiced for frame in frames])
    if not foreign.any():
        return pcm
    gains = np.where(foreign, _FOREIGN_GAIN, 1.0)
    centres = (np.arange(len(frames)) + 0.5) * FRAME_SAMPLES
    ramp = np.interp(np.arange(len(pcm)), centres, gains)
    return np.asarray(np.rint(pcm * ramp), dtype=np.int16)


def mean_margin_db(frames: list[Frame]) -> float:
    """How clearly the voiced frames were this person's own."""
    margins = [frame.margin_db for frame in frames if frame.voiced]
    return float(np.mean(margins)) if margins else 0.0


def mean_level_db(frames: list[Frame]) -> float:
    """Level of the voiced frames."""
    levels = [frame.level_db for frame in frames if frame.voiced]
    return float(np.mean(levels)) if levels else -120.0


def mean_voice(frames: list[Frame]) -> float:
    """Speech probability of the voiced frames."""
    probabilities = [frame.probability for frame in frames if frame.voiced]
    return float(np.mean(probabilities)) if probabilities else 0.0


def echo_margin_db(piece: Piece, other: Piece) -> float | None:
    """How clearly `piece` was its speaker's own, if it is the weaker of the two, else None.

    Where one microphone's sound came too late to be compared frame by frame, the margin says nothing and the levels
    have to do.
    """
    if max(piece.margin_db, other.margin_db) >= ALONE_DB:
        weaker = (piece.level_db, piece.piece_id) < (other.level_db, other.piece_id)
        return (0.0 if other.level_db - piece.level_db > 6.0 else piece.margin_db) if weaker else None
    # Alike to the last bit where one recording comes as two devices: then its name decides.
    weaker = (piece.margin_db, piece.piece_id) < (other.margin_db, other.piece_id)
    return piece.margin_db if weaker else None


def quietest_after(frames: list[Frame], word: Word) -> int:
    """Frame at which the sound is cut behind a word of it.

    A word is heard to last until the next one begins. What was said and not heard between the two is better read
    once more than cut off, so of places that are about as quiet the first one is taken.
    """
    voiced = next((place for place, frame in enumerate(frames) if frame.voiced), 0)
    first = max(voiced + _LEAST_FRAMES, round((word.start_s + _SHORTEST_WORD_S) * 1e9) // FRAME_NS)
    last = round(word.end_s * 1e9) // FRAME_NS + _EDGE_FRAMES
    near = frames[first:last]
    if len(near) < _LEAST_FRAMES:
        # A word that is heard before there was any voice.
        return min(first, len(frames) - 1)
    levels = np.convolve([frame.level_db for frame in near], np.full(3, 1 / 3), mode="valid")
    return first + 2 + int(np.argmin(levels + _LATER_DB * np.arange(len(levels))))


def range_end_ns(frames: list[Frame]) -> int:
    """Raw time after the last sample."""
    return frames[-1].start_ns + FRAME_NS


def _long_runs(flags: list[bool]) -> npt.NDArray[np.bool_]:
    kept = np.zeros(len(flags), dtype=np.bool_)
    start = 0
    for position in range(len(flags) + 1):
        if position < len(flags) and flags[position]:
            continue
        if position - start >= _FOREIGN_RUN:
            kept[start:position] = True
        start = position + 1
    return kept


def _dump_recognition(recognition: Recognition) -> dict[str, Any]:
    raw = dict(recognition.__dict__)
    raw["words"] = dump_words(recognition.words)
    return raw


def _load_recognition(raw: dict[str, Any]) -> Recognition:
    return Recognition(**{**raw, "words": load_words(raw["words"])})
