"""The live view: what it knows after which messages, how it draws, and that a real broker feeds it."""

from __future__ import annotations

import datetime as dt
import io
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Literal

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from contracts.base import Message
from contracts.messages import AttendeeInfo, MeetingStarted, PartialText
from contracts.minutes import (
    ActionItem,
    AnyEvent,
    Evidence,
    Item,
    ItemAdded,
    ItemChanged,
    ItemWithdrawn,
    MeetingFinal,
    Review,
)
from contracts.timeline import (
    ClockRecord,
    ControlRecord,
    EndedRecord,
    Fence,
    GapRecord,
    MarkRecord,
    NoticeRecord,
    SlideRecord,
    UtteranceRecord,
)
from contracts.topics import MINUTES, PARTIALS, TIMELINE, TopicNames
from flows.brokers import EmbeddedBroker
from flows.live_screen import screen
from flows.live_view import LiveView
from flows.watch import run_view, watch
from operators.broker.kafka_link import BrokerLink, create_topics

SECOND = 1_000_000_000
ZERO = 1_780_000_000 * SECOND
OFFSET = 3 * SECOND
"""The device's clock is so far ahead of the timeline."""
Fed = tuple[str, bytes]


def log(record: Message) -> Fed:
    return TIMELINE.name, record.to_bytes()


def started(meeting: str = "m", title: str = "Spring sale") -> Fed:
    people = (AttendeeInfo(name="Anna Berg", speaker="a"), AttendeeInfo(name="Ben", speaker="b"))
    control = MeetingStarted(meeting_id=meeting, start_ns=ZERO, title=title, attendees=people)
    return log(ControlRecord(meeting_id=meeting, control=control, source="implicit"))


def clock() -> Fed:
    return log(
        ClockRecord(
            meeting_id="m", device="mic", number=0, from_raw_ns=0, ref_ns=0, offset_ns=OFFSET, uncertainty_ns=0,
            method="stored",
        )
    )  # fmt: skip


def utterance(
    name: str, at_s: float, text: str, speaker: str | None = "a",
    state: Literal["tentative", "closed", "withdrawn"] = "closed", meeting: str = "m",
) -> Fed:  # fmt: skip
    start = ZERO + OFFSET + int(at_s * SECOND)
    return log(
        UtteranceRecord(
            meeting_id=meeting, id=name, version=0, state=state, stream="mic/audio", device="mic", clock=0,
            raw_start_ns=start, raw_end_ns=start + 2 * SECOND, mark_ns=start, speaker=speaker, text=text,
            source="recogniser", sampling_ms=0, boundary_ms=0,
        )
    )  # fmt: skip


def partial(name: str, text: str, speaker: str = "a") -> Fed:
    said = PartialText(meeting_id="m", piece_id=name, version=0, speaker=speaker, device="mic",
                       start_ns=ZERO, end_ns=ZERO, text=text)  # fmt: skip
    return PARTIALS.name, said.to_bytes()


def slide(at_s: float, text: str) -> Fed:
    start = ZERO + OFFSET + int(at_s * SECOND)
    return log(
        SlideRecord(meeting_id="m", id=f"s{at_s}", stream="cam/video", device="mic", clock=0, raw_start_ns=start,
                    mark_ns=start, text=text, sampling_ms=33)
    )  # fmt: skip


def evidence(at_s: float) -> tuple[Evidence, ...]:
    return (Evidence(kind="speech", start_s=at_s, end_s=at_s + 1, device="mic", speaker="a", quote="x",
                     error_ms=0, sampling_ms=0, boundary_ms=0),)  # fmt: skip


def decision(text: str, at_s: float = 5, name: str = "d") -> Item:
    return Item(id=name, text=text, confidence=0.9, origin="rules", verdict="pass", evidence=evidence(at_s))


def action(text: str, name: str = "a1", owner: str | None = "Ben", doubtful: bool = False) -> ActionItem:
    return ActionItem(
        id=name, text=text, confidence=0.9, origin="rules", verdict="review" if doubtful else "pass",
        evidence=evidence(65), owner=owner, due=dt.date(2026, 3, 13), due_text="by Friday",
    )  # fmt: skip


def event(kind: type[AnyEvent], revision: int, **fields: object) -> Fed:
    whole = {"meeting_id": "m", "generation": 0, "revision": revision, "stage": "provisional", **fields}
    return MINUTES.name, kind.model_validate(whole).to_bytes()


def final(revision: int) -> Fed:
    return event(
        MeetingFinal, revision, duration_s=90, counts={"decisions": 1}, review=Review(waiting=0), notices=(),
        document_sha256="0" * 64,
    )  # fmt: skip


def fed(view: LiveView, messages: Iterable[Fed]) -> list[str]:
    return [line for topic, value in messages for line in view.feed(topic, value)]


