"""What goes into the verifier and what comes out of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from contracts.minutes import Evidence, Origin, Section, Stage, SummarySentence
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


@dataclass(frozen=True, slots=True)
class SummaryVerdict:
    """What became of the summary as a whole."""

    checks: tuple[tuple[str, bool], ...]
    actions: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """A draft with the verdicts on its items; ``summary`` holds only sentences that their evidence bears."""

    draft: Draft
    items: tuple[VerifiedItem, ...]
    summary: tuple[SummarySentence, ...]
    summary_verdict: SummaryVerdict
    notices: tuple[str, ...]


def seconds(time_ns: int, zero_ns: int) -> float:
    """Seconds from the zero, rounded to milliseconds in whole numbers, so the same everywhere."""
    return ((time_ns - zero_ns + 500_000) // 1_000_000) / 1000
