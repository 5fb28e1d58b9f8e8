"""Voice activity on the sample meeting's sound."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from models.speech_recogniser import ModelError
from models.voice_activity import FRAME_SAMPLES, VoiceActivity, VoiceState

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"


@pytest.fixture(scope="module")
def activity() -> VoiceActivity:
    return VoiceActivity()


@pytest.fixture(scope="module")
def frames() -> npt.NDArray[np.float32]:
    samples, _ = soundfile.read(SAMPLE / "mic-1.flac", frames=8 * 16_000, dtype="float32")
    return np.asarray(samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES]).reshape(-1, FRAME_SAMPLES)


def test_speech_and_silence(activity: VoiceActivity, frames: npt.NDArray[np.float32]) -> None:
    first = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))["utterances"][0]
    found = activity.probabilities(VoiceState(), frames)
    start, end = first["start_sample"] // FRAME_SAMPLES, first["end_sample"] // FRAME_SAMPLES
    assert np.mean(found[start + 2 : end - 2] > 0.5) > 0.9
    assert np.all(found[: start - 3] < 0.5)


@pytest.mark.parametrize("level", [0.0, 0.01, 0.1])
def test_noise_is_no_speech(activity: VoiceActivity, level: float) -> None:
    noise = np.random.default_rng(0).standard_normal((300, FRAME_SAMPLES)).astype(np.float32) * level
    assert np.mean(activity.probabilities(VoiceState(), noise) > 0.5) < 0.01


def test_state_carries_over_any_cut(activity: VoiceActivity, frames: npt.NDArray[np.float32]) -> None:
    whole = activity.probabilities(VoiceState(), frames)
    state, parts, position = VoiceState(), [], 0
    for length in (1, 3, 0, 20, 1, len(frames)):
        parts.append(activity.probabilities(state, frames[position : position + length]))
        position += length
        state = VoiceState.load(state.dump())
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)


def test_bad_state_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        VoiceState.load(b"x" * 12)
    with pytest.raises(ModelError, match="cannot load"):
        VoiceActivity(tmp_path / "none.onnx")
