"""For programs that read minutes: events, the folded document, and what is still missing.

A program that starts reads ``minuted.minutes.state`` once, gives each document to ``load``, and then
follows ``minuted.minutes``. Both topics may be read again from any earlier point at any time: what is
known already changes nothing, and what was missing is put where it belongs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from .minutes import (
    MINUTES_EVENT,
    ActionItem,
    AnyEvent,
    Event,
    Item,
    ItemEvent,
    ItemWithdrawn,
    MeetingFinal,
    MinutesPurged,
    MinutesState,
    Section,
    SummaryChanged,
    SummarySentence,
)  # fmt: skip

SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
Outcome = Literal["applied", "known"]
_KNOWN_TYPES: Final = frozenset(kind.model_fields["type"].default for kind in get_args(AnyEvent))


class UnknownEvent(Event):
    """An event of a type that only newer programs know; it still counts as a revision."""

    type: str


def read_event(data: bytes) -> AnyEvent | UnknownEvent:
    """Event of a message value.

    Raises:
        pydantic.ValidationError: the bytes are no minutes event.
    """
    kind = UnknownEvent.model_validate_json(data)
    return MINUTES_EVENT.validate_json(data) if kind.type in _KNOWN_TYPES else kind


def read_state(data: bytes) -> MinutesState:
    """Document of a message value of ``minuted.minutes.state``.

    Raises:
        pydantic.ValidationError: the bytes are no minutes document.
    """
    return MinutesState.model_validate_json(data)


@dataclass(frozen=True, slots=True)
class Placed:
    """An item and the section that it stands in."""

    section: Section
    item: Item


@dataclass(slots=True)
class Meeting:
    """What is known of one meeting. Every entry remembers the revision it came from."""

    generation: int = 0
    complete_to: int = 0
    """Everything up to this revision is contained."""
    ahead: set[int] = field(default_factory=set)
    """Revisions that were applied though one before them is missing."""
    items: dict[str, tuple[int, Placed | None]] = field(default_factory=dict)
    """By item id; None where withdrawn."""
    summary_at: tuple[int, tuple[SummarySentence, ...]] = (0, ())
    final_at: tuple[int, MeetingFinal | None] = (0, None)
    purged: bool = False
    """All of it is to be forgotten; items and summary are gone, and nothing comes back."""
    document: MinutesState | None = None
    """The newest document, for what events do not carry: title, attendees, gaps, notices."""

    @property
    def revision(self) -> int:
        """Highest revision known."""
        return max(self.ahead, default=self.complete_to)

    @property
    def missing(self) -> tuple[range, ...]:
        """Revisions not seen though a later one was."""
        gaps, next_one = [], self.complete_to + 1
        for revision in sorted(self.ahead):
            if revision > next_one:
                gaps.append(range(next_one, revision))
            next_one = revision + 1
        return tuple(gaps)

    def complete(self, revision: int) -> None:
        """Note that everything up to a revision is contained, and what that joins up with."""
        self.complete_to = max(self.complete_to, revision)
        while self.complete_to + 1 in self.ahead:
            self.complete_to += 1
        self.ahead = {ahead for ahead in self.ahead if ahead > self.complete_to}

    @property
    def summary(self) -> tuple[SummarySentence, ...]:
        return self.summary_at[1]

    @property
    def final(self) -> MeetingFinal | None:
        """The final event, unless something has changed the minutes since."""
        at, event = self.final_at
        return event if at == self.revision else None

    def section(self, name: Section) -> tuple[Item, ...]:
        """Items of a section, ordered by the start of their earliest evidence, then by id."""
        placed = (entry for _, entry in self.items.values() if entry is not None)
        return tuple(sorted((entry.item for entry in placed if entry.section == name), key=_order))

    @property
    def action_items(self) -> tuple[ActionItem, ...]:
        return tuple(item for item in self.section("action_items") if isinstance(item, ActionItem))


class MinutesFold:
    """Folds events and documents of any number of meetings; their order and repetition do not matter.

    For every item, the summary and the final event the highest revision wins, so reading again,
    reading late and reading two topics side by side give the same as reading each event once.
    """

    def __init__(self) -> None:
        self.meetings: dict[str, Meeting] = {}

    def load(self, state: MinutesState) -> Outcome:
        """Take over a document; ``known`` where it is no newer than what stands."""
        meeting = self._meeting(state.meeting_id, state.generation)
        base = state.revision
        if meeting is None or meeting.purged:
            return "known"
        if meeting.document is not None and base <= meeting.document.revision:
            return "known"
        later = {key: entry for key, entry in meeting.items.items() if entry[0] > base}
        meeting.items = {
            item.id: (base, Placed(section, item)) for section in SECTIONS for item in _items(state, section)
        } | later
        if meeting.summary_at[0] <= base:
            meeting.summary_at = (base, state.summary)
        meeting.document = state
        meeting.complete(base)
        return "applied"

    def apply(self, event: AnyEvent | UnknownEvent) -> Outcome:
        """Take over an event; ``known`` where this revision, or one of a newer generation, was seen."""
        meeting = self._meeting(event.meeting_id, event.generation)
        revision = event.revision
        if meeting is None:
            return "known"
        if isinstance(event, MeetingFinal):
            # Also where a document of this revision was loaded: documents do not say that they are final.
            meeting.final_at = max(meeting.final_at, (revision, event), key=_revision)
        if revision <= meeting.complete_to or revision in meeting.ahead:
            return "known"
        meeting.ahead.add(revision)
        meeting.complete(meeting.complete_to)
        if isinstance(event, MinutesPurged):
            meeting.purged, meeting.items, meeting.document = True, {}, None
            meeting.summary_at, meeting.final_at = (revision, ()), (0, None)
        elif meeting.purged:
            pass  # What comes late of a purged meeting only completes the numbers.
        elif isinstance(event, ItemEvent):
            self._place(meeting, revision, event.item.id, Placed(event.section, event.item))
        elif isinstance(event, ItemWithdrawn):
            self._place(meeting, revision, event.item_id, None)
        elif isinstance(event, SummaryChanged):
            meeting.summary_at = max(meeting.summary_at, (revision, event.summary), key=_revision)
        return "applied"

    def apply_all(self, events: Iterable[AnyEvent | UnknownEvent]) -> None:
        """Take over events one after another."""
        for event in events:
            self.apply(event)

    def _meeting(self, meeting_id: str, generation: int) -> Meeting | None:
        """The meeting in this generation, begun anew for a newer one; None for an older one."""
        meeting = self.meetings.get(meeting_id)
        if meeting is None or generation > meeting.generation:
            meeting = self.meetings[meeting_id] = Meeting(generation)
        return meeting if meeting.generation == generation else None

    @staticmethod
    def _place(meeting: Meeting, revision: int, item_id: str, entry: Placed | None) -> None:
        if revision > meeting.items.get(item_id, (0, None))[0]:
            meeting.items[item_id] = (revision, entry)


def _items(state: MinutesState, section: Section) -> tuple[Item, ...]:
    items: tuple[Item, ...] = getattr(state, section)
    return items


def _order(item: Item) -> tuple[float, str]:
    return (min((evidence.start_s for evidence in item.evidence), default=0.0), item.id)


def _revision(entry: tuple[int, object]) -> int:
    return entry[0]
