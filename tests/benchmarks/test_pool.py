"""What the pool of rooms and real speech is measured by."""

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.pool import real_truth, speech_frames, stretches
from benchmarks.rival import Shown, last_word_ms
from flows.latency import UNMATCHED_MS, TrueUtterance

RATE_HZ = 16_000


def _tones(*spans: tuple[float, float], length_s: float) -> npt.NDArray[np.float32]:
    chance = np.random.default_rng(5)
    sound = chance.normal(0, 0.002, round(length_s * RATE_HZ))
    for start, end in spans:
        first, last = round(start * RATE_HZ), round(end * RATE_HZ)
        sound[first:last] += 0.2 * np.sin(2 * np.pi * 220 * np.arange(last - first) / RATE_HZ)
    return sound.astype(np.float32)


def test_the_end_of_a_turn_is_where_its_sound_ends() -> None:
    speech = speech_frames(_tones((1.0, 2.0), (2.2, 2.6), (4.0, 5.0), length_s=8), RATE_HZ)
    assert np.array(stretches(speech)) == pytest.approx(np.array([(1.0, 2.6), (4.0, 5.0)]))
    loose = {"segments": [{"speaker": "A", "start": 0.7, "end": 3.4, "text": "so it is"}]}
    (turn,) = real_truth(loose, speech)
    assert turn.end_s == pytest.approx(2.6)
    assert [u.end_s for u in real_truth({}, speech)] == pytest.approx([2.6, 5.0])


def test_a_turn_without_sound_is_no_utterance() -> None:
    silent = {"segments": [{"speaker": "A", "start": 3.0, "end": 3.5, "text": "mm"}]}
    assert real_truth(silent, speech_frames(_tones((1.0, 2.0), length_s=4), RATE_HZ)) == []


def test_a_word_counts_from_when_it_stands_as_it_stays() -> None:
    truth = [
        TrueUtterance("a", None, 0.0, 1.0, "we ship on Friday"),
        TrueUtterance("b", None, 1.5, 2.0, "fine"),
        TrueUtterance("c", None, 3.0, 4.0, "nobody heard this"),
    ]
    shown = [
        Shown(0.9, "We shop"),
        Shown(1.4, "We ship on"),
        Shown(1.9, "We ship on Friday."),
        Shown(2.2, "We ship on Thursday, fine"),
        Shown(2.6, "We ship on Friday. Fine."),
    ]
    assert last_word_ms(shown, truth) == pytest.approx([1600.0, 600.0, UNMATCHED_MS])
    assert last_word_ms([], truth) == [UNMATCHED_MS] * 3
