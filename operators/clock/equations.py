"""The equations of one meeting's clocks: unknowns, and all that was measured or is known beforehand.

Unknown, in milliseconds: the deviation of each device at its knots; the shortest way of each to the broker,
anew after a change of route; the broker's clock in each bin; for each talker and microphone how much later
the sound comes there than at the talker's own; the way of a beep to each microphone; and jumps whose size
the stamps do not tell.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from operators.clock.cues import match_pulses
from operators.clock.solve import Loss, Rows, Solution, Vector
from operators.clock.tracked import KNOT_NS, EstimateSettings, Pair, Tracked

_FLOOR_MS: Final = 0.6
"""Standard uncertainty of the envelope in one bin; the broker's clock alone counts whole milliseconds."""
_DETOUR: Final = 5.0
_BROKER_DRIFT_MS: Final = 0.4
_PAIR_MS: Final = 0.12
PATH_MS: Final = (4.0, 4.0)
"""How much later another microphone hears a talker than the talker's own: any table."""
_OWN_MS: Final = 0.4
"""Nobody sits nearer to another microphone than to the own: such a voice was taken for somebody else's."""
_WAY_MS: Final = 0.6
"""The same where places are known, to about a hand's breadth at either end."""
_SAME_WAY_MS: Final = 0.45
"""How far two people at their microphones are from being mirror images of each other."""
_BEEP_MS: Final = (6.0, 3.0)
"""How long a beep takes to a microphone in a room of which nothing is known."""
_UNSURE_JUMP_NS: Final = 1_000_000
_SPAN_KNOTS: Final = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that was measured."""

    devices: Sequence[Tracked]
    pairs: Mapping[tuple[str, str, int], Sequence[Pair]]
    """By talker's microphone, other microphone and bin."""
    base_ns: int
    seen_until_ns: int
    """Flashes that are over by then count; of later ones some may not be decoded yet."""
    ways: Mapping[tuple[str, str], float]
    """How much later a voice comes to the second microphone than to its speaker's own, the first; ms."""


@dataclass(slots=True)
class Layout:
    """Which column is which unknown."""

    base_ns: int
    count: int = 0
    knots: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Device: first knot, number of knots, first column."""
    jumps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Device: where on x, column."""
    floors: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Device: where on x a way begins, column."""
    broker: dict[int, int] = field(default_factory=dict)
    paths: dict[tuple[str, str], int] = field(default_factory=dict)
    beeps: dict[str, int] = field(default_factory=dict)

    def column(self) -> int:
        """A new unknown."""
        self.count += 1
        return self.count - 1

    def deviation(self, device: str, x_ns: float, sign: float = 1.0) -> list[tuple[int, float]]:
        """Terms of a device's deviation at a place on its axis."""
        first, count, column = self.knots[device]
        at = min(max((x_ns - self.base_ns) / KNOT_NS - first, 0.0), count - 1.0)
        left = min(int(at), count - 2)
        part = at - left
        terms = [(column + left, sign * (1.0 - part)), (column + left + 1, sign * part)]
        return terms + [(c, sign) for place, c in self.jumps.get(device, ()) if x_ns >= place]

    def floor(self, device: str, x_ns: int) -> int:
        """Column of the shortest way to the broker at a place on the device's axis."""
        return [c for begin, c in self.floors[device] if begin <= x_ns][-1]

    def value(self, terms: Sequence[tuple[int, float]], solution: Solution) -> tuple[float, float]:
        """A sum of terms as solved, and its standard uncertainty."""
        columns = [c for c, _ in terms]
        weights = np.asarray([w for _, w in terms])
        variance = float(weights @ solution.covariance[np.ix_(columns, columns)] @ weights)
        return float(weights @ solution.x[columns]), math.sqrt(max(variance, 0.0))

    def curve(self, tracked: Tracked, solution: Solution) -> tuple[Vector, Vector, Vector]:
        """Places (s from the base), deviation (ms), standard uncertainty (ms); jumps have two places."""
        first, count, _ = self.knots[tracked.name]
        # Whole nanoseconds: a float of today's date would lie before the jump half of the time.
        places = {self.base_ns + (first + k) * KNOT_NS for k in range(count)}
        for place, _ in self.jumps.get(tracked.name, ()):
            places |= {place - 1000, place}
        ordered = sorted(places)
        found = [self.value(self.deviation(tracked.name, x), solution) for x in ordered]
        seconds = np.asarray([(x - self.base_ns) / 1e9 for x in ordered])
        return seconds, np.asarray([f[0] for f in found]), np.asarray([f[1] for f in found])


