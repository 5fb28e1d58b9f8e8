"""Rules against the minutes of one meeting, from revision to revision, looking only at what has changed."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .compiler import Held, Kept
from .document import Document, Growing
from .kinds import ITEM_LISTS
from .ruleset import ActionKind, At, Rule, RuleSet, Severity
from .terms import ELEMENT_STEPS, STEPS_PER_ENTRY, Context, Run, Spent
from .words import folded

Value = str | datetime.date | None
_STAGES: Final[Mapping[At, tuple[At, ...]]] = {
    "item": ("item",), "revision": ("item", "revision"), "final": ("item", "revision", "final"),
}  # fmt: skip
_SPENT: Final = object()
"""Instead of a value that would have cost too much."""
_SHOWN_CHARS: Final = 80
_MANY: Final = 4
"""From so many entries on they are judged at once."""


class Violation(NamedTuple):
    """A rule that does not hold, for one item or (``item_id`` None) for the minutes as a whole.

    ``repairs`` are the new values that the rule gives to fields of the item. ``judged`` is false where
    the rule could not be judged within its steps; the action then is to ask a person.
    """

    rule: str
    severity: Severity
    item_id: str | None
    action: ActionKind
    message: str
    repairs: tuple[tuple[str, Value], ...] = ()
    judged: bool = True


@dataclass(slots=True)
class _Part:
    """One list of a kept loop: up to which change it was read, and the entries that decide something."""

    growing: Growing
    seen: int = -1
    marks: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _HeldState:
    versions: tuple[int, ...] | None = None
    """Of the parts that the value was made of; None before it was made, also where it is made of none."""
    stamp: int = 0
    spent: bool = False


@dataclass(slots=True)
class _LoopState:
    parts: tuple[_Part, ...]
    stamps: tuple[int, ...] = ()
    stamp: int = 0
    unknown: int = 0
    spent: int = 0
    same: dict[str, int] = field(default_factory=dict)
    twice: int = 0


@dataclass(slots=True)
class _Told:
    """What was told of a rule about items, and at which state of its loop."""

    stamp: int
    by_item: dict[str, tuple[Any, bool, Violation]]
    violations: list[Violation]


class Checker:
    """Holds a document against rules. Nothing of it needs to be saved: a new one gives the same answers.

    Who changes the document calls ``check`` afterwards, on one thread. The cost is that of what changed.
    """

    def __init__(self, rules: RuleSet, document: Document) -> None:
        self.rules = rules
        self.document = document
        self._context = Context(document, rules.places, len(rules.units))
        self._states: list[_HeldState | _LoopState] = [
            _HeldState()
            if isinstance(unit, Held)
            else _LoopState(tuple(_Part(document.lists[n]) for n in unit.lists))
            for unit in rules.units
        ]
        self._told: dict[int, _Told] = {}
        self._known: dict[int, tuple[tuple[int, ...], bool | None, bool]] = {}
        self._active = {
            stage: tuple(rule for rule in rules.rules if rule.at in _STAGES[stage]) for stage in _STAGES
        }
        self._units = {
            stage: tuple(sorted({unit for rule in active for unit in rule.units}))
            for stage, active in self._active.items()
        }

    def check(self, at: At = "final") -> list[Violation]:
        """What does not hold now, in the order of the rules and then of the items' ids.

        ``at`` is the stage: at an item's change only rules about items, at a revision also those about
        the whole, at the final revision all.
        """
        for unit in self._units[at]:
            self._refresh(unit)
        found: list[Violation] = []
        for rule in self._active[at]:
            if rule.lists:
                self._judge_items(rule, found)
            else:
                self._judge_whole(rule, found)
        return found

    def failing(self, rule: Rule) -> dict[str, bool]:
        """Items that a rule about items refuses, by id; false where it could not be judged."""
        state = self._states[rule.unit]
        assert isinstance(state, _LoopState)
        decisive = _DECISIVE[self._kind(rule.unit)]
        return {
            key: mark is not _SPENT
            for part in state.parts
            for key, mark in part.marks.items()
            if mark is decisive or mark is _SPENT
        }

    def doubted(self, rule: Rule) -> bool:
        """Whether there is an item that a rule about items refuses or cannot judge."""
        state = self._states[rule.unit]
        return isinstance(state, _LoopState) and any(part.marks for part in state.parts)

    def unknown(self, rule: Rule) -> set[str]:
        """Items of which a rule cannot say whether it holds, because something is missing."""
        state = self._states[rule.unit]
        assert isinstance(state, _LoopState)
        return {key for part in state.parts for key, mark in part.marks.items() if mark is None}

    def undecided(self, rule: Rule) -> bool:
        """Whether a rule about the whole can be neither confirmed nor denied, because something is missing."""
        known = self._known.get(rule.number)
        return known is not None and known[1] is None and not known[2]

    def applies(self, rule: Rule) -> bool:
        """Whether the rule's ``when`` holds; without one it always applies."""
        if rule.when is None:
            return True
        return self._whole(rule.when)[0] is True

    # Units

    def _kind(self, unit: int) -> str:
        made = self.rules.units[unit]
        assert isinstance(made, Kept)
        return made.kind

    def _refresh(self, number: int) -> None:
        unit, state = self.rules.units[number], self._states[number]
        if isinstance(unit, Held):
            assert isinstance(state, _HeldState)
            self._refresh_held(number, unit, state)
        else:
            assert isinstance(state, _LoopState)
            self._refresh_loop(number, unit, state)

    def _refresh_held(self, number: int, unit: Held, state: _HeldState) -> None:
        version = self.document.version
        versions = tuple([version(name) for name in unit.needs])
        if versions == state.versions:
            return
        state.versions = versions
        value, state.spent = self._whole(unit.run)
        held = self._context.held
        if value is not held[number] and value != held[number]:
            held[number] = value
            state.stamp += 1

    def _whole(self, run: Run) -> tuple[Any, bool]:
        """Value of a term about the whole, and whether its steps ran out."""
        context = self._context
        context.steps, context.limit = 0, ELEMENT_STEPS + STEPS_PER_ENTRY * self.document.size
        try:
            return run(context.frame), False
        except Spent:
            return None, True

    def _refresh_loop(self, number: int, unit: Kept, state: _LoopState) -> None:
        stamps = tuple([self._states[read].stamp for read in unit.reads])
        if stamps != state.stamps:
            state.stamps = stamps
            for part in state.parts:
                self._forget(part, state)
        changed = False
        for part in state.parts:
            growing = part.growing
            if part.seen == growing.version:
                continue
            changed = True
            keys = growing.since(part.seen) if part.seen >= 0 else None
            if keys is None:
                self._forget(part, state)
                keys = tuple(growing.entries)
            part.seen = growing.version
            keys = tuple(dict.fromkeys(keys)) if len(keys) > 1 else keys
            if len(keys) < _MANY or unit.split is None or not self._judge_many(unit, state, part, keys):
                for key in keys:
                    self._judge_entry(unit, state, part, key)
        if changed:
            value = _value_of(unit.kind, state)
            held = self._context.held
            if value is not held[number] and value != held[number]:
                held[number] = value
            state.stamp += 1

    def _forget(self, part: _Part, state: _LoopState) -> None:
        for key in tuple(part.marks):
            _unmark(part, state, key)
        part.seen = -1

    def _judge_many(self, unit: Kept, state: _LoopState, part: _Part, keys: Sequence[str]) -> bool:
        """Judge many entries anew at once; false where they have to be judged one by one."""
        if unit.lists[0] not in ITEM_LISTS or unit.split is None:  # only items know their keys
            return False
        if part.marks:
            for key in keys:
                _unmark(part, state, key)
        known = part.growing.entries
        entries = [known[key] for key in keys if key in known]
        try:
            refused, unknown = unit.split(self._context.frame, entries)
        except Spent:
            return False
        if unit.kind == "all":
            part.marks.update(dict.fromkeys([entry.id for entry in refused], False))
        else:
            without = {entry.id for entry in refused} | {entry.id for entry in unknown}
            part.marks.update(dict.fromkeys([e.id for e in entries if e.id not in without], True))
        part.marks.update(dict.fromkeys([entry.id for entry in unknown]))
        state.unknown += len(unknown)
        return True

    def _judge_entry(self, unit: Kept, state: _LoopState, part: _Part, key: str) -> None:
        """Judge one entry anew, or forget it where it is gone."""
        if part.marks:
            _unmark(part, state, key)
        entry = part.growing.entries.get(key)
        if entry is None:
            return
        context = self._context
        context.steps, context.limit = 0, ELEMENT_STEPS
        context.frame[unit.place] = entry
        try:
            value = unit.body(context.frame)
        except Spent:
            value = _SPENT
        if unit.kind == "distinct" and isinstance(value, str):
            value = folded(value)
            state.same[value] = state.same.get(value, 0) + 1
            state.twice += state.same[value] == 2
        elif value is _UNMARKED[unit.kind]:
            return
        elif value is None:
            state.unknown += 1
        elif value is _SPENT:
            state.spent += 1
        part.marks[key] = value

    # Rules

    def _judge_items(self, rule: Rule, found: list[Violation]) -> None:
        state = self._states[rule.unit]
        assert isinstance(state, _LoopState)
        if not any(part.marks for part in state.parts) or not self.applies(rule):
            return
        told = self._told.get(rule.number)
        if told is None or told.stamp != state.stamp or not rule.steady:
            known = told.by_item if told is not None and rule.steady else {}
            told = self._told[rule.number] = self._tell(rule, state, known)
        found += told.violations

    def _tell(self, rule: Rule, state: _LoopState, known: Mapping[str, tuple[Any, bool, Violation]]) -> _Told:
        """What a rule about items refuses, in order of the ids; what is known of the same item is told again."""
        decisive = _DECISIVE[self._kind(rule.unit)]
        by_item: dict[str, tuple[Any, bool, Violation]] = {}
        for part in state.parts:
            for key, mark in part.marks.items():
                if mark is not decisive and mark is not _SPENT:
                    continue
                item, judged = part.growing.entries[key], mark is not _SPENT
                before = known.get(key)
                if before is None or before[0] is not item or before[1] is not judged:
                    before = (item, judged, self._violation(rule, key, item, judged))
                by_item[key] = before
        return _Told(state.stamp, by_item, [by_item[key][2] for key in sorted(by_item)])

    def _judge_whole(self, rule: Rule, found: list[Violation]) -> None:
        version = self.document.version
        versions = tuple([version(name) for name in rule.needs])
        known = self._known.get(rule.number)
        if known is None or known[0] != versions:
            value, spent = self._whole(rule.body)
            if value is not True and not self.applies(rule):
                value = True
            known = self._known[rule.number] = (versions, value, spent or self._any_spent(rule))
        _, value, spent = known
        if spent and self.applies(rule):
            found.append(Violation(rule.name, rule.severity, None, "review", _TOO_MUCH, judged=False))
        elif value is False:
            found.append(Violation(rule.name, rule.severity, None, rule.action, "does not hold"))

    def _any_spent(self, rule: Rule) -> bool:
        return any(bool(self._states[unit].spent) for unit in rule.units)

    def _violation(self, rule: Rule, key: str, item: Any, judged: bool) -> Violation:
        if not judged:
            return Violation(rule.name, rule.severity, key, "review", _TOO_MUCH, judged=False)
        repairs = [
            (repair.field, value)
            for repair in rule.repairs
            if (value := self._of_item(repair.value, item)) is not _SPENT
        ]
        return Violation(rule.name, rule.severity, key, rule.action, _shown(rule, item), tuple(repairs))

    def _of_item(self, run: Run, item: Any) -> Any:
        """Value of a term about one item."""
        context = self._context
        context.steps, context.limit, context.frame[1] = 0, ELEMENT_STEPS, item
        try:
            return run(context.frame)
        except Spent:
            return _SPENT


