"""Properties of the fold: any text in any order, nothing invented, equal sequences give equal items."""

from __future__ import annotations

import datetime as dt
import pickle
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.summary import MAX_SUMMARY_WORDS, summary
from operators.understand.engine import (
    Attendee,
    DraftItem,
    MeetingContext,
    RuleEngine,
    Spoken,
    State,
    UnderstandSettings,
)

PEOPLE = (
    Attendee("Anna", "Anna", "chair"),
    Attendee("Ben", "Ben", "treasurer"),
    Attendee("Mei", "Mei", "user interface designer"),
)
CONTEXT = MeetingContext("Board", dt.date(2026, 3, 17), PEOPLE, ("Roof",), ("roof", "summer fair"))
ENGINE = RuleEngine()

PHRASES = [
    "I'll send the list to the printer by Friday",
    "can you ring them tomorrow morning",
    "yes of course",
    "no please don't",
    "scratch that",
    "so we take the green one then",
    "who pays for the 14 chairs",
    "nobody knows",
    "somebody has to call the plumber on the 22nd of may",
    "make it the ninth",
    "Ben, the roof",
    "if we had two halls we'd be rich",
    "everybody signs by the fifth of December",
    "good, fine by me",
    "From the first of June we close at six",
    "I take it back",
    "",
    "um, er, the the",
]
TEXTS = st.one_of(
    st.sampled_from(PHRASES),
    st.lists(st.sampled_from(PHRASES), min_size=2, max_size=4).map(" ".join),
    st.text(max_size=120),
)
SPEAKERS = st.sampled_from(["Anna", "Ben", "Mei", "Unlisted", None])
SAID = st.lists(st.tuples(SPEAKERS, TEXTS), max_size=25)


def spoken(said: list[tuple[str | None, str]]) -> list[Spoken]:
    return [
        Spoken(f"u{i:03d}", i * 3_000_000_000, i * 3_000_000_000 + 2_000_000_000, speaker, text)
        for i, (speaker, text) in enumerate(said)
    ]


def fold(utterances: list[Spoken], context: MeetingContext = CONTEXT, engine: RuleEngine = ENGINE) -> State:
    state = engine.start(context)
    for utterance in utterances:
        state = engine.step(state, utterance)
    return state


def read(said: list[tuple[str | None, str]], context: MeetingContext = CONTEXT) -> tuple[DraftItem, ...]:
    return ENGINE.items(ENGINE.finish(fold(spoken(said), context)))


@settings(max_examples=80, deadline=None)
@given(SAID)
def test_evidence_exists_and_nothing_is_invented(said: list[tuple[str | None, str]]) -> None:
    utterances = {u.id: u for u in spoken(said)}
    state = ENGINE.finish(fold(list(utterances.values())))
    items = ENGINE.items(state)
    assert len({i.id for i in items}) == len(items)
    for item in items:
        assert item.evidence and item.text
        quotes = ""
        for quote in item.evidence:
            text = utterances[quote.utterance_id].text
            assert 0 <= quote.first < quote.last <= len(text)
            quotes += " " + text[quote.first : quote.last]
        assert set(re.findall(r"\d+", item.text)) <= set(re.findall(r"\d+", quotes))
        assert 0 < item.confidence <= 1
        if item.due is not None:
            assert item.due_text and item.due >= dt.date(2026, 3, 17)
        if item.due_text:
            assert item.due_text in quotes
    lines = summary(state, CONTEXT, items)
    assert sum(len(s.text.split()) for s in lines) <= MAX_SUMMARY_WORDS
    assert all(q.utterance_id in utterances for s in lines for q in s.evidence)


@settings(max_examples=40, deadline=None)
@given(SAID)
def test_equal_sequences_give_equal_items_also_after_a_pickle(said: list[tuple[str | None, str]]) -> None:
    utterances = spoken(said)
    half = len(utterances) // 2
    state = pickle.loads(pickle.dumps(fold(utterances[:half])))
    for utterance in utterances[half:]:
        state = ENGINE.step(state, utterance)
    assert ENGINE.items(state) == ENGINE.items(fold(utterances))


@settings(max_examples=40, deadline=None)
@given(SAID, TEXTS)
def test_a_fork_leaves_the_older_state_alone(said: list[tuple[str | None, str]], more: str) -> None:
    state = fold(spoken(said))
    before = ENGINE.items(state)
    ENGINE.step(state, Spoken("more", 10**12, 10**12 + 10**9, "Ben", more))
    assert ENGINE.items(state) == before


def test_identity_stays_when_a_question_is_answered() -> None:
    said: list[tuple[str | None, str]] = [
        ("Anna", "Where are the fourteen pallets?"),
        ("Ben", "No idea, I looked in every row."),
    ]
    first = read(said)
    said += [
        ("Ben", "I have a mail here, the pallets are in the south depot."),
        ("Anna", "Good, that's that one solved."),
    ]
    second = read(said)
    assert [i.kind for i in first] == ["open_question"]
    assert [i.kind for i in second] == ["answered_question"]
    assert first[0].id == second[0].id


