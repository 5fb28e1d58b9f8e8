"""The operator as standard ONNX operators, for ``torch.onnx.export(dynamo=True)``. Needs onnxscript.

Windows and meetings are padded to the longest of the batch by gathering, attended to with a mask, and scattered
back; all lengths come from the plan's tensors, so that one graph serves batches of any shape.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from onnxscript import opset18

OPSET: Final = 18

op: Final[Any] = opset18  # its own types cannot say what a traced value is


def translation_table() -> dict[Any, Callable[..., Any]]:
    """What ``torch.onnx.export`` takes as ``custom_translation_table``."""
    return {torch.ops.minuted.fractal_attention.default: fractal_attention}


def fractal_attention(
    query: Any, key: Any, value: Any, window_starts: Any, window_meeting: Any, meeting_windows: Any,
    global_starts: Any, modality: Any, allow: Any, tile_window: Any, tile_start: Any, meeting_tiles: Any,
    max_window: Any, max_globals: Any, tile: Any, scale: float,
) -> tuple[Any, Any]:  # fmt: skip
    """Translation of the forward operator: output and log-sum-exp."""
    starts, owners, first_windows, first_globals, kinds, masks = (
        op.Cast(x, to=7)
        for x in (window_starts, window_meeting, meeting_windows, global_starts, modality, allow)
    )
    window_at, window_length = _spans(starts)
    global_at, global_length = _spans(first_globals)
    meeting_at, meeting_length = _spans(op.Gather(starts, first_windows))
    window_rows, window_there = _padded(window_at, window_length)
    global_rows, global_there = _padded(global_at, global_length)
    meeting_rows, meeting_there = _padded(meeting_at, meeting_length)

    pairs = _allowed(kinds, masks, window_rows, window_there)
    theirs = op.Unsqueeze(op.Gather(global_there, owners), _ints(1))
    shape = op.Concat(op.Shape(pairs, end=2), op.Shape(theirs, start=2), axis=0)
    window_out = _attention(
        query, key, value, window_rows,
        op.Concat(window_rows, op.Gather(global_rows, owners), axis=1),
        op.Concat(pairs, op.Expand(theirs, shape), axis=2), scale,
    )  # fmt: skip
    everybody = op.Unsqueeze(op.Concat(meeting_there, global_there, axis=1), _ints(1))
    global_out = _attention(
        query, key, value, global_rows, op.Concat(meeting_rows, global_rows, axis=1), everybody, scale
    )
    window_chosen, global_chosen = _chosen(window_there), _chosen(global_there)
    # Content tokens come first in the batch and lie in the order of their windows, global ones follow in theirs.
    out, lse = (
        op.Concat(_flat(of_windows, window_chosen), _flat(of_globals, global_chosen), axis=0)
        for of_windows, of_globals in zip(window_out, global_out, strict=True)
    )
    return out, op.Squeeze(lse, _ints(2))


def _ints(*values: int) -> Any:
    return op.Constant(value_ints=list(values))


def _spans(offsets: Any) -> tuple[Any, Any]:
    """Starts and lengths of consecutive spans."""
    begin = op.Slice(offsets, _ints(0), _ints(-1), _ints(0))
    return begin, op.Sub(op.Slice(offsets, _ints(1), _ints(2**62), _ints(0)), begin)


def _padded(begin: Any, length: Any) -> tuple[Any, Any]:
    """Rows of spans, (spans, longest) with 0 beyond the end, and where a row is one. The longest is at least 1."""
    longest = op.ReduceMax(op.Concat(length, _ints(1), axis=0), keepdims=0)
    steps = op.Range(op.Constant(value_int=0), longest, op.Constant(value_int=1))
    there = op.Less(steps, op.Unsqueeze(length, _ints(1)))
    return op.Where(there, op.Add(op.Unsqueeze(begin, _ints(1)), steps), _ints(0)), there


def _allowed(kinds: Any, masks: Any, rows: Any, there: Any) -> Any:
    """(windows, longest, longest): key is there, and allowed by the table or the same token."""
    # One more entry, so that the padding of a batch without windows has something to name.
    found = op.Gather(op.Concat(kinds, _ints(0), axis=0), rows)
    looks = op.Cast(op.Gather(op.Concat(masks, _ints(0), axis=0), found), to=13)
    bits = op.BitShift(
        op.Unsqueeze(looks, _ints(2)), op.Cast(op.Unsqueeze(found, _ints(1)), to=13), direction="RIGHT"
    )
    by_table = op.Equal(op.Mod(op.Cast(bits, to=7), _ints(2)), _ints(1))
    same = op.Equal(op.Unsqueeze(rows, _ints(2)), op.Unsqueeze(rows, _ints(1)))
    return op.And(op.Or(by_table, same), op.Unsqueeze(there, _ints(1)))


def _attention(
    query: Any, key: Any, value: Any, q_rows: Any, k_rows: Any, seen: Any, scale: float
) -> tuple[Any, Any]:
    """Output (spans, longest, heads, depth) and log-sum-exp (spans, longest, heads, 1); NaN where nothing is seen."""
    q = op.Transpose(op.Gather(query, q_rows), perm=[0, 2, 1, 3])
    k = op.Transpose(op.Gather(key, k_rows), perm=[0, 2, 3, 1])
    v = op.Transpose(op.Gather(value, k_rows), perm=[0, 2, 1, 3])
    scores = op.Mul(op.MatMul(q, k), op.CastLike(op.Constant(value_float=scale), query))
    scores = op.Where(
        op.Unsqueeze(seen, _ints(1)), scores, op.CastLike(op.Constant(value_float=float("-inf")), scores)
    )
    peak = op.ReduceMax(scores, _ints(-1), keepdims=1)
    weights = op.Exp(op.Sub(scores, peak))
    total = op.ReduceSum(weights, _ints(-1), keepdims=1)
    out = op.MatMul(op.Div(weights, total), v)
    lse = op.Cast(op.Add(peak, op.Log(total)), to=1)
    return op.Transpose(out, perm=[0, 2, 1, 3]), op.Transpose(lse, perm=[0, 2, 1, 3])


def _chosen(there: Any) -> Any:
    """Flat positions that are rows, not padding."""
    return op.Reshape(op.NonZero(op.Reshape(there, _ints(-1))), _ints(-1))


def _flat(values: Any, chosen: Any) -> Any:
    # Heads and depth by their size: with no spans at all a -1 could not be worked out.
    rows = op.ReduceProd(op.Shape(values, end=2), keepdims=1)
    return op.Gather(
        op.Reshape(values, op.Concat(rows, op.Shape(values, start=2), axis=0), allowzero=1), chosen
    )
