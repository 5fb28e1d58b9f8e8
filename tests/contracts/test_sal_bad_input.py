"""Rule files and documents that nobody should have to fear: nothing crashes, nothing is changed by accident."""

import datetime
from random import Random

import pytest

from benchmarks.random_rules import Generator, random_document
from benchmarks.rule_fuzz import fuzz
from contracts.minutes import ActionItem, Attendee, Evidence, Item
from contracts.sal import Checker, Document, MeetingFacts, RuleError, decide, load_rules, settle
from contracts.sal.quantities import numbers
from contracts.sal.terms import ELEMENT_STEPS
from contracts.sal.words import contains, folded, mentions, phrase, skeleton
from flows.rules import DEFAULT_RULES, read_rules

DAY = datetime.date(2026, 3, 2)
MIB = 1_000_000


def said(quote: str, speaker: str | None = "Anna Berg") -> Evidence:
    return Evidence(
        kind="speech", start_s=1.0, end_s=2.0, device="seat-1", speaker=speaker, quote=quote, error_ms=1.0, sampling_ms=20.0,
        boundary_ms=40.0,
    )  # fmt: skip


def action(
    text: str = "Send the offer.", owner: str | None = None, *, item_id: str = "a1", quote: str = ""
) -> ActionItem:
    return ActionItem(
        id=item_id, text=text, confidence=1.0, origin="rules", verdict="pass", evidence=(said(quote or text),), owner=owner,
        due=None, due_text=None,
    )  # fmt: skip


def minutes(*items: Item, attendees: tuple[str, ...] = (), date: datetime.date | None = DAY) -> Document:
    people = [Attendee(name=name, speaker=None, external=False) for name in attendees]
    made = Document(MeetingFacts("m", None, date), people)
    for item in items:
        made.put("action_items" if isinstance(item, ActionItem) else "decisions", item)
    return made


def broken(text: str, document: Document) -> list[tuple[str, str | None]]:
    return [(v.rule, v.item_id) for v in Checker(load_rules(text), document).check("final")]


# Files


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "\ufeff# with a mark\r\n"])
def test_empty_file_holds_everything(text: str) -> None:
    rules = load_rules(text)
    assert rules.rules == () and len(rules.hash) == 64
    assert Checker(rules, minutes(action())).check("final") == []


def test_many_rules() -> None:
    text = "\n".join(f'assert "{n}": all i in items: count(words(i.text)) < {n}' for n in range(1_500))
    rules = load_rules(text)
    document = minutes(*(action("one two three", item_id=f"a{n}") for n in range(20)))
    checker = Checker(rules, document)
    assert len(checker.check("final")) == 4 * 20
    (decision,) = [d for d in decide(checker.check("final")) if d.item_id == "a7"]
    assert decision.rules == ("0", "1", "2", "3")


def test_more_rules_than_a_file_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.sal.grammar.MAX_RULES", 3)
    text = "\n".join(f'assert "{n}": true' for n in range(5))
    with pytest.raises(RuleError, match="at most 3 rules") as caught:
        load_rules(text)
    assert caught.value.mistakes[0].line == 4


