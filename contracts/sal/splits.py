"""Whole lists judged at once: the same answers as the closures of ``terms``, with less work for each entry.

A *column* gives the values of a term for many entries of a list, a *split* those entries for which a
condition does not hold and those for which it is unknown. Both exist for terms with one loop variable.
Later parts of *and* and *or* see only entries that earlier parts left undecided. What could use up steps
raises ``Spent``; the entries are then judged one by one, which counts the steps exactly.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

from .terms import LONG_CHARS, Column, Frame, Spent, Split, Term
from .words import folded

_LEAF_STEPS: Final = 100
"""Steps of one part for one entry: a rule has too few parts to use up an entry's steps with these."""
_LONGEST_INNER: Final = 1_000


def _common(parts: Sequence[Term]) -> bool:
    """Whether terms have one loop variable between them, and a column where they have it."""
    bits = {part.variables for part in parts if part.variables}
    return (
        len(bits) == 1
        and min(bits).bit_count() == 1
        and all(p.column is not None for p in parts if p.variables)
    )


def _values(part: Term, s: Frame, entries: Sequence[Any]) -> Any:
    return part.column(s, entries) if part.column is not None and part.variables else repeat(part.run(s))


def field_column(attribute: str, factor: float | None) -> Column:
    """A field of the loop variable itself."""
    get = attrgetter(attribute)
    if factor is not None:
        return lambda s, entries: list(map(round, [value * factor for value in map(get, entries)]))
    return lambda s, entries: list(map(get, entries))


def lifted_column(operation: Callable[..., Any], parts: Sequence[Term]) -> Column | None:
    """Column of an operation on terms; missing where one of them is."""
    if not _common(parts):
        return None
    may_miss = any(part.missing for part in parts)
    if len(parts) == 1:
        (of,) = parts
        if may_miss:
            return lambda s, entries: [None if v is None else operation(v) for v in _values(of, s, entries)]
        return lambda s, entries: list(map(operation, _values(of, s, entries)))
    first, second = parts
    moving, fixed = (first, second) if first.variables else (second, first)
    if not fixed.variables and moving.kind.basic == "text":
        return _remembered_column(operation, moving, fixed, moving is first)

    def column(s: Frame, entries: Sequence[Any]) -> list[Any]:
        left, right = _values(first, s, entries), _values(second, s, entries)
        if may_miss:
            return [
                None if a is None or b is None else operation(a, b) for a, b in zip(left, right, strict=False)
            ]
        return list(map(operation, left, right))

    return column


def _remembered_column(
    operation: Callable[..., Any], moving: Term, fixed: Term, moving_first: bool
) -> Column:
    """Of texts against one fixed value: names come again and again, so each is looked at once."""

    def column(s: Frame, entries: Sequence[Any]) -> list[Any]:
        value, texts = fixed.run(s), _values(moving, s, entries)
        known: dict[str | None, Any] = {None: None}
        if value is None:
            return [None] * len(texts)
        for text in set(texts):
            if text is not None:
                known[text] = operation(text, value) if moving_first else operation(value, text)
        return [known[text] for text in texts]

    return column


def charged_column(of: Term, *, in_list: bool) -> Column | None:
    """The column of a text or of texts, where none is long enough to cost steps."""
    column = of.column
    if column is None:
        return None

    def checked(s: Frame, entries: Sequence[Any]) -> list[Any]:
        values = column(s, entries)
        present = [v for v in values if v is not None] if of.missing else values
        sizes = [sum(map(len, texts)) for texts in present] if in_list else map(len, present)
        if max(sizes, default=0) > LONG_CHARS:
            raise Spent
        return values

    return checked


def by_column(column: Column | None, missing: bool) -> Split | None:
    """Split by a column of truth values."""
    if column is None:
        return None

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values = column(s, entries)
        if False not in values and not (missing and None in values):
            return [], []
        refused = [e for e, v in zip(entries, values, strict=True) if v is False]
        return refused, [e for e, v in zip(entries, values, strict=True) if v is None] if missing else []

    return split


def null_split(of: Term, wanted: bool) -> Split | None:
    """Split by whether a value is missing (``wanted``) or there."""
    column = of.column
    if column is None or not of.variables:
        return None
    if wanted:
        return lambda s, entries: (
            [e for e, v in zip(entries, column(s, entries), strict=True) if v is not None], []
        )  # fmt: skip
    return lambda s, entries: ([e for e, v in zip(entries, column(s, entries), strict=True) if v is None], [])


