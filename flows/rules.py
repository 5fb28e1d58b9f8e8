"""``minuted rules``: check a rule file, explain minutes by their rules, run test cases of a rule file."""

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from contracts.minutes import Item, MinutesDocument
from contracts.refusals import refusal_line
from contracts.sal import Checker, Document, RuleError, RuleSet, load_rules
from contracts.sal.grammar import MAX_FILE_CHARS
from contracts.sal.kinds import ITEM_LISTS
from contracts.sal.words import is_plain
from contracts.small_files import read_small

from .rule_cases import CaseError, read_cases, run_case

DEFAULT_RULES: Final = Path(__file__).resolve().parents[1] / "contracts" / "rules" / "default.sal"
_AT: Final = {"item": "each item", "revision": "each revision", "final": "the final minutes"}
_SECTIONS: Final = {
    "decisions": "decision", "action_items": "action item", "open_questions": "open question",
    "answered_questions": "answered question",
}  # fmt: skip

app = typer.Typer(
    help="Rules for minutes: check a file, explain minutes, run test cases.", no_args_is_help=True
)
RuleFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="rule file (.sal)")]


class RulesProblem(Exception):
    """A file that cannot be used; the message is one line."""


def read_rules(path: Path) -> RuleSet:
    """The rules of a file. Raises ``RuleError`` and ``RulesProblem``."""
    return load_rules(_text(path, 4 * MAX_FILE_CHARS), path.stem if path == DEFAULT_RULES else path.name)


def _text(path: Path, most_bytes: int) -> str:
    try:
        data = read_small(path, most_bytes, pipes=True)
    except OSError as error:
        raise RulesProblem(f"{path}: cannot be read ({error.strerror})") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RulesProblem(f"{path}:{line}: is not UTF-8 text") from error


def _loaded(path: Path) -> RuleSet:
    """The rules of a file; where it has mistakes they are shown, and the command ends with code 2."""
    try:
        return read_rules(path)
    except RuleError as error:
        print(error.long())
        count = len(error.mistakes)
        raise RulesProblem(
            f"{path}: {count} mistake{'s' if count != 1 else ''}, the first in line {error.mistakes[0].line}"
        ) from error


@app.command("check")
def check_file(file: RuleFileArgument) -> None:
    """Say whether a rule file can be used, and show every mistake with its place."""
    rules = _loaded(file)
    counts = [
        f"{n} for {told}" for at, told in _AT.items() if (n := sum(rule.at == at for rule in rules.rules))
    ]
    shown = f": {', '.join(counts)}" if counts else ""
    count = len(rules.rules)
    print(f"{file}: {count} rule{'s' if count != 1 else ''}{shown}")
    print(f"version {rules.version}, sha256 {rules.hash}")


@app.command("test")
def test_file(
    file: RuleFileArgument,
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="test cases (YAML)")],
) -> None:
    """Hold the documents of a YAML file against the rules and compare with what it expects."""
    rules = _loaded(file)
    try:
        found = [run_case(rules, case) for case in read_cases(cases)]
    except CaseError as error:
        raise RulesProblem(str(error)) from error
    for outcome in found:
        print(f"{'differs' if outcome.differences else 'as expected'}: {outcome.case}")
        for difference in outcome.differences:
            print(f"    {difference}")
    wrong = sum(bool(outcome.differences) for outcome in found)
    if wrong:
        raise RulesProblem(f"{wrong} of {len(found)} cases differ from what they expect")
    print(f"{len(found)} cases are as expected")


