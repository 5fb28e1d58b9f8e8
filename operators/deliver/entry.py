"""What the ledger remembers of one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contracts.minutes import ActionItem, Item, Section
from operators.deliver.cases import NO_CASE, Case

NEVER_NS: Final = -(2**63)
ABSENT: Final = b""


@dataclass(frozen=True, slots=True)
class Published:
    """An item as consumers have it. ``value`` are its canonical bytes, ``first_ns`` its place."""

    section: Section
    value: bytes
    first_ns: int
    passed: tuple[str, ...] = ()

    @property
    def item(self) -> ActionItem | Item:
        kind = ActionItem if self.section == "action_items" else Item
        return kind.model_validate_json(self.value)


@dataclass(frozen=True, slots=True)
class Entry:
    """All that is remembered of one item id.

    ``heard`` is the digest of what the provisional stage last said of it and ``heard_ns`` how far that
    stage had read when it said something new: a settled draft that has read less must not overrule it.
    ``applied`` is the digest of what was last acted upon, so that what has not changed costs nothing.
    ``offered`` is the item as it last read, published or not: what a person may accept. ``ruled`` is the item
    as a person left it, and ``rejected`` says that it must not be published.
    """

    published: Published | None = None
    heard: bytes = ABSENT
    heard_ns: int = NEVER_NS
    applied: bytes = ABSENT
    known: bool = False
    case: Case = NO_CASE
    offered: Published | None = None
    ruled: Published | None = None
    rejected: bool = False
