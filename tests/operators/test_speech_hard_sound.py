"""Sound that is hard to hear, with the bundled weights: soft, clipped, over the telephone, one word, late, endless."""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from rapidfuzz.distance import Levenshtein

from devices.noises import KINDS, noise
from models.speech_recogniser import RecogniserSettings, Recognition, SpeechRecogniser
from models.speech_text import normalised
from models.voice_activity import VoiceActivity
from operators.speech.events import PieceClosed, RecognitionRequest
from operators.speech.recognise import MeetingSpeech, SpeechSettings
from operators.speech.telephone import Line

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Said:
    """One utterance of the sample meeting: its sound in -1..1, its words with times from the sound's start."""

    sound: Floats
    text: str
    word_starts_s: list[float]


@pytest.fixture(scope="module")
def activity() -> VoiceActivity:
    return VoiceActivity()


@pytest.fixture(scope="module")
def recogniser() -> SpeechRecogniser:
    return SpeechRecogniser(RecogniserSettings())


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    return loaded


def said(truth: dict[str, Any], number: str) -> Said:
    """An utterance with 0.2 s of its room before and after it."""
    utterance = next(u for u in truth["utterances"] if u["id"] == number)
    first = utterance["start_sample"] - 3_200
    samples = soundfile.read(
        SAMPLE / f"{utterance['device']}.flac", start=first, stop=utterance["end_sample"] + 3_200
    )[0]
    starts = [word["start_s"] - first / RATE_HZ for word in utterance["words"]]
    return Said(samples, utterance["text"], starts)


def in_quiet(sound: Floats, before_s: float = 0.6, after_s: float = 1.2) -> Floats:
    """The sound with the faint noise of a room around it."""
    padded = np.pad(sound, (round(before_s * RATE_HZ), round(after_s * RATE_HZ)))
    return np.asarray(padded + np.random.default_rng(1).normal(0.0, 2e-4, len(padded)))


