"""Weighted least squares with robust losses, for a few hundred unknowns and rows."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
_CAUCHY: Final = 2.4
"""Residuals beyond this many sigma begin to lose their say (95 % efficiency for normal errors)."""
_RIDGE: Final = 1e-12


class Loss(IntEnum):
    """How a row takes a large residual."""

    NORMAL = 0
    ROBUST = 1
    """Cauchy: what is far off is an outlier and loses its say."""
    FLOOR = 2
    """An envelope: observed may lie above the model (queueing), hardly below it."""


@dataclass(slots=True)
class Rows:
    """Equations ``sum(coefficient * unknown) = value``, each with its standard uncertainty and loss."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    coefficient: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    sigma: list[float] = field(default_factory=list)
    loss: list[int] = field(default_factory=list)

    def add(
        self, terms: list[tuple[int, float]], value: float, sigma: float, loss: Loss = Loss.NORMAL
    ) -> None:
        """One equation; ``terms``: column and coefficient."""
        number = len(self.value)
        for column, coefficient in terms:
            self.row.append(number)
            self.column.append(column)
            self.coefficient.append(coefficient)
        self.value.append(value)
        self.sigma.append(sigma)
        self.loss.append(loss)


@dataclass(frozen=True, slots=True)
class Solution:
    """Unknowns, shape (n,), and their covariance, shape (n, n)."""

    x: Vector
    covariance: Vector


def solve(unknowns: int, rows: Rows, start: Vector | None = None, iterations: int = 6) -> Solution:
    """Iteratively reweighted least squares (Holland and Welsch 1977) from ``start``, shape (unknowns,)."""
    matrix = np.zeros((len(rows.value), unknowns))
    np.add.at(matrix, (rows.row, rows.column), rows.coefficient)
    value, sigma = np.asarray(rows.value), np.asarray(rows.sigma)
    robust = np.asarray(rows.loss) == Loss.ROBUST
    floor = np.asarray(rows.loss) == Loss.FLOOR
    bare = 1.0 / sigma**2
    x = start
    for turn in range(iterations):
        weight = bare if x is None else _weights(value - matrix @ x, sigma, bare, robust, floor)
        scaled = matrix * weight[:, None]
        normal = matrix.T @ scaled
        normal[np.diag_indices(unknowns)] += _RIDGE
        if turn == iterations - 1:
            covariance = np.linalg.inv(normal)
            return Solution(covariance @ (scaled.T @ value), covariance)
        x = np.linalg.solve(normal, scaled.T @ value)
    raise ValueError("at least one iteration")


def _weights(residual: Vector, sigma: Vector, bare: Vector, robust: Vector, floor: Vector) -> Vector:
    scale = np.where(floor & (residual > 0), 3.0 * sigma, sigma)
    weight = np.where(floor, 1.0 / scale**2, bare)
    loses = robust | (floor & (residual > 0))
    return np.where(loses, weight / (1.0 + (residual / (_CAUCHY * scale)) ** 2), weight)
