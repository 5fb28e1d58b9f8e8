"""What a room does to speech on its way from mouths to microphones.

Dry clips, each with the place of the mouth that speaks it, become one signal for each microphone: travel time
at 343 m/s, pressure falling with distance, the first reflection from each wall, a short diffuse tail, the
microphone's own gain and its own noise. Pure numpy; the same arguments and seed give the same samples.

Levels: a clip's samples are the pressure one metre from the mouth in units of digital full scale, so a
microphone nearer than a metre hears it louder. Positions are metres from one corner of the floor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Signal = npt.NDArray[np.float64]
Point = tuple[float, float, float]

SPEED_OF_SOUND_M_S = 343.0
"""Dry air at 20 degrees Celsius."""

SINC_HALF_WIDTH = 12
"""Samples on each side of a fractional delay's kernel: short enough to fit before a microphone 26 cm away."""


@dataclass(frozen=True)
class Microphone:
    """One microphone: where it stands, its gain in dB, and the RMS level of its own noise in dBFS."""

    position_m: Point
    gain_db: float = 0.0
    noise_dbfs: float = -65.0


@dataclass(frozen=True)
class Room:
    """A box-shaped room; a reflection or tail of zero strength is left out.

    `wall_reflection` is the share of pressure a wall returns (0 to 1); `tail_db` the level of the diffuse
    tail against the direct sound one metre away, None for no tail; `tail_decay_s` the time in which it falls
    by 60 dB.
    """

    size_m: Point
    wall_reflection: float = 0.0
    tail_db: float | None = None
    tail_decay_s: float = 0.25

    def __post_init__(self) -> None:
        if min(self.size_m) <= 0.0:
            raise ValueError(f"room size {self.size_m} must be positive in every direction")
        if not 0.0 <= self.wall_reflection < 1.0:
            raise ValueError(f"wall reflection {self.wall_reflection} must be at least 0 and below 1")
        if self.tail_decay_s <= 0.0:
            raise ValueError(f"tail decay {self.tail_decay_s} s must be positive")


@dataclass(frozen=True)
class PlacedClip:
    """Dry speech, shape (samples,), said at `position_m`; `start_sample` is its first sample in room time."""

    samples: Signal
    start_sample: int
    position_m: Point


@dataclass(frozen=True)
class Path:
    """One way from mouth to microphone: delay in (fractional) samples and factor on the pressure."""

    delay_samples: float
    gain: float


def decibels(ratio_db: float) -> float:
    """The pressure factor of a level difference in dB."""
    return float(10.0 ** (ratio_db / 20.0))


def direct_path(source_m: Point, microphone: Microphone, sample_rate_hz: int) -> Path:
    """The straight way, microphone gain included. Raises ValueError where both are in the same place."""
    distance_m = math.dist(source_m, microphone.position_m)
    if distance_m < 0.01:
        raise ValueError(f"source and microphone are {distance_m:.3f} m apart; 0.01 m is the least")
    delay = distance_m / SPEED_OF_SOUND_M_S * sample_rate_hz
    return Path(delay, decibels(microphone.gain_db) / distance_m)


def delayed(samples: Signal, path: Path) -> Signal:
    """`samples` after `path`, shape (samples + whole delay + kernel,): index 0 is the clip's own start."""
    whole = math.floor(path.delay_samples)
    kernel = _sinc(path.delay_samples - whole) * path.gain
    shifted = np.convolve(samples, kernel)
    start = whole - SINC_HALF_WIDTH
    if start < 0:
        return shifted[-start:]
    return np.concatenate([np.zeros(start), shifted])