def heard(
    sound: Floats, activity: VoiceActivity, recogniser: SpeechRecogniser | None, rate_hz: int = RATE_HZ
) -> list[PieceClosed]:
    """Pieces of one microphone; without a recogniser they say where they are."""
    meeting = MeetingSpeech(SpeechSettings(partials=False), activity)
    meeting.open_stream("mic", 0, None, rate_hz, 1)
    pcm = np.clip(np.rint(sound * 32768.0), -32768, 32767).astype(np.int16)
    closed: list[PieceClosed] = []

    def drain() -> None:
        todo = meeting.advance()
        while todo:
            for event in todo:
                if isinstance(event, PieceClosed):
                    closed.append(event)
                if isinstance(event, RecognitionRequest):
                    found = Recognition(text=event.piece_id)
                    if recogniser is not None:
                        found = recogniser.recognise(event.samples, voice=event.voice)
                    meeting.result(event.piece_id, event.version, found)
            todo = meeting.advance()

    block = rate_hz // 10
    for start in range(0, len(pcm), block):
        meeting.push("mic", 1, start * 1_000_000_000 // rate_hz, pcm[start : start + block, None])
        drain()
    meeting.end_of_stream("mic")
    drain()
    return closed


def error_rate(pieces: list[PieceClosed], text: str) -> float:
    words = normalised(text)
    return Levenshtein.distance(words, normalised(" ".join(p.text for p in pieces))) / len(words)


def at_half_rate(sound: Floats) -> Floats:
    """As a telephone sends it: 300 to 3400 Hz, 8000 samples a second."""
    spectrum = np.fft.rfft(sound)
    hertz = np.fft.rfftfreq(len(sound), 1.0 / RATE_HZ)
    spectrum[(hertz < 300.0) | (hertz > 3400.0)] = 0.0
    return np.asarray(np.fft.irfft(spectrum, len(sound))[::2])


def test_a_soft_far_talker_is_heard(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    one = said(truth, "u13")
    faint = in_quiet(one.sound * 10 ** (-26 / 20))
    assert error_rate(heard(faint, activity, recogniser), one.text) <= 0.25


def test_clipped_speech_is_heard(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    one = said(truth, "u30")
    loud = np.clip(in_quiet(one.sound / np.max(np.abs(one.sound)) * 3.0), -1.0, 1.0)
    assert np.mean(np.abs(loud) >= 1.0) > 0.01
    assert error_rate(heard(loud, activity, recogniser), one.text) <= 0.25


def test_the_telephone_is_heard(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    one = said(truth, "u30")
    pieces = heard(at_half_rate(in_quiet(one.sound)), activity, recogniser, rate_hz=RATE_HZ // 2)
    assert error_rate(pieces, one.text) <= 0.25


def test_a_telephone_line_is_known_by_its_sound(truth: dict[str, Any]) -> None:
    """At whatever rate it is stored; whole sound is left as it is, sample for sample, however it is cut."""
    whole = in_quiet(said(truth, "u30").sound)
    spectrum = np.fft.rfft(whole)
    hertz = np.fft.rfftfreq(len(whole), 1.0 / RATE_HZ)
    narrow = np.fft.irfft(np.where((hertz > 300.0) & (hertz < 3400.0), spectrum, 0.0), len(whole))
    for sound, changed in ((whole, False), (narrow, True)):
        frames = sound[: len(sound) // 512 * 512].reshape(-1, 512).astype(np.float32)
        at_once = Line(RATE_HZ).for_voice(frames)
        assert np.array_equal(at_once, frames) is not changed
        line, parts = Line(RATE_HZ), []
        for start in range(0, len(frames), 3):
            parts.append(line.for_voice(frames[start : start + 3]))
            line, state = Line(RATE_HZ), line.dump()
            line.load(state)
        assert np.allclose(np.concatenate(parts), at_once, atol=1e-6)


def test_one_word_alone_is_an_utterance(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    agreed = said(truth, "u20")
    sound = agreed.sound[: round((agreed.word_starts_s[1] - 0.05) * RATE_HZ)]
    pieces = heard(in_quiet(sound), activity, recogniser)
    assert [normalised(piece.text) for piece in pieces] == [["agreed"]]


def test_numbers_are_heard(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    text = " ".join(p.text for p in heard(in_quiet(said(truth, "u12").sound), activity, recogniser))
    assert "26" in text or "twenty-sixth" in text.lower()
    text = " ".join(p.text for p in heard(in_quiet(said(truth, "u19").sound), activity, recogniser))
    assert "4,000" in text or "4000" in text or "four thousand" in text.lower()


def test_times_are_true_after_half_a_minute_of_silence(
    activity: VoiceActivity, recogniser: SpeechRecogniser, truth: dict[str, Any]
) -> None:
    one = said(truth, "u13")
    for silence in (np.zeros(30 * RATE_HZ), np.random.default_rng(2).normal(0.0, 2e-4, 30 * RATE_HZ)):
        (piece,) = heard(np.concatenate((silence, in_quiet(one.sound, before_s=0.0))), activity, recogniser)
        starts = [piece.samples_start_ns / 1e9 + word.start_s for word in piece.words]
        assert len(starts) == len(one.word_starts_s)
        late = [found - 30.0 - true for found, true in zip(starts, one.word_starts_s, strict=True)]
        assert np.median(np.abs(late)) < 0.1
        assert abs(piece.start_ns / 1e9 - 30.0 - one.word_starts_s[0]) < 0.15


def test_a_talker_who_never_pauses_is_cut_without_a_gap(
    activity: VoiceActivity, truth: dict[str, Any]
) -> None:
    """Three minutes of words, one right after the other."""
    words: list[Floats] = []
    for number in ("u04", "u16", "u19", "u24", "u32"):
        utterance = next(u for u in truth["utterances"] if u["id"] == number)
        sound = soundfile.read(SAMPLE / f"{utterance['device']}.flac")[0]
        for word in utterance["words"]:
            words.append(sound[round(word["start_s"] * RATE_HZ) : round(word["end_s"] * RATE_HZ)])
    once = np.concatenate(words)
    endless = np.tile(once, 180 * RATE_HZ // len(once) + 1)[: 180 * RATE_HZ]
    pieces = heard(in_quiet(endless), activity, None)
    lengths_s = [(piece.end_ns - piece.start_ns) / 1e9 for piece in pieces]
    assert max(lengths_s) <= 15.1
    assert sum(lengths_s) > 176.0
    assert all(0 <= b.start_ns - a.end_ns < 500_000_000 for a, b in pairwise(pieces))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_nothing_is_written_for_sound_without_speech(
    kind: str, activity: VoiceActivity, recogniser: SpeechRecogniser
) -> None:
    sound = noise(kind, 6.0, seed=5).astype(np.float64)
    assert [piece.text for piece in heard(sound, activity, recogniser)] == []
