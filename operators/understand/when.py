"""When a task is due: every day that is named in its evidence, with the figures by which the likeliest is chosen.

Rules name the day that the words put to a task. In talk that they were not read on they often take none, or the one that a
later line put right; how likely each of the days is depends on who says it, when and how, and is learned from held-out
meetings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Final

from operators.language.dates import resolve, time_phrases
from operators.understand.birth import ONE_OF_SEVERAL
from operators.understand.due import spoken_words
from operators.understand.hear import Heard
from operators.understand.state import Draft, Due, Judged, Named

_MOST: Final = 6
"""Days of one utterance that are looked at."""
_REACH: Final = 8
_PLAIN: Final = 0.8
"""Support of the rules from which words are plain."""
_KINDS: Final = (
    "day", "date", "ordinal", "day_date", "relative", "day_after", "after", "vague", "clock", "after_week",
)  # fmt: skip
_PREPOSITIONS: Final = ("by", "before", "on", "till", "until", "at", "in", "for", "from", None)
_REASONS: Final = (
    "date said again", "date changed", "due date said", "month said before", "month said after", ONE_OF_SEVERAL,
)  # fmt: skip
FIGURES: Final = (
    "by_words", "no_words", "stated", "stated_no_words", "stated_against_words", "action", "withdrawn", "main", "after",
    "before", "latest", "earliest", "many", "times", "unsaid", "meant", "asked", "only_asked", "ahead", "today", "past",
    "weight", "by_model", "support", "deadline", "latest_no_words", "after_no_words", "main_no_words", "meant_no_words",
    "plainly", "alone_by_words",
    *(f"kind_{kind}" for kind in _KINDS),
    *(f"after_{word or 'nothing'}" for word in _PREPOSITIONS),
    *(f"by_words_{name}" for name in _REASONS),
    *(f"against_words_{name}" for name in _REASONS),
)  # fmt: skip
"""Names of the figures, in order."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day on which a task may be due, and where it was said; ``figures`` in the order of ``FIGURES``."""

    day: dt.date
    due: Due
    figures: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    """A day as one utterance of a draft's evidence names it."""

    index: int
    named: Named
    judged: Judged


def named_in(heard: Heard) -> tuple[Named, ...]:
    """All time phrases of an utterance, whatever is said of them."""
    out = []
    for clause in heard.clauses:
        meant = {(phrase.first, phrase.last) for phrase in clause.dues}
        for phrase in time_phrases(clause.clause.norm):
            tokens = clause.clause.between(phrase.first, phrase.last)
            words = spoken_words(heard.spoken.text, tokens) if tokens else phrase.words
            due = Due(phrase, words, heard.spoken.id)
            out.append(Named(due, (phrase.first, phrase.last) in meant, clause.clause.question_mark))
    return tuple(out[:_MOST])


def days(draft: Draft, today: dt.date | None) -> tuple[Day, ...]:
    """All days on which a task may be due, in the order in which they were first named; the rules' own first.

    Args:
        draft: an action.
        today: when the meeting is held; without it no words mean a day.
    """
    if today is None:
        return ()
    said: dict[dt.date, list[_Said]] = {}
    own = resolve(draft.due.phrase, today) if draft.due is not None else None
    if own is not None:
        said[own] = []
    for index, judged in draft.judged:
        for named in judged.named:
            day = resolve(named.due.phrase, today)
            if day is not None:
                said.setdefault(day, []).append(_Said(index, named, judged))
    if not said:
        return ()
    main = max(draft.evidence, key=lambda p: (p.weight, -p.index)).index
    weights = {p.index: p.weight for p in draft.evidence}
    order = sorted(said, key=lambda day: max((s.index for s in said[day]), default=-1))
    out = []
    for day, mine in said.items():
        by_words = draft.due if day == own else None
        due = by_words or max(mine, key=lambda s: (s.judged.due, s.index)).named.due
        place = (day == order[0], day == order[-1], len(order))
        figures = _figures(draft, day, today, mine, own, main, weights, place)
        out.append(Day(day, due, figures))
    return tuple(out)


def _plainly(draft: Draft) -> bool:
    """Whether somebody takes work on in plain words and says until when in the same breath: 87 of 88 such days are right."""
    return draft.claim.kind == "self" and draft.support >= _PLAIN and "due date said" in draft.reasons


def _logit(p: float) -> float:
    p = min(0.99, max(0.01, p))
    return log(p / (1 - p))


def _figures(
    draft: Draft,
    day: dt.date,
    today: dt.date,
    said: Sequence[_Said],
    own: dt.date | None,
    main: int,
    weights: dict[int, float],
    place: tuple[bool, bool, int],
) -> tuple[float, ...]:
    by_words, silent = day == own, own is None
    earliest, latest, many = place
    stated = _logit(max((s.judged.due for s in said), default=0.0))
    after = max((min(_REACH, s.index - main) for s in said if s.index > main), default=0)
    before = max((min(_REACH, main - s.index) for s in said if s.index < main), default=0)
    here, meant = any(s.index == main for s in said), any(s.named.meant for s in said)
    last = max(said, key=lambda s: s.index, default=None)
    kinds = {s.named.due.phrase.kind for s in said}
    prepositions = {s.named.due.phrase.prep for s in said}
    reasons = [reason in draft.reasons for reason in _REASONS]
    told = (
        by_words,
        silent,
        stated,
        stated * silent,
        stated * (not silent and not by_words),
        _logit(max((s.judged.action for s in said), default=0.0)),
        _logit(max((s.judged.withdrawn for s in said), default=0.0)),
        here,
        after,
        before,
        latest,
        earliest,
        min(3, many - 1),
        min(3, len(said)),
        not said,
        meant,
        last is not None and last.named.asked,
        bool(said) and all(s.named.asked for s in said),
        log1p(max(0, (day - today).days)),
        day == today,
        day < today,
        max((weights.get(s.index, 0.0) for s in said), default=0.0),
        draft.by_model,
        by_words * min(1.5, max(-0.5, draft.support)),
        any(s.named.due.phrase.sets_deadline for s in said),
        latest and silent,
        after * silent,
        here and silent,
        meant and silent,
        by_words and here and _plainly(draft),
        by_words and many == 1,
        *(kind in kinds for kind in _KINDS),
        *(word in prepositions for word in _PREPOSITIONS),
        *(by_words and x for x in reasons),
        *(not by_words and x for x in reasons),
    )
    return tuple(float(x) for x in told)
