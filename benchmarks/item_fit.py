"""Logistic regression with a penalty on large weights, by Newton's steps: small, exact, the same twice."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_STEPS = 40


def fitted(figures: Floats, holds: Floats, strength: float) -> Floats:
    """Weights of the figures and, last, the bias.

    Args:
        figures: (rows, figures).
        holds: (rows,), 1 where the row holds.
        strength: half the penalty on the square of each weight; the bias goes free.
    """
    rows = np.hstack([figures, np.ones((len(figures), 1))])
    penalty = np.full(rows.shape[1], strength)
    penalty[-1] = 1e-6
    at = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        p = probabilities(at, figures)
        slope = rows.T @ (p - holds) + penalty * at
        curve = (rows * (p * (1 - p))[:, None]).T @ rows + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        at -= step
        if np.abs(step).max() < 1e-8:
            break
    return at


def probabilities(weights: Floats, figures: Floats) -> Floats:
    """Probability of each row."""
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(figures @ weights[:-1] + weights[-1], -30, 30)))
    return found
