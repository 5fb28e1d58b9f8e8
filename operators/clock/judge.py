"""Which devices contradict the rest, which agree again, and whose way to the broker has changed."""

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from operators.clock.equations import PATH_MS, Layout, levels
from operators.clock.solve import Rows, Solution, Vector
from operators.clock.tracked import KNOT_NS, EstimateSettings, Finding, Tracked

_LEAST_PACKETS: Final = 25
"""Of fewer packets all may have been queueing; none queues for as long as TAI and UTC differ."""
_ROUTE_MS: Final = 3.5
_ROUTE_SPREADS: Final = 4.0
_MOST_ROUTES: Final = 3
_DOUBT: Final = 1.5
"""A claim is looked at without it where the solution leaves it by so many times its bound."""
_FOE_SIGMAS: Final = 4.0
"""Two devices contradict each other where what both took in fits worse than this."""
_FAR_SIGMAS: Final = 5.0
"""The same for the way of a voice between them: about eight metres further than to its speaker's own microphone."""
_MOST_PPM: Final = 140.0
_LATE_SIGMAS: Final = 3.0
"""A way to the broker that is longer than usual by more than this speaks against the clock."""
_DOUBT_SIGMAS: Final = 2.5
"""Where a claim is left by more than this, it is no longer relied on; to accuse somebody takes more."""
_CONFIRMED: Final = 2
"""So many estimates in a row must refute a claim, unless by far: one wrong measurement is soon outvoted."""
_LONGEST_WAY_MS: Final = 300.0
"""What cameras of a network take from capture to the broker at most."""
_AGREES_MS: Final = 1.0
_AGREES_SIGMA_MS: Final = 8.0
"""What is known less well than this takes nobody back."""


