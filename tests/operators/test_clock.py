"""The clock step as lists of arrivals: by which clock record each device is placed, and what is said of it."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import pytest

from contracts.messages import (
    ALL_MEETINGS,
    AnyControl,
    Calibration,
    ClockState,
    EndOfStream,
    MeetingStarted,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.broker.sink import Outgoing
from operators.clock import Clock, ClockOutput, ClockSettings, Timed
from operators.ingest import Arrival
from operators.store import Stores
from operators.timeline import to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
TAI = 1_780_000_037 * S
"""A moment on the timeline; the broker's clock, in UTC, shows 37 s less."""
LAG = 40 * MS
"""From capture to the broker."""


def sound(
    at_ns: int, *, sequence: int = 0, kind: ClockKind = ClockKind.PTP, device: str = "mic", modality: Modality = Modality.AUDIO,
    codec: Codec = Codec.PCM_S16LE, epoch: int = 1,
) -> Packet:  # fmt: skip
    return Packet(
        "m", device, modality, codec, kind, epoch, sequence, at_ns, 20 * MS, bytes(640), 16_000, 0, 0, 1
    )


def words(at_ns: int, sequence: int = 0) -> TranscriptMessage:
    return TranscriptMessage(
        meeting_id="m", device_id="asr", stream_epoch=1, sequence=sequence, timestamp_ns=at_ns, duration_ns=S, text="Yes.",
    )  # fmt: skip


def arrival(
    body: Packet | TranscriptMessage | EndOfStream | AnyControl,
    at_ns: int = TAI + LAG,
    *,
    appended: bool = True,
) -> Arrival:
    """``at_ns``: when it reached the broker, on the timeline."""
    return Arrival(body.meeting_id, body, at_ns - 37 * S, appended, "test/0/0")


class Told:
    """What came out of the step, by kind."""

    def __init__(self, out: Sequence[object]) -> None:
        self.records = [o for o in out if isinstance(o, ClockRecord)]
        self.notices = [o.code for o in out if isinstance(o, NoticeRecord)]
        by_number = {(r.device, r.number): r for r in self.records}
        self.placed = [
            to_timeline_ns(by_number[o.arrival.body.device_id, o.clock], o.arrival.body.timestamp_ns)
            for o in out
            if isinstance(o, Timed) and isinstance(o.arrival.body, Packet | TranscriptMessage | EndOfStream)
        ]

    @property
    def methods(self) -> list[str]:
        return [r.method for r in self.records]


def told(arrivals: Sequence[Arrival], step: Clock | None = None) -> Told:
    step = step or Clock(ClockSettings())
    out: list[ClockOutput | Outgoing | object] = []
    for value in arrivals:
        out += step.on_batch([value])
    return Told(out)


STARTED = arrival(MeetingStarted(meeting_id="m", start_ns=TAI))


# Kinds of clocks


def test_ptp_stamps_are_the_timeline() -> None:
    found = told([STARTED, arrival(sound(TAI))])
    assert found.placed == [TAI]
    assert (found.methods, found.records[0].uncertainty_ns) == (["stamped"], MS)


def test_utc_stamps_are_behind_by_the_leap_seconds() -> None:
    found = told([STARTED, arrival(sound(TAI - 37 * S, kind=ClockKind.UTC))])
    assert found.placed == [TAI]
    assert found.records[0].uncertainty_ns == 20 * MS


def test_the_meeting_says_how_many_leap_seconds_there_are() -> None:
    started = arrival(MeetingStarted(meeting_id="m", start_ns=TAI, tai_utc_offset_s=38))
    utc = arrival(sound(TAI - 38 * S, kind=ClockKind.UTC))
    assert told([started, utc]).placed == [TAI]
    late = told([utc, started, arrival(sound(TAI - 38 * S + 20 * MS, sequence=1, kind=ClockKind.UTC))])
    assert [r.number for r in late.records] == [0, 1]
    assert late.placed[1] == TAI + 20 * MS


def test_an_anchor_places_a_monotonic_clock() -> None:
    anchor = ClockState(
        meeting_id="m", device="mic", state="locked", anchor_raw_ns=5 * S, anchor_timeline_ns=TAI - S,
    )  # fmt: skip
    found = told([STARTED, arrival(anchor), arrival(sound(6 * S, kind=ClockKind.MONOTONIC))])
    assert (found.placed, found.methods, found.notices) == ([TAI], ["anchor"], [])


