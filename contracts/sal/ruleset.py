"""A rule file, compiled: all its rules with what they read, when they are checked and what follows."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal, get_args

from . import grammar, tree
from .compiler import Compiler, Held, Kept
from .kinds import DATE, FINAL_LISTS, ITEM_LISTS, NAMES, NOTHING, TEXT
from .mistakes import Mistake, Problem, RuleError, meant
from .terms import Run, Term

At = Literal["item", "revision", "final"]
Severity = Literal["error", "warning", "note"]
ActionKind = Literal["repair", "review", "fallback", "drop"]
STRICTNESS: Final[dict[ActionKind, int]] = {"repair": 0, "review": 1, "fallback": 2, "drop": 3}
"""The stricter action wins."""
_REPAIRABLE: Final = ("text", "owner", "due", "due_text")
_MAX_NAME_CHARS: Final = 200
_MAX_MISTAKES: Final = 200


@dataclass(frozen=True, slots=True)
class Repair:
    """One field of an item with the value it gets."""

    field: str
    value: Run


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule.

    Attributes:
        lists: item lists that it goes through where it judges each item; empty for a rule about the whole.
        unit: number of the kept loop that judges the items.
        body: the whole condition, for a rule about the whole.
        needs: parts of the document that it reads.
        units: held values and loops to be brought up to date before.
        fields: fields of the item that it looks at, for explanations.
        steady: whether the values of its repairs depend on the item alone.
        together: whether it looks at several items at once: what it says of one may depend on others.
    """

    number: int
    name: str
    line: int
    text: str
    at: At
    severity: Severity
    action: ActionKind
    repairs: tuple[Repair, ...]
    lists: tuple[str, ...]
    unit: int
    body: Run
    when: Run | None
    needs: frozenset[str]
    units: tuple[int, ...]
    fields: tuple[str, ...]
    steady: bool
    together: bool


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules in the order of their file. ``hash`` is SHA-256 of the file's text in UTF-8."""

    name: str
    hash: str
    rules: tuple[Rule, ...]
    units: tuple[Held | Kept, ...]
    places: int
    trees: tuple[tree.Rule, ...]

    @property
    def version(self) -> str:
        """Short name of these very rules, for ``versions.rules``."""
        return f"{self.name}/{self.hash[:12]}"

    @property
    def together(self) -> bool:
        """Whether a rule that is held while a meeting lasts looks at several items at once."""
        return any(rule.together for rule in self.rules if rule.at != "final")


def load_rules(text: str, name: str = "rules") -> RuleSet:
    """Read and compile a rule file. Raises ``RuleError`` with all mistakes found."""
    mistakes: list[Mistake] = []
    rules: list[Rule] = []
    trees: list[tree.Rule] = []
    compiler = Compiler()
    seen: dict[str, int] = {}
    if len(text) > grammar.MAX_FILE_CHARS:
        told = f"a rule file has at most {grammar.MAX_FILE_CHARS:,} characters, this one has {len(text):,}"
        raise RuleError(name, [Mistake(1, 1, told)])
    for piece in grammar.pieces(text.removeprefix("\ufeff")):
        if len(trees) >= grammar.MAX_RULES or len(mistakes) >= _MAX_MISTAKES:
            if len(trees) >= grammar.MAX_RULES and piece.text.strip():
                told = f"a rule file has at most {grammar.MAX_RULES:,} rules"
                mistakes.append(Mistake(piece.line, 1, told, source=piece.text.splitlines()[0]))
            break
        try:
            if not piece.text.startswith("assert") and _is_empty(piece):
                continue
            parsed = grammar.parse_rule(piece.text)
            parsed.line = piece.line
            trees.append(parsed)
            _check_name(parsed, seen)
            rules.append(_compiled(parsed, compiler, len(rules)))
        except Problem as problem:
            mistakes.append(_placed(problem, piece, text))
    if mistakes:
        raise RuleError(name, mistakes)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return RuleSet(name, digest, tuple(rules), tuple(compiler.units), compiler.places, tuple(trees))


def _is_empty(piece: grammar.Piece) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in piece.text.splitlines())


def _placed(problem: Problem, piece: grammar.Piece, text: str) -> Mistake:
    """A problem with the line and column of the file."""
    first = min(problem.first, len(piece.text))
    before = piece.text[:first]
    line = piece.line + before.count("\n")
    in_line = first - (before.rfind("\n") + 1)
    lead = 0
    if line == piece.line:  # the rule may begin behind spaces that are not part of its text
        lead = piece.first - (text.rfind("\n", 0, piece.first) + 1)
    lines = piece.text.split("\n")
    source = " " * lead + lines[line - piece.line] if line - piece.line < len(lines) else ""
    return Mistake(
        line, lead + in_line + 1, problem.message, problem.suggestion, source.rstrip("\r"),
        max(1, problem.last - first),
    )  # fmt: skip


