"""Windows with what the network should say of them."""

import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from models.minutes.corpora import UNKNOWN, Annotated
from models.minutes.encoder import pieces_of
from models.minutes.inputs import WINDOW, Context, Floats, Told, Window
from models.minutes.scores import ELSEWHERE, NOBODY
from models.minutes.vectors import VectorTable
from models.minutes.words import grams_of

CueTable = Mapping[tuple[str, str], tuple[float, ...]]
"""Figures of the rules by meeting and utterance."""

_NEAR_START: Final = 6
_CUT_OFF_WEIGHT: Final = 0.3
"""A line at the old edge of a window lacks what came before; at its new edge, what comes after belongs to the task."""


def read_cues(paths: Iterable[Path]) -> tuple[tuple[str, ...], CueTable]:
    """Names of the figures, and those of every utterance, from files that ``benchmarks.cues`` wrote.

    Raises:
        OSError, ValueError, KeyError: a file is missing, of another form, or names other figures than the first.
    """
    names: tuple[str, ...] = ()
    table: dict[tuple[str, str], tuple[float, ...]] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                told = json.loads(line)
                if names and tuple(told["names"]) != names:
                    raise ValueError(f"{path}: other figures than in the files before it")
                names = tuple(told["names"])
                for id_, row in zip(told["ids"], told["cues"], strict=True):
                    table[told["meeting"], id_] = tuple(row)
    return names, table


@dataclass(frozen=True)
class Meeting:
    """A meeting ready for the network: what it reads at each line, and the truth."""

    truth: Annotated
    told: tuple[Told, ...]
    windows: Mapping[int, Window]
    """By the newest line."""
    stride: int = 1
    """Lines between two windows; the last line always has one."""


def meeting_of(truth: Annotated, vectors: VectorTable, cues: CueTable, stride: int = 1) -> Meeting:
    """Windows that end at every ``stride``-th line and at the last one.

    Raises:
        KeyError: text that was never encoded, or an utterance without figures.
    """
    told = tuple(
        Told(
            line.speaker,
            len(line.text.split()),
            vectors.of(line.text),
            cues[truth.name, line.id],
            grams=grams_of(line.text),
        )
        for line in truth.lines
    )
    context, windows = Context(), {}
    for index, one in enumerate(told):
        context = context.heard(one)
        if (index + 1) % stride == 0 or index == len(told) - 1:
            windows[index] = context.window()
    return Meeting(truth, told, windows, stride)


@dataclass(frozen=True, slots=True)
class Example:
    """A window of a meeting that ends at a line."""

    meeting: Meeting
    newest: int

    @property
    def window(self) -> Window:
        """What the network reads."""
        return self.meeting.windows[self.newest]

    @property
    def oldest(self) -> int:
        """Line of the window's first utterance."""
        return self.newest + 1 - len(self.window.utterances)


@dataclass(frozen=True)
class Targets:
    """What the network should say of a batch, by rows of its outputs. ``UNKNOWN`` is -1."""

    labels: Floats
    """(N, heads)"""
    weights: Floats
    """(N,)"""
    owner: Floats
    """(N, WINDOW + 2): 1 where the pointer may point; all 0 where the owner is not known."""
    joins: Floats
    """(N, WINDOW + 1)"""
    due: Floats
    """(N + pieces of utterances that have several,)"""


def targets_of(examples: Sequence[Example]) -> Targets:
    """Targets of a batch."""
    labels, weights, owner, joins, due, parts = [], [], [], [], [], []
    for example in examples:
        truth = example.meeting.truth
        first, last = example.oldest, example.newest
        mine = truth.labels[first : last + 1].astype(np.float32)
        for awaits in truth.awaits:
            if first <= awaits.line <= last < awaits.until:
                mine[awaits.line - first, awaits.head] = UNKNOWN
        labels.append(mine)
        weight = truth.weights[first : last + 1].copy()
        if first > 0:
            weight[:_NEAR_START] *= _CUT_OFF_WEIGHT
        weights.append(weight)
        for line in range(first, last + 1):
            owner.append(_owner(truth, line, first, last))
            joins.append(_joins(truth, line, first, last))
            told = _due(truth, line)
            due.append(told.max())
            if len(told) > 1:
                parts.append(told)
    return Targets(
        np.concatenate(labels),
        np.concatenate(weights),
        np.stack(owner),
        np.stack(joins),
        np.concatenate([np.array(due, np.float32), *parts]),
    )


def _owner(truth: Annotated, line: int, first: int, last: int) -> Floats:
    out = np.zeros(WINDOW + 2, np.float32)
    owner = truth.owners.get(line)
    if owner is None:
        return out
    if owner == NOBODY:
        out[WINDOW] = 1
        return out
    if owner != ELSEWHERE:
        for other in range(first, last + 1):
            out[last - other] = truth.lines[other].speaker == owner
    if not out.any():
        out[WINDOW + 1] = 1
    return out


def _joins(truth: Annotated, line: int, first: int, last: int) -> Floats:
    out = np.zeros(WINDOW + 1, np.float32)
    mine = set(truth.items.get(line, ()))
    if not mine:
        return out
    for other in range(first, line):
        out[last - other] = bool(mine & set(truth.items.get(other, ())))
    if not out.any():
        out[WINDOW] = 1
    return out


@lru_cache(maxsize=1 << 20)
def _pieces(text: str) -> tuple[str, ...]:
    return pieces_of(text)


def _due(truth: Annotated, line: int) -> Floats:
    pieces = _pieces(truth.lines[line].text)
    words = truth.dues.get(line)
    if words is None:
        # Research corpora annotate no dates; in everyday scripts, what is part of an item and has no date has none.
        return np.full(len(pieces), 0.0 if line in truth.owners else UNKNOWN, np.float32)
    return np.array([words.lower() in piece.lower() for piece in pieces], np.float32)


def repeated(example: Example, line: int) -> Window:
    """The same window when its speaker says a line of it once more, word by word."""
    said = example.window.utterances
    again = said[line - example.oldest]
    kept = said[1:] if len(said) == WINDOW else said
    return Window((*kept, again), example.window.older)


def shuffled(examples: Sequence[Example], size: int, chance: random.Random) -> Iterable[list[Example]]:
    """Batches in an order of chance."""
    order = list(examples)
    chance.shuffle(order)
    return (order[begin : begin + size] for begin in range(0, len(order), size))
