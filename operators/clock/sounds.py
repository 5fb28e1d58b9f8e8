"""Two microphones and one voice: the delay between them, and who of those at the microphones it was."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import cv2
import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
Spectrum = npt.NDArray[np.complex64]
Block = npt.NDArray[np.int16] | Samples
"""Sound as it came (16 bits) or at full scale 1."""

WINDOW_S: Final = 1.0
MOST_LAG_S: Final = 0.08
"""Greatest delay that is looked for beyond what is known already."""
_KEPT_S: Final = 4.0
_LOW_HZ: Final = 150.0
_HIGH_HZ: Final = 3800.0
_CLEAR: Final = 7.0
"""Height of a clear peak, in standard deviations of the rest."""
_ALONE: Final = 0.75
"""Greatest share of the peak that a second one may have."""
_NEAR_S: Final = 0.0007
_JOINT_S: Final = 0.002
_SCALE: Final = np.float32(1 / 32768)
_SPEECH_DB: Final = 8.0
"""How far above its own quiet a microphone must be to hear speech."""
_OWN_DB: Final = 2.5
"""How far the microphone in front of the talker must be ahead of the next."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Where two signals agree: ``first`` is ``lag_s`` later than ``second``; ``clarity`` in sigmas."""

    lag_s: float
    clarity: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """A second of one microphone: time of its first sample on its ``x``, samples at full scale 1."""

    begin_x: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Window:
    """A second of one microphone: time of its first sample on its ``x``, samples, their spectrum."""

    begin_x: int
    samples: Samples
    spectrum: Spectrum
    size: int
    """Length of the transform."""


def transform_size(samples: int, rate_hz: int) -> int:
    """Length of a transform that has room for delays of up to ``MOST_LAG_S``, and only small factors."""
    least = samples + round(MOST_LAG_S * rate_hz)
    return min(
        size
        for power in range(4, 24)
        for factor in (1, 9, 15, 27, 45, 135)
        if (size := factor << power) >= least
    )


def windows_of(stretches: Sequence[Stretch], rate_hz: int) -> list[Window]:
    """Stretches of one length with their spectra, all by one call: less than half of the time of one by one."""
    if not stretches:
        return []
    length = len(stretches[0].samples)
    size = transform_size(length, rate_hz)
    filled = np.zeros((len(stretches), size), np.float32)
    for row, stretch in zip(filled, stretches, strict=True):
        row[:length] = stretch.samples
    return [
        Window(stretch.begin_x, stretch.samples, _unpacked(row), size)
        for stretch, row in zip(stretches, cv2.dft(filled, flags=cv2.DFT_ROWS), strict=True)
    ]


