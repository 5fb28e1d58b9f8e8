"""Weighted least squares with robust losses, for a few hundred unknowns and rows."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
_CAUCHY: Final = 2.4
"""Residuals beyond this many sigma begin to lose their say (95 % efficiency for normal errors)."""
_RIDGE: Final = 1e-12
_SLACK: Final = (16.0, 4.0, 1.0, 0.25)
"""What robust rows may be off by besides in the first turns, in units of their values. A few sharp and wrong rows
would else decide where the search begins, and from there all others look like outliers (graduated
non-convexity, Blake and Zisserman 1987)."""


class Loss(IntEnum):
    """How a row takes a large residual."""

    NORMAL = 0
    ROBUST = 1
    """Cauchy: what is far off is an outlier and loses its say."""
    FLOOR = 2
    """An envelope: observed may lie above the model (queueing), hardly below it."""
    LEAST = 3
    """A least value: the model may lie above it as it likes, hardly below."""


@dataclass(slots=True)
class Rows:
    """Equations ``sum(coefficient * unknown) = value``, each with its standard uncertainty and loss."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    coefficient: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    sigma: list[float] = field(default_factory=list)
    loss: list[int] = field(default_factory=list)
    between: list[tuple[str, str] | None] = field(default_factory=list)
    """Names of the two that a row compares, where it does."""

    def add(
        self, terms: list[tuple[int, float]], value: float, sigma: float, loss: Loss = Loss.NORMAL,
        between: tuple[str, str] | None = None,
    ) -> None:  # fmt: skip
        """One equation; ``terms``: column and coefficient."""
        number = len(self.value)
        for column, coefficient in terms:
            self.row.append(number)
            self.column.append(column)
            self.coefficient.append(coefficient)
        self.value.append(value)
        self.sigma.append(sigma)
        self.loss.append(loss)
        self.between.append(between)

    def residuals(self, x: Vector) -> Vector:
        """Observed minus model in standard uncertainties, shape (rows,)."""
        model = np.bincount(self.row, np.asarray(self.coefficient) * x[self.column], len(self.value))
        return np.asarray((np.asarray(self.value) - model) / np.asarray(self.sigma))


@dataclass(frozen=True, slots=True)
class Solution:
    """Unknowns, shape (n,), and their covariance, shape (n, n)."""

    x: Vector
    covariance: Vector


def solve(unknowns: int, rows: Rows, start: Vector | None = None, iterations: int = 8) -> Solution:
    """Iteratively reweighted least squares (Holland and Welsch 1977) from ``start``, shape (unknowns,)."""
    row, column = np.asarray(rows.row), np.asarray(rows.column)
    coefficient = np.asarray(rows.coefficient)
    value, sigma = np.asarray(rows.value), np.asarray(rows.sigma)
    loss = np.asarray(rows.loss)
    bare = 1.0 / sigma**2
    # Rows have a handful of terms: products of the terms of one row are all that the normal matrix is made of.
    first, second = _couples(row)
    place = column[first] * unknowns + column[second]
    product, owner = coefficient[first] * coefficient[second], row[first]
    ridge = _RIDGE * np.eye(unknowns)
    x = start
    for turn in range(iterations):
        slack = _SLACK[turn] if start is None and turn < len(_SLACK) else 0.0
        weight = np.where(loss == Loss.ROBUST, 1.0 / (sigma**2 + slack**2), bare * (loss != Loss.LEAST))
        if x is not None:
            model = np.bincount(row, coefficient * x[column], len(value))
            weight = _weights(value - model, sigma, slack, bare, loss)
        normal = (
            np.bincount(place, product * weight[owner], unknowns * unknowns).reshape(unknowns, unknowns)
            + ridge
        )
        right = np.bincount(column, coefficient * (weight * value)[row], unknowns)
        if turn == iterations - 1:
            covariance = np.asarray(np.linalg.inv(normal), np.float64)
            return Solution(np.asarray(covariance @ right, np.float64), covariance)
        x = np.asarray(np.linalg.solve(normal, right), np.float64)
    raise ValueError("at least one iteration")


def _couples(row: Places) -> tuple[Places, Places]:
    """Index pairs of all terms that share a row; ``row`` ascends."""
    starts = np.searchsorted(row, row, "left")
    sizes = np.searchsorted(row, row, "right") - starts
    first = np.repeat(np.arange(len(row)), sizes)
    within = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return first, np.repeat(starts, sizes) + within


def _weights(residual: Vector, sigma: Vector, slack: float, bare: Vector, loss: Places) -> Vector:
    robust = loss == Loss.ROBUST
    above = (loss == Loss.FLOOR) & (residual > 0)
    scale = np.where(above, 3.0 * sigma, sigma)
    softened = 1.0 / (scale**2 + np.where(robust, slack**2, 0.0) + (residual / _CAUCHY) ** 2)
    weights = np.where(robust | above, softened, bare)
    return np.where((loss == Loss.LEAST) & (residual < 0), 0.0, weights)
