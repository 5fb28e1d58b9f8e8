"""The checks of one item: what it claims, held against what was said."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from contracts.minutes import Section
from operators.language.dates import resolve
from operators.language.people import Roster
from operators.plain_text import plain
from operators.speech.foreign import NOT_ENGLISH
from operators.understand.screen import THAT_DATE, dates_in
from operators.understand.sensed import SensePiece
from operators.understand.types import DraftItem, Quote
from operators.verify import claims
from operators.verify.claims import Said
from operators.verify.evidence import (
    borne_out,
    in_time,
    is_real,
    sense_evidence,
    slide_evidence,
    speech_evidence,
    spoken_span,
)
from operators.verify.types import (
    Draft,
    ItemVerdict,
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
    sensed: tuple[SensePiece, ...] = ()
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
        if NOT_ENGLISH in self.draft.notices:
            self.doubts.append("much of what was said does not look English")

    def _check_evidence(self) -> None:
        real = tuple(q for q in dict.fromkeys(self.item.evidence) if is_real(q, self.draft.utterances))
        self.checks["evidence_exists"] = bool(self.item.evidence)
        self.checks["quotes_were_said"] = len(real) == len(set(self.item.evidence))
        spoken = [self.draft.utterances[q.utterance_id] for q in real]
        self.quotes = real
        self.sensed = tuple(p for p in self.item.senses if borne_out(p, self.draft.utterances))
        shown = [plain(p.quote) for p in self.sensed if p.kind == "slide"]
        self.said = Said(
            (*(plain(s.text[q.first : q.last]) for q, s in zip(real, spoken, strict=True)), *shown),
            (*(s.speaker for s in spoken), *(None for _ in shown)),
        )
        if self.item.senses:
            self.checks["seen_or_shown"] = self.sensed == self.item.senses
            if self.sensed != self.item.senses:
                self.actions.append("evidence that was not seen was dropped")
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
        nodded = owner is not None and any(
            p.kind == "picture" and p.who is not None and self.roster.of_speaker(p.who) == owner
            for p in self.sensed
        )
        stated = finding.stated or nodded
        self.checks["owner_stated"] = owner is None or stated
        self.checks["owner_unambiguous"] = not finding.ambiguous
        if finding.ambiguous:
            self.doubts.append("it is unclear who is meant")
        if owner is not None and not stated:
            self.owner = None
            self.actions.append(f"owner {owner} taken out: not stated in the evidence")
        elif owner is None and self.item.perhaps and not finding.ambiguous:
            self.doubts.append(f"perhaps {plain(self.item.perhaps)[:_MAX_LINE_CHARS]} does it")

    def _check_due(self) -> None:
        words = plain(self.item.due_text)[:_MAX_LINE_CHARS] if self.item.due_text else None
        self.due, self.due_text = self.item.due, words
        self.checks["due_words_said"] = words is None or claims.occurs(words, self.said)
        if not self.checks["due_words_said"]:
            self.due = self.due_text = None
            self.actions.append("due date taken out: its words were not said")
            return
        meeting = self.draft.context.date
        follows = self.due is None or (
            words is not None
            and claims.due_fits(self.due, words, meeting)
            and not claims.goes_on(words, self.said)
            and (THAT_DATE.fullmatch(words.lower()) is None or self._shows(self.due))
        )
        in_time = self.due is None or meeting is None or self.due >= meeting
        if self.item.due_open and self.due is None:
            self.doubts.append("the due date is unclear")
        self.checks["due_follows_from_words"] = follows
        self.checks["due_not_before_meeting"] = in_time
        if not follows or not in_time:
            why = "it lies before the meeting" if follows else "it does not follow from the words"
            self.actions.append(f"due date {self.due} taken out: {why}")
            self.due = None
            self.doubts.append("the due date is unclear")

    def _shows(self, due: dt.date) -> bool:
        """Whether a day stands on the screen for which the words only stand (*by that date*)."""
        meeting = self.draft.context.date
        lines = (p.quote for p in self.sensed if p.kind == "slide")
        return any(resolve(day, meeting) == due for line in lines for day in dates_in(line))

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


def shown_confidence(item: DraftItem) -> float:
    """How sure an item is, as it is published."""
    return round(min(1.0, max(0.0, item.confidence)), 3)


def verify_item(item: DraftItem, draft: Draft, settings: VerifySettings, roster: Roster) -> VerifiedItem:
    looked = _Examination(draft, item, settings, roster)
    looked.examine()
    renamed = looked.name_rightly()
    speech = in_time(speech_evidence(q, draft.utterances, draft.zero_ns) for q in looked.quotes)
    slides = slide_evidence(looked.text, speech, draft) if draft.stage != "provisional" else ()
    sensed = sense_evidence(looked.sensed, draft.zero_ns)
    known = {(e.kind, e.quote) for e in sensed}
    starts = (spoken_span(q, draft.utterances[q.utterance_id])[0] for q in looked.quotes)
    verified = VerifiedItem(
        item_id=item.id,
        section=SECTION_OF[item.kind],
        text=looked.text,
        confidence=shown_confidence(item),
        owner=looked.owner,
        due=looked.due,
        due_text=looked.due_text,
        verdict=looked.verdict(),
        origin="person" if renamed else draft.origin,
        checks=tuple(looked.checks.items()),
        actions=tuple(looked.actions),
        doubts=() if item.withdrawn else tuple(dict.fromkeys(looked.doubts)),
        evidence=(*speech, *sensed, *(e for e in slides if (e.kind, e.quote) not in known)),
        first_ns=min(starts, default=draft.until_ns),
    )
    return identified(verified)
