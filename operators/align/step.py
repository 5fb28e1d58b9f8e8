"""Align as a step of the flow: the log's bytes in, aligned changes out, its state by shard."""

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from bytewax.operators import KeyedStream
from pydantic import ValidationError

from contracts.messages import MeetingPurged
from contracts.packet import MAGIC, Packet, PacketError, decode
from contracts.refusals import refusal_line
from contracts.timeline import (
    TIMELINE_RECORD,
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    Fence,
    GapRecord,
    Record,
    SlideRecord,
    UtteranceRecord,
)
from operators.align.aligned import Aligned, Ended, Heard, Purged, Settled, Traced
from operators.align.alignment import Alignment, AlignmentSettings
from operators.align.grid import AlignSettings, MeetingAligner
from operators.align.senses import with_senses, with_tone
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.ingest import dead_letter
from operators.shard import by_shard
from operators.store import StepStore, Stores

_MEETING: Final = b"meeting/"
_UTTERANCE: Final = b"utterance/"
_FRAME: Final = b"frame/"
_WATCHES: Final = b"watches/"
_RUN: Final = b"run"
_PURGED: Final = b"purged/"


def _utterance_key(meeting_id: str, utterance_id: str) -> bytes:
    return _UTTERANCE + quote(meeting_id, safe="").encode() + b"/" + utterance_id.encode()


def _frame_key(meeting_id: str, number: int | None = None) -> bytes:
    of_meeting = _FRAME + quote(meeting_id, safe="").encode() + b"/"
    return of_meeting if number is None else of_meeting + number.to_bytes(8, "big")


