"""Drafts: what is folded in any order of arrival ends as a fold of the whole meeting from scratch."""

import datetime
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.consumer import MinutesFold, read_event, read_state
from contracts.messages import AttendeeInfo, AttendeesChanged, Correction, MeetingPurged, MeetingStarted
from contracts.minutes import Versions
from contracts.timeline import (
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    Fence,
    MarkRecord,
    SlideRecord,
    StreamRecord,
    UtteranceRecord,
)
from contracts.topics import MINUTES, STATE
from flows.files import MinutesOfLog
from operators.align.aligned import Aligned, Ended
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.source import Received
from operators.deliver.keys import OpenKeys
from operators.deliver.step import Deliver, judge
from operators.draft import Decided, Drafted, Drafting
from operators.store import Stores
from operators.understand.engine import RuleEngine
from operators.verify.check import Verifier
from operators.verify.rule_files import default_rules
from operators.verify.types import Draft

S = 1_000_000_000
ZERO = 1_780_000_000 * S
VERSIONS = Versions(product="0", model=None, rules="0", contract="0")
ENGINE = RuleEngine()
TALK = [
    ("Anna", "Good morning, let us start with the launch."),
    ("Ben", "The tests are green since yesterday."),
    ("Anna", "Then we go with the second of June for the launch."),
    ("Carla", "Agreed, the second of June."),
    ("Anna", "Ben, can you write the release notes by Friday?"),
    ("Ben", "Yes, I will do that."),
    ("Carla", "Who is going to talk to the printers?"),
    ("Ben", "I don't know, we have to find out."),
    ("Carla", "I'll book the room for the launch by Monday."),
    ("Anna", "We decided to drop the old logo."),
    ("Ben", "No, let's not drop the old logo."),
    ("Anna", "Right, we keep the old logo."),
]
STARTED = MeetingStarted(
    meeting_id="m", start_ns=ZERO, title="Launch", date=datetime.date(2026, 5, 27),
    attendees=tuple(AttendeeInfo(name=name) for name in ("Anna", "Ben", "Carla")), key_topics=("launch",),
)  # fmt: skip


def at(second: float) -> int:
    return ZERO + round(second * S)


def utterance(index: int, speaker: str, text: str, **change: object) -> UtteranceRecord:
    start = 1.0 + 4 * index
    values = {
        "meeting_id": "m", "id": f"{speaker}/{index}", "version": 2, "state": "closed", "stream": f"{speaker}/audio",
        "device": speaker, "clock": 0, "raw_start_ns": at(start), "raw_end_ns": at(start + 3), "mark_ns": at(start),
        "speaker": speaker, "text": text, "source": "recogniser", "sampling_ms": 0.0, "boundary_ms": 20.0,
    }  # fmt: skip
    return UtteranceRecord.model_validate(values | change)


def control(message: MeetingStarted | AttendeesChanged | MeetingPurged | Correction) -> ControlRecord:
    return ControlRecord(meeting_id="m", control=message, source="minuted.control/0/1")


def opened(device: str, modality: str = "audio") -> list[AnyRecord]:
    name = f"{device}/{modality}"
    return [
        ClockRecord(
            meeting_id="m", device=device, number=0, from_raw_ns=-(2**63), ref_ns=0, offset_ns=0, uncertainty_ns=0,
            method="stored",
        ),
        StreamRecord(meeting_id="m", stream=name, state="opened", stream_epoch=1, sequence=0, raw_ns=ZERO),
    ]  # fmt: skip


def mark(device: str, second: float, modality: str = "audio") -> MarkRecord:
    return MarkRecord(meeting_id="m", stream=f"{device}/{modality}", raw_ns=at(second))


LENGTH_S = 1 + 4.0 * len(TALK)
END = EndedRecord(meeting_id="m", reason="control", end_ns=at(LENGTH_S))


