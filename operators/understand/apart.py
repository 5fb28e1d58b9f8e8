"""One talk, one item: which of the items that are sure enough stand beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from operators.understand.birth import ONE_OF_SEVERAL
from operators.understand.density import PLAINLY
from operators.understand.state import Draft
from operators.understand.types import DraftItem, Family

DECIDING: Final = frozenset(
    ("we_decided", "we_decided_to", "headed_decision", "it_is_decided", "the_answer_is", "vote_result")
)
"""Rules of words that call something decided."""
_CALLED_SO: Final = 0.4
"""Support that does where words call something decided."""
_BESIDE: Final = 0.3
"""Support that does where several are given work in one breath."""


def apart(
    made: Iterable[tuple[Draft, DraftItem]], sure: Mapping[str, float]
) -> list[tuple[Draft, DraftItem]]:
    """Items without those that rest on what a surer one of their kind has as evidence: one talk, one item.

    Items that were taken back neither go nor make others go, and what was plainly given to somebody stays beside what
    somebody else has on top of it (*I will send it*, *I will check it*) or was given other work in the same breath.
    Turns that follow each other speak of one decision, and so do items that share half of the evidence, but where words
    plainly put two.
    """
    made = tuple(made)
    used: dict[Family, dict[str, list[Draft]]] = {"action": {}, "decision": {}, "question": {}}
    near: dict[int, list[Draft]] = {}
    kept = {draft.id for draft, _ in made if draft.withdrawn}
    standing = [pair for pair in made if not pair[0].withdrawn]
    for draft, item in sorted(standing, key=lambda pair: (-sure[pair[0].id], pair[0].id)):
        mine = used[draft.family]
        takers = list(mine.get(_main_utterance(draft), ()))
        if draft.family == "decision":
            takers += [other for piece in draft.evidence for other in near.get(piece.index, ())]
            shared = [other for quote in item.evidence for other in mine.get(quote.utterance_id, ())[:1]]
            takers += shared if 2 * len(shared) >= len(item.evidence) else ()
        if not all(_two_tasks(draft, taker) or _two_decisions(draft, taker) for taker in takers):
            continue
        kept.add(draft.id)
        for quote in item.evidence:
            mine.setdefault(quote.utterance_id, []).append(draft)
        if draft.family == "decision":
            for index in {p.index + step for p in draft.evidence for step in (-1, 0, 1)}:
                near.setdefault(index, []).append(draft)
    return [pair for pair in made if pair[0].id in kept]


def _two_decisions(one: Draft, surer: Draft) -> bool:
    """Whether words alone say that something was decided, and it is something else."""
    least = PLAINLY if DECIDING.isdisjoint(one.reasons) else _CALLED_SO
    plain = one.family == "decision" and not one.by_model and one.support >= least
    return plain and not one.stems & surer.stems


def _two_tasks(one: Draft, other: Draft) -> bool:
    """Whether words alone say of both who has them, and they are not the same one's or not the same work."""
    left, right = _taken_by(one), _taken_by(other)
    if left is None or right is None:
        return False
    return left != right or (_main_utterance(one) == _main_utterance(other) and not one.stems & other.stems)


def _taken_by(draft: Draft) -> str | None:
    """Who has a task, where rules alone would believe it."""
    least = _BESIDE if ONE_OF_SEVERAL in draft.reasons else PLAINLY
    if draft.family != "action" or draft.by_model or draft.support < least:
        return None
    if draft.claim.kind == "self":
        return draft.speaker
    if draft.claim.kind not in ("named", "you"):
        return None
    return draft.claim.people[0] if len(draft.claim.people) == 1 else draft.claim.said or None


def _main_utterance(draft: Draft) -> str:
    if len(draft.evidence) == 1:
        return draft.evidence[0].quote.utterance_id
    return max(draft.evidence, key=lambda p: (p.weight, p.index)).quote.utterance_id
