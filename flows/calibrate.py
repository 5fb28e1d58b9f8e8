"""What a recording of the calibration signal, of a flash with a beep, or of a clap says of the devices' clocks.

All devices of the recording have the same moments in it: cameras as light, microphones as sound. Each moment
has a stamp of each device; what the stamps differ by is what the clocks differ by, but for the sound's way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import scipy.signal  # type: ignore[import-untyped]

from contracts.pulse_train import ON_S, PULSES_S
from devices.stored_calibrations import CalibrationProblem
from operators.clock.cues import chirp_times
from operators.clock.sounds import Window, phat_peak, transform_size

Samples = npt.NDArray[np.float32]
Levels = npt.NDArray[np.float64]
Nanoseconds = npt.NDArray[np.int64]
Method = Literal["pulses", "flash", "clap"]
Edge = tuple[int, int]
"""Between which two stamps something happened, ns."""

SOUND_M_PER_S: Final = 343.0
_WAY_NS: Final = (6_000_000, 6_000_000)
"""How long sound takes to a microphone of which nobody knows the place, and how far off that may be: to 4 m."""
_KNOWN_WAY_NS: Final = 600_000
"""What a measured distance may be off by: 20 cm."""
_AGREE_NS: Final = 25_000_000
"""Clocks that differ by less are taken to be of one time, when it is asked which time that is."""
_CHIRP_NS: Final = 300_000
_LEAST_PULSES: Final = 6
_MIDDLE_S: Final = sum(PULSES_S) / len(PULSES_S)
"""Moments are the middles of trains: there a clock that runs fast or slow has shifted as much before as after."""
_PICTURE_SLACK_NS: Final = 1_500_000
_REFRESH_NS: Final = 22_000_000
"""Screens show light at their next picture: at 50 a second it is up to 20 ms late."""
_LIT: Final = 0.1
_STAYS_NS: Final = 700_000_000
_BEEP_NS: Final = 2_500_000
_RISE_S: Final = 0.004
_DIRECT: Final = 0.12
"""Share of a tone's greatest level that its direct sound has at least, at the far end of a room."""
_CLAP_NS: Final = 300_000
_WINDOW_S: Final = 2.0
_STEP_S: Final = 1.5
_TONAL: Final = 0.6
_MOST_CLAP_LAG_S: Final = 30.0
_LEAST_SKEW_PPB: Final = 3_000.0
_AXIS_NS: Final = 5 * 10**18
_REFERENCE_NS: Final = 1_000_000
"""What the clock that is taken as right may be off by."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Sound of one device without gaps: stamp of its first sample, mono samples (n,) of full scale 1."""

    device: str
    first_ns: int
    rate_hz: int
    samples: Samples

    def stamp_ns(self, place: float) -> int:
        """Stamp of a place in samples."""
        return self.first_ns + round(place / self.rate_hz * 1e9)


@dataclass(frozen=True, slots=True)
class Seen:
    """Pictures of one device: stamps (n,), and of each its mean and nearly its darkest brightness (n,), 0..1.

    On a screen with text the mean hardly moves when all of it turns white; its darkest part does.
    """

    device: str
    at_ns: Nanoseconds
    mean: Levels
    dark: Levels


@dataclass(frozen=True, slots=True)
class Moment:
    """A device's stamp of a moment that others have as well, and what it may be off by."""

    at_ns: int
    half_ns: int


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


@dataclass(slots=True)
class _Found:
    kind: Literal["sound", "picture"]
    moments: list[Moment] = field(default_factory=list)


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
    for method, find in _FINDERS:
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


# --- the signal of contracts/pulse_train.py


