"""Work as it is written down: what was asked or offered is a task, and names that were called out are none of it."""

import pytest

from operators.compose import sentence, task_tokens
from operators.language.people import person_of, roster_of
from operators.language.rules import rules_of
from operators.understand.hear import hear
from operators.understand.types import Spoken

_ROSTER = roster_of([person_of(n, n, None, False) for n in ("Ann", "Bob", "Pip")])


def _text(said: str) -> str:
    """The words of the only clause as a task."""
    (clause,) = hear(Spoken("u", 0, 1, "Cleo", said), 0, _ROSTER, rules_of()).clauses
    return sentence(task_tokens(clause.clause, None, clause.dues))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Could somebody bring fresh batteries tomorrow?", "Bring fresh batteries"),
        ("So would one of you please order the chairs?", "Order the chairs"),
        ("Somebody ought to warn the neighbours.", "Warn the neighbours"),
        ("Somebody ring round the families.", "Ring round the families"),
        ("Want me to draft it?", "Draft it"),
        ("Do you want me to ring the bank?", "Ring the bank"),
        ("Shall I write to the printer?", "Write to the printer"),
        ("Should we paint the hall?", "Paint the hall"),
        ("Who checks the flares?", "Check the flares"),
        ("And who carries the tables?", "Who carries the tables"),
        ("Who's picking up the parcel on Friday?", "Pick up the parcel"),
        ("Who is getting the keys?", "Get the keys"),
        ("Who's hands now, please?", "Who's hands"),
        ("Who can drive the van?", "Drive the van"),
        ("The key for the hall, did you get it copied?", "Get the key for the hall copied"),
        ("The labels, could you print them again?", "Print the labels again"),
        ("Could you believe the price?", "Could you believe the price"),
    ],
)
def test_what_was_asked_or_offered_is_a_task(said: str, text: str) -> None:
    assert _text(said) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Clean the filter, Pip, before service.", "Clean the filter before service"),
        ("Make them kinder, Pip, you've the touch.", "Make them kinder, you've the touch"),
        ("The fire reports, Pip, are they up to date?", "The fire reports"),
        (
            "Wheel it out from now on, Pip, on a Monday evening.",
            "Wheel it out from now on, on a Monday evening",
        ),
        ("Pip, clean the filter.", "Clean the filter"),
        ("Clean the filter, Pip.", "Clean the filter"),
        ("Send it to Pip.", "Send it to Pip"),
        ("Ask Ann, Bob, and Pip.", "Ask Ann, Bob, and Pip"),
        ("Ask Ann, Bob, Pip, the plumber.", "Ask Ann, Bob, Pip, the plumber"),
        (
            "Get the list, the keys, and Pip, before service.",
            "Get the list, the keys, and Pip, before service",
        ),
        ("Send it myself.", "Send it"),
        ("Introduce myself.", "Introduce myself"),
        ("Keep a copy for myself.", "Keep a copy for myself"),
    ],
)
def test_who_is_spoken_to_is_no_part_of_a_task(said: str, text: str) -> None:
    assert _text(said) == text
