"""The recogniser with the bundled weights: real words, no invented ones, the same answer every time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from rapidfuzz.distance import Levenshtein

from models.speech_recogniser import (
    ModelError,
    RecogniserSettings,
    Recognition,
    SpeechRecogniser,
    Word,
    log_mel,
    model_folder,
)
from models.speech_text import murmured, normalised

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000

Samples = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def recogniser() -> SpeechRecogniser:
    return SpeechRecogniser(RecogniserSettings())


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    return loaded


def spoken(truth: dict[str, Any], start: str) -> tuple[Samples, dict[str, Any]]:
    """Sound of the utterance whose text begins like this, with 0.2 s before it and none after."""
    utterance = next(u for u in truth["utterances"] if u["text"].startswith(start))
    samples, rate_hz = soundfile.read(SAMPLE / f"{utterance['device']}.flac", dtype="float32")
    assert rate_hz == RATE_HZ
    return samples[utterance["start_sample"] - 3_200 : utterance["end_sample"]], utterance


def error_rate(heard: str, said: str) -> float:
    words = normalised(said)
    return Levenshtein.distance(words, normalised(heard)) / len(words)


def test_hears_what_was_said(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    for start in ("Good morning, everyone", "Sure, and I will dance", "I have a question"):
        samples, utterance = spoken(truth, start)
        assert error_rate(recogniser.recognise(samples).text, utterance["text"]) <= 0.1


def test_same_samples_same_answer(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    samples, _ = spoken(truth, "If we had more people")
    other, _ = spoken(truth, "Good morning, everyone")
    first = recogniser.recognise(samples)
    recogniser.recognise(other)
    assert recogniser.recognise(samples) == first


def test_word_times_follow_the_sound(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    samples, _ = spoken(truth, "Sure, and I will dance")
    found = recogniser.recognise(samples)
    times = [time for word in found.words for time in (word.start_s, word.end_s)]
    assert times == sorted(times)
    assert times[-1] <= len(samples) / RATE_HZ
    assert found.boundary_ms == 100.0
    # The same sentence half a second later: every word moves with it.
    later = recogniser.recognise(np.pad(samples, (8_000, 0)))
    assert normalised(later.text) == normalised(found.text)
    moved = [b.start_s - a.start_s for a, b in zip(found.words[1:], later.words[1:], strict=True)]
    assert np.median(moved) == pytest.approx(0.5, abs=0.1)


def test_without_alignment_the_bound_is_honest(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    samples, _ = spoken(truth, "Good morning, everyone")
    found = recogniser.recognise(samples, word_times=False)
    assert found.words[-1].end_s <= len(samples) / RATE_HZ
    assert found.boundary_ms == pytest.approx(500 * len(samples) / RATE_HZ)


def noises() -> dict[str, Samples]:
    rng = np.random.default_rng(7)
    time_s = np.arange(3 * RATE_HZ) / RATE_HZ
    white = rng.standard_normal(len(time_s))
    made = {
        "silence": np.zeros(len(time_s)),
        "faint noise": white * 0.002,
        "loud noise": white * 0.1,
        "hum": 0.05 * np.sin(2 * np.pi * 50 * time_s),
        "rumble": np.cumsum(white) * 0.0003,
        "clicks": (rng.random(len(time_s)) < 0.0005) * 0.5,
        "typing": white * 0.1 * (np.arange(len(time_s)) % 3_200 < 300),
    }
    return {name: samples.astype(np.float32) for name, samples in made.items()}


@pytest.mark.parametrize("name", list(noises()))
def test_invents_nothing(recogniser: SpeechRecogniser, name: str) -> None:
    samples = noises()[name]
    for length in (0.5, 1.0, 3.0):
        found = recogniser.recognise(samples[: int(length * RATE_HZ)])
        assert found.text == "", f"{name}, {length} s: {found}"
        assert found.words == ()


def test_hotwords_help_where_the_word_was_said(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    samples, _ = spoken(truth, "Good. So we launch Kestrel")
    hotwords = ("Anna", "Ben", "Mark", "David", "Kestrel", "Brightwater import", "launch date")
    assert "Kestrel" in recogniser.recognise(samples, hotwords=hotwords).text


def test_hotwords_are_not_heard_where_nobody_said_them(
    recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    hotwords = ("Ben", "Yasmin", "Oncology", "Ward rota")
    for start in ("Fine, no party then", "Sure, and I will dance", "If we had more people"):
        samples, utterance = spoken(truth, start)
        heard = set(normalised(recogniser.recognise(samples, hotwords=hotwords).text))
        assert not heard.intersection({"ben", "yasmin", "oncology", "rota"}), utterance["text"]


def test_a_murmur_is_heard_where_the_voice_is_clear(
    recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    samples, _ = spoken(truth, "Mm-hm")
    for hotwords in ((), ("Anna", "Ben", "Mark", "David", "Old desktop version", "Price list")):
        assert recogniser.recognise(samples, hotwords=hotwords).text == ""
        assert murmured(recogniser.recognise(samples, hotwords=hotwords, voice=0.85).text)


def test_features_are_those_of_whisper(recogniser: SpeechRecogniser, truth: dict[str, Any]) -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    samples, _ = spoken(truth, "Good morning, everyone")
    extractor = FeatureExtractor()
    frames = 900
    expected = extractor(np.pad(samples, (0, frames * 160 - len(samples))))[:, :frames]
    filters = np.asarray(extractor.mel_filters, dtype=np.float32)
    np.testing.assert_allclose(log_mel(samples, filters, frames), expected, atol=1e-4)
    assert recogniser.features(samples).shape == (80, 900)
    assert recogniser.features(np.zeros(8 * RATE_HZ, dtype=np.float32)).shape == (80, 1_000)


def test_too_short_wrong_shape_too_long(recogniser: SpeechRecogniser) -> None:
    assert recogniser.recognise(np.zeros(100, dtype=np.float32)) == Recognition("", suppressed="too short")
    with pytest.raises(ValueError, match="mono"):
        recogniser.recognise(np.zeros((100, 2), dtype=np.float32))
    with pytest.raises(ValueError, match="30 s"):
        recogniser.recognise(np.zeros(31 * RATE_HZ, dtype=np.float32))


def test_missing_weights_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"incomplete, .*model\.bin is missing"):
        model_folder(str(tmp_path))
    with pytest.raises(ModelError, match="no local weights for 'enormous'"):
        model_folder("enormous")
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelError, match="cannot load"):
        SpeechRecogniser(RecogniserSettings(model=str(tmp_path)))


def test_settings_refuse_what_cannot_work() -> None:
    with pytest.raises(ValueError, match="repeat themselves"):
        RecogniserSettings(min_context_s=2.0)
    with pytest.raises(ValueError, match="at least 1"):
        RecogniserSettings(workers=0)


def test_ordinary_words_are_no_names(recogniser: SpeechRecogniser) -> None:
    words = recogniser.ordinary_words()
    assert {"then", "market", "people", "thank"} <= words
    assert not {"sarah", "Kestrel"} & words


def test_words_are_plain_values() -> None:
    assert Word(0.0, 0.5, "yes", 0.9) == Word(0.0, 0.5, "yes", 0.9)
