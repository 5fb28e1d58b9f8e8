"""Two matters stay two: tasks in a row, requests to different people, decisions that replace others."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.compose import clean
from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken

PEOPLE = ("Anna", "Ben", "Carl")


def items_of(*lines: str, people: tuple[str, ...] = PEOPLE) -> tuple[DraftItem, ...]:
    """Items of a meeting on Tuesday 10 March 2026, one line every four seconds."""
    engine = RuleEngine()
    attendees = tuple(Attendee(name, name) for name in people)
    state = engine.start(MeetingContext("House", dt.date(2026, 3, 10), attendees))
    for place, line in enumerate(lines):
        speaker, text = line.split(": ", 1)
        start = place * 4_000_000_000
        state = engine.step(state, Spoken(f"u{place}", start, start + 3_000_000_000, speaker, text))
    return engine.items(engine.finish(state))


def tasks_of(*lines: str, people: tuple[str, ...] = PEOPLE) -> list[tuple[str, str | None, str | None]]:
    """Text, owner and date of the action items that stand."""
    return [
        (i.text, i.owner, i.due.isoformat() if i.due else None)
        for i in items_of(*lines, people=people)
        if i.kind == "action_item" and not i.withdrawn
    ]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (
            "I will call Zoe tomorrow.",
            "I will order chairs by Friday.",
            [("Call Zoe", "2026-03-11"), ("Order chairs", "2026-03-13")],
        ),
        (
            "I will call Zoe on April 5.",
            "I will fix the roof in two weeks.",
            [("Call Zoe", "2026-04-05"), ("Fix the roof", "2026-03-24")],
        ),
        (
            "I will check the locks by Friday.",
            "I will also wash the car by Sunday.",
            [("Check the locks", "2026-03-13"), ("Wash the car", "2026-03-15")],
        ),
        (
            "I will call Zoe tomorrow.",
            "I will call Eve on Friday.",
            [("Call Zoe", "2026-03-11"), ("Call Eve", "2026-03-13")],
        ),
        (
            "I will call the bank tomorrow.",
            "I will call the plumber on Friday.",
            [("Call the bank", "2026-03-11"), ("Call the plumber", "2026-03-13")],
        ),
    ],
)
def test_two_tasks_of_one_person_stay_two(first: str, second: str, wanted: list[tuple[str, str]]) -> None:
    found = tasks_of(f"Ben: {first}", f"Ben: {second}", "Anna: Okay.")
    assert found == [(text, "Ben", due) for text, due in wanted]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("I will write chapter three by Friday.", "I will write chapter four by Friday.",
         ["Write chapter three", "Write chapter four"]),
        ("I will paint the front door by Friday.", "And I will paint the back door by Friday.",
         ["Paint the front door", "Paint the back door"]),
        ("I will do task number 12 by Friday.", "I will do task number 13 by Friday.",
         ["Do task number 12", "Do task number 13"]),
    ],
)  # fmt: skip
def test_parts_that_people_share_out_stay_apart(first: str, second: str, wanted: list[str]) -> None:
    found = tasks_of(f"Anna: {first}", f"Ben: {second}", "Carl: Okay.")
    assert found == [(wanted[0], "Anna", "2026-03-13"), (wanted[1], "Ben", "2026-03-13")]


def test_a_task_that_goes_to_somebody_else_stays_one() -> None:
    found = tasks_of(
        "Anna: I will call the plumber by Friday.", "Ben: No, I will call the plumber by Thursday."
    )
    assert found == [("Call the plumber", "Ben", "2026-03-12")]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "Good, first point, the delivery to Rotterdam, we have decided to ship it by rail.",
            "Ship it by rail",
        ),
        ("Next, the old van, we decided not to sell it.", "We decided not to sell it"),
    ],
)
def test_a_decision_after_a_comma_is_found(line: str, text: str) -> None:
    # Recognisers write a comma for many a full stop.
    found = [i.text for i in items_of(f"Anna: {line}") if i.kind == "decision"]
    assert found == [text]


@pytest.mark.parametrize("line", ["If it rains, we decided to stay in.", "Ben, do you have your hand up?"])
def test_conditions_and_raised_hands_decide_nothing(line: str) -> None:
    assert not [i for i in items_of(f"Anna: {line}", "Ben: Yes.") if i.kind == "decision"]


@pytest.mark.parametrize(
    "again",
    [
        "Make that Thursday.",
        "By Thursday, sorry.",
        "Sorry, I will send it by Thursday.",
        "I will send the offer by Thursday.",
        "I can do it by Thursday.",
    ],
)
def test_a_new_date_for_the_same_task_changes_it(again: str) -> None:
    found = tasks_of("Ben: I will send the offer by Friday.", f"Ben: {again}", "Anna: Okay.")
    assert found == [("Send the offer", "Ben", "2026-03-12")]


@pytest.mark.parametrize(
    "denied",
    [
        "Ben will not send the report by Monday.",
        "Ben will never send the report by Monday.",
        "Nobody will send the report by Monday.",
    ],
)
def test_no_date_comes_from_what_will_not_be_done(denied: str) -> None:
    found = tasks_of("Ben: I will send the report by Friday.", "Carl: Thanks.", f"Anna: {denied}")
    assert found in ([("Send the report", "Ben", "2026-03-13")], [])
    assert tasks_of("Anna: Hello.", f"Anna: {denied}") == []


def test_not_before_a_day_is_no_due_date() -> None:
    found = tasks_of("Ben: I will move the plants, but not before Friday.", "Anna: Thanks.")
    assert [due for _, _, due in found] in ([None], [])


@pytest.mark.parametrize("people", [PEOPLE, ("Anna", "Ben")])
def test_yes_accepts_the_request_to_the_one_who_says_it(people: tuple[str, ...]) -> None:
    found = tasks_of(
        "Anna: Ben, please update the price list by Thursday.",
        "Anna: Carl, please call the bank by Friday.",
        "Ben: Okay.",
        people=people,
    )
    assert found == [("Update the price list", "Ben", "2026-03-12"), ("Call the bank", "Carl", "2026-03-13")]


SIGNED = (
    "cut prices by 10% and keep the 5€ fee",
    "sell at -5 degrees for €20/month",
    "meet at 3:30 pm",
    "close ticket #42 and use C++",
    "write to a@b.com about R&D",
    "pay $1,200.50 for pages 3–5",
    "start the well-known show at 9:30",
)


@pytest.mark.parametrize("matter", SIGNED)
def test_signs_and_units_stay_as_they_were_said(matter: str) -> None:
    items = items_of(f"Anna: We decided to {matter}.", "Ben: Okay.")
    assert [i.text for i in items if i.kind == "decision"] == [matter[:1].upper() + matter[1:]]


@pytest.mark.parametrize("matter", SIGNED)
def test_the_summary_keeps_signs_and_units(matter: str) -> None:
    assert clean(f"Last year they did {matter}.") == f"Last year they did {matter}."
    assert clean("$500 is what they paid for it.") == "$500 is what they paid for it."


def test_a_clock_time_with_a_colon_is_a_due_date() -> None:
    found = tasks_of("Ben: I will send 50% of the offer by 9:30 tomorrow.", "Anna: Thanks.")
    assert found == [("Send 50% of the offer", "Ben", "2026-03-11")]


@pytest.mark.parametrize(
    "reversal",
    [
        "Right, MySQL it is, not Postgres.",
        "We decided to use MySQL instead of Postgres.",
        "Sorry, let's take that back, we use MySQL.",
        "So we go with MySQL rather than Postgres.",
    ],
)
def test_a_reversed_decision_does_not_stand(reversal: str) -> None:
    items = items_of(
        "Anna: We decided to use Postgres.",
        "Ben: Wait, didn't we say MySQL?",
        f"Anna: {reversal}",
        "Carl: Okay.",
    )
    decisions = [i for i in items if i.kind == "decision"]
    assert [i.withdrawn for i in decisions if i.text == "Use Postgres"] == [True]
    assert all("MySQL" in i.text for i in decisions if not i.withdrawn)


def test_a_decision_that_names_what_it_is_not_leaves_others_alone() -> None:
    items = items_of(
        "Anna: We decided to use Postgres.",
        "Ben: Okay.",
        "Anna: We decided to meet on Monday, not on Friday.",
        "Ben: Okay.",
    )
    assert [i.withdrawn for i in items if i.kind == "decision"] == [False, False]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Decision: we use Postgres.", "Use Postgres"),
        ("Decision: the fair moves to June.", "The fair moves to June"),
        ("We decided not to launch in March.", "Not to launch in March"),
        ("We agreed to paint the hall.", "Paint the hall"),
    ],
)
def test_a_headed_or_plainly_stated_decision_is_found(line: str, text: str) -> None:
    items = items_of("Anna: Good morning.", f"Ben: {line}", "Anna: Next point.")
    assert [i.text.lower().removeprefix("we ") for i in items if i.kind == "decision"] == [text.lower()]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("Action item: Zoe books a room.", ("Books a room", "Zoe", None)),
        ("Action: Carl to call the bank by Friday.", ("Call the bank", "Carl", "2026-03-13")),
        ("Action item: check the locks by Friday.", ("Check the locks", None, "2026-03-13")),
        ("TODO: Zoe will order chairs.", ("Order chairs", "Zoe", None)),
    ],
)
def test_a_headed_task_is_found(line: str, wanted: tuple[str, str | None, str | None]) -> None:
    assert tasks_of("Anna: Good morning.", f"Ben: {line}", "Anna: Next point.") == [wanted]


def test_who_takes_on_something_else_accepts_nothing() -> None:
    found = tasks_of(
        "Anna: Could somebody fetch the keys?",
        "Anna: Will you please send the letter by Monday?",
        "Carl: I will order chairs by Friday.",
    )
    assert ("Order chairs", "Carl", "2026-03-13") in found
    assert not [owner for text, owner, _ in found if "letter" in text and owner is not None]
