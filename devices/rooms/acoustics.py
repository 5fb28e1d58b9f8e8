"""What a reverberant room makes of speech: pyroomacoustics' image sources, with the decay that was asked for.

Sabine's formula misses the decay of a box with equal walls by up to a third, since sound between two parallel
walls lives longer. So the walls' absorption is searched until the decay measured by Schroeder's integration
(ISO 3382-2, T30) is the one asked for. A clip's samples are the pressure one metre from the mouth.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from devices.acoustics import SPEED_OF_SOUND_M_S, Microphone, PlacedClip, Point, Signal, convolve, decibels

HALF_KERNEL: Final = 40
"""Samples by which pyroomacoustics shifts every response, half of its fractional delay's length."""
_SEARCH_STEPS: Final = 7
_TOLERANCE: Final = 0.02


@dataclass(frozen=True)
class Box:
    """A box-shaped room; `rt60_s` is the time in which sound falls by 60 dB, 0 for no walls at all."""

    size_m: Point
    rt60_s: float

    def __post_init__(self) -> None:
        if min(self.size_m) <= 0.0:
            raise ValueError(f"room size {self.size_m} must be positive in every direction")
        if self.rt60_s != 0.0 and not 0.1 <= self.rt60_s <= 1.5:
            raise ValueError(f"rt60_s {self.rt60_s} must be 0 or between 0.1 and 1.5")


def simulate(
    clips: Sequence[PlacedClip],
    microphones: Sequence[Microphone],
    box: Box,
    *,
    samples: int,
    sample_rate_hz: int,
    seed: int,
) -> Signal:
    """What every microphone hears, shape (microphones, samples), full scale = 1 (not clipped here).

    The direct sound of a clip's sample n arrives at n + distance / 343 m/s. What a clip leaves after `samples`
    is cut off. The same arguments give the same samples.

    Raises:
        ValueError: a clip that starts outside 0..samples, or a place outside the room.
    """
    heard = np.zeros((len(microphones), samples))
    for clip in clips:
        if not 0 <= clip.start_sample < samples:
            raise ValueError(f"clip starts at sample {clip.start_sample}, outside 0..{samples}")
    mouths = sorted({clip.position_m for clip in clips})
    responses = impulse_responses(box, mouths, [m.position_m for m in microphones], sample_rate_hz)
    for clip in clips:
        for row, response in enumerate(responses[mouths.index(clip.position_m)]):
            arrived = convolve(clip.samples, response)
            begin = clip.start_sample - HALF_KERNEL
            arrived = arrived[max(0, -begin) : samples - begin]
            begin = max(0, begin)
            heard[row, begin : begin + len(arrived)] += arrived * decibels(microphones[row].gain_db)
    for row, microphone in enumerate(microphones):
        noise = np.random.default_rng([seed, row]).standard_normal(samples)
        heard[row] += noise * decibels(microphone.noise_dbfs)
    return heard


def impulse_responses(
    box: Box, sources_m: Sequence[Point], microphones_m: Sequence[Point], sample_rate_hz: int
) -> list[list[Signal]]:
    """Response from every source to every microphone; the direct sound one metre away has the strength 1.

    Index HALF_KERNEL of a response is the moment of emission: the kernel of a fractional delay begins before.
    """
    absorption, order = (1.0, 0) if box.rt60_s == 0.0 else _walls(box, sample_rate_hz)
    room = _image_sources(box, absorption, order, sources_m, microphones_m, sample_rate_hz)
    return [
        [np.asarray(room.rir[m][s], dtype=np.float64) for m in range(len(microphones_m))]
        for s in range(len(sources_m))
    ]


def decay_s(response: Signal, sample_rate_hz: int) -> float:
    """Time in which a response's energy falls by 60 dB: slope from -5 to -35 dB of Schroeder's integral.

    Below 100 Hz nothing is measured: image sources all push in the same direction there, as no wall does.
    """
    octaves = np.fft.rfftfreq(2 * len(response), 1.0 / sample_rate_hz) / 100.0
    spectrum = np.fft.rfft(response, 2 * len(response)) * octaves**4 / (1.0 + octaves**4)
    response = np.fft.irfft(spectrum)[: len(response)]
    energy = np.cumsum(response[::-1] ** 2)[::-1]
    level = 10.0 * np.log10(energy[energy > 0.0] / energy[0])
    begin, end = int(np.argmax(level <= -5.0)), int(np.argmax(level <= -35.0))
    if end <= begin:
        raise ValueError("the response ends before it has fallen by 35 dB")
    slope = np.polyfit(np.arange(begin, end) / sample_rate_hz, level[begin:end], 1)[0]
    return float(-60.0 / slope)


@lru_cache(maxsize=64)
def _walls(box: Box, sample_rate_hz: int) -> tuple[float, int]:
    """Share of energy that every wall takes, and how often sound is reflected at most."""
    # Paths as long as the decay lasts; the shortest way between two walls needs the most reflections.
    order = math.ceil(SPEED_OF_SOUND_M_S * box.rt60_s / min(box.size_m)) + 1
    x, y, z = box.size_m
    sabine = 0.161 * x * y * z / (2.0 * (x * y + y * z + x * z) * box.rt60_s)
    low, high = 0.3 * sabine, min(2.0 * sabine, 0.98)
    absorption = min(sabine, 0.95)
    # Two ways through the room, neither along a wall nor through its middle, where modes stand out.
    sources = [(0.31 * x, 0.37 * y, 0.45 * z)]
    microphones = [(0.66 * x, 0.71 * y, 0.41 * z), (0.45 * x, 0.52 * y, 0.29 * z)]
    for _ in range(_SEARCH_STEPS):
        room = _image_sources(box, absorption, order, sources, microphones, sample_rate_hz)
        found = float(np.mean([decay_s(np.asarray(room.rir[m][0]), sample_rate_hz) for m in range(2)]))
        if abs(found / box.rt60_s - 1.0) < _TOLERANCE:
            break
        low, high = (absorption, high) if found > box.rt60_s else (low, absorption)
        guess = absorption * found / box.rt60_s
        absorption = guess if low < guess < high else (low + high) / 2.0
    return absorption, order


def _image_sources(
    box: Box,
    absorption: float,
    order: int,
    sources_m: Sequence[Point],
    microphones_m: Sequence[Point],
    sample_rate_hz: int,
) -> Any:
    pyroomacoustics = importlib.import_module("pyroomacoustics")
    pyroomacoustics.constants.set("c", SPEED_OF_SOUND_M_S)
    pyroomacoustics.constants.set("frac_delay_length", 2 * HALF_KERNEL + 1)
    # Its filter against the lowest frequencies also acts before the direct sound, and speech has none of them.
    pyroomacoustics.constants.set("rir_hpf_enable", False)
    # Several threads would add the images up in an order that depends on the machine.
    pyroomacoustics.constants.set("num_threads", 1)
    room = pyroomacoustics.ShoeBox(
        box.size_m, fs=sample_rate_hz, materials=pyroomacoustics.Material(absorption), max_order=order
    )
    room.set_sound_speed(SPEED_OF_SOUND_M_S)
    for place in sources_m:
        room.add_source(list(place))
    room.add_microphone_array(np.array(microphones_m, dtype=np.float64).T)
    room.compute_rir()
    return room
