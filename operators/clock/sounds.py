"""Two microphones and one voice: the delay between them, and who of those at the microphones it was."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

WINDOW_S: Final = 0.7
_KEPT_S: Final = 4.0
_LOW_HZ: Final = 150.0
_HIGH_HZ: Final = 3800.0
_FINER: Final = 4
"""How much finer than samples the correlation is looked at before the peak is interpolated."""
_CLEAR: Final = 7.0
"""Height of a clear peak, in standard deviations of the rest."""
_ALONE: Final = 0.75
"""Greatest share of the peak that a second one may have."""
_NEAR_S: Final = 0.0007
_JOINT_S: Final = 0.002
_SPEECH_DB: Final = 8.0
"""How far above its own quiet a microphone must be to hear speech."""
_OWN_DB: Final = 2.5
"""How far the microphone in front of the talker must be ahead of the next."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Where two signals agree: ``first`` is ``lag_s`` later than ``second``; ``clarity`` in sigmas."""

    lag_s: float
    clarity: float


def phat_peak(first: Samples, second: Samples, rate_hz: int, most_s: float) -> Peak | None:
    """Delay between two windows of the same length by generalised cross-correlation with phase transform.

    None where no peak within ``most_s`` stands out. Source: Knapp and Carter 1976.
    """
    size = 1 << (2 * len(first) - 1).bit_length()
    spectrum = np.fft.rfft(first, size) * np.conj(np.fft.rfft(second, size))
    frequency = np.fft.rfftfreq(size, 1.0 / rate_hz)
    magnitude = np.abs(spectrum)
    weight = np.where((frequency >= _LOW_HZ) & (frequency <= _HIGH_HZ), 1.0, 0.0)
    total = float(np.sum(magnitude * weight))
    if total <= 0.0:
        return None
    # Bins that hold nearly nothing are noise in both: they get no say for their phase.
    mean = total / float(np.sum(weight))
    phase = spectrum * weight / np.maximum(magnitude, 0.03 * mean)
    fine = np.fft.irfft(phase, size * _FINER)
    fine_hz = rate_hz * _FINER
    reach = min(round(most_s * fine_hz), len(fine) // 2 - 1)
    near = np.concatenate([fine[-reach:], fine[: reach + 1]])
    top = int(np.argmax(near))
    if not 0 < top < len(near) - 1:
        return None
    guard = round(_NEAR_S * fine_hz)
    rest = np.concatenate([near[: max(0, top - guard)], near[top + guard + 1 :]])
    spread = float(np.sqrt(np.mean(rest**2))) if len(rest) else 0.0
    if spread <= 0.0 or near[top] < _CLEAR * spread or float(np.max(rest)) > _ALONE * near[top]:
        return None
    before, at, after = (float(v) for v in near[top - 1 : top + 2])
    bend = before - 2 * at + after
    part = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return Peak((top - reach + part) / fine_hz, at / spread)


@dataclass(slots=True)
class SoundRing:
    """The last seconds of one microphone, by block: ``x_ns`` of the first sample, samples, rate."""

    rate_hz: int = 0
    blocks: deque[tuple[int, Samples]] = field(default_factory=deque)

    def push(self, x_ns: int, samples: Samples, rate_hz: int) -> None:
        """Take in a block of mono sound, full scale 1."""
        if rate_hz != self.rate_hz:
            self.blocks.clear()
            self.rate_hz = rate_hz
        self.blocks.append((x_ns, samples))
        while self.blocks and x_ns - self.blocks[0][0] > _KEPT_S * 1e9:
            self.blocks.popleft()

    def window(self, x_ns: int) -> tuple[float, Samples] | None:
        """``WINDOW_S`` of sound from about ``x_ns`` on: its true first time in ns after ``x_ns``, samples.

        None where more than a tenth of it is missing; smaller gaps are silence.
        """
        size = round(WINDOW_S * self.rate_hz)
        found = np.zeros(size, np.float32)
        offsets: list[float] = []
        filled, expected = 0, 0
        for begin_ns, samples in self.blocks:
            away = (begin_ns - x_ns) * 1e-9 * self.rate_hz
            if away <= -len(samples) or away >= size:
                continue
            # Blocks follow each other sample by sample; their stamps are noisier than that.
            follows = bool(offsets) and abs(away - expected) < _JOINT_S * self.rate_hz
            place = expected if follows else round(away)
            offsets.append(away - place)
            expected = place + len(samples)
            left, right = max(0, place), min(size, expected)
            if right > left:
                found[left:right] = samples[left - place : right - place]
                filled += right - left
        if filled < 0.9 * size:
            return None
        return float(np.mean(offsets)) / self.rate_hz * 1e9, found


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
