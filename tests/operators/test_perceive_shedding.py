"""Meetings that are left out under load: which and when, what of them stands on the log, and a kill in the middle."""

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import (
    AnyRecord,
    EndedRecord,
    GapRecord,
    MarkRecord,
    NoticeRecord,
    StreamRecord,
    UtteranceRecord,
)
from operators.broker.source import Received
from operators.perceive.left_out import LeavingOut, LeftOut
from operators.perceive.shedding import Change, Load, Shedding, SheddingSettings
from operators.store import Marker
from tests.operators.test_perceive_recovery import MemoryLog, Process, decided, inputs, revisions

BEGAN = {"early": 1, "middle": 2, "late": 3}
SETTINGS = SheddingSettings(after_s=10.0)


def looked(rule: Shedding, behind: dict[int, float], until: int, began: dict[str, int] = BEGAN) -> list[str]:
    """What changes second by second; ``behind``: from when on the process is how far behind, else it grows by 1."""
    now, changes = 0.0, []
    for second in range(until):
        now = behind.get(second, now + 1.0)
        change = rule.look(float(second), now, began)
        if change is not None:
            changes.append(f"{second} {change.what} {change.meeting}")
    return changes


def test_the_meeting_that_began_last_goes_first_and_the_next_only_where_that_does_not_help() -> None:
    assert looked(SETTINGS.build(), {0: 0.0}, 40) == [
        "15 left_out late", "20 left_out middle",
    ]  # fmt: skip


def test_the_meeting_that_began_first_is_never_left_out_however_late_it_is() -> None:
    assert looked(SETTINGS.build(), {0: 0.0}, 600, {"only": 1}) == []


def test_where_those_before_it_are_over_a_meeting_comes_back_at_once() -> None:
    rule = SETTINGS.build()
    assert looked(rule, {0: 0.0}, 23) == ["15 left_out late", "20 left_out middle"]
    assert rule.look(24.0, 60.0, {"middle": 2, "late": 3}) == Change("middle", "taken_back", 4.0)
    assert rule.look(25.0, 60.0, {"middle": 2, "late": 3}) is None


def test_a_flow_that_catches_up_after_a_stop_leaves_nothing_out() -> None:
    falling = {second: 300.0 - 0.5 * second for second in range(600)}
    assert looked(SETTINGS.build(), falling, 600) == []


def test_a_process_that_was_stopped_for_a_while_and_catches_up_leaves_nothing_out() -> None:
    """Cut off, it goes on looking; stopped itself, it does not. Either way it is behind all at once."""
    for looks in (range(60), [*range(20), *range(40, 60)]):
        rule = SETTINGS.build()
        for second in looks:
            behind_s = 0.0 if second < 40 else max(0.0, 20.0 - 2.0 * (second - 40))
            assert rule.look(float(second), behind_s, BEGAN) is None


def test_a_backlog_that_stands_still_is_no_catching_up() -> None:
    assert looked(SETTINGS.build(), dict.fromkeys(range(60), 60.0), 12) == [
        "5 left_out late",
        "10 left_out middle",
    ]


def test_meetings_come_back_one_by_one_the_one_that_began_first_before_the_others() -> None:
    behind = dict.fromkeys(range(21, 80), 0.5)
    assert looked(SETTINGS.build(), behind, 60) == [
        "14 left_out late", "19 left_out middle", "31 taken_back middle", "41 taken_back late",
    ]  # fmt: skip


def test_who_came_back_too_soon_waits_longer_the_next_time() -> None:
    calm = dict.fromkeys(range(16, 27), 0.0)  # late is back at 26, and it is too much again
    calm |= {second: float(second - 26) for second in range(27, 43)} | dict.fromkeys(range(43, 90), 0.0)
    assert looked(SETTINGS.build(), calm, 80) == [
        "14 left_out late", "26 taken_back late", "41 left_out late", "63 taken_back late",
    ]  # fmt: skip


def test_under_load_that_stays_a_meeting_comes_back_ever_less_often() -> None:
    rule, behind = SETTINGS.build(), 0.0
    out: list[str] = []
    for second in range(3600):
        # Without the last meeting there is room, with it there is not.
        behind = max(0.0, behind + (-1.0 if rule.out else 0.5))
        change = rule.look(float(second), behind, BEGAN)
        out += [] if change is None else [change.what]
    assert len(out) < 40


