"""Single formulas of alignment, each where a slip of its sign, factor or choice shows."""

import numpy as np
import pytest

from contracts.timeline import GapRecord, Prosody
from operators.align.aligned import Ended
from operators.align.alignment import Alignment, AlignmentSettings
from operators.align.grid import AlignSettings, MeetingAligner
from operators.align.senses import tone_of, with_senses
from operators.understand.sensed import Gesture
from operators.understand.types import Spoken
from tests.operators.test_align import OPENED, at, ended, stream
from tests.operators.test_alignment import STREAM, clock, flat, ns
from tests.operators.test_alignment_sound import RATE, ZERO, S, block, record, tone, true_tone


def test_between_two_frames_the_worse_of_their_bounds_holds() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.clock(clock(0))
    alignment.features(flat(0.0, 0.5))
    alignment.clock(clock(1, since=0.5))
    alignment.features(flat(1.0, 0.5))
    found = alignment.at(ns(0.0, 0.4, 0.6, 1.0)).volumes[STREAM]
    assert found.error_ns.tolist() == [1_000_000, 2_000_000, 2_000_000, 2_000_000]


def test_a_clock_that_only_stamps_takes_no_skew_out_of_true_samples() -> None:
    """Stamps run 100 ppm fast, and the record says so; the sound card's quartz is right."""
    alignment = Alignment(AlignmentSettings())
    alignment.clock(record(0, 100e-6))
    for n in range(0, 40 * RATE, 320):
        alignment.sound(block(ZERO + round(n * S / RATE * (1 + 100e-6)), tone(n, 320, 0.0)))
    times = np.asarray([ZERO + n * S // RATE for n in range(30 * RATE, 38 * RATE)], np.int64)
    found = alignment.at(times).sound["mic/audio"]
    assert found.known.all()
    assert np.max(np.abs(found.values - true_tone((times - ZERO) / 1e9))) < 0.01
    # Blocks are placed one by one, which would hide a wrong rate within them.
    assert abs(alignment._sound["mic/audio"][1]._skew) < 5e-6


def test_a_silent_stretch_ends_where_the_stream_first_came_back() -> None:
    silent = GapRecord(
        meeting_id="m", stream="mic/audio", device="mic", clock=0, raw_start_ns=at(5), raw_end_ns=at(6),
        what="silent_device",
    )  # fmt: skip
    aligner = MeetingAligner("m", AlignSettings())
    out = [
        o
        for r in [
            *OPENED,
            stream("resumed", 2),
            silent,
            stream("resumed", 10),
            stream("resumed", 20),
            ended(30),
        ]
        for o in aligner.feed(r)
    ]
    (end,) = [o for o in out if isinstance(o, Ended)]
    assert [(g.start_ns, g.end_ns) for g in end.gaps] == [(at(5), at(10))]


@pytest.mark.parametrize(("by", "semitones"), [(2.0, 12.0), (1.0, 0.0), (0.5, -12.0)])
def test_an_octave_is_twelve_semitones(by: float, semitones: float) -> None:
    said = tone_of(Prosody(step_ns=10_000_000, pitch_hz=(120.0 * by,) * 50, typical_hz=120.0, level_db=-20.0))
    assert said is not None
    assert (said.rise_st, said.slope_st_s, said.voiced_share) == (semitones, 0.0, 1.0)


def test_a_voice_that_rises_by_an_octave_a_second_has_that_slope() -> None:
    pitch = tuple(120.0 * 2.0 ** (n / 100) for n in range(50))
    said = tone_of(Prosody(step_ns=10_000_000, pitch_hz=pitch, typical_hz=120.0, level_db=-20.0))
    assert said is not None and said.slope_st_s == pytest.approx(12.0, abs=0.01)


class _Watched(Alignment):
    """A camera that saw a nod at these seconds."""

    def __init__(self, *seconds: float) -> None:
        super().__init__(AlignmentSettings())
        self._nods = [
            Gesture("nod", at(s), at(s + 0.5), "camera", 0.5, None, 0.9, 1.0, 40.0, 80.0) for s in seconds
        ]

    def gestures(self) -> list[Gesture]:
        return self._nods


def test_a_gesture_belongs_to_the_utterance_in_which_it_begins_until_the_next_one_begins() -> None:
    spoken = [
        Spoken(name, at(start), at(start + 2), "a", "Yes.")
        for name, start in (("u1", 10), ("u2", 14), ("u3", 40))
    ]
    found = with_senses(
        _Watched(9.9, 10.0, 13.9, 14.0, 21.9, 22.1, 40.5), spoken, {}, [at(10), at(14), at(40)]
    )
    owned = [
        [round((g.start_ns - at(0)) / S, 1) for g in s.senses.gestures] if s.senses else [] for s in found
    ]
    # Six seconds after the last word a gesture belongs to nothing any more.
    assert owned == [[10.0, 13.9], [14.0, 21.9], [40.5]]
