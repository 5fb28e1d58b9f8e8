"""Cases for people: one for each doubtful or withheld item, opened, renewed and closed by messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final, Literal

from contracts.minutes import ActionItem, Item, ReviewRequest, Section
from contracts.topics import REVIEW
from operators.broker.sink import Outgoing
from operators.deliver.document import item_sha256

_MAX_REASON_CHARS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Offered:
    """The item that a person is asked about."""

    section: Section | Literal["meeting"]
    item: ActionItem | Item | None
    """None: the minutes as a whole."""


@dataclass(frozen=True, slots=True)
class Case:
    """What waits for a person about one item.

    ``doubts`` are the verifier's and follow the item; ``objections`` come from answers that did not fit, and
    wait for the next answer. ``said`` is what was last published of the case, empty while it is closed.
    """

    doubts: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()
    withheld: bool = False
    versions: int = 0
    said: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a person should look; empty where nothing waits."""
        return tuple(dict.fromkeys((*self.doubts, *self.objections)))

    def answered(self) -> Case:
        """Nothing waits any longer."""
        return replace(self, doubts=(), objections=(), withheld=False)

    def told(
        self, meeting_id: str, generation: int, revision: int, item_id: str, offered: Offered | None
    ) -> tuple[Case, list[Outgoing]]:
        """The case as it is once people know of it, and the message that tells them, if one is needed."""
        digest = item_sha256(offered.item) if offered is not None and offered.item is not None else None
        want = (
            (digest or "", str(self.withheld), *self.reasons) if self.reasons and offered is not None else ()
        )
        if want == self.said or offered is None:
            return self, []
        item, task = offered.item, offered.item if isinstance(offered.item, ActionItem) else None
        request = ReviewRequest(
            meeting_id=meeting_id,
            generation=generation,
            request_id=case_id(item_id),
            item_id=item_id,
            section=offered.section,
            reason="; ".join(self.reasons)[:_MAX_REASON_CHARS],
            # A closed case needs no second copy of what was said.
            text=item.text if want and item is not None else "",
            owner=task.owner if task is not None and want else None,
            due=task.due if task is not None and want else None,
            withheld=self.withheld,
            evidence=item.evidence if want and item is not None else (),
            version=self.versions,
            state="open" if want else "closed",
            revision=revision,
            item_sha256=digest,
        )
        identity = f"{meeting_id}/{generation}/review/{request.request_id}/{request.version}"
        message = Outgoing(REVIEW, meeting_id.encode("utf-8"), request.to_bytes(), request.type, identity)
        return replace(self, versions=self.versions + 1, said=want), [message]


NO_CASE: Final = Case()


def case_id(item_id: str) -> str:
    """Id of the case of an item; one for good."""
    return hashlib.sha256(item_id.encode("utf-8")).hexdigest()[:12]
