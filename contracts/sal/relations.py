"""Comparisons: which values may stand side by side, and what is asked of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne, not_
from typing import Any, Final, NoReturn

from . import splits, terms, tree, words
from .kinds import DATE, DURATION, MOMENT, NOTHING, NUMBER, NUMBERS, TEXT, TRUTH, text_of
from .maker import Maker, folded_set, size_of
from .mistakes import Problem, meant
from .quantities import Numbers
from .terms import Frame, Term


def compare(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    """A comparison of two terms. Raises ``Problem`` where it makes no sense."""
    maker.refuse_squares((node.left, left), (node.right, right))
    left, right = maker.mixed(left, right)
    if node.operator in ("==", "!="):
        return _equal(maker, node, left, right)
    for side, written in ((left, node.left), (right, node.right)):
        if side.kind == NOTHING:
            raise Problem(written.first, written.last, "null can only be compared with == and !=")
    made = _RELATIONS[node.operator](maker, node, left, right)
    if node.negated:
        return maker.denied(made)
    return made


def _equal(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    wanted = node.operator == "=="
    if left.kind == NOTHING:
        left, right = right, left
    if right.kind == NOTHING:
        if left.kind.basic == "list":
            raise Problem(node.first, node.last, "a list is never missing", "an empty one is []")
        if not left.missing:
            raise Problem(
                node.first, node.last, f"{left.kind} is never missing here", "leave the comparison out"
            )
        made = maker.made(TRUTH, terms.null_test(left, wanted), left)
        return replace(made, split=splits.null_split(left, wanted), pure=True)
    if left.kind.basic == "list" or right.kind.basic == "list":
        return _emptiness(maker, node, left, right, wanted)
    if left.kind != right.kind or left.kind.basic in ("record", "numbers"):
        incomparable(node, left, right)
    check_values(node.left, node.right, left, right)
    left, right = (right, left) if left.literal else (left, right)
    literal = right.literal
    values = (left.kind.values is not None) + (right.kind.values is not None)
    is_name = left.kind == TEXT and not values if literal else left.kind == TEXT and values < 2
    missing = not literal and (left.missing or right.missing)
    if not literal and not missing:
        if not is_name:
            return maker.lift(TRUTH, eq if wanted else ne, left, right)
        return maker.lift(TRUTH, lambda a, b: terms.same_name(a, b) is wanted, left, right)
    made = maker.made(TRUTH, terms.equality(left, right, wanted, is_name), left, right, missing=missing)
    if not right.literal:
        return made
    value = words.folded(right.value) if is_name else right.value
    return replace(made, split=splits.literal_split(left, value, wanted, is_name), pure=True)


def _emptiness(maker: Maker, node: tree.Compare, left: Term, right: Term, wanted: bool) -> Term:
    if left.literal and left.value == ():
        left, right = right, left
    if not (right.literal and right.value == () and left.kind.basic == "list"):
        raise Problem(
            node.first, node.last, "lists are only compared with [], the empty list",
            "use in, subset or contains; to look at the entries: all x in …: …",
        )  # fmt: skip
    if left.growing:
        size = size_of(left.growing)
        return maker.made(TRUTH, lambda s: (size(s) == 0) is wanted, left)
    return maker.lift(TRUTH, not_ if wanted else bool, left)


def incomparable(node: tree.Compare, left: Term, right: Term) -> NoReturn:
    hint = ""
    pair = {left.kind.basic, right.kind.basic}
    if "record" in pair:
        side = left if left.kind.basic == "record" else right
        known = side.kind.record.text_field if side.kind.record else None
        hint = f"compare a field of it, like .{known}" if known else ""
    elif pair == {"duration", "number"}:
        hint = "give the number a unit: 5 s, 10 min, 2 days"
    elif pair == {"date", "text"}:
        hint = "dates are written without quotes: 2026-03-31"
    elif pair == {"date", "moment"}:
        hint = "date(…) gives the day of a moment"
    elif pair == {"list", "number"}:
        hint = "count(…) counts a list"
    elif pair == {"number", "text"}:
        hint = "numbers are written without quotes; length(…) and count(words(…)) measure a text"
    elif "numbers" in pair:
        hint = "write 5 in numbers(…) or numbers(…) subset numbers(…)"
    raise Problem(node.first, node.last, f"{left.kind} cannot be compared with {right.kind}", hint)


def check_values(left_node: tree.Node, right_node: tree.Node, left: Term, right: Term) -> None:
    for side, other, written in ((left, right, right_node), (right, left, left_node)):
        values = side.kind.values
        if values is None or not other.literal:
            continue
        for value in other.value if isinstance(other.value, tuple) else (other.value,):
            if value not in values:
                raise Problem(
                    written.first,
                    written.last,
                    f"this is never “{str(value)[:40]}”",
                    meant(str(value), values, what="it is one of"),
                )


def _ordered(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    if left.kind != right.kind:
        incomparable(node, left, right)
    if left.kind not in (NUMBER, DATE, DURATION, MOMENT):
        raise Problem(
            node.first,
            node.last,
            f"“{node.operator}” does not compare {left.kind} with another",
            "== and != do",
        )
    made = maker.made(
        TRUTH, terms.order(node.operator, left, right), left, right, missing=left.missing or right.missing
    )
    split = splits.order_split(node.operator, left, right)
    if split is None:
        column = splits.lifted_column(_ORDERS[node.operator], (left, right))
        split = splits.by_column(column, made.missing)
    if split is not None:
        split = splits.sieved(node.operator, left, right, split)
    return replace(made, split=split, pure=True)


def _within(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    if right.kind == NUMBERS:
        if left.kind != NUMBER:
            incomparable(node, left, right)
        return maker.lift(TRUTH, _number_in, left, right, missing=left.missing)
    if right.kind.basic != "list" or right.kind.of is None:
        hint = "write … contains …" if right.kind == TEXT else ""
        raise Problem(node.right.first, node.right.last, f"{right.kind} is no list", hint)
    of = right.kind.of
    if of == NOTHING:
        return maker.made(TRUTH, lambda s: False, left, right)
    left = maker.as_text(left) if text_of(of) is not None else left
    if text_of(of) is None or left.kind != TEXT:
        if left.kind != of or of.basic in ("record", "list"):
            incomparable(node, left, Term(of, right.run))
        return _member(maker, left, right, lambda value: value, frozenset)
    if left.kind.values is not None and right.literal:
        check_values(node.left, node.right, left, right)
    names = maker.texts(node.right, right)
    return _member(maker, left, names, words.folded, folded_set)


def _member(
    maker: Maker, left: Term, right: Term, form: Callable[[Any], Any], whole: Callable[[Any], Any]
) -> Term:
    """``left in right``; the set is made beforehand where no loop variable is in it."""
    get, listed = left.run, right.run
    if right.literal:
        known = whole(right.value)

        def in_known(s: Frame) -> bool:
            value = get(s)
            return value is not None and form(value) in known

        return maker.made(TRUTH, in_known, left, right)
    if not right.variables:
        right = maker.hold(replace(right, run=lambda s: whole(listed(s)), growing=""))
        operation: Callable[[Any, Any], bool] = lambda value, found: form(value) in found  # noqa: E731
    else:
        operation = lambda value, found: form(value) in whole(found)  # noqa: E731
    return maker.lift(TRUTH, operation, left, right, missing=left.missing)


def _subset(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    if left.kind == NUMBERS and right.kind == NUMBERS:
        return maker.lift(TRUTH, Numbers.within, left, right)
    if NUMBERS in (left.kind, right.kind):
        incomparable(node, left, right)
    left, right = maker.texts(node.left, left), maker.texts(node.right, right)
    if not right.variables and not right.literal:
        listed = right.run
        right = maker.hold(replace(right, run=lambda s: folded_set(listed(s))))
        return maker.lift(TRUTH, _all_in, left, right)
    return maker.lift(TRUTH, _subset_of, left, right)


def _contains(maker: Maker, node: tree.Compare, left: Term, right: Term) -> Term:
    wanted = maker.as_text(right)
    if wanted.kind != TEXT:
        raise Problem(
            node.right.first, node.right.last, f"{node.operator} looks for a text, not for {wanted.kind}",
            "one after the other: any x in …: … contains x" if wanted.kind.basic == "list" else "",
        )  # fmt: skip
    if left.kind.basic == "list":
        texts = maker.texts(node.left, left)
        texts = replace(
            texts, run=terms.charged_texts(texts.run), column=splits.charged_column(texts, in_list=True)
        )
        operation: Callable[[Any, str], bool] = (
            _any_contains if node.operator == "contains" else words.mentions
        )
        return maker.lift(TRUTH, operation, texts, wanted, missing=wanted.missing)
    text = maker.as_text(left)
    if text.kind != TEXT:
        raise Problem(node.left.first, node.left.last, f"{left.kind} contains no text")
    text = maker.charged(text)
    operation = words.contains if node.operator == "contains" else _one_mentions
    return maker.lift(TRUTH, operation, text, wanted, missing=text.missing or wanted.missing)


def _all_in(texts: Iterable[str], known: frozenset[str]) -> bool:
    return all(words.folded(text) in known for text in texts)


def _subset_of(texts: Iterable[str], others: Iterable[str]) -> bool:
    return _all_in(texts, folded_set(others))


def _any_contains(texts: Iterable[str], wanted: str) -> bool:
    return any(words.contains(text, wanted) for text in texts)


def _one_mentions(text: str, wanted: str) -> bool:
    return words.mentions((text,), wanted)


def _number_in(value: float, found: Numbers) -> bool:
    return round(value, 6) in found.values


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_RELATIONS: Final[dict[str, Callable[[Maker, tree.Compare, Term, Term], Term]]] = {
    "<": _ordered, "<=": _ordered, ">": _ordered, ">=": _ordered,
    "in": _within, "subset": _subset, "contains": _contains,
    "mentions": _contains,
}  # fmt: skip
