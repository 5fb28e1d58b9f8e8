"""Verify: nothing leaves before it has been held against its evidence.

Every item is checked for what it claims: evidence that exists and was really said, numbers, names and
dates that occur in it, an owner who was stated, a due date that follows from the words. What fails is
repaired (the claim goes, the words stay) or withheld and shown to a person. The checks read the
evidence anew and share no decision with the step that wrote the item. Text is data here: words that
sound like an order to the software are words.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import is_
from typing import Final

from contracts.messages import RuleFile
from contracts.sal import RuleSet
from operators.language.people import Roster, person_of, roster_of
from operators.plain_text import plain
from operators.speech.foreign import NOT_ENGLISH
from operators.summary import told_as
from operators.understand.types import Attendee, DraftItem, Spoken, SummarySentence
from operators.verify.examine import VerifySettings as VerifySettings
from operators.verify.examine import shown_confidence, verify_item
from operators.verify.fallback import from_evidence
from operators.verify.judge import Claimed, Judge, Surroundings, Words
from operators.verify.rule_files import compiled
from operators.verify.rules import Ruled, RuleGuard
from operators.verify.summary import RememberedSentence, verify_summary
from operators.verify.types import (
    Draft,
    Stretch,
    Verified,
    VerifiedItem,
    identified,
)

_MEETINGS_REMEMBERED: Final = 256


@lru_cache(maxsize=256)
def _roster(attendees: tuple[Attendee, ...], speakers: tuple[str, ...]) -> Roster:
    return roster_of(
        [person_of(a.name, a.speaker, a.role, a.external, a.aliases) for a in attendees], speakers
    )


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A verdict with all that it depends on. Utterances are compared by identity: they are immutable."""

    item: DraftItem
    spoken: tuple[Spoken | None, ...]
    slides: tuple[Stretch, ...]
    verified: VerifiedItem

    def holds(self, item: DraftItem, spoken: Sequence[Spoken | None], slides: tuple[Stretch, ...]) -> bool:
        """Whether the verdict is that on this item, which may be surer or less sure than it was."""
        return (
            len(spoken) == len(self.spoken)
            and all(map(is_, spoken, self.spoken))
            and (self.item is item or replace(item, confidence=self.item.confidence) == self.item)
            and self.slides == slides
        )


def _told_alike(draft: Draft, items: Sequence[VerifiedItem]) -> Draft:
    """The draft with its summary telling items as they stand in their lists: as checks left them, and none withheld."""
    verified, made = {item.item_id: item for item in items}, {item.id: item for item in draft.items}
    kept: list[SummarySentence] = []
    for told in draft.summary:
        item, now = made.get(told.item_id or ""), verified.get(told.item_id or "")
        if now is not None and now.verdict == "withheld":
            continue
        if item is not None and now is not None:
            left_open = now.due is None and (item.due_open or item.due is not None)
            checked = now.text, now.owner, None if left_open else now.due_text
            open_before = item.due is None and item.due_open
            if checked != (item.text, item.owner, None if open_before else item.due_text):
                told = told_as(told, item, *checked) or told
        kept.append(told)
    return replace(draft, summary=tuple(dict.fromkeys(kept))) if kept else draft


@dataclass(frozen=True, slots=True)
class _Order:
    """Utterances of one draft by time, and the place of each."""

    of: Draft
    utterances: tuple[Spoken, ...]
    place: Mapping[str, int]


@dataclass(slots=True)
class _Memory:
    """Verdicts on one meeting's items and summary, void when the surroundings change."""

    guard: RuleGuard | None = None
    surroundings: tuple[object, ...] = ()
    items: dict[tuple[str, bool, bool], _Remembered] = field(default_factory=dict)
    sentences: dict[str, RememberedSentence] = field(default_factory=dict)
    order: _Order | None = None

    def in_order(self, draft: Draft) -> _Order:
        """The utterances of a draft by time; sorted once for all of its items."""
        if self.order is None or self.order.of is not draft:
            spoken = sorted(draft.utterances.values(), key=lambda u: (u.start_ns, u.id))
            self.order = _Order(draft, tuple(spoken), {u.id: n for n, u in enumerate(spoken)})
        return self.order