def test_a_monotonic_clock_without_an_anchor_is_placed_by_arrival_and_that_is_said() -> None:
    found = told([STARTED, arrival(sound(6 * S, kind=ClockKind.MONOTONIC))])
    assert found.placed == [TAI + LAG]
    assert (found.methods, found.notices) == (["arrival"], ["clock_by_arrival"])
    assert found.records[0].uncertainty_ns >= LAG


def test_an_anchor_that_comes_later_replaces_the_arrival() -> None:
    anchor = ClockState(
        meeting_id="m", device="mic", state="locked", anchor_raw_ns=6 * S, anchor_timeline_ns=TAI,
        estimated_error_ns=2 * MS,
    )  # fmt: skip
    monotonic = [sound(6 * S + n * 20 * MS, sequence=n, kind=ClockKind.MONOTONIC) for n in range(2)]
    found = told([STARTED, arrival(monotonic[0]), arrival(anchor), arrival(monotonic[1])])
    assert (found.methods, found.placed[1]) == (["arrival", "anchor"], TAI + 20 * MS)
    assert found.records[1].uncertainty_ns == 2 * MS
    assert found.records[1].from_raw_ns == found.records[0].from_raw_ns  # re-times from the beginning


def test_what_the_device_says_of_its_error_widens_the_bound() -> None:
    state = ClockState(meeting_id="m", device="mic", state="holdover", estimated_error_ns=7 * MS)
    before = told([STARTED, arrival(state), arrival(sound(TAI))])
    assert before.records[0].uncertainty_ns == 7 * MS
    after = told([STARTED, arrival(sound(TAI)), arrival(state)])
    assert [r.uncertainty_ns for r in after.records] == [MS, 7 * MS]


def test_the_same_state_again_writes_nothing() -> None:
    state = arrival(ClockState(meeting_id="m", device="mic", state="locked", estimated_error_ns=7 * MS))
    assert len(told([STARTED, state, arrival(sound(TAI)), state, state]).records) == 1


# Calibration


def calibration(offset_ns: int, meeting: str = "m", **more: int | float) -> Arrival:
    values = {
        "meeting_id": meeting,
        "device": "mic",
        "offset_ns": offset_ns,
        "uncertainty_ns": 300_000,
        **more,
    }
    return arrival(Calibration.model_validate(values))


@pytest.mark.parametrize(
    ("kind", "raw"), [(ClockKind.PTP, TAI + 3200 * MS), (ClockKind.UTC, TAI - 37 * S + 3200 * MS)]
)
def test_a_stored_calibration_before_and_in_mid_meeting(kind: ClockKind, raw: int) -> None:
    first, second = sound(raw, kind=kind), sound(raw + 20 * MS, sequence=1, kind=kind)
    before = told([STARTED, calibration(3200 * MS), arrival(first)])
    assert (before.placed, before.methods) == ([TAI], ["stored"])
    assert before.records[0].uncertainty_ns == 300_000
    middle = told([STARTED, arrival(first), calibration(3200 * MS), arrival(second)])
    assert (middle.placed[1], [r.number for r in middle.records]) == (TAI + 20 * MS, [0, 1])


def test_a_calibration_in_mid_meeting_of_a_monotonic_clock_keeps_its_zero() -> None:
    anchor = ClockState(
        meeting_id="m", device="mic", state="locked", anchor_raw_ns=5 * S, anchor_timeline_ns=TAI - S,
    )  # fmt: skip
    packets = [sound(6 * S + n * 20 * MS, sequence=n, kind=ClockKind.MONOTONIC) for n in range(2)]
    found = told([STARTED, arrival(anchor), arrival(packets[0]), calibration(5 * MS), arrival(packets[1])])
    assert found.placed == [TAI, TAI + 15 * MS]


def test_skew_counts_from_the_reference() -> None:
    ref = TAI - 1000 * S
    found = told([STARTED, calibration(0, skew_ppb=10_000.0, ref_ns=ref), arrival(sound(TAI))])
    assert found.placed == [TAI - 10 * MS]