def _pulses(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for sound in heard:
        times = np.asarray(chirps(sound), np.float64)
        moments = [
            Moment(sound.first_ns + round((start + _MIDDLE_S) * 1e9), _CHIRP_NS)
            for start in trains(times, 0.003)
        ]
        if moments:
            found[sound.device] = _Found("sound", moments)
    for pictures in seen:
        moments = max((_trains_seen(p) for p in _flashes_of(pictures)), key=len, default=[])
        if moments and pictures.device not in found:
            found[pictures.device] = _Found("picture", moments)
    return found


def chirps(sound: Heard) -> list[float]:
    """Starts of the signal's tones, in seconds from the first sample."""
    rate, size = sound.rate_hz, round(_WINDOW_S * sound.rate_hz)
    length = transform_size(size, rate)
    found: list[float] = []
    for begin in range(0, max(1, len(sound.samples)), round(_STEP_S * rate)):
        window = sound.samples[begin : begin + size]
        spectrum = np.fft.rfft(window, length).astype(np.complex64)
        found += [(begin + place) / rate for place in chirp_times(window, spectrum, length, rate)]
    kept: list[float] = []
    for at in sorted(found):
        if not kept or at - kept[-1] > 0.05:
            kept.append(at)
    return kept


def trains(times_s: Levels, tolerance_s: float) -> list[float]:
    """Where trains of pulses begin among the times (n,), each known to a tolerance; those of most pulses first found.

    No two gaps of the train are alike, so that one lost or added pulse moves nothing.
    """
    rest, found = np.sort(times_s), list[float]()
    pulses = np.asarray(PULSES_S)
    while len(rest) >= _LEAST_PULSES:
        starts = (rest[:, None] - pulses[None, :]).ravel()
        wanted = starts[:, None] + pulses[None, :]
        after = np.clip(np.searchsorted(rest, wanted), 1, len(rest) - 1)
        away = np.minimum(np.abs(rest[after] - wanted), np.abs(rest[after - 1] - wanted))
        hits = (away < tolerance_s).sum(axis=1)
        best = int(np.argmax(hits))
        if hits[best] < _LEAST_PULSES:
            break
        apart = rest[:, None] - (starts[best] + pulses[None, :])
        near = np.abs(apart) < tolerance_s
        found.append(float(starts[best] + np.median(apart[near])))
        rest = rest[~near.any(axis=1)]
    return sorted(found)


def _trains_seen(flashes: Sequence[tuple[Edge, Edge]]) -> list[Moment]:
    """Trains among flashes: each edge of each light narrows down when the train began."""
    lights = [f for f in flashes if abs(_middle(f[1]) - _middle(f[0]) - ON_S * 1e9) < 60_000_000]
    if not lights:
        return []
    zero = lights[0][0][0]
    times = np.asarray([(_middle(began) - zero) / 1e9 for began, _ in lights])
    moments: list[Moment] = []
    for start in trains(times, 0.06):
        low, high = list[int](), list[int]()
        for began, ended in lights:
            pulse = min(PULSES_S, key=lambda p: abs((_middle(began) - zero) / 1e9 - start - p))
            if abs((_middle(began) - zero) / 1e9 - start - pulse) > 0.06:
                continue
            on, off = round(pulse * 1e9), round((pulse + ON_S) * 1e9)
            low += [began[0] - on, ended[0] - off]
            high += [began[1] - on, ended[1] - off]
        # Edges contradict each other by what a screen takes from one picture to the next.
        least, most = max(low), min(high)
        if least - most < _REFRESH_NS:
            half = abs(most - least) // 2 + _PICTURE_SLACK_NS
            moments.append(Moment((least + most) // 2 + round(_MIDDLE_S * 1e9), half))
    return moments


# --- one flash and one beep


def _flash(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for sound in heard:
        at = beep(sound)
        if at is not None:
            found[sound.device] = _Found("sound", [Moment(sound.first_ns + round(at * 1e9), _BEEP_NS)])
    for pictures in seen:
        for flashes in _flashes_of(pictures):
            if len(flashes) == 1 and pictures.device not in found:
                began = flashes[0][0]
                half = (began[1] - began[0]) // 2 + _PICTURE_SLACK_NS
                found[pictures.device] = _Found("picture", [Moment(_middle(began), half)])
    return found


def _middle(edge: Edge) -> int:
    return (edge[0] + edge[1]) // 2


def _flashes_of(pictures: Seen) -> list[list[tuple[Edge, Edge]]]:
    """Flashes by mean and by darkest brightness: edges at which the light went on and off."""
    return [flashes_in(pictures.at_ns, levels) for levels in (pictures.mean, pictures.dark)]


def flashes_in(at_ns: Nanoseconds, levels: Levels) -> list[tuple[Edge, Edge]]:
    """Flashes in pictures with these stamps (n,) and levels (n,).

    A picture more than half lit has the middle of its exposure after the light went on.
    """
    if len(levels) < 5:
        return []
    usual_ns = int(np.median(np.diff(at_ns)))
    window = max(3, round(2e9 / max(usual_ns, 1)) // 2 * 2 + 1)
    padded = np.pad(levels, window // 2, mode="edge")
    quiet = scipy.signal.medfilt(padded, window)[window // 2 : window // 2 + len(levels)]
    rise = levels - quiet
    found: list[tuple[Edge, Edge]] = []
    lit = np.flatnonzero(rise > _LIT)
    for run in np.split(lit, np.flatnonzero(np.diff(lit) > 1) + 1) if len(lit) else []:
        half = run[rise[run] > 0.5 * rise[run].max()]
        first, last = int(half[0]), int(half[-1])
        if first == 0 or last + 1 >= len(levels) or at_ns[last] - at_ns[first] > _STAYS_NS:
            continue
        # Where a picture is only sent when it changes, the one before does not say when it changed.
        before = max(int(at_ns[first - 1]), int(at_ns[first]) - 2 * usual_ns)
        after = min(int(at_ns[last + 1]), int(at_ns[last]) + 2 * usual_ns)
        found.append(((before, int(at_ns[first])), (int(at_ns[last]), after)))
    return found


def beep(sound: Heard) -> float | None:
    """Start of the only beep of 60 to 500 ms, in seconds from the first sample; None where there is not one."""
    rate, hop = sound.rate_hz, max(1, sound.rate_hz // 250)
    size = round(0.032 * rate)
    if len(sound.samples) < 4 * size:
        return None
    freqs, times, spectrum = scipy.signal.stft(
        sound.samples, rate, nperseg=size, noverlap=size - hop, boundary=None, padded=False
    )
    power = np.square(np.abs(spectrum))
    power[freqs < 150.0] = 0.0
    top = power.argmax(axis=0)
    summed = np.cumsum(np.pad(power, ((1, 0), (0, 0))), axis=0)
    near = summed[np.minimum(top + 3, len(freqs)), np.arange(len(top))] - summed[
        np.maximum(top - 2, 0), np.arange(len(top))
    ]  # fmt: skip
    share = near / np.maximum(summed[-1], 1e-12)
    tonal = (share > _TONAL) & (freqs[top] > 600.0) & (summed[-1] > 1e-7)
    runs = np.split(np.flatnonzero(tonal), np.flatnonzero(np.diff(np.flatnonzero(tonal)) > 1) + 1)
    beeps: list[tuple[float, float]] = []
    for run in runs:
        pitch = top[run]
        if not 0.04 <= len(run) * hop / rate <= 0.5 or np.ptp(pitch) > 2:
            continue
        beeps.append((float(times[run[0]]), float(freqs[int(np.median(pitch))])))
    return _risen(sound, *beeps[0]) if len(beeps) == 1 else None


def _risen(sound: Heard, about_s: float, pitch_hz: float) -> float:
    """When a tone of this pitch that sounds at about this time began.

    Rooms let a tone swell for tens of milliseconds: looked for is what comes straight from its source, well above
    what was there before.
    """
    rate = sound.rate_hz
    begin = max(0, round((about_s - 0.1) * rate))
    cut = sound.samples[begin : begin + round(0.18 * rate)]
    turned = cut * np.exp(-2j * np.pi * pitch_hz * np.arange(len(cut)) / rate)
    window = max(1, round(_RISE_S * rate))
    level = np.abs(np.convolve(turned, np.ones(window) / window, "same"))
    before = float(np.max(level[: round(0.04 * rate)]))
    sure = max(1.5 * before, _DIRECT * float(np.max(level)))
    place = int(np.argmax(level > sure))
    # The window lets the level rise before the tone begins: by as much of its length as it then holds.
    return float((begin + place) / rate + _RISE_S * (0.5 - min(0.5, sure / float(np.max(level)))))


# --- a clap, or whatever else all microphones hear


def _clap(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, _Found]:
    """The microphones by the loudest onset that all of them hear, compared by its very shape."""
    del seen
    if len(heard) < 2:
        return {}
    import librosa  # its import costs a second, and only a clap needs it

    first = heard[0]
    hop = first.rate_hz // 200
    onsets = [
        librosa.onset.onset_strength(y=d.samples, sr=d.rate_hz, hop_length=round(hop * d.rate_hz / first.rate_hz))
        for d in heard
    ]  # fmt: skip
    rate = first.rate_hz / hop
    loudest = int(np.argmax(onsets[0]))
    found = {first.device: _Found("sound", [Moment(first.stamp_ns(loudest * hop), _CLAP_NS)])}
    for other, onset in zip(heard[1:], onsets[1:], strict=True):
        # Stamps may be seconds apart, and files begin when they like: compared is what was heard.
        lag = _onset_lag_s(onset, onsets[0], rate)
        if lag is None or other.rate_hz != first.rate_hz:
            continue
        exact = _clap_lag_s(other, first, loudest * hop, lag)
        if exact is not None:
            at = other.stamp_ns(loudest * hop + exact * other.rate_hz)
            found[other.device] = _Found("sound", [Moment(at, _CLAP_NS)])
    return found


def _onset_lag_s(later: Samples, earlier: Samples, rate: float) -> float | None:
    """By how much the first recording has the same onsets later in its file; None where that is not clear."""
    one, two = later - later.mean(), earlier - earlier.mean()
    scale = float(np.linalg.norm(one) * np.linalg.norm(two))
    if scale <= 0.0:
        return None
    match = scipy.signal.correlate(one, two, method="fft") / scale
    lags = scipy.signal.correlation_lags(len(one), len(two)) / rate
    match[np.abs(lags) > _MOST_CLAP_LAG_S] = 0.0
    top = int(np.argmax(match))
    elsewhere = match[np.abs(lags - lags[top]) > 0.1]
    if match[top] < 0.25 or match[top] < 1.4 * float(elsewhere.max(initial=0.0)):
        return None
    return float(lags[top])


def _clap_lag_s(other: Heard, first: Heard, place: int, lag_s: float) -> float | None:
    """The same to a part of a sample, by the phases of a second around the clap."""
    rate, size = first.rate_hz, first.rate_hz
    length = transform_size(size, rate)
    begin = max(0, place - size // 4)
    begins = (max(0, begin + round(lag_s * rate)), begin)
    windows = []
    for sound, start in zip((other, first), begins, strict=True):
        cut = np.zeros(size, np.float32)
        part = sound.samples[start : start + size]
        cut[: len(part)] = part
        windows.append(Window(0, cut, np.fft.rfft(cut, length).astype(np.complex64), length))
    peak = phat_peak(windows[0], windows[1], rate)
    return None if peak is None else (begins[0] - begins[1]) / rate + peak.lag_s


_FINDERS: Final[tuple[tuple[Method, Callable[..., dict[str, _Found]]], ...]] = (
    ("pulses", _pulses), ("flash", _flash), ("clap", _clap),
)  # fmt: skip


# --- from moments to clocks


@dataclass(frozen=True, slots=True)
class _Solving:
    method: Method
    reference: str | None
    distances_m: Mapping[str, float]
    arrival_error_ns: Mapping[str, int]

    def __call__(self, found: Mapping[str, _Found]) -> tuple[tuple[Measured, ...], tuple[str, ...]]:
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

    def _start(self, name: str, one: _Found) -> tuple[int, int]:
        """Stamp at which the signal was given, without the sound's way, and what the detection is off by."""
        moment = one.moments[0]
        if one.kind == "picture":
            return moment.at_ns, moment.half_ns
        distance = self.distances_m.get(name)
        way = _WAY_NS[0] if distance is None else round(distance / SOUND_M_PER_S * 1e9)
        return moment.at_ns - way, moment.half_ns

    def _way_half(self, name: str, one: _Found, right: str, base: _Found) -> int:
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

    def _skew_ppb(self, one: _Found, base: _Found) -> float:
        """By how much the device runs fast, where two trains show more than they may be off by."""
        if len(one.moments) != len(base.moments) or len(one.moments) < 2:
            return 0.0
        took = one.moments[-1].at_ns - one.moments[0].at_ns
        true = base.moments[-1].at_ns - base.moments[0].at_ns
        half = sum(m.half_ns for f in (one, base) for m in (f.moments[0], f.moments[-1])) / 2
        skew, unsure = (took - true) / true * 1e9, half / true * 1e9
        return skew if abs(skew) > max(unsure, _LEAST_SKEW_PPB) else 0.0
