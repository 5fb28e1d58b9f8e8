"""Which devices contradict the rest, which agree again, and whose way to the broker has changed."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from operators.clock.equations import Layout, levels
from operators.clock.solve import Solution
from operators.clock.tracked import KNOT_NS, EstimateSettings, Finding, Tracked

_ROUTE_MS: Final = 3.5
_ROUTE_SPREADS: Final = 4.0
_MOST_ROUTES: Final = 3
_DOUBT: Final = 1.5
"""A claim is looked at without it where the solution leaves it by so many times its bound."""
_AGREES_MS: Final = 1.0
_AGREES_SIGMA_MS: Final = 4.0


class Judge:
    """Judges one solution of a meeting that began (on the broker) at ``base_ns``."""

    def __init__(self, settings: EstimateSettings, base_ns: int) -> None:
        self._settings = settings
        self._base_ns = base_ns

    def rough(self, tracked: Tracked) -> bool:
        """Whether arrival alone lets a claim stand."""
        settings, course = self._settings, tracked.course
        mean = (settings.sound_floor_ms if course.sound else settings.picture_floor_ms)[0]
        level = course.envelope.level(course.skew, course.last_x, last=18)
        if level is None:
            return True
        error_ms = mean + (course.zero_ns + tracked.claim_shift_ns - level) / 1e6
        return abs(error_ms) < settings.coarse_ms + tracked.claim.bound_ms

    def contradicting(self, known: Sequence[Tracked], layout: Layout, solution: Solution) -> list[Tracked]:
        """Devices whose claims the solution has left."""
        found = []
        for tracked in known:
            if tracked.believed:
                errors, _, bounds = self._errors(tracked, layout, solution)
                if np.any(np.abs(errors) > _DOUBT * bounds):
                    found.append(tracked)
        return found

    def new_routes(self, known: Sequence[Tracked], layout: Layout, solution: Solution) -> bool:
        """Find ways to the broker that have become longer or shorter for good."""
        changed = False
        for tracked in known:
            if len(tracked.routes) >= _MOST_ROUTES:
                continue
            left = []
            for number, place, level in levels(tracked):
                terms = [(layout.floor(tracked.name, number), 1.0), (layout.broker[number], 1.0)]
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
            errors, sigmas, bounds = self._errors(tracked, layout, solution)
            drift, drift_sigma, span_s = self._drift(tracked, layout, solution)
            drifts = abs(drift) > max(self._settings.accuse_ms, self._settings.accuse_sigmas * drift_sigma)
            ppm = 1e3 * drift / span_s if span_s > 0 else 0.0
            if not tracked.named and not tracked.believed:
                margin = np.maximum(self._settings.accuse_ms, self._settings.accuse_sigmas * sigmas)
                worst = int(np.argmax(np.abs(errors) - bounds - margin))
                off = abs(errors[worst]) - bounds[worst] > margin[worst]
                if off or drifts:
                    tracked.named = True
                    what = "skew" if drifts else "offset"
                    found.append(Finding(tracked.name, what, float(errors[-1]), ppm))
            elif tracked.named and not drifts and not tracked.course.doubtful:
                found += self._taken_back(tracked, layout, solution)
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
            if sigma > _AGREES_SIGMA_MS or abs(value + shift_ms) > tracked.claim.bound_ms + _AGREES_MS:
                return []
        tracked.named, tracked.believed = False, True
        tracked.claim_shift_ns, tracked.claim_from_x = tracked.course.shift_ns, since
        return [Finding(tracked.name, "agrees", 0.0)]

    def _errors(
        self, tracked: Tracked, layout: Layout, solution: Solution
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