def equations(measured: Measured, settings: EstimateSettings) -> tuple[Layout, Rows]:
    """The unknowns and all equations between them."""
    layout, rows = Layout(measured.base_ns), Rows()
    for tracked in measured.devices:
        _lay_out(tracked, layout)
    _broker(measured.devices, layout, rows, settings)
    for tracked in measured.devices:
        _device(tracked, layout, rows, settings)
        _arrivals(tracked, layout, rows, settings)
    _voices(measured, layout, rows)
    _pulses(measured, layout, rows)
    return layout, rows


def _lay_out(tracked: Tracked, layout: Layout) -> None:
    base = layout.base_ns
    first = (tracked.first_x - base) // KNOT_NS
    last = max(-(-(tracked.course.last_x - base) // KNOT_NS), first + _SPAN_KNOTS)
    column = layout.count
    layout.count += last - first + 1
    layout.knots[tracked.name] = (first, last - first + 1, column)
    unsure = [x for x, jump in tracked.jumps if jump.uncertainty_ns > _UNSURE_JUMP_NS and x > tracked.first_x]
    layout.jumps[tracked.name] = [(x, layout.column()) for x in unsure]
    bins = tracked.course.envelope.bins
    ways = {
        hull.x[0]
        for (one, _), (two, hull) in itertools.pairwise(bins)
        if any(one < route <= two for route in tracked.routes)
    }
    # A jump that only delivery tells leaves open whether the way changed with it: delivery has no second say.
    ways |= {x for x, jump in tracked.jumps if jump.by_arrival and bins[0][1].x[0] < x <= bins[-1][1].x[-1]}
    layout.floors[tracked.name] = [(x, layout.column()) for x in (bins[0][1].x[0], *sorted(ways))]


def _broker(devices: Sequence[Tracked], layout: Layout, rows: Rows, settings: EstimateSettings) -> None:
    """The broker's clock: near the truth at first, and steady but for steps."""
    numbers = sorted({number for t in devices for number, _ in t.course.envelope.bins})
    for number in numbers:
        layout.broker[number] = layout.column()
    rows.add([(layout.broker[numbers[0]], 1.0)], 0.0, settings.broker_ms)
    for one, two in itertools.pairwise(numbers):
        sigma = _BROKER_DRIFT_MS * math.sqrt(two - one)
        rows.add([(layout.broker[two], 1.0), (layout.broker[one], -1.0)], 0.0, sigma, Loss.ROBUST)


def _device(tracked: Tracked, layout: Layout, rows: Rows, settings: EstimateSettings) -> None:
    """Claim, prior and smoothness of one device."""
    first, count, column = layout.knots[tracked.name]
    rows.add([(column + 1, 1.0), (column, -1.0)], 0.0, settings.skew_ppm * KNOT_NS * 1e-12)
    for k in range(count - 2):
        terms = [(column + k, 1.0), (column + k + 1, -2.0), (column + k + 2, 1.0)]
        rows.add(terms, 0.0, settings.wander_ms)
    prior = tracked.prior
    if prior is not None and prior.knot == first:
        rows.add([(column, 1.0)], prior.value_ms, prior.sigma_ms)
        rows.add([(column + 1, 1.0), (column, -1.0)], prior.slope_ms, prior.slope_sigma_ms)
    for (_, jump_column), (_, jump) in zip(
        layout.jumps[tracked.name],
        [j for j in tracked.jumps if j[1].uncertainty_ns > _UNSURE_JUMP_NS and j[0] > tracked.first_x],
        strict=True,
    ):
        rows.add([(jump_column, 1.0)], 0.0, jump.uncertainty_ns / 1e6)
    if not tracked.believed:
        return
    said = -(tracked.course.zero_ns + tracked.claim_shift_ns) / 1e6
    since = tracked.claim_from_x if tracked.claim_from_x is not None else tracked.first_x
    places = [k for k in range(count) if layout.base_ns + (first + k + 1) * KNOT_NS > since]
    for k in places:
        age_s = (first + k) * KNOT_NS / 1e9
        sigma = max((tracked.claim.bound_ms + tracked.claim.per_s_ms * max(age_s, 0.0)) / 2.5, 0.02)
        rows.add([(column + k, 1.0)], said, sigma * math.sqrt(len(places)), Loss.ROBUST)


def _arrivals(tracked: Tracked, layout: Layout, rows: Rows, settings: EstimateSettings) -> None:
    """Envelope of each bin: shortest way plus broker's clock minus deviation."""
    mean, sigma = settings.sound_floor_ms if tracked.course.sound else settings.picture_floor_ms
    for place, (_, column) in enumerate(layout.floors[tracked.name]):
        # A way that came later is the first one and some detour: it is no second witness of the clock's error.
        first = place == 0 and tracked.prior is None
        rows.add([(column, 1.0)], mean, sigma if first else _DETOUR * sigma)
    for number, place, level in levels(tracked):
        terms = [(layout.floor(tracked.name, place), 1.0), (layout.broker[number], 1.0)]
        terms += layout.deviation(tracked.name, place, -1.0)
        rows.add(terms, level, _FLOOR_MS, Loss.FLOOR)


def levels(tracked: Tracked) -> list[tuple[int, int, float]]:
    """Of each bin with enough packets: its number, a place on x, the envelope there in ms."""
    least = 20 if tracked.course.sound else 8
    found = []
    for number, hull in tracked.course.envelope.bins:
        if hull.count >= least:
            place = (hull.x[0] + hull.x[-1]) // 2
            found.append((number, place, hull.lowest(tracked.course.skew, place) / 1e6))
    return found


def _voices(measured: Measured, layout: Layout, rows: Rows) -> None:
    """The same voice at two microphones: their clocks, and the way between them."""
    for (talker, other, _), pairs in measured.pairs.items():
        if not pairs or talker not in layout.knots or other not in layout.knots:
            continue
        if (talker, other) not in layout.paths:
            layout.paths[talker, other] = layout.column()
            rows.add([(layout.paths[talker, other], 1.0)], *PATH_MS)
            rows.add([(layout.paths[talker, other], 1.0)], 0.0, _OWN_MS, Loss.LEAST)
            if (talker, other) in measured.ways:
                # Robust: people lean back, and swap chairs.
                way = measured.ways[talker, other]
                rows.add([(layout.paths[talker, other], 1.0)], way, _WAY_MS, Loss.ROBUST)
        for pair in pairs:
            terms = layout.deviation(other, pair.other_x) + layout.deviation(talker, pair.talker_x, -1.0)
            terms.append((layout.paths[talker, other], 1.0))
            later_ms = (pair.other_x - pair.talker_x) / 1e6
            rows.add(terms, later_ms, _PAIR_MS, Loss.ROBUST, (talker, other))
    for (talker, other), column in layout.paths.items():
        back = layout.paths.get((other, talker))
        if back is not None and talker < other:
            rows.add([(column, 1.0), (back, -1.0)], 0.0, _SAME_WAY_MS)


def _pulses(measured: Measured, layout: Layout, rows: Rows) -> None:
    """The same pulses as light and as sound; light is there at once."""
    watching = [
        (t, pulses)
        for t in measured.devices
        if len(pulses := [p for p in t.flashes.pulses if p[1][1] <= measured.seen_until_ns]) > 3
    ]
    listening = [t for t in measured.devices if len(t.chirps.at_ns) > 3]
    for seen, pulses in watching:
        for heard in listening:
            expected = 0.0
            if seen.curve is not None and heard.curve is not None:
                at = pulses[-1][0][0]
                expected = seen.deviation_ms(at, measured.base_ns) - heard.deviation_ms(at, measured.base_ns)
            match = match_pulses(heard.chirps, pulses, expected * 1e6)
            if match is None:
                continue
            if heard.name not in layout.beeps:
                layout.beeps[heard.name] = layout.column()
                rows.add([(layout.beeps[heard.name], 1.0)], *_BEEP_MS)
            terms = layout.deviation(seen.name, match.x_ns)
            terms += layout.deviation(heard.name, match.x_ns - match.difference_ns, -1.0)
            terms.append((layout.beeps[heard.name], -1.0))
            sigma = match.half_width_ns / 1e6 / math.sqrt(3.0) * math.sqrt(len(listening))
            rows.add(terms, match.difference_ns / 1e6, sigma, Loss.ROBUST, (seen.name, heard.name))