def test_never_is_never() -> None:
    assert looked(SheddingSettings().build(), {0: 0.0}, 5_000) == []


def test_a_rule_that_would_leave_out_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="all would be left out"):
        SheddingSettings(after_s=0.0)


@dataclass
class Office:
    """A process with a clock that is moved by hand."""

    waited_s: float = 0.0
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.load = Load(SETTINGS, lambda: self.waited_s, clock_s=lambda: self.now_s)

    def go_on(self, seconds: int, age_s: float, *, grows: float = 0.0, caught_up: bool = False) -> float:
        """Media of two meetings are handled once a second; their age at the end."""
        for _ in range(seconds):
            self.now_s, age_s = self.now_s + 1.0, age_s + grows
            self.load.read(0, "first", 1, age_s)
            self.load.read(1, "second", 2, age_s)
            for shard in (0, 1) if caught_up else ():
                self.load.caught_up(shard)
            self.load.look()
        return age_s


def test_media_that_are_read_ever_later_leave_out_the_later_meeting_and_people_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    office = Office()
    office.go_on(18, 0.0, grows=1.0)
    assert office.load.out == {"second"}
    assert capsys.readouterr().err.splitlines() == [
        "flows.perceive: 15 s behind and not catching up: sound and pictures of meeting second, which began last, are left "
        "out until it does (1 of 2 meetings)"
    ]
    office.go_on(70, 3.0)
    assert capsys.readouterr().err.splitlines() == ["flows.perceive: still left out: second for 60 s"]
    office.go_on(11, 0.0)
    assert office.load.out == frozenset()
    assert capsys.readouterr().err == "flows.perceive: meeting second is taken back after 84 s\n"


def test_a_clock_that_differs_from_the_brokers_is_no_backlog() -> None:
    office = Office()
    office.go_on(60, 3600.0, caught_up=True)
    assert office.load.out == frozenset()
    # Nor is it for a meeting that begins, of which nothing has been caught up with.
    office.now_s += 1.0
    office.load.read(1, "third", 3, 3600.0)
    office.load.look()
    assert office.load.out == frozenset()
    office.load.gone("third")
    office.go_on(18, 3600.0, grows=1.0)
    assert office.load.out == {"second"}


def test_a_recogniser_that_is_behind_is_a_backlog_too() -> None:
    office = Office(waited_s=30.0)
    office.go_on(8, 0.0, caught_up=True)
    assert office.load.out == {"second"}


def test_a_recording_that_is_sent_faster_than_it_was_made_is_none_though_its_speech_waits() -> None:
    office = Office()
    for second in range(60):
        office.waited_s = 0.5 * second
        office.go_on(1, -2.0 * second)
        assert office.load.out == frozenset()


def test_a_recogniser_that_takes_up_what_came_during_a_stop_is_none() -> None:
    office = Office()
    for second in range(120):
        # Reading is soon through; what it asked for waits, the oldest of it ever longer, but its sound is ever younger.
        office.waited_s = min(0.7 * second, max(0.0, 47.0 - 2.0 * (second - 67)))
        office.go_on(1, max(0.0, 100.0 - 5.0 * second))
        assert office.load.out == frozenset()


def test_a_meeting_that_is_over_or_silent_is_not_left_out() -> None:
    office = Office()
    office.go_on(1, 0.0)
    office.load.read(2, "third", 3, 0.0)
    office.load.gone("third")
    for seconds, out in ((20, {"second"}), (15, set())):
        for _ in range(seconds):
            office.now_s += 1.0
            office.load.read(0, "first", 1, 60.0)
            office.load.look()
        assert office.load.out == out  # at the end nothing has come of it for half a minute


def picture(sequence: int, *, key: bool) -> Packet:
    return Packet(
        "m", "cam", Modality.VIDEO, Codec.H264, ClockKind.PTP, 1, sequence, sequence * 10, 10, b"x", 0, 64, 64, 0, key
    )  # fmt: skip


