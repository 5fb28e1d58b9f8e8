"""Calibrating where devices join late, miss a part of the signal, start again, or stamp by another clock."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from contracts.leap_seconds import TAI_UTC_NS
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, MarkRecord
from flows.calibrate import Measured, measure
from flows.calibrate_media import Taken
from flows.calibrate_moments import Found, Heard, Moment, Seen, chirps
from flows.calibrate_plot import panels_of_log
from tests.flows.test_calibrate import MS, RATE, START, S, camera, microphone

LATE_S = 20.0
"""The first train of the signal is over."""


def from_on(sound: Heard, seconds: float, until: float = 60.0) -> Heard:
    """A device that joins late, or leaves early."""
    first, last = round(seconds * RATE), round(until * RATE)
    return replace(sound, first_ns=sound.first_ns + round(seconds * S), samples=sound.samples[first:last])


def pictures_from_on(seen: Seen, seconds: float) -> Seen:
    late = seen.at_ns - seen.at_ns[0] > seconds * S
    return Seen(seen.device, seen.at_ns[late], seen.mean[late], seen.dark[late])


def found_by(measured: tuple[Measured, ...]) -> dict[str, Measured]:
    return {one.device: one for one in measured}


def test_who_joins_after_the_first_train_is_not_late_by_what_lies_between_the_two() -> None:
    heard = [microphone("a", 0, 3.0), from_on(microphone("b", 40 * MS, 5.0), LATE_S)]
    outcome = measure(heard, [pictures_from_on(camera("wall", 3_200 * MS, 25.0, 0.02), LATE_S)])
    found = found_by(outcome.measured)
    for device, true_ns in (("b", 40 * MS), ("wall", 3_200 * MS)):
        assert abs(found[device].offset_ns - true_ns) <= found[device].uncertainty_ns < 15 * MS
        assert found[device].skew_ppb == 0.0


def test_by_one_train_each_nobody_is_called_late_by_what_may_be_the_other_train() -> None:
    heard = [from_on(microphone("a", 0, 3.0), 0.0, 30.0), from_on(microphone("b", 0, 5.0), LATE_S)]
    outcome = measure(heard, [])
    assert [one.device for one in outcome.measured] == ["a"]
    assert "let all devices take in the whole signal" in outcome.missing["b"]
    # With both trains there is no doubt, and where arrival tells the clock's error neither.
    whole = [microphone("a", 0, 3.0), microphone("b", 37 * S, 5.0)]
    assert abs(found_by(measure(whole, []).measured)["b"].offset_ns - 37 * S) < 8 * MS
    late = [microphone("a", 0, 3.0), from_on(microphone("b", -37 * S, 5.0), LATE_S)]
    known = found_by(measure(late, [], arrival_error_ns={"a": 0, "b": -37 * S + 80 * MS}).measured)
    assert abs(known["b"].offset_ns + 37 * S) < 8 * MS


@pytest.mark.parametrize(("leaves_ms", "found"), [(8.0, False), (40.0, True)])
def test_lights_that_leave_an_interval_make_no_skew(
    monkeypatch: pytest.MonkeyPatch, leaves_ms: float, found: bool
) -> None:
    """Two trains of pictures, each known to 4 ms: the clock runs fast only where both ends together say so."""
    ends = (START, START + 44 * S)

    def finder(heard: object, seen: object) -> dict[str, Found]:
        right = Found("sound", [Moment(at, 300_000) for at in ends])
        return {
            "mic": right,
            "cam": Found(
                "picture", [Moment(ends[0], 4 * MS), Moment(ends[1] + round(leaves_ms * MS), 4 * MS)]
            ),
        }

    monkeypatch.setattr("flows.calibrate.FINDERS", (("pulses", finder),))
    silence = Heard("mic", START, RATE, np.zeros(RATE, np.float32))
    pictures = Seen("cam", np.asarray([START]), np.zeros(1), np.zeros(1))
    measured = found_by(measure([silence], [pictures], reference="mic").measured)
    assert (measured["cam"].skew_ppb != 0.0) is found


# What is sent


def sent(
    sound: Heard, stamp: Callable[[int], int] = lambda at_ns: at_ns, *, epoch: int = 1, kind: ClockKind = ClockKind.PTP,
    lost: range = range(0),
) -> list[Packet]:  # fmt: skip
    """A microphone's blocks of 20 ms, stamped as ``stamp`` makes of the time by the count of samples."""
    size, out = RATE // 50, []
    for number in range(len(sound.samples) // size):
        part = np.rint(sound.samples[number * size : (number + 1) * size] * 32_000).astype("<i2").tobytes()
        at_ns = stamp(sound.first_ns + number * 20 * MS)
        packet = Packet("m", sound.device, Modality.AUDIO, Codec.PCM_S16LE, kind, epoch, number, at_ns, 20 * MS, part,
                        rate_hz=RATE, channels=1)  # fmt: skip
        if number not in lost:
            out.append(packet)
    return out


def taken(*streams: list[Packet]) -> Taken:
    found = Taken()
    for packets in streams:
        for packet in packets:
            found.packet(packet)
    return found


def test_what_counts_are_the_stamps_not_the_samples() -> None:
    """A sound card's quartz is right; the clock that stamps runs 100 ppm fast, jitters, and blocks are lost."""
    random = np.random.default_rng(7)

    def fast(at_ns: int) -> int:
        return at_ns + round((at_ns - START) * 100e-6 + random.normal(0.0, 0.3 * MS))

    streams = taken(
        sent(microphone("a", 0, 4.0)), sent(microphone("b", 0, 4.0), fast, lost=range(1_500, 1_520))
    )
    found = found_by(measure(streams.heard(), [], reference="a").measured)
    assert abs(found["b"].skew_ppb - 100_000.0) < 12_000.0
    assert abs(found["b"].offset_ns - (found["b"].at_ns - START) * 100e-6) < 0.5 * MS


def test_a_publisher_that_starts_again_counts_from_then_on() -> None:
    """Sequence numbers come again: what it sent before must not stand between the new blocks."""
    before = sent(from_on(microphone("b", 900 * MS, 4.0), 0.0, 50.0))
    after = sent(replace(microphone("b", 0, 4.0), first_ns=START), epoch=2)
    streams = taken(sent(microphone("a", 0, 4.0)), before, after, before[-3:])
    (_, b) = streams.heard()
    assert (b.first_ns, len(b.samples)) == (START, 60 * RATE)
    assert len(chirps(b)) == 24
    assert abs(found_by(measure(streams.heard(), [], reference="a").measured)["b"].offset_ns) < 0.5 * MS


def test_stamps_in_utc_are_measured_without_the_leap_seconds() -> None:
    """The flow takes them off by the kind of the clock; a stored measurement comes on top."""
    utc = sent(microphone("b", 30 * MS, 4.0), lambda at_ns: at_ns - TAI_UTC_NS, kind=ClockKind.UTC)
    streams = taken(sent(microphone("a", 0, 4.0)), utc)
    found = found_by(measure(streams.heard(), [], reference="a").measured)
    assert abs(found["b"].offset_ns - 30 * MS) < 0.5 * MS


def test_a_clock_without_a_date_is_named_and_not_measured() -> None:
    undated = sent(microphone("b", 0, 4.0), lambda at_ns: at_ns - START, kind=ClockKind.MONOTONIC)
    streams = taken(sent(microphone("a", 0, 4.0)), sent(microphone("c", 0, 4.0)), undated)
    outcome = measure(streams.heard(), [], unmeasurable=streams.unmeasurable())
    assert "switched on" in outcome.missing["b"]
    assert [one.device for one in outcome.measured] == ["a", "c"]


# The picture


def test_in_the_picture_a_clock_that_was_set_back_has_two_times_for_one_stamp() -> None:
    def record(number: int, from_raw_ns: int, offset_ns: int) -> bytes:
        return ClockRecord(
            meeting_id="m", device="mic", number=number, from_raw_ns=from_raw_ns, ref_ns=0, offset_ns=offset_ns,
            uncertainty_ns=MS, method="arrival" if number else "stamped",
        ).to_bytes()  # fmt: skip

    def mark(at_s: float) -> bytes:
        return MarkRecord(meeting_id="m", stream="mic/audio", raw_ns=START + round(at_s * S)).to_bytes()

    back = record(1, START + round(0.5 * S), -2 * S)
    (panel,) = panels_of_log([record(0, -(2**63), 0), mark(0), mark(1), mark(2), back, mark(0.5), mark(1.5)])
    assert [p.at_s for p in panel.points if p.at_s < 2.4] == [0.0, 1.0, 2.0]
    assert all(p.stamped_ms == 0.0 for p in panel.points if p.at_s < 2.4)
    assert (panel.points[-1].at_s, panel.points[-1].stamped_ms, panel.points[-1].placed_ms) == (
        3.5,
        -2000.0,
        0.0,
    )
