"""Flashes in pictures and chirps in sound: the calibration signal as cameras and microphones take it in."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from contracts.pulse_train import CHIRP_FROM_HZ, CHIRP_S, CHIRP_TO_HZ, ON_S
from operators.clock.sounds import Window

Samples = npt.NDArray[np.float32]
Spectrum = npt.NDArray[np.complex64]

_LIT: Final = 0.12
"""Least rise of brightness (full scale 1) that can be a flash."""
_CHIRP_MATCH: Final = 0.3
_APART_NS: Final = 300_000_000
_LONGEST_NS: Final = 600_000_000
_MATCH_NS: Final = 250_000_000
_LEAST_PULSES: Final = 4
_AGREE: Final = 0.6
"""Share of the pulses that must agree."""
_SLACK_NS: Final = 1_500_000
"""By how much edges may contradict each other: stamps are noisy, rolling shutters smear."""
MOST_PULSES: Final = 32
Pulse = tuple[tuple[int, int], tuple[int, int]]
"""Interval in which a flash began, and in which it ended."""


@lru_cache(maxsize=8)
def chirp(rate_hz: int) -> Samples:
    """The tone of one pulse, shape (samples,), full scale 1, with soft ends."""
    time = np.arange(round(CHIRP_S * rate_hz)) / rate_hz
    phase = 2 * np.pi * (CHIRP_FROM_HZ * time + 0.5 * (CHIRP_TO_HZ - CHIRP_FROM_HZ) / CHIRP_S * time**2)
    tone: Samples = (np.sin(phase) * np.hanning(len(time)) ** 0.5).astype(np.float32)
    return tone


@lru_cache(maxsize=8)
def _chirp_spectrum(rate_hz: int, size: int) -> Spectrum:
    return np.conj(np.fft.rfft(chirp(rate_hz), size))


def chirp_times(windows: Sequence[Window], rate_hz: int) -> list[list[float]]:
    """Starts of chirps in each of some windows of one length, in samples from its beginning, by matched filter."""
    if not windows:
        return []
    size = windows[0].size
    spectra = np.stack([w.spectrum for w in windows]) * _chirp_spectrum(rate_hz, size)
    matches = np.asarray(np.fft.irfft(spectra, size, axis=1), np.float32)
    return [_chirps(w.samples, match, rate_hz) for w, match in zip(windows, matches, strict=True)]


def _chirps(samples: Samples, match: Samples, rate_hz: int) -> list[float]:
    tone = chirp(rate_hz)
    if len(samples) <= len(tone):
        return []
    count = len(samples) - len(tone)
    match = match[:count]
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    around = energy[len(tone) : len(tone) + count] - energy[:count]
    own = float(np.sum(np.square(tone, dtype=np.float64)))
    share = np.abs(match) / np.sqrt(np.maximum(around, 1e-6) * own)
    found: list[float] = []
    while len(found) < 4:
        top = int(np.argmax(share))
        if share[top] < _CHIRP_MATCH:
            break
        part = 0.0
        if 0 < top < count - 1:
            before, at, after = (abs(float(v)) for v in match[top - 1 : top + 2])
            bend = before - 2 * at + after
            part = 0.5 * (before - after) / bend if bend < 0 else 0.0
        found.append(top + part)
        guard = round(0.2 * rate_hz)
        share[max(0, top - guard) : top + guard] = 0.0
    return sorted(found)


@dataclass(slots=True)
class PulsesHeard:
    """Chirps of one microphone: times ``x_ns``, each once though windows overlap."""

    at_ns: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_PULSES))

    def add(self, x_ns: int) -> None:
        """A chirp was found."""
        if not self.at_ns or x_ns - self.at_ns[-1] > _APART_NS:
            self.at_ns.append(x_ns)


@dataclass(slots=True)
class FlashWatch:
    """Brightness of one picture stream; whole flashes come out as intervals that hold their edges.

    A picture more than half lit has its exposure's middle after the light went on, whatever the exposure: so
    the light went on between the last picture below and the first above half.
    """

    recent: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=64))
    pulses: deque[Pulse] = field(default_factory=lambda: deque(maxlen=MOST_PULSES))
    dark: float = 1.0
    """Brightness between flashes."""
    lit_x: int | None = None
    """Since when it is lit."""

    def push(self, x_ns: int, brightness: float) -> None:
        """The next picture: time of its middle, mean brightness 0..1."""
        if self.recent and x_ns <= self.recent[-1][0]:
            return
        self.recent.append((x_ns, brightness))
        if brightness > self.dark + _LIT:
            self.lit_x = x_ns if self.lit_x is None else self.lit_x
            if x_ns - self.lit_x > _LONGEST_NS:
                # It stays: another picture, not a flash.
                self.dark, self.lit_x = brightness, None
            return
        if self.lit_x is not None and len(self.recent) > 3:
            self._whole(list(self.recent))
            self.lit_x = None
        self.dark += 0.2 * (brightness - self.dark)

    def _whole(self, values: list[tuple[int, float]]) -> None:
        """The light has just gone out again."""
        begun = self.lit_x or 0
        brightest = max(v for x, v in values if x >= begun)
        half = self.dark + 0.5 * (brightest - self.dark)
        last = max(p for p, (_, v) in enumerate(values) if v > half)
        first = last
        while first - 1 >= 0 and values[first - 1][1] > half:
            first -= 1
        if first == 0 or last + 1 >= len(values):
            return
        began, ended = (values[first - 1][0], values[first][0]), (values[last][0], values[last + 1][0])
        lasted = (ended[0] + ended[1] - began[0] - began[1]) / 2e9
        spacing = (began[1] - began[0] + ended[1] - ended[0]) / 2e9
        if abs(lasted - ON_S) > spacing + 0.02:
            return
        if not self.pulses or began[0] - self.pulses[-1][1][1] > _APART_NS // 2:
            self.pulses.append((began, ended))


@dataclass(frozen=True, slots=True)
class CueMatch:
    """Camera minus microphone, as their stamps have the same pulses; ``x_ns`` about when, on the camera's."""

    x_ns: int
    difference_ns: float
    half_width_ns: float
    pulses: int


