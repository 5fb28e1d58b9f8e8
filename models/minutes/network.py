"""The network: tokens of a window and of older talk, fractal attention over them, heads for each utterance.

Needs torch. What goes in is what :func:`models.minutes.inputs.feeds` makes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from kernels.api import attend
from kernels.plan import Plan, allow_table
from models.minutes.encoder import TEXT_WIDTH
from models.minutes.inputs import ALLOWED, GLOBALS, MODALITIES, WINDOW, Layout
from models.minutes.scores import HEADS

PLAN: Final = ("window_starts", "window_meeting", "meeting_windows", "global_starts", "modality")
"""Inputs that make the attention operator's plan."""

OUTPUTS: Final = ("heads", "owner", "joins", "due")


def inputs_of(layout: Layout) -> tuple[str, ...]:
    """Names of the graph's inputs, in its order."""
    senses = tuple(layout.widths)
    owners = (f"{name}_of" for name in senses)
    return (
        "utterance",
        "place",
        "spoken",
        "grams",
        "cell",
        *senses,
        *owners,
        "older",
        "order",
        "grid",
        *PLAN,
    )


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Size of the network."""

    width: int = 128
    layers: int = 2
    heads: int = 4
    hidden: int = 256
    dropout: float = 0.2
    text_dropout: float = 0.3

    def told(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class _Layer(nn.Module):  # type: ignore[misc]  # torch ships no types here
    """Attention and a feed-forward net, each on normalised input, added to what came in."""

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        width = settings.width
        self.heads = settings.heads
        self.before = nn.LayerNorm(width)
        self.look = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, settings.hidden), nn.GELU(), nn.Linear(settings.hidden, width)
        )
        self.drop = nn.Dropout(settings.dropout)

    def forward(self, x: Tensor, plan: Plan, gain: Tensor) -> Tensor:
        tokens, width = x.shape
        query, key, value = self.look(self.before(x)).chunk(3, dim=1)
        shape = (tokens, self.heads, width // self.heads)
        query, key, value = (part.reshape(shape).contiguous() for part in (query, key, value))
        seen = attend(query, key, value, plan)
        x = x + self.drop(self.out(seen.reshape(tokens, width) * gain))
        added: Tensor = x + self.drop(self.feed(self.between(x)))
        return added


class MinutesNetwork(nn.Module):  # type: ignore[misc]
    """Scores all utterances of each window; those near its new edge have seen little after them."""

    allow: Tensor
    gain: Tensor

    def __init__(self, layout: Layout, settings: NetworkSettings = NetworkSettings()) -> None:
        super().__init__()
        self.layout, self.settings = layout, settings
        width = settings.width
        self.utterance = nn.Linear(layout.core, width)
        self.place = nn.Embedding(WINDOW, width)
        self.sense = nn.ModuleDict({name: nn.Linear(size, width) for name, size in layout.widths.items()})
        self.spoken = nn.Linear(TEXT_WIDTH, width)
        self.older = nn.Linear(layout.older, width)
        self.kinds = nn.Parameter(torch.zeros(len(MODALITIES), width))
        self.globals_ = nn.Parameter(torch.randn(GLOBALS, width) * 0.1)
        self.drop_text = nn.Dropout(settings.text_dropout)
        self.layers = nn.ModuleList(_Layer(settings) for _ in range(settings.layers))
        self.last = nn.LayerNorm(width)
        self.told = nn.Linear(width, len(HEADS))
        self.direct = nn.Linear(layout.core, len(HEADS))
        self.due = nn.Linear(width, 1)
        self.points = nn.ModuleDict(
            {name: _Pointer(width, extra) for name, extra in (("owner", 2), ("joins", 1))}
        )
        self.register_buffer("allow", torch.tensor(allow_table(len(MODALITIES), ALLOWED), dtype=torch.int32))
        self.register_buffer("gain", torch.ones(1))
        """0 takes the attention's part out of every layer: for ablation."""

    def forward(self, given: dict[str, Tensor], plan: Plan) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logits as :class:`models.minutes.scores.Outputs` describes them."""
        core = self.utterance(given["utterance"]) + self.place(given["place"])
        parts = [core + self.drop_text(self.spoken(given["spoken"])) + self.kinds[0]]
        for name, sense in self.sense.items():
            read = sense(given[name])
            parts.append(
                (self.drop_text(read) if name == "text" else read)
                + core[given[f"{name}_of"]]
                + self.kinds[MODALITIES.index(name)]
            )
        parts.append(self.older(given["older"]) + self.kinds[5])
        order = given["order"]
        windows = given["grid"].shape[0]
        x = torch.cat([torch.cat(parts)[order], self.globals_.repeat(windows, 1)])
        for layer in self.layers:
            x = layer(x, plan, self.gain)
        count = order.shape[0]
        back = torch.zeros_like(order).scatter(0, order, torch.arange(count, device=order.device))
        states = self.last(x[:count][back])
        said = states[: core.shape[0]]
        pieces = states[core.shape[0] : core.shape[0] + given["text"].shape[0]]
        grid, cell = given["grid"], given["cell"]
        return (
            self.told(said) + self.direct(given["utterance"]),
            self.points["owner"](said, grid, cell),
            self.points["joins"](said, grid, cell),
            self.due(torch.cat([said, pieces])).squeeze(1),
        )


class Averaged(nn.Module):  # type: ignore[misc]
    """Networks trained on different parts of the data, whose logits are averaged."""

    def __init__(self, networks: Sequence[MinutesNetwork]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    @property
    def allow(self) -> Tensor:
        """Allow table of the attention operator, the same in all of them."""
        found: Tensor = self.networks[0].allow
        return found

    def forward(self, given: dict[str, Tensor], plan: Plan) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As one network."""
        told = [net(given, plan) for net in self.networks]
        heads, owner, joins, due = (torch.stack(parts).mean(dim=0) for parts in zip(*told, strict=True))
        return heads, owner, joins, due


class _Pointer(nn.Module):  # type: ignore[misc]
    """Where in its window an utterance points to: (N, WINDOW + extra). ``extra`` columns stand for nowhere in it.

    One pointer says whose turn names the owner, the other which earlier utterance belongs to the same item (`extra`
    1: it looks back only).
    """

    beyond: Tensor
    later: Tensor

    def __init__(self, width: int, extra: int, size: int = 32) -> None:
        super().__init__()
        self.size = size
        self.query = nn.Linear(width, size)
        self.key = nn.Linear(width, size, bias=False)
        self.nowhere = nn.Linear(width, extra)
        self.steps = nn.Parameter(torch.zeros(2 * WINDOW - 1))
        place = torch.arange(WINDOW)
        self.register_buffer("beyond", place[None, :] - place[:, None] + WINDOW - 1, persistent=False)
        later = (
            place[None, :] <= place[:, None] if extra == 1 else torch.zeros(WINDOW, WINDOW, dtype=torch.bool)
        )
        self.register_buffer("later", later, persistent=False)

    def forward(self, said: Tensor, grid: Tensor, cell: Tensor) -> Tensor:
        rows = grid.clamp(min=0)
        query, key = self.query(said)[rows], self.key(said)[rows]
        scores = query @ key.transpose(1, 2) * self.size**-0.5 + self.steps[self.beyond]
        hidden = (grid < 0)[:, None, :] | self.later[None]
        scores = scores.masked_fill(hidden, -1e4).reshape(-1, WINDOW)
        return torch.cat([scores[cell], self.nowhere(said)], dim=1)