def _check_name(parsed: tree.Rule, seen: dict[str, int]) -> None:
    first = parsed.text.index('"')
    name = parsed.name.strip()
    if not name or len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise Problem(first, parsed.name_last, f"a rule's name has 1 to {_MAX_NAME_CHARS} visible characters")
    if name in seen:
        raise Problem(
            first,
            parsed.name_last,
            f"the rule in line {seen[name]} has this name too",
            "names are told to people: make them differ",
        )
    seen[name] = parsed.line


def _compiled(parsed: tree.Rule, compiler: Compiler, number: int) -> Rule:
    compiler.begin()
    clauses = _clauses_of(parsed)
    body = compiler.condition(parsed.body)
    item_lists = _judged_lists(parsed.body)
    unit = compiler.used()[-1] if item_lists else -1
    when = None
    needs = body.needs
    if (clause := clauses.get("when")) is not None and clause.condition is not None:
        term = compiler.condition(clause.condition)
        when, needs = term.run, needs | term.needs
    action, repairs, repair_needs = _action_of(clauses.get("on fail"), parsed, compiler, bool(item_lists))
    needs |= repair_needs
    return Rule(
        number, parsed.name.strip(), parsed.line, parsed.text, _stage_of(clauses.get("at"), needs, item_lists, parsed),
        _severity_of(clauses.get("severity")), action, repairs, item_lists, unit, body.run, when, needs,
        compiler.used(), _fields_read(parsed.body), not repair_needs,
        _item_lists_named(parsed) > bool(item_lists),
    )  # fmt: skip


def _item_lists_named(parsed: tree.Rule) -> int:
    """How often a rule names a list of items; one about each item does so once, in its loop."""
    found = 0
    waiting = [parsed.body, *(part for clause in parsed.clauses for part in _parts(clause))]
    while waiting:
        node = waiting.pop()
        found += isinstance(node, tree.Name) and (node.name == "items" or node.name in ITEM_LISTS)
        waiting += _parts(node)
    return found


def _parts(node: tree.Node | tree.Clause) -> list[tree.Node]:
    """Terms right under a node or clause of a tree."""
    found: list[tree.Node] = []
    for part in fields(node):
        value = getattr(node, part.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, tree.Node):
                found.append(one)
            elif isinstance(one, tree.Assignment):
                found.append(one.value)
    return found


def _clauses_of(parsed: tree.Rule) -> dict[str, tree.Clause]:
    found: dict[str, tree.Clause] = {}
    for clause in parsed.clauses:
        if clause.kind in found:
            raise Problem(
                clause.first, clause.last, f"a second “{clause.kind}” in one rule", "keep one of them"
            )
        found[clause.kind] = clause
    return found


def _judged_lists(body: tree.Node) -> tuple[str, ...]:
    """Item lists of a rule of the form ``all x in items: …`` or ``no x in items: …``."""
    if (
        not isinstance(body, tree.Loop)
        or body.kind not in ("all", "no")
        or not isinstance(body.source, tree.Name)
    ):
        return ()
    name = body.source.name
    return ITEM_LISTS if name == "items" else (name,) if name in ITEM_LISTS else ()


def _fields_read(body: tree.Node) -> tuple[str, ...]:
    """Fields of the item that a rule about items reads, beside its text and evidence, in the order of its text."""
    if not _judged_lists(body) or not isinstance(body, tree.Loop):
        return ()
    variable, found = body.variable, dict[str, None]()
    waiting: list[tree.Node] = [body.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Field) and isinstance(node.of, tree.Name) and node.of.name == variable:
            found[node.name] = None
        waiting += reversed(list(children_of(node)))
    return tuple(name for name in found if name not in ("text", "evidence"))


def children_of(node: tree.Node) -> Sequence[tree.Node]:
    """Nodes directly below a node."""
    match node:
        case tree.ListOf() | tree.Logic():
            return node.parts
        case tree.Call():
            return node.arguments
        case tree.Field() | tree.Index() | tree.Minus() | tree.Not():
            return (node.of,)
        case tree.Compare() | tree.Arithmetic() | tree.Implies():
            return (node.left, node.right)
        case tree.Loop():
            return (node.source, node.body)
        case _:
            return ()


