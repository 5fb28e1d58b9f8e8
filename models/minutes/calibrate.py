"""From the raw outputs of meetings that were not trained on: calibration, scores, and how good they are. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.minutes.corpora import UNKNOWN, Annotated
from models.minutes.held_out import AHEAD, Raw, labels_at
from models.minutes.inputs import WINDOW, Floats, Told, Window
from models.minutes.scores import (
    ELSEWHERE,
    HEADS,
    NOBODY,
    Calibration,
    Mixture,
    Outputs,
    UtteranceScores,
    scores_of_line,
    sigmoid,
)

_NOTHING: Final = np.zeros((0, 0), np.float16)


def scores(truth: Annotated, raw: Raw, ahead: int, calibration: Calibration) -> list[UtteranceScores]:
    """Scores of all lines of a meeting, as a running meeting would see them with so many utterances after each."""
    told = [Told(line.speaker, 0, _NOTHING, ()) for line in truth.lines]
    out = []
    for line in range(len(told)):
        newest = int(raw.newest[ahead][line])
        window = Window(tuple(told[max(0, newest + 1 - WINDOW) : newest + 1]))
        row = Outputs(
            raw.heads[ahead][line], raw.owner[ahead][line], raw.joins[ahead][line], raw.due[ahead][line]
        )
        out.append(scores_of_line(row, window, len(window.utterances) - 1 - (newest - line), calibration))
    return out


@dataclass(frozen=True)
class Judged:
    """Logits and truth of one head over many lines."""

    logit: npt.NDArray[np.float64]
    holds: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float64]


def judged(
    meetings: Sequence[Annotated], raw: Mapping[str, Raw], head: int, ahead: Sequence[int]
) -> Judged | None:
    """All known lines of a head; each source counts as much as any other, None where nothing is known."""
    logits, holds, weights = [], [], []
    for source in sorted({m.source for m in meetings}):
        mine = [m for m in meetings if m.source == source and m.name in raw]
        pairs = [(m, a) for m in mine for a in ahead]
        rows = [labels_at(m, a)[:, head] for m, a in pairs]
        found = [raw[m.name].heads[a][:, head] for m, a in pairs]
        if not rows or not any((r > 0).any() for r in rows):
            continue
        label, logit = np.concatenate(rows), np.concatenate(found)
        known = label != UNKNOWN
        holds.append(label[known] > 0)
        logits.append(logit[known].astype(np.float64))
        weights.append(np.full(known.sum(), 1.0 / known.sum()))
    if not holds:
        return None
    return Judged(np.concatenate(logits), np.concatenate(holds), np.concatenate(weights))


Said = Mapping[str, Mapping[int, Floats]]
"""Logits (lines, heads) of a meeting's lines, by its name and by utterances ahead."""


def mixture_of(meetings: Sequence[Annotated], raw: Mapping[str, Raw], words: Said, reader: Said) -> Mixture:
    """Shares of network, words and reader in each head, by logistic regression on settled and final scores; none
    below zero."""
    voices = [
        raw,
        *({name: replace(one, heads=v[name]) for name, one in raw.items()} for v in (words, reader)),
    ]
    shares = [(1.0, 0.0, 0.0)] * len(HEADS)
    for head in range(len(HEADS)):
        told = [one for voice in voices if (one := judged(meetings, voice, head, AHEAD[1:])) is not None]
        if len(told) == len(voices):
            of_network, of_words, of_reader = _shares(told)
            shares[head] = (of_network, of_words, of_reader)
    return Mixture(*zip(*shares, strict=True))


def _shares(voices: Sequence[Judged]) -> list[float]:
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    told, count = voices[0], len(voices)
    rows = np.stack([*(one.logit for one in voices), np.ones_like(told.logit)], axis=1)
    weight, holds = told.weight / told.weight.sum(), told.holds.astype(np.float64)
    prior = np.array([1 / count] * count + [0.0])

    def loss(at: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        found = rows @ at
        away = at - prior
        cost = weight @ (np.logaddexp(0.0, found) - holds * found) + 1e-4 * away @ away
        return float(cost), rows.T @ (weight * (sigmoid(found) - holds)) + 2e-4 * away

    bounds = [(0, None)] * count + [(None, None)]
    found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds)
    return [round(float(share), 6) for share in found.x[:count]]


def mixed(raw: Mapping[str, Raw], words: Said, reader: Said, mixture: Mixture) -> dict[str, Raw]:
    """Raw outputs whose heads are those of network, words and reader together, as the product adds them."""
    shares = [np.array(part, np.float32) for part in (mixture.network, mixture.words, mixture.reader)]
    return {
        name: replace(
            found,
            heads={
                a: sum(
                    (
                        part * share
                        for part, share in zip((words[name][a], reader[name][a]), shares[1:], strict=True)
                    ),
                    heads * shares[0],
                )
                for a, heads in found.heads.items()
            },
        )
        for name, found in raw.items()
    }


