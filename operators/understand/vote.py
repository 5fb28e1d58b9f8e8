"""Decisions of which somebody only says that they are made: what was put to the vote, or said just before, is decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from operators.compose import sentence, statement_tokens, with_antecedent
from operators.language.text import Clause, Token, clause_of, stems
from operators.language.words import words_in
from operators.understand.hear import Heard
from operators.understand.state import MATTER, Piece, State, piece, piece_of
from operators.understand.wording import span_of

_VOTED: Final = words_in("""
    all in those favor favour motion motions proposal carried passes passed approved adopted accepted agreed agree settled
    decided final deal done unanimous unanimously vote votes voted hand hands aye ayes yes second seconded third
    nobody none no one against abstains abstentions objections object everybody everyone we i is are it that this so then
    the a any with and of by up raise please okay right
""")
_TURNS: Final = 6
"""Turns back in which the motion is that is voted on."""
_JUST_SAID: Final = 2
"""Turns back in which a plain statement is what somebody calls agreed."""
_LEANT: Final = words_in("it that this them those these")


_PROCEDURE: Final = re.compile(
    r"\b(?:call(?:ed|s|ing)? (?:this|it|us|the [a-z]+|this [a-z]+)(?: [a-z]+)? to order|to order at|"
    r"(?:move|motion|call|like) (?:that we |to |for )?adjourn(?:ment)?|(?:meeting|session) (?:is|stands) adjourned)\b"
)


def is_procedure(norm: str) -> bool:
    """Whether words open or close a meeting: whoever seconds them decides nothing that minutes list."""
    return _PROCEDURE.search(norm) is not None


def only_voted(tokens: Sequence[Token]) -> bool:
    """Whether words only say that something is decided or voted on, not what (*all in favour*, *motion carried*)."""
    words = [w for t in tokens for w in t.low.split()]
    return bool(words) and all(w in _VOTED for w in words)


def voted(heard: Heard, place: int, state: State) -> tuple[str, frozenset[str], list[Piece]] | None:
    """The words of what is decided by the clause at ``place``, their stems and the evidence; None where nothing was put."""
    found = _put(heard, place, state)
    if found is None:
        return None
    other, tokens, about = found
    text, known = sentence(tokens), stems(clause_of(tokens).norm)
    if about is not None:
        text, known = with_antecedent(text, about.tokens), known | about.stems
    if not text or not known:
        return None
    pieces = [piece(heard, 3.0)]
    if other.index != heard.index:
        pieces.insert(0, piece_of(other.spoken, other.index, MATTER, span_of(tokens)))
    return text, known, pieces


def _put(heard: Heard, place: int, state: State) -> tuple[Heard, tuple[Token, ...], Clause | None] | None:
    """The utterance of what was put and its words, and the clause before it where they say *it*."""
    said = [(heard, c) for c in reversed(heard.clauses[:place])]
    said += [(o, c) for o in reversed(state.recent[-_TURNS:]) if o is not heard for c in reversed(o.clauses)]
    said = [(o, c) for o, c in said if c.clause.stems and not only_voted(c.clause.tokens)]
    put = next((at for at, (_, c) in enumerate(said) if c.best("propose") or c.best("decide")), None)
    near = (
        at
        for at, (o, c) in enumerate(said)
        if heard.index - o.index <= _JUST_SAID and len(c.clause.stems) >= 2 and not c.clause.question_mark
    )
    at = next(near, None) if put is None else put
    if at is None:
        return None
    other, clause = said[at]
    hit = clause.best("propose")
    tokens = clause.clause.between(*hit.task) if hit is not None and hit.task is not None else ()
    tokens = tuple(tokens) or statement_tokens(clause.clause)
    if not any(t.low in _LEANT for t in tokens):
        return other, tokens, None
    return other, tokens, next((c.clause for _, c in said[at + 1 :] if len(c.clause.stems) >= 2), None)
