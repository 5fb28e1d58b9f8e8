"""Meetings that were not trained on: which they are, how far ahead each line is heard, and what was found. No torch."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from models.minutes.corpora import UNKNOWN, Annotated
from models.minutes.inputs import Floats

AHEAD: Final = (0, 2, 8)
"""Utterances heard after the one that is scored: provisional, settled, final."""


@dataclass(frozen=True)
class Raw:
    """What the network returned for every line of a meeting, by utterances ahead."""

    heads: Mapping[int, Floats]
    owner: Mapping[int, Floats]
    joins: Mapping[int, Floats]
    due: Mapping[int, list[Floats]]
    newest: Mapping[int, npt.NDArray[np.int64]]
    """The newest line of the window in which each line was scored."""


def newest_lines(count: int, stride: int) -> dict[int, npt.NDArray[np.int64]]:
    """The newest line of the window in which each of ``count`` lines is scored, by utterances ahead, where windows end
    at every ``stride``-th line and at the last one: the first that has heard so many, as far as the meeting goes."""
    ends = np.array([at for at in range(count) if (at + 1) % stride == 0 or at == count - 1], np.int64)
    lines = np.arange(count)
    return {ahead: ends[np.searchsorted(ends, np.minimum(lines + ahead, count - 1))] for ahead in AHEAD}


def folds_of(meetings: Sequence[Annotated], count: int, seed: int) -> dict[str, int]:
    """Which fold each group of meetings is held out in; every source is spread over all folds."""
    out: dict[str, int] = {}
    for source in sorted({m.source for m in meetings}):
        groups = sorted({m.group for m in meetings if m.source == source} - out.keys())
        random.Random(f"{seed}:{source}").shuffle(groups)
        out |= {group: number % count for number, group in enumerate(groups)}
    return out


def labels_at(truth: Annotated, ahead: int) -> npt.NDArray[np.int8]:
    """Labels as they stand when so many utterances were heard after each line."""
    labels = truth.labels.copy()
    for awaits in truth.awaits:
        if awaits.until > awaits.line + ahead:
            labels[awaits.line, awaits.head] = UNKNOWN
    return labels
