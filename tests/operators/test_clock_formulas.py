"""Single formulas of clock estimation, each where a slip of its sign or factor shows."""

import math

import numpy as np
import pytest

from contracts.messages import AnyControl, Calibration, ClockState
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.pulse_train import ON_S, PULSES_S
from contracts.timeline import ClockRecord
from operators.clock import ClockSettings, MeetingClocks
from operators.clock.course import Jump, StreamCourse
from operators.clock.envelope import LowerHull
from operators.clock.equations import Layout, Measured, equations
from operators.clock.estimate import MeetingEstimator
from operators.clock.following import Following
from operators.clock.judge import Judge
from operators.clock.records import differs, pieces
from operators.clock.solve import Rows, Solution, solve
from operators.clock.sounds import Levels, SoundRing
from operators.clock.tracked import KNOT_NS, Claim, EstimateSettings, Freeze, Pair, Tracked
from operators.ingest import Arrival

S = 1_000_000_000
MS = 1_000_000
BASE = 1_000 * S
ROOM = EstimateSettings()


def tracked(
    name: str, claim: Claim | None = None, *, seconds: int = 60, way_ms: float = 9.0, late_ms: float = 0.0,
    begins_s: int = 0, believed: bool = True,
) -> Tracked:  # fmt: skip
    """A microphone whose stamps are right but for ``late_ms`` and whose way to the broker is known."""
    course = StreamCourse(sound=True)
    for second in range(begins_s, begins_s + seconds):
        for part in range(4):
            x = BASE + second * S + part * S // 4
            arrival = x - round(late_ms * MS) + round(way_ms * MS)
            course.envelope.push(arrival, x, arrival - x)
            course.last_x = x
    first = BASE + begins_s * S
    return Tracked(name, "sound", claim or Claim(1.0), course, Modality.AUDIO, first, believed)


def solved(measured: Measured) -> tuple[Rows, Solution, dict[str, tuple[float, float]]]:
    """Rows, solution, and by device the deviation in its middle with its standard uncertainty; ms."""
    layout, rows = equations(measured, ROOM)
    solution = solve(layout.count, rows)
    found = {
        t.name: layout.value(layout.deviation(t.name, (t.first_x + t.course.last_x) / 2), solution)
        for t in measured.devices
    }
    return rows, solution, found


def measured(*devices: Tracked, pairs: dict[tuple[str, str, int], list[Pair]] | None = None) -> Measured:
    return Measured(devices, pairs or {}, BASE, BASE + 10_000 * S, {})


def sigmas_of(rows: Rows, columns: set[int]) -> list[float]:
    """Standard uncertainties of the rows with exactly these unknowns."""
    terms: dict[int, set[int]] = {}
    for row, column in zip(rows.row, rows.column, strict=True):
        terms.setdefault(row, set()).add(column)
    return [rows.sigma[row] for row, own in terms.items() if own == columns]


# Course


def test_after_a_step_delivery_lies_where_it_lay() -> None:
    """Packets that came while it was not decided are put back as the clock was before."""
    course, jumps = StreamCourse(sound=True), list[Jump]()
    for number in range(400):
        true = BASE + number * 20 * MS
        raw = true + (400 * MS if number >= 200 else 0)
        jumps += course.feed(1, number, raw, 20 * MS, true + 45 * MS)
        if course.ripe_since_ns is not None:
            jumps += course.decide(true + 45 * MS)
    assert [jump.by_ns for jump in jumps] == [400 * MS]
    # x counts from the first packet's arrival: each came 20 ms after its stamp's block was over.
    assert course.envelope.level(0.0, course.last_x) == pytest.approx(0.0, abs=MS)
    assert all(abs(y) < MS for _, hull in course.envelope.bins for y in hull.y)


# Equations


def test_the_brokers_clock_may_wander_with_the_root_of_time() -> None:
    early, late = tracked("a", seconds=10), tracked("b", seconds=10, begins_s=90)
    layout, rows = equations(measured(early, late), ROOM)
    columns = {layout.broker[100], layout.broker[109]}
    assert sigmas_of(rows, columns) == [pytest.approx(0.4 * 3)]


