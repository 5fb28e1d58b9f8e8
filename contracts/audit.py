"""The audit chain: sealed entries, how they hang together, and the proof that none is missing or changed.

Entries are hashed over their ciphertext, so that a chain can be proved by whoever has the messages, with or
without the key, and still after the key was destroyed. No time of any clock is in hashed bytes.
"""

import base64
import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from .base import Count, MeetingId, Message, Sha256
from .refusals import refusal_line

FIRST: Final = "0" * 64
"""``previous`` of the first entry of a chain."""
_DOMAIN: Final = b"minuted.audit/1\0"
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_HEAD: Final = struct.Struct(">QQB")


class AuditHead(Message):
    """How far a meeting's audit chain reached: number of entries, and the hash of the last one."""

    entries: Count
    sha256: Sha256


class SealedEntry(Message):
    """One entry of a meeting's audit chain. ``ciphertext`` holds an ``audit`` message under the meeting's key.

    AES-SIV (RFC 5297) with ``bound_bytes`` as associated data; the key is 64 bytes.
    """

    type: Literal["audit_sealed"] = "audit_sealed"
    meeting_id: MeetingId
    generation: Count
    sequence: Count
    previous: Sha256
    """Hash of the entry before; zeros for the first."""
    closing: bool = False
    """The meeting was purged: nothing follows this entry, and its key is destroyed."""
    ciphertext: Annotated[str, Field(max_length=4 * 1024 * 1024, pattern=_BASE64)]
    """Base64 with padding."""
    sha256: Sha256
    """Hash over ``bound_bytes`` and the ciphertext."""

    @property
    def sealed(self) -> bytes:
        """The ciphertext as bytes."""
        return base64.b64decode(self.ciphertext)

    @property
    def bound(self) -> bytes:
        """Associated data of the ciphertext."""
        return bound_bytes(self.meeting_id, self.generation, self.sequence, self.closing, self.previous)


def bound_bytes(meeting_id: str, generation: int, sequence: int, closing: bool, previous: str) -> bytes:
    """What a ciphertext is bound to: chain, place in it, and the entry before."""
    name = meeting_id.encode("utf-8")
    place = _HEAD.pack(generation, sequence, closing)
    return _DOMAIN + bytes([len(name)]) + name + place + bytes.fromhex(previous)


def entry_hash(bound: bytes, sealed: bytes) -> str:
    """SHA-256 of an entry, lower-case hexadecimal."""
    return hashlib.sha256(bound + sealed).hexdigest()


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What became of checking one chain. ``problems`` is empty where everything holds.

    ``proven`` entries are covered by a head that was published elsewhere; ``closed`` chains prove their own
    completeness. ``repeated`` counts entries that stood more than once with the same bytes.
    """

    meeting_id: str
    generation: int
    entries: int
    repeated: int
    proven: int
    closed: bool
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


@dataclass(slots=True)
class _Chain:
    entries: dict[int, SealedEntry] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    repeated: int = 0
    contradicted: set[int] = field(default_factory=set)


@dataclass(slots=True)
class AuditProof:
    """Collects sealed entries and heads of any meetings, then says which chains hold.

    Entries are given in the order in which they stood; what a restarted flow has written again is told from
    what was changed by its bytes.
    """

    unreadable: list[str] = field(default_factory=list)
    _chains: dict[tuple[str, int], _Chain] = field(default_factory=dict)
    _heads: dict[tuple[str, int], set[tuple[int, str]]] = field(default_factory=dict)

    def add(self, value: bytes, place: str = "") -> None:
        """The next message; ``place`` names it in reports."""
        try:
            entry = SealedEntry.model_validate_json(value)
        except ValidationError as error:
            self.unreadable.append(f"{place or 'a message'} is no audit entry: {refusal_line(error)}")
            return
        chain = self._chains.setdefault((entry.meeting_id, entry.generation), _Chain())
        known = chain.entries.get(entry.sequence)
        if known is None:
            chain.entries[entry.sequence] = entry
            chain.order.append(entry.sequence)
        elif known == entry:
            chain.repeated += 1
        else:
            chain.contradicted.add(entry.sequence)

    def add_head(self, meeting_id: str, generation: int, head: AuditHead | None) -> None:
        """A head as a minutes document or a final event states it."""
        if head is not None:
            self._heads.setdefault((meeting_id, generation), set()).add((head.entries, head.sha256))

    def entries(self, meeting_id: str) -> list[SealedEntry]:
        """Entries of a meeting, in the order of generation and sequence."""
        chains = [chain for (name, _), chain in sorted(self._chains.items()) if name == meeting_id]
        return [chain.entries[n] for chain in chains for n in sorted(chain.entries)]

    def reports(self, meeting_id: str | None = None) -> list[ChainReport]:
        """One report for each chain, those without any entry but with a head included."""
        names = sorted({*self._chains, *self._heads})
        return [self._report(*name) for name in names if meeting_id in (None, name[0])]

    def _report(self, meeting_id: str, generation: int) -> ChainReport:
        chain = self._chains.get((meeting_id, generation), _Chain())
        heads = self._heads.get((meeting_id, generation), set())
        problems = [*_order_problems(chain), *_link_problems(chain), *_head_problems(chain, heads)]
        last = max(chain.entries, default=-1)
        closed = last >= 0 and chain.entries[last].closing
        proven = last + 1 if closed else max((n for n, _ in heads), default=0)
        return ChainReport(
            meeting_id, generation, len(chain.entries), chain.repeated, min(proven, last + 1), closed,
            tuple(problems),
        )  # fmt: skip


def _order_problems(chain: _Chain) -> Iterable[str]:
    for before, after in zip(chain.order, chain.order[1:], strict=False):
        if after < before:
            yield f"entry {after} stands after entry {before}: the order was changed"
    for sequence in sorted(chain.contradicted):
        yield f"entry {sequence} stands twice with different content"


def _link_problems(chain: _Chain) -> Iterable[str]:
    previous, expected = FIRST, 0
    for sequence in sorted(chain.entries):
        entry = chain.entries[sequence]
        if sequence > expected:
            yield _missing(expected, sequence - 1)
            previous = entry.previous
        if entry.previous != previous:
            yield f"entry {sequence} does not follow the entry before it"
        if entry_hash(entry.bound, entry.sealed) != entry.sha256:
            yield f"entry {sequence} was changed: its hash does not fit its content"
        if entry.closing and sequence != max(chain.entries):
            yield f"entry {sequence} closes the chain, but others follow"
        previous, expected = entry.sha256, sequence + 1


def _head_problems(chain: _Chain, heads: set[tuple[int, str]]) -> Iterable[str]:
    have = max(chain.entries, default=-1) + 1
    for count, sha256 in sorted(heads):
        if count > have:
            yield f"{_missing(have, count - 1)}: the minutes were published with {count} entries"
        elif count and count - 1 in chain.entries and chain.entries[count - 1].sha256 != sha256:
            yield f"entry {count - 1} is not the one that the minutes were published with"


def _missing(first: int, last: int) -> str:
    return f"entry {first} is missing" if first == last else f"entries {first} to {last} are missing"
