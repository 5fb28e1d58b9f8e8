"""Interpolation at times of the timeline: which two knots lie around a time, and what stands between them.

Absolute times stay integers; only the place between two knots, a share from 0 to 1, is a float.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contracts.timeline import ClockRecord
from operators.timeline import is_step

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Shares = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom as shares of width and height."""


@dataclass(frozen=True, slots=True)
class Between:
    """For each of n times the knots around it.

    Attributes:
        before, after: (n,) numbers of the knots; equal where the time is that of a knot.
        share: (n,) how far from ``before`` to ``after``, 0 to 1.
        known: (n,) False before the first knot, after the last, and where the two are too far apart; there
            the other fields are zero.
        apart_ns: (n,) distance of the two knots.
    """

    before: npt.NDArray[np.intp]
    after: npt.NDArray[np.intp]
    share: Shares
    known: Mask
    apart_ns: Times


def between(knots_ns: Times, times_ns: Times, longest_ns: int) -> Between:
    """Knots around each time.

    Args:
        knots_ns: (k,) rising.
        times_ns: (n,) in any order.
        longest_ns: knots further apart than this have a gap between them, in which nothing is known.
    """
    if len(knots_ns) == 0:
        none = np.zeros(len(times_ns), np.intp)
        return Between(
            none, none, none.astype(np.float64), none.astype(np.bool_), np.zeros(len(times_ns), np.int64)
        )
    last = len(knots_ns) - 1
    known = (times_ns >= knots_ns[0]) & (times_ns <= knots_ns[-1])
    before = np.clip(np.searchsorted(knots_ns, times_ns, side="right") - 1, 0, last)
    exact = knots_ns[before] == times_ns
    after = np.where(exact, before, np.minimum(before + 1, last))
    apart = knots_ns[after] - knots_ns[before]
    known &= apart <= longest_ns
    before, after = np.where(known, before, 0), np.where(known, after, 0)
    apart = np.where(known, apart, 0)
    since = np.where(known, times_ns - knots_ns[before], 0)
    return Between(before, after, since / np.maximum(apart, 1), known, apart)


def held(knots_ns: Times, times_ns: Times, longest_ns: int) -> Between:
    """The nearest knot before each time (or at it), as long as it is no older than ``longest_ns``."""
    if len(knots_ns) == 0:
        return between(knots_ns, times_ns, longest_ns)
    place = np.searchsorted(knots_ns, times_ns, side="right") - 1
    before = np.maximum(place, 0)
    # Compared before subtracting: the difference to a time before all knots may not fit.
    known = place >= 0
    since = np.where(known, times_ns, knots_ns[before]) - knots_ns[before]
    known &= since <= longest_ns
    before = np.where(known, before, 0)
    return Between(before, before, np.zeros(len(times_ns)), known, np.where(known, since, 0))


def linear(values: Values, place: Between) -> Values:
    """Values (k, ...) at n places, shape (n, ...); zero where nothing is known."""
    shape = (-1, *(1,) * (values.ndim - 1))
    if len(values) == 0:
        return np.zeros((len(place.known), *values.shape[1:]), np.float32)
    share = place.share.reshape(shape)
    found = values[place.before] * (1.0 - share) + values[place.after] * share
    return np.where(place.known.reshape(shape), found, 0.0).astype(np.float32)


def trilinear(volumes: Values, place: Between, rows: Shares, columns: Shares) -> Values:
    """Value of a feature volume between its cells and its frames.

    Args:
        volumes: (k, maps, rows, columns), one for each knot.
        place: n places in time.
        rows, columns: (n,) places in the picture, counted in cells from the middle of the first; places
            beyond the middle of an outer cell take its value.

    Returns:
        (n, maps); zero where nothing is known.
    """
    k, maps, height, width = volumes.shape
    if k == 0:
        return np.zeros((len(place.known), maps), np.float32)
    row, column = np.clip(rows, 0.0, height - 1.0), np.clip(columns, 0.0, width - 1.0)
    row0, column0 = np.floor(row).astype(np.intp), np.floor(column).astype(np.intp)
    row1, column1 = np.minimum(row0 + 1, height - 1), np.minimum(column0 + 1, width - 1)
    down, right = row - row0, column - column0
    found = np.zeros((len(place.known), maps))
    for knot, in_time in ((place.before, 1.0 - place.share), (place.after, place.share)):
        for r, in_rows in ((row0, 1.0 - down), (row1, down)):
            for c, in_columns in ((column0, 1.0 - right), (column1, right)):
                weight = in_time * in_rows * in_columns
                found += volumes[knot, :, r, c] * weight[:, None]
    return np.where(place.known[:, None], found, 0.0).astype(np.float32)


def under_box(volumes: Values, place: Between, boxes: Shares, lattice: tuple[int, int]) -> Values:
    """Mean of a feature volume under a box, taken at a lattice of points by trilinear interpolation.

    Args:
        volumes: (k, maps, rows, columns).
        place: n places in time.
        boxes: (n, 4) left, top, right, bottom in shares of the picture.
        lattice: how many points down and across.

    Returns:
        (n, maps).
    """
    down, across = lattice
    height, width = volumes.shape[2:]
    n = len(place.known)
    left, top, right, bottom = boxes.T
    ys = top[:, None] + (bottom - top)[:, None] * ((np.arange(down) + 0.5) / down)
    xs = left[:, None] + (right - left)[:, None] * ((np.arange(across) + 0.5) / across)
    rows = np.repeat(ys, across, axis=1).ravel() * height - 0.5
    columns = np.tile(xs, (1, down)).ravel() * width - 0.5
    points = down * across
    spread = Between(*(np.repeat(getattr(place, name), points) for name in Between.__dataclass_fields__))
    found = trilinear(volumes, spread, rows, columns)
    means: Values = found.reshape(n, points, -1).mean(axis=1, dtype=np.float64).astype(np.float32)
    return means


def on_timeline(
    records: Sequence[ClockRecord], placed_by: Times, raw_ns: Times
) -> tuple[Times, npt.NDArray[np.int64]]:
    """Timeline times and clock bounds of many raw stamps at once, both (n,) int64 ns.

    The same as ``clock_in_force`` and ``to_timeline_ns`` of ``grid`` one by one; a stamp for which no
    record holds stays as it is, with a bound of zero.
    """
    alive = np.ones(len(raw_ns), np.bool_)
    chosen = np.full(len(raw_ns), -1, np.intp)
    for number, record in enumerate(records):
        if is_step(record):
            alive &= placed_by >= record.number
        chosen[alive & ((placed_by == record.number) | (raw_ns >= record.from_raw_ns))] = number
    times, bounds = raw_ns.copy(), np.zeros(len(raw_ns), np.int64)
    for number in np.unique(chosen[chosen >= 0]).tolist():
        record, mine = records[number], chosen == number
        times[mine] -= record.offset_ns
        if record.skew_ppb:
            # Rounded as one by one: half to even, and the factors in the same order.
            times[mine] -= np.rint((raw_ns[mine] - record.ref_ns) * record.skew_ppb * 1e-9).astype(np.int64)
        bounds[mine] = record.uncertainty_ns
    return times, bounds
