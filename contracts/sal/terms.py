"""What a piece of a rule compiles to, and the closures for truth values, comparisons and loops.

A closure takes the frame: the context at place 0, loop variables behind it. Every closure is total. None
stands for a value that is missing, and for a condition that can be neither confirmed nor denied because
of one; ``False`` decides *and*, ``True`` decides *or*, whatever is unknown beside them (Kleene's logic).
"""

import datetime
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from .document import Document
from .kinds import Kind
from .words import folded

ELEMENT_STEPS: Final = 100_000
"""What judging one entry of a list may cost, in entries gone through and hundreds of characters read."""
STEPS_PER_ENTRY: Final = 10
"""What the document allows a rule about the whole, for each of its entries, on top of that."""
LONG_CHARS: Final = 2_000


class Spent(Exception):
    """A rule has used up its steps."""


class Context:
    """What closures read: the document, values held for a whole check, and the steps used so far."""

    __slots__ = ("document", "frame", "held", "limit", "steps")

    def __init__(self, document: Document, places: int, held: int) -> None:
        self.document = document
        self.held: list[Any] = [None] * held
        self.frame: list[Any] = [self, *[None] * places]
        self.steps = 0
        self.limit = ELEMENT_STEPS

    def charge(self, steps: int) -> None:
        """Count steps. Raises ``Spent`` where there are none left."""
        self.steps += steps
        if self.steps > self.limit:
            raise Spent


Frame = list[Any]
Run = Callable[[Frame], Any]
Column = Callable[[Frame, Sequence[Any]], list[Any]]
"""Values of a term for many entries of the list that its loop variable goes through."""
Split = Callable[[Frame, Sequence[Any]], tuple[list[Any], list[Any]]]
"""Of many entries, those for which a condition does not hold and those for which it is unknown."""


@dataclass(frozen=True, slots=True)
class Term:
    """A typed, compiled piece of a rule.

    Attributes:
        missing: whether the value may be missing, or a condition unknown.
        variables: bits of the frame places that it reads.
        needs: parts of the document that it reads.
        growing: name of the list that it is, where that grows with the meeting.
        literal: written down in the rule; ``value`` then holds it.
        place, attribute: where it is a field of a loop variable and nothing else.
        column, split: the same for many entries at once, where there is a way; ``pure``: without steps.
        raw, factor: column of a duration field as it is stored, and the microseconds in one of its units.
    """

    kind: Kind
    run: Run
    missing: bool = False
    variables: int = 0
    needs: frozenset[str] = field(default=frozenset())
    growing: str = ""
    literal: bool = False
    value: Any = None
    place: int = 0
    attribute: str = ""
    column: Column | None = None
    split: Split | None = None
    pure: bool = False
    raw: Column | None = None
    factor: float = 1.0


def constant(kind: Kind, value: Any) -> Term:
    """A value written down."""
    return Term(kind, lambda s: value, literal=True, value=value, missing=value is None)


def same_name(left: str, right: str) -> bool:
    """Whether two texts are the same name."""
    return left == right or folded(left) == folded(right)


def conjunction(parts: Sequence[Term]) -> Run:
    """All hold; unknown where none fails and one is unknown."""
    runs = tuple(part.run for part in parts)
    if any(part.missing for part in parts):

        def three_valued(s: Frame) -> bool | None:
            result: bool | None = True
            for run in runs:
                found = run(s)
                if found is False:
                    return False
                if found is None:
                    result = None
            return result

        return three_valued
    if len(runs) == 2:
        first, second = runs
        return lambda s: first(s) and second(s)

    def two_valued(s: Frame) -> bool:
        for run in runs:  # noqa: SIM110 - a generator costs more than the loop
            if not run(s):
                return False
        return True

    return two_valued


def disjunction(parts: Sequence[Term]) -> Run:
    """One holds; unknown where none holds and one is unknown."""
    runs = tuple(part.run for part in parts)
    if any(part.missing for part in parts):

        def three_valued(s: Frame) -> bool | None:
            result: bool | None = False
            for run in runs:
                found = run(s)
                if found:
                    return True
                if found is None:
                    result = None
            return result

        return three_valued
    if len(runs) == 2:
        first, second = runs
        return lambda s: first(s) or second(s)

    def two_valued(s: Frame) -> bool:
        for run in runs:  # noqa: SIM110 - a generator costs more than the loop
            if run(s):
                return True
        return False

    return two_valued


def negation(of: Term) -> Run:
    """The opposite; what is unknown stays unknown."""
    run = of.run
    if not of.missing:
        return lambda s: not run(s)

    def three_valued(s: Frame) -> bool | None:
        found = run(s)
        return None if found is None else not found

    return three_valued


def null_test(of: Term, wanted: bool) -> Run:
    """Whether a value is missing (``wanted``) or there."""
    run = of.run
    if of.place:
        place, get = of.place, attrgetter(of.attribute)
        if wanted:
            return lambda s: get(s[place]) is None
        return lambda s: get(s[place]) is not None
    if wanted:
        return lambda s: run(s) is None
    return lambda s: run(s) is not None


