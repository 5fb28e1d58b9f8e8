"""Fractal attention the long way: one dense mask, float64, plain torch. What everything else is held against."""

import math

import torch
from torch import Tensor

from .plan import Plan


def dense_mask(plan: Plan) -> Tensor:
    """Who may attend to whom; shape (tokens, tokens), rows look, columns are seen."""
    content = int(plan.window_starts[-1])
    lengths = (plan.window_starts[1:] - plan.window_starts[:-1]).long()
    window = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    globals_ = (plan.global_starts[1:] - plan.global_starts[:-1]).long()
    owner = torch.repeat_interleave(torch.arange(len(globals_), device=lengths.device), globals_)
    meeting = torch.cat([plan.window_meeting.long()[window], owner])
    is_global = torch.arange(plan.tokens, device=lengths.device) >= content
    seen = torch.zeros(plan.tokens, plan.tokens, dtype=torch.bool, device=lengths.device)
    kinds = plan.modality.long()
    allowed = (plan.allow.long()[kinds][:, None] >> kinds[None, :]) & 1 == 1
    seen[:content, :content] = (window[:, None] == window[None, :]) & allowed
    seen |= (meeting[:, None] == meeting[None, :]) & (is_global[:, None] | is_global[None, :])
    return seen | torch.eye(plan.tokens, dtype=torch.bool, device=lengths.device)


def reference(
    query: Tensor, key: Tensor, value: Tensor, plan: Plan, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Output (tokens, heads, head_dim) and log-sum-exp (tokens, heads), both float64; autograd runs through it."""
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    q, k, v = (x.double().transpose(0, 1) for x in (query, key, value))
    scores = (q @ k.transpose(1, 2) * factor).masked_fill(~dense_mask(plan), -math.inf)
    lse = torch.logsumexp(scores, dim=-1)
    return (torch.exp(scores - lse[..., None]) @ v).transpose(0, 1), lse.transpose(0, 1)
