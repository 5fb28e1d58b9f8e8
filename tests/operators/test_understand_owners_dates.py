"""Whose task, until when, and what no longer counts: the last word holds, other matters are left alone."""

import datetime as dt
from collections.abc import Sequence

import pytest

from operators.understand.due import said_due
from operators.understand.engine import RuleEngine
from operators.understand.hear import hear
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken, UnderstandSettings

_PEOPLE = ("Mira", "Tom", "Ana")
_CONTEXT = MeetingContext(date=dt.date(2026, 3, 9), attendees=tuple(Attendee(name, name) for name in _PEOPLE))
"""A Monday."""
Lines = Sequence[tuple[str, str]]


def _items(*lines: tuple[str, str], kind: str = "action_item", least: float = 0.6) -> list[DraftItem]:
    engine = RuleEngine(UnderstandSettings(action_threshold=least))
    state = engine.start(_CONTEXT)
    for number, (who, text) in enumerate(lines):
        start = 5_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    state = engine.finish(state)
    return [i for i in engine.items(state) if i.kind == kind and not i.withdrawn]


@pytest.mark.parametrize(
    ("lines", "due"),
    [
        # A time of day or a vague phrase does not replace the day that was said.
        ([("Tom", "I'll print the flyers by Thursday."), ("Tom", "I'll print them before six.")], dt.date(2026, 3, 12)),
        ([("Tom", "I'll print the flyers by Thursday."), ("Tom", "No, make it Friday.")], dt.date(2026, 3, 13)),
        # Every one of those days is no day.
        ([("Tom", "I'll clean the stairs on Fridays.")], None),
        ([("Tom", "I'll clean the stairs on Friday.")], dt.date(2026, 3, 13)),
        # What is said beside a task of something else is no date of the task.
        ([("Tom", "The twelfth is a bad day. I'll write to the printer.")], None),
        ([("Tom", "I'll ask the caretaker. He's only there on Fridays.")], None),
        ([("Tom", "I'll write to the printer. They need it by Friday.")], dt.date(2026, 3, 13)),
        ([("Tom", "i'll ask the caretaker about the stairs he is away until the tenth")], None),
        ([("Tom", "I'll confirm the nineteenth to the cinema.")], None),
        ([("Tom", "I'll print the flyers by Thursday."), ("Tom", "And Friday at two, the boxes.")], dt.date(2026, 3, 12)),
        # A time of day and its day are one; so are a date and its weekday, where they agree.
        ([("Tom", "I'll count the money and send it by noon on Friday.")], dt.date(2026, 3, 13)),
        ([("Tom", "I'll count the money by noon.")], dt.date(2026, 3, 9)),
        ([("Tom", "The twenty-fifth, then. Wednesday. I'll print the flyers.")], dt.date(2026, 3, 25)),
        ([("Tom", "The twenty-fifth, then. Monday. I'll print the flyers.")], None),
        # Of two days none is chosen, and none that counts from a day at an unknown distance.
        ([("Tom", "I'll keep the hall free Monday and Tuesday.")], None),
        ([("Tom", "I'll renew the licence a year from today.")], None),
        ([("Tom", "I'll renew the licence a week from today.")], dt.date(2026, 3, 16)),
        # A date that has just been is hardly the one in a year.
        ([("Tom", "I'll renew the licence by the first of March.")], None),
        ([("Tom", "I'll renew the licence by the first of December.")], dt.date(2026, 12, 1)),
    ],
)  # fmt: skip
def test_the_date_of_a_task(lines: Lines, due: dt.date | None) -> None:
    (item,) = _items(*lines, least=0.05)
    assert item.due == due


def test_what_others_are_told_to_do_first_has_a_time_of_its_own() -> None:
    said = Spoken("u0", 0, 1, "Tom", "Send it through tonight, and I'll forward it to the lab.")
    heard = hear(said, 0, RuleEngine().start(_CONTEXT).roster, RuleEngine().rules)
    told, own = (said_due(heard, place) for place in range(len(heard.clauses)))
    assert told is not None and told.words == "tonight"
    assert own is None


def test_two_promises_of_one_turn_that_are_one_are_one_item() -> None:
    (item,) = _items(
        ("Mira", "Where does my aunt sit?"),
        ("Tom", "I'm on it. You'll have the seating chart from me by Sunday."),
    )
    assert "seating chart" in item.text
    assert (item.owner, item.due) == ("Tom", dt.date(2026, 3, 15))


