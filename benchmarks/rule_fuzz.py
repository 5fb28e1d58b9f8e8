"""Spoilt rule files by the million: whatever they hold, the answer is rules that run or a list of mistakes.

Two kinds in turn: well-formed rules from the grammar's own generator, and rules that were cut, doubled,
mixed and strewn with odd signs. What loads is run against a small document of awkward values.
"""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from contracts.sal import Checker, Document, RuleError, load_rules
from contracts.sal.grammar import KEYWORDS

from .random_rules import Generator, random_document

_ODD: Final = (
    "\x00", "\u202e", "\ufeff", "“", "'", "\\", '"', "\n", "\r", "(", ")", "[", "]", "((((", "))))", "[[[[", "9" * 20, "0",
    "1e9", "2026-99-99", "2026-02-30", "-", "--", "<", "=", "==", "=>", "!", "&&", "#", ":", ",", ".", "..", "*", "/", "$",
    "é", "ａ", "\ud800", "{", "}", "x" * 300, "5 days", "5 dayz", "\t",
)  # fmt: skip
_WORDS: Final = (
    *KEYWORDS, "items", "action_items", "decisions", "attendees", "meeting", "x1", "x1.owner", "x1.due", "count", "numbers",
    "quotes", "fail", "repair", "drop", "review", "final", "item", "null",
)  # fmt: skip
_DEEP: Final = (
    "(",
    "[",
    "not ",
    "-",
    "all x in items: ",
    "count(",
    "any e in x1.evidence: ",
    "words(",
    "a and ",
    "1 + ",
)


def fuzz(count: int, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Feed so many texts; ``escaped`` counts those that raised anything but ``RuleError``."""
    rng = Random(seed)
    pool = [Generator(rng, depth=2).rule(0) for _ in range(400)]
    document = random_document(rng, 4)
    begun = time.perf_counter()
    loaded = refused = 0
    escaped: list[str] = []
    slowest = 0.0
    for number in range(count):
        if number % 100 == 0:
            pool[rng.randrange(len(pool))] = Generator(rng, depth=rng.randint(1, 3)).rule(0)
        text = rng.choice(pool) if number % 8 == 0 else spoilt(rng, pool)
        before = time.perf_counter()
        try:
            if _survives(text, document):
                loaded += 1
            else:
                refused += 1
        except Exception as error:  # the very thing that is looked for
            escaped.append(f"{type(error).__name__}: {str(error)[:80]} in {text[:200]!r}")
        slowest = max(slowest, time.perf_counter() - before)
        if (number + 1) % 100_000 == 0:
            tell(f"fuzz: {number + 1} texts, {loaded} loaded, {len(escaped)} escaped")
    seconds = time.perf_counter() - begun
    return {
        "texts": count, "loaded": loaded, "refused": refused, "escaped": len(escaped), "examples": escaped[:5],
        "texts_per_s": round(count / seconds), "slowest_ms": round(slowest * 1e3, 1),
    }  # fmt: skip


def _survives(text: str, document: Document) -> bool:
    """Whether the text holds rules; they are run, and every mistake is put in words."""
    try:
        rules = load_rules(text)
    except RuleError as error:
        error.long()
        return False
    Checker(rules, document).check("final")
    return True


def spoilt(rng: Random, pool: Sequence[str]) -> str:
    """A rule after one to three accidents."""
    text = rng.choice(pool)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((1, 1, 3, 12)))
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:at] + rng.choice(_ODD) + text[at:]
        elif kind == 2:
            text = f"{text[:at]} {rng.choice(_WORDS)} {text[to:]}"
        elif kind == 3:
            text = text[:at] + text[at:to] * 2 + text[to:]
        elif kind == 4:
            other = rng.choice(pool)
            text = text[:at] + other[rng.randrange(len(other)) :]
        elif kind == 5:
            text = (
                text[:at]
                + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000))))
                + text[to:]
            )
        elif rng.random() < 0.05:
            text = text[:at] + rng.choice(_DEEP) * rng.choice((70, 300)) + text[at:]
        else:
            text = text[:at] + text[at:].swapcase()
    return text
