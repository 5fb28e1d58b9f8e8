"""Word errors between what was said and what was heard, and how sure a comparison of two recognisers is.

The normalisation is small and meant for English: capitals, punctuation, brackets and hesitations ("um", "mm-hm") do
not count; contractions, digits and a few spellings are written out, so that "I'll take 2" equals "I will take two".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from rapidfuzz.distance import Levenshtein

_BRACKETS: Final = re.compile(r"\[[^\]]*\]|\([^)]*\)|<[^>]*>")
_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)*'?|'[a-z]+")
_HESITATIONS: Final = frozenset(
    {
        "uh",
        "um",
        "uhm",
        "er",
        "erm",
        "ah",
        "eh",
        "hm",
        "hmm",
        "mm",
        "mhm",
        "mmm",
        "mmhmm",
        "mmhm",
        "uhhuh",
        "huh",
    }
)
_SPELLINGS: Final = {
    "ok": "okay", "kay": "okay", "'kay": "okay", "'cause": "because", "cuz": "because", "'em": "them", "mr": "mister",
    "mrs": "missus", "dr": "doctor", "st": "saint", "alright": "all right", "yep": "yeah", "gonna": "going to",
    "wanna": "want to", "gotta": "got to", "kinda": "kind of", "til": "until", "'til": "until", "programme": "program",
    "colour": "color", "centre": "center", "favourite": "favorite", "grey": "gray", "behaviour": "behavior",
    "won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "shall not", "let's": "let us",
}  # fmt: skip
_ENDINGS: Final = (
    ("n't", "not"),
    ("'re", "are"),
    ("'ve", "have"),
    ("'ll", "will"),
    ("'m", "am"),
    ("'d", "would"),
)
_IS: Final = frozenset(
    {"it", "he", "she", "that", "there", "here", "what", "where", "who", "how", "when", "this", "everything"}
)
_SMALL: Final = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS: Final = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@dataclass(frozen=True, slots=True)
class Errors:
    """Wrong, missing and added words against words said."""

    wrong: int
    said: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the bounds of its 95 % interval."""

    mid: float
    low: float
    high: float

    def rounded(self) -> dict[str, float]:
        """As a report prints it."""
        return {"mid": round(self.mid, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def words_of(text: str) -> list[str]:
    """Normalised words of a text."""
    lower = (
        _BRACKETS.sub(" ", text.lower().replace("’", "'")).replace("mm-hm", "mmhm").replace("uh-huh", "uhhuh")
    )
    # Half words that the speaker broke off ("deskt-") are no words of either text.
    lower = re.sub(r"\b[a-z]+-(?=\s|$|[.,?!])", " ", lower)
    lower = re.sub(r"(?<=\d),(?=\d{3}\b)", "", lower)
    found: list[str] = []
    for word in _WORD.findall(lower):
        found += _spoken(word)
    return [word for word in found if word not in _HESITATIONS]


def _spoken(word: str) -> list[str]:
    if word in _SPELLINGS:
        return _SPELLINGS[word].split()
    if word.isdigit():
        return _number(int(word)) if len(word) <= 6 else [_SMALL[int(digit)] for digit in word]
    for ending, full in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending):
            return [word.removesuffix(ending), full]
    if word.endswith("'s") and word[:-2] in _IS:
        return [word[:-2], "is"]
    ordinal = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word)
    if ordinal:
        return [*_number(int(ordinal[1])), "th"]
    # Whose it is ("Steve's") stays one word; the mark is a matter of spelling.
    return [word.replace("'", "")]


def _number(value: int) -> list[str]:
    if value < 20:
        return [_SMALL[value]]
    if value < 100:
        return [_TENS[value // 10], *([_SMALL[value % 10]] if value % 10 else [])]
    if 1100 <= value < 2000 and value % 100:
        # Years and the like: "eighteen thirteen".
        return [*_number(value // 100), *_number(value % 100)]
    if value < 1000:
        return [_SMALL[value // 100], "hundred", *(_number(value % 100) if value % 100 else [])]
    return [*_number(value // 1000), "thousand", *(_number(value % 1000) if value % 1000 else [])]


def word_errors(said: str, heard: str) -> Errors:
    """Edit distance in words."""
    reference = words_of(said)
    return Errors(Levenshtein.distance(reference, words_of(heard)), len(reference))


def rate(errors: Sequence[Errors]) -> float | None:
    """Pooled word error rate; None where nothing was said."""
    said = sum(e.said for e in errors)
    return sum(e.wrong for e in errors) / said if said else None


def ratio_of_rates(
    ours: Sequence[Errors], theirs: Sequence[Errors], *, seed: int, draws: int = 10_000
) -> Interval:
    """Pooled error rate of one recogniser over that of another on the same clips, by a paired bootstrap over clips.

    One word is added to both counts, so that a flawless recogniser gives no division by zero.
    """
    counts = np.array([[a.wrong, b.wrong] for a, b in zip(ours, theirs, strict=True)], dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(counts), (draws, len(counts)))
    sums = counts[picks].sum(axis=1) + 1.0
    low, high = np.percentile(sums[:, 0] / sums[:, 1], (2.5, 97.5))
    total = counts.sum(axis=0) + 1.0
    return Interval(float(total[0] / total[1]), float(low), float(high))
