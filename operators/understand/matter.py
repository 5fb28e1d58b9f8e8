"""What a decision is about: the proposal without its reason, the topic before it, the matter it closes."""

from __future__ import annotations

import re

from operators.language.text import Clause, Token, clause_of, stems
from operators.language.words import words_in
from operators.understand.hear import Heard
from operators.understand.state import State

GIVES_REASON = ("because ", "if ", "when ", "since ", "as long as ", "unless ")


FINAL = stems("decided agreed settled fixed final passed carried deal decision")
"""Words that close a matter and do not name it."""
_PROPOSAL = re.compile(
    r" (?=(?:so )?(?:i (?:would )?(?:suggest|propose)\b|i (?:think|say|believe|would say)(?: that)? we\b|"
    r"let us\b|(?:shall|why do not) we\b|my (?:suggestion|proposal) (?:is|would be)\b))"
)


def said_next(heard: Heard, place: int) -> bool:
    """Whether what a closing word is about is put into words right after it."""
    later = heard.clauses[place + 1 : place + 3]
    return any(c.signals & {"decide", "propose"} and len(c.clause.stems - FINAL) >= 2 for c in later)


def proposed(clause: Clause) -> tuple[tuple[Token, ...], Clause]:
    """The topic and the clause of a proposal that follows its reason (*few use it, I think we should stop*)."""
    found = _PROPOSAL.search(clause.norm)
    if found is None or clause.norm.startswith(GIVES_REASON):
        return (), clause
    cut = clause.token_at(found.end())
    before = clause.tokens[:cut]
    topic = names_topic(before)
    if not topic and len(before) < 3:
        return (), clause
    return topic, clause_of(clause.tokens[cut:], clause.question_mark)


_OPEN_TOPIC = words_in("then so okay now and right well next about for as good")


def names_topic(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Words that only name a matter (*then the launch date*)."""
    while tokens and tokens[0].low in _OPEN_TOPIC:
        tokens = tokens[1:]
    short = 2 <= len(tokens) <= 4 and tokens[0].low in ("the", "our", "my", "your")
    return tokens if short and not any(t.low in _SAYS for t in tokens[1:]) else ()


_SAYS = words_in(
    "is are was were has have will can does do went goes looks seems works needs who that which it"
)


def just_said(heard: Heard, place: int, state: State) -> tuple[Heard | None, Clause | None]:
    """The clause right before one that says little itself."""
    for other, clauses in [
        (heard, heard.clauses[:place]),
        *((o, o.clauses) for o in reversed(state.recent[-2:])),
    ]:
        for clause in reversed(clauses):
            if len(clause.clause.stems) >= 2:
                return other, clause.clause
    return None, None


def matter_of(known: frozenset[str], heard: Heard, state: State) -> tuple[Heard | None, Clause | None]:
    """The latest earlier clause that brought up what a short decision is about."""
    for other in reversed(state.recent[-10:]):
        for clause in reversed(other.clauses):
            shared = clause.clause.stems & known
            if (
                shared
                and len(clause.clause.stems) >= 2
                and (clause.signals & {"ask", "propose"} or clause.clause.question_mark)
            ):
                return other, clause.clause
    for other in reversed(state.recent[-8:]):
        for clause in reversed(other.clauses):
            if known & clause.clause.stems and len(clause.clause.stems) >= 3:
                return other, clause.clause
    return None, None
