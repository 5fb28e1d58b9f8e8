"""How far microphones' clocks are apart before the clock step knows, from when their first blocks came.

Queueing only ever makes a block later. So the least time from capture to arrival, microphone by microphone, says
within milliseconds how their clocks stand to each other, half a second after they have begun. It is used for nothing
but to lay microphones side by side, and only where it contradicts the clock records by more than networks do.
"""

from dataclasses import dataclass
from typing import Final

_APART_NS: Final = 40_000_000
"""Ways that differ by less are taken for ways: clocks are what their records say."""
_TELLS_NS: Final = 500_000_000
"""Sound after which the least way is known."""
_YOUNG_NS: Final = 15_000_000_000
"""Sound after which the clock step has had its say: a way that has become longer is then the network's."""
_PACE_AFTER_NS: Final = 300_000_000
_SLOWEST, _FASTEST = 0.7, 1.4
"""Seconds of sound that come in a second, where it comes as it is made."""


@dataclass(slots=True)
class _Way:
    """One microphone's: least time from capture to arrival, when it began, how much sound has come."""

    least_ns: int
    began_ns: int
    heard_ns: int = 0


class Ways:
    """The microphones of one meeting. Plain data, part of the meeting's state."""

    def __init__(self) -> None:
        self._ways: dict[str, _Way] = {}
        self._paced = True
        self._newest_ns = -(2**63)

    def came(self, device: str, end_ns: int, arrival_ns: int, duration_ns: int) -> None:
        """A block came whose capture ended at ``end_ns`` by the clock records; arrival on the timeline's scale."""
        way_ns = arrival_ns - end_ns
        self._newest_ns = max(self._newest_ns, arrival_ns)
        known = self._ways.get(device)
        if known is None:
            known = self._ways[device] = _Way(way_ns, arrival_ns)
        known.least_ns = min(known.least_ns, way_ns)
        known.heard_ns += duration_ns
        if known is next(iter(self._ways.values())) and known.heard_ns >= _PACE_AFTER_NS:
            # A recording that is sent faster or slower than it was made says nothing by its arrival.
            lasted_ns = arrival_ns - known.began_ns
            slack_ns = _PACE_AFTER_NS
            self._paced = _SLOWEST * lasted_ns - slack_ns <= known.heard_ns <= _FASTEST * lasted_ns + slack_ns

    def placed_anew(self, device: str, later_ns: int) -> None:
        """By another clock record the device's sound lies later on the timeline."""
        if device in self._ways:
            self._ways[device].least_ns -= later_ns

    def later_ns(self, device: str) -> int:
        """How much later on the timeline than its records say a device's sound is to be laid; usually 0."""
        known = self._ways.get(device)
        if known is None or not self._paced:
            return 0
        longer_ns = known.least_ns - self._usual_ns()
        if abs(longer_ns) <= _APART_NS or (longer_ns > 0 and known.heard_ns >= _YOUNG_NS):
            return 0
        return longer_ns

    def unsure(self) -> frozenset[str]:
        """Devices whose clock contradicts their delivery and of which too little has come to tell by how much."""
        if not self._paced:
            return frozenset()
        return frozenset(
            device
            for device, way in self._ways.items()
            if way.heard_ns < _TELLS_NS
            and self._newest_ns - way.began_ns < 2 * _TELLS_NS
            and abs(way.least_ns - self._usual_ns()) > _APART_NS
        )

    def _usual_ns(self) -> int:
        least = sorted(way.least_ns for way in self._ways.values())
        return least[(len(least) - 1) // 2]
