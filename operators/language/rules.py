"""Cue rules read from YAML: named patterns over opened clause text, what they signal, how strongly.

A rule file has ``macros`` (named pieces, used as ``{NAME}`` in patterns) and ``rules``. In patterns
``@`` stands for a person spoken of. Matching is by ``search`` at word borders on one clause, whose
length is bounded, with patterns that cannot backtrack across more than one open end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from operators.language.words import words_in

LANGUAGE_FOLDER = Path(__file__).parent / "en"
MAX_CLAUSE_CHARACTERS = 1200
"""Cues are looked for in this much of a clause; people do not speak longer ones."""

SIGNALS = words_in("""
    commit promise offer request assign need group decide propose agree accept refuse withdraw
    unknown ask rhetorical hypothetical past reported joke correct solved handover acknowledge
    momentary unowned settle approve habit
""")


class RuleError(ValueError):
    """A rule file that cannot be used, with file, rule and reason."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One cue.

    ``needs_due``: counts only beside a time phrase; ``needs_address``: only where somebody is spoken to
    (a name, a question, *please*) or a time is said, because *you* alone often means *one*. ``words``:
    one of these is in every clause that fits, so that others need not be searched; empty if unknown.
    """

    name: str
    signal: str
    strength: float
    pattern: re.Pattern[str]
    needs_due: bool
    needs_address: bool
    words: frozenset[str]
    examples: tuple[str, ...]
    counter_examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule found in a clause; ``task`` and ``who`` are character spans of the opened text or None."""

    rule: Rule
    first: int
    last: int
    task: tuple[int, int] | None
    who: tuple[int, int] | None


def _fill(pattern: str, macros: dict[str, str], where: str) -> str:
    for _ in range(6):
        names = set(re.findall(r"\{([A-Z_]+)\}", pattern))
        if not names:
            return pattern
        for name in names:
            if name not in macros:
                raise RuleError(f"{where}: unknown piece {{{name}}}")
            pattern = pattern.replace(f"{{{name}}}", f"(?:{macros[name]})")
    raise RuleError(f"{where}: pieces refer to each other in a circle")


def _one_line(value: object) -> str:
    """YAML folds lines with a space; after a ``|`` that space is not meant."""
    return " ".join(str(value).split()).replace("| ", "|")


def _rule(entry: dict[str, Any], macros: dict[str, str], where: str) -> Rule:
    name = str(entry.get("name", ""))
    where = f"{where}, rule {name!r}"
    unknown = set(entry) - {
        "name",
        "signal",
        "strength",
        "pattern",
        "needs_due",
        "needs_address",
        "words",
        "examples",
        "counter_examples",
    }
    if unknown or not name:
        raise RuleError(f"{where}: unknown keys {sorted(unknown)}")
    if entry.get("signal") not in SIGNALS:
        raise RuleError(f"{where}: unknown signal {entry.get('signal')!r}")
    if not entry.get("examples"):
        raise RuleError(f"{where}: needs at least one example")
    filled = _fill(str(entry["pattern"]), macros, where)
    try:
        pattern = re.compile(rf"(?<![\w'])(?:{filled})(?![\w'])")
    except re.error as error:
        raise RuleError(f"{where}: {error}") from error
    return Rule(
        name,
        str(entry["signal"]),
        float(entry.get("strength", 0.5)),
        pattern,
        bool(entry.get("needs_due", False)),
        bool(entry.get("needs_address", False)),
        frozenset(map(str, entry.get("words", ()))),
        tuple(map(str, entry["examples"])),
        tuple(map(str, entry.get("counter_examples", ()))),
    )


def load(folder: Path) -> tuple[Rule, ...]:
    """Rules of all files of a folder, in file and line order.

    Raises:
        RuleError: a file is not what it should be.
    """
    macros: dict[str, str] = {}
    documents = []
    for path in sorted(folder.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise RuleError(f"{path.name}: not a mapping")
        macros.update({k: _one_line(v) for k, v in document.get("macros", {}).items()})
        documents.append((path.name, document))
    rules = [_rule(entry, macros, name) for name, doc in documents for entry in doc.get("rules", ())]
    names = [r.name for r in rules]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise RuleError(f"rule names used twice: {sorted(twice)}")
    return tuple(rules)


@lru_cache(maxsize=4)
def rules_of(folder: Path = LANGUAGE_FOLDER) -> tuple[Rule, ...]:
    """Rules of the folder, read once a process."""
    return load(folder)


@lru_cache(maxsize=16)
def piece_named(name: str, folder: Path = LANGUAGE_FOLDER) -> str:
    """A named piece of the rule files as a pattern."""
    for path in sorted(folder.glob("*.yaml")):
        macros = yaml.safe_load(path.read_text(encoding="utf-8")).get("macros", {})
        if name in macros:
            return _one_line(macros[name])
    raise RuleError(f"no piece {name} in {folder}")


def hits_in(norm: str, rules: tuple[Rule, ...]) -> tuple[Hit, ...]:
    """Every rule that is found in a clause, first place each, in the order of the rules."""
    text = norm[:MAX_CLAUSE_CHARACTERS]
    said = frozenset(text.split())
    found: list[Hit] = []
    for rule in rules:
        if rule.words and rule.words.isdisjoint(said):
            continue
        match = rule.pattern.search(text)
        if match is None:
            continue
        groups = match.re.groupindex
        task = match.span("task") if "task" in groups and match.group("task") else None
        who = match.span("who") if "who" in groups and match.group("who") else None
        found.append(Hit(rule, match.start(), match.end(), task, who))
    return tuple(found)
