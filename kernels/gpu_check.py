"""Correctness and speed of fractal attention on this machine's GPU: ``python kernels/gpu_check.py``.

Needs a Python with torch 2.11 or newer (which brings Triton along) and this checkout, nothing else. Prints one
JSON line, progress to standard error. Exit codes: 0 all right, 1 a check failed, 2 no GPU here.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

# Run as a script, this folder is the first place where imports look, and its `triton` would hide the real one.
_HERE: Final = Path(__file__).resolve().parent
sys.path[:] = [str(_HERE.parent), *(p for p in sys.path if Path(p or ".").resolve() != _HERE)]

_BUDGET_S: Final = 440.0
_REPEATS: Final = 50
_HEADS, _DEPTH = 8, 64


def main() -> int:
    """Checks, measures, prints."""
    started = time.monotonic()
    try:
        import torch
    except ImportError:
        print("gpu-check: no GPU can be checked, this Python has no torch", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print(f"gpu-check: no GPU that torch {torch.__version__} can use on this machine", file=sys.stderr)
        return 2
    wrong = list(_correctness())
    report = {
        "benchmark": "gpu_check",
        "gpu": torch.cuda.get_device_name(),
        "capability": list(torch.cuda.get_device_capability()),
        "torch": torch.__version__,
        "correct": all(case["ok"] for case in wrong),
        "correctness": wrong,
        "speed": [_speed(name, case, started) for name, case in _speed_cases()],
    }
    report["seconds"] = round(time.monotonic() - started, 1)
    print(json.dumps(report), flush=True)
    return 0 if report["correct"] else 1


def _correctness() -> Iterator[dict[str, Any]]:
    import torch

    from kernels.triton.correctness import compare, large_cases, small_cases

    torch.use_deterministic_algorithms(True, warn_only=True)  # fresh memory is NaN
    try:
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for made, depth in (*small_cases(), *large_cases()):
                case = compare(made, "cuda", dtype, heads=3, depth=depth)
                _say(f"{'ok' if case['ok'] else 'WRONG'}  {case['case']}")
                yield case
        yield _compiled()
    finally:
        torch.use_deterministic_algorithms(False)


def _compiled() -> dict[str, Any]:
    """The registered operator under torch.compile and autograd, on the device."""
    import torch

    from kernels.api import attend
    from kernels.cases import attend_gradients, gradients, inputs_for, product_plan, relative_error

    made = product_plan(24, 3).to("cuda")
    q, k, v, grad = (x.cuda() for x in inputs_for(made, torch.float16, _HEADS, _DEPTH))
    # aot_eager traces as inductor does and needs no C compiler on the machine.
    run = torch.compile(
        lambda q, k, v: attend(q, k, v, made), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    found = gradients(run, (q, k, v), grad)
    wanted = attend_gradients((q, k, v), made, grad)
    errors = [relative_error(a, b) for a, b in zip(found, wanted, strict=True)]
    return {"case": "compiled, float16, product budget", "ok": max(errors) == 0.0, "gradients": max(errors)}


def _speed_cases() -> Iterator[tuple[str, Any]]:
    from kernels.cases import plain_plan, product_plan, ragged_lengths

    yield "equal, 128 windows of 128", plain_plan([128] * 128)
    yield "ragged, 20-200 tokens", plain_plan(ragged_lengths(0))
    yield "ragged, 20-200 tokens, 4 globals", plain_plan(ragged_lengths(0), 12, 4)
    yield "product, 128 windows, 12 meetings, 4 globals", product_plan()


def _speed(name: str, made: Any, started: float) -> dict[str, Any]:
    """Microseconds of ours and of each rival, bf16, forward and with backward."""
    import torch

    from kernels.api import attend
    from kernels.cases import inputs_for
    from kernels.counts import counts
    from kernels.rivals import RIVALS, NotApplicable

    there = made.to("cuda")
    q, k, v, grad = (x.cuda() for x in inputs_for(made, torch.bfloat16, _HEADS, _DEPTH))
    work = counts(made, _HEADS, _DEPTH, 2)
    found: dict[str, Any] = {
        "case": name, "tokens": made.tokens, "bytes_moved": work.bytes_moved, "operations": work.operations,
    }  # fmt: skip

    def both(run: Callable[..., Any]) -> dict[str, float]:
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        forward = _microseconds(lambda: run(q, k, v))
        full = _microseconds(lambda: torch.autograd.grad(run(*leaves), leaves, grad))
        return {"forward_us": forward, "forward_backward_us": full}

    found["ours"] = both(lambda q, k, v: attend(q, k, v, there))
    found["ours"]["gb_per_s"] = round(work.bytes_moved / found["ours"]["forward_us"] / 1e3, 1)
    for rival, build in RIVALS.items():
        if time.monotonic() - started > _BUDGET_S:
            found[rival] = "not measured: out of time"
            continue
        try:
            found[rival] = both(build(there))
        except NotApplicable as reason:
            found[rival] = f"not applicable: {reason}"
        except Exception as error:  # a rival that this machine cannot run must not end the check
            found[rival] = f"not measured: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
        torch.cuda.empty_cache()
    _say(f"{name}: {found['ours']}")
    return found


def _microseconds(run: Callable[[], Any]) -> float:
    """Median time on the device, cold second-level cache."""
    import torch

    sweep = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(5):
        run()
    times: list[float] = []
    for _ in range(_REPEATS):
        sweep.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(sorted(times)[len(times) // 2], 1)


def _say(text: str) -> None:
    print(f"gpu-check: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
