"""Whose a task is and when it is due: the likeliest of all that its evidence names, or nobody and no day."""

import datetime as dt
from dataclasses import replace

import pytest

from models.minutes.appraisal import Choice
from models.minutes.scores import UtteranceScores
from operators.understand import when, whose
from operators.understand.hybrid import HybridEngine
from operators.understand.sensed import Gesture, Senses
from operators.understand.types import Attendee, DraftItem
from tests.operators.scored_talk import BY_SCORE, CONTEXT, Says, read, said_by, standing

_BY_WORDS_AND_POINTER = Choice(
    whose.FIGURES,
    tuple({"by_words": 2.0, "pointed": 1.0, "nobody": -1.0}.get(name, 0.0) for name in whose.FIGURES),
    -6.0,
    0.7,
)
"""Whom the words name and the pointer points at has a task; either alone may do, where the pointer is sure."""


@pytest.mark.parametrize(
    ("pointer", "owner", "perhaps"),
    [
        ((("Tom", 0.9),), "Tom", None),
        ((("Tom", 0.6), ("Mira", 0.3)), "Tom", None),
        ((("Mira", 0.6), ("Tom", 0.3)), None, "Tom"),
        ((("Mira", 0.99),), "Mira", None),
        ((("", 0.9),), None, None),
    ],
)  # fmt: skip
def test_a_task_is_given_to_the_likeliest_and_to_nobody_where_no_one_is_likely(
    pointer: tuple[tuple[str, float], ...], owner: str | None, perhaps: str | None
) -> None:
    asked, sure = "Tom, can you print the flyers by Friday?", UtteranceScores(action=0.9, owner=pointer)
    engine = HybridEngine(
        scorer=Says({asked: sure}), appraisal=replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER)
    )
    spoken = said_by(("Mira", asked), ("Tom", "Yes."), ("Mira", "Good."))
    (item,) = standing(engine, engine.finish(read(engine, spoken)), "action_item")
    assert (item.owner, item.perhaps) == (owner, perhaps)


@pytest.mark.parametrize(
    ("pointer", "owner"), [((("Tom", 0.9),), "Tom"), ((("", 0.8), ("Tom", 0.1)), None)]
)  # fmt: skip
def test_a_task_of_nobodys_by_the_model_has_no_owner_though_a_name_is_said(
    pointer: tuple[tuple[str, float], ...], owner: str | None
) -> None:
    said = ("Mira", "Tom, please hand in the form by Friday.")
    scores = {said[1]: UtteranceScores(action=0.9, owner=pointer)}
    engine = HybridEngine(scorer=Says(scores), appraisal=replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER))
    (item,) = standing(engine, read(engine, said_by(said)), "action_item")
    assert item.owner == owner


def test_nobody_has_a_task_who_neither_speaks_nor_is_called_in_its_evidence() -> None:
    said = "The flyers must be printed by Friday."
    sure = UtteranceScores(action=0.95, owner=(("Zoe", 0.97),))
    context = replace(CONTEXT, attendees=(*CONTEXT.attendees, Attendee("Zoe", "Zoe")))
    engine = HybridEngine(
        scorer=Says({said: sure}), appraisal=replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER)
    )
    state = engine.start(context)
    for spoken in said_by(("Zoe", "Morning."), ("Mira", said), ("Tom", "Hm.")):
        state = engine.step(state, spoken)
    (item,) = standing(engine, engine.finish(state), "action_item")
    assert item.owner is None and item.perhaps is None


def test_who_is_plainly_named_has_the_task_though_the_pointer_is_not_sure() -> None:
    said = "Tom will draw the plan of the hall."
    unsure = UtteranceScores(action=0.95, owner=(("Mira", 0.4), ("", 0.4)))
    engine = HybridEngine(
        scorer=Says({said: unsure}), appraisal=replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER)
    )
    spoken = said_by(("Mira", said), ("Tom", "Hm."), ("Mira", "Good."))
    (item,) = standing(engine, engine.finish(read(engine, spoken)), "action_item")
    assert item.owner == "Tom"


def test_which_of_two_tasks_of_one_breath_is_whose_the_words_say() -> None:
    asked = "Tom, please print the flyers, and Mira, please call the caterer."
    sure = UtteranceScores(action=0.95, owner=(("Tom", 0.95),))
    engine = HybridEngine(
        scorer=Says({asked: sure}), appraisal=replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER)
    )
    spoken = said_by(("Mira", "Now."), ("Zoe", asked), ("Tom", "Yes."), ("Mira", "Yes."))
    items = standing(engine, engine.finish(read(engine, spoken)), "action_item")
    assert {i.owner for i in items} == {"Tom", "Mira"}


def test_who_was_seen_to_nod_has_the_task_whoever_the_model_points_at() -> None:
    asked = "Tom, could you print the flyers?"
    sure = UtteranceScores(action=0.9, owner=(("Mira", 0.9), ("Tom", 0.05)))
    nod = Gesture("nod", 3_000_000_000, 4_000_000_000, "camera", 0.5, "Tom", 0.9, 2.0, 200.0, 200.0)
    appraisal = replace(BY_SCORE, owners=_BY_WORDS_AND_POINTER)
    engine = HybridEngine(scorer=Says({asked: sure}), appraisal=appraisal)
    first, *rest = said_by(("Mira", asked), ("Mira", "The hall was cold."), ("Mira", "Good."))
    for senses, owner in ((None, None), (Senses((nod,), watched=True), "Tom")):
        spoken = [replace(first, senses=senses), *rest]
        (item,) = standing(engine, engine.finish(read(engine, spoken)), "action_item")
        assert item.owner == owner