def streams_of(spoken: Iterable[UtteranceRecord]) -> list[list[AnyRecord]]:
    """The meeting's records, one list a stream, each in the order in which its device could give them."""
    streams: dict[str, list[AnyRecord]] = {name: opened(name) for name in ("Anna", "Ben", "Carla")}
    for record in spoken:
        streams[record.device] += [
            record.model_copy(update={"state": "tentative", "version": 1, "text": record.text.split(",")[0]}),
            record,
            mark(record.device, (record.raw_end_ns - ZERO) / S),
        ]
    for name, records in streams.items():
        records.append(mark(name, LENGTH_S))
    slides: list[AnyRecord] = [
        *opened("laptop", "video"),
        *(
            SlideRecord(
                meeting_id="m", id=f"slide/{n}", stream="laptop/video", device="laptop", clock=0, raw_start_ns=at(15 * n),
                mark_ns=at(15 * n), text=f"Launch, page {n}", sampling_ms=33.0,
            )
            for n in range(3)
        ),
        mark("laptop", LENGTH_S, "video"),
    ]  # fmt: skip
    return [*streams.values(), slides]


SPOKEN = [utterance(n, *line) for n, line in enumerate(TALK)]


def log_of(streams: Sequence[Sequence[AnyRecord]], choose: Callable[[int], int]) -> list[AnyRecord]:
    """One log of several streams; ``choose`` says which of the ``n`` unfinished streams goes on."""
    queues = [list(records) for records in streams]
    log: list[AnyRecord] = [control(STARTED)]
    while open_queues := [queue for queue in queues if queue]:
        log.append(open_queues[choose(len(open_queues))].pop(0))
    return [*log, END]


# The design's promise: the same log content, whatever its order, gives the same minutes


def folded(log: Sequence[AnyRecord]) -> dict[str, object]:
    """What a consumer of the topics has at the end, numbers of revisions and audit entries aside."""
    minutes, fold = MinutesOfLog(VERSIONS), MinutesFold()
    states = []
    for record in log:
        for message in minutes.read(record.to_bytes()):
            if message.topic is MINUTES:
                fold.apply(read_event(message.value))
            elif message.topic is STATE:
                states.append(read_state(message.value))
    known = fold.meetings["m"]
    assert known.missing == ()
    assert known.final is not None
    document = minutes.document()
    assert document is not None
    for section in ("decisions", "action_items", "open_questions", "answered_questions"):
        assert known.section(section) == getattr(document, section)
    assert known.summary == document.summary
    assert states[-1].model_dump() == {
        name: value for name, value in document.model_dump().items() if name not in ("utterances", "slides")
    }
    return document.model_dump(exclude={"revision", "audit"})


IN_TURN = log_of(streams_of(SPOKEN), lambda _: 0)


