"""Whom to believe: solutions made by hand, and what is said of the devices in them."""

import numpy as np
import pytest

from contracts.packet import Modality
from operators.clock.course import StreamCourse
from operators.clock.equations import Layout
from operators.clock.judge import Judge
from operators.clock.solve import Solution
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