class Verifier:
    """Verifies drafts; remembers verdicts on items that have not changed, which changes no result.

    One for a process. Nothing of it needs to be saved: an empty one gives the same answers.

    Args:
        rules: what items and minutes are held against where the log brings no rule file.
        judge: asked once about each item as it reads; None where there is no verifier model.
        notices: what all minutes of this process have to say, for example that the model is missing.
    """

    def __init__(
        self,
        settings: VerifySettings | None = None,
        rules: RuleSet | None = None,
        judge: Judge | None = None,
        notices: tuple[str, ...] = (),
    ) -> None:
        self._settings = settings or VerifySettings()
        self._notices = notices
        self._rules = rules
        self._judge = judge
        self._meetings: OrderedDict[str, _Memory] = OrderedDict()

    @property
    def judged_by(self) -> str | None:
        """Version of the judge, None where there is none."""
        return None if self._judge is None else self._judge.name

    def rules_of(self, file: RuleFile | None) -> RuleSet | None:
        """The rules in force, where the log says ``file``."""
        return self._rules if file is None else compiled(file.content, file.name)

    def verify(self, draft: Draft) -> Verified:
        """Verdicts on all items of a draft, in order of their first evidence, and its summary."""
        speakers = tuple(sorted(set(draft.speakers)))
        roster = _roster(draft.context.attendees, speakers)
        memory = self._memory(draft, speakers)
        items = [self._item(item, draft, roster, memory) for item in draft.items]
        items.sort(key=lambda i: (i.first_ns, i.item_id))
        summary, verdict, notices = verify_summary(_told_alike(draft, items), roster, memory.sentences)
        notices = list(dict.fromkeys([*draft.notices, *self._notices, *notices]))
        rules, ruled = self.rules_of(draft.rules), Ruled(tuple(items))
        if rules is not None:
            written = {item.id: item for item in draft.items}
            if memory.guard is None or memory.guard.rules is not rules:
                memory.guard = RuleGuard(rules, draft.meeting_id)

            def plainer(verified: VerifiedItem) -> VerifiedItem | None:
                return self._plainer(written[verified.item_id], draft, roster, None)

            ruled = memory.guard.apply(draft, items, summary, notices, plainer)
        return Verified(
            draft, ruled.items, summary, verdict, tuple(notices), None if rules is None else rules.version,
            ruled.doubts, ruled.whole, ruled.passed, rules is not None and rules.together,
        )  # fmt: skip

    def forget(self, meeting_id: str) -> None:
        """Forget the verdicts on a meeting's items."""
        self._meetings.pop(meeting_id, None)

    def _memory(self, draft: Draft, speakers: tuple[str, ...]) -> _Memory:
        context = draft.context
        surroundings = (context, speakers, draft.zero_ns, draft.origin, NOT_ENGLISH in draft.notices)
        memory = self._meetings.get(draft.meeting_id)
        if memory is None or memory.surroundings != surroundings:
            memory = self._meetings[draft.meeting_id] = _Memory(surroundings=surroundings)
        self._meetings.move_to_end(draft.meeting_id)
        if len(self._meetings) > _MEETINGS_REMEMBERED:
            self._meetings.popitem(last=False)
        return memory

    def _item(self, item: DraftItem, draft: Draft, roster: Roster, memory: _Memory) -> VerifiedItem:
        spoken = tuple([draft.utterances.get(q.utterance_id) for q in item.evidence])
        slides: tuple[Stretch, ...] = ()
        if draft.slides and draft.stage != "provisional":
            first = min((u.start_ns for u in spoken if u), default=0)
            last = max((u.end_ns for u in spoken if u), default=0)
            shown = (s for s in draft.slides if s.start_ns < last and first < s.end_ns)
            slides = tuple(replace(s, end_ns=min(s.end_ns, last)) for s in shown)
        # Only the final draft holds what stands around the evidence; a judge that is shown it may say otherwise.
        key = (item.id, bool(slides), self._judge is not None and draft.stage == "final")
        known = memory.items.get(key)
        verified: VerifiedItem | None = None
        if known is not None and any(spoken) and known.holds(item, spoken, slides):
            if known.item is item:
                return known.verified
            verified = (
                known.verified if known.item.confidence == item.confidence else self._as_sure_as(item, known)
            )
        if verified is None:
            looked = verify_item(item, draft, self._settings, roster)
            verified = self._judged(item, looked, draft, roster, memory)
        memory.items[key] = _Remembered(item, spoken, slides, verified)
        return verified

    def _as_sure_as(self, item: DraftItem, known: _Remembered) -> VerifiedItem | None:
        """The verdict on an item that is as it was but for how sure it is; None where that may count.

        Nothing but whether it is sure enough is read of it. Where rules wrote the item, their confidence may stand in it.
        """
        least = self._settings.review_below
        same_side = (item.confidence >= least) == (known.item.confidence >= least)
        if not same_side or known.verified.verdict == "fallback":
            return None
        return identified(replace(known.verified, confidence=shown_confidence(item)))

    def _judged(
        self, item: DraftItem, verified: VerifiedItem, draft: Draft, roster: Roster, memory: _Memory
    ) -> VerifiedItem:
        """What the judge makes of an item: it stands, is written by rules, or is withheld."""
        if self._judge is None or verified.verdict in ("withheld", "withdrawn"):
            return verified
        probability = self._judge.probability(*_case_for_judge(item, verified, draft, roster, memory))
        if probability is None:
            return verified
        verified = identified(replace(verified, probability=probability))
        if probability >= self._settings.judge_threshold:
            return verified
        doubt = f"the verifier gives it {probability:.0%}"
        plainer = self._plainer(item, draft, roster, verified if draft.origin == "rules" else None)
        if plainer is None:
            doubts = tuple(dict.fromkeys((*verified.doubts, doubt)))
            actions = (*verified.actions, "withheld: rules find no such item in its evidence")
            return identified(replace(verified, verdict="withheld", doubts=doubts, actions=actions))
        doubts = tuple(dict.fromkeys((*plainer.doubts, doubt)))
        return identified(replace(plainer, doubts=doubts, probability=probability))

    def _plainer(
        self, item: DraftItem, draft: Draft, roster: Roster, otherwise: VerifiedItem | None
    ) -> VerifiedItem | None:
        """The item as the rule engine writes it from the same evidence; ``otherwise`` where it finds none."""
        written = from_evidence(item, draft)
        if written is None:
            if otherwise is None:
                return None
            return identified(replace(otherwise, verdict="fallback", actions=(*otherwise.actions, _BY_RULES)))
        verified = verify_item(written, draft, self._settings, roster)
        if verified.verdict == "withheld":
            return None
        actions = (*verified.actions, _BY_RULES)
        return identified(replace(verified, verdict="fallback", origin="rules", actions=actions))