def _common_ns(intervals: Sequence[tuple[int, int, int]]) -> int:
    """How much intervals have in common; less than nothing where they contradict each other."""
    return min(high for _, high, _ in intervals) - max(low for low, _, _ in intervals)


def match_pulses(heard: PulsesHeard, seen: Sequence[Pulse], expected_ns: float) -> CueMatch | None:
    """Where flashes and chirps of the calibration signal lie to each other; None where it is not clear.

    Args:
        heard: chirps of the microphone.
        seen: flashes of the camera, oldest first.
        expected_ns: camera minus microphone as far as it is known; off by less than a quarter of a second.
    """
    matched: list[tuple[int, int, int]] = []
    for began, ended in seen:
        middle = (began[0] + began[1]) / 2 - expected_ns
        chirps = [at for at in heard.at_ns if abs(at - middle) < _MATCH_NS]
        if len(chirps) != 1:
            continue
        on, off = chirps[0], chirps[0] + round(ON_S * 1e9)
        matched.append((max(began[0] - on, ended[0] - off), min(began[1] - on, ended[1] - off), began[1]))
    # Where packets were lost, a flash may show too late or too long, a chirp be heard in the wrong place: such a
    # one is outvoted. Of votes that are as many, those count that contradict each other least.
    sets = [[m for m in matched if m[0] - _SLACK_NS <= low <= m[1] + _SLACK_NS] for low, _, _ in matched]
    most = max(sets, key=lambda agree: (len(agree), _common_ns(agree)), default=[])
    if len(most) < max(_LEAST_PULSES, _AGREE * len(matched)):
        return None
    low, high = max(m[0] for m in most), min(m[1] for m in most)
    if low > high:
        # One of them is wrong, and nothing says which: what all but any one of them allow.
        low, high = sorted(m[0] for m in most)[-2], sorted(m[1] for m in most)[1]
    half = max((high - low) / 2, 0.0) + _SLACK_NS / 3
    return CueMatch(most[-1][2], (low + high) / 2, half, len(most))
