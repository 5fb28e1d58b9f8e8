"""From broken rules to what becomes of an item: one decision each, the stricter action wins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..minutes import Item
from .checker import Checker, Value, Violation
from .ruleset import STRICTNESS, ActionKind, At

_ROUNDS: Final = 3
"""A repair may break another rule that repairs; after so many rounds the item is held to be beyond repair."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows for one item, or for the minutes as a whole (``item_id`` None).

    ``rules`` are the broken ones, each once. ``repairs`` are new values of fields; they also hold where
    the action is ``review``, so that a doubtful item does not keep what a rule takes out.
    """

    item_id: str | None
    action: ActionKind
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    repairs: tuple[tuple[str, Value], ...] = ()


def decide(violations: Iterable[Violation]) -> list[Decision]:
    """One decision for each item that broke a rule, in order of the ids; the whole comes first.

    Rules that give the same field different values contradict each other: then a person is asked and the
    field stays as it is.
    """
    by_item: dict[str | None, list[Violation]] = {}
    for violation in violations:
        by_item.setdefault(violation.item_id, []).append(violation)
    return [
        _decision(item_id, by_item[item_id])
        for item_id in sorted(by_item, key=lambda i: (i is not None, i or ""))
    ]


def _decision(item_id: str | None, broken: Sequence[Violation]) -> Decision:
    action = max((v.action for v in broken), key=STRICTNESS.__getitem__)
    repairs: dict[str, Value] = {}
    contradicted: set[str] = set()
    for violation in broken:
        for field, value in violation.repairs:
            if field in repairs and repairs[field] != value:
                contradicted.add(field)
            repairs[field] = value
    reasons = [f"{v.rule}: {v.message}" for v in broken]
    if contradicted:
        reasons += [f"rules give {field} different values" for field in sorted(contradicted)]
        action = max(action, "review", key=STRICTNESS.__getitem__)
    kept = (
        tuple((f, v) for f, v in repairs.items() if f not in contradicted) if STRICTNESS[action] <= 1 else ()
    )
    return Decision(
        item_id, action, tuple(dict.fromkeys(v.rule for v in broken)), tuple(dict.fromkeys(reasons)), kept
    )


def settle(checker: Checker, at: At) -> list[Decision]:
    """Repair the checker's document until nothing more is repaired, and say what became of each item.

    Repaired items stand in the document afterwards. An item that still breaks a rule whose answer was a
    repair is to be dropped: nothing leaves that breaks a rule and that nobody is shown as doubtful.
    """
    first: dict[str, Decision] = {}
    done: dict[str, dict[str, Value]] = {}
    decisions = decide(checker.check(at))
    for _ in range(_ROUNDS):
        changed = False
        for decision in decisions:
            if decision.item_id is not None and decision.repairs:
                changed |= _repair(checker, decision.item_id, decision.repairs)
                first[decision.item_id] = _joined(first.get(decision.item_id), decision)
                done.setdefault(decision.item_id, {}).update(decision.repairs)
        if not changed:
            break
        decisions = decide(checker.check(at))
    left = {d.item_id: d for d in decisions}
    settled = [_beyond_repair(d) for d in decisions if d.item_id not in first]
    for item_id, decision in first.items():
        now = left.get(item_id)
        decision = decision if now is None else _joined(decision, _beyond_repair(now))
        settled.append(replace(decision, repairs=tuple(done[item_id].items())))
    return sorted(settled, key=lambda d: (d.item_id is not None, d.item_id or ""))


def _joined(earlier: Decision | None, later: Decision) -> Decision:
    if earlier is None:
        return later
    return Decision(
        later.item_id, max(earlier.action, later.action, key=STRICTNESS.__getitem__),
        tuple(dict.fromkeys((*earlier.rules, *later.rules))),
        tuple(dict.fromkeys((*earlier.reasons, *later.reasons))), later.repairs,
    )  # fmt: skip


def _beyond_repair(decision: Decision) -> Decision:
    if decision.action != "repair":
        return decision
    return replace(
        decision, action="drop", reasons=(*decision.reasons, "the repair did not help"), repairs=()
    )


def _repair(checker: Checker, item_id: str, repairs: Iterable[tuple[str, Value]]) -> bool:
    """Give the item its new values; whether that changed anything."""
    found = checker.document.find(item_id)
    if found is None:
        return False
    section, item = found
    new: Item = item.model_copy(update=dict(repairs))
    checker.document.put(section, new)
    return new != item
