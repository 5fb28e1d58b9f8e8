"""The verifier model: what it makes of single changes, and that its weights are what runs."""

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.verifier.corruptions import KINDS, corrupted
from models.verifier.examples import annotated_cases, read_scripts
from models.verifier.features import AGAINST, FEATURES, FOR, Case, Heard, Item, features
from models.verifier.session import RELEASED, VerifierModel, VerifierUnusable
from models.verifier.words import due_matches, numbers

SCRIPTS = Path(__file__).resolve().parents[2] / "models" / "everyday"
MONDAY = dt.date(2026, 9, 14)
MODEL = VerifierModel()

ORDER = Case(
    Item("action_item", "Order forty chairs for the summer fair", "Ben", dt.date(2026, 9, 18), "by Friday"),
    (
        Heard("u2", "Anna", "Ben, can you order forty chairs for the summer fair by Friday?"),
        Heard("u3", "Ben", "Yes, I'll do that."),
    ),
    before=(Heard("u1", "Anna", "Next, the fair."),),
    after=(Heard("u4", "Carla", "Good. The stage is next."),),
    attendees=("Anna", "Ben", "Carla"),
    meeting_date=MONDAY,
)
DECISION = Case(
    Item("decision", "We keep the blue cover"),
    (Heard("u7", "Anna", "So we keep the blue cover."), Heard("u8", "Ben", "Agreed.")),
    attendees=("Anna", "Ben", "Carla"),
    meeting_date=MONDAY,
)


def _with(case: Case, **change: object) -> Case:
    return replace(case, item=replace(case.item, **change))  # type: ignore[arg-type]


def test_what_was_said_passes() -> None:
    assert MODEL.probability(ORDER) >= 0.99
    assert MODEL.probability(DECISION) >= 0.99


@pytest.mark.parametrize(
    "wrong",
    [
        _with(ORDER, owner="Carla"),
        _with(ORDER, due=dt.date(2026, 9, 17)),
        _with(ORDER, text="Order fifty chairs for the summer fair"),
        _with(ORDER, text="Order forty chairs for the spring concert in Malmö"),
        _with(ORDER, text="Do not order forty chairs for the summer fair"),
        _with(ORDER, text="Order forty chairs for"),
        replace(ORDER, evidence=(Heard("u4", "Carla", "Good. The stage is next."),)),
        replace(ORDER, after=(Heard("u5", "Anna", "Actually, scratch that, cancel the chairs."),)),
        replace(DECISION, evidence=(Heard("u7", "Anna", "Do we keep the blue cover?"), Heard("u8", "Ben", "No idea."))),
        _with(DECISION, text="We do not keep the blue cover"),
    ],
)  # fmt: skip
def test_one_thing_wrong_does_not_pass(wrong: Case) -> None:
    assert MODEL.probability(wrong) < 0.99


def test_a_score_does_not_depend_on_what_else_is_in_the_batch() -> None:
    cases = [ORDER, DECISION, _with(ORDER, owner=None), _with(DECISION, text="The cover")]
    alone = [MODEL.probability(case) for case in cases]
    chance = random.Random(3)
    for _ in range(20):
        order = [chance.randrange(len(cases)) for _ in range(chance.randrange(1, 40))]
        assert MODEL.probabilities([cases[i] for i in order]) == [alone[i] for i in order]
    assert MODEL.probabilities([]) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, AGAINST + FOR - 1), st.integers(0, 2**32 - 1))
