"""Days said of tasks: which tasks still stand, and a day that the owner says anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from operators.language.days import NamedDay, same_day
from operators.language.text import stems
from operators.understand.due import spoken_words
from operators.understand.hear import Heard
from operators.understand.merge import LIGHT, TIME_STEMS, VERBS, own_task
from operators.understand.state import Draft, Due, State, owners_of, piece
from operators.understand.topic import asks_else, speaks_of_else

DATE_CHANGED: Final = "date changed"
DATE_OPEN: Final = "date given up"
"""The day that was said will not do, and no other one was named yet."""
NEAR: Final = 3
OPENS: Final = (
    r"^(?:(?:no|oh|well|so|then|right|okay|yes|hm|and|but|sorry|fine|good|sure|actually|rather|better|make it|"
    r"make that|say|shall we say|"
    r"could we say|can we say|let us say|more like|perhaps|maybe|even|@) )*"
)
_NOT_NOW: Final = frozenset(("past", "hypothetical", "reported", "joke", "unknown"))
_IF: Final = re.compile(r" (?:if|when|unless|because|before|after|as long as)\b")
_VERB: Final = re.compile(
    r"\bi (?:will|can|could|would|shall|am going to)?(?: just| then| only)* ?"
    r"(?:(?P<light>do|give|bring|get|finish|manage|make|start|send)\b|(?P<own>[\w'-]+))"
)
_ANEW_REACH: Final = 80


@dataclass(frozen=True, slots=True)
class SaidDay:
    """A day named in an utterance, with the clause that it stands in."""

    place: int
    day: NamedDay


def stands(draft: Draft) -> bool:
    """Whether a task is one that is meant and not yet off."""
    if draft.family != "action" or draft.withdrawn or draft.mode in ("refused", "offer"):
        return False
    return draft.likely_work


def with_due(draft: Draft, due: Due | None) -> Draft:
    """The task with another day, or with none."""
    reasons = tuple(r for r in draft.reasons if r != DATE_OPEN) if due is not None else draft.reasons
    return replace(draft, due=due, reasons=reasons)


def due_of(heard: Heard, chosen: SaidDay) -> Due:
    """A day with the words in which it was said."""
    clause, phrase = heard.clauses[chosen.place].clause, chosen.day.phrase
    tokens = clause.between(phrase.first, phrase.last)
    return Due(phrase, spoken_words(heard.spoken.text, tokens) if tokens else phrase.words, heard.spoken.id)


def said_anew(heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay]) -> bool:
    """The owner says once more what will be done, in words of the task alone, and another day (*I can do the track Thursday*)."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    for d in days:
        clause = heard.clauses[d.place]
        others = sum(other.place == d.place for other in days)
        if d.day.dropped or others > 1 or clause.clause.question_mark or clause.signals & _NOT_NOW:
            continue
        own = stems(_IF.split(clause.clause.norm)[0]) - TIME_STEMS - LIGHT
        if not own - VERBS or not clause.signals & {"commit", "promise", "offer"}:
            continue
        verb = _VERB.search(clause.clause.norm)
        if verb is None:
            continue
        fitting = [
            place
            for place, draft in enumerate(drafts)
            if stands(draft)
            and draft.due is not None
            and me in owners_of(draft, state)
            and 0 < heard.index - draft.last_index <= _ANEW_REACH
            and own <= draft.stems
            and not own_task(clause, draft)
            and (verb["light"] or stems(verb["own"]) & draft.stems)
        ]
        if not fitting:
            continue
        draft, due = drafts[fitting[-1]], due_of(heard, d)
        assert draft.due is not None
        if same_day(draft.due.phrase, due.phrase, state.context.date):
            continue
        drafts[fitting[-1]] = with_due(draft.grown(0.05, DATE_CHANGED, piece(heard, 2.0)), due)
        return True
    return False


def _leads_away(before: Heard, draft: Draft) -> bool:
    """Whether somebody proposed something else just before (*We could go to the cinema*)."""
    return any(
        speaks_of_else(c, draft) and c.signals & {"propose", "offer", "group", "decide"}
        for c in before.clauses
    )


def day_then(heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay]) -> bool:
    """Whoever has a task answers with another day and goes on (*Friday then, at six, when they come on*)."""
    before = state.recent[-1] if state.recent else None
    first = days[0] if days else None
    if first is None or before is None or first.place > 1 or first.day.dropped:
        return False
    clause = heard.clauses[first.place]
    norm, phrase = clause.clause.norm, first.day.phrase
    opens = re.match(OPENS + "$", norm[: phrase.first]) is not None and norm[phrase.last :].startswith(
        " then"
    )
    if not opens or clause.clause.question_mark or clause.signals & _NOT_NOW:
        return False
    me = state.roster.of_speaker(heard.spoken.speaker)
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if not stands(draft) or me not in owners_of(draft, state) or draft.due is None:
            continue
        if (
            not 0 < heard.index - draft.last_index <= NEAR
            or asks_else(before, draft)
            or _leads_away(before, draft)
        ):
            continue
        due = due_of(heard, first)
        if same_day(draft.due.phrase, due.phrase, state.context.date):
            return False
        drafts[place] = with_due(draft.grown(0.05, DATE_CHANGED, piece(heard, 2.0)), due)
        return True
    return False
