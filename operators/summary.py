"""The summary of a meeting: which items and sentences it tells, in the words that were said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import log

from operators.compose import clean, inside, trim, without_greeting
from operators.language.gist import NUMBERS, TIMES
from operators.language.slips import MONTHS
from operators.language.text import clauses_of, stem, stems
from operators.language.words import words_in
from operators.understand.state import Draft, State, Telling
from operators.understand.types import DraftItem, MeetingContext, Quote, SummarySentence

MAX_SUMMARY_WORDS = 160
MAX_SUMMARY_TASKS = 5
_KEPT = 8192
"""Texts of which it is kept what they are: a summary that is made anew again and again weighs mostly what it weighed."""


def forget_made() -> None:
    """Forget what was kept of sentences, as a purged meeting's must be."""
    for kept in (clean, _plainness, _only_greets, _times_in):
        kept.cache_clear()


@lru_cache(maxsize=_KEPT)
def _only_greets(text: str) -> bool:
    """Whether an utterance holds greetings, thanks and what is said beside them, and nothing more."""
    sentences = [[t for c in clauses_of(s) for t in c.tokens] for s in re.split(r"(?<=[.?!…])\s+", text)]
    left = [without_greeting(words) for words in sentences if words]
    greets = any(not kept for kept in left)
    return greets and all(len(trim(list(kept))) < 4 for kept in left)


_MYSELF = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b")
_A_NAME = re.compile(r"[^\W\d_]{2}[^\d_]*")
"""What people are called, unlike the marks that machines give to voices."""


_COUNTED = TIMES | NUMBERS
_MONTHS = MONTHS - {"may"}  # which mostly is no month


@lru_cache(maxsize=_KEPT)
def _times_in(text: str) -> frozenset[str]:
    """Times and numbers that a text names."""
    words = {w.strip(".,;:?!") for w in text.lower().split()}
    return frozenset(w for w in words if w in _COUNTED or w[:1].isdigit())


def _put_right(telling: Telling, later: Iterable[tuple[int, str]]) -> bool:
    """Whether a question for a day or number got another one, on the same matter, in what was said or settled later."""
    asked = _times_in(telling.text) if "?" in telling.text else frozenset()
    if not asked:
        return False
    about = telling.stems - {stem(w) for w in asked} | {stem(w) for w in asked & _MONTHS}
    return any(
        index > telling.index and _times_in(text) - asked and about & stems(text.lower())
        for index, text in later
    )


def _changed(telling: Telling, resting: Sequence[DraftItem]) -> bool:
    """Whether one of the items that rest on an utterance has another day or number than was said in it."""
    said = _times_in(telling.text) if resting else frozenset()
    return bool(said) and any(
        (held := _times_in(i.text))
        and said - held
        and held - said
        and telling.stems & stems(i.text.lower()) - {stem(w) for w in held}
        for i in resting
    )


def _fit_to_tell(
    said: Sequence[Telling], drafts: Iterable[Draft], live: Sequence[DraftItem]
) -> list[Telling]:
    """What was said without greetings, days that were put right later, and what items changed; all if nothing is left."""
    place_of = {p.quote.utterance_id: p.index for d in drafts for p in d.evidence}
    later = [(place_of.get(i.evidence[-1].utterance_id, -1), i.text) for i in live if i.evidence]
    later += [(t.index, t.text) for t in said if "?" not in t.text]
    later = [(index, text) for index, text in later if _times_in(text)]
    resting: dict[str, list[DraftItem]] = {}
    for item in live:
        for utterance_id in {q.utterance_id for q in item.evidence}:
            resting.setdefault(utterance_id, []).append(item)
    return [
        t
        for t in said
        if not _only_greets(t.text)
        and not _put_right(t, later)
        and not _changed(t, resting.get(t.quote.utterance_id, ()))
    ] or list(said)


