"""Dates and owners that are put right later or by others, tasks that change hands, and what is taken back by its name."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.language.days import named_days
from operators.language.text import clauses_of
from operators.understand.engine import RuleEngine
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken, UnderstandSettings

_PEOPLE = ("Mira", "Tom", "Ana", "Leo")
_CONTEXT = MeetingContext(date=dt.date(2026, 3, 9), attendees=tuple(Attendee(name, name) for name in _PEOPLE))
"""A Monday."""
_TALK = (
    "Leo: The radiator hums again.",
    "Mira: It hums in B flat.",
    "Leo: My aunt had one like it.",
    "Mira: Everybody's aunt had one.",
    "Leo: Hers was green, though.",
    "Ana: Green is the better colour.",
)


def _items(*lines: str, kind: str = "action_item", least: float = 0.2) -> list[DraftItem]:
    engine = RuleEngine(UnderstandSettings(action_threshold=least))
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, text = line.split(": ", 1)
        start = 5_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    state = engine.finish(state)
    return [i for i in engine.items(state) if i.kind == kind and not i.withdrawn]


def _march(day: int) -> dt.date:
    return dt.date(2026, 3, day)


@pytest.mark.parametrize(
    ("lines", "owner", "due"),
    [
        # A day alone, said by whoever is asked or by others, right after the task or its date.
        (("Mira: Tom, can you ring the plumber by Friday?", "Tom: Thursday even."), "Tom", _march(12)),
        (("Mira: Tom, can you ring the plumber by Friday?", "Tom: Wednesday's easier."), "Tom", _march(11)),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                "Mira: Thursday would be better.",
                "Tom: Thursday, fine.",
            ),
            "Tom",
            _march(12),
        ),
        (("Tom: I'll paint the gate.", "Mira: By when?", "Tom: Wednesday."), "Tom", _march(11)),
        (
            ("Tom: I'll paint the gate.", "Mira: When can you have it done?", "Tom: Sixteenth."),
            "Tom",
            _march(16),
        ),
        # What is only misheard, asked or about something else moves nothing.
        (
            ("Tom: I'll paint the gate on Saturday.", "Mira: Sorry, Sunday?", "Leo: He said Saturday."),
            "Tom",
            _march(14),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                "Mira: When's the fair again?",
                "Leo: The twentieth of May.",
            ),
            "Tom",
            _march(13),
        ),
        (("Tom: I'll paint the gate by Friday.", "Leo: The shop is shut on Thursday."), "Tom", _march(13)),
        # The day before is named as one that will not do.
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Tom: The gate, Friday's no good after all. Saturday.",
            ),
            "Tom",
            _march(14),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Tom: Oh, I said Friday for the gate. Make it Thursday.",
            ),
            "Tom",
            _march(12),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Mira: Tom, the gate, not Friday, that's the fair. Thursday at the latest.",
            ),
            "Tom",
            _march(12),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Tom: So not Friday. I'm in court all day. Saturday.",
            ),
            "Tom",
            _march(14),
        ),
        (("Tom: I'll paint the gate by Friday.", "Mira: Not this Friday, the one after."), "Tom", _march(20)),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Tom: Friday's too early for the gate, a day later.",
            ),
            "Tom",
            _march(14),
        ),
        (
            (
                "Tom: I'll paint the gate by the twentieth.",
                *_TALK,
                "Mira: For the gate the twentieth is tight.",
                "Tom: Twenty-fourth, then.",
            ),
            "Tom",
            _march(24),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Leo: Is the gate still Friday?",
                "Mira: Doesn't have to be. Tuesday will do.",
            ),
            "Tom",
            _march(10),
        ),
        # A day given up without another one is no date any more.
        (
            (
                "Tom: I'll paint the gate by Friday.",
                *_TALK,
                "Tom: Friday's hopeless for the gate, I forgot the fair.",
            ),
            "Tom",
            None,
        ),
        # The same day of another month is no other day.
        (
            ("Tom: I'll paint the gate by the twentieth of May.", "Mira: The twentieth, good."),
            "Tom",
            dt.date(2026, 5, 20),
        ),
        # Others' days and doings beside it.
        (
            (
                "Tom: I'll paint the gate by Friday.",
                "Mira: Ines isn't on tonight. She paints the sign by the first of April.",
            ),
            "Tom",
            _march(13),
        ),
        (
            (
                "Tom: I'll paint the gate by Friday.",
                "Mira: Leo will clean the shed then, when he is back on Sunday.",
            ),
            "Tom",
            _march(13),
        ),
    ],
)
def test_the_last_word_on_a_date_holds(lines: tuple[str, ...], owner: str, due: dt.date | None) -> None:
    first = next(i for i in _items(*lines) if any(q.utterance_id == "u0" for q in i.evidence))
    assert (first.owner, first.due) == (owner, due)


@pytest.mark.parametrize(
    ("lines", "owner"),
    [
        # Nobody's task until somebody says *me*.
        (("Mira: Somebody has to ring the plumber.", "Tom: That'll be me."), "Tom"),
        (("Mira: Somebody has to ring the plumber.", "Leo: Not me.", "Tom: Down to me, I suppose."), "Tom"),
        (("Mira: Someone should ring the plumber.", "Tom: On my list."), "Tom"),
        (("Mira: Someone should ring the plumber.", "Tom: Leave him with me."), "Tom"),
        (("Tom: Somebody's got to ring the plumber. Me, obviously.",), "Tom"),
        (("Mira: Someone should ring the plumber.", "Leo: Me and the dog, we are cold."), None),
        (("Mira: Someone should ring the plumber.", "Leo: It was me last year."), None),
        # Who is asked says no, another one takes it.
        (("Mira: Tom, can you ring the plumber?", "Tom: I really can't.", "Ana: Give him to me."), "Ana"),
        (
            (
                "Mira: Tom, can you ring the plumber?",
                "Tom: Oh, I'd be terrible. No, sorry.",
                "Mira: Fine, I'll do it myself.",
            ),
            "Mira",
        ),
        (("Mira: Tom, can you ring the plumber?", "Tom: No, sorry, not with my ears."), None),
        # It changes hands, at once or much later.
        (("Tom: I'll ring the plumber.", "Ana: Leave it to me, I know him."), "Ana"),
        (
            (
                "Tom: I'll ring the plumber.",
                *_TALK,
                "Tom: The plumber, I can't, I'm in court.",
                "Ana: Give it here, then.",
            ),
            "Ana",
        ),
        (
            (
                "Tom: I'll ring the plumber.",
                *_TALK,
                "Ana: I'll ring the plumber instead of Tom, I see him at squash.",
            ),
            "Ana",
        ),
        (
            (
                "Tom: I'll ring the plumber.",
                *_TALK,
                "Mira: About the plumber. Tom, he never likes you.",
                "Ana: I'd sooner ring him myself.",
            ),
            "Ana",
        ),
        (
            (
                "Tom: I'll ring the plumber.",
                *_TALK,
                "Mira: About the plumber. Is he any good?",
                "Leo: He's fine.",
            ),
            "Tom",
        ),
        (("Tom: I'll ring the plumber.", "Tom: No, Leo does that, not me."), "Leo"),
    ],
)
def test_the_last_word_on_who_does_it_holds(lines: tuple[str, ...], owner: str | None) -> None:
    first = next(i for i in _items(*lines) if any(q.utterance_id == "u0" for q in i.evidence))
    assert first.owner == owner


@pytest.mark.parametrize(
    "talk",
    [
        # The day is confirmed or asked back.
        ("Mira: Great, we agreed on Friday then.",),
        ("Leo: Great, we agreed on Friday then.",),
        ("Leo: So you said Friday, right?",),
        ("Leo: We agreed on Friday, so Friday it is.",),
        (*_TALK, "Tom: I promised Friday evening to my sister."),
        # What else is on that day.
        ("Mira: Friday is the day we open.",),
        ("Mira: Good.", "Tom: We have a stall on Friday."),
        ("Tom: Friday's too good to miss.",),
        ("Leo: Friday is full of visitors, so yes.",),
        # A day answers another question.
        ("Mira: When do you fly to Rome?", "Tom: Monday."),
        ("Leo: What day is the fair?", "Tom: Saturday."),
    ],
)
def test_talk_of_days_moves_no_date(talk: tuple[str, ...]) -> None:
    for said in ("Tom: I'll paint the gate by Friday.", "Tom: I'll print the posters by Friday."):
        first = next(i for i in _items(said, *talk) if any(q.utterance_id == "u0" for q in i.evidence))
        assert (first.owner, first.due) == ("Tom", _march(13))


@pytest.mark.parametrize(
    ("lines", "owner"),
    [
        # Small talk with *me* or *I can* in it.
        (("Mira: Somebody has to book the hall.", "Tom: For me Saturday is better."), None),
        (("Mira: Somebody has to book the hall.", "Tom: To me it looks fine."), None),
        (("Mira: Somebody has to book the hall. Can you hear me at the back, Tom?", "Tom: I can."), None),
        (("Mira: Somebody has to book the hall.", "Leo: Can you hear me, Tom?", "Tom: I can."), None),
        (("Mira: Somebody has to book the hall.", "Tom: My department on Mondays is closed."), None),
        (("Mira: Somebody has to book the hall.", "Tom: For me, then."), "Tom"),
        # Who asks back has not said yes.
        (("Mira: Somebody has to book the hall.", "Tom: Me?"), None),
        (
            (
                "Mira: Somebody has to book the hall.",
                "Tom: Me?",
                "Mira: It's your club.",
                "Tom: All right, me.",
            ),
            "Tom",
        ),
        (("Mira: Somebody has to book the hall.", "Leo: Who can do that?", "Tom: I can."), "Tom"),
        (("Mira: Somebody has to book the hall.", "Tom: I can, on Friday."), "Tom"),
        # A *no* to something else.
        (
            ("Mira: Tom, can you order the paper? Do you need a code for that?", "Tom: No."),
            "Tom",
        ),
        (("Mira: Tom, can you order the paper?", "Leo: Is it raining?", "Tom: No."), "Tom"),
        (("Mira: Tom, can you order the paper?", "Tom: No."), None),
        # Who is only mentioned.
        (
            ("Ana: I'll print the menus.", "Leo: Do you have the car today?", "Ana: No Tom has got it."),
            "Ana",
        ),
        (("Ana: I'll print the menus.", "Leo: Who is at the door?", "Ana: Oh no that is Tom."), "Ana"),
        (("Ana: I'll print the menus.", "Leo: No, Tom does that."), "Tom"),
        # Who was asked something else.
        (
            (
                "Tom: I'll do the flyers on Thursday.",
                *_TALK,
                "Tom: I forgot the fair, about the flyers. Leo, did you park outside?",
                "Leo: Yes.",
            ),
            "Tom",
        ),
    ],
)
def test_talk_of_other_things_gives_a_task_to_nobody(lines: tuple[str, ...], owner: str | None) -> None:
    first = next(i for i in _items(*lines) if any(q.utterance_id == "u0" for q in i.evidence))
    assert first.owner == owner


@pytest.mark.parametrize(
    ("said", "back"),
    [
        (
            "Tom: I'll paint the big banner on Friday.",
            "Tom: Oh, the banner. I can't, so cross me out on that.",
        ),
        ("Tom: I'll paint the big banner on Friday.", "Tom: You know what, forget the banner."),
        ("Tom: I'll paint the big banner on Friday.", "Mira: Cross out the banner."),
        ("Tom: I'll paint the big banner on Friday.", "Mira: The banner is dead, then."),
        ("Tom: I'll paint the big banner on Friday.", "Mira: Drop the banner."),
    ],
)
def test_what_is_taken_back_by_its_name_long_after_is_not_published(said: str, back: str) -> None:
    assert len(_items(said, *_TALK, *_TALK, *_TALK)) == 1
    assert _items(said, *_TALK, *_TALK, *_TALK, back) == []


@pytest.mark.parametrize(
    "talk",
    [
        "Mira: The heater in the big room is dead.",
        "Tom: I can't do two of those in a month.",
        "Mira: Somebody wants to drop the letters in again before Friday.",
        "Mira: Let's not.",
        "Mira: Drop the banner at the desk.",
        "Mira: Just drop the banner with the porter.",
    ],
)
def test_talk_of_other_things_takes_nothing_back(talk: str) -> None:
    said = ("Tom: I'll paint the banner on Friday.", *_TALK, "Leo: If we had a horse, we could ride.")
    assert any(i.owner == "Tom" and i.due == _march(13) for i in _items(*said, talk))


@pytest.mark.parametrize(
    ("text", "dropped", "kept"),
    [
        ("Make it the fourth, not the sixth.", {"the sixth"}, {"the fourth"}),
        ("Monday's silly, I'd sooner do it on Tuesday.", {"monday"}, {"on tuesday"}),
        ("I said tomorrow, it was Wednesday.", {"tomorrow"}, {"wednesday"}),
        ("It's not Friday, it's Thursday.", {"friday"}, {"thursday"}),
        ("He's not on tonight.", {"on tonight"}, set()),
        ("The form is no use on Friday.", {"on friday"}, set()),
        ("Not until Thursday.", set(), {"until thursday"}),
        ("They're at home, I'll bring them on Thursday.", set(), {"on thursday"}),
    ],
)
def test_days_that_do_not_hold(text: str, dropped: set[str], kept: set[str]) -> None:
    days = [d for c in clauses_of(text) for d in named_days(c.norm, c.question_mark)]
    assert {d.phrase.words for d in days if d.dropped} == dropped
    assert {d.phrase.words for d in days if not d.dropped} == kept
