"""The engine with a minutes model: rules and scores start items, both together say how sure each is.

Rules read every utterance as they do alone. The model scores the window that ends with it; what it says of an
utterance is taken when it is heard, when two more are known, and when eight are (the last ones: at the end), so
that an item changes at most at these places. Text comes from the words that were said, and so do owners and dates, of which
the likeliest are chosen.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from contracts.minutes import Origin
from models.minutes.appraisal import Appraisal, Choice
from models.minutes.inputs import FINAL, SETTLED
from models.minutes.scores import UtteranceScores
from operators.compose import clean
from operators.understand.apart import DECIDING, apart
from operators.understand.appraise import figures_of, own_figures
from operators.understand.birth import ON_CONDITION, ONE_OF_SEVERAL, PLAIN_WORK
from operators.understand.conceive import conceived, reworded
from operators.understand.cues import Reading, cues_of
from operators.understand.density import PLAINLY, SPARSE, sparse
from operators.understand.engine import RuleEngine, owner_by_words
from operators.understand.follow import FIRMLY_AGREED
from operators.understand.hear import Heard
from operators.understand.lately import Lately, Weighed, is_candidate
from operators.understand.merge import LIGHT, PUT_ASIDE, restate
from operators.understand.months import with_month
from operators.understand.scorer import Scorer, heard_by, judged
from operators.understand.senses import sure_by_senses
from operators.understand.state import MAIN, Around, Draft, Hint, Judged, Memory, State, Telling, piece
from operators.understand.takeover import IN_QUESTION
from operators.understand.types import DraftItem, Family, Spoken
from operators.understand.when import Day, days, named_in
from operators.understand.whose import PLAINLY_NAMED, Taker, takers

FAMILIES: Final[tuple[Family, ...]] = ("action", "decision", "question")
_LOOKS: Final = (0, SETTLED, FINAL)
"""How many utterances later the model is asked again about one."""
_AROUND: Final = 12
"""Utterances before and after one that may be part of the same talk."""
_AROUND_KEPT: Final = 8
_AROUND_TOLD: Final = 2
_BESIDE_A_DECISION: Final = (3, 0.2, 0.3)
"""How many utterances away something belongs to a decision of dense talk, from what score on, and from what share of its own."""
_AROUND_WORDS: Final = 16
"""Of the talk around an item of sparse talk so many utterances are told with it, each in so many words."""
_HINT: Final = 0.02
_WORDS: Final = 0.3
"""Probability from which an utterance may put a decision that is spoken of beside it into words."""
_FIRM: Final = 0.6
"""Support of the rules from which firm agreement decides."""
_UNKNOWN: Final = 0.8
"""Support of the rules from which a question that nobody can answer stays open."""
_PERHAPS: Final = 0.4
"""Probability from which whoever reviews a task without an owner is told who may have it."""
_CALLED: Final = 0.7
"""Support from which words that call something decided are believed."""


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """From what score on the model starts an item, joins an utterance to one, or takes one back."""

    birth: tuple[float, float, float] = (0.06, 0.06, 0.2)
    """Action, decision, question."""
    join: float = 0.5
    withdraw: float = 0.5
    doubt: float = 0.1
    """Probability of taking back under which what only the rules take for it does not count."""
    kept: float = 0.05
    """Probability under which an item that nobody has spoken of for a while is forgotten."""

    def __post_init__(self) -> None:
        if not all(
            0 < p < 1
            for p in (
                *self.birth,
                self.join,
                self.withdraw,
                self.doubt,
                self.kept,
            )
        ):
            raise ValueError("scores lie between 0 and 1: at 0 every utterance becomes an item")


@dataclass(frozen=True)
class HybridEngine(RuleEngine):
    """Finds items by rules and by a minutes model."""

    scorer: Scorer | None = None
    appraisal: Appraisal | None = None
    hybrid: HybridSettings = field(default_factory=HybridSettings)
    _weighed_lately: Lately = field(default_factory=Lately, init=False, repr=False, compare=False)
    """What was found of drafts lately. Changes no result."""

    origin: ClassVar[Origin] = "model"

    def slices(self, spoken: Spoken) -> Iterator[None]:
        """See `RuleEngine.slices`."""
        if self.scorer is not None:
            yield from self.scorer.slices(spoken)

    def stepping(self, state: State, spoken: Spoken) -> Generator[None, None, State]:
        """See `RuleEngine.stepping`."""
        yield from self.slices(spoken)
        after, _ = yield from self._reading(state, spoken)
        return after

    def read(self, state: State, spoken: Spoken) -> tuple[State, Reading]:
        """As the rules read it, and then the model."""
        reading = self._reading(state, spoken)
        while True:
            try:
                next(reading)
            except StopIteration as read:
                found: tuple[State, Reading] = read.value
                return found

    def _reading(self, state: State, spoken: Spoken) -> Generator[None, None, tuple[State, Reading]]:
        after, reading = super().read(state, spoken)
        if self.scorer is None:
            return after, reading
        after = replace(after, drafts=tuple(d for d in after.drafts if _begun_rightly(d)))
        yield
        memory = state.memory or Memory()
        memory, scores = heard_by(self.scorer, memory, spoken, cues_of(reading))
        yield
        said = scores[-1]
        if reading.taken_back and said.withdrawn < self.hybrid.doubt:
            after = replace(after, drafts=_given_back(reading, after.drafts))
        return self._scored(replace(after, memory=memory), scores, reading.heard), reading

    def _scored(self, state: State, scores: Sequence[UtteranceScores], heard: Heard) -> State:
        """The meeting with what the model says at each look."""
        newest = state.count - 1
        for later in _LOOKS:
            if later < len(scores):
                state = self._looked(state, scores, newest - later, heard, later)
        return state

    def _looked(
        self, state: State, scores: Sequence[UtteranceScores], index: int, newest: Heard, later: int
    ) -> State:
        last = later == FINAL
        said = scores[len(scores) - (state.count - index)]
        heard = self._heard_at(state, index, newest)
        now = judged(said, named_in(heard) if heard is not None else ())
        drafts = [self._noted(d, index, now) for d in state.drafts[-self.settings.live_items :]]
        kept = list(state.drafts[: -self.settings.live_items]) if len(state.drafts) > len(drafts) else []
        if heard is not None and not last:
            state = self._hinted(drafts, state, heard, said) if later else state
            self._take_back(drafts, said, index)
            for family, least in zip(FAMILIES, self.hybrid.birth, strict=True):
                # Without a word there is nothing to publish, however sure the model is.
                if heard.clauses and getattr(said, family) >= least:
                    self._conceive(drafts, heard, family, said, state)
        return replace(
            state,
            drafts=(*kept, *drafts),
            block=tuple(_weighed(t, said) if t.index == index else t for t in state.block),
        )

    @staticmethod
    def _hinted(drafts: list[Draft], state: State, heard: Heard, said: UtteranceScores) -> State:
        """Remember what may be part of an item, and let items around it know."""
        memory, index = state.memory or Memory(), heard.index
        kept = tuple(h for h in memory.hints if index - h.piece.index <= _AROUND)
        if heard.clauses and max(said.action, said.decision) >= _HINT:
            words = clean(heard.spoken.text, _AROUND_WORDS).rstrip(".… ")
            kept = (*kept, Hint(piece(heard, 0.5), words, said.action, said.decision))
        # What words say was decided here is an item of its own.
        free = said.decision >= _WORDS and not any(
            d.family == "decision" and not d.by_model and _stands_on(d, index) for d in drafts
        )
        for place, draft in enumerate(drafts):
            if free and draft.family == "decision" and not _of_another(draft, drafts, heard):
                draft = drafts[place] = reworded(draft, heard, said, state)
            back = index - draft.first_index
            if draft.family != "question" and 0 <= back <= _AROUND:
                drafts[place] = _among(draft, kept if back == 0 else kept[-1:])
        return replace(state, memory=replace(memory, hints=kept))

    @staticmethod
    def _heard_at(state: State, index: int, newest: Heard) -> Heard | None:
        if newest.index == index:
            return newest
        return next((h for h in reversed(state.recent) if h.index == index), None)

    @staticmethod
    def _noted(draft: Draft, index: int, now: Judged) -> Draft:
        """A draft with what is now known of one of its utterances."""
        if all(p.index != index or p.weight < 0.5 for p in draft.evidence):
            return draft
        known = tuple(pair for pair in draft.judged if pair[0] != index)
        if not now.named and (before := dict(draft.judged).get(index)) is not None and before.named:
            now = replace(now, named=before.named)  # the words are no longer at hand
        return replace(draft, judged=tuple(sorted((*known, (index, now)), key=lambda pair: pair[0])))

    def _conceive(
        self, drafts: list[Draft], heard: Heard, family: Family, said: UtteranceScores, state: State
    ) -> None:
        """Start an item where no rule did, or let the utterance join the one that it belongs to."""
        index = heard.index
        if any(d.family == family and _stands_on(d, index) for d in drafts):
            return
        target = self._joined(drafts, family, said, index)
        if target is not None:
            draft = drafts[target].grown(0.0, "goes on", piece(heard, 1.5))
            drafts[target] = self._noted(draft, index, judged(said, named_in(heard)))
            return
        fresh = conceived(heard, family, said, state)
        if fresh is None or any(_is_about(fresh, d) for d in drafts if d.withdrawn):
            return
        fresh = with_month(self._noted(fresh, index, judged(said, named_in(heard))), heard, state)
        if not restate(heard, fresh, drafts):
            drafts.append(fresh)

    def _joined(
        self, drafts: Sequence[Draft], family: Family, said: UtteranceScores, index: int
    ) -> int | None:
        """The place of the draft to which the model says that an utterance belongs."""
        for back, likely in said.joins_to:
            if likely < self.hybrid.join:
                break
            for place in range(len(drafts) - 1, -1, -1):
                draft = drafts[place]
                if draft.family == family and not draft.withdrawn and _stands_on(draft, index - back):
                    return place
        return None

    def _take_back(self, drafts: list[Draft], said: UtteranceScores, index: int) -> None:
        """What the model takes for taking back weighs against the item it belongs to, and may undo it."""
        if said.withdrawn < 0.2:
            return
        for back, likely in said.joins_to:
            for place in range(len(drafts) - 1, -1, -1):
                draft = drafts[place]
                if draft.family == "question" or draft.withdrawn or not _stands_on(draft, index - back):
                    continue
                sure = said.withdrawn * likely
                drafts[place] = replace(draft, undone=max(draft.undone, sure))
                if sure >= self.hybrid.withdraw:
                    drafts[place] = replace(drafts[place], withdrawn=True)

    def _stays(self, draft: Draft) -> bool:
        if draft.mode == "refused":
            return False
        likely = max((j.of(draft.family) for _, j in draft.judged), default=0.0)
        return super()._stays(draft) or likely >= self.hybrid.kept

    def finish(self, state: State) -> State:
        """The meeting is over; the last utterances keep what was said of them with all there is."""
        if state.finished or self.scorer is None or state.memory is None:
            return super().finish(state)
        window = state.memory.context.window()
        if window.utterances:
            scores = self.scorer.scores(window, state.memory.digest)
            recent = {h.index: h for h in state.recent}
            for index in range(max(0, state.count - FINAL), state.count):
                said = scores[len(scores) - (state.count - index)]
                now = judged(said, named_in(heard) if (heard := recent.get(index)) is not None else ())
                drafts = tuple(self._noted(d, index, now) for d in state.drafts)
                block = tuple(_weighed(t, said) if t.index == index else t for t in state.block)
                state = replace(state, drafts=drafts, block=block)
        return super().finish(state)

    def items(self, state: State) -> tuple[DraftItem, ...]:
        """Items in the order in which they were first spoken of, taken-back ones marked."""
        if self.appraisal is None or state.memory is None:
            return super().items(state)
        thin = sparse(state)
        least = {
            family: judged_so.threshold_sparse if thin >= SPARSE else judged_so.threshold
            for family, judged_so in self.appraisal.families.items()
        }
        sure: dict[str, float] = {}
        likely: list[Weighed] = []
        weighed = self._weighed_lately.weighed
        for draft in state.drafts:
            known = weighed(draft)
            if not known.candidate:
                continue
            how_sure = None if state.finished else known.sure.get(thin)
            if how_sure is None:
                how_sure = self._weigh(known, state, thin)
            if known.stands is None:
                known.stands = self.stands(draft)
            if how_sure >= least[draft.family] or known.stands:
                sure[draft.id] = how_sure
                likely.append(known)
        made = [(known.draft, self._made_item(known, state, thin, sure[known.draft.id])) for known in likely]
        return tuple([item for _, item in apart(made, sure)])

    def _weigh(self, known: Weighed, state: State, thin: float) -> float:
        """How sure a draft is as the meeting stands; while a meeting lasts only the draft itself and ``thin`` count."""
        assert self.appraisal is not None
        draft = known.draft
        if known.own is None:
            known.own = own_figures(draft)
        judgement = self.appraisal.families[draft.family]
        sure = self.sure(judgement.probability(figures_of(draft, state, thin, known.own)), draft)
        if not state.finished:
            known.sure[thin] = sure
        return sure

    def _made_item(self, known: Weighed, state: State, thin: float, sure: float) -> DraftItem:
        """The item of a draft with its confidence: the same object as long as nothing of it changes."""
        base, confidence = self._known_item(known.draft, state), _told(sure)
        gathers = _gathers(known.draft, thin)
        made = known.made
        if made is None or made[0] is not base or made[1] != confidence or made[2] != gathers:
            item = self._gathered(known.draft, base, gathers)
            made = known.made = (base, confidence, gathers, replace(item, confidence=confidence))
        return made[3]

    @staticmethod
    def stands(draft: Draft) -> bool:
        """Whether senses or plain words bear a draft out, wherever the thresholds of what was learned may lie."""
        return max(sure_by_senses(draft), sure_by_words(draft)) > 0.0

    @staticmethod
    def sure(likely: float, draft: Draft) -> float:
        """The probability of a draft by its figures, or what senses or words say alone."""
        return max(likely, sure_by_senses(draft), sure_by_words(draft))

    def in_the_making(self, state: State) -> tuple[tuple[Draft, DraftItem], ...]:
        """All that ``items`` would judge, however unsure, with the talk around it where it has that in the minutes."""
        thin = sparse(state)
        return tuple(
            (d, self._gathered(d, self._known_item(d, state), _gathers(d, thin)))
            for d in state.drafts
            if is_candidate(d)
        )

    def _item(self, draft: Draft, state: State) -> DraftItem:
        """As the rules have it, with the likeliest owner and day."""
        weights = self.appraisal
        if draft.family != "action" or weights is None:
            return super()._item(draft, state)
        sure = True
        if weights.dates is not None:
            draft, sure = _dated(draft, self.when_may(draft, state), weights.dates)
        item = super()._item(draft, state)
        if not sure:
            item = replace(item, due=None, due_open=True)
        if weights.owners is None:
            return item
        return _owned(item, self.who_may(draft, state), weights.owners)

    @staticmethod
    def who_may(draft: Draft, state: State) -> tuple[Taker, ...]:
        """All who may have a task; nobody where the words or senses alone say whose it is.

        Whose nod was seen, or which of two tasks of one breath is whose, no score of an utterance can tell. Who is there and
        plainly named as the one who will do it has it (*the designer will make a sketch*): everyday meetings have too few
        of these to learn from.
        """
        if draft.family != "action" or draft.senses or ONE_OF_SEVERAL in draft.reasons:
            return ()
        name, external = owner_by_words(draft.claim, state.roster)
        if (
            name is not None
            and not external
            and PLAINLY_NAMED & set(draft.reasons)
            and IN_QUESTION not in draft.reasons
        ):
            return ()
        return takers(draft, state.roster, name, external)

    @staticmethod
    def when_may(draft: Draft, state: State) -> tuple[Day, ...]:
        """All days on which a task may be due; none where senses say it or the words alone may."""
        if draft.family != "action" or draft.senses or ONE_OF_SEVERAL in draft.reasons:
            return ()
        return days(draft, state.context.date)

    def forget_made(self) -> None:
        """See `RuleEngine.forget_made`."""
        super().forget_made()
        self._weighed_lately.clear()

    def _gathered(self, draft: Draft, item: DraftItem, gathers: str) -> DraftItem:
        """An item with what belongs to the same talk; what nobody said in one sentence also has words of it."""
        if not gathers:
            return item
        best = max((j.of(draft.family) for _, j in draft.judged), default=1.0)
        known = {p.quote.utterance_id: p.index for p in draft.evidence}
        more = [
            a
            for a in draft.around
            if _belongs(a, best, known.values(), gathers) and a.piece.quote.utterance_id not in known
        ]
        if not more:
            return item
        pieces = (replace(a.piece, weight=min(0.4, a.likely)) for a in more)
        evidence = self._evidence((*draft.evidence, *pieces), draft.due, draft.worded_in)
        if gathers == NEAR:
            return replace(item, evidence=evidence)
        shown = {q.utterance_id for q in evidence}
        text = item.text
        for a in [a for a in more if a.piece.quote.utterance_id in shown and a.words][:_AROUND_TOLD]:
            text = f"{text.rstrip('.')}. {a.words[:1].upper()}{a.words[1:]}" if a.words not in text else text
        return replace(item, text=text, evidence=evidence)


def _begun_rightly(draft: Draft) -> bool:
    """Whether an item stays that was begun before the model has read the utterance.

    Decisions are the model's to begin, but what is called one, firmly agreed to, or sensed beside words (raised hands, a
    nod): on held-out everyday meetings all that rules begin stood beside, or in the place of, better ones.
    """
    reasons = set(draft.reasons)
    named = bool(reasons & DECIDING) or FIRMLY_AGREED in reasons
    return draft.family != "decision" or draft.by_model or bool(draft.senses) or named


TALK: Final = "talk"
NEAR: Final = "near"


def _dated(draft: Draft, may: tuple[Day, ...], dates: Choice) -> tuple[Draft, bool]:
    """The draft with the likeliest of the days on which it may be due, and whether that is likely enough to be named."""
    if not may:
        return draft, True
    likely, day = max(((dates.probability(d.figures), d) for d in may), key=lambda one: one[0])
    if likely >= dates.threshold:
        return replace(draft, due=day.due), True
    return draft, draft.due is None


def _owned(item: DraftItem, may: tuple[Taker, ...], owners: Choice) -> DraftItem:
    """A task with the likeliest of those who may have it, where that is likely enough; else with who perhaps has it."""
    if not may:
        return item
    likely, who = max(((owners.probability(t.figures), t) for t in may), key=lambda one: one[0])
    if likely < owners.threshold:
        perhaps = who.name if likely >= _PERHAPS else None
        return replace(item, owner=None, owner_external=False, perhaps=perhaps)
    return replace(item, owner=who.name, owner_external=who.external)


def _gathers(draft: Draft, thin: float) -> str:
    """What an item has as evidence beside its own: the ``talk`` around it, what is ``near``, or nothing.

    Decisions of sparse talk that only the model found stand for the talk around them. In dense talk a decision is
    brought up, put into words and agreed to within a few turns, which are evidence of it, but no part of its text.
    Work that is handed out has a sentence for each task. An item that took in those beside it would say again what
    other items say: in held-out research meetings 52 of 189 published tasks rested on what one before them had already.
    """
    if draft.family != "decision":
        return ""
    return NEAR if thin < SPARSE else TALK if draft.by_model else ""


def _belongs(around: Around, best: float, own: Iterable[int], gathers: str) -> bool:
    """Whether an utterance near an item is likely enough a part of it; ``best`` is the score of the item's own surest."""
    if gathers == TALK:
        return around.likely >= 0.2 * best
    reach, least, share = _BESIDE_A_DECISION
    if around.likely < max(least, share * best):
        return False
    return min(abs(around.piece.index - index) for index in own) <= reach


