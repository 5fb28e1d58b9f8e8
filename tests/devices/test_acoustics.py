"""The room's acoustics: delays and levels against geometry, and the same samples for the same seed."""

import math

import numpy as np
import pytest

from devices.acoustics import (
    SPEED_OF_SOUND_M_S,
    Microphone,
    PlacedClip,
    Room,
    Signal,
    decibels,
    delayed,
    direct_path,
    impulse_response,
    mix,
)

RATE = 16_000
SILENT = -400.0
DRY = Room((6.0, 5.0, 3.0))
LIVE = Room((6.0, 5.0, 3.0), wall_reflection=0.4, tail_db=-30.0, tail_decay_s=0.3)


def burst(samples: int = 4_000) -> Signal:
    """Noise of 100 to 4,000 Hz: a band in which the delay kernel is exact."""
    spectrum = np.fft.rfft(np.random.default_rng(7).standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1.0 / RATE)
    spectrum[(hertz < 100) | (hertz > 4_000)] = 0.0
    result: Signal = np.fft.irfft(spectrum, samples)
    scaled: Signal = 0.1 * result / np.sqrt(np.mean(result**2))
    return scaled


def level_db(signal: Signal) -> float:
    return 20.0 * math.log10(float(np.sqrt(np.mean(signal**2))))


def fractional_lag(later: Signal, earlier: Signal) -> float:
    """Samples by which `later` lags, from the slope of the cross-spectrum's phase."""
    size = 1 << (len(later) + len(earlier)).bit_length()
    cross = np.fft.rfft(later, size) * np.conj(np.fft.rfft(earlier, size))
    coarse = int(np.argmax(np.fft.irfft(cross, size)))
    radians = 2.0 * np.pi * np.arange(len(cross)) / size
    rest = np.angle(cross * np.exp(1j * radians * coarse))
    return coarse - float(np.sum(np.abs(cross) * radians * rest) / np.sum(np.abs(cross) * radians**2))


@pytest.mark.parametrize("distance_m", [0.29, 1.0, 1.37, 2.5])
def test_delay_is_distance_over_the_speed_of_sound(distance_m: float) -> None:
    source = (1.0, 1.0, 1.2)
    microphone = Microphone((1.0 + distance_m, 1.0, 1.2), noise_dbfs=SILENT)
    clip = PlacedClip(burst(), 800, source)
    heard = mix([clip], [microphone], DRY, samples=RATE, sample_rate_hz=RATE, seed=1)[0]
    lag = fractional_lag(heard[800:], clip.samples)
    assert lag == pytest.approx(distance_m / SPEED_OF_SOUND_M_S * RATE, abs=0.02)


def test_level_falls_with_distance_and_follows_the_gain() -> None:
    source = (1.0, 1.0, 1.2)
    microphones = [
        Microphone((1.5, 1.0, 1.2), noise_dbfs=SILENT),
        Microphone((3.0, 1.0, 1.2), noise_dbfs=SILENT),
        Microphone((3.0, 1.0, 1.2), gain_db=-4.0, noise_dbfs=SILENT),
    ]
    clip = PlacedClip(burst(), 0, source)
    near, far, quiet = mix([clip], microphones, DRY, samples=6_000, sample_rate_hz=RATE, seed=1)
    assert level_db(near) - level_db(far) == pytest.approx(20.0 * math.log10(4.0), abs=0.1)
    assert level_db(far) - level_db(quiet) == pytest.approx(4.0, abs=0.01)


def test_a_metre_away_the_level_is_the_clip_s_own() -> None:
    microphone = Microphone((2.0, 1.0, 1.2), noise_dbfs=SILENT)
    clip = PlacedClip(burst(), 0, (1.0, 1.0, 1.2))
    heard = mix([clip], [microphone], DRY, samples=4_200, sample_rate_hz=RATE, seed=1)[0]
    assert float(np.sum(heard**2)) == pytest.approx(float(np.sum(clip.samples**2)), rel=0.01)


def test_noise_has_its_level_and_is_independent_of_the_other_microphones() -> None:
    microphones = [Microphone((1.0, 1.0, 1.0)), Microphone((2.0, 1.0, 1.0), noise_dbfs=-50.0)]
    first, second = mix([], microphones, DRY, samples=RATE, sample_rate_hz=RATE, seed=3)
    assert level_db(first) == pytest.approx(-65.0, abs=0.2)
    assert level_db(second) == pytest.approx(-50.0, abs=0.2)
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 0.03


