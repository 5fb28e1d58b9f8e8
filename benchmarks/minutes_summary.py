"""Summaries of meetings against written abstracts: ROUGE, and what picking whole utterances could reach at best."""

import collections
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from .item_scores import f1

Grams = collections.Counter[tuple[str, ...]]
_SIZES: Final = (1, 2)
LONGEST: Final = 160
"""Words that a summary may have."""


def words_of(text: str) -> list[str]:
    """Words in lower case; stop words count."""
    return re.findall(r"[a-z0-9']+", text.lower())


def _grams(text: str, size: int) -> Grams:
    words = words_of(text)
    return collections.Counter(zip(*(words[at:] for at in range(size)), strict=False))


def rouge(text: str, gold: str, size: int) -> float:
    """ROUGE-N: F1 of the words (or pairs) that both have in common (Lin 2004), no stemming."""
    mine, wanted = _grams(text, size), _grams(gold, size)
    return f1((mine & wanted).total(), mine.total(), wanted.total())


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    words: int
    grams: tuple[Grams, ...]
    """Only those of the abstract."""
    totals: tuple[int, ...]


def oracle(said: Sequence[str], gold: str, room: int) -> str:
    """Utterances that a greedy reader of the abstract would pick: each time the one that adds most to ROUGE-1 + 2.

    ``room`` is the number of words that all of them may have together.
    """
    wanted = tuple(_grams(gold, size) for size in _SIZES)
    left = [c for c in (_candidate(text, wanted) for text in dict.fromkeys(said)) if any(c.grams)]
    have: tuple[Grams, ...] = tuple(collections.Counter() for _ in _SIZES)
    totals, hits, best = [0] * len(_SIZES), [0] * len(_SIZES), 0.0
    chosen: list[str] = []
    while True:
        left = [c for c in left if c.words <= room]
        found = None
        for c in left:
            more = [_more(c.grams[n], have[n], wanted[n]) for n in range(len(_SIZES))]
            value = sum(
                f1(hits[n] + more[n], totals[n] + c.totals[n], wanted[n].total()) for n in range(len(_SIZES))
            )
            if value > best:
                best, found = value, (c, more)
        if found is None:
            return " ".join(chosen)
        c, more = found
        chosen.append(c.text)
        left.remove(c)
        room -= c.words
        for n in range(len(_SIZES)):
            have[n].update(c.grams[n])
            totals[n], hits[n] = totals[n] + c.totals[n], hits[n] + more[n]


def _candidate(text: str, wanted: Sequence[Grams]) -> _Candidate:
    grams = [_grams(text, size) for size in _SIZES]
    mine = tuple(
        collections.Counter({g: n for g, n in found.items() if g in gold})
        for found, gold in zip(grams, wanted, strict=True)
    )
    return _Candidate(text, len(words_of(text)), mine, tuple(found.total() for found in grams))


def _more(grams: Grams, have: Grams, wanted: Grams) -> int:
    """Hits that come with these grams when one has some already."""
    return sum(min(have[g] + n, wanted[g]) - min(have[g], wanted[g]) for g, n in grams.items())


@dataclass(frozen=True, slots=True)
class Summarised:
    """A meeting's summary, its written abstract, and all that was said."""

    summary: str
    abstract: str
    said: Sequence[str]


def figures(meetings: Sequence[Summarised]) -> dict[str, Any]:
    """Means over meetings that have an abstract; the oracle may use as many words as any summary may."""
    told = [m for m in meetings if m.abstract]
    if not told:
        return {}
    best = [oracle(m.said, m.abstract, LONGEST) for m in told]
    out: dict[str, Any] = {"meetings": len(told)}
    for size in _SIZES:
        ours = statistics.fmean(rouge(m.summary, m.abstract, size) for m in told)
        theirs = statistics.fmean(rouge(text, m.abstract, size) for text, m in zip(best, told, strict=True))
        out[f"rouge{size}"] = {
            "summary": round(ours, 4), "oracle": round(theirs, 4), "share": round(ours / max(1e-9, theirs), 3),
        }  # fmt: skip
    out["words"] = {
        "summary": round(statistics.fmean(len(words_of(m.summary)) for m in told), 1),
        "longest": max(len(m.summary.split()) for m in told),
        "oracle": round(statistics.fmean(len(words_of(text)) for text in best), 1),
        "abstract": round(statistics.fmean(len(words_of(m.abstract)) for m in told), 1),
    }
    return out