def calibrated(meetings: Sequence[Annotated], raw: Mapping[str, Raw]) -> Calibration:
    """Slope and shift of each head by logistic regression (Newton's steps) on settled and final scores."""
    slopes, shifts = [], []
    for head in range(len(HEADS)):
        told = judged(meetings, raw, head, AHEAD[1:])
        slope, shift = (1.0, 0.0) if told is None else _platt(told)
        slopes.append(round(slope, 6))
        shifts.append(round(shift, 6))
    return Calibration(tuple(slopes), tuple(shifts))


def _platt(told: Judged) -> tuple[float, float]:
    rows = np.stack([told.logit, np.ones_like(told.logit)], axis=1)
    weight = told.weight / told.weight.sum() * len(told.weight)
    at = np.array([1.0, 0.0])
    for _ in range(50):
        p = sigmoid(rows @ at)
        slope = rows.T @ (weight * (p - told.holds)) + 1e-3 * (at - np.array([1.0, 0.0]))
        bend = (rows * (weight * p * (1 - p))[:, None]).T @ rows + 1e-3 * np.eye(2)
        step = np.linalg.solve(bend, slope)
        at = at - step
        if np.abs(step).max() < 1e-9:
            break
    return float(at[0]), float(at[1])


def figures(
    meetings: Sequence[Annotated], raw: Mapping[str, Raw], calibration: Calibration
) -> dict[str, Any]:
    """By source, utterances ahead and head: average precision, AUROC, calibration error; owners and joins as well."""
    out: dict[str, Any] = {}
    for source in sorted({m.source for m in meetings}):
        mine = [m for m in meetings if m.source == source and m.name in raw]
        found: dict[str, Any] = {}
        for ahead in AHEAD:
            found[f"ahead_{ahead}"] = {
                name: _head_figures(told, calibration, head)
                for head, name in enumerate(HEADS)
                if (told := judged(mine, raw, head, (ahead,))) is not None
            }
        if any(m.owners for m in mine):
            found["owner"] = _owner_figures(mine, raw, calibration)
        out[source] = found
    return out


def _head_figures(told: Judged, calibration: Calibration, head: int) -> dict[str, float]:
    p = sigmoid(calibration.slope[head] * told.logit + calibration.shift[head])
    return {
        "positive": int(told.holds.sum()),
        "share": round(float(told.holds.mean()), 5),
        "ap": round(average_precision(p, told.holds), 4),
        "auroc": round(area(p, told.holds), 4),
        "ece": round(calibration_error(p, told.holds), 4),
    }


def _owner_figures(
    meetings: Sequence[Annotated], raw: Mapping[str, Raw], calibration: Calibration
) -> dict[str, float]:
    """How often the likeliest owner of a line that is part of an action is the right one."""
    right = sure = right_sure = count = 0
    for truth in meetings:
        told = scores(truth, raw[truth.name], AHEAD[-1], calibration)
        people = {line.speaker for line in truth.lines}
        for line, owner in truth.owners.items():
            best, p = told[line].owner[0]
            hit = best == owner or (best == ELSEWHERE and owner not in people and owner != NOBODY)
            right, count = right + hit, count + 1
            if p >= 0.8:
                sure, right_sure = sure + 1, right_sure + hit
    return {
        "lines": count,
        "right": round(right / max(1, count), 4),
        "sure": round(sure / max(1, count), 4),
        "right_where_sure": round(right_sure / max(1, sure), 4),
    }


def average_precision(p: npt.NDArray[np.float64], holds: npt.NDArray[np.bool_]) -> float:
    """Area under precision over recall, in steps."""
    order = np.argsort(-p, kind="stable")
    hits = holds[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean()) if hits.any() else 0.0


def area(p: npt.NDArray[np.float64], holds: npt.NDArray[np.bool_]) -> float:
    """Probability that a line that holds is scored above one that does not; equal scores count half."""
    _, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    good, bad = int(holds.sum()), int((~holds).sum())
    if not good or not bad:
        return 0.5
    return float((ranks[holds].sum() - good * (good + 1) / 2) / (good * bad))


def calibration_error(p: npt.NDArray[np.float64], holds: npt.NDArray[np.bool_], bins: int = 15) -> float:
    """Expected calibration error over bins of equal width."""
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    told, true = np.bincount(place, p, bins), np.bincount(place, holds.astype(np.float64), bins)
    return float(np.abs(told - true).sum() / max(1, count.sum()))
