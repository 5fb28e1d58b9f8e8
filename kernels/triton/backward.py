"""Backward on a GPU, without atomics: the same input gives the same bits.

A window that is one tile is one program: its tokens are queries and keys at once, and everything is read once.
Longer windows take two kernels, one that owns queries and one that owns keys. Either way each tile leaves its
part of the global tokens' gradients in a buffer of its own, and a last kernel adds them up for each meeting.
"""

import torch
import triton.language as tl
from torch import Tensor

from ..plan import dense_rows
from .forward import LOG2_E
from .tiles import allowed_pairs, kernel, launch_for, load_rows, padded, store_rows, times


@kernel
def row_sums(o: tl.tensor, do: tl.tensor) -> tl.tensor:
    """What a row's gradient takes off each of its scores' gradients."""
    return tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)


@kernel
def look_at_globals(
    q: tl.tensor,
    do: tl.tensor,
    delta: tl.tensor,
    lse2: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    pairs: tl.tensor,
    scale: tl.tensor,
    scale2: tl.tensor,
) -> tl.tensor:
    """Content queries at global keys: gradients of the queries, the keys and the values."""
    weights = tl.where(pairs, tl.math.exp2(times(q, tl.trans(k)) * scale2 - lse2[:, None]), 0.0)
    dv = times(tl.trans(weights.to(do.dtype)), do)
    ds = (weights * (times(do, tl.trans(v)) - delta[:, None]) * scale).to(q.dtype)
    return times(ds, k), times(tl.trans(ds), q), dv


@kernel
def seen_by_globals(
    q: tl.tensor, do: tl.tensor, delta: tl.tensor, lse2: tl.tensor, k: tl.tensor, v: tl.tensor,
    pairs: tl.tensor, scale: tl.tensor, scale2: tl.tensor,
) -> tl.tensor:  # fmt: skip
    """Global queries at content keys, keys as rows so that warps share them out: what ``look_at_globals`` gives."""
    weights = tl.where(pairs, tl.math.exp2(times(k, tl.trans(q)) * scale2 - lse2[None, :]), 0.0)
    dv = times(weights.to(do.dtype), do)
    ds = (weights * (times(v, tl.trans(do)) - delta[None, :]) * scale).to(q.dtype)
    return times(tl.trans(ds), k), times(ds, q), dv


