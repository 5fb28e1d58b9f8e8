"""Every example beside a rule is a test: the rule is found in it, and not in its counter-examples."""

from __future__ import annotations

import pytest

from operators.language.people import person_of, roster_of
from operators.language.rules import Rule, rules_of
from operators.understand.hear import hear
from operators.understand.types import Spoken

NAMES = ("Anna", "Ben", "Kate", "Kamala", "May", "Tariq", "Samir", "Stellan", "Magda", "Tunde", "Nkechi")
ROSTER = roster_of(
    [person_of(n, n, None, False) for n in NAMES]
    + [
        person_of("Carla", "Carla", "project manager", False),
        person_of("Ugo", "Ugo", "user interface designer", False),
        person_of("Mia", "Mia", "marketing expert", False),
    ]
)
YES = [(r, e) for r in rules_of() for e in r.examples]
NO = [(r, e) for r in rules_of() for e in r.counter_examples]


def found(rule: Rule, text: str) -> bool:
    heard = hear(Spoken("u", 0, 1, "Zed", text), 0, ROSTER, (rule,))
    return any(heard_clause.hits for heard_clause in heard.clauses)


@pytest.mark.parametrize(("rule", "text"), YES, ids=[f"{r.name}-{e[:40]}" for r, e in YES])
def test_example_is_found(rule: Rule, text: str) -> None:
    assert found(rule, text)


@pytest.mark.parametrize(("rule", "text"), NO, ids=[f"{r.name}-{e[:40]}" for r, e in NO])
def test_counter_example_is_not_found(rule: Rule, text: str) -> None:
    assert not found(rule, text)
