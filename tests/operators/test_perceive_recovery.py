"""A killed ``flows.perceive`` goes on without contradicting what it has already written.

The steps run on real sound and a real store; what is scripted is the recogniser, the wall clock and the
log's place in memory. The recogniser answers otherwise after the restart, and the give-up would fall
otherwise; the minutes' revisions must not show it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faulty_room import Captured, arrivals, capture
from contracts.messages import Calibration, MeetingStarted
from contracts.minutes import Versions
from contracts.packet import Packet, encode
from contracts.timeline import TIMELINE_RECORD, AnyRecord, ControlRecord, Fence
from contracts.topics import AUDIO, CONTROL, MINUTES, TIMELINE, TopicNames
from devices.faults import ClockFault, DeliveryFault
from devices.inputs import open_inputs
from devices.streams import merged
from flows.files import MinutesOfLog
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.broker.source import CaughtUp, Received
from operators.clock import Clock, ClockSettings
from operators.ingest import Ingest, IngestSettings
from operators.perceive.shedding import Load
from operators.perceive.step import Answer, Owner, Perceive, Recognised
from operators.perceive.types import Ask, PerceiveSettings
from operators.speech.events import RecognitionRequest
from operators.store import Marker, StepStore, Stores

SAMPLE = Path(__file__).resolve().parents[2] / "devices" / "sample"
STEPS = ("ingest", "clock", "perceive")
VERSIONS = Versions(product="test", model=None, rules="test", contract="test")
SNAPSHOT_AT, GIVE_UP_AT, KILL_AT, END_AT = 1600, 1900, 2400, 3600
"""Places among the input messages (four microphones, 20 ms each)."""


@dataclass
class Scripted:
    """Answers every request at once; what it hears depends on ``voice``, the run of the recogniser."""

    voice: str
    answers: list[tuple[str, Answer]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def ask(self, owner: Owner, ask: Ask) -> None:
        assert isinstance(ask, RecognitionRequest)
        self.asked.append(f"{ask.piece_id}/{ask.version}")
        text = f"{self.voice} will send report {ask.start_ns % 1000} by Friday."
        self.answers.append((owner[1], Recognised(ask, Recognition(text, average_log_probability=-0.1))))

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        out, self.answers = self.answers, []
        return out

    def outstanding(self, shard: int) -> int:
        return len(self.answers)

    def close(self) -> None:
        pass


@dataclass
class MemoryLog:
    """The log's partition: survives the process. ``read_back`` can be broken on purpose."""

    values: list[bytes] = field(default_factory=list)
    read_back: bool = True

    def end_offset(self, shard: int) -> int:
        return len(self.values)

    def fence(self, shard: int, run: int, from_offset: int) -> list[AnyRecord]:
        self.values.append(Fence(run=run, shard=shard).to_bytes())
        if not self.read_back:
            return []
        found = [TIMELINE_RECORD.validate_json(value) for value in self.values[from_offset:]]
        return [record for record in found if not isinstance(record, Fence)]


class Process:
    """One life of the three steps on a state directory; dropping it without ``save`` is a kill."""

    def __init__(
        self, root: Path, log: MemoryLog, voice: str, run: int, markers: dict[str, Marker] | None,
        load: Load | None = None,
    ) -> None:  # fmt: skip
        self.now_s = 0.0
        self.workers = Scripted(voice)
        self._stores = Stores(root, "perceive", STEPS)
        self._log = log
        names = TopicNames(shards=1)
        self.ingest, self.clock = Ingest(IngestSettings(), names), Clock(ClockSettings())
        self.perceive = Perceive(
            0, PerceiveSettings(stream_idle_s=5.0), VoiceActivity(), self.workers, log,
            clock_s=lambda: self.now_s, run=lambda: run, load=load,
        )  # fmt: skip
        self._steps: list[Any] = [self.ingest, self.clock, self.perceive]
        self._opened: list[tuple[str, StepStore]] = []
        for place, step in enumerate(self._steps):
            name = STEPS[place]
            store = self._stores.step(0, name)
            store.roll_back(None if markers is None else markers[name])
            step.open(store)
            self._opened.append((name, store))

    def feed(self, message: Received) -> None:
        for _, store in self._opened:
            store.begin(proved=True)
        self._write(self.perceive.on_batch(self.clock.on_batch(self.ingest.on_batch([message]))))

    def wait(self, seconds: float) -> None:
        """Time passes while everything that had come was handled."""
        for _ in range(round(seconds * 2)):
            self.now_s += 0.5
            self._write(self.perceive.on_batch([CaughtUp(0)]))

    def save(self) -> dict[str, Marker]:
        for (_, store), step in zip(self._opened, self._steps, strict=True):
            step.save(store)
        return {name: store.marker() for name, store in self._opened}

    def kill(self) -> None:
        self._stores.close()

    def _write(self, messages: list) -> None:  # type: ignore[type-arg]
        self._log.values += [m.value for m in messages if m.topic is TIMELINE]