class Judge:
    """Judges one solution of a meeting that began (on the broker) at ``base_ns``."""

    def __init__(self, settings: EstimateSettings, base_ns: int) -> None:
        self._settings = settings
        self._base_ns = base_ns

    def rough_error_ms(self, tracked: Tracked) -> float | None:
        """Error of a device's stamps by arrival alone."""
        course, mean = tracked.course, self._floor_ms(tracked)[0]
        level = course.envelope.level(course.skew, course.last_x, last=18)
        return None if level is None else mean + (course.zero_ns + tracked.claim_shift_ns - level) / 1e6

    def rough(self, tracked: Tracked) -> list[Finding]:
        """Whether arrival alone lets a claim stand; stamps of the wrong epoch are off by exactly that much."""
        settings, error_ms = self._settings, self.rough_error_ms(tracked)
        packets = sum(hull.count for _, hull in tracked.course.envelope.bins)
        if error_ms is None:
            return []
        most_ms = settings.coarse_ms + tracked.claim.bound_ms
        confused = abs(abs(error_ms) - settings.epoch_ms) <= most_ms
        if packets < _LEAST_PACKETS and not confused:
            return []
        tracked.believed = abs(error_ms) < most_ms
        if tracked.believed or not confused:
            return []
        epoch_ms = math.copysign(settings.epoch_ms, error_ms)
        tracked.claim_shift_ns -= round(epoch_ms * 1e6)
        tracked.believed = tracked.named = True
        return [Finding(tracked.name, "epoch", epoch_ms)]

    def suspects(
        self, known: Sequence[Tracked], layout: Layout, rows: Rows, solution: Solution
    ) -> list[Tracked]:
        """Believed devices whose claim is to be left out for a trial: the one that fits worst.

        Two, where each of them is all that speaks against the other.
        """
        against: dict[tuple[str, str], list[float]] = {}
        for between, residual in zip(rows.between, rows.residuals(solution.x), strict=True):
            if between is not None:
                against.setdefault(between, []).append(abs(float(residual)))
        foes: dict[str, set[str]] = {}
        for (one, two), residuals in against.items():
            if float(np.median(residuals)) > _FOE_SIGMAS:
                foes.setdefault(one, set()).add(two)
                foes.setdefault(two, set()).add(one)
        for (talker, other), column in layout.paths.items():
            if abs(float(solution.x[column]) - PATH_MS[0]) > _FAR_SIGMAS * PATH_MS[1]:
                # Believing both, the voice would have come through more than any room.
                foes.setdefault(talker, set()).add(other)
                foes.setdefault(other, set()).add(talker)
        scores: list[tuple[float, Tracked]] = []
        for tracked in known:
            if tracked.believed:
                errors, _, bounds = self.errors(tracked, layout, solution)
                leaves = float(np.max(np.abs(errors) / bounds))
                strange = self._way_sigmas(tracked, layout, solution)
                score = float(len(foes.get(tracked.name, ())))
                if leaves > _DOUBT or strange > 0.0:
                    score += 100.0 + max(leaves, strange)
                scores.append((score, tracked))
        scores.sort(key=lambda entry: (-entry[0], entry[1].name))
        if not scores or scores[0][0] == 0.0:
            return []
        tied = len(scores) > 1 and scores[1][0] == scores[0][0] == 1.0
        return [tracked for _, tracked in scores[: 2 if tied else 1]]

    def _way_sigmas(self, tracked: Tracked, layout: Layout, solution: Solution) -> float:
        """By how much the shortest way to the broker is none that a packet can have had; 0 where it is one.

        Ways that have become longer since are the network's; the shortest of all counts.
        """
        mean, sigma = self._floor_ms(tracked)
        shortest = min(float(solution.x[column]) for _, column in layout.floors[tracked.name])
        if shortest > mean:
            return max(0.0, (shortest - mean) / sigma - _LATE_SIGMAS)
        # Nothing arrives before it was captured.
        return max(0.0, -shortest - self._settings.accuse_ms)

    def _floor_ms(self, tracked: Tracked) -> tuple[float, float]:
        course, settings = tracked.course, self._settings
        return settings.sound_floor_ms if course.sound else settings.picture_floor_ms

    def verdict(
        self, tracked: Tracked, layout: Layout, solution: Solution
    ) -> Literal["wrong", "doubtful", "fits"]:
        """What is to be said of a claim that was left out.

        ``doubtful``: what was measured leaves it, but not beyond doubt. It is not relied on, and nobody is accused.
        """
        settings = self._settings
        errors, sigmas, bounds = self.errors(tracked, layout, solution)
        beyond = np.abs(errors) - bounds
        drift, drift_sigma, span_s = self._drift(tracked, layout, solution)
        drifts = abs(drift) > max(settings.accuse_ms, settings.accuse_sigmas * drift_sigma)
        if drifts and 1e3 * abs(drift) > _MOST_PPM * span_s:
            # No oscillator is off by so much: something was measured wrongly.
            return "doubtful"
        if drifts or np.any(beyond > np.maximum(settings.accuse_ms, settings.accuse_sigmas * sigmas)):
            return "wrong"
        if self._before_captured(tracked, float(errors[-1]), float(bounds[-1]), layout, solution):
            return "wrong"
        doubtful = np.any(beyond > np.maximum(settings.accuse_ms, _DOUBT_SIGMAS * sigmas))
        return "doubtful" if doubtful else "fits"

    def _before_captured(
        self, tracked: Tracked, error_ms: float, bound_ms: float, layout: Layout, solution: Solution
    ) -> bool:
        """Whether packets would have arrived before they were captured, were the claim right within its bound."""
        last_x = tracked.course.last_x
        column = layout.floor(tracked.name, last_x)
        terms = [(column, 1.0), *layout.deviation(tracked.name, last_x, -1.0)]
        _, sigma = layout.value(terms, solution)
        least_ms = self._settings.accuse_ms + self._settings.accuse_sigmas * sigma
        return float(solution.x[column]) - error_ms + bound_ms < -least_ms

    def new_routes(self, known: Sequence[Tracked], layout: Layout, solution: Solution) -> bool:
        """Find ways to the broker that have become longer or shorter for good."""
        changed = False
        for tracked in known:
            if len(tracked.routes) >= _MOST_ROUTES:
                continue
            left = []
            for number, place, level in levels(tracked):
                terms = [(layout.floor(tracked.name, place), 1.0), (layout.broker[number], 1.0)]
                model, _ = layout.value(terms + layout.deviation(tracked.name, place, -1.0), solution)
                left.append((number, level - model))
            at = _change(left)
            if at is not None and at not in tracked.routes:
                tracked.routes = sorted([*tracked.routes, at])
                changed = True
        return changed

    def named(self, known: Sequence[Tracked], layout: Layout, solution: Solution) -> list[Finding]:
        """Devices that are wrong beyond doubt and were not named, and those that agree again."""
        found = []
        for tracked in known:
            drift, drift_sigma, span_s = self._drift(tracked, layout, solution)
            drifts = abs(drift) > max(self._settings.accuse_ms, self._settings.accuse_sigmas * drift_sigma)
            errors, sigmas, bounds = self.errors(tracked, layout, solution)
            if not tracked.named and not tracked.believed:
                refuted = self.verdict(tracked, layout, solution) == "wrong"
                tracked.refuted = tracked.refuted + 1 if refuted else 0
                far = float(np.max(np.abs(errors))) > self._settings.coarse_ms
                if tracked.refuted >= _CONFIRMED or (refuted and far):
                    ppm = 1e3 * drift / span_s if span_s > 0 else 0.0
                    tracked.named = True
                    what: Literal["skew", "offset"] = "skew" if drifts else "offset"
                    found.append(Finding(tracked.name, what, float(errors[-1]), ppm))
            elif not tracked.named:
                tracked.refuted = 0
            elif not drifts and not tracked.course.doubtful:
                found += self._taken_back(tracked, layout, solution)
            in_doubt = not tracked.named or _as_well_the_way(tracked, errors, sigmas)
            # The claim may be right after all: the bound holds whoever is.
            in_doubt = in_doubt and not tracked.believed
            tracked.doubted_ms = float(np.max(np.abs(errors) + bounds)) if in_doubt else 0.0
        return found

    def _taken_back(self, tracked: Tracked, layout: Layout, solution: Solution) -> list[Finding]:
        """A named device whose stamps have been right for two knots is believed again from there on."""
        last_x = tracked.course.last_x
        since = last_x - 2 * KNOT_NS
        if since < tracked.first_x or any(x > since for x, _ in tracked.jumps):
            return []
        shift_ms = (tracked.course.zero_ns + tracked.course.shift_ns) / 1e6
        for x in (since, last_x):
            value, sigma = layout.value(layout.deviation(tracked.name, x), solution)
            if (
                sigma > _AGREES_SIGMA_MS
                or abs(value + shift_ms) > tracked.claim.bound_ms + _AGREES_MS + sigma
            ):
                return []
        tracked.named, tracked.believed = False, True
        tracked.claim_shift_ns, tracked.claim_from_x = tracked.course.shift_ns, since
        return [Finding(tracked.name, "agrees", 0.0)]

    def errors(self, tracked: Tracked, layout: Layout, solution: Solution) -> tuple[Vector, Vector, Vector]:
        """Error of the stamps where the claim speaks, its uncertainty, and what the claim allows; ms."""
        since = tracked.claim_from_x if tracked.claim_from_x is not None else tracked.first_x
        places = np.linspace(since, tracked.course.last_x, 5)
        shift_ms = (tracked.course.zero_ns + tracked.claim_shift_ns) / 1e6
        found = [layout.value(layout.deviation(tracked.name, float(x)), solution) for x in places]
        ages = np.maximum(places - self._base_ns, 0.0) / 1e9
        bounds = tracked.claim.bound_ms + tracked.claim.per_s_ms * ages
        return np.asarray([v + shift_ms for v, _ in found]), np.asarray([s for _, s in found]), bounds

    def _drift(self, tracked: Tracked, layout: Layout, solution: Solution) -> tuple[float, float, float]:
        """How far the clock has moved over the window, its uncertainty (ms), and the window in s."""
        since = tracked.claim_from_x if tracked.claim_from_x is not None else tracked.first_x
        jumps = [x for x, _ in tracked.jumps if x > since]
        since, last = max([since, *jumps]), tracked.course.last_x
        terms = layout.deviation(tracked.name, last) + layout.deviation(tracked.name, since, -1.0)
        value, sigma = layout.value(terms, solution)
        return value, sigma, (last - since) / 1e9


def _as_well_the_way(tracked: Tracked, errors: Vector, sigmas: Vector) -> bool:
    """Whether pictures that come late may have a long way (some encoders take so long) instead of a late clock."""
    unseen = float(sigmas[-1]) > _AGREES_SIGMA_MS
    return tracked.kind == "picture" and unseen and -_LONGEST_WAY_MS < float(np.min(errors)) < 0.0


def _change(left: Sequence[tuple[int, float]]) -> int | None:
    """Bin from which on what is left over of the envelope lies elsewhere; two bins on either side at least."""
    values = np.asarray([v for _, v in left])
    best, place = 0.0, None
    for split in range(2, len(values) - 1):
        before, after = values[:split], values[split:]
        shift = abs(float(np.median(after) - np.median(before)))
        spread = float(
            np.median(np.abs(before - np.median(before))) + np.median(np.abs(after - np.median(after)))
        )
        if shift > max(_ROUTE_MS, _ROUTE_SPREADS * spread) and shift - spread > best:
            best, place = shift - spread, left[split][0]
    return place
