"""Sound of one microphone on the timeline: the last seconds, its skew taken out, asked for at any times."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from contracts.timeline import ClockRecord
from operators.align.interpolate import Mask, Shares, Times, Values, on_timeline
from operators.align.resample import MOST_SKEW, SkewRemover
from operators.timeline import is_step

_NS: Final = 1_000_000_000
_FULL_SCALE: Final = np.float32(32_768.0)


@dataclass(frozen=True, slots=True)
class SoundSettings:
    """How sound is kept.

    Attributes:
        keep_ns: how long.
        block_ns: sound is converted in blocks of this length; what is younger is not there yet.
        break_ns: stamps that leave the count of samples by more than this begin a new stretch. Between two
            stretches nothing is known.
        rate_after_ns: from this length on a stretch tells how fast its samples come by its own stamps.
        least_skew: changes below this are left alone; it is 1 ms in 1,000 s.
    """

    keep_ns: int = 30 * _NS
    block_ns: int = _NS // 2
    break_ns: int = 5_000_000
    rate_after_ns: int = 10 * _NS
    least_skew: float = 1e-6


@dataclass(frozen=True, slots=True)
class _Kept:
    """Converted samples. The first stands for ``raw_ns`` on the device's clock."""

    stretch: int
    raw_ns: int
    clock: int
    samples: npt.NDArray[np.float32]


class _Rate:
    """How far a device's own stamps leave the count of its samples, by least squares over the last half minute.

    Args:
        least_ns: shorter stretches have no slope, only a mean: jitter would be taken for one.
    """

    def __init__(self, least_ns: int) -> None:
        self._least_ns = least_ns
        self._points: deque[tuple[float, float]] = deque(maxlen=60)
        self._middle = (0.0, 0.0)
        self.slope = 0.0
        """By how much longer a sample takes by the stamps than by its nominal rate, as a share."""

    def add(self, counted_ns: float, stamped_ns: float) -> None:
        self._points.append((counted_ns, stamped_ns - counted_ns))
        x, y = np.asarray(self._points).T
        self._middle = (float(x.mean()), float(y.mean()))
        if x[-1] - x[0] >= self._least_ns:
            x = x - x.mean()
            self.slope = float(np.dot(x, y - y.mean()) / np.dot(x, x))

    def at(self, counted_ns: float) -> float:
        """By how much the stamp of a sample leaves its count, ns, with the jitter of stamps averaged out."""
        return self._middle[1] + self.slope * (counted_ns - self._middle[0])


