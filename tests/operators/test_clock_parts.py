"""The parts of clock estimation, each against a truth that was not computed by it."""

import datetime
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.leap_seconds import LEAP_SECONDS, tai_from_utc_ns, tai_utc_s, utc_from_tai_ns
from contracts.pulse_train import ON_S, PULSES_S
from contracts.timeline import ClockRecord
from devices.faults import (
    ClockFault,
    DeliveryFault,
    DeviceClock,
    DeviceKind,
    DevicePlan,
    capture_times_ns,
    deliver,
)
from operators.clock.course import Jump, StreamCourse
from operators.clock.cues import FlashWatch, Pulse, PulsesHeard, chirp, chirp_times, match_pulses
from operators.clock.envelope import LowerHull
from operators.clock.pace import Pace
from operators.clock.records import Piece, record_of, to_raw_ns
from operators.clock.solve import Loss, Rows, solve
from operators.clock.sounds import Stretch, Window, phat_peak, transform_size, windows_of
from operators.clock.wrap import wrapped_by_ns
from operators.timeline import to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S


# Envelope


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 1000)), min_size=1, max_size=20),
    st.floats(-5.0, 5.0),
)
def test_the_hull_knows_the_lowest_line_of_any_slope(steps: list[tuple[int, int]], slope: float) -> None:
    hull, x, points = LowerHull(), 0, []
    for step, y in steps:
        x += step
        points.append((x, y))
        hull.push(x, y)
    assert hull.lowest(slope, 7) == pytest.approx(min(y + slope * (x - 7) for x, y in points))


def test_a_hull_stays_small_and_nearly_exact() -> None:
    hull = LowerHull()
    points = [(n, (n - 5_000) ** 2) for n in range(10_000)]  # every point is a corner
    for x, y in points:
        hull.push(x, y)
    assert len(hull.x) <= 24
    assert hull.lowest(0.0, 0) <= 0.02 * max(y for _, y in points)


# Least squares


def test_normal_rows_are_weighted_least_squares() -> None:
    random = np.random.default_rng(1)
    matrix, value = random.normal(size=(12, 4)), random.normal(size=12)
    sigma = random.uniform(0.5, 2.0, 12)
    rows = Rows()
    for line, v, s in zip(matrix, value, sigma, strict=True):
        rows.add([(n, float(c)) for n, c in enumerate(line)], float(v), float(s))
    found = solve(4, rows)
    expected, *_ = np.linalg.lstsq(matrix / sigma[:, None], value / sigma, rcond=None)
    assert np.allclose(found.x, expected)
    assert np.allclose(
        found.covariance, np.linalg.inv((matrix / sigma[:, None]).T @ (matrix / sigma[:, None]))
    )


def test_outliers_lose_their_say_and_envelopes_lie_below() -> None:
    rows = Rows()
    for value in (1.0, 1.1, 0.9, 1.0, 50.0):
        rows.add([(0, 1.0)], value, 0.1, Loss.ROBUST)
    for value in (2.0, 2.05, 9.0, 12.0, 7.0):
        rows.add([(1, 1.0)], value, 0.1, Loss.FLOOR)
    found = solve(2, rows, iterations=20)
    assert found.x[0] == pytest.approx(1.0, abs=0.05)
    assert 1.9 < found.x[1] < 2.3


def test_a_few_sharp_and_wrong_rows_are_outvoted() -> None:
    rows = Rows()
    for value in (0.1, -0.2, 0.0, 0.2, -0.1):
        rows.add([(0, 1.0)], value, 0.6)
    for _ in range(3):
        rows.add([(0, 1.0)], 5.0, 0.05, Loss.ROBUST)
    assert abs(solve(1, rows).x[0]) < 0.3


@pytest.mark.parametrize(("said", "found"), [(-3.0, 0.0), (2.0, 2.0)])
def test_a_least_value_holds_from_below_alone(said: float, found: float) -> None:
    rows = Rows()
    rows.add([(0, 1.0)], said, 4.0)
    rows.add([(0, 1.0)], 0.0, 0.1, Loss.LEAST)
    assert solve(1, rows).x[0] == pytest.approx(found, abs=0.01)