def test_a_claim_that_ages_says_less_with_time() -> None:
    aging = tracked("a", Claim(2.0, per_s_ms=0.5), seconds=60)
    layout, rows = equations(measured(aging), ROOM)
    _, count, column = layout.knots["a"]
    found = [min(sigmas_of(rows, {column + k})) for k in range(count)]
    assert found == pytest.approx([(2.0 + 0.5 * 20 * k) / 2.5 * math.sqrt(count) for k in range(count)])
    _, _, bounds = Judge(ROOM, BASE).errors(
        aging, layout, Solution(np.zeros(layout.count), np.eye(layout.count))
    )
    assert bounds[[0, -1]] == pytest.approx([2.0, 2.0 + 0.5 * 59.75])


def both_ways(way_ms: float, late_ms: float, *, one_sided: bool) -> tuple[float, float]:
    """Error found and its uncertainty of a microphone that claims nothing, by voices at both or at one of two."""
    right, wrong = tracked("a"), tracked("b", late_ms=late_ms, believed=False)
    pairs: dict[tuple[str, str, int], list[Pair]] = {}
    for second in range(5, 55, 5):
        at = BASE + second * S
        number = at // (10 * S)
        later = round((way_ms + late_ms) * MS)
        pairs.setdefault(("a", "b", number), []).append(Pair(at, at + later))
        if not one_sided:
            back = round((way_ms - late_ms) * MS)
            pairs.setdefault(("b", "a", number), []).append(Pair(at, at + back))
    return solved(measured(right, wrong, pairs=pairs))[2]["b"]


def test_talkers_on_both_sides_part_the_clock_from_the_way() -> None:
    value, sigma = both_ways(7.0, 5.0, one_sided=False)
    assert value == pytest.approx(5.0, abs=0.3)
    assert sigma < 0.5
    assert both_ways(7.0, 5.0, one_sided=True)[1] > 2.0


def test_many_microphones_that_heard_the_same_pulses_are_no_more_sure_of_the_light() -> None:
    """Where the edges of a camera's flashes lie is one measurement, whoever heard the tones."""

    def sigma(microphones: int) -> float:
        camera = tracked("wall", seconds=60, believed=False)
        for pulse in PULSES_S:
            on, off = BASE + round((20 + pulse) * S), BASE + round((20 + pulse + ON_S) * S)
            camera.flashes.pulses.append(((on - 3 * MS, on + 3 * MS), (off - 3 * MS, off + 3 * MS)))
        listening = [tracked(f"m{n}") for n in range(microphones)]
        for one in listening:
            for pulse in PULSES_S:
                one.chirps.add(BASE + round((20 + pulse) * S) + 6 * MS)
        rows, _, _ = solved(measured(camera, *listening))
        weight = sum(
            1 / s**2
            for s, between in zip(rows.sigma, rows.between, strict=True)
            if between and between[0] == "wall"
        )
        return 1 / math.sqrt(weight)

    assert sigma(4) == pytest.approx(sigma(1))


# What is kept


def test_what_is_forgotten_stands_as_the_value_and_slope_of_the_curve_there() -> None:
    estimator, old = MeetingEstimator(ROOM), tracked("a", seconds=280)
    seconds = np.arange(0.0, 281.0, 20.0)
    old.curve = (seconds, 3.0 + 0.05 * seconds, np.full(len(seconds), 0.2))
    estimator._forget_old([old], BASE)
    # Bins of ten seconds, the last eighteen are kept; the first knot after that stands for the rest.
    assert old.prior is not None and old.prior.knot == 5
    said = (old.prior.value_ms, old.prior.sigma_ms, old.prior.slope_ms, old.prior.slope_sigma_ms)
    assert said == pytest.approx((8.0, 0.45, 1.0, 0.3))
    assert old.first_x == BASE + 5 * KNOT_NS
    assert {number for number, _ in old.course.envelope.bins} == set(range(110, 128))


# Records


def record(number: int, from_raw_ns: int, offset_ns: int) -> ClockRecord:
    return ClockRecord(
        meeting_id="m", device="c", number=number, from_raw_ns=from_raw_ns, ref_ns=0, offset_ns=offset_ns,
        uncertainty_ns=MS, method="stamped" if number == 0 else "online",
    )  # fmt: skip