def sure_by_words(draft: Draft) -> float:
    """How sure an item is by its words alone, whatever the model says of it; 0 for most.

    A decision that is called one, or a proposal to which somebody else firmly agreed (eleven of twelve held in annotated
    everyday meetings); a question to which somebody said that nobody knows (38 of 49); work that somebody takes on in plain
    words (28 of 30).
    """
    if draft.withdrawn or draft.mode == "refused":
        return 0.0
    reasons = set(draft.reasons)
    if draft.family == "decision":
        firm = FIRMLY_AGREED in reasons and draft.support >= _FIRM
        return 0.7 if firm or (draft.support >= _CALLED and reasons & DECIDING) else 0.0
    if draft.family == "action":
        plain = draft.claim.kind == "self" and PLAIN_WORK in reasons and ON_CONDITION not in reasons
        return 0.6 if plain and draft.support >= PLAINLY else 0.0
    unknown = draft.family == "question" and draft.mode == "open" and "not_known" in reasons
    return 0.65 if unknown and draft.support >= _UNKNOWN else 0.0


def _given_back(reading: Reading, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """Items as they were before the rules took them back just now, but where the words leave no doubt."""
    if any(clause.retracts for clause in reading.heard.clauses):
        return drafts
    standing = {d.id: d for d in reading.before.drafts if not d.withdrawn}
    return tuple(standing.get(d.id, d) if d.withdrawn and d.reasons[-1] != PUT_ASIDE else d for d in drafts)


def _is_about(fresh: Draft, undone: Draft) -> bool:
    """Whether what the model would start is talk of something that was just taken back."""
    common = len(fresh.stems & undone.stems)
    near = fresh.first_index - undone.last_index <= _AROUND
    return near and common >= max(1, 0.5 * min(len(fresh.stems), len(undone.stems)))


def _among(draft: Draft, hints: Sequence[Hint]) -> Draft:
    """The draft with utterances around it that the model takes for part of an item of its kind."""
    near = [
        Around(h.piece, h.of(draft.family), h.words)
        for h in hints
        if h.of(draft.family) >= _HINT
        and abs(h.piece.index - draft.first_index) <= _AROUND
        and all(a.piece.quote.utterance_id != h.piece.quote.utterance_id for a in draft.around)
        and h.piece.index != draft.first_index
    ]
    if not near:
        return draft
    best = sorted((*draft.around, *near), key=lambda a: (-a.likely, a.piece.index))
    return replace(draft, around=tuple(best[:_AROUND_KEPT]))


def _stands_on(draft: Draft, index: int) -> bool:
    """Whether an item rests on an utterance, not only touches it."""
    return any(p.index == index and p.weight >= 1.0 for p in draft.evidence)


def _of_another(draft: Draft, drafts: Sequence[Draft], heard: Heard) -> bool:
    """Whether an earlier utterance is what another decision is made of, and says nothing of the matter of this one."""
    said = frozenset().union(*(c.clause.stems for c in heard.clauses))
    if heard.index >= draft.first_index or (draft.stems & said) - LIGHT:
        return False
    return any(
        d.family == "decision" and d.id != draft.id and p.index == heard.index and p.weight >= MAIN
        for d in drafts
        for p in d.evidence
    )


def _told(likely: float) -> float:
    """Probability as confidence, in twentieths: an item that is a little surer than before is no news to anybody."""
    return round(min(0.95, max(0.05, round(likely * 20) / 20)), 2)


def _weighed(telling: Telling, said: UtteranceScores) -> Telling:
    return replace(telling, weight=round(4.0 * said.summary, 4))