def test_the_meeting_is_worth_its_name() -> None:
    document = folded(IN_TURN)
    assert document["decisions"]
    assert document["action_items"]
    assert document["open_questions"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_folded_minutes_do_not_depend_on_how_streams_are_interleaved(data: st.DataObject) -> None:
    log = log_of(streams_of(SPOKEN), lambda count: data.draw(st.integers(0, count - 1)))
    assert folded(log) == folded(IN_TURN)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nor_on_pieces_that_were_withdrawn_on_the_way(data: st.DataObject) -> None:
    echoes = [
        utterance(n, "Ben", TALK[n][1], id=f"echo/{n}", state=state, version=version)
        for n in data.draw(st.sets(st.sampled_from([0, 2, 3, 4])), label="heard by another microphone too")
        for state, version in (("tentative", 1), ("closed", 2), ("withdrawn", 3))
    ]
    streams = streams_of(SPOKEN)
    # A stream's own records keep their order; an echo may be withdrawn much later.
    streams.append(list(echoes))
    log = log_of(streams, lambda count: data.draw(st.integers(0, count - 1)))
    assert folded(log) == folded(IN_TURN)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nor_on_when_the_meeting_learnt_who_was_there(data: st.DataObject) -> None:
    people: AnyRecord = control(
        AttendeesChanged(meeting_id="m", attendees=(*STARTED.attendees, AttendeeInfo(name="Dora")))
    )
    streams = [*streams_of(SPOKEN), [people]]
    log = log_of(streams, lambda count: data.draw(st.integers(0, count - 1)))
    early = [log[0], people, *(r for r in IN_TURN[1:])]
    assert folded(log) == folded(early)


# The fold itself


# The other promise: the same log gives the same bytes, however much of it is read at once


def written(log: Sequence[AnyRecord], sizes: Callable[[], int]) -> list[tuple[str, bytes]]:
    """Every message of the minutes flow, where each step reads a batch of the log before the next one does."""
    align, drafting = Align(AlignSettings()), Drafting(RuleEngine())
    verifier, deliver = Verifier(rules=default_rules()), Deliver(VERSIONS, OpenKeys())
    values = [Received("minuted.timeline", 0, n, 0, False, record.to_bytes()) for n, record in enumerate(log)]
    out: list[tuple[str, bytes]] = []
    while values:
        size = sizes()
        batch, values = values[:size], values[size:]
        drafted = drafting.on_batch(align.on_batch([*batch]))
        out += [(m.topic.name, m.value) for m in deliver.on_batch([judge(verifier, d) for d in drafted])]
    return out


def restless() -> list[list[AnyRecord]]:
    """The meeting with all that changes utterances after they were read: withdrawals, and clocks found out late."""
    streams = streams_of(SPOKEN)
    for stream, record in zip(streams, SPOKEN[:3], strict=False):
        echo = record.model_copy(
            update={"id": f"{record.id}/echo", "text": "Carla will paint the door by Friday."}
        )
        stream[3:3] = [echo, echo.model_copy(update={"state": "withdrawn", "version": 3})]
        found = ClockRecord(
            meeting_id="m", device=record.device, number=1, from_raw_ns=-(2**63), ref_ns=0, offset_ns=S // 5,
            uncertainty_ns=1_000_000, method="online",
        )  # fmt: skip
        stream.insert(len(stream) * 2 // 3, found)
    return streams


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_bytes_do_not_depend_on_how_much_of_the_log_is_read_at_once(data: st.DataObject) -> None:
    turns = random.Random(data.draw(st.integers(0, 2**32)))
    log = log_of(restless(), turns.randrange)
    assert written(log, lambda: turns.choice((2, 5, 30, 200))) == written(log, lambda: 1)


def aligned(log: Sequence[AnyRecord]) -> list[Aligned]:
    step = Align(AlignSettings())
    return [out for record in log for out in step.read(record)]


def drafts(changes: Sequence[Aligned]) -> list[Drafted]:
    return Drafting(ENGINE).on_batch(list(changes))


def rounds(lists: Sequence[Sequence[AnyRecord]]) -> list[AnyRecord]:
    """Streams side by side, as in a live meeting: by the time each record tells of."""

    def when(record: AnyRecord) -> int:
        if isinstance(record, UtteranceRecord):
            return record.raw_end_ns
        if isinstance(record, MarkRecord | StreamRecord):
            return record.raw_ns
        return record.raw_start_ns if isinstance(record, SlideRecord) else 0

    mixed = sorted(itertools.chain.from_iterable(lists), key=when)
    return [control(STARTED), *mixed, END]


def test_the_end_is_a_fold_of_the_whole_meeting_from_scratch() -> None:
    changes = aligned(rounds(streams_of(SPOKEN)))
    last = drafts(changes)[-1]
    end = changes[-1]
    assert isinstance(last, Draft)
    assert isinstance(end, Ended)
    state = ENGINE.start(end.setting.context)
    for spoken in end.spoken:
        state = ENGINE.step(state, spoken)
    assert last.items == ENGINE.items(ENGINE.finish(state))
    assert last == drafts([end])[-1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Ich will den Bericht bis Freitag fertig haben, und am Montag fangen wir mit der Planung an.", True),
        ("Отчёт я пришлю в пятницу, а в понедельник начнём планировать, если все согласны с этим.", True),
        ("Je vais envoyer le rapport.", True),
        ("De acuerdo, hemos decidido cerrar la oficina.", True),
        ("会議は金曜日の午後三時から始まります。", True),
        ("I want the report by Friday, and on Monday we begin with the planning if all agree.", False),
    ],
)
def test_other_languages_are_told(text: str, told: bool) -> None:
    spoken = [utterance(n, "Anna", f"{text} {n}") for n in range(6)]
    notices = folded(log_of([[*opened("Anna"), *spoken, mark("Anna", LENGTH_S)]], lambda _: 0))["notices"]
    assert any("English" in notice for notice in cast(list[str], notices)) == told


def test_provisional_drafts_come_with_the_words() -> None:
    found = drafts(aligned(rounds(streams_of(SPOKEN))))
    stages = [d.stage for d in found if isinstance(d, Draft)]
    assert stages[0] == "provisional"
    assert stages[-1] == "final"
    assert "settled" in stages[:-1]


def test_the_same_words_closed_say_nothing_new() -> None:
    first = SPOKEN[2]
    twice = [first.model_copy(update={"state": "tentative", "version": 1}), first]
    assert len(drafts(aligned([control(STARTED), *opened("Anna"), *twice]))) == 1


def test_what_was_withdrawn_is_no_evidence_any_longer() -> None:
    gone = SPOKEN[9].model_copy(update={"state": "withdrawn", "version": 3, "text": ""})
    settled = [mark(name, 100) for name in ("Anna", "Ben", "Carla")]
    streams = [opened(name) for name in ("Anna", "Ben", "Carla")]
    log: list[AnyRecord] = [control(STARTED), *itertools.chain(*streams), *SPOKEN[9:10], *settled, gone]
    minutes = MinutesOfLog(VERSIONS)
    events = [
        read_event(m.value) for record in log for m in minutes.read(record.to_bytes()) if m.topic is MINUTES
    ]
    fold = MinutesFold()
    fold.apply_all(events)
    assert fold.meetings["m"].section("decisions") == ()
    assert any(event.type == "item_withdrawn" for event in events)


def test_decisions_of_people_are_passed_on() -> None:
    rejected = Correction(meeting_id="m", correction_id="c", item_id="x", action="reject", by="Anna")
    out = drafts(aligned([*IN_TURN, control(rejected)]))
    assert isinstance(out[-2], Decided)
    assert isinstance(out[-1], Draft)
    assert out[-1] == out[-3]  # the whole meeting once more, as it was


# State


LIVE: list[AnyRecord | Fence] = [Fence(run=0, shard=0), *rounds(streams_of(SPOKEN))]


@pytest.mark.parametrize("cut", range(2, len(LIVE) - 1, 5))
def test_a_snapshot_anywhere_goes_on_the_same(tmp_path: Path, cut: int) -> None:
    changes = aligned(LIVE[1:])  # type: ignore[arg-type]
    cut = min(cut, len(changes) - 1)
    stores = Stores(tmp_path, "minutes", ("understand",))
    store = stores.step(0, "understand")
    store.roll_back(None)
    first, second = Drafting(ENGINE), Drafting(ENGINE)
    first.open(store)
    store.begin(proved=True)
    out = first.on_batch(changes[:cut])
    first.save(store)
    marker = store.marker()
    store.begin(proved=True)
    first.on_batch(changes[cut:])  # goes on, saves, and is killed
    first.save(store)
    store.roll_back(marker)
    second.open(store)
    out += second.on_batch(changes[cut:])
    assert out == drafts(changes)
    stores.close()


def test_nothing_of_a_purged_meeting_comes_back_with_it(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "minutes", ("understand",))
    store = stores.step(0, "understand")
    store.roll_back(None)
    step = Drafting(ENGINE)
    step.open(store)
    store.begin(proved=True)
    step.on_batch(aligned(IN_TURN))
    step.save(store)
    assert list(store.scan())
    store.begin(proved=True)
    purged = aligned([*IN_TURN, control(MeetingPurged(meeting_id="m"))])[-1:]
    step.on_batch([*purged, *aligned([control(STARTED), *opened("Anna"), SPOKEN[0]])])
    step.save(store)
    kept = b"".join(value for _, value in store.scan())
    assert TALK[0][1].encode() in kept
    assert TALK[4][1].encode() not in kept
    stores.close()