def test_a_picture_stream_comes_back_with_a_picture_that_needs_no_other() -> None:
    leaving = LeavingOut()
    leaving.begin("cam/video", LeftOut(1, 4, 0, 50, 50))
    assert leaving.drops(picture(5, key=True), shed=True)
    assert leaving.drops(picture(6, key=False), shed=False)
    assert not leaving.drops(picture(7, key=True), shed=False)
    assert leaving.end("cam/video") == LeftOut(1, 4, 0, 50, 70, 2)


def test_what_an_earlier_run_decided_holds_for_what_that_run_can_have_handled() -> None:
    leaving = LeavingOut()
    for state, epoch, raw_ns in (("shed", 1, 50), ("resumed", 2, 500)):
        leaving.decide(
            StreamRecord.model_validate(
                {"meeting_id": "m", "run": 1, "stream": "cam/video", "state": state, "stream_epoch": epoch, "sequence": 4,
                 "raw_ns": raw_ns}
            )
        )  # fmt: skip
    leaving.begin("cam/video", LeftOut(1, 4, 0, 50, 50))
    assert leaving.drops(picture(9, key=True), shed=False)
    assert leaving.drops(replace(picture(10, key=True), stream_epoch=2), shed=False)
    assert not leaving.drops(replace(picture(50, key=True), stream_epoch=2), shed=False)
    assert not leaving.drops(replace(picture(1, key=True), stream_epoch=3), shed=False)
    assert not leaving.drops(replace(picture(10, key=True), stream_epoch=2), shed=False, fresh=True)


SNAPSHOT_AT, SHED_AT, SHED_SNAPSHOT_AT, KILL_AT, BACK_AT, LATER_AT, END_AT = (
    500,
    700,
    900,
    1000,
    1100,
    1400,
    2000,
)
"""Places among the input messages; four microphones, 20 ms each. The first snapshot is of the time before."""


class Told(Load):
    """A load that is told what it leaves out."""

    def __init__(self) -> None:
        super().__init__(SheddingSettings())
        self.told: frozenset[str] = frozenset()

    @property
    def out(self) -> frozenset[str]:
        return self.told


@cache
def messages() -> list[Received]:
    return list(inputs())[:END_AT]


def play(
    root: Path, *, kill_at: int | None = None, snapshot_at: int | None = None, until: int = END_AT
) -> MemoryLog:
    """The meeting is left out from SHED_AT to BACK_AT; the flow may be killed once and goes on at a snapshot."""
    log, load = MemoryLog(), Told()
    process = Process(root, log, "Anna", 1, None, load)
    markers: dict[str, Marker] = {}
    for place, message in enumerate(messages()[:until]):
        if place == snapshot_at:
            markers = process.save()
        if place == kill_at:
            process.kill()
            load.told = frozenset()
            # It begins after all that is there has come.
            process = Process(root, log, "Ben", 10**18 + 1, markers, load)
            for again in messages()[snapshot_at:kill_at]:
                process.feed(again)
        elif place in (SHED_AT, BACK_AT):
            load.told = frozenset({"kill"}) if place == SHED_AT else frozenset()
        if kill_at is not None and place == (kill_at - 1):
            process.workers.voice = "Anna"
        process.feed(message)
    process.kill()
    return log


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> list[AnyRecord]:
    return decided(play(tmp_path_factory.mktemp("uncut")))


def states(records: list[AnyRecord], stream: str) -> list[str]:
    return [r.state for r in records if isinstance(r, StreamRecord) and r.stream == stream]


def gaps(records: list[AnyRecord]) -> list[GapRecord]:
    return [r for r in records if isinstance(r, GapRecord)]


def check_marks(records: list[AnyRecord]) -> None:
    """What marks promise holds: nothing that comes after begins before them."""
    marks: dict[str, int] = {}
    for record in records:
        if isinstance(record, MarkRecord):
            assert record.raw_ns > marks.get(record.stream, -1), record
            marks[record.stream] = record.raw_ns
        elif isinstance(record, UtteranceRecord) and record.state != "withdrawn":
            assert record.raw_start_ns >= marks.get(record.stream, -1), record


def check_once(records: list[AnyRecord]) -> None:
    names = [r.identity for r in records if not isinstance(r, MarkRecord)]
    assert sorted(names) == sorted(set(names))