def equality(left: Term, right: Term, wanted: bool, is_name: bool) -> Run:
    """``==`` (``wanted``) or ``!=``. A missing value is not what is written down; else it leaves it unknown."""
    if left.literal:
        left, right = right, left
    get, other = left.run, right.run
    if right.literal:
        value = folded(right.value) if is_name else right.value
        if is_name:

            def named(s: Frame) -> bool:
                found = get(s)
                return (found is not None and folded(found) == value) is wanted

            return named
        return (lambda s: get(s) == value) if wanted else (lambda s: get(s) != value)

    def compared(s: Frame) -> bool | None:
        a, b = get(s), other(s)
        if a is None or b is None:
            return None
        return (a == b or (is_name and folded(a) == folded(b))) is wanted

    return compared


def order(sign: str, left: Term, right: Term) -> Run:
    """``<``, ``<=``, ``>`` or ``>=``; unknown where a side is missing."""
    if sign in (">", ">="):
        sign, left, right = sign.replace(">", "<"), right, left
    a, b = left.run, right.run
    if not left.missing and not right.missing:
        if sign == "<":
            return lambda s: a(s) < b(s)
        return lambda s: a(s) <= b(s)
    strict = sign == "<"

    def compared(s: Frame) -> bool | None:
        first = a(s)
        if first is None:
            return None
        second = b(s)
        if second is None:
            return None
        return bool(first < second if strict else first <= second)

    return compared


_LAST_DAY: Final = datetime.date.max.toordinal()
_DAY_US: Final = 86_400_000_000


def shifted(day: datetime.date, length_us: int) -> datetime.date | None:
    """A date some whole days away (rounded towards it); missing where the calendar has no such day."""
    number = day.toordinal() + int(length_us / _DAY_US)
    return datetime.date.fromordinal(number) if 1 <= number <= _LAST_DAY else None


def days_between(later: datetime.date, earlier: datetime.date) -> int:
    """Duration in microseconds."""
    return (later - earlier).days * _DAY_US


def lifted(operation: Callable[..., Any], *terms: Term) -> Run:
    """``operation`` on values; missing where one of them is."""
    if len(terms) == 1:
        of = terms[0].run
        if not terms[0].missing:
            return lambda s: operation(of(s))

        def one(s: Frame) -> Any:
            found = of(s)
            return None if found is None else operation(found)

        return one
    first, second = terms[0].run, terms[1].run
    if not terms[0].missing and not terms[1].missing:
        return lambda s: operation(first(s), second(s))

    def two(s: Frame) -> Any:
        a = first(s)
        if a is None:
            return None
        b = second(s)
        return None if b is None else operation(a, b)

    return two


def charged_text(term: Term) -> Run:
    """Value of a text, with the steps for reading a long one."""
    run = term.run

    def read(s: Frame) -> str | None:
        found: str | None = run(s)
        if found is not None and len(found) > LONG_CHARS:
            s[0].charge(len(found) // 100)
        return found

    return read


def charged_texts(run: Run) -> Run:
    """Value of a list of texts, with the steps for reading long ones."""

    def read(s: Frame) -> Sequence[str]:
        found: Sequence[str] = run(s)
        long = sum([len(text) for text in found if len(text) > LONG_CHARS])
        if long:
            s[0].charge(long // 100)
        return found

    return read


def short_loop(kind: str, source: Run, place: int, body: Run) -> Run:
    """``all``, ``any``, ``no`` or ``count`` over a list that is at hand."""
    if kind == "count":

        def count(s: Frame) -> int:
            found = 0
            for entry in _entries(source(s), s):
                s[place] = entry
                if body(s):
                    found += 1
            return found

        return count
    decisive = kind == "any" or kind == "no"
    at_once = kind == "any"

    def quantified(s: Frame) -> bool | None:
        result: bool | None = not at_once
        for entry in _entries(source(s), s):
            s[place] = entry
            found = body(s)
            if found is decisive:
                return at_once
            if found is None:
                result = None
        return result

    return quantified


def short_distinct(source: Run, place: int, body: Run) -> Run:
    """Whether no two texts are the same name; missing ones do not count."""

    def distinct(s: Frame) -> bool:
        seen: set[str] = set()
        for entry in _entries(source(s), s):
            s[place] = entry
            found = body(s)
            if found is None:
                continue
            name = folded(found)
            if name in seen:
                return False
            seen.add(name)
        return True

    return distinct


def _entries(found: Any, s: Frame) -> Any:
    entries: Sized = found
    context = s[0]
    context.steps += len(entries)
    if context.steps > context.limit:
        raise Spent
    return entries


_MOST: Final = 1e300
_LONGEST_US: Final = 10**24


def product(left: float, right: float) -> float:
    """Of two numbers, kept finite."""
    return max(-_MOST, min(_MOST, float(left) * float(right)))


def scaled(length_us: int, factor: float) -> int:
    """A duration times a number, in whole microseconds, kept within reason."""
    return max(-_LONGEST_US, min(_LONGEST_US, round(product(length_us, factor))))
