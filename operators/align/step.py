"""Align as a step of the flow: the log's bytes in, aligned changes out, its state by shard."""

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from bytewax.operators import KeyedStream
from pydantic import ValidationError

from contracts.messages import MeetingPurged
from contracts.packet import MAGIC
from contracts.timeline import TIMELINE_RECORD, AnyRecord, ControlRecord, Fence, UtteranceRecord
from operators.align.grid import Aligned, AlignSettings, MeetingAligner, Purged, Traced
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.ingest import dead_letter, first_problem
from operators.shard import by_shard
from operators.store import StepStore, Stores

_MEETING: Final = b"meeting/"
_UTTERANCE: Final = b"utterance/"
_RUN: Final = b"run"
_PURGED: Final = b"purged/"


def _utterance_key(meeting_id: str, utterance_id: str) -> bytes:
    return _UTTERANCE + quote(meeting_id, safe="").encode() + b"/" + utterance_id.encode()


class Align:
    """The step of one shard: log records in, aligned changes out."""

    def __init__(self, settings: AlignSettings) -> None:
        self._settings = settings
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
        self._purged = {key.removeprefix(_PURGED).decode() for key, _ in store.scan(_PURGED)}
        run = store.get(_RUN)
        self._run = None if run is None else int.from_bytes(run, "big")

    def save(self, store: StepStore) -> None:
        for name in sorted(self._newly_purged):
            store.put(_PURGED + name.encode(), b"")
            store.forget(_MEETING + name.encode())
            for key, _ in list(store.scan(_utterance_key(name, ""))):
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
            # Utterances are in the store one by one; what is left stays small in a long meeting.
            store.put(_MEETING + name.encode(), pickle.dumps(replace(meeting, utterances={})))
        self._touched.clear()
        if self._run is not None:
            store.put(_RUN, self._run.to_bytes(8, "big"))

    def on_timer(self) -> Iterable[Aligned | Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Received | CaughtUp]) -> list[Aligned | Outgoing]:
        out: list[Aligned | Outgoing] = []
        for received in values:
            # Features are for a model; these minutes are made by rules, from words.
            if not isinstance(received, Received) or received.value[:4] == MAGIC:
                continue
            try:
                record = TIMELINE_RECORD.validate_json(received.value)
            except ValidationError as error:
                out.append(dead_letter(received, "schema", first_problem(error)))
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
        self._touched.add(record.meeting_id)
        out = meeting.feed(record)
        if any(isinstance(change, Purged) for change in out):
            del self._meetings[record.meeting_id]
            self._traces.pop(record.meeting_id, None)
            self._purged.add(record.meeting_id)
            self._newly_purged.add(record.meeting_id)
        return out


def align(
    up: KeyedStream[tuple[int, Received | CaughtUp]], stores: Stores, settings: AlignSettings
) -> KeyedStream[tuple[int, Aligned | Outgoing]]:
    """Join the streams of each meeting's log in one order."""
    return by_shard("align", up, stores, lambda _: Align(settings))
