"""How well clocks are found: random rooms at signal level under all faults, against the injected truth.

    python -m benchmarks.alignment --rooms N --seed S
    python -m benchmarks.alignment --media --seed S

Every room is played three times: with stored calibrations, with a calibration signal in the meeting
(``flash``), and with nothing (``blind``). Errors are of the final placing (later records re-time earlier
stamps), over every second of every device; pairs are differences of two devices' errors.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import alignment_media, report
from .alignment_play import PAIRS, Played, play_room, ranked
from .alignment_rooms import LENGTH_S, SETTINGS


def figures(played: Sequence[Played]) -> dict[str, Any]:
    """The report of all rooms in all settings."""
    out: dict[str, Any] = {}
    coverage: dict[str, float] = {}
    bounds: dict[str, float] = {}
    settled: dict[str, Mapping[str, float]] = {}
    for setting in SETTINGS:
        mine = [p for p in played if p.setting == setting]
        out[setting] = {pair: ranked([e for p in mine for e in p.pairs[pair]]) for pair in PAIRS}
        errors = np.concatenate([p.errors_ms for p in mine])
        within = np.concatenate([p.bounds_ms for p in mine])
        coverage[setting] = round(float(np.mean(np.abs(errors) <= within)), 5)
        bounds[setting] = round(float(np.median(within)), 3)
        out[setting]["error_median_ms"] = round(float(np.median(np.abs(errors))), 3)
        times = np.concatenate([p.settle_s for p in mine])
        settled[setting] = {
            "p50": round(float(np.median(times)), 1), "p95": round(float(np.percentile(times, 95)), 1),
            "max": round(float(times.max()), 1),
        }  # fmt: skip
    faulty, named = sum(len(p.faulty) for p in played), sum(len(p.faulty & p.named) for p in played)
    healthy, accused = sum(len(p.healthy) for p in played), sum(len(p.healthy & p.named) for p in played)
    packets, seconds = sum(p.packets for p in played), sum(p.seconds for p in played)
    return {
        "rooms": len({p.room for p in played}), **out,
        "bound_coverage": min(coverage.values()), "bound_coverage_by_setting": coverage,
        "bound_median_ms": max(bounds.values()), "bound_median_ms_by_setting": bounds,
        "faulty_named": {
            "share": round(named / faulty, 5) if faulty else 1.0, "faulty": faulty,
            "missed": sorted(f"{p.room}/{p.setting}/{d}" for p in played for d in p.faulty - p.named)[:20],
            "false_share": round(accused / healthy, 6) if healthy else 0.0, "healthy": healthy,
            "accused": sorted(f"{p.room}/{p.setting}/{d}" for p in played for d in p.healthy & p.named)[:20],
        },
        "settle_s": max(s["p95"] for s in settled.values()), "settle_s_by_setting": settled,
        "quarantined_share": round(float(np.mean([p.quarantined_share for p in played])), 5),
        "packets_per_s_core": round(packets / seconds), "packets": packets,
        "single_offset_per_file": {"sound_sound": ranked([e for p in played for e in p.classical_ms])},
    }  # fmt: skip


def measure(rooms: int, seed: int, workers: int | None = None, length_s: float = LENGTH_S) -> dict[str, Any]:
    """Play the rooms and report."""
    seeds = [seed * 100_003 + n for n in range(rooms)]
    count = workers or len(os.sched_getaffinity(0))
    played: list[Played] = []
    # One thread of linear algebra each: the cores are busy with rooms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ProcessPoolExecutor(count) as pool:
        for number, found in enumerate(pool.map(partial(play_room, length_s=length_s), seeds), 1):
            played += found
            report.progress(f"alignment: room {number} of {rooms}")
    return figures(played)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.alignment", description=__doc__)
    parser.add_argument("--rooms", type=int, default=20, help="how many rooms (200 in the long form)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="processes; default: one for each core")
    parser.add_argument("--media", action="store_true", help="rendered rooms through a broker and both flows")
    parser.add_argument(
        "--room", type=Path, action="append", help="a rendered room; again for more (`make rooms`)"
    )
    parser.add_argument(
        "--seconds", type=float, default=alignment_media.LENGTH_S, help="how much of each room"
    )
    parser.add_argument("--setting", choices=SETTINGS, action="append", help="only this; again for more")
    given = parser.parse_args(arguments)
    if given.media:
        found = alignment_media.measure(
            given.room or alignment_media.ROOMS, given.seed, given.seconds, given.setting or SETTINGS
        )
        report.print_report("alignment", given.seed, found)
        return 0
    if given.rooms < 1:
        parser.error("--rooms must be at least 1")
    report.print_report("alignment", given.seed, measure(given.rooms, given.seed, given.workers))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
