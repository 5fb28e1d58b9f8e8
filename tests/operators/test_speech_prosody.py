"""Pitch of pieces against tones of known pitch."""

import numpy as np
import numpy.typing as npt
import pytest

from operators.speech.prosody import STEP_NS, prosody_of

RATE = 16_000


def voice(pitch_hz: npt.NDArray[np.float64], level: float = 0.1) -> npt.NDArray[np.float32]:
    """A buzz of ten harmonics whose pitch follows a curve, with some noise."""
    phase = 2.0 * np.pi * np.cumsum(pitch_hz) / RATE
    buzz = np.sum([np.sin(k * phase) / k for k in range(1, 11)], axis=0)
    noise = np.random.default_rng(1).normal(0.0, 0.02, len(phase))
    return np.asarray(level * (buzz + noise), np.float32)


def glide(
    start_hz: float, end_hz: float, flat_s: float = 1.2, moving_s: float = 0.4
) -> npt.NDArray[np.float64]:
    moving = np.geomspace(start_hz, end_hz, round(moving_s * RATE))
    return np.concatenate([np.full(round(flat_s * RATE), start_hz), moving])


@pytest.mark.parametrize("hertz", [85.0, 120.0, 210.0, 380.0])
def test_pitch_of_a_steady_voice(hertz: float) -> None:
    found = prosody_of(voice(np.full(RATE, hertz)))
    assert found is not None
    assert found.typical_hz == pytest.approx(hertz, rel=0.01)
    assert found.pitch_hz[-1] == pytest.approx(hertz, rel=0.02)


@pytest.mark.parametrize("end_hz", [200.0, 100.0])
def test_the_end_follows_the_glide(end_hz: float) -> None:
    found = prosody_of(voice(glide(140.0, end_hz)))
    assert found is not None
    # The middle of the last window is half a window before the end of the sound.
    assert found.pitch_hz[-1] == pytest.approx(end_hz, rel=0.06)
    assert found.typical_hz == pytest.approx(140.0, rel=0.05)
    half = found.pitch_hz[len(found.pitch_hz) // 2]
    assert min(140.0, end_hz) - 3 < half < max(140.0, end_hz) + 3


def test_silence_after_the_voice_changes_nothing() -> None:
    said = voice(glide(140.0, 190.0))
    quiet = np.random.default_rng(2).normal(0.0, 1e-4, RATE // 2).astype(np.float32)
    alone, padded = prosody_of(said), prosody_of(np.concatenate([said, quiet]))
    assert alone is not None and padded is not None
    assert np.allclose(alone.pitch_hz[-20:-1], padded.pitch_hz[-21:-2], rtol=0.02)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, np.float32),
        np.zeros(100, np.float32),
        np.zeros(RATE, np.float32),
        np.random.default_rng(3).normal(0.0, 0.1, RATE).astype(np.float32),
    ],
    ids=["nothing", "too short", "silence", "noise"],
)
def test_no_voice_gives_no_pitch(samples: npt.NDArray[np.float32]) -> None:
    assert prosody_of(samples) is None


def test_loudness_and_length_are_bounded() -> None:
    found = prosody_of(voice(np.full(20 * RATE, 150.0), level=0.01))
    assert found is not None
    assert len(found.pitch_hz) * STEP_NS <= 10**9
    assert -45.0 < found.level_db < -35.0
