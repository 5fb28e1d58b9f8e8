"""Alignment of a meeting's streams at any times: interpolation, gaps, clocks, memory."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator  # type: ignore[import-untyped]

from contracts.messages import TextLine
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, GapRecord, SlideRecord
from operators.align.alignment import Alignment, AlignmentSettings
from operators.align.interpolate import between, held, linear, on_timeline, trilinear, under_box
from operators.timeline import clock_in_force, to_timeline_ns

S = 1_000_000_000
ZERO = 1_780_000_000 * S
STREAM = "camera/picture_features"


def ns(*seconds: float) -> npt.NDArray[np.int64]:
    return np.asarray([ZERO + round(s * S) for s in seconds], np.int64)


def volume(second: float, values: npt.NDArray[np.float16], sequence: int = 0) -> Packet:
    maps, rows, columns = values.shape
    return Packet(
        "m", "camera", Modality.PICTURE_FEATURES, Codec.VOLUME_F16, ClockKind.PTP, 0, sequence, ZERO + round(second * S),
        S // 5, values.astype("<f2").tobytes(), 0, columns, rows, maps,
    )  # fmt: skip


def flat(second: float, level: float) -> Packet:
    return volume(second, np.full((3, 9, 16), level, np.float16))


def patches(second: float, level: int) -> Packet:
    values = np.full((32, 16, 16), level, np.uint8)
    return Packet(
        "m", "camera", Modality.PICTURE_FEATURES, Codec.PATCHES_U8, ClockKind.PTP, 0, 0, ZERO + round(second * S), S,
        values.tobytes(), 0, 16, 16, 1,
    )  # fmt: skip


def clock(
    number: int, offset_s: float = 0, *, skew: float = 0, step: bool = False, since: float | None = None
) -> ClockRecord:
    return ClockRecord(
        meeting_id="m", device="camera", number=number, from_raw_ns=-(2**63) if since is None else ZERO + round(since * S),
        ref_ns=ZERO, offset_ns=round(offset_s * S), skew_ppb=skew, uncertainty_ns=(number + 1) * 1_000_000,
        method="arrival" if step else "online",
    )  # fmt: skip


def gap(start: float, end: float, stream: str = "camera/video") -> GapRecord:
    device = stream.partition("/")[0]
    return GapRecord(
        meeting_id="m", stream=stream, device=device, clock=0, raw_start_ns=ZERO + round(start * S),
        raw_end_ns=ZERO + round(end * S), what="lost",
    )  # fmt: skip


def slide(name: str, second: float, *lines: tuple[str, float]) -> SlideRecord:
    return SlideRecord(
        meeting_id="m", id=name, stream="laptop/video", device="laptop", clock=0, raw_start_ns=ZERO + round(second * S),
        mark_ns=ZERO, text="\n".join(t for t, _ in lines), sampling_ms=200.0,
        lines=tuple(TextLine(text=t, box=(0.1, top, 0.9, top + 0.1)) for t, top in lines),
    )  # fmt: skip


def aligned(*packets: Packet, options: AlignmentSettings | None = None) -> Alignment:
    alignment = Alignment(options or AlignmentSettings())
    for packet in packets:
        alignment.features(packet)
    return alignment


# Trilinear interpolation


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), frames=st.integers(2, 6), rows=st.integers(2, 9), columns=st.integers(2, 16),
    edge=st.booleans(),
)  # fmt: skip
def test_trilinear_is_that_of_scipy(seed: int, frames: int, rows: int, columns: int, edge: bool) -> None:
    """Random volumes, unevenly spaced in time; points between, on knots, on edges and corners."""
    random = np.random.default_rng(seed)
    knots = ZERO + np.cumsum(random.integers(1, 300_000_000, frames))
    volumes = random.normal(size=(frames, 3, rows, columns)).astype(np.float32)
    n = 64
    times = random.integers(knots[0], knots[-1] + 1, n)
    r, c = random.uniform(0, rows - 1, n), random.uniform(0, columns - 1, n)
    if edge:
        times = np.where(random.random(n) < 0.6, random.choice(knots, n), times)
        r = np.where(random.random(n) < 0.6, random.integers(0, rows, n), r)
        c = np.where(random.random(n) < 0.6, random.choice([0, columns - 1], n), c)
    found = trilinear(volumes, between(knots, times, S), r, c)
    for number in range(3):
        grid = ((knots - ZERO).astype(float), np.arange(rows), np.arange(columns))
        theirs = RegularGridInterpolator(grid, volumes[:, number].astype(float))
        wanted = theirs(np.stack([(times - ZERO).astype(float), r, c], axis=1))
        np.testing.assert_allclose(found[:, number], wanted, atol=2e-6)


def test_beyond_the_middle_of_an_outer_cell_it_is_that_cell() -> None:
    volumes = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    place = between(ns(0), ns(0, 0), S)
    found = trilinear(volumes, place, np.asarray([-0.5, 2.5]), np.asarray([-0.5, 3.5]))
    assert found.ravel().tolist() == [0.0, 11.0]


def test_a_box_over_one_cell_reads_that_cell_and_its_share_of_the_neighbours() -> None:
    """In a field that rises evenly the mean under a box is the value at its middle."""
    rows, columns = np.mgrid[0:9, 0:16]
    volumes = (rows * 100.0 + columns).astype(np.float32)[None, None]
    box = np.asarray([[3 / 16, 4 / 9, 7 / 16, 5 / 9]])
    assert under_box(volumes, between(ns(0), ns(0), S), box, (3, 8)).item() == pytest.approx(404.5)
    corner = np.asarray([[0.5 / 16, 0.5 / 9, 1.5 / 16, 1.5 / 9]])
    assert under_box(volumes, between(ns(0), ns(0), S), corner, (1, 1)).item() == pytest.approx(50.5)


def test_a_picture_feature_under_a_slide_box_moves_with_time() -> None:
    dark, bright = np.zeros((3, 9, 16), np.float16), np.zeros((3, 9, 16), np.float16)
    bright[1, :, 8:] = 1.0
    alignment = aligned(volume(0, dark), volume(1, bright))
    left, right = (0.05, 0.1, 0.35, 0.4), (0.65, 0.1, 0.95, 0.4)
    found = alignment.under_boxes(STREAM, ns(0.25, 0.25, 3), [left, right, right])
    assert found.known.tolist() == [True, True, False]
    assert found.values.ravel().tolist() == pytest.approx([0, 0, 0, 0, 0.25, 0, 0, 0, 0])


# Between frames


def test_features_are_linear_between_the_two_frames_around_a_time() -> None:
    found = (
        aligned(flat(0, 0.0), flat(0.2, 0.5), flat(1.0, 1.0)).at(ns(0, 0.05, 0.2, 0.6, 1.0)).volumes[STREAM]
    )
    assert found.known.all()
    np.testing.assert_allclose(found.values[:, 1, 4, 7], [0, 0.125, 0.5, 0.75, 1.0], atol=1e-6)
    assert found.sampling_ns.tolist() == [0, S // 5, 0, S * 4 // 5, 0]


def test_patches_are_those_of_the_nearest_frame_before() -> None:
    found = aligned(patches(0, 10), patches(1, 250)).at(ns(-0.1, 0, 0.999, 1, 4, 12)).patches[STREAM]
    assert found.known.tolist() == [False, True, True, True, True, False]
    assert found.values[:, 0, 0, 0].tolist() == [0, 10, 10, 250, 250, 0]
    assert found.sampling_ns[2] == 999_000_000


def test_a_long_gap_is_not_bridged_and_nothing_is_made_up_outside() -> None:
    alignment = aligned(flat(0, 0.5), flat(2, 0.5), flat(4.001, 0.5), flat(4.2, 0.5))
    found = alignment.at(ns(-0.001, 1, 2, 2.5, 4.001, 4.1, 4.201)).volumes[STREAM]
    assert found.known.tolist() == [False, True, True, False, True, True, False]
    assert not found.values[~found.known].any()


def test_a_gap_that_the_log_tells_of_is_marked_however_short() -> None:
    alignment = aligned(flat(0, 0.5), flat(0.2, 0.5), flat(0.4, 0.5))
    for start, end in ((0.1, 0.11), (0.05, 0.15), (0.35, 0.36)):
        alignment.gap(gap(start, end))
    assert alignment.at(ns(0.04, 0.05, 0.12, 0.15, 0.3)).volumes[STREAM].known.tolist() == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_times_far_from_everything_are_unknown() -> None:
    alignment = aligned(flat(0, 0.5), flat(0.2, 0.5), patches(0, 3))
    far = np.asarray([-(2**63), 2**63 - 1], np.int64)
    found = alignment.at(far)
    assert not found.volumes[STREAM].known.any() and not found.patches[STREAM].known.any()
    assert alignment.at(np.zeros(0, np.int64)).volumes[STREAM].values.shape == (0, 3, 9, 16)


def test_no_frames_no_values() -> None:
    place = between(np.zeros(0, np.int64), ns(1, 2), S)
    assert not place.known.any() and linear(np.zeros((0, 3), np.float32), place).shape == (2, 3)
    assert not held(np.zeros(0, np.int64), ns(1), S).known.any()
    assert Alignment(AlignmentSettings()).at(ns(1)).volumes == {}


# Clocks


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_times_are_those_of_the_log_one_by_one(data: st.DataObject) -> None:
    records = [
        ClockRecord(
            meeting_id="m", device="d", number=n, from_raw_ns=ZERO + data.draw(st.integers(-10, 10)) * S,
            ref_ns=ZERO + data.draw(st.integers(-S, S)), offset_ns=data.draw(st.integers(-(2**40), 2**40)),
            skew_ppb=data.draw(st.sampled_from([0.0, 37.5, -99_999.9])), uncertainty_ns=n + 1,
            method=data.draw(st.sampled_from(["online", "arrival"])),
        )
        for n in range(data.draw(st.integers(0, 4)))
    ]  # fmt: skip
    raw = ZERO + data.draw(st.lists(st.integers(-20 * S, 20 * S), min_size=1, max_size=8).map(np.asarray))
    placed = np.asarray(data.draw(st.lists(st.integers(0, 4), min_size=len(raw), max_size=len(raw))))
    times, bounds = on_timeline(records, placed, raw)
    for n, (stamp, by) in enumerate(zip(raw.tolist(), placed.tolist(), strict=True)):
        record = clock_in_force(records, by, stamp)
        assert times[n] == (stamp if record is None else to_timeline_ns(record, stamp))
        assert bounds[n] == (0 if record is None else record.uncertainty_ns)


def test_a_camera_found_late_is_placed_right_from_then_on() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.clock(clock(0))
    for n in range(100):
        alignment.features(flat(3.2 + n * 0.2, 1.0 if n >= 50 else 0.0))
    assert alignment.at(ns(9.8, 10.4)).volumes[STREAM].values[:, 0, 0, 0].tolist() == [0.0, 0.0]
    alignment.clock(clock(1, 3.2))
    found = alignment.at(ns(9.8, 10.0)).volumes[STREAM]
    assert found.values[:, 0, 0, 0].tolist() == [0.0, 1.0]
    assert found.error_ns.tolist() == [2_000_000, 2_000_000]


def test_what_was_placed_before_a_clock_was_set_back_stays() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.clock(clock(0))
    for n in range(10):
        alignment.features(flat(n * 0.2, 0.25))
    alignment.clock(clock(1, -2.0, step=True, since=0))
    for n in range(10):
        alignment.features(flat(n * 0.2, 0.75))
    assert alignment.at(ns(1.0, 3.0)).volumes[STREAM].values[:, 0, 0, 0].tolist() == [0.25, 0.75]


# What is kept


def test_memory_is_bounded_by_time_and_by_count() -> None:
    options = AlignmentSettings(keep_ns=2 * S, most_frames=50)
    alignment = aligned(*(flat(n * 0.2, 0.5) for n in range(100)), options=options)
    times, _ = alignment.volumes_between(STREAM, ZERO, ZERO + 100 * S)
    assert len(times) == 11 and times[-1] == ns(19.8)
    crowded = aligned(*(flat(n * 0.001, 0.5) for n in range(100)), options=options)
    assert len(crowded.volumes_between(STREAM, ZERO, ZERO + 100 * S)[0]) == 50
    # Numbers of clock records go up; what is old goes all the same.
    for n in range(100):
        alignment.clock(clock(n))
        alignment.features(flat(20 + n * 0.2, 0.5))
    assert len(alignment.volumes_between(STREAM, ZERO, ZERO + 100 * S)[0]) == 11
    for n in range(500):
        alignment.slide(slide(f"s{n}", n * 0.1))
        alignment.gap(gap(n * 0.1, n * 0.1 + 0.05))
    assert len(alignment._slides["laptop/video"]) == 50
    assert len(alignment._gaps["camera/video"]) == 50


def test_frames_that_were_said_twice_count_once_and_broken_ones_not_at_all() -> None:
    alignment = Alignment(AlignmentSettings())
    for packet in (flat(1, 0.5), flat(1, 0.75), replace(flat(2, 0.5), channels=2), flat(3, float("nan"))):
        alignment.features(packet)
    assert alignment.refused == 2 and list(alignment.changed) == [0]
    assert alignment.at(ns(1)).volumes[STREAM].values[0, 0, 0, 0] == 0.5


def test_mel_is_linear_between_its_rows() -> None:
    rows = np.arange(20, dtype="<f2").reshape(10, 2)
    packet = Packet(
        "m", "mic", Modality.SOUND_FEATURES, Codec.MEL_F16, ClockKind.PTP, 0, 0, ZERO, S // 10, rows.tobytes(), 100, 2
    )  # fmt: skip
    alignment = aligned(packet)
    found = alignment.at(ns(0, 0.005, 0.09, 0.095)).mel["mic/sound_features"]
    assert found.values[:, 0].tolist() == [0.0, 1.0, 18.0, 0.0] and found.known.tolist() == [
        True,
        True,
        True,
        False,
    ]


# Slides


def test_a_slide_stands_until_the_next_and_its_lines_move_there() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.slide(slide("a", 0, ("Budget", 0.2), ("Budget", 0.6), ("Gone", 0.4)))
    alignment.slide(slide("b", 1, ("Budget", 0.0), ("Budget", 0.8)))
    alignment.slide(slide("c", 30, ("Budget", 0.5)))
    found = alignment.at(ns(-1, 0, 0.5, 1, 15.5, 30)).slides["laptop/video"]
    assert [s.id for s in found] == [None, "a", "a", "b", "b", "c"]
    tops = [[round(line.box[1], 6) for line in s.lines] for s in found]
    # From a to b is a second: lines that both have move. From b to c is too far to say when they moved.
    assert tops == [[], [0.2, 0.6, 0.4], [0.1, 0.7, 0.4], [0.0, 0.8], [0.0, 0.8], [0.5]]
    assert found[2].lines[0].box == pytest.approx((0.1, 0.1, 0.9, 0.2))


def test_in_a_gap_of_its_stream_no_slide_is_claimed() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.slide(slide("a", 0, ("Budget", 0.2)))
    alignment.gap(gap(2, 3, "laptop/video"))
    assert [s.id for s in alignment.at(ns(1, 2, 2.9, 3)).slides["laptop/video"]] == ["a", None, None, "a"]
