"""What the same microphone heard just before a piece, so that a phrase that a pause has split is heard as one.

The sound before is put in front of the piece, and its text is given to the decoder as already written, up to the
time stamp of its end. The decoder then goes on from there, as it does within a recording, at hardly any cost: the
encoder would otherwise be given silence, and what is already written is read in one step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from models.speech_features import HOP_SAMPLES, SAMPLE_RATE_HZ, Samples
from models.speech_hotwords import Word

TOKEN_S: Final = 0.02
"""One step of the encoder's output, and so the grain of word times and time stamps."""

LEAST_S: Final = 3.0
"""So much sound before a piece is given where it is there."""

MOST_S: Final = 6.0
"""No more than this, even where the piece is short."""

LONGEST_PIECE_S: Final = 5.0
"""A longer piece has context enough of its own, and more sound would make its pass slower."""

SHORTEST_PIECE_S: Final = 1.0
"""A shorter piece is a word or two, which are read alone: after speech, any sound passes for more of it."""

MOST_PAUSE_S: Final = 1.5
"""After a longer pause somebody starts anew."""

_BEFORE_WORD_S: Final = 0.06
_GRAIN_S: Final = 0.0013
"""Word times come from the log as well, where they are rounded: a cut must not depend on the last digit."""


@dataclass(frozen=True, eq=False)
class Before:
    """What was heard before a piece.

    `samples`: float32 mono at 16 kHz, shape (n,), up to the piece's first sample. `words` have times from the first
    of these samples. The text ends at `end_s`; the pause follows.
    """

    samples: Samples
    words: tuple[Word, ...]
    end_s: float


@dataclass(frozen=True, eq=False)
class Lead:
    """What is put before a piece: its sound, and its text as tokens between time stamps."""

    samples: Samples
    tokens: tuple[int, ...]

    @property
    def duration_s(self) -> float:
        """Where the piece starts."""
        return len(self.samples) / SAMPLE_RATE_HZ


def lead_of(before: Before, piece_s: float, room_s: float, tokenizer: Any) -> Lead | None:
    """The last words before a piece that take at most about `room_s` with their pause, at least 3 and at most 6 s.

    None where nothing was said, and for pieces that are better read alone.
    """
    if not SHORTEST_PIECE_S <= piece_s <= LONGEST_PIECE_S:
        return None
    pause_s = len(before.samples) / SAMPLE_RATE_HZ - before.end_s
    wanted_s = min(MOST_S, max(LEAST_S, room_s - pause_s))
    words = [word for word in before.words if word.start_s + _GRAIN_S >= before.end_s - wanted_s]
    if not words:
        return None
    hops = math.floor((words[0].start_s - _BEFORE_WORD_S + _GRAIN_S) * SAMPLE_RATE_HZ / HOP_SAMPLES)
    first = max(0, hops) * HOP_SAMPLES if len(words) < len(before.words) else 0
    stamp = tokenizer.timestamp_begin
    end = stamp + round((before.end_s - first / SAMPLE_RATE_HZ) / TOKEN_S)
    text = tokenizer.encode(" " + " ".join(word.text for word in words))
    return Lead(before.samples[first:], (stamp, *text, end))


def heard_before(samples: Samples, words: Sequence[Word], pause: Samples) -> Before:
    """What was heard in an earlier piece and the pause after it, the last `MOST_S` of the piece at most."""
    first = (
        max(0, len(samples) - round((MOST_S + _BEFORE_WORD_S) * SAMPLE_RATE_HZ)) // HOP_SAMPLES * HOP_SAMPLES
    )
    start_s = first / SAMPLE_RATE_HZ
    kept = tuple(
        Word(word.start_s - start_s, word.end_s - start_s, word.text, word.probability)
        for word in words
        if word.start_s >= start_s
    )
    return Before(np.concatenate((samples[first:], pause)), kept, len(samples) / SAMPLE_RATE_HZ - start_s)