@kernel
def load_queries(
    Q: tl.tensor, OUT: tl.tensor, DO: tl.tensor, LSE: tl.tensor, rows: tl.tensor, here: tl.tensor, head: tl.tensor,
    q_row: tl.tensor, q_head: tl.tensor, g_row: tl.tensor, g_head: tl.tensor, H: tl.tensor, D: tl.constexpr,
    DP: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Queries, their output's gradient, its row sums and base-2 log-sum-exp."""
    q = load_rows(Q + head * q_head, rows, here, q_row, D, DP)
    do = load_rows(DO + head * g_head, rows, here, g_row, D, DP)
    o = load_rows(OUT + head * D, rows, here, H * D, D, DP)
    lse = tl.load(LSE + rows.to(tl.int64) * H + head, mask=here, other=0.0)
    return q, do, row_sums(o, do), lse * 1.4426950408889634


@kernel
def window_backward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, DO: tl.tensor, LSE: tl.tensor, DQ: tl.tensor,
    DK: tl.tensor, DV: tl.tensor, PQ: tl.tensor, PK: tl.tensor, PV: tl.tensor,
    window_starts: tl.tensor, window_meeting: tl.tensor, global_starts: tl.tensor, modality: tl.tensor,
    allow: tl.tensor,
    tile_window: tl.tensor, tile_start: tl.tensor, scale: tl.tensor, scale2: tl.tensor,
    q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor, v_head: tl.tensor,
    g_row: tl.tensor, g_head: tl.tensor,
    H: tl.tensor, G: tl.tensor, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, GP: tl.constexpr,
) -> None:  # fmt: skip
    """One window that is one tile, and one head. PQ, PK, PV (tiles, H, G, D) are float32."""
    tile, head = tl.program_id(0), tl.program_id(1)
    window = tl.load(tile_window + tile)
    rows = tl.load(tile_start + tile) + tl.arange(0, BM)
    here = rows < tl.load(window_starts + window + 1)
    q, do, delta, lse2 = load_queries(
        Q, OUT, DO, LSE, rows, here, head, q_row, q_head, g_row, g_head, H, D, DP
    )
    k = load_rows(K + head * k_head, rows, here, k_row, D, DP)
    v = load_rows(V + head * v_head, rows, here, v_row, D, DP)
    kinds = tl.load(modality + rows, mask=here, other=0)
    looks = tl.load(allow + kinds, mask=here, other=0)
    pairs = allowed_pairs(looks, kinds, rows, rows, here, here)
    dq, dk, dv = look_at_globals(q, do, delta, lse2, k, v, pairs, scale, scale2)
    if GP > 0:
        meeting = tl.load(window_meeting + window)
        members = tl.load(global_starts + meeting) + tl.arange(0, GP)
        live = members < tl.load(global_starts + meeting + 1)
        part = (tile.to(tl.int64) * H + head) * G + tl.arange(0, GP)
        g_k = load_rows(K + head * k_head, members, live, k_row, D, DP)
        g_v = load_rows(V + head * v_head, members, live, v_row, D, DP)
        more, p_k, p_v = look_at_globals(
            q, do, delta, lse2, g_k, g_v, here[:, None] & live[None, :], scale, scale2
        )
        dq += more
        store_rows(PK, part, live, D, p_k, D, DP)
        store_rows(PV, part, live, D, p_v, D, DP)
        g_q, g_do, g_delta, g_lse2 = load_queries(
            Q, OUT, DO, LSE, members, live, head, q_row, q_head, g_row, g_head, H, D, DP
        )
        p_q, more_k, more_v = seen_by_globals(
            g_q, g_do, g_delta, g_lse2, k, v, here[:, None] & live[None, :], scale, scale2
        )
        dk += more_k
        dv += more_v
        store_rows(PQ, part, live, D, p_q, D, DP)
    store_rows(DQ + head * D, rows, here, H * D, dq, D, DP)
    store_rows(DK + head * D, rows, here, H * D, dk, D, DP)
    store_rows(DV + head * D, rows, here, H * D, dv, D, DP)


@kernel
def queries_backward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, DO: tl.tensor, LSE: tl.tensor, DQ: tl.tensor,
    PK: tl.tensor, PV: tl.tensor,
    window_starts: tl.tensor, window_meeting: tl.tensor, global_starts: tl.tensor, modality: tl.tensor,
    allow: tl.tensor,
    tile_window: tl.tensor, tile_start: tl.tensor, scale: tl.tensor, scale2: tl.tensor,
    q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor, v_head: tl.tensor,
    g_row: tl.tensor, g_head: tl.tensor,
    H: tl.tensor, G: tl.tensor, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    GP: tl.constexpr,
) -> None:  # fmt: skip
    """One tile of a long window as queries."""
    tile, head = tl.program_id(0), tl.program_id(1)
    window = tl.load(tile_window + tile)
    begin, end = tl.load(window_starts + window), tl.load(window_starts + window + 1)
    rows = tl.load(tile_start + tile) + tl.arange(0, BM)
    here = rows < end
    q, do, delta, lse2 = load_queries(
        Q, OUT, DO, LSE, rows, here, head, q_row, q_head, g_row, g_head, H, D, DP
    )
    looks = tl.load(allow + tl.load(modality + rows, mask=here, other=0), mask=here, other=0)
    dq = tl.zeros([BM, DP], tl.float32)
    for at in range(begin, end, BN):
        keys = at + tl.arange(0, BN)
        there = keys < end
        k = load_rows(K + head * k_head, keys, there, k_row, D, DP)
        v = load_rows(V + head * v_head, keys, there, v_row, D, DP)
        seen = tl.load(modality + keys, mask=there, other=0)
        pairs = allowed_pairs(looks, seen, rows, keys, here, there)
        weights = tl.where(pairs, tl.math.exp2(times(q, tl.trans(k)) * scale2 - lse2[:, None]), 0.0)
        ds = (weights * (times(do, tl.trans(v)) - delta[:, None]) * scale).to(q.dtype)
        dq += times(ds, k)
    if GP > 0:
        meeting = tl.load(window_meeting + window)
        members = tl.load(global_starts + meeting) + tl.arange(0, GP)
        live = members < tl.load(global_starts + meeting + 1)
        part = (tile.to(tl.int64) * H + head) * G + tl.arange(0, GP)
        k = load_rows(K + head * k_head, members, live, k_row, D, DP)
        v = load_rows(V + head * v_head, members, live, v_row, D, DP)
        more, p_k, p_v = look_at_globals(
            q, do, delta, lse2, k, v, here[:, None] & live[None, :], scale, scale2
        )
        dq += more
        store_rows(PK, part, live, D, p_k, D, DP)
        store_rows(PV, part, live, D, p_v, D, DP)
    store_rows(DQ + head * D, rows, here, H * D, dq, D, DP)


