"""Deliver: verified drafts in, minutes events out; one revision each, numbered without gaps.

The ledger of a meeting holds what has been published and writes what differs from it. It looks at no
clock and at no order but that of its inputs, so the same drafts give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from contracts.messages import Correction, NameCorrected
from contracts.minutes import (
    AnyEvent,
    Evidence,
    ItemAdded,
    ItemChanged,
    ItemWithdrawn,
    MeetingFinal,
    MinutesDocument,
    MinutesPurged,
    MinutesState,
    Section,
    Stage,
    SummaryChanged,
    SummarySentence,
    Versions,
)
from contracts.sal import Document, RuleSet
from contracts.topics import MINUTES, STATE
from operators.broker.sink import Outgoing
from operators.deliver.cases import NO_CASE, Case, Offered
from operators.deliver.document import (
    SECTIONS,
    Identity,
    Setting,
    added,
    corrected,
    document_of,
    folded,
    item_sha256,
    setting_of,
)
from operators.deliver.entry import ABSENT, NEVER_NS, Entry, Published
from operators.deliver.keys import MeetingKey
from operators.deliver.trail import LISTED, AuditTrail, Stand
from operators.plain_text import plain
from operators.understand.types import MeetingContext, Spoken
from operators.verify.rules import broken_by, item_of
from operators.verify.types import Draft, Stretch, Verified, VerifiedItem

WHOLE: Final = "meeting"
"""Item id under which the minutes as a whole are spoken of."""


def _digest(value: object) -> bytes:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode("ascii")).digest()[:16]


class _EventIdentity(Identity):
    """Fields that every event begins with."""

    stage: Stage
    passed: tuple[str, ...]
    assertions: str | None


class MeetingLedger:
    """The published minutes of one meeting. Picklable; grows with the items, not with the meeting.

    Driven by one caller: :meth:`apply` for each verified draft and :meth:`correct` for each correction,
    in the order of the log. The key of the audit trail is no part of the state: :meth:`unlock` after loading.
    """

    def __init__(
        self, meeting_id: str, versions: Versions, key: MeetingKey | None = None, generation: int = 0
    ) -> None:
        self.meeting_id = meeting_id
        self.generation = generation
        self.versions = versions
        self.revision = 0
        self.stage: Stage = "provisional"
        self._trail = AuditTrail(meeting_id, generation, key=key)
        self._entries: dict[str, Entry] = {}
        self._answered: dict[str, bytes] = {}
        self._whole = NO_CASE
        self._whole_seen: tuple[str, ...] = ()
        self._whole_passed: tuple[str, ...] = ()
        self._passed: tuple[str, ...] = ()
        self._summary: tuple[SummarySentence, ...] = ()
        self._summary_audited: bytes = ABSENT
        self._setting = Setting()
        self._state_revision = 0
        self._final_digest: bytes = ABSENT
        self._final_revision = 0

    _heard: tuple[VerifiedItem, ...] | None = None
    """Items of the last provisional draft. Saves looking through all again; is not kept with the rest."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_trail": self._trail.without_key(), "_heard": None}

    @property
    def locked(self) -> bool:
        """Whether the key of the audit trail has to be handed over."""
        return self._trail.key is None

    def unlock(self, key: MeetingKey) -> None:
        """Hand over the key of the audit trail."""
        self._trail.key = key

    # What comes in

    def apply(self, verified: Verified) -> list[Outgoing]:
        """Publish what a verified draft changes; nothing for what is published already."""
        draft = verified.draft
        if draft.meeting_id != self.meeting_id:
            raise ValueError(f"a draft of meeting {draft.meeting_id} came to the ledger of {self.meeting_id}")
        self.stage = draft.stage
        self._whole_passed, self._passed = verified.whole[:LISTED], verified.passed[:LISTED]
        out = self._rules_in_force(verified.assertions)
        if draft.stage != "provisional" or verified.together or verified.items is not self._heard:
            items = {item.item_id: item for item in verified.items}
            ids = self._in_order(items)
            concerned = [i for i in ids if self._concerns(i, items.get(i), draft)]
            # A rule about several items holds for a draft as a whole: items of several drafts may break it together.
            for item_id in ids if verified.together else concerned:
                out += self._update(item_id, items.get(item_id))
        if draft.stage == "provisional":
            self._heard = verified.items
        out += self._ask_whole(replace(self._whole, doubts=verified.doubts))
        if draft.stage != "provisional":
            self._setting = setting_of(verified)
            out += self._update_summary(verified)
        if draft.stage == "settled":
            out += self._state_message()
        elif draft.stage == "final":
            out += self._final_messages()
        return out

    def correct(
        self,
        said: Correction | NameCorrected,
        evidence: tuple[Evidence, ...] = (),
        first_ns: int = NEVER_NS,
        rules: RuleSet | None = None,
        context: MeetingContext | None = None,
    ) -> list[Outgoing]:
        """Apply what a person decided; it stands against all later drafts.

        Void, and reported, where the item is unknown or no longer the one that was looked at.

        Args:
            evidence: what an added item rests on, and ``first_ns`` where that begins on the timeline.
            rules: what holds for people's words too, but for rules whose answer is to ask a person.
        """
        digest = _digest(said.model_dump_json())
        subject = f"{said.type}/{said.subject}"
        if self._answered.get(subject) == digest:
            return []
        self._answered[subject] = digest
        if isinstance(said, NameCorrected):
            means = f"{', '.join(plain(h) for h in said.heard)} means {plain(said.name)}"
            out = [
                self._trail.write(
                    self._stand, "names", "meeting", "person", actions=(means,), by=plain(said.by)
                )
            ]
        elif said.item_id == WHOLE:
            out = self._answer_whole(said)
        elif (void := self._void(said, evidence)) is not None:
            out = self._refuse(said, void)
        else:
            out = self._rule(said, evidence, first_ns, rules, context or MeetingContext())
        if self.stage == "final":
            out += self._final_messages()
        return out

    def _void(self, said: Correction, evidence: tuple[Evidence, ...]) -> str | None:
        """Why a correction cannot be applied; None where it can."""
        entry = self._entries.get(said.item_id)
        if said.action == "add":
            if entry is not None:
                return "an item of this id is there"
            return None if evidence else "nothing was said that it could rest on"
        if entry is None or entry.offered is None:
            return "there is no such item"
        item = entry.offered.item
        if said.expected_text is not None and said.expected_text != item.text:
            return "the item reads otherwise"
        if said.expected_sha256 is not None and said.expected_sha256 != item_sha256(item):
            return "the item has changed"
        if said.action != "reject" and not item.evidence:
            return "the item has no evidence"
        return None

    def _refuse(self, said: Correction, why: str) -> list[Outgoing]:
        """Report a correction that was not applied: in the audit, and as a case where there is an item."""
        reason = f"correction {plain(said.correction_id)} by {plain(said.by)} does not fit: {why}"
        entry = self._entries.get(said.item_id)
        out: list[Outgoing] = []
        section: Section | Literal["meeting"] = "meeting"
        if entry is not None and entry.offered is not None:
            section = entry.offered.section
            out = self._ask(said.item_id, replace(entry.case, objections=(*entry.case.objections, reason)))
        told = self._trail.write(
            self._stand,             said.item_id, section, "void", actions=(f"{said.action} not applied",), reasons=(reason,),
            by=plain(said.by), correction_id=plain(said.correction_id),
        )  # fmt: skip
        return [*out, told]

    def _rule(
        self, said: Correction, evidence: tuple[Evidence, ...], first_ns: int, rules: RuleSet | None,
        context: MeetingContext,
    ) -> list[Outgoing]:  # fmt: skip
        by = plain(said.by)
        entry = self._entries.get(said.item_id, Entry())
        if said.action == "add":
            ruled = Published(said.section or "decisions", added(said, evidence).to_bytes(), first_ns)
        else:
            before = entry.offered
            if before is None:
                raise RuntimeError("only what is known can be ruled on")
            ruled = replace(before, value=corrected(before.item, said).to_bytes(), passed=())
        rejected = said.action == "reject"
        if rules is not None and not rejected:
            document = Document.of(
                self.state(), date=context.date, key_topics=context.key_topics, agenda=context.agenda
            )
            broken, passed = broken_by(rules, document, ruled.section, ruled.item)
            if broken:
                return self._refuse(said, f"it would break {'; '.join(broken)}")
            ruled = replace(ruled, passed=passed[:LISTED])
        self._entries[said.item_id] = replace(
            entry, ruled=ruled, offered=ruled, rejected=rejected, known=True
        )
        out = self._publish(said.item_id, None if rejected else ruled, f"rejected by {by}")
        told = self._trail.write(
            self._stand,             said.item_id, ruled.section, "person", checks={"person_agrees": said.action == "accept"},
            actions=(f"{said.action} by {by}",), item=ruled.item, by=by, correction_id=plain(said.correction_id),
        )  # fmt: skip
        return [*out, told, *self._ask(said.item_id, entry.case.answered())]

    def _answer_whole(self, said: Correction) -> list[Outgoing]:
        """Somebody has looked at what was doubtful about the minutes as a whole; the same is not asked again."""
        by = plain(said.by)
        self._whole_seen = self._whole.reasons
        told = self._trail.write(
            self._stand,             WHOLE, "meeting", "person", checks={"person_agrees": said.action == "accept"},
            actions=(f"{said.action} by {by}",), reasons=self._whole_seen, by=by,
            correction_id=plain(said.correction_id),
        )  # fmt: skip
        return [told, *self._ask_whole(self._whole)]

    def purge(self) -> list[Outgoing]:
        """Everything of the meeting is to go: close its cases, its minutes and its audit trail."""
        out: list[Outgoing] = []
        for item_id in sorted(self._entries):
            out += self._ask(item_id, self._entries[item_id].case.answered())
        out += self._ask_whole(self._whole.answered())
        out.append(self._event(MinutesPurged(**self._next())))
        out.append(self._trail.write(self._stand, WHOLE, "meeting", "purged", closing=True))
        gone = self.state()
        return [*out, Outgoing(STATE, gone.key, b"", "minutes_state", self._identity("state"))]

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
            self.waiting,
            self.versions,
            self._trail.head,
        )

    @property
    def waiting(self) -> int:
        """Cases that wait for a person."""
        return sum(bool(case.reasons) for case in (self._whole, *(e.case for e in self._entries.values())))

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
            return (published.first_ns if published else NEVER_NS), item_id

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
        digest = item.digest if item is not None else ABSENT
        if digest == (entry.heard if entry else ABSENT):
            return False
        self._entries[item_id] = replace(entry or Entry(), heard=digest, heard_ns=draft.until_ns)
        return True

    def _update(self, item_id: str, item: VerifiedItem | None) -> list[Outgoing]:
        entry = self._entries.get(item_id, Entry())
        digest = item.digest if item is not None else ABSENT
        if entry.ruled is not None or digest == entry.applied:
            return []
        self._entries[item_id] = replace(entry, applied=digest)
        if item is None:
            return self._drop(item_id, "nothing that was said bears it any longer")
        offered = Published(item.section, item_of(item).to_bytes(), item.first_ns, item.passed[:LISTED])
        gone = item.verdict in ("withdrawn", "withheld")
        why = "taken back in the meeting" if item.verdict == "withdrawn" else "; ".join(item.doubts)
        out = self._publish(item_id, None if gone else offered, why)
        if item.verdict == "withdrawn" and not entry.known:
            return out
        self._entries[item_id] = replace(self._entries[item_id], offered=offered, known=True)
        case = replace(entry.case, doubts=item.doubts, withheld=item.verdict == "withheld")
        return [*out, *self._ask(item_id, case), self._verdict(item)]

    def _drop(self, item_id: str, reason: str) -> list[Outgoing]:
        """An item that a draft no longer has."""
        entry = self._entries[item_id]
        out = self._publish(item_id, None, reason)
        out += self._ask(item_id, entry.case.answered())
        if entry.published is not None:
            section, item = entry.published.section, entry.published.item
            out.append(
                self._trail.write(self._stand, item_id, section, "withdrawn", actions=(reason,), item=item)
            )
        return out

    def _publish(self, item_id: str, wanted: Published | None, reason: str) -> list[Outgoing]:
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
            return [
                self._event(ItemAdded(**self._next(wanted.passed), section=wanted.section, item=wanted.item))
            ]
        if (have.section, have.value) == (wanted.section, wanted.value):
            return []
        return [
            self._event(ItemChanged(**self._next(wanted.passed), section=wanted.section, item=wanted.item))
        ]

    def _ask(self, item_id: str, case: Case) -> list[Outgoing]:
        """Open, renew or close the case of an item, where what a person would see has changed."""
        entry = self._entries[item_id]
        case, told = case.told(
            self.meeting_id, self.generation, self.revision, item_id,
            None if entry.offered is None else Offered(entry.offered.section, entry.offered.item),
        )  # fmt: skip
        self._entries[item_id] = replace(entry, case=case)
        return told

    def _ask_whole(self, case: Case) -> list[Outgoing]:
        """The case of the minutes as a whole."""
        if case.reasons and set(case.reasons) <= set(self._whole_seen):
            case = case.answered()
        self._whole, told = case.told(
            self.meeting_id, self.generation, self.revision, WHOLE, Offered("meeting", None)
        )
        return told

    def _rules_in_force(self, assertions: str | None) -> list[Outgoing]:
        """Note in the audit that other rules came into force."""
        if assertions == self.versions.assertions:
            return []
        before = self.versions.assertions
        self.versions = self.versions.model_copy(update={"assertions": assertions})
        told = f"rules {assertions or 'none'} in force" + (f", before {before}" if before else "")
        return [self._trail.write(self._stand, "rules", "meeting", "rules", actions=(told,))]

    def _verdict(self, item: VerifiedItem) -> Outgoing:
        """The audit entry of an item that was checked."""
        return self._trail.write(
            self._stand,             item.item_id, item.section, item.verdict, checks=dict(item.checks), actions=item.actions,
            item=item_of(item), reasons=item.doubts, passed=item.passed, failed=item.failed,
            probability=item.probability,
        )  # fmt: skip

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
            told = self._trail.write(
                self._stand, "summary", "summary", word, checks=dict(verdict.checks), actions=verdict.actions
            )
            out.append(told)
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
            audit=state.audit,
        )
        return [message, self._event(final)]

    # Messages

    def _next(self, of_item: tuple[str, ...] | None = None) -> _EventIdentity:
        self.revision += 1
        passed = self._passed if of_item is None else (*of_item, *self._whole_passed)[:LISTED]
        return _EventIdentity(
            meeting_id=self.meeting_id, generation=self.generation, revision=self.revision, stage=self.stage,
            passed=passed, assertions=self.versions.assertions,
        )  # fmt: skip

    @property
    def _stand(self) -> Stand:
        return Stand(self.stage, self.revision, self.versions)

    def _identity(self, what: str) -> str:
        return f"{self.meeting_id}/{self.generation}/{what}/{self.revision}"

    def _event(self, event: AnyEvent) -> Outgoing:
        key = self.meeting_id.encode("utf-8")
        return Outgoing(MINUTES, key, event.to_bytes(), event.type, self._identity("minutes"))
