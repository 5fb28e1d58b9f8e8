"""Texts that people can read: no remark spliced on, no loose end, no open *them* where the thing was just named."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from devices.streams import whole_characters
from operators.compose import clean
from operators.language.gist import names_matter
from operators.language.text import clauses_of
from operators.summary import summary, told_as
from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken, State

_CONTEXT = MeetingContext("Hall", dt.date(2026, 3, 10), tuple(Attendee(n, n) for n in ("Ann", "Bob", "Cleo")))


def _read(*lines: str) -> tuple[State, tuple[DraftItem, ...]]:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        start = number * 4_000_000_000
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    state = engine.finish(state)
    return state, tuple(i for i in engine.items(state) if not i.withdrawn)


def _task(*lines: str) -> str:
    return [i.text for i in _read(*lines)[1] if i.kind == "action_item"][-1]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I'll write the report on the roof by Friday, I owe you that.", "Write the report on the roof"),
        ("I'll ring the bakery tomorrow, my sister is there anyway.", "Ring the bakery"),
        ("I'll book the bus tomorrow, it is cheaper than the train.", "Book the bus"),
        ("I'll order chairs tomorrow, we need forty.", "Order chairs, we need forty"),
        ("I'll order the chairs tomorrow, they are forty euros.", "Order the chairs, they are forty euros"),
        ("I'll paint the door tomorrow, the green one.", "Paint the door, the green one"),
        ("I'll print the list by Friday, I have a printer, and bring it to Bob.", "Print the list, and bring it to Bob"),
        ("Bob, please keep the cups in the cellar till then.", "Keep the cups in the cellar till then"),
    ],
)  # fmt: skip
def test_a_remark_behind_a_comma_is_no_part_of_a_task(said: str, text: str) -> None:
    assert _task(f"Ann: {said}") == text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("Ann: Somebody has to ask the plumber about the leak.", "Bob: I'll ring them tomorrow, I know the boss."),
         "Ask the plumber about the leak"),
        (("Ann: Did you tell the plumber about the leak?", "Bob: I'll ring them tomorrow, I know the boss."),
         "Ring the plumber"),
        (("Ann: Somebody must count the chairs.", "Bob: I'll ring them about the bus tomorrow."), None),
        (("Ann: Cleo would know, she was there.", "Bob: I'll ask her tomorrow."), None),
        (("Ann: Nora would know, she was there.", "Bob: I'll drop her a message tomorrow."),
         "Drop Nora a message"),
        (("Ann: The oven is new. It took half a day.", "Bob: I'll do it here on Monday."), "Do it here (the oven is new)"),
    ],
)  # fmt: skip
def test_who_is_meant_is_said_first_where_it_was_just_said(lines: tuple[str, ...], text: str | None) -> None:
    found = _task(*lines)
    assert found == text if text else "chairs" not in found


@pytest.mark.parametrize(
    ("words", "names"),
    [("a day", False), ("yeah that's what", False), ("the twenty-second", False), ("two hours", False),
     ("the samples", True), ("half a day of painting", True)],
)  # fmt: skip
def test_what_names_nothing_is_nothing_to_be_about(words: str, names: bool) -> None:
    assert names_matter(clauses_of(words)[0].tokens) is names


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("We could take the big bus. No. Bob has the small one.", "We could take the big bus. No. Bob has the small one."),
        ("No parking in the yard on Sunday.", "No parking in the yard on Sunday."),
        ("No, the yard is closed on Sunday.", "The yard is closed on Sunday."),
        ("No one came to the meeting in May.", "No one came to the meeting in May."),
        ("Thanks, Ann. The boiler is twelve years old.", "The boiler is twelve years old."),
        ("Thanks, the report is on the shared drive now.", "The report is on the shared drive."),
        ("The oil stays in the cellar till then.", "The oil stays in the cellar till then."),
        ("Welcome packs go out on Monday.", "Welcome packs go out on Monday."),
        ("Hi-vis vests are needed.", "Hi-vis vests are needed."),
        ("Thanks to Bob the roof is fixed.", "Thanks to Bob the roof is fixed."),
    ],
)  # fmt: skip
def test_an_answer_stays_and_a_greeting_goes(said: str, text: str) -> None:
    assert clean(said) == text


def test_small_talk_and_a_day_that_was_put_right_are_not_told() -> None:
    state, items = _read(
        "Ann: Thanks, my sister made it.",
        "Ann: The summer party, June the twentieth is still the date?",
        "Bob: I told the caterer that we want a tent for the garden.",
        "Cleo: Sorry, the letter for the party says June twenty-first.",
    )
    told = [s.text for s in summary(state, _CONTEXT, items)]
    assert not any("sister" in t or "twentieth" in t for t in told), told
    assert "Bob: I told the caterer that we want a tent for the garden." in told


def test_a_task_is_told_as_it_stands_after_the_checks() -> None:
    state, items = _read("Ann: I'll book the hall by Friday.")
    (line,) = [s for s in summary(state, _CONTEXT, items) if s.text.startswith("Ann:")]
    assert line.text == "Ann: book the hall (by Friday)."
    told = told_as(line, items[0], "Book the hall", "Bob", "on Monday")
    assert told is not None and told.text == "Bob: book the hall (on Monday)."
    told = told_as(line, items[0], "Mend it (the coat is torn)", "Bob", "on Monday")
    assert told is not None and told.text == "Bob: mend it (the coat is torn; on Monday)."
    assert told_as(replace(line, item_id=None), items[0], "Book the hall", "Bob", None) is None


def test_a_date_that_an_item_leaves_open_is_not_told() -> None:
    state, items = _read("Ann: I'll book the hall by Friday.")
    unsure = [replace(i, due=None, due_open=True) for i in items]
    told = [s.text for s in summary(state, _CONTEXT, unsure)]
    assert "Ann: book the hall." in told


def test_a_decision_ends_with_no_loose_word_and_no_other_matter() -> None:
    _, items = _read(
        "Ann: Let's take the fifth, on the fourth Bob is away.", "Bob: Fine by me.", "Cleo: Yes, good."
    )
    decided = next(i.text for i in items if i.kind == "decision")
    assert decided == "Take the fifth"


@pytest.mark.parametrize("lone", ["\ud83d", "\udc00"])
def test_half_a_character_ends_no_sentence(lone: str) -> None:
    assert (
        whole_characters(f"I will call {lone} the baker by Monday.")
        == "I will call \ufffd the baker by Monday."
    )
    assert len(clauses_of(whole_characters(f"I will call {lone} the baker by Monday."))) == 1
