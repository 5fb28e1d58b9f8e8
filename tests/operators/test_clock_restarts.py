"""Devices that come back with another clock, stand still for long, are set many times, run off, or claim nonsense."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from contracts.messages import (
    AnyControl,
    Calibration,
    ClockState,
    MeetingStarted,
    TranscriptMessage,
    TranscriptWord,
)
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.clock import ClockSettings, MeetingClocks, Timed
from operators.ingest import Arrival
from operators.timeline import clock_in_force, to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S
UTC = 37 * S
BLOCK = 100 * MS

Spoil = Callable[[float, Packet], Packet | None]
"""What becomes of a packet sent so many seconds after the start; None: nothing."""


def block(device: str, number: int) -> Packet:
    return Packet(
        "m", device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, number, START + number * BLOCK, BLOCK, b"\0\0", 16_000,
        0, 0, 1,
    )  # fmt: skip


def as_sent(_: float, packet: Packet) -> Packet:
    return packet


def shifted(by_ns: Callable[[float], int]) -> Spoil:
    return lambda at_s, packet: replace(packet, timestamp_ns=packet.timestamp_ns + by_ns(at_s))


def returning(change: Callable[[Packet], Packet]) -> Spoil:
    """Away from second 20 to 40, then another run of the publisher."""

    def spoil(at_s: float, packet: Packet) -> Packet | None:
        if at_s < 20.0:
            return packet
        again = replace(packet, stream_epoch=2, sequence=packet.sequence - 400)
        return None if at_s < 40.0 else change(again)

    return spoil


@dataclass
class Room:
    """Two right microphones and one that is spoilt, through the clock step."""

    records: list[ClockRecord] = field(default_factory=list)
    """Of the spoilt one."""
    notices: list[str] = field(default_factory=list)
    placed: list[tuple[int, int, int]] = field(default_factory=list)
    """True time, stamp as handed on, number of the clock record."""

    def errors_ms(self) -> list[tuple[float, float]]:
        """Error and bound of each packet by the records as they stand in the end."""
        found = []
        for true_ns, raw_ns, clock in self.placed:
            record = clock_in_force(self.records, clock, raw_ns)
            assert record is not None
            found.append(((to_timeline_ns(record, raw_ns) - true_ns) / MS, record.uncertainty_ns / MS))
        return found

    def outside(self) -> float:
        """Share of the packets whose error is not within the bound."""
        errors = self.errors_ms()
        return sum(abs(error) > bound for error, bound in errors) / len(errors)


def room(
    spoil: Mapping[str, Spoil], length_s: int = 70, told: tuple[AnyControl, ...] = (), watched: str = "c"
) -> Room:
    clocks, found = MeetingClocks(ClockSettings(), "m", {}, {}), Room()
    for control in told:
        clocks.feed(Arrival("m", control, START - UTC, True, "control/0/0"))
    for number in range(length_s * 10):
        for place, device in enumerate("abc"):
            sent = block(device, number)
            packet = spoil.get(device, as_sent)(number / 10, sent)
            if packet is None:
                continue
            late_ns = (5 + (number * 7 + place * 3) % 11) * MS
            arrival = Arrival("m", packet, (sent.timestamp_ns + BLOCK + late_ns) - UTC, True, "audio/0/0")
            for out in clocks.feed(arrival):
                if isinstance(out, ClockRecord) and out.device == watched:
                    found.records.append(out)
                elif isinstance(out, NoticeRecord):
                    found.notices.append(out.text)
                elif isinstance(out, Timed) and device == watched and isinstance(out.arrival.body, Packet):
                    found.placed.append((sent.timestamp_ns, out.arrival.body.timestamp_ns, out.clock))
    return found


# Coming back


@pytest.mark.parametrize("first", [ClockKind.PTP, ClockKind.UTC])
def test_a_device_that_comes_back_with_the_other_kind_of_stamps_keeps_its_clock(first: ClockKind) -> None:
    second = ClockKind.UTC if first is ClockKind.PTP else ClockKind.PTP

    def of(kind: ClockKind) -> Callable[[Packet], Packet]:
        by_ns = UTC if kind is ClockKind.UTC else 0
        return lambda packet: replace(packet, timestamp_ns=packet.timestamp_ns - by_ns, clock_kind=kind)

    back = returning(of(second))
    found = room({"c": lambda at_s, packet: of(first)(packet) if at_s < 20.0 else back(at_s, packet)})
    assert (found.notices, len(found.records)) == ([], 1)
    assert found.outside() == 0.0


def test_words_of_a_device_whose_sound_has_the_other_kind_of_stamps_stand_where_they_were_said() -> None:
    clocks = MeetingClocks(ClockSettings(), "m", {}, {})
    clocks.feed(Arrival("m", block("c", 0), START - UTC + 200 * MS, True, "audio/0/0"))
    at_ns = START - UTC + S
    said = TranscriptMessage(
        meeting_id="m", device_id="c", stream_epoch=1, sequence=0, clock_kind=ClockKind.UTC, timestamp_ns=at_ns,
        duration_ns=S, text="Yes.", words=(TranscriptWord(start_ns=at_ns, end_ns=at_ns + S, text="Yes."),),
    )  # fmt: skip
    (timed,) = clocks.feed(Arrival("m", said, at_ns + 2 * S, True, "transcript/0/0"))
    assert isinstance(timed, Timed) and isinstance(timed.arrival.body, TranscriptMessage)
    body = timed.arrival.body
    assert (body.timestamp_ns, body.words[0].start_ns, body.words[0].end_ns) == (
        START + S,
        START + S,
        START + 2 * S,
    )


def test_a_device_that_comes_back_without_a_date_moves_nothing_of_what_it_sent_before() -> None:
    def undated(packet: Packet) -> Packet:
        return replace(
            packet, timestamp_ns=packet.timestamp_ns - START + 5 * S, clock_kind=ClockKind.MONOTONIC
        )

    found = room({"c": returning(undated)})
    assert any("jumped by" in notice for notice in found.notices)
    assert max(abs(error) for error, _ in found.errors_ms()) < 250.0
    assert found.outside() < 0.05


def test_a_counter_that_begins_at_nothing_after_a_restart_is_placed_by_arrival_at_once() -> None:
    """Without a date from the beginning, hours into its count; switched off and on it counts from zero."""

    def counting(since_ns: int) -> Callable[[Packet], Packet]:
        return lambda packet: replace(
            packet, timestamp_ns=packet.timestamp_ns - START + since_ns, clock_kind=ClockKind.MONOTONIC
        )

    again = returning(counting(-39 * S))
    found = room(
        {"c": lambda at_s, packet: counting(7_200 * S)(packet) if at_s < 20.0 else again(at_s, packet)}
    )
    assert max(abs(error) for error, _ in found.errors_ms()) < 250.0
    assert found.outside() < 0.05


def test_a_clock_that_stood_still_and_is_set_right_is_where_it_was() -> None:
    found = room(
        {"c": shifted(lambda at_s: -round((at_s - 20.0) * 10) * BLOCK if 20.0 < at_s < 40.0 else 0)}, 80
    )
    assert not any("jumped by" in notice for notice in found.notices)
    assert found.outside() < 0.02


# Many steps


@pytest.mark.parametrize("by_ms", [130, -130])
@pytest.mark.parametrize("length_s", [130, 300])
def test_a_clock_that_is_set_every_ten_seconds_is_followed_and_its_past_stays(
    by_ms: int, length_s: int
) -> None:
    found = room({"c": shifted(lambda at_s: int(at_s // 10) * by_ms * MS)}, length_s)
    assert len([n for n in found.notices if "was set" in n]) == 1
    assert found.outside() < 0.01


@pytest.mark.parametrize(("every_s", "most"), [(1, 0.05), (3, 0.01)])
def test_a_clock_that_is_set_to_and_fro_does_not_run_away(every_s: int, most: float) -> None:
    """Within two seconds a step forward is undone before it is decided; both were the clock."""
    found = room({"c": shifted(lambda at_s: int(at_s // every_s % 2) * 300 * MS)}, 60)
    assert max(abs(error) for error, _ in found.errors_ms()) < 301.0
    assert found.outside() < most


def test_a_pause_and_then_a_step_back_by_another_amount_is_a_step_back() -> None:
    def stamps(at_s: float, packet: Packet) -> Packet | None:
        if 20.0 <= at_s < 21.0:
            return None  # muted: its packets go on counting where they stopped
        numbered = replace(packet, sequence=packet.sequence - (10 if at_s >= 21.0 else 0))
        return replace(numbered, timestamp_ns=numbered.timestamp_ns - (400 * MS if at_s >= 22.0 else 0))

    found = room({"c": stamps}, 60)
    assert [n for n in found.notices if "set" in n] == [
        "The clock of c was set back by 0.400 s; its times are corrected."
    ]
    assert found.outside() < 0.02


# All alike, and far off


def test_where_all_stamps_are_utc_taken_for_tai_they_are_corrected_and_no_recording_is_seen_in_them() -> None:
    wrong = shifted(lambda _: -UTC)
    found = room(dict.fromkeys("abc", wrong), 30, (MeetingStarted(meeting_id="m", start_ns=START),))
    assert sorted(found.notices) == [
        f"The clock of {d} is 37 s behind: TAI and UTC are confused; its times are corrected." for d in "abc"
    ]
    assert found.outside() == 0.0


@pytest.mark.parametrize("ppm", [200, -600])
def test_a_clock_that_no_oscillator_explains_is_not_relied_on(ppm: int) -> None:
    assert room({"c": shifted(lambda at_s: round(at_s * ppm * 1000))}, 80).outside() == 0.0


# What is claimed


@pytest.mark.parametrize(
    "claim",
    [
        Calibration(meeting_id="m", device="c", offset_ns=0, uncertainty_ns=2**63 - 1),
        Calibration.model_validate(
            {"meeting_id": "m", "device": "c", "offset_ns": 0, "uncertainty_ns": 2**63 - 1, "measured": "2020-01-01"}
        ),
        Calibration(meeting_id="m", device="c", offset_ns=0, skew_ppb=1e6, ref_ns=-(2**63)),
        Calibration(meeting_id="m", device="c", offset_ns=2**62 - 1),
        ClockState(meeting_id="m", device="c", state="free_running", estimated_error_ns=2**63 - 1),
    ],
)  # fmt: skip
def test_a_claim_that_says_nothing_costs_the_device_nothing(claim: AnyControl) -> None:
    told = (MeetingStarted(meeting_id="m", start_ns=START), claim)
    found = room({"c": shifted(lambda at_s: 300 * MS if at_s > 30 else 0)}, 60, told)
    assert len(found.placed) == 600
    assert found.outside() < 0.02
    for record in found.records:
        assert ClockRecord.model_validate_json(record.to_bytes()) == record
