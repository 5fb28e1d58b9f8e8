"""A linear model over the words and the rules' figures of an utterance and of those around it.

It ranks rare things better than the network, which sees each of them too seldom; the network knows what words alone
do not tell. The released graph adds both. Everything an utterance contributes is a sum over its buckets and figures,
once for each role it may have: that of the line that is scored, of the line before or after it, or of talk around.
"""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp  # type: ignore[import-untyped]

from models.minutes.corpora import RESEARCH, UNKNOWN, Annotated
from models.minutes.examples import CueTable
from models.minutes.held_out import AHEAD, labels_at, newest_lines
from models.minutes.inputs import WINDOW, Floats
from models.minutes.scores import HEADS
from models.minutes.words import BUCKETS, grams_of

ROLES: Final[tuple[tuple[int, ...], ...]] = (
    (0,), (-1,), (1,), (-4, -3, -2), (2, 3, 4), (-11, -10, -9, -8, -7, -6, -5), (5, 6, 7, 8),
)  # fmt: skip
"""Steps from the line that is scored to those which play a role; their contributions are averaged, as if those
missing were silent."""

_RARITY: Final = {"action": 1.0}
_OTHER_RARITY: Final = 0.5
"""Power of how rare a word is with which it may count the more, by head; chosen by cross-validation."""

_NEAR: Final = 5
"""Lines of a research meeting so near to an item that all of them are read; of the others, some."""

Matrix = Any
"""A sparse matrix of scipy, which ships no types."""


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """How the weights are fitted.

    ``inverse_penalty`` as scikit-learn has it; ``research`` is how much all lines of a research corpus count together,
    against those of any other source; one in ``thinned`` of its lines far from any item is read, and counts for all.
    """

    inverse_penalty: float = 1.0
    research: float = 10.0
    thinned: int = 5
    iterations: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.inverse_penalty, self.research, self.thinned, self.iterations) <= 0:
            raise ValueError("settings of the linear model must be above zero")


@dataclass(frozen=True)
class Linear:
    """Weights: ``words`` (roles, heads, BUCKETS), ``figures`` (roles, heads, cues and one for being there),
    ``shift`` (heads,)."""

    words: Floats
    figures: Floats
    shift: Floats

    def write(self, path: Path) -> None:
        """As `read` takes it."""
        with path.open("wb") as out:
            np.savez(out, words=self.words.astype(np.float16), figures=self.figures, shift=self.shift)

    @classmethod
    def read(cls, path: Path) -> "Linear":
        """Raises: OSError, ValueError, KeyError: no weights of this kind."""
        with np.load(path) as kept:
            return cls(kept["words"].astype(np.float32), kept["figures"], kept["shift"])

    @classmethod
    def mean(cls, parts: Sequence["Linear"]) -> "Linear":
        """The model whose logits are the mean of theirs."""
        return cls(
            np.mean([p.words for p in parts], axis=0),
            np.mean([p.figures for p in parts], axis=0),
            np.mean([p.shift for p in parts], axis=0),
        )

    def logits(self, rows: Matrix) -> Floats:
        """(lines, heads) of what `rows_of` made."""
        parts = [
            np.concatenate([words, figures], axis=1)
            for words, figures in zip(self.words, self.figures, strict=True)
        ]
        found: Floats = np.asarray(rows @ np.concatenate(parts, axis=1).T + self.shift, np.float32)
        return found


