"""Blocks to frames: time, gaps, rates, and taking up a written state."""

import numpy as np
import numpy.typing as npt
import pytest

from models.voice_activity import FRAME_SAMPLES
from operators.speech.resample import Resampler, UnsupportedRate
from operators.speech.stream import FRAME_NS, SoundStream, StreamName

BLOCK = 320
BLOCK_NS = 20_000_000
START_NS = 1_000_000_000_000


def stream(rate_hz: int = 16_000) -> SoundStream:
    return SoundStream(StreamName("mic", 0, 7), "Anna", rate_hz)


def ramp(first: int, length: int = BLOCK) -> npt.NDArray[np.int16]:
    return (np.arange(first, first + length) % 30_000).astype(np.int16)


def test_frames_carry_their_number_and_time() -> None:
    sound = stream()
    for block in range(16):
        sound.push(START_NS + block * BLOCK_NS, ramp(block * BLOCK))
    frames = list(sound.waiting)
    assert [frame.index for frame in frames] == [i * FRAME_SAMPLES for i in range(10)]
    assert [frame.start_ns for frame in frames] == [START_NS + i * FRAME_NS for i in range(10)]
    assert np.array_equal(np.concatenate([frame.pcm for frame in frames]), ramp(0, 10 * FRAME_SAMPLES))
    assert sound.newest_ns == START_NS + 16 * BLOCK_NS


def test_frames_do_not_depend_on_the_cut_into_blocks() -> None:
    whole, cut = stream(48_000), stream(48_000)
    samples = np.random.default_rng(0).integers(-9_000, 9_000, 48_000).astype(np.int16)
    whole.push(START_NS, samples)
    for start in range(0, 48_000, 480):
        cut.push(START_NS + start * 1_000_000_000 // 48_000, samples[start : start + 480])
    assert [f.index for f in whole.waiting] == [f.index for f in cut.waiting]
    assert all(np.array_equal(a.pcm, b.pcm) for a, b in zip(whole.waiting, cut.waiting, strict=True))


def test_a_lost_packet_is_silence_and_a_reported_gap() -> None:
    sound = stream()
    for block in (0, 1, 2, 4, 5, 6, 7):
        sound.push(START_NS + block * BLOCK_NS, np.full(BLOCK, 100, np.int16))
    lost = (START_NS + 3 * BLOCK_NS, START_NS + 4 * BLOCK_NS)
    assert list(sound.gaps) == [lost]
    joined = np.concatenate([frame.pcm for frame in sound.waiting])
    assert np.array_equal(np.flatnonzero(joined == 0), np.arange(3 * BLOCK, 4 * BLOCK))
    assert not any(frame.after_gap for frame in sound.waiting)


def test_a_long_gap_breaks_the_sound_and_counts_on() -> None:
    sound = stream()
    sound.push(START_NS, ramp(0, 1_600))
    sound.push(START_NS + 1_000_000_000, ramp(0, 1_600))
    frames = list(sound.waiting)
    assert [frame.after_gap for frame in frames] == [False, False, False, True, False, False]
    assert frames[3].index == 16_000
    assert frames[3].start_ns == START_NS + 1_000_000_000
    assert not sound.gaps


def test_jitter_is_no_gap_and_drift_is_followed() -> None:
    sound = stream()
    rng = np.random.default_rng(1)
    for block in range(3_000):
        # A sound card 100 ppm slow against the stamping clock, with 1 ms of jitter.
        stamp = START_NS + int(block * BLOCK_NS * 1.0001) + int(rng.integers(-500_000, 500_000))
        sound.push(stamp, np.zeros(BLOCK, np.int16))
    frames = list(sound.waiting)
    assert len(frames) == 3_000 * BLOCK // FRAME_SAMPLES
    true_ns = START_NS + int(frames[-1].index * 62_500 * 1.0001)
    assert abs(frames[-1].start_ns - true_ns) < 500_000


def test_end_fills_the_last_frame() -> None:
    sound = stream()
    sound.push(START_NS, np.full(BLOCK, 5, np.int16))
    assert not sound.waiting
    sound.end()
    sound.end()
    assert len(sound.waiting) == 1
    assert list(sound.waiting[0].pcm[[0, BLOCK - 1, BLOCK]]) == [5, 5, 0]


@pytest.mark.parametrize("rate_hz", [16_000, 44_100, 48_000])
def test_state_is_taken_up_exactly(rate_hz: int) -> None:
    samples = np.random.default_rng(2).integers(-9_000, 9_000, 3 * rate_hz).astype(np.int16)
    straight, restored = stream(rate_hz), stream(rate_hz)
    block = rate_hz // 50
    for number in range(100):
        stamp = START_NS + number * BLOCK_NS + (40_000_000 if number > 40 else 0)
        for sound in (straight, restored):
            sound.push(stamp, samples[number * block : (number + 1) * block])
        if number % 7 == 0:
            restored = SoundStream.load(restored.dump())
    assert straight.dump() == restored.dump()


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_resampling_keeps_tone_and_place(rate_hz: int) -> None:
    time_s = np.arange(rate_hz) / rate_hz
    tone = (8_000 * np.sin(2 * np.pi * 1_000 * time_s)).astype(np.int16)
    found = Resampler(rate_hz).push(tone)
    expected = 8_000 * np.sin(2 * np.pi * 1_000 * np.arange(len(found)) / 16_000)
    assert len(found) > 15_950
    assert np.abs((found - expected)[200:-200]).max() < 4


def test_resampling_keeps_out_what_16_khz_cannot_hold() -> None:
    time_s = np.arange(48_000) / 48_000
    tone = (8_000 * np.sin(2 * np.pi * 10_000 * time_s)).astype(np.int16)
    assert np.abs(Resampler(48_000).push(tone)[200:-200]).max() <= 1


@pytest.mark.parametrize("rate_hz", [0, 3_000, 15_999, 1_000_000])
def test_impossible_rates_are_refused(rate_hz: int) -> None:
    with pytest.raises(UnsupportedRate):
        Resampler(rate_hz)


def test_piece_ids_name_stream_and_sample() -> None:
    assert StreamName("mic", 0, 7).piece_id(1_536) == "mic/7/1536"
    assert StreamName("mic", 2, 7).piece_id(0) == "mic#2/7/0"