@pytest.mark.parametrize("by_ms", [700, -700])
def test_a_jump_goes_on_from_the_record_that_held_before_it(by_ms: int) -> None:
    """Not from one that holds for stamps which only come after it; and it is less sure by the jump's own doubt."""
    following = Following(ROOM, "m")
    following.told(record(0, -(2**63), 0))
    packet = Packet(
        "m", "c", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, 0, BASE, 20 * MS, b"", 16_000, 0, 0, 1
    )
    following.packet(packet, BASE + 30 * MS)
    followed = following._devices["c"]
    before, jumped = BASE + 30 * S, BASE + 30 * S + by_ms * MS
    # One record from just before the jump's first stamp by its old course on, one from just after it.
    followed.records += [record(1, before - 100 * MS, 11 * MS), record(2, before + 100 * MS, 22 * MS)]
    (found,) = following._jumped(followed, Jump(jumped, by_ms * MS, 5 * MS, before))
    assert found.offset_ns == 11 * MS + by_ms * MS
    assert (found.uncertainty_ns, found.from_raw_ns) == (MS + 15 * MS, jumped)
    assert found.method == ("online" if by_ms > 0 else "arrival")


def test_a_jump_after_a_stop_is_told_in_the_stamps_that_were_handed_on() -> None:
    estimator, one = MeetingEstimator(ROOM), tracked("a")
    estimator._jumped(one, Jump(BASE, -3 * S, MS, BASE, frozen=True))
    estimator._jumped(one, Jump(BASE + 5 * S, 400 * MS, MS, BASE + 8 * S))
    assert (one.rewritten_ns, one.jumps[-1][1].from_raw_ns) == (-3 * S, BASE + 8 * S)


def test_where_a_clock_stood_still_the_bound_is_what_counting_may_be_off_by() -> None:
    one = tracked("a")
    one.curve = (np.asarray([0.0, 20.0, 40.0, 60.0]), np.zeros(4), np.full(4, 0.1))
    one.freezes = [Freeze(BASE + 20 * S, BASE + 30 * S, 25.0)]
    found = {p.begin_x - BASE: p.bound_ms for p in pieces(one, BASE, ROOM)}
    assert found == pytest.approx({0: 0.6, 20 * S: 25.6, 30 * S: 0.6})


@pytest.mark.parametrize("odd_ns", range(0, 260, 37))
def test_from_a_jump_on_the_bound_is_that_of_the_jump(odd_ns: int) -> None:
    """At the dates of today a float of nanoseconds lies before a jump half of the time."""
    one, today = tracked("a"), 1_790_000_000 * S
    one.first_x, one.course.last_x = today, today + 50 * S
    one.course.envelope.bins.clear()
    for second in range(50):
        x = today + second * S
        one.course.envelope.push(x + 9 * MS, x, 9 * MS)
    at = today + 30 * S + odd_ns
    one.jumps = [(at, Jump(at, 0, 12 * MS, at))]
    layout, rows = equations(Measured([one], {}, today, today, {}), ROOM)
    one.curve = layout.curve(one, solve(layout.count, rows))
    bounds = {p.begin_x: p.bound_ms for p in pieces(one, today, ROOM)}
    assert bounds[today] < 3.0 < bounds[at]


def test_the_stretch_of_a_record_ends_before_the_first_stamp_of_the_next() -> None:
    """Else the wide bound of a stop would count as news of what lies before it, with every estimate."""
    new = [record(1, -(2**63), 0), record(2, BASE, 0).model_copy(update={"uncertainty_ns": 250 * MS})]
    new[0] = new[0].model_copy(update={"ref_ns": BASE - S})
    new[1] = new[1].model_copy(update={"ref_ns": BASE})
    assert differs(new, new, BASE + S) is None


def test_a_claim_in_doubt_lies_within_the_bound() -> None:
    one = tracked("a", believed=False)
    one.curve = (np.asarray([0.0, 60.0]), np.zeros(2), np.full(2, 0.1))
    layout = Layout(BASE, 4, {"a": (0, 4, 0)}, floors={"a": [(0, 4)]})
    solution = Solution(np.asarray([30.0, 30.0, 30.0, 30.0, 9.0]), np.eye(5) * 10.0**2)
    assert Judge(ROOM, BASE).named([one], layout, solution) == []
    assert [p.bound_ms for p in pieces(one, BASE, ROOM)] == pytest.approx([31.0])


def test_beyond_its_last_knot_a_curve_goes_straight_on() -> None:
    one = tracked("a")
    one.curve = (np.asarray([0.0, 20.0]), np.asarray([1.0, 3.0]), np.ones(2))
    assert [one.deviation_ms(BASE + at * S, BASE) for at in (10, 20, 40)] == pytest.approx([2.0, 3.0, 5.0])