def _unpacked(row: npt.NDArray[Any]) -> Spectrum:
    """A spectrum as ``numpy.fft.rfft`` has it, of one as OpenCV packs it: first and last have no imaginary part."""
    spectrum = np.zeros(len(row) // 2 + 1, np.complex64)
    spectrum[0], spectrum[-1] = row[0], row[-1]
    spectrum[1:-1] = np.ascontiguousarray(row[1:-1]).view(np.complex64)
    return spectrum


def phat_peak(first: Window, second: Window, rate_hz: int) -> Peak | None:
    """Delay between two windows of one length by generalised cross-correlation with phase transform.

    None where no peak stands out. Source: Knapp and Carter 1976.
    """
    size = first.size
    low, high = (round(hz * size / rate_hz) for hz in (_LOW_HZ, _HIGH_HZ))
    spectrum = first.spectrum[low:high] * np.conj(second.spectrum[low:high])
    magnitude = np.abs(spectrum)
    mean = float(np.mean(magnitude))
    if mean <= 0.0:
        return None
    phase = np.zeros(size // 2 + 1, np.complex64)
    # Bins that hold nearly nothing are noise in both: they get no say for their phase.
    phase[low:high] = spectrum / np.maximum(magnitude, 0.03 * mean)
    found = np.fft.irfft(phase, size)
    reach = round(MOST_LAG_S * rate_hz)
    near = np.concatenate([found[-reach:], found[: reach + 1]])
    top = int(np.argmax(near))
    if not 0 < top < len(near) - 1:
        return None
    guard = round(_NEAR_S * rate_hz)
    rest = np.concatenate([near[: max(0, top - guard)], near[top + guard + 1 :]])
    spread = float(np.sqrt(np.mean(rest**2)))
    if spread <= 0.0 or near[top] < _CLEAR * spread or float(np.max(rest)) > _ALONE * near[top]:
        return None
    # The band ends below half of what the rate could carry, so a parabola fits the peak.
    before, at, after = (float(v) for v in near[top - 1 : top + 2])
    bend = before - 2 * at + after
    part = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return Peak((top - reach + part) / rate_hz, at / spread)


@dataclass(slots=True)
class SoundRing:
    """The last seconds of one microphone, by block: ``x_ns`` of the first sample, samples, rate."""

    rate_hz: int = 0
    blocks: deque[tuple[int, Block]] = field(default_factory=deque)

    def push(self, x_ns: int, samples: Block, rate_hz: int) -> None:
        """Take in a block of mono sound; what is never looked at is never converted."""
        if rate_hz != self.rate_hz:
            self.blocks.clear()
            self.rate_hz = rate_hz
        self.blocks.append((x_ns, samples))
        while self.blocks and x_ns - self.blocks[0][0] > _KEPT_S * 1e9:
            self.blocks.popleft()

    def stretch(self, x_ns: int) -> Stretch | None:
        """``WINDOW_S`` of sound from about ``x_ns`` on.

        None where more than a tenth of it is missing; smaller gaps are silence.
        """
        size = round(WINDOW_S * self.rate_hz)
        found = np.zeros(size, np.float32)
        offsets: list[float] = []
        filled, expected = 0, 0
        per_ns = 1e-9 * self.rate_hz
        for begin_ns, samples in self.blocks:
            away = (begin_ns - x_ns) * per_ns
            if away <= -len(samples):
                continue
            if away >= size:
                # Blocks come in the order of their times.
                break
            # Blocks follow each other sample by sample; their stamps are noisier than that.
            follows = bool(offsets) and abs(away - expected) < _JOINT_S * self.rate_hz
            place = expected if follows else round(away)
            offsets.append(away - place)
            expected = place + len(samples)
            left, right = max(0, place), min(size, expected)
            if right > left:
                part = samples[left - place : right - place]
                found[left:right] = part * _SCALE if part.dtype == np.int16 else part
                filled += right - left
        if filled < 0.9 * size:
            return None
        begin_x = x_ns + round(sum(offsets) / len(offsets) / self.rate_hz * 1e9)
        return Stretch(begin_x, found)


@dataclass(slots=True)
class Levels:
    """How loud each microphone has been, to tell who sits before which."""

    heard_db: dict[str, deque[float]] = field(default_factory=dict)
    against_db: dict[str, deque[float]] = field(default_factory=dict)

    def talker(self, level_db: dict[str, float]) -> str | None:
        """The microphone in front of whoever speaks now, None where nobody does or it is not clear."""
        loud = []
        for name, level in level_db.items():
            known = self.heard_db.setdefault(name, deque(maxlen=60))
            known.append(level)
            quiet = min(known)
            if level > quiet + _SPEECH_DB and level > -70.0:
                loud.append(name)
        if len(level_db) < 2 or not loud:
            return None
        mean = sum(level_db.values()) / len(level_db)
        for name, level in level_db.items():
            self.against_db.setdefault(name, deque(maxlen=60)).append(level - mean)
        own = sorted(((level_db[n] - self._gain(n, len(level_db)), n) for n in level_db), reverse=True)
        if own[0][0] - own[1][0] < _OWN_DB or own[0][1] not in loud:
            return None
        return own[0][1]

    def _gain(self, name: str, microphones: int) -> float:
        """How much louder a microphone is than the others whoever speaks."""
        ordered = sorted(self.against_db[name])
        if len(ordered) < 8:
            return 0.0
        if microphones == 2:
            # Half of the time its own talker speaks: the middle between both is its gain.
            return 0.5 * (ordered[len(ordered) // 10] + ordered[-1 - len(ordered) // 10])
        return ordered[len(ordered) // 2]


def level_db(samples: Samples) -> float:
    """Root mean square in dB of full scale."""
    return float(10.0 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12))
