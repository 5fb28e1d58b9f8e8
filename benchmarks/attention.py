"""Fractal attention against what else could compute it: time forward and backward, peak memory, work saved.

    python -m benchmarks.attention [--seed 0] [--rounds 7] [--dense-rounds 2] [--quick]

Times are minima over rounds in which ours and its rivals take turns. Peak memory is that of one forward pass in
a process of its own, above what its inputs take. Needs torch.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from kernels.api import attend
from kernels.cases import gradients, inputs_for, plain_plan, product_plan, ragged_lengths, relative_error
from kernels.counts import counts
from kernels.plan import Plan
from kernels.reference import reference
from kernels.rivals import RIVALS, Attention, NotApplicable

from .report import print_report, progress

OURS: Final = "ours"
_MEETINGS: Final = 12
_NO_BACKWARD: Final = ("flex",)  # it has none on a CPU


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    seed: int
    rounds: int
    dense_rounds: int
    windows: int = 128
    heads: int = 8
    depth: int = 64
    flex: bool = True
    memory_of: tuple[str, ...] = (OURS, "dense_masked", "padded", "loop")


@dataclass(frozen=True)
class Case:
    """A batch, and the rivals that are timed on it."""

    name: str
    plan: Plan
    rivals: tuple[str, ...]


def cases(settings: Settings) -> list[Case]:
    """The product's window budget, the fixed cases, and a sweep over lengths."""
    count, seed = settings.windows, settings.seed
    every = tuple(name for name in RIVALS if settings.flex or name != "flex")
    near = tuple(name for name in every if name not in ("dense_masked", "flex"))
    ragged = ragged_lengths(seed, count)
    fixed = [
        Case("product", product_plan(count, _MEETINGS), every),
        Case("equal", plain_plan([128] * count), every),
        Case("ragged", plain_plan(ragged), every),
        Case("ragged_globals", plain_plan(ragged, _MEETINGS, 4), near),
    ]
    spans = ((1, 16), (8, 64), (64, 128), (100, 500))
    sweep = [
        Case(f"sweep_{low}_{high}", plain_plan(ragged_lengths(seed, count * 128 // (low + high), low, high), 12, 4), near)
        for low, high in spans
    ]  # fmt: skip
    return fixed + sweep


def measure(case: Case, settings: Settings) -> dict[str, Any]:
    """Milliseconds of everything on one batch, how wrong it is, and the work that the plan saves."""
    q, k, v, grad = inputs_for(case.plan, torch.float32, settings.heads, settings.depth, settings.seed)
    runs, notes = _prepared(case, settings)
    forward = _take_turns({name: _calls(run, q, k, v) for name, run in runs.items()}, settings)
    progress(f"{case.name}: forward {forward}")
    backward = _take_turns(
        {name: _derivatives(run, q, k, v, grad) for name, run in runs.items() if name not in _NO_BACKWARD},
        settings,
    )
    progress(f"{case.name}: forward and backward {backward}")
    truth = _sampled_truth(case.plan, q, k, v)
    work = counts(case.plan, settings.heads, settings.depth, 4)
    return {
        "tokens": case.plan.tokens,
        "forward_ms": forward,
        "forward_backward_ms": backward,
        "relative_error": {name: truth(run(q, k, v)) for name, run in runs.items()},
        "operations_saved": round(work.saved, 5),
        "operations": work.operations,
        "bytes_moved": work.bytes_moved,
        **({"not_measured": notes} if notes else {}),
    }


def _prepared(case: Case, settings: Settings) -> tuple[dict[str, Attention], dict[str, str]]:
    runs: dict[str, Attention] = {OURS: lambda q, k, v: attend(q, k, v, case.plan)}
    notes: dict[str, str] = {}
    for name in case.rivals:
        try:
            run = RIVALS[name](case.plan)
            if name == "flex":  # compiled at its first call
                run(*inputs_for(case.plan, torch.float32, settings.heads, settings.depth)[:3])
            runs[name] = run
        except NotApplicable as reason:
            notes[name] = f"not applicable: {reason}"
        except Exception as error:  # whatever keeps a rival from running here is what the report should say
            notes[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
    return runs, notes


def _calls(run: Attention, q: Any, k: Any, v: Any) -> Callable[[], object]:
    return lambda: run(q, k, v)


def _derivatives(run: Attention, q: Any, k: Any, v: Any, grad: Any) -> Callable[[], object]:
    return lambda: gradients(run, (q, k, v), grad)


def _take_turns(runs: Mapping[str, Callable[[], object]], settings: Settings) -> dict[str, float]:
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(settings.rounds):
        for name, run in runs.items():
            if name == "dense_masked" and turn >= settings.dense_rounds:
                continue
            started = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - started) * 1e3)
    return {name: round(ms, 3) for name, ms in best.items()}


def _sampled_truth(made: Plan, q: Any, k: Any, v: Any) -> Callable[[Any], float]:
    """Relative error over one meeting's tokens: the reference cannot afford the whole batch."""
    first, last = made.meeting_windows[:2].tolist()
    last = min(last, first + 8) if made.max_globals == 0 else last  # without globals windows stand alone
    starts = made.window_starts.tolist()
    shared = range(*made.global_starts[:2].tolist())
    rows = torch.tensor([*range(starts[first], starts[last]), *shared])
    lengths = [starts[w + 1] - starts[w] for w in range(first, last)]
    alone = _alone(made, lengths, len(shared))
    wanted = reference(q[rows], k[rows], v[rows], alone)[0]
    return lambda out: relative_error(out[rows], wanted)


def _alone(made: Plan, lengths: Sequence[int], globals_: int) -> Plan:
    from kernels.plan import plan

    kinds = made.modality[: sum(lengths)]
    return plan(lengths, [0] * len(lengths), [globals_], kinds, made.allow.tolist())


def peak_memory(name: str, settings: Settings) -> float:
    """Megabytes that one forward pass over the product's batch adds to this process, masks included."""
    made = product_plan(settings.windows, _MEETINGS)
    q, k, v, _ = inputs_for(made, torch.float32, settings.heads, settings.depth, settings.seed)
    tiny = product_plan(2, 1)
    attend(*inputs_for(tiny)[:3], tiny)  # libraries are loaded at the first call
    before = _megabytes("VmRSS")
    run: Attention = RIVALS[name](made) if name != OURS else lambda q, k, v: attend(q, k, v, made)
    # What a rival keeps for its calls counts, masks above all; what making it took for a moment does not.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    run(q, k, v)
    return round(_megabytes("VmHWM") - before, 1)


def _megabytes(field: str) -> float:
    """A line of this process's status; the peak that getrusage gives is inherited from the parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def _memory(settings: Settings) -> dict[str, float]:
    """Peak memory of everything, each in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        found = {}
        for name in settings.memory_of:
            found[name] = pool.apply(peak_memory, (name, settings))
            progress(f"memory: {name} {found[name]} MB")
        return found


def figures(settings: Settings) -> dict[str, Any]:
    """Everything that the report says."""
    measured = {case.name: measure(case, settings) for case in cases(settings)}
    memory = _memory(settings)

    def ratio(case: str, which: str, *rivals: str) -> float | None:
        times = measured[case][which]
        there = [times[name] for name in rivals if name in times]
        return round(min(there) / times[OURS], 3) if there else None

    best = tuple(name for name in RIVALS if name != "dense_masked")
    return {
        "ratio_to_dense_masked": ratio("product", "forward_ms", "dense_masked"),
        "ratio_to_windowed_sdpa": ratio("equal", "forward_ms", "windowed_sdpa"),
        "ragged_ratio_to_best_rival": ratio("ragged", "forward_ms", *best),
        "product_ratio_to_best_rival": ratio("product", "forward_ms", *best),
        "backward_ratio_to_dense_masked": ratio("product", "forward_backward_ms", "dense_masked"),
        "backward_ragged_ratio_to_best_rival": ratio("ragged", "forward_backward_ms", *best),
        "sweep_ratio_to_best_rival": {
            name: ratio(name, "forward_ms", *best) for name in measured if name.startswith("sweep")
        },
        "operations_saved": measured["product"]["operations_saved"],
        "peak_memory_mb": memory,
        "peak_memory_ratio": round(memory["dense_masked"] / max(memory[OURS], 0.1), 2),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cases": measured,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.attention", description="Fractal attention and its rivals."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7, help="times that each is timed, its minimum counts")
    parser.add_argument(
        "--dense-rounds", type=int, default=2, help="the same for dense attention, which takes long"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small batches and no FlexAttention: figures mean nothing"
    )
    given = parser.parse_args(arguments)
    settings = Settings(given.seed, given.rounds, given.dense_rounds)
    if given.quick:
        settings = Settings(given.seed, 1, 1, 12, 2, 16, False, (OURS, "dense_masked"))
    print_report("attention", given.seed, figures(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
