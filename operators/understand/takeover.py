"""Somebody else takes a task over, or is named instead: the last word on who does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from operators.language.people import Mention
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import Claim, Draft, State, later_due, piece

TAKEN_OVER: Final = "taken over"
_REACH: Final = 2
_IT: Final = r"(?:it|that|this|them|those|that one|this one)"
_PUT_RIGHT: Final = r"(?:no|sorry|wait|actually|rather|or|not)"
_OPEN: Final = rf"(?:(?:{_PUT_RIGHT}|right|okay|well|fine|oh|yes|then|so|but|and|hm|ah) )*"
_MINE: Final = re.compile(
    rf"(?:^|\bi am .{{1,30}} ){_OPEN}"
    rf"(?:i (?:will|can|could|would rather|would better)(?: just| gladly| happily)? (?:do|take|handle) {_IT}"
    rf"|(?:please )?let me (?:do|take|handle) {_IT}|leave {_IT} (?:to|with) me)(?: (?:then|instead|myself|over|off you|on))*"
    r"(?=$| (?:i|we|because|it|since|if|that|by|on|tomorrow|today|tonight|@)\b)"
)
_THEIRS: Final = re.compile(
    rf"^(?P<open>{_OPEN})(?:(?P<who>[@~]) (?:will|can|does|do|takes|should|shall|is going to|has to|had better)"
    rf"(?: (?:do|take|handle))?(?: {_IT})?"
    rf"|make (?:it|that) (?P<whom>[@~])|(?:can|could|would) (?P<whose>[@~]) (?:do|take|handle) {_IT})(?: instead| then| please)*$"
)


def take_over(heard: Heard, drafts: list[Draft], state: State) -> bool:
    """Give the task that was spoken of just before to whoever now has it; true if there was one."""
    done = False
    for place, clause in enumerate(heard.clauses):
        taker = _taker(clause, place, heard)
        if taker is None:
            continue
        claim, put_right = taker
        at = next(_given(heard, drafts, claim, state, here=place > 0 and put_right), None)
        if at is None:
            continue
        due = later_due(drafts[at].due, said_due(heard, place)) if clause.dues else drafts[at].due
        changed = drafts[at].grown(0.1, TAKEN_OVER, piece(heard, 2.0), claim=claim, due=due, mode="")
        own = claim.kind == "self"
        drafts[at] = replace(changed, speaker=heard.spoken.speaker if own else changed.speaker, accepted=own)
        done = True
    return done


def _taker(clause: HeardClause, place: int, heard: Heard) -> tuple[Claim, bool] | None:
    """Who takes it by the words of a clause, and whether they say that what was said before was wrong."""
    norm = clause.clause.norm
    if clause.signals & {"past", "hypothetical", "reported", "joke"}:
        return None
    if heard.spoken.speaker and _MINE.search(norm) and not clause.clause.question_mark:
        return Claim("self", (heard.spoken.speaker,)), False
    named = _THEIRS.match(norm)
    if named is None:
        return None
    group = next(g for g in ("who", "whom", "whose") if named[g] is not None)
    token = clause.clause.tokens[clause.clause.token_at(named.start(group))]
    mention = heard.people.get(token.first)
    right = re.search(rf"\b{_PUT_RIGHT}\b", named["open"]) is not None or group != "who"
    if mention is None or not (right or named["open"] == "") or (group == "who" and not right):
        return None
    return _claim(mention), right


def _claim(mention: Mention) -> Claim:
    if mention.by == "outside":
        return Claim("named", (), mention.said, True)
    return Claim("named", mention.names, mention.said)


def _given(heard: Heard, drafts: list[Draft], claim: Claim, state: State, *, here: bool) -> Iterator[int]:
    """Places of tasks that somebody else was given just before (``here``: in this very utterance), the latest first."""
    mine = {state.roster.of_speaker(p) for p in claim.people} or {claim.said}
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        age = heard.index - draft.last_index
        near = age == 0 if here else 0 < age <= _REACH
        if draft.family != "action" or draft.withdrawn or draft.mode == "refused" or not near:
            continue
        if draft.claim.kind not in ("self", "named", "you") or draft.support < 0.3:
            continue
        theirs = {state.roster.of_speaker(p) for p in draft.claim.people} or {draft.claim.said}
        if theirs != {""} and not theirs & mine:
            yield at
        return
