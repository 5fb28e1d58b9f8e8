"""Whose task it is: everybody who may have it, with the figures by which the likeliest of them is chosen.

Rules name the one whom the words give it to; the model's pointer names whom the talk points at. Where both say the same it is
nearly always right, where they differ either may be, and how that depends on the words is learned from held-out meetings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from models.minutes.scores import ELSEWHERE, NOBODY
from operators.language.people import Roster
from operators.understand.birth import ONE_OF_SEVERAL, PLAIN_WORK
from operators.understand.state import Draft, Judged
from operators.understand.takeover import IN_QUESTION, TAKEN_OVER, VOLUNTEERED

PLAINLY_NAMED: Final = frozenset(
    ("person_will", "person_does", "person_to_do", "goes_to_person", "part_is_persons", "put_down_for")
)
"""Cues with which somebody says by name or role who does it."""
_POINTED: Final = 2
"""So many of those that the pointer names are looked at."""
_KINDS: Final = ("self", "you", "named", "group", "none")
_REASONS: Final = (
    "i_will", PLAIN_WORK, "can_you", "model", "goes on", IN_QUESTION, ONE_OF_SEVERAL, "asked directly", "agreed",
    "date said again", TAKEN_OVER, "accepted", "imperative", "acknowledged", "due date said", "handed out at the end",
    VOLUNTEERED, "said again", "i_could", "please_by", "said by who leads",
)  # fmt: skip
_PLAIN: Final = (
    "by_words", "no_words", "pointed", "pointed_main", "pointed_most", "another", "nobody", "elsewhere", "speaker", "first",
    "by_model", "support", "unscored", "evidence", "likely", "accepted", "outside", "span", "several", "called",
    "speaker_no_words", "pointed_no_words", "pointed_against_words", "speaks", "speaks_last", "speaks_later",
)  # fmt: skip
FIGURES: Final = (
    *_PLAIN,
    *(f"by_words_{name}" for name in (*_KINDS, *_REASONS)),
    *(f"against_words_{name}" for name in (*_KINDS, *_REASONS)),
)
"""Names of the figures, in order."""


@dataclass(frozen=True, slots=True)
class Taker:
    """Somebody who may have a task; ``figures`` in the order of ``FIGURES``."""

    name: str
    external: bool
    figures: tuple[float, ...]


def takers(draft: Draft, roster: Roster, by_words: str | None, external: bool) -> tuple[Taker, ...]:
    """All who may have a task, whom the words name first: nobody else but who speaks or is called in its evidence.

    Args:
        draft: an action.
        roster: who is there.
        by_words: the owner by the rules, None where they leave it open.
        external: whether that one is not on the list of attendees.
    """
    pointed = _pointed(draft, roster)
    most: dict[str, float] = {}
    for _, judged in draft.judged:
        for who, p in _named(judged, roster).items():
            most[who] = max(most.get(who, 0.0), p)
    main = max((j for _, j in draft.judged), key=lambda j: j.action, default=None)
    in_main = _named(main, roster) if main is not None else {}
    speaker = roster.of_speaker(draft.speaker)
    voices = {roster.of_speaker(p.speaker) for p in draft.evidence} | {*draft.called}
    people = [who for who in sorted(pointed, key=lambda w: (-pointed[w], w)) if who in voices]
    names = [by_words] if by_words is not None else []
    names += [who for who in people if who not in names][:_POINTED]
    names += [speaker] if speaker is not None and speaker not in names else []
    first = max(pointed, key=lambda w: (pointed[w], w), default=None)
    out = []
    for name in names:
        person = roster.person(name)
        stated = name == by_words
        turns = [p.index for p in draft.evidence if roster.of_speaker(p.speaker) == name]
        most_of, main_of = most.get(name, 0.0), in_main.get(name, 0.0)
        figures = _figures(draft, name, by_words, speaker, pointed, most_of, main_of, first, turns)
        out.append(Taker(name, external if stated else bool(person and person.external), figures))
    return tuple(out)


def _named(judged: Judged, roster: Roster) -> dict[str, float]:
    """The pointer of one utterance, by names in the place of labels."""
    out: dict[str, float] = {}
    for who, p in judged.owner:
        name = who if who in (NOBODY, ELSEWHERE) else roster.of_speaker(who) or who
        out[name] = out.get(name, 0.0) + p
    return out


def _pointed(draft: Draft, roster: Roster) -> dict[str, float]:
    """The mean pointer of a draft's utterances, by how much each is a task."""
    weight = max(1e-9, sum(j.action for _, j in draft.judged))
    out: dict[str, float] = {}
    for _, judged in draft.judged:
        for who, p in _named(judged, roster).items():
            out[who] = out.get(who, 0.0) + p * judged.action / weight
    return out


def _logit(p: float) -> float:
    p = min(0.99, max(0.01, p))
    return log(p / (1 - p))


def _figures(
    draft: Draft,
    name: str,
    by_words: str | None,
    speaker: str | None,
    pointed: Mapping[str, float],
    most: float,
    main: float,
    first: str | None,
    turns: Sequence[int],
) -> tuple[float, ...]:
    stated, silent = name == by_words, by_words is None
    mine = _logit(pointed.get(name, 0.0))
    another = max((p for who, p in pointed.items() if who not in (name, NOBODY, ELSEWHERE)), default=0.0)
    kinds: Sequence[bool] = [draft.claim.kind == kind for kind in _KINDS]
    reasons: Sequence[bool] = [reason in draft.reasons for reason in _REASONS]
    plain = (
        stated,
        silent,
        mine,
        _logit(main),
        _logit(most),
        _logit(another),
        _logit(pointed.get(NOBODY, 0.0)),
        _logit(pointed.get(ELSEWHERE, 0.0)),
        name == speaker,
        name == first,
        draft.by_model,
        stated * min(1.5, max(-0.5, draft.support)),
        not draft.judged,
        min(6, len(draft.evidence)),
        _logit(max((j.action for _, j in draft.judged), default=0.0)),
        stated and draft.accepted,
        stated and draft.claim.outside,
        min(10, draft.last_index - draft.first_index),
        len(draft.claim.people) > 1,
        stated and bool(draft.called),
        name == speaker and silent,
        mine * silent,
        mine * (not silent and not stated),
        bool(turns),
        max(turns, default=-1) == max((p.index for p in draft.evidence), default=0),
        max(turns, default=-1) > draft.first_index,
    )
    told = (
        *plain,
        *(stated and x for x in (*kinds, *reasons)),
        *(not stated and x for x in (*kinds, *reasons)),
    )
    return tuple(float(x) for x in told)