def test_reflections_arrive_after_the_direct_sound_and_weaker() -> None:
    source, microphone = (2.0, 2.0, 1.2), Microphone((3.0, 2.0, 1.2))
    response = impulse_response(LIVE, source, microphone, RATE, np.random.default_rng(1))
    direct = round(direct_path(source, microphone, RATE).delay_samples)
    assert int(np.argmax(np.abs(response))) == direct
    assert float(np.max(np.abs(response[direct + 30 :]))) < 0.5 * float(np.max(response))
    tail = response[direct + RATE // 5 :]
    assert level_db(tail) < level_db(response[direct + RATE // 50 : direct + RATE // 10]) - 15.0


def test_reverberation_leaves_the_first_sound_where_it_was() -> None:
    source, microphone = (2.0, 2.0, 1.2), Microphone((2.0, 2.3, 1.1), noise_dbfs=SILENT)
    clip = PlacedClip(burst(), 100, source)
    dry, live = (
        mix([clip], [microphone], room, samples=8_000, sample_rate_hz=RATE, seed=1)[0] for room in (DRY, LIVE)
    )
    assert fractional_lag(live, dry) == pytest.approx(0.0, abs=0.2)


def test_same_seed_same_samples_and_another_talker_changes_nothing_of_the_first() -> None:
    microphones = [Microphone((1.0, 1.0, 1.0)), Microphone((4.0, 1.0, 1.0))]
    first = PlacedClip(burst(), 0, (1.0, 1.3, 1.2))
    second = PlacedClip(burst(2_000), 10_000, (4.0, 1.3, 1.2))
    alone = mix([first], microphones, LIVE, samples=RATE, sample_rate_hz=RATE, seed=5)
    again = mix([first], microphones, LIVE, samples=RATE, sample_rate_hz=RATE, seed=5)
    both = mix([first, second], microphones, LIVE, samples=RATE, sample_rate_hz=RATE, seed=5)
    other = mix([first], microphones, LIVE, samples=RATE, sample_rate_hz=RATE, seed=6)
    assert np.array_equal(alone, again)
    assert np.array_equal(alone[:, :10_000], both[:, :10_000])
    assert not np.array_equal(alone, other)


def test_a_clip_that_runs_over_the_end_is_cut() -> None:
    clip = PlacedClip(np.ones(1_000), 900, (1.0, 1.0, 1.0))
    heard = mix([clip], [Microphone((1.3, 1.0, 1.0))], DRY, samples=1_000, sample_rate_hz=RATE, seed=1)
    assert heard.shape == (1, 1_000)


@pytest.mark.parametrize("start", [-1, 1_000])
def test_a_clip_outside_the_recording_is_refused(start: int) -> None:
    clip = PlacedClip(np.ones(10), start, (1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="outside"):
        mix([clip], [Microphone((1.3, 1.0, 1.0))], DRY, samples=1_000, sample_rate_hz=RATE, seed=1)


def test_a_microphone_in_a_mouth_is_refused() -> None:
    with pytest.raises(ValueError, match="apart"):
        direct_path((1.0, 1.0, 1.0), Microphone((1.0, 1.0, 1.0)), RATE)


@pytest.mark.parametrize(
    ("size_m", "wall_reflection", "tail_decay_s"),
    [((0.0, 4.0, 3.0), 0.1, 0.2), ((5.0, 4.0, 3.0), 1.0, 0.2), ((5.0, 4.0, 3.0), 0.1, 0.0)],
)
def test_impossible_rooms_are_refused(
    size_m: tuple[float, float, float], wall_reflection: float, tail_decay_s: float
) -> None:
    with pytest.raises(ValueError, match="must be"):
        Room(size_m, wall_reflection, -30.0, tail_decay_s)


def test_delayed_keeps_the_clip_s_own_time() -> None:
    samples = burst(500)
    path = direct_path((1.0, 1.0, 1.0), Microphone((1.343, 1.0, 1.0)), RATE)
    assert path.delay_samples == pytest.approx(16.0)
    out = delayed(samples, path)
    assert np.allclose(out[16:500], samples[:484] * path.gain, atol=1e-9)
    assert path.gain == pytest.approx(1.0 / 0.343)
    assert decibels(20.0) == pytest.approx(10.0)
