"""What somebody who watches a meeting knows by now: fed with messages of the topics, drawn elsewhere.

Knows nothing of Kafka or of the terminal. All text comes from outside and is made harmless on the way
in: control characters, escape sequences and characters that turn the direction are taken out.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from contracts.base import Message
from contracts.consumer import MinutesFold, read_event
from contracts.messages import AgendaChanged, AttendeesChanged, MeetingEnded, MeetingStarted, PartialText
from contracts.minutes import ActionItem, Item, ItemAdded, ItemChanged, ItemWithdrawn, MeetingFinal, Section
from contracts.timeline import (
    TIMELINE_RECORD,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    GapRecord,
    MarkRecord,
    NoticeRecord,
    SlideRecord,
    UtteranceRecord,
)
from contracts.topics import MINUTES, PARTIALS, TIMELINE
from operators.deliver.render import clock_text, due_text_of
from operators.plain_text import plain

KEPT_LINES: Final = 200
WATCHED: Final = (TIMELINE, PARTIALS, MINUTES)
"""Topics that a view is fed with."""
NAMES_OF_SECTIONS: Final[Mapping[Section, str]] = {
    "decisions": "Decision",
    "action_items": "Action",
    "open_questions": "Question",
    "answered_questions": "Answered",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One closed utterance: seconds from the start, who, what."""

    at_s: float
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Speaking:
    """Text of speech that goes on."""

    piece_id: str
    speaker: str
    text: str


@dataclass(slots=True)
class MeetingView:
    """The state of one meeting as it is shown."""

    meeting_id: str
    title: str = ""
    zero_ns: int | None = None
    begun: bool = False
    """The room has said when the meeting began."""
    newest_ns: int | None = None
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    speaking: dict[str, Speaking] = field(default_factory=dict)
    slide: tuple[str, ...] = ()
    slide_at_s: float = 0.0
    slides_seen: int = 0
    last_item: str | None = None
    ended: bool = False
    final: MeetingFinal | None = None
    notices: list[str] = field(default_factory=list)
    clocks: dict[tuple[str, int], ClockRecord] = field(default_factory=dict)
    newest_clock: dict[str, int] = field(default_factory=dict)
    printed: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        """How far the meeting has been heard and seen."""
        if self.zero_ns is None or self.newest_ns is None:
            return 0.0
        return max(0.0, (self.newest_ns - self.zero_ns) / 1e9)


