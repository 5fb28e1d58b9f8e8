"""How a line ends: the last part of a clip played faster and faster, or slower, so that its pitch glides.

What makes a question of a statement in a room: the words stay the same.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from devices.sample_voices import Clip, Word

Intonation = Literal["rising", "falling"]

_SPAN_S: Final = 0.45
_SEMITONES: Final = {"rising": 6.0, "falling": -4.0}
_AUDIBLE: Final = 0.02
"""Share of the loudest sample below which a clip's end is silence."""


def intoned(clip: Clip, intonation: Intonation | None) -> Clip:
    """The clip with its last 0.45 s gliding up by six semitones, or down by four; words move with their sounds."""
    loud = np.flatnonzero(np.abs(clip.samples) > _AUDIBLE * float(np.max(np.abs(clip.samples), initial=0.0)))
    if intonation is None or not len(loud):
        return clip
    rate, end = clip.sample_rate_hz, int(loud[-1]) + 1
    begin = max(0, end - round(_SPAN_S * rate))
    place = np.arange(len(clip.samples) + 1, dtype=np.float64)
    done = np.clip((place - begin) / max(1, end - begin), 0.0, 1.0)
    speed = 2.0 ** (_SEMITONES[intonation] / 12.0 * done)
    speed[end:] = 1.0
    # When each sample of the clip is heard, counted in samples of the new one.
    heard = np.concatenate(([0.0], np.cumsum(1.0 / speed[:-1])))
    asked = np.interp(np.arange(int(heard[-1])), heard, place)
    samples = np.interp(asked, place[:-1], clip.samples)

    def moved(second: float) -> float:
        return float(np.interp(second * rate, place, heard)) / rate

    words = tuple(Word(w.text, moved(w.start_s), moved(w.end_s)) for w in clip.words)
    return Clip(samples, rate, words)
