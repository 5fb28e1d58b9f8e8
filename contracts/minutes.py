"""Minutes: the document of a meeting and the events that change it, one revision each."""

import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, TypeAdapter, model_validator

from .audit import AuditHead
from .base import Count, Line, MeetingId, Message, Milliseconds, Name, Ns, Seconds, Sha256, Share, Text
from .topics import compacted_key

SCHEMA: Final = "minuted.minutes/1"
Moment = Annotated[
    AwareDatetime,
    Field(json_schema_extra={"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"}),
]
"""A moment as people read it, with its offset from UTC."""
Section = Literal["decisions", "action_items", "open_questions", "answered_questions"]
Verdict = Literal["pass", "repaired", "fallback", "review"]
Origin = Literal["model", "rules", "person"]
Stage = Literal["provisional", "settled", "final"]


class Evidence(Message):
    """What an item rests on. ``start_s`` and ``end_s`` count from the meeting's start."""

    kind: Literal["speech", "slide", "picture"]
    start_s: Seconds
    end_s: Seconds
    device: Name
    speaker: Line | None
    quote: Text
    error_ms: Milliseconds
    sampling_ms: Milliseconds
    boundary_ms: Milliseconds


EvidenceList = Annotated[tuple[Evidence, ...], Field(max_length=1_000)]


class Item(Message):
    """A decision or a question."""

    id: Name
    text: Text
    confidence: Share
    origin: Origin
    verdict: Verdict
    evidence: EvidenceList


class ActionItem(Item):
    """Something somebody is going to do. ``due_text`` keeps the words, also where ``due`` is null."""

    owner: Line | None
    due: datetime.date | None
    due_text: Line | None


class SummarySentence(Message):
    """One sentence of the summary with what it rests on."""

    text: Text
    evidence: EvidenceList


Items = Annotated[tuple[Item, ...], Field(max_length=10_000)]
Summary = Annotated[tuple[SummarySentence, ...], Field(max_length=1_000)]
Notices = Annotated[tuple[Text, ...], Field(max_length=10_000)]


class Attendee(Message):
    """Somebody in the meeting; ``external`` where only the talk names them."""

    name: Line
    speaker: Line | None
    external: bool


class SlideShown(Message):
    """A slide and how long it stood."""

    start_s: Seconds
    end_s: Seconds
    text: Text


class UtteranceShown(Message):
    """One line of the transcript."""

    id: Name
    start_s: Seconds
    end_s: Seconds
    speaker: Line | None
    text: Text


class Gap(Message):
    """A stretch of a stream (``device/modality``) that is missing."""

    start_s: Seconds
    end_s: Seconds
    what: Line
    stream: Line = ""


class Review(Message):
    """How much waits for a person."""

    waiting: Count


class Versions(Message):
    """What wrote the minutes."""

    product: Line
    model: Line | None
    rules: Line
    contract: Line
    assertions: Line | None = None
    """Name and hash of the rule file in force (``default/df0fd4e8d658``)."""
    verifier: Line | None = None
    """The model that judged items against their evidence; None where none did."""


class MinutesState(Message):
    """The folded minutes without utterances and slides: value of ``minuted.minutes.state``."""

    schema_: Literal["minuted.minutes/1"] = Field(SCHEMA, alias="schema")
    meeting_id: MeetingId
    generation: Count
    revision: Count
    title: Line | None
    started: Moment | None
    start_ns: Ns | None
    duration_s: Seconds
    attendees: Annotated[tuple[Attendee, ...], Field(max_length=5_000)]
    summary: Summary
    decisions: Items
    action_items: Annotated[tuple[ActionItem, ...], Field(max_length=10_000)]
    open_questions: Items
    answered_questions: Items
    gaps: Annotated[tuple[Gap, ...], Field(max_length=100_000)]
    notices: Notices
    review: Review
    versions: Versions
    audit: AuditHead | None = None
    """How far the audit chain reached when this was written: proves that nothing of it is missing."""

    @property
    def key(self) -> bytes:
        """Key on ``minuted.minutes.state``: one document a meeting."""
        return compacted_key(self.meeting_id, "minutes")


class MinutesDocument(MinutesState):
    """``minutes.json``: the minutes with transcript and slides. A file, so no message limit bounds it."""

    slides: tuple[SlideShown, ...] = ()
    utterances: tuple[UtteranceShown, ...] = ()


class Event(Message):
    """One revision of a meeting's minutes. Identity: (meeting_id, generation, revision)."""

    meeting_id: MeetingId
    generation: Count
    revision: Annotated[int, Field(ge=1, lt=2**64)]
    stage: Stage
    passed: Annotated[tuple[Line, ...], Field(max_length=1_000)] = ()
    """Names of the rules that this revision was held against and holds; at most the first thousand."""
    assertions: Line | None = None
    """Name and hash of the rule file that they are from."""


