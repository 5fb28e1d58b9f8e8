"""Days and amounts that words name, with the place where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from operators.language.dates import time_phrases
from operators.language.slips import NUMBERS

_NO_DAY_OF_IT: Final = ("until", "till", "before", "by", "from", "within", "after")
"""What stands before a day that bounds something, and is not when it is."""
_DATES: Final = ("date", "ordinal", "day", "day_date")
_UNIT: Final = rf"(?:{'|'.join(sorted(NUMBERS - {'half'}, key=len, reverse=True))}|\d[\d.,]*\d|\d)"
_AMOUNT: Final = re.compile(rf"\b{_UNIT}(?:[ -](?:and )?{_UNIT})*\b(?! o'clock)")


@dataclass(frozen=True, slots=True)
class Value:
    """A day (``kind`` *date* or *day*) or an amount in a clause, with the words between article and end."""

    kind: str
    first: int
    last: int
    words: str


def values_in(norm: str) -> list[Value]:
    """Days and amounts in lower-case words, in their order."""
    return sorted((*_days(norm), *_amounts(norm)), key=lambda v: v.first)


def _days(norm: str) -> Iterator[Value]:
    taken = -1
    for phrase in time_phrases(norm):
        if phrase.kind not in _DATES or phrase.first < taken:
            continue
        taken = phrase.last
        if phrase.prep in _NO_DAY_OF_IT:
            continue
        first = phrase.first + len(_lead(norm[phrase.first : phrase.last]))
        kind = "day" if phrase.kind == "day" else "date"
        yield Value(kind, first, phrase.last, norm[first : phrase.last])


def _lead(words: str) -> str:
    found = re.match(r"(?:(?:on|for|at|to|in|come|due|latest|the|this|coming) )+", words)
    return found.group() if found else ""


def _amounts(norm: str) -> Iterator[Value]:
    days = [(p.first, p.last) for p in time_phrases(norm)]
    for match in _AMOUNT.finditer(norm):
        if not any(a < match.end() and match.start() < b for a, b in days):
            yield Value("amount", match.start(), match.end(), match.group())
