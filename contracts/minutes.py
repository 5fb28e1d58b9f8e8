"""Minutes: the document of a meeting and the events that change it, one revision each."""

import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .base import Count, Id, Message, Milliseconds, Name, Ns, Share, Text

SCHEMA = "minuted.minutes/1"
Section = Literal["decisions", "action_items", "open_questions", "answered_questions"]
Verdict = Literal["pass", "repaired", "fallback", "review"]
Origin = Literal["model", "rules", "person"]
Stage = Literal["provisional", "settled", "final"]


class Evidence(Message):
    """What an item rests on. ``start_s`` and ``end_s`` count from the meeting's start."""

    kind: Literal["speech", "slide", "picture"]
    start_s: float
    end_s: float
    device: str
    speaker: str | None
    quote: str
    error_ms: Milliseconds
    sampling_ms: Milliseconds
    boundary_ms: Milliseconds


class Item(Message):
    """A decision or a question."""

    id: Name
    text: Text
    confidence: Share
    origin: Origin
    verdict: Verdict
    evidence: tuple[Evidence, ...]


class ActionItem(Item):
    """Something somebody is going to do. ``due_text`` keeps the words, also where ``due`` is null."""

    owner: str | None
    due: datetime.date | None
    due_text: str | None


class SummarySentence(Message):
    """One sentence of the summary with what it rests on."""

    text: Text
    evidence: tuple[Evidence, ...]


class Attendee(Message):
    """Somebody in the meeting; ``external`` where only the talk names them."""

    name: str
    speaker: str | None
    external: bool


class SlideShown(Message):
    """A slide and how long it stood."""

    start_s: float
    end_s: float
    text: str


class UtteranceShown(Message):
    """One line of the transcript."""

    id: str
    start_s: float
    end_s: float
    speaker: str | None
    text: str


class Gap(Message):
    """A stretch that is missing."""

    start_s: float
    end_s: float
    what: str


class Review(Message):
    """How much waits for a person."""

    waiting: Count


class Versions(Message):
    """What wrote the minutes."""

    product: str
    model: str | None
    rules: str
    contract: str


class MinutesState(Message):
    """The folded minutes without utterances and slides: value of ``minuted.minutes.state``."""

    schema_: Literal["minuted.minutes/1"] = Field(SCHEMA, alias="schema")
    meeting_id: Id
    generation: Count
    revision: Count
    title: str | None
    started: datetime.datetime | None
    start_ns: Ns | None
    duration_s: float
    attendees: tuple[Attendee, ...]
    summary: tuple[SummarySentence, ...]
    decisions: tuple[Item, ...]
    action_items: tuple[ActionItem, ...]
    open_questions: tuple[Item, ...]
    answered_questions: tuple[Item, ...]
    gaps: tuple[Gap, ...]
    notices: tuple[str, ...]
    review: Review
    versions: Versions

    def to_bytes(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode("utf-8")


class MinutesDocument(MinutesState):
    """``minutes.json``: the minutes with transcript and slides."""

    slides: tuple[SlideShown, ...] = ()
    utterances: tuple[UtteranceShown, ...] = ()


class Event(Message):
    """One revision of a meeting's minutes. Identity: (meeting_id, generation, revision)."""

    meeting_id: Id
    generation: Count
    revision: Annotated[int, Field(ge=1)]
    stage: Stage


class ItemAdded(Event):
    """A new item."""

    type: Literal["item_added"] = "item_added"
    section: Section
    item: ActionItem | Item


class ItemChanged(Event):
    """An item in its new form; also when a question moves to the answered ones."""

    type: Literal["item_changed"] = "item_changed"
    section: Section
    item: ActionItem | Item


class ItemWithdrawn(Event):
    """An item does not stand any longer."""

    type: Literal["item_withdrawn"] = "item_withdrawn"
    section: Section
    item_id: Name
    reason: Text


class SummaryChanged(Event):
    """The summary as it stands now."""

    type: Literal["summary"] = "summary"
    summary: tuple[SummarySentence, ...]


class MeetingFinal(Event):
    """The whole meeting has been read; ``document_sha256`` is of the state value's bytes."""

    type: Literal["final"] = "final"
    duration_s: float
    counts: dict[str, int]
    review: Review
    notices: tuple[str, ...]
    document_sha256: str


AnyEvent = ItemAdded | ItemChanged | ItemWithdrawn | SummaryChanged | MeetingFinal
MinutesEvent = Annotated[AnyEvent, Field(discriminator="type")]
MINUTES_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(MinutesEvent)


class ReviewRequest(Message):
    """Something that a person should look at: a withheld or doubtful item."""

    type: Literal["review_request"] = "review_request"
    meeting_id: Id
    generation: Count
    request_id: Name
    item_id: Name
    section: Section
    reason: Text
    text: Text
    owner: str | None = None
    due: datetime.date | None = None
    withheld: bool
    evidence: tuple[Evidence, ...]


class AuditEntry(Message):
    """One verdict: which checks an item met, and what was done about those it did not."""

    type: Literal["audit"] = "audit"
    meeting_id: Id
    generation: Count
    sequence: Count
    stage: Stage
    item_id: Name
    section: Section
    verdict: Literal["pass", "repaired", "fallback", "review", "withheld", "withdrawn", "person"]
    checks: dict[str, bool]
    actions: tuple[str, ...]
    origin: Origin
    versions: Versions
