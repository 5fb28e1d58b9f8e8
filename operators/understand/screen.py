"""What people point at on a slide: the line that is meant, and a date in it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from operators.language.dates import DuePhrase, due_phrases, resolve
from operators.language.text import stems
from operators.language.words import in_order
from operators.understand.sensed import SensePiece, Shown
from operators.understand.types import Spoken

_MONTHS: Final = in_order(
    "january february march april may june july august september october november december"
)
_DAYS: Final = in_order("monday tuesday wednesday thursday friday saturday sunday")
_SHORT: Final = {name[:3]: name for name in (*_MONTHS, *_DAYS)} | {
    "sept": "september", "tues": "tuesday", "thur": "thursday", "thurs": "thursday",
}  # fmt: skip
_DATED: Final = frozenset(("iso", "date", "day_date"))
"""Kinds of time phrases that name one day of the calendar."""
_ON_SCREEN: Final = (
    r"(?:up there|on (?:the|that|this) (?:slide|screen|board|wall|list|page|chart)|shown there)"
)
_WHICH: Final = r"(?:(?:that|which)(?: is|'s|’s)? |is )?"
POINTING: Final = re.compile(
    rf"\b{_ON_SCREEN}\b|\b(?:top|bottom|first|last|lower|upper|next) (?:row|line)\b|"
    r"\byou (?:can |all )?see (?:it|that|this|them) (?:up )?(?:here|there)\b"
)
"""Words that point at the screen, whatever they mean there."""
THAT_DATE: Final = re.compile(
    r"\b(?:(?:by|on|before|until|till|for|at|from) )?(?:that|the|this|the same) (?:date|day|deadline|time)"
    rf"(?: {_WHICH}{_ON_SCREEN})?\b(?! (?:of|i|we|you|he|she|they|to)\b)|"
    rf"\b(?:by|before|until|till) then\b|\bthe one {_WHICH}{_ON_SCREEN}"
)
"""Words that stand for a date said or shown elsewhere."""
THAT_NAME: Final = re.compile(
    rf"\bthe (?:name|person|one) (?:that |who |which )?(?:is )?{_ON_SCREEN}|\bwhoever (?:is|stands) {_ON_SCREEN}"
)
"""Words that stand for somebody whose name is shown."""
_PLACES: Final = {
    "top": 0,
    "first": 0,
    "upper": 0,
    "second": 1,
    "third": 2,
    "bottom": -1,
    "last": -1,
    "lower": -1,
}
_ROW: Final = re.compile(rf"\b({'|'.join(_PLACES)}) (?:row|line)\b")
_SPEECH_WEIGHTS: Final = (1.0, 0.5, 0.5, 0.5, 0.25, 0.25)
"""How much a word in common counts: with what is said now, with what was said before."""


@dataclass(frozen=True, slots=True)
class PointedDate:
    """A date on the screen for which words stand."""

    words: str
    phrase: DuePhrase
    day: dt.date
    line: str
    shown: Shown


def dates_in(line: str) -> tuple[DuePhrase, ...]:
    """Days of the calendar named in a line of a slide, short names of days and months opened."""
    opened = [_SHORT.get(word, word) for word in re.findall(r"[^\W_]+(?:-\d+)*", line.lower())]
    return tuple(d for d in due_phrases(" ".join(opened)) if d.kind in _DATED)


def pointed_date(
    norms: Sequence[str], shown: Sequence[Shown], today: dt.date | None, about: frozenset[str]
) -> PointedDate | None:
    """The date on the screen that an utterance means; None where it means none, or it is not clear which.

    Args:
        norms: the utterance and those before it as cues read them, the newest first.
        today: day of the meeting.
        about: content stems of the task that is meant.
    """
    said = THAT_DATE.search(norms[0])
    if said is None or today is None:
        return None
    found = [
        (one, line, phrase, day)
        for one in shown
        for line in one.lines
        for phrase in dates_in(line)[:1]
        if (day := resolve(phrase, today)) is not None
    ]
    strong = any(POINTING.search(norm) for norm in norms[:3])
    best = _meant([line for _, line, _, _ in found], norms, about, alone=strong)
    if best is None:
        return None
    one, line, phrase, day = found[best]
    return PointedDate(said.group().strip(), phrase, day, line, one)


def pointed_line(
    norms: Sequence[str], shown: Sequence[Shown], about: frozenset[str], fits: re.Pattern[str] | None = None
) -> tuple[Shown, str] | None:
    """The line that an utterance points at; with ``fits`` only lines that match it are meant."""
    lines = [(one, line) for one in shown for line in one.lines if fits is None or fits.search(line)]
    best = _meant([line for _, line in lines], norms, about, alone=True)
    return None if best is None else lines[best]


def slide_piece(spoken: Spoken, shown: Shown, line: str) -> SensePiece:
    """A line of a slide as evidence beside an utterance; it was seen to stand when the utterance ended."""
    return SensePiece(
        "slide", spoken.id, line, spoken.start_ns, spoken.end_ns, shown.device, None,
        shown.error_ms, shown.sampling_ms, 0.0,
    )  # fmt: skip


def _meant(lines: Sequence[str], norms: Sequence[str], about: frozenset[str], *, alone: bool) -> int | None:
    """Place of the line that fits best: by its row, by words in common; ``alone``: the only one needs none."""
    if not lines:
        return None
    row = next((m for norm in norms[:2] if (m := _ROW.search(norm)) is not None), None)
    if row is not None:
        place = _PLACES[row.group(1)]
        return place % len(lines) if -len(lines) <= place < len(lines) else None
    values = []
    for line in lines:
        known = stems(re.sub(r"[^\w' ]", " ", line.lower()))
        value = sum(w * len(known & stems(n)) for w, n in zip(_SPEECH_WEIGHTS, norms, strict=False))
        values.append(value + len(known & about))
    best = max(values)
    if best == 0.0:
        return 0 if alone and len(lines) == 1 else None
    return values.index(best) if values.count(best) == 1 else None
