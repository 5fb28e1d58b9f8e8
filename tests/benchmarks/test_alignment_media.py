"""The calibration signal in recorded media, and what the benchmark makes of a log and minutes."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from benchmarks.alignment_media import Playing, _placed, figures, judged, prepare
from benchmarks.alignment_signal import with_flashes, with_tones
from benchmarks.watching import Seen
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.pulse_train import PULSES_S
from contracts.timeline import ClockRecord, NoticeRecord
from contracts.topics import TIMELINE
from devices.faults import ClockFault, RoomPlan
from devices.inputs import open_inputs
from devices.media import probe
from operators.clock.cues import FlashWatch, chirp_times
from operators.clock.sounds import Stretch, windows_of
from operators.pictures.stream import PictureStream, PictureStreamSettings

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
S = 1_000_000_000
MS = 1_000_000


def test_tones_come_where_the_signal_says_and_its_way_takes() -> None:
    quiet = [
        Packet("m", "mic", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, n, n * S // 50, S // 50,
               np.random.default_rng(n).integers(-20, 20, 320).astype("<i2").tobytes(), 16_000, 0, 0, 1)
        for n in range(100)
    ]  # fmt: skip
    mixed = with_tones(quiet, S // 2, 0.007)
    sound = np.concatenate([np.frombuffer(p.payload, "<i2") for p in mixed]).astype(np.float32) * np.float32(
        1 / 32768
    )
    (found,) = chirp_times(windows_of([Stretch(0, sound)], 16_000), 16_000)
    wanted = [0.507 + at for at in PULSES_S if at < 1.2]
    assert [at / 16_000 for at in found] == pytest.approx(wanted, abs=0.0002)


def test_flashes_stand_in_the_access_units_and_nothing_else_is_touched() -> None:
    room = open_inputs([SAMPLE])
    (slides,) = (s for s in room.streams if s.modality is Modality.VIDEO)
    messages = itertools.takewhile(lambda m: m.timestamp_ns < room.start_ns + 13 * S, slides.packets())
    units = [m for m in messages if isinstance(m, Packet)]
    info = probe(slides.path).picture
    assert info is not None
    begin_ns = room.start_ns + 5 * S
    lit = with_flashes(units, info, begin_ns, screen=True)
    assert lit[0].payload == units[0].payload and [p.sequence for p in lit] == list(range(len(lit)))
    stream, watch = PictureStream("camera", PictureStreamSettings()), FlashWatch()
    for unit in lit:
        stream.h264(bytes(unit.payload), unit.key_frame, unit.timestamp_ns)
        for at_ns, brightness in stream.take_light():
            watch.push(at_ns, brightness)
    for began, _ in watch.pulses:
        place = (began[1] - begin_ns) / S
        assert any(-0.001 <= place - at <= 0.21 for at in PULSES_S)
    assert len(watch.pulses) >= 4


def test_clocks_are_held_against_the_truth_at_the_transducer() -> None:
    room = prepare(SAMPLE, "blind", 12.0, 0)
    right = {
        d: replace(p, clock=ClockFault(), faults=(), joins_at_s=0.0) for d, p in room.plan.devices.items()
    }
    late = replace(right["mic-2"], clock=ClockFault(offset_ns=60 * MS), faults=("offset",))
    plan = RoomPlan(right | {"mic-2": late}, room.plan.broker)
    room = replace(room, plan=plan)

    def record(device: str, offset_ns: int, bound_ns: int) -> bytes:
        return ClockRecord(
            meeting_id=room.room.meeting_id, device=device, number=0, from_raw_ns=-(2**63), ref_ns=0,
            offset_ns=offset_ns, skew_ppb=0.0, uncertainty_ns=bound_ns, method="online",
        ).to_bytes()  # fmt: skip

    told = [record(d, 0, MS) for d in room.kinds if d not in ("mic-2", "mic-3")]
    told += [record("mic-2", 57 * MS, 2 * MS), record("mic-3", 4 * MS, 5 * MS)]
    said = NoticeRecord(
        meeting_id=room.room.meeting_id, code="clock_wrong", text="The clock of mic-3 is 0.004 s ahead."
    )
    found = judged(room, S, [Seen(TIMELINE, value, 0, 0) for value in (*told, said.to_bytes())])
    assert sorted({(round(e, 3), b) for e, b in zip(found.errors, found.bounds, strict=True)}) == [
        (-4.0, 5.0), (0.0, 1.0), (3.0, 2.0),
    ]  # fmt: skip
    assert (found.faulty, found.named) == ({"mic-2"}, {"mic-3"}) and "mic-3" in found.healthy
    assert len(found.outside) == 1 and "mic-2: 9 of 9 s, worst 3.0 ms of 2.0" in found.outside[0]
    assert "faults: offset" in found.outside[0]
    out = figures([found])
    assert out["bound_coverage"] == pytest.approx(1 - 1 / len(room.kinds), abs=0.001)
    assert out["blind"]["sound_sound"]["max_ms"] == 7.0
    assert out["faulty_named"] == {"share": 0.0, "faulty": 1, "healthy": len(room.kinds) - 1, "accused": 1}


def test_a_stamp_is_what_its_clock_said_when_it_had_not_stood_still() -> None:
    room = prepare(SAMPLE, "blind", 12.0, 0)
    frozen = replace(
        room.plan.devices["mic-1"], clock=ClockFault(offset_ns=5, frozen_at_s=4.0, frozen_for_s=3.0)
    )
    playing: Playing = replace(room, plan=RoomPlan({"mic-1": frozen}, room.plan.broker))
    assert playing.error_ns("mic-1", room.room.start_ns + 9 * S) == 5


@pytest.mark.parametrize("by_ms", [700, -700])
def test_a_stamp_is_placed_by_what_holds_on_its_side_of_a_step(by_ms: int) -> None:
    """Records of what follows a step come last, and hold for nothing before it."""
    step_ns = 100 * S
    after = step_ns + by_ms * MS

    def record(number: int, from_raw_ns: int, offset_ms: int) -> ClockRecord:
        method: Literal["arrival", "online"] = "arrival" if number == 1 and by_ms < 0 else "online"
        return ClockRecord(
            meeting_id="m", device="c", number=number, from_raw_ns=from_raw_ns, ref_ns=0,
            offset_ns=offset_ms * MS, uncertainty_ns=MS, method=method,
        )  # fmt: skip

    records = [record(0, -(2**63), 0), record(1, after, by_ms), record(2, after, by_ms + 1)]
    if by_ms > 0:
        records.insert(2, record(2, -(2**63), 2))
        records[3] = record(3, after, by_ms + 1)
    before = _placed(records, step_ns - 300 * MS, step_ns - 300 * MS)
    assert before == (step_ns - (302 if by_ms > 0 else 300) * MS, MS)
    assert _placed(records, after + 300 * MS, step_ns + 300 * MS) == (step_ns + 299 * MS, MS)