_BY_STATED = Choice(
    when.FIGURES,
    tuple({"by_words": 1.0, "stated": 1.0, "latest": 0.5}.get(name, 0.0) for name in when.FIGURES),
    -0.5,
    0.6,
)
"""A task is due on the day that its surest statement names; what the rules took needs less."""
_MONDAY = dt.date(2026, 3, 9)


def _task(talk: tuple[tuple[str, str], ...], due: dict[str, float]) -> DraftItem:
    scores = {
        text: UtteranceScores(
            action=0.9 if place == 0 else 0.3, joins=0.9, joins_to=((place, 0.9),) if place else (),
            owner=(("Tom", 0.9),), due=(0, due.get(text, 0.01)),
        )
        for place, (_, text) in enumerate(talk)
    }  # fmt: skip
    appraisal = replace(BY_SCORE, dates=_BY_STATED)
    engine = HybridEngine(scorer=Says(scores), appraisal=appraisal)
    state = engine.start(replace(CONTEXT, date=_MONDAY))
    for spoken in said_by(*talk):
        state = engine.step(state, spoken)
    item, *_ = standing(engine, engine.finish(state), "action_item")
    return item


def test_the_day_that_is_likely_meant_is_named_and_is_in_the_evidence() -> None:
    talk = (("Tom", "I'll print the flyers by Friday."), ("Mira", "Lovely."), ("Mira", "The hall was cold."))
    item = _task(talk, {talk[0][1]: 0.9})
    assert (item.due, item.due_text, item.due_open) == (dt.date(2026, 3, 13), "by Friday", False)
    assert any(q.utterance_id == "u0" for q in item.evidence)


def test_a_day_that_is_hardly_meant_stays_open_with_its_words() -> None:
    talk = (("Tom", "I'll print the flyers by Friday."), ("Mira", "Lovely."), ("Mira", "The hall was cold."))
    item = _task(talk, {})
    assert (item.due, item.due_text, item.due_open) == (None, "by Friday", True)


def test_a_day_that_the_rules_did_not_take_is_named_where_it_is_likely_meant() -> None:
    talk = (
        ("Tom", "I'll print the flyers."),
        ("Mira", "The printer opens on Wednesday again, that would suit the flyers."),
        ("Tom", "Yes."),
    )
    sure, unsure = (_task(talk, {talk[1][1]: p}) for p in (0.95, 0.02))
    assert sure.due == dt.date(2026, 3, 11) and "Wednesday" in (sure.due_text or "")
    assert any(q.utterance_id == "u1" for q in sure.evidence)
    assert unsure.due is None


def test_without_the_day_of_the_meeting_no_day_is_worked_out() -> None:
    talk = (("Tom", "I'll print the flyers by Friday."), ("Mira", "Lovely."), ("Mira", "The hall was cold."))
    scores = {talk[0][1]: UtteranceScores(action=0.9, due=(0, 0.9))}
    engine = HybridEngine(scorer=Says(scores), appraisal=replace(BY_SCORE, dates=_BY_STATED))
    (item,) = standing(engine, engine.finish(read(engine, said_by(*talk))), "action_item")
    assert (item.due, item.due_text, item.due_open) == (None, "by Friday", False)


@pytest.mark.parametrize(
    "text",
    [
        "By Friday, no, on the tenth, at noon, next week, tomorrow, on 12 March, in a fortnight, today, on Monday.",
        "On the 99th of Octember by half past thirty-one.",
        "🙂 by ٣ March.",
    ],
)
def test_many_or_odd_times_of_one_breath_are_bounded_and_break_nothing(text: str) -> None:
    talk = (("Tom", "I'll print the flyers."), ("Tom", text), ("Mira", "Good."))
    item = _task(talk, {text: 0.9})
    assert item.due is None or item.due >= _MONDAY


@pytest.mark.parametrize(
    ("line", "plainly"),
    [
        (("Tom", "I'll print the flyers by Friday."), True),
        (("Tom", "I will send the report to the school tomorrow."), True),
        (("Mira", "Tom, can you print the flyers by Friday?"), False),
        (("Mira", "Somebody has to print the flyers by Friday."), False),
    ],
)
def test_a_day_that_goes_with_a_plain_promise_is_told_from_others(
    line: tuple[str, str], plainly: bool
) -> None:
    engine = HybridEngine(scorer=Says({line[1]: UtteranceScores(action=0.9, due=(0, 0.9))}))
    state = engine.start(replace(CONTEXT, date=_MONDAY))
    for spoken in said_by(line, ("Mira", "The hall was cold."), ("Mira", "Good.")):
        state = engine.step(state, spoken)
    found = [day for draft in state.drafts for day in engine.when_may(draft, state)]
    assert any(day.figures[when.FIGURES.index("plainly")] for day in found) == plainly
