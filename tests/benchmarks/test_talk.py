"""Invented meetings, their messages, and which event belongs to which utterance."""

import itertools
import json
from typing import Any

import pytest

from benchmarks.flood import first_events_ms, plan
from benchmarks.rooms import invented_talk, meeting_ids, spoken_room, transcript_room
from benchmarks.talk import event_times_ms, in_turn, lines_of
from benchmarks.watching import Seen
from contracts.messages import CONTROL_MESSAGE, DEVICE_MESSAGE, TranscriptMessage
from contracts.topics import CONTROL, MINUTES, TRANSCRIPT, partition_of
from flows.latency import TrueUtterance

START = 1_000_000_000_000


def said(number: int) -> TrueUtterance:
    """Utterance that ends one second after it began, every two seconds."""
    return TrueUtterance(f"u{number}", "Anna", 2.0 * number, 2.0 * number + 1.0, "Yes.")


def event(end_s: float, seen_ms: float, **change: Any) -> Seen:
    """A minutes event whose evidence ends at a moment."""
    message = {
        "type": "item_added", "meeting_id": "m", "stage": "provisional",
        "item": {"evidence": [{"kind": "speech", "end_s": end_s}]},
    }  # fmt: skip
    return Seen(MINUTES, json.dumps(message | change).encode(), round(seen_ms * 1e6), 0)


def test_talk_follows_from_its_seed() -> None:
    assert invented_talk(4, 50) == invented_talk(4, 50)
    assert invented_talk(4, 50) != invented_talk(5, 50)


def test_talk_is_in_order_and_hardly_repeats_itself() -> None:
    talk = invented_talk(1, 400)
    assert all(a.end_s < b.start_s for a, b in itertools.pairwise(talk))
    assert len({u.text for u in talk}) > 250


def test_meetings_have_shards_of_their_own_as_far_as_there_are_any() -> None:
    ids = meeting_ids("x", 6, 4)
    assert len(set(ids)) == 6
    assert len({partition_of(name, 4) for name in ids[:4]}) == 4


def test_lines_are_what_the_contract_says() -> None:
    lines = lines_of("m", invented_talk(1, 3), START)
    assert [line.topic for line in lines] == [
        CONTROL,
        TRANSCRIPT,
        TRANSCRIPT,
        TRANSCRIPT,
        TRANSCRIPT,
        CONTROL,
    ]
    assert [line.spoken for line in lines] == [None, 0, 1, 2, None, None]
    for line in lines:
        adapter = CONTROL_MESSAGE if line.topic is CONTROL else DEVICE_MESSAGE
        assert adapter.validate_json(line.value).meeting_id == "m"
    first = DEVICE_MESSAGE.validate_json(lines[1].value)
    assert isinstance(first, TranscriptMessage)
    assert first.timestamp_ns == START + 1_000_000_000


def test_meetings_take_turns() -> None:
    a, b = lines_of("a", invented_talk(1, 1), START), lines_of("b", invented_talk(1, 2), START)
    assert [line.meeting for line in in_turn([a, b])] == ["a", "b"] * 4 + ["b"]


def test_an_event_belongs_to_the_utterance_with_which_its_evidence_ends() -> None:
    truth = {"m": [said(n) for n in range(4)]}
    sent = {("m", n): n * 1_000_000 for n in range(4)}
    assert event_times_ms([event(3.0, 11.0)], truth, sent) == [pytest.approx(10.0)]


@pytest.mark.parametrize(
    "other",
    [
        event(3.0, 90.0),  # the same utterance once more
        event(1.0, 90.0),  # changed by what was said later
        event(5.0, 90.0, stage="settled"),
        event(4.5, 90.0),  # ends with no utterance
        event(5.0, 90.0, meeting_id="another"),
        Seen(
            MINUTES, json.dumps({"type": "summary", "meeting_id": "m", "stage": "provisional"}).encode(), 1, 0
        ),
    ],
)
def test_events_without_a_cause_of_their_own_are_left_out(other: Seen) -> None:
    truth = {"m": [said(n) for n in range(4)]}
    sent = {("m", n): n * 1_000_000 for n in range(4)}
    assert event_times_ms([event(3.0, 11.0), other], truth, sent) == [pytest.approx(10.0)]


def test_an_event_of_a_flood_is_timed_from_the_utterance_before_it() -> None:
    sent = {("m", n): n * 4_000_000_000 for n in range(3)}
    seen = [
        event(1.0, 4_020.0),  # about the first utterance, but made known by the second
        event(3.0, 4_050.0),  # a second event of the same utterance
        event(5.0, 8_030.0, stage="settled"),
        event(5.0, 8_040.0),
        event(5.0, 8_040.0, meeting_id="flood"),
    ]
    assert first_events_ms(seen, {"m"}, sent) == [pytest.approx(20.0), pytest.approx(40.0)]


def test_only_the_first_meeting_floods() -> None:
    sent, others = plan(("a", "b", "c"), seconds=8.0, times=10.0, seed=1)
    spoken = {m: [at for at, line in sent if line.meeting == m and line.spoken is not None] for m in "abc"}
    assert {meeting: len(times) for meeting, times in spoken.items()} == {"a": 20, "b": 2, "c": 2}
    assert set(others) == {"b", "c"}
    assert [at for at, _ in sent] == sorted(at for at, _ in sent)
    assert spoken["b"][1] - spoken["b"][0] == pytest.approx(4.0)


def test_a_transcript_of_any_kind_becomes_a_room_of_words(tmp_path: Any) -> None:
    source = transcript_room(tmp_path / "a", invented_talk(7, 5), {"title": "Garden"})
    room = spoken_room(source.path, tmp_path / "b")
    assert [(u.speaker, u.text) for u in room.truth] == [(u.speaker, u.text) for u in source.truth]
    assert [u.end_s for u in room.truth] == pytest.approx([u.end_s for u in source.truth])
