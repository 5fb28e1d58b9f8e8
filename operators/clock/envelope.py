"""Lower envelope of delivery: how late packets arrive by their stamps, least first.

Arrival minus stamp is the shortest way to the broker, minus the clock's error, plus queueing. Queueing only
ever adds, so the lower convex hull of the points carries the clock (Moon, Skelly, Towsley 1999); whatever
lies above it is the network's and is dropped at once.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

BIN_NS: Final = 10_000_000_000
"""Stretch of time over which one hull is kept."""
_MOST_POINTS: Final = 24
_LEAST_SPAN_NS: Final = 1_000_000_000
_PACE: Final = 0.002
_PACE_SLACK_NS: Final = 700_000_000
"""What queueing and a step of the broker's clock can add to the pace."""


@dataclass(slots=True)
class LowerHull:
    """Lower convex hull of points whose first coordinate only grows; amortised O(1) a point."""

    x: list[int] = field(default_factory=list)
    y: list[int] = field(default_factory=list)
    count: int = 0
    """Points that were put in."""

    def push(self, x: int, y: int) -> None:
        """Take in a point; one that does not lie further on than the last is kept only where it is lower."""
        self.count += 1
        xs, ys = self.x, self.y
        if xs and x <= xs[-1]:
            if y >= ys[-1]:
                return
            x = xs.pop()
            ys.pop()
        while len(xs) >= 2 and (ys[-1] - ys[-2]) * (x - xs[-1]) >= (y - ys[-1]) * (xs[-1] - xs[-2]):
            xs.pop()
            ys.pop()
        xs.append(x)
        ys.append(y)
        if len(xs) > _MOST_POINTS:
            self._drop_flattest()

    def _drop_flattest(self) -> None:
        """Leave out the corner without which the hull changes least (Visvalingam, Whyatt 1993)."""
        xs, ys = self.x, self.y
        flattest = min(
            range(1, len(xs) - 1),
            key=lambda n: (
                (xs[n] - xs[n - 1]) * (ys[n + 1] - ys[n - 1]) - (xs[n + 1] - xs[n - 1]) * (ys[n] - ys[n - 1])
            ),
        )
        del xs[flattest], ys[flattest]

    def lowest(self, slope: float, about_x: int) -> float:
        """Least of ``y + slope * (x - about_x)``: the envelope at ``about_x`` for a clock of that skew."""
        return min(y + slope * (x - about_x) for x, y in zip(self.x, self.y, strict=True))


@dataclass(slots=True)
class Envelope:
    """Hulls of the last stretches of one stream: a bounded number of bins of bounded size."""

    bins: deque[tuple[int, LowerHull]] = field(default_factory=lambda: deque(maxlen=26))
    """Number of the bin (arrival time divided by its length) and its hull, oldest first; several where it was split."""
    parted: bool = False

    def push(self, arrival_ns: int, x: int, y: int) -> None:
        """Take in a packet: ``x`` its stamp, ``y`` arrival minus stamp; ns from any fixed zeros."""
        number = arrival_ns // BIN_NS
        if not self.bins or number > self.bins[-1][0] or self.parted:
            self.bins.append((number, LowerHull()))
            self.parted = False
        self.bins[-1][1].push(x, y)

    def part(self) -> None:
        """What follows lies elsewhere by some unknown amount: it gets a hull of its own."""
        self.parted = True

    def level(self, slope: float, about_x: int, last: int = 2) -> float | None:
        """The envelope at ``about_x`` by the last bins, None where nothing has come."""
        hulls = [hull for _, hull in list(self.bins)[-last:]]
        return min((hull.lowest(slope, about_x) for hull in hulls), default=None)

    def in_real_time(self) -> bool:
        """Whether stamps come as fast as they were written: not where a recording is sent at another speed."""
        if not self.bins:
            return False
        first, last = self.bins[0][1], self.bins[-1][1]
        span = last.x[-1] - first.x[0]
        return span < _LEAST_SPAN_NS or abs(last.y[-1] - first.y[0]) < _PACE * span + _PACE_SLACK_NS