class LiveView:
    """Follows one meeting on ``minuted.timeline``, ``minuted.partials`` and ``minuted.minutes``.

    Args:
        meeting_id: the meeting to follow; None follows the first one that speaks, then the next that starts.
        expected_s: length of the meeting where it is known, for the progress bar.
    """

    def __init__(self, meeting_id: str | None = None, expected_s: float | None = None) -> None:
        self.expected_s = expected_s
        self._wanted = meeting_id
        self._fold = MinutesFold()
        self.meeting: MeetingView | None = MeetingView(meeting_id) if meeting_id else None
        self._changes = 0

    @property
    def look(self) -> tuple[int, int]:
        """Differs whenever the view looks different; whole seconds are enough for the clock."""
        return self._changes, int(self.meeting.elapsed_s) if self.meeting else 0

    @property
    def finished(self) -> bool:
        """The meeting's final minutes have come and nothing has changed them since."""
        return self.meeting is not None and self.meeting.final is not None

    def items(self, section: Section) -> tuple[Item, ...]:
        """Items of a section as they stand."""
        if self.meeting is None or self.meeting.meeting_id not in self._fold.meetings:
            return ()
        return self._fold.meetings[self.meeting.meeting_id].section(section)

    def feed(self, topic: str, value: bytes) -> list[str]:
        """Take over one message (topic name without prefix); returns what a log of lines says of it.

        Binary records, other meetings and what cannot be read change nothing.
        """
        if not value.startswith(b"{"):
            return []
        self._changes += 1
        try:
            if topic == MINUTES.name:
                return self._minutes(value)
            if topic == PARTIALS.name:
                self._partial(PartialText.model_validate_json(value))
                return []
            return self._timeline(value) if topic == TIMELINE.name else []
        except (ValidationError, json.JSONDecodeError):
            return []

    # Which meeting

    def _view(self, meeting_id: str, starts: bool = False) -> MeetingView | None:
        """The view if the message is about the meeting that is followed, perhaps from now on."""
        current = self.meeting
        if current is not None and current.meeting_id == meeting_id:
            return current
        if self._wanted is not None or (current is not None and not (starts or current.final)):
            return None
        self.meeting = MeetingView(meeting_id)
        return self.meeting

    # The log

    def _timeline(self, value: bytes) -> list[str]:
        record = TIMELINE_RECORD.validate_json(value)
        meeting_id: str | None = getattr(record, "meeting_id", None)
        if meeting_id is None:
            return []
        starts = isinstance(record, ControlRecord) and isinstance(record.control, MeetingStarted)
        view = self._view(meeting_id, starts)
        if view is None:
            return []
        match record:
            case ControlRecord():
                return _control(view, record.control)
            case ClockRecord():
                view.clocks[(record.device, record.number)] = record
                view.newest_clock[record.device] = record.number
            case MarkRecord():
                self._changes -= 1  # ten a second from every stream; what they move is the clock
                device = record.stream.rsplit("/", 1)[0]
                if (number := view.newest_clock.get(device)) is not None:
                    _advance(view, _placed(view, device, number, record.raw_ns))
            case UtteranceRecord():
                return _utterance(view, record)
            case SlideRecord():
                return _slide(view, record)
            case GapRecord():
                at = _seconds(view, _placed(view, record.device, record.clock, record.raw_start_ns))
                return [f"[{clock_text(at)}] Gap on {plain(record.stream)}: {record.what.replace('_', ' ')}"]
            case NoticeRecord():
                view.notices.append(plain(record.text))
                return [f"Notice: {plain(record.text)}"]
            case EndedRecord():
                view.ended = True
                _advance(view, record.end_ns)
                return [f"[{clock_text(view.elapsed_s)}] The meeting is over, the minutes are being finished"]
        return []

    def _partial(self, partial: PartialText) -> None:
        view = self._view(partial.meeting_id)
        if view is None or partial.piece_id in view.printed:
            return
        speaker = _name(view, partial.speaker, partial.device)
        view.speaking = {k: s for k, s in view.speaking.items() if s.speaker != speaker}
        view.speaking[partial.piece_id] = Speaking(partial.piece_id, speaker, plain(partial.text))

    # The minutes

    def _minutes(self, value: bytes) -> list[str]:
        event = read_event(value)
        view = self._view(event.meeting_id)
        if view is None:
            return []
        before = {item.id: (name, item) for name in NAMES_OF_SECTIONS for item in self.items(name)}
        if self._fold.apply(event) == "known":
            return []
        view.final = event if isinstance(event, MeetingFinal) else None
        match event:
            case ItemAdded() | ItemChanged():
                view.last_item = event.item.id
                sign = "+" if isinstance(event, ItemAdded) else "~"
                section, known = before.get(event.item.id, (event.section, None))
                if known and section == event.section and item_line(known) == item_line(event.item):
                    return []  # only how sure it is, or its further evidence: nothing that the line shows
                return [f"{sign} {NAMES_OF_SECTIONS[event.section]} {item_line(event.item)}"]
            case ItemWithdrawn():
                _, gone = before.get(event.item_id, (event.section, None))
                text = f"{item_line(gone)} " if gone else ""
                return [f"- {NAMES_OF_SECTIONS[event.section]} {text}({plain(event.reason)})"]
            case MeetingFinal():
                return [f"= Final minutes after {clock_text(event.duration_s)}: {counts_line(event.counts)}"]
        return []


def item_line(item: Item) -> str:
    """An item on one line: time of evidence, text, owner and due date, doubt."""
    at = f"({clock_text(item.evidence[0].start_s)}) " if item.evidence else ""
    return f"{at}{plain(item.text)}{_tail(item)}"