# Course: steps, and what only looks like one


def jumps_of(
    kind: DeviceKind, clock: ClockFault | None = None, delivery: DeliveryFault | None = None,
    plan: DevicePlan | None = None, seed: int = 5,
) -> tuple[list[Jump], float]:  # fmt: skip
    """Jumps found on 40 s of a stream, and by how many ms its axis has left the truth at the end."""
    plan = plan or DevicePlan(kind, rate_hz=50.0 if kind == "sound" else 25.0)
    clock = clock or ClockFault()
    true = capture_times_ns(plan, START, START + 40 * S, seed)
    stamps = DeviceClock(clock, START, seed).stamps_ns(true)
    lasts = 20 * MS if kind == "sound" else 0
    found = deliver(true + lasts, delivery or DeliveryFault(loss=0.02), START, seed)
    numbers, first = np.unique(found.index, return_index=True)
    course = StreamCourse(sound=kind == "sound")
    jumps: list[Jump] = []
    for number, at in zip(numbers.tolist(), found.arrival_ns[first].tolist(), strict=True):
        jumps += course.feed(1, number, int(stamps[number]), lasts, at)
        if course.ripe_since_ns is not None:
            jumps += course.decide(at)
    begun = (int(stamps[0]) - course.zero_ns - int(true[0])) / 1e6
    return jumps, (course.last_x - int(true[numbers[-1]])) / 1e6 - begun


@pytest.mark.parametrize("kind", ["sound", "camera"])
@pytest.mark.parametrize("by_ms", [-1500, -150, 150, 2000])
def test_a_step_of_the_clock_is_found_with_its_size(kind: DeviceKind, by_ms: int) -> None:
    jumps, left_ms = jumps_of(kind, ClockFault(step_at_s=20.0, step_ns=by_ms * MS))
    assert sum(j.by_ns for j in jumps) / MS == pytest.approx(by_ms, abs=1.0 if kind == "sound" else 3.0)
    assert abs(left_ms) < (1.0 if kind == "sound" else 3.0)


@pytest.mark.parametrize("rate_hz", [1.0, 2.0, 5.0, 10.0])
def test_few_pictures_a_second_make_no_step_of_queueing(rate_hz: float) -> None:
    plan = DevicePlan("slides", rate_hz=rate_hz)
    late = DeliveryFault(
        floor_ns=38 * MS, jitter_ns=6 * MS, jitter_shape=1.2, most_ns=150 * MS, loss=0.02, duplicates=0.01
    )
    assert [jumps_of("slides", delivery=late, plan=plan, seed=seed)[0] for seed in range(25)] == [[]] * 25


def test_a_step_among_few_pictures_is_found() -> None:
    plan = DevicePlan("slides", rate_hz=5.0)
    jumps, left_ms = jumps_of("slides", ClockFault(step_at_s=20.0, step_ns=150 * MS), plan=plan)
    assert len(jumps) == 1 and abs(left_ms) < 3.0


@pytest.mark.parametrize("kind", ["sound", "camera"])
@pytest.mark.parametrize("longer_ms", [-30, 30, 200])
def test_a_new_route_is_no_step(kind: DeviceKind, longer_ms: int) -> None:
    route = DeliveryFault(floor_ns=40 * MS, loss=0.02, route_at_s=20.0, route_ns=longer_ms * MS)
    assert jumps_of(kind, delivery=route)[0] == []


@pytest.mark.parametrize(
    "plan",
    [
        DevicePlan("camera", rate_hz=30.0, drops_at_s=20.0),
        DevicePlan("camera", rate_hz=25.0, variable_rate=True),
    ],
)
def test_a_camera_that_changes_its_rate_has_no_step(plan: DevicePlan) -> None:
    assert jumps_of("camera", plan=plan)[0] == []