def figures_of(truth: Annotated, cues: CueTable) -> Matrix:
    """What each line of a meeting contributes, (lines, BUCKETS + cues + 1)."""
    grams = [grams_of(line.text) for line in truth.lines]
    sizes = np.array([len(g) for g in grams])
    weights = np.repeat(np.sqrt(1.0 / np.maximum(sizes, 1)), sizes).astype(np.float32)
    at = np.concatenate([np.array(g, np.int64) for g in grams]) if len(grams) else np.zeros(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    words = sp.csr_matrix((weights, at, starts), shape=(len(grams), BUCKETS))
    rules = np.array([(*cues[truth.name, line.id], 1.0) for line in truth.lines], np.float32)
    return sp.hstack([words, sp.csr_matrix(rules)], format="csr")


def rows_of(figures: Matrix, newest: npt.NDArray[np.int64]) -> Matrix:
    """Rows of the linear model for all lines of a meeting, when ``newest`` is the last line heard at each."""
    lines = np.arange(figures.shape[0])
    parts = []
    for steps in ROLES:
        taken = []
        for step in steps:
            other = lines + step
            there = (other >= 0) & (other <= newest) & (other > newest - WINDOW)
            share = np.full(int(there.sum()), 1.0 / len(steps), np.float32)
            taken.append(sp.csr_matrix((share, (lines[there], other[there])), shape=(len(lines),) * 2))
        parts.append(sum(taken[1:], taken[0]) @ figures)
    return sp.hstack(parts, format="csr")


@dataclass(frozen=True)
class _Sample:
    """Lines to learn from."""

    rows: Matrix
    labels: npt.NDArray[np.int8]
    weights: npt.NDArray[np.float64]
    sources: npt.NDArray[np.str_]


def fit(meetings: Sequence[Annotated], cues: CueTable, settings: LinearSettings) -> Linear:
    """Weights from the meetings' lines, each heard with a number of utterances after it that chance draws."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    sample = _sample(meetings, cues, settings)
    width = sample.rows.shape[1] // len(ROLES)
    rarity = _rarity(sample.rows[:, :BUCKETS])
    told = np.zeros((len(HEADS), len(ROLES) * width), np.float32)
    shift = np.zeros(len(HEADS), np.float32)
    for head, name in enumerate(HEADS):
        known = sample.labels[:, head] != UNKNOWN
        holds = sample.labels[known, head] > 0
        if not holds.any():
            continue
        once = np.concatenate(
            [rarity ** _RARITY.get(name, _OTHER_RARITY), np.ones(width - BUCKETS, np.float32)]
        )
        scale = np.tile(once, len(ROLES))
        share = _shares(sample.sources[known], sample.weights[known], settings.research)
        model = LogisticRegression(C=settings.inverse_penalty, max_iter=settings.iterations)
        with warnings.catch_warnings():
            # It is stopped before it has settled: a few steps more change the order of nothing that matters.
            warnings.simplefilter("ignore")
            model.fit(sample.rows[known] @ sp.diags(scale), holds, share)
        told[head], shift[head] = model.coef_[0] * scale, model.intercept_[0]
        print(f"words of {name}: {int(holds.sum())} lines", file=sys.stderr, flush=True)
    parts = told.reshape(len(HEADS), len(ROLES), width).transpose(1, 0, 2)
    return Linear(parts[:, :, :BUCKETS], parts[:, :, BUCKETS:], shift)


def _sample(meetings: Sequence[Annotated], cues: CueTable, settings: LinearSettings) -> _Sample:
    chance = np.random.default_rng(settings.seed)
    rows, labels, weights, sources = [], [], [], []
    for truth in meetings:
        count = len(truth.lines)
        drawn = chance.integers(0, len(AHEAD), count)
        newest = np.minimum(np.arange(count) + np.array(AHEAD)[drawn], count - 1)
        weight = truth.weights.astype(np.float64)
        if truth.source in RESEARCH:
            near = np.convolve((truth.labels[:, :2] > 0).any(axis=1), np.ones(2 * _NEAR + 1), "same") > 0
            few = chance.random(count) < 1 / settings.thinned
            weight *= np.where(near, 1.0, np.where(few, settings.thinned, 0.0))
        kept = weight > 0
        known = np.stack([labels_at(truth, ahead) for ahead in AHEAD])
        rows.append(rows_of(figures_of(truth, cues), newest)[kept])
        labels.append(known[drawn, np.arange(count)][kept])
        weights.append(weight[kept])
        sources += [truth.source] * int(kept.sum())
    return _Sample(
        sp.vstack(rows, format="csr"), np.concatenate(labels), np.concatenate(weights), np.array(sources)
    )


def _rarity(words: Matrix) -> Floats:
    """How rare each bucket is: logarithm of the lines to those that have it, 1 for the commonest."""
    seen = np.bincount(words.indices, minlength=BUCKETS)
    found = np.log((1 + words.shape[0]) / (1 + seen)) + 1
    return np.asarray(found / found.min(), np.float32)


def _shares(
    source: npt.NDArray[np.str_], weight: npt.NDArray[np.float64], research: float
) -> npt.NDArray[np.float64]:
    """Weights of lines, so that each source counts as much as any other, and their mean is one."""
    out = weight.copy()
    for name in np.unique(source):
        mine = source == name
        out[mine] *= (research if name in RESEARCH else 1.0) / out[mine].sum()
    found: npt.NDArray[np.float64] = out * (len(out) / out.sum())
    return found


def scores(truth: Annotated, cues: CueTable, model: Linear, stride: int) -> dict[int, Floats]:
    """Logits of a meeting's lines by utterances ahead, heard as far as the network's windows of that stride."""
    figures = figures_of(truth, cues)
    newest = newest_lines(len(truth.lines), stride)
    return {ahead: model.logits(rows_of(figures, last)) for ahead, last in newest.items()}
