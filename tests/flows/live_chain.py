"""A running installation seen from outside, for the tests that attack it: send anything, read everything."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from contracts.consumer import SECTIONS, Meeting, MinutesFold, read_event, read_state
from contracts.messages import AnyControl, DeadLetter, control_key
from contracts.minutes import MinutesState
from contracts.packet import Packet, encode
from contracts.timeline import TIMELINE_RECORD, AnyRecord, Fence
from contracts.topics import AUDIO, CONTROL, DEADLETTER, MINUTES, STATE, TIMELINE, TOPICS, Topic
from devices.inputs import Room, open_inputs
from devices.publisher import Publisher, PublishReport
from flows.files import log_values, perceive_room
from flows.installation import Installation
from flows.run_files import minutes_by
from models.speech_recogniser import RecogniserSettings, SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators.broker.kafka_link import BrokerLink
from operators.perceive.step import MediaWorkers
from operators.perceive.types import PerceiveSettings
from operators.settings import Settings, load_settings

S = 1_000_000_000
PATIENCE_S = 120.0
"""Longest wait for anything; far more than it takes, since the machine may be busy with something else."""

FRONT = [
    (1.0, 4.0, "Anna", "Good morning everybody, let us talk about the market stall."),
    (9.0, 12.0, "Anna", "So we decided that the stall opens on Saturday at nine."),
    (18.0, 21.0, "Anna", "Ben, can you order the cups by Thursday?"),
    (27.0, 30.0, "Anna", "Who is going to bring the till?"),
    (36.0, 39.0, "Anna", "We will paint the sign green."),
    (45.0, 48.0, "Anna", "Right, the sign stays blue."),
    (54.0, 57.0, "Anna", "I'll write to the town hall by Friday."),
    (62.0, 64.0, "Anna", "That is all, thank you."),
]
BACK = [
    (5.0, 8.0, "Ben", "The weather looks fine so far."),
    (13.5, 16.0, "Carla", "Agreed, Saturday at nine."),
    (22.0, 24.0, "Ben", "Yes, I will do that."),
    (31.0, 33.5, "Ben", "I don't know, we have to find out."),
    (40.5, 43.0, "Carla", "No, let's not paint the sign green."),
    (49.5, 52.0, "Carla", "I'll bring the big umbrella on Saturday."),
    (58.5, 60.0, "Ben", "Good."),
]


def meeting_folder(folder: Path, meeting_id: str) -> Path:
    """A room with two transcript devices: fifteen lines of a meeting that ends in 64 seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("front", FRONT), ("back", BACK)):
        told = [dict(zip(("start_s", "end_s", "speaker", "text"), line, strict=True)) for line in lines]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    people = [{"name": name} for name in ("Anna", "Ben", "Carla")]
    about = {"title": "Market stall", "date": "2026-05-27", "attendees": people, "key_topics": ["stall"]}
    (folder / "room.json").write_text(json.dumps(about | {"meeting_id": meeting_id}))
    return folder


def plain(state: MinutesState) -> dict[str, Any]:
    """The minutes without what differs from run to run.

    Numbers of revisions, when the meeting was, and the stream epoch that is part of ids.
    """
    kept = state.model_dump(
        mode="json", exclude={"revision", "generation", "started", "start_ns", "meeting_id", "audit"}
    )
    told = {name: value for name, value in kept.items() if name not in ("utterances", "slides")}
    found: dict[str, Any] = json.loads(re.sub(r"/\d+/", "/EPOCH/", json.dumps(told)))
    return found


def by_files(room: Room, settings: Settings | None = None) -> dict[str, Any]:
    """Minutes of a room by the way of files, without a broker."""
    minutes = minutes_by(settings or load_settings())
    workers = MediaWorkers(lambda: SpeechRecogniser(RecogniserSettings()))
    try:
        for message in perceive_room(room, PerceiveSettings(), workers, VoiceActivity()):
            for value in log_values([message]):
                minutes.read(value)
    finally:
        workers.close()
    document = minutes.document()
    assert document is not None
    return plain(document)


