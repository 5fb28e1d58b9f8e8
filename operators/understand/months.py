"""Days said without their month (*on the fifth*): which month is meant, by what was said of months just before."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from operators.language.dates import DuePhrase, day_of_month, month_in, resolve, time_phrases
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import TIME_STEMS
from operators.understand.state import LEANT, Draft, Due, State, piece

_REACH: Final = 6
"""Utterances for which a month that was named stays what is talked about."""
_TOLD_REACH: Final = 3
_MONTHS: Final = "|".join(m.lower() for m in calendar.month_name[1:])
_TALKED_OF: Final = re.compile(
    rf"\b(?:in|of|early|late|mid|during|until|till|by|before|after|next|this|whole|all) (?P<month>{_MONTHS})\b"
)
_TOLD: Final = re.compile(
    rf"^(?:(?:yes|no|so|and|but|okay|sorry|right|well|that is|you mean|i mean|@) )*(?:(?:of|in) )?(?P<month>{_MONTHS})"
    r"(?=$| (?:good|right|then|of course|yes|okay|fine|obviously|though|sorry|not|i mean|@)\b)"
)
"""A month said alone, of the day that was named just before (*Of April, good.*)."""
_OWN_AFFAIR: Final = re.compile(r"\b(?:birthday|born|holidays?|anniversary|on leave|away|abroad)\b")
"""A month of somebody's own affairs says nothing of a task."""
_OVER: Final = frozenset(("past", "reported", "hypothetical", "joke"))


@dataclass(frozen=True, slots=True)
class _Named:
    """A month that was named, with its day where it had one."""

    heard: Heard
    month: int
    day: int | None
    date: dt.date | None


def with_months(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Give days that were said in this utterance without their month the one that is meant, or leave them open."""
    _told(heard, drafts, state)
    for place, draft in enumerate(drafts):
        drafts[place] = with_month(draft, heard, state)


def with_month(draft: Draft, heard: Heard, state: State) -> Draft:
    """The draft with the month of a day that this utterance named for it."""
    due = draft.due
    today = state.context.date
    if due is None or today is None or due.said_in != heard.spoken.id or not _bare(due.phrase):
        return draft
    day = day_of_month(due.phrase.words)
    named = list(_named(heard, state, today))
    same = next((n for n in named if n.day == day), None)
    if same is not None and not _still_meant(same, named, draft, heard):
        return replace(draft, due=replace(due, phrase=replace(due.phrase, kind="vague")))
    if same is not None:
        if same.heard.index == heard.index:
            return replace(draft, due=_in_month(due, same.month))
        return replace(
            draft.grown(0.0, "month said before", piece(same.heard, LEANT)), due=_in_month(due, same.month)
        )
    others = {n.month for n in named if heard.index - n.heard.index <= _REACH}
    next_one = resolve(due.phrase, today)
    if not others or next_one is None or others == {next_one.month} or _only_before(due.phrase, named, today):
        return draft
    return replace(draft, due=replace(due, phrase=replace(due.phrase, kind="vague")))


def _still_meant(same: _Named, named: Sequence[_Named], draft: Draft, heard: Heard) -> bool:
    """Whether a day with its month is near enough to be meant again, or was said of what the draft is about."""
    if heard.index - same.heard.index <= _REACH:
        return True
    known = frozenset().union(*(c.clause.stems for c in same.heard.clauses)) & draft.stems
    since = {n.month for n in named if n.heard.index > same.heard.index}
    return bool(known - TIME_STEMS) or since <= {same.month}


def _bare(phrase: DuePhrase) -> bool:
    return phrase.kind in ("ordinal", "day_date") and month_in(phrase.words) is None


def _in_month(due: Due, month: int) -> Due:
    kind = "date" if due.phrase.kind in ("ordinal", "vague") else due.phrase.kind
    words = f"{due.phrase.words} of {calendar.month_name[month].lower()}"
    return replace(due, phrase=replace(due.phrase, kind=kind, words=words))


def _named(heard: Heard, state: State, today: dt.date) -> Iterator[_Named]:
    """Months named in this utterance and those before it, the latest first."""
    for said in (heard, *(h for h in reversed(state.recent) if h.index < heard.index)):
        for clause in reversed(said.clauses):
            if not clause.signals & _OVER and not _OWN_AFFAIR.search(clause.clause.norm):
                yield from _named_in(said, clause, today)


def _named_in(said: Heard, clause: HeardClause, today: dt.date) -> Iterator[_Named]:
    norm = clause.clause.norm
    for phrase in reversed(list(time_phrases(norm))):
        month = month_in(phrase.words)
        if month is None or phrase.kind not in ("date", "day_date"):
            continue
        date = resolve(replace(phrase, kind="date"), today)
        if date is not None:  # one that is over lately says nothing of days to come
            yield _Named(said, month, day_of_month(phrase.words), date)
    days = [(p.first, p.last) for p in time_phrases(norm) if p.kind in ("date", "day_date")]
    for match in _TALKED_OF.finditer(norm):
        month = month_in(match["month"])
        if month is not None and not any(a < match.end() and match.start() < b for a, b in days):
            yield _Named(said, month, None, None)


def _only_before(phrase: DuePhrase, named: Sequence[_Named], today: dt.date) -> bool:
    """Whether a deadline falls once between today and the day that was named with its month.

    *The fair is on the fourth of April.* *Then I'll print the flyers by the twenty-eighth.*
    """
    if phrase.prep == "on" or any(n.date is None for n in named):
        return False
    last = max((n.date for n in named if n.date is not None), default=today)
    first = resolve(phrase, today)
    return first is not None and first < last <= first + dt.timedelta(days=28)


def _told(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Somebody says which month a day was of that was named just before."""
    if not heard.clauses or heard.clauses[0].clause.question_mark:
        return
    told = _TOLD.match(heard.clauses[0].clause.norm)
    month = month_in(told["month"]) if told is not None else None
    before = {h.spoken.id for h in state.recent[-_TOLD_REACH:]}
    if month is None or not before:
        return
    days = [
        h.spoken.id
        for h in state.recent
        for c in h.clauses
        for p in time_phrases(c.clause.norm)
        if day_of_month(p.words)
    ]
    for place in range(len(drafts) - 1, -1, -1):
        draft, due = drafts[place], drafts[place].due
        if due is not None and days[-1:] != [due.said_in]:
            continue  # another day was named since
        if (
            due is None
            or due.said_in not in before
            or draft.withdrawn
            or month_in(due.phrase.words) is not None
        ):
            continue
        if due.phrase.kind in ("ordinal", "day_date", "vague") and day_of_month(due.phrase.words) is not None:
            drafts[place] = replace(
                draft.grown(0.05, "month said after", piece(heard, 2.0)), due=_in_month(due, month)
            )
            return
