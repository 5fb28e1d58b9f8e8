"""The audit trail of one meeting: entries in, sealed messages out, each chained to the one before."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace

from contracts.audit import FIRST, AuditHead, SealedEntry, bound_bytes, entry_hash
from contracts.minutes import AuditEntry
from contracts.topics import AUDIT
from operators.broker.sink import Outgoing
from operators.deliver.keys import MeetingKey


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
