"""Days, dates and numbers that a speaker puts right in the same breath (*by Friday, sorry, I mean Thursday*)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from operators.language.words import words_in


class Word(Protocol):
    """What is read of a word (`operators.language.text.Token`)."""

    @property
    def text(self) -> str: ...

    @property
    def low(self) -> str: ...

    @property
    def ends_clause(self) -> bool: ...

    @property
    def comma(self) -> bool: ...


W = TypeVar("W", bound=Word)

DAYS = words_in("monday tuesday wednesday thursday friday saturday sunday")
MONTHS = words_in("january february march april may june july august september october november december")
RELATIVE = words_in("today tomorrow tonight")
NUMBERS = words_in("""
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half
""")
ORDINALS = words_in("""
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth thirtieth twenty-first twenty-second twenty-third
    twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirty-first
""")
_ENDINGS = ("st", "nd", "rd", "th")
_LINKS = words_in("the of next this")
_LEADS = words_in("by before until till on for at from in to")
_MARKS = (
    ("no", "sorry"), ("no", "wait"), ("oh", "sorry"), ("i", "mean"), ("i", "meant"), ("or", "rather"), ("or", "actually"),
    ("make", "it"),
    ("make", "that"), ("hold", "on"), ("hang", "on"), ("scratch", "that"),
    ("no",), ("sorry",), ("wait",), ("rather",), ("correction",), ("actually",),
)  # fmt: skip
"""What says that the words before it were a slip; several may follow one another."""
_OPENS = frozenset(mark[0] for mark in _MARKS)
_NO_MARK = re.compile(r"(?:no one|wait (?:one|a|two|for|till|until))\b")
_GOES_ON = words_in(
    "is are was were works does will would suits sounds has can then's cannot can't won't isn't doesn't"
)
"""After one of these the second one is spoken of, it does not take the first one's place (*Friday. No, Thursday is bad*)."""


def without_slips(tokens: list[W]) -> list[W]:
    """Words without what was put right at once, and without the words that say so; the others stay as they are."""
    if len(tokens) < 3 or _OPENS.isdisjoint(t.low for t in tokens):
        return tokens
    out: list[W] = []
    at = 0
    while at < len(tokens):
        marked = _marks(tokens, at) if out else 0
        found = _put_right(out, tokens, at + marked) if marked else None
        if found is None:
            out.append(tokens[at])
            at += 1
            continue
        keep, lead = found
        del out[keep:]
        at += marked
        if lead and out:
            at += 1  # the preposition is said already
    return out


def _marks(tokens: Sequence[Word], at: int) -> int:
    """How many words from ``at`` on say that something was wrong."""
    first = at
    while at < len(tokens) and tokens[at].low in _OPENS:
        width = next((len(m) for m in _MARKS if tuple(t.low for t in tokens[at : at + len(m)]) == m), 0)
        if not width or _NO_MARK.match(" ".join(t.low for t in tokens[at : at + 2])):
            break
        at += width
    return at - first


def _put_right(before: Sequence[Word], tokens: Sequence[Word], at: int) -> tuple[int, bool] | None:
    """Where in ``before`` the slip starts, and whether a preposition is said twice; None where it is none."""
    lead = at < len(tokens) and tokens[at].low in _LEADS
    start = at + lead
    end = _unit(tokens, start)
    if end == start:
        return None
    kind = _kind(tokens[start:end])
    if end < len(tokens) and not tokens[end - 1].ends_clause and tokens[end].low in _GOES_ON:
        return None
    last = len(before)
    same_noun = (
        kind == "number"
        and end < len(tokens)
        and not tokens[end - 1].ends_clause
        and last > 1
        and before[-1].low == tokens[end].low
    )
    if same_noun:
        last -= 1
    first = last
    while (
        first > 0
        and _kind(before[first - 1 : first])
        and not (first < last and before[first - 1].ends_clause)
    ):
        first -= 1
    while first < last and before[first].low in _LINKS:
        if first + 1 < last and before[first].low == "the" and kind == "date":
            break
        first += 1
    if first == last or _kind(before[first:last]) != kind:
        return None
    before_lead = first > 0 and before[first - 1].low in _LEADS
    if lead and not before_lead:
        return None
    return first, bool(lead)


def _unit(tokens: Sequence[Word], start: int) -> int:
    """The end of the day, date or number that starts here; ``start`` where none does."""
    end = start
    while end < len(tokens) and (_word_kind(tokens[end]) or tokens[end].low in _LINKS):
        end += 1
        if tokens[end - 1].ends_clause or tokens[end - 1].comma:
            break
    while end > start and tokens[end - 1].low in _LINKS:
        end -= 1
    return end if _kind(tokens[start:end]) else start


def _word_kind(token: Word) -> str:
    low = token.low
    if low in DAYS or low in RELATIVE:
        return "day"
    if low in MONTHS and token.text[:1].isupper():
        return "date"
    if low in ORDINALS or (low[:-2].isdigit() and low.endswith(_ENDINGS)):
        return "date"
    if low in NUMBERS or low.replace(".", "").replace(",", "").isdigit():
        return "number"
    return ""


def _kind(tokens: Sequence[Word]) -> str:
    """What a run of words names: a day, a date, a number; empty for anything else."""
    kinds = [_word_kind(t) for t in tokens if t.low not in _LINKS]
    if len(tokens) == 1 and not kinds:
        return "link"
    if not kinds or "" in kinds:
        return ""
    return next((k for k in ("date", "day") if k in kinds), "number")
