"""Streaming conversion of a sample rate to 16 kHz, with a state that can be written down and taken up again."""

from functools import lru_cache
from math import gcd

import numpy as np
import numpy.typing as npt

TARGET_HZ = 16_000

_ZERO_CROSSINGS = 16
"""Half width of the filter in periods of the lower rate: it looks 1 ms ahead at 16 kHz."""

_MAX_PHASES = 2_000


class UnsupportedRate(ValueError):
    """A sample rate that has no useful ratio to 16 kHz."""


@lru_cache(maxsize=8)
def _bank(up: int, down: int) -> npt.NDArray[np.float32]:
    """Filter taps per output phase, shape (up, taps): Kaiser-windowed sinc, edge at 0.94 of the lower Nyquist rate."""
    scale = min(1.0, up / down)
    half = int(np.ceil(_ZERO_CROSSINGS / scale))
    offsets = np.arange(-half + 1, half + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(9.0 * np.sqrt(np.maximum(0.0, 1.0 - np.square(offsets / half)))) / np.i0(9.0)
    taps = np.sinc(offsets * scale * 0.94) * window
    return np.ascontiguousarray(taps / taps.sum(axis=1, keepdims=True), dtype=np.float32)


class Resampler:
    """One channel to 16 kHz. Output sample k stands for input position k * rate / 16000, without delay.

    The result does not depend on how the input is cut into blocks.
    """

    def __init__(self, rate_hz: int) -> None:
        """Prepare a converter.

        Raises:
            UnsupportedRate: below 4 kHz, above 384 kHz, or without a common divisor with 16 kHz.
        """
        if not 4_000 <= rate_hz <= 384_000:
            raise UnsupportedRate(f"sample rate {rate_hz} Hz")
        common = gcd(rate_hz, TARGET_HZ)
        self._up, self._down = TARGET_HZ // common, rate_hz // common
        if self._up > _MAX_PHASES:
            raise UnsupportedRate(f"sample rate {rate_hz} Hz has no useful ratio to {TARGET_HZ} Hz")
        self._same = self._up == self._down
        self._taps = 0 if self._same else _bank(self._up, self._down).shape[1]
        self.reset()

    def reset(self) -> None:
        """Forget what came before, at the start of sound that does not follow on."""
        # Silence before the first sample, so that output 0 stands for input 0.
        before = max(0, self._taps // 2 - 1)
        self._history = np.zeros(before, dtype=np.float32)
        self._history_start = -before
        self._next_output = 0

    def push(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
        """Convert the next block, int16 shape (n,), to what can be said so far, int16 shape (m,)."""
        if self._same:
            return samples
        half = self._taps // 2
        self._history = np.concatenate((self._history, samples.astype(np.float32)))
        end = self._history_start + len(self._history)
        # Output k needs input up to k * down // up + half.
        ready = ((end - half - 1) * self._up + self._up - 1) // self._down + 1
        positions = np.arange(self._next_output, max(self._next_output, ready), dtype=np.int64) * self._down
        whole, phase = positions // self._up, positions % self._up
        if len(whole) == 0:
            return np.zeros(0, dtype=np.int16)
        first = whole - half + 1 - self._history_start
        windows = np.lib.stride_tricks.sliding_window_view(self._history, self._taps)[first]
        converted = np.einsum("nt,nt->n", windows, _bank(self._up, self._down)[phase])
        self._next_output += len(whole)
        keep_from = self._next_output * self._down // self._up - half + 1
        self._history = self._history[max(0, keep_from - self._history_start) :].copy()
        self._history_start = max(self._history_start, keep_from)
        rounded: npt.NDArray[np.int16] = np.clip(np.rint(converted), -32768, 32767).astype(np.int16)
        return rounded

    def dump(self) -> list[int | bytes]:
        """State as plain values."""
        return [self._next_output, self._history_start, self._history.tobytes()]

    def load(self, state: list[int | bytes]) -> None:
        """Take up what `dump` wrote."""
        next_output, start, history = state
        if isinstance(next_output, bytes) or isinstance(start, bytes) or not isinstance(history, bytes):
            raise ValueError("resampler state")
        self._next_output, self._history_start = next_output, start
        self._history = np.frombuffer(history, dtype=np.float32).copy()