def drawn(view: LiveView, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(screen(view, width, height), end="")
    return captured.get().rstrip("\n").split("\n")


STORY = [
    started(),
    clock(),
    slide(1, "Sale\nBudget 12,000"),
    partial("u1", "Let us open"),
    utterance("u1", 4, "Let us open in May.", state="tentative"),
    utterance("u1", 4, "Let us open in May."),
    event(ItemAdded, 1, section="decisions", item=decision("Open in May")),
    partial("u2", "I will send", "b"),
    event(ItemAdded, 2, section="action_items", item=action("Send the list")),
    event(
        ItemChanged, 3, section="action_items", item=action("Send the whole list", owner=None, doubtful=True)
    ),
]


def test_the_lines_of_a_meeting() -> None:
    assert fed(LiveView(), STORY) == [
        "Meeting Spring sale with Anna Berg, Ben",
        "[00:01] Slide: Sale / Budget 12,000",
        "[00:04] Anna Berg: Let us open in May.",
        "+ Decision (00:05) Open in May",
        "+ Action (01:05) Send the list | owner: Ben | due: Friday 13 March 2026 (“by Friday”)",
        "~ Action (01:05) Send the whole list | owner: not named | due: Friday 13 March 2026 (“by Friday”) "
        "| please check",
    ]


def test_a_change_that_no_line_shows_is_not_told() -> None:
    view = LiveView()
    fed(view, STORY)
    surer = decision("Open in May").model_copy(update={"confidence": 0.97})
    assert fed(view, [event(ItemChanged, 4, section="decisions", item=surer)]) == []
    assert [item.confidence for item in view.items("decisions")] == [0.97]


def test_the_end_of_a_meeting() -> None:
    view = LiveView()
    fed(view, STORY)
    gone = event(ItemWithdrawn, 4, section="decisions", item_id="d", reason="taken back in the meeting")
    over = log(EndedRecord(meeting_id="m", reason="control", end_ns=ZERO + 90 * SECOND))
    assert fed(view, [gone, over]) == [
        "- Decision (00:05) Open in May (taken back in the meeting)",
        "[01:30] The meeting is over, the minutes are being finished",
    ]
    finished = [view.finished]
    assert fed(view, [final(5), final(5)]) == [
        "= Final minutes after 01:30: 1 decision, 0 action items, 0 open questions, 0 answered questions"
    ]
    finished.append(view.finished)
    fed(view, [event(ItemAdded, 6, section="decisions", item=decision("Late", name="late"))])
    assert [*finished, view.finished] == [False, True, False]


def test_partial_text_gives_way_to_what_was_understood() -> None:
    view = LiveView()
    fed(view, [started(), partial("u1", "Let us"), partial("u2", "Yes", "b"), partial("u1", "Let us open")])
    assert view.meeting is not None
    assert {s.text for s in view.meeting.speaking.values()} == {"Let us open", "Yes"}
    fed(view, [utterance("u1", 4, "Let us open in May."), partial("u1", "Let us open in")])
    assert {s.text for s in view.meeting.speaking.values()} == {"Yes"}
    fed(view, [utterance("u2", 5, "", "b", state="withdrawn")])
    assert view.meeting.speaking == {}


def test_times_are_those_of_the_corrected_clock() -> None:
    view = LiveView()
    mark = MarkRecord(meeting_id="m", stream="mic/audio", raw_ns=ZERO + OFFSET + 30 * SECOND)
    unknown = MarkRecord(meeting_id="m", stream="other/audio", raw_ns=ZERO + 999 * SECOND)
    fed(view, [started(), clock(), log(mark), log(unknown)])
    assert view.meeting is not None
    assert view.meeting.elapsed_s == 30


def test_times_count_from_the_first_start_that_was_told() -> None:
    view = LiveView("m")
    again = MeetingStarted(meeting_id="m", start_ns=ZERO + 60 * SECOND, title="Spring sale")
    messages = [started(), clock(), log(ControlRecord(meeting_id="m", control=again, source="x"))]
    for message in messages:
        view.feed(*message)
    assert view.feed(*utterance("u", 65, "Back again.")) == ["[01:05] Anna Berg: Back again."]


def test_gaps_and_notices_are_told() -> None:
    gap = GapRecord(meeting_id="m", stream="mic/audio", device="mic", clock=0, raw_start_ns=ZERO + OFFSET,
                    raw_end_ns=ZERO, what="silent_device")  # fmt: skip
    notice = NoticeRecord(meeting_id="m", code="model", text="No model,\nrules are used.")
    lines = fed(LiveView(), [started(), clock(), log(gap), log(notice)])
    assert lines[1:] == ["[00:00] Gap on mic/audio: silent device", "Notice: No model, rules are used."]


def test_one_meeting_is_followed_until_it_is_final() -> None:
    view = LiveView()
    assert fed(view, [started("m"), utterance("x", 1, "Elsewhere.", meeting="other")]) == [
        "Meeting Spring sale with Anna Berg, Ben"]  # fmt: skip
    fed(view, [final(1), utterance("x", 1, "Elsewhere.", meeting="other")])
    assert view.meeting is not None
    assert view.meeting.meeting_id == "other"
    chosen = LiveView("m")
    assert fed(chosen, [started("other"), utterance("x", 1, "Elsewhere.", meeting="other")]) == []


@pytest.mark.parametrize(
    "value", [b"", b"MNTD\x00binary", b"{", b"{}", b"[1]", b'{"type":"mark"}', b"\xff\xfe"]
)
@pytest.mark.parametrize("topic", [TIMELINE.name, PARTIALS.name, MINUTES.name, "minuted.unknown"])
def test_what_cannot_be_read_changes_nothing(topic: str, value: bytes) -> None:
    view = LiveView()
    assert view.feed(topic, value) == []
    assert view.feed(*log(Fence(run=1, shard=0))) == []
    assert view.meeting is None


@settings(deadline=None, max_examples=40)
@given(
    st.permutations([*STORY, final(4), clock(), utterance("u9", 9, "More.", None)]),
    st.integers(20, 150),
    st.integers(6, 50),
)
def test_messages_in_any_order_can_be_shown(messages: list[Fed], width: int, height: int) -> None:
    view = LiveView()
    fed(view, [*messages, *messages])
    assert view.finished or view.meeting is not None
    assert len(drawn(view, width, height)) <= max(height, 8)


HOSTILE = "\x1b[2J\x1b]0;owned\x07red\x1b[31m \u202eevil \x9b31m[bold red]x[/]"


def test_no_text_reaches_the_terminal_as_a_command() -> None:
    view = LiveView()
    messages = [
        started(title=HOSTILE), clock(), slide(1, HOSTILE), utterance("u", 2, HOSTILE, speaker=HOSTILE),
        partial("p", HOSTILE, HOSTILE), event(ItemAdded, 1, section="action_items", item=action(HOSTILE, owner=HOSTILE)),
    ]  # fmt: skip
    lines = fed(view, messages)
    shown = "\n".join(lines + drawn(view, 100, 30))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "owned" not in shown
    assert "[bold red]x[/]" in shown


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (110, 12), (60, 14), (40, 10)])
def test_the_screen_fills_the_terminal_and_no_more(width: int, height: int) -> None:
    view = LiveView(expected_s=90)
    fed(view, STORY)
    many = [
        event(
            ItemAdded,
            4 + n,
            section="open_questions",
            item=decision(f"What about {n} " + "and more " * 20, n, f"q{n}"),
        )
        for n in range(30)
    ]
    fed(view, many)
    fed(view, [utterance(f"v{n}", 10 + n, "Words " * 30) for n in range(30)])
    lines = drawn(view, width, height)
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)


