"""What a recording of the calibration signal, of a flash with a beep, or of a clap says of the devices' clocks.

What the devices' stamps of the same moments differ by is what their clocks differ by, but for the sound's way.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from devices.stored_calibrations import CalibrationProblem

from .calibrate_moments import FINDERS, Found, Heard, Method, Moment, Seen

SOUND_M_PER_S: Final = 343.0
_WAY_NS: Final = (6_000_000, 6_000_000)
"""How long sound takes to a microphone of which nobody knows the place, and how far off that may be: to 4 m."""
_KNOWN_WAY_NS: Final = 600_000
"""What a measured distance may be off by: 20 cm."""
_AGREE_NS: Final = 25_000_000
"""Clocks that differ by less are taken to be of one time, when it is asked which time that is."""
_LEAST_SKEW_PPB: Final = 3_000.0
_SCREEN_NS: Final = 5_000_000
"""By how much more a screen's refresh can make two trains of light differ than their edges show."""
_SAME_NS: Final = 150_000_000
"""Moments of two devices are the same ones where their clocks then differ by one amount, to a tenth of a percent."""
_ANOTHER_NS: Final = 22_000_000_000
"""Half of what lies between the trains of the signal: who has but one of them may have the other one."""
_AXIS_NS: Final = 5 * 10**18
_REFERENCE_NS: Final = 1_000_000
"""What the clock that is taken as right may be off by."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one device's stamps are off by: late where ``offset_ns`` is above 0."""

    device: str
    kind: Literal["sound", "picture"]
    method: Method | Literal["reference"]
    offset_ns: int
    uncertainty_ns: int
    skew_ppb: float
    at_ns: int
    """Stamp for which the offset holds."""

    @property
    def wrong(self) -> bool:
        """The offset is more than the measurement's own uncertainty."""
        return abs(self.offset_ns) > self.uncertainty_ns


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured, devices that gave nothing with the reason, and what people should know beside it."""

    measured: tuple[Measured, ...]
    missing: Mapping[str, str]
    remarks: tuple[str, ...] = ()


def measure(
    heard: Sequence[Heard], seen: Sequence[Seen], *, reference: str | None = None,
    distances_m: Mapping[str, float] | None = None, arrival_error_ns: Mapping[str, int] | None = None,
    unmeasurable: Mapping[str, str] | None = None,
) -> Outcome:  # fmt: skip
    """Clocks of the devices by the best signal that is in the recording: pulses, else flash and beep, else a clap.

    Args:
        reference: device whose clock is taken as right; by default one of those that most agree with.
        distances_m: from what made the sound to a device, where somebody measured it.
        arrival_error_ns: what the stamps are off by as far as their arrival at the broker tells.
        unmeasurable: devices that have neither sound nor pictures, and why.

    Raises:
        CalibrationProblem: no signal that two devices have.
    """
    names = list(dict.fromkeys([*(d.device for d in heard), *(d.device for d in seen)]))
    without = dict(unmeasurable or {})
    if not names:
        raise CalibrationProblem(f"there is nothing to measure{_listed(without)}")
    for name in (reference, *(distances_m or {})):
        if name is not None and name not in names:
            why = without.get(name, f"no such device; there are {', '.join(names)}")
            raise CalibrationProblem(f"{name}: {why}")
    alone: str | None = None
    for method, find in FINDERS:
        found = find(heard, seen)
        if len(found) > 1:
            solving = _Solving(method, reference, distances_m or {}, arrival_error_ns or {})
            measured, unclear, remarks = solving(found)
            missing = {name: _why(name, heard, seen, method) for name in names if name not in found}
            return Outcome(measured, {**missing, **unclear, **without}, remarks)
        if method == "pulses":
            alone = next(iter(found), None)
    raise CalibrationProblem(_unmeasured(names, alone) + _listed(without))


def _unmeasured(names: Sequence[str], alone: str | None) -> str:
    """What is missing for a measurement: ``alone`` is the only device that has the signal."""
    if len(names) == 1:
        has = "has the calibration signal" if alone else "has no clear calibration signal either"
        return (
            f"{names[0]} is the only device here, and clocks are measured against each other; it {has}; "
            "record with two devices or more"
        )
    others = ", ".join(name for name in names if name != alone)
    if alone is not None:
        return f"only {alone} has the calibration signal; it is not clear in {others}"
    return (
        f"no two devices of {others} have the calibration signal, one flash with a beep, or one clap; "
        "`minuted calibrate --signal FILE` writes the signal"
    )


def _listed(without: Mapping[str, str]) -> str:
    return "".join(f"; {name}: {why}" for name, why in sorted(without.items()))


def _why(name: str, heard: Sequence[Heard], seen: Sequence[Seen], method: Method) -> str:
    """Why a device gave nothing, for people."""
    picture = any(d.device == name for d in seen)
    if method == "clap":
        rates = {d.rate_hz for d in heard}
        if not picture and len(rates) > 1:
            return "the clap is not clear there, or its sample rate is another one"
        return "a clap places no pictures" if picture else "the clap is not clear there"
    what = "flashes" if picture else "tones"
    one = "flash" if picture else "beep"
    return f"the {what} of the signal are not clear there" if method == "pulses" else f"no single clear {one}"


_ANOTHER: Final = (
    "it has one of the signal's two trains, and which is not clear; let all devices take in the whole signal"
)


@dataclass(frozen=True, slots=True)
class _Solving:
    method: Method
    reference: str | None
    distances_m: Mapping[str, float]
    arrival_error_ns: Mapping[str, int]

    def __call__(
        self, found: Mapping[str, Found]
    ) -> tuple[tuple[Measured, ...], Mapping[str, str], tuple[str, ...]]:
        """All devices against the one that is taken as right; those that cannot be, with the reason; remarks."""
        most = max(len(one.moments) for one in found.values())
        widest = next(name for name, one in found.items() if len(one.moments) == most)
        same = {name: self._same(name, one, widest, found[widest]) for name, one in found.items()}
        clear = {name: moments for name, moments in same.items() if moments}
        right, remarks = self._right(
            {name: self._start(name, found[name], moments, found[widest]) for name, moments in clear.items()}
        )
        measured: list[Measured] = []
        missing = dict.fromkeys(same.keys() - clear.keys(), _ANOTHER)
        for name, moments in clear.items():
            shared = sorted(moments.keys() & clear[right].keys())
            if shared:
                ends = [(moments[k], clear[right][k]) for k in (shared[0], shared[-1])]
                measured.append(self._measured(name, found[name], right, found[right], ends))
            else:
                missing[name] = _ANOTHER
        return tuple(measured), missing, remarks

    def _measured(
        self, name: str, one: Found, right: str, base: Found, ends: Sequence[tuple[Moment, Moment]]
    ) -> Measured:
        """One device by the first and last moment that it shares with the one that is taken as right."""
        (mine, theirs), _ = ends
        if name == right:
            return Measured(name, one.kind, "reference", 0, _REFERENCE_NS, 0.0, mine.at_ns)
        # Between microphones only the difference of their ways counts, to the light each whole way.
        offset = mine.at_ns - self._way(name, one) - theirs.at_ns + self._way(right, base)
        bound = mine.half_ns + theirs.half_ns + self._way_half(name, one, right, base) + _REFERENCE_NS
        return Measured(
            name, one.kind, self.method, offset, bound, self._skew_ppb(one, base, ends), mine.at_ns
        )

    def _same(self, name: str, one: Found, widest: str, all_of: Found) -> dict[int, Moment]:
        """The device's moments by which of the widest one's they are; none where that is not clear.

        Who joins late has the second train of the signal alone, and must not be taken for late by as much.
        """
        expected = self.arrival_error_ns.get(name, 0) - self.arrival_error_ns.get(widest, 0)
        best: dict[int, Moment] = {}
        best_off = 0
        for shift in {m.at_ns - base.at_ns for m in one.moments for base in all_of.moments}:
            pairs = {
                k: m
                for k, base in enumerate(all_of.moments)
                for m in one.moments
                if abs(m.at_ns - base.at_ns - shift) < _SAME_NS
            }
            off = abs(shift - expected)
            if not best or (-len(pairs), off) < (-len(best), best_off):
                best, best_off = pairs, off
        # One train alone says nothing of which of the two it is.
        unclear = self.method == "pulses" and len(best) == 1 and best_off > _ANOTHER_NS
        return {} if unclear else best

    def _start(
        self, name: str, one: Found, moments: Mapping[int, Moment], widest: Found
    ) -> tuple[int, int, int]:
        """What the device's clock differs by from the widest one's, to what, and how many moments say so."""
        first = min(moments)
        at = moments[first].at_ns - self._way(name, one) - widest.moments[first].at_ns
        return at, moments[first].half_ns, len(moments)

    def _way(self, name: str, one: Found) -> int:
        """How long the sound takes to a microphone; light is there at once."""
        if one.kind == "picture":
            return 0
        distance = self.distances_m.get(name)
        return _WAY_NS[0] if distance is None else round(distance / SOUND_M_PER_S * 1e9)

    def _way_half(self, name: str, one: Found, right: str, base: Found) -> int:
        """What the unknown ways of the sound to the two devices may differ by."""
        ways = [
            _WAY_NS[1] if self.distances_m.get(n) is None else _KNOWN_WAY_NS
            for n, f in ((name, one), (right, base))
            if f.kind == "sound"
        ]
        # Two microphones of one table: their ways differ by less than the longest way.
        return max(ways, default=0) if self.distances_m.keys().isdisjoint((name, right)) else sum(ways)

    def _right(self, starts: Mapping[str, tuple[int, int, int]]) -> tuple[str, tuple[str, ...]]:
        """Whose clock is taken as right, and what is to be said of that."""
        if self.reference is not None:
            if self.reference not in starts:
                raise CalibrationProblem(
                    f"{self.reference}: the signal is not clear there; it cannot be the reference"
                )
            return self.reference, ()
        groups = [
            [other for other, (start, *_) in starts.items() if abs(start - starts[name][0]) < _AGREE_NS]
            for name in starts
        ]
        most = max(len(group) for group in groups)
        largest = [group for group in groups if len(group) == most]
        several = any(set(group).isdisjoint(largest[0]) for group in largest)
        group = min(largest, key=self._by_arrival) if several and self.arrival_error_ns else largest[0]
        right = min(group, key=lambda name: (-starts[name][2], starts[name][1], name))
        if not several or self.arrival_error_ns:
            return right, ()
        return right, (
            f"nobody can tell which of the clocks is right: {right} is taken as right; --reference names another",
        )

    def _by_arrival(self, group: Sequence[str]) -> int:
        errors = sorted(abs(self.arrival_error_ns.get(name, _AXIS_NS)) for name in group)
        return errors[len(errors) // 2]

    def _skew_ppb(self, one: Found, base: Found, ends: Sequence[tuple[Moment, Moment]]) -> float:
        """By how much the device runs fast, where two trains show more than they may be off by."""
        (mine, theirs), (mine_last, theirs_last) = ends
        took, true = mine_last.at_ns - mine.at_ns, theirs_last.at_ns - theirs.at_ns
        if true <= 0:
            return 0.0
        # Tones are off at random; the edges of lights leave an interval, anywhere in which the truth may lie.
        halves = [(f.kind, m.half_ns) for f, m in zip((one, base) * 2, (*ends[0], *ends[1]), strict=True)]
        half = math.hypot(*(h for kind, h in halves if kind == "sound"))
        half += sum(h for kind, h in halves if kind == "picture")
        half += _SCREEN_NS if "picture" in (one.kind, base.kind) else 0
        skew, unsure = (took - true) / true * 1e9, half / true * 1e9
        return skew if abs(skew) > max(unsure, _LEAST_SKEW_PPB) else 0.0
