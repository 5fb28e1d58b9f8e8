"""How fast pictures follow each other, and whether their number tells the time."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

_MS: Final = 1_000_000
_USUAL_NS: Final = 40.0 * _MS
_KNOWN: Final = 8
"""So many intervals say whether the rate is constant."""
_OTHER_RATE: Final = 0.1
_ANCHORS: Final = 10
_ANCHOR_NS: Final = 2_000_000_000
_LEAST_BASE_NS: Final = 4_000_000_000
_MOST_UNSURE_NS: Final = 2 * _MS


@dataclass(slots=True)
class Pace:
    """The last intervals of a stream of pictures, ns by its stamps."""

    periods: deque[float] = field(default_factory=lambda: deque(maxlen=15))
    anchors: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_ANCHORS))
    """Number and place of pictures every two seconds since they have come at one rate."""
    odd: bool = False
    """Whether the last interval was another one than those before."""

    def add(self, sequence: int, x: int, period_ns: float) -> None:
        """The picture at ``x`` came ``period_ns`` after the one before it, lost ones between them counted."""
        if self.odd:
            self.anchors.clear()
        # Where a clock stops the last interval is too short, and what was before it still tells the rate.
        self.odd = bool(self.anchors) and abs(period_ns - self.period_ns) > _OTHER_RATE * self.period_ns
        self.periods.append(period_ns)
        if self.odd:
            return
        if not self.steady:
            self.anchors.clear()
        elif not self.anchors or x - self.anchors[-1][1] > _ANCHOR_NS:
            self.anchors.append((sequence, x))

    def begin_anew(self) -> None:
        """Numbers or places begin anew."""
        self.anchors.clear()

    @property
    def known(self) -> bool:
        """Whether there was an interval at all."""
        return bool(self.periods)

    @property
    def steady(self) -> bool:
        """Whether pictures come at a constant rate."""
        ordered = sorted(self.periods)
        size = len(ordered)
        spread = ordered[size * 3 // 4] - ordered[size // 4] if ordered else 0.0
        return size >= _KNOWN and spread < _OTHER_RATE * ordered[size // 2]

    @property
    def period_ns(self) -> float:
        """Time from one picture to the next, as the stamps had it lately."""
        if not self.periods:
            return _USUAL_NS
        ordered = sorted(self.periods)
        middle = ordered[len(ordered) // 2]
        # Each interval has the noise of two stamps; in a sum of them most of it falls out.
        near = [period for period in ordered if abs(period - middle) < _OTHER_RATE * middle]
        return sum(near) / len(near)

    def expected_ns(self, count: int) -> int:
        """How long ``count`` pictures take."""
        if self.anchors and self.anchors[-1][1] - self.anchors[0][1] > _LEAST_BASE_NS:
            # A second of intervals says nothing of half a minute; as long a stretch before does.
            (one, begin), (two, end) = self.anchors[0], self.anchors[-1]
            return round(count * (end - begin) / (two - one))
        return round(count * self.period_ns)

    @property
    def unsure_ns(self) -> int:
        """Standard uncertainty of where the next picture belongs: as sharp as the stamps themselves."""
        middle = sorted(self.periods)[len(self.periods) // 2]
        near = sorted(abs(period - middle) for period in self.periods)
        return min(_MOST_UNSURE_NS, round(2 * near[len(near) // 2]) + _MS // 5)
