"""What was said last at a microphone, kept for the piece that may follow after a short pause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.speech_context import MOST_PAUSE_S, Before, heard_before
from models.speech_recogniser import Word
from models.voice_activity import FRAME_SAMPLES
from operators.speech.stream import FRAME_NS, Frame

MOST_PAUSE_FRAMES: Final = round(MOST_PAUSE_S * 1e9) // FRAME_NS

_TAIL_BYTES: Final = 2 * 16_000 * 7
"""Sound that is kept of a piece: a little more than is ever given on."""


@dataclass
class Spoken:
    """The piece closed last. `words` is None until its decisive answer has come; `end_index` follows its last sample."""

    piece_id: str
    end_index: int
    pcm: bytes
    words: tuple[Word, ...] | None = None
    cut_s: float = 0.0

    @classmethod
    def of(cls, piece_id: str, last: Frame, pcm: bytes) -> "Spoken":
        """A piece that was closed with this last frame and this sound."""
        tail = pcm[-_TAIL_BYTES:]
        return cls(piece_id, last.index + FRAME_SAMPLES, tail, cut_s=(len(pcm) - len(tail)) / 2 / 16_000)

    def follows(self, piece_id: str, first: Frame) -> int | None:
        """Frames of pause between this piece and one of the same stream that starts with `first`, None if too many."""
        frames, rest = divmod(first.index - self.end_index, FRAME_SAMPLES)
        same = piece_id.rpartition("/")[0] == self.piece_id.rpartition("/")[0]
        return frames if same and rest == 0 and 0 <= frames <= MOST_PAUSE_FRAMES else None

    def before(self, pause: bytes) -> Before | None:
        """What a piece after this pause is told; None where nothing was heard."""
        words = tuple(
            Word(word.start_s - self.cut_s, word.end_s - self.cut_s, word.text, word.probability)
            for word in self.words or ()
            if word.start_s >= self.cut_s
        )
        return heard_before(_floats(self.pcm), words, _floats(pause)) if words else None

    def dump(self) -> list[Any]:
        """Plain values."""
        words = None if self.words is None else dump_words(self.words)
        return [self.piece_id, self.end_index, self.pcm, words, self.cut_s]

    @classmethod
    def load(cls, raw: list[Any]) -> "Spoken":
        """Inverse of `dump`."""
        piece_id, end_index, pcm, words, cut_s = raw
        return cls(piece_id, end_index, pcm, None if words is None else load_words(words), cut_s)


def dump_before(before: Before | None) -> list[Any] | None:
    """Plain values."""
    if before is None:
        return None
    pcm = np.rint(before.samples * 32768.0).astype(np.int16)
    return [pcm.tobytes(), dump_words(before.words), before.end_s]


def load_before(raw: list[Any] | None) -> Before | None:
    """Inverse of `dump_before`."""
    return None if raw is None else Before(_floats(raw[0]), load_words(raw[1]), raw[2])


def dump_words(words: Sequence[Word]) -> list[list[Any]]:
    """Plain values."""
    return [[word.start_s, word.end_s, word.text, word.probability] for word in words]


def load_words(raw: list[list[Any]]) -> tuple[Word, ...]:
    """Inverse of `dump_words`."""
    return tuple(Word(*word) for word in raw)


def _floats(pcm: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(pcm, dtype=np.int16).astype(np.float32) / 32768.0