_TOO_MUCH: Final = "could not be judged: there is too much to look through"
_DECISIVE: Final[Mapping[str, bool]] = {"all": False, "no": True}
_UNMARKED: Final[Mapping[str, Any]] = {
    "all": True,
    "any": False,
    "no": False,
    "count": False,
    "distinct": None,
}
"""What an entry is most of the time; nothing is kept of such entries."""


def _unmark(part: _Part, state: _LoopState, key: str) -> None:
    if key not in part.marks:
        return
    mark = part.marks.pop(key)
    if mark is None:
        state.unknown -= 1
    elif mark is _SPENT:
        state.spent -= 1
    elif isinstance(mark, str):
        state.same[mark] -= 1
        state.twice -= state.same[mark] == 1
        if not state.same[mark]:
            del state.same[mark]


def _value_of(kind: str, state: _LoopState) -> bool | int | None:
    marked = sum([len(part.marks) for part in state.parts]) - state.unknown - state.spent
    if kind == "count":
        return marked
    if kind == "distinct":
        return state.twice == 0
    if marked:
        return kind == "any"
    return None if state.unknown or state.spent else kind != "any"


def _shown(rule: Rule, item: Any) -> str:
    """What of the item the rule looked at."""
    told = f"does not hold for {_short(item.text)}"
    values = [
        f"{name} {_short(getattr(item, name))}" for name in rule.fields if name not in ("evidence", "text")
    ]
    return f"{told} ({', '.join(values)})" if values else told


def _short(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN_CHARS else value[: _SHOWN_CHARS - 1] + "…"
        return f"“{text}”"
    return str(value)
