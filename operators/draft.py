"""Draft: runs the rule engine over a meeting in its two orders and says what the minutes would be.

Settled utterances are folded once, in their final order. What is not settled yet is folded on top in
the order in which it was heard, so that provisional minutes are there at once.
"""

import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final
from urllib.parse import quote

from bytewax.operators import KeyedStream

from contracts.messages import Correction, NameCorrected, RuleFile
from contracts.minutes import Evidence, Stage
from operators.align.aligned import (
    Aligned,
    Corrected,
    Ended,
    Heard,
    Purged,
    Setting,
    Settled,
    SlideSpan,
    Traced,
    Unheard,
)
from operators.broker.sink import Outgoing
from operators.language.foreign import in_english
from operators.language.text import STOP
from operators.pace import Pace, Paced
from operators.shard import by_shard
from operators.speech.foreign import NOT_ENGLISH
from operators.store import StepStore, Stores
from operators.summary import forget_made, summary
from operators.understand.engine import RuleEngine
from operators.understand.state import State
from operators.understand.types import DraftItem, MeetingContext, Quote, Spoken, SummarySentence
from operators.verify.evidence import speech_evidence
from operators.verify.types import Draft, Stretch

_MEETING: Final = b"meeting/"
_SPOKEN: Final = b"spoken/"
_SUMMARY_EVERY_NS: Final = 15_000_000_000
_MOST_SPEAKERS: Final = 256
"""Voices that are listed and looked for by name; a transcript may claim thousands, and each costs every item."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_JUDGED_WORDS: Final = 60
_JUDGED_LETTERS: Final = 30
_ENGLISH_SHARE: Final = 0.28
"""Function words are 0.37 or more of every invented English meeting, 0.1 to 0.2 of German, Dutch, French, Spanish."""
_PLAIN: Final = (
    "base",
    "tail",
    "speakers",
    "settled",
    "mixed",
    "summary",
    "summary_until_ns",
    "gaps",
    "notices",
    "ended",
)
_EPOCH_NS: Final = 365 * 86_400 * 10**9
"""Starts before 1971 are file zeros, not dates."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person decided, for the ledger, with the words that an added item rests on."""

    meeting_id: str
    said: Correction | NameCorrected
    evidence: tuple[Evidence, ...] = ()
    first_ns: int = 0
    context: MeetingContext | None = None
    rules: RuleFile | None = None


Drafted = Draft | Decided | Purged | Traced | Outgoing


