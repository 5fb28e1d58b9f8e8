"""Rules judged the slow way: every rule over the whole document, straight off the syntax tree.

Written apart from the compiler to be held against it: no types, nothing held or kept up, one function
for each kind of node, in the words of the documentation. Shared with the product are only the parser and
the readers of single texts (stems, look-alikes, numbers, names), which have tests of their own.
"""

import datetime
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.sal import Document, tree, words
from contracts.sal.quantities import Numbers, numbers_of_all

_ITEM_LISTS: Final = ("decisions", "action_items", "open_questions", "answered_questions")
_DAY_US: Final = 24 * 3600 * 10**6
_STAGES: Final = {"item": 0, "revision": 1, "final": 2}


@dataclass(frozen=True)
class Judged:
    """What a rule says: items that fail and items of which nothing can be said, or one truth value."""

    failing: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    whole: bool | None = True
    repairs: tuple[tuple[str, str, Any], ...] = ()


def judge(rules: Sequence[tree.Rule], document: Document, at: str) -> dict[str, Judged]:
    """Outcome of every rule that is checked at a stage, by its name."""
    return {
        rule.name.strip(): _judge(rule, snapshot(document))
        for rule in rules
        if _STAGES[stage_of(rule)] <= _STAGES[at]
    }


def snapshot(document: Document) -> dict[str, Any]:
    """The document as plain lists."""
    parts: dict[str, Any] = {name: list(growing.entries.values()) for name, growing in document.lists.items()}
    parts["items"] = [item for name in _ITEM_LISTS for item in parts[name]]
    for name in ("meeting", "attendees", "key_topics", "agenda"):
        parts[name] = getattr(document, name)
    return parts


def stage_of(rule: tree.Rule) -> str:
    """When a rule is checked."""
    for clause in rule.clauses:
        if clause.kind == "at":
            return clause.word
    return "item" if _judges_items(rule) else "revision"


def _judges_items(rule: tree.Rule) -> bool:
    body = rule.body
    return (
        isinstance(body, tree.Loop)
        and body.kind in ("all", "no")
        and isinstance(body.source, tree.Name)
        and body.source.name in (*_ITEM_LISTS, "items")
    )


def _judge(rule: tree.Rule, parts: Mapping[str, Any]) -> Judged:
    env = dict(parts)
    for clause in rule.clauses:
        if clause.condition is not None and value_of(clause.condition, env) is not True:
            return Judged()
    if not _judges_items(rule):
        return Judged(whole=value_of(rule.body, env))
    body = rule.body
    assert isinstance(body, tree.Loop)
    wrong = body.kind == "no"
    failing, unknown, repairs = [], [], []
    for item in value_of(body.source, env):
        inner = env | {body.variable: item}
        found = value_of(body.body, inner)
        if found is None:
            unknown.append(item.id)
        elif found is wrong:
            failing.append(item.id)
            repairs += [
                (item.id, a.field, value_of(a.value, inner))
                for clause in rule.clauses
                for a in clause.assignments
            ]
    return Judged(frozenset(failing), frozenset(unknown), True, tuple(repairs))


def value_of(node: tree.Node, env: Mapping[str, Any]) -> Any:
    """Value of a node; None for what is missing or unknown."""
    return _ROUTES[type(node)](node, env)


# Values


def _literal(node: tree.Literal, env: Mapping[str, Any]) -> Any:
    return node.value


def _listed(node: tree.ListOf, env: Mapping[str, Any]) -> Any:
    return [value for part in node.parts if (value := value_of(part, env)) is not None]


def _name(node: tree.Name, env: Mapping[str, Any]) -> Any:
    return env[node.name]


def _field(node: tree.Field, env: Mapping[str, Any]) -> Any:
    of = value_of(node.of, env)
    if of is None:
        return None
    value = getattr(of, node.name)
    if node.name.endswith("_ms"):
        return round(value * 1000)
    return round(value * 1_000_000) if node.name.endswith("_s") else value


def _index(node: tree.Index, env: Mapping[str, Any]) -> Any:
    of = list(value_of(node.of, env))
    return of[node.at] if node.at < len(of) else None


# Logic


def _not(node: tree.Not, env: Mapping[str, Any]) -> Any:
    return _denied(value_of(node.of, env))


def _denied(value: bool | None) -> bool | None:
    return {True: False, False: True, None: None}[value]