def test_calibrations_for_all_meetings() -> None:
    everywhere = calibration(5 * MS, ALL_MEETINGS)
    assert told([everywhere, STARTED, arrival(sound(TAI))]).placed == [TAI - 5 * MS]
    under_way = told([STARTED, arrival(sound(TAI)), everywhere, arrival(sound(TAI + 20 * MS, sequence=1))])
    assert under_way.placed == [TAI, TAI + 15 * MS]


@pytest.mark.parametrize("order", [0, 1])
def test_what_is_said_in_the_meeting_stands_against_what_is_said_for_all(order: int) -> None:
    both = [calibration(5 * MS, ALL_MEETINGS), calibration(7 * MS)]
    found = told([STARTED, *(both[::-1] if order else both), arrival(sound(TAI))])
    assert found.placed == [TAI - 7 * MS]


@pytest.mark.parametrize(
    ("days", "grown_ns", "notice"),
    [(0, 0, []), (30, 3 * MS, []), (400, 40 * MS, ["clock_calibration"]), (-5, 0, ["clock_calibration"])],
)
def test_a_calibration_grows_unsure_with_its_age(days: int, grown_ns: int, notice: list[str]) -> None:
    held = datetime.datetime.fromtimestamp(TAI // S, datetime.UTC).date()
    stored = arrival(
        Calibration(
            meeting_id="m", device="mic", offset_ns=MS, uncertainty_ns=300_000, measured=held - datetime.timedelta(days),
        )
    )  # fmt: skip
    before = told([STARTED, stored, arrival(sound(TAI))])
    assert (before.records[0].uncertainty_ns, before.notices) == (300_000 + grown_ns, notice)
    middle = told([STARTED, arrival(sound(TAI)), stored])
    assert (middle.records[1].uncertainty_ns, middle.notices) == (300_000 + grown_ns, notice)


def test_a_counter_of_32_bits_begins_anew_without_a_step() -> None:
    turn = 2**32 * S // 90_000
    stamps = [t - (turn - 3 * MS if n >= 5 else 0) for n, t in enumerate(truth(10))]
    blocks = stream(stamps)
    found = told([STARTED, *blocks[:9], calibration(5 * MS), blocks[9]])
    expected = [t + (3 * MS if n >= 5 else 0) for n, t in enumerate(truth(9))]
    assert (found.placed, found.notices) == ([*expected, truth(10)[9] - 2 * MS], [])
    assert found.records[1].uncertainty_ns == found.records[0].uncertainty_ns


def test_calibrations_of_other_devices_change_nothing() -> None:
    other = arrival(Calibration(meeting_id="m", device="camera", offset_ns=S))
    assert told([STARTED, arrival(sound(TAI)), other, arrival(sound(TAI + 20 * MS, sequence=1))]).methods == [
        "stamped"
    ]


# Steps


def stream(stamps: Sequence[int], lag_ns: int = LAG, kind: ClockKind = ClockKind.PTP) -> list[Arrival]:
    """Blocks 20 ms apart in truth, stamped as given."""
    return [
        arrival(sound(stamp, sequence=n, kind=kind), TAI + n * 20 * MS + lag_ns)
        for n, stamp in enumerate(stamps)
    ]


def truth(count: int) -> list[int]:
    return [TAI + n * 20 * MS for n in range(count)]


@pytest.mark.parametrize("jump_ns", [60 * S, -60 * S, 10 * 365 * 86_400 * S, -TAI + 5 * S])
def test_a_clock_that_jumps_is_placed_as_if_it_had_not(jump_ns: int) -> None:
    stamps = [t + (jump_ns if n >= 5 else 0) for n, t in enumerate(truth(10))]
    found = told([STARTED, *stream(stamps)])
    assert found.placed == truth(10)
    assert found.notices == ["clock_step"]
    assert found.records[1].uncertainty_ns >= 250 * MS
    assert found.records[1].from_raw_ns == stamps[5]


def test_one_absurd_stamp_is_placed_where_it_belongs_and_the_stream_goes_on() -> None:
    stamps = truth(10)
    stamps[5] = 2**62
    found = told([STARTED, *stream(stamps)])
    assert found.placed == truth(10)
    assert len(found.records) == 3


def test_a_clock_that_keeps_jumping_is_not_told_a_thousand_times() -> None:
    stamps = [t + (60 * S if n % 2 else 0) for n, t in enumerate(truth(400))]
    step = Clock(ClockSettings())
    notices = {
        o.text for a in [STARTED, *stream(stamps)] for o in step.on_batch([a]) if isinstance(o, NoticeRecord)
    }
    assert len(notices) <= ClockSettings().told_steps + 1
    assert any("keeps jumping" in text for text in notices)


def test_lost_packets_are_no_step() -> None:
    first, later = sound(TAI), sound(TAI + 60 * S, sequence=3000)
    found = told([STARTED, arrival(first), arrival(later, TAI + S)])
    assert (found.placed, found.notices) == ([TAI, TAI + 60 * S], [])


def test_a_microphone_that_was_muted_is_no_step() -> None:
    found = told([STARTED, arrival(sound(TAI)), arrival(sound(TAI + 60 * S, sequence=1), TAI + 60 * S + LAG)])
    assert (found.placed, found.notices) == ([TAI, TAI + 60 * S], [])


def test_a_restarted_publisher_is_no_step() -> None:
    found = told([STARTED, arrival(sound(TAI)), arrival(sound(TAI + 60 * S, epoch=2), TAI + S)])
    assert found.notices == []


def test_both_streams_of_a_device_step_together() -> None:
    def pair(n: int, jump_ns: int) -> list[Arrival]:
        at = TAI + n * 20 * MS
        bodies = (
            sound(at + jump_ns, sequence=n),
            sound(at + jump_ns, sequence=n, modality=Modality.VIDEO, codec=Codec.H264),
        )
        return [arrival(body, at + LAG) for body in bodies]

    found = told([STARTED, *pair(0, 0), *pair(1, 0), *pair(2, 60 * S), *pair(3, 60 * S)])
    assert found.notices == ["clock_step"]
    assert found.placed == [TAI + n // 2 * 20 * MS for n in range(8)]


def test_a_calibration_after_a_step_holds_on_top_of_it() -> None:
    stamps = [t + (60 * S if n >= 1 else 0) for n, t in enumerate(truth(3))]
    blocks = stream(stamps)
    found = told([STARTED, *blocks[:2], calibration(5 * MS), blocks[2]])
    assert found.placed[:2] == truth(2)
    assert found.placed[2] == truth(3)[2] - 5 * MS
    assert found.records[2].from_raw_ns == stamps[1]  # what came before the step is not its business


def test_transcripts_may_pause_for_long() -> None:
    quiet = [arrival(words(TAI), TAI + S), arrival(words(TAI + 50 * 60 * S, 1), TAI + 2 * S)]
    live = [arrival(words(TAI), TAI + S), arrival(words(TAI + 3 * 3600 * S, 1), TAI + 3 * 3600 * S + S)]
    assert told([STARTED, *quiet]).notices == told([STARTED, *live]).notices == []


@pytest.mark.parametrize("absurd", [TAI + 10 * 365 * 86_400 * S, 0, -(2**62), 2**62])
def test_a_transcript_line_from_another_century_stays_in_the_meeting(absurd: int) -> None:
    lines = [words(TAI), words(absurd, 1), words(TAI + 20 * S, 2)]
    found = told([STARTED, *(arrival(line, TAI + n * 10 * S + S) for n, line in enumerate(lines))])
    assert all(TAI <= placed <= TAI + 31 * S for placed in found.placed)
    assert set(found.notices) == {"clock_step"}


# First stamps that cannot be true


@pytest.mark.parametrize("absurd", [TAI + 10 * 365 * 86_400 * S, 5 * S, -(2**62), 2**62])
@pytest.mark.parametrize("control", [True, False])
def test_a_first_stamp_that_cannot_be_true_is_placed_by_arrival(absurd: int, control: bool) -> None:
    found = told(
        [*([STARTED] if control else []), arrival(sound(absurd)), arrival(sound(TAI, device="mic-2"))]
    )
    assert found.placed == [TAI + LAG, TAI]
    assert found.notices == ["clock_by_arrival"]


def test_a_recording_of_an_old_meeting_keeps_its_stamps() -> None:
    """Published today with the stamps of then: the meeting's start says when it was."""
    old = TAI - 1000 * 86_400 * S
    started = arrival(MeetingStarted(meeting_id="m", start_ns=old))
    assert told([started, arrival(sound(old + S))]).placed == [old + S]
    assert told([arrival(sound(old), appended=False)]).placed == [old]


def test_stamps_of_files_are_taken_as_they_are() -> None:
    def of_file(body: Packet) -> Arrival:
        return Arrival("m", body, 0, False, "file")

    found = told([of_file(sound(0)), of_file(sound(5 * S, sequence=1)), of_file(sound(99 * S, sequence=2))])
    assert (found.placed, found.notices) == ([0, 5 * S, 99 * S], [])


# State


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_snapshot_anywhere_goes_on_the_same(tmp_path: Path, cut: int) -> None:
    jumped = stream([t + (60 * S if n >= 2 else 0) for n, t in enumerate(truth(4))])
    inputs = [calibration(MS, ALL_MEETINGS), STARTED, *jumped[:3], calibration(2 * MS), jumped[3],
              arrival(sound(9, device="mic-2", kind=ClockKind.MONOTONIC))]  # fmt: skip
    uncut = told(inputs)
    stores = Stores(tmp_path, "perceive", ("clock",))
    store = stores.step(0, "clock")
    store.roll_back(None)
    first, second = Clock(ClockSettings()), Clock(ClockSettings())
    first.open(store)
    store.begin(proved=True)
    out = [o for a in inputs[:cut] for o in first.on_batch([a])]
    first.save(store)
    store.roll_back(store.marker())
    second.open(store)
    out += [o for a in inputs[cut:] for o in second.on_batch([a])]
    assert (Told(out).placed, Told(out).records) == (uncut.placed, uncut.records)
    stores.close()


def test_an_anchor_that_no_clock_can_have_costs_nothing_but_itself() -> None:
    clock = Clock(ClockSettings())
    edge = 2**63 - 1
    state = ClockState(
        meeting_id="m", device="tr", state="locked", anchor_raw_ns=-edge, anchor_timeline_ns=edge
    )
    message = TranscriptMessage(
        meeting_id="m", device_id="tr", stream_epoch=0, sequence=0, clock_kind=ClockKind.MONOTONIC,
        timestamp_ns=5, speaker="Ann", text="yes",
    )  # fmt: skip
    out = clock.on_batch([Arrival("m", state, 10**18, True, "minuted.control/0/0")])
    out += clock.on_batch([Arrival("m", message, 10**18, True, "minuted.transcript/0/0")])
    assert [o.arrival.body for o in out if isinstance(o, Timed)] == [state, message]


# What no clock can be


def fitting(out: Sequence[object]) -> None:
    """Every clock record can be written and read."""
    for value in out:
        if isinstance(value, ClockRecord):
            assert ClockRecord.model_validate_json(value.to_bytes()) == value


def test_a_sequence_counter_that_jumps_far_gives_a_clock_that_can_be_written() -> None:
    step = Clock(ClockSettings())
    for sequence, at_ns in ((0, 0), (2**62, 20 * MS), (2**62 + 1, 40 * MS), (2**63, 60 * MS)):
        fitting(step.on_batch([arrival(sound(TAI + at_ns, sequence=sequence), TAI + LAG + at_ns)]))


def test_a_clock_that_jumps_from_end_to_end_is_refused_before_it_runs_out_of_numbers() -> None:
    step, refused = Clock(ClockSettings()), 0
    for sequence in range(12):
        stamp_ns = TAI if sequence % 2 else -(2**62) - 2**61
        out = step.on_batch(
            [arrival(sound(stamp_ns, sequence=sequence), TAI + LAG + sequence * 20 * MS)]
        )  # fmt: skip
        fitting(out)
        refused += sum(isinstance(value, Outgoing) for value in out)
    assert refused
    assert told([arrival(sound(TAI, device="other"))], step).placed == [TAI]


@pytest.mark.parametrize("meeting", ["m", ALL_MEETINGS])
def test_a_calibration_that_no_clock_can_have_is_refused(meeting: str) -> None:
    step = Clock(ClockSettings())
    told([STARTED, arrival(sound(TAI - 37 * S, kind=ClockKind.UTC))], step)
    out = step.on_batch(
        [arrival(Calibration(meeting_id=meeting, device="mic", offset_ns=-(2**63), uncertainty_ns=0))]
    )
    assert [type(value) for value in out] == [Outgoing]
    later = sound(TAI - 37 * S + 20 * MS, sequence=1, kind=ClockKind.UTC)
    assert step.on_batch([arrival(later)]) == [Timed(arrival(later), 0)]