def test_more_that_speaks_against_never_raises_and_more_that_speaks_for_never_lowers(
    column: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    row = np.zeros((1, len(FEATURES)), np.float32)
    row[0, : AGAINST + FOR] = chance.random(AGAINST + FOR) * (chance.random(AGAINST + FOR) < 0.2)
    row[0, AGAINST + FOR + chance.integers(4)] = 1.0
    more = row.copy()
    more[0, column] = min(1.0, more[0, column] + 0.5)
    before, after = (float(MODEL._session.run(None, {"features": r})[0][0]) for r in (row, more))
    assert after <= before + 1e-6 if column < AGAINST else after >= before - 1e-6


def test_corruptions_of_meetings_that_were_never_trained_on_are_caught() -> None:
    chance, caught, made, passed, clean = random.Random(1), 0, 0, 0, 0
    for script in read_scripts([SCRIPTS], frozenset({"test"})):
        holding = annotated_cases(script)
        for case in holding:
            clean += 1
            passed += MODEL.probability(case) >= 0.99
            for kind in KINDS:
                wrong = corrupted(case, kind, chance, holding)
                if wrong is not None:
                    made += 1
                    caught += MODEL.probability(wrong) < 0.99
    assert made > 300 and clean > 60
    assert caught >= 0.93 * made
    assert passed >= 0.75 * clean


@pytest.mark.parametrize("kind", ["decision", "action_item", "open_question", "answered_question"])
@pytest.mark.parametrize(
    "text",
    ["", " ", "?", "🙂🙂", "ä" * 5_000, "no " * 3_000, "12,34.5.6", "\u202eevil", "'", "the the the", "1,,2"],
)
def test_any_text_gets_figures_between_0_and_1(kind: str, text: str) -> None:
    item = Item(kind, text, text[:30] or None, MONDAY, text[:50])  # type: ignore[arg-type]
    case = Case(
        item, (Heard("u", None, text), Heard("v", text[:9], text)), attendees=(text[:20],), meeting_date=None
    )
    found = features(case)
    assert np.isfinite(found).all() and found.min() >= 0 and found.max() <= 1
    assert 0 <= MODEL.probability(case) <= 1
    assert 0 <= MODEL.probability(replace(case, evidence=())) <= 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("forty chairs", {40}),
        ("twenty-five", {20, 5, 25}),
        ("two hundred and sixty", {2, 200, 60, 260}),
        ("twenty twenty-six", {20, 6, 26, 2026, 2020}),
        ("1,200 at 3.5", {1200, 3.5}),
        ("the nineteenth", {19}),
    ],
)
def test_numbers_in_digits_and_words(text: str, values: set[float]) -> None:
    assert values & numbers(text) and max(values) in numbers(text)


@pytest.mark.parametrize(
    ("due", "words", "fits"),
    [
        (dt.date(2026, 9, 18), "by Friday", True),
        (dt.date(2026, 9, 17), "by Friday", False),
        (dt.date(2026, 9, 14), "today", True),
        (dt.date(2026, 9, 28), "two weeks from today", None),
        (dt.date(2026, 9, 19), "on the nineteenth", True),
        (dt.date(2026, 9, 18), "on the nineteenth", False),
        (dt.date(2026, 9, 30), "by the end of the month", True),
        (dt.date(2026, 9, 16), "before lunch", None),
    ],
)
def test_due_dates_against_their_words(due: dt.date, words: str, fits: bool | None) -> None:
    assert due_matches(due, words, MONDAY) is fits


def test_weights_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(VerifierUnusable, match="cannot be read"):
        VerifierModel(tmp_path / "none.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"ONNX it is not")
    with pytest.raises(VerifierUnusable, match="no verifier"):
        VerifierModel(broken)


def test_damaged_weights_are_refused_or_give_probabilities(tmp_path: Path) -> None:
    whole, damaged = RELEASED.read_bytes(), tmp_path / "verifier.onnx"
    refused = 0
    for place in range(0, len(whole) - 4, 16):
        damaged.write_bytes(whole[:place] + b"\xff\xff\xff\xff" + whole[place + 4 :])  # NaN, within weights
        try:
            model = VerifierModel(damaged)
        except VerifierUnusable:
            refused += 1
        else:
            assert 0 <= model.probability(ORDER) <= 1
    assert refused > 20


def test_every_figure_shows_somewhere() -> None:
    """A figure that never differs from 0 says nothing, however it is weighed."""
    chance, seen = random.Random(2), np.zeros(len(FEATURES), bool)
    for script in read_scripts([SCRIPTS], frozenset({"train", "test"})):
        holding = annotated_cases(script)
        for case in holding:
            wrong = [corrupted(case, kind, chance, holding) for kind in KINDS]
            for some in (case, *(w for w in wrong if w is not None)):
                seen |= features(some) > 0
    for rare in (
        _with(ORDER, due=dt.date(2026, 9, 1)),
        _with(ORDER, due_text=None),
        _with(DECISION, kind="answered_question"),
        replace(DECISION, evidence=(Heard("u8", "Ben", "Agreed."),)),
    ):
        seen |= features(rare) > 0
    silent = {name for name, shows in zip(FEATURES, seen, strict=True) if not shows}
    assert silent == set()
