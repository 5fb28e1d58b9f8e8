"""Fallback: the rule engine writes an item anew from nothing but its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from operators.language.text import stems
from operators.understand.engine import RuleEngine
from operators.understand.types import DraftItem
from operators.verify.types import Draft

_ENGINE: Final = RuleEngine()


def from_evidence(item: DraftItem, draft: Draft) -> DraftItem | None:
    """The item of the same kind that rules find in the item's evidence; None where they find none.

    Of several the one with the same owner and most of the same words, then the surest: evidence may hold what somebody else
    promised, too. Bounded by the few utterances that an item may rest on. The id stays.
    """
    named = dict.fromkeys(q.utterance_id for q in item.evidence)
    spoken = [u for name in named if (u := draft.utterances.get(name)) is not None]
    state = _ENGINE.start(draft.context)
    for utterance in sorted(spoken, key=lambda u: (u.start_ns, u.id)):
        state = _ENGINE.step(state, utterance)
    found = [i for i in _ENGINE.items(state) if i.kind == item.kind and not i.withdrawn]
    _ENGINE.forget_made()
    said = stems(item.text.lower())

    def fits(other: DraftItem) -> tuple[bool, float, float, str]:
        words = stems(other.text.lower())
        alike = len(said & words) / max(1, len(said | words))
        return other.owner == item.owner, alike, other.confidence, other.id

    best = max(found, key=fits, default=None)
    return None if best is None else replace(best, id=item.id)
