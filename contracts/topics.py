"""The topic table: names, partitions, retention, keys and the rule that places a meeting.

A producer always sets the partition itself; the default partitioners of Kafka clients differ.
"""

import re
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote

import google_crc32c

DEFAULT_SHARDS: Final = 16
"""Partitions of every topic, and shards of state. Changing it means new topics."""

_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 24 * 60 * _MINUTE_MS
_MIB: Final = 1024 * 1024
Format = Literal["packet", "json", "packet or json"]
_BOTH: Final = "packet or json"


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of the contract. ``name`` is without prefix."""

    name: str
    carries: str
    format: Format
    retention_ms: int
    max_message_bytes: int = _MIB
    compacted: bool = False
    append_time: bool = False
    """Stamped by the broker on arrival (``LogAppendTime``)."""

    @property
    def config(self) -> dict[str, str]:
        """Settings of the topic as a Kafka broker names them."""
        return {
            "cleanup.policy": "compact" if self.compacted else "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(self.max_message_bytes),
            "message.timestamp.type": "LogAppendTime" if self.append_time else "CreateTime",
        }


VIDEO: Final = Topic(
    "minuted.video", "H.264 or JPEG access units", _BOTH, 15 * _MINUTE_MS, 5 * _MIB, append_time=True
)
AUDIO: Final = Topic(
    "minuted.audio", "PCM, FLAC or Opus blocks of 10 to 100 ms", _BOTH, 60 * _MINUTE_MS, append_time=True
)
OCR: Final = Topic(
    "minuted.ocr", "text lines with boxes from a slide reader", "json", 60 * _MINUTE_MS, append_time=True
)
TRANSCRIPT: Final = Topic(
    "minuted.transcript", "words from an outside recogniser", "json", 60 * _MINUTE_MS, append_time=True
)
CONTROL: Final = Topic(
    "minuted.control", "what rooms and people say", "json", -1, compacted=True, append_time=True
)
TIMELINE: Final = Topic("minuted.timeline", "the journal of every meeting", _BOTH, 7 * _DAY_MS, 4 * _MIB)
"""Wider than its inputs: a record repeats what a message of the largest size said, with fields of its own."""
PARTIALS: Final = Topic("minuted.partials", "text while somebody is still speaking", "json", 10 * _MINUTE_MS)
MINUTES: Final = Topic("minuted.minutes", "minutes events, one revision each", "json", 30 * _DAY_MS)
STATE: Final = Topic(
    "minuted.minutes.state", "the folded minutes of a meeting", "json", -1, 4 * _MIB, compacted=True
)
REVIEW: Final = Topic("minuted.review", "what a person should look at", "json", 90 * _DAY_MS)
AUDIT: Final = Topic("minuted.audit", "every verdict", "json", -1)
DEADLETTER: Final = Topic(
    "minuted.deadletter", "what could not be read, with its bytes", "json", 7 * _DAY_MS, 8 * _MIB
)

DEVICE_TOPICS: Final = (VIDEO, AUDIO, OCR, TRANSCRIPT, CONTROL)
TOPICS: Final = (*DEVICE_TOPICS, TIMELINE, PARTIALS, MINUTES, STATE, REVIEW, AUDIT, DEADLETTER)


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Topic names of one installation: every name takes the prefix."""

    prefix: str = ""
    shards: int = DEFAULT_SHARDS
    _known: frozenset[str] = field(default=frozenset(t.name for t in TOPICS), repr=False)

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"shards must be at least 1, got {self.shards}")
        if not re.fullmatch(r"[A-Za-z0-9._-]{0,150}", self.prefix):
            raise ValueError(f"a prefix has letters, digits, '.', '_' and '-', at most 150: {self.prefix!r}")

    def of(self, topic: Topic) -> str:
        """Full name of a topic."""
        return self.prefix + topic.name

    def bare(self, name: str) -> str:
        """Name without prefix; raises ``ValueError`` for a topic that is not of this installation."""
        bare = name.removeprefix(self.prefix)
        if bare not in self._known or name != self.prefix + bare:
            raise ValueError(f"{name} is no topic of this installation")
        return bare

    def partition(self, meeting_id: str) -> int:
        """Partition and shard of a meeting: CRC-32C of its id, modulo the partitions."""
        return partition_of(meeting_id, self.shards)


def partition_of(meeting_id: str, partitions: int) -> int:
    """Partition of a meeting (CRC-32C, Castagnoli, of the UTF-8 id modulo the partitions)."""
    return int(google_crc32c.value(meeting_id.encode("utf-8"))) % partitions


def compacted_key(meeting_id: str, kind: str, subject: str = "") -> bytes:
    """Key on a compacted topic: ``meeting/type/subject``, each part percent-encoded."""
    return "/".join(quote(part, safe="") for part in (meeting_id, kind, subject)).encode("ascii")
