"""When each line of a script is said: clips become placed speech with exact times at the mouth.

Times at the mouth are when the sound leaves it; a microphone hears it distance / 343 m/s later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from devices.acoustics import Signal, decibels
from devices.rooms.intonation import intoned
from devices.rooms.script import Line, Script, ScriptError
from devices.rooms.voices import SAMPLE_RATE_HZ
from devices.sample_voices import Clip, Word

SPEECH_DBFS_AT_ONE_METRE: Final = -34.0
"""RMS of a talker's sound while they talk; a microphone 34 cm away hears it at about -25 dBFS."""
SPEECH_FLOOR_DBFS: Final = -60.0
"""Level at one metre below which a clip's edge is no speech: 26 dB below the talker."""
FRAMES_PER_SECOND: Final = 30
_ACTIVE_FRAME: Final = SAMPLE_RATE_HZ // 50


@dataclass(frozen=True)
class Placed:
    """A line in the room. Samples count from the start of the recording; `words` are times at the mouth."""

    line: Line
    samples: Signal
    """Dry speech at its level one metre away."""
    start_sample: int
    """Room time of `samples[0]`."""
    speech_start: int
    """The first sample above the speech floor, in room time."""
    speech_end: int
    """One past the last."""
    words: tuple[Word, ...]


def place(script: Script, clips: Mapping[str, Clip]) -> tuple[Placed, ...]:
    """Every line at its time, in the order of the script.

    Raises:
        ScriptError: a line that would begin before the recording.
    """
    done: dict[str, Placed] = {}
    latest_end = round(script.lead_in_s * SAMPLE_RATE_HZ)
    for number, line in enumerate(script.lines):
        level = script.person(line.speaker).level_db
        clip = intoned(clips[line.id], line.intonation)
        samples = clip.samples * _gain(clip.samples, level)
        first, last = speech_edges(samples, level)
        if line.during is not None and line.offset_s is not None:
            start = done[line.during].speech_start + round(line.offset_s * SAMPLE_RATE_HZ)
        else:
            start = latest_end + (round(line.gap_s * SAMPLE_RATE_HZ) if number else 0)
        begin = start - first
        if begin < 0:
            raise ScriptError(
                f"line {line.id} would begin {-begin / SAMPLE_RATE_HZ:.2f} s before the recording"
            )
        at_s = begin / SAMPLE_RATE_HZ
        words = tuple(Word(w.text, at_s + w.start_s, at_s + w.end_s) for w in clip.words)
        done[line.id] = Placed(line, samples, begin, start, begin + last, words)
        latest_end = max(latest_end, begin + last)
    return tuple(done.values())


def length_samples(script: Script, placed: tuple[Placed, ...]) -> int:
    """Length of the recording: a whole number of tenths of a second, so that sound and pictures end together."""
    end_s = max(p.speech_end for p in placed) / SAMPLE_RATE_HZ + script.lead_out_s
    return -int(-end_s * 10 // 1) * SAMPLE_RATE_HZ // 10


def speech_edges(samples: Signal, level_db: float = 0.0) -> tuple[int, int]:
    """First sample above the speech floor of a talker this loud, and one past the last."""
    loud = np.flatnonzero(np.abs(samples) > decibels(SPEECH_FLOOR_DBFS + level_db))
    if not len(loud):
        raise ScriptError("a clip has no sample above the speech floor")
    return int(loud[0]), int(loud[-1]) + 1


def _gain(samples: Signal, level_db: float) -> float:
    """Factor that brings the parts in which somebody talks to the talker's level."""
    whole = len(samples) // _ACTIVE_FRAME * _ACTIVE_FRAME
    power = np.mean(samples[:whole].reshape(-1, _ACTIVE_FRAME) ** 2, axis=1) if whole else samples**2
    loudest = float(np.max(power, initial=0.0))
    if loudest == 0.0:
        raise ScriptError("a clip is silent")
    active = power[power > loudest * 1e-3]
    return decibels(SPEECH_DBFS_AT_ONE_METRE + level_db) / float(np.sqrt(np.mean(active)))
