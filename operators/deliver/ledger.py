"""Deliver: verified drafts in, minutes events out; one revision each, numbered without gaps.

The ledger of a meeting holds what has been published and writes what differs from it. It looks at no
clock and at no order but that of its inputs, so the same drafts give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from contracts.messages import Correction
from contracts.minutes import (
    ActionItem,
    AnyEvent,
    AuditEntry,
    Item,
    ItemAdded,
    ItemChanged,
    ItemWithdrawn,
    MeetingFinal,
    MinutesDocument,
    MinutesState,
    Origin,
    ReviewRequest,
    Section,
    Stage,
    SummaryChanged,
    SummarySentence,
    Versions,
)
from contracts.topics import AUDIT, MINUTES, REVIEW, STATE
from operators.broker.sink import Outgoing
from operators.deliver.document import (
    SECTIONS,
    Identity,
    Setting,
    corrected,
    document_of,
    folded,
    item_of,
    setting_of,
)
from operators.plain_text import plain
from operators.understand.types import Spoken
from operators.verify.types import Draft, Stretch, Verified, VerifiedItem

_NEVER_NS: Final = -(2**63)
_ABSENT: Final = b""
AuditVerdict = Literal["pass", "repaired", "fallback", "review", "withheld", "withdrawn", "person"]


@dataclass(frozen=True, slots=True)
class _Published:
    """An item as consumers have it. ``value`` are its canonical bytes, ``first_ns`` its place."""

    section: Section
    value: bytes
    first_ns: int

    @property
    def item(self) -> ActionItem | Item:
        kind = ActionItem if self.section == "action_items" else Item
        return kind.model_validate_json(self.value)


@dataclass(frozen=True, slots=True)
class _Entry:
    """All that is remembered of one item id.

    ``heard`` is the digest of what the provisional stage last said of it and ``heard_ns`` how far that
    stage had read when it said something new: a settled draft that has read less must not overrule it.
    ``applied`` is the digest of what was last acted upon, so that what has not changed costs nothing.
    ``ruled`` is the item as a person left it, and ``rejected`` says that it must not be published.
    """

    published: _Published | None = None
    heard: bytes = _ABSENT
    heard_ns: int = _NEVER_NS
    applied: bytes = _ABSENT
    audited: bytes = _ABSENT
    asked: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    ruled: _Published | None = None
    rejected: bool = False


def _digest(value: object) -> bytes:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode("ascii")).digest()[:16]


class _EventIdentity(Identity):
    """Fields that every event begins with."""

    stage: Stage


class MeetingLedger:
    """The published minutes of one meeting. Picklable; grows with the items, not with the meeting.

    Driven by one caller: :meth:`apply` for each verified draft and :meth:`correct` for each correction,
    in the order of the log.
    """

    def __init__(self, meeting_id: str, versions: Versions, generation: int = 0) -> None:
        self.meeting_id = meeting_id
        self.generation = generation
        self.versions = versions
        self.revision = 0
        self.stage: Stage = "provisional"
        self._audit_sequence = 0
        self._entries: dict[str, _Entry] = {}
        self._summary: tuple[SummarySentence, ...] = ()
        self._summary_audited: bytes = _ABSENT
        self._setting = Setting()
        self._state_revision = 0
        self._final_digest: bytes = _ABSENT
        self._final_revision = 0

    # What comes in

    def apply(self, verified: Verified) -> list[Outgoing]:
        """Publish what a verified draft changes; nothing for what is published already."""
        draft = verified.draft
        if draft.meeting_id != self.meeting_id:
            raise ValueError(f"a draft of meeting {draft.meeting_id} came to the ledger of {self.meeting_id}")
        self.stage = draft.stage
        out: list[Outgoing] = []
        items = {item.item_id: item for item in verified.items}
        for item_id in self._in_order(items):
            if self._concerns(item_id, items.get(item_id), draft):
                out += self._update(item_id, items.get(item_id))
        if draft.stage != "provisional":
            self._setting = setting_of(verified)
            out += self._update_summary(verified)
        if draft.stage == "settled":
            out += self._state_message()
        elif draft.stage == "final":
            out += self._final_messages()
        return out

    def correct(self, correction: Correction) -> list[Outgoing]:
        """Apply what a person decided about an item; it stands against all later drafts.

        Void, and handed back for review, where the item is unknown or no longer reads as expected.
        """
        entry = self._entries.get(correction.item_id, _Entry())
        current = entry.published or entry.ruled
        if current is None:
            return []
        item, by = current.item, plain(correction.by)
        if correction.expected_text is not None and correction.expected_text != item.text:
            reason = f"correction {correction.correction_id} by {by} does not fit: the item reads otherwise"
            if reason in entry.asked:
                return []
            self._entries[correction.item_id] = replace(entry, asked=(*entry.asked, reason))
            return [self._review_message(current.section, item, reason, withheld=False)]
        ruled = replace(current, value=corrected(item, correction).to_bytes())
        rejected = correction.action == "reject"
        self._entries[correction.item_id] = replace(entry, ruled=ruled, rejected=rejected, doubts=())
        out = self._publish(correction.item_id, None if rejected else ruled, f"rejected by {by}")
        out.append(
            self._audit_message(
                correction.item_id, current.section, "person",
                {"person_agrees": correction.action == "accept"}, (f"{correction.action} by {by}",), "person",
            )
        )  # fmt: skip
        if self.stage == "final":
            out += self._final_messages()
        return out

    # What is published

    def state(self) -> MinutesState:
        """The folded minutes as they stand."""
        return folded(
            self._setting,
            Identity(meeting_id=self.meeting_id, generation=self.generation, revision=self.revision),
            [
                (entry.published.section, entry.published.item)
                for entry in self._entries.values()
                if entry.published
            ],
            self._summary,
            sum(1 for entry in self._entries.values() if entry.doubts),
            self.versions,
        )

    def document(
        self, utterances: Iterable[Spoken], slides: Iterable[Stretch], zero_ns: int
    ) -> MinutesDocument:
        """``minutes.json``: the state with transcript and slides, both in order of time."""
        return document_of(self.state(), utterances, slides, zero_ns)

    # How one item changes

    def _in_order(self, items: Mapping[str, VerifiedItem]) -> list[str]:
        """Ids of all items, known and new, by first evidence and id."""

        def place(item_id: str) -> tuple[int, str]:
            if item_id in items:
                return items[item_id].first_ns, item_id
            published = self._entries[item_id].published
            return (published.first_ns if published else _NEVER_NS), item_id

        return sorted({*items, *self._entries}, key=place)

    def _concerns(self, item_id: str, item: VerifiedItem | None, draft: Draft) -> bool:
        """Whether this stage may say something about the item now.

        The final draft rules everything. A provisional one speaks only when it says something new, so
        that it does not undo what was settled; a settled one only on what it has read far enough for.
        """
        entry = self._entries.get(item_id)
        if draft.stage == "final":
            return True
        if draft.stage == "settled":
            return entry is None or entry.heard_ns <= draft.until_ns
        digest = item.digest if item is not None else _ABSENT
        if digest == (entry.heard if entry else _ABSENT):
            return False
        self._entries[item_id] = replace(entry or _Entry(), heard=digest, heard_ns=draft.until_ns)
        return True

    def _update(self, item_id: str, item: VerifiedItem | None) -> list[Outgoing]:
        entry = self._entries.get(item_id, _Entry())
        digest = item.digest if item is not None else _ABSENT
        if entry.ruled is not None or digest == entry.applied:
            return []
        self._entries[item_id] = replace(entry, applied=digest)
        if item is None:
            return self._drop(item_id, "nothing that was said bears it any longer")
        out: list[Outgoing] = []
        if item.verdict in ("withdrawn", "withheld"):
            why = "taken back in the meeting" if item.verdict == "withdrawn" else "; ".join(item.doubts)
            out += self._publish(item_id, None, why)
        else:
            out += self._publish(
                item_id, _Published(item.section, item_of(item).to_bytes(), item.first_ns), ""
            )
        return out + self._audit(item, was_known=entry.audited != _ABSENT or entry.published is not None)

    def _drop(self, item_id: str, reason: str) -> list[Outgoing]:
        """An item that a draft no longer has."""
        entry = self._entries[item_id]
        self._entries[item_id] = replace(entry, doubts=(), audited=_ABSENT)
        if entry.published is None:
            return []
        section, origin = entry.published.section, entry.published.item.origin
        out = self._publish(item_id, None, reason)
        return [*out, self._audit_message(item_id, section, "withdrawn", {}, (reason,), origin)]

    def _publish(self, item_id: str, wanted: _Published | None, reason: str) -> list[Outgoing]:
        """The event that brings consumers from what they have to what they should have."""
        entry = self._entries[item_id]
        have = entry.published
        if wanted == have:
            return []
        self._entries[item_id] = replace(entry, published=wanted)
        if wanted is None:
            if have is None:
                return []
            gone = ItemWithdrawn(**self._next(), section=have.section, item_id=item_id, reason=reason)
            return [self._event(gone)]
        if have is None:
            return [self._event(ItemAdded(**self._next(), section=wanted.section, item=wanted.item))]
        if (have.section, have.value) == (wanted.section, wanted.value):
            return []
        return [self._event(ItemChanged(**self._next(), section=wanted.section, item=wanted.item))]

    def _audit(self, item: VerifiedItem, was_known: bool) -> list[Outgoing]:
        """A verdict and questions to people, each once as long as they stay as they are."""
        if item.verdict == "withdrawn" and not was_known:
            return []
        out: list[Outgoing] = []
        entry = self._entries[item.item_id]
        for reason in item.doubts:
            if reason not in entry.asked:
                entry = replace(entry, asked=(*entry.asked, reason))
                out.append(
                    self._review_message(item.section, item_of(item), reason, item.verdict == "withheld")
                )
        seen = _digest([item.section, item.verdict, item.checks, item.actions])
        if seen != entry.audited:
            message = self._audit_message(
                item.item_id, item.section, item.verdict, dict(item.checks), item.actions, item.origin
            )
            out.append(message)
        self._entries[item.item_id] = replace(entry, audited=seen, doubts=item.doubts)
        return out

    # Summary, state and final

    def _update_summary(self, verified: Verified) -> list[Outgoing]:
        out: list[Outgoing] = []
        if verified.summary != self._summary:
            self._summary = verified.summary
            out.append(self._event(SummaryChanged(**self._next(), summary=verified.summary)))
        verdict = verified.summary_verdict
        seen = _digest([verdict.checks, verdict.actions])
        if seen != self._summary_audited and (verified.summary or verdict.actions):
            self._summary_audited = seen
            word: Literal["pass", "repaired"] = "repaired" if verdict.actions else "pass"
            out.append(self._audit_message("summary", "summary", word, dict(verdict.checks), verdict.actions,
                                           verified.draft.origin))  # fmt: skip
        return out

    def _state_message(self) -> list[Outgoing]:
        """The folded minutes, where a revision has been added since they were last sent."""
        if self._state_revision == self.revision:
            return []
        self._state_revision = self.revision
        state = self.state()
        return [Outgoing(STATE, state.key, state.to_bytes(), "minutes_state", self._identity("state"))]

    def _final_messages(self) -> list[Outgoing]:
        """State and final event, unless nothing has been published or become known since the last final."""
        seen = _digest([self.state().model_copy(update={"revision": 0}).model_dump_json(by_alias=True)])
        if seen == self._final_digest and self.revision == self._final_revision:
            return []
        self._final_digest = seen
        identity = self._next()
        self._final_revision = self.revision
        message = self._state_message()[0]
        state = self.state()
        final = MeetingFinal(
            **identity,
            duration_s=state.duration_s,
            counts={name: len(getattr(state, name)) for name in SECTIONS},
            review=state.review,
            notices=state.notices,
            document_sha256=hashlib.sha256(message.value).hexdigest(),
        )
        return [message, self._event(final)]

    # Messages

    def _next(self) -> _EventIdentity:
        self.revision += 1
        return _EventIdentity(
            meeting_id=self.meeting_id, generation=self.generation, revision=self.revision, stage=self.stage
        )

    def _identity(self, what: str) -> str:
        return f"{self.meeting_id}/{self.generation}/{what}/{self.revision}"

    def _event(self, event: AnyEvent) -> Outgoing:
        return Outgoing(MINUTES, self._key, event.to_bytes(), event.type, self._identity("minutes"))

    @property
    def _key(self) -> bytes:
        return self.meeting_id.encode("utf-8")

    def _audit_message(
        self,
        item_id: str,
        section: Section | Literal["summary"],
        verdict: AuditVerdict,
        checks: dict[str, bool],
        actions: tuple[str, ...],
        origin: Origin,
    ) -> Outgoing:
        entry = AuditEntry(
            meeting_id=self.meeting_id,
            generation=self.generation,
            sequence=self._audit_sequence,
            stage=self.stage,
            item_id=item_id,
            section=section,
            verdict=verdict,
            checks=checks,
            actions=tuple(action[:1000] for action in actions),
            origin=origin,
            versions=self.versions,
        )
        self._audit_sequence += 1
        identity = f"{self.meeting_id}/{self.generation}/audit/{entry.sequence}"
        return Outgoing(AUDIT, self._key, entry.to_bytes(), entry.type, identity)

    def _review_message(
        self, section: Section, item: ActionItem | Item, reason: str, withheld: bool
    ) -> Outgoing:
        request = ReviewRequest(
            meeting_id=self.meeting_id,
            generation=self.generation,
            request_id=hashlib.sha256(f"{item.id}\n{reason}".encode()).hexdigest()[:16],
            item_id=item.id,
            section=section,
            reason=reason,
            text=item.text,
            owner=item.owner if isinstance(item, ActionItem) else None,
            due=item.due if isinstance(item, ActionItem) else None,
            withheld=withheld,
            evidence=item.evidence,
        )
        identity = f"{self.meeting_id}/{self.generation}/review/{request.request_id}"
        return Outgoing(REVIEW, self._key, request.to_bytes(), request.type, identity)