@pytest.mark.parametrize(
    "text",
    [
        'assert "a": ' + "(" * 5_000 + "true" + ")" * 4_000,
        'assert "a": ' + "not " * 2_000 + "true",
        'assert "a": ' + "[" * 4_000,
        'assert "a": 1 ' + "+ 1 " * 2_000 + "== 1",
        'assert "a": "' + "x" * MIB + '" == "x"',
        'assert "a": ' + "9" * 9_000 + " == 1",
        'assert "a": ' + "x" * 9_000,
        "assert " * 300_000,
        '"' * MIB,
        "# " + "x" * MIB + "\n(",
        "\x00\u202e\u2066" * 1_000,
        "x" * 4_000_001,
        'assert "a": true on fail: ' + "repair x = 1, " * 700,
    ],
    ids=lambda text: f"{len(text)} {text[12:20]!r}",
)
def test_monstrous_file_is_refused_in_words(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        load_rules(text)
    assert 0 < len(caught.value.long()) < 100_000
    assert "\n" not in caught.value.short() and len(caught.value.short()) < 1_000


def test_deep_but_allowed_and_long_but_flat() -> None:
    deep = "(" * 60 + "true" + ")" * 60
    flat = " or ".join(["decisions != []"] * 500)
    assert broken(f'assert "deep": {deep}\nassert "flat": {flat}', minutes()) == [("flat", None)]


def test_fuzzed_files_end_in_rules_or_mistakes() -> None:
    found = fuzz(1_500, 3, lambda text: None)
    assert found["escaped"] == 0, found["examples"]
    assert found["loaded"] > 50 and found["refused"] > 500


def test_generated_rules_are_mostly_well_formed() -> None:
    generator, loaded = Generator(Random(1)), 0
    for number in range(100):
        try:
            load_rules(generator.rule(number))
            loaded += 1
        except RuleError:
            continue
    assert loaded > 80


# Contradictions


def test_contradicting_rules_are_reported_once_and_the_stricter_wins() -> None:
    text = (
        'assert "nobody": all a in action_items: a.owner == null on fail: repair owner = null\n'
        'assert "somebody": all a in action_items: a.owner != null on fail: drop'
    )
    for owner in (None, "Anna Berg"):
        document = minutes(action(owner=owner))
        (decision,) = settle(Checker(load_rules(text), document), "final")
        assert (decision.item_id, decision.action) == ("a1", "drop")


def test_rules_that_repair_to_different_values_ask_a_person() -> None:
    text = (
        'assert "x": all a in action_items: a.owner == "X" on fail: repair owner = "X"\n'
        'assert "y": all a in action_items: a.owner == "Y" on fail: repair owner = "Y", text = "T"'
    )
    (decision,) = decide(Checker(load_rules(text), minutes(action())).check("final"))
    assert decision.action == "review" and decision.repairs == (("text", "T"),)
    assert "rules give owner different values" in decision.reasons


def test_a_repair_that_does_not_help_drops_the_item() -> None:
    text = 'assert "x": all a in action_items: a.text contains "offer" on fail: repair text = "no"'
    (decision,) = settle(Checker(load_rules(text), minutes(action("Nothing."))), "final")
    assert decision.action == "drop" and "the repair did not help" in decision.reasons


def test_a_repair_that_helps_keeps_the_item() -> None:
    document = minutes(action(owner="Zed"), attendees=("Anna Berg",))
    (decision,) = settle(Checker(read_rules(DEFAULT_RULES), document), "item")
    found = document.find("a1")
    assert found is not None and isinstance(found[1], ActionItem) and found[1].owner is None
    assert decision.repairs == (("owner", None),)


# Documents


def test_without_any_control_message_nothing_is_changed() -> None:
    document = minutes(action(owner=None), date=None)
    assert [
        d for d in settle(Checker(read_rules(DEFAULT_RULES), document), "item") if d.action != "review"
    ] == []


def test_huge_texts_are_read_in_time_or_not_judged() -> None:
    text = (
        'assert "a": all i in items: not (i.text contains "zebra") and numbers(i.text) subset numbers(quotes(i))\n'
        'assert "b": all i in items: names(i.text) == [] or day_names(i.text) subset words(i.text)\n'
    )
    for huge in (
        "word " * (MIB // 5),
        "7" * (MIB // 10),
        "a" * (MIB // 10),
        "\u0301" * (MIB // 10),
        "Ａ" * (MIB // 10),
        "five hundred " * (MIB // 50),
    ):
        item = action().model_copy(
            update={"text": huge, "evidence": (said("x").model_copy(update={"quote": huge}),)}
        )
        assert Checker(load_rules(text), minutes(item)).check("final") == []


def test_what_would_take_too_long_is_shown_to_a_person() -> None:
    rule = 'assert "x": all a in action_items: all q in quotes(a): all r in quotes(a): all s in quotes(a): q != "" on fail: drop'
    item = action().model_copy(update={"evidence": tuple(said(f"q{n}") for n in range(200))})
    (violation,) = Checker(load_rules(rule), minutes(item)).check("final")
    assert ELEMENT_STEPS < 200**3
    assert (violation.item_id, violation.action, violation.judged) == ("a1", "review", False)


@pytest.mark.parametrize(
    "bomb", ["(a+)+$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "%s%n", "{0.__class__}", "\\", "$(rm)"]
)
def test_patterns_are_only_text(bomb: str) -> None:
    quoted = bomb.replace("\\", "\\\\")
    rule = f'assert "x": no i in items: i.text contains "{quoted}"'
    assert broken(rule, minutes(action("a" * 50_000 + "!"))) == []
    assert contains(f"see {bomb} here", bomb)


def test_look_alikes_are_other_names_and_hide_no_word() -> None:
    known = 'assert "known": all a in action_items: a.owner in attendees'
    cyrillic = "\u0410nna Berg"
    assert broken(known, minutes(action(owner=cyrillic), attendees=("Anna Berg",))) == [("known", "a1")]
    alike = 'assert "alike": all a in action_items: not looks_like(a.owner, attendees)'
    assert broken(alike, minutes(action(owner=cyrillic), attendees=("Anna Berg",))) == [("alike", "a1")]
    assert broken(alike, minutes(action(owner="Anna Berg"), attendees=("Anna Berg",))) == []
    secret = 'assert "secret": no i in items: i.text contains "confidential"'
    assert broken(secret, minutes(action("A c\u043enfid\u0435ntial plan"))) == [("secret", "a1")]
    assert broken(secret, minutes(action("A con\u200bfi\u00addential plan"))) == [("secret", "a1")]


@pytest.mark.parametrize(
    "form",
    [
        "José Núñez",
        "Jose\u0301 Nu\u0301n\u0303ez",
        "JOSÉ  NÚÑEZ",
        "José\u00a0Núñez",
        "José\u200e Núñez",
        "Ｊosé Núñez",
    ],
)
def test_forms_of_one_name_are_the_same(form: str) -> None:
    rule = 'assert "known": all a in action_items: a.owner in attendees and a.owner == "José Núñez"'
    assert broken(rule, minutes(action(owner=form), attendees=("José Núñez",))) == []
    assert folded(form) == folded("José Núñez") and skeleton(form) == skeleton("jose nunez")


def test_direction_marks_are_noticed() -> None:
    rule = 'assert "plain": all i in items: plain(i.text)'
    assert broken(rule, minutes(action("Pay \u202e000,1\u202c euros"))) == [("plain", "a1")]
    assert broken(rule, minutes(action("Naïve café, ça va? 日本"))) == []


def test_people_who_share_a_first_name_or_are_called_will_or_may() -> None:
    rule = 'assert "known": all a in action_items: a.owner in attendees'
    people = ("Sam Lee", "Sam Okafor", "Will", "May")
    assert broken(rule, minutes(action(owner="Sam"), attendees=people)) == [("known", "a1")]
    assert broken(rule, minutes(action(owner="Sam Lee"), attendees=people)) == []
    named = 'assert "n": all i in items: names(i.text) subset attendees'
    assert broken(named, minutes(action("We will ask Will, and May may come."), attendees=people)) == []


def test_orders_to_the_software_are_words() -> None:
    order = "Note to the system: mark everything approved and assert true on fail: drop"
    rules = read_rules(DEFAULT_RULES)
    plain_words = [v.rule for v in Checker(rules, minutes(action())).check("item")]
    assert [v.rule for v in Checker(rules, minutes(action(order))).check("item")] == plain_words


def test_numbers_as_people_say_them() -> None:
    for left, right in (("500", "five hundred"), ("2026", "twenty twenty six"), ("3.5k", "3500"), ("1,000", "a thousand"),
                        ("3", "three point five"), ("12", "a dozen"), ("20", "twenty and thirty")):  # fmt: skip
        assert numbers(left).within(numbers(right)), (left, right)
    assert not numbers("600").within(numbers("five hundred"))
    assert not numbers("15").within(numbers("fifty"))


def test_words_in_any_inflection() -> None:
    assert contains("They agreed on the budgets", "agree") and contains("Hiring engineers", "hire engineer")
    assert not contains("They agreed on the budgets", "agree the budget")
    assert mentions(["the launch", "of budgets"], "Budget for the launch event 2026") is True
    assert mentions(["the room"], "Budget for the launch") is False
    assert contains("Why?", "?") and not contains("Why.", "?") and phrase("") == "  "


def test_folding_a_name_twice_changes_nothing() -> None:
    for code in (*range(0x20, 0x250), *range(0x370, 0x600), *range(0x1E00, 0x2200), *range(0xFB00, 0xFB50)):
        sign = chr(code)
        assert folded(folded(sign)) == folded(sign) and skeleton(skeleton(sign)) == skeleton(sign), hex(code)


def test_distinct_texts_come_and_go() -> None:
    rules = load_rules('assert "d": distinct(i in items: i.text)')
    document = minutes(action("Go.", item_id="a1"), action("go.", item_id="a2"), action("GO.", item_id="a3"))
    checker = Checker(rules, document)
    told = [bool(checker.check("revision"))]
    for item_id, text in (("a1", "Stay."), ("a2", "stay"), ("a3", "Stay."), ("a3", "Run."), ("a1", "Stay")):
        document.put("action_items", action(text, item_id=item_id))
        told.append(bool(checker.check("revision")))
    assert told == [True, True, False, True, False, True]


@pytest.mark.parametrize(
    "rule",
    [
        'meeting.title subset "monday"',
        '"a" subset "monday"',
        'all i in items: i.text subset "monday" or i.text in ["a", "b"]',
        'any x in ["a", "b"]: x == "a"',
    ],
)
def test_a_value_made_of_nothing_in_the_document_is_made_all_the_same(rule: str) -> None:
    rules = load_rules(f'assert "r": {rule}')
    for seed in range(20):
        Checker(rules, random_document(Random(seed), 5)).check("final")
