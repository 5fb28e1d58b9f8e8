"""Clocks found in whole rooms at signal level, and what the report makes of them."""

import numpy as np
import pytest

from benchmarks.alignment import figures
from benchmarks.alignment_play import PAIRS, Played, play_room
from benchmarks.alignment_rooms import SETTINGS, Setting


def played(setting: Setting, errors: list[float], bounds: list[float], **more: set[str]) -> Played:
    pairs = {pair: [0.5, -2.0] for pair in PAIRS}
    return Played(
        7, setting, np.asarray(errors), np.asarray(bounds), pairs, more.get("faulty", set()), more.get("healthy", set()),
        more.get("named", set()), np.asarray([3.0, 9.0]), 0.25, 1000, 0.5, [40.0],
    )  # fmt: skip


def test_the_report_counts_what_it_says() -> None:
    found = figures([
        played("calibrated", [0.1, -0.2], [1.0, 1.0], faulty={"a", "b"}, healthy={"c"}, named={"a"}),
        played("flash", [0.1, 3.0], [1.0, 1.0], healthy={"c", "d"}, named={"d"}),
        played("blind", [0.1, 0.2], [4.0, 2.0]),
    ])  # fmt: skip
    assert found["calibrated"]["sound_sound"] == {"p50_ms": 1.25, "p99_ms": 1.985, "max_ms": 2.0, "n": 2}
    assert found["bound_coverage"] == found["bound_coverage_by_setting"]["flash"] == 0.5
    assert found["bound_median_ms_by_setting"]["blind"] == found["bound_median_ms"] == 3.0
    named = found["faulty_named"]
    assert (named["share"], named["missed"]) == (0.5, ["7/calibrated/b"])
    assert (named["false_share"], named["accused"]) == (pytest.approx(1 / 3, abs=1e-6), ["7/flash/d"])
    assert found["packets_per_s_core"] == 2000
    assert found["single_offset_per_file"]["sound_sound"]["p50_ms"] == 40.0


@pytest.mark.parametrize("seed", [7])
def test_a_room_under_faults_is_put_on_one_timeline(seed: int) -> None:
    rooms = play_room(seed, length_s=60.0)
    assert [r.setting for r in rooms] == list(SETTINGS)
    for room in rooms:
        assert room.faulty <= room.named and not room.healthy & room.named
        assert np.mean(np.abs(room.errors_ms) <= room.bounds_ms) > 0.98
        assert np.percentile(np.abs(room.pairs["sound_sound"]), 99) < 1.0
        most = 45.0 if room.setting == "blind" else 8.0
        assert max(map(abs, room.pairs["sound_video"] + room.pairs["sound_slide"])) < most
    assert np.median(np.abs(rooms[-1].classical_ms)) > 10 * np.median(np.abs(rooms[-1].pairs["sound_sound"]))
