"""The rule engine: a left fold over the utterances of a meeting that gives its items.

Provisional minutes fold in order of arrival, settled and final ones over the utterances sorted by
(start, id); the engine itself sees a sequence and nothing else, so equal sequences give equal items.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

from contracts.minutes import Origin
from operators.language.dates import resolve
from operators.language.people import Person, Roster, person_of, roster_of
from operators.language.rules import Rule, rules_of
from operators.language.text import STOP, stems
from operators.understand.birth import LEANS, PLAIN_WORK, SAYS_LITTLE, births
from operators.understand.cues import Reading
from operators.understand.density import SPARSE, sparse
from operators.understand.follow import follow
from operators.understand.handover import after_all, give_up, hand_over
from operators.understand.hear import Heard, hear
from operators.understand.lately import Generations
from operators.understand.merge import go_on, renumber, restate, supersede
from operators.understand.months import with_months
from operators.understand.redate import correct
from operators.understand.replaced import replace_value
from operators.understand.senses import sense
from operators.understand.state import LEANT, MATTER, TOLD_BLOCK, Claim, Draft, Due, Piece, State, Telling
from operators.understand.takeover import declined, questioned, take_over, volunteer
from operators.understand.types import (
    Attendee,
    DraftItem,
    Family,
    Kind,
    MeetingContext,
    Quote,
    Spoken,
    SpokenWord,
    SummarySentence,
    UnderstandSettings,
)

__all__ = [
    "Attendee",
    "DraftItem",
    "MeetingContext",
    "Quote",
    "RuleEngine",
    "Spoken",
    "SpokenWord",
    "State",
    "SummarySentence",
    "UnderstandSettings",
]

LONG_MEETING_NS = 12 * 60 * 1_000_000_000

_KINDS: dict[Family, Kind] = {"decision": "decision", "action": "action_item", "question": "open_question"}


@lru_cache(maxsize=64)
def _roster(context: MeetingContext, speakers: tuple[str, ...]) -> Roster:
    people: list[Person] = [
        person_of(a.name, a.speaker, a.role, a.external, a.aliases) for a in context.attendees
    ]
    return roster_of(people, speakers)


@dataclass(frozen=True)
class RuleEngine:
    """Finds decisions, action items and questions by cues and by what others answer."""

    origin: ClassVar[Origin] = "rules"
    """What items of this engine are said to come from."""

    settings: UnderstandSettings = field(default_factory=UnderstandSettings)
    rules: tuple[Rule, ...] = ()
    _made: Generations[tuple[Draft, Roster, dt.date | None, DraftItem]] = field(
        default_factory=Generations, init=False, repr=False, compare=False
    )
    """Items made lately, by the identity of their drafts, which are immutable. Changes no result."""

    def __post_init__(self) -> None:
        if not self.rules:
            object.__setattr__(self, "rules", rules_of())

    def start(self, context: MeetingContext) -> State:
        """A meeting of which nothing was heard yet."""
        return State(context, _roster(context, ()))

    def with_context(self, state: State, context: MeetingContext) -> State:
        """The same meeting with what became known of it; holds for what follows and for owners and dates."""
        return replace(state, context=context, roster=_roster(context, state.speakers))

    def step(self, state: State, spoken: Spoken) -> State:
        """Read one more utterance. Cost does not grow with the length of the meeting."""
        return self.read(state, spoken)[0]

    def slices(self, spoken: Spoken) -> Iterator[None]:
        """Do beforehand, bit by bit, what ``step`` will need whatever the state is; changes nothing."""
        del spoken
        yield from ()

    def stepping(self, state: State, spoken: Spoken) -> Generator[None, None, State]:
        """As ``step``, bit by bit: the caller may do other work in between."""
        yield from self.slices(spoken)
        return self.step(state, spoken)

    def read(self, state: State, spoken: Spoken) -> tuple[State, Reading]:
        """As ``step``, and what this utterance brought about."""
        state = self._with_speaker(state, spoken.speaker)
        heard = hear(spoken, state.count, state.roster, self.rules)
        drafts = list(state.drafts)
        live = drafts[-self.settings.live_items :]
        kept = drafts[: -self.settings.live_items] if len(drafts) > self.settings.live_items else []
        live, reading = self._live(live, heard, state)
        shares = dict(state.shares)
        if spoken.speaker:
            shares[spoken.speaker] = shares.get(spoken.speaker, 0) + heard.words
        told, block = self._told(state, heard)
        first = spoken.start_ns if state.count == 0 else min(state.first_ns, spoken.start_ns)
        last = max(state.last_ns, spoken.end_ns)
        became_long = state.long_from is None and last - first > LONG_MEETING_NS
        after = replace(
            state,
            count=state.count + 1,
            first_ns=first,
            last_ns=last,
            long_from=state.count if became_long else state.long_from,
            recent=(*state.recent[-self.settings.look_back :], heard.remembered()),
            drafts=(*kept, *live),
            told=told,
            block=block,
            shares=shares,
        )
        return after, reading

    def _with_speaker(self, state: State, speaker: str | None) -> State:
        if speaker is None or speaker in state.speakers or len(state.speakers) >= self.settings.most_speakers:
            return state
        speakers = (*state.speakers, speaker)
        return replace(state, speakers=speakers, roster=_roster(state.context, speakers))

    def _live(self, live: list[Draft], heard: Heard, state: State) -> tuple[list[Draft], Reading]:
        """Drafts after this utterance (changed, merged, born, the hopeless ones dropped), and what it did."""
        support = {d.id: d.support for d in live}
        accepted, taken = follow(heard, live, state, self.settings.look_back)
        moved = correct(heard, live, state, self.settings.look_back)
        renumber(heard, live)
        replaced = replace_value(heard, live, state)
        go_on(heard, live, state)
        change = [d.support - support[d.id] for d in live if d.id in support]
        born = births(heard, state)
        restated = False
        if not accepted:
            declined(heard, live, state)
            give_up(heard, live, state)
        over = hand_over(heard, live, state) or after_all(heard, live, state)
        if not over and not accepted:
            over = volunteer(heard, live, state) or take_over(heard, live, state)
        if not over:
            questioned(heard, live, state)
        before = state.recent[-1] if state.recent else None
        for fresh in born:
            if fresh.family == "action":
                if over and (SAYS_LITTLE in fresh.reasons or _goes_with(fresh)):
                    continue
                needs = fresh.mode == "request" and SAYS_LITTLE in fresh.reasons
                if accepted and (needs or fresh.claim.kind == "self"):
                    continue
                if moved and (fresh.claim.kind in ("self", "named", "you") and fresh.support < 0.8):
                    continue
            if fresh.family == "decision" and (
                taken
                or replaced & fresh.stems
                or (moved and (len(fresh.stems) <= 2 or LEANS in fresh.reasons))
            ):
                continue
            if supersede(heard, fresh, live) or not restate(heard, fresh, live, before):
                live.append(fresh)
            else:
                restated = True
        if not over and len(heard.clauses) > 1 and not volunteer(heard, live, state):
            take_over(heard, live, state)
        with_months(heard, live, state)
        sense(heard, live, state)
        reading = Reading(
            heard, state, born, accepted, taken, moved, restated,
            sum(c for c in change if c > 0), -sum(c for c in change if c < 0),
        )  # fmt: skip
        stay = [d for d in live if heard.index - d.last_index <= self.settings.look_back or self._stays(d)]
        return stay, reading

    def _stays(self, draft: Draft) -> bool:
        if draft.family == "question":
            return draft.mode in ("open", "solved")
        return draft.support >= self._threshold(draft.family) - 0.25 and draft.mode not in (
            "offer",
            "refused",
        )

    def _threshold(self, family: Family) -> float:
        return {
            "action": self.settings.action_threshold,
            "decision": self.settings.decision_threshold,
            "question": self.settings.question_threshold,
        }[family]

    def _told(self, state: State, heard: Heard) -> tuple[tuple[Telling, ...], tuple[Telling, ...]]:
        """Keep the two weightiest utterances of each block, and those about a key topic."""
        block = (*state.block, _telling(heard))
        if len(block) < TOLD_BLOCK:
            return state.told, block
        return (*state.told, *_worth_telling(block, state.context)), ()

    def finish(self, state: State) -> State:
        """The meeting is over: everything said is weighed, near-duplicates become one item."""
        if state.finished:
            return state
        best = _worth_telling(state.block, state.context)
        handed = [d.first_index for d in state.drafts if _hands_out(d)]
        thin = sparse(state) >= SPARSE
        drafts = tuple(
            self._kept(d, self._weighed(d, state, handed, thin), state, thin) for d in state.drafts
        )
        return replace(state, told=(*state.told, *best), block=(), drafts=drafts, finished=True)

    def _kept(self, before: Draft, after: Draft, state: State, thin: bool) -> Draft:
        """A decision that stood until now stays: where it was said takes nothing out of the minutes.

        Work said early in a long meeting without a date can still drop out; it is seldom meant.
        """
        least = self._threshold(before.family)
        sure = before.family != "action"
        if sure and self._borne_out(before, state, thin) and after.support < least:
            return replace(after, support=least)
        return after

    def _borne_out(self, draft: Draft, state: State, thin: bool) -> bool:
        """Whether enough speaks for an item; for work without a date, more once much was said and little agreed."""
        undated = draft.family == "action" and draft.due is None and draft.claim.kind in ("self", "you")
        late = state.long_from is not None and draft.first_index >= state.long_from
        asked = undated and late and thin and not state.finished
        more = (0.3 if draft.claim.kind == "you" else 0.2) if asked else 0.0
        return draft.support >= self._threshold(draft.family) + more

    def _weighed(self, draft: Draft, state: State, handed: list[int], thin: bool) -> Draft:
        """Work is handed out at the end of a meeting; its beginning tells what is known already."""
        place = draft.first_index / max(1, state.count)
        long = thin and state.last_ns - state.first_ns > LONG_MEETING_NS
        if draft.family == "action" and place >= 0.82 and draft.claim.kind in ("you", "named", "group"):
            if not _hands_out(draft):
                return draft
            draft = draft.grown(0.15, "handed out at the end")
            beside = sum(0 < abs(i - draft.first_index) <= 10 for i in handed)
            return draft.grown(0.1, "one of several") if beside and long else draft
        closing = draft.family == "action" and place >= 0.9 and "said by who leads" in draft.reasons
        if long and closing and draft.claim.kind == "self":
            return draft.grown(0.05, "taken on at the end")
        if long and draft.family == "action" and draft.due is None and draft.claim.kind in ("self", "you"):
            return draft.grown(-0.3 if draft.claim.kind == "you" else -0.2, "no date in a long meeting")
        if long and draft.family == "decision":
            early = place < 0.6
            return draft.grown(
                -0.25 if place < 0.35 else -0.15 if early else -0.05,
                "early in a long meeting" if early else "long meeting",
            )
        return draft

    def items(self, state: State) -> tuple[DraftItem, ...]:
        """Items in the order in which they were first spoken of, taken-back ones marked."""
        thin = sparse(state) >= SPARSE
        out = [
            self._known_item(d, state)
            for d in state.drafts
            if self._borne_out(d, state, thin)
            and d.mode not in ("offer", "refused")
            and (d.family != "question" or d.mode in ("open", "solved"))
        ]
        return tuple(out)

    def _known_item(self, draft: Draft, state: State) -> DraftItem:
        """The item of a draft, made once as long as the draft and the attendees stay."""
        roster, date = state.roster, state.context.date
        known = self._made.get(id(draft))
        if (
            known is not None
            and known[0] is draft
            and (known[1] is roster or known[1] == roster)
            and known[2] == date
        ):
            return known[3]
        item = self._item(draft, state)
        self._made.put(id(draft), (draft, roster, date, item))
        return item

    def forget_made(self) -> None:
        """Forget items made lately, of all meetings; they are made again when they are asked for."""
        self._made.clear()

    def _item(self, draft: Draft, state: State) -> DraftItem:
        kind = "answered_question" if draft.solved else _KINDS[draft.family]
        owner, external = owner_by_words(draft.claim, state.roster)
        due = resolve(draft.due.phrase, state.context.date) if draft.due else None
        return DraftItem(
            draft.id,
            kind,
            draft.text,
            round(min(0.97, max(0.05, draft.support)), 3),
            owner if draft.family == "action" else None,
            external if draft.family == "action" else False,
            due if draft.family == "action" else None,
            draft.due.words if draft.due and draft.family == "action" else None,
            self._evidence(draft.evidence, draft.due if draft.family == "action" else None, draft.worded_in),
            draft.withdrawn,
            draft.reasons,
            draft.senses,
        )

    def _evidence(
        self, pieces: tuple[Piece, ...], due: Due | None = None, worded_in: int | None = None
    ) -> tuple[Quote, ...]:
        """The heaviest pieces within the bounds, in the order in which they were said.

        The very heaviest stays however long it is, and so do what says the date and what the words come from: a date or
        a word that nothing shows is none.
        """
        room = self.settings.evidence_ns
        dated = due.said_in if due is not None else None
        first, *others = sorted(pieces, key=lambda p: (-p.weight, p.index))
        kept: list[Piece] = []
        for piece in (
            first,
            *sorted(others, key=lambda p: (p.quote.utterance_id != dated, p.index != worded_in)),
        ):
            leant = piece.weight in (LEANT, MATTER) and piece.index < first.index
            must = not kept or leant or piece.quote.utterance_id == dated or piece.index == worded_in
            if len(kept) < self.settings.evidence_spans and (piece.duration_ns <= room or must):
                kept.append(piece)
                room -= piece.duration_ns
        return tuple(p.quote for p in sorted(kept, key=lambda p: (p.index, p.quote.first)))


def _worth_telling(block: tuple[Telling, ...], context: MeetingContext) -> tuple[Telling, ...]:
    """The three weightiest utterances of a block, and the weightiest about each key topic."""
    ranked = sorted(block, key=lambda t: (-t.weight, t.index))
    kept = set(ranked[:3])
    for topic in context.key_topics or context.agenda:
        words = stems(topic.lower())
        about = [t for t in ranked if words and len(words & t.stems) * 2 >= len(words)]
        kept.update(sorted(about, key=lambda t: -len(words & t.stems))[:2])
    return tuple(sorted(kept, key=lambda t: t.index))


def _goes_with(fresh: Draft) -> bool:
    """Whether a promise only says once more what its speaker just took over (*Give it to me, I'll do the neighbours*)."""
    return (
        fresh.claim.kind == "self"
        and fresh.due is None
        and PLAIN_WORK not in fresh.reasons
        and fresh.support < 0.6
    )


def _hands_out(draft: Draft) -> bool:
    """Whether the one who leads gave this to somebody."""
    return draft.family == "action" and draft.claim.kind != "self" and "said by who leads" in draft.reasons


def _telling(heard: Heard) -> Telling:
    """How much an utterance would tell a reader: content words, numbers; questions and asides less."""
    known = frozenset().union(*(c.clause.stems for c in heard.clauses)) if heard.clauses else frozenset()
    weight = min(len(known), 14) / 7
    weight += 0.4 * any(t.low.isdigit() for c in heard.clauses for t in c.clause.tokens)
    signals = heard.signals()
    weight += 0.5 * bool(signals & {"decide", "unknown", "commit"}) - 0.6 * bool(
        signals & {"joke", "rhetorical", "hypothetical"}
    )
    weight -= 0.5 * any(c.clause.question_mark for c in heard.clauses) + 0.3 * (heard.words > 45)
    text = heard.spoken.text[:600]
    quote = Quote(heard.spoken.id, 0, len(text))
    return Telling(quote, heard.index, text, round(weight, 3), known, heard.spoken.speaker)


def owner_by_words(claim: Claim, roster: Roster) -> tuple[str | None, bool]:
    """The stated owner's name, and whether the person is outside the attendee list."""
    if claim.outside:
        names = roster.named(claim.said.lower())
        if len(names) == 1:
            return names[0], False
        return (None, False) if names or claim.said.lower() in STOP else (claim.said, True)
    if claim.kind in ("group", "none") or len(claim.people) != 1:
        return None, False
    name = roster.of_speaker(claim.people[0])
    person = roster.person(name) if name else None
    return name, bool(person and person.external)