@dataclass(slots=True)
class MeetingDrafts:
    """One meeting. ``base`` has read what is settled, ``ahead`` also the tail that is not."""

    meeting_id: str
    engine: RuleEngine
    base: State | None = None
    ahead: State | None = None
    tail: dict[str, Spoken] = field(default_factory=dict)
    spoken: dict[str, Spoken] = field(default_factory=dict)
    speakers: dict[str, None] = field(default_factory=dict)
    settled: list[str] = field(default_factory=list)
    """Ids of what ``base`` has read, in that order."""
    mixed: bool = False
    """The meeting's setting changed while ``base`` was reading: the end has to read everything again."""
    summary: tuple[SummarySentence, ...] = ()
    summary_until_ns: int | None = None
    gaps: tuple[Stretch, ...] = ()
    notices: tuple[str, ...] = ()
    ended: bool = False
    changed: set[str] = field(default_factory=set)
    stepped: dict[tuple[int, int], tuple[State, Spoken, State]] = field(default_factory=dict)
    """States that were worked out beforehand, by the identities of what they were made of."""
    made: tuple[State, tuple[DraftItem, ...]] | None = None
    """What was last read ahead, and its items: most settled drafts find what the provisional one before them found."""
    told: tuple[State, tuple[DraftItem, ...], tuple[SummarySentence, ...]] | None = None
    """A summary that was made beforehand, and what of."""

    def feed(self, change: Aligned) -> list[Drafted]:
        """The minutes as they would be after this change."""
        try:
            return self._fed(change)
        finally:
            self.stepped.clear()
            self.told = None

    def slices(self, change: Aligned) -> Iterator[None]:
        """Work out beforehand, bit by bit, what ``feed`` will need for this change; no result depends on it."""
        state, said = self._coming(change)
        for spoken in said:
            if state is None:
                yield from self.engine.slices(spoken)
                continue
            after = yield from self.engine.stepping(state, spoken)
            self.stepped[id(state), id(spoken)] = state, spoken, after
            state = after
            yield
        if isinstance(change, Heard) and state is not None and state.context == change.setting.context:
            self.made = state, self.engine.items(state)
            yield
        if isinstance(change, Settled) and (ahead := self.ahead) is not None and not change.anew:
            settled = {spoken.id for spoken in change.spoken}
            left = (spoken for spoken in self.tail.values() if spoken.id not in settled)
            items = self._items_of(ahead)
            if self._summary_due(self._until(change.setting, left, self._named(items))):
                self.told = ahead, items, summary(ahead, change.setting.context, items)
                yield

    def _coming(self, change: Aligned) -> tuple[State | None, Sequence[Spoken]]:
        """What a change will have read, and from which state on, where that is there already."""
        match change:
            case Heard(spoken=spoken):
                known = self.tail.get(spoken.id)
                if known is not None and (known.text, known.speaker) == (spoken.text, spoken.speaker):
                    return None, ()
                if known is None and self.ahead is not None:
                    return self.ahead, (spoken,)
                return self._base_under(change.setting), tuple((self.tail | {spoken.id: spoken}).values())
            case Settled(anew=False, spoken=said):
                return self._base_under(change.setting), said
            case Ended(spoken=said):
                fits = not self.mixed and len(said) >= len(self.settled)
                return (self._base_under(change.setting), said[len(self.settled) :]) if fits else (None, said)
        return None, ()

    def _base_under(self, setting: Setting) -> State | None:
        return self.base if self.base is not None and self.base.context == setting.context else None

    def _step(self, state: State, spoken: Spoken) -> State:
        """The state with an utterance more, from memory where it was worked out beforehand."""
        known = self.stepped.get((id(state), id(spoken)))
        if known is not None and known[0] is state and known[1] is spoken:
            return known[2]
        return self.engine.step(state, spoken)

    def _fed(self, change: Aligned) -> list[Drafted]:
        match change:
            case Heard():
                return self._heard(change)
            case Unheard():
                self.tail.pop(change.utterance_id, None)
                self._forget(change.utterance_id)
                self.ahead = None
                return [self._draft("provisional", change.setting)]
            case Settled():
                return [self._settled(change)]
            case Ended():
                return [self._ended(change)]
            case Corrected():
                return self._decided(change)
            case Purged() | Traced():
                return [change]

    def _decided(self, change: Corrected) -> list[Drafted]:
        said = change.said
        if isinstance(said, NameCorrected):
            told: list[Drafted] = [Decided(self.meeting_id, said)]
            # At the end of the meeting everything is read again anyway.
            return told if self.ended else [*told, self._draft("provisional", change.setting)]
        named = (self.spoken[i] for i in dict.fromkeys(said.utterances) if i in self.spoken)
        spoken = sorted((s for s in named if s.text.strip()), key=lambda s: (s.start_ns, s.id))
        quotes = [Quote(s.id, 0, len(s.text)) for s in spoken]
        evidence = tuple(speech_evidence(q, self.spoken, change.setting.start_ns) for q in quotes)
        first_ns = spoken[0].start_ns if spoken else change.setting.start_ns
        return [
            Decided(self.meeting_id, said, evidence, first_ns, change.setting.context, change.setting.rules)
        ]

    def _heard(self, heard: Heard) -> list[Drafted]:
        spoken = heard.spoken
        known = self.tail.get(spoken.id)
        self._remember(spoken)
        self.tail[spoken.id] = spoken
        if known is not None and known.text == spoken.text and known.speaker == spoken.speaker:
            # The same words, now closed: only times may have moved, and those are read from the utterance.
            if known.senses != spoken.senses:
                self.ahead = None
            return []
        if known is not None or self.ahead is None:
            self.ahead = None
        else:
            self.ahead = self._step(self.ahead, spoken)
        return [self._draft("provisional", heard.setting)]

    def _settled(self, settled: Settled) -> Draft:
        self.gaps = tuple(Stretch(g.start_ns, g.end_ns, g.what, g.stream) for g in settled.gaps)
        self.notices = settled.notices
        if settled.anew:
            self.base, self.settled, self.mixed = None, [], False
        in_order = not settled.anew and list(self.tail)[: len(settled.spoken)] == [
            s.id for s in settled.spoken
        ]
        base = self._base(settled.setting)
        for spoken in settled.spoken:
            self._remember(spoken)
            before = self.tail.pop(spoken.id, None)
            same = before is not None and (before.text, before.senses) == (spoken.text, spoken.senses)
            in_order = in_order and same
            base = self._step(base, spoken)
        self.base = base
        self.settled += [spoken.id for spoken in settled.spoken]
        if not in_order:
            self.ahead = None
        return self._draft("settled", settled.setting)

    def _ended(self, ended: Ended) -> Draft:
        """The whole meeting, read in order under the setting that holds at its end."""
        self.ended = True
        known = len(self.settled)
        read = list(ended.spoken[:known])
        fits = not self.mixed and [self.spoken.get(i) for i in self.settled] == read
        if self.base is not None and fits and self.base.context == ended.setting.context:
            state = self.base
        else:
            state, known = self.engine.start(ended.setting.context), 0
        for spoken in ended.spoken[known:]:
            state = self._step(state, spoken)
        state = self.engine.finish(state)
        for spoken in ended.spoken:
            self._remember(spoken)
        items = self.engine.items(state)
        setting = ended.setting
        speakers = tuple(dict.fromkeys(s.speaker for s in ended.spoken if s.speaker is not None))
        return Draft(
            meeting_id=self.meeting_id, stage="final", context=setting.context, until_ns=ended.end_ns, items=items,
            utterances={s.id: s for s in ended.spoken}, summary=summary(state, setting.context, items),
            slides=tuple(_stretch(s) for s in ended.slides),
            gaps=tuple(Stretch(g.start_ns, g.end_ns, g.what, g.stream) for g in ended.gaps),
            notices=(*ended.notices, *_crowd(speakers), *_foreign(ended)), speakers=speakers[:_MOST_SPEAKERS],
            zero_ns=setting.start_ns, start_ns=_dated(setting.start_ns), duration_ns=max(0, ended.end_ns - setting.start_ns),
            tai_utc_offset_s=setting.tai_utc_offset_s, origin=self.engine.origin, rules=setting.rules,
        )  # fmt: skip

    def _draft(self, stage: Stage, setting: Setting) -> Draft:
        if self.ahead is None:
            state = self._base(setting)
            for spoken in self.tail.values():
                state = self._step(state, spoken)
            self.ahead = state
        if self.ahead.context != setting.context:
            self.ahead = self.engine.with_context(self.ahead, setting.context)
        items = self._items_of(self.ahead)
        named = self._named(items)
        until = self._until(setting, self.tail.values(), named)
        told = self._summary(self.ahead, setting, items, until) if stage == "settled" else ()
        return Draft(
            meeting_id=self.meeting_id, stage=stage, context=setting.context, until_ns=until, items=items,
            utterances=self._named(items, told) if told else named, summary=told,
            gaps=self.gaps, notices=self.notices, speakers=tuple(self.speakers), zero_ns=setting.start_ns,
            start_ns=_dated(setting.start_ns), duration_ns=max(0, until - setting.start_ns),
            tai_utc_offset_s=setting.tai_utc_offset_s, origin=self.engine.origin, rules=setting.rules,
        )  # fmt: skip

    def _items_of(self, state: State) -> tuple[DraftItem, ...]:
        if self.made is None or self.made[0] is not state:
            self.made = state, self.engine.items(state)
        return self.made[1]

    @staticmethod
    def _until(setting: Setting, tail: Iterable[Spoken], named: Mapping[str, Spoken]) -> int:
        """Until when the talk is known of which a draft tells."""
        newest = max((s.end_ns for s in tail), default=setting.start_ns)
        return max([newest, *(s.end_ns for s in named.values())])

    def _named(
        self, items: Iterable[DraftItem], sentences: Iterable[SummarySentence] = ()
    ) -> dict[str, Spoken]:
        """The utterances on which something rests, as they are now.

        A draft is verified later, when a whole batch of the log has been read: it must not see what came
        after it, or minutes would depend on how much of the log was there at once.
        """
        quotes = chain((i.evidence for i in items), (s.evidence for s in sentences))
        named = dict.fromkeys(q.utterance_id for evidence in quotes for q in evidence)
        return {i: self.spoken[i] for i in named if i in self.spoken}

    def _summary(
        self, state: State, setting: Setting, items: tuple[DraftItem, ...], until_ns: int
    ) -> tuple[SummarySentence, ...]:
        """The summary, made anew only so often: readers of a running meeting gain nothing from more."""
        if self._summary_due(until_ns):
            known = self.told
            fits = known is not None and known[0] is state and known[1] is items
            self.summary = known[2] if known and fits else summary(state, setting.context, items)
            self.summary_until_ns = until_ns
        return self.summary

    def _summary_due(self, until_ns: int) -> bool:
        return self.summary_until_ns is None or until_ns - self.summary_until_ns >= _SUMMARY_EVERY_NS

    def _base(self, setting: Setting) -> State:
        if self.base is None:
            self.base = self.engine.start(setting.context)
        elif self.base.context != setting.context:
            self.mixed = self.mixed or bool(self.settled)
            self.base = self.engine.with_context(self.base, setting.context)
        return self.base

    def _remember(self, spoken: Spoken) -> None:
        if self.spoken.get(spoken.id) != spoken:
            self.spoken[spoken.id] = spoken
            self.changed.add(spoken.id)
        if spoken.speaker is not None and len(self.speakers) < _MOST_SPEAKERS:
            self.speakers.setdefault(spoken.speaker)

    def _forget(self, utterance_id: str) -> None:
        if self.spoken.pop(utterance_id, None) is not None:
            self.changed.add(utterance_id)


