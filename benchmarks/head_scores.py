"""How good the scores of single utterances are, head by head, on meetings that the network has not seen."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.minutes.calibrate import area, average_precision, calibration_error
from models.minutes.corpora import UNKNOWN, Annotated
from models.minutes.held_out import labels_at
from models.minutes.scores import ELSEWHERE, HEADS, NOBODY, UtteranceScores

from .item_scores import f1

_HEADS: Final = HEADS[:6]
_STEPS: Final = 200
Table = Mapping[str, Mapping[Any, Any]]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def lines_of(truth: Annotated, table: Table, ahead: int) -> list[UtteranceScores]:
    """Scores of all lines with so many utterances after each.

    Raises:
        KeyError: the table knows another meeting by that name.
    """
    mine = table[truth.name]
    at = {name: row for row, name in enumerate(mine["ids"])}
    return [mine[ahead][at[line.id]] for line in truth.lines]


def best_threshold(p: Floats, holds: Flags) -> float:
    """The probability from which F1 is best."""
    if not holds.any():
        return 1.0
    grid = np.unique(np.quantile(p[holds], np.linspace(0, 1, _STEPS)))
    values = [f1(int(holds[p >= least].sum()), int((p >= least).sum()), int(holds.sum())) for least in grid]
    return float(grid[int(np.argmax(values))])


def head_figures(p: Sequence[Floats], holds: Sequence[Flags], parts: Sequence[int]) -> dict[str, float]:
    """Figures of a head over meetings; precision and recall at a threshold from the other parts of the meetings."""
    hit = predicted = 0
    for part in sorted(set(parts)):
        mine = [i for i, mark in enumerate(parts) if mark == part]
        others = [i for i, mark in enumerate(parts) if mark != part] or mine
        least = best_threshold(
            np.concatenate([p[i] for i in others]), np.concatenate([holds[i] for i in others])
        )
        for i in mine:
            hit, predicted = hit + int(holds[i][p[i] >= least].sum()), predicted + int((p[i] >= least).sum())
    told, true = np.concatenate(p), np.concatenate(holds)
    gold = int(true.sum())
    return {
        "lines": len(true), "positive": gold, "precision": round(hit / max(1, predicted), 3),
        "recall": round(hit / max(1, gold), 3), "f1": round(f1(hit, predicted, gold), 3),
        "auroc": round(area(told, true), 4), "ap": round(average_precision(told, true), 4),
        "ece": round(calibration_error(told, true), 4),
    }  # fmt: skip


def figures(truths: Sequence[Annotated], table: Table, folds: int, seed: int) -> dict[str, Any]:
    """By source, utterances ahead (0, 2, 8: provisional, settled, final) and head."""
    out: dict[str, Any] = {}
    for source in sorted({t.source for t in truths}):
        mine = [t for t in truths if t.source == source and t.name in table]
        if not mine:
            continue
        groups = sorted({t.group for t in mine})
        random.Random(f"{seed}:{source}").shuffle(groups)
        part = {group: number % folds for number, group in enumerate(groups)}
        aheads = sorted(key for key in table[mine[0].name] if isinstance(key, int))
        found: dict[str, Any] = {"meetings": len(mine)}
        for ahead in aheads:
            told = [lines_of(t, table, ahead) for t in mine]
            labels = [labels_at(t, ahead) for t in mine]
            found[f"ahead_{ahead}"] = _heads(told, labels, [part[t.group] for t in mine])
            owners = _owners(mine, told)
            if owners["lines"]:
                found[f"ahead_{ahead}"]["owner"] = owners
        out[source] = found
    return out


def _heads(
    told: Sequence[Sequence[UtteranceScores]], labels: Sequence[npt.NDArray[np.int8]], parts: Sequence[int]
) -> dict[str, Any]:
    out = {}
    for head, name in enumerate(_HEADS):
        known = [rows[:, head] != UNKNOWN for rows in labels]
        holds = [rows[:, head][k] > 0 for rows, k in zip(labels, known, strict=True)]
        if not any(h.any() for h in holds):
            continue
        p = [np.array([getattr(s, name) for s in line])[k] for line, k in zip(told, known, strict=True)]
        out[name] = head_figures(p, holds, parts)
    return out


def _owners(truths: Sequence[Annotated], told: Sequence[Sequence[UtteranceScores]]) -> dict[str, float]:
    """How often the likeliest owner of a line of a task is the right one, and where the pointer is sure."""
    right = sure = right_sure = lines = 0
    for truth, said in zip(truths, told, strict=True):
        people = {line.speaker for line in truth.lines}
        for line, owner in truth.owners.items():
            if not said[line].owner:
                continue
            best, p = said[line].owner[0]
            hit = best == owner or (best == ELSEWHERE and owner not in people and owner != NOBODY)
            lines, right = lines + 1, right + hit
            sure, right_sure = sure + (p >= 0.8), right_sure + (hit and p >= 0.8)
    return {
        "lines": lines, "right": round(right / max(1, lines), 3), "sure": round(sure / max(1, lines), 3),
        "right_where_sure": round(right_sure / max(1, sure), 3),
    }  # fmt: skip
