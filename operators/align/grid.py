"""Align: joins the streams of a meeting's log on one timeline, in one order.

Provisional output follows the log's order. Settled and final output is sorted by (start, id) and goes
no further than the smallest mark of the live streams, so what happened to arrive first decides nothing.
"""

import bisect
from dataclasses import dataclass, field
from typing import Final

from contracts.messages import (
    AgendaChanged,
    AnyControl,
    AttendeeInfo,
    AttendeesChanged,
    ChannelMapChanged,
    Correction,
    MeetingPurged,
    MeetingStarted,
    NameCorrected,
    RuleFile,
)
from contracts.timeline import (
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    GapRecord,
    MarkRecord,
    NoticeRecord,
    SlideRecord,
    StreamRecord,
    UtteranceRecord,
)
from operators.align.aligned import (
    Aligned,
    Corrected,
    Ended,
    GapSpan,
    Heard,
    Purged,
    Setting,
    Settled,
    SlideSpan,
    Unheard,
)
from operators.timeline import clock_in_force, to_timeline_ns
from operators.understand.engine import Attendee, MeetingContext, Spoken, SpokenWord
from operators.verify.rule_files import why_unusable

_NS_PER_MS: Final = 1e6
_NEVER_NS: Final = -(2**63)
_ALWAYS_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AlignSettings:
    """When an utterance is settled: so many later ones are known, or the marks are so far past its end."""

    later_utterances: int = 2
    later_ns: int = 10_000_000_000


def _device_of(stream: str) -> str:
    return stream.rpartition("/")[0]


@dataclass(slots=True)
class _Stream:
    live: bool
    mark_raw_ns: int = _NEVER_NS
    mark_clock: int = 0
    """Number of the clock record that was in force when the mark came."""