@kernel
def keys_backward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, DO: tl.tensor, LSE: tl.tensor, DK: tl.tensor,
    DV: tl.tensor, PQ: tl.tensor,
    window_starts: tl.tensor, window_meeting: tl.tensor, global_starts: tl.tensor, modality: tl.tensor,
    allow: tl.tensor,
    tile_window: tl.tensor, tile_start: tl.tensor, scale: tl.tensor, scale2: tl.tensor,
    q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor, v_head: tl.tensor,
    g_row: tl.tensor, g_head: tl.tensor,
    H: tl.tensor, G: tl.tensor, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    GP: tl.constexpr,
) -> None:  # fmt: skip
    """One tile of a long window as keys and values."""
    tile, head = tl.program_id(0), tl.program_id(1)
    window = tl.load(tile_window + tile)
    begin, end = tl.load(window_starts + window), tl.load(window_starts + window + 1)
    keys = tl.load(tile_start + tile) + tl.arange(0, BM)
    here = keys < end
    k = load_rows(K + head * k_head, keys, here, k_row, D, DP)
    v = load_rows(V + head * v_head, keys, here, v_row, D, DP)
    seen = tl.load(modality + keys, mask=here, other=0)
    dk = tl.zeros([BM, DP], tl.float32)
    dv = tl.zeros([BM, DP], tl.float32)
    for at in range(begin, end, BN):
        rows = at + tl.arange(0, BN)
        there = rows < end
        q, do, delta, lse2 = load_queries(
            Q, OUT, DO, LSE, rows, there, head, q_row, q_head, g_row, g_head, H, D, DP
        )
        looks = tl.load(allow + tl.load(modality + rows, mask=there, other=0), mask=there, other=0)
        pairs = allowed_pairs(looks, seen, rows, keys, there, here)
        weights = tl.where(pairs, tl.math.exp2(times(q, tl.trans(k)) * scale2 - lse2[:, None]), 0.0)
        dv += times(tl.trans(weights.to(do.dtype)), do)
        ds = (weights * (times(do, tl.trans(v)) - delta[:, None]) * scale).to(q.dtype)
        dk += times(tl.trans(ds), q)
    if GP > 0:
        meeting = tl.load(window_meeting + window)
        members = tl.load(global_starts + meeting) + tl.arange(0, GP)
        live = members < tl.load(global_starts + meeting + 1)
        part = (tile.to(tl.int64) * H + head) * G + tl.arange(0, GP)
        q, do, delta, lse2 = load_queries(
            Q, OUT, DO, LSE, members, live, head, q_row, q_head, g_row, g_head, H, D, DP
        )
        p_q, more_k, more_v = seen_by_globals(
            q, do, delta, lse2, k, v, here[:, None] & live[None, :], scale, scale2
        )
        dk += more_k
        dv += more_v
        store_rows(PQ, part, live, D, p_q, D, DP)
    store_rows(DK + head * D, keys, here, H * D, dk, D, DP)
    store_rows(DV + head * D, keys, here, H * D, dv, D, DP)