def _all(values: Sequence[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _any(values: Sequence[bool | None]) -> bool | None:
    if True in values:
        return True
    return None if None in values else False


def _logic(node: tree.Logic, env: Mapping[str, Any]) -> Any:
    values = [value_of(part, env) for part in node.parts]
    return _all(values) if node.operator == "and" else _any(values)


def _implies(node: tree.Implies, env: Mapping[str, Any]) -> Any:
    return _any([_denied(value_of(node.left, env)), value_of(node.right, env)])


def _loop(node: tree.Loop, env: Mapping[str, Any]) -> Any:
    values = [value_of(node.body, dict(env) | {node.variable: entry}) for entry in value_of(node.source, env)]
    if node.kind == "all":
        return _all(values)
    if node.kind == "any":
        return _any(values)
    if node.kind == "no":
        return _denied(_any(values))
    if node.kind == "count":
        return values.count(True)
    present = [fold(text_of(value)) for value in values if value is not None]
    return len(present) == len(set(present))


# Arithmetic


def _minus(node: tree.Minus, env: Mapping[str, Any]) -> Any:
    of = value_of(node.of, env)
    return None if of is None else -of


def _is_duration(node: tree.Node) -> bool:
    """Whether a node gives a duration, which only its form tells from a number."""
    match node:
        case tree.Literal():
            return node.kind == "duration"
        case tree.Field():
            return node.name.endswith(("_s", "_ms"))
        case tree.Minus():
            return _is_duration(node.of)
        case tree.Arithmetic():
            return _is_duration(node.left) or _is_duration(node.right) or _between_days(node)
        case tree.Call():
            return node.name == "or_else" and _is_duration(node.arguments[0])
        case _:
            return False


def _between_days(node: tree.Arithmetic) -> bool:
    return node.operator == "-" and _is_day(node.left) and _is_day(node.right)


def _is_day(node: tree.Node) -> bool:
    match node:
        case tree.Literal():
            return node.kind == "date"
        case tree.Field():
            return node.name in ("due", "date")
        case tree.Call():
            return node.name == "date" or (node.name == "or_else" and _is_day(node.arguments[0]))
        case tree.Arithmetic():
            return _is_day(node.left) != _is_day(node.right)
        case _:
            return False


def _arithmetic(node: tree.Arithmetic, env: Mapping[str, Any]) -> Any:
    left, right = value_of(node.left, env), value_of(node.right, env)
    if left is None or right is None:
        return None
    if isinstance(left, datetime.date) and isinstance(right, datetime.date):
        return (left - right).days * _DAY_US
    if isinstance(left, datetime.date) or isinstance(right, datetime.date):
        day, length = (left, right) if isinstance(left, datetime.date) else (right, left)
        days = int((-length if node.operator == "-" else length) / _DAY_US)
        try:
            return day + datetime.timedelta(days=days)
        except OverflowError:
            return None
    if node.operator == "+":
        return left + right
    if node.operator == "-":
        return left - right
    product = max(-1e300, min(1e300, float(left) * float(right)))
    if _is_duration(node.left) or _is_duration(node.right):
        return max(-(10**24), min(10**24, round(product)))
    return product


# Comparisons


def _compare(node: tree.Compare, env: Mapping[str, Any]) -> Any:
    left, right = value_of(node.left, env), value_of(node.right, env)
    if node.operator in ("==", "!="):
        same = _same(node, left, right)
        return same if node.operator == "==" else _denied(same)
    found = _RELATIONS[node.operator](left, right)
    return _denied(found) if node.negated else found


def _same(node: tree.Compare, left: Any, right: Any) -> bool | None:
    sides = (node.left, node.right)
    if any(isinstance(side, tree.Literal) and side.kind == "null" for side in sides):
        return left is None and right is None
    if isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        return len(left) == len(right) == 0
    if (left is None or right is None) and not any(isinstance(side, tree.Literal) for side in sides):
        return None
    return _equal(left, right)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return fold(left) == fold(right)
    return bool(left == right)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    return lambda left, right: None if left is None or right is None else compare(left, right)


def _in(left: Any, right: Any) -> bool | None:
    if isinstance(right, Numbers):
        return None if left is None else any(abs(left - value) < 1e-6 for value in right.values)
    left = text_of(left)
    if left is None:
        return None
    return any(_equal(left, text_of(entry)) for entry in right)


def _within(node: tree.Compare, env: Mapping[str, Any]) -> Any:
    """``in``: a missing value is in no list that is written down."""
    left, right = value_of(node.left, env), value_of(node.right, env)
    written = isinstance(node.right, tree.ListOf) and all(
        isinstance(p, tree.Literal) for p in node.right.parts
    )
    found = False if left is None and written else _in(left, right)
    return _denied(found) if node.negated else found


def _subset(left: Any, right: Any) -> bool:
    if isinstance(left, Numbers):
        return all(any(value in right.values for value in reading) for reading in left.readings)
    known = [fold(text) for text in texts_of(right)]
    return all(fold(text) in known for text in texts_of(left))


def _contains(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return any(_phrase_in(text, text_of(right)) for text in texts_of(left))


def _phrase_in(text: str, wanted: str) -> bool:
    sought = [words.stem(word) for word in words.words(wanted)]
    if not sought:
        return fold(wanted) in fold(text)
    found = [words.stem(word) for word in words.words(text)]
    return any(found[at : at + len(sought)] == sought for at in range(len(found)))


def _mentions(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    sought = words.content(text_of(right))
    said = [stem for text in texts_of(left) for stem in words.content(text)]
    return 2 * sum(stem in said for stem in sought) >= len(sought)


def fold(text: str) -> str:
    """A name for comparison, letter by letter."""
    kept = "".join(
        c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )
    low = unicodedata.normalize("NFKC", kept).casefold()
    return unicodedata.normalize("NFKC", " ".join(low.split()))


def text_of(value: Any) -> Any:
    """A record's text; anything else as it is."""
    for name in ("text", "quote", "name", "what"):
        if not isinstance(value, (str, datetime.date)) and hasattr(value, name):
            return getattr(value, name)
    return value


def texts_of(value: Any) -> list[str]:
    """Texts of a text, a record or a list of them."""
    if value is None:
        return []
    return [text_of(entry) for entry in value] if isinstance(value, (list, tuple)) else [text_of(value)]


# Functions


def _call(node: tree.Call, env: Mapping[str, Any]) -> Any:
    given = [value_of(argument, env) for argument in node.arguments]
    name = node.name
    if name == "or_else":
        return given[1] if given[0] is None else given[0]
    if name == "count":
        return len(given[0].readings) if isinstance(given[0], Numbers) else len(given[0])
    if name in _OF_TEXTS:
        return _OF_TEXTS[name](texts_of(given[0]))
    if any(value is None for value in given):
        return None
    if name in ("quotes", "speakers", "people"):
        return _behind(name, given[0], env)
    if name == "external":
        return any(p.external and fold(p.name) == fold(text_of(given[0])) for p in env["attendees"])
    if name == "looks_like":
        own, others = text_of(given[0]), texts_of(given[1])
        alike = [other for other in others if words.skeleton(other) == words.skeleton(own)]
        return bool(alike) and not any(fold(other) == fold(own) for other in others)
    return _OF_VALUES[name](*[text_of(value) for value in given])


def _behind(name: str, item: Any, env: Mapping[str, Any]) -> list[str]:
    if name == "quotes":
        # What a camera saw is described, not quoted.
        return [evidence.quote for evidence in item.evidence if evidence.kind != "picture"]
    found = [e.speaker for e in item.evidence if e.speaker is not None]
    if name == "speakers":
        return list(dict.fromkeys(found))
    named = [p.name for speaker in found for p in env["attendees"] if p.speaker == speaker]
    owner = [item.owner] if getattr(item, "owner", None) is not None else []
    return list(dict.fromkeys([*found, *named, *owner]))


def _each(read: Callable[[str], Sequence[str]]) -> Callable[[list[str]], list[str]]:
    return lambda texts: list(dict.fromkeys(found for text in texts for found in read(text)))


_OF_TEXTS: Final[dict[str, Callable[[list[str]], Any]]] = {
    "numbers": numbers_of_all, "words": _each(words.words), "names": _each(words.names),
    "day_names": _each(words.day_names),
}  # fmt: skip
_OF_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "length": len,
    "plain": lambda text: all(
        c.isspace() or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn") for c in text
    ),
    "starts_with": lambda text, begin: fold(text).startswith(fold(begin)),
    "ends_with": lambda text, end: fold(text).endswith(fold(end)),
    "weekday": lambda day: day.strftime("%A").lower(),
    "day": lambda day: day.day,
    "month": lambda day: day.month,
    "year": lambda day: day.year,
    "date": lambda moment: moment.date(),
}
_RELATIONS: Final[dict[str, Callable[[Any, Any], bool | None]]] = {
    "<": _ordered(lambda a, b: a < b), "<=": _ordered(lambda a, b: a <= b), ">": _ordered(lambda a, b: a > b),
    ">=": _ordered(lambda a, b: a >= b), "subset": _subset, "contains": _contains, "mentions": _mentions,
}  # fmt: skip
_ROUTES: Final[dict[type[tree.Node], Callable[[Any, Mapping[str, Any]], Any]]] = {
    tree.Literal: _literal, tree.ListOf: _listed, tree.Name: _name, tree.Field: _field, tree.Index: _index,
    tree.Not: _not, tree.Logic: _logic, tree.Implies: _implies, tree.Loop: _loop, tree.Minus: _minus,
    tree.Arithmetic: _arithmetic, tree.Call: _call,
    tree.Compare: lambda node, env: _within(node, env) if node.operator == "in" else _compare(node, env),
}  # fmt: skip