def _tail(item: Item) -> str:
    parts: list[str] = []
    if isinstance(item, ActionItem):
        parts.append(f"owner: {plain(item.owner) if item.owner else 'not named'}")
        parts.append(f"due: {due_text_of(item) or 'no date'}")
    if item.verdict in ("review", "fallback"):
        parts.append("please check")
    return "".join(f" | {part}" for part in parts)


def counts_line(counts: Mapping[str, int]) -> str:
    """``3 decisions, 5 action items, …`` in the order of the minutes."""
    names = {name: name.replace("_", " ") for name in NAMES_OF_SECTIONS}
    found = ((counts.get(name, 0), words) for name, words in names.items())
    return ", ".join(f"{count} {words if count != 1 else words[:-1]}" for count, words in found)


def _name(view: MeetingView, speaker: str | None, device: str) -> str:
    if speaker is None:
        return plain(device) or "?"
    return view.names.get(speaker) or plain(speaker) or "?"


def _placed(view: MeetingView, device: str, number: int, raw_ns: int) -> int:
    """Timeline time of a device's stamp by its clock record; the stamp itself before one has come."""
    clock = view.clocks.get((device, number))
    if clock is None:
        return raw_ns
    return raw_ns - clock.offset_ns - round(clock.skew_ppb * (raw_ns - clock.ref_ns) / 1e9)


def _seconds(view: MeetingView, time_ns: int) -> float:
    if view.zero_ns is None:
        view.zero_ns = time_ns
    return (time_ns - view.zero_ns) / 1e9


def _advance(view: MeetingView, time_ns: int) -> None:
    if view.zero_ns is None:
        view.zero_ns = time_ns
    view.newest_ns = max(time_ns, view.newest_ns if view.newest_ns is not None else time_ns)


def _control(view: MeetingView, control: Message) -> list[str]:
    if isinstance(control, MeetingStarted | AttendeesChanged):
        view.names |= {a.speaker: plain(a.name) for a in control.attendees if a.speaker}
    if isinstance(control, MeetingStarted):
        view.title = plain(control.title or "")
        if control.start_ns is not None and not view.begun:
            # As in the minutes: a publisher that starts again announces the meeting again, and its zero stays.
            view.zero_ns, view.begun = control.start_ns, not control.implicit
        people = ", ".join(plain(a.name) for a in control.attendees)
        return [f"Meeting {view.title or plain(view.meeting_id)}{' with ' + people if people else ''}"]
    if isinstance(control, AgendaChanged | AttendeesChanged):
        return []
    return ["The room says that the meeting is over"] if isinstance(control, MeetingEnded) else []


def _utterance(view: MeetingView, record: UtteranceRecord) -> list[str]:
    start_ns = _placed(view, record.device, record.clock, record.raw_start_ns)
    _advance(view, _placed(view, record.device, record.clock, record.raw_end_ns))
    speaker = _name(view, record.speaker, record.device)
    if record.state == "tentative":
        view.speaking = {k: s for k, s in view.speaking.items() if s.speaker != speaker}
        view.speaking[record.id] = Speaking(record.id, speaker, plain(record.text))
        return []
    view.speaking = {k: s for k, s in view.speaking.items() if k != record.id and s.speaker != speaker}
    if record.state == "withdrawn" or record.id in view.printed:
        return []
    view.printed.add(record.id)
    text = plain(record.text)
    if not text:
        return []
    line = Line(_seconds(view, start_ns), speaker, text)
    view.lines.append(line)
    return [f"[{clock_text(line.at_s)}] {speaker}: {text}"]


def _slide(view: MeetingView, record: SlideRecord) -> list[str]:
    at_s = _seconds(view, _placed(view, record.device, record.clock, record.raw_start_ns))
    view.slide = tuple(line for raw in record.text.splitlines() if (line := plain(raw)))
    view.slide_at_s = at_s
    view.slides_seen += 1
    return [f"[{clock_text(at_s)}] Slide: {' / '.join(view.slide) or 'without text'}"]