@kernel
def globals_backward(
    Q: tl.tensor, K: tl.tensor, V: tl.tensor, OUT: tl.tensor, DO: tl.tensor, LSE: tl.tensor, DQ: tl.tensor,
    DK: tl.tensor, DV: tl.tensor, PQ: tl.tensor, PK: tl.tensor, PV: tl.tensor,
    global_starts: tl.tensor, meeting_tiles: tl.tensor, scale: tl.tensor, scale2: tl.tensor,
    q_row: tl.tensor, q_head: tl.tensor, k_row: tl.tensor, k_head: tl.tensor, v_row: tl.tensor, v_head: tl.tensor,
    g_row: tl.tensor, g_head: tl.tensor,
    H: tl.tensor, G: tl.tensor, D: tl.constexpr, DP: tl.constexpr, GP: tl.constexpr,
) -> None:  # fmt: skip
    """One meeting and one head: the tiles' parts in their order, and the global tokens among themselves."""
    meeting, head = tl.program_id(0), tl.program_id(1)
    members = tl.load(global_starts + meeting) + tl.arange(0, GP)
    live = members < tl.load(global_starts + meeting + 1)
    q, do, delta, lse2 = load_queries(
        Q, OUT, DO, LSE, members, live, head, q_row, q_head, g_row, g_head, H, D, DP
    )
    k = load_rows(K + head * k_head, members, live, k_row, D, DP)
    v = load_rows(V + head * v_head, members, live, v_row, D, DP)
    dq, dk, dv = look_at_globals(q, do, delta, lse2, k, v, live[:, None] & live[None, :], scale, scale2)
    for tile in range(tl.load(meeting_tiles + meeting), tl.load(meeting_tiles + meeting + 1)):
        part = (tl.cast(tile, tl.int64) * H + head) * G + tl.arange(0, GP)
        dq += load_rows(PQ, part, live, D, D, DP)
        dk += load_rows(PK, part, live, D, D, DP)
        dv += load_rows(PV, part, live, D, D, DP)
    store_rows(DQ + head * D, members, live, H * D, dq, D, DP)
    store_rows(DK + head * D, members, live, H * D, dk, D, DP)
    store_rows(DV + head * D, members, live, H * D, dv, D, DP)


def backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor,
    window_starts: Tensor, window_meeting: Tensor, meeting_windows: Tensor, global_starts: Tensor,
    modality: Tensor, allow: Tensor, tile_window: Tensor, tile_start: Tensor, meeting_tiles: Tensor,
    max_window: int, max_globals: int, tile: int, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of query, key and value; the operator's arguments."""
    q, k, v, do = (dense_rows(x) for x in (query, key, value, grad))
    heads, depth = q.shape[1:]
    dq, dk, dv = (torch.empty(q.shape, dtype=q.dtype, device=q.device) for _ in range(3))
    tiles, meetings = tile_window.shape[0], global_starts.shape[0] - 1
    size = (tiles, heads, max_globals, depth)
    pq, pk, pv = (torch.empty(size, dtype=torch.float32, device=q.device) for _ in range(3))
    reads = (q, k, v, out, do, lse)
    batch = (window_starts, window_meeting, global_starts, modality, allow, tile_window, tile_start)
    strides = (n for x in (q, k, v, do) for n in x.stride()[:2])
    numbers = (scale, scale * LOG2_E, *strides, heads, max_globals)
    sizes = {"D": depth, "DP": padded(depth), "GP": padded(max_globals)}
    launch = launch_for(tile, q)
    if tiles and max_window <= tile and launch.whole_windows:
        window_backward[(tiles, heads)](
            *reads,
            dq,
            dk,
            dv,
            pq,
            pk,
            pv,
            *batch,
            *numbers,
            **sizes,
            BM=tile,
            num_warps=launch.warps,
            num_stages=1,
        )
    elif tiles:
        blocks = {**sizes, "BM": tile, "BN": launch.backward_keys, "num_warps": launch.warps, "num_stages": 1}
        queries_backward[(tiles, heads)](*reads, dq, pk, pv, *batch, *numbers, **blocks)
        keys_backward[(tiles, heads)](*reads, dk, dv, pq, *batch, *numbers, **blocks)
    if meetings and max_globals:
        globals_backward[(meetings, heads)](
            *reads, dq, dk, dv, pq, pk, pv, global_starts, meeting_tiles, *numbers, **sizes,
            num_warps=4, num_stages=2,
        )  # fmt: skip
    return dq, dk, dv
