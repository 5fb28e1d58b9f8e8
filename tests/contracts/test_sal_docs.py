"""docs/rules.md: every rule on it loads, every case comes out as it says, every table is what the code says."""

import re
from typing import get_args

import pytest

from contracts.sal import RuleError, load_rules
from contracts.sal.functions import FUNCTIONS
from contracts.sal.grammar import KEYWORDS, UNITS_US
from contracts.sal.ruleset import ActionKind, At, Severity
from docs.rules_tables import PAGE, with_tables
from flows.rule_cases import cases_of, run_case
from flows.rules import DEFAULT_RULES, read_rules

TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sal|yaml)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_rules_load_and_cases_come_out() -> None:
    rules, cases = None, 0
    for kind, text in BLOCKS:
        if kind == "sal":
            rules = load_rules(text, "docs")
            continue
        assert rules is not None
        for case in cases_of(text, "docs"):
            assert run_case(rules, case).differences == (), case.case
            cases += 1
    assert cases >= 8


def test_a_case_that_differs_is_told() -> None:
    rules = load_rules('assert "a": decisions != []\nassert "b": all i in items: i.text == "x" on fail: drop')
    (case,) = cases_of(
        "[{case: c, document: {decisions: [y]}, expect: {a: fails, b: [], z: holds}, actions: {d1: keep}}]",
        "c",
    )
    told = run_case(rules, case).differences
    assert told == (
        "“a” holds, expected was that it fails", "“b” fails for d1, not for no item", "there is no rule “z”",
        "d1: drop, expected was keep",
    )  # fmt: skip


def test_tables_are_what_the_code_says() -> None:
    assert with_tables(TEXT) == TEXT, "run python -m docs.rules_tables"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_example_of_a_function(name: str) -> None:
    example = FUNCTIONS[name].example
    variable = {"a": "a in action_items", "q": "q in open_questions"}.get(
        next(iter(re.findall(r"\b([aq])\.", example)), ""), "i in items"
    )
    load_rules(f'assert "example": all {variable}: {example}')


def test_every_word_of_the_language_is_explained() -> None:
    for word in (
        *KEYWORDS,
        *UNITS_US,
        "count",
        "distinct",
        "repair",
        "review",
        "fallback",
        "drop",
        "warning",
        "note",
    ):
        shown = word.removesuffix("s") if word in UNITS_US and len(word) > 2 else word
        assert shown in TEXT, word
    grammar = TEXT.partition("## Grammar")[2]
    assert set(re.findall(r'"([a-z]+)"', grammar)) == {
        *KEYWORDS, *get_args(At), *get_args(Severity), *get_args(ActionKind), "fail", "count", "distinct",
    }  # fmt: skip


def test_the_message_on_the_page_is_the_one_that_comes() -> None:
    shown = re.search(r"^ {4}house\.sal:2:38.*?^$", TEXT, re.MULTILINE | re.DOTALL)
    assert shown is not None
    with pytest.raises(RuleError) as caught:
        load_rules('# house\nassert "a": all a in action_items: a.onwer != null', "house.sal")
    assert [line[4:] for line in shown[0].rstrip().splitlines()] == caught.value.long().splitlines()


def test_default_rules_load() -> None:
    rules = read_rules(DEFAULT_RULES)
    assert {"has content", "known owner", "main topic covered"} <= {rule.name for rule in rules.rules}