def inputs() -> Iterator[Received]:
    """The sample meeting's microphones as device messages; David's falls silent for a while."""
    room = open_inputs([SAMPLE], start_ns=10**18, meeting_id="kill")
    values = [(CONTROL, control.to_bytes()) for control in room.control]
    sound = [stream for stream in room.streams if stream.name.endswith("/audio")]
    values += [(AUDIO, encode(m)) for _, m in merged(sound) if isinstance(m, Packet)]
    for offset, (topic, value) in enumerate(values[:END_AT]):
        yield Received(topic.name, 0, offset, 10**18, True, value)


def scene(message: Received, place: int) -> bool:
    """Whether the message arrives: mic-4 sends nothing around the place of the give-up."""
    return not (b"mic-4" in message.value[:90] and GIVE_UP_AT - 300 < place < KILL_AT + 200)


def give_up(process: Process) -> None:
    """Nothing of mic-4 for longer than the time-out, while the others go on."""
    process.wait(4.0)
    for name in ("mic-1/audio", "mic-2/audio", "mic-3/audio"):
        process.perceive._meetings["kill"].last_activity_s[name] = 4.0
    process.wait(2.5)


def revisions(log: MemoryLog) -> list[bytes]:
    minutes = MinutesOfLog(VERSIONS)
    return [m.value for value in log.values for m in minutes.read(value) if m.topic is MINUTES]


def decided(log: MemoryLog) -> list[AnyRecord]:
    """Records without the run that wrote them."""
    found = [TIMELINE_RECORD.validate_json(value) for value in log.values]
    return [r.model_copy(update={"run": 0}) for r in found if not isinstance(r, Fence)]


def play(root: Path, *, kill: bool, read_back: bool = True) -> MemoryLog:
    """The scene with or without a kill; the recogniser turns from Anna to Ben at the same place."""
    log = MemoryLog(read_back=read_back)
    process = Process(root, log, "Anna", 1, None)
    messages = list(inputs())
    markers: dict[str, Marker] = {}
    for place, message in enumerate(messages):
        if place == SNAPSHOT_AT:
            markers = process.save()
        if place == KILL_AT and kill:
            process.kill()
            process = Process(root, log, "Ben", 2, markers)
            for again, earlier in enumerate(messages[SNAPSHOT_AT:KILL_AT], SNAPSHOT_AT):
                if scene(earlier, again):
                    process.feed(earlier)
        elif place == KILL_AT:
            process.workers.voice = "Ben"
        if place == GIVE_UP_AT:
            give_up(process)
        if scene(message, place):
            process.feed(message)
    process.kill()
    return log


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> MemoryLog:
    return play(tmp_path_factory.mktemp("uncut"), kill=False)


def test_the_scene_is_worth_its_name(uncut: MemoryLog) -> None:
    records = decided(uncut)
    closed = [r for r in records if r.type == "utterance" and r.state == "closed"]
    assert {r.text.split()[0] for r in closed} == {"Anna", "Ben"}
    states = [r.state for r in records if r.type == "stream" and r.stream == "mic-4/audio"]
    assert states == ["opened", "given_up", "resumed"]
    assert len(revisions(uncut)) >= 3


def test_a_kill_changes_no_record_and_no_revision(tmp_path: Path, uncut: MemoryLog) -> None:
    cut = play(tmp_path, kill=True)
    assert decided(cut) == decided(uncut)
    assert revisions(cut) == revisions(uncut)