def test_the_screen_shows_who_speaks_the_slide_and_the_minutes() -> None:
    view = LiveView(expected_s=90)
    fed(view, STORY)
    for width in (80, 140):
        text = "\n".join(drawn(view, width, 30))
        for expected in ("Spring sale", "Anna Berg: Let us open in May.", "Ben: I will send …", "Budget 12,000",
                         "Decisions (1)", "05 Open in May", "owner not named", "please check", "/ 01:30", "live"):  # fmt: skip
            assert expected in text


def test_an_empty_view_says_that_it_waits() -> None:
    assert "Waiting for a meeting" in "\n".join(drawn(LiveView(), 80, 24))


def script(messages: Iterable[Fed]) -> Iterator[list[Fed]]:
    for message in messages:
        yield [message]


def test_without_a_terminal_every_event_is_a_plain_line() -> None:
    steps = script([*STORY, final(4)])
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=20)
    run_view(LiveView(), lambda: next(steps), console, until_final=True, last_lines=lambda: ["text 200 ms"])
    lines = out.getvalue().splitlines()
    assert lines[2] == "[00:04] Anna Berg: Let us open in May."
    assert lines[-1] == "text 200 ms"
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_the_minutes_stay_when_the_screen_goes() -> None:
    steps = script([*STORY, final(4)])
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24)
    run_view(LiveView(), lambda: next(steps), console, until_final=True, last_lines=lambda: ["text 200 ms"])
    on, off = out.getvalue().index("\x1b[?1049h"), out.getvalue().index("\x1b[?1049l")
    assert on < off
    rest = out.getvalue()[off:]
    assert "final minutes" in rest
    assert "Open in May" in rest
    assert rest.rstrip().endswith("text 200 ms")


def test_the_view_stops_when_told() -> None:
    stops = iter([False, True])
    out = Console(file=io.StringIO(), force_terminal=False)
    run_view(LiveView(), list, out, stop=lambda: next(stops))


def test_a_meeting_is_watched_through_a_broker(embedded_broker: EmbeddedBroker, topic_prefix: str) -> None:
    names = TopicNames(topic_prefix, 2)
    create_topics(BrokerLink(embedded_broker.bootstrap, names))
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap})
    for topic, value in [*STORY, final(4)]:
        producer.produce(topic_prefix + topic, value, key=b"m", partition=names.partition("m"))
    assert producer.flush(20) == 0
    out = io.StringIO()
    patience = threading.Event()
    timer = threading.Timer(20, patience.set)
    timer.start()
    watch(embedded_broker.bootstrap, names, "m", embedded_broker.client_overrides, patience.is_set, True,
          Console(file=out, force_terminal=False))  # fmt: skip
    timer.cancel()
    assert not patience.is_set()
    assert "[00:04] Anna Berg: Let us open in May." in out.getvalue()
    assert "= Final minutes" in out.getvalue()
