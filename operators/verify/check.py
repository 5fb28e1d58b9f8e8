"""Verify: nothing leaves before it has been held against its evidence.

Every item is checked for what it claims: evidence that exists and was really said, numbers, names and
dates that occur in it, an owner who was stated, a due date that follows from the words. What fails is
repaired (the claim goes, the words stay) or withheld and shown to a person. The checks read the
evidence anew and share no decision with the step that wrote the item. Text is data here: words that
sound like an order to the software are words.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from contracts.messages import RuleFile
from contracts.minutes import Section, SummarySentence
from contracts.sal import RuleSet
from operators import compose
from operators.language.people import Roster, person_of, roster_of
from operators.language.text import stems
from operators.plain_text import plain
from operators.understand.types import Attendee, DraftItem, Quote, Spoken
from operators.understand.types import SummarySentence as DraftSentence
from operators.verify import claims
from operators.verify.claims import Said
from operators.verify.evidence import in_time, is_real, slide_evidence, speech_evidence, spoken_span
from operators.verify.fallback import from_evidence
from operators.verify.judge import Claimed, Judge, Surroundings, Words
from operators.verify.rule_files import compiled
from operators.verify.rules import Ruled, RuleGuard
from operators.verify.types import (
    Draft,
    ItemVerdict,
    Stretch,
    SummaryVerdict,
    Verified,
    VerifiedItem,
    identified,
)

SECTION_OF: Final[Mapping[str, Section]] = {
    "decision": "decisions",
    "action_item": "action_items",
    "open_question": "open_questions",
    "answered_question": "answered_questions",
}


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """Thresholds and bounds of the checks.

    Attributes:
        review_below: confidence under which a person is asked.
        max_text_chars: longest item text.
        judge_threshold: probability under which the judge's word makes an item be written by rules.
    """

    review_below: float = 0.5
    max_text_chars: int = 400
    judge_threshold: float = 0.99

    def __post_init__(self) -> None:
        if not 0.0 <= self.review_below <= 1.0:
            raise ValueError(f"review_below is a confidence of 0 to 1, got {self.review_below}")
        if not 0.0 <= self.judge_threshold <= 1.0:
            raise ValueError(f"judge_threshold is a probability of 0 to 1, got {self.judge_threshold}")
        if self.max_text_chars < 20:
            raise ValueError(f"max_text_chars below 20 would cut every item, got {self.max_text_chars}")


_MAX_LINE_CHARS: Final = 1_000
_MAX_SENTENCE_WORDS: Final = 30
_MEETINGS_REMEMBERED: Final = 256


@lru_cache(maxsize=256)
def _roster(attendees: tuple[Attendee, ...], speakers: tuple[str, ...]) -> Roster:
    return roster_of(
        [person_of(a.name, a.speaker, a.role, a.external, a.aliases) for a in attendees], speakers
    )


@lru_cache(maxsize=1024)
def _whole_words(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in plain(phrase).split())
    return re.compile(rf"(?<!\w){words}(?!\w)" if words else r"(?!)", re.IGNORECASE)


@dataclass
class _Examination:
    """One item under the checks: what it claims by now, what it met, what was done about the rest."""

    draft: Draft
    item: DraftItem
    settings: VerifySettings
    roster: Roster
    quotes: tuple[Quote, ...] = ()
    said: Said = field(default_factory=lambda: Said((), ()))
    text: str = ""
    owner: str | None = None
    due: dt.date | None = None
    due_text: str | None = None
    checks: dict[str, bool] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    withheld: bool = False

    def examine(self) -> None:
        """Run all checks in an order in which later ones see what earlier ones repaired."""
        self._check_evidence()
        self._check_text()
        if self.item.kind == "action_item":
            self._check_owner()
            self._check_due()
        self._check_claims()
        self._check_length()
        self._check_terms()
        sure = self.item.confidence >= self.settings.review_below
        self.checks["confidence"] = sure
        if not sure:
            self.doubts.append("the rules are not sure of it")

    def _check_evidence(self) -> None:
        real = tuple(q for q in dict.fromkeys(self.item.evidence) if is_real(q, self.draft.utterances))
        self.checks["evidence_exists"] = bool(self.item.evidence)
        self.checks["quotes_were_said"] = len(real) == len(set(self.item.evidence))
        spoken = [self.draft.utterances[q.utterance_id] for q in real]
        self.quotes = real
        self.said = Said(
            tuple(plain(s.text[q.first : q.last]) for q, s in zip(real, spoken, strict=True)),
            tuple(s.speaker for s in spoken),
        )
        if real and not self.checks["quotes_were_said"]:
            self.actions.append("evidence that was not said was dropped")
        if not real:
            self.withhold("no evidence")

    def withhold(self, why: str) -> None:
        self.withheld = True
        self.doubts.append(why)
        self.actions.append(f"withheld: {why}")

    def _check_text(self) -> None:
        shown = plain(self.item.text)
        self.checks["text_is_clean"] = shown == " ".join(self.item.text.split())
        self.text = shown.rstrip(" ,;:")
        self.checks["text_says_something"] = any(c.isalnum() for c in self.text)
        if not self.checks["text_is_clean"] and self.text:
            self.actions.append("characters that cannot be shown were taken out")
        if not self.checks["text_says_something"] and not self.withheld:
            self._quote_instead("the text was empty")

    def _check_owner(self) -> None:
        owner = plain(self.item.owner)[:_MAX_LINE_CHARS] if self.item.owner else None
        self.owner = owner
        double = claims.look_alike(owner, self.roster) if owner and self.item.owner_external else None
        self.checks["owner_no_look_alike"] = double is None
        if owner and double is not None:
            # A name in letters of another alphabet must not pass for somebody who was there.
            self.owner = owner = None
            self.doubts.append(f"a name that only looks like {double} was written")
        finding = claims.owner_finding(owner, self.item.owner_external, self.said, self.roster)
        self.checks["owner_stated"] = owner is None or finding.stated
        self.checks["owner_unambiguous"] = not finding.ambiguous
        if finding.ambiguous:
            self.doubts.append("it is unclear who is meant")
        if owner is not None and not finding.stated:
            self.owner = None
            self.actions.append(f"owner {owner} taken out: not stated in the evidence")

    def _check_due(self) -> None:
        words = plain(self.item.due_text)[:_MAX_LINE_CHARS] if self.item.due_text else None
        self.due, self.due_text = self.item.due, words
        self.checks["due_words_said"] = words is None or claims.occurs(words, self.said)
        if not self.checks["due_words_said"]:
            self.due = self.due_text = None
            self.actions.append("due date taken out: its words were not said")
            return
        meeting = self.draft.context.date
        follows = self.due is None or (words is not None and claims.due_fits(self.due, words, meeting))
        in_time = self.due is None or meeting is None or self.due >= meeting
        self.checks["due_follows_from_words"] = follows
        self.checks["due_not_before_meeting"] = in_time
        if not follows or not in_time:
            why = "it lies before the meeting" if follows else "it does not follow from the words"
            self.actions.append(f"due date {self.due} taken out: {why}")
            self.due = None
            self.doubts.append("the due date is unclear")

    def _check_claims(self) -> None:
        if self.withheld:
            return
        granted = [name for s in self.said.speakers if (name := self.roster.of_speaker(s))]
        granted += [self.owner] if self.owner else []
        missing = {
            "numbers_were_said": claims.unsupported_numbers(self.text, self.said),
            "names_were_said": claims.unsupported_names(self.text, self.said, self.roster, granted),
            "dates_were_said": claims.unsupported_dates(self.text, self.said, self.due),
        }
        for check, words in missing.items():
            self.checks[check] = not words
        if foreign := [word for words in missing.values() for word in words]:
            self._quote_instead(f"the evidence does not hold {', '.join(foreign)}")

    def _check_terms(self) -> None:
        """Names that the agenda spells otherwise: the recogniser may have heard a name as common words."""
        context = self.draft.context
        corrected = {heard.casefold() for heard, _ in context.names}
        apart = claims.written_apart(
            self.text, (*context.key_topics, *context.agenda, *([context.title] if context.title else ()))
        )
        apart = tuple((heard, name) for heard, name in apart if heard.casefold() not in corrected)
        self.checks["names_as_announced"] = not apart
        self.doubts += [f"“{heard}” may be {name}" for heard, name in apart]

    def _quote_instead(self, why: str) -> None:
        """What was said takes the place of a text that cannot be borne out."""
        quotes = self.said.quotes
        best = max(quotes, key=lambda q: (min(len(q.split()), 6), -quotes.index(q)), default="")
        if not any(c.isalnum() for c in best):
            self.withhold("nothing was said that could stand in its place")
            return
        self.text = best[0].upper() + best[1:]
        self.actions.append(f"replaced by the words that were said: {why}")

    def _check_length(self) -> None:
        limit = self.settings.max_text_chars
        self.checks["text_is_short"] = len(self.text) <= limit
        if not self.checks["text_is_short"]:
            self.text = self.text[: limit - 1].rsplit(" ", 1)[0][: limit - 1] + "…"
            self.actions.append(f"cut to {limit} characters")

    def name_rightly(self) -> bool:
        """Write names as people corrected them; quotes keep what was heard. Whether anything changed."""
        before = self.text
        for heard, name in self.draft.context.names:
            self.text = _whole_words(heard).sub(plain(name).replace("\\", r"\\"), self.text)
        if self.text != before:
            self.actions.append(f"names written as a person said, before: {before}")
        return self.text != before

    def verdict(self) -> ItemVerdict:
        """The strongest of what happened."""
        if self.item.withdrawn:
            return "withdrawn"
        if self.withheld:
            return "withheld"
        if self.doubts:
            return "review"
        return "repaired" if self.actions else "pass"


def _verify_item(item: DraftItem, draft: Draft, settings: VerifySettings, roster: Roster) -> VerifiedItem:
    looked = _Examination(draft, item, settings, roster)
    looked.examine()
    renamed = looked.name_rightly()
    speech = in_time(speech_evidence(q, draft.utterances, draft.zero_ns) for q in looked.quotes)
    slides = slide_evidence(looked.text, speech, draft) if draft.stage != "provisional" else ()
    starts = (spoken_span(q, draft.utterances[q.utterance_id])[0] for q in looked.quotes)
    verified = VerifiedItem(
        item_id=item.id,
        section=SECTION_OF[item.kind],
        text=looked.text,
        confidence=round(min(1.0, max(0.0, item.confidence)), 3),
        owner=looked.owner,
        due=looked.due,
        due_text=looked.due_text,
        verdict=looked.verdict(),
        origin="person" if renamed else draft.origin,
        checks=tuple(looked.checks.items()),
        actions=tuple(looked.actions),
        doubts=() if item.withdrawn else tuple(dict.fromkeys(looked.doubts)),
        evidence=(*speech, *slides),
        first_ns=min(starts, default=draft.until_ns),
    )
    return identified(verified)


def _verify_sentence(
    sentence: DraftSentence, draft: Draft, roster: Roster
) -> tuple[SummarySentence | None, str]:
    """A sentence as it may stand (None where it may not), and what was done about it."""
    quotes = tuple(q for q in dict.fromkeys(sentence.evidence) if is_real(q, draft.utterances))
    if not quotes:
        return None, "a sentence without evidence was dropped"
    spoken = [draft.utterances[q.utterance_id] for q in quotes]
    said = Said(
        tuple(plain(s.text[q.first : q.last]) for q, s in zip(quotes, spoken, strict=True)),
        tuple(s.speaker for s in spoken),
    )
    granted = [name for s in said.speakers if (name := roster.of_speaker(s))]
    text, action = plain(sentence.text), ""
    if not text or (
        claims.unsupported_numbers(text, said)
        or claims.unsupported_names(text, said, roster, granted)
        or claims.unsupported_dates(text, said, None)
    ):
        text, action = said.quotes[0], "a sentence was replaced by the words that were said"
    evidence = in_time(speech_evidence(q, draft.utterances, draft.zero_ns) for q in quotes)
    return SummarySentence(text=text, evidence=evidence), action


def _known_sentence(
    sentence: DraftSentence, draft: Draft, roster: Roster, memory: _Memory
) -> tuple[SummarySentence | None, str]:
    """As ``_verify_sentence``, from memory where nothing that it depends on has changed."""
    spoken = tuple([draft.utterances.get(q.utterance_id) for q in sentence.evidence])
    known = memory.sentences.get(sentence.text)
    if (
        known is not None
        and known.sentence == sentence
        and len(spoken) == len(known.spoken)
        and all(a is b for a, b in zip(spoken, known.spoken, strict=True))
    ):
        return known.shown, known.action
    shown, action = _verify_sentence(sentence, draft, roster)
    memory.sentences[sentence.text] = _RememberedSentence(sentence, spoken, shown, action)
    return shown, action


def _verify_summary(
    draft: Draft, roster: Roster, memory: _Memory
) -> tuple[tuple[SummarySentence, ...], SummaryVerdict, list[str]]:
    """Sentences in the order of the meeting, what was found, and notices for readers."""
    kept: list[SummarySentence] = []
    actions: list[str] = []
    for gone in memory.sentences.keys() - {s.text for s in draft.summary} if draft.summary else ():
        del memory.sentences[gone]
    for sentence in draft.summary:
        shown, action = _known_sentence(sentence, draft, roster, memory)
        kept += [shown] if shown is not None else []
        actions += [action] if action else []
    checks = {"sentences_rest_on_evidence": not actions}
    notices: list[str] = []
    if draft.stage == "final":
        checks["key_topics_mentioned"] = True
        for topic in _topics_missing(draft, kept):
            checks["key_topics_mentioned"] = False
            offered = draft.topic_sentences.get(topic) or _topic_sentence(topic, draft)
            shown = _verify_sentence(offered, draft, roster)[0] if offered is not None else None
            if shown is not None:
                kept.append(shown)
                actions.append(f"a sentence on {plain(topic)} was added")
            else:
                notices.append(f"The key topic “{plain(topic)}” was discussed but is not in the summary.")
    kept.sort(key=lambda s: (s.evidence[0].start_s, s.text))
    return tuple(kept), SummaryVerdict(tuple(checks.items()), tuple(dict.fromkeys(actions))), notices


def _topics_missing(draft: Draft, summary: Sequence[SummarySentence]) -> list[str]:
    """Key topics of which all words fell in one utterance but fewer than half stand in the summary."""
    mentioned = frozenset().union(*(stems(s.text.casefold()) for s in summary)) if summary else frozenset()
    missing: list[str] = []
    spoken: list[frozenset[str]] | None = None
    for topic in dict.fromkeys(draft.context.key_topics):
        wanted = stems(topic.casefold())
        if not wanted or len(wanted & mentioned) * 2 >= len(wanted):
            continue
        if spoken is None:
            spoken = [stems(u.text.casefold()) for u in draft.utterances.values()]
        if any(wanted <= said for said in spoken):
            missing.append(topic)
    return missing


def _topic_sentence(topic: str, draft: Draft) -> DraftSentence | None:
    """The utterance of a sentence's length that says most about a topic; None where there is none."""
    wanted = stems(topic.casefold())
    fitting = [
        (len(stems(u.text.casefold())), -u.start_ns, u.id)
        for u in draft.utterances.values()
        if 4 <= len(u.text.split()) <= _MAX_SENTENCE_WORDS and wanted <= stems(u.text.casefold())
    ]
    if not fitting:
        return None
    spoken = draft.utterances[max(fitting)[2]]
    return DraftSentence(compose.clean(spoken.text), (Quote(spoken.id, 0, len(spoken.text)),))


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A verdict with all that it depends on. Utterances are compared by identity: they are immutable."""

    item: DraftItem
    spoken: tuple[Spoken | None, ...]
    slides: tuple[Stretch, ...]
    verified: VerifiedItem

    def holds(self, item: DraftItem, spoken: Sequence[Spoken | None], slides: tuple[Stretch, ...]) -> bool:
        return (
            len(spoken) == len(self.spoken)
            and all(a is b for a, b in zip(spoken, self.spoken, strict=True))
            and (self.item is item or self.item == item)
            and self.slides == slides
        )


@dataclass(frozen=True, slots=True)
class _RememberedSentence:
    """What became of a sentence of the summary, with what it depends on."""

    sentence: DraftSentence
    spoken: tuple[Spoken | None, ...]
    shown: SummarySentence | None
    action: str


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
    sentences: dict[str, _RememberedSentence] = field(default_factory=dict)
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
        summary, verdict, notices = _verify_summary(draft, roster, memory)
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
            ruled.doubts, ruled.whole, ruled.passed,
        )  # fmt: skip

    def forget(self, meeting_id: str) -> None:
        """Forget the verdicts on a meeting's items."""
        self._meetings.pop(meeting_id, None)

    def _memory(self, draft: Draft, speakers: tuple[str, ...]) -> _Memory:
        context = draft.context
        surroundings = (context, speakers, draft.zero_ns, draft.origin)
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
        if known is not None and any(spoken) and known.holds(item, spoken, slides):
            return known.verified
        verified = self._judged(
            item, _verify_item(item, draft, self._settings, roster), draft, roster, memory
        )
        memory.items[key] = _Remembered(item, spoken, slides, verified)
        return verified

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
        verified = _verify_item(written, draft, self._settings, roster)
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
