"""The operator on a CPU against the float64 reference: random ragged plans, gradients, torch's own checks."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kernels.api import attend, attend_with_lse  # noqa: E402
from kernels.cases import (  # noqa: E402
    attend_gradients,
    inputs_for,
    random_plan,
    reference_gradients,
    relative_error,
)
from kernels.plan import Plan, allow_table, plan  # noqa: E402
from kernels.reference import reference  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny cases on a busy machine: threads would spend their time waiting for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("seed", range(40))
def test_output_and_gradients_are_the_references(seed: int) -> None:
    made = random_plan(seed, longest=(3, 20, 70, 150)[seed % 4])
    q, k, v, grad = inputs_for(made, torch.float64, seed=seed)
    out, lse = attend_with_lse(q, k, v, made)
    wanted, wanted_lse = reference(q, k, v, made)
    torch.testing.assert_close(out, wanted, rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(lse, wanted_lse, rtol=1e-10, atol=1e-11)
    found = attend_gradients((q, k, v), made, grad)
    for one, other in zip(found, reference_gradients((q, k, v), made, grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("name", "limit"), [("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 1.5e-2)])
def test_smaller_types_stay_near_the_reference(name: str, limit: float) -> None:
    made = random_plan(7, longest=90)
    q, k, v, grad = inputs_for(made, getattr(torch, name))
    out = attend(q, k, v, made)
    assert out.dtype == q.dtype
    assert relative_error(out, reference(q, k, v, made)[0]) < limit
    found = attend_gradients((q, k, v), made, grad)
    wanted = reference_gradients((q, k, v), made, grad)
    assert max(map(relative_error, found, wanted)) < 2 * limit


def test_every_allow_table_of_two_modalities_and_a_sample_of_four() -> None:
    tables = [[a, b] for a in range(4) for b in range(4)]
    draw = random.Random(1)
    tables += [[draw.getrandbits(4) for _ in range(4)] for _ in range(40)]
    for table in tables:
        kinds = [draw.randrange(len(table)) for _ in range(17)]
        made = plan([9, 8], [0, 1], [1, 0], kinds, table)
        q, k, v, _ = inputs_for(made, torch.float64)
        torch.testing.assert_close(attend(q, k, v, made), reference(q, k, v, made)[0])


def test_nothing_is_seen_but_what_the_semantics_allow() -> None:
    looks = allow_table(2, [(0, 1)])
    made = plan([3, 2, 2], [0, 0, 1], [1, 2], [0, 1, 1, 0, 0, 0, 1], looks)
    q, k, v, _ = inputs_for(made, torch.float64)
    seen = torch.zeros(made.tokens, made.tokens, dtype=torch.bool)
    for row in range(made.tokens):
        leaf = v.clone().requires_grad_()
        (found,) = torch.autograd.grad(attend(q, k, leaf, made)[row].sum(), leaf)
        seen[row] = found.abs().sum((1, 2)) > 0
    wanted = {
        0: {0, 1, 2, 7}, 1: {1, 7}, 2: {2, 7}, 3: {3, 7}, 4: {4, 7}, 5: {5, 6, 8, 9}, 6: {6, 8, 9},
        7: {0, 1, 2, 3, 4, 7}, 8: {5, 6, 8, 9}, 9: {5, 6, 8, 9},
    }  # fmt: skip
    assert {row: set(seen[row].nonzero().flatten().tolist()) for row in wanted} == wanted


def test_ten_thousand_windows() -> None:
    draw = random.Random(3)
    lengths = [draw.randint(1, 12) for _ in range(10_000)]
    owners = sorted(draw.randrange(300) for _ in lengths)
    made = plan(lengths, owners, [2] * 300, [draw.randrange(3) for _ in range(sum(lengths))], [7, 3, 5])
    q, k, v, grad = inputs_for(made, torch.float32, heads=1, depth=4)
    out = attend(q, k, v, made)
    found = attend_gradients((q, k, v), made, grad)
    assert all(bool(torch.isfinite(x).all()) for x in (out, *found))
    for meeting in (0, 77, 299):  # each meeting is a batch of its own: the reference can afford a few
        rows, alone = _alone(made, meeting)
        parts = (q[rows], k[rows], v[rows])
        assert relative_error(out[rows], reference(parts[0], parts[1], parts[2], alone)[0]) < 1e-6
        wanted = reference_gradients(parts, alone, grad[rows])
        assert all(relative_error(x[rows], y) < 1e-6 for x, y in zip(found, wanted, strict=True))


def _alone(made: Plan, meeting: int) -> tuple[Any, Plan]:
    """Tokens of one meeting in a batch, and the plan of a batch that holds it alone."""
    first, last = made.meeting_windows[meeting : meeting + 2].tolist()
    starts = made.window_starts.tolist()
    globals_ = range(*made.global_starts[meeting : meeting + 2].tolist())
    content = range(starts[first], starts[last])
    lengths = [starts[w + 1] - starts[w] for w in range(first, last)]
    kinds = made.modality[content.start : content.stop]
    return torch.tensor([*content, *globals_]), plan(
        lengths, [0] * len(lengths), [len(globals_)], kinds, made.allow.tolist()
    )


def test_same_input_gives_the_same_bits_and_batch_mates_change_nothing() -> None:
    made = random_plan(11, longest=60, windows=30)
    q, k, v, grad = inputs_for(made, torch.float32, depth=32)
    first, second = (attend(q, k, v, made) for _ in range(2))
    assert torch.equal(first, second)
    runs = [attend_gradients((q, k, v), made, grad) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    for meeting in range(len(made.meeting_windows) - 1):
        rows, alone = _alone(made, meeting)
        torch.testing.assert_close(
            attend(q[rows], k[rows], v[rows], alone), first[rows], rtol=1e-5, atol=1e-6
        )


def test_no_memory_is_read_that_was_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    made = random_plan(2, longest=60)
    q, k, v, grad = inputs_for(made, torch.float32)
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN from here on
    try:
        assert bool(torch.empty(4).isnan().all())
        out, lse = attend_with_lse(q, k, v, made)
        found = attend_gradients((q, k, v), made, grad)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(bool(torch.isfinite(x).all()) for x in (out, lse, *found))


def test_strided_input_is_taken_as_it_is() -> None:
    made = random_plan(5)
    q, k, v, grad = inputs_for(made, torch.float64)
    packed = torch.stack((q, k, v), 1).requires_grad_()
    one, two, three = packed.unbind(1)
    out = attend(one, two, three, made)
    torch.testing.assert_close(out, attend(q, k, v, made))
    (found,) = torch.autograd.grad(out, packed, grad)
    wanted = attend_gradients((q, k, v), made, grad)
    torch.testing.assert_close(found, torch.stack(wanted, 1))


@pytest.mark.parametrize("order", [(2, 0, 1), (2, 1, 0), (1, 2, 0), (0, 2, 1), (1, 0, 2)])
@pytest.mark.parametrize("windows", [[4] * 6, [5, 3, 4, 70]])
def test_any_layout_in_memory_gives_the_same(order: tuple[int, int, int], windows: list[int]) -> None:
    meetings = [int(number >= len(windows) // 2) for number in range(len(windows))]
    made = plan(windows, meetings, [2, 1], [number % 2 for number in range(sum(windows))], [3, 1])
    q, k, v, grad = inputs_for(made, torch.float64)
    back = [order.index(place) for place in range(3)]
    # As they are, but laid out in memory in another order of dimensions.
    one, two, three, last = (x.permute(order).contiguous().permute(back) for x in (q, k, v, grad))
    torch.testing.assert_close(attend(one, two, three, made), attend(q, k, v, made))
    found = attend_gradients((one, two, three), made, last)
    for mine, wanted in zip(found, attend_gradients((q, k, v), made, grad), strict=True):
        torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("seed", (1, 4, 9))
def test_gradcheck(seed: int) -> None:
    made = random_plan(seed, longest=4, windows=4)
    q, k, v, _ = inputs_for(made, torch.float64, depth=3)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, made), leaves)


@pytest.mark.parametrize("seed", (1, 4))
def test_opcheck(seed: int) -> None:
    made = random_plan(seed, longest=9)
    q, k, v, grad = inputs_for(made, torch.float32)
    rest = (*made.tensors(), made.max_window, made.max_globals, made.tile, 0.3)
    out, lse = attend_with_lse(q, k, v, made, 0.3)
    torch.library.opcheck(
        torch.ops.minuted.fractal_attention_backward.default, (grad, q, k, v, out, lse, *rest)
    )
    leaves = [x.requires_grad_() for x in (q, k, v)]
    torch.library.opcheck(torch.ops.minuted.fractal_attention.default, (*leaves, *rest))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"windows": [3, 0]}, "at least one token"),
        ({"meetings": [0]}, "2 windows, but the meetings of 1"),
        ({"meetings": [1, 0]}, "ascending"),
        ({"meetings": [0, 2]}, "outside 0..1"),
        ({"globals_per_meeting": [1, -1]}, "fewer than 0"),
        ({"modality": [0, 0, 1]}, "5 content tokens"),
        ({"modality": [0, 0, 1, 2, 0]}, "modality is outside"),
        ({"allow": [4, 1]}, "does not have"),
        ({"windows": [1.5, 3]}, "whole numbers"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(change: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {
        "windows": [3, 2], "meetings": [0, 1], "globals_per_meeting": [1, 0], "modality": [0, 0, 1, 1, 0],
        "allow": [3, 1],
    }  # fmt: skip
    plan(**good)
    with pytest.raises(ValueError, match=text):
        plan(**(good | change))


def test_tensors_that_do_not_belong_to_the_plan_are_refused() -> None:
    made = plan([2], [0], [1], [0, 0], [1])
    good = torch.zeros(3, 1, 4)
    for bad, text in (
        ((good[:2], good[:2], good[:2]), "another number of tokens"),
        ((good, good[:2], good), "one shape"),
        ((good, good, good.double()), "one floating type"),
        ((good[0], good[0], good[0]), "shape"),
        ((good, good.to("meta"), good), "one device"),
    ):
        with pytest.raises(ValueError, match=text):
            attend(bad[0], bad[1], bad[2], made)
    for scale in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            attend(good, good, good, made, scale)
