"""Sound on the timeline: skew taken out without clicks, linear between samples, gaps as gaps."""

import numpy as np
import numpy.typing as npt
import pytest

from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord
from operators.align.alignment import Alignment, AlignmentSettings
from operators.align.resample import SkewRemover
from operators.align.sound import SoundSettings, SoundTrack

S = 1_000_000_000
ZERO = 1_780_000_000 * S
RATE = 16_000
TONE_HZ = 440.0

Samples = npt.NDArray[np.float32]


def tone(first: int, count: int, skew: float) -> Samples:
    """Samples of a tone as a device hears it whose samples come faster than they should by ``skew``."""
    seconds = np.arange(first, first + count) / (RATE * (1 + skew))
    return (0.5 * np.sin(2 * np.pi * TONE_HZ * seconds)).astype(np.float32)


def true_tone(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 0.5 * np.sin(2 * np.pi * TONE_HZ * seconds)


def record(number: int, skew: float, *, offset_ns: int = 0, step: bool = False) -> ClockRecord:
    return ClockRecord(
        meeting_id="m", device="mic", number=number, from_raw_ns=-(2**63), ref_ns=ZERO, offset_ns=offset_ns,
        skew_ppb=skew * 1e9, uncertainty_ns=300_000, method="arrival" if step else "online",
    )  # fmt: skip


def coded(samples: Samples) -> npt.NDArray[np.int16]:
    return np.clip(np.rint(samples * 32_768), -32_768, 32_767).astype("<i2")


def block(raw_ns: int, samples: Samples) -> Packet:
    payload = coded(samples).tobytes()
    return Packet(
        "m",
        "mic",
        Modality.AUDIO,
        Codec.PCM_S16LE,
        ClockKind.PTP,
        1,
        0,
        raw_ns,
        S // 50,
        payload,
        RATE,
        0,
        0,
        1,
    )


@pytest.mark.parametrize("size", [160, 320, 1_000, 16_000])
def test_a_tone_comes_out_without_clicks_over_chunk_borders(size: int) -> None:
    """The skew changes twice on the way; every sample is held against the tone at the place it stands for."""
    remover, pushed, out = SkewRemover(RATE), 0, []
    sound = tone(0, 6 * RATE, 100e-6)
    while pushed < len(sound):
        skew = 100e-6 if pushed < 2 * RATE else (-60e-6 if pushed < 4 * RATE else 80e-6)
        out.append(remover.push(sound[pushed : pushed + size], skew))
        pushed += size
    out.append(remover.finish())
    said = np.concatenate([c.samples for c in out])
    place = np.concatenate([c.first + np.arange(len(c.samples)) * c.step for c in out])
    wanted = true_tone(place / (RATE * (1 + 100e-6)))
    # What the two converters say of the 10 ms in which one takes over is up to half a sample apart.
    assert len(said) == pytest.approx(6 * RATE, abs=12)
    said, wanted = said[200:-200], wanted[200:-200]  # where the tone sets in and stops it rings
    off = np.abs(said - wanted)
    assert np.max(off) < 0.05 and np.quantile(off, 0.98) < 1e-5
    # A click is a jump between neighbours: the steepest a tone of this height and frequency can be is 0.087.
    steepest = 0.5 * 2 * np.pi * TONE_HZ / RATE
    assert np.max(np.abs(np.diff(said))) < 1.03 * steepest
    assert np.max(np.abs(np.diff(said, 2))) < 1.15 * steepest * 2 * np.pi * TONE_HZ / RATE


def test_how_the_stream_is_cut_changes_nothing() -> None:
    sound = np.random.default_rng(1).normal(0, 0.1, 2 * RATE).astype(np.float32)
    one = SkewRemover(RATE).push(sound, 50e-6).samples
    cut, many = SkewRemover(RATE), []
    for start in range(0, len(sound), 320):
        many.append(cut.push(sound[start : start + 320], 50e-6).samples)
    np.testing.assert_array_equal(np.concatenate(many), one)


@pytest.mark.parametrize("stamped_by", ["samples", "true time"])
@pytest.mark.parametrize("skew", [100e-6, -100e-6])
def test_skew_is_taken_out_of_what_alignment_returns(skew: float, stamped_by: str) -> None:
    """40 s at 100 ppm are 4 ms: seen by the clock record, or by stamps that leave the count of samples."""
    alignment = Alignment(AlignmentSettings())
    known = record(0, skew if stamped_by == "samples" else 0.0)
    alignment.clock(known)
    for n in range(0, 40 * RATE, 320):
        nominal = n * S // RATE
        alignment.sound(
            block(
                ZERO + (nominal if stamped_by == "samples" else round(nominal / (1 + skew))),
                tone(n, 320, skew),
            )
        )
    times = np.asarray([ZERO + n * S // RATE for n in range(30 * RATE, 38 * RATE)], np.int64)
    found = alignment.at(times).sound["mic/audio"]
    assert found.known.all()
    wanted = true_tone((times - ZERO) / 1e9)
    # 0.01 is 14 microseconds of this tone, with linear interpolation between samples in it.
    assert np.max(np.abs(found.values - wanted)) < 0.01
    assert found.error_ns[0] == 300_000 and found.sampling_ns[0] == S // RATE


def test_sound_is_linear_between_samples() -> None:
    track = SoundTrack(SoundSettings(block_ns=S // 10), RATE)
    ramp = np.linspace(0, 1, 2 * RATE, dtype=np.float32)
    for n in range(0, len(ramp), 320):
        track.push(ZERO + n * S // RATE, coded(ramp[n : n + 320]), None)
    times = ZERO + np.asarray([S, S + 15_625, S + 31_250, S + 62_500])
    values, known, _ = track.at(times, ())
    assert known.all()
    np.testing.assert_allclose(values, (times - ZERO) / S / 2, atol=5e-5)
    assert values[1] - values[0] == pytest.approx(ramp[1] / 4, rel=0.05)


def test_a_lost_block_is_a_gap_and_sound_after_it_is_in_its_place() -> None:
    alignment = Alignment(AlignmentSettings())
    for n in range(0, 4 * RATE, 320):
        if not RATE <= n < RATE + 320:
            alignment.sound(block(ZERO + n * S // RATE, tone(n, 320, 0.0)))
    times = np.asarray(
        [ZERO + round(s * S) for s in (-0.01, 0.5, 1.001, 1.01, 1.019, 1.5, 3.0, 9.0)], np.int64
    )
    found = alignment.at(times).sound["mic/audio"]
    assert found.known.tolist() == [False, True, False, False, False, True, True, False]
    assert not found.values[~found.known].any()
    np.testing.assert_allclose(found.values[[1, 5, 6]], true_tone(np.asarray([0.5, 1.5, 3.0])), atol=0.01)


def test_jitter_of_stamps_does_not_reach_the_sound() -> None:
    random = np.random.default_rng(3)
    alignment = Alignment(AlignmentSettings())
    for n in range(0, 20 * RATE, 320):
        raw_ns = ZERO + n * S // RATE + round(random.uniform(-1e6, 1e6))
        alignment.sound(block(raw_ns, tone(n, 320, 0.0)))
    times = np.arange(ZERO + 12 * S, ZERO + 18 * S, S // RATE)
    found = alignment.at(times).sound["mic/audio"]
    assert found.known.all()
    steepest = 0.5 * 2 * np.pi * TONE_HZ / RATE
    assert np.max(np.abs(np.diff(found.values))) < 1.03 * steepest
    # A millisecond of jitter, averaged over what is measured.
    assert np.max(np.abs(found.values - true_tone((times - ZERO) / 1e9))) < 0.5 * 2 * np.pi * TONE_HZ * 0.4e-3


def test_a_clock_record_moves_the_sound_that_is_kept() -> None:
    alignment = Alignment(AlignmentSettings())
    alignment.clock(record(0, 0.0))
    click = np.zeros(4 * RATE, np.float32)
    click[2 * RATE] = 0.9
    for n in range(0, len(click), 320):
        alignment.sound(block(ZERO + n * S // RATE, click[n : n + 320]))
    alignment.clock(record(1, 0.0, offset_ns=S // 4))
    times = np.asarray([ZERO + 2 * S, ZERO + 2 * S - S // 4], np.int64)
    values = alignment.at(times).sound["mic/audio"].values
    assert abs(values[0]) < 0.01 and values[1] > 0.8


def test_sound_is_let_go_after_its_time() -> None:
    track = SoundTrack(SoundSettings(keep_ns=2 * S), RATE)
    for n in range(0, 20 * RATE, 320):
        track.push(ZERO + n * S // RATE, coded(tone(n, 320, 0.0)), None)
    assert sum(len(k.samples) for k in track._kept) <= 2 * RATE
    assert track.at(np.asarray([ZERO + 10 * S, ZERO + 19 * S]), ())[1].tolist() == [False, True]