def test_half_a_minute_of_pictures_is_counted_by_more_than_the_last_second() -> None:
    pace = Pace()
    for number in range(500):
        # The last stamps before a clock stops are as noisy as any.
        x, noise = number * 40 * MS, 3 * MS if number == 499 else 0
        pace.add(number, x + noise, 40 * MS + noise)
    assert pace.expected_ns(750) == pytest.approx(30 * S, abs=MS)
    pace.begin_anew()
    assert abs(pace.expected_ns(750) - 30 * S) > 100 * MS


def jumps_of_pictures(
    intervals_ms: Sequence[int], lost: range, late_ms: int, *, anew: bool = False
) -> list[Jump]:
    """Pictures of which some are lost; those after them take ``late_ms`` longer to arrive."""
    course, jumps, at = StreamCourse(sound=False), list[Jump](), START
    for number, interval_ms in enumerate(intervals_ms):
        at += interval_ms * MS
        if number in lost:
            continue
        arrival = at + (40 + (late_ms if number >= lost.stop else 0)) * MS
        jumps += course.feed(2 if anew and number >= lost.stop else 1, number, at, 0, arrival)
        if course.ripe_since_ns is not None:
            jumps += course.decide(arrival)
    return jumps


@pytest.mark.parametrize("late_ms", [26, -26, 45])
def test_lost_pictures_and_a_new_route_at_once_are_no_step(late_ms: int) -> None:
    """At no constant rate some lost pictures leave the count by more than any limit, whichever way the route goes."""
    slow, fast = [33 + 50 * (n % 2) for n in range(300)], [70, 35, 34, 33, 35, 34, 35] * 2
    for burst in ([83] * 7, [33] * 7):
        jumps = jumps_of_pictures([*slow, *burst, *fast, *slow], range(300, 307), late_ms)
        assert all(jump.by_ns == 0 and 3 * jump.uncertainty_ns >= abs(late_ms) * MS - MS for jump in jumps)
    assert jumps_of_pictures([40] * 600, range(300, 304), late_ms) == []


def test_a_publisher_that_starts_again_on_another_way_is_not_accused() -> None:
    (jump,) = jumps_of_pictures([40] * 600, range(300, 310), 35, anew=True)
    assert jump.by_ns == 0 and 3 * jump.uncertainty_ns == pytest.approx((9 + 35) * MS, abs=MS)


def test_pictures_left_out_while_their_clock_stands_still_are_no_new_route() -> None:
    """Whole pictures can be missing from a count that nobody else keeps; a part of one cannot."""
    course, jumps = StreamCourse(sound=False), list[Jump]()
    stands, left_out = range(250, 400), 300
    for number in range(700):
        at = START + (number + (number >= left_out)) * 40 * MS
        raw = START + min(number, stands.start) * 40 * MS
        if number >= stands.stop:
            raw += (number - stands.stop) * 40 * MS
        jumps += course.feed(1, number, raw, 0, at + 40 * MS)
        if course.ripe_since_ns is not None:
            jumps += course.decide(at + 40 * MS)
    (thawed,) = [jump for jump in jumps if not jump.frozen]
    assert thawed.by_ns == pytest.approx(-40 * MS, abs=MS)
    assert 3 * thawed.uncertainty_ns == pytest.approx((9 + 40) * MS, abs=MS)


@pytest.mark.parametrize("route_at_s", [18.0, 22.0])
def test_where_the_count_tells_the_size_of_a_step_a_new_route_beside_it_takes_no_part_of_it(
    route_at_s: float,
) -> None:
    route = DeliveryFault(floor_ns=40 * MS, loss=0.02, route_at_s=route_at_s, route_ns=6 * MS)
    jumps, left_ms = jumps_of("camera", ClockFault(step_at_s=20.0, step_ns=366 * MS), route)
    assert len(jumps) == 1 and jumps[0].uncertainty_ns < MS and abs(left_ms) < 1.0


