"""What is only called decided, what was done already, offers that another takes over, and who is asked for what."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.understand.engine import RuleEngine
from operators.understand.state import Draft
from operators.understand.types import Attendee, MeetingContext, Spoken

_PEOPLE = ("Mira", "Tom", "Ana", "Leo")
_CONTEXT = MeetingContext(date=dt.date(2026, 3, 9), attendees=tuple(Attendee(name, name) for name in _PEOPLE))


def _drafts(*lines: str, family: str) -> list[Draft]:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, text = line.split(": ", 1)
        start = 5_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    return [d for d in state.drafts if d.family == family]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("Mira: No new shelves this year.", "Tom: Agreed."), "No new shelves this year"),
        (
            (
                "Mira: I move we paint the hall green.",
                "Ana: Any objections?",
                "Leo: None.",
                "Mira: Motion carried.",
            ),
            "We paint the hall green",
        ),
        (
            (
                "Mira: I propose that the fair moves to June.",
                "Tom: Seconded.",
                "Mira: All in favour?",
                "Ana: Aye.",
            ),
            "the fair moves to June",
        ),
    ],
)
def test_what_is_voted_on_says_what_was_decided(lines: tuple[str, ...], text: str) -> None:
    found = _drafts(*lines, family="decision")
    assert found
    for draft in found:
        assert text.lower() in draft.text.lower()
        assert any(p.index == 0 for p in draft.evidence)


def test_a_vote_on_nothing_is_no_decision() -> None:
    assert not _drafts("Mira: Hello there.", "Tom: All in favour?", "Mira: Carried.", family="decision")


@pytest.mark.parametrize(
    "opening",
    (
        "I call this meeting to order at six.",
        "I call the board to order now please.",
        "I move that we adjourn now, everybody.",
    ),
)
def test_opening_and_closing_a_meeting_decides_nothing(opening: str) -> None:
    found = _drafts(f"Mira: {opening}", "Tom: Seconded, agreed, absolutely.", family="decision")
    assert not [d for d in found if "firmly agreed" in d.reasons]


@pytest.mark.parametrize(
    "answer",
    (
        "I did, yesterday.",
        "I already have.",
        "Done already.",
        "Oh, that's done.",
        "We did that last week.",
        "Did that on Sunday.",
    ),
)
def test_what_was_done_already_is_no_task(answer: str) -> None:
    (draft, *_) = _drafts("Mira: Tom, could you order the paper?", f"Tom: {answer}", family="action")
    assert draft.mode == "refused" and not draft.accepted


@pytest.mark.parametrize("answer", ("I have to ask first.", "I did not know that. I will do it.", "Sure."))
def test_what_is_still_to_do_stays(answer: str) -> None:
    (draft, *_) = _drafts("Mira: Tom, could you order the paper?", f"Tom: {answer}", family="action")
    assert draft.mode != "refused"


def test_whoever_says_they_do_what_another_offers_has_it() -> None:
    offer = "Tom: Shall I write to the printers?"
    (draft, *_) = _drafts(offer, "Ana: I'll do that, I know them.", "Tom: Fine, you do it.", family="action")
    assert draft.claim.people == ("Ana",)
    (draft, *_) = _drafts(offer, "Ana: Yes, please do.", family="action")
    assert draft.claim.people == ("Tom",) and draft.accepted


def test_a_question_for_somebody_is_no_promise_of_theirs() -> None:
    found = _drafts("Mira: Ana, will the hall be done in May?", "Ana: It may be June.", family="action")
    assert not [d for d in found if "person_will" in d.reasons]


def test_a_promise_answers_the_last_who() -> None:
    lines = (
        "Mira: Somebody has to bring the lamps.",
        "Leo: Who picks up our guest at the station?",
        "Tom: I'll do it.",
    )
    lamps = next(d for d in _drafts(*lines, family="action") if d.first_index == 0)
    assert not lamps.claim.people
    lines = ("Mira: Somebody has to bring the lamps.", "Leo: Who can do that?", "Tom: I'll do it.")
    lamps = next(d for d in _drafts(*lines, family="action") if d.first_index == 0)
    assert lamps.claim.people == ("Tom",)