def literal_split(of: Term, value: Any, wanted: bool, is_name: bool) -> Split | None:
    """Split by whether a term equals what is written down."""
    column = of.column
    if column is None or not of.variables:
        return None
    if is_name:

        def named(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            pairs = zip(entries, column(s, entries), strict=True)
            return [e for e, v in pairs if (v is not None and folded(v) == value) is not wanted], []

        return named
    if wanted:
        return lambda s, entries: (
            [e for e, v in zip(entries, column(s, entries), strict=True) if v != value],
            [],
        )
    return lambda s, entries: (
        [e for e, v in zip(entries, column(s, entries), strict=True) if v == value],
        [],
    )


def order_split(sign: str, left: Term, right: Term) -> Split | None:
    """Split by a comparison with a value that is the same for all entries; else None."""
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    moving, fixed = (left, right) if left.variables else (right, left)
    column = moving.column
    if column is None or fixed.variables:
        return None
    strict, below = sign == "<", moving is left

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        bound = fixed.run(s)
        if bound is None:
            return [], list(entries)
        values, unknown = column(s, entries), list[Any]()
        if moving.missing and None in values:
            unknown = [e for e, v in zip(entries, values, strict=True) if v is None]
            entries = [e for e, v in zip(entries, values, strict=True) if v is not None]
            values = [v for v in values if v is not None]
        pairs = zip(entries, values, strict=True)
        if below:
            refused = [e for e, v in pairs if v >= bound] if strict else [e for e, v in pairs if v > bound]
        else:
            refused = [e for e, v in pairs if v <= bound] if strict else [e for e, v in pairs if v < bound]
        return refused, unknown

    return split


def sieved(sign: str, left: Term, right: Term, exact: Split) -> Split:
    """``exact`` for durations, which only has to look at entries that are near the border or beyond it.

    Durations are compared in whole microseconds; as they are stored, two more or less are on the safe side.
    """
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    low, high = left.raw, right.raw
    if (
        low is not None
        and high is not None
        and left.factor == right.factor
        and left.variables == right.variables
    ):
        slack = 2 / left.factor if sign == "<" else 0.0

        def both(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            triples = zip(entries, low(s, entries), high(s, entries), strict=True)
            near = (
                [e for e, a, b in triples if a > b - slack] if slack else [e for e, a, b in triples if a > b]
            )
            return exact(s, near) if near else ([], [])

        return both
    if low is not None and not right.variables and not right.missing:

        def below(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            border = (right.run(s) - 2) / left.factor
            near = [e for e, v in zip(entries, low(s, entries), strict=True) if v > border]
            return exact(s, near) if near else ([], [])

        return below
    return exact


def conjunction_split(parts: Sequence[Term]) -> Split | None:
    """Split by *and*."""
    found = _part_splits(parts)
    if found is None:
        return None
    splits = found

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        refused: list[Any] = []
        doubtful: set[int] = set()
        for part in splits:
            bad, unknown = part(s, entries)
            if bad:
                refused += bad
                gone = set(map(id, bad))
                entries = [e for e in entries if id(e) not in gone]
            if unknown:
                doubtful.update(map(id, unknown))
        return refused, [e for e in entries if id(e) in doubtful] if doubtful else []

    return split


def disjunction_split(parts: Sequence[Term]) -> Split | None:
    """Split by *or*."""
    found = _part_splits(parts)
    if found is None:
        return None
    splits = found

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        doubtful: set[int] = set()
        for part in splits:
            bad, unknown = part(s, entries)
            if unknown:
                doubtful.update(map(id, unknown))
                bad = bad + unknown
            if not bad:
                return [], []
            entries = bad
        if not doubtful:
            return list(entries), []
        return [e for e in entries if id(e) not in doubtful], [e for e in entries if id(e) in doubtful]

    return split


def negation_split(of: Term) -> Split | None:
    """Split by the opposite."""
    inner = of.split
    if inner is None or not of.variables:
        return None

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        bad, unknown = inner(s, entries)
        if not bad and not unknown:
            return list(entries), []
        kept = set(map(id, bad)) | set(map(id, unknown))
        return [e for e in entries if id(e) not in kept], unknown

    return split


def all_split(source: Term, body: Term, own: int, run: Callable[[Frame], Any], place: int) -> Split | None:
    """Split by *all* over a short list of each entry: at once where every entry of every list is fine."""
    column, inner = source.column, body.split
    if column is None or inner is None or not body.pure or body.variables != own:
        return None
    one_by_one = _one_by_one(run, place)

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        lists = column(s, entries)
        if max(map(len, lists), default=0) > _LONGEST_INNER:
            raise Spent
        bad, unknown = inner(s, [entry for listed in lists for entry in listed])
        return one_by_one(s, entries) if bad or unknown else ([], [])

    return split


def split_of(term: Term, place: int) -> Split:
    """Split by any condition on the loop variable at a place."""
    if term.split is not None and term.variables:
        return term.split
    return _one_by_one(term.run, place) if term.variables else _same_for_all(term)


def _part_splits(parts: Sequence[Term]) -> list[Split] | None:
    bits = {part.variables for part in parts if part.variables}
    if len(bits) != 1 or min(bits).bit_count() != 1:
        return None
    place = min(bits).bit_length() - 1
    return [split_of(part, place) for part in parts]


def are_pure(parts: Sequence[Term]) -> bool:
    """Whether parts cost no steps."""
    return all((part.pure and part.split is not None) if part.variables else True for part in parts)


def _same_for_all(term: Term) -> Split:
    run = term.run

    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        value = run(s)
        return ([] if value else list(entries), []) if value is not None else ([], list(entries))

    return split


def _one_by_one(run: Callable[[Frame], Any], place: int) -> Split:
    def split(s: Frame, entries: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        refused: list[Any] = []
        unknown: list[Any] = []
        context = s[0]
        context.limit = _LEAF_STEPS
        for entry in entries:
            s[place] = entry
            context.steps = 0
            value = run(s)
            if value is False:
                refused.append(entry)
            elif value is None:
                unknown.append(entry)
        return refused, unknown

    return split
