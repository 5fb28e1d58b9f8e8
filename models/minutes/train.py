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
from models.minutes.examples import Example, Meeting, Targets, repeated, shuffled, targets_of
from models.minutes.held_out import AHEAD, Raw, newest_lines
from models.minutes.inputs import ALLOWED, GLOBALS, MODALITIES, WINDOW, Floats, Layout, feeds
from models.minutes.network import MinutesNetwork, NetworkSettings
from models.minutes.scores import HEADS, Outputs, due_of

_AUXILIARY: Final = {"summary": 0.5, "answer": 0.5, "problem": 0.2, "abstract": 0.2}
_NO_PIECES: Final[Floats] = np.zeros(0, np.float32)
_RESEARCH: Final = ("ami", "icsi")


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How long and on how much of each source an epoch runs.

    ``research`` windows of research meetings are drawn anew for each epoch, for there are far more of them than of
    everyday talk: a quarter among those with an action, a quarter among those with a decision. ``heard`` is the share
    of windows with a recogniser's errors that an epoch takes.
    """

    epochs: int = 7
    batch: int = 24
    rate: float = 1.5e-3
    decay: float = 0.05
    research: int = 1400
    heard: float = 0.3
    positive: float = 3.0
    seed: int = 0
    repeats: int = 3
    """Promises of a batch that are heard once more."""
    monotone: float = 0.1
    """Weight of what such a promise loses."""


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
    everyday = [
        Example(m, i) for m in meetings if m.truth.source not in (*_RESEARCH, "heard") for i in m.windows
    ]
    heard = [Example(m, i) for m in meetings if m.truth.source == "heard" for i in m.windows]
    research = [Example(m, i) for m in meetings if m.truth.source in _RESEARCH for i in m.windows]
    fruitful = [[e for e in research if _has(e, head)] for head in (0, 1)]
    count = min(settings.research, len(research))
    errors = round(settings.heard * len(heard))
    size = len(everyday) + errors + count
    steps = settings.epochs * -(-size // settings.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=steps + 1)
    for epoch in range(settings.epochs):
        begun, total, seen = time.perf_counter(), 0.0, 0
        some = [e for kind in fruitful for e in chance.sample(kind, min(len(kind), count // 4))]
        drawn = everyday + chance.sample(heard, errors) + some + chance.sample(research, count - len(some))
        net.train()
        for part in shuffled(drawn, settings.batch, chance):
            loss = _batch_loss(net, part, layout, settings, chance)
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


def _batch_loss(
    net: MinutesNetwork, part: list[Example], layout: Layout, settings: TrainSettings, chance: random.Random
) -> Tensor:
    """Loss of a batch; some of its promises are heard a second time, which must not make them less sure."""
    again = _promises(part, settings.repeats, chance)
    windows = [e.window for e in part]
    given = feeds([*windows, *(repeated(part[i], line) for i, line in again)], layout)
    heads, owner, joins, due = net(tensors_of(given), plan_of(given))
    rows = np.cumsum([0, *(len(w.utterances) for w in windows)])
    pieces = sum(len(t.text) for w in windows for t in w.utterances if len(t.text) > 1)
    count, everything = int(rows[-1]), len(heads)
    dues = torch.cat([due[:count], due[everything : everything + pieces]])
    mine = (heads[:count], owner[:count], joins[:count], dues)
    loss = loss_of(mine, targets_of(part), settings.positive)
    first = count
    for i, line in again:
        size, place = len(windows[i].utterances), line - part[i].oldest
        moved = place - (1 if size == WINDOW else 0)
        newest = first + (size if size < WINDOW else WINDOW - 1)
        before = heads[int(rows[i]) + place, 0]
        lost = (before - heads[first + moved, 0]).relu() + (before - heads[newest, 0]).relu()
        loss = loss + settings.monotone * lost / len(again)
        first = newest + 1
    return loss


def _promises(part: list[Example], count: int, chance: random.Random) -> list[tuple[int, int]]:
    """Some lines of a batch that are part of an action: (example, line)."""
    found = [
        (i, line)
        for i, e in enumerate(part)
        for line in range(e.oldest + 1, e.newest + 1)
        if e.meeting.truth.labels[line, 0] > 0
    ]
    return chance.sample(found, min(count, len(found)))


def _has(example: Example, head: int) -> bool:
    labels = example.meeting.truth.labels[example.oldest : example.newest + 1, head]
    return bool((labels > 0).any())


def scores(net: MinutesNetwork, meeting: Meeting, layout: Layout, batch: int = 32) -> Raw:
    """Raw outputs of every line with each number of utterances after it (fewer at the end of the meeting).

    Where the meeting has no window that ends just there, the next one counts.
    """
    lines, ends = range(len(meeting.told)), sorted(meeting.windows)
    newest = newest_lines(len(lines), meeting.stride)
    raw = Raw(
        {a: np.zeros((len(lines), len(HEADS)), np.float32) for a in AHEAD},
        {a: np.zeros((len(lines), WINDOW + 2), np.float32) for a in AHEAD},
        {a: np.zeros((len(lines), WINDOW + 1), np.float32) for a in AHEAD},
        {a: [_NO_PIECES] * len(lines) for a in AHEAD},
        newest,
    )
    with torch.no_grad():
        for begin in range(0, len(ends), batch):
            part = [Example(meeting, int(end)) for end in ends[begin : begin + batch]]
            given = feeds([e.window for e in part], layout)
            found = Outputs(*(x.numpy() for x in net(tensors_of(given), plan_of(given))))
            row, piece = 0, len(found.heads)
            for example in part:
                for place, told in enumerate(example.window.utterances):
                    line = example.oldest + place
                    due, piece = due_of(found, row, piece, len(told.text))
                    for a in AHEAD:
                        if newest[a][line] == example.newest:
                            raw.heads[a][line], raw.due[a][line] = found.heads[row], due
                            raw.owner[a][line], raw.joins[a][line] = found.owner[row], found.joins[row]
                    row += 1
    return raw
