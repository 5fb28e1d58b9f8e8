"""The attention operator: ``torch.ops.minuted.fractal_attention`` and the function that calls it.

The operator's own arguments are a plan's tensors and integers, so that tracing and export see nothing but
tensors and numbers.
"""

import math
from typing import Any, Final

import torch
from torch import Tensor

from . import cpu
from .plan import Plan

_PLAN_SCHEMA: Final = (
    "Tensor window_starts, Tensor window_meeting, Tensor meeting_windows, Tensor global_starts, "
    "Tensor modality, Tensor allow, Tensor tile_window, Tensor tile_start, Tensor meeting_tiles, "
    "SymInt max_window, SymInt max_globals, SymInt tile, float scale"
)
FORWARD: Final = "minuted::fractal_attention"
BACKWARD: Final = "minuted::fractal_attention_backward"


def attend(query: Tensor, key: Tensor, value: Tensor, plan: Plan, scale: float | None = None) -> Tensor:
    """Fractal attention over a packed batch.

    Args:
        query, key, value: shape (tokens, heads, head_dim), one floating type; content tokens of all windows
            in the plan's order, then the global tokens of all meetings. Any strides; a copy is made where the last
            dimension is not contiguous. All numbers finite, also those of tokens that nobody may see.
        plan: of this batch, on the same device.
        scale: factor of the scores, a finite number; 1 / sqrt(head_dim) where it is None.

    Returns:
        Shape and type of ``query``.

    Raises:
        ValueError: shapes, types or devices that do not belong together; a scale that is no finite number.
    """
    return attend_with_lse(query, key, value, plan, scale)[0]


def attend_with_lse(
    query: Tensor, key: Tensor, value: Tensor, plan: Plan, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """As :func:`attend`, and with it each row's log-sum-exp of scaled scores, shape (tokens, heads).

    The log-sum-exp is float32 (float64 for float64 input) and carries no gradient.
    """
    _check(query, key, value, plan)
    if scale is not None and not math.isfinite(scale):
        # Some kernels would give finite numbers all the same, and hide what went wrong before.
        raise ValueError("scale must be a finite number")
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    out, lse = torch.ops.minuted.fractal_attention(
        query, key, value, *plan.tensors(), plan.max_window, plan.max_globals, plan.tile, factor
    )
    return out, lse


def lse_type(query: Tensor) -> Any:
    """Type of the log-sum-exp beside an output of ``query``'s type."""
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def _check(query: Tensor, key: Tensor, value: Tensor, plan: Plan) -> None:
    if query.dim() != 3 or query.shape[1] < 1 or query.shape[2] < 1:
        raise ValueError("query must have shape (tokens, heads, head_dim)")
    if query.shape != key.shape or query.shape != value.shape:
        raise ValueError("query, key and value must have one shape")
    if query.dtype != key.dtype or query.dtype != value.dtype or not query.is_floating_point():
        raise ValueError("query, key and value must have one floating type")
    if query.shape[0] != plan.tokens:
        raise ValueError("the plan is of another number of tokens than the query")
    if not query.device == key.device == value.device == plan.window_starts.device:
        raise ValueError("query, key, value and plan must be on one device")


def _fake_forward(query: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    return out, query.new_empty(query.shape[:2], dtype=lse_type(query))


def _fake_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    fresh = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (query, key, value)]
    return fresh[0], fresh[1], fresh[2]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, *rest = inputs
    ctx.save_for_backward(query, key, value, *output, *rest[:9])
    ctx.numbers = rest[9:]
    ctx.mark_non_differentiable(output[1])


def _derive(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    query, key, value, out, lse, *plan = ctx.saved_tensors
    grads = torch.ops.minuted.fractal_attention_backward(
        grad, query, key, value, out, lse, *plan, *ctx.numbers
    )
    return (*grads, *(None for _ in range(9 + len(ctx.numbers))))


def _cuda_forward(*arguments: Any) -> tuple[Tensor, Tensor]:
    from .triton.forward import forward  # Triton is there only where torch brought it along

    out, lse = forward(*arguments)
    return out, lse


def _cuda_backward(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    from .triton.backward import backward

    query, key, value = backward(*arguments)
    return query, key, value


def _register() -> None:
    torch.library.define(
        FORWARD, f"(Tensor query, Tensor key, Tensor value, {_PLAN_SCHEMA}) -> (Tensor, Tensor)"
    )
    torch.library.define(
        BACKWARD,
        "(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor out, Tensor lse, "
        f"{_PLAN_SCHEMA}) -> (Tensor, Tensor, Tensor)",
    )
    torch.library.impl(FORWARD, "CPU", cpu.forward)
    torch.library.impl(BACKWARD, "CPU", cpu.backward)
    torch.library.impl(FORWARD, "CUDA", _cuda_forward)
    torch.library.impl(BACKWARD, "CUDA", _cuda_backward)
    torch.library.register_fake(FORWARD, _fake_forward)
    torch.library.register_fake(BACKWARD, _fake_backward)
    torch.library.register_autograd(FORWARD, _derive, setup_context=_setup)


_register()
