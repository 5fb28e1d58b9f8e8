"""What the rules saw in one utterance, as figures for the minutes model: fixed names, fixed order, no look-ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from operators.language.rules import SIGNALS
from operators.understand.birth import GUARDS, guard_weight, leads
from operators.understand.hear import Heard
from operators.understand.state import Draft, State

_CLAIMS: Final = ("self", "you", "named", "group", "none")
_MODES: Final = ("offer", "request", "propose")
_SIGNALS: Final = tuple(sorted(SIGNALS))
_PENDING_REACH: Final = 4
_LONG_WORDS: Final = 40
_MANY_STEMS: Final = 12

CUES: Final = (
    "action", "decision", "question",
    *(f"claim_{kind}" for kind in _CLAIMS), "claim_outside",
    *(f"mode_{mode}" for mode in _MODES),
    *(f"signal_{name}" for name in _SIGNALS),
    "guarded", "due", "due_deadline", "due_vague", "number", "question_mark", "called", "person", "outside",
    "first_person", "second_person", "plural_person", "leads", "same_speaker",
    "accepts", "takes_back", "moves_date", "restates", "supported", "opposed", "shares_item",
    "pending_offer", "pending_request", "pending_proposal", "pending_question", "words", "content",
)  # fmt: skip
"""Names of the figures. Another tuple means other weights: a model says for which it was made."""

Figures = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading one utterance brought about in the rules."""

    heard: Heard
    before: State
    """The meeting without this utterance; its speaker is known already."""
    born: tuple[Draft, ...] = ()
    accepted: bool = False
    taken_back: bool = False
    moved: bool = False
    restated: bool = False
    gained: float = 0.0
    """Support that earlier drafts won by this utterance."""
    lost: float = 0.0


def cues_of(reading: Reading) -> Figures:
    """Figures of one utterance in the order of ``CUES``; each lies between 0 and 1."""
    heard, born, before = reading.heard, reading.born, reading.before
    return tuple(
        round(min(1.0, max(0.0, float(value))), 4)
        for value in (
            *(_support(born, family) for family in ("action", "decision", "question")),
            *_claims(born),
            *(any(d.mode == mode for d in born) for mode in _MODES),
            *_signals(heard),
            *_said(heard),
            *_manner(heard, before),
            reading.accepted,
            reading.taken_back,
            reading.moved,
            reading.restated,
            reading.gained,
            reading.lost,
            *_around(heard, before),
        )
    )


def _support(born: Sequence[Draft], family: str) -> float:
    return max((d.support for d in born if d.family == family), default=0.0)


def _claims(born: Sequence[Draft]) -> tuple[float, ...]:
    actions = [d for d in born if d.family == "action"]
    kinds = {d.claim.kind for d in actions}
    return (*(float(kind in kinds) for kind in _CLAIMS), float(any(d.claim.outside for d in actions)))


def _signals(heard: Heard) -> tuple[float, ...]:
    strongest = dict.fromkeys(_SIGNALS, 0.0)
    for clause in heard.clauses:
        for hit in clause.hits:
            strongest[hit.rule.signal] = max(strongest[hit.rule.signal], hit.rule.strength)
    return tuple(strongest.values())


def _said(heard: Heard) -> tuple[float, ...]:
    """Guards, time phrases, numbers, question mark, people."""
    dues = [d for c in heard.clauses for d in c.dues]
    guarded = max((guard_weight(c)[0] for c in heard.clauses), default=0.0) / sum(GUARDS.values())
    return (
        guarded,
        bool(dues),
        any(d.sets_deadline for d in dues),
        any(d.kind in ("vague", "clock") for d in dues),
        any(any(ch.isdigit() for ch in t.low) for c in heard.clauses for t in c.clause.tokens),
        any(c.clause.question_mark for c in heard.clauses),
        bool(heard.called),
        any(m.by != "outside" for m in heard.people.values()),
        any(m.by == "outside" for m in heard.people.values()),
    )


def _manner(heard: Heard, before: State) -> tuple[float, ...]:
    """Who speaks of whom, and whether the one who leads does."""
    words = {w for c in heard.clauses for w in c.clause.norm.split()}
    last = before.recent[-1].spoken.speaker if before.recent else None
    return (
        bool(words & {"i", "me", "my"}),
        bool(words & {"you", "your"}),
        bool(words & {"we", "us", "our"}),
        leads(heard, before),
        last is not None and last == heard.spoken.speaker,
    )


def _around(heard: Heard, before: State) -> tuple[float, ...]:
    """What waits for an answer, what was spoken of before, and how much is said."""
    content = frozenset().union(*(c.clause.stems for c in heard.clauses)) if heard.clauses else frozenset()
    live = [d for d in before.drafts[-80:] if not d.withdrawn]
    near = [
        d for d in live if before.count - d.last_index <= _PENDING_REACH and d.speaker != heard.spoken.speaker
    ]
    alike = max((len(content & d.stems) / max(1, min(len(content), len(d.stems))) for d in live), default=0.0)
    return (
        alike if len(content) > 1 else 0.0,
        *(any(d.mode == mode for d in near) for mode in _MODES),
        any(d.family == "question" for d in near),
        min(heard.words, _LONG_WORDS) / _LONG_WORDS,
        min(len(content), _MANY_STEMS) / _MANY_STEMS,
    )