class ItemEvent(Event):
    """An item as it stands now; ids are unique over all sections of a meeting."""

    section: Section
    item: ActionItem | Item

    @model_validator(mode="after")
    def _item_fits_section(self) -> Self:
        if isinstance(self.item, ActionItem) != (self.section == "action_items"):
            raise ValueError("owner and due belong to action items, and to all of them")
        return self


class ItemAdded(ItemEvent):
    """A new item."""

    type: Literal["item_added"] = "item_added"


class ItemChanged(ItemEvent):
    """An item in its new form and section; an answered question moves from one section to another."""

    type: Literal["item_changed"] = "item_changed"


class ItemWithdrawn(Event):
    """An item does not stand any longer."""

    type: Literal["item_withdrawn"] = "item_withdrawn"
    section: Section
    item_id: Name
    reason: Text


class SummaryChanged(Event):
    """The summary as it stands now."""

    type: Literal["summary"] = "summary"
    summary: Summary


class MeetingFinal(Event):
    """The whole meeting has been read; ``document_sha256`` is of the state value's bytes."""

    type: Literal["final"] = "final"
    duration_s: Seconds
    counts: Annotated[dict[Name, Count], Field(max_length=100)]
    review: Review
    notices: Notices
    document_sha256: Sha256
    audit: AuditHead | None = None
    """As in the document."""


class MinutesPurged(Event):
    """The meeting was purged: whoever holds a copy of its minutes deletes it. Nothing follows."""

    type: Literal["purged"] = "purged"


AnyEvent = ItemAdded | ItemChanged | ItemWithdrawn | SummaryChanged | MeetingFinal | MinutesPurged
MinutesEvent = Annotated[AnyEvent, Field(discriminator="type")]
MINUTES_EVENT: TypeAdapter[AnyEvent] = TypeAdapter(MinutesEvent)


class ReviewRequest(Message):
    """Something that a person should look at: a withheld or doubtful item.

    A case is known by ``request_id``; of its messages the one with the highest ``version`` counts.
    """

    type: Literal["review_request"] = "review_request"
    meeting_id: MeetingId
    generation: Count
    request_id: Name
    item_id: Name
    section: Section | Literal["meeting"]
    """``meeting``: the doubt is about the minutes as a whole."""
    reason: Text
    text: Text
    owner: Line | None = None
    due: datetime.date | None = None
    withheld: bool
    evidence: EvidenceList
    version: Count = 0
    state: Literal["open", "closed"] = "open"
    revision: Count = 0
    """Revision of the minutes at which this was asked."""
    item_sha256: Sha256 | None = None
    """Hash of the item as it was then; an answer that names another one is not applied."""


class AuditEntry(Message):
    """One verdict: what was written, why, which checks and rules it met, and what was done about the rest.

    What ``audit_sealed`` messages hold once they are opened.
    """

    type: Literal["audit"] = "audit"
    meeting_id: MeetingId
    generation: Count
    sequence: Count
    stage: Stage
    item_id: Name
    section: Section | Literal["summary", "meeting"]
    """``summary``: the verdict on the summary as a whole; ``item_id`` is ``summary`` too. ``meeting``: on the
    minutes as a whole, or something done to the meeting."""
    verdict: Literal[
        "pass", "repaired", "fallback", "review", "withheld", "withdrawn", "person", "void", "rules", "purged"
    ]
    """``person``: what somebody decided; ``void``: an answer that was not applied; ``rules``: other rules came
    into force."""
    checks: Annotated[dict[Line, bool], Field(max_length=1_000)]
    actions: Annotated[tuple[Line, ...], Field(max_length=1_000)]
    origin: Origin
    versions: Versions
    revision: Count = 0
    """Revision of the minutes after this; 0 before the first."""
    reasons: Annotated[tuple[Line, ...], Field(max_length=1_000)] = ()
    """Why a person was asked, or what was found wrong."""
    passed: Annotated[tuple[Line, ...], Field(max_length=1_000)] = ()
    """Names of rules that hold, at most the first thousand."""
    failed: Annotated[tuple[Line, ...], Field(max_length=1_000)] = ()
    """Names of rules that did not."""
    probability: Share | None = None
    """What the verifier model gave, where one was asked."""
    text: Text | None = None
    owner: Line | None = None
    due: datetime.date | None = None
    due_text: Line | None = None
    evidence: EvidenceList = ()
    by: Line | None = None
    """Who decided, where a person did."""
    correction_id: Line | None = None
