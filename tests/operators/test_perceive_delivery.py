"""What is cut out of the sound, and whose it is, depends on samples alone: not on clocks, delays, repeats or order.

The recogniser is scripted: its answer is a digest of exactly the sound and the words that it was given.
"""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from benchmarks.faulty_room import Captured, arrivals, capture
from contracts.packet import encode
from contracts.timeline import TIMELINE_RECORD, AnyRecord, Fence, NoticeRecord, UtteranceRecord
from contracts.topics import AUDIO, CONTROL, TIMELINE, TopicNames
from devices.faults import ClockFault, DeliveryFault
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.broker.source import Received
from operators.clock import Clock, ClockSettings
from operators.ingest import Ingest, IngestSettings
from operators.perceive.step import Answer, Owner, Perceive, Recognised
from operators.perceive.types import Ask, PerceiveSettings
from operators.speech.events import RecognitionRequest

S: Final = 1_000_000_000
MS: Final = 1_000_000
SAMPLE: Final = Path(__file__).resolve().parents[2] / "devices" / "sample"
LENGTH_S: Final = 11.0
BEGINS_S: Final = (0.0, 20.0)
"""Two rooms: the sample meeting from its start, and from its middle."""
PUNCTUAL: Final = DeliveryFault(jitter_ns=0, jitter_shape=0.1)
UNEVEN: Final = DeliveryFault(jitter_ns=20 * MS, jitter_shape=1.4, most_ns=150 * MS, duplicates=0.01)
"""Packets overtake each other, and come up to 150 ms late."""
CLOCKS: Final = {
    "right": {},
    "off": {
        "mic-1": ClockFault(epoch_ns=-37 * S),
        "mic-2": ClockFault(offset_ns=-900 * MS),
        "mic-3": ClockFault(offset_ns=70 * MS, skew_ppb=-95_000.0),
    },
    "set": {
        "mic-1": ClockFault(step_at_s=6.0, step_ns=-700 * MS),
        "mic-2": ClockFault(step_at_s=4.0, step_ns=1_300 * MS),
        "mic-4": ClockFault(frozen_at_s=5.0, frozen_for_s=3.0),
    },
}


@dataclass
class Digests:
    """Answers at once with a digest of what was asked."""

    answers: list[tuple[str, Answer]] = field(default_factory=list)

    def ask(self, owner: Owner, ask: Ask) -> None:
        assert isinstance(ask, RecognitionRequest)
        heard = hashlib.sha256(ask.samples.tobytes() + repr(ask.hotwords).encode()).hexdigest()
        found = Recognition(f"We said {heard[:12]}.", average_log_probability=-0.1)
        self.answers.append((owner[1], Recognised(ask, found)))

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        out, self.answers = self.answers, []
        return out

    def outstanding(self, shard: int) -> int:
        return len(self.answers)

    def close(self) -> None:
        pass


@cache
def whole() -> Captured:
    room = capture(SAMPLE, BEGINS_S[-1] + LENGTH_S)
    return Captured(room.room, {name: p for name, p in room.packets.items() if name.endswith("/audio")})


@cache
def room(begin_s: float) -> Captured:
    """A few seconds of the sample's microphones, as a meeting of their own."""
    start_ns = whole().room.start_ns + round(begin_s * S)
    packets = {
        name: tuple(
            replace(packet, sequence=number)
            for number, packet in enumerate(
                p for p in of_stream if start_ns <= p.timestamp_ns < start_ns + LENGTH_S * S
            )
        )
        for name, of_stream in whole().packets.items()
    }
    return Captured(replace(whole().room, start_ns=start_ns), packets)


def log_of(
    captured: Captured, clocks: dict[str, ClockFault], delivery: DeliveryFault, seed: int
) -> list[AnyRecord | Fence]:
    ingest, clock = Ingest(IngestSettings(), TopicNames(shards=1)), Clock(ClockSettings())
    perceive = Perceive(
        0, PerceiveSettings(), VoiceActivity(), Digests(), NoJournal(), live=False, clock_s=lambda: 0.0, run=lambda: 0
    )  # fmt: skip
    log: list[AnyRecord | Fence] = []

    def through(topic: str, place: int, value: bytes, at_ns: int) -> None:
        received = Received(topic, 0, place, at_ns, True, value)
        for message in perceive.on_batch(clock.on_batch(ingest.on_batch([received]))):
            if message.topic is TIMELINE:
                log.append(TIMELINE_RECORD.validate_json(message.value))

    for place, control in enumerate(captured.room.control):
        through(CONTROL.name, place, control.to_bytes(), captured.room.start_ns - 37 * S - 1)
    for place, (at_ns, _, packet) in enumerate(arrivals(captured, clocks, delivery, seed)):
        through(AUDIO.name, place, encode(packet), at_ns)
    while perceive.busy:
        log += [
            TIMELINE_RECORD.validate_json(m.value) for m in perceive.finish_input() if m.topic is TIMELINE
        ]
    return log


def said(log: list[AnyRecord | Fence]) -> dict[str, tuple[str | None, str]]:
    """Speaker and text of each utterance that stands at the end."""
    found: dict[str, tuple[str | None, str]] = {}
    for record in log:
        if isinstance(record, UtteranceRecord):
            found.pop(record.id, None)
            if record.state == "closed":
                found[record.id] = record.speaker, record.text
    return found


@cache
def clean(begin_s: float) -> dict[str, tuple[str | None, str]]:
    return said(log_of(room(begin_s), {}, PUNCTUAL, 1))


@pytest.mark.parametrize("begin_s", BEGINS_S)
@pytest.mark.parametrize("clocks", CLOCKS)
def test_the_same_is_heard_however_it_comes_and_whatever_clocks_say(begin_s: float, clocks: str) -> None:
    log = log_of(room(begin_s), CLOCKS[clocks], UNEVEN, 7)
    assert len(clean(begin_s)) >= 3
    assert said(log) == clean(begin_s)
    assert "late_sound" not in {r.code for r in log if isinstance(r, NoticeRecord)}
