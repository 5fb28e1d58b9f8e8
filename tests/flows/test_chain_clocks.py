"""Rooms with faulty clocks and deliveries through the whole chain: the minutes of the clean room, or marked gaps."""

import re
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal

import numpy as np
import pytest
from confluent_kafka import Producer

from benchmarks.faulty_room import Captured, Played, arrivals, capture, play
from contracts.messages import EndOfStream, MeetingEnded
from contracts.packet import Packet, encode
from contracts.timeline import ClockRecord, GapRecord, UtteranceRecord
from contracts.topics import AUDIO, TIMELINE, VIDEO
from devices.faults import ClockFault, DeliveryFault, DeviceClock
from flows.installation import Installation
from operators.clock.records import in_force
from operators.timeline import to_timeline_ns
from tests.flows.live_chain import PATIENCE_S, Chain

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
def captured() -> Captured:
    """The first seconds of the sample meeting."""
    return capture(SAMPLE, LENGTH_S)


@cache
def played(*, faulty: bool, jitter: bool, loss: float = 0.0) -> Played:
    """The room through the steps of both flows."""
    return play(captured(), CLOCKS if faulty else {}, replace(JITTER if jitter else CLEAN, loss=loss))


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
    true = np.arange(
        captured().room.start_ns + S, captured().room.start_ns + (LENGTH_S - 1) * S, S, dtype=np.int64
    )
    for device, fault in CLOCKS.items():
        assert device in told
        records = [r for r in faulty.records(ClockRecord) if r.device == device]
        stamps = DeviceClock(fault, captured().room.start_ns, 99).stamps_ns(true)
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


@pytest.mark.slow
def test_kills_of_both_flows_in_a_room_with_faults_change_no_minutes(tmp_path: Path) -> None:
    """Both flows are killed twice while sound comes late, repeated, out of order and with wrong stamps."""
    meeting_id = captured().room.meeting_id
    # What a restart takes is no silence of the room's, and nothing is left out to come back to time sooner. The room is
    # played with rules alone.
    settings = {
        "MINUTED_PARTIALS": "false", "MINUTED_STREAM_IDLE_S": "300", "MINUTED_SHED_AFTER_S": "86400",
        "MINUTED_MODEL": "rules",
    }  # fmt: skip
    with Installation(tmp_path / "installation", settings=settings) as installation:
        chain = Chain(installation)
        sending = Thread(target=send, args=(chain,))
        sending.start()
        for more in (60, 60):
            before = len(chain.reader.of(TIMELINE))
            chain.wait(partial(_grown, chain, before + more), f"{more} more records")
            for flow in installation.flows.values():
                flow.kill()
            for flow in installation.flows.values():
                flow.start()
            for flow in installation.flows.values():
                flow.wait_ready()
        sending.join()
        document = chain.minutes(meeting_id)
        chain.close()
    assert said(document.model_dump(mode="json")) == said(played(faulty=False, jitter=False).minutes)


def _grown(chain: Chain, count: int) -> bool:
    return len(chain.reader.of(TIMELINE)) >= count


def send(chain: Chain) -> None:
    """The room with its faults as its devices would send it; arrival times are made up."""
    room = captured().room
    for control in room.control:
        chain.control(control)
    producer, names = Producer(chain.link.producer()), chain.link.names
    partition, begun = names.partition(room.meeting_id), time.monotonic()
    last: dict[str, Packet] = {}
    at_ns = 0
    first_ns: int | None = None
    for at_ns, name, packet in arrivals(captured(), CLOCKS, JITTER):
        first_ns = at_ns if first_ns is None else first_ns
        time.sleep(max(0.0, begun + (at_ns - first_ns) / 1e9 - time.monotonic()))
        topic = names.of(AUDIO if name.endswith("/audio") else VIDEO)
        producer.produce(
            topic, encode(packet), key=room.meeting_id, partition=partition, timestamp=at_ns // MS
        )
        producer.poll(0)
        if name not in last or packet.sequence > last[name].sequence:
            last[name] = packet
    assert producer.flush(PATIENCE_S) == 0
    for name, packet in last.items():
        modality: Literal["audio", "video"] = "audio" if name.endswith("/audio") else "video"
        over = EndOfStream(
            meeting_id=room.meeting_id, device_id=packet.device_id, stream_epoch=packet.stream_epoch,
            sequence=packet.sequence + 1,
            timestamp_ns=packet.timestamp_ns + packet.duration_ns, modality=modality,
        )  # fmt: skip
        chain.send(AUDIO if modality == "audio" else VIDEO, over.to_bytes(), room.meeting_id)
    chain.control(MeetingEnded(meeting_id=room.meeting_id))