def test_two_promises_of_one_turn_that_are_two_stay_two() -> None:
    items = _items(("Tom", "I'll order the tent by Friday. And I'll call the baker on Tuesday."))
    assert [i.due for i in items] == [dt.date(2026, 3, 13), dt.date(2026, 3, 10)]


def test_another_persons_promise_in_like_words_takes_no_task_away() -> None:
    items = _items(
        ("Tom", "I'll get the lights from the rental on Thursday."), ("Ana", "I'll rent a van on Friday.")
    )
    assert {(i.owner, i.due) for i in items} == {("Tom", dt.date(2026, 3, 12)), ("Ana", dt.date(2026, 3, 13))}


def test_a_promise_that_leans_on_anothers_is_a_task_of_its_own() -> None:
    one, other = _items(
        ("Ana", "I will send the report tomorrow."), ("Tom", "I will check it the day after tomorrow.")
    )
    assert (one.text, one.owner, one.due) == ("Send the report", "Ana", dt.date(2026, 3, 10))
    assert (other.text, other.owner, other.due) == ("Check the report", "Tom", dt.date(2026, 3, 11))


def test_who_says_i_will_do_it_takes_the_task_over() -> None:
    (item,) = _items(
        ("Ana", "I will send the report tomorrow."), ("Tom", "No, you have enough, I'll do it tomorrow.")
    )
    assert item.owner == "Tom"


def test_who_is_taken_off_what_was_just_spoken_of_has_it_no_longer() -> None:
    talk = [("Mira", "It rained again last week.")] * 18
    said = (("Tom", "I'll take the shift on Sunday."), *talk, ("Mira", "Sunday is the fifth of April."))
    assert len(_items(*said)) == 1
    assert _items(*said, ("Tom", "Oh, that's when my sister comes. Take me off again, sorry.")) == []


@pytest.mark.parametrize("words", ["Then, well, then there is no horse.", "Then no horse in April."])
def test_there_is_none_then(words: str) -> None:
    said = (("Tom", "I'll hire a white horse on Friday."), ("Mira", "The lawn is too wet."))
    assert len(_items(*said)) == 1
    assert _items(*said, ("Tom", words)) == []


@pytest.mark.parametrize(
    "words",
    ["Forget I said it.", "I take that right back.", "No, I call it off.", "Cross it out again.", "Withdrawn.", "I unsay it."],
)  # fmt: skip
def test_what_is_unsaid_is_no_longer_published(words: str) -> None:
    said = ("Tom", "I'll paint the fence by Friday.")
    assert len(_items(said)) == 1
    assert _items(said, ("Mira", "It has to be green."), ("Tom", words)) == []


def test_a_decision_that_is_taken_back_in_the_same_breath_is_none() -> None:
    said = "So we decided to close on Sundays"
    assert len(_items(("Mira", f"{said}."), kind="decision")) == 1
    assert _items(("Mira", f"{said}. Forget I said it."), kind="decision") == []


def test_what_is_called_off_is_no_open_question_any_more() -> None:
    asked = [("Mira", "Are we still having the party on Saturday?"), ("Ana", "I don't know, it stays open.")]
    assert len(_items(*asked, kind="open_question")) == 1
    assert _items(*asked, ("Tom", "Okay, then no party on Saturday."), kind="open_question") == []
    assert len(_items(*asked, ("Tom", "Okay, then no cake."), kind="open_question")) == 1


def test_who_scratches_something_by_its_name_means_that_and_not_what_was_said_last() -> None:
    talk = [("Mira", "It rained again last week.")] * 14
    items = _items(
        ("Mira", "We decided to open on the thirtieth."), *talk, ("Mira", "Somebody has to call the painter by Friday."),
        ("Ana", "The hall is taken."), ("Mira", "Oh, then not the thirtieth, scratch that."),
    )  # fmt: skip
    assert len(items) == 1


@pytest.mark.parametrize("day", ["0th", "00", "32nd", "99th"])
def test_a_day_that_no_month_has_is_no_date(day: str) -> None:
    for item in _items(
        ("Tom", f"I'll print the flyers on the {day} of May."), ("Mira", f"On the {day}, good."), least=0.1
    ):
        assert item.due is None