class Align:
    """The step of one shard: log records in, aligned changes out."""

    def __init__(self, settings: AlignSettings, alignment: AlignmentSettings | None = None) -> None:
        self._settings = settings
        self._alignment = alignment or AlignmentSettings()
        self._alignments: dict[str, Alignment] = {}
        self._meetings: dict[str, MeetingAligner] = {}
        self._run: int | None = None
        self._traces: dict[str, str] = {}
        self._touched: set[str] = set()
        self._purged: set[str] = set()
        """Meetings whose data had to go; nothing more of them is read."""
        self._newly_purged: set[str] = set()

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_MEETING):
            meeting = pickle.loads(value)
            self._meetings[meeting.meeting_id] = meeting
        for _, value in store.scan(_UTTERANCE):
            record = UtteranceRecord.model_validate_json(value)
            self._meetings[record.meeting_id].utterances[record.id] = record
        for name, meeting in self._meetings.items():
            self._alignments[name] = self._kept_alignment(store, meeting)
        self._purged = {key.removeprefix(_PURGED).decode() for key, _ in store.scan(_PURGED)}
        run = store.get(_RUN)
        self._run = None if run is None else int.from_bytes(run, "big")

    def _kept_alignment(self, store: StepStore, meeting: MeetingAligner) -> Alignment:
        alignment = Alignment(self._alignment)
        clocks = [record for known in meeting.clocks.values() for record in known]
        for record in (*clocks, *meeting.gaps, *meeting.slides.values()):
            _tell(alignment, record)
        for _, value in store.scan(_frame_key(meeting.meeting_id)):
            alignment.restore(pickle.loads(value))
        watches = store.get(_WATCHES + meeting.meeting_id.encode())
        if watches is not None:
            alignment.watches = pickle.loads(watches)
        return alignment

    def save(self, store: StepStore) -> None:
        for name in sorted(self._newly_purged):
            store.put(_PURGED + name.encode(), b"")
            store.forget(_MEETING + name.encode())
            store.forget(_WATCHES + name.encode())
            for key, _ in [*store.scan(_utterance_key(name, "")), *store.scan(_frame_key(name))]:
                store.forget(key)
        self._newly_purged.clear()
        for name in sorted(self._touched):
            meeting = self._meetings.get(name)
            if meeting is None:
                continue
            for changed in sorted(meeting.changed):
                record = meeting.utterances.get(changed)
                if record is None:
                    store.delete(_utterance_key(name, changed))
                else:
                    store.put(_utterance_key(name, changed), record.to_bytes())
            meeting.changed = set()
            self._save_frames(store, name)
            # Utterances are in the store one by one; what is left stays small in a long meeting.
            store.put(_MEETING + name.encode(), pickle.dumps(replace(meeting, utterances={})))
        self._touched.clear()
        if self._run is not None:
            store.put(_RUN, self._run.to_bytes(8, "big"))

    def _save_frames(self, store: StepStore, name: str) -> None:
        alignment = self._alignments.get(name)
        if alignment is None:
            return
        for number, kept in alignment.changed.items():
            if kept is None:
                store.delete(_frame_key(name, number))
            else:
                store.put(_frame_key(name, number), pickle.dumps(kept))
        if alignment.changed and alignment.watches:
            store.put(_WATCHES + name.encode(), pickle.dumps(alignment.watches))
        alignment.changed.clear()

    def on_timer(self) -> Iterable[Aligned | Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Received | CaughtUp]) -> list[Aligned | Outgoing]:
        out: list[Aligned | Outgoing] = []
        for received in values:
            if not isinstance(received, Received):
                continue
            if received.value[:4] == MAGIC:
                out += self._features(received)
                continue
            try:
                record = TIMELINE_RECORD.validate_json(received.value)
            except ValidationError as error:
                out.append(dead_letter(received, "schema", refusal_line(error)))
                continue
            if not isinstance(record, Fence):
                out += self._traced(record.meeting_id, received.traceparent)
            out += self.read(record)
        return out

    def _traced(self, meeting_id: str, traceparent: str | None) -> list[Aligned]:
        if traceparent is None or meeting_id in self._purged or self._traces.get(meeting_id) == traceparent:
            return []
        self._traces[meeting_id] = traceparent
        return [Traced(meeting_id, traceparent)]

    def _features(self, received: Received) -> list[Outgoing]:
        """Features go to the alignment of their meeting, as records do: of the newest run, until the end."""
        try:
            packet = decode(received.value)
        except PacketError as error:
            return [dead_letter(received, error.reason, str(error))]
        self.features(packet)
        return []

    def features(self, packet: Packet) -> None:
        """Take features into the alignment of their meeting."""
        meeting = self._meetings.get(packet.meeting_id)
        cut_off = self._run is not None and packet.stream_epoch != self._run
        if not cut_off and meeting is not None and meeting.ended is None:
            self._touched.add(packet.meeting_id)
            self._alignments[packet.meeting_id].features(packet)

    def _sensed(self, meeting: MeetingAligner, change: Aligned) -> Aligned:
        """The change with what was seen, shown and heard around its utterances."""
        alignment, records = self._alignments[meeting.meeting_id], meeting.utterances
        match change:
            case Heard():
                spoken = with_tone(change.spoken, records.get(change.spoken.id))
                return change if spoken is change.spoken else replace(change, spoken=spoken)
            case Settled() | Ended():
                unsettled = (meeting.start_of(i) for i in meeting.waiting)
                starts = sorted({*(s.start_ns for s in change.spoken), *unsettled})
                return replace(change, spoken=with_senses(alignment, change.spoken, records, starts))
        return change

    def alignment(self, meeting_id: str) -> Alignment | None:
        """What the streams of a meeting show, sound and say at any time; None where it is not known."""
        return self._alignments.get(meeting_id)

    def read(self, record: AnyRecord | Fence) -> list[Aligned]:
        """What follows from one record; records of a run that a newer one has fenced off are ignored."""
        if isinstance(record, Fence):
            self._run = record.run
            return []
        if self._run is not None and record.run != self._run:
            return []
        if record.meeting_id in self._purged:
            again = isinstance(record, ControlRecord) and isinstance(record.control, MeetingPurged)
            # Told on: what comes after a snapshot proves to the steps that it is durable.
            return [Purged(record.meeting_id)] if again else []
        meeting = self._meetings.get(record.meeting_id)
        if meeting is None:
            meeting = self._meetings[record.meeting_id] = MeetingAligner(record.meeting_id, self._settings)
            self._alignments[record.meeting_id] = Alignment(self._alignment)
        self._touched.add(record.meeting_id)
        if meeting.ended is None:
            _tell(self._alignments[record.meeting_id], record)
        out = [self._sensed(meeting, change) for change in meeting.feed(record)]
        if isinstance(record, EndedRecord):
            self._alignments[record.meeting_id].forget()
        if any(isinstance(change, Purged) for change in out):
            del self._meetings[record.meeting_id], self._alignments[record.meeting_id]
            self._traces.pop(record.meeting_id, None)
            self._purged.add(record.meeting_id)
            self._newly_purged.add(record.meeting_id)
        return out


def _tell(alignment: Alignment, record: Record) -> None:
    match record:
        case ClockRecord():
            alignment.clock(record)
        case SlideRecord():
            alignment.slide(record)
        case GapRecord():
            alignment.gap(record)


def align(
    up: KeyedStream[tuple[int, Received | CaughtUp]], stores: Stores, settings: AlignSettings
) -> KeyedStream[tuple[int, Aligned | Outgoing]]:
    """Join the streams of each meeting's log in one order."""
    return by_shard("align", up, stores, lambda _: Align(settings))
