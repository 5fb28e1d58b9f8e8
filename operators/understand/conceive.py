"""Items that the model starts: what they say, and who and when, from the words of the utterance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from models.minutes.scores import UtteranceScores
from operators.compose import question_text, says_little, statement_tokens, task_tokens
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.birth import GUARDS, MOCKS, mocks
from operators.understand.density import SPARSE, sparse
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import LEANT, Claim, Draft, Piece, State, piece, piece_of
from operators.understand.types import Family
from operators.understand.vote import is_procedure, only_voted, voted
from operators.understand.wording import leant_on, said_span, worded

_FIRST = words_in("i me my i'll")
_SECOND = words_in("you your")
_PLURAL = words_in("we us our")
_ASKING = re.compile(
    r"^(?:and |so |but |then |okay )*(?:who|whose|what|when|where|why|which|how|whether|do|does|did|is|are|was|were|will|"
    r"would|can|could|should|shall|has|have)\b|\b(?:whether|if|who|when|where) (?:we|it|they|you|he|she|the|that)\b"
)
"""A question by its words, though nothing marks it as one: a statement is never written down as a question."""
_ONCE_MEANT = re.compile(r"\b(?:i|we) (?:(?:was|were) (?:going|about|meaning) to|wanted that|had wanted)\b")
"""What somebody meant to do at some time: nobody says that it still holds."""
_UNABLE = re.compile(
    r"(?:(?:no|oh|well|sorry|but|and|so|then) )*(?:i (?:can|could|will|would) not(?! wait| forget)\b|(?:it is )?not me\b)"
)
_OF_ANOTHER = re.compile(
    r"(?:(?:and|so|then|but|because|well|yes|no) )*(?:he|she|they|@|~) (?:will|does|is going to|has to|is doing|can)\b"
    r"(?!.*\b(?:i (?:will|can|could|shall|am|had better|have to)|me|my)\b)"
)
"""What somebody else does, whatever the speaker says of themselves beside it (*She'll open up, I've asked her*)."""
_MEANS = 0.35
"""How likely the owner pointer must hold the speaker for *I* to mean that the speaker does it."""


def conceived(heard: Heard, family: Family, said: UtteranceScores, state: State) -> Draft | None:
    """An item out of one utterance in which no rule saw one; None where it says nothing, or takes it back itself."""
    place = _best_clause(heard, family, family == "decision" and sparse(state) < SPARSE)
    if place is None:
        return None
    if family != "question" and any(c.retracts for c in heard.clauses[place:]):
        return None
    if family != "question" and any("joke" in c.signals for c in heard.clauses[place:]):
        return None
    clause = heard.clauses[place]
    decided_in: list[Piece] = []
    if family != "question" and _ONCE_MEANT.search(clause.clause.norm):
        return None
    if family == "question":
        if not (clause.clause.question_mark or "ask" in clause.signals or _ASKING.search(clause.clause.norm)):
            return None
        text, known, extra = question_text(clause.clause, None), clause.clause.stems, None
        tokens = clause.clause.tokens
    elif family == "decision" and is_procedure(clause.clause.norm):
        return None
    elif family == "decision" and only_voted(clause.clause.tokens):
        put = voted(heard, place, state)
        if put is None:
            return None
        text, known, decided_in = put
        tokens, extra = clause.clause.tokens, None
    elif family == "decision":
        tokens = statement_tokens(clause.clause)
        text, known, extra = worded(tokens, heard, place, state, work=False)
    else:
        tokens = task_tokens(clause.clause, None, clause.dues)
        text, known, extra = worded(tokens, heard, place, state)
    if not known or not text or not tokens:
        return None
    reasons = ("model", MOCKS) if family != "question" and mocks(heard, state) else ("model",)
    claim, mode = _claim(heard, place, said, state) if family == "action" else (Claim("none"), "")
    own = piece_of(heard.spoken, heard.index, 3.0, said_span(tokens, heard, place, extra))
    evidence = decided_in or [*leant_on(heard, extra), own]
    return Draft(
        f"{family}:{heard.spoken.id}:m", family, text, 0.0, heard.spoken.speaker, claim,
        said_due(heard, place) if family == "action" else None,
        tuple(evidence), known | stems(text.lower()), heard.index, heard.index, reasons,
        "open" if family == "question" else mode, heard.called, by_model=True,
    )  # fmt: skip


def reworded(draft: Draft, heard: Heard, said: UtteranceScores, state: State) -> Draft:
    """A decision that only the model found, in the words of the surest line of it, or right beside it.

    In sparse talk such a decision has words of all the talk around it anyway.
    """
    index, own = heard.index, {p.index for p in draft.evidence if p.weight >= 1.0}
    beside = {i + step for i in own for step in (-1, 0, 1)}
    if not draft.by_model or draft.withdrawn or index not in beside or index == draft.first_index:
        return draft
    known = [j.decision for i, j in draft.judged if i != index]
    known += [a.likely for a in draft.around if a.piece.index in beside and a.piece.index != index]
    if said.decision <= max(known, default=0.0) or sparse(state) >= SPARSE:
        return draft
    place = _best_clause(heard, "decision", settles=True)
    if place is None or not _says_it(heard.clauses[place]):
        return draft
    fresh = conceived(heard, "decision", said, state)
    if fresh is None:
        return draft
    weight = max((p.weight for p in draft.evidence if p.index == index), default=LEANT)
    evidence = (*(p for p in draft.evidence if p.index != index), piece(heard, weight))
    return replace(
        draft, text=fresh.text, stems=draft.stems | fresh.stems, evidence=evidence, worded_in=index
    )


def _says_it(clause: HeardClause) -> bool:
    """Whether a clause may say what was decided, and does so alone."""
    enough = len(clause.clause.stems) >= 2 and not says_little(clause.clause.tokens)
    return enough and not clause.clause.question_mark and _told_beside(clause) <= 0


def _best_clause(heard: Heard, family: Family, settles: bool = False) -> int | None:
    """The clause that says most; of questions the first one asked, where one ``settles`` a matter rather a late one."""
    best: tuple[float, int] | None = None
    for place, clause in enumerate(heard.clauses):
        value = float(min(6, len(clause.clause.stems))) + (0.3 if settles else -0.01) * place
        value -= 2.0 * says_little(clause.clause.tokens)
        value += _fits(clause, family) - (_told_beside(clause) if settles else 0.0)
        if best is None or value > best[0]:
            best = (value, place)
    return None if best is None else best[1]


def _told_beside(clause: HeardClause) -> float:
    """What speaks against a clause as the one that says what was decided: what was, a reason, one's own affair."""
    signals, norm = clause.signals, clause.clause.norm
    value = 1.5 * bool(signals & GUARDS.keys()) - 1.0 * bool(_CONCLUDES.match(norm))
    if signals & _DECIDING:
        return value
    return value + 1.5 * bool(signals & _WORK) + 1.5 * bool(_ASIDE.match(norm)) + bool(_TELLS.search(norm))