def _crowd(speakers: Sequence[str]) -> tuple[str, ...]:
    """What to say of a meeting with more speakers than are listed."""
    if len(speakers) <= _MOST_SPEAKERS:
        return ()
    return (
        f"{len(speakers)} different speakers; the first {_MOST_SPEAKERS} are listed and looked for by name.",
    )


def _foreign(ended: Ended) -> tuple[str, ...]:
    """What to say of a meeting in which few of the words are those that English cannot do without."""
    if NOT_ENGLISH in ended.notices:
        return ()  # said already, of how it sounded
    said = [_WORD.findall(s.text.casefold()) for s in ended.spoken]
    letters = [sum(map(len, words)) for words in said]
    strange = sum(count for words, count in zip(said, letters, strict=True) if not in_english(words))
    if sum(letters) >= _JUDGED_LETTERS and strange > sum(letters) / 2:
        return (NOT_ENGLISH,)
    words = [word for line in said for word in line]
    if len(words) < _JUDGED_WORDS or sum(word in STOP for word in words) >= _ENGLISH_SHARE * len(words):
        return ()
    return (NOT_ENGLISH,)


def _stretch(slide: SlideSpan) -> Stretch:
    return Stretch(slide.start_ns, slide.end_ns, slide.text, slide.device)


def _dated(start_ns: int) -> int | None:
    return start_ns if start_ns >= _EPOCH_NS else None


