"""Files in, minutes out, no broker: the steps of both flows between file readers and plain lists.

The same input gives the same log: slow work runs in parallel, but its answers are taken in the order
in which they were asked for, and there is no wall clock, no idle time-out and no shedding.
"""

import base64
import datetime
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from contracts.minutes import MinutesDocument, Versions
from contracts.packet import MAGIC, Modality, Packet, decode, encode
from contracts.timeline import TIMELINE_RECORD, NoticeRecord
from contracts.topics import AUDIO, AUDIT, CONTROL, OCR, TIMELINE, TRANSCRIPT, VIDEO, Topic, TopicNames
from devices.inputs import Room
from devices.room import ROOM_FILE
from devices.streams import StreamMessage, merged
from models.voice_activity import VoiceActivity
from operators.align.aligned import Ended
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.journal import NoJournal
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.clock import Clock, ClockSettings
from operators.deliver.keys import Keys, OpenKeys
from operators.deliver.step import Deliver, judge
from operators.draft import Drafting
from operators.ingest import Ingest, IngestSettings
from operators.perceive.step import Answer, MediaWorkers, Owner, Perceive
from operators.perceive.types import Ask, PerceiveSettings
from operators.speech.events import RecognitionRequest
from operators.understand.engine import RuleEngine
from operators.verify.check import Verifier
from operators.verify.rule_files import default_rules
from operators.verify.types import Stretch

_AHEAD: Final = 24
"""Pieces of slow work under way before reading waits for the oldest; part of what makes the log repeatable."""
_SHARD: Final = 0
_FEATURES: Final = b'{"type":"features"'
"""How a line of a file begins that holds a packet of features, which are binary on the topic."""
_TOPICS: Final = {
    Modality.VIDEO: VIDEO,
    Modality.AUDIO: AUDIO,
    Modality.OCR: OCR,
    Modality.TRANSCRIPT: TRANSCRIPT,
}


class OrderedWorkers:
    """Workers whose answers come in the order of the asks, as far behind as ``ahead`` allows."""

    def __init__(self, inner: MediaWorkers, ahead: int = _AHEAD) -> None:
        self._inner = inner
        self._ahead = ahead
        self._asked: deque[Ask] = deque()
        self._found: dict[int, tuple[str, Answer]] = {}

    def ask(self, owner: Owner, ask: Ask) -> None:
        self._asked.append(ask)
        self._inner.ask(owner, ask)

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        out: list[tuple[str, Answer]] = []
        # A microphone whose sound waits for an answer would else be read to its end meanwhile, and kept in memory.
        while len(self._asked) > self._ahead or any(_holds(ask) for ask in self._asked):
            out.append(self._oldest(shard))
        return out

    def drain(self, shard: int) -> tuple[str, Answer] | None:
        """The oldest answer, waiting for it; None where nothing was asked."""
        return self._oldest(shard) if self._asked else None

    def outstanding(self, shard: int) -> int:
        del shard
        return len(self._asked)

    def close(self) -> None:
        self._inner.close()

    def _oldest(self, shard: int) -> tuple[str, Answer]:
        ask = self._asked.popleft()
        while id(ask) not in self._found:
            for meeting, done, answer in self._inner.take(shard):
                self._found[id(done)] = (meeting, answer)
            if id(ask) not in self._found:
                time.sleep(0.001)
        return self._found.pop(id(ask))


def _holds(ask: Ask) -> bool:
    return isinstance(ask, RecognitionRequest) and ask.holds


