"""What an item's words say: those before them where they lean on something, and on what condition."""

from __future__ import annotations

import re
from dataclasses import dataclass

from operators.compose import says_little, sentence, task_tokens, with_antecedent
from operators.language.text import Token, clause_of, stems
from operators.language.words import words_in
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import LEANT, Piece, State, piece_of


def span_of(tokens: tuple[Token, ...]) -> tuple[int, int] | None:
    return (tokens[0].first, tokens[-1].last) if tokens else None


@dataclass(frozen=True, slots=True)
class Leant:
    """The utterance that an item's words needed, and the characters in it."""

    heard: Heard
    span: tuple[int, int] | None = None


def leant_on(heard: Heard, extra: Leant | None) -> tuple[Piece, ...]:
    """Evidence of another utterance that an item's words come from."""
    if extra is None or extra.heard is heard:
        return ()
    return (piece_of(extra.heard.spoken, extra.heard.index, LEANT, extra.span),)


def said_span(
    tokens: tuple[Token, ...], heard: Heard, place: int, extra: Leant | None
) -> tuple[int, int] | None:
    """Characters of an utterance that an item's words come from, those of the clauses beside it where it leans on them."""
    if extra is None or extra.heard is not heard:
        return span_of(tokens)
    beside = heard.clauses[max(0, place - 1) : place + 2]
    return beside[0].clause.tokens[0].first, beside[-1].clause.tokens[-1].last


_CONDITION = re.compile(
    r"(?:and |but |so |then |okay |well |maybe |@ )*"
    r"(?:if|unless|once|as soon as|provided|in case|when|as long as|after)\b"
    r"(?! (?:(?:that is |it is )?(?:okay|fine|all right|possible|necessary|need be|so)|i may|"
    r"you (?:like|want|do not mind|wish|agree|ask|insist)|(?:no one|you) minds?|not)\b)"
)
"""A condition before a promise, but for those that are only polite (*if you like*)."""


def condition_of(ahead: tuple[Token, ...]) -> tuple[Token, ...]:
    """The condition on which a task is taken on, in the words before it (*If the customer pays, I'll ...*)."""
    said = clause_of(ahead)
    if len(ahead) < 3 or _CONDITION.match(said.norm) is None:
        return ()
    first = next(n for n, t in enumerate(ahead) if t.low in _IF)
    return ahead[first:][:12]


_IF = words_in("if unless once as provided in when after")


def lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def worded(
    tokens: tuple[Token, ...], heard: Heard, place: int, state: State, ahead: tuple[Token, ...] = ()
) -> tuple[str, frozenset[str], Leant | None]:
    """Text of an item, its content stems, and the earlier utterance whose words it needed.

    Words that say little alone (*do that*, *ask them*) get the clause before them, as it was said.
    """
    text = sentence(tokens)
    known = stems(" ".join(t.low for t in tokens if not t.person))
    if not says_little(tokens):
        if (
            ahead
            and len(ahead) <= 6
            and ahead[0].low in _DETERMINERS
            and heard.clauses[place].signals & _NAMES_FIRST
        ):
            about = stems(" ".join(t.low for t in ahead if not t.person))
            whole = (with_antecedent(text, ahead), known | about, Leant(heard))
            return whole if about else (text, known, None)
        return text, known, None
    topic = stems(" ".join(t.low for t in ahead if not t.person))
    if topic:
        return with_antecedent(text, ahead), known | topic, Leant(heard)
    after = heard.clauses[place + 1] if place + 1 < len(heard.clauses) else None
    if after is not None and after.clause.stems and "assign" in heard.clauses[place].signals:
        return sentence(task_tokens(after.clause, None, after.dues)), known | after.clause.stems, Leant(heard)
    here = [(heard, c) for c in reversed(heard.clauses[max(0, place - 1) : place])]
    there = [(other, c) for other in reversed(state.recent[-3:]) for c in reversed(other.clauses)]
    for other, clause in [*here, *there]:
        enough = len(clause.clause.stems) >= 2 or (
            clause.clause.stems and other is not heard and clause.signals & {"ask", "need"}
        )
        if not enough:
            continue
        if clause.clause.stems <= known:
            break  # the same matter in other words: what was said before it is another
        words = _matter(clause, other.spoken.speaker == heard.spoken.speaker)
        if words:
            return (
                with_antecedent(text, words),
                known | stems(clause_of(words).norm),
                Leant(other, span_of(words)),
            )
    return text, known, None


_FIRST_PERSON = re.compile(r"(?:(?:and|so|then|okay|well|yes|but|now|oh|tomorrow|today) )*(?:i|we)\b")


_GIVES_WORK = frozenset(("commit", "promise", "assign", "request"))


_THINGS = words_in("the a an this these those")


_ENDS_THING = words_in("""
    to from for by on at in with and or but so if when because i we you he she it they that which who until till before
    after tomorrow today tonight is are was were
""")


def _matter(clause: HeardClause, same_speaker: bool) -> tuple[Token, ...]:
    """What a clause is about. Of a promise, a question and what somebody else does or did it is the thing alone:

    its *I* is not that of the item, and what was promised is an item of its own.
    """
    own = same_speaker and not clause.signals & _GIVES_WORK and not clause.clause.question_mark
    first_person = _FIRST_PERSON.match(clause.clause.norm) is not None
    if own or not (first_person or clause.clause.question_mark or clause.signals & _GIVES_WORK):
        return clause.clause.tokens
    timed = {t.first for d in clause.dues for t in clause.clause.between(d.first, d.last)}
    tokens = clause.clause.tokens
    for first, token in enumerate(tokens):
        if token.low not in _THINGS or first + 1 == len(tokens) or token.first in timed:
            continue
        last = first + 1
        while last < len(tokens) and tokens[last].low not in _ENDS_THING and tokens[last].first not in timed:
            last += 1
            if tokens[last - 1].comma:
                break
        if stems(clause_of(tokens[first:last]).norm):
            return tokens[first:last]
    return ()


_DETERMINERS = words_in("the our my your this that these those his her their")


_NAMES_FIRST = frozenset(("need", "group"))
"""Signals before which speakers often name the matter first (*the old chairs, somebody must ...*)."""