def test_a_camera_of_variable_rate_that_steps_is_known_from_arrival() -> None:
    plan = DevicePlan("camera", rate_hz=25.0, variable_rate=True)
    jumps, left_ms = jumps_of("camera", ClockFault(step_at_s=20.0, step_ns=400 * MS), plan=plan)
    assert len(jumps) == 1 and abs(left_ms) < 6.0


@pytest.mark.parametrize("kind", ["sound", "camera"])
def test_a_clock_that_stands_still_is_counted_on(kind: DeviceKind) -> None:
    jumps, left_ms = jumps_of(kind, ClockFault(frozen_at_s=15.0, frozen_for_s=10.0))
    assert jumps[0].frozen or jumps[1].frozen
    assert abs(left_ms) < (1.0 if kind == "sound" else 8.0)


@pytest.mark.parametrize("within_block_ms", [1, 3, 5, 8, 11, 14, 17])
def test_a_stop_in_the_middle_of_a_block_is_no_step(within_block_ms: int) -> None:
    plan = DevicePlan("sound", rate_hz=50.0)
    first = int(capture_times_ns(plan, START, START + S, 5)[0]) - START
    stops_s = 15.0 + (first + within_block_ms * MS) / 1e9
    jumps, left_ms = jumps_of("sound", ClockFault(frozen_at_s=stops_s, frozen_for_s=10.0), plan=plan)
    assert all(jump.frozen for jump in jumps) and abs(left_ms) < 1.0


@pytest.mark.parametrize("seed", range(5, 9))
@pytest.mark.parametrize("drops_at_s", [None, 8.0])
def test_a_stop_is_counted_at_the_rate_that_pictures_had_before_it(
    seed: int, drops_at_s: float | None
) -> None:
    """Not at one of ten seconds ago, nor by the last interval, in which the clock stopped."""
    plan = DevicePlan("camera", rate_hz=30.0, drops_at_s=drops_at_s)
    stops = ClockFault(frozen_at_s=16.01, frozen_for_s=15.0, noise_ns=200_000)
    jumps, left_ms = jumps_of("camera", stops, plan=plan, seed=seed)
    assert jumps[-1].uncertainty_ns < 6 * MS and abs(left_ms) < 2.0


def test_a_clock_set_back_by_less_than_a_block_is_told() -> None:
    jumps, left_ms = jumps_of("sound", ClockFault(step_at_s=20.0, step_ns=-17 * MS))
    assert [round(j.by_ns / MS) for j in jumps] == [-17] and not jumps[0].frozen and abs(left_ms) < 1.0


@pytest.mark.parametrize("seed", range(5, 9))
def test_a_new_route_before_a_stop_does_not_count_as_its_length(seed: int) -> None:
    route = DeliveryFault(floor_ns=40 * MS, loss=0.02, route_at_s=12.0, route_ns=30 * MS)
    stops = ClockFault(frozen_at_s=20.0, frozen_for_s=9.0)
    assert abs(jumps_of("camera", stops, route, seed=seed)[1]) < 4.0


@pytest.mark.parametrize("seed", range(5, 9))
def test_pictures_at_no_constant_rate_are_placed_by_arrival_while_their_clock_stands(seed: int) -> None:
    plan = DevicePlan("camera", rate_hz=25.0, variable_rate=True)
    assert (
        abs(jumps_of("camera", ClockFault(frozen_at_s=18.0, frozen_for_s=30.0), plan=plan, seed=seed)[1])
        < 120.0
    )


