"""The operator in traced and exported graphs: torch.compile, ONNX Runtime, GPU kernels compiled or interpreted."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kernels import cpu, rivals  # noqa: E402
from kernels.api import attend, attend_with_lse  # noqa: E402
from kernels.cases import attend_gradients, inputs_for, product_plan, random_plan, relative_error  # noqa: E402
from kernels.counts import counts  # noqa: E402
from kernels.plan import Plan, plan  # noqa: E402

pytestmark = pytest.mark.train
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny cases on a busy machine: threads would spend their time waiting for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_one_compiled_graph_serves_batches_of_any_shape() -> None:
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(
        lambda q, k, v, p: attend(q, k, v, p) * 2, fullgraph=True, dynamic=True, backend=counter
    )
    # Counts of 2 and more that differ from each other: torch gives 0, 1 and equal ones graphs of their own.
    for windows, meetings, globals_ in ((6, 2, 3), (7, 3, 2), (12, 5, 4)):
        made = product_plan(windows, meetings, globals_)
        q, k, v, _ = inputs_for(made)
        torch.testing.assert_close(compiled(q, k, v, made), attend(q, k, v, made) * 2)
    assert counter.frame_count == 1


def test_gradients_run_through_a_compiled_graph() -> None:
    torch._dynamo.reset()
    made = random_plan(6)
    q, k, v, grad = inputs_for(made)
    compiled = torch.compile(
        lambda q, k, v: attend(q, k, v, made), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    found = torch.autograd.grad(compiled(*leaves), leaves, grad)
    for one, other in zip(found, attend_gradients((q, k, v), made, grad), strict=True):
        torch.testing.assert_close(one, other)


def _module(made: Plan) -> Any:
    """A module around the operator whose plan comes in as tensors."""

    def forward(self: Any, q: Any, k: Any, v: Any, *tensors: Any) -> Any:
        names = Plan.__dataclass_fields__
        there = Plan(*tensors, **{name: getattr(made, name) for name in list(names)[9:]})
        return torch.ops.minuted.fractal_attention(
            q, k, v, *there.tensors(), there.max_window, there.max_globals, there.tile, 0.3
        )

    return type("Block", (torch.nn.Module,), {"forward": forward})().eval()


def test_exported_to_standard_operators_it_is_the_same_in_onnx_runtime(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    import onnxruntime

    from kernels.onnx import OPSET, translation_table

    made = random_plan(6)
    q, k, v, _ = inputs_for(made)
    dim = torch.export.Dim.DYNAMIC
    exported = torch.onnx.export(
        _module(made), (q, k, v, *made.tensors()), dynamo=True, opset_version=OPSET, verbose=False,
        dynamic_shapes=({0: dim}, {0: dim}, {0: dim}, tuple({0: dim} for _ in range(9))),
        input_names=["q", "k", "v", "starts", "owners", "meetings", "globals", "modality", "allow", "a", "b", "c"],
        output_names=["out", "lse"], custom_translation_table=translation_table(),
    )  # fmt: skip
    file = tmp_path / "attention.onnx"
    exported.save(str(file))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    assert {node.domain for node in exported.model_proto.graph.node} <= {"", "pkg.onnxscript.torch_lib"}
    cases = [random_plan(seed, longest=10 + 3 * seed) for seed in range(12)]
    cases += [
        plan([1], [0], [0], [0], [1]),
        plan([], [], [2, 0], [], [1]),
        plan([2], [1], [0, 0, 0], [0, 0], [0]),
    ]
    for case in cases:
        q, k, v, _ = inputs_for(case)
        given = ("q", "k", "v", "starts", "owners", "meetings", "globals", "modality", "allow", "a", "b", "c")
        feed = {n: x.numpy() for n, x in zip(given, (q, k, v, *case.tensors()), strict=True) if n in names}
        found = session.run(None, feed)
        for one, other in zip(found, attend_with_lse(q, k, v, case, 0.3), strict=True):
            assert one.shape == tuple(other.shape)
            assert relative_error(torch.from_numpy(one), other) < 2e-6


def test_counts_are_what_a_profiler_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    for made in (product_plan(8, 3), random_plan(3), random_plan(8), random_plan(12)):
        q, k, v, _ = inputs_for(made, heads=2, depth=16)
        given: list[Any] = [q, k, v, *made.tensors(), made.max_window, made.max_globals, made.tile, 0.25]
        with FlopCounterMode(display=False) as counter:
            cpu.forward(*given)
        assert counts(made, 2, 16, 4).operations == counter.get_total_flops()
        with FlopCounterMode(display=False) as dense:
            rivals.dense_masked(made)(q, k, v)
        assert counts(made, 2, 16, 4).dense_operations == dense.get_total_flops()
    assert counts(product_plan(), 8, 64, 4).saved > 0.923


@pytest.mark.parametrize("name", ["dense_masked", "padded", "loop"])
def test_rivals_compute_the_same(name: str) -> None:
    for made in (product_plan(5, 2), random_plan(12)):
        q, k, v, _ = inputs_for(made)
        assert relative_error(rivals.RIVALS[name](made)(q, k, v), attend(q, k, v, made)) < 1e-6


def _run(module: str, *arguments: str, **variables: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_gpu_kernels_agree_with_the_reference_in_the_interpreter() -> None:
    pytest.importorskip("triton")
    cases = _run("kernels.triton.correctness", TRITON_INTERPRET="1")
    assert len(cases) == 12
    assert all(case["ok"] for case in cases)


@pytest.mark.slow
def test_gpu_kernels_compile_for_gpus_that_are_not_here() -> None:
    pytest.importorskip("triton")
    found = _run("kernels.triton.ahead", "--quick", TRITON_INTERPRET="0")
    spilled = {(one["kernel"], one["gpu"]): one["spilled_bytes"] for one in found}
    # On sm_80 the backward of a whole window would not fit into registers and is never launched.
    assert set(spilled) == {
        ("content_forward", "sm_80"),
        ("content_forward", "sm_90"),
        ("window_backward", "sm_90"),
    }
    assert max(spilled.values()) <= 256


def test_gpu_check_says_that_there_is_no_gpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = subprocess.run(
        [sys.executable, str(ROOT / "kernels" / "gpu_check.py")], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "no GPU" in done.stderr