def _fits(clause: HeardClause, family: Family) -> float:
    if family == "question":
        return 4.0 * (clause.clause.question_mark or "ask" in clause.signals)
    wanted = _DECIDING if family == "decision" else _WORK
    value = 2.0 * bool(clause.signals & wanted) - 1.5 * clause.clause.question_mark
    return value + (1.0 if family == "action" and clause.dues else 0.0)


_DECIDING: Final = frozenset(("decide", "propose", "settle"))
_CONCLUDES = re.compile(
    r"(?:(?:and|but|okay|right|well|good|fine|yes|no) )*(?:so|then|good|fine|right)\b|.*\b(?:then|it is)$"
)
_ASIDE = re.compile(
    r"(?:(?:and|but|so|well|oh|yes|no|then) )*(?:i\b(?! (?:would )?(?:say|suggest|propose|think|vote))|because|if|when|"
    r"since|unless|but|it is (?:because|to|like|for)|(?:@ )?(?:(?:can|could|would|will) )?you)\b"
)
"""What the speaker has to do with it, on what condition, or why."""
_TELLS = re.compile(r"\b(?:was|were|had|did|used to|told|said|went|made|got)\b")
_WORK = {"commit", "promise", "assign", "request", "need", "group", "offer", "handover"}


def _claim(heard: Heard, place: int, said: UtteranceScores, state: State) -> tuple[Claim, str]:
    """Who the words give the work to; where they allow several readings, the model's pointer chooses."""
    words = {w for c in heard.clauses for w in c.clause.norm.split()}
    speaker = heard.spoken.speaker
    owner = dict(said.owner)
    named = [m for m in heard.people.values() if m.by != "outside"]
    people: Sequence[str] = tuple(dict.fromkeys(n for m in named for n in m.names if len(m.names) == 1))
    if len(heard.called) == 1 and words & _SECOND:
        return Claim("you", heard.called), "request"
    others = [p for p in people if p != state.roster.of_speaker(speaker) and p not in heard.called]
    if len(others) == 1 and owner.get(speaker or "", 0.0) < 0.5:
        mention = next(m for m in named if m.names == (others[0],))
        return Claim("named", (others[0],), mention.said), ""
    norms = [c.clause.norm for c in heard.clauses]
    unable = any(_UNABLE.match(norm) for norm in norms) or _OF_ANOTHER.match(norms[place])
    if unable:
        return Claim("none"), ""
    if words & _FIRST and speaker and owner.get(speaker, 0.0) >= _MEANS:
        return Claim("self", (speaker,)), ""
    if words & _SECOND:
        return Claim("you", heard.called if len(heard.called) == 1 else ()), "request"
    return (Claim("group"), "") if words & _PLURAL else (Claim("none"), "")
