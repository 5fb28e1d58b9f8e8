"""Who speaks, from how much earlier one microphone of a table device hears them than another.

The cross-spectrum of two microphones, whitened (GCC-PHAT: Knapp and Carter 1976), has the phase of one delay where one
person speaks. Places of microphones and seats are known, so no peak is searched: the spectrum is compared with the
delay of each seat (steered response: DiBiase 2000), to a fraction of a sample. Scores of frames are sums, so that a
piece is judged by the mean over its frames.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from models.voice_activity import FRAME_SAMPLES
from operators.speech.resample import TARGET_HZ

SPEED_OF_SOUND_M_S = 343.0

_WINDOW = 2 * FRAME_SAMPLES
_LOWEST_HZ, _HIGHEST_HZ = 200.0, 7_000.0

CLEAR_SCORE = 0.07
"""Least mean score of a seat that speaks: one talker scores 0.2 to 0.35 in a reverberant room, the others 0.04."""

CLEAR_RATIO = 1.5
"""How far the best seat must be ahead of the next."""

Point = tuple[float, float, float]


@dataclass(frozen=True)
class Arrangement:
    """Seats as one device hears them: travel times in seconds, one row a seat, one column a channel."""

    speakers: tuple[str, ...]
    travel_s: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, microphones: Sequence[Point], seats: Sequence[tuple[str, Point]]) -> "Arrangement":
        """From places in metres; channel 0's microphone first.

        Raises:
            ValueError: fewer than two microphones or no seat.
        """
        if len(microphones) < 2 or not seats:
            raise ValueError("an arrangement needs two microphones and a seat at least")
        return cls(
            tuple(speaker for speaker, _ in seats),
            tuple(
                tuple(math.dist(place, microphone) / SPEED_OF_SOUND_M_S for microphone in microphones)
                for _, place in seats
            ),
        )

    @property
    def channels(self) -> int:
        """How many microphones the device has."""
        return len(self.travel_s[0])


class DelayScores:
    """Scores of the frames of one device. Keeps the frame before, as each window spans two."""

    def __init__(self, arrangement: Arrangement) -> None:
        self.arrangement = arrangement
        hertz = np.fft.rfftfreq(_WINDOW, 1.0 / TARGET_HZ)
        self._band = (hertz >= _LOWEST_HZ) & (hertz <= _HIGHEST_HZ)
        self._pairs = tuple(combinations(range(arrangement.channels), 2))
        travel = np.array(arrangement.travel_s)
        turns = 2j * np.pi * hertz[self._band]
        # One row a seat and pair: undoes the phase that the seat's delay causes.
        self._steering = [np.exp(np.outer(travel[:, a] - travel[:, b], turns)) for a, b in self._pairs]
        self._window = np.hanning(_WINDOW)[:, None]
        self._before: npt.NDArray[np.int16] = np.zeros((FRAME_SAMPLES, arrangement.channels), dtype=np.int16)

    def of_frames(self, frames: npt.NDArray[np.int16]) -> npt.NDArray[np.float64]:
        """Score of each seat, shape (n, seats), -1 to 1, for the next frames, shape (n, 512, channels)."""
        joined = np.concatenate((self._before[None], frames)).astype(np.float64)
        self._before = frames[-1].copy()
        windows = np.concatenate((joined[:-1], joined[1:]), axis=1) * self._window
        spectra = np.fft.rfft(windows, axis=1)[:, self._band]
        scores = np.zeros((len(frames), len(self.arrangement.speakers)))
        for (a, b), steering in zip(self._pairs, self._steering, strict=True):
            cross = spectra[:, :, a] * np.conj(spectra[:, :, b])
            cross /= np.abs(cross) + 1e-9
            scores += (cross @ steering.T).real / cross.shape[1]
        return scores / len(self._pairs)

    def dump(self) -> bytes:
        """The frame before."""
        return self._before.tobytes()

    def load(self, raw: bytes) -> None:
        """Inverse of `dump`."""
        self._before = np.frombuffer(raw, dtype=np.int16).reshape(FRAME_SAMPLES, -1).copy()


def clear_seat(scores: Sequence[Sequence[float]]) -> int | None:
    """The seat that speaks in these frames, None where no seat is clearly ahead."""
    if not scores:
        return None
    mean = np.mean(np.asarray(scores, dtype=np.float64), axis=0)
    order = np.argsort(-mean, kind="stable")
    best = float(mean[order[0]])
    next_best = float(mean[order[1]]) if len(order) > 1 else 0.0
    if best < CLEAR_SCORE or best < CLEAR_RATIO * next_best:
        return None
    return int(order[0])