def test_what_is_left_out_stands_on_the_log_as_one_gap_a_stream_and_one_notice(
    uncut: list[AnyRecord],
) -> None:
    assert states(uncut, "mic-1/audio") == ["opened", "shed", "resumed"]
    found = sorted(gaps(uncut), key=lambda gap: gap.stream)
    assert [gap.stream for gap in found] == [f"mic-{n}/audio" for n in (1, 2, 3, 4)]
    assert {gap.what for gap in found} == {"shed"}
    assert {gap.raw_end_ns - gap.raw_start_ns for gap in found} == {(BACK_AT - SHED_AT) // 4 * 20_000_000}
    assert len([r for r in uncut if isinstance(r, NoticeRecord) and r.code == "shed"]) == 1
    closed = [r for r in uncut if isinstance(r, UtteranceRecord) and r.state == "closed"]
    for utterance in closed:
        for gap in found:
            assert (
                utterance.raw_end_ns <= gap.raw_start_ns + 40_000_000
                or utterance.raw_start_ns >= gap.raw_end_ns
            )
    assert any(u.raw_start_ns >= found[0].raw_end_ns for u in closed)
    check_marks(uncut)
    check_once(uncut)


@pytest.mark.parametrize(
    ("snapshot_at", "kill_at"),
    [(SNAPSHOT_AT, LATER_AT), (SHED_SNAPSHOT_AT, LATER_AT)],
)
def test_a_kill_after_it_came_back_changes_no_record(
    tmp_path: Path, uncut: list[AnyRecord], snapshot_at: int, kill_at: int
) -> None:
    cut = decided(play(tmp_path, snapshot_at=snapshot_at, kill_at=kill_at))
    check_once(cut)
    check_marks(cut)
    upto = [r.identity for r in cut if not isinstance(r, MarkRecord)]
    assert upto == [r.identity for r in uncut if not isinstance(r, MarkRecord)]
    assert gaps(cut) == gaps(uncut)


@pytest.mark.parametrize(
    ("snapshot_at", "kill_at", "gaps_left"),
    [(SNAPSHOT_AT, KILL_AT, 0), (SHED_SNAPSHOT_AT, KILL_AT, 4), (SHED_SNAPSHOT_AT, BACK_AT + 1, 4)],
)
def test_a_kill_while_it_is_left_out_loses_nothing_more_and_closes_the_gap(
    tmp_path: Path, snapshot_at: int, kill_at: int, gaps_left: int
) -> None:
    """The last of the kills falls when one of four microphones is back."""
    log = play(tmp_path, snapshot_at=snapshot_at, kill_at=kill_at)
    cut = decided(log)
    check_once(cut)
    check_marks(cut)
    assert states(cut, "mic-1/audio") == ["opened", "shed", "resumed"]
    back = [r for r in cut if isinstance(r, StreamRecord) and r.state == "resumed"]
    for gap in gaps(cut):
        # What was left out before the snapshot is gone; what came after it is heard.
        assert gap.raw_end_ns == next(r.raw_ns for r in back if r.stream == gap.stream)
    assert len(gaps(cut)) == gaps_left
    assert len(revisions(log)) >= 1


def test_a_meeting_that_ends_while_it_is_left_out_closes_its_gaps(tmp_path: Path) -> None:
    load = Told()
    process = Process(tmp_path, log := MemoryLog(), "Anna", 1, None, load)
    for place, message in enumerate(messages()[: SHED_AT + 200]):
        load.told = frozenset({"kill"}) if place >= SHED_AT else frozenset()
        process.feed(message)
    for _ in range(2):  # what was asked of the recogniser is answered between the two
        process._write(process.perceive.finish_input())
    process.kill()
    records = decided(log)
    ended = records[-1]
    assert isinstance(ended, EndedRecord) and len(gaps(records)) == 4
    # It did not end when it was left out.
    assert ended.end_ns >= max(gap.raw_end_ns for gap in gaps(records)) - 4 * 10**9
    assert ended.end_ns > min(gap.raw_start_ns for gap in gaps(records)) + 500_000_000


def test_settings_of_never_are_the_default() -> None:
    assert SheddingSettings().after_s == math.inf