class SoundTrack:
    """One channel, block by block; at most ``keep_ns`` of it stays."""

    def __init__(self, settings: SoundSettings, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._settings = settings
        self._kept: deque[_Kept] = deque()
        self._stretch = -1
        self._zero_ns = 0
        """Raw time of the first sample of the stretch, as it was stamped."""
        self._count = 0
        self._waiting: list[npt.NDArray[np.int16]] = []
        self._waiting_count = 0
        self._clock: ClockRecord | None = None
        self._remover = SkewRemover(rate_hz)
        self._rate = _Rate(settings.rate_after_ns)
        self._skew = 0.0

    def push(self, raw_ns: int, samples: npt.NDArray[np.int16], clock: ClockRecord | None) -> None:
        """The next block, (n,), its first sample taken at ``raw_ns``; blocks come in order.

        ``clock``: the device's newest clock record.
        """
        expected_ns = self._zero_ns + self._count * _NS // self.rate_hz
        held_ns = round(self._rate.at(float(expected_ns - self._zero_ns)))
        set_anew = clock is not self._clock and _number(clock) > _number(self._clock) and _is_set(clock)
        if self._stretch < 0 or set_anew or abs(raw_ns - expected_ns - held_ns) > self._settings.break_ns:
            self._flush(finish=True)
            self._stretch, self._zero_ns, self._count = self._stretch + 1, raw_ns, 0
            self._remover, self._rate = SkewRemover(self.rate_hz), _Rate(self._settings.rate_after_ns)
        self._clock = clock
        if not self._waiting:
            self._rate.add(self._count * _NS / self.rate_hz, float(raw_ns - self._zero_ns))
        self._waiting.append(samples)
        self._waiting_count += len(samples)
        self._count += len(samples)
        if self._waiting_count * _NS >= self._settings.block_ns * self.rate_hz:
            self._flush(finish=False)

    def at(
        self, times_ns: Times, clocks: Sequence[ClockRecord]
    ) -> tuple[Values, Mask, npt.NDArray[np.int64]]:
        """Sound at times of the timeline, linear between samples.

        Args:
            times_ns: (n,).
            clocks: the device's clock records as they are now.

        Returns:
            (n,) values, whether each is known, and its clock bound in ns.
        """
        values, known = np.zeros(len(times_ns), np.float32), np.zeros(len(times_ns), np.bool_)
        bounds = np.zeros(len(times_ns), np.int64)
        kept = list(self._kept)
        if not kept:
            return values, known, bounds
        raw = np.asarray([k.raw_ns for k in kept], np.int64)
        starts, within = on_timeline(clocks, np.asarray([k.clock for k in kept], np.int64), raw)
        first = 0
        while first < len(kept):
            last = first
            while last + 1 < len(kept) and kept[last + 1].stretch == kept[first].stretch:
                last += 1
            sound = np.concatenate([k.samples for k in kept[first : last + 1]])
            lengths = np.asarray([len(k.samples) for k in kept[first : last + 1]])
            place = self._places(starts[first : last + 1], lengths, times_ns)
            mine = (place >= 0) & (place <= len(sound) - 1)
            low = np.floor(place[mine]).astype(np.intp)
            share = place[mine] - low
            values[mine] = sound[low] * (1 - share) + sound[np.minimum(low + 1, len(sound) - 1)] * share
            block = np.clip(np.searchsorted(np.cumsum(lengths), low, side="right"), 0, last - first)
            bounds[mine] = within[first : last + 1][block]
            known |= mine
            first = last + 1
        return values, known, bounds

    def _places(self, starts_ns: Times, lengths: npt.NDArray[np.int_], times_ns: Times) -> Shares:
        """Which sample of a stretch each time is at: linear between the starts of its blocks."""
        zero_ns = int(starts_ns[0])
        near = np.abs(times_ns.astype(np.float64) - zero_ns) < 1e15
        since = np.where(near, times_ns, zero_ns) - zero_ns
        numbers = np.concatenate(([0], np.cumsum(lengths)))
        end_ns = (starts_ns[-1] - zero_ns) + int(lengths[-1]) * _NS / self.rate_hz
        knots = np.append((starts_ns - zero_ns).astype(np.float64), end_ns)
        inside = near & (since >= 0) & (since <= end_ns)
        return np.where(inside, np.interp(since, knots, numbers), -1.0)

    def _flush(self, *, finish: bool) -> None:
        samples = np.concatenate(self._waiting or [np.zeros(0, np.int16)]).astype(np.float32) / _FULL_SCALE
        self._waiting.clear()
        self._waiting_count = 0
        said = []
        if len(samples):
            # More samples in a true second: the stamps run fast, or the samples come faster than they are stamped.
            clock_skew = self._clock.skew_ppb * 1e-9 if self._clock is not None else 0.0
            skew = clock_skew - self._rate.slope
            if abs(skew - self._skew) > self._settings.least_skew and abs(skew) <= MOST_SKEW:
                self._skew = skew
            said.append(self._remover.push(samples, self._skew))
        if finish:
            said.append(self._remover.finish())
        for converted in said:
            if len(converted.samples):
                counted_ns = converted.first * _NS / self.rate_hz
                off_ns = self._rate.at(counted_ns)
                raw_ns = self._zero_ns + round(counted_ns + off_ns)
                self._kept.append(_Kept(self._stretch, raw_ns, _number(self._clock), converted.samples))
        kept_ns = sum(len(k.samples) for k in self._kept) * _NS // self.rate_hz
        while self._kept and kept_ns > self._settings.keep_ns:
            kept_ns -= len(self._kept.popleft().samples) * _NS // self.rate_hz


def _is_set(clock: ClockRecord | None) -> bool:
    return clock is not None and is_step(clock)


def _number(clock: ClockRecord | None) -> int:
    return 0 if clock is None else clock.number
