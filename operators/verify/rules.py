"""Rules over what a draft would publish: what breaks one is repaired, written more plainly, shown or withheld."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final

from contracts.minutes import (
    ActionItem,
    Gap,
    Item,
    Section,
    SlideShown,
    SummarySentence,
    UtteranceShown,
    Verdict,
)
from contracts.sal import Checker, Decision, Document, MeetingFacts, RuleSet, decide, settle
from contracts.sal.kinds import FINAL_LISTS
from contracts.sal.ruleset import At, Rule
from operators.plain_text import plain
from operators.verify.types import (
    Draft,
    VerifiedItem,
    attendees_of,
    identified,
    outsiders_of,
    seconds,
    started_at,
)

_LISTED: Final = 1_000
"""Most names of rules that are told of one item or revision."""
_STAGES: Final[tuple[At, ...]] = ("revision", "final")
_ROUNDS: Final = 3
"""What is rewritten may break another rule; what still breaks one after so many rounds is withheld."""
_SHOWN: Final[Mapping[str, Verdict]] = {"pass": "pass", "repaired": "repaired", "fallback": "fallback"}

_SWEEPS: Final = 16
"""Each withholds something; minutes in which so many one after the other break a rule keep nothing doubtful."""

Rewrite = Callable[[VerifiedItem], VerifiedItem | None]
"""Writes an item more plainly from the same evidence; None where that cannot be done."""


def item_of(verified: VerifiedItem) -> ActionItem | Item:
    """The item as it is published."""
    verdict = _SHOWN.get(verified.verdict, "review")
    item = Item(
        id=verified.item_id, text=verified.text, confidence=verified.confidence, origin=verified.origin,
        verdict=verdict, evidence=verified.evidence,
    )  # fmt: skip
    if verified.section != "action_items":
        return item
    return ActionItem(
        **{name: getattr(item, name) for name in Item.model_fields},
        owner=verified.owner, due=verified.due, due_text=verified.due_text,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ruled:
    """A draft under its rules.

    Attributes:
        doubts: reasons for a person to look at the minutes as a whole.
        whole: names of rules about the whole that hold.
        passed: those, and the rules about items that hold for every item.
    """

    items: tuple[VerifiedItem, ...]
    doubts: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """An item that was made before, with what became of it, so that what stays costs nothing.

    ``acted`` is the last decision with the item before and after it, ``result`` the end of it all with what
    it was made from.
    """

    source: VerifiedItem
    item: Item
    acted: tuple[Decision, VerifiedItem, VerifiedItem] | None = None
    result: tuple[VerifiedItem, tuple[str, ...], VerifiedItem] | None = None


@dataclass(frozen=True, slots=True)
class _Looked:
    """What rules were asked about, as far as any of them reads it, and what came of it."""

    stage: At
    items: tuple[VerifiedItem, ...]
    told: tuple[object, ...]
    ruled: Ruled

    def same(self, stage: At, items: Sequence[VerifiedItem], told: tuple[object, ...]) -> bool:
        """Whether rules would be asked the same again; items are compared by identity."""
        return (
            self.stage == stage
            and len(items) == len(self.items)
            and all(map(is_, items, self.items))
            and self.told == told
        )


class RuleGuard:
    """The rules of one meeting. Holds what it has checked; an empty one gives the same answers.

    One for as long as people, title, date and attendees stay: with others their items are verified anew as well.
    """

    def __init__(self, rules: RuleSet, meeting_id: str) -> None:
        self.rules = rules
        self._document = Document(MeetingFacts(meeting_id))
        self._checker = Checker(rules, self._document)
        self._reads_all = any(rule.needs & set(FINAL_LISTS) for rule in rules.rules)
        early = self._checked("revision")
        self._needs = frozenset[str]().union(*(rule.needs for rule in early))
        self._reads_duration = any("duration_s" in rule.text for rule in early)
        self._about_items = {stage: self._rules_about_items(stage) for stage in _STAGES}
        self._beside: tuple[tuple[object, ...], ...] = ((), (), ())
        self._looked: _Looked | None = None
        self._made: dict[str, _Made] = {}
        self._current: dict[str, VerifiedItem] = {}
        self._rewritten: set[str] = set()

    def apply(
        self, draft: Draft, items: Sequence[VerifiedItem], summary: Iterable[SummarySentence],
        notices: Iterable[str], rewrite: Rewrite,
    ) -> Ruled:  # fmt: skip
        """What may leave of a draft's items, in their order."""
        stage: At = "final" if draft.stage == "final" else "revision"
        told = self._told(draft, summary, notices)
        if self._looked is not None and stage != "final" and self._looked.same(stage, items, told):
            return self._looked.ruled
        self._looked = None  # should anything go wrong below, it is not known what the document holds
        ruled = self._ruled(draft, stage, items, rewrite)
        self._looked = _Looked(stage, tuple(items), told, ruled)
        return ruled

    def _told(
        self, draft: Draft, summary: Iterable[SummarySentence], notices: Iterable[str]
    ) -> tuple[object, ...]:
        """What else than items rules read of a draft; an early one has no summary, the last one stands."""
        told = tuple(summary) if draft.stage != "provisional" else self._beside[0]
        self._beside = told, tuple(notices), draft.gaps
        named = zip(("summary", "notices", "gaps"), self._beside, strict=True)
        return (
            draft.start_ns, draft.tai_utc_offset_s, draft.zero_ns,
            draft.duration_ns if self._reads_duration else 0,
            *(value for name, value in named if name in self._needs),
        )  # fmt: skip

    def _ruled(self, draft: Draft, stage: At, items: Sequence[VerifiedItem], rewrite: Rewrite) -> Ruled:
        self._tell(draft, items)
        for round_ in range(_ROUNDS):
            decisions = [d for d in settle(self._checker, stage) if d.item_id is not None]
            acted = [self._act(d, rewrite, last=round_ == _ROUNDS - 1) for d in decisions]
            if not any(acted):
                break
        broken = self._sweep(stage)
        about_items, own = self._about_items[stage]
        refused = {
            rule.name: ids
            for rule in about_items
            if self._checker.doubted(rule) and (ids := self._refused(rule))
        }
        doubts = tuple(reason for d in broken if d.item_id is None for reason in d.reasons)
        failed = {name for d in broken if d.item_id is None for name in d.rules}
        whole = tuple(
            r.name
            for r in self._checked(stage)
            if not r.lists and r.name not in failed and not self._checker.undecided(r)
        )
        refused_ids = set[str]().union(*refused.values()) if refused else set[str]()
        out = tuple(self._finished(item, own, refused, refused_ids) for item in items)
        passed = (*whole, *(rule.name for rule in about_items if rule.name not in refused))
        return Ruled(out, doubts, whole[:_LISTED], passed[:_LISTED])

    def _sweep(self, stage: At) -> list[Decision]:
        """What is still broken at last; items that only now break a rule that nobody may allow are withheld.

        Without them a rule that counts items may break for others, so this goes on until nothing changes.
        """
        decisions: list[Decision] = []
        for round_ in range(_SWEEPS):
            violations = self._checker.check(stage)
            # Of several rules the strictest answer counts, and to ask a person is stricter than to repair: what a
            # repair did not mend must not leave because somebody will look at it as well.
            unmended = {v.item_id for v in violations if v.action != "review"}
            changed = False
            decisions = decide(violations)
            for decision in decisions:
                item = self._current.get(decision.item_id or "")
                if item is None:
                    continue
                if decision.item_id in unmended or round_ == _SWEEPS - 1:
                    self._withhold(item, decision)
                    changed = True
                elif item.verdict not in ("review", "fallback"):
                    self._current[item.item_id] = self._acted(item, decision)
                    changed = True
            if not changed:
                break
        return decisions

    def _rules_about_items(self, stage: At) -> tuple[list[Rule], dict[str, tuple[str, ...]]]:
        """Rules about items that are checked at a stage, and their names for each section."""
        about = [rule for rule in self._checked(stage) if rule.lists]
        lists = dict.fromkeys(name for rule in about for name in rule.lists)
        return about, {name: tuple(r.name for r in about if name in r.lists)[:_LISTED] for name in lists}

    def _checked(self, stage: At) -> list[Rule]:
        return [r for r in self.rules.rules if stage == "final" or r.at != "final"]

    def _tell(self, draft: Draft, items: Sequence[VerifiedItem]) -> None:
        document, context = self._document, draft.context
        started = started_at(draft.start_ns, draft.tai_utc_offset_s)
        date = context.date or (started.date() if started is not None else None)
        document.tell(
            meeting=MeetingFacts(
                draft.meeting_id, context.title, date, started, round(draft.duration_ns / 1e9, 3)
            ),
            attendees=(*attendees_of(draft), *outsiders_of(draft)),
            key_topics=context.key_topics,
            agenda=context.agenda,
        )
        live = {item.item_id: item for item in items if item.verdict not in ("withdrawn", "withheld")}
        for gone in self._made.keys() - live.keys():
            document.remove(gone)
            del self._made[gone]
        for item_id, item in live.items():
            made = self._made.get(item_id)
            if made is None or made.source is not item:
                made = self._made[item_id] = _Made(item, item_of(item))
            document.put(item.section, made.item)
        self._current, self._rewritten = live, set()
        zero_ns = draft.zero_ns
        summary, notices, _ = self._beside
        document.replace("summary", summary)
        document.replace("notices", notices)
        document.replace(
            "gaps",
            [
                Gap(
                    start_s=seconds(g.start_ns, zero_ns), end_s=seconds(g.end_ns, zero_ns), what=g.text,
                    stream=g.device,
                )
                for g in draft.gaps
            ],
        )  # fmt: skip
        if draft.stage == "final" and self._reads_all:
            document.replace(
                "utterances",
                [
                    UtteranceShown(
                        id=u.id, start_s=seconds(u.start_ns, zero_ns), end_s=seconds(u.end_ns, zero_ns),
                        speaker=u.speaker, text=u.text,
                    )
                    for u in sorted(draft.utterances.values(), key=lambda u: (u.start_ns, u.id))
                ],
            )  # fmt: skip
            document.replace(
                "slides",
                [
                    SlideShown(
                        start_s=seconds(s.start_ns, zero_ns), end_s=seconds(s.end_ns, zero_ns), text=s.text
                    )
                    for s in draft.slides
                ],
            )

    def _act(self, decision: Decision, rewrite: Rewrite, *, last: bool) -> bool:
        """Do what a decision says; whether the rules have to be asked again."""
        item_id = decision.item_id or ""
        item = self._current.get(item_id)
        if item is None:
            return False
        if decision.action == "drop" or (decision.action == "fallback" and item_id in self._rewritten):
            self._withhold(item, decision)
            return True
        if decision.action == "fallback":
            self._rewritten.add(item_id)
            plainer = rewrite(item)
            if plainer is None or last:
                self._withhold(item, decision)
                return True
            self._current[item_id] = _with_doubts(plainer, decision)
            self._document.put(plainer.section, item_of(plainer))
            return True
        self._current[item_id] = self._acted(item, decision)
        return False

    def _acted(self, item: VerifiedItem, decision: Decision, *, withhold: bool = False) -> VerifiedItem:
        """The item repaired and marked as doubtful, or withheld; made once as long as nothing changes."""
        made = self._made[item.item_id]
        if made.acted is not None and made.acted[1] is item and made.acted[0] == decision:
            return made.acted[2]
        if withhold:
            new = _withheld(item, decision)
        else:
            new = _repaired(item, decision)
            new = _with_doubts(new, decision) if decision.action == "review" else new
        self._made[item.item_id] = replace(made, acted=(decision, item, new))
        return new

    def _withhold(self, item: VerifiedItem, decision: Decision) -> None:
        self._current[item.item_id] = self._acted(item, decision, withhold=True)
        self._document.remove(item.item_id)

    def _refused(self, rule: Rule) -> set[str]:
        """Items for which it cannot be said that a rule holds."""
        if not self._checker.applies(rule):
            return set()
        return {*self._checker.failing(rule), *self._checker.unknown(rule)}

    def _finished(
        self, source: VerifiedItem, own: Mapping[str, tuple[str, ...]], refused: Mapping[str, set[str]],
        refused_ids: set[str],
    ) -> VerifiedItem:  # fmt: skip
        """An item with the names of the rules that it passed; the same object as long as nothing changes."""
        item = self._current.get(source.item_id, source)
        made = self._made.get(source.item_id)
        if made is None:
            return source
        passed = own.get(item.section, ()) if item.verdict != "withheld" else ()
        if item.item_id in refused_ids:
            passed = tuple(name for name in passed if item.item_id not in refused.get(name, ()))
        if made.result is None or made.result[0] is not item or made.result[1] != passed:
            result = (item, passed, identified(replace(item, passed=passed)))
            made = self._made[source.item_id] = replace(made, result=result)
        return made.result[2] if made.result is not None else source


