"""Reverberant rooms: delay, level and decay against geometry, and the same samples for the same seed."""

import math

import numpy as np
import pytest

from devices.acoustics import SPEED_OF_SOUND_M_S, Microphone, PlacedClip, Point, Signal
from devices.rooms.acoustics import Box, simulate

RATE = 16_000
SILENT = -400.0
MOUTH: Point = (1.2, 1.1, 1.2)
OPEN = Box((6.0, 5.0, 3.0), 0.0)


def burst(samples: int = 4_000) -> Signal:
    """Noise of 100 to 4,000 Hz: a band in which the delay kernel is exact."""
    spectrum = np.fft.rfft(np.random.default_rng(7).standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1.0 / RATE)
    spectrum[(hertz < 100) | (hertz > 4_000)] = 0.0
    result: Signal = np.fft.irfft(spectrum, samples)
    scaled: Signal = 0.1 * result / np.sqrt(np.mean(result**2))
    return scaled


def fractional_lag(later: Signal, earlier: Signal) -> float:
    """Samples by which `later` lags, from the slope of the cross-spectrum's phase."""
    size = 1 << (len(later) + len(earlier)).bit_length()
    cross = np.fft.rfft(later, size) * np.conj(np.fft.rfft(earlier, size))
    coarse = int(np.argmax(np.fft.irfft(cross, size)))
    radians = 2.0 * np.pi * np.arange(len(cross)) / size
    rest = np.angle(cross * np.exp(1j * radians * coarse))
    return coarse - float(np.sum(np.abs(cross) * radians * rest) / np.sum(np.abs(cross) * radians**2))


def hear(
    box: Box, microphones: list[Microphone], clip: Signal, *, start: int = 800, samples: int = RATE
) -> Signal:
    return simulate(
        [PlacedClip(clip, start, MOUTH)], microphones, box, samples=samples, sample_rate_hz=RATE, seed=1
    )


@pytest.mark.parametrize("distance_m", [0.3, 1.0, 1.37, 2.9])
def test_delay_and_level_of_the_direct_sound(distance_m: float) -> None:
    microphone = Microphone((MOUTH[0] + distance_m, MOUTH[1], MOUTH[2]), gain_db=6.0, noise_dbfs=SILENT)
    heard = hear(OPEN, [microphone], burst())[0]
    lag = fractional_lag(heard[800:], burst())
    assert lag == pytest.approx(distance_m / SPEED_OF_SOUND_M_S * RATE, abs=0.02)
    level_db = 20.0 * math.log10(float(np.sqrt(np.sum(heard**2) / np.sum(burst() ** 2))))
    assert level_db == pytest.approx(6.0 - 20.0 * math.log10(distance_m), abs=0.1)


def test_a_click_at_each_of_several_microphones_of_a_reverberant_room() -> None:
    box = Box((6.0, 5.0, 3.0), 0.4)
    places: list[Point] = [(1.5, 1.3, 1.0), (2.9, 2.2, 1.1), (4.4, 3.0, 0.9)]
    heard = hear(box, [Microphone(place, noise_dbfs=SILENT) for place in places], np.ones(1))
    for signal, place in zip(heard, places, strict=True):
        delay = 800 + math.dist(MOUTH, place) / SPEED_OF_SOUND_M_S * RATE
        # The floor, 1.2 m below, answers at least 1.4 ms after the direct sound at these places.
        first = signal[: math.ceil(delay) + 16]
        assert abs(int(np.argmax(np.abs(first))) - delay) <= 0.5 + 1e-9
        direct = float(np.sum(first))
        assert direct == pytest.approx(1.0 / math.dist(MOUTH, place), rel=0.04)
        assert float(np.sum(signal**2)) > 1.2 * float(np.sum(first**2))


@pytest.mark.parametrize("rt60_s", [0.2, 0.4, 0.6])
def test_sound_dies_away_as_fast_as_asked(rt60_s: float) -> None:
    # In this room Sabine's formula alone is wrong by a quarter.
    box = Box((8.0, 5.5, 3.0), rt60_s)
    places: list[Point] = [(2.2, 3.4, 1.0), (4.4, 1.7, 1.4), (6.1, 4.2, 0.8)]
    heard = hear(
        box, [Microphone(place, noise_dbfs=SILENT) for place in places], np.ones(1), samples=2 * RATE
    )
    measured: list[float] = []
    for signal in heard:
        # Differences take away what image sources add up to at the lowest frequencies.
        left = np.cumsum((np.diff(signal) ** 2)[::-1])[::-1]
        level = 10.0 * np.log10(left[left > left[0] * 1e-9] / left[0])
        begin, end = int(np.argmax(level < -5.0)), int(np.argmax(level < -35.0))
        measured.append(60.0 / 30.0 * (end - begin) / RATE)
    assert float(np.mean(measured)) == pytest.approx(rt60_s, rel=0.1)


def test_every_microphone_has_its_own_noise_and_seeds_repeat_it() -> None:
    microphones = [
        Microphone((3.0, 2.0, 1.0), noise_dbfs=-50.0),
        Microphone((3.0, 2.2, 1.0), noise_dbfs=-60.0),
    ]
    heard = simulate([], microphones, OPEN, samples=RATE, sample_rate_hz=RATE, seed=4)
    levels = 20.0 * np.log10(np.sqrt(np.mean(heard**2, axis=1)))
    assert levels == pytest.approx([-50.0, -60.0], abs=0.1)
    assert abs(float(np.mean(heard[0] * heard[1]) / np.prod(np.std(heard, axis=1)))) < 0.04
    again = simulate([], microphones, OPEN, samples=RATE, sample_rate_hz=RATE, seed=4)
    other = simulate([], microphones, OPEN, samples=RATE, sample_rate_hz=RATE, seed=5)
    assert np.array_equal(heard, again) and not np.array_equal(heard, other)


def test_what_cannot_be_simulated_is_refused() -> None:
    microphone = Microphone((3.0, 2.0, 1.0))
    with pytest.raises(ValueError, match=r"clip starts at sample 20, outside 0\.\.10"):
        hear(OPEN, [microphone], np.ones(1), start=20, samples=10)
    with pytest.raises(ValueError, match=r"rt60_s 2\.0 must be 0 or between"):
        Box((6.0, 5.0, 3.0), 2.0)
    with pytest.raises(ValueError, match="must be positive"):
        Box((6.0, 0.0, 3.0), 0.3)