def _stage_of(
    clause: tree.Clause | None, needs: frozenset[str], lists: tuple[str, ...], parsed: tree.Rule
) -> At:
    late = sorted(needs & set(FINAL_LISTS))
    if clause is None:
        if late:
            raise Problem(
                parsed.body.first, parsed.body.last, f"{late[0]} are only complete at the end of the meeting",
                "add “at final”",
            )  # fmt: skip
        return "item" if lists else "revision"
    stages: dict[str, At] = {stage: stage for stage in get_args(At)}
    stage = stages.get(clause.word)
    if stage is None:
        raise Problem(
            clause.first,
            clause.last,
            f"“{clause.word[:40]}” is no stage",
            meant(clause.word, stages, what="use"),
        )
    if stage != "final" and late:
        raise Problem(
            clause.first,
            clause.last,
            f"{late[0]} are only complete at the end of the meeting",
            "write “at final”",
        )
    if stage == "item" and not lists:
        raise Problem(
            clause.first, clause.last, "this rule judges the minutes as a whole, not each item",
            "write “at revision”, or begin with all x in items: …",
        )  # fmt: skip
    return stage


def _severity_of(clause: tree.Clause | None) -> Severity:
    if clause is None:
        return "error"
    known: dict[str, Severity] = {severity: severity for severity in get_args(Severity)}
    if clause.word not in known:
        raise Problem(
            clause.first,
            clause.last,
            f"“{clause.word[:40]}” is no severity",
            meant(clause.word, known, what="use"),
        )
    return known[clause.word]


def _action_of(
    clause: tree.Clause | None, parsed: tree.Rule, compiler: Compiler, judges_items: bool
) -> tuple[ActionKind, tuple[Repair, ...], frozenset[str]]:
    if clause is None:
        return "review", (), frozenset()
    known: dict[str, ActionKind] = {kind: kind for kind in get_args(ActionKind)}
    if clause.word not in known:
        raise Problem(
            clause.first,
            clause.last,
            f"“{clause.word[:40]}” is no action",
            meant(clause.word, known, what="use"),
        )
    action = known[clause.word]
    if action in ("repair", "drop") and not judges_items:
        raise Problem(
            clause.first, clause.last, f"{action} what? This rule judges the minutes as a whole, not each item",
            "use review or fallback, or begin with all x in items: …",
        )  # fmt: skip
    if action == "repair" and not clause.assignments:
        raise Problem(
            clause.first,
            clause.last,
            "repair what?",
            "write “repair FIELD = VALUE”, like repair owner = null",
        )
    if action != "repair" and clause.assignments:
        raise Problem(clause.first, clause.last, f"{action} takes no field", "only repair does")
    needs: frozenset[str] = frozenset()
    repairs: list[Repair] = []
    for assignment in clause.assignments:
        repair, term = _repair_of(assignment, parsed, compiler)
        if any(known.field == repair.field for known in repairs):
            raise Problem(
                assignment.first, assignment.last, f"{repair.field} is repaired twice", "keep one of them"
            )
        repairs.append(repair)
        needs |= term.needs
    return action, tuple(repairs), needs


def _repair_of(assignment: tree.Assignment, parsed: tree.Rule, compiler: Compiler) -> tuple[Repair, Term]:
    body = parsed.body
    assert isinstance(body, tree.Loop) and isinstance(body.source, tree.Name)
    kind = NAMES[body.source.name].of
    assert kind is not None and kind.record is not None
    known = [name for name in _REPAIRABLE if name in kind.record.fields]
    name = assignment.field
    last = assignment.first + len(name)
    if name not in known:
        raise Problem(
            assignment.first,
            last,
            f"“{name[:40]}” of {kind} cannot be repaired",
            meant(name, known, what="only"),
        )
    compiler.bind(body.variable, kind)
    term = compiler.term(assignment.value)
    wanted, may_miss = kind.record.fields[name]
    first, end = assignment.value.first, assignment.value.last
    if term.kind == NOTHING:
        if not may_miss:
            raise Problem(
                first, end, f"{name} is never null", 'write a text, like or_else(quotes(i)[0], "…")'
            )
    elif term.kind != wanted:
        hint = "dates are written without quotes: 2026-03-31" if wanted == DATE and term.kind == TEXT else ""
        raise Problem(first, end, f"{name} is {wanted}, this is {term.kind}", hint)
    elif term.missing and not may_miss:
        raise Problem(first, end, f"this may be missing, and {name} never is", 'write or_else(…, "…")')
    return Repair(name, term.run), term
