"""Whom to believe: solutions made by hand, and what is said of the devices in them."""

import numpy as np
import pytest

from contracts.packet import Modality
from operators.clock.course import StreamCourse
from operators.clock.equations import Layout
from operators.clock.judge import Judge
from operators.clock.solve import Rows, Solution
from operators.clock.tracked import KNOT_NS, Claim, EstimateSettings, Tracked

S = 1_000_000_000
KNOTS = 4


def solved(
    deviation_ms: float, drift_ms: float, sigma_ms: float = 0.3, way_ms: float = 9.0
) -> tuple[Tracked, Layout, Solution]:
    """A device that claims to be right within 1 ms, and what a solution of one minute says of it."""
    course = StreamCourse(sound=True, last_x=(KNOTS - 1) * KNOT_NS)
    tracked = Tracked("mic", "sound", Claim(1.0), course, Modality.AUDIO, believed=False)
    layout = Layout(0, KNOTS + 1, {"mic": (0, KNOTS, 0)}, floors={"mic": [(0, KNOTS)]})
    values = deviation_ms + np.linspace(0.0, drift_ms, KNOTS)
    return tracked, layout, Solution(np.append(values, way_ms), np.eye(KNOTS + 1) * sigma_ms**2)


@pytest.mark.parametrize(("ppm", "accused"), [(90.0, True), (130.0, True), (150.0, False), (700.0, False)])
def test_a_skew_that_no_oscillator_has_accuses_nobody(ppm: float, accused: bool) -> None:
    tracked, layout, solution = solved(0.0, ppm * (KNOTS - 1) * KNOT_NS / S * 1e-3)
    verdict = Judge(EstimateSettings(), 0).verdict(tracked, layout, solution)
    assert verdict == ("wrong" if accused else "doubtful")


def test_a_small_contradiction_accuses_only_when_it_lasts() -> None:
    tracked, layout, solution = solved(8.0, 0.0)
    # The broker was set back meanwhile: what arrival says by itself counts for nothing.
    tracked.course.envelope.push(0, 0, -245 * 10**6)
    judge = Judge(EstimateSettings(), 0)
    assert judge.named([tracked], layout, solution) == []
    (found,) = judge.named([tracked], layout, solution)
    assert (found.what, tracked.named) == ("offset", True)


def test_a_contradiction_that_is_gone_the_next_time_is_forgotten() -> None:
    tracked, layout, solution = solved(8.0, 0.0)
    judge = Judge(EstimateSettings(), 0)
    for _ in range(3):
        tracked.believed = False
        assert judge.named([tracked], layout, solution) == []
        tracked.believed = True
        assert judge.named([tracked], layout, solution) == []


@pytest.mark.parametrize(
    ("way_ms", "suspected"), [(-3.0, False), (-8.0, True), (2.0, False), (25.0, False), (30.0, True)]
)
def test_a_way_to_the_broker_that_cannot_be_puts_its_clock_in_doubt(way_ms: float, suspected: bool) -> None:
    tracked, layout, solution = solved(0.0, 0.0, way_ms=way_ms)
    tracked.believed = True
    found = Judge(EstimateSettings(), 0).suspects([tracked], layout, Rows(), solution)
    assert found == ([tracked] if suspected else [])


@pytest.mark.parametrize(("late_ms", "found"), [(36_990, ["epoch"]), (36_500, []), (2_000, [])])
def test_a_few_packets_tell_utc_taken_for_tai_and_nothing_else(late_ms: int, found: list[str]) -> None:
    tracked, _, _ = solved(0.0, 0.0)
    for number in range(8):
        x = number * S // 20
        tracked.course.envelope.push(x, x, late_ms * 10**6)
    assert [f.what for f in Judge(EstimateSettings(), 0).rough(tracked)] == found
