"""Training of the network on windows of all sources, and its scores of meetings it has not seen. Needs torch."""

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernels.plan import Plan, allow_table, plan
from models.minutes.calibrate import Raw
from models.minutes.examples import Example, Meeting, Targets, batches
from models.minutes.inputs import ALLOWED, GLOBALS, MODALITIES, WINDOW, Floats, Layout
from models.minutes.network import MinutesNetwork, NetworkSettings
from models.minutes.scores import HEADS

_AUXILIARY: Final = {"summary": 0.5, "answer": 0.5, "problem": 0.2, "abstract": 0.2}
_NO_PIECES: Final[Floats] = np.zeros(0, np.float32)
_RESEARCH: Final = ("ami", "icsi")


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How long and on how much of each source an epoch runs.

    ``research`` windows of research meetings are drawn anew for each epoch, half of them among those with an
    action or a decision: there are far more of them than of everyday talk.
    """

    epochs: int = 12
    batch: int = 24
    rate: float = 1.5e-3
    decay: float = 0.05
    research: int = 1500
    everyday_repeats: int = 1
    positive: float = 3.0
    seed: int = 0


def plan_of(given: dict[str, npt.NDArray[np.generic]]) -> Plan:
    """The attention operator's plan of a batch."""
    starts = given["window_starts"]
    return plan(
        np.diff(starts).tolist(),
        given["window_meeting"].tolist(),
        [GLOBALS] * len(given["grid"]),
        given["modality"].tolist(),
        allow_table(len(MODALITIES), ALLOWED),
    )


def tensors_of(given: dict[str, npt.NDArray[np.generic]]) -> dict[str, Tensor]:
    """The same arrays for torch."""
    return {name: torch.from_numpy(array) for name, array in given.items()}


def loss_of(outputs: Sequence[Tensor], targets: Targets, positive: float) -> Tensor:
    """Cross-entropy of all heads over what is known."""
    heads, owner, joins, due = outputs
    labels, weights = torch.from_numpy(targets.labels), torch.from_numpy(targets.weights)[:, None]
    known = (labels >= 0).float() * weights
    known = known * torch.tensor([_AUXILIARY.get(name, 1.0) for name in HEADS])
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        heads, labels.clamp(min=0), reduction="none", pos_weight=torch.full((len(HEADS),), positive)
    )
    total: Tensor = (each * known).sum() / known.sum().clamp(min=1)
    for logits, target in ((owner, targets.owner), (joins, targets.joins)):
        total = total + 0.05 * _pointing(logits, torch.from_numpy(target))
    told = torch.from_numpy(targets.due)
    there = told >= 0
    if bool(there.any()):
        total = total + 0.05 * torch.nn.functional.binary_cross_entropy_with_logits(due[there], told[there])
    return total


def _pointing(logits: Tensor, target: Tensor) -> Tensor:
    """Negative logarithm of the probability that the pointer points to one of the right places."""
    known = target.sum(dim=1) > 0
    if not bool(known.any()):
        return logits.sum() * 0
    share = torch.log_softmax(logits[known], dim=1).masked_fill(target[known] == 0, float("-inf"))
    found: Tensor = -torch.logsumexp(share, dim=1).mean()
    return found


def fit(
    meetings: Sequence[Meeting], layout: Layout, network: NetworkSettings, settings: TrainSettings
) -> MinutesNetwork:
    """Train a network on these meetings."""
    torch.manual_seed(settings.seed)
    chance = random.Random(settings.seed)
    net = MinutesNetwork(layout, network)
    optimiser = torch.optim.AdamW(net.parameters(), settings.rate, weight_decay=settings.decay)
    everyday = [Example(m, i) for m in meetings if m.truth.source not in _RESEARCH for i in m.windows]
    research = [Example(m, i) for m in meetings if m.truth.source in _RESEARCH for i in m.windows]
    fruitful = [e for e in research if _has_item(e)]
    count = min(settings.research, len(research))
    size = len(everyday) * settings.everyday_repeats + count
    steps = settings.epochs * -(-size // settings.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps + 1)
    for epoch in range(settings.epochs):
        begun, total, seen = time.perf_counter(), 0.0, 0
        some = chance.sample(fruitful, min(len(fruitful), count // 2))
        drawn = everyday * settings.everyday_repeats + some + chance.sample(research, count - len(some))
        net.train()
        for _, given, targets in batches(drawn, layout, settings.batch, chance):
            loss = loss_of(net(tensors_of(given), plan_of(given)), targets, settings.positive)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, seen = total + float(loss.detach()), seen + 1
        took = time.perf_counter() - begun
        print(
            f"epoch {epoch + 1}: loss {total / max(1, seen):.4f}, {took:.0f} s", file=sys.stderr, flush=True
        )
    net.eval()
    return net


def _has_item(example: Example) -> bool:
    labels = example.meeting.truth.labels[example.oldest : example.newest + 1, :2]
    return bool((labels > 0).any())


def scores(
    net: MinutesNetwork, meeting: Meeting, layout: Layout, ahead: Sequence[int], batch: int = 32
) -> Raw:
    """Raw outputs of every line with each number of utterances after it (fewer at the end of the meeting).

    The meeting needs a window at every line.
    """
    count = len(meeting.told)
    raw = Raw(
        {a: np.zeros((count, len(HEADS)), np.float32) for a in ahead},
        {a: np.zeros((count, WINDOW + 2), np.float32) for a in ahead},
        {a: np.zeros((count, WINDOW + 1), np.float32) for a in ahead},
        {a: [_NO_PIECES] * count for a in ahead},
    )
    with torch.no_grad():
        for part, given, _ in batches([Example(meeting, i) for i in range(count)], layout, batch):
            heads, owner, joins, due = (x.numpy() for x in net(tensors_of(given), plan_of(given)))
            row = piece = 0
            for example in part:
                for place, told in enumerate(example.window.utterances):
                    line = example.oldest + place
                    for a in ahead:
                        if min(line + a, meeting.last) == example.newest:
                            raw.heads[a][line] = heads[row]
                            raw.owner[a][line], raw.joins[a][line] = owner[row], joins[row]
                            raw.due[a][line] = due[piece : piece + len(told.text)]
                    row, piece = row + 1, piece + len(told.text)
    return raw