def _withheld(item: VerifiedItem, decision: Decision) -> VerifiedItem:
    doubts = tuple(dict.fromkeys((*item.doubts, *decision.reasons)))
    actions = (*item.actions, f"withheld by rule: {', '.join(decision.rules)}")
    return replace(item, verdict="withheld", doubts=doubts, failed=decision.rules, actions=actions)


def _with_doubts(item: VerifiedItem, decision: Decision) -> VerifiedItem:
    doubts = tuple(dict.fromkeys((*item.doubts, *decision.reasons)))
    verdict = item.verdict if item.verdict == "fallback" else "review"
    return replace(item, verdict=verdict, doubts=doubts, failed=decision.rules)


def _repaired(item: VerifiedItem, decision: Decision) -> VerifiedItem:
    """The item with the values that rules give it."""
    values = {field: plain(v) if isinstance(v, str) else v for field, v in decision.repairs}
    changed = {field: v for field, v in values.items() if getattr(item, field) != v}
    if not changed:
        return item
    why = ", ".join(decision.rules)
    told = tuple(f"{name} set to {v or 'nothing'} by rule: {why}" for name, v in changed.items())
    verdict = "repaired" if item.verdict == "pass" else item.verdict
    fields: dict[str, object] = {**changed, "actions": (*item.actions, *told), "verdict": verdict}
    return replace(item, **fields)  # type: ignore[arg-type]  # fields of items, by the rule language's own check


def broken_by(
    rules: RuleSet, document: Document, section: Section, item: ActionItem | Item
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rules that an item would break in a way that no person may allow, and those that it passes.

    A rule whose answer is to ask a person is met once a person has decided.
    """
    document.put(section, item)
    checker = Checker(rules, document)
    broken = [v for v in checker.check("item") if v.item_id == item.id]
    bad = tuple(dict.fromkeys(f"{v.rule}: {v.message}" for v in broken if v.action != "review"))
    failed = {v.rule for v in broken}
    about = [r for r in rules.rules if section in r.lists and r.at == "item" and r.name not in failed]
    return bad, tuple(r.name for r in about if item.id not in checker.unknown(r))
