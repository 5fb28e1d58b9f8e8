"""What the verifier looks at: figures that say how well an item agrees with what was said.

Every figure is 0 where nothing speaks against the item (or for it), so that unknown kinds of error still show in the
figures that they share with known ones: words, numbers, names and days that the evidence does not hold.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz
from rapidfuzz.distance import Indel, LCSseq

from models.verifier import words as w

Kind = Literal["decision", "action_item", "open_question", "answered_question"]
KINDS: Final[tuple[Kind, ...]] = ("decision", "action_item", "open_question", "answered_question")


@dataclass(frozen=True, slots=True)
class Heard:
    """One utterance, or the quoted part of one."""

    id: str
    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be judged. ``owner`` and ``due`` belong to action items."""

    kind: Kind
    text: str
    owner: str | None = None
    due: dt.date | None = None
    due_text: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """An item with its evidence (quotes, in order), the utterances around it, and who was there.

    ``before`` and ``after`` are the nearest utterances outside the evidence, in order; ``attendees`` are names,
    ``speakers`` gives the name of a speaker label where it is another.
    """

    item: Item
    evidence: tuple[Heard, ...]
    before: tuple[Heard, ...] = ()
    after: tuple[Heard, ...] = ()
    attendees: tuple[str, ...] = ()
    speakers: tuple[tuple[str, str], ...] = ()
    meeting_date: dt.date | None = None

    def name_of(self, speaker: str | None) -> str | None:
        """The attendee who is heard under a label."""
        return dict(self.speakers).get(speaker or "", speaker)


_MISMATCHES: Final = (
    "uncovered", "uncovered_run", "out_of_order", "number_unsaid", "number_left_out", "name_unsaid", "day_unsaid",
    "negation_differs", "cut_at_end", "cut_at_start", "very_short",
    "owner_unsaid", "owner_other_named", "owner_other_speaks", "owner_left_out", "owner_not_there",
    "due_contradicts", "due_without_words", "due_words_unsaid", "due_past", "due_left_out",
    "question_not_answered", "refused_after", "taken_back_after", "contradicted_after", "hedged", "joke", "past", "left_open",
    "quoted_others", "no_cue", "statement_as_question", "answered_after", "evidence_adrift", "evidence_thin",
)  # fmt: skip
"""Figures that speak against an item: more of one never raises the probability."""
_SUPPORTS: Final = ("cue", "accepted", "owner_first_person", "owner_named", "due_agrees", "repeated")
"""Figures that speak for it: more of one never lowers the probability."""
CONTRADICTIONS: Final = frozenset(
    {"uncovered", "number_unsaid", "name_unsaid", "day_unsaid", "owner_unsaid", "owner_not_there", "due_contradicts",
     "due_past", "cut_at_end", "taken_back_after", "negation_differs"}
)  # fmt: skip
"""Those of the figures against that are hardly a matter of degree."""
_NEUTRAL: Final = tuple(f"is_{kind}" for kind in KINDS)
FEATURES: Final = (*_MISMATCHES, *_SUPPORTS, *_NEUTRAL)
_MOST_CHARS: Final = 2_000
_MOST_QUOTES: Final = 16
AGAINST: Final = len(_MISMATCHES)
FOR: Final = len(_SUPPORTS)


def features(case: Case) -> npt.NDArray[np.float32]:
    """Figures of a case in the order of ``FEATURES``, shape (features,); time is bounded, long texts are cut."""
    case = _bounded(case)
    found: dict[str, float] = {f"is_{case.item.kind}": 1.0}
    _wording(case, found)
    _edges(case, found)
    _manner(case, found)
    _later(case, found)
    if case.item.kind == "action_item":
        _owner(case, found)
        _due(case, found)
    return np.array([found.get(name, 0.0) for name in FEATURES], np.float32)


