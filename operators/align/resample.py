"""Takes the skew of a device's sample clock out of its sound, as a stream, without clicks.

soxr converts by a constant ratio, and its output does not depend on how the input is cut. Where the skew
turns out to be another one, a second converter takes over: it has heard the same last tenth of a second,
and the two are faded into each other.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import soxr  # type: ignore[import-untyped]

Samples = npt.NDArray[np.float32]

MOST_SKEW: Final = 0.001
"""Beyond this it is no skew but a wrong sample rate; taken as this much."""
_HEARD_BEFORE_S: Final = 0.1
"""What a converter has to have heard before its output is right; soxr looks about 10 ms to each side."""
_FADE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Converted:
    """Sound at its nominal rate in true time.

    ``first``: which input sample, counted from the first one pushed, the first output sample stands for (not
    a whole number); each further one stands for ``step`` input samples more.
    """

    samples: Samples
    first: float
    step: float


@dataclass(slots=True)
class _Converter:
    """soxr at one ratio: output m stands for input ``start + m * step``."""

    stream: soxr.ResampleStream
    start: int
    step: float
    given: int = 0

    def push(self, samples: Samples) -> Samples:
        out: Samples = self.stream.resample_chunk(samples)
        self.given += len(out)
        return out

    def place(self) -> float:
        """Input sample for which the next output stands."""
        return self.start + self.given * self.step


class SkewRemover:
    """One channel of one unbroken stretch of sound."""

    def __init__(self, rate_hz: int) -> None:
        self._rate = rate_hz
        self._converter: _Converter | None = None
        self._recent = np.zeros(0, np.float32)
        self._pushed = 0

    def push(self, samples: Samples, skew: float) -> Converted:
        """What can be said after the next samples.

        Args:
            samples: float32 (n,).
            skew: by how much more samples a true second has than the nominal rate, as a share. A changed
                value holds from about here on.
        """
        step = 1.0 + min(max(skew, -MOST_SKEW), MOST_SKEW)
        if self._converter is None:
            self._converter = self._begin(step, 0)
        held = self._recent
        first, old = self._converter.place(), self._converter
        out = old.push(samples)
        self._pushed += len(samples)
        self._recent = np.concatenate((held, samples))[-round(self._rate * _HEARD_BEFORE_S) :]
        fade = round(self._rate * _FADE_S)
        if step == old.step or len(out) < fade:
            return Converted(out, first, old.step)
        # The successor hears what came before too, and begins where the other one would have gone on.
        successor = self._begin(step, self._pushed - len(samples) - len(held))
        said = np.concatenate((successor.push(held), successor.push(samples)))
        skip = max(0, round((first - successor.start) / step))
        said = said[skip:]
        if len(said) < fade:
            return Converted(out, first, old.step)
        share = (np.arange(fade, dtype=np.float32) + np.float32(0.5)) / np.float32(fade)
        said[:fade] = out[:fade] * (1 - share) + said[:fade] * share
        self._converter = successor
        return Converted(said, successor.start + skip * step, step)

    def finish(self) -> Converted:
        """The rest, once no further samples follow."""
        if self._converter is None:
            return Converted(np.zeros(0, np.float32), 0.0, 1.0)
        first = self._converter.place()
        out = self._converter.stream.resample_chunk(np.zeros(0, np.float32), last=True)
        step, self._converter = self._converter.step, None
        return Converted(out, first, step)

    def _begin(self, step: float, start: int) -> _Converter:
        stream = soxr.ResampleStream(self._rate * step, self._rate, 1, dtype="float32", quality="HQ")
        return _Converter(stream, start, step)
