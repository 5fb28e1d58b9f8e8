"""Fits what tells whose a task is and when it is due (`operators/understand/whose.py`, `when.py`), on tasks of held-out
meetings whose owners and days are known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from models.minutes.appraisal import Choice
from operators.understand import when, whose
from operators.understand.when import Day
from operators.understand.whose import Taker

from .item_fit import fitted
from .item_scores import pairs_of, verdict_of

Key = Literal["owner", "due"]
KEYS: Final[tuple[Key, ...]] = ("owner", "due")
WRONG: Final = 0.05
"""Share of tasks that may have a wrong owner, or a wrong day."""
STRENGTH: Final = 10.0
"""How much large weights are held back; of 3, 10 and 30 none was better."""
_FIGURES: Final[Mapping[Key, tuple[str, ...]]] = {"owner": whose.FIGURES, "due": when.FIGURES}
_GRID: Final = tuple(round(0.5 + 0.01 * step, 2) for step in range(46))
_SMALLEST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Task:
    """A task in the making: its entry in the minutes, and what may be its owner or day, with their figures."""

    entry: dict[str, Any]
    may: tuple[tuple[str, tuple[float, ...]], ...]

    def likeliest(self, choice: Choice) -> tuple[float, str] | None:
        """The likeliest with its probability; None where only the words say it."""
        if not self.may:
            return None
        return max(
            ((choice.probability(figures), value) for value, figures in self.may), key=lambda one: one[0]
        )

    def chosen(self, key: Key, choice: Choice) -> dict[str, Any]:
        """The entry with the owner or day that is chosen."""
        best = self.likeliest(choice)
        if best is None:
            return self.entry
        return self.entry | {key: best[1] if best[0] >= choice.threshold else None}


def task_of(key: Key, entry: dict[str, Any], takers: Sequence[Taker], days: Sequence[Day]) -> Task:
    """A task with those who may have it, or with the days on which it may be due."""
    if key == "owner":
        return Task(entry, tuple((t.name, t.figures) for t in takers))
    return Task(entry, tuple((d.day.isoformat(), d.figures) for d in days))


Tasks = Sequence[tuple[Mapping[str, Any], Any, Sequence[Task]]]
"""Script, limits of the score, and tasks of each meeting."""


def fit(tasks: Tasks, key: Key) -> Choice | None:
    """Weights from all tasks that match one of the truth; None where there are too few to learn from."""
    rows: list[tuple[float, ...]] = []
    holds: list[float] = []
    for script, limits, mine in tasks:
        if not script["truth"].get("owners_known", True):
            continue
        gold = script["truth"]["action_items"]
        for i, j in pairs_of([t.entry for t in mine], "action_items", script, limits):
            right = (gold[j].get(key) or "").strip().lower()
            for value, figures in mine[i].may:
                rows.append(figures)
                holds.append(float(value.strip().lower() == right))
    if len(set(holds)) < 2:
        return None
    figures_of = np.array(rows)
    middle, spread = figures_of.mean(axis=0), figures_of.std(axis=0)
    spread[spread < _SMALLEST] = np.inf
    weights = fitted((figures_of - middle) / spread, np.array(holds), STRENGTH)
    plain: npt.NDArray[np.float64] = weights[:-1] / spread
    bias = float(weights[-1] - plain @ middle)
    return Choice(_FIGURES[key], tuple(map(float, plain)), bias, 0.5)


def threshold(
    tasks: Tasks,
    key: Key,
    held_out: Sequence[Choice | None],
    published: Callable[[int], Sequence[Task]],
) -> float:
    """The lowest probability of the grid from which no more than ``WRONG`` of the published tasks have a wrong value.

    Args:
        tasks: as in ``fit``.
        key: of what.
        held_out: for each meeting what was fitted without it.
        published: which of a meeting's tasks stand in its minutes.
    """
    wrong = [0] * len(_GRID)
    judged = 0
    for place, (script, limits, _) in enumerate(tasks):
        choice = held_out[place]
        if choice is None or not script["truth"].get("owners_known", True):
            continue
        mine, gold = published(place), script["truth"]["action_items"]
        for i, j in pairs_of([t.entry for t in mine], "action_items", script, limits):
            judged += 1
            for step, least in enumerate(_GRID):
                entry = mine[i].chosen(key, replace(choice, threshold=least))
                wrong[step] += verdict_of(entry, gold[j], key) == "wrong"
    enough = (least for least, count in zip(_GRID, wrong, strict=True) if count <= WRONG * judged)
    return next(enough, _GRID[-1])
