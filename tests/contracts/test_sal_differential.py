"""Compiled, incremental rules against an interpreter that looks at everything anew."""

from random import Random

import pytest

from benchmarks.brute_rules import Judged, judge
from benchmarks.random_rules import change, random_document, random_item, random_rules
from contracts.sal import Checker, Document, load_rules
from contracts.sal.checker import Violation
from contracts.sal.ruleset import Rule, RuleSet


def said(checker: Checker, rule: Rule, broken: list[Violation]) -> Judged:
    own = [v for v in broken if v.rule == rule.name]
    assert all(v.judged for v in own)
    if not rule.lists:
        whole = False if own else None if checker.undecided(rule) else True
        return Judged(whole=whole)
    failing = frozenset(v.item_id for v in own if v.item_id is not None)
    unknown = frozenset(checker.unknown(rule)) if checker.applies(rule) else frozenset()
    repairs = tuple((v.item_id or "", field, value) for v in own for field, value in v.repairs)
    return Judged(failing, unknown, True, repairs)


def in_order(judged: Judged) -> tuple[object, ...]:
    return judged.failing, judged.unknown, judged.whole, sorted(judged.repairs, key=repr)


def compare(rules: RuleSet, checker: Checker, document: Document, at: str) -> None:
    stage = {"item": "item", "revision": "revision", "final": "final"}[at]
    broken = checker.check(stage)  # type: ignore[arg-type]
    wanted = judge(rules.trees, document, at)
    for rule in rules.rules:
        if rule.name in wanted:
            assert in_order(said(checker, rule, broken)) == in_order(wanted[rule.name]), rule.text


@pytest.mark.parametrize("seed", range(40))
def test_random_rules_on_a_changing_document(seed: int) -> None:
    rng = Random(seed)
    rules = random_rules(rng, 12)
    document = random_document(rng, 8)
    checker = Checker(rules, document)
    for _ in range(10):
        compare(rules, checker, document, rng.choice(("item", "revision", "final")))
        change(rng, document, 8)


def test_what_is_kept_between_checks_equals_a_new_start() -> None:
    rng = Random(77)
    rules = random_rules(rng, 30)
    document = random_document(rng, 30)
    kept = Checker(rules, document)
    for _ in range(60):
        change(rng, document, 30)
        assert kept.check("final") == Checker(rules, document).check("final")


def test_a_long_log_of_changes_is_cut_without_losing_one() -> None:
    rng = Random(3)
    rules = load_rules('assert "short": all i in items: length(i.text) <= 20 or i.confidence == 1\n')
    document = random_document(rng, 3)
    checker = Checker(rules, document)
    checker.check("final")
    for number in range(12_000):
        document.put("decisions", random_item(rng, f"i{number % 3}", "decisions"))
    assert document.lists["decisions"].since(0) is None
    assert checker.check("final") == Checker(rules, document).check("final")
