"""What a plan could be computed with instead: compositions of library calls, for measurements only.

Each function prepares all that depends on the plan alone (indices, masks) and returns what is to be timed.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from .plan import Plan
from .reference import dense_mask

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


class NotApplicable(Exception):
    """A rival that cannot compute this plan."""


def dense_masked(plan: Plan) -> Attention:
    """One call over the whole batch with a boolean mask: what fractal attention replaces."""
    mask = dense_mask(plan)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(
            *(x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)), attn_mask=mask
        )
        return out[0].transpose(0, 1)

    return run


def windowed(plan: Plan) -> Attention:
    """One call over equal windows as a view; only for equal windows without a table and global tokens."""
    lengths = _lengths(plan)
    if plan.max_globals or len(set(lengths)) != 1 or not _everything_allowed(plan):
        raise NotApplicable("windows differ, or there is a table or a global token")
    count, length = len(lengths), lengths[0]

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        views = (x.view(count, length, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(*views).transpose(1, 2).reshape(q.shape)

    return run


def padded(plan: Plan) -> Attention:
    """One call over windows padded to the longest, keys gathered with their meeting's global tokens."""
    device = plan.window_starts.device
    starts, meetings = plan.window_starts.tolist(), plan.meeting_windows.tolist()
    globals_ = plan.global_starts.tolist()
    owners = plan.window_meeting.long()
    windows, window_there = _padded_rows(list(itertools.pairwise(starts)), device)
    spans = [(starts[a], starts[b]) for a, b in itertools.pairwise(meetings)]
    content, content_there = _padded_rows(spans, device)
    shared, shared_there = _padded_rows(list(itertools.pairwise(globals_)), device)
    keys = torch.cat([windows, shared[owners]], 1)
    allowed = _allowed(plan, windows) & window_there[:, None, :]
    seen = torch.cat([allowed, shared_there[owners][:, None, :].expand(-1, windows.shape[1], -1)], 2)
    seen |= ~window_there[:, :, None]  # rows of padding must see something
    wide = torch.cat([content, shared], 1)
    everybody = torch.cat([content_there, shared_there], 1)[:, None, :].expand(-1, shared.shape[1], -1)
    chosen = (window_there.flatten().nonzero().flatten(), shared_there.flatten().nonzero().flatten())

    def level(q: Tensor, k: Tensor, v: Tensor, at: Tensor, to: Tensor, mask: Tensor, rows: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(
            q[at].transpose(1, 2), k[to].transpose(1, 2), v[to].transpose(1, 2), attn_mask=mask[:, None]
        )
        return out.transpose(1, 2).flatten(0, 1).index_select(0, rows)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first = level(q, k, v, windows, keys, seen, chosen[0])
        return (
            torch.cat([first, level(q, k, v, shared, wide, everybody, chosen[1])])
            if plan.max_globals
            else first
        )

    return run


def loop(plan: Plan) -> Attention:
    """One call for each window and one for each meeting's global tokens."""
    starts, owners, meetings, globals_ = (
        x.tolist()
        for x in (plan.window_starts, plan.window_meeting, plan.meeting_windows, plan.global_starts)
    )
    lengths = [b - a for a, b in itertools.pairwise(starts)]
    shared = [b - a for a, b in itertools.pairwise(globals_)]
    masks: list[Tensor | None] = [None] * len(lengths)
    if not _everything_allowed(plan):
        for window, (start, length) in enumerate(zip(starts, lengths, strict=False)):
            rows = torch.arange(start, start + length, device=plan.modality.device)[None]
            masks[window] = F.pad(_allowed(plan, rows)[0], (0, shared[owners[window]]), value=True)

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        views = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        return F.scaled_dot_product_attention(*views, attn_mask=mask)[0].transpose(0, 1)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # Splitting once keeps the backward linear; slices would each fill a gradient of the whole batch.
        qs, ks, vs = (x.split([*lengths, *shared]) for x in (q, k, v))
        tail, parts = len(lengths), []
        for window in range(tail):
            of = tail + owners[window]
            key, value = ks[window], vs[window]
            if shared[owners[window]]:
                key, value = torch.cat([key, ks[of]]), torch.cat([value, vs[of]])
            parts.append(attend(qs[window], key, value, masks[window]))
        for meeting, count in enumerate(shared):
            if count:
                theirs = [*range(meetings[meeting], meetings[meeting + 1]), tail + meeting]
                keys, values = (torch.cat([x[at] for at in theirs]) for x in (ks, vs))
                parts.append(attend(qs[tail + meeting], keys, values))
        return torch.cat(parts)

    return run


def flex(plan: Plan) -> Attention:
    """FlexAttention, compiled, with a block mask."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    content, device = int(plan.window_starts[-1]), plan.window_starts.device
    lengths = (plan.window_starts[1:] - plan.window_starts[:-1]).long()
    shared = (plan.global_starts[1:] - plan.global_starts[:-1]).long()
    window = torch.repeat_interleave(torch.arange(len(lengths), device=device), lengths)
    owner = torch.repeat_interleave(torch.arange(len(shared), device=device), shared)
    meeting = torch.cat([plan.window_meeting.long()[window], owner])
    place = torch.cat([window, torch.full_like(owner, -1)])
    looks = torch.cat([plan.allow.long()[plan.modality.long()], torch.zeros_like(owner)])
    kinds = torch.cat([plan.modality.long(), torch.zeros_like(owner)])

    def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        inside = (place[i] == place[j]) & (((looks[i] >> kinds[j]) & 1) == 1)
        return (inside | (i >= content) | (j >= content)) & (meeting[i] == meeting[j]) | (i == j)

    blocks = create_block_mask(sees, None, None, plan.tokens, plan.tokens, device=device)
    compiled = torch.compile(flex_attention)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = compiled(*(x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)), block_mask=blocks)
        return out[0].transpose(0, 1)

    return run


RIVALS: Final[Mapping[str, Callable[[Plan], Attention]]] = {
    "dense_masked": dense_masked,
    "windowed_sdpa": windowed,
    "padded": padded,
    "loop": loop,
    "flex": flex,
}


def _lengths(plan: Plan) -> list[int]:
    lengths: list[int] = (plan.window_starts[1:] - plan.window_starts[:-1]).tolist()
    return lengths


def _everything_allowed(plan: Plan) -> bool:
    full = (1 << len(plan.allow)) - 1
    return all(mask == full for mask in plan.allow.tolist())


def _padded_rows(spans: list[tuple[int, int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of spans, 0 beyond their ends, and where a row is one."""
    at = torch.tensor(spans, device=device).reshape(-1, 2)
    longest = max((b - a for a, b in spans), default=0)
    rows = at[:, :1] + torch.arange(longest, device=device)
    there = rows < at[:, 1:]
    return rows.where(there, rows.new_zeros(())), there


def _allowed(plan: Plan, rows: Tensor) -> Tensor:
    """(windows, longest, longest): what the table allows, and every token itself."""
    kinds = plan.modality.long()[rows]
    by_table = (plan.allow.long()[kinds][:, :, None] >> kinds[:, None, :]) & 1 == 1
    same: Tensor = by_table | torch.eye(rows.shape[1], dtype=torch.bool, device=rows.device)
    return same
