"""An expert that reads the words: the last layer of the text encoder, trained to judge. Needs torch.

The layers below stay as they are, so that at run time their states are there already. It learns from stretches of
talk, in which every line says something of those around it (:mod:`models.minutes.reading`).
"""

import math
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.minutes.corpora import RESEARCH, UNKNOWN, Annotated
from models.minutes.encoder import STATES, TEXT_WIDTH
from models.minutes.encoder_weights import LAYERS, Tensors, seven_bits
from models.minutes.held_out import AHEAD, labels_at
from models.minutes.inputs import Floats
from models.minutes.reading import ROLES, TABLE
from models.minutes.scores import HEADS

HEADS_OF_ATTENTION: Final = 12
WIDTH: Final = 160
SCALE: Final = 8.0
"""Length of the mean and of the maximum over a piece's tokens."""
_AUXILIARY: Final = {"summary": 0.5, "answer": 0.5, "problem": 0.2, "abstract": 0.2}
_CUT_OFF: Final = 5
_CUT_OFF_WEIGHT: Final = 0.3
"""Lines at the old edge of a stretch lack what came before."""
_LINES_A_STEP: Final = 80

States = Callable[[str], Sequence[npt.NDArray[np.float16]]]
"""States (tokens, ``STATES``) of a text's pieces, before the last layer."""


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """How it is trained. ``rate`` is that of the layer, ``head_rate`` that of what is new; an epoch takes
    ``research`` stretches of research meetings, a quarter with an action and a quarter with a decision in them."""

    epochs: int = 3
    rate: float = 1e-4
    head_rate: float = 1e-3
    decay: float = 0.05
    stretch: int = 32
    batch: int = 3
    research: int = 150
    dropout: float = 0.2
    layer_dropout: float = 0.1
    positive: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.rate, self.head_rate, self.stretch, self.batch) <= 0:
            raise ValueError("settings of the reader must be above zero")


class Reader(nn.Module):  # type: ignore[misc]  # torch ships no types here
    """One layer, and from its states the table of each piece of text."""

    def __init__(self, weights: Tensors, settings: ReaderSettings = ReaderSettings()) -> None:
        """``weights`` are those of :func:`models.minutes.encoder_weights.weights_of`."""
        super().__init__()
        layer = f"{LAYERS - 1}"
        self.dropout, self.layer_dropout = settings.dropout, settings.layer_dropout
        for part in ("mixed", "out", "up", "down"):
            matrix = weights[f"{layer}.{part}"].astype(np.float32) * weights[f"{layer}.{part}.scale"].astype(
                np.float32
            )
            linear = nn.Linear(*matrix.shape)
            linear.weight.data = torch.from_numpy(np.ascontiguousarray(matrix.T))
            linear.bias.data = torch.from_numpy(weights[f"{layer}.{part}.bias"].astype(np.float32))
            setattr(self, part, linear)
        for part in ("heard", "said"):
            norm = nn.LayerNorm(STATES, 1e-12)
            norm.weight.data = torch.from_numpy(weights[f"{layer}.{part}.weight"].astype(np.float32))
            norm.bias.data = torch.from_numpy(weights[f"{layer}.{part}.bias"].astype(np.float32))
            setattr(self, part, norm)
        self.hidden = nn.Linear(TEXT_WIDTH, WIDTH)
        self.roles = nn.Linear(WIDTH, TABLE)
        self.plain = nn.Linear(TEXT_WIDTH, len(HEADS))
        nn.init.zeros_(self.plain.weight)

    def forward(self, states: Tensor, sizes: npt.NDArray[np.int64]) -> Tensor:
        """(pieces, ``TABLE``) of states (tokens, ``STATES``) of pieces that lie one after the other."""
        starts = np.concatenate([[0], np.cumsum(sizes)])
        there = np.arange(sizes.max())[None] < sizes[:, None]
        rows = torch.from_numpy(np.where(there, starts[:-1, None] + np.arange(sizes.max()), 0))
        back, mask = torch.from_numpy(np.flatnonzero(there)), torch.from_numpy(there)
        found = self._layer(states, rows, back, mask).float()[rows]
        seen = mask[..., None]
        mean = (found * seen).sum(dim=1) / seen.sum(dim=1)
        most = found.masked_fill(~seen, -1e4).amax(dim=1)
        vector = torch.cat([functional.normalize(part, dim=1) for part in (mean, most)], dim=1) * SCALE
        vector = self._dropped(vector, self.dropout)
        inner = self._dropped(functional.gelu(self.hidden(vector)), self.dropout)
        table = self.roles(inner)
        own = functional.pad(self.plain(vector), (0, TABLE - len(HEADS)))
        told: Tensor = table + own
        return told

    def _layer(self, states: Tensor, rows: Tensor, back: Tensor, mask: Tensor) -> Tensor:
        pieces, longest = rows.shape
        mixed = self.mixed(states)[rows].view(pieces, longest, 3, HEADS_OF_ATTENTION, -1)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        flat = seen.transpose(1, 2).reshape(pieces * longest, STATES)[back]
        state = self.heard(states + self._dropped(self.out(flat), self.layer_dropout))
        inner = self.down(functional.gelu(self.up(state)))
        told: Tensor = self.said(state + self._dropped(inner, self.layer_dropout))
        return told

    def _dropped(self, value: Tensor, share: float) -> Tensor:
        out: Tensor = functional.dropout(value, share, self.training)
        return out


