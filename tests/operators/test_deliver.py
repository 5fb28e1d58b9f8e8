"""The ledger: revisions without gaps, the same inputs give the same bytes, events fold to the document."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.audit import SealedEntry
from contracts.consumer import MinutesFold, read_event
from contracts.messages import Correction
from contracts.minutes import ActionItem, AuditEntry, MinutesState, ReviewRequest, Stage, Versions
from contracts.topics import AUDIT, MINUTES, REVIEW, STATE
from operators.broker.sink import Outgoing
from operators.deliver.document import SECTIONS, item_sha256
from operators.deliver.keys import MeetingKey
from operators.deliver.ledger import MeetingLedger
from operators.deliver.trail import opened
from operators.understand.types import (
    Attendee,
    DraftItem,
    Kind,
    MeetingContext,
    Quote,
    Spoken,
    SummarySentence,
)
from operators.verify.check import verify
from operators.verify.evidence import speech_evidence
from operators.verify.types import Draft, Stretch

SECOND = 1_000_000_000
KEY = MeetingKey(bytes(range(64)))
VERSIONS = Versions(product="0.1.0", model=None, rules="1", contract="1")
CONTEXT = MeetingContext("Sale", dt.date(2026, 3, 10), (Attendee("Anna", "a"), Attendee("Ben", "b")))
TEXTS = (
    "I will send the list.",
    "Let us open in May.",
    "Who pays for the tent?",
    "We pay.",
    "No, let us not.",
)
SAID = {
    f"u{n}": Spoken(f"u{n}", n * SECOND, (n + 1) * SECOND, "ab"[n % 2], text, "mic")
    for n, text in enumerate(TEXTS)
}


def item(number: int, **changes: object) -> DraftItem:
    """An item that rests on utterance ``number``."""
    spoken = SAID[f"u{number}"]
    kinds: tuple[Kind, ...] = ("action_item", "decision", "open_question", "decision", "decision")
    base = DraftItem(
        id=f"i{number}",
        kind=kinds[number],
        text=spoken.text,
        confidence=0.9,
        owner=None,
        owner_external=False,
        due=None,
        due_text=None,
        evidence=(Quote(spoken.id, 0, len(spoken.text)),),
        withdrawn=False,
        reasons=(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def draft(stage: Stage, *items: DraftItem, until_s: int = 10, **changes: object) -> Draft:
    base = Draft(
        meeting_id="m",
        stage=stage,
        context=CONTEXT,
        until_ns=until_s * SECOND,
        items=items,
        utterances=SAID,
        duration_ns=until_s * SECOND,
        start_ns=0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def ledger() -> MeetingLedger:
    return MeetingLedger("m", VERSIONS, KEY)


def opened_audit(messages: Sequence[Outgoing]) -> list[AuditEntry]:
    """What the audit entries among messages say."""
    sealed = [SealedEntry.model_validate_json(m.value) for m in messages if m.topic == AUDIT]
    return [opened(entry, KEY) for entry in sealed]


def cases(messages: Sequence[Outgoing]) -> list[ReviewRequest]:
    return [ReviewRequest.model_validate_json(m.value) for m in messages if m.topic == REVIEW]


def play(drafts: Sequence[Draft], book: MeetingLedger | None = None) -> list[Outgoing]:
    book = book or ledger()
    return [message for one in drafts for message in book.apply(verify(one))]


def kinds(messages: Sequence[Outgoing], topic: object = MINUTES) -> list[str]:
    return [m.kind for m in messages if m.topic == topic]


@st.composite
def draft_lists(draw: st.DrawFn) -> list[Draft]:
    """Stages of a meeting in which items come, change, move, are taken back and come again."""
    drafts: list[Draft] = []
    for step in range(draw(st.integers(1, 8))):
        stage: Stage = draw(st.sampled_from(("provisional", "provisional", "settled", "final")))
        items = []
        for number in sorted(draw(st.sets(st.integers(0, 4)))):
            made = item(number)
            made = replace(
                made,
                confidence=draw(st.sampled_from((0.3, 0.9))),
                withdrawn=draw(st.booleans()) and draw(st.booleans()),
                kind="answered_question" if number == 2 and draw(st.booleans()) else made.kind,
                evidence=made.evidence if draw(st.integers(0, 5)) else (),
                owner=draw(st.sampled_from((None, "Anna", "Ben"))) if number == 0 else None,
            )
            items.append(made)
        summary = (
            (SummarySentence(TEXTS[1], (Quote("u1", 0, len(TEXTS[1])),)),) if draw(st.booleans()) else ()
        )
        until = max(1, step - draw(st.integers(0, 2)))
        drafts.append(draft(stage, *items, until_s=until, summary=summary))
    return [*drafts, draft("final", *(item(n) for n in draw(st.sets(st.integers(0, 4)))), until_s=20)]


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_revisions_have_no_gaps_and_the_fold_of_events_is_the_document(drafts: list[Draft]) -> None:
    book = ledger()
    messages = play(drafts, book)
    events = [read_event(m.value) for m in messages if m.topic == MINUTES]
    assert [e.revision for e in events] == list(range(1, len(events) + 1))
    fold = MinutesFold()
    fold.apply_all(events)
    state = book.state()
    for section in SECTIONS:
        assert fold.meetings["m"].section(section) == getattr(state, section)
    assert fold.meetings["m"].summary == state.summary
    assert fold.meetings["m"].final is not None
    assert state.revision == len(events)


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_a_replay_gives_the_same_bytes_wherever_it_was_interrupted(drafts: list[Draft]) -> None:
    straight = play(drafts)
    book = ledger()
    pieces: list[Outgoing] = []
    for one in drafts:
        book = pickle.loads(pickle.dumps(book))
        book.unlock(KEY)
        pieces += play([one], book)
    assert pieces == straight


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_the_end_depends_on_the_final_draft_alone(drafts: list[Draft]) -> None:
    played, fresh = ledger(), ledger()
    play(drafts, played)
    play(drafts[-1:], fresh)
    # How often minutes changed on the way shows in the numbers of revisions and audit entries alone.
    apart = {"revision": 0, "audit": None}
    assert played.state().model_copy(update=apart) == fresh.state().model_copy(update=apart)


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_what_is_known_is_not_said_again(drafts: list[Draft]) -> None:
    book = ledger()
    play(drafts, book)
    for one in (drafts[-1], drafts[-1]):
        assert play([one], book) == []


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_states_stand_for_the_events_before_them(drafts: list[Draft]) -> None:
    fold = MinutesFold()
    for message in play(drafts):
        if message.topic == MINUTES:
            fold.apply(read_event(message.value))
        if message.topic == STATE:
            state = MinutesState.model_validate_json(message.value)
            # The state goes out just before the final event that carries its checksum.
            seen = fold.meetings.get("m")
            assert state.revision - (seen.revision if seen else 0) in (0, 1)
            assert (seen.section("decisions") if seen else ()) == state.decisions


@settings(deadline=None, max_examples=60)
@given(draft_lists())
def test_a_case_is_open_exactly_while_its_item_waits(drafts: list[Draft]) -> None:
    book = ledger()
    newest: dict[str, ReviewRequest] = {}
    for one in drafts:
        for case in cases(play([one], book)):
            before = newest.get(case.request_id)
            assert case.version == (0 if before is None else before.version + 1)
            newest[case.request_id] = case
        waiting = [case for case in newest.values() if case.state == "open"]
        assert book.waiting == len(waiting)
    shown = {i.id: i for section in SECTIONS for i in getattr(book.state(), section)}
    for case in waiting:
        assert case.withheld or case.item_sha256 == item_sha256(shown[case.item_id])


def test_the_course_of_an_item() -> None:
    asked = item(2)
    answered = replace(asked, kind="answered_question")
    messages = play(
        [
            draft("provisional", asked),
            draft("provisional", asked),
            draft("settled", asked),
            draft("settled", answered),
            draft("provisional", replace(answered, withdrawn=True)),
            draft("final", answered),
        ]
    )
    assert kinds(messages) == ["item_added", "item_changed", "item_withdrawn", "item_added", "final"]
    assert json.loads(messages[3].value)["section"] == "answered_questions"
    assert kinds(messages, STATE) == ["minutes_state"] * 3


def test_a_provisional_draft_does_not_undo_what_was_settled() -> None:
    heard, settled = item(1), item(1, text="Open in May")
    book = ledger()
    play([draft("provisional", heard, until_s=3), draft("settled", settled, until_s=3)], book)
    assert play([draft("provisional", heard, until_s=4)], book) == []
    assert book.state().decisions[0].text == "Open in May"


def test_a_settled_draft_does_not_undo_what_it_has_not_read_yet() -> None:
    book = ledger()
    play([draft("provisional", item(1), until_s=3), draft("provisional", until_s=9)], book)
    play([draft("settled", item(1), until_s=5)], book)
    assert book.state().decisions == ()
    play([draft("settled", item(1), until_s=9)], book)
    assert len(book.state().decisions) == 1


def test_an_item_without_evidence_goes_to_a_person_and_not_into_the_minutes() -> None:
    book = ledger()
    messages = play([draft("settled", item(1, evidence=()))], book)
    assert kinds(messages) == []
    assert [json.loads(m.value)["withheld"] for m in messages if m.topic == REVIEW] == [True]
    assert [entry.verdict for entry in opened_audit(messages)] == ["withheld"]
    assert book.state().review.waiting == 1


def test_an_item_that_loses_its_evidence_is_withdrawn() -> None:
    messages = play([draft("provisional", item(1)), draft("settled", item(1, evidence=()))])
    assert kinds(messages) == ["item_added", "item_withdrawn"]


def test_the_final_event_carries_the_checksum_of_the_state() -> None:
    messages = play([draft("final", item(1))])
    (state,) = (m.value for m in messages if m.topic == STATE)
    final = json.loads(messages[-1].value)
    assert final["document_sha256"] == hashlib.sha256(state).hexdigest()
    assert final["counts"] == {
        "decisions": 1,
        "action_items": 0,
        "open_questions": 0,
        "answered_questions": 0,
    }
    assert json.loads(state)["revision"] == final["revision"] == 2


def test_every_change_after_a_final_is_followed_by_a_new_one() -> None:
    there_and_back = [
        draft("final", item(1)),
        draft("provisional", until_s=1),
        draft("provisional", item(1), until_s=2),
    ]
    changed = play([draft("provisional", item(1)), *there_and_back, draft("final", item(1))])
    assert kinds(changed) == ["item_added", "final", "item_withdrawn", "item_added", "final"]
    told = play([draft("final", item(1)), draft("final", item(1), notices=("The model was not used.",))])
    assert kinds(told) == ["item_added", "final", "final"]


def test_messages_of_a_meeting_share_its_key() -> None:
    messages = play([draft("final", item(1, confidence=0.2))])
    assert {m.key for m in messages if m.topic != STATE} == {b"m"}
    assert {m.key for m in messages if m.topic == STATE} == {b"m/minutes/"}


def test_a_draft_of_another_meeting_is_refused() -> None:
    with pytest.raises(ValueError, match="meeting other"):
        play([draft("final", meeting_id="other")])


def correction(**changes: object) -> Correction:
    fields = {"meeting_id": "m", "correction_id": "c1", "item_id": "i0", "action": "accept", "by": "Anna"}
    return Correction.model_validate(fields | changes)


def test_what_a_person_decides_stands_against_later_drafts() -> None:
    book = ledger()
    play([draft("final", item(0), item(1))], book)
    due = dt.date(2026, 4, 1)
    changed = book.correct(correction(action="change", text="Send the list to Ben", owner="Ben", due=due))
    rejected = book.correct(correction(correction_id="c2", item_id="i1", action="reject"))
    assert kinds(changed) == ["item_changed", "final"]
    assert kinds(rejected) == ["item_withdrawn", "final"]
    play([draft("final", item(0, confidence=0.95), item(1))], book)
    state = book.state()
    (kept,) = state.action_items
    assert (kept.text, kept.owner, kept.due, kept.origin) == ("Send the list to Ben", "Ben", due, "person")
    assert state.decisions == ()


def test_a_rejected_item_can_be_accepted_again() -> None:
    book = ledger()
    play([draft("settled", item(1))], book)
    book.correct(correction(item_id="i1", action="reject"))
    again = book.correct(correction(correction_id="c2", item_id="i1"))
    assert kinds(again) == ["item_added"]
    assert [i.origin for i in book.state().decisions] == ["person"]


def test_accepting_a_doubtful_item_settles_the_doubt() -> None:
    book = ledger()
    play([draft("settled", item(0, confidence=0.2))], book)
    assert book.state().review.waiting == 1
    messages = book.correct(correction())
    assert book.state().review.waiting == 0
    assert [entry.verdict for entry in opened_audit(messages)] == ["person"]
    assert [case.state for case in cases(messages)] == ["closed"]


def test_a_correction_of_an_item_that_reads_otherwise_by_now_is_void() -> None:
    book = ledger()
    play([draft("settled", item(0))], book)
    stale = correction(action="change", text="Something", expected_text="An older text")
    told = book.correct(stale)
    assert [(case.state, "reads otherwise" in case.reason) for case in cases(told)] == [("open", True)]
    assert [entry.verdict for entry in opened_audit(told)] == ["void"]
    assert book.correct(stale) == []
    assert book.state().action_items[0].text == TEXTS[0]
    nobody = book.correct(correction(correction_id="c2", item_id="nobody"))
    assert [entry.reasons for entry in opened_audit(nobody)] == [
        ("correction c2 by Anna does not fit: there is no such item",)
    ]


def test_an_answer_about_an_item_that_has_changed_is_reported_until_somebody_answers() -> None:
    book = ledger()
    (asked,) = cases(play([draft("settled", item(0, confidence=0.2))], book))
    play([draft("settled", item(0, confidence=0.3, text="I will send it"), until_s=11)], book)
    told = book.correct(correction(expected_sha256=asked.item_sha256))
    (case,) = cases(told)
    assert case.state == "open" and "the item has changed" in case.reason
    assert kinds(told) == []
    assert book.state().action_items[0].origin == "rules"
    play([draft("settled", item(0), until_s=12)], book)
    assert book.waiting == 1  # the answer that did not fit still waits, though the item is sure by now
    assert cases(book.correct(correction(correction_id="c2")))[-1].state == "closed"
    assert book.waiting == 0


def test_a_person_can_clear_owner_and_date() -> None:
    book = ledger()
    task = item(0, owner="Anna", due=dt.date(2026, 3, 13), due_text="send")
    play([draft("settled", task)], book)
    assert book.state().action_items[0].owner == "Anna"
    book.correct(correction(action="change", clear=("owner", "due")))
    (kept,) = book.state().action_items
    assert (kept.owner, kept.due, kept.due_text, kept.text) == (None, None, None, TEXTS[0])


def test_a_withheld_item_cannot_be_accepted_where_nothing_bears_it() -> None:
    book = ledger()
    play([draft("settled", item(1, evidence=()))], book)
    told = book.correct(correction(item_id="i1"))
    assert [entry.reasons for entry in opened_audit(told)] == [
        ("correction c1 by Anna does not fit: the item has no evidence",)
    ]
    assert kinds(told) == []


def test_a_person_can_add_what_was_missed_once() -> None:
    book = ledger()
    play([draft("final", item(1))], book)
    missed = correction(
        item_id="person/c9", action="add", section="decisions", text="We pay", utterances=("u3",)
    )
    evidence = speech_evidence(Quote("u3", 0, len(TEXTS[3])), SAID, 0)
    assert kinds(book.correct(missed, (evidence,), 3 * SECOND)) == ["item_added", "final"]
    play([draft("final", item(1), notices=("Again.",))], book)
    (_, added) = book.state().decisions
    assert (added.text, added.origin, added.evidence[0].quote) == ("We pay", "person", "We pay.")
    again = missed.model_copy(update={"correction_id": "c10"})
    assert [e.verdict for e in opened_audit(book.correct(again, (evidence,), 0))] == ["void"]
    nothing = missed.model_copy(update={"correction_id": "c11", "item_id": "person/c11"})
    assert [e.verdict for e in opened_audit(book.correct(nothing))] == ["void"]
    assert len(book.state().decisions) == 2


def test_the_document_has_people_transcript_and_slides_in_order() -> None:
    book = ledger()
    named = item(0, owner="list", owner_external=True)
    play([draft("final", named, speakers=("b", "x"), start_ns=1_773_133_237 * SECOND, zero_ns=0,
                gaps=(Stretch(SECOND, 2 * SECOND, "lost", "mic"),), notices=("A notice.",))], book)  # fmt: skip
    slides = [Stretch(5 * SECOND, 9 * SECOND, "Second"), Stretch(0, 5 * SECOND, "First")]
    document = book.document(reversed(list(SAID.values())), slides, 0)
    assert [(a.name, a.external) for a in document.attendees] == [
        ("Anna", False), ("Ben", False), ("x", False), ("list", True)]  # fmt: skip
    assert [u.id for u in document.utterances] == sorted(SAID)
    assert [s.text for s in document.slides] == ["First", "Second"]
    assert document.started == dt.datetime(2026, 3, 10, 9, 0, tzinfo=dt.UTC)
    assert (document.gaps[0].start_s, document.notices) == (1.0, ("A notice.",))
    assert isinstance(document.action_items[0], ActionItem)
