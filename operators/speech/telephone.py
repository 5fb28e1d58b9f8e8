"""Sound that came over a telephone, made whole for the voice detector.

The line passes 300 to 3400 Hz. The fundamental of the voice is cut off with the rest, and a detector that learned from
whole sound then sees no voice in it. Rectifying brings the fundamental back, as the difference of its harmonics: the
same trick by which the ear hears it. Only the voice detector gets this; the recogniser hears the sound as it came.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from models.voice_activity import FRAME_SAMPLES
from operators.speech.resample import TARGET_HZ

_TAPS = 256
_FUNDAMENTAL_HZ = 280.0

_LOUD_POWER = 1e-6
"""Mean square of the passed band (-60 dB) above which a frame says something about the line."""

_LOW_BELOW_DB, _HIGH_BELOW_DB = -12.0, -30.0
"""A line is a telephone's when both ends of the spectrum are this far below the middle."""

_FRAMES_TO_TELL = 10
_FOLLOW = 0.05

Floats = npt.NDArray[np.float32]


def _filter() -> npt.NDArray[np.float64]:
    place = np.arange(_TAPS) - (_TAPS - 1) / 2
    taps = np.sinc(2 * _FUNDAMENTAL_HZ / TARGET_HZ * place) * np.hanning(_TAPS)
    return np.asarray(taps / taps.sum())


def _bands() -> list[slice]:
    hertz = np.fft.rfftfreq(FRAME_SAMPLES, 1.0 / TARGET_HZ)
    inside = (
        np.flatnonzero((hertz > low) & (hertz < high))
        for low, high in ((60.0, 230.0), (300.0, 3400.0), (4200.0, 7800.0))
    )
    return [slice(int(places[0]), int(places[-1]) + 1) for places in inside]


_TAPS_OF_FILTER = _filter()
_WINDOW = np.hanning(FRAME_SAMPLES)
_BANDS = _bands()


class Line:
    """What one stream's sound tells of the line it came over."""

    def __init__(self, sample_rate_hz: int) -> None:
        # Eight thousand samples a second are a telephone's until they are seen to hold more.
        self._narrow = sample_rate_hz <= 8_000
        self._powers = np.zeros(3)
        self._loud = 0
        self._history: npt.NDArray[np.float64] = np.zeros(_TAPS - 1)

    def for_voice(self, frames: Floats) -> Floats:
        """The next frames, shape (n, 512) in -1..1, with the fundamental restored where the line has cut it off."""
        spectra = np.square(np.abs(np.fft.rfft(frames * _WINDOW, axis=1))) / FRAME_SAMPLES**2
        powers = np.stack([spectra[:, band].sum(axis=1) for band in _BANDS], axis=1)
        before = self._history
        self._history = np.abs(frames[-1, -(_TAPS - 1) :], dtype=np.float64)
        narrow = np.array([self._look(row) for row in powers])
        if not narrow.any():
            return frames
        rectified = np.concatenate((before, np.abs(frames, dtype=np.float64).reshape(-1)))
        slow = np.convolve(rectified, _TAPS_OF_FILTER, mode="valid").reshape(frames.shape)
        slow -= slow.mean(axis=1, keepdims=True)
        return np.where(narrow[:, None], frames + slow, frames).astype(np.float32)

    def _look(self, powers: npt.NDArray[np.float64]) -> bool:
        """Whether the line is held to be a telephone's at this frame."""
        if powers[1] > _LOUD_POWER:
            self._loud += 1
            self._powers += max(_FOLLOW, 1.0 / self._loud) * (powers - self._powers)
            if self._loud >= _FRAMES_TO_TELL:
                low, middle, high = 10.0 * np.log10(self._powers + 1e-15)
                self._narrow = bool(low - middle < _LOW_BELOW_DB and high - middle < _HIGH_BELOW_DB)
        return self._narrow

    def dump(self) -> list[Any]:
        """Plain values."""
        return [self._narrow, self._powers.tobytes(), self._loud, self._history.tobytes()]

    def load(self, raw: list[Any]) -> None:
        """Inverse of `dump`."""
        self._narrow, powers, self._loud, history = raw
        self._powers = np.frombuffer(powers, dtype=np.float64).copy()
        self._history = np.frombuffer(history, dtype=np.float64).copy()
