"""Whether the kernels agree with the reference: on a GPU, or anywhere in Triton's interpreter.

``TRITON_INTERPRET=1 python -m kernels.triton.correctness`` prints one JSON list, one entry for each case.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor

from ..cases import inputs_for, product_plan, random_plan, reference_gradients, relative_error
from ..plan import Plan, plan
from ..reference import reference
from .backward import backward
from .forward import forward

LIMITS: Final = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.5e-2}
"""Relative error that each type may have; gradients twice that."""


def compare(
    made: Plan, device: str, dtype: Any, heads: int = 2, depth: int = 16, seed: int = 0
) -> dict[str, Any]:
    """Relative errors of output, log-sum-exp and gradients, and whether a second run gives the same bits.

    Everything is NaN where it was not written, and NaN is an error of its own.
    """
    q, k, v, grad = (x.to(device, dtype) for x in inputs_for(made, torch.float32, heads, depth, seed))
    there = made.to(device)
    wanted, wanted_lse = reference(q, k, v, there)
    wide = reference_gradients((q, k, v), there, grad)
    rest = (*there.tensors(), there.max_window, there.max_globals, there.tile, depth**-0.5)
    runs: list[tuple[Tensor, ...]] = []
    for _ in range(2):
        out, lse = forward(q, k, v, *rest)
        runs.append((out, lse, *backward(grad, q, k, v, out, lse, *rest)))
    names = ("out", "lse", "query", "key", "value")
    errors = {
        name: relative_error(found, right)
        for name, found, right in zip(names, runs[0], (wanted, wanted_lse, *wide), strict=True)
    }
    limit = LIMITS[dtype]
    right = all(error <= limit * (2 if name in names[2:] else 1) for name, error in errors.items())
    same = all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    kind = f"{str(dtype).removeprefix('torch.')}, {heads} heads of {depth}, {made.tokens} tokens"
    return {"case": kind, "ok": right and same, "same_bits": same, **errors}


def small_cases() -> Iterator[tuple[Plan, int]]:
    """Plans and head depths that take every path: tiny, ragged, cut into tiles, without windows or globals."""
    yield plan([1], [0], [0], [0], [1]), 16
    yield plan([], [], [3, 0], [], []), 16
    yield plan([20, 7, 3], [0, 0, 2], [2, 16, 0], [0, 1] * 15, [2, 3]), 24
    yield plan([70, 100], [0, 1], [4, 0], [0, 1, 2, 2, 1] * 34, [5, 2, 7]), 32
    yield plan([150, 30], [0, 0], [3], [0, 1, 2] * 60, [6, 5, 3]), 16
    yield random_plan(3, longest=50, windows=6), 16


def large_cases() -> Iterator[tuple[Plan, int]]:
    """Plans for a GPU: the shipped budget, and many random ones."""
    yield product_plan(24, 3), 64  # as many tokens as a dense reference in float64 can afford
    for seed in range(12):
        yield random_plan(seed, longest=(30, 90, 128, 400)[seed % 4], windows=20), (64, 32, 128, 40)[seed % 4]


def main() -> int:
    """Runs the small cases in the interpreter."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        print("set TRITON_INTERPRET=1, or run kernels/gpu_check.py on a machine with a GPU", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # fresh memory is NaN
    # Not bfloat16: the interpreter's matrix product is wrong for it.
    found = [
        compare(made, "cpu", dtype, heads=1, depth=depth)
        for dtype in (torch.float32, torch.float16)
        for made, depth in small_cases()
    ]
    print(json.dumps(found))
    return 0 if all(case["ok"] for case in found) else 1


if __name__ == "__main__":
    sys.exit(main())