def _bounded(case: Case) -> Case:
    texts = (case.item.text, *(h.text for h in (*case.before, *case.evidence, *case.after)))
    if len(case.evidence) <= _MOST_QUOTES and all(len(text) <= _MOST_CHARS for text in texts):
        return case

    def cut(heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
        return tuple(replace(h, text=h.text[:_MOST_CHARS]) for h in heard[:_MOST_QUOTES])

    item = replace(
        case.item, text=case.item.text[:_MOST_CHARS], due_text=(case.item.due_text or "")[:200] or None
    )
    return replace(
        case, item=item, evidence=cut(case.evidence), before=cut(case.before), after=cut(case.after)
    )


# --- words, numbers, names, days


def _wording(case: Case, found: dict[str, float]) -> None:
    item = case.item
    said = [heard.text for heard in case.evidence]
    stems = {s for text in said for s in w.content(text)}
    mine = w.content(item.text)
    granted = {w.stem(part) for name in _granted(case) for part in w.plain(name).split()}
    missing = [s for s in mine if s not in stems and s not in granted and not _near(s, stems)]
    found["uncovered"] = len(missing) / max(3, len(mine))
    found["uncovered_run"] = min(3, _longest_run(mine, set(missing))) / 3
    joined = " ".join(said)
    found["out_of_order"] = 1 - fuzz.token_ratio(w.plain(item.text), w.plain(joined)) / 100
    in_order = max((fuzz.partial_ratio(w.plain(item.text), w.plain(text)) for text in said), default=0.0)
    found["out_of_order"] = min(found["out_of_order"], 1 - in_order / 100)
    values = w.numbers(joined)
    extra = w.numbers(item.text) - values
    if item.due is not None:
        extra -= {float(item.due.day), float(item.due.year)}
    found["number_unsaid"] = min(2, len(extra)) / 2 if not extra else 1.0
    found["number_left_out"] = (
        float(bool(values) and not w.numbers(item.text) and item.kind != "open_question") * 0.5
    )
    found["name_unsaid"] = float(bool(_unsaid_names(case, joined)))
    days = _days(item.text) - _days(joined)
    if item.due is not None:
        days -= {w.WEEKDAYS[item.due.weekday()], w.MONTHS[item.due.month - 1]}
    found["day_unsaid"] = float(bool(days))
    found["negation_differs"] = _negation_differs(item.text, said)
    found["repeated"] = float(len({h.id for h in case.evidence}) > 1)
    found["evidence_thin"] = float(len(w.content(joined)) < 2)


def _granted(case: Case) -> list[str]:
    """Names that may stand in the text without being said: who speaks, and the owner."""
    names = [case.name_of(heard.speaker) for heard in case.evidence]
    return [name for name in (*names, case.item.owner) if name]


def _near(stem: str, stems: set[str]) -> bool:
    """Whether a stem differs from one that was said in its ending only, or by a misheard letter."""
    return any(
        (len(stem) >= 4 and (other.startswith(stem) or stem.startswith(other)) and len(other) >= 4)
        or (len(stem) >= 5 and Indel.normalized_similarity(stem, other) >= 0.84)
        for other in stems
    )


def _longest_run(stems: Sequence[str], missing: set[str]) -> int:
    best = run = 0
    for s in stems:
        run = run + 1 if s in missing else 0
        best = max(best, run)
    return best


def _unsaid_names(case: Case, joined: str) -> list[str]:
    said = set(w.plain(joined).split()) | {p for name in _granted(case) for p in w.plain(name).split()}
    people = {part for name in case.attendees for part in w.plain(name).split()}
    out = []
    for place, token in enumerate(w.tokens(case.item.text)):
        low = token.low.removesuffix("'s")
        inside = place > 0 and token.text[:1].isupper()
        named = low in people and token.text[:1].isupper()
        day = low in w.WEEKDAYS or low in w.MONTHS
        if not (inside or named) or day or all(word in w.STOP for word in w.plain(token.text).split()):
            continue
        if low not in said and not _near(low, said):
            out.append(token.text)
    return out


def _days(text: str) -> set[str]:
    low = set(w.plain(text).split())
    return {
        day
        for day in (*w.WEEKDAYS, *w.MONTHS)
        if (day in low or f"{day}s" in low) and day not in ("may", "march")
    }


def _negation_differs(text: str, said: Sequence[str]) -> float:
    """Whether what the item was taken from is negated and the item is not, or the other way round."""
    mine = w.tokens(text)
    best: tuple[int, float] | None = None
    for quote in said:
        words = w.tokens(quote)
        span = _taken_from([m.low for m in mine], [o.low for o in words])
        if span is None:
            continue
        part = words[span[0] : span[1] + 1]
        shared = len({m.low for m in mine} & {o.low for o in part})
        if best is None or shared > best[0]:
            best = shared, float(w.negations(mine) != w.negations(part))
    return best[1] if best is not None else 0.0


# --- where the item was cut out of what was said


def _edges(case: Case, found: dict[str, float]) -> None:
    """What of the clause that the item was taken from was left out before and after it."""
    mine = [token.low for token in w.tokens(case.item.text)]
    found["very_short"] = float(len(w.content(case.item.text)) < 2)
    core = _core(case)
    if core is None or not mine:
        return
    said = w.tokens(core.text)
    span = _taken_from(mine, [token.low for token in said])
    if span is None:
        return
    first, last = span
    elsewhere = {s for h in case.evidence if h is not core for s in w.content(h.text)}
    known = {w.stem(word) for word in mine} | elsewhere | _spoken_names(case)
    known |= {w.stem(word) for word in w.plain(case.item.due_text or "").split()}
    behind, before = [], []
    for place in range(last, len(said)):
        if place > last:
            behind.append(said[place].low)
        if said[place].ends:
            break
    for place in range(first - 1, -1, -1):
        if said[place].ends:
            break
        before.append(said[place].low)
    found["cut_at_end"] = min(2, _left_out(behind, known)) / 2
    found["cut_at_start"] = min(2, _left_out(before, known)) / 2
    open_ended = mine[-1] in w.STOP and bool(behind)
    found["cut_at_end"] = max(found["cut_at_end"], 0.5 * open_ended)


def _taken_from(mine: Sequence[str], said: Sequence[str]) -> tuple[int, int] | None:
    """First and last word of what an item was taken from; None where less than half of it is there."""
    blocks = [b for b in LCSseq.opcodes(mine, said) if b.tag == "equal"]
    if not blocks or sum(b.src_end - b.src_start for b in blocks) * 2 < len(mine):
        return None
    return blocks[0].dest_start, blocks[-1].dest_end - 1


def _left_out(lows: Sequence[str], known: set[str]) -> int:
    """Words with a meaning of their own that are neither told elsewhere nor a day."""
    text = " ".join(low for low in lows if low not in _SAYS_LITTLE)
    days = " ".join(match.group() for match in w.DAY_WORDS.finditer(text))
    told = known | {w.stem(word) for word in days.split()}
    return sum(s not in told for s in w.content(text))


_SAYS_LITTLE: Final = frozenset(
    w.listed(
        """somebody someone anybody everybody need needs want wants say said think mean guess propose suggest honestly
        maybe perhaps decided agreed agree remind sure know really actually simply first next probably today again"""
    )
)
"""Words around a matter that can be left out without loss."""


def _spoken_names(case: Case) -> set[str]:
    return {w.stem(part) for name in case.attendees for part in w.plain(name).split()}


# --- how it was said


def _manner(case: Case, found: dict[str, float]) -> None:
    item, last = case.item, len(case.evidence) - 1
    core = _core(case)
    text = core.text if core is not None else ""
    low = w.plain(text)
    sentence = _sentence(item.text, text)
    asked = sentence.endswith("?") or bool(w.QUESTION.match(w.plain(sentence)))
    replies = [
        h
        for h in (*case.evidence[_index(case, core) + 1 :], *case.after[:3])
        if core is None or h.speaker != core.speaker
    ]
    accepted = any(w.ACCEPTS.match(w.plain(h.text)) or w.COMMITS.search(w.plain(h.text)) for h in replies[:3])
    refused = any(w.REFUSES.match(w.plain(h.text)) for h in replies[:2])
    everything = " ".join(w.plain(h.text) for h in case.evidence)
    if item.kind in ("open_question", "answered_question"):
        found["cue"] = float(asked)
        found["statement_as_question"] = float(
            not asked and "?" not in " ".join(h.text for h in case.evidence)
        )
        return
    cue = w.DECIDES if item.kind == "decision" else w.COMMITS
    with_cue = bool(cue.search(everything)) or (
        item.kind == "action_item" and bool(w.ASKS_SOMEBODY.search(everything))
    )
    found["cue"] = float(with_cue)
    found["no_cue"] = float(not with_cue and not accepted)
    found["accepted"] = float(accepted)
    only_asked = asked and not (
        item.kind == "action_item" and re.match(r"(?:\w+ ){0,3}(?:can|could|would|will) you", low)
    )
    others = " ".join(w.plain(h.text) for h in case.evidence if h is not core)
    found["question_not_answered"] = float(only_asked and not accepted and not w.DECIDES.search(others))
    open_end = " ".join([everything, *(w.plain(h.text) for h in case.after[:2])])
    found["left_open"] = float(bool(w.LEFT_OPEN.search(open_end)))
    found["refused_after"] = float(refused and not accepted)
    found["hedged"] = float(bool(w.HEDGES.search(low)) and not accepted)
    found["joke"] = float(
        bool(w.JOKES.search(" ".join([everything, *(w.plain(h.text) for h in case.after[:2])])))
    )
    found["past"] = float(bool(w.PAST.search(low)))
    found["quoted_others"] = float(bool(w.QUOTES_OTHERS.search(low)))
    found["evidence_adrift"] = float(last >= 0 and core is not None and _overlap(item.text, core.text) < 0.34)


def _sentence(text: str, said: str) -> str:
    """The sentence of an utterance that a text was taken from."""
    parts: list[str] = re.findall(r"[^.?!…]+[.?!…]*", said) or [said]
    return max((p.strip() for p in parts), key=lambda part: (_overlap(text, part), -len(part)))


def _core(case: Case) -> Heard | None:
    """The piece of evidence that shares most with the item."""
    return max(case.evidence, key=lambda h: _overlap(case.item.text, h.text), default=None)


def _index(case: Case, core: Heard | None) -> int:
    return case.evidence.index(core) if core is not None else -1


@lru_cache(maxsize=8_192)
def _overlap(text: str, other: str) -> float:
    mine = set(w.content(text))
    return len(mine & set(w.content(other))) / len(mine) if mine else 0.0


# --- what came later


def _later(case: Case, found: dict[str, float]) -> None:
    core = _core(case)
    rest = case.evidence[_index(case, core) + 1 :] if core is not None else ()
    back = against = 0.0
    answered = False
    for heard in (*rest, *case.after):
        low = w.plain(heard.text)
        shared = _overlap(case.item.text, heard.text)
        if w.TAKES_BACK.search(low) and (shared > 0 or heard in case.after[:2] or heard in rest):
            back = max(back, 0.4 + 0.6 * min(1.0, 2 * shared))
        if shared >= 0.34 and _negation_differs(case.item.text, [heard.text]):
            against = max(against, shared)
        answered = answered or (shared >= 0.5 and not heard.text.rstrip().endswith("?"))
    found["taken_back_after"] = back
    found["contradicted_after"] = against
    found["answered_after"] = float(answered and case.item.kind == "open_question")


# --- owner and date


def _owner(case: Case, found: dict[str, float]) -> None:
    owner = case.item.owner
    speak = {case.name_of(h.speaker) for h in case.evidence if w.COMMITS.search(w.plain(h.text))}
    answers = {case.name_of(h.speaker) for h in case.evidence[1:] if w.ACCEPTS.match(w.plain(h.text))}
    of_himself = {case.name_of(h.speaker) for h in case.evidence if w.OF_ONESELF.search(w.plain(h.text))}
    named = {name for name in case.attendees if _named(name, case)}
    if owner is None:
        found["owner_left_out"] = float(bool(speak - {None}) and len(named) <= 1)
        return
    first_person, is_named = owner in speak | answers | of_himself, _named(owner, case)
    found["owner_first_person"], found["owner_named"] = float(first_person), float(is_named)
    core = _core(case)
    low = w.plain(core.text) if core is not None else ""
    taken_on = core is not None and case.name_of(core.speaker) not in (owner, None) and w.COMMITS.search(low)
    to_owner = core is not None and (
        _named(owner, replace(case, evidence=(core,))) or w.ASKS_SOMEBODY.search(low)
    )
    there = any(case.name_of(h.speaker) == owner for h in case.evidence)
    found["owner_unsaid"] = float(not first_person and not is_named)
    found["owner_not_there"] = float(not there and not is_named)
    found["owner_other_named"] = float(bool(named - {owner}) and not is_named and not first_person)
    found["owner_other_speaks"] = float(
        bool(taken_on and not to_owner) or bool(speak - {owner, None} and not first_person)
    )


def _named(name: str, case: Case) -> bool:
    """Whether a person is named in the evidence: first name, last name or as written."""
    parts = {part for part in w.plain(name).split() if len(part) > 1}
    for heard in case.evidence:
        for token in w.tokens(heard.text):
            low = token.low.removesuffix("'s")
            everyday = low in (
                "will",
                "may",
                "mark",
                "bill",
                "grace",
                "rose",
                "art",
                "april",
                "hope",
                "joy",
                "sue",
                "frank",
            )
            if low in parts and (not everyday or token.text[:1].isupper()):
                return True
    return False


def _due(case: Case, found: dict[str, float]) -> None:
    item, day = case.item, case.meeting_date
    said = " ".join(w.plain(h.text) for h in case.evidence)
    if item.due_text:
        phrase = w.plain(item.due_text).split()
        found["due_words_unsaid"] = float(sum(word not in said.split() for word in phrase) > len(phrase) / 3)
    if item.due is None:
        found["due_left_out"] = float(not item.due_text and bool(w.DAY_WORDS.search(said))) * 0.5
        return
    found["due_past"] = float(day is not None and item.due < day)
    found["due_without_words"] = float(not item.due_text)
    verdict = None
    if day is not None:
        verdict = w.due_matches(item.due, item.due_text, day) if item.due_text else None
        spoken = (w.due_matches(item.due, match.group(), day) for match in w.DAY_WORDS.finditer(said))
        if verdict is None and any(spoken):
            verdict = True
    found["due_contradicts"] = float(verdict is False)
    found["due_agrees"] = float(verdict is True)
