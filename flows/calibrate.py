"""What a recording of the calibration signal, of a flash with a beep, or of a clap says of the devices' clocks.

What the devices' stamps of the same moments differ by is what their clocks differ by, but for the sound's way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from devices.stored_calibrations import CalibrationProblem

from .calibrate_moments import FINDERS, Found, Heard, Method, Seen

SOUND_M_PER_S: Final = 343.0
_WAY_NS: Final = (6_000_000, 6_000_000)
"""How long sound takes to a microphone of which nobody knows the place, and how far off that may be: to 4 m."""
_KNOWN_WAY_NS: Final = 600_000
"""What a measured distance may be off by: 20 cm."""
_AGREE_NS: Final = 25_000_000
"""Clocks that differ by less are taken to be of one time, when it is asked which time that is."""
_LEAST_SKEW_PPB: Final = 3_000.0
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
) -> Outcome:  # fmt: skip
    """Clocks of the devices by the best signal that is in the recording: pulses, else flash and beep, else a clap.

    Args:
        reference: device whose clock is taken as right; by default one of those that most agree with.
        distances_m: from what made the sound to a device, where somebody measured it.
        arrival_error_ns: what the stamps are off by as far as their arrival at the broker tells.

    Raises:
        CalibrationProblem: no signal that two devices have.
    """
    names = [*(d.device for d in heard), *(d.device for d in seen)]
    names = list(dict.fromkeys(names))
    for name in (reference, *(distances_m or {})):
        if name is not None and name not in names:
            raise CalibrationProblem(f"{name}: no such device; there are {', '.join(names)}")
    for method, find in FINDERS:
        found = find(heard, seen)
        if len(found) > 1:
            measured, remarks = _Solving(method, reference, distances_m or {}, arrival_error_ns or {})(found)
            missing = {name: _why(name, seen, method) for name in names if name not in found}
            return Outcome(measured, missing, remarks)
    raise CalibrationProblem(
        "no two devices have the calibration signal, one flash with a beep, or one clap; "
        "`minuted calibrate --signal FILE` writes the signal"
    )


def _why(name: str, seen: Sequence[Seen], method: Method) -> str:
    """Why a device gave nothing, for people."""
    picture = any(d.device == name for d in seen)
    if method == "clap":
        return "a clap places no pictures" if picture else "the clap is not clear there"
    what = "flashes" if picture else "tones"
    one = "flash" if picture else "beep"
    return f"the {what} of the signal are not clear there" if method == "pulses" else f"no single clear {one}"


@dataclass(frozen=True, slots=True)
class _Solving:
    method: Method
    reference: str | None
    distances_m: Mapping[str, float]
    arrival_error_ns: Mapping[str, int]

    def __call__(self, found: Mapping[str, Found]) -> tuple[tuple[Measured, ...], tuple[str, ...]]:
        """All devices against the one that is taken as right."""
        starts = {name: self._start(name, one) for name, one in found.items()}
        right, remarks = self._right(starts)
        zero, zero_half = starts[right]
        measured = []
        for name, one in found.items():
            at, half = starts[name]
            # Between microphones only the difference of their ways counts, to the light each whole way.
            offset = at - zero
            if name == right:
                measured.append(
                    Measured(name, one.kind, "reference", 0, _REFERENCE_NS, 0.0, one.moments[0].at_ns)
                )
                continue
            bound = half + zero_half + self._way_half(name, one, right, found[right]) + _REFERENCE_NS
            skew = self._skew_ppb(one, found[right])
            measured.append(Measured(name, one.kind, self.method, offset, bound, skew, one.moments[0].at_ns))
        return tuple(measured), remarks

    def _start(self, name: str, one: Found) -> tuple[int, int]:
        """Stamp at which the signal was given, without the sound's way, and what the detection is off by."""
        moment = one.moments[0]
        if one.kind == "picture":
            return moment.at_ns, moment.half_ns
        distance = self.distances_m.get(name)
        way = _WAY_NS[0] if distance is None else round(distance / SOUND_M_PER_S * 1e9)
        return moment.at_ns - way, moment.half_ns

    def _way_half(self, name: str, one: Found, right: str, base: Found) -> int:
        """What the unknown ways of the sound to the two devices may differ by."""
        ways = [
            _WAY_NS[1] if self.distances_m.get(n) is None else _KNOWN_WAY_NS
            for n, f in ((name, one), (right, base))
            if f.kind == "sound"
        ]
        # Two microphones of one table: their ways differ by less than the longest way.
        return max(ways, default=0) if self.distances_m.keys().isdisjoint((name, right)) else sum(ways)

    def _right(self, starts: Mapping[str, tuple[int, int]]) -> tuple[str, tuple[str, ...]]:
        """Whose clock is taken as right, and what is to be said of that."""
        if self.reference is not None:
            if self.reference not in starts:
                raise CalibrationProblem(
                    f"{self.reference}: the signal is not clear there; it cannot be the reference"
                )
            return self.reference, ()
        groups = [
            [other for other, (start, _) in starts.items() if abs(start - starts[name][0]) < _AGREE_NS]
            for name in starts
        ]
        most = max(len(group) for group in groups)
        largest = [group for group in groups if len(group) == most]
        several = any(set(group).isdisjoint(largest[0]) for group in largest)
        group = min(largest, key=self._by_arrival) if several and self.arrival_error_ns else largest[0]
        right = min(group, key=lambda name: (starts[name][1], name))
        if not several or self.arrival_error_ns:
            return right, ()
        return right, (
            f"nobody can tell which of the clocks is right: {right} is taken as right; --reference names another",
        )

    def _by_arrival(self, group: Sequence[str]) -> int:
        errors = sorted(abs(self.arrival_error_ns.get(name, _AXIS_NS)) for name in group)
        return errors[len(errors) // 2]

    def _skew_ppb(self, one: Found, base: Found) -> float:
        """By how much the device runs fast, where two trains show more than they may be off by."""
        if len(one.moments) != len(base.moments) or len(one.moments) < 2:
            return 0.0
        took = one.moments[-1].at_ns - one.moments[0].at_ns
        true = base.moments[-1].at_ns - base.moments[0].at_ns
        half = sum(m.half_ns for f in (one, base) for m in (f.moments[0], f.moments[-1])) / 2
        skew, unsure = (took - true) / true * 1e9, half / true * 1e9
        return skew if abs(skew) > max(unsure, _LEAST_SKEW_PPB) else 0.0
