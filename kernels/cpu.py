"""Fractal attention on a CPU: torch's own fused attention, called on windows of one length at a time.

Windows of equal length that lie next to each other are a view. Other equal lengths are gathered when windows
are so short that the call costs more than the copy; every other window is a call of its own. The global tokens
of a meeting look over its windows in place, and both halves are joined by their log-sum-exp.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from .plan import dense_rows

_GATHER_BELOW: Final = 16
"""Tokens of a window under which copying windows together is cheaper than a call for each."""

_BATCH_BYTES: Final = 1 << 22
"""Keys or values of one call where they have to be copied: what stays in the second-level cache of few cores."""


@dataclass(frozen=True)
class _Batch:
    """Windows of one length whose meetings have the same number of global tokens."""

    first: int  # first token where the windows lie next to each other, else -1
    rows: Tensor | None  # tokens of all windows, (windows * length), where they do not
    windows: int
    length: int
    globals: int
    meetings: list[int]


@dataclass(frozen=True)
class _Table:
    """A plan's tensors as the loops below read them."""

    starts: list[int]
    owners: list[int]
    meeting_windows: list[int]
    global_starts: list[int]
    modality: Tensor
    bias: Tensor | None  # (modalities, modalities), 0 or -inf; None where everything is allowed

    def meeting_tokens(self, meeting: int) -> tuple[int, int]:
        """First content token of a meeting, and how many it has."""
        begin = self.starts[self.meeting_windows[meeting]]
        return begin, self.starts[self.meeting_windows[meeting + 1]] - begin

    def globals_of(self, meeting: int) -> tuple[int, int]:
        """First global token of a meeting, and how many it has."""
        begin = self.global_starts[meeting]
        return begin, self.global_starts[meeting + 1] - begin


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window_starts: Tensor,
    window_meeting: Tensor,
    meeting_windows: Tensor,
    global_starts: Tensor,
    modality: Tensor,
    allow: Tensor,
    tile_window: Tensor,
    tile_start: Tensor,
    meeting_tiles: Tensor,
    max_window: int,
    max_globals: int,
    tile: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp; the operator's arguments."""
    query, key, value = (dense_rows(x) for x in (query, key, value))
    table = _table(window_starts, window_meeting, meeting_windows, global_starts, modality, allow, query)
    batches = list(_batches(table, query))
    if len(batches) == 1 and batches[0].rows is None and len(query) == table.starts[-1]:
        q, k, v = (_view(x, batches[0]) for x in (query, key, value))
        return _packed(*_flash(q, k, v, _mask(batches[0], table), scale))
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    lse_type = torch.float64 if query.dtype == torch.float64 else torch.float32
    lse = torch.empty(query.shape[:2], dtype=lse_type)
    for batch in batches:
        keys, values = _with_globals(key, batch, table), _with_globals(value, batch, table)
        o, s = _flash(_view(query, batch), keys, values, _mask(batch, table), scale)
        _put(out, batch, o)
        _put(lse.unsqueeze(-1), batch, s.unsqueeze(-1))
    for meeting in range(len(table.global_starts) - 1):
        _globals_forward(query, key, value, out, lse, table, meeting, scale)
    return out, lse


def backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    window_starts: Tensor,
    window_meeting: Tensor,
    meeting_windows: Tensor,
    global_starts: Tensor,
    modality: Tensor,
    allow: Tensor,
    tile_window: Tensor,
    tile_start: Tensor,
    meeting_tiles: Tensor,
    max_window: int,
    max_globals: int,
    tile: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value; the operator's arguments."""
    grad, query, key, value = (dense_rows(x) for x in (grad, query, key, value))
    table = _table(window_starts, window_meeting, meeting_windows, global_starts, modality, allow, query)
    content = table.starts[-1]
    grads = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (query, key, value)]
    for each in grads:
        each[content:] = 0
    rows = lse.unsqueeze(-1)
    for batch in _batches(table, query):
        keys, values = _with_globals(key, batch, table), _with_globals(value, batch, table)
        dq, dk, dv = _flash_backward(
            _view(grad, batch), _view(query, batch), keys, values, _view(out, batch),
            _view(rows, batch).squeeze(-1), _mask(batch, table), scale,
        )  # fmt: skip
        _put(grads[0], batch, dq)
        _put_keys(grads[1], batch, table, dk)
        _put_keys(grads[2], batch, table, dv)
    for meeting in range(len(table.global_starts) - 1):
        for at, count in (table.meeting_tokens(meeting), table.globals_of(meeting)):
            _globals_backward(grad, query, key, value, out, lse, grads, table, meeting, at, count, scale)
    return grads[0], grads[1], grads[2]