_BY_RULES: Final = "written by rules from the same evidence"
_BEFORE: Final = 4
_AFTER: Final = 6
"""Utterances before and after the evidence that a judge is shown."""


def _case_for_judge(
    item: DraftItem, verified: VerifiedItem, draft: Draft, roster: Roster, memory: _Memory
) -> tuple[Claimed, tuple[Words, ...], Surroundings]:
    claimed = Claimed(verified.section, verified.text, verified.owner, verified.due, verified.due_text)

    def words(utterances: Sequence[Spoken]) -> tuple[Words, ...]:
        return tuple(Words(roster.of_speaker(u.speaker), plain(u.text)) for u in utterances)

    quotes = tuple(
        Words(roster.of_speaker(u.speaker), plain(u.text[q.first : q.last]))
        for q in item.evidence
        if (u := draft.utterances.get(q.utterance_id)) is not None
    )
    # What stood on a slide or was seen is shown to the judge as what it is: words of nobody.
    quotes += tuple(Words(None, plain(p.quote)) for p in item.senses)
    before: Sequence[Spoken] = ()
    after: Sequence[Spoken] = ()
    if draft.stage == "final":
        # Earlier stages hold only what items refer to, so that what stood around them depends on other items.
        spoken = memory.in_order(draft)
        places = sorted(spoken.place[q.utterance_id] for q in item.evidence if q.utterance_id in spoken.place)
        if places:
            before = spoken.utterances[max(0, places[0] - _BEFORE) : places[0]]
            after = spoken.utterances[places[-1] + 1 : places[-1] + 1 + _AFTER]
    context = draft.context
    return (
        claimed,
        quotes,
        Surroundings(
            context.title, context.date, tuple(a.name for a in context.attendees), words(before), words(after)
        ),
    )


def verify(draft: Draft, settings: VerifySettings | None = None) -> Verified:
    """Verify one draft without memory."""
    return Verifier(settings).verify(draft)
