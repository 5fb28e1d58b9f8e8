"""Forward on a GPU: one program for each tile of a window and head, one for each meeting and head after it.

The first kernel attends from a tile's tokens to their window and the meeting's global tokens, and, while the
tile's keys and values are near, from the global tokens to them. The second joins those parts, and the global
tokens' view of each other, by their log-sum-exp. Scores are in base 2 inside.
"""

import math
from typing import Final

import torch
import triton.language as tl
from torch import Tensor

from ..plan import dense_rows
from .tiles import allowed_pairs, kernel, launch_for, load_rows, padded, store_rows, times

LOG2_E: Final = math.log2(math.e)
LN_2: Final = math.log(2.0)


@kernel
def online_step(
    scores: tl.tensor, v: tl.tensor, peak: tl.tensor, total: tl.tensor, acc: tl.tensor
) -> tl.tensor:
    """Takes one block of masked base-2 scores into a running softmax; a row may have seen nothing yet."""
    new = tl.maximum(peak, tl.max(scores, 1))
    base = tl.where(new == float("-inf"), 0.0, new)
    old = tl.math.exp2(peak - base)
    weights = tl.math.exp2(scores - base[:, None])
    acc = acc * old[:, None] + times(weights.to(v.dtype), v)
    return new, total * old + tl.sum(weights, 1), acc


@kernel
def content_forward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, LSE: tl.tensor, PART: tl.tensor, PART_LSE: tl.tensor,
    window_starts: tl.tensor, window_meeting: tl.tensor, global_starts: tl.tensor, modality: tl.tensor,
    allow: tl.tensor,
    tile_window: tl.tensor, tile_start: tl.tensor,
    scale2: tl.tensor, q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor,
    v_head: tl.tensor, H: tl.tensor, G: tl.tensor,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GP: tl.constexpr,
) -> None:  # fmt: skip
    """One tile of a window and one head. PART (tiles, H, G, D) and PART_LSE (tiles, H, G) are float32."""
    tile, head = tl.program_id(0), tl.program_id(1)
    window = tl.load(tile_window + tile)
    begin, end = tl.load(window_starts + window), tl.load(window_starts + window + 1)
    rows = tl.load(tile_start + tile) + tl.arange(0, BM)
    here = rows < end
    q = load_rows(Q + head * q_head, rows, here, q_row, D, DP)
    looks = tl.load(allow + tl.load(modality + rows, mask=here, other=0), mask=here, other=0)
    peak = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, DP], tl.float32)
    for at in range(begin, end, BN):
        keys = at + tl.arange(0, BN)
        there = keys < end
        k = load_rows(K + head * k_head, keys, there, k_row, D, DP)
        v = load_rows(V + head * v_head, keys, there, v_row, D, DP)
        seen = tl.load(modality + keys, mask=there, other=0)
        scores = times(q, tl.trans(k)) * scale2
        scores = tl.where(allowed_pairs(looks, seen, rows, keys, here, there), scores, float("-inf"))
        peak, total, acc = online_step(scores, v, peak, total, acc)
    if GP > 0:
        meeting = tl.load(window_meeting + window)
        first, last = tl.load(global_starts + meeting), tl.load(global_starts + meeting + 1)
        members = first + tl.arange(0, GP)
        live = members < last
        k = load_rows(K + head * k_head, members, live, k_row, D, DP)
        v = load_rows(V + head * v_head, members, live, v_row, D, DP)
        scores = tl.where(live[None, :] & here[:, None], times(q, tl.trans(k)) * scale2, float("-inf"))
        peak, total, acc = online_step(scores, v, peak, total, acc)

        asks = load_rows(Q + head * q_head, members, live, q_row, D, DP)
        k = load_rows(K + head * k_head, rows, here, k_row, D, DP)
        v = load_rows(V + head * v_head, rows, here, v_row, D, DP)
        scores = tl.where(here[None, :], times(asks, tl.trans(k)) * scale2, float("-inf"))
        g_peak = tl.max(scores, 1)
        weights = tl.math.exp2(scores - g_peak[:, None])
        g_total = tl.sum(weights, 1)
        part = (tile.to(tl.int64) * H + head) * G + tl.arange(0, GP)
        store_rows(PART, part, live, D, times(weights.to(v.dtype), v) / g_total[:, None], D, DP)
        tl.store(PART_LSE + part, g_peak + tl.math.log2(g_total), mask=live)
    total = tl.where(here, total, 1.0)
    store_rows(OUT + head * D, rows, here, H * D, acc / total[:, None], D, DP)
    tl.store(LSE + rows.to(tl.int64) * H + head, (peak + tl.math.log2(total)) * 0.6931471805599453, mask=here)