def test_a_recording_sent_ten_times_too_fast_has_no_steps() -> None:
    course, jumps = StreamCourse(sound=True), list[Jump]()
    for number in range(6_000):
        pause = 10 * S if number >= 3_000 else 0
        raw = START + number * 20 * MS + pause
        jumps += course.feed(1, number, raw, 20 * MS, START + (raw - START) // 10)
        if course.ripe_since_ns is not None:
            jumps += course.decide(START + (raw - START) // 10)
    assert jumps == []


def test_a_publisher_that_starts_again_goes_on() -> None:
    course, jumps = StreamCourse(sound=True), list[Jump]()
    for epoch in (1, 2):
        for number in range(500):
            raw = START + epoch * 15 * S + number * 20 * MS
            jumps += course.feed(epoch, number, raw + (300 * MS if epoch == 2 else 0), 20 * MS, raw + 25 * MS)
            if course.ripe_since_ns is not None:
                jumps += course.decide(raw + 25 * MS)
    assert [round(j.by_ns / MS) for j in jumps] == [300]  # its clock was set meanwhile


# Sound


def window(samples: np.ndarray, rate_hz: int = 16_000) -> Window:
    size = transform_size(len(samples), rate_hz)
    own = samples.astype(np.float32)
    return Window(0, own, np.fft.rfft(own, size).astype(np.complex64), size)


def delayed(samples: np.ndarray, by: float) -> np.ndarray:
    turn = np.exp(-2j * np.pi * np.fft.rfftfreq(len(samples)) * by)
    return np.asarray(np.fft.irfft(np.fft.rfft(samples) * turn, len(samples)))


@pytest.mark.parametrize("by", [-700.25, -3.5, 0.0, 0.37, 55.81])
def test_a_delay_is_found_to_a_part_of_a_sample(by: float) -> None:
    random = np.random.default_rng(2)
    voice = random.normal(size=16_000)
    noisy = [s + 0.3 * random.normal(size=16_000) for s in (delayed(voice, by), voice)]
    peak = phat_peak(window(noisy[0]), window(noisy[1]), 16_000)
    assert peak is not None and peak.lag_s * 16_000 == pytest.approx(by, abs=0.1)


def test_noise_gives_no_estimate() -> None:
    random = np.random.default_rng(3)
    found = [
        phat_peak(window(random.normal(size=16_000)), window(random.normal(size=16_000)), 16_000)
        for _ in range(30)
    ]
    assert found == [None] * 30
    assert phat_peak(window(np.zeros(16_000)), window(np.zeros(16_000)), 16_000) is None


# Pulses


def test_chirps_are_found_in_noise_to_a_part_of_a_sample() -> None:
    random = np.random.default_rng(4)
    sound = 0.05 * random.normal(size=16_000)
    sound[4_000 : 4_000 + len(chirp(16_000))] += 0.3 * chirp(16_000)
    noise = 0.05 * random.normal(size=16_000)
    heard = windows_of([Stretch(0, s.astype(np.float32)) for s in (noise, sound, noise)], 16_000)
    for one, samples in zip(heard, (noise, sound, noise), strict=True):
        assert np.allclose(one.spectrum, np.fft.rfft(samples, one.size), atol=1e-3)
    assert chirp_times(heard, 16_000) == [[], [pytest.approx(4_000, abs=0.5)], []]


def watched(fps: float, exposure_s: float, off_by_ns: int, *, wrong: Sequence[int] = ()) -> FlashWatch:
    """A camera that sees the pulses from second 2 on; ``wrong``: pulses that it sees late."""
    watch, random = FlashWatch(), np.random.default_rng(5)
    for number in range(round(14 * fps)):
        middle = number / fps + 0.0071
        lit = 0.0
        for place, pulse in enumerate(PULSES_S):
            begin = 2.0 + pulse + (0.1 if place in wrong else 0.0)
            both = min(middle + exposure_s / 2, begin + ON_S) - max(middle - exposure_s / 2, begin)
            lit += max(both, 0.0) / exposure_s
        watch.push(round(middle * 1e9) + off_by_ns, 0.3 + 0.4 * lit + 0.004 * float(random.normal()))
    return watch


@pytest.mark.parametrize("fps", [12.0, 25.0, 30.0, 59.94])
@pytest.mark.parametrize("exposure_s", [0.001, 0.016])
def test_pulses_place_a_camera_far_finer_than_its_pictures(fps: float, exposure_s: float) -> None:
    heard = PulsesHeard()
    for pulse in PULSES_S:
        heard.add(round((2.0 + pulse) * 1e9))
    for wrong in ((), (3,)):
        match = match_pulses(heard, watched(fps, exposure_s, 70 * MS, wrong=wrong).pulses, 0.0)
        assert match is not None
        assert abs(match.difference_ns - 70 * MS) <= match.half_width_ns < 0.15 * S / fps + MS
    half = watched(fps, exposure_s, 0, wrong=range(0, len(PULSES_S), 2)).pulses
    assert match_pulses(heard, half, 0.0) is None  # contradicts itself
    assert match_pulses(PulsesHeard(), watched(fps, exposure_s, 0).pulses, 0.0) is None


def test_a_chirp_heard_in_the_wrong_place_does_not_narrow_what_the_others_leave_open() -> None:
    """Pictures at no constant rate: one chirp came 30 ms late, and its interval just touches most of the others."""
    allowed_ms = [
        (-36, 11),
        (-20, 9),
        (-50, 0),
        (-84, -19),
        (-46, -7),
        (-18, -1),
        (-16, 7),
        (-22, 15),
        (-55, -4),
    ]
    heard, seen = PulsesHeard(), list[Pulse]()
    for number, (low, high) in enumerate(allowed_ms, 1):
        heard.add(number * S)
        lit, dark = number * S, number * S + round(ON_S * S)
        seen.append(((lit + low * MS, lit + high * MS), (dark + low * MS, dark + high * MS)))
    match = match_pulses(heard, seen, 0.0)
    assert match is not None and match.pulses == 8
    assert abs(match.difference_ns - -7.7 * MS) <= match.half_width_ns < 6 * MS


# Records


@pytest.mark.parametrize("skew_ppb", [0.0, 80_000.0])
def test_a_record_says_what_the_curve_says(skew_ppb: float) -> None:
    told = ClockRecord(
        meeting_id="m", device="d", number=0, from_raw_ns=-(2**63), ref_ns=START, offset_ns=3_200 * MS,
        skew_ppb=skew_ppb, uncertainty_ns=MS, method="stored",
    )  # fmt: skip
    zero, piece = 12_345, Piece(START, START + 100 * S, 5.0, 9.0, 1.0, 700, None)
    record = record_of(piece, told, zero, 1, first=True)
    for after_s in (0, 40, 100):
        x = START + after_s * S
        raw = to_raw_ns(told, x + zero + 700)
        assert abs(to_timeline_ns(told, raw) - (x + zero + 700)) <= 1
        assert abs(to_timeline_ns(record, raw) - (x - (5 * MS + after_s * 40_000))) <= 60
    assert record.uncertainty_ns == MS


# Scales


def test_leap_seconds_are_those_of_the_system() -> None:
    listed = Path("/usr/share/zoneinfo/leap-seconds.list")
    if not listed.exists():
        pytest.skip("the system keeps no list of leap seconds")
    epoch = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)
    lines = [line.split() for line in listed.read_text().splitlines() if line and line[0] != "#"]
    theirs = [
        (f"{epoch + datetime.timedelta(seconds=int(at)):%Y-%m-%d}", int(count)) for at, count, *_ in lines
    ]
    assert list(LEAP_SECONDS) == theirs


def test_tai_and_utc_go_there_and_back() -> None:
    new_year = int(datetime.datetime(2017, 1, 1, tzinfo=datetime.UTC).timestamp()) * S
    assert [tai_utc_s(new_year - 1), tai_utc_s(new_year)] == [36, 37]
    for utc in (new_year - 5 * S, new_year, new_year + 5 * S):
        assert utc_from_tai_ns(tai_from_utc_ns(utc)) == utc


def test_a_wrapped_counter_is_told_from_a_step() -> None:
    assert wrapped_by_ns(-math.floor(2**32 / 90_000 * 1e9)) == -(2**32 * S // 90_000)
    assert wrapped_by_ns(-3600 * S) is wrapped_by_ns(47_721 * S) is None