@dataclass(frozen=True)
class Read:
    """One message as it stood on the broker."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, bytes]


@dataclass
class Reader:
    """Reads all topics from their beginning, in a thread of its own."""

    link: BrokerLink
    messages: list[Read] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def of(self, topic: Topic, meeting_id: str | None = None) -> list[Read]:
        """Messages of a topic, in the order of their offsets; of one meeting where it is given."""
        name, key = self.link.names.of(topic), None if meeting_id is None else meeting_id.encode()
        return [m for m in list(self.messages) if m.topic == name and (key is None or m.key == key)]

    def _run(self) -> None:
        consumer = Consumer(
            self.link.consumer() | {"enable.partition.eof": False, "auto.offset.reset": "earliest"}
        )
        names, shards = self.link.names, range(self.link.names.shards)
        consumer.assign([TopicPartition(names.of(t), p, OFFSET_BEGINNING) for t in TOPICS for p in shards])
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.05):
                if message.error() is None:
                    headers = message.headers() or []
                    pairs = headers.items() if isinstance(headers, dict) else headers
                    self.messages.append(
                        Read(
                            str(message.topic()), message.partition() or 0, message.offset() or 0, message.key() or b"",
                            message.value() or b"", {k: v for k, v in pairs if isinstance(v, bytes)},
                        )
                    )  # fmt: skip
        consumer.close()


class Chain:
    """An installation, a reader of its topics, and ways to send to it."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.link = installation.link
        self.reader = Reader(self.link)
        self._producer = Producer(self.link.producer())
        self._sequences: dict[str, int] = {}

    def close(self) -> None:
        self.reader.close()

    # Sending

    def send(self, topic: Topic, value: bytes, meeting_id: str, *, key: bytes | None = None) -> int:
        """Send bytes to the partition of a meeting; the offset at which they stand."""
        placed: list[int] = []
        self._producer.produce(
            self.link.names.of(topic), value, key=meeting_id.encode() if key is None else key,
            partition=self.link.names.partition(meeting_id), on_delivery=lambda _, m: placed.append(m.offset() or 0),
        )  # fmt: skip
        assert self._producer.flush(PATIENCE_S) == 0
        return placed[0]

    def control(self, message: AnyControl) -> None:
        self.send(CONTROL, message.to_bytes(), message.meeting_id, key=control_key(message))

    def packets(self, packets: Iterable[Packet], topic: Topic = AUDIO) -> None:
        for packet in packets:
            self._producer.produce(
                self.link.names.of(topic), encode(packet), key=packet.meeting_id.encode(),
                partition=self.link.names.partition(packet.meeting_id),
            )  # fmt: skip
        assert self._producer.flush(PATIENCE_S) == 0

    def publish(self, folder: Path, meeting_id: str, speed: float = 1000.0) -> PublishReport:
        """Publish a room as devices would."""
        room = open_inputs([folder], meeting_id=meeting_id)
        return Publisher(self.link.bootstrap, self.link.names).publish(room, speed=speed)

    # Reading

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait for something to be seen on the topics."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.installation.check()
            if time.monotonic() > deadline:
                logs = "\n".join(
                    f.log.read_text(errors="replace")[-2000:] for f in self.installation.flows.values()
                )
                raise AssertionError(f"waited {timeout_s:.0f} s for {what}; the flows said:\n{logs}")
            time.sleep(0.02)

    def log(self, meeting_id: str) -> list[AnyRecord]:
        """The meeting's records on the log, as a reader that minds the fences sees them."""
        run, records = None, []
        shard = self.link.names.partition(meeting_id)
        for message in self.reader.of(TIMELINE):
            if message.partition != shard or message.value[:1] != b"{":
                continue
            record = TIMELINE_RECORD.validate_json(message.value)
            if isinstance(record, Fence):
                run = record.run
            elif record.meeting_id == meeting_id and run in (None, record.run):
                records.append(record)
        return records

    def dead_letters(self, meeting_id: str) -> list[DeadLetter]:
        """Dead letters from the partition of a meeting."""
        shard = self.link.names.partition(meeting_id)
        letters = [DeadLetter.model_validate_json(m.value) for m in self.reader.of(DEADLETTER)]
        return [letter for letter in letters if letter.partition == shard]

    def ended(self, meeting_id: str) -> bool:
        return any(b'"type":"final"' in m.value for m in self.reader.of(MINUTES, meeting_id))

    def folded(self, meeting_id: str) -> Meeting:
        """What the contract's consumer makes of the events of a meeting; no revision is contradicted."""
        fold, values = MinutesFold(), dict[tuple[int, int], bytes]()
        for message in self.reader.of(MINUTES, meeting_id):
            event = read_event(message.value)
            identity = (event.generation, event.revision)
            before = values.setdefault(identity, message.value)
            assert before == message.value, (
                f"revision {identity} was contradicted:\n{before!r}\n{message.value!r}"
            )
            fold.apply(event)
        return fold.meetings[meeting_id]

    def document(self, meeting_id: str) -> MinutesState | None:
        """The newest document of a meeting that has been read."""
        states = [read_state(m.value) for m in self.reader.of(STATE) if m.value]
        return next((s for s in reversed(states) if s.meeting_id == meeting_id), None)

    def minutes(self, meeting_id: str) -> MinutesState:
        """The final minutes, once they are there: folded by the contract's consumer, and the document alike.

        Each revision has been seen with one value only.
        """
        self.wait(lambda: self.ended(meeting_id), f"the final minutes of {meeting_id}")
        final = next(m for m in reversed(self.reader.of(MINUTES, meeting_id)) if b'"type":"final"' in m.value)
        revision = json.loads(final.value)["revision"]
        seen = list[tuple[Meeting, MinutesState]]()

        def together() -> bool:
            # Events and documents are topics of their own: either may be read ahead of the other.
            known, document = self.folded(meeting_id), self.document(meeting_id)
            if document is None or not revision <= document.revision == known.revision:
                return False
            seen.append((known, document))
            return True

        self.wait(together, f"events and document of {meeting_id} of the same revision")
        known, document = seen[-1]
        assert known.missing == ()
        assert known.summary == document.summary
        for section in SECTIONS:
            assert known.section(section) == getattr(document, section)
        return document
