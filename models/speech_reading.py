"""What a search of the sound gives, and what is made of it: which of two readings stands, and whether it stands at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.speech_features import SAMPLE_RATE_HZ, Samples, level_dbfs
from models.speech_hotwords import Word
from models.speech_text import (
    Evidence,
    collapse_loop,
    compression_ratio,
    degenerate,
    hardly_heard,
    normalised,
    phantom,
    shorten_drawl,
    wordless,
)


@dataclass(frozen=True)
class Recognition:
    """What one pass heard.

    `text` is empty when nothing was said; then `suppressed` says why a text was held back (`raw_text`), or is
    empty when there was none. `boundary_ms` is how sharply the word edges are known. `hurried`: second looks were left
    out, as recognition was behind.
    """

    text: str
    words: tuple[Word, ...] = ()
    no_speech_probability: float = 0.0
    average_log_probability: float = 0.0
    compression_ratio: float = 0.0
    raw_text: str = ""
    suppressed: str = ""
    boundary_ms: float = 0.0
    passes: int = 1
    hurried: bool = False


@dataclass(frozen=True)
class Hypothesis:
    """`tokens` are those of the text, `written` has the time stamps between them as well."""

    tokens: tuple[int, ...]
    written: tuple[int, ...]
    text: str
    no_speech_probability: float
    average_log_probability: float


def surer(after: Recognition, alone: Recognition) -> Recognition:
    """Which of two readings of a piece stands: after what was said before it, or alone.

    After speech the decoder takes any sound for more of it, and silence does not show. So a word or two must be
    heard without what came before as well, if not as the same ones.
    """
    if not alone.words or not after.words:
        return alone
    return after if _mean_probability(after.words) >= _mean_probability(alone.words) else alone


def says_again(before: Sequence[Word], words: Sequence[Word]) -> bool:
    """Whether a piece begins with what stands before it: copied from what was written, perhaps, and not heard.

    Four words from anywhere in it are enough, or its last three.
    """
    written, found = (normalised(" ".join(word.text for word in side)) for side in (before, words))
    if len(found) < 3:
        return False
    return found[:3] == written[-3:] or any(
        found[:4] == written[first : first + 4] for first in range(len(written) - 3)
    )


def _mean_probability(words: tuple[Word, ...]) -> float:
    return float(np.mean([word.probability for word in words])) if words else 0.0


def _least_probability(words: tuple[Word, ...]) -> float:
    return min((word.probability for word in words), default=0.0)


def hardly(found: Recognition) -> bool:
    """Whether there are no words, or a word or two that may be made of a murmur."""
    return not found.text or hardly_heard(
        found.text,
        found.no_speech_probability,
        found.average_log_probability,
        _least_probability(found.words),
    )


def better(first: Hypothesis, second: Hypothesis, duration_s: float) -> Hypothesis:
    """The second search, unless it looped too and is less sure."""
    if not degenerate(second.text, duration_s):
        return second
    return max(first, second, key=lambda hypothesis: hypothesis.average_log_probability)


def judge(
    hypothesis: Hypothesis,
    words: tuple[Word, ...],
    boundary_ms: float,
    samples: Samples,
    passes: int,
    voice: float,
) -> Recognition:
    """Fold what is left of loops and hold back what nobody said."""
    kept = collapse_loop([word.text for word in words])
    words = tuple(words[index] for index in kept)
    words = tuple(replace(word, text=shorten_drawl(word.text)) for word in words)
    text = " ".join(word.text for word in words)
    ratio = compression_ratio(hypothesis.text)
    evidence = Evidence(
        duration_s=len(samples) / SAMPLE_RATE_HZ,
        level_dbfs=level_dbfs(samples),
        no_speech_probability=hypothesis.no_speech_probability,
        average_log_probability=hypothesis.average_log_probability,
        word_probability=_mean_probability(words),
        compression_ratio=ratio,
        least_probability=_least_probability(words),
        voice=voice,
    )
    reason = "no words" if wordless(hypothesis.text) else phantom(text, evidence)
    return Recognition(
        text="" if reason else text,
        words=() if reason else words,
        no_speech_probability=hypothesis.no_speech_probability,
        average_log_probability=hypothesis.average_log_probability,
        compression_ratio=ratio,
        raw_text=hypothesis.text,
        suppressed=reason,
        boundary_ms=boundary_ms,
        passes=passes,
    )