@app.command("explain")
def explain_file(
    minutes: Annotated[Path, typer.Argument(metavar="MINUTES.json", help="written minutes")],
    rules: Annotated[Path | None, typer.Option(help="rule file; default: the rules of the product")] = None,
    key_topics: Annotated[
        str | None, typer.Option(metavar="TOPIC,TOPIC…", help="key topics; minutes do not hold them")
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="day of the meeting where minutes lack it")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """For every item of written minutes: its evidence, its rules, who wrote it and the verdict."""
    loaded = _loaded(rules or DEFAULT_RULES)
    try:
        document = MinutesDocument.model_validate_json(_text(minutes, 1 << 30))
    except ValidationError as error:
        raise RulesProblem(f"{minutes}: these are no minutes ({refusal_line(error)})") from error
    topics = None if key_topics is None else tuple(t.strip() for t in key_topics.split(",") if t.strip())
    try:
        day = None if date is None else datetime.date.fromisoformat(date)
    except ValueError as error:
        raise RulesProblem(f"--date {date}: not a day of the form YYYY-MM-DD") from error
    explained = explain(document, loaded, topics, day)
    if as_json:
        print(json.dumps(explained, ensure_ascii=False))
    else:
        print(readable(explained))


def explain(
    document: MinutesDocument,
    rules: RuleSet,
    key_topics: Sequence[str] | None = None,
    date: datetime.date | None = None,
) -> dict[str, Any]:
    """Items with evidence and the outcome of each rule, and the rules about the whole, ready for JSON.

    Outcomes are ``holds``, ``fails``, ``unknown`` (something is missing in the item) and ``not judged``
    (the rule reads what minutes do not hold).
    """
    checker = Checker(rules, Document.of(document, date=date, key_topics=key_topics or ()))
    broken = checker.check("final")
    absent = {"agenda"} | ({"key_topics"} if key_topics is None else set())
    items = [
        _explained_item(item, section, rules, checker, absent)
        for section in ITEM_LISTS
        for item in getattr(document, section)
    ]
    failing = {v.rule for v in broken if v.item_id is None}
    whole = {
        rule.name: "not judged" if rule.needs & absent else "fails" if rule.name in failing
        else "unknown" if checker.undecided(rule) else "holds"
        for rule in rules.rules if not rule.lists
    }  # fmt: skip
    return {
        "meeting_id": document.meeting_id, "revision": document.revision, "versions": document.versions.model_dump(),
        "rules": {"name": rules.name, "sha256": rules.hash}, "whole": whole, "items": items,
    }  # fmt: skip


def _explained_item(
    item: Item, section: str, rules: RuleSet, checker: Checker, absent: set[str]
) -> dict[str, Any]:
    outcomes = {
        rule.name: _outcome(
            rule.needs & absent, item.id, checker.failing(rule), checker.unknown(rule), checker.applies(rule)
        )
        for rule in rules.rules
        if section in rule.lists
    }
    told = item.model_dump(mode="json")
    return {
        "section": section,
        **{k: told[k] for k in told if k != "evidence"},
        "rules": outcomes,
        "evidence": told["evidence"],
    }


def _outcome(
    absent: frozenset[str], item_id: str, failing: dict[str, bool], unknown: set[str], applies: bool
) -> str:
    if absent:
        return "not judged"
    if not applies:
        return "does not apply"
    return "fails" if item_id in failing else "unknown" if item_id in unknown else "holds"


def readable(explained: dict[str, Any]) -> str:
    """The explanation for people."""
    lines = [
        f"{_safe(explained['meeting_id'])}, revision {explained['revision']}, held against {explained['rules']['name']}"
    ]
    for item in explained["items"]:
        lines += ["", f"{_SECTIONS[item['section']]} {_safe(item['id'])}: {_safe(item['text'])}"]
        lines += [
            f"    {name} {_safe(str(item[name]))}"
            for name in ("owner", "due", "due_text")
            if item.get(name) is not None
        ]
        lines.append(
            f"    written by {item['origin']}, confidence {item['confidence']:.2f}, verdict {item['verdict']}"
        )
        lines += [
            f"    {e['kind']} {e['start_s']:.1f}–{e['end_s']:.1f} s, {_safe(e['speaker'] or e['device'])}: “{_safe(e['quote'])}”"
            for e in item["evidence"]
        ]
        lines += [] if item["evidence"] else ["    no evidence"]
        lines += _outcomes(item["rules"])
    if explained["whole"]:
        lines += ["", "the minutes as a whole", *_outcomes(explained["whole"])]
    return "\n".join(lines)


def _outcomes(outcomes: dict[str, str]) -> list[str]:
    by_outcome: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        by_outcome.setdefault(outcome, []).append(name)
    return [f"    {outcome}: {', '.join(names)}" for outcome, names in by_outcome.items()]


def _safe(text: str) -> str:
    """Text of others on one line, without what could steer a terminal."""
    return " ".join((text if is_plain(text) else "".join(c for c in text if is_plain(c))).split())
