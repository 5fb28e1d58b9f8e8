"""The moments that all devices of a recording have: pulses of the calibration signal, a flash with a beep, a clap.

Cameras have them as light, microphones as sound; each device gives them a stamp of its own clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import scipy.signal  # type: ignore[import-untyped]

from contracts.pulse_train import ON_S, PULSES_S
from operators.clock.cues import chirp_times
from operators.clock.sounds import Window, phat_peak, transform_size

Samples = npt.NDArray[np.float32]
Levels = npt.NDArray[np.float64]
Nanoseconds = npt.NDArray[np.int64]
Method = Literal["pulses", "flash", "clap"]
Edge = tuple[int, int]
"""Between which two stamps something happened, ns."""

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


@dataclass(frozen=True, slots=True)
class Heard:
    """Sound of one device without gaps: stamp of its first sample, mono samples (n,) of full scale 1.

    ``leaves``: places in samples (k,), and by how many ns stamps leave the count of samples there (k,). The clock
    that stamps is seldom the one that samples; None where stamps are counted.
    """

    device: str
    first_ns: int
    rate_hz: int
    samples: Samples
    leaves: tuple[Levels, Levels] | None = None

    def stamp_ns(self, place: float) -> int:
        """Stamp of a place in samples."""
        left = 0.0 if self.leaves is None else float(np.interp(place, *self.leaves))
        return self.first_ns + round(place / self.rate_hz * 1e9 + left)


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


@dataclass(slots=True)
class Found:
    """Moments of one device, in their order."""

    kind: Literal["sound", "picture"]
    moments: list[Moment] = field(default_factory=list)


# --- the signal of contracts/pulse_train.py


def _pulses(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for sound in heard:
        times = np.asarray(chirps(sound), np.float64)
        moments = [
            Moment(sound.first_ns + round((start + _MIDDLE_S) * 1e9), _CHIRP_NS)
            for start in trains(times, 0.003)
        ]
        if moments:
            found[sound.device] = Found("sound", moments)
    for pictures in seen:
        moments = max((_trains_seen(p) for p in _flashes_of(pictures)), key=len, default=[])
        if moments and pictures.device not in found:
            found[pictures.device] = Found("picture", moments)
    return found


def chirps(sound: Heard) -> list[float]:
    """Starts of the signal's tones, in seconds from the first sample by the device's stamps."""
    rate, size = sound.rate_hz, round(_WINDOW_S * sound.rate_hz)
    length = transform_size(size, rate)
    found: list[float] = []
    for begin in range(0, max(1, len(sound.samples)), round(_STEP_S * rate)):
        window = sound.samples[begin : begin + size]
        spectrum = np.fft.rfft(window, length).astype(np.complex64)
        (places,) = chirp_times([Window(0, window, spectrum, length)], rate)
        found += [(sound.stamp_ns(begin + place) - sound.first_ns) / 1e9 for place in places]
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


def _flash(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for sound in heard:
        at = beep(sound)
        if at is not None:
            found[sound.device] = Found("sound", [Moment(sound.stamp_ns(at * sound.rate_hz), _BEEP_NS)])
    for pictures in seen:
        for flashes in _flashes_of(pictures):
            if len(flashes) == 1 and pictures.device not in found:
                began = flashes[0][0]
                half = (began[1] - began[0]) // 2 + _PICTURE_SLACK_NS
                found[pictures.device] = Found("picture", [Moment(_middle(began), half)])
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


def _clap(heard: Sequence[Heard], seen: Sequence[Seen]) -> dict[str, Found]:
    """The microphones by the loudest onset that all of them hear, compared by its very shape."""
    del seen
    if len(heard) < 2:
        return {}
    import librosa  # its import costs a second, and only a clap needs it

    # Any of them may have missed it: the one that most others agree with is what they are compared with.
    hop_s = 0.005
    onsets = [
        librosa.onset.onset_strength(y=d.samples, sr=d.rate_hz, hop_length=round(hop_s * d.rate_hz)) for d in heard
    ]  # fmt: skip
    best: dict[str, Found] = {}
    for base in range(len(heard)):
        found = _clap_at(base, heard, onsets, hop_s)
        best = max(best, found, key=len)
        if len(best) == len(heard):
            break
    return {d.device: best[d.device] for d in heard if d.device in best}


def _clap_at(base: int, heard: Sequence[Heard], onsets: Sequence[Samples], hop_s: float) -> dict[str, Found]:
    """The loudest onset of one microphone, and where the others of its sample rate have it."""
    first, hop = heard[base], round(hop_s * heard[base].rate_hz)
    loudest = int(np.argmax(onsets[base]))
    found = {first.device: Found("sound", [Moment(first.stamp_ns(loudest * hop), _CLAP_NS)])}
    for other, onset in zip(heard, onsets, strict=True):
        # Stamps may be seconds apart, and files begin when they like: compared is what was heard.
        if other is first or other.rate_hz != first.rate_hz:
            continue
        lag = _onset_lag_s(onset, onsets[base], first.rate_hz / hop)
        exact = None if lag is None else _clap_lag_s(other, first, loudest * hop, lag)
        if exact is not None:
            at = other.stamp_ns(loudest * hop + exact * other.rate_hz)
            found[other.device] = Found("sound", [Moment(at, _CLAP_NS)])
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


FINDERS: Final[tuple[tuple[Method, Callable[..., dict[str, Found]]], ...]] = (
    ("pulses", _pulses), ("flash", _flash), ("clap", _clap),
)  # fmt: skip
