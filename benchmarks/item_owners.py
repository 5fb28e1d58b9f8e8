"""Fits what tells whose a task is (`operators/understand/whose.py`), on tasks of held-out meetings whose owner is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.minutes.appraisal import Owners
from operators.understand.whose import FIGURES, Taker

from .item_fit import fitted, probabilities
from .item_scores import pairs_of, verdict_of

WRONG: Final = 0.05
"""Share of tasks that may have a wrong owner."""
STRENGTH: Final = 10.0
"""How much large weights are held back; of 3, 10 and 30 none was better."""
_GRID: Final = tuple(round(0.5 + 0.01 * step, 2) for step in range(46))
_SMALLEST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Task:
    """A task in the making: its entry in the minutes, and who may have it (nobody where the words alone say that)."""

    entry: dict[str, Any]
    takers: tuple[Taker, ...]

    def owned(self, owners: Owners) -> dict[str, Any]:
        """The entry with the owner that is chosen."""
        if not self.takers:
            return self.entry
        likely, who = max(((owners.probability(t.figures), t) for t in self.takers), key=lambda x: x[0])
        return self.entry | {"owner": who.name if likely >= owners.threshold else None}


Tasks = Sequence[tuple[Mapping[str, Any], Any, Sequence[Task]]]
"""Script, limits of the score, and tasks of each meeting."""


def fit(tasks: Tasks) -> Owners | None:
    """Weights from all tasks that match one of the truth; None where there are too few to learn from."""
    rows: list[tuple[float, ...]] = []
    holds: list[float] = []
    for script, limits, mine in tasks:
        if not script["truth"].get("owners_known", True):
            continue
        gold = script["truth"]["action_items"]
        for i, j in pairs_of([t.entry for t in mine], "action_items", script, limits):
            owner = (gold[j].get("owner") or "").strip().lower()
            for taker in mine[i].takers:
                rows.append(taker.figures)
                holds.append(float(taker.name.strip().lower() == owner))
    if len(set(holds)) < 2:
        return None
    figures = np.array(rows)
    middle, spread = figures.mean(axis=0), figures.std(axis=0)
    spread[spread < _SMALLEST] = np.inf
    weights = fitted((figures - middle) / spread, np.array(holds), STRENGTH)
    plain: npt.NDArray[np.float64] = weights[:-1] / spread
    bias = float(weights[-1] - plain @ middle)
    assert np.allclose(
        probabilities(np.append(plain, bias), figures), probabilities(weights, (figures - middle) / spread)
    )
    return Owners(FIGURES, tuple(map(float, plain)), bias, 0.5)


def threshold(
    tasks: Tasks, of: Callable[[int], Owners | None], published: Callable[[int], Sequence[Task]]
) -> float:
    """The lowest probability of the grid from which no more than ``WRONG`` of the published tasks have a wrong owner.

    Args:
        tasks: as in ``fit``.
        of: what was fitted without a meeting.
        published: which of a meeting's tasks stand in its minutes.
    """
    verdicts = [0] * len(_GRID)
    judged = 0
    for place, (script, limits, _) in enumerate(tasks):
        owners = of(place)
        if owners is None or not script["truth"].get("owners_known", True):
            continue
        mine, gold = published(place), script["truth"]["action_items"]
        for i, j in pairs_of([t.entry for t in mine], "action_items", script, limits):
            judged += 1
            for step, least in enumerate(_GRID):
                entry = mine[i].owned(replace(owners, threshold=least))
                verdicts[step] += verdict_of(entry, gold[j], "owner") == "wrong"
    enough = (least for least, wrong in zip(_GRID, verdicts, strict=True) if wrong <= WRONG * judged)
    return next(enough, _GRID[-1])
