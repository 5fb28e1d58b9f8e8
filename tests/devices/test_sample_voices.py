"""Word times out of phone times, resampling, recogniser spellings; nothing speaks here."""

import importlib.util
import shutil

import numpy as np
import pytest

from devices.sample_listen import word_errors, words
from devices.sample_voices import MissingTool, Phone, align_words, missing_tools, resampled, synthesise


def phones(text: str) -> list[Phone]:
    return [Phone(symbol, float(index), index + 1.0) for index, symbol in enumerate(text.split())]


def spans(sentence: str, *said: str) -> list[tuple[float, float]]:
    groups = align_words(phones(sentence), [word.split() for word in said])
    return [(group[0].start_s, group[-1].end_s) for group in groups]


def test_words_take_their_phones_in_order() -> None:
    assert spans("f ih k s dh ax b ah g", "f ih k s", "dh ax", "b ah g") == [(0, 4), (4, 6), (6, 9)]


def test_a_phone_that_sounds_otherwise_in_a_sentence_stays_with_its_word() -> None:
    assert spans("dh iy eh n d", "dh ax", "eh n d") == [(0, 2), (2, 5)]


def test_a_phone_dropped_between_words_leaves_both_words() -> None:
    assert spans("l ae s th r iy", "l ae s t", "th r iy") == [(0, 3), (3, 6)]


def test_an_added_phone_joins_a_neighbour() -> None:
    assert spans("ay w ih l x g ow", "ay", "w ih l", "g ow") == [(0, 1), (1, 5), (5, 7)]


def test_repeated_words_are_told_apart() -> None:
    assert spans("n ow n ow n ow", "n ow", "n ow", "n ow") == [(0, 2), (2, 4), (4, 6)]


def test_a_word_without_sound_is_an_error() -> None:
    with pytest.raises(ValueError, match="no sound"):
        align_words(phones("f ih k s"), [["f", "ih", "k", "s"], []])


def test_resampling_keeps_length_level_and_pitch() -> None:
    source = 0.3 * np.sin(2 * np.pi * 440.0 * np.arange(22_050) / 22_050) * np.hanning(22_050)
    target = resampled(source, 22_050, 16_000)
    expected = 0.3 * np.sin(2 * np.pi * 440.0 * np.arange(16_000) / 16_000)
    expected *= np.interp(np.arange(16_000) / 16_000, np.arange(22_050) / 22_050, np.hanning(22_050))
    assert target.shape == (16_000,)
    assert float(np.max(np.abs(target - expected))) < 1e-3


def test_what_lies_above_the_new_band_is_gone() -> None:
    source = np.sin(2 * np.pi * 9_500.0 * np.arange(22_050) / 22_050) * np.hanning(22_050)
    assert float(np.max(np.abs(resampled(source, 22_050, 16_000)))) < 1e-3


def test_missing_tools_are_named_with_the_command_that_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert missing_tools(["slt", "rms"]) == ["flite: apt-get install flite"]
    assert "piper: pip install piper-tts" in missing_tools(["joe"])
    with pytest.raises(MissingTool, match="flite"):
        synthesise("awb", "Hello.", 16_000)


def test_spellings_are_no_errors_and_misheard_words_are() -> None:
    assert words("March 26th, 4,000 euros, I'll") == words("march twenty-sixth four thousand euros i will")
    assert word_errors(words("the last three errors"), words("The last 3 errors.")) == 0
    assert word_errors(words("release of Kestrel"), words("release of the castle")) == 2
    assert word_errors([], ["a"]) == 1