def test_identity_stays_while_an_action_grows() -> None:
    said: list[tuple[str | None, str]] = [("Ben", "I'll write the letter by Thursday.")]
    first = read(said)
    second = read([*said, ("Anna", "Thursday is too early, make it Friday.")])
    assert [i.id for i in first] == [i.id for i in second]
    assert second[0].due == dt.date(2026, 3, 20)
    assert len(second[0].evidence) == 2


@pytest.mark.parametrize(
    ("said", "owner", "external"),
    [
        ([("Ben", "I'll order the chairs on Monday.")], "Ben", False),
        ([(None, "I'll order the chairs on Monday.")], None, False),
        ([("Anna", "Ben, can you order the chairs by Monday?")], "Ben", False),
        ([("Anna", "Can you order the chairs by Monday?"), ("Mei", "Sure, no problem.")], "Mei", False),
        ([("Anna", "The user interface designer has to order the chairs by Monday.")], "Mei", False),
        ([("Anna", "Put Pavel down for the chairs, tomorrow.")], "Pavel", True),
        ([("Anna", "Everybody brings a chair on Monday, please.")], None, False),
        ([("Anna", "Somebody has to order the chairs by Monday.")], None, False),
    ],
)
def test_owner_is_stated_or_null(
    said: list[tuple[str | None, str]], owner: str | None, external: bool
) -> None:
    items = [i for i in read(said) if i.kind == "action_item"]
    assert [(i.owner, i.owner_external) for i in items] == [(owner, external)]


def test_ambiguous_first_name_is_nobody() -> None:
    people = (Attendee("Ben Adler"), Attendee("Ben Okoye"), Attendee("Anna"))
    context = MeetingContext(None, dt.date(2026, 3, 17), people)
    items = read([("Anna", "Ben will order the chairs by Monday.")], context)
    assert [(i.owner, i.kind) for i in items] == [(None, "action_item")]


@pytest.mark.parametrize(
    ("words", "due"),
    [
        ("tomorrow morning", dt.date(2026, 3, 18)),
        ("by the twenty-seventh of March", dt.date(2026, 3, 27)),
        ("a week from today", dt.date(2026, 3, 24)),
        ("on Thursday", dt.date(2026, 3, 19)),
        ("on the 5th of january", dt.date(2027, 1, 5)),
        ("in two weeks", dt.date(2026, 3, 31)),
        ("by the end of the month", dt.date(2026, 3, 31)),
        ("by five today", dt.date(2026, 3, 17)),
        ("by Wednesday next week", dt.date(2026, 3, 25)),
        ("next Friday", None),
        ("by the end of next week", None),
        ("on Tuesday", None),
        ("in Q3", None),
    ],
)
def test_due_date_has_one_reading_or_none(words: str, due: dt.date | None) -> None:
    items = read([("Ben", f"I'll send the list to the printer {words}.")])
    assert [(i.due, i.due_text) for i in items] == [(due, words)]
    undated = read([("Ben", f"I'll send the list to the printer {words}.")], MeetingContext(attendees=PEOPLE))
    assert [(i.due, i.due_text) for i in undated] == [(None, words)]


def test_attendees_may_arrive_late() -> None:
    state = fold(spoken([("s1", "I'll send the list to the printer by Friday.")]), MeetingContext())
    late = MeetingContext(None, dt.date(2026, 3, 17), (Attendee("Anna Berg", "s1"),))
    assert [(i.owner, i.due) for i in ENGINE.items(ENGINE.with_context(state, late))] == [
        ("Anna Berg", dt.date(2026, 3, 20))
    ]


def test_a_word_flood_costs_no_more_than_its_length() -> None:
    for text in ("word " * 5000, "then " * 5000, "a" * 100_000, "can you " * 3000, "@ " * 4000, "so " * 5000):
        begun = time.process_time()
        fold(spoken([("Anna", text), ("Ben", text)]))
        assert time.process_time() - begun < 2.0


def test_settings_that_lose_everything_are_refused() -> None:
    with pytest.raises(ValueError, match="thresholds"):
        UnderstandSettings(action_threshold=0)
    with pytest.raises(ValueError, match="evidence"):
        UnderstandSettings(evidence_spans=0)


def test_nothing_said_gives_nothing() -> None:
    state = ENGINE.finish(ENGINE.start(CONTEXT))
    assert ENGINE.items(state) == ()
    assert summary(state, CONTEXT, ()) == ()


def test_a_decision_of_a_long_meeting_does_not_vanish_at_its_end() -> None:
    minute = 60_000_000_000
    said = [("Anna", "Okay, we keep the old roof."), ("Ben", "Agreed, fine by me.")]
    said += [("Mei", "The roof was wet again in the morning.")] * 20
    state = ENGINE.start(CONTEXT)
    for number, (speaker, text) in enumerate(said):
        state = ENGINE.step(
            state, Spoken(f"u{number}", number * minute, number * minute + 10**9, speaker, text)
        )
    before = {i.id for i in ENGINE.items(state) if i.kind == "decision"}
    assert before and before <= {i.id for i in ENGINE.items(ENGINE.finish(state))}
