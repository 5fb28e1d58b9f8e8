"""What goes into the verifier and what comes out of it."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from contracts.messages import RuleFile
from contracts.minutes import Attendee, Evidence, Origin, Section, Stage, SummarySentence
from operators.understand.types import Attendee as Listed
from operators.understand.types import DraftItem, MeetingContext, Spoken
from operators.understand.types import SummarySentence as DraftSentence

ItemVerdict = Literal["pass", "repaired", "fallback", "review", "withheld", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A slide on show or a gap: timeline span in ns, text or what is missing, device."""

    start_ns: int
    end_ns: int
    text: str
    device: str = ""
    error_ms: float = 0.0
    sampling_ms: float = 0.0


@dataclass(frozen=True)
class Draft:
    """Everything one stage of one meeting has to say, before it is verified.

    Attributes:
        items: all items of the stage as it sees the meeting now, withdrawn ones included.
        until_ns: timeline time up to which the stage has read the speech; what another stage found
            later than that stays as it is.
        zero_ns: timeline time from which ``*_s`` count.
        start_ns: start of the meeting on the timeline; None for files without a start time.
        utterances: what the evidence refers to; at ``final`` all utterances of the meeting.
        speakers: labels of all speakers heard.
        topic_sentences: a sentence for each key topic that was discussed, to be put into the summary
            where it lacks the topic.
    """

    meeting_id: str
    stage: Stage
    context: MeetingContext
    until_ns: int
    items: tuple[DraftItem, ...]
    utterances: Mapping[str, Spoken]
    summary: tuple[DraftSentence, ...] = ()
    slides: tuple[Stretch, ...] = ()
    gaps: tuple[Stretch, ...] = ()
    notices: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    zero_ns: int = 0
    start_ns: int | None = None
    duration_ns: int = 0
    tai_utc_offset_s: int = 37
    origin: Origin = "rules"
    rules: RuleFile | None = None
    """The rule file that the log says is in force; None: the one of the settings."""
    topic_sentences: Mapping[str, DraftSentence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VerifiedItem:
    """One item after the checks. ``doubts`` are reasons for a person to look, ``checks`` what it met.

    ``passed`` and ``failed`` are names of rules, ``probability`` is the judge's, where one was asked.
    ``digest`` identifies all that is published or audited of the item.
    """

    item_id: str
    section: Section
    text: str
    confidence: float
    owner: str | None
    due: dt.date | None
    due_text: str | None
    verdict: ItemVerdict
    origin: Origin
    checks: tuple[tuple[str, bool], ...]
    actions: tuple[str, ...]
    doubts: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    first_ns: int
    digest: bytes = b""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    probability: float | None = None


def identified(item: VerifiedItem) -> VerifiedItem:
    """The item with the digest of all that is published or audited of it."""
    value = (
        item.section, item.text, item.confidence, item.owner, item.due.isoformat() if item.due else None,
        item.due_text, item.verdict, item.origin, item.checks, item.actions, item.doubts,
        [e.model_dump_json() for e in item.evidence], item.passed, item.failed, item.probability,
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(value, ensure_ascii=True).encode("ascii")).digest()[:16]
    return replace(item, digest=digest)


@dataclass(frozen=True, slots=True)
class SummaryVerdict:
    """What became of the summary as a whole."""

    checks: tuple[tuple[str, bool], ...]
    actions: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """A draft with the verdicts on its items; ``summary`` holds only sentences that their evidence bears.

    Attributes:
        assertions: name and hash of the rules in force; None without rules.
        doubts: reasons for a person to look at the minutes as a whole.
        whole: names of rules about the whole that hold.
        passed: those, and the rules about items that hold for every item.
        together: whether a rule looks at several items at once, so that it holds for all of the draft or not at all.
    """

    draft: Draft
    items: tuple[VerifiedItem, ...]
    summary: tuple[SummarySentence, ...]
    summary_verdict: SummaryVerdict
    notices: tuple[str, ...]
    assertions: str | None = None
    doubts: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    together: bool = False


def seconds(time_ns: int, zero_ns: int) -> float:
    """Seconds from the zero, rounded to milliseconds in whole numbers, so the same everywhere."""
    return ((time_ns - zero_ns + 500_000) // 1_000_000) / 1000


def started_at(start_ns: int | None, tai_utc_offset_s: int) -> dt.datetime | None:
    """Start of a meeting in UTC; None for files without a start time."""
    if start_ns is None:
        return None
    utc_us = (start_ns - tai_utc_offset_s * 1_000_000_000) // 1000
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=utc_us)


def attendees_of(draft: Draft) -> tuple[Attendee, ...]:
    """The control list in its order, then speakers who are not on it."""
    return _attendees(draft.context.attendees, tuple(draft.speakers))


@lru_cache(maxsize=256)
def _attendees(listed_ones: tuple[Listed, ...], speakers: tuple[str, ...]) -> tuple[Attendee, ...]:
    heard_as = {name: name for name in speakers}
    listed = [
        Attendee(name=a.name, speaker=a.speaker or heard_as.get(a.name), external=a.external)
        for a in listed_ones
    ]
    known = {label for a in listed for label in (a.name, a.speaker) if label}
    heard = sorted({s for s in speakers if s not in known})
    return (*listed, *(Attendee(name=s, speaker=s, external=False) for s in heard))


def outsiders_of(draft: Draft) -> tuple[Attendee, ...]:
    """People outside the meeting to whom something fell, as the draft names them."""
    names = sorted({i.owner for i in draft.items if i.owner and i.owner_external})
    return tuple(Attendee(name=name, speaker=None, external=True) for name in names)
