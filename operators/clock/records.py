"""Clock records from estimates: a device's curve as few straight pieces, each one record.

``t = told - zero - jumps - deviation(x)`` with ``x = told - zero - jumps``, where ``told`` is what the device's
stamps mean by what was said of them. Absolute times stay whole nanoseconds; only differences are floats.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contracts.timeline import ClockRecord
from operators.clock.tracked import EstimateSettings, Tracked
from operators.timeline import to_timeline_ns

_STRAIGHT_MS: Final = 0.1
"""Pieces leave the curve by no more than this."""
_MOST_UNCERTAINTY_NS: Final = 10**15
FIRST_RAW_NS: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class Piece:
    """A straight part of a curve from ``begin_x`` to ``end_x``: deviation there in ms, bound in ms.

    ``shift_ns``: jumps up to it, those excepted that stamps were rewritten for. ``jump_told_ns``: the told
    time of the jump that it begins with.
    """

    begin_x: int
    end_x: int
    begin_ms: float
    end_ms: float
    bound_ms: float
    shift_ns: int
    jump_told_ns: int | None


def to_raw_ns(clock: ClockRecord, timeline_ns: int) -> int:
    """The raw stamp that a record places at a time of the timeline (inverse of ``to_timeline_ns``)."""
    raw_ns = timeline_ns + clock.offset_ns
    if clock.skew_ppb:
        skew = clock.skew_ppb * 1e-9
        raw_ns += round((raw_ns - clock.ref_ns) * (skew / (1.0 - skew)))
    return raw_ns


def pieces(tracked: Tracked, base_ns: int, settings: EstimateSettings) -> list[Piece]:
    """The last solved curve of a device as straight pieces, oldest first."""
    if tracked.curve is None:
        return []
    seconds, values, sigmas = tracked.curve
    places = [base_ns + round(s * 1e9) for s in seconds]
    jumps = tracked.jumps
    shifts = list(itertools.accumulate((jump.by_ns for _, jump in jumps), initial=tracked.shift_before_ns))
    found: list[Piece] = []
    marks = [x for x, _ in jumps]
    marks += [x for f in tracked.freezes for x in (f.begin_x, f.counted_x, f.end_x) if x is not None]
    cuts = [places[0], *sorted({x for x in marks if places[0] < x < places[-1]}), places[-1]]
    for begin, end in itertools.pairwise(cuts):
        stops = [f for f in tracked.freezes if f.begin_x <= begin and (f.end_x or end) >= end]
        extra = sum(f.within_ms(begin) for f in stops)
        passed = sum(x <= begin for x, _ in jumps)
        told = jumps[passed - 1][1].from_raw_ns if passed and jumps[passed - 1][0] == begin else None
        inner = sorted({begin, *(p for p in places if begin < p < end), end})
        # Just before a jump the curve has its last place; after it everything is another piece.
        at = [min(p, end - 1000) if p == end and end != cuts[-1] else p for p in inner]
        curve = np.interp([(p - base_ns) / 1e9 for p in at], seconds, values)
        spread = np.interp([(p - base_ns) / 1e9 for p in at], seconds, sigmas)
        for first, last in _straight(inner, [float(v) for v in curve]):
            # Beyond the last packet nothing is known yet; a bound there would be the bound of a guess.
            known = [p for p in (inner[first], inner[last]) if p <= tracked.course.last_x] or [inner[first]]
            sigma = max(float(spread[inner.index(p)]) for p in known)
            bound = max(settings.cover * sigma + settings.least_bound_ms, tracked.doubted_ms) + extra
            found.append(
                Piece(
                    inner[first],
                    inner[last],
                    float(curve[first]),
                    float(curve[last]),
                    bound,
                    shifts[passed],
                    told if first == 0 else None,
                )
            )
    return found


def _straight(places: Sequence[int], values: Sequence[float]) -> list[tuple[int, int]]:
    """Index pairs of a polyline's corners that leave no point by more than ``_STRAIGHT_MS``."""
    found, first = [], 0
    while first < len(places) - 1:
        last = first + 1
        while last + 1 < len(places) and _fits(places, values, first, last + 1):
            last += 1
        found.append((first, last))
        first = last
    return found


def _fits(places: Sequence[int], values: Sequence[float], first: int, last: int) -> bool:
    slope = (values[last] - values[first]) / (places[last] - places[first])
    return all(
        abs(values[p] - values[first] - slope * (places[p] - places[first])) < _STRAIGHT_MS
        for p in range(first + 1, last)
    )


def record_of(piece: Piece, told: ClockRecord, zero_ns: int, number: int, *, first: bool) -> ClockRecord:
    """The record of a piece.

    Args:
        told: what the device's stamps mean by what was said of them.
        zero_ns: the device's zero of ``x``.
        number: of the record.
        first: nothing older of the device is known: the record holds from ``told``'s beginning.
    """
    shift_ns = zero_ns + piece.shift_ns
    ref_raw = to_raw_ns(told, piece.begin_x + shift_ns)
    slope = (piece.end_ms - piece.begin_ms) * 1e6 / (piece.end_x - piece.begin_x)
    skew = told.skew_ppb * 1e-9
    true_ns = piece.begin_x - round(piece.begin_ms * 1e6)
    # A jump begins at its very stamp, which lies on the other side of it where the clock was set back.
    jump_raw = None if piece.jump_told_ns is None else to_raw_ns(told, piece.jump_told_ns)
    from_raw = told.from_raw_ns if first else ref_raw if jump_raw is None else jump_raw
    return told.model_copy(
        update={
            "number": number, "from_raw_ns": from_raw, "ref_ns": ref_raw, "offset_ns": ref_raw - true_ns,
            "skew_ppb": max(-1e6, min(1e6, 1e9 * (skew + slope - skew * slope))), "method": "online",
            "uncertainty_ns": min(round(piece.bound_ms * 1e6), _MOST_UNCERTAINTY_NS),
        }
    )  # fmt: skip


def differs(new: Sequence[ClockRecord], old: Sequence[ClockRecord], until_raw_ns: int) -> int | None:
    """Index of the first new record that says something else than the old ones, None where none does."""
    for place, record in enumerate(new):
        # The next one's first stamp is no longer this one's.
        end = new[place + 1].from_raw_ns - 1 if place + 1 < len(new) else until_raw_ns
        begin = record.ref_ns
        for raw in (begin, min(max(begin, end), max(begin, until_raw_ns))):
            before = in_force(old, raw)
            if before is None:
                return place
            moved = abs(to_timeline_ns(record, raw) - to_timeline_ns(before, raw))
            most = max(before.uncertainty_ns, 1)
            if moved > most // 3 or not 0.6 < record.uncertainty_ns / most < 1.6:
                return place
    return None


def in_force(records: Sequence[ClockRecord], raw_ns: int) -> ClockRecord | None:
    """The newest of the records that holds for a raw time."""
    return next((r for r in reversed(records) if r.from_raw_ns <= raw_ns), None)