def perceive_room(
    room: Room, settings: PerceiveSettings, workers: MediaWorkers, voice: VoiceActivity,
    *, pace: Callable[[StreamMessage], None] | None = None,
) -> Iterator[Outgoing]:  # fmt: skip
    """Messages of the first flow for a room of files: the log, and dead letters.

    Args:
        pace: called before each message, to hold it back until it would have come in a live room.
    """
    names = TopicNames(shards=1)
    ordered = OrderedWorkers(workers)
    ingest, clock = Ingest(IngestSettings(), names), Clock(ClockSettings())
    perceive = Perceive(
        _SHARD, settings, voice, ordered, NoJournal(), live=False, clock_s=lambda: 0.0, run=lambda: 0
    )
    offsets: dict[str, int] = {}

    def received(topic: Topic, value: bytes) -> Received:
        offset = offsets[topic.name] = offsets.get(topic.name, -1) + 1
        return Received(topic.name, _SHARD, offset, 0, False, value)

    def through(message: Received) -> list[Outgoing]:
        out = perceive.on_batch(clock.on_batch(ingest.on_batch([message])))
        # A microphone whose sound waits for an answer would else be read to its end meanwhile, and kept in memory.
        while perceive.held_up and (answer := ordered.drain(_SHARD)) is not None:
            out += perceive.answered(*answer)
        return out

    for control in room.control:
        yield from through(received(CONTROL, control.to_bytes()))
    for stream, message in merged(room.streams):
        if pace is not None:
            pace(message)
        value = encode(message) if isinstance(message, Packet) else message.to_bytes()
        yield from through(received(_TOPICS[stream.modality], value))
    yield from _told(room)
    yield from perceive.finish_input()
    while perceive.busy:
        answer = ordered.drain(_SHARD)
        if answer is None:
            raise RuntimeError("the input is over and nothing is outstanding, but the meeting has not ended")
        yield from perceive.answered(*answer)


def _told(room: Room) -> Iterator[Outgoing]:
    """What was wrong with the files, for the log: those who read the minutes did not see the command run."""
    for problem in room.problems:
        # What the room's own file lacks is for whoever wrote it.
        if problem.path.name != ROOM_FILE:
            record = NoticeRecord(meeting_id=room.meeting_id, code="input", text=problem.in_minutes[:1000])
            yield Outgoing(
                TIMELINE, room.meeting_id.encode(), record.to_bytes(), "timeline.notice", record.identity
            )  # fmt: skip


class MinutesOfLog:
    """The second flow over one meeting's log, record by record."""

    def __init__(
        self, versions: Versions, keys: Keys | None = None, verifier: Verifier | None = None,
        engine: RuleEngine | None = None,
    ) -> None:  # fmt: skip
        """Begin with nothing read.

        Args:
            keys: what the audit is sealed with; by default a key that is no secret (``OpenKeys``).
            verifier: by default one with the rules of the product.
            engine: what finds items; by default rules alone.
        """
        self._align = Align(AlignSettings())
        self._drafting = Drafting(engine or RuleEngine())
        self._verifier = verifier or Verifier(rules=default_rules())
        self._deliver = Deliver(versions, keys or OpenKeys())
        self._ended: Ended | None = None
        self.audit: list[bytes] = []
        """Sealed audit entries so far."""

    def read(self, value: bytes) -> list[Outgoing]:
        """Minutes events that the next record of the log brings about.

        Raises:
            ValueError: it is no record, nor the line of a file that holds features.
        """
        if value.startswith(_FEATURES):
            self._align.features(decode(base64.b64decode(json.loads(value)["packet"], validate=True)))
            return []
        out: list[Outgoing] = []
        for change in self._align.read(TIMELINE_RECORD.validate_json(value)):
            if isinstance(change, Ended):
                self._ended = change
            for drafted in self._drafting.on_batch([change]):
                out += self._deliver.on_batch([judge(self._verifier, drafted)])
        self.audit += [message.value for message in out if message.topic is AUDIT]
        return out

    @property
    def date(self) -> datetime.date | None:
        """Day of the meeting as the log's control messages give it."""
        return None if self._ended is None else self._ended.setting.context.date

    def document(self) -> MinutesDocument | None:
        """The minutes with transcript and slides; None as long as the log has no end, or of a purged meeting."""
        if self._ended is None:
            return None
        ended = self._ended
        ledger = self._deliver.ledger(ended.meeting_id)
        if ledger is None:
            return None
        slides = [Stretch(s.start_ns, s.end_ns, s.text, s.device) for s in ended.slides]
        return ledger.document(ended.spoken, slides, ended.setting.start_ns)


def log_line(value: bytes) -> bytes:
    """A record of the journal, or a packet of features on it, as a line of a file."""
    if value[:4] != MAGIC:
        return value
    return _FEATURES + b',"packet":"' + base64.b64encode(value) + b'"}'


def is_features(line: bytes) -> bool:
    """Whether a line of a file holds features, not a record."""
    return line.startswith(_FEATURES)


def log_values(messages: Iterable[Outgoing]) -> Iterator[bytes]:
    """The journal's records (not the features) among messages of the first flow."""
    return (m.value for m in messages if m.topic is TIMELINE and m.value[:1] == b"{")
