"""The released graph: the mean of the networks, and the linear model over words. Needs torch."""

import numpy as np
import torch
from torch import Tensor, nn

from kernels.plan import Plan
from models.minutes.inputs import WINDOW, Layout
from models.minutes.linear import ROLES, Linear
from models.minutes.network import Averaged
from models.minutes.scores import Mixture


class Words(nn.Module):  # type: ignore[misc]
    """The linear model over words and figures (:class:`models.minutes.linear.Linear`): (N, heads)."""

    table: Tensor
    figures: Tensor
    shift: Tensor
    share: Tensor

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        roles, heads, buckets = linear.words.shape
        self.heads = heads
        words = linear.words.transpose(2, 0, 1).reshape(buckets, roles * heads)
        figures = linear.figures.transpose(2, 0, 1).reshape(-1, roles * heads)
        share = np.zeros((roles, WINDOW, WINDOW), np.float32)
        for role, steps in enumerate(ROLES):
            for step in steps:
                # Places count from the newest line back: a later line has a smaller one.
                share[role] += np.eye(WINDOW, k=-step, dtype=np.float32) / len(steps)
        # Half precision keeps the graph small; the sums are made in single.
        self.register_buffer("table", torch.from_numpy(words.astype(np.float16)))
        self.register_buffer("figures", torch.from_numpy(figures.astype(np.float32)))
        self.register_buffer("shift", torch.from_numpy(linear.shift.astype(np.float32)))
        self.register_buffer("share", torch.from_numpy(share))

    def forward(self, given: dict[str, Tensor]) -> Tensor:
        grams, grid = given["grams"], given["grid"]
        several = (grams > 0).sum(dim=1, keepdim=True).clamp(min=1).to(torch.float32)
        said = self.table[grams].to(torch.float32).sum(dim=1) * several.rsqrt()
        cues = self.figures.shape[0] - 1
        said = said + given["utterance"][:, -cues:] @ self.figures[:cues] + self.figures[cues]
        there = (grid >= 0).to(torch.float32).unsqueeze(2)
        placed = (said[grid.clamp(min=0)] * there).reshape(-1, WINDOW, len(ROLES), self.heads)
        around = (self.share.unsqueeze(0) @ placed.transpose(1, 2)).sum(dim=1)
        told: Tensor = around.reshape(-1, self.heads)[given["cell"]] + self.shift
        return told


class Mixed(nn.Module):  # type: ignore[misc]
    """Network and linear model, each with a share of every head's logit."""

    of_network: Tensor
    of_words: Tensor

    def __init__(self, network: Averaged, words: Words, mixture: Mixture) -> None:
        super().__init__()
        self.network, self.words = network, words
        self.register_buffer("of_network", torch.tensor(mixture.network))
        self.register_buffer("of_words", torch.tensor(mixture.words))

    @property
    def allow(self) -> Tensor:
        """Allow table of the attention operator."""
        return self.network.allow

    @property
    def layout(self) -> Layout:
        """What goes in."""
        found: Layout = self.network.networks[0].layout
        return found

    def forward(self, given: dict[str, Tensor], plan: Plan) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As the network alone."""
        heads, *others = self.network(given, plan)
        return (heads * self.of_network + self.words(given) * self.of_words, *others)
