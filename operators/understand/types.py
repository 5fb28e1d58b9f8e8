"""What goes into the rule engine and what comes out of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from operators.understand.sensed import SensePiece, Senses

Kind = Literal["decision", "action_item", "open_question", "answered_question"]
Family = Literal["decision", "action", "question"]


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One recognised word with its times."""

    start_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """One utterance on the timeline, with the three error figures of its evidence (milliseconds)."""

    id: str
    start_ns: int
    end_ns: int
    speaker: str | None
    text: str
    device: str = ""
    error_ms: float = 0.0
    sampling_ms: float = 0.0
    boundary_ms: float = 0.0
    words: tuple[SpokenWord, ...] = ()
    senses: Senses | None = None
    """What was seen, shown and heard in the voice around it; None where nothing but the words is known."""


@dataclass(frozen=True, slots=True)
class Attendee:
    """Somebody on the control list; ``speaker`` is the label under which the person is heard."""

    name: str
    speaker: str | None = None
    role: str | None = None
    external: bool = False
    aliases: tuple[str, ...] = ()
    """What was heard and, as a person said, means this attendee."""


@dataclass(frozen=True, slots=True)
class MeetingContext:
    """What is known of a meeting besides the speech."""

    title: str | None = None
    date: dt.date | None = None
    attendees: tuple[Attendee, ...] = ()
    agenda: tuple[str, ...] = ()
    key_topics: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """What was heard and what it is called, as people corrected it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Characters ``first`` to ``last`` (exclusive) of an utterance's text."""

    utterance_id: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DraftItem:
    """One decision, action item or question as the rules see it."""

    id: str
    kind: Kind
    text: str
    confidence: float
    owner: str | None
    owner_external: bool
    due: dt.date | None
    due_text: str | None
    evidence: tuple[Quote, ...]
    withdrawn: bool
    reasons: tuple[str, ...]
    senses: tuple[SensePiece, ...] = ()
    """What else it rests on: gestures and lines of slides."""
    perhaps: str | None = None
    """Who likely has the task where it is not sure enough to name anybody."""
    due_open: bool = False
    """Words name a day, but it is not sure enough that the task is due then."""


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of the summary with what it rests on, and the item that it tells."""

    text: str
    evidence: tuple[Quote, ...]
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class UnderstandSettings:
    """Thresholds and bounds of the rule engine.

    ``look_back`` is the number of utterances that a reply, correction or restatement may reach back
    without repeating words; ``live_items`` bounds the items that one that does is compared with. Only the
    first ``most_speakers`` voices are looked for by name in what others say: nobody knows more in a room.
    """

    action_threshold: float = 0.6
    decision_threshold: float = 0.55
    question_threshold: float = 0.6
    look_back: int = 14
    live_items: int = 80
    most_speakers: int = 256
    evidence_spans: int = 6
    evidence_ns: int = 28_000_000_000

    def __post_init__(self) -> None:
        if not 0 < min(self.action_threshold, self.decision_threshold, self.question_threshold) <= 1:
            raise ValueError("thresholds lie between 0 and 1: at 0 every utterance becomes an item")
        if (
            min(self.look_back, self.live_items, self.evidence_spans, self.most_speakers) < 1
            or self.evidence_ns <= 0
        ):
            raise ValueError("bounds must be positive: without evidence no item can be published")
