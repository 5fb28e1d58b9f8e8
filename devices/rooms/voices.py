"""Dry speech for the lines of a script: clips kept beside the scripts, or recordings that a script names.

The clips of a script lie in one Ogg Opus file and an index with the place of each clip and the times of its
words. `devices.rooms.speak` makes both with text-to-speech voices; who only builds rooms needs none of those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import soundfile
import soxr  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from devices.acoustics import Signal
from devices.rooms.script import Line, Script, ScriptError
from devices.sample_voices import Clip, Word

SAMPLE_RATE_HZ: Final = 16_000
BETWEEN_SAMPLES: Final = 1_600
"""Silence between two clips in the file, so that none leaks into the next through the codec."""


_Times = Annotated[float, Field(ge=0.0, le=36_000.0)]
_Words = tuple[tuple[str, _Times, _Times], ...]
_WORDS: Final[TypeAdapter[_Words]] = TypeAdapter(_Words)


class _Kept(BaseModel):
    """Where a clip lies in its file, and its words by their times from the clip's start."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    start_sample: Annotated[int, Field(ge=0)]
    samples: Annotated[int, Field(gt=0)]
    words: _Words


_INDEX: Final = TypeAdapter(dict[str, _Kept])


def fingerprint(script: Script, line: Line) -> str:
    """Changes when the line would sound different."""
    voice = script.person(line.speaker).voice
    told = [None if voice is None else voice.model_dump(), line.stretches(), line.say, line.pace]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def read_clips(script: Script, scripts: Path, clips: Path) -> dict[str, Clip]:
    """A clip for every line by its id. `scripts` is the folder of recordings, `clips` that of kept clips.

    Raises:
        ScriptError: a clip is missing, was made of other words, or cannot be read.
    """
    spoken = [line for line in script.lines if line.recording is None]
    found = {
        line.id: _recorded(scripts / line.recording, line)
        for line in script.lines
        if line.recording is not None
    }
    if spoken:
        found |= _kept(script, spoken, clips / f"{script.meeting_id}.opus")
    return found


def write_clips(script: Script, spoken: Mapping[str, Clip], folder: Path) -> None:
    """Keep clips in one Opus file with its index."""
    parts: list[Signal] = []
    index: dict[str, Any] = {}
    at = BETWEEN_SAMPLES
    for line in script.lines:
        if line.id not in spoken:
            continue
        clip = spoken[line.id]
        index[line.id] = {
            "fingerprint": fingerprint(script, line),
            "start_sample": at,
            "samples": len(clip.samples),
            "words": [[word.text, round(word.start_s, 4), round(word.end_s, 4)] for word in clip.words],
        }
        # Every clip equally loud: what the codec adds lies far below each of them.
        parts += [np.zeros(BETWEEN_SAMPLES), clip.samples * (0.5 / np.max(np.abs(clip.samples)))]
        at += len(clip.samples) + BETWEEN_SAMPLES
    parts.append(np.zeros(BETWEEN_SAMPLES))
    folder.mkdir(parents=True, exist_ok=True)
    soundfile.write(
        folder / f"{script.meeting_id}.opus", np.concatenate(parts), SAMPLE_RATE_HZ, format="OGG",
        subtype="OPUS", compression_level=0.9,
    )  # fmt: skip
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(entry)}" for key, entry in index.items())
    (folder / f"{script.meeting_id}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _kept(script: Script, lines: list[Line], path: Path) -> dict[str, Clip]:
    how = "make them with python -m devices.rooms.speak"
    try:
        index = _INDEX.validate_json(path.with_suffix(".json").read_bytes())
        sound, rate = soundfile.read(path, dtype="float64")
    except (OSError, ValueError, soundfile.LibsndfileError) as error:
        raise ScriptError(f"{path}: the clips of {script.meeting_id} cannot be read; {how}") from error
    if rate != SAMPLE_RATE_HZ or sound.ndim != 1:
        raise ScriptError(f"{path}: must be mono at {SAMPLE_RATE_HZ} Hz; {how}")
    clips: dict[str, Clip] = {}
    for line in lines:
        entry = index.get(line.id)
        if entry is None or entry.fingerprint != fingerprint(script, line):
            what = "has no clip" if entry is None else "was changed since its clip was made"
            raise ScriptError(f"{path}: line {line.id} {what}; {how}")
        samples = sound[entry.start_sample : entry.start_sample + entry.samples]
        if len(samples) < entry.samples:
            raise ScriptError(f"{path}: ends before the clip of line {line.id}; {how}")
        clips[line.id] = Clip(samples, rate, tuple(Word(*word) for word in entry.words))
    return clips


def _recorded(path: Path, line: Line) -> Clip:
    """A recording as a clip; words from a JSON list of [text, start_s, end_s] beside it, else without times."""
    try:
        sound, rate = soundfile.read(path, dtype="float64", always_2d=True)
        beside = path.with_suffix(".json")
        words = _WORDS.validate_json(beside.read_bytes()) if beside.is_file() else ()
    except (OSError, ValueError, soundfile.LibsndfileError) as error:
        raise ScriptError(f"line {line.id}: the recording {path} cannot be read") from error
    samples = soxr.resample(sound.mean(axis=1), rate, SAMPLE_RATE_HZ)
    return Clip(samples, SAMPLE_RATE_HZ, tuple(Word(*word) for word in words))
