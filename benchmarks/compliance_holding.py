"""Whether published minutes hold their rules, judged apart from the compiler, and through which steps they went."""

import time
from dataclasses import dataclass, field, replace
from typing import Any, Final

from contracts.minutes import MinutesState, UtteranceShown, Versions
from contracts.sal import Document, MeetingFacts, RuleSet, tree
from contracts.topics import MINUTES, REVIEW
from operators.deliver.keys import OpenKeys
from operators.deliver.ledger import MeetingLedger
from operators.verify.check import Verifier
from operators.verify.rules import item_of
from operators.verify.types import Draft, Verified, attendees_of, outsiders_of, seconds, started_at

from .brute_rules import judge

VERSIONS: Final = Versions(product="benchmark", model=None, rules="benchmark", contract="benchmark")
_BEFORE_EVERY: Final = 4
"""One of so many drafts, and the final one, is also judged as it would be without the guard."""
_MARKED: Final = frozenset({"review", "fallback"})


@dataclass(slots=True)
class Tally:
    """Counts over many revisions; `add` joins those of another process."""

    revisions: int = 0
    items: int = 0
    broken_after: int = 0
    drafts: int = 0
    broken_before: int = 0
    review: int = 0
    checks: int = 0
    hours: float = 0.0
    guard_s: list[float] = field(default_factory=list)
    broken_rules: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Take in the counts of another."""
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                for key, count in theirs.items():
                    mine[key] = mine.get(key, 0) + count
            else:
                setattr(self, name, mine + theirs)


class GuardedMeeting:
    """Drafts of one meeting through verify and deliver, each publication held against the rules."""

    def __init__(self, meeting_id: str, rules: RuleSet, verifier: Verifier, tally: Tally) -> None:
        self._rules, self._verifier, self._tally = rules, verifier, tally
        key = OpenKeys().key_of(meeting_id)
        self._ledger = MeetingLedger(meeting_id, VERSIONS, key)
        self._seen: set[str] = set()
        self._fed = 0

    def feed(self, draft: Draft) -> Verified:
        """One draft: what it publishes is counted and judged."""
        tally = self._tally
        begun = time.perf_counter()
        verified = self._verifier.verify(draft)
        tally.guard_s.append(time.perf_counter() - begun)
        out = self._ledger.apply(verified)
        published = sum(message.topic is MINUTES for message in out)
        tally.review += sum(message.topic is REVIEW for message in out)
        tally.checks += len(self._rules.rules) * max(1, len(verified.items))
        self._fed += 1
        if self._fed % _BEFORE_EVERY == 0 or draft.stage == "final":
            tally.drafts += 1
            tally.broken_before += bool(self._broken(self._unguarded(draft), draft, marked=False))
        if published:
            tally.revisions += published
            state = self._ledger.state()
            broken = self._broken(state, draft, marked=True)
            if broken:
                tally.broken_after += published
                for name in broken:
                    tally.broken_rules[name] = tally.broken_rules.get(name, 0) + 1
            fresh = {item.id for section in _sections(state) for item in section} - self._seen
            self._seen |= fresh
            tally.items += len(fresh)
        return verified

    def _unguarded(self, draft: Draft) -> MinutesState:
        """The minutes as they would be if drafts were published as they are."""
        bare = Verifier().verify(draft)
        shown: dict[str, list[Any]] = {}
        for item in bare.items:
            source = next(d for d in draft.items if d.id == item.item_id)
            if source.withdrawn:
                continue
            raw = replace(
                item,
                text=source.text,
                owner=source.owner,
                due=source.due,
                due_text=source.due_text,
                verdict="pass",
            )
            shown.setdefault(item.section, []).append(item_of(raw))
        state = self._ledger.state()
        return state.model_copy(update={name: tuple(shown.get(name, ())) for name in _SECTIONS})

    def _broken(self, state: MinutesState, draft: Draft, *, marked: bool) -> list[str]:
        """Names of rules that do not hold.

        A rule whose answer is to ask a person holds where the item is marked for one; other rules about items hold
        where their condition is true. Minutes as a whole cannot be kept back: a rule about them holds where it is
        true, or where a person has been asked. What cannot be said of an item is not held against it.
        """
        document = _document(state, draft)
        at = "final" if draft.stage == "final" else "revision"
        verdicts = {item.id: item.verdict for section in _sections(state) for item in section}
        found = judge(self._rules.trees, document, at)
        broken = []
        for rule in self._rules.trees:
            judged = found.get(rule.name.strip())
            if judged is None:
                continue
            asks = _action(rule) == "review"
            failing = {i for i in judged.failing if not (asks and marked and verdicts.get(i) in _MARKED)}
            whole = judged.whole is False and not (marked and state.review.waiting > 0)
            if failing or whole:
                broken.append(rule.name.strip())
        return broken


_SECTIONS: Final = ("decisions", "action_items", "open_questions", "answered_questions")


def _sections(state: MinutesState) -> list[tuple[Any, ...]]:
    return [getattr(state, name) for name in _SECTIONS]


def _action(rule: tree.Rule) -> str:
    for clause in rule.clauses:
        if clause.kind == "on fail":
            return clause.word or "repair"
    return "review"


def _document(state: MinutesState, draft: Draft) -> Document:
    context = draft.context
    document = Document.of(state, date=context.date, key_topics=context.key_topics, agenda=context.agenda)
    # Provisional minutes do not carry what is known of the meeting yet; the rules speak of the meeting as it is.
    started = started_at(draft.start_ns, draft.tai_utc_offset_s)
    day = context.date or (started.date() if started is not None else None)
    document.tell(
        meeting=MeetingFacts(
            draft.meeting_id, context.title, day, started, round(draft.duration_ns / 1e9, 3)
        ),
        attendees=(*attendees_of(draft), *outsiders_of(draft)),
    )
    if draft.stage == "final":
        shown = [
            UtteranceShown(
                id=u.id, start_s=seconds(u.start_ns, draft.zero_ns), end_s=seconds(u.end_ns, draft.zero_ns),
                speaker=u.speaker, text=u.text,
            )
            for u in sorted(draft.utterances.values(), key=lambda u: (u.start_ns, u.id))
        ]  # fmt: skip
        document.replace("utterances", shown)
    return document