def summary(state: State, context: MeetingContext, items: Sequence[DraftItem]) -> tuple[SummarySentence, ...]:
    """What the meeting was about, in its own words, at most 160 words.

    Decisions first, then who does what, then for each key topic (or item of the agenda) that was
    discussed and is not yet mentioned the best sentence said about it, then what else weighs most.
    What was taken back is left out, and so is what an item was made of. Empty only when nothing was
    said (or all of it was taken back). Where a model read along, only items more likely than not are
    told, and what was said has who said it before it.
    """
    by_model = state.memory is not None
    out: list[SummarySentence] = []
    used: set[str] = set()
    room = MAX_SUMMARY_WORDS

    def add(text: str, evidence: tuple[Quote, ...], item_id: str | None = None) -> None:
        nonlocal room
        length = len(text.split())
        key = " ".join(sorted(stems(text.lower())))
        if text and length <= room and key not in used and evidence:
            used.add(key)
            out.append(SummarySentence(text, evidence, item_id))
            room -= length

    def sentence_of(telling: Telling) -> str:
        text = clean(telling.text, 26)
        if by_model and _called(telling.speaker, context) is not None:
            return _attributed(text, telling.speaker, context)
        who = _called(telling.speaker, context) or state.roster.of_speaker(telling.speaker)
        return f"{who}: {text}" if who and _A_NAME.fullmatch(who) and _MYSELF.search(text) else text

    undone = {
        p.quote.utterance_id for d in state.drafts if _no_longer(d) for p in d.evidence if p.weight >= 2
    }
    said = [t for t in (*state.told, *state.block) if t.quote.utterance_id not in undone]
    called = frozenset(
        w.lower() for n in (*(a.name for a in context.attendees), *state.speakers) for w in n.split()
    )
    live = [i for i in items if not i.withdrawn]
    said = _fit_to_tell(said, state.drafts, live)
    likely = [i for i in live if not by_model or i.confidence >= _LIKELY]
    settled = [i for i in likely if i.kind == "decision"]
    topics = [stems(t.lower()) for t in (context.key_topics or context.agenda)]
    for item in sorted(settled, key=lambda i: -i.confidence)[:5]:
        add(_decision_sentence(item.text), item.evidence, item.id)
    tasks = [i for i in likely if i.kind == "action_item"]
    for item in sorted(tasks, key=lambda i: -i.confidence)[:MAX_SUMMARY_TASKS]:
        if room > MAX_SUMMARY_WORDS // 2:
            add(_task_sentence(item, context if by_model else None, called), item.evidence, item.id)
    shown = {q.utterance_id for s in out for q in s.evidence}
    shown |= {i.evidence[0].utterance_id for i in items if i.kind in ("open_question", "answered_question")}
    told = len(out)
    for topic in topics:
        if not topic or any(len(topic & stems(s.text.lower())) * 2 >= len(topic) for s in out):
            continue
        best = max(said, key=lambda t: (_about(topic, t), t.weight, -t.index), default=None)
        if best is not None and _about(topic, best) * 2 >= len(topic):
            add(sentence_of(best), (best.quote,))
    if by_model:
        most = max(_SHORT_SUMMARY, state.count // _TURNS_A_SENTENCE)
        for telling in _most_telling([t for t in said if t.quote.utterance_id not in shown], out, most):
            add(sentence_of(telling), (telling.quote,))
    frequency: dict[str, int] = {}
    for telling in said:
        for stem_ in telling.stems:
            frequency[stem_] = frequency.get(stem_, 0) + 1
    for telling in sorted(said, key=lambda t: (-_weight(t, frequency), t.index)):
        if len(out) >= max(4, told + 2, len(settled) + len(topics)):
            break
        if telling.quote.utterance_id in shown or (out and len(telling.stems) < 3):
            continue
        if not out or len(clean(telling.text, 26).split()) > 4:
            add(sentence_of(telling), (telling.quote,))
    if not out and said:
        add(sentence_of(said[0]), (said[0].quote,))
    place = {t.quote.utterance_id: t.index for t in said}
    return tuple(sorted(out, key=lambda s: place.get(s.evidence[0].utterance_id, -1)) if not settled else out)


def _no_longer(draft: Draft) -> bool:
    """Whether the words of an item are not what holds: taken back, refused, a joke, or put right later."""
    return draft.withdrawn or draft.mode == "refused" or not _NOT_TOLD.isdisjoint(draft.reasons)


_NOT_TOLD = frozenset(("date changed", "number changed", "only a joke", "tag_of_a_joke"))
_SHORT_SUMMARY = 2
_TURNS_A_SENTENCE = 25
"""A sentence of the summary for so many turns, besides decisions and tasks."""


def _most_telling(said: Sequence[Telling], out: Sequence[SummarySentence], most: int) -> tuple[Telling, ...]:
    """What the model finds worth telling, the best first; words that were told already count less."""
    covered = set().union(*(stems(s.text.lower()) for s in out)) if out else set()
    left = [t for t in said if t.weight >= _WORTH and len(t.stems) >= 3]
    count: dict[str, int] = {}
    for telling in said:
        for stem_ in telling.stems:
            count[stem_] = count.get(stem_, 0) + 1
    value = {t.index: t.weight * _common(t.stems, count) * _plainness(t.text) for t in left}
    chosen: list[Telling] = []
    # What an utterance is worth only falls as more is told: most are looked at once, not once a sentence.
    waiting = [(-2.0 * value[t.index], t.index, place) for place, t in enumerate(left)]
    heapify(waiting)
    while waiting and len(chosen) < most:
        known, index, place = waiting[0]
        best = left[place]
        fresh = len(best.stems - covered)
        worth = -value[index] * (1 + fresh / len(best.stems))
        if worth != known:
            heapreplace(waiting, (worth, index, place))
            continue
        heappop(waiting)
        if fresh >= 2:
            chosen.append(best)
            covered |= best.stems
    return tuple(chosen)


_WORTH = 0.8
"""Weight, four times the probability, from which the model finds an utterance worth telling."""


_LIKELY = 0.5
"""Confidence from which the summary of a meeting that a model read tells an item; all others stand in their lists."""


def _common(known: frozenset[str], count: dict[str, int]) -> float:
    """How much the words are those of the meeting's matter."""
    return sum(log(1 + count[s]) for s in known) / (len(known) + 3)


_WRITTEN = words_in("the a of to and in for on with be is will that which as by it")
_CHATTED = words_in("i you um uh yeah okay mm hmm i'm we're you're don't know like just well so my me")


@lru_cache(maxsize=_KEPT)
def _plainness(text: str) -> float:
    """How much of what readers of a summary expect: whole phrases, little of what only talk has."""
    words = re.findall(r"[\w']+", text.lower())
    written, chatted = (sum(w in kind for w in words) / max(1, len(words)) for kind in (_WRITTEN, _CHATTED))
    return (0.3 + written) * (1 - chatted)


def _decision_sentence(text: str) -> str:
    return text.rstrip(".") + "."


def _task_sentence(
    item: DraftItem, context: MeetingContext | None = None, names: frozenset[str] = frozenset()
) -> str:
    """Who does what, and by when in the words that were said, unless they leave the date open."""
    who = (_called(item.owner, context) if context is not None else None) or item.owner
    due_text = None if item.due_open and item.due is None else item.due_text
    return _task_told(who, inside(item.text, names), item.text, due_text)


def _task_told(who: str | None, what: str, text: str, due_text: str | None) -> str:
    what, when = what.rstrip("."), due_text if due_text and due_text not in text else ""
    if when:
        what = f"{what[:-1]}; {when})" if what.endswith(")") else f"{what} ({when})"
    return f"{who or 'To do'}: {what}."


def _attributed(text: str, speaker: str | None, context: MeetingContext) -> str:
    """What somebody said, after who it was; as it is where the list of attendees does not tell."""
    who = _called(speaker, context)
    return f"{who}: {text}" if who and text else text


def _called(who: str | None, context: MeetingContext) -> str | None:
    """An attendee's name; where it is no more than a mark (*PM*), the role."""
    attendee = next((a for a in context.attendees if who is not None and who in (a.speaker, a.name)), None)
    if attendee is None:
        return None
    mark = len(attendee.name) <= 3 and attendee.name.isupper()
    return f"The {attendee.role}" if mark and attendee.role else attendee.name


def _about(topic: frozenset[str], telling: Telling) -> int:
    return len(topic & telling.stems)


def _weight(telling: Telling, frequency: dict[str, int]) -> float:
    shared = sum(frequency[s] - 1 for s in telling.stems)
    return telling.weight + shared / (1 + len(telling.stems))


def told_as(
    told: SummarySentence, item: DraftItem, text: str, owner: str | None, due_text: str | None
) -> SummarySentence | None:
    """A sentence made of an item, told as that stands after checks; None where it was made of something else."""
    if told.item_id != item.id:
        return None
    if item.kind == "decision":
        return replace(told, text=_decision_sentence(text))
    who = told.text.partition(": ")[0] if owner == item.owner else owner
    return replace(told, text=_task_told(who, inside(text), text, due_text))