@kernel
def globals_forward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, LSE: tl.tensor, PART: tl.tensor, PART_LSE: tl.tensor,
    global_starts: tl.tensor, meeting_tiles: tl.tensor,
    scale2: tl.tensor, q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor,
    v_head: tl.tensor, H: tl.tensor, G: tl.tensor,
    D: tl.constexpr, DP: tl.constexpr, GP: tl.constexpr,
) -> None:  # fmt: skip
    """One meeting and one head: its global tokens over each other and over the parts of its tiles."""
    meeting, head = tl.program_id(0), tl.program_id(1)
    first, last = tl.load(global_starts + meeting), tl.load(global_starts + meeting + 1)
    members = first + tl.arange(0, GP)
    live = members < last
    q = load_rows(Q + head * q_head, members, live, q_row, D, DP)
    k = load_rows(K + head * k_head, members, live, k_row, D, DP)
    v = load_rows(V + head * v_head, members, live, v_row, D, DP)
    scores = tl.where(live[None, :] & live[:, None], times(q, tl.trans(k)) * scale2, float("-inf"))
    peak = tl.where(live, tl.max(scores, 1), 0.0)
    weights = tl.math.exp2(scores - peak[:, None])
    total = tl.sum(weights, 1)
    acc = times(weights.to(v.dtype), v)
    for tile in range(tl.load(meeting_tiles + meeting), tl.load(meeting_tiles + meeting + 1)):
        part = (tl.cast(tile, tl.int64) * H + head) * G + tl.arange(0, GP)
        lse = tl.load(PART_LSE + part, mask=live, other=float("-inf"))
        new = tl.maximum(peak, lse)
        old, fresh = tl.math.exp2(peak - new), tl.math.exp2(lse - new)
        acc = acc * old[:, None] + load_rows(PART, part, live, D, D, DP) * fresh[:, None]
        total = total * old + fresh
        peak = new
    total = tl.where(live, total, 1.0)
    store_rows(OUT + head * D, members, live, H * D, acc / total[:, None], D, DP)
    tl.store(
        LSE + members.to(tl.int64) * H + head, (peak + tl.math.log2(total)) * 0.6931471805599453, mask=live
    )


def forward(
    query: Tensor, key: Tensor, value: Tensor,
    window_starts: Tensor, window_meeting: Tensor, meeting_windows: Tensor, global_starts: Tensor,
    modality: Tensor, allow: Tensor, tile_window: Tensor, tile_start: Tensor, meeting_tiles: Tensor,
    max_window: int, max_globals: int, tile: int, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Output and log-sum-exp; the operator's arguments.

    Raises:
        TypeError: a type that the matrix units do not have.
    """
    if query.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"attention on a GPU takes float32, float16 or bfloat16, not {query.dtype}")
    q, k, v = dense_rows(query), dense_rows(key), dense_rows(value)
    tokens, heads, depth = q.shape
    out = torch.empty((tokens, heads, depth), dtype=q.dtype, device=q.device)
    lse = torch.empty((tokens, heads), dtype=torch.float32, device=q.device)
    tiles, meetings = tile_window.shape[0], global_starts.shape[0] - 1
    part = torch.empty((tiles, heads, max_globals, depth), dtype=torch.float32, device=q.device)
    part_lse = torch.empty((tiles, heads, max_globals), dtype=torch.float32, device=q.device)
    strides = (q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1))
    numbers = (scale * LOG2_E, *strides, heads, max_globals)
    launch = launch_for(tile, q)
    depth_padded, globals_padded = padded(depth), padded(max_globals)
    if tiles:
        content_forward[(tiles, heads)](
            q, k, v, out, lse, part, part_lse, window_starts, window_meeting, global_starts, modality, allow,
            tile_window, tile_start, *numbers,
            D=depth, DP=depth_padded, BM=tile, BN=launch.forward_keys, GP=globals_padded, num_warps=launch.warps, num_stages=2,
        )  # fmt: skip
    if meetings and max_globals:
        globals_forward[(meetings, heads)](
            q, k, v, out, lse, part, part_lse, global_starts, meeting_tiles, *numbers,
            D=depth, DP=depth_padded, GP=globals_padded, num_warps=4, num_stages=2,
        )  # fmt: skip
    return out, lse
