"""Rooms with faulty clocks and deliveries through the whole chain: the minutes of the clean room, or marked gaps."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from contracts.packet import Packet, encode
from contracts.timeline import TIMELINE_RECORD, ClockRecord, GapRecord, UtteranceRecord
from contracts.topics import AUDIO, CONTROL, VIDEO, TopicNames
from devices.faults import ClockFault, DeliveryFault, DeviceClock, deliver
from devices.inputs import Room, open_inputs
from devices.streams import StreamMessage, due_ns
from flows.build import product_versions
from flows.files import MinutesOfLog, OrderedWorkers, log_values
from models.speech_recogniser import RecogniserSettings, SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators.align.grid import to_timeline_ns
from operators.broker.journal import NoJournal
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.clock import Clock, ClockSettings
from operators.clock.records import in_force
from operators.ingest import Ingest, IngestSettings
from operators.perceive.step import MediaWorkers, Perceive
from operators.perceive.types import PerceiveSettings

S: Final = 1_000_000_000
MS: Final = 1_000_000
SAMPLE: Final = Path(__file__).parents[2] / "devices" / "sample"
LENGTH_S: Final = 42
CLOCKS: Final = {
    "mic-2": ClockFault(offset_ns=180 * MS),
    "mic-4": ClockFault(offset_ns=-60 * MS, skew_ppb=80_000.0),
    "slides": ClockFault(offset_ns=3_200 * MS),
}
JITTER: Final = DeliveryFault(jitter_ns=6 * MS, jitter_shape=1.2, most_ns=150 * MS, duplicates=0.01)
CLEAN: Final = DeliveryFault(jitter_ns=1 * MS, jitter_shape=0.5)


@cache
def room() -> Room:
    """The sample meeting."""
    return open_inputs([SAMPLE])


@cache
def captured() -> Mapping[str, list[StreamMessage]]:
    """Messages of each stream in the first seconds, the end of the stream with them."""
    found: dict[str, list[StreamMessage]] = {}
    end_ns = room().start_ns + LENGTH_S * S
    for stream in room().streams:
        kept = []
        for message in stream.packets():
            if message.timestamp_ns >= end_ns:
                break
            kept.append(message)
        found[stream.name] = kept
    return found


@dataclass(frozen=True)
class Played:
    """The log and the minutes."""

    log: list[Any]
    minutes: dict[str, Any]

    def records(self, kind: type) -> list[Any]:
        return [r for r in self.log if isinstance(r, kind)]


def arrivals(
    clocks: Mapping[str, ClockFault], delivery: DeliveryFault
) -> Iterator[tuple[int, str, StreamMessage]]:
    """When each message is appended (UTC), in that order; stamped by its device's clock."""
    start_ns, found = room().start_ns, []
    for seed, (name, messages) in enumerate(captured().items()):
        device = name.rpartition("/")[0]
        true = np.asarray([m.timestamp_ns for m in messages], np.int64)
        stamps = DeviceClock(clocks.get(device, ClockFault()), start_ns, seed).stamps_ns(true)
        floor = 9 * MS if name.endswith("/audio") else 38 * MS
        sent = np.asarray([due_ns(m) for m in messages], np.int64)
        came = deliver(sent, replace(delivery, floor_ns=floor), start_ns, seed)
        for index, at in zip(came.index.tolist(), came.arrival_ns.tolist(), strict=True):
            message = messages[index]
            assert isinstance(message, Packet)
            stamped = replace(message, timestamp_ns=int(stamps[index]), stream_epoch=1)
            found.append((at // MS * MS - 37 * S, name, index, stamped))
    for at, name, _, stamped in sorted(found, key=lambda f: f[:3]):
        yield at, name, stamped


@cache
def played(*, faulty: bool, jitter: bool, loss: float = 0.0) -> Played:
    """The room through the steps of both flows."""
    ingest, clock = Ingest(IngestSettings(), TopicNames(shards=1)), Clock(ClockSettings())
    # Answers at once: how far slow work lags behind is the machine's business, not the clocks'.
    workers = OrderedWorkers(MediaWorkers(lambda: SpeechRecogniser(RecogniserSettings())), ahead=0)
    perceive = Perceive(
        0, PerceiveSettings(), VoiceActivity(), workers, NoJournal(), live=False, clock_s=lambda: 0.0, run=lambda: 0
    )  # fmt: skip
    offsets = dict.fromkeys((CONTROL.name, AUDIO.name, VIDEO.name), -1)
    log: list[bytes] = []

    def through(topic: str, value: bytes, arrival_ns: int) -> None:
        offsets[topic] += 1
        message = Received(topic, 0, offsets[topic], arrival_ns, True, value)
        take(perceive.on_batch(clock.on_batch(ingest.on_batch([message]))))

    def take(messages: list[Outgoing]) -> None:
        log.extend(log_values(messages))

    try:
        for control in room().control:
            through(CONTROL.name, control.to_bytes(), room().start_ns - 37 * S - 1)
        delivery = replace(JITTER if jitter else CLEAN, loss=loss)
        for at, name, stamped in arrivals(CLOCKS if faulty else {}, delivery):
            assert isinstance(stamped, Packet)
            through(AUDIO.name if name.endswith("/audio") else VIDEO.name, encode(stamped), at)
        take(list(perceive.finish_input()))
        while perceive.busy:
            answer = workers.drain(0)
            assert answer is not None
            take(list(perceive.answered(*answer)))
    finally:
        workers.close()
    minutes = MinutesOfLog(product_versions())
    for value in log:
        minutes.read(value)
    document = minutes.document()
    assert document is not None
    return Played([TIMELINE_RECORD.validate_json(v) for v in log], json.loads(document.to_bytes()))


NUMBERS: Final = {"3": "three", "9": "nine"}
SECTIONS: Final = ("decisions", "action_items", "open_questions", "answered_questions")


def said(minutes: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Items without ids and times.

    A piece may begin a frame earlier in another run, and the recogniser then writes 3 for three.
    """
    return [
        (section, alike(item["text"]), item.get("owner"), item.get("due"), item["verdict"],
         tuple((e["kind"], e["speaker"], alike(e["quote"])) for e in item["evidence"]))
        for section in SECTIONS
        for item in minutes[section]
    ]  # fmt: skip


def alike(text: str) -> str:
    """Words alone, numbers in letters."""
    words = re.findall(r"[a-z0-9']+", text.lower())
    return " ".join(NUMBERS.get(word, word) for word in words)


def test_faulty_clocks_and_deliveries_change_no_minutes_and_move_no_evidence() -> None:
    clean, faulty = played(faulty=False, jitter=False), played(faulty=True, jitter=True)
    assert len(said(clean.minutes)) >= 3
    assert said(faulty.minutes) == said(clean.minutes)
    assert [s["text"] for s in faulty.minutes["slides"]] == [s["text"] for s in clean.minutes["slides"]]
    pairs = [
        (one, two)
        for section in SECTIONS
        for item, other in zip(clean.minutes[section], faulty.minutes[section], strict=True)
        for one, two in zip(item["evidence"], other["evidence"], strict=True)
    ]
    for one, two in pairs:
        apart_ms = 1000 * abs(one["start_s"] - two["start_s"])
        # Words end where the recogniser hears it, and the clean room has its own bound.
        assert apart_ms <= one["error_ms"] + two["error_ms"] + 1.0, (one, two)
    for one, two in zip(clean.minutes["slides"], faulty.minutes["slides"], strict=True):
        assert abs(one["start_s"] - two["start_s"]) < 0.06, (one, two)


def test_every_faulty_clock_is_told_and_its_bound_holds() -> None:
    faulty = played(faulty=True, jitter=True)
    told = " ".join(faulty.minutes["notices"])
    true = np.arange(room().start_ns + S, room().start_ns + (LENGTH_S - 1) * S, S, dtype=np.int64)
    for device, fault in CLOCKS.items():
        assert device in told
        records = [r for r in faulty.records(ClockRecord) if r.device == device]
        stamps = DeviceClock(fault, room().start_ns, 99).stamps_ns(true)
        for raw, at in zip(stamps.tolist(), true.tolist(), strict=True):
            record = in_force(records, raw)
            assert record is not None
            assert abs(to_timeline_ns(record, raw) - at) <= record.uncertainty_ns + 200_000
    for device in ("mic-1", "mic-3"):
        assert device not in told


def test_with_loss_gaps_are_marked_and_nothing_is_invented() -> None:
    clean, lossy = played(faulty=False, jitter=False), played(faulty=True, jitter=True, loss=0.02)
    assert {g.what for g in lossy.records(GapRecord)} == {"lost"}
    assert len(lossy.minutes["gaps"]) > 0
    heard = {
        word for u in lossy.records(UtteranceRecord) if u.state == "closed" for word in alike(u.text).split()
    }
    for section, text, owner, due, _, evidence in said(lossy.minutes):
        # Each word was heard, and nobody is named whom the clean room does not name.
        assert evidence, (section, text)
        for _, _, quote in evidence:
            assert set(quote.split()) <= heard
        assert owner in (None, *(item[2] for item in said(clean.minutes)))
        assert due in (None, *(item[3] for item in said(clean.minutes)))