def _spoken_key(meeting_id: str, utterance_id: str) -> bytes:
    return _SPOKEN + quote(meeting_id, safe="").encode() + b"/" + utterance_id.encode()


class Drafting:
    """The step of one shard: aligned changes in, drafts out."""

    def __init__(self, engine: RuleEngine) -> None:
        self._engine = engine
        self._meetings: dict[str, MeetingDrafts] = {}
        self._touched: set[str] = set()
        self._purged: set[str] = set()

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_MEETING):
            name, *plain = pickle.loads(value)
            self._meetings[name] = MeetingDrafts(name, self._engine, **dict(zip(_PLAIN, plain, strict=True)))
        for _, value in store.scan(_SPOKEN):
            name, spoken = pickle.loads(value)
            self._meetings[name].spoken[spoken.id] = spoken

    def save(self, store: StepStore) -> None:
        for name in sorted(self._purged):
            store.forget(_MEETING + name.encode())
            for key, _ in list(store.scan(_spoken_key(name, ""))):
                store.forget(key)
        self._purged.clear()
        for name in sorted(self._touched):
            m = self._meetings.get(name)
            if m is None:
                continue
            for changed in sorted(m.changed):
                spoken = m.spoken.get(changed)
                if spoken is None:
                    store.delete(_spoken_key(name, changed))
                else:
                    store.put(_spoken_key(name, changed), pickle.dumps((name, spoken)))
            m.changed = set()
            plain = (name, *(getattr(m, field_name) for field_name in _PLAIN))
            store.put(_MEETING + name.encode(), pickle.dumps(plain))
        self._touched.clear()

    def on_timer(self) -> Iterable[Drafted]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def meeting_of(self, value: Aligned | Outgoing) -> str | None:
        """See `operators.pace.Sliced`."""
        return None if isinstance(value, Outgoing) else value.meeting_id

    def words_in(self, value: Aligned | Outgoing) -> int:
        """See `operators.pace.Sliced`."""
        if isinstance(value, Heard):
            # Not every language parts its words by blanks, and who floods need not speak at all.
            return max(1, len(value.spoken.text.split()), len(value.spoken.text) // 6)
        return 1 if isinstance(value, Unheard) else 0

    def slices(self, value: Aligned | Outgoing) -> Iterator[None]:
        """See `operators.pace.Sliced`."""
        if not isinstance(value, Outgoing) and (meeting := self._meetings.get(value.meeting_id)) is not None:
            yield from meeting.slices(value)

    def on_batch(self, values: Sequence[Aligned | Outgoing]) -> list[Drafted]:
        out: list[Drafted] = []
        for change in values:
            if isinstance(change, Outgoing):
                out.append(change)
                continue
            self._touched.add(change.meeting_id)
            meeting = self._meetings.get(change.meeting_id)
            if meeting is None:
                meeting = self._meetings[change.meeting_id] = MeetingDrafts(change.meeting_id, self._engine)
            out += meeting.feed(change)
            if isinstance(change, Purged):
                del self._meetings[change.meeting_id]
                self._engine.forget_made()
                forget_made()
                self._purged.add(change.meeting_id)
        return out


def per_worker_pace() -> Callable[[], Pace]:
    """The pace of the thread that asks: each worker has a thread of its own, and its shards make their steps there."""
    workers = threading.local()

    def pace() -> Pace:
        if not hasattr(workers, "pace"):
            workers.pace = Pace()
        found: Pace = workers.pace
        return found

    return pace


def understand(
    up: KeyedStream[tuple[int, Aligned | Outgoing]], stores: Stores, engine: RuleEngine
) -> KeyedStream[tuple[int, Drafted]]:
    """Find decisions, actions and questions, and compose what the minutes would say."""
    pace = per_worker_pace()
    return by_shard("understand", up, stores, lambda shard: Paced(Drafting(engine), pace(), shard))
