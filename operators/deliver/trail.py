"""The audit trail of one meeting: entries in, sealed messages out, each chained to the one before."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from contracts.audit import FIRST, AuditHead, SealedEntry, bound_bytes, entry_hash
from contracts.minutes import ActionItem, AuditEntry, Item, Section, Stage, Versions
from contracts.topics import AUDIT
from operators.broker.sink import Outgoing
from operators.deliver.keys import MeetingKey

LISTED: Final = 1_000
"""Longest list of checks, rules or reasons in one message."""
AuditVerdict = Literal[
    "pass", "repaired", "fallback", "review", "withheld", "withdrawn", "person", "void", "rules", "purged"
]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where the minutes are when an entry is written."""

    stage: Stage
    revision: int
    versions: Versions


@dataclass(slots=True)
class AuditTrail:
    """How far the chain is. ``entries`` and ``last`` are state; the key is not and has to be handed over."""

    meeting_id: str
    generation: int
    entries: int = 0
    last: str = FIRST
    key: MeetingKey | None = field(default=None, repr=False)

    def append(self, entry: AuditEntry, *, closing: bool = False) -> Outgoing:
        """The next message of the chain; ``entry.sequence`` must be ``entries``."""
        if self.key is None or entry.sequence != self.entries:
            raise RuntimeError("an audit entry needs the meeting's key and the next number")
        bound = bound_bytes(self.meeting_id, self.generation, self.entries, closing, self.last)
        sealed = self.key.seal(entry.to_bytes(), bound)
        message = SealedEntry(
            meeting_id=self.meeting_id,
            generation=self.generation,
            sequence=self.entries,
            previous=self.last,
            closing=closing,
            ciphertext=base64.b64encode(sealed).decode("ascii"),
            sha256=entry_hash(bound, sealed),
        )
        self.entries, self.last = self.entries + 1, message.sha256
        identity = f"{self.meeting_id}/{self.generation}/audit/{message.sequence}"
        return Outgoing(AUDIT, self.meeting_id.encode("utf-8"), message.to_bytes(), message.type, identity)

    def write(
        self,
        stand: Stand,
        item_id: str,
        section: Section | Literal["summary", "meeting"],
        verdict: AuditVerdict,
        *,
        item: ActionItem | Item | None = None,
        checks: Mapping[str, bool] | None = None,
        actions: Iterable[str] = (),
        reasons: Iterable[str] = (),
        passed: tuple[str, ...] = (),
        failed: tuple[str, ...] = (),
        probability: float | None = None,
        by: str | None = None,
        correction_id: str | None = None,
        closing: bool = False,
    ) -> Outgoing:
        """The next message: a verdict on ``item`` as it is published, or what ``by`` decided."""
        task = item if isinstance(item, ActionItem) else None
        entry = AuditEntry(
            meeting_id=self.meeting_id, generation=self.generation, sequence=self.entries, stage=stand.stage,
            item_id=item_id, section=section, verdict=verdict, checks=dict(checks or {}), actions=_lines(actions),
            origin="person" if by is not None else item.origin if item is not None else "rules",
            versions=stand.versions, revision=stand.revision, reasons=_lines(reasons), passed=passed[:LISTED],
            failed=failed[:LISTED], probability=probability, text=None if item is None else item.text,
            owner=task and task.owner, due=task and task.due, due_text=task and task.due_text,
            evidence=() if item is None else item.evidence, by=by, correction_id=correction_id,
        )  # fmt: skip
        return self.append(entry, closing=closing)

    @property
    def head(self) -> AuditHead:
        """How far the chain reaches, for the minutes."""
        return AuditHead(entries=self.entries, sha256=self.last)

    def without_key(self) -> AuditTrail:
        """The same place in the chain, fit for storing."""
        return replace(self, key=None)


def opened(entry: SealedEntry, key: MeetingKey) -> AuditEntry:
    """What a sealed entry says.

    Raises:
        KeyProblem: the key is not the one that it was sealed with, or it was changed.
    """
    return AuditEntry.model_validate_json(key.open(entry.sealed, entry.bound))


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:1_000] for text in texts)[:LISTED]
