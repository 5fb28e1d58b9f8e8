"""A logistic model whose signs are known beforehand, fitted by maximum a posteriori.

Each kind of item has weights of its own. A figure that speaks against an item has a weight of at most zero, one that
speaks for it of at least zero, so more contradiction can never make an item more probable. The prior puts every figure
that speaks against at ``prior_against``: an error of a kind that training never saw still costs what its figures cost.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize  # type: ignore[import-untyped]

from models.verifier.features import AGAINST, CONTRADICTIONS, FEATURES, FOR, KINDS

Array = npt.NDArray[np.float64]
_KNOTS_AT: Final = (0.03, 0.12, 0.3)
FIGURES: Final = AGAINST + FOR
"""Figures with weights; what follows them in a row tells the kind."""


@dataclass(frozen=True, slots=True)
class FitSettings:
    """``prior_against``, ``prior_for``: prior mean of the weights; ``strength``: inverse variance of the prior.

    ``prior_contradiction`` is that of figures which are no matter of degree: a number, a name, a day or an owner that
    the evidence does not hold, a date that its words exclude, a sentence that breaks off.
    """

    prior_against: float = -2.0
    prior_contradiction: float = -8.0
    prior_for: float = 0.5
    strength: float = 2.0

    def __post_init__(self) -> None:
        if max(self.prior_against, self.prior_contradiction) > 0 or self.prior_for < 0 or self.strength <= 0:
            raise ValueError("priors against must not be positive, prior_for not negative, strength positive")


@dataclass(frozen=True, slots=True)
class Weights:
    """``figures`` of shape (kinds, figures) and ``bias`` of shape (kinds,) give a raw score x.

    Calibrated log odds are ``shift`` + ``slopes[0]`` x + sum of ``slopes[i]`` max(0, x - ``knots[i - 1]``): a
    line that may get steeper at the knots, never flatter than level.
    """

    figures: Array
    bias: Array
    slopes: Array = field(default_factory=lambda: np.ones(1))
    knots: Array = field(default_factory=lambda: np.zeros(0))
    shift: float = 0.0

    def logits(self, rows: npt.NDArray[np.float32]) -> Array:
        """Calibrated log odds, shape (rows,)."""
        kind = rows[:, len(FEATURES) - len(KINDS) :].astype(np.float64)
        raw = np.sum(rows[:, :FIGURES] * (kind @ self.figures), axis=1) + kind @ self.bias
        return np.asarray(_bent(raw, self.knots) @ self.slopes + self.shift)


def _bent(raw: Array, knots: Array) -> Array:
    """Columns x, max(0, x - knot)…, shape (n, 1 + knots)."""
    return np.column_stack([raw, *(np.maximum(0.0, raw - knot) for knot in knots)])


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


def fit(
    rows: npt.NDArray[np.float32], holds: npt.NDArray[np.bool_], weight: Array, settings: FitSettings
) -> Weights:
    """Fit to rows of shape (n, features); ``weight`` of shape (n,) says how much each counts."""
    n, kinds = len(rows), len(KINDS)
    x = rows[:, :FIGURES].astype(np.float64)
    kind = rows[:, len(FEATURES) - kinds :].astype(np.float64)
    sign = np.where(holds, 1.0, -1.0)
    against = [
        settings.prior_contradiction if f in CONTRADICTIONS else settings.prior_against
        for f in FEATURES[:AGAINST]
    ]
    prior = np.concatenate([np.array(against), np.full(FOR, settings.prior_for)])
    share = weight / weight.sum() * n

    def objective(flat: Array) -> tuple[float, Array]:
        figures, bias = flat[: kinds * FIGURES].reshape(kinds, FIGURES), flat[kinds * FIGURES :]
        margin = sign * (np.sum(x * (kind @ figures), axis=1) + kind @ bias)
        loss = np.sum(share * np.logaddexp(0.0, -margin))
        pull = -share * sign * sigmoid(-margin)
        g_figures = kind.T @ (x * pull[:, None]) + settings.strength * (figures - prior)
        g_bias = kind.T @ pull + 0.01 * bias
        loss += 0.5 * settings.strength * np.sum((figures - prior) ** 2) + 0.005 * np.sum(bias**2)
        return float(loss), np.concatenate([g_figures.ravel(), g_bias])

    bounds = [(None, 0.0)] * AGAINST + [(0.0, None)] * FOR
    start = np.concatenate([np.tile(prior, kinds), np.full(kinds, 3.0)])
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds * kinds + [(None, None)] * kinds,
        options={"maxiter": 2_000},
    )  # fmt: skip
    return Weights(found.x[: kinds * FIGURES].reshape(kinds, FIGURES), found.x[kinds * FIGURES :])


def calibrate(
    weights: Weights, rows: npt.NDArray[np.float32], holds: npt.NDArray[np.bool_], *, error_prior: float
) -> Weights:
    """Calibrated log odds for a mixture in which a share ``error_prior`` of items does not hold.

    Rows may be of any mixture: they are weighted to that share. A straight line (Platt) bends to the many clear
    errors and is too timid among what is nearly all right, where decisions fall; so the line may bend at quantiles
    of what holds.
    """
    if not 0 < error_prior < 1:
        raise ValueError(f"error_prior is a share between 0 and 1, got {error_prior}")
    raw = weights.logits(rows)
    knots = np.quantile(raw[holds], _KNOTS_AT)
    columns = np.column_stack([_bent(raw, knots), np.ones(len(raw))])
    good, bad = holds.sum(), (~holds).sum()
    share = np.where(holds, (1 - error_prior) / max(1, good), error_prior / max(1, bad))
    sign = np.where(holds, 1.0, -1.0)

    def objective(at: Array) -> tuple[float, Array]:
        margin = sign * (columns @ at)
        pull = -share * sign * sigmoid(-margin)
        return float(np.sum(share * np.logaddexp(0.0, -margin))), columns.T @ pull

    start = np.concatenate([[1.0], np.zeros(len(knots)), [0.0]])
    bounds = [(0.05, 5.0), *[(0.0, 5.0)] * len(knots), (None, None)]
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 2_000, "ftol": 1e-12, "gtol": 1e-9},
    )
    return Weights(weights.figures, weights.bias, found.x[:-1], knots, float(found.x[-1]))


def expected_calibration_error(
    probability: Array, holds: npt.NDArray[np.bool_], share: Array, bins: int = 10
) -> float:
    """Mean distance between probability and share that holds, over bins of equal width, weighted by ``share``."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    error = 0.0
    for number in range(bins):
        here = place == number
        mass = share[here].sum()
        if mass > 0:
            error += abs(np.sum(share[here] * (probability[here] - holds[here])))
    return float(error / share.sum())
