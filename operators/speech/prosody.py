"""Pitch and loudness of a piece of speech, as they go on the log.

Pitch is the peak of the autocorrelation of short windows, divided by that of the window itself (Boersma,
"Accurate short-term analysis of the fundamental frequency", IFA Proceedings 17, 1993). The result depends on
the samples alone.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ: Final = 16_000
STEP_NS: Final = 16_000_000
_HALVED_HZ: Final = SAMPLE_RATE_HZ // 2
"""Pitch needs no more than this, and half the samples take half the time."""
_STEP: Final = _HALVED_HZ * STEP_NS // 1_000_000_000
_WINDOW: Final = 320
_FFT: Final = 1_024
_LOWEST_HZ: Final = 70.0
_HIGHEST_HZ: Final = 420.0
_VOICED: Final = 0.55
"""Least periodicity of a window that counts as voice."""
_QUIET: Final = 0.03
"""Windows with less than this share of the loudest one's amplitude are no voice."""
_OCTAVE_COST: Final = 0.04
_LONGEST_S: Final = 5.0
"""How much of a long piece is looked at, from its end back."""
_END_STEPS: Final = 44
_LEAST_VOICED: Final = 6

Samples = npt.NDArray[np.float32]
Pitches = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PieceProsody:
    """How a piece was spoken.

    Attributes:
        pitch_hz: pitch every ``STEP_NS`` up to the last voiced step, 0 where there was no voice; at most 44.
        typical_hz: median pitch of the piece.
        level_db: loudness of its voiced steps, full scale = 0.
    """

    pitch_hz: tuple[float, ...]
    typical_hz: float
    level_db: float


def prosody_of(samples: Samples) -> PieceProsody | None:
    """Pitch of a piece, mono at 16 kHz in -1..1; None where there is too little voice in it."""
    tail = samples[-round(_LONGEST_S * SAMPLE_RATE_HZ) :]
    halved = tail[: len(tail) // 2 * 2].reshape(-1, 2).mean(axis=1, dtype=np.float32)
    if len(halved) < _WINDOW:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(halved, _WINDOW)[::_STEP]
    loudness = np.sqrt(np.mean(np.square(windows, dtype=np.float32), axis=1, dtype=np.float64))
    pitch = _without_jumps(_pitches(windows, loudness))
    voiced = np.flatnonzero(pitch)
    if len(voiced) < _LEAST_VOICED:
        return None
    last = int(voiced[-1])
    end = pitch[max(0, last + 1 - _END_STEPS) : last + 1]
    level = float(np.sqrt(np.mean(np.square(loudness[voiced]))))
    return PieceProsody(
        tuple(round(float(hz), 1) for hz in end),
        round(float(np.median(pitch[voiced])), 1),
        round(20.0 * float(np.log10(max(level, 1e-6))), 1),
    )


@lru_cache(maxsize=1)
def _window() -> tuple[Samples, Samples]:
    """A Hann window and its normalised autocorrelation."""
    window = np.hanning(_WINDOW).astype(np.float32)
    spectrum = np.fft.rfft(window, _FFT)
    own = np.fft.irfft(np.abs(spectrum) ** 2)[:_WINDOW]
    return window, (own / own[0]).astype(np.float32)


def _pitches(windows: Samples, loudness: Pitches) -> Pitches:
    """Pitch of each window in Hz, 0 where it has none."""
    window, own = _window()
    centred = (windows - windows.mean(axis=1, keepdims=True)) * window
    power = np.abs(np.fft.rfft(centred, _FFT)) ** 2
    correlation = np.fft.irfft(power)
    shortest, longest = int(_HALVED_HZ / _HIGHEST_HZ), int(_HALVED_HZ / _LOWEST_HZ) + 1
    energy = np.maximum(correlation[:, :1], 1e-12)
    periodic = correlation[:, : longest + 2] / energy / own[: longest + 2]
    lags = np.arange(shortest, longest + 1)
    inner = periodic[:, shortest : longest + 1]
    peaks = (inner >= periodic[:, shortest - 1 : longest]) & (
        inner >= periodic[:, shortest + 1 : longest + 2]
    )
    # Of two periods that fit alike the shorter one is meant: the other is its double.
    worth = np.where(peaks, inner - _OCTAVE_COST * np.log2(lags / shortest), -1.0)
    best = worth.argmax(axis=1)
    row = np.arange(len(windows))
    before, at, after = (periodic[row, shortest + best + shift] for shift in (-1, 0, 1))
    bend = before - 2.0 * at + after
    shift = np.where(np.abs(bend) > 1e-9, 0.5 * (before - after) / np.where(bend == 0.0, 1.0, bend), 0.0)
    pitch = _HALVED_HZ / (lags[best] + np.clip(shift, -0.5, 0.5))
    voiced = (worth[row, best] > 0.0) & (at > _VOICED) & (loudness > _QUIET * loudness.max())
    return np.where(voiced, pitch, 0.0)


def _without_jumps(pitch: Pitches) -> Pitches:
    """The same without single steps of voice and without pitches an octave or so from their surroundings."""
    voiced = pitch > 0.0
    if not voiced.any():
        return pitch
    typical = np.median(pitch[voiced])
    # Unvoiced steps sort to the end, so that the middle of the voiced ones is found by their number.
    near = np.sort(
        np.where(voiced, pitch, np.inf)[
            np.clip(np.arange(-3, 4) + np.arange(len(pitch))[:, None], 0, len(pitch) - 1)
        ]
    )
    count = np.isfinite(near).sum(axis=1)
    middle = near[np.arange(len(pitch)), np.maximum(count - 1, 0) // 2]
    safe = np.where(voiced, pitch, 1.0)
    middle = np.where(np.isfinite(middle), middle, 1.0)
    fits = (np.abs(np.log2(safe / middle)) <= 0.4) & (np.abs(np.log2(safe / typical)) <= 1.1)
    return np.where(voiced & fits & (count >= 3), pitch, 0.0)