def impulse_response(
    room: Room, source_m: Point, microphone: Microphone, sample_rate_hz: int, random: np.random.Generator
) -> Signal:
    """Everything between one mouth and one microphone, shape (taps,), without the microphone's noise."""
    paths = [direct_path(source_m, microphone, sample_rate_hz)]
    if room.wall_reflection > 0.0:
        for image in _first_images(room, source_m):
            straight = direct_path(image, microphone, sample_rate_hz)
            paths.append(Path(straight.delay_samples, straight.gain * room.wall_reflection))
    parts = [delayed(np.ones(1), path) for path in paths]
    if room.tail_db is not None:
        parts.append(_tail(room, paths[0], microphone, sample_rate_hz, random))
    response = np.zeros(max(len(part) for part in parts))
    for part in parts:
        response[: len(part)] += part
    return response


def mix(
    clips: Sequence[PlacedClip],
    microphones: Sequence[Microphone],
    room: Room,
    *,
    samples: int,
    sample_rate_hz: int,
    seed: int,
) -> Signal:
    """What every microphone hears, shape (microphones, samples), full scale = 1 (not clipped here).

    What a clip leaves after `samples` is cut off; a clip that starts before 0 or after `samples` is an error.
    """
    for clip in clips:
        if not 0 <= clip.start_sample < samples:
            raise ValueError(f"clip starts at sample {clip.start_sample}, outside 0..{samples}")
    heard = np.zeros((len(microphones), samples))
    for row, microphone in enumerate(microphones):
        responses: dict[Point, Signal] = {}
        for clip in clips:
            if clip.position_m not in responses:
                # Seeded by pair, so that adding a talker leaves the sound of the others as it was.
                random = np.random.default_rng(
                    [seed, row, *(abs(round(1000.0 * v)) for v in clip.position_m)]
                )
                responses[clip.position_m] = impulse_response(
                    room, clip.position_m, microphone, sample_rate_hz, random
                )
            arrived = convolve(clip.samples, responses[clip.position_m])[: samples - clip.start_sample]
            heard[row, clip.start_sample : clip.start_sample + len(arrived)] += arrived
        noise = np.random.default_rng([seed, row]).standard_normal(samples)
        heard[row] += noise * decibels(microphone.noise_dbfs)
    return heard


def _sinc(fraction: float) -> Signal:
    """A windowed sinc that delays by SINC_HALF_WIDTH + `fraction` samples."""
    offsets = np.arange(-SINC_HALF_WIDTH, SINC_HALF_WIDTH + 1) - fraction
    window = np.cos(np.pi * offsets / (2 * SINC_HALF_WIDTH + 2)) ** 2
    kernel: Signal = np.sinc(offsets) * window
    return kernel


def _first_images(room: Room, source_m: Point) -> list[Point]:
    """The mouth mirrored once in each of the six walls (Allen and Berkley 1979, first order)."""
    images: list[Point] = []
    for axis in range(3):
        for wall in (0.0, room.size_m[axis]):
            mirrored = list(source_m)
            mirrored[axis] = 2.0 * wall - source_m[axis]
            images.append((mirrored[0], mirrored[1], mirrored[2]))
    return images


def _tail(
    room: Room, direct: Path, microphone: Microphone, sample_rate_hz: int, random: np.random.Generator
) -> Signal:
    """Late reflections as decaying noise, equally strong everywhere in the room, 5 ms after the direct."""
    assert room.tail_db is not None
    length = int(room.tail_decay_s * sample_rate_hz)
    decay = 10.0 ** (-3.0 * np.arange(length) / length)
    noise = random.standard_normal(length) * decay
    noise *= decibels(room.tail_db + microphone.gain_db) / math.sqrt(float(np.sum(noise**2)))
    start = int(direct.delay_samples + 0.005 * sample_rate_hz)
    return np.concatenate([np.zeros(start), noise])


def convolve(first: Signal, second: Signal) -> Signal:
    """Full convolution by FFT: a response of 4,000 taps makes the direct form a hundred times slower."""
    length = len(first) + len(second) - 1
    size = 1 << (length - 1).bit_length()
    product = np.fft.rfft(first, size) * np.fft.rfft(second, size)
    result: Signal = np.fft.irfft(product, size)[:length]
    return result
