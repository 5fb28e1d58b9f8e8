"""Batches to try the operator on: random ragged ones and the shipped window budget. For tests and measurements."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from .api import attend
from .plan import Plan, allow_table, plan
from .reference import reference

PICTURE, SOUND, SLIDE, TEXT = range(4)
WINDOW_BUDGET: Final = {PICTURE: 64, SOUND: 32, SLIDE: 16, TEXT: 16}
"""Tokens of one full window of 2 s."""

PRODUCT_PAIRS: Final = (
    *((modality, modality) for modality in range(4)),
    (PICTURE, SOUND), (PICTURE, SLIDE), (SOUND, PICTURE), (SOUND, TEXT), (SLIDE, PICTURE), (SLIDE, TEXT),
    (TEXT, SOUND), (TEXT, SLIDE), (TEXT, PICTURE),
)  # fmt: skip
"""Who looks at whom in the measured case: all but sound at slides and back, and pictures at text."""

PRODUCT_GLOBALS: Final = 4


def product_plan(windows: int = 128, meetings: int = 12, globals_: int = PRODUCT_GLOBALS) -> Plan:
    """Full windows of all four modalities, spread evenly over the meetings."""
    kinds = [kind for kind, count in WINDOW_BUDGET.items() for _ in range(count)]
    owners = [window * meetings // windows for window in range(windows)]
    return plan(
        [len(kinds)] * windows, owners, [globals_] * meetings, kinds * windows, allow_table(4, PRODUCT_PAIRS)
    )


def plain_plan(lengths: Sequence[int], meetings: int = 1, globals_: int = 0) -> Plan:
    """Windows of one modality, spread evenly over the meetings."""
    owners = [window * meetings // len(lengths) for window in range(len(lengths))]
    return plan(lengths, owners, [globals_] * meetings, [0] * sum(lengths), [1])


def ragged_lengths(seed: int, windows: int = 128, shortest: int = 20, longest: int = 200) -> list[int]:
    """Lengths of windows, evenly distributed."""
    draw = random.Random(seed)
    return [draw.randint(shortest, longest) for _ in range(windows)]


def random_plan(seed: int, longest: int = 40, windows: int = 12) -> Plan:
    """Windows of 1 to ``longest`` tokens in up to five meetings, some empty, 0 to 16 global tokens each."""
    draw = random.Random(seed)
    meetings = draw.randint(1, 5)
    owners = sorted(draw.randrange(meetings) for _ in range(draw.randint(0, windows)))
    lengths = [draw.choice((1, draw.randint(1, longest), longest)) for _ in owners]
    modalities = draw.randint(1, 5)
    allow = [draw.getrandbits(modalities) for _ in range(modalities)]
    kinds = [draw.randrange(modalities) for _ in range(sum(lengths))]
    return plan(lengths, owners, [draw.choice((0, 1, 4, 16)) for _ in range(meetings)], kinds, allow)


def inputs_for(
    made: Plan, dtype: Any = None, heads: int = 2, depth: int = 8, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Query, key, value and a gradient of the output, on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v, grad = (
        torch.randn((made.tokens, heads, depth), generator=generator).to(dtype or torch.float32)
        for _ in range(4)
    )
    return q, k, v, grad


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """What ``grad`` at the function's output makes of its inputs."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    found: tuple[Tensor, ...] = torch.autograd.grad(function(*leaves), leaves, grad)
    return found


def attend_gradients(inputs: Sequence[Tensor], made: Plan, grad: Tensor) -> tuple[Tensor, ...]:
    """Gradients of the operator."""
    return gradients(lambda q, k, v: attend(q, k, v, made), inputs, grad)


def reference_gradients(inputs: Sequence[Tensor], made: Plan, grad: Tensor) -> tuple[Tensor, ...]:
    """Gradients of the reference, float64."""
    wide = [x.double() for x in inputs]
    return gradients(lambda q, k, v: reference(q, k, v, made)[0], wide, grad.double())


def relative_error(found: Tensor, wanted: Tensor) -> float:
    """Norm of the difference by norm of what is wanted, or by 1 where that is smaller; NaN stays NaN."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm().clamp_min(1.0))
