"""The align step as lists of log records: what is settled when, in which order, and what the end gives."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.messages import (
    AgendaChanged,
    AnyControl,
    AttendeeInfo,
    AttendeesChanged,
    Correction,
    MeetingPurged,
    MeetingStarted,
)
from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.timeline import (
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    Fence,
    GapRecord,
    MarkRecord,
    NoticeRecord,
    SlideRecord,
    StreamRecord,
    UtteranceRecord,
)
from operators.align.aligned import Aligned, Corrected, Ended, Heard, Purged, Settled, Unheard
from operators.align.alignment import AlignmentSettings
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.store import Stores

S = 1_000_000_000
ZERO = 1_780_000_000 * S
State = Literal["tentative", "closed", "withdrawn"]


def at(second: float) -> int:
    return ZERO + round(second * S)


def said(
    name: str, start: float, end: float, *, state: State = "closed", version: int = 1, mark: float | None = None,
    device: str = "mic", text: str | None = None, run: int = 0, clock: int = 0,
) -> UtteranceRecord:  # fmt: skip
    return UtteranceRecord(
        meeting_id="m", run=run, id=name, version=version, state=state, stream=f"{device}/audio", device=device, clock=clock,
        raw_start_ns=at(start), raw_end_ns=at(end), mark_ns=at(start if mark is None else mark), speaker=device,
        text=text or f"text of {name}", source="recogniser", sampling_ms=0.0, boundary_ms=20.0,
    )  # fmt: skip


def mark(second: float, device: str = "mic", modality: str = "audio") -> MarkRecord:
    return MarkRecord(meeting_id="m", stream=f"{device}/{modality}", raw_ns=at(second))


def stream(
    state: Literal["opened", "ended", "given_up", "resumed"], second: float = 0, device: str = "mic", modality: str = "audio"
) -> StreamRecord:  # fmt: skip
    return StreamRecord(
        meeting_id="m",
        stream=f"{device}/{modality}",
        state=state,
        stream_epoch=1,
        sequence=0,
        raw_ns=at(second),
    )


def clock(
    number: int, offset_s: float = 0, *, since: float | None = None, device: str = "mic", step: bool = False
) -> ClockRecord:
    return ClockRecord(
        meeting_id="m", device=device, number=number, from_raw_ns=-(2**63) if since is None else at(since), ref_ns=ZERO,
        offset_ns=round(offset_s * S), uncertainty_ns=2_000_000, method="arrival" if step else "stored",
    )  # fmt: skip


def control(message: AnyControl) -> ControlRecord:
    return ControlRecord(meeting_id="m", control=message, source="minuted.control/0/1")


def slide(name: str, start: float, modality: str = "video") -> SlideRecord:
    return SlideRecord(
        meeting_id="m", id=name, stream=f"laptop/{modality}", device="laptop", clock=0, raw_start_ns=at(start),
        mark_ns=at(start), text=name, sampling_ms=33.0,
    )  # fmt: skip


def gap(
    start: float, end: float, what: Literal["lost", "undecodable"] = "lost", device: str = "mic"
) -> GapRecord:
    return GapRecord(
        meeting_id="m", stream=f"{device}/audio", device=device, clock=0, raw_start_ns=at(start), raw_end_ns=at(end), what=what
    )  # fmt: skip


STARTED = control(MeetingStarted(meeting_id="m", start_ns=ZERO))
OPENED: list[AnyRecord] = [STARTED, clock(0), stream("opened")]


def ended(second: float) -> EndedRecord:
    return EndedRecord(meeting_id="m", reason="control", end_ns=at(second))


def align(records: Sequence[AnyRecord | Fence], step: Align | None = None) -> list[Aligned]:
    step = step or Align(AlignSettings())
    return [out for record in records for out in step.read(record)]


def settled(out: Sequence[Aligned]) -> list[str]:
    """Ids by ``Settled``: ``+a b`` follow, ``=a b`` replace all before."""
    return [
        ("=" if o.anew else "+") + " ".join(s.id for s in o.spoken) for o in out if isinstance(o, Settled)
    ]


def final(out: Sequence[Aligned]) -> list[tuple[str, float]]:
    """Id and second of all that was said, by the last end."""
    last = [o for o in out if isinstance(o, Ended)][-1]
    return [(s.id, (s.start_ns - ZERO) / S) for s in last.spoken]


# Settling


def test_two_later_utterances_settle_one() -> None:
    out = align([*OPENED, said("a", 1, 2), said("b", 3, 4), said("c", 5, 6), mark(6)])
    assert settled(out) == ["+a"]


def test_what_is_later_counts_only_up_to_the_mark() -> None:
    records: list[AnyRecord] = [*OPENED, said("a", 1, 2), said("b", 3, 4), said("c", 5, 6, mark=5)]
    assert settled(align(records)) == []  # c starts where its mark is: another piece may start there too
    assert settled(align([*records, mark(5.1)])) == ["+a"]


def test_ten_quiet_seconds_settle_one() -> None:
    records: list[AnyRecord] = [*OPENED, said("a", 1, 2)]
    assert settled(align([*records, mark(11.9)])) == []
    assert settled(align([*records, mark(12)])) == ["+a"]


def test_the_slowest_live_stream_decides() -> None:
    other: list[AnyRecord] = [clock(0, device="mic-2"), stream("opened", 0, "mic-2")]
    records: list[AnyRecord] = [*OPENED, *other, said("a", 1, 2), mark(30)]
    assert settled(align(records)) == []
    assert settled(align([*records, mark(12, "mic-2")])) == ["+a"]
    over: tuple[Literal["ended", "given_up"], ...] = ("ended", "given_up")
    for gone in over:
        assert settled(align([*records, stream(gone, 0, "mic-2")])) == ["+a"]


def test_an_expected_stream_is_waited_for() -> None:
    expects = control(MeetingStarted(meeting_id="m", start_ns=ZERO, streams=("mic/audio", "laptop/video")))
    records: list[AnyRecord] = [expects, *OPENED[1:], said("a", 1, 2), mark(30)]
    assert settled(align(records)) == []
    assert settled(align([*records, stream("given_up", 0, "laptop", "video")])) == ["+a"]


def test_a_stream_that_comes_back_counts_again() -> None:
    gone: list[AnyRecord] = [
        *OPENED,
        clock(0, device="mic-2"),
        stream("given_up", 0, "mic-2"),
        stream("resumed", 1, "mic-2"),
    ]
    assert settled(align([*gone, said("a", 1, 2), mark(30)])) == []


def test_order_is_by_start_and_id_whatever_came_first() -> None:
    late_first: list[AnyRecord] = [
        said("c", 5, 6),
        said("b", 1, 2),
        said("a", 1, 3),
        said("d", 7, 8),
        said("e", 9, 10),
    ]
    assert settled(align([*OPENED, *late_first, mark(10)])) == ["+a", "+b", "+c"]


def test_a_stream_that_comes_late_puts_everything_in_order_anew() -> None:
    late: list[AnyRecord] = [
        clock(0, device="mic-2"),
        stream("opened", 0, "mic-2"),
        said("x", 0.5, 0.9, device="mic-2"),
        mark(30, "mic-2"),
    ]
    out = align([*OPENED, said("a", 1, 2), mark(20), *late])
    assert settled(out) == ["+a", "=x a"]


def test_marks_go_forward_only() -> None:
    out = align([*OPENED, said("a", 1, 2), mark(11.9), mark(3), mark(11.95)])
    assert settled(out) == []


# What becomes of an utterance


def test_tentative_is_heard_and_not_settled() -> None:
    out = align([*OPENED, said("a", 1, 2, state="tentative"), mark(60)])
    assert [type(o) for o in out] == [Heard]


def test_closed_after_tentative_replaces_it() -> None:
    out = align(
        [
            *OPENED,
            said("a", 1, 2, state="tentative", text="Let us"),
            said("a", 1, 3, version=2, text="Let us go."),
            mark(13),
        ]
    )
    heard = [o.spoken.text for o in out if isinstance(o, Heard)]
    assert heard == ["Let us", "Let us go."]
    assert settled(out) == ["+a"]


def test_withdrawn_before_and_after_it_was_settled() -> None:
    before = align(
        [*OPENED, said("a", 1, 2), said("a", 1, 2, state="withdrawn", version=2), mark(60), ended(60)]
    )
    assert [type(o) for o in before] == [Heard, Unheard, Ended]
    assert final(before) == []
    after = align(
        [*OPENED, said("a", 1, 2), said("b", 3, 4), mark(60), said("a", 60, 60, state="withdrawn", version=2)]
    )
    assert settled(after) == ["+a b", "=b"]


def test_withdrawing_what_was_never_heard_says_nothing() -> None:
    assert align([*OPENED, said("a", 1, 2, state="withdrawn")]) == []


def test_what_was_closed_first_stands() -> None:
    again: list[AnyRecord] = [
        said("a", 1, 2, version=2, text="Otherwise."),
        said("a", 1, 2, version=3, state="tentative", text="More."),
    ]
    out = align([*OPENED, said("a", 1, 2), mark(12), *again, mark(30), ended(30)])
    assert settled(out) == ["+a"]
    assert [s.text for o in out if isinstance(o, Ended) for s in o.spoken] == ["text of a"]


# Clocks


def test_a_calibration_re_times_what_is_settled() -> None:
    camera: list[AnyRecord] = [clock(0, device="mic-2"), stream("opened", 0, "mic-2")]
    spoken: list[AnyRecord] = [said("a", 10, 11), said("b", 11, 12, device="mic-2")]
    out = align([*OPENED, *camera, *spoken, mark(30), mark(30, "mic-2"), clock(1, 3.2, device="mic-2")])
    assert settled(out) == ["+a b", "=b a"]
    assert final(align([*OPENED, *camera, *spoken, clock(1, 3.2, device="mic-2"), ended(30)])) == [
        ("b", 7.8),
        ("a", 10.0),
    ]


def test_a_calibration_from_a_moment_on_re_times_only_what_follows() -> None:
    out = align([*OPENED, said("a", 10, 11), said("b", 20, 21), clock(1, 1.0, since=15), ended(30)])
    assert final(out) == [("a", 10.0), ("b", 19.0)]


def test_the_error_of_a_clock_travels_with_what_it_placed() -> None:
    out = align([*OPENED, said("a", 10, 11)])
    assert [o.spoken.error_ms for o in out if isinstance(o, Heard)] == [2.0]


@pytest.mark.parametrize("jump", [60.0, -60.0, 1e8])
def test_a_stepped_clock_leaves_what_came_before_in_its_place(jump: float) -> None:
    """The clock jumps at second 100: the same raw times may come twice, or those between never."""
    before: list[AnyRecord] = [said("a", 45, 46), said("b", 98, 99), mark(99)]
    step = clock(1, jump, since=100 + jump, step=True)
    after: list[AnyRecord] = [said("c", 101 + jump, 102 + jump, clock=1), mark(103 + jump)]
    out = align([*OPENED, *before, step, *after, ended(103)])
    assert final(out) == [("a", 45.0), ("b", 98.0), ("c", 101.0)]


@pytest.mark.parametrize("jump", [60.0, -60.0, 1e8])
def test_marks_go_on_after_a_step(jump: float) -> None:
    records: list[AnyRecord] = [
        *OPENED,
        said("a", 90, 91),
        mark(99),
        clock(1, jump, since=100 + jump, step=True),
    ]
    assert settled(align([*records, mark(100.9 + jump)])) == []
    assert settled(align([*records, mark(101 + jump)])) == ["+a"]


def test_one_absurd_stamp_stays_where_it_was_placed() -> None:
    wild = 9e8
    records: list[AnyRecord] = [
        *OPENED,
        said("a", 1, 2),
        clock(1, wild - 5, since=wild, step=True),
        said("b", wild, wild + 1, clock=1),
    ]
    back: list[AnyRecord] = [clock(2, 0, since=10, step=True), said("c", 10, 11, clock=2), mark(12)]
    assert final(align([*records, *back, ended(12)])) == [("a", 1.0), ("b", 5.0), ("c", 10.0)]


# Slides, gaps, notices, setting


def test_a_slide_stands_until_the_next_of_its_stream() -> None:
    out = align([*OPENED, slide("one", 3), slide("two", 8), slide("other", 5, "ocr"), ended(20)])
    spans = [
        (s.id, (s.start_ns - ZERO) / S, (s.end_ns - ZERO) / S)
        for o in out
        if isinstance(o, Ended)
        for s in o.slides
    ]
    assert spans == [("one", 3.0, 8.0), ("other", 5.0, 20.0), ("two", 8.0, 20.0)]


def test_gaps_are_told_once_and_in_order() -> None:
    out = align([*OPENED, gap(5, 6), gap(1, 2), gap(5, 6), said("a", 1, 2), mark(12), ended(20)])
    for told in out:
        if isinstance(told, Settled | Ended):
            assert [(g.start_ns - ZERO) / S for g in told.gaps] == [1.0, 5.0]


def test_notices_are_told_once() -> None:
    notices: list[AnyRecord] = [
        NoticeRecord(meeting_id="m", code="late", text=text) for text in ("b", "a", "b")
    ]
    out = align([*OPENED, *notices, ended(20)])
    assert [o.notices for o in out if isinstance(o, Ended)] == [("a", "b")]


def test_the_setting_is_what_control_said_last() -> None:
    first = MeetingStarted(
        meeting_id="m", start_ns=ZERO, title="Board", attendees=(AttendeeInfo(name="Anna"),)
    )
    people = AttendeesChanged(meeting_id="m", attendees=(AttendeeInfo(name="Ben", speaker="b"),))
    agenda = AgendaChanged(meeting_id="m", agenda=("Budget",), key_topics=("Berlin",))
    out = align([control(first), control(people), control(agenda), *OPENED[1:], said("a", 1, 2)])
    context = out[0].setting.context  # type: ignore[union-attr]
    assert (context.title, [a.name for a in context.attendees]) == ("Board", ["Ben"])
    assert (context.agenda, context.key_topics) == (("Budget",), ("Berlin",))


def test_without_control_the_first_utterance_is_the_zero() -> None:
    out = align([clock(0), stream("opened"), said("a", 7, 8)])
    assert isinstance(out[0], Heard)
    assert out[0].setting.start_ns == at(7)


# Ends


def correction(name: str = "c1") -> ControlRecord:
    return control(Correction(meeting_id="m", correction_id=name, item_id="x", action="reject", by="Anna"))


def test_corrections_go_through_and_after_the_end_give_another_one() -> None:
    before = align([*OPENED, said("a", 1, 2), correction()])
    assert [type(o) for o in before] == [Heard, Corrected]
    after = align([*OPENED, said("a", 1, 2), ended(20), correction(), correction("c2")])
    assert [type(o) for o in after] == [Heard, Ended, Corrected, Ended, Corrected, Ended]


def test_media_after_the_end_changes_nothing() -> None:
    late: list[AnyRecord] = [said("b", 3, 4), slide("s", 3), gap(3, 4), mark(50), clock(1, 5.0)]
    out = align([*OPENED, said("a", 1, 2), ended(20), *late, correction()])
    ends = [o for o in out if isinstance(o, Ended)]
    assert ends[0] == ends[1]


def test_a_purge_forgets_the_meeting() -> None:
    step = Align(AlignSettings())
    out = align([*OPENED, said("a", 1, 2), control(MeetingPurged(meeting_id="m"))], step)
    assert isinstance(out[-1], Purged)
    # Its id stays closed: a meeting that was purged does not begin anew, and nothing late of it opens one.
    assert align([*OPENED, said("b", 2, 3), ended(3)], step) == []


# Fences


def test_records_of_a_run_that_was_cut_off_are_not_read() -> None:
    step = Align(AlignSettings())
    first: list[AnyRecord] = [r.model_copy(update={"run": 1}) for r in [*OPENED, said("a", 1, 2)]]
    stray = said("b", 3, 4, run=1)
    second: list[AnyRecord] = [r.model_copy(update={"run": 2}) for r in (said("c", 5, 6), ended(9))]
    out = align([Fence(run=1, shard=0), *first, Fence(run=2, shard=0), stray, *second], step)
    assert final(out) == [("a", 1.0), ("c", 5.0)]


# Features


def features(second: float, level: float = 0.5, run: int = 0, meeting_id: str = "m") -> bytes:
    values = np.full((3, 9, 16), level, "<f2").tobytes()
    return encode(
        Packet(
            meeting_id, "camera", Modality.PICTURE_FEATURES, Codec.VOLUME_F16, ClockKind.PTP, run, 0, at(second),
            S // 5, values, 0, 16, 9, 3,
        )
    )  # fmt: skip


def log(*values: bytes | AnyRecord | Fence) -> list[Received | CaughtUp]:
    plain = [v if isinstance(v, bytes) else v.to_bytes() for v in values]
    return [Received("minuted.timeline", 0, n, 0, True, v) for n, v in enumerate(plain)]


def brightness(step: Align, *seconds: float, meeting_id: str = "m") -> list[float | None]:
    """What the camera of the meeting shows at these seconds, None where that is not known."""
    alignment = step.alignment(meeting_id)
    assert alignment is not None
    found = alignment.at(np.asarray([at(s) for s in seconds], np.int64)).volumes.get(
        "camera/picture_features"
    )
    if found is None:
        return [None] * len(seconds)
    values = found.values[:, 0, 0, 0].tolist()
    return [round(v, 3) if k else None for v, k in zip(values, found.known.tolist(), strict=True)]


def test_features_on_the_log_go_to_the_alignment_of_their_meeting() -> None:
    step = Align(AlignSettings())
    told: list[bytes | AnyRecord] = [
        clock(0, device="camera"),
        features(1, 0.0),
        features(2, 1.0),
        said("a", 1, 2),
    ]
    out = step.on_batch(log(*OPENED, *told))
    assert [type(o) for o in out] == [Heard]
    assert brightness(step, 0.5, 1, 1.25, 2) == [None, 0.0, 0.25, 1.0]
    step.on_batch(log(clock(1, 0.5, device="camera")))
    assert brightness(step, 0.5, 1, 1.25, 2) == [0.0, 0.5, 0.75, None]
    step.on_batch(log(gap(1.4, 1.6, device="camera").model_copy(update={"stream": "camera/video"})))
    assert brightness(step, 0.8, 1, 1.2) == [0.3, None, 0.7]


def test_features_of_a_run_that_was_cut_off_of_nobody_or_after_the_end_are_not_kept() -> None:
    step = Align(AlignSettings())
    opened: list[AnyRecord] = [r.model_copy(update={"run": 2}) for r in OPENED]
    step.on_batch(log(features(0.9), Fence(run=2, shard=0), *opened, features(1, run=1), features(2, run=2)))
    assert brightness(step, 1, 2) == [None, 0.5]
    step.on_batch(log(ended(3).model_copy(update={"run": 2}), features(3, run=2)))
    assert brightness(step, 2, 3) == [None, None]
    assert step.alignment("other") is None


def test_broken_features_are_a_dead_letter_and_the_meeting_goes_on() -> None:
    step = Align(AlignSettings())
    broken = bytearray(features(1))
    broken[-1] ^= 1
    out = step.on_batch(log(*OPENED, bytes(broken), features(2)))
    letters = [json.loads(o.value) for o in out if isinstance(o, Outgoing)]
    assert [letter["reason"] for letter in letters] == ["crc"]
    assert brightness(step, 2) == [0.5]


@pytest.mark.parametrize("cut", [4, 5, 12, 30, 42])
def test_what_is_kept_of_features_survives_a_kill_and_stays_bounded(tmp_path: Path, cut: int) -> None:
    options = AlignmentSettings(keep_ns=2 * S)
    values: list[bytes | AnyRecord] = [*OPENED, clock(0, device="camera"), slide("s", 0)]
    values += [features(n * 0.2, n * n % 7 / 8) for n in range(32)] + [
        clock(1, 0.1, device="camera"),
        gap(5, 5.1),
    ]
    values += [features(n * 0.2, n * n % 7 / 8) for n in range(32, 36)]
    stores = Stores(tmp_path, "minutes", ("align",))
    store = stores.step(0, "align")
    store.roll_back(None)
    first, second = Align(AlignSettings(), options), Align(AlignSettings(), options)
    first.open(store)
    for value in log(*values[:cut]):
        store.begin(proved=True)
        first.on_batch([value])
        first.save(store)
    marker = store.marker()
    store.begin(proved=True)
    first.on_batch(log(*values[cut:]))  # goes on, saves, and is killed
    first.save(store)
    store.roll_back(marker)
    second.open(store)
    store.begin(proved=True)
    second.on_batch(log(*values[cut:]))
    second.save(store)
    uncut = Align(AlignSettings(), options)
    uncut.on_batch(log(*values))
    moments = [4.5, 4.95, 5.5, 6.0, 6.33, 6.9]
    assert brightness(second, *moments) == brightness(uncut, *moments)
    assert brightness(second, 6.33) != [None]
    assert len(list(store.scan(b"frame/"))) == 11  # two seconds of five frames a second, not all that came
    store.begin(proved=True)
    second.on_batch(log(control(MeetingPurged(meeting_id="m")), features(9)))
    second.save(store)
    assert list(store.scan(b"frame/")) == [] and second.alignment("m") is None
    stores.close()


# Any order


MEETING: list[AnyRecord] = [
    said("a1", 1, 2), said("a2", 4, 6, state="tentative"), said("a2", 4, 7, version=2), said("a3", 9, 10), mark(25),
]  # fmt: skip
OTHER: list[AnyRecord] = [
    said("b1", 2, 3, device="mic-2"), said("b2", 5, 6, device="mic-2"),
    said("b2", 6, 6, state="withdrawn", version=2, device="mic-2"),
    said("b3", 8, 9, device="mic-2"), mark(25, "mic-2"),
]  # fmt: skip
THIRD: list[AnyRecord] = [
    slide("one", 3),
    slide("two", 7),
    mark(25, "laptop", "video"),
    clock(1, 0.4, device="laptop"),
]


@settings(deadline=None)
@given(st.data())
def test_streams_may_be_interleaved_in_any_way(data: st.DataObject) -> None:
    """Each stream keeps its own order; how they are mixed decides nothing about the end."""
    queues = [list(MEETING), list(OTHER), list(THIRD)]
    mixed: list[AnyRecord] = []
    while any(queues):
        mixed.append(data.draw(st.sampled_from([q for q in queues if q])).pop(0))
    opened = [
        STARTED,
        *(
            r
            for d, m in (("mic", "audio"), ("mic-2", "audio"), ("laptop", "video"))
            for r in (clock(0, device=d), stream("opened", 0, d, m))
        ),
    ]
    out = align([*opened, *mixed, ended(25)])
    whole = align([*opened, *MEETING, *OTHER, *THIRD, ended(25)])
    assert out[-1] == whole[-1]
    # What was settled, put together, is the beginning of the final order.
    order: list[str] = []
    for told in out:
        if isinstance(told, Settled):
            order = [s.id for s in told.spoken] if told.anew else [*order, *(s.id for s in told.spoken)]
    assert order == [name for name, _ in final(out)][: len(order)]


# State


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_snapshot_anywhere_goes_on_the_same(tmp_path: Path, cut: int) -> None:
    records: list[AnyRecord | Fence] = [
        Fence(run=0, shard=0), *OPENED, *MEETING[:3], clock(1, 0.5), MEETING[3],
        slide("s", 3), mark(25), gap(1, 2), ended(26), correction(),
    ]  # fmt: skip
    stores = Stores(tmp_path, "minutes", ("align",))
    store = stores.step(0, "align")
    store.roll_back(None)
    first, second = Align(AlignSettings()), Align(AlignSettings())
    first.open(store)
    store.begin(proved=True)
    out = align(records[:cut], first)
    first.save(store)
    marker = store.marker()
    store.begin(proved=True)
    align(records[cut:], first)  # goes on, saves, and is killed
    first.save(store)
    store.roll_back(marker)
    second.open(store)
    out += align(records[cut:], second)
    assert out == align(records)
    stores.close()


def test_nothing_of_a_purged_meeting_comes_back_with_it(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "minutes", ("align",))
    store = stores.step(0, "align")
    store.roll_back(None)
    step = Align(AlignSettings())
    step.open(store)
    store.begin(proved=True)
    align([*OPENED, said("a", 1, 2)], step)
    step.save(store)
    store.begin(proved=True)
    align([control(MeetingPurged(meeting_id="m")), mark(30)], step)  # a straggler opens it once more
    step.save(store)
    fresh = Align(AlignSettings())
    fresh.open(store)
    assert align([said("b", 31, 32), ended(40)], fresh) == []
    stores.close()
