"""What compiled pieces are made with: values held for a check, loops kept up, lists read as texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Literal, NoReturn

from . import splits, terms, tree
from .kinds import ITEM_LISTS, NOTHING, TEXT, TEXTS, TRUTH, Kind, text_of
from .mistakes import Problem
from .terms import Run, Split, Term
from .words import folded

_RE_READ: Final = ("summary", "notices")
"""Growing lists that may be read as a whole: they stay short, or change seldom."""


@dataclass(frozen=True, slots=True)
class Held:
    """A value that is computed once for a check; again only when what it ``needs`` has changed."""

    run: Run
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Kept:
    """A loop over lists that grow: kept up entry by entry. ``reads`` are the held values in its body.

    ``split`` judges many entries at once.
    """

    kind: tree.LoopKind
    lists: tuple[str, ...]
    place: int
    body: Run
    reads: tuple[int, ...]
    split: Split | None


class Maker:
    """Makes terms. ``units`` are held values and kept loops, inner ones first."""

    def __init__(self) -> None:
        self.units: list[Held | Kept] = []
        self.used_units: list[int] = []
        self._shared: dict[str, int] = {}

    def made(self, kind: Kind, run: Run, *parts: Term, missing: bool = False) -> Term:
        variables = 0
        needs: frozenset[str] = frozenset()
        for part in parts:
            variables |= part.variables
            needs |= part.needs
        return Term(kind, run, missing, variables, needs)

    def lift(self, kind: Kind, operation: Callable[..., Any], *parts: Term, missing: bool = False) -> Term:
        """A term that is an operation on one or two others; missing where one of them is."""
        made = self.made(kind, terms.lifted(operation, *parts), *parts, missing=missing)
        column = splits.lifted_column(operation, parts)
        if kind != TRUTH or column is None:
            return replace(made, column=column)
        # A missing part makes the value missing, whatever the type says of the whole.
        split = splits.by_column(column, any(part.missing for part in parts))
        return replace(made, column=column, split=split, pure=True)

    def denied(self, of: Term) -> Term:
        """The opposite of a condition."""
        made = self.made(TRUTH, terms.negation(of), of, missing=of.missing)
        return replace(made, split=splits.negation_split(of), pure=of.pure)

    def joined(self, operator: Literal["and", "or"], *parts: Term) -> Term:
        """Conditions joined by *and* or *or*."""
        run = terms.conjunction(parts) if operator == "and" else terms.disjunction(parts)
        made = self.made(TRUTH, run, *parts, missing=any(p.missing for p in parts))
        split = splits.conjunction_split(parts) if operator == "and" else splits.disjunction_split(parts)
        return replace(made, split=split, pure=splits.are_pure(parts))

    def charged(self, text: Term) -> Term:
        """A text whose length costs steps where it is long."""
        return replace(
            text, run=terms.charged_text(text), column=splits.charged_column(text, in_list=False), place=0
        )

    def mixed(self, *parts: Term) -> Sequence[Term]:
        """Terms that stand side by side: those without a variable beside one with a variable are held."""
        if not any(part.variables for part in parts):
            return parts
        return [
            self.hold(part) if part.needs and not part.variables and not part.growing else part
            for part in parts
        ]

    def hold(self, term: Term) -> Term:
        unit = self.unit(Held(term.run, term.needs))
        return replace(term, run=lambda s: s[0].held[unit])

    def unit(self, unit: Held | Kept) -> int:
        self.units.append(unit)
        self.used_units.append(len(self.units) - 1)
        return len(self.units) - 1

    def prepared(self, name: str) -> Term:
        """A form of the attendees that functions look things up in; one for all rules."""
        if name not in self._shared:
            self._shared[name] = self.unit(Held(_PREPARED[name], frozenset({"attendees"})))
        unit = self._shared[name]
        self.used_units.append(unit)
        return Term(NOTHING, lambda s: s[0].held[unit], needs=frozenset({"attendees"}))

    def as_text(self, term: Term) -> Term:
        name = text_of(term.kind)
        if not name:
            return term
        return self.lift(TEXT, attrgetter(name), term, missing=term.missing)

    def texts(self, node: tree.Node, term: Term) -> Term:
        """A list of texts of a text, a record or a list of them; a missing text is no text."""
        if term.growing and term.growing not in _RE_READ:
            raise Problem(
                node.first, node.last, f"{term.growing} is too long to be read as a whole for each change",
                f"go through it: any x in {term.growing}: …",
            )  # fmt: skip
        if term.kind.basic != "list":
            single = self.as_text(term)
            if single.kind != TEXT:
                raise Problem(node.first, node.last, f"{term.kind} is no list of texts")
            single = self.charged(single)
            run, column = single.run, single.column
            made = self.made(TEXTS, lambda s: () if (found := run(s)) is None else (found,), single)
            if column is None:
                return made
            return replace(made, column=lambda s, e: [() if v is None else (v,) for v in column(s, e)])
        of = term.kind.of
        name = text_of(of) if of is not None else None
        if of == NOTHING:
            return replace(term, kind=TEXTS)
        if name is None:
            raise Problem(node.first, node.last, f"{term.kind} is no list of texts")
        if name:
            get = attrgetter(name)
            made = self.lift(TEXTS, lambda entries: [get(entry) for entry in entries], term)
            return replace(made, growing=term.growing)
        return term

    def refuse_squares(self, *given: tuple[tree.Node, Term]) -> None:
        if any(term.variables for _, term in given):
            for node, term in given:
                if term.growing:
                    self.too_often(node, term)

    def too_often(self, node: tree.Node, term: Term) -> NoReturn:
        raise Problem(
            node.first, node.last, f"{term.growing} would be gone through again for every entry of another list",
            "that grows with the square of the meeting; distinct(x in …: …) finds what stands twice",
        )  # fmt: skip


def size_of(name: str) -> Run:
    names = ITEM_LISTS if name == "items" else (name,)
    return lambda s: sum([len(s[0].document.lists[n].entries) for n in names])


def folded_set(texts: Iterable[str]) -> frozenset[str]:
    """Names for look-up."""
    return frozenset([folded(text) for text in texts])


_PREPARED: Final[dict[str, Run]] = {
    "labels": lambda s: {a.speaker: a.name for a in s[0].document.attendees if a.speaker is not None},
    "outside": lambda s: folded_set(a.name for a in s[0].document.attendees if a.external),
}
