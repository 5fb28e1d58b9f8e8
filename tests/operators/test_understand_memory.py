"""What is remembered of reading an utterance changes no result."""

import datetime as dt

import pytest

from operators.language.people import person_of, roster_of
from operators.language.rules import rules_of
from operators.understand import lately
from operators.understand.engine import RuleEngine
from operators.understand.hear import _READ, _READ_KEPT, hear
from operators.understand.types import DraftItem, MeetingContext, Spoken


def said(identity: str, text: str, speaker: str = "Anna") -> Spoken:
    """An utterance of one second."""
    return Spoken(identity, 0, 1_000_000_000, speaker, text, "microphone")


def test_the_same_words_are_read_once_and_stand_in_their_own_place() -> None:
    roster = roster_of([person_of("Ben", None, None, False)], ("Anna",))
    first = hear(said("u1", "Ben, please order the chairs by Friday."), 3, roster, rules_of())
    again = hear(said("u2", "Ben, please order the chairs by Friday."), 9, roster, rules_of())
    assert again.clauses is first.clauses
    assert (first.spoken.id, first.index, again.spoken.id, again.index) == ("u1", 3, "u2", 9)


def test_a_name_that_became_known_is_found_in_words_read_before() -> None:
    text = "Zebulon, please order the chairs."
    before = hear(said("u1", text), 0, roster_of([], ("Anna",)), rules_of())
    with_him = roster_of([person_of("Zebulon", None, None, False)], ("Anna",))
    after = hear(said("u1", text), 0, with_him, rules_of())
    assert before.called == ()
    assert after.called == ("Zebulon",)


def test_other_rules_read_anew() -> None:
    roster = roster_of([], ("Anna",))
    text = "I will call the plumber tomorrow."
    assert hear(said("u1", text), 0, roster, rules_of()).signals()
    assert not hear(said("u1", text), 0, roster, ()).signals()


def test_memory_is_bounded() -> None:
    roster = roster_of([], ("Anna",))
    for number in range(_READ_KEPT + 10):
        hear(said("u", f"Number {number}."), number, roster, ())
    assert len(_READ) <= _READ_KEPT


def test_an_item_is_made_once_and_anew_when_the_day_becomes_known() -> None:
    engine = RuleEngine()
    state = engine.step(engine.start(MeetingContext()), said("u1", "I will call the plumber by Friday."))
    (before,) = engine.items(state)
    (same,) = engine.items(state)
    assert same is before
    dated = engine.with_context(state, MeetingContext(date=dt.date(2026, 3, 10)))
    (after,) = engine.items(dated)
    assert (before.due, after.due) == (None, dt.date(2026, 3, 13))


def test_a_memory_that_is_full_changes_no_item(monkeypatch: pytest.MonkeyPatch) -> None:
    def items() -> tuple[DraftItem, ...]:
        engine = RuleEngine()
        state = engine.start(MeetingContext())
        texts = (
            "I will call the plumber tomorrow.",
            "I will order new chairs for the kitchen by Friday.",
            "I will translate the user guide by Monday.",
        )
        for number, text in enumerate(texts):
            state = engine.step(state, said(f"u{number}", text))
        return engine.items(state)

    roomy = items()
    monkeypatch.setattr(lately, "_KEPT", 1)
    assert len(roomy) > 1
    assert items() == roomy
