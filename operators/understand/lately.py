"""What was found of drafts lately: drafts are immutable, so that most of a long meeting is as it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from operators.understand.birth import JOKED, TAKEN_BACK
from operators.understand.state import Draft
from operators.understand.types import DraftItem

_KEPT: Final = 4096
_TAKING_BACK: Final = 0.4
"""Probability of taking something back from which an utterance makes no item itself."""
_JOKES: Final = frozenset((JOKED, "tag_of_a_joke"))
"""What is marked as a joke by its words is no item, whatever the model says."""


@dataclass(slots=True)
class Weighed:
    """A draft and what is known of it.

    Attributes:
        own: figures that depend on the draft alone; None until they are needed.
        sure: how sure it is in talk that is so sparse. Talk is, to a tenth; it may go back and forth between two.
        stands: whether senses or plain words bear it out; None until it is asked.
        made: the item of the rules, its confidence, what of the talk around it was gathered, and the item made of these.
    """

    draft: Draft
    candidate: bool
    own: tuple[float, ...] | None = None
    sure: dict[float, float] = field(default_factory=dict)
    stands: bool | None = None
    made: tuple[DraftItem, float, str, DraftItem] | None = None


V = TypeVar("V")


class Generations(Generic[V]):
    """Values by the identity of what they belong to; what was not asked for in a while goes, little by little.

    Who asks checks that the value belongs to the object itself: identities are used again.
    """

    def __init__(self) -> None:
        self._new: dict[int, V] = {}
        self._old: dict[int, V] = {}

    def get(self, key: int) -> V | None:
        """The value of a key, None where it is not known (any longer)."""
        found = self._new.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.put(key, found)
        return found

    def put(self, key: int, value: V) -> None:
        """Keep a value until so many others were put or asked for."""
        if len(self._new) >= _KEPT:
            # To forget all at once would have every draft of a long meeting made anew at one utterance.
            self._new, self._old = {}, self._new
        self._new[key] = value

    def clear(self) -> None:
        """Forget all."""
        self._new, self._old = {}, {}


class Lately(Generations[Weighed]):
    """Drafts weighed lately."""

    def weighed(self, draft: Draft) -> Weighed:
        """What is known of a draft."""
        known = self.get(id(draft))
        if known is None or known.draft is not draft:
            known = Weighed(draft, is_candidate(draft))
            self.put(id(draft), known)
        return known


def is_candidate(draft: Draft) -> bool:
    """Whether a draft can become an item at all, however sure the model is."""
    return draft.mode != "refused" and not _takes_back(draft) and _JOKES.isdisjoint(draft.reasons)


def _takes_back(draft: Draft) -> bool:
    """Whether the utterance that an item is made of takes something back itself (*then no van*)."""
    if draft.family == "question":
        return False
    if TAKEN_BACK in draft.reasons:
        return True
    main = max(draft.evidence, key=lambda p: (p.weight, p.index)).index
    return any(index == main and said.withdrawn >= _TAKING_BACK for index, said in draft.judged)
