"""Lines whose voice rises or falls at the end: pitch, times of words, and what perception makes of it."""

import numpy as np
import pytest

from contracts.timeline import Prosody
from devices.rooms.intonation import intoned
from devices.sample_voices import Clip, Word
from operators.align.senses import tone_of
from operators.speech.prosody import STEP_NS, prosody_of
from operators.understand.senses import falls, rises

RATE = 16_000


def clip(hertz: float = 130.0, seconds: float = 1.5) -> Clip:
    time = np.arange(round(seconds * RATE)) / RATE
    buzz = np.sum([np.sin(2.0 * np.pi * k * hertz * time) / k for k in range(1, 11)], axis=0)
    silence = np.zeros(RATE // 4)
    return Clip(np.concatenate([silence, 0.1 * buzz, silence]), RATE, (Word("yes", 0.25, 0.25 + seconds),))


def test_a_line_rises_or_falls_and_the_detectors_hear_it() -> None:
    heard = {}
    for intonation in (None, "rising", "falling"):
        found = prosody_of(np.asarray(intoned(clip(), intonation).samples, np.float32))
        assert found is not None
        tone = tone_of(
            Prosody(
                step_ns=STEP_NS, pitch_hz=found.pitch_hz, typical_hz=found.typical_hz, level_db=found.level_db
            )
        )
        heard[intonation] = (rises(tone), falls(tone))
    assert heard == {None: (False, False), "rising": (True, False), "falling": (False, True)}


def test_words_move_with_their_sounds() -> None:
    plain, up, down = clip(), intoned(clip(), "rising"), intoned(clip(), "falling")
    assert intoned(plain, None) is plain
    for other, shorter in ((up, True), (down, False)):
        assert (len(other.samples) < len(plain.samples)) is shorter
        loud = np.flatnonzero(np.abs(other.samples) > 0.002)
        assert other.words[0].start_s == pytest.approx(0.25, abs=1e-3)
        assert other.words[0].end_s == pytest.approx(loud[-1] / RATE, abs=0.01)


def test_silence_has_no_end_to_move() -> None:
    silent = Clip(np.zeros(RATE), RATE, ())
    assert intoned(silent, "rising") is silent
