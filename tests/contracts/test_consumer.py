"""The fold of minutes: repetition, order and the point where reading starts make no difference."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts import examples
from contracts.consumer import SECTIONS, Meeting, MinutesFold, UnknownEvent, read_event, read_state
from contracts.minutes import (
    ActionItem,
    AnyEvent,
    Item,
    ItemAdded,
    ItemChanged,
    ItemWithdrawn,
    MeetingFinal,
    MinutesState,
    Review,
    SummaryChanged,
    SummarySentence,
)  # fmt: skip

STATE = examples.messages()["minutes_state"]
assert isinstance(STATE, MinutesState)


def item(name: str, text: str, section: str) -> Item:
    body: dict[str, Any] = {
        "id": name, "text": text, "confidence": 0.5, "origin": "rules", "verdict": "pass", "evidence": (),
    }  # fmt: skip
    return (
        ActionItem(**body, owner=None, due=None, due_text=None) if section == "action_items" else Item(**body)
    )


@st.composite
def histories(draw: st.DrawFn, meeting: str = "m", generation: int = 1) -> list[AnyEvent]:
    """Events of one meeting as they were published, revisions 1, 2, 3 …"""
    events: list[AnyEvent] = []
    for revision in range(1, draw(st.integers(1, 14)) + 1):
        at: dict[str, Any] = {
            "meeting_id": meeting, "generation": generation, "revision": revision, "stage": "settled",
        }  # fmt: skip
        name, section = draw(st.sampled_from("abc")), draw(st.sampled_from(SECTIONS))
        kind = draw(st.sampled_from(["put", "put", "put", "withdraw", "summary", "final"]))
        if kind == "put":
            placed: Any = {"section": section, "item": item(name, f"{name}{revision}", section)}
            events.append(ItemAdded(**at, **placed) if draw(st.booleans()) else ItemChanged(**at, **placed))
        elif kind == "withdraw":
            events.append(ItemWithdrawn(**at, section=section, item_id=name, reason="taken back"))
        elif kind == "summary":
            sentence = SummarySentence(text=f"summary {revision}", evidence=())
            events.append(SummaryChanged(**at, summary=(sentence,)))
        else:
            events.append(
                MeetingFinal(
                    **at,
                    duration_s=1.0,
                    counts={},
                    review=Review(waiting=0),
                    notices=(),
                    document_sha256="0" * 64,
                )
            )
    return events


def folded(events: list[AnyEvent]) -> MinutesFold:
    fold = MinutesFold()
    fold.apply_all(events)
    return fold


def shown(meeting: Meeting) -> tuple[object, ...]:
    """All that a program sees of a meeting."""
    sections = tuple(meeting.section(name) for name in SECTIONS)
    return meeting.generation, meeting.revision, meeting.missing, sections, meeting.summary, meeting.final


def document(events: list[AnyEvent]) -> MinutesState:
    """The document that a writer would publish after these events, folded by other means than the fold."""
    sections: dict[str, dict[str, Item]] = {name: {} for name in SECTIONS}
    summary: tuple[SummarySentence, ...] = ()
    for event in events:
        if isinstance(event, ItemAdded | ItemChanged | ItemWithdrawn):
            name = event.item_id if isinstance(event, ItemWithdrawn) else event.item.id
            for placed in sections.values():
                placed.pop(name, None)
            if not isinstance(event, ItemWithdrawn):
                sections[event.section][name] = event.item
        elif isinstance(event, SummaryChanged):
            summary = event.summary
    last = events[-1]
    lists = {name: tuple(placed.values()) for name, placed in sections.items()}
    update = {
        "meeting_id": last.meeting_id, "generation": last.generation, "revision": last.revision,
        "summary": summary,
    }  # fmt: skip
    assert isinstance(STATE, MinutesState)
    return STATE.model_copy(update=update | lists)


@given(histories(), st.randoms(use_true_random=False))
def test_repeated_and_shuffled_events_fold_to_the_same(events: list[AnyEvent], chance: Any) -> None:
    plain = folded(events).meetings["m"]
    assert plain.missing == ()
    again = [*events, *chance.choices(events, k=len(events)), *events[chance.randrange(len(events)) :]]
    assert folded(again).meetings["m"] == plain
    chance.shuffle(again)
    assert shown(folded(again).meetings["m"]) == shown(plain)


@given(histories(), st.data())
def test_a_document_read_at_any_point_changes_nothing(events: list[AnyEvent], data: st.DataObject) -> None:
    plain = shown(folded(events).meetings["m"])
    contained = data.draw(st.integers(1, len(events)), label="events in the document")
    first = data.draw(st.integers(0, contained), label="first event read")
    load_after = data.draw(st.integers(0, len(events) - first), label="events read before the document")
    rest = events[first:]
    fold = folded(rest[:load_after])
    state = read_state(document(events[:contained]).to_bytes())
    assert fold.load(state) == "applied"
    assert fold.load(state) == "known"
    fold.apply_all(rest[load_after:])
    fold.apply_all(events)
    assert shown(fold.meetings["m"]) == plain


@given(histories(generation=1), histories(generation=2), st.randoms(use_true_random=False))
def test_a_newer_generation_replaces_an_older_one(
    old: list[AnyEvent], new: list[AnyEvent], chance: Any
) -> None:
    mixed = [*old, *new]
    chance.shuffle(mixed)
    assert shown(folded(mixed).meetings["m"]) == shown(folded(new).meetings["m"])


@given(histories(), st.data())
def test_gaps_are_named_and_close(events: list[AnyEvent], data: st.DataObject) -> None:
    left_out = data.draw(st.sets(st.integers(1, len(events))))
    fold = folded([event for event in events if event.revision not in left_out])
    if fold.meetings:
        known = fold.meetings["m"]
        expected = {revision for revision in left_out if revision < known.revision}
        assert {revision for gap in known.missing for revision in gap} == expected
    fold.apply_all(events)
    assert shown(fold.meetings["m"]) == shown(folded(events).meetings["m"])


def test_apply_says_whether_anything_was_new() -> None:
    fold = MinutesFold()
    added = examples.messages()["item_added"]
    assert isinstance(added, ItemAdded)
    assert fold.apply(added) == "applied"
    assert fold.apply(added) == "known"
    ahead = examples.messages()["item_withdrawn"]
    assert isinstance(ahead, ItemWithdrawn)
    assert fold.apply(ahead) == "applied"
    assert fold.apply(ahead) == "known"
    assert fold.meetings[examples.MEETING].missing == (range(2, 3),)
    assert fold.meetings[examples.MEETING].action_items == (added.item,)


def test_golden_events_are_read() -> None:
    for name in ("item_added", "item_changed", "item_withdrawn", "summary", "final"):
        example = examples.messages()[name]
        assert read_event(example.to_bytes()) == example


def test_an_event_of_a_later_version_counts_as_a_revision() -> None:
    value = json.loads(examples.messages()["summary"].to_bytes()) | {"type": "mood", "revision": 1}
    event = read_event(json.dumps(value).encode())
    assert isinstance(event, UnknownEvent)
    fold = MinutesFold()
    assert fold.apply(event) == "applied"
    assert fold.meetings[examples.MEETING].revision == 1
    assert fold.meetings[examples.MEETING].missing == ()


@pytest.mark.parametrize("read", [read_event, read_state])
@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"\xff", b'{"type":"final"}', b"[" * 9_999])
def test_bytes_that_are_no_minutes_are_refused(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(ValidationError):
        read(data)


def test_final_holds_until_something_changes() -> None:
    fold, final = MinutesFold(), examples.messages()["final"]
    assert isinstance(final, MeetingFinal) and isinstance(STATE, MinutesState)
    fold.load(STATE)
    assert fold.meetings[STATE.meeting_id].final is None
    assert fold.apply(final) == "known"
    assert fold.meetings[STATE.meeting_id].final == final
    sentence = SummarySentence(text="corrected", evidence=())
    later = SummaryChanged(
        meeting_id=STATE.meeting_id, generation=1, revision=6, stage="final", summary=(sentence,)
    )
    assert fold.apply(later) == "applied"
    assert fold.meetings[STATE.meeting_id].final is None
