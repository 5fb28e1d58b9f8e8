"""Streams whose stamps no honest clock would write: told, kept few on the log, and no other device moves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from contracts.messages import MeetingStarted
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.clock import ClockSettings, MeetingClocks, Timed
from operators.ingest import Arrival
from operators.timeline import clock_in_force, to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S
BLOCKS = 1_500

Spoil = Callable[[int, Packet], Packet]


def block(device: str, number: int) -> Packet:
    return Packet(
        "m", device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, number, START + number * 20 * MS, 20 * MS,
        b"\1\0" * 320, 16_000, 0, 0, 1,
    )  # fmt: skip


def stamped(stamp: Callable[[int], int]) -> Spoil:
    return lambda number, packet: replace(packet, timestamp_ns=stamp(number))


def noise(number: int, packet: Packet) -> Packet:
    samples = np.random.default_rng(number).integers(-9_000, 9_000, 320).astype("<i2")
    return replace(packet, payload=samples.tobytes())


@pytest.mark.parametrize(
    ("spoil", "told", "most_records"),
    [
        (stamped(lambda n: START + n * 20 * MS), None, 1),
        (stamped(lambda n: START + (BLOCKS - n) * 20 * MS), "set back", 10),
        (stamped(lambda n: START + n * 20 * MS - (500 * MS if n > 700 else 0)), "set back by 0.500 s", 4),
        (stamped(lambda n: START + n * 20 * MS + (S if n % 2 else 0)), "set", 20),
        (stamped(lambda n: START), "stood still", 10),
        (stamped(lambda n: START + min(n, 700) * 20 * MS), "stood still", 10),
        (stamped(lambda n: 2**63 - 1 - n), "unknown or wrong", 10),
        (stamped(lambda n: -(2**63) + n), "unknown or wrong", 10),
        (lambda _, packet: replace(packet, duration_ns=0), None, 1),
        (lambda _, packet: replace(packet, duration_ns=0, payload=b""), None, 1),
        (noise, None, 1),
    ],
    ids=[
        "right", "backwards", "back once", "to and fro", "equal", "equal later", "beyond 2262", "before 1678",
        "no duration", "no sound", "noise",
    ],
)  # fmt: skip
def test_stamps_that_no_clock_writes_cost_nobody_else(
    spoil: Spoil, told: str | None, most_records: int
) -> None:
    clocks = MeetingClocks(ClockSettings(), "m", {}, {})
    start = MeetingStarted(meeting_id="m", start_ns=START)
    clocks.feed(Arrival("m", start, START - 37 * S, True, "control/0/0"))
    records: dict[str, list[ClockRecord]] = {"a": [], "b": [], "bad": []}
    notices, handed_on = [], 0
    for number in range(BLOCKS):
        for device in records:
            packet = block(device, number)
            packet = spoil(number, packet) if device == "bad" else packet
            arrival_ns = START + number * 20 * MS + 29 * MS - 37 * S
            for out in clocks.feed(Arrival("m", packet, arrival_ns, True, "audio/0/0")):
                if isinstance(out, ClockRecord):
                    records[out.device].append(out)
                elif isinstance(out, NoticeRecord):
                    notices.append(out.text)
                else:
                    handed_on += isinstance(out, Timed)
    assert handed_on == 3 * BLOCKS
    assert all("of bad " in text for text in notices)
    assert any(told in text for text in notices) if told else notices == []
    assert len(records["bad"]) <= most_records
    for device in ("a", "b"):
        for at in range(START, START + 30 * S, S):
            record = clock_in_force(records[device], 10**9, at)
            assert record is not None and abs(to_timeline_ns(record, at) - at) <= record.uncertainty_ns