def _table(
    window_starts: Tensor, window_meeting: Tensor, meeting_windows: Tensor, global_starts: Tensor,
    modality: Tensor, allow: Tensor, query: Tensor,
) -> _Table:  # fmt: skip
    kinds = torch.arange(len(allow))
    allowed = (allow.long()[:, None] >> kinds[None, :]) & 1 == 1
    bias = None
    if not bool(allowed.all()):
        bias = torch.zeros(allowed.shape, dtype=query.dtype).masked_fill(~allowed, float("-inf"))
    return _Table(
        starts=window_starts.tolist(),
        owners=window_meeting.tolist(),
        meeting_windows=meeting_windows.tolist(),
        global_starts=global_starts.tolist(),
        modality=modality.long(),
        bias=bias,
    )


def _batches(table: _Table, query: Tensor) -> Iterator[_Batch]:
    """All windows, each once. How they are put together depends on their lengths alone."""
    row_bytes = query[0].numel() * query.element_size() if len(query) else 1
    short: dict[tuple[int, int], list[int]] = {}
    window = 0
    while window < len(table.owners):
        length = table.starts[window + 1] - table.starts[window]
        globals_ = table.globals_of(table.owners[window])[1]
        copied = _BATCH_BYTES // ((length + globals_) * row_bytes)
        most = max(1, copied) if globals_ else len(table.owners)
        end = window + 1
        while (
            end < len(table.owners)
            and end - window < most
            and table.starts[end + 1] - table.starts[end] == length
            and table.globals_of(table.owners[end])[1] == globals_
        ):
            end += 1
        if end - window == 1 and length < _GATHER_BELOW:
            short.setdefault((length, globals_), []).append(window)
        else:
            owners = table.owners[window:end]
            yield _Batch(table.starts[window], None, end - window, length, globals_, owners)
        window = end
    for (length, globals_), windows in short.items():
        most = max(1, _BATCH_BYTES // ((length + globals_) * row_bytes))
        for at in range(0, len(windows), most):
            part = windows[at : at + most]
            firsts = torch.tensor([table.starts[w] for w in part])
            rows = (firsts[:, None] + torch.arange(length)).flatten()
            yield _Batch(-1, rows, len(part), length, globals_, [table.owners[w] for w in part])


def _view(packed: Tensor, batch: _Batch) -> Tensor:
    """Rows of a batch as (windows, heads, length, depth)."""
    if batch.rows is None:
        rows = packed[batch.first : batch.first + batch.windows * batch.length]
    else:
        rows = packed.index_select(0, batch.rows)
    return rows.view(batch.windows, batch.length, *rows.shape[1:]).transpose(1, 2)


def _packed(out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
    """Equal windows that are the whole batch, without a copy."""
    first, second = (x.transpose(1, 2).contiguous().flatten(0, 1) for x in (out, lse))
    return first, second


def _put(packed: Tensor, batch: _Batch, values: Tensor) -> None:
    """The reverse of :func:`_view`."""
    if batch.rows is None:
        _view(packed, batch).copy_(values)
    else:
        packed.index_copy_(0, batch.rows, values.transpose(1, 2).flatten(0, 1))


def _global_rows(batch: _Batch, table: _Table) -> Tensor:
    firsts = torch.tensor([table.global_starts[meeting] for meeting in batch.meetings])
    return (firsts[:, None] + torch.arange(batch.globals)).flatten()


def _with_globals(packed: Tensor, batch: _Batch, table: _Table) -> Tensor:
    """Keys or values of a batch: each window's tokens, then the global tokens of its meeting."""
    if not batch.globals:
        return _view(packed, batch)
    if batch.rows is None and batch.windows == 1:
        first, count = table.globals_of(batch.meetings[0])
        own = packed[batch.first : batch.first + batch.length]
        return torch.cat([own, packed[first : first + count]]).unsqueeze(0).transpose(1, 2)
    joined = packed.new_empty(batch.windows, batch.length + batch.globals, *packed.shape[1:])
    joined[:, : batch.length] = _view(packed, batch).transpose(1, 2)
    rows = packed.index_select(0, _global_rows(batch, table))
    joined[:, batch.length :] = rows.view(batch.windows, batch.globals, *rows.shape[1:])
    return joined.transpose(1, 2)


def _put_keys(packed: Tensor, batch: _Batch, table: _Table, values: Tensor) -> None:
    """Gradients of :func:`_with_globals`: those of a window are its own, those of global tokens add up."""
    _put(packed, batch, values[:, :, : batch.length])
    if batch.globals:
        rows = values[:, :, batch.length :].transpose(1, 2).flatten(0, 1)
        packed.index_add_(0, _global_rows(batch, table), rows)


def _mask(batch: _Batch, table: _Table) -> Tensor | None:
    """What the allow table leaves, (windows or 1, 1, length, length + globals), 0 or -inf."""
    if table.bias is None:
        return None
    kinds = _view(table.modality[:, None, None], batch)[:, 0, :, 0]
    if batch.windows > 1 and bool((kinds == kinds[:1]).all()):
        kinds = kinds[:1]
    bias = table.bias[kinds[:, :, None], kinds[:, None, :]]
    bias.diagonal(dim1=1, dim2=2).zero_()
    return torch.nn.functional.pad(bias, (0, batch.globals)).unsqueeze(1)


def _globals_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    table: _Table,
    meeting: int,
    scale: float,
) -> None:
    first, count = table.globals_of(meeting)
    if not count:
        return
    asks = _rows(query, first, count)
    o, s = _flash(asks, _rows(key, first, count), _rows(value, first, count), None, scale)
    begin, tokens = table.meeting_tokens(meeting)
    if tokens:
        wide, t = _flash(asks, _rows(key, begin, tokens), _rows(value, begin, tokens), None, scale)
        both = torch.logaddexp(s, t)
        o = o * (s - both).exp().unsqueeze(-1) + wide * (t - both).exp().unsqueeze(-1)
        s = both
    out[first : first + count] = o[0].transpose(0, 1)
    lse[first : first + count] = s[0].transpose(0, 1)


def _globals_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, grads: list[Tensor],
    table: _Table, meeting: int, at: int, tokens: int, scale: float,
) -> None:  # fmt: skip
    """Adds what the global tokens of a meeting draw from ``tokens`` keys from ``at`` on."""
    first, count = table.globals_of(meeting)
    if not (count and tokens):
        return
    parts = _flash_backward(
        _rows(grad, first, count), _rows(query, first, count), _rows(key, at, tokens), _rows(value, at, tokens),
        _rows(out, first, count), _rows(lse.unsqueeze(-1), first, count).squeeze(-1), None, scale,
    )  # fmt: skip
    for whole, part, begin in zip(grads, parts, (first, at, at), strict=True):
        whole[begin : begin + part.shape[2]] += part[0].transpose(0, 1)


def _rows(packed: Tensor, first: int, count: int) -> Tensor:
    return packed[first : first + count].transpose(0, 1).unsqueeze(0)


def _flash(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> tuple[Tensor, Tensor]:
    # The public function returns no log-sum-exp; this is what it calls.
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, False, attn_mask=mask, scale=scale
    )
    return out, lse


def _flash_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, mask: Tensor | None, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, k, v, out, lse, 0.0, False, attn_mask=mask, scale=scale
    )
    return dq, dk, dv
