"""Syntax tree of a rule. ``first`` and ``last`` are character places in the text of that one rule.

The nodes are plain and not frozen because a parser makes many of them; nobody changes one afterwards.
"""

import datetime
from dataclasses import dataclass, field
from typing import Literal as OneOf

Comparison = OneOf["==", "!=", "<", "<=", ">", ">=", "in", "contains", "mentions", "subset"]
LoopKind = OneOf["all", "any", "no", "count", "distinct"]
LiteralKind = OneOf["text", "number", "date", "duration", "bool", "null"]


@dataclass(slots=True)
class Node:
    """``depth`` is how many nodes lie below one another at most."""

    first: int
    last: int
    depth: int


@dataclass(slots=True)
class Literal(Node):
    """A value written down. Durations are whole microseconds."""

    kind: LiteralKind
    value: str | int | float | bool | datetime.date | None


@dataclass(slots=True)
class ListOf(Node):
    """``[a, b]``."""

    parts: tuple[Node, ...]


@dataclass(slots=True)
class Name(Node):
    """A variable or a part of the document."""

    name: str


@dataclass(slots=True)
class Field(Node):
    """``of.name``; ``name_first`` is where the field's name begins."""

    of: Node
    name: str
    name_first: int


@dataclass(slots=True)
class Index(Node):
    """``of[at]``."""

    of: Node
    at: int


@dataclass(slots=True)
class Call(Node):
    """``name(arguments)``."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(slots=True)
class Compare(Node):
    """``left operator right``; ``negated`` for ``not in`` and its like."""

    operator: Comparison
    left: Node
    right: Node
    negated: bool = False


@dataclass(slots=True)
class Arithmetic(Node):
    """``left operator right`` of numbers, dates and durations."""

    operator: OneOf["+", "-", "*"]
    left: Node
    right: Node


@dataclass(slots=True)
class Minus(Node):
    """``-of``."""

    of: Node


@dataclass(slots=True)
class Not(Node):
    """``not of``."""

    of: Node


@dataclass(slots=True)
class Logic(Node):
    """``a and b and c`` or the same with ``or``."""

    operator: OneOf["and", "or"]
    parts: tuple[Node, ...]


@dataclass(slots=True)
class Implies(Node):
    """``left implies right``."""

    left: Node
    right: Node


@dataclass(slots=True)
class Loop(Node):
    """``kind variable in source: body``."""

    kind: LoopKind
    variable: str
    source: Node
    body: Node


@dataclass(slots=True)
class Assignment:
    """``field = value`` of a repair."""

    first: int
    last: int
    field: str
    value: Node


@dataclass(slots=True)
class Clause:
    """``when``, ``at``, ``severity`` or ``on fail`` with what follows it."""

    first: int
    last: int
    kind: OneOf["when", "at", "severity", "on fail"]
    word: str = ""
    condition: Node | None = None
    assignments: tuple[Assignment, ...] = ()


@dataclass(slots=True)
class Rule:
    """One ``assert``. ``line`` counts from 1; ``text`` is the rule as written."""

    name: str
    body: Node
    clauses: tuple[Clause, ...]
    line: int = 1
    text: str = field(default="", repr=False)
    name_last: int = 0