def test_without_reading_back_the_log_it_would(tmp_path: Path, uncut: MemoryLog) -> None:
    cut = play(tmp_path, kill=True, read_back=False)
    assert decided(cut) != decided(uncut)
    assert revisions(cut) != revisions(uncut)


FAULTS = {
    "mic-1": ClockFault(step_at_s=5.0, step_ns=-700_000_000),
    "mic-2": ClockFault(offset_ns=-900_000_000),
    "mic-4": ClockFault(step_at_s=7.5, step_ns=1_300_000_000),
}
UNEVEN = DeliveryFault(jitter_ns=20_000_000, jitter_shape=1.4, most_ns=150_000_000, duplicates=0.01)


@cache
def captured() -> Captured:
    whole = capture(SAMPLE, 11.0)
    return Captured(whole.room, {name: p for name, p in whole.packets.items() if name.endswith("/audio")})


def faulty() -> Iterator[Received]:
    """The microphones with wrong clocks, late, repeated and out of order."""
    room = captured().room
    for place, control in enumerate(room.control):
        yield Received(CONTROL.name, 0, place, room.start_ns - 37 * 10**9 - 1, True, control.to_bytes())
    for place, (at_ns, _, packet) in enumerate(arrivals(captured(), FAULTS, UNEVEN, 5)):
        yield Received(AUDIO.name, 0, place, at_ns, True, encode(packet))


def play_faulty(root: Path, snapshot_at: int, kill_at: int | None) -> MemoryLog:
    """The room with faults; a kill, if any, throws away what came since the snapshot."""
    log = MemoryLog()
    process = Process(root, log, "Anna", 1, None)
    messages = list(faulty())
    markers: dict[str, Marker] = {}
    for place, message in enumerate(messages):
        if place == snapshot_at:
            markers = process.save()
        if place == kill_at:
            process.kill()
            process = Process(root, log, "Anna", 2, markers)
            for again in messages[snapshot_at:kill_at]:
                process.feed(again)
        process.feed(message)
    process.kill()
    return log


def said(log: MemoryLog) -> dict[str, tuple[str | None, str, int, int]]:
    """What stands at the end: speaker, text, raw times.

    Clock records are left out: the sound between microphones of the last seconds before a kill is not measured again.
    """
    found: dict[str, tuple[str | None, str, int, int]] = {}
    for record in decided(log):
        if record.type == "utterance":
            found.pop(record.id, None)
            if record.state == "closed":
                found[record.id] = record.speaker, record.text, record.raw_start_ns, record.raw_end_ns
    return found


@pytest.fixture(scope="module")
def uncut_faulty(tmp_path_factory: pytest.TempPathFactory) -> MemoryLog:
    return play_faulty(tmp_path_factory.mktemp("faulty"), 40, None)


@pytest.mark.parametrize(
    ("snapshot_at", "kill_at"),
    [
        pytest.param(40, 700, id="before the clocks are known"),
        pytest.param(1030, 1600, id="as one is set"),
    ],
)
def test_a_kill_amid_faults_of_clocks_and_delivery_changes_nothing(
    tmp_path: Path, uncut_faulty: MemoryLog, snapshot_at: int, kill_at: int
) -> None:
    cut = play_faulty(tmp_path, snapshot_at, kill_at)
    assert len(said(uncut_faulty)) >= 3
    assert said(cut) == said(uncut_faulty)


def test_what_holds_for_all_meetings_reaches_those_that_open_later_and_survives(tmp_path: Path) -> None:
    log = MemoryLog()
    process = Process(tmp_path, log, "Anna", 1, None)
    calibration = Calibration(meeting_id="*", device="mic-1", offset_ns=5, uncertainty_ns=7)
    process.feed(Received(CONTROL.name, 0, 0, 10**18, True, calibration.to_bytes()))
    markers = process.save()
    process.kill()
    process = Process(tmp_path, log, "Anna", 2, markers)
    process.feed(Received(CONTROL.name, 0, 1, 10**18, True, MeetingStarted(meeting_id="late").to_bytes()))
    process.wait(0.5)
    process.kill()
    told = [r.control for r in decided(log) if isinstance(r, ControlRecord) and r.meeting_id == "late"]
    assert {c.type for c in told} == {"calibration", "meeting_started"}
