"""Item texts read like a secretary's sentence made of the words that were said."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.compose import clean
from operators.summary import MAX_SUMMARY_WORDS, summary
from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken, State

PEOPLE = (Attendee("Anna", "Anna", "chair"), Attendee("Tunde", "Tunde"), Attendee("Ilse", "Ilse"))
CONTEXT = MeetingContext("Ward", dt.date(2026, 3, 17), PEOPLE, (), ("rota for the summer", "broken lift"))


def read(*said: tuple[str, str]) -> tuple[State, tuple[DraftItem, ...]]:
    engine = RuleEngine()
    state = engine.start(CONTEXT)
    for number, (speaker, text) in enumerate(said):
        start = number * 4_000_000_000
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, speaker, text))
    state = engine.finish(state)
    return state, engine.items(state)


@pytest.mark.parametrize(
    ("speaker", "said", "text"),
    [
        ("Tunde", "I'll, um, I'll write the, the letter to the agency tomorrow, they like me there.",
         "Write the letter to the agency"),
        ("Anna", "Tunde, could you please send the list to the printer by Friday?", "Send the list to the printer"),
        ("Tunde", "so i'll er order two new chairs on monday okay", "Order two new chairs"),
        ("Anna", "Somebody needs to tell the night staff the new code.", "Tell the night staff the new code"),
    ],
)  # fmt: skip
def test_action_text_is_what_was_said_without_the_rest(speaker: str, said: str, text: str) -> None:
    _, items = read((speaker, said))
    assert [i.text for i in items] == [text]


def test_words_that_say_little_bring_what_they_are_about() -> None:
    _, items = read(
        ("Ilse", "The article on refunds is wrong."), ("Anna", "Ilse, can you correct it by Monday?")
    )
    assert len(items) == 1
    assert "article on refunds" in items[0].text
    assert {q.utterance_id for q in items[0].evidence} >= {"u0", "u1"}


def test_decision_names_its_matter() -> None:
    _, items = read(
        ("Anna", "The chairs, green or wood?"),
        ("Tunde", "Green, they wipe clean."),
        ("Anna", "Green it is, then."),
        ("Ilse", "Good."),
    )
    decisions = [i for i in items if i.kind == "decision"]
    assert len(decisions) == 1
    assert "green" in decisions[0].text.lower()


def test_question_keeps_its_words() -> None:
    _, items = read(("Ilse", "So who pays for the broken lift?"), ("Anna", "Nobody knows."))
    assert [(i.kind, i.text) for i in items] == [("open_question", "Who pays for the broken lift?")]


def test_summary_covers_topics_and_leaves_out_what_was_taken_back() -> None:
    state, items = read(
        ("Anna", "The rota for the summer is nearly full, we are two nurses short in July."),
        ("Tunde", "The lift in the east wing has been broken for three weeks now."),
        ("Tunde", "I'll ring the lift company about the noise tomorrow."),
        ("Ilse", "That noise was my trolley, sorry."),
        ("Tunde", "Oh, then I don't ring anybody, scratch that."),
        ("Anna", "Then the kitchen stays open until nine."),
        ("Ilse", "Good, fine by me."),
    )
    lines = summary(state, CONTEXT, [i for i in items if not i.withdrawn])
    text = " ".join(s.text for s in lines)
    assert "rota" in text and "broken" in text and "kitchen stays open" in text
    assert "company" not in text
    assert len(text.split()) <= MAX_SUMMARY_WORDS
    assert all(s.evidence for s in lines)


def test_clean_drops_fillers_and_keeps_whole_sentences() -> None:
    assert clean("Um, right. So the, the boiler is, er, twelve years old. And it leaks a lot.", 12) == (
        "The boiler is, twelve years old. It leaks a lot."
    )


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I suggest two thousand euros for the new stage curtain.", "Two thousand euros for the new stage curtain"),
        ("Hardly anybody reads it, I think we should stop the newsletter.", "We should stop the newsletter"),
        ("Then the rehearsal, I suggest Monday, June twenty-second.", None),
        ("Then our next rehearsal, I suggest Monday, June twenty-second.", "Our next rehearsal: Monday, June twenty-second"),
        ("Okay, then it's decided, we sell the old piano.", "We sell the old piano"),
        ("Let's paint the hall green.", "Paint the hall green"),
    ],
)  # fmt: skip
def test_decision_text_is_the_matter_without_its_opening(said: str, text: str | None) -> None:
    _, items = read(("Anna", said), ("Tunde", "Yes, that works for me."), ("Ilse", "Fine with me."))
    found = [i.text for i in items if i.kind == "decision"]
    assert len(found) == 1 and text in (None, found[0]), found


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Sorry to interrupt, the test of the pump is finished.", "The test of the pump is finished."),
        ("I have a question, who will answer the phone in May?", "Who will answer the phone in May?"),
        ("I suggest four thousand euros for the twenty-sixth.", "Four thousand euros for the twenty-sixth."),
        ("I think so too.", "I think so too."),
    ],
)
def test_clean_drops_what_only_asks_for_the_floor(said: str, text: str) -> None:
    assert clean(said) == text


def test_summary_names_who_does_what_and_not_the_question_once_more() -> None:
    state, items = read(
        ("Anna", "Tunde, can you print the new rota by Friday?"),
        ("Tunde", "Sure, I will."),
        ("Ilse", "Who repairs the broken lift in the east wing."),
        ("Anna", "I don't know, that stays open."),
    )
    lines = [s.text for s in summary(state, CONTEXT, items)]
    assert "Tunde: print the new rota (by Friday)." in lines


def test_a_goodbye_sets_no_date() -> None:
    _, items = read(
        ("Anna", "Tunde, please order two new chairs."),
        ("Tunde", "Okay, I will."),
        ("Anna", "Thank you all, see you next week."),
    )
    assert [(i.text, i.due_text) for i in items] == [("Order two new chairs", None)]


def test_refused_help_is_no_action_and_what_follows_is() -> None:
    _, items = read(
        ("Ilse", "Tunde, should I help you with the leaflet?"),
        ("Tunde", "No thanks, that's not necessary, I'll send the first draft to Anna tomorrow."),
    )
    assert [(i.kind, i.text, i.owner, i.due_text) for i in items] == [
        ("action_item", "Send the first draft to Anna", "Tunde", "tomorrow")
    ]


def test_a_question_answered_later_is_answered_only_by_what_it_asks_for() -> None:
    asked = (("Anna", "Does the new pump run with the old pipes?"), ("Tunde", "I can't say yet."))
    late = ("Tunde", "The test is over, the new pump runs with the old pipes.")
    doubt = ("Tunde", "Maybe the new pump runs with the old pipes.")
    assert [i.kind for i in read(*asked, late)[1]] == ["answered_question"]
    assert [i.kind for i in read(*asked, doubt)[1]] == ["open_question"]
    who = (("Anna", "Who will water the plants in August?"), ("Tunde", "No idea."))
    assert [i.kind for i in read(*who, ("Ilse", "The plants need water in August."))[1]] == ["open_question"]