@dataclass(slots=True)
class MeetingAligner:
    """The log of one meeting, record by record."""

    meeting_id: str
    settings: AlignSettings
    start_ns: int | None = None
    title: str | None = None
    started: MeetingStarted | None = None
    attendees: dict[str, AttendeeInfo] = field(default_factory=dict)
    agenda: tuple[str, ...] = ()
    key_topics: tuple[str, ...] = ()
    names: dict[str, NameCorrected] = field(default_factory=dict)
    rules: RuleFile | None = None
    """The newest rule file that can be used; it replaces all earlier rules."""
    setting: Setting | None = None
    streams: dict[str, _Stream] = field(default_factory=dict)
    clocks: dict[str, list[ClockRecord]] = field(default_factory=dict)
    utterances: dict[str, UtteranceRecord] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    """Closed utterances that are not settled."""
    settled: list[tuple[int, str]] = field(default_factory=list)
    slides: dict[str, SlideRecord] = field(default_factory=dict)
    gaps: list[GapRecord] = field(default_factory=list)
    resumed: dict[str, list[int]] = field(default_factory=dict)
    """Raw times at which streams came back after they had been given up."""
    notices: list[str] = field(default_factory=list)
    ended: EndedRecord | None = None
    late: int = 0
    changed: set[str] = field(default_factory=set)
    """Utterances that are not yet in the store as they are here."""

    def feed(self, record: AnyRecord) -> list[Aligned]:
        """What follows from the next record of the log."""
        if self.ended is not None and not isinstance(record, ControlRecord):
            self.late += 1
            return []
        match record:
            case ControlRecord():
                return self._control(record.control)
            case StreamRecord():
                return self._stream(record)
            case ClockRecord():
                return self._clock(record)
            case MarkRecord():
                return self._mark(record.stream, record.raw_ns)
            case UtteranceRecord():
                return self._utterance(record)
            case SlideRecord():
                self.slides[record.id] = record
                return self._mark(record.stream, record.mark_ns)
            case GapRecord():
                self.gaps.append(record)
            case NoticeRecord():
                if record.text not in self.notices:
                    self.notices.append(record.text)
            case EndedRecord():
                self.ended = record
                return [self._final()]
        return []

    def _control(self, control: AnyControl) -> list[Aligned]:
        match control:
            case MeetingStarted():
                # A publisher that was restarted announces the meeting again; its zero stays where it was.
                begun = self.started is not None and not self.started.implicit and self.start_ns is not None
                self.started = control
                if control.start_ns is not None and not begun:
                    self.start_ns = control.start_ns
                self.attendees = {a.name: a for a in control.attendees} or self.attendees
                self.agenda, self.key_topics = (
                    control.agenda or self.agenda,
                    control.key_topics or self.key_topics,
                )
                for stream in control.streams:
                    self.streams.setdefault(stream, _Stream(live=True))
            case AttendeesChanged():
                self.attendees = {a.name: a for a in control.attendees}
            case ChannelMapChanged():
                pass
            case AgendaChanged():
                self.agenda, self.key_topics = control.agenda, control.key_topics
            case RuleFile():
                return self._rule_file(control)
            case NameCorrected():
                self.names[control.name], self.setting = control, None
                renamed: list[Aligned] = [Corrected(self.meeting_id, self._setting(), control)]
                return [*renamed, self._final()] if self.ended is not None else renamed
            case Correction():
                corrected: list[Aligned] = [Corrected(self.meeting_id, self._setting(), control)]
                return [*corrected, self._final()] if self.ended is not None else corrected
            case MeetingPurged():
                return [Purged(self.meeting_id)]
            case _:
                return []
        self.setting = None
        return []

    def _rule_file(self, file: RuleFile) -> list[Aligned]:
        problem = why_unusable(file)
        if problem is None:
            self.rules, self.setting = file, None
        elif problem not in self.notices:
            self.notices.append(problem)
        return [self._final()] if self.ended is not None else []

    def _stream(self, record: StreamRecord) -> list[Aligned]:
        stream = self.streams.setdefault(record.stream, _Stream(live=True))
        stream.live = record.state in ("opened", "resumed")
        if record.state == "resumed":
            self.resumed.setdefault(record.stream, []).append(record.raw_ns)
        if stream.live:
            self._move_mark(record.stream, record.raw_ns)
        return self._settle()

    def _clock(self, record: ClockRecord) -> list[Aligned]:
        known = self.clocks.setdefault(record.device, [])
        known.append(record)
        known.sort(key=lambda c: c.number)
        if record.number == 0 or not self.settled:
            return []
        order = [(self.start_of(i), i) for _, i in self.settled]
        return [self._again()] if order != self.settled else []

    def _mark(self, name: str, raw_ns: int) -> list[Aligned]:
        return self._settle() if self._move_mark(name, raw_ns) else []

    def _move_mark(self, name: str, raw_ns: int) -> bool:
        """Marks only go forward on the timeline; on the device's own clock they go back when that is set back."""
        stream, device = self.streams.setdefault(name, _Stream(live=True)), _device_of(name)
        known = self.clocks.get(device)
        clock = known[-1].number if known else 0
        if stream.mark_raw_ns != _NEVER_NS:
            new_ns = to_timeline_ns(self._clock_of(device, clock, raw_ns), raw_ns)
            if new_ns <= self._mark_on_timeline(name, stream):
                return False
        stream.mark_raw_ns, stream.mark_clock = raw_ns, clock
        return True

    def _mark_on_timeline(self, name: str, stream: _Stream) -> int:
        if stream.mark_raw_ns == _NEVER_NS:
            return _NEVER_NS
        clock = self._clock_of(_device_of(name), stream.mark_clock, stream.mark_raw_ns)
        return to_timeline_ns(clock, stream.mark_raw_ns)

    def _utterance(self, record: UtteranceRecord) -> list[Aligned]:
        known = self.utterances.get(record.id)
        if known is not None and known.state == "closed" and record.state != "withdrawn":
            # What was closed first stands; only being withdrawn can follow it.
            return self._mark(record.stream, record.mark_ns)
        out: list[Aligned] = []
        setting = self._setting(first_ns=self._on_timeline(record.device, record.clock, record.raw_start_ns))
        if record.state == "withdrawn":
            if known is not None:
                del self.utterances[record.id]
                self.changed.add(record.id)
                self.waiting.discard(record.id)
                out.append(Unheard(self.meeting_id, setting, record.id))
                if any(i == record.id for _, i in self.settled):
                    self.settled = [entry for entry in self.settled if entry[1] != record.id]
                    out.append(self._again())
        else:
            self.utterances[record.id] = record
            self.changed.add(record.id)
            if record.state == "closed":
                self.waiting.add(record.id)
            out.append(Heard(self.meeting_id, setting, self._spoken(record)))
        self._move_mark(record.stream, record.mark_ns)
        return out + self._settle()

    def _settle(self) -> list[Aligned]:
        """Move what is certain by now from waiting to settled."""
        if not self.waiting:
            return []
        mark = self._least_mark_ns()
        ready = sorted((self.start_of(i), i) for i in self.waiting)
        ready = [entry for entry in ready if entry[0] < mark]
        count = len(ready) - self.settings.later_utterances
        newly = [
            entry
            for place, entry in enumerate(ready)
            if place < count or mark - self._end_of(entry[1]) >= self.settings.later_ns
        ]
        if not newly:
            return []
        self.waiting.difference_update(i for _, i in newly)
        if self.settled and newly[0] < self.settled[-1]:
            for entry in newly:
                bisect.insort(self.settled, entry)
            return [self._again()]
        self.settled.extend(newly)
        return [
            self._settled(tuple(self._spoken(self.utterances[i]) for _, i in newly), anew=False, mark=mark)
        ]

    def _again(self) -> Settled:
        """Everything settled, once more in the order that holds now."""
        self.settled = sorted((self.start_of(i), i) for _, i in self.settled)
        spoken = tuple(self._spoken(self.utterances[i]) for _, i in self.settled)
        return self._settled(spoken, anew=True, mark=self._least_mark_ns())

    def _settled(self, spoken: tuple[Spoken, ...], *, anew: bool, mark: int) -> Settled:
        until = (
            mark if mark != _ALWAYS_NS else max((s.end_ns for s in spoken), default=self._setting().start_ns)
        )
        return Settled(
            self.meeting_id, self._setting(), spoken, anew, self._gaps(), tuple(self.notices), until
        )

    def _final(self) -> Ended:
        if self.ended is None:
            raise RuntimeError("a meeting is final only once it has ended")
        order = sorted((self.start_of(i), i) for i in self.utterances)
        spoken = tuple(self._spoken(self.utterances[i]) for _, i in order)
        end_ns = max([self.ended.end_ns, *(s.end_ns for s in spoken)])
        return Ended(
            self.meeting_id, self._setting(), spoken, self._slide_spans(end_ns), self._gaps(),
            tuple(sorted(self.notices)), end_ns,
        )  # fmt: skip

    def _slide_spans(self, end_ns: int) -> tuple[SlideSpan, ...]:
        by_stream: dict[str, list[tuple[int, SlideRecord]]] = {}
        for slide in self.slides.values():
            start = self._on_timeline(slide.device, slide.clock, slide.raw_start_ns)
            by_stream.setdefault(slide.stream, []).append((start, slide))
        spans = []
        for shown in by_stream.values():
            shown.sort(key=lambda entry: (entry[0], entry[1].id))
            ends = [start for start, _ in shown[1:]] + [end_ns]
            spans += [
                SlideSpan(s.id, s.device, start, end, s.text)
                for (start, s), end in zip(shown, ends, strict=True)
            ]
        return tuple(sorted(spans, key=lambda s: (s.start_ns, s.id)))

    def _gaps(self) -> tuple[GapSpan, ...]:
        spans = set()
        for gap in self.gaps:
            clock = self._clock_of(gap.device, gap.clock, gap.raw_start_ns)
            start, end = (to_timeline_ns(clock, t) for t in (gap.raw_start_ns, gap.raw_end_ns))
            if gap.what == "silent_device":
                # When it was given up nobody knew how long it would be silent; the log knows by now.
                back = [t for t in self.resumed.get(gap.stream, ()) if t >= gap.raw_start_ns]
                if back:
                    end = to_timeline_ns(clock, min(back))
                elif self.ended is not None:
                    end = max(end, self.ended.end_ns)
            spans.add(GapSpan(gap.stream, start, end, gap.what))
        return tuple(sorted(spans, key=lambda g: (g.start_ns, g.stream, g.what)))

    def _least_mark_ns(self) -> int:
        marks = [self._mark_on_timeline(name, s) for name, s in self.streams.items() if s.live]
        return min(marks, default=_ALWAYS_NS)

    def _on_timeline(self, device: str, clock: int, raw_ns: int) -> int:
        return to_timeline_ns(self._clock_of(device, clock, raw_ns), raw_ns)

    def _clock_of(self, device: str, placed_by: int, raw_ns: int) -> ClockRecord:
        """The newest clock record that holds for a raw time; the identity where none was written."""
        found = clock_in_force(self.clocks.get(device, ()), placed_by, raw_ns)
        if found is not None:
            return found
        return ClockRecord(
            meeting_id=self.meeting_id, device=device, number=0, from_raw_ns=_NEVER_NS, ref_ns=0, offset_ns=0,
            uncertainty_ns=0, method="stamped",
        )  # fmt: skip

    def start_of(self, utterance_id: str) -> int:
        """Where an utterance begins on the timeline, by the clock records known now."""
        record = self.utterances[utterance_id]
        return self._on_timeline(record.device, record.clock, record.raw_start_ns)

    def _end_of(self, utterance_id: str) -> int:
        record = self.utterances[utterance_id]
        return self._on_timeline(record.device, record.clock, record.raw_end_ns)

    def _spoken(self, record: UtteranceRecord) -> Spoken:
        clock = self._clock_of(record.device, record.clock, record.raw_start_ns)
        return Spoken(
            id=record.id, start_ns=to_timeline_ns(clock, record.raw_start_ns), end_ns=to_timeline_ns(clock, record.raw_end_ns),
            speaker=record.speaker, text=record.text, device=record.device, error_ms=clock.uncertainty_ns / _NS_PER_MS,
            sampling_ms=record.sampling_ms, boundary_ms=record.boundary_ms,
            words=tuple(
                SpokenWord(to_timeline_ns(clock, w.start_ns), to_timeline_ns(clock, w.end_ns), w.text) for w in record.words
            ),
        )  # fmt: skip

    def _heard_as(self, name: str) -> tuple[str, ...]:
        """What a person said to mean this attendee."""
        known = self.names.get(name)
        return known.heard if known is not None else ()

    def _setting(self, first_ns: int | None = None) -> Setting:
        if self.start_ns is None and first_ns is not None:
            self.start_ns, self.setting = first_ns, None
        if self.setting is None:
            started = self.started
            people = tuple(
                Attendee(a.name, a.speaker, a.role, aliases=self._heard_as(a.name))
                for a in self.attendees.values()
            )
            names = tuple((heard, known.name) for known in self.names.values() for heard in known.heard)
            context = MeetingContext(
                started.title if started else None,
                started.date if started else None,
                people,
                self.agenda,
                self.key_topics,
                names,
            )
            self.setting = Setting(
                context, self.start_ns or 0, started.tai_utc_offset_s if started else 37, self.rules
            )
        return self.setting