def kept_of(reader: Reader) -> Tensors:
    """Weights as they are released: matrices of the layer in 7 bits and a factor for each column."""
    out: Tensors = {}
    for part in ("mixed", "out", "up", "down", "hidden"):
        linear = getattr(reader, part)
        out[part], out[f"{part}.scale"] = seven_bits(linear.weight.detach().numpy().T.copy())
        out[f"{part}.bias"] = linear.bias.detach().numpy()
    for part in ("heard", "said"):
        norm = getattr(reader, part)
        out[f"{part}.weight"], out[f"{part}.bias"] = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    for part in ("roles", "plain"):
        linear = getattr(reader, part)
        out[f"{part}.weight"] = linear.weight.detach().numpy().T.copy()
        out[f"{part}.bias"] = linear.bias.detach().numpy()
    return out


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some consecutive lines of a meeting."""

    meeting: Annotated
    first: int
    last: int

    def has(self, head: int) -> bool:
        """Whether something of this kind is said in it."""
        return bool((self.meeting.labels[self.first : self.last + 1, head] > 0).any())


def fit(meetings: Sequence[Annotated], states: States, weights: Tensors, settings: ReaderSettings) -> Reader:
    """Train a reader on these meetings."""
    torch.manual_seed(settings.seed)
    chance = random.Random(settings.seed)
    reader = Reader(weights, settings)
    known = {m.name: np.stack([labels_at(m, ahead) for ahead in AHEAD]) for m in meetings}
    fresh = [p for name, p in reader.named_parameters() if name.split(".")[0] in ("hidden", "roles", "plain")]
    new = {id(p) for p in fresh}
    old = [p for p in reader.parameters() if id(p) not in new]
    optimiser = torch.optim.AdamW(
        [{"params": fresh, "lr": settings.head_rate}, {"params": old, "lr": settings.rate}],
        weight_decay=settings.decay,
    )
    # How many stretches an epoch has differs with where they begin.
    steps = settings.epochs * (len(_drawn(meetings, settings, random.Random(0))) // settings.batch + 4)
    schedule = _warm_then_falling(optimiser, steps)
    for epoch in range(settings.epochs):
        begun, total, seen = time.perf_counter(), 0.0, 0
        drawn = _drawn(meetings, settings, chance)
        reader.train()
        for begin in range(0, len(drawn), settings.batch):
            loss = _loss(reader, drawn[begin : begin + settings.batch], states, known, settings, chance)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, seen = total + float(loss.detach()), seen + 1
        took = time.perf_counter() - begun
        print(
            f"epoch {epoch + 1}: loss {total / max(1, seen):.4f}, {took:.0f} s", file=sys.stderr, flush=True
        )
    reader.eval()
    return reader


def _warm_then_falling(
    optimiser: torch.optim.Optimizer, steps: int, warm: float = 0.2
) -> torch.optim.lr_scheduler.LambdaLR:
    """A rate that rises over the first steps and falls to nothing over the others, along a cosine."""
    rising = max(1, round(warm * steps))

    def share(step: int) -> float:
        if step < rising:
            return 0.04 + 0.96 * (1 - math.cos(math.pi * step / rising)) / 2
        return (1 + math.cos(math.pi * min(1.0, (step - rising) / max(1, steps - rising)))) / 2

    return torch.optim.lr_scheduler.LambdaLR(optimiser, share)


def _drawn(meetings: Sequence[Annotated], settings: ReaderSettings, chance: random.Random) -> list[Stretch]:
    """Stretches of an epoch in an order of chance; where they begin differs from epoch to epoch."""
    everyday: list[Stretch] = []
    research: list[Stretch] = []
    for meeting in meetings:
        count, size = len(meeting.lines), settings.stretch
        for begin in range(chance.randrange(size) - size, count, size):
            first, last = max(0, begin), min(count, begin + size) - 1
            if last - first >= 3 or count <= size:
                kind = research if meeting.source in RESEARCH else everyday
                kind.append(Stretch(meeting, first, last))
    wanted = min(settings.research, len(research))
    some: list[Stretch] = []
    for head in (0, 1):
        fruitful = [one for one in research if one.has(head)]
        some += chance.sample(fruitful, min(len(fruitful), wanted // 4))
    drawn = everyday + some + chance.sample(research, wanted - len(some))
    drawn = [one for one in drawn if one.last >= one.first]
    chance.shuffle(drawn)
    return drawn


def _loss(
    reader: Reader,
    part: Sequence[Stretch],
    states: States,
    known: Mapping[str, npt.NDArray[np.int8]],
    settings: ReaderSettings,
    chance: random.Random,
) -> Tensor:
    """Cross-entropy over what is known of some stretches, each line heard with a number of lines after it that
    chance draws."""
    pieces = [states(line.text) for one in part for line in one.meeting.lines[one.first : one.last + 1]]
    with torch.autocast("cpu", torch.bfloat16):
        tables = _tables(reader, pieces)
    total, at = torch.zeros(()), 0
    emphasis = torch.tensor([_AUXILIARY.get(name, 1.0) for name in HEADS])
    for one in part:
        count = one.last - one.first + 1
        drawn = np.array([chance.randrange(len(AHEAD)) for _ in range(count)])
        logits = torch.einsum(
            "rij,jrh->ih",
            torch.from_numpy(_shares(count, np.array(AHEAD)[drawn])),
            tables[at : at + count].view(count, len(ROLES), len(HEADS)),
        )
        at += count
        labels = torch.from_numpy(
            known[one.meeting.name][drawn, np.arange(one.first, one.last + 1)].astype(np.float32)
        )
        weight = one.meeting.weights[one.first : one.last + 1].copy()
        if one.first > 0:
            weight[:_CUT_OFF] *= _CUT_OFF_WEIGHT
        counts = (labels != UNKNOWN).float() * torch.from_numpy(weight)[:, None] * emphasis
        each = functional.binary_cross_entropy_with_logits(
            logits,
            labels.clamp(min=0),
            reduction="none",
            pos_weight=torch.full((len(HEADS),), settings.positive),
        )
        total = total + (each * counts).sum() / _LINES_A_STEP
    return total


def _tables(reader: Reader, texts: Sequence[Sequence[npt.NDArray[np.float16]]]) -> Tensor:
    """(texts, ``TABLE``): sums over the pieces of each, by the root of how many they are."""
    pieces = [piece for text in texts for piece in text]
    sizes = np.array([len(piece) for piece in pieces])
    found = reader(torch.from_numpy(np.concatenate(pieces).astype(np.float32)), sizes).float()
    counts = np.array([len(text) for text in texts])
    owner = torch.from_numpy(np.repeat(np.arange(len(texts)), counts))
    summed = torch.zeros(len(texts), TABLE).index_add(0, owner, found)
    return summed * torch.from_numpy(counts.astype(np.float32) ** -0.5)[:, None]


def _shares(count: int, ahead: npt.NDArray[np.int64]) -> Floats:
    """(roles, lines, lines): how much each line counts for another in a role, where so many after it are heard."""
    out = np.zeros((len(ROLES), count, count), np.float32)
    lines = np.arange(count)
    for role, steps in enumerate(ROLES):
        for step in steps:
            there = (lines + step >= 0) & (lines + step < count) & (step <= ahead)
            out[role, lines[there], lines[there] + step] = 1 / len(steps)
    return out
