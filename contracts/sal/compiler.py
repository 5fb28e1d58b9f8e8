"""Syntax trees to typed closures. What a rule reads of the document is found out on the way.

Terms without a loop variable inside a loop are held: computed once for a check and not for each entry.
Loops over lists that grow with the meeting are kept up from check to check, entry by entry.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from . import relations, splits, terms, tree
from .functions import FUNCTIONS, Function
from .kinds import (
    DATE,
    DURATION,
    GROWING,
    ITEM_LISTS,
    NAMES,
    NOTHING,
    NUMBER,
    NUMBERS,
    TEXT,
    TRUTH,
    Kind,
    list_of,
    text_of,
)  # fmt: skip
from .maker import Held as Held
from .maker import Kept as Kept
from .maker import Maker, size_of
from .mistakes import Problem, meant
from .terms import Frame, Run, Term

MAX_NESTED_LOOPS: Final = 8


@dataclass(slots=True)
class _Variable:
    kind: Kind
    place: int


class Compiler(Maker):
    """Compiles the rules of one file."""

    def __init__(self) -> None:
        super().__init__()
        self.places = 1
        self._variables: dict[str, _Variable] = {}

    def begin(self) -> None:
        """A new rule: forget what the last one used."""
        self.used_units = []
        self._variables = {}

    def used(self) -> tuple[int, ...]:
        """Units that the terms since ``begin`` use, in the order in which they are computed."""
        return tuple(sorted(set(self.used_units)))

    def bind(self, variable: str, kind: Kind) -> None:
        """Let an item stand at place 1 under a name, for the values of a repair."""
        self._variables[variable] = _Variable(kind, 1)

    def condition(self, node: tree.Node) -> Term:
        """A term that is a condition. Raises ``Problem``."""
        term = self.term(node)
        if term.kind != TRUTH:
            hint = (
                "compare it with something" if term.kind.basic != "list" else "write … != [] or any x in …: …"
            )
            raise Problem(node.first, node.last, f"{term.kind} stands where a condition is expected", hint)
        return term

    def term(self, node: tree.Node) -> Term:
        """Typed closure of any node. Raises ``Problem``."""
        return _ROUTES[type(node)](self, node)

    # Leaves

    def _literal(self, node: tree.Literal) -> Term:
        kinds = {
            "text": TEXT,
            "number": NUMBER,
            "date": DATE,
            "duration": DURATION,
            "bool": TRUTH,
            "null": NOTHING,
        }
        return terms.constant(kinds[node.kind], node.value)

    def _name(self, node: tree.Name) -> Term:
        if (variable := self._variables.get(node.name)) is not None:
            place = variable.place
            return Term(
                variable.kind,
                lambda s: s[place],
                variables=1 << place,
                column=lambda s, entries: list(entries),
            )
        if node.name not in NAMES:
            if node.name in FUNCTIONS:
                raise Problem(node.first, node.last, f"{node.name} is a function", f"write {node.name}(…)")
            raise Problem(
                node.first, node.last, f"there is nothing called “{node.name[:40]}” here",
                meant(node.name, [*NAMES, *self._variables]) or f"there is {', '.join(sorted(NAMES))}",
            )  # fmt: skip
        return self._part(node.name)

    def _part(self, name: str) -> Term:
        kind, needs = NAMES[name], frozenset({name})
        if name == "items" or name in GROWING:
            lists = ITEM_LISTS if name == "items" else (name,)
            if len(lists) > 1:
                return Term(kind, _all_entries(lists), needs=needs, growing=name)
            return Term(kind, lambda s: s[0].document.lists[name].entries.values(), needs=needs, growing=name)
        get = attrgetter(name)
        return Term(kind, lambda s: get(s[0].document), needs=needs)

    def _listed(self, node: tree.ListOf) -> Term:
        parts = self.mixed(*[self._valued(part) for part in node.parts])
        if not parts:
            return Term(list_of(NOTHING), lambda s: (), literal=True, value=())
        kind = parts[0].kind
        for part, written in zip(parts, node.parts, strict=True):
            if part.kind != kind:
                raise Problem(written.first, written.last, f"{part.kind} in a list that begins with {kind}")
        if kind.basic in ("list", "record", "nothing", "numbers"):
            raise Problem(
                node.first, node.last, f"a list of this kind cannot be written: its parts are {kind}"
            )
        if all(part.literal for part in parts):
            values = tuple(part.value for part in parts)
            return Term(list_of(kind), lambda s: values, literal=True, value=values)
        runs = tuple(part.run for part in parts)
        return self.made(
            list_of(kind), lambda s: tuple([v for run in runs if (v := run(s)) is not None]), *parts
        )

    # Paths

    def _field(self, node: tree.Field) -> Term:
        of = self.term(node.of)
        if of.kind.basic != "record" or of.kind.record is None:
            raise Problem(
                node.name_first, node.last, f"{of.kind} has no fields",
                f"go through it: all x in …: x.{node.name}" if of.kind.basic == "list" else "",
            )  # fmt: skip
        record, name = of.kind.record, node.name
        if name not in record.fields:
            raise Problem(
                node.name_first,
                node.last,
                f"{record.spoken} has no field “{name[:40]}”",
                _field_hint(name, record.fields),
            )
        kind, missing = record.fields[name]
        get = attrgetter(name)
        factor = record.factors.get(name)
        if factor is not None:
            read: Callable[[Any], Any] = lambda entry: round(get(entry) * factor)  # noqa: E731
        else:
            read = get
        made = self.lift(kind, read, of, missing=missing or of.missing)
        if isinstance(node.of, tree.Name) and (variable := self._variables.get(node.of.name)):
            place = variable.place
            made = replace(made, column=splits.field_column(name, factor))
            if kind == TRUTH:
                made = replace(made, split=splits.by_column(made.column, missing), pure=True)
            if factor is None:
                return replace(made, run=lambda s: get(s[place]), place=place, attribute=name)
            return replace(made, raw=splits.field_column(name, None), factor=factor)
        return made

    def _index(self, node: tree.Index) -> Term:
        of, at = self.term(node.of), node.at
        if of.kind.basic != "list" or of.kind.of is None:
            raise Problem(node.first, node.last, f"{of.kind} has no numbered places")
        if of.growing:
            raise Problem(
                node.first, node.last, f"the places in {of.growing} move while the meeting goes on",
                f"go through it: any x in {of.growing}: …",
            )  # fmt: skip
        run = of.run

        def read(s: Frame) -> Any:
            entries = run(s)
            return entries[at] if at < len(entries) else None

        return self.made(of.kind.of, read, of, missing=True)

    # Operators

    def _not(self, node: tree.Not) -> Term:
        of = self.condition(node.of)
        return self.denied(of)

    def _logic(self, node: tree.Logic) -> Term:
        parts = self.mixed(*[self.condition(part) for part in node.parts])
        return self.joined(node.operator, *parts)

    def _implies(self, node: tree.Implies) -> Term:
        left, right = self.mixed(self.condition(node.left), self.condition(node.right))
        return self.joined("or", self.denied(left), right)

    def _minus(self, node: tree.Minus) -> Term:
        of = self.term(node.of)
        if of.kind not in (NUMBER, DURATION):
            raise Problem(node.first, node.last, f"{of.kind} has no negative")
        return self.lift(of.kind, lambda value: -value, of, missing=of.missing)

    def _arithmetic(self, node: tree.Arithmetic) -> Term:
        left, right = self.mixed(self._valued(node.left), self._valued(node.right))
        key = (left.kind.basic, node.operator, right.kind.basic)
        if key not in _SUMS:
            raise Problem(
                node.first,
                node.last,
                f"{left.kind} {node.operator} {right.kind} has no meaning",
                _sum_hint(left, right),
            )
        kind, operation, may_miss = _SUMS[key]
        return self.lift(
            kind, operation, left, right,
            missing=left.missing or right.missing or may_miss,
        )  # fmt: skip

    def _compare(self, node: tree.Compare) -> Term:
        return relations.compare(self, node, self.term(node.left), self.term(node.right))

    # Functions and loops

    def _call(self, node: tree.Call) -> Term:
        if node.name == "count":
            return self._count(node)
        function = FUNCTIONS.get(node.name)
        if function is None:
            known = [*FUNCTIONS, "count", "distinct"]
            if node.name == "distinct":
                raise Problem(
                    node.first, node.last, "distinct goes through a list", "distinct(x in LIST: TEXT)"
                )
            raise Problem(
                node.first, node.first + len(node.name), f"there is no function “{node.name[:40]}”",
                meant(node.name, known) or f"there is {', '.join(sorted(known))}",
            )  # fmt: skip
        if len(node.arguments) != len(function.takes):
            raise Problem(
                node.first, node.last, f"{node.name} takes {len(function.takes)} value(s), not {len(node.arguments)}",
                function.signature,
            )  # fmt: skip
        if function.one is not None and (single := self._single_text(node.arguments[0])) is not None:
            return self.lift(function.gives, function.one, single)
        given = [self._argument(function, place, written) for place, written in enumerate(node.arguments)]
        if node.name == "or_else":
            return self._or_else(node, *self.mixed(*given))
        self.refuse_squares(*zip(node.arguments, given, strict=True))
        if function.needs:
            given = [self.prepared(function.needs), *given]
        given = list(self.mixed(*given))
        spared = function.takes == ("texts",) or function.takes == ("item",)
        return self.lift(
            function.gives, function.run, *given,
            missing=not spared and any(term.missing for term in given),
        )  # fmt: skip

    def _single_text(self, node: tree.Node) -> Term | None:
        """One text that is surely there; None where it is anything else."""
        term = self.term(node)
        if term.missing or text_of(term.kind) is None:
            return None
        return self.charged(self.as_text(term))

    def _argument(self, function: Function, place: int, node: tree.Node) -> Term:
        term, wanted = self.term(node), function.takes[place]
        if wanted in ("any", "same"):
            return term
        if wanted == "texts":
            if term.kind.basic == "list" or text_of(term.kind) is not None:
                return self.texts(node, term)
        elif wanted == "text" and (text := self.as_text(term)).kind == TEXT:
            return self.charged(text)
        elif wanted == "item":
            if term.kind.record is not None and "evidence" in term.kind.record.fields:
                return term
        elif term.kind.basic == wanted:
            return term
        hint = function.signature
        if term.growing and wanted == "item":
            hint = f"for each: all i in {term.growing}: … {function.name}(i) …"
        raise Problem(node.first, node.last, f"{function.name} does not take {term.kind}", hint)

    def _or_else(self, node: tree.Call, value: Term, instead: Term) -> Term:
        if value.kind != instead.kind or value.kind.basic in ("record", "list", "nothing"):
            relations.incomparable(
                tree.Compare(node.first, node.last, 1, "==", node.arguments[0], node.arguments[1]),
                value,
                instead,
            )
        first, second = value.run, instead.run

        def either(s: Frame) -> Any:
            found = first(s)
            return second(s) if found is None else found

        return self.made(value.kind, either, value, instead, missing=instead.missing)

    def _count(self, node: tree.Call) -> Term:
        if len(node.arguments) != 1:
            raise Problem(
                node.first, node.last, "count takes one list", "count(x in LIST: CONDITION) counts some of it"
            )
        of = self.term(node.arguments[0])
        if of.growing:
            return self.made(NUMBER, size_of(of.growing), of)
        if of.kind == NUMBERS:
            return self.lift(NUMBER, lambda found: len(found.readings), of)
        if of.kind.basic != "list":
            raise Problem(
                node.arguments[0].first,
                node.arguments[0].last,
                f"{of.kind} cannot be counted",
                "words(…) and length(…) measure a text" if of.kind == TEXT else "",
            )
        return self.lift(NUMBER, len, of)

    def _loop(self, node: tree.Loop) -> Term:
        source = self.term(node.source)
        if source.kind.basic != "list" or source.kind.of is None:
            raise Problem(node.source.first, node.source.last, f"{source.kind} is no list to go through")
        if source.kind.of == NOTHING:
            raise Problem(node.source.first, node.source.last, "the empty list has nothing to go through")
        name = node.variable
        if name in NAMES or name in self._variables:
            raise Problem(
                node.first, node.source.first, f"“{name}” already means something here", "take another name"
            )
        place = len(self._variables) + 1
        if place > MAX_NESTED_LOOPS:
            raise Problem(node.first, node.last, f"more than {MAX_NESTED_LOOPS} loops inside one another")
        self.places = max(self.places, place)
        self._variables[name] = _Variable(source.kind.of, place)
        before = len(self.used_units)
        try:
            body = self.term(node.body) if node.kind == "distinct" else self.condition(node.body)
        finally:
            del self._variables[name]
        if node.kind == "distinct":
            body = self.as_text(body)
            if body.kind != TEXT:
                raise Problem(node.body.first, node.body.last, f"distinct compares texts, not {body.kind}")
        own = 1 << place
        if not body.variables and body.needs:
            body = self.hold(body)
        outer = body.variables & ~own
        if source.growing:
            if outer:
                self.too_often(node.source, source)
            return self._kept(node, source, body, place, before)
        if outer and source.needs and not source.variables:
            source = self.hold(source)
        if node.kind == "distinct":
            run: Run = terms.short_distinct(source.run, place, body.run)
        else:
            run = terms.short_loop(node.kind, source.run, place, body.run)
        made = self.made(
            NUMBER if node.kind == "count" else TRUTH, run, source, body,
            missing=body.missing and node.kind in ("all", "any", "no"),
        )  # fmt: skip
        made = replace(made, variables=(source.variables | body.variables) & ~own)
        if node.kind == "all" and made.variables.bit_count() == 1:
            outer_place = made.variables.bit_length() - 1
            return replace(made, split=splits.all_split(source, body, own, run, outer_place))
        return made

    def _kept(self, node: tree.Loop, source: Term, body: Term, place: int, before: int) -> Term:
        lists = ITEM_LISTS if source.growing == "items" else (source.growing,)
        reads = tuple(sorted(set(self.used_units[before:])))
        unit = self.unit(
            Kept(
                node.kind,
                lists,
                place,
                body.run,
                reads,
                splits.split_of(body, place) if body.variables and node.kind != "distinct" else None,
            )
        )
        kind = NUMBER if node.kind == "count" else TRUTH
        missing = node.kind in ("all", "any", "no")
        return Term(kind, lambda s: s[0].held[unit], missing=missing, needs=source.needs | body.needs)

    def _valued(self, node: tree.Node) -> Term:
        term = self.term(node)
        if term.kind == NOTHING:
            raise Problem(node.first, node.last, "null can only be compared with == and !=")
        return term


def _all_entries(lists: Iterable[str]) -> Run:
    names = tuple(lists)
    return lambda s: [e for name in names for e in s[0].document.lists[name].entries.values()]


def _field_hint(name: str, fields: Iterable[str]) -> str:
    actions = NAMES["action_items"].of
    if (
        actions is not None
        and actions.record is not None
        and "origin" in fields
        and name in actions.record.fields
    ):
        return f"action items have it: all a in action_items: … a.{name} …"
    if hint := meant(name, fields, what="it has"):
        return hint
    return f"it has {', '.join(fields)}"


def _sum_hint(left: Term, right: Term) -> str:
    pair = {left.kind.basic, right.kind.basic}
    if pair in ({"date", "number"}, {"duration", "number"}):
        return "give the number a unit: 5 s, 10 min, 2 days"
    return "texts and lists are not added: use contains, in or subset" if pair & {"text", "list"} else ""


_SUMS: Final[dict[tuple[str, str, str], tuple[Kind, Callable[[Any, Any], Any], bool]]] = {
    ("number", "+", "number"): (NUMBER, lambda a, b: a + b, False),
    ("number", "-", "number"): (NUMBER, lambda a, b: a - b, False),
    ("number", "*", "number"): (NUMBER, terms.product, False),
    ("duration", "+", "duration"): (DURATION, lambda a, b: a + b, False),
    ("duration", "-", "duration"): (DURATION, lambda a, b: a - b, False),
    ("duration", "*", "number"): (DURATION, terms.scaled, False),
    ("number", "*", "duration"): (DURATION, lambda a, b: terms.scaled(b, a), False),
    ("date", "+", "duration"): (DATE, terms.shifted, True),
    ("date", "-", "duration"): (DATE, lambda a, b: terms.shifted(a, -b), True),
    ("duration", "+", "date"): (DATE, lambda a, b: terms.shifted(b, a), True),
    ("date", "-", "date"): (DURATION, terms.days_between, False),
}
"""What arithmetic there is: type of the result, operation, and whether the result may be missing."""
_ROUTES: Final[dict[type[tree.Node], Callable[[Compiler, Any], Term]]] = {
    tree.Literal: Compiler._literal, tree.Name: Compiler._name, tree.ListOf: Compiler._listed,
    tree.Field: Compiler._field, tree.Index: Compiler._index, tree.Not: Compiler._not,
    tree.Logic: Compiler._logic, tree.Implies: Compiler._implies, tree.Minus: Compiler._minus,
    tree.Arithmetic: Compiler._arithmetic, tree.Compare: Compiler._compare, tree.Call: Compiler._call,
    tree.Loop: Compiler._loop,
}  # fmt: skip