# What is said


def first_record(*told: AnyControl) -> tuple[ClockRecord, MeetingClocks]:
    clocks = MeetingClocks(ClockSettings(), "m", {}, {})
    packet = Packet(
        "m", "c", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, 0, BASE, 20 * MS, b"", 16_000, 0, 0, 1
    )
    at_ns = BASE + 30 * MS - 37 * S
    messages = [*told, packet]
    out = [o for body in messages for o in clocks.feed(Arrival("m", body, at_ns, True, "x/0/0"))]
    (found,) = [o for o in out if isinstance(o, ClockRecord)]
    return found, clocks


def test_a_device_that_says_it_is_righter_than_any_is_not_believed_to_be() -> None:
    said = [
        ClockState(meeting_id="m", device="c", state="locked", estimated_error_ns=ns) for ns in (9, 5 * MS)
    ]
    assert [first_record(one)[0].uncertainty_ns for one in said] == [MS, 5 * MS]


@pytest.mark.parametrize(("skew_ppb", "per_s_ms"), [(0.0, 0.0), (20_000.0, 0.005)])
def test_a_stored_clock_that_runs_free_grows_unsure_by_five_ppm(skew_ppb: float, per_s_ms: float) -> None:
    _, clocks = first_record(
        Calibration(meeting_id="m", device="c", offset_ns=0, skew_ppb=skew_ppb, ref_ns=BASE)
    )
    assert clocks._following._devices["c"].claim.per_s_ms == pytest.approx(per_s_ms)


# Judging


def test_a_step_is_no_drift() -> None:
    course = StreamCourse(sound=True, last_x=3 * KNOT_NS)
    one = Tracked("a", "sound", Claim(1.0), course, Modality.AUDIO)
    one.jumps = [(KNOT_NS, Jump(KNOT_NS, 50 * MS, MS, KNOT_NS))]
    layout = Layout(0, 4, {"a": (0, 4, 0)})
    drift, _, span_s = Judge(ROOM, 0)._drift(
        one, layout, Solution(np.asarray([0.0, 50.0, 50.5, 51.0]), np.eye(4))
    )
    assert (drift, span_s) == (1.0, 40.0)


def test_by_arrival_alone_a_right_clock_is_right_and_a_late_one_late() -> None:
    judge = Judge(ROOM, BASE)
    assert judge.rough_error_ms(tracked("a")) == pytest.approx(0.0)
    assert judge.rough_error_ms(tracked("a", late_ms=250.0)) == pytest.approx(250.0)


def test_the_level_of_an_envelope_is_that_of_the_skew_asked_for() -> None:
    hull = LowerHull()
    for number in range(11):
        hull.push(number, 100 - 2 * number)
    assert (hull.lowest(2.0, 0), hull.lowest(2.0, 10)) == (100.0, 80.0)


# Sound


def test_a_stretch_of_sound_begins_where_its_noisy_stamps_say_on_the_whole() -> None:
    """Stamps 0.4 ms late at every block: the blocks are joined, and the whole is 0.4 ms late."""
    ring, block = SoundRing(), np.arange(320, dtype=np.int16)
    for number in range(100):
        ring.push(BASE + number * 20 * MS + 400_000, block, 16_000)
    stretch = ring.stretch(BASE + 500 * MS)
    assert stretch is not None
    first = round(float(stretch.samples[0]) * 32768)
    # Sample n of a block was taken n / 16 ms after its stamp.
    stamp = (
        BASE + 500 * MS + 400_000 - 20 * MS + round(first / 16 * MS)
        if first > 160
        else BASE + 500 * MS + 400_000
    )
    assert stretch.begin_x == pytest.approx(stamp, abs=5_000)


def test_a_louder_microphone_is_not_the_one_that_everybody_sits_before() -> None:
    levels, talkers = Levels(), []
    for second in range(40):
        own = "a" if second // 4 % 2 else "b"
        quiet = second % 4 == 0
        loud = {"a": -60.0, "b": -60.0} if quiet else {name: -20.0 if name == own else -32.0 for name in "ab"}
        found = levels.talker({"a": loud["a"] + 11.0, "b": loud["b"]})
        if second > 16 and not quiet:
            talkers.append((found, own))
    assert all(found == own for found, own in talkers)
