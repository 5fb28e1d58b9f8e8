"""Nothing in the minutes that nobody said: owners, dates, numbers and words against the evidence of each item."""

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pytest

from benchmarks.scripts import Script, context_of, spoken_of
from flows.minutes_model import load_model
from models.everyday_meetings import FOLDER
from operators.settings import Settings
from operators.summary import summary
from operators.understand.engine import Attendee, MeetingContext, RuleEngine, Spoken
from operators.understand.hybrid import HybridEngine
from operators.understand.types import DraftItem, Quote

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = frozenset(
    """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half dozen""".split()  # noqa: SIM905
)
_EVERY = {"rules": 3, "model": 8}
"""Every so manieth training meeting is read."""


@dataclass(frozen=True)
class Told:
    """An item or a sentence of the summary, what it rests on, and the meeting's day."""

    meeting: str
    item: DraftItem | None
    text: str
    said: Sequence[Spoken]
    quoted: str
    date: dt.date | None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _told(script: Script, engine: RuleEngine) -> Iterator[Told]:
    spoken, context = spoken_of(script), context_of(script)
    by_id = {s.id: s for s in spoken}
    state = engine.start(context)
    for said in spoken:
        state = engine.step(state, said)
    state = engine.finish(state)
    items = tuple(i for i in engine.items(state) if not i.withdrawn)

    def quoted(quotes: Sequence[Quote]) -> str:
        return " ".join(by_id[q.utterance_id].text[q.first : q.last] for q in quotes)

    for item in items:
        said_in = [by_id[q.utterance_id] for q in item.evidence]
        yield Told(script["meeting"], item, item.text, said_in, quoted(item.evidence), context.date)
    for line in summary(state, context, items):
        said_in = [by_id[q.utterance_id] for q in line.evidence]
        yield Told(script["meeting"], None, line.text, said_in, quoted(line.evidence), context.date)


@lru_cache(maxsize=2)
def told(name: str) -> tuple[Told, ...]:
    scripts = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(FOLDER.glob("*.json"))]
    training = [s for s in scripts if s["split"] == "train"]
    engine = RuleEngine()
    if name == "model":
        scorer, appraisal = load_model(Settings(model="released"))
        engine = HybridEngine(scorer=scorer, appraisal=appraisal)
    return tuple(one for script in training[:: _EVERY[name]] for one in _told(script, engine))


both = pytest.mark.parametrize("engine", ["rules", "model"])


@both
def test_owners_speak_or_are_named_in_the_evidence(engine: str) -> None:
    owned = [(t, t.item.owner) for t in told(engine) if t.item is not None and t.item.owner]
    assert len(owned) > 20
    for one, owner in owned:
        speaks = any(s.speaker == owner for s in one.said)
        assert speaks or set(_words(owner)) & set(_words(one.quoted)), (
            one.meeting,
            owner,
            one.text,
            one.quoted,
        )


@both
def test_dates_are_said_in_the_evidence_and_fall_on_the_day_that_was_said(engine: str) -> None:
    dated = [(t, t.item) for t in told(engine) if t.item is not None and (t.item.due or t.item.due_text)]
    assert len(dated) > 20
    for one, item in dated:
        assert item.due_text, "a date that nobody said"
        place = (one.meeting, item.due_text, item.due, one.text, one.quoted)
        assert " ".join(_words(item.due_text)) in " ".join(_words(one.quoted)), place
        if item.due is None or one.date is None:
            continue
        assert one.date <= item.due <= one.date + dt.timedelta(days=366), place
        named = [d for d in _DAYS if d in _words(item.due_text)]
        after = re.search(r"\b(?:week|weeks|after|before)\b", item.due_text.lower())
        if len(named) == 1 and not after:
            assert item.due.weekday() == _DAYS.index(named[0]), place
        if _words(item.due_text)[-1] == "tomorrow" and not after:
            assert item.due == one.date + dt.timedelta(days=1), place
        number = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)\b", item.due_text.lower())
        if number:
            assert item.due.day == int(number[1]), place


@both
def test_numbers_are_said_in_the_evidence(engine: str) -> None:
    counted = 0
    for one in told(engine):
        mine, said = set(_words(one.text)), set(_words(one.quoted))
        numbers = {w for w in mine if w in _NUMBERS or re.search(r"\d", w)}
        if one.item is None:
            # A task in the summary has its owner before it and the words of its date behind it.
            said |= {w for s in one.said for w in _words(s.text)}
        counted += len(numbers)
        assert numbers <= said, (one.meeting, numbers - said, one.text, one.quoted)
    assert counted > 20


@both
def test_items_are_made_of_words_from_the_evidence(engine: str) -> None:
    """Contractions are written out, so that only longer words are compared."""
    for one in told(engine):
        if one.item is not None:
            missing = {w for w in _words(one.text) if len(w) > 4} - set(_words(one.quoted))
            assert not missing, (one.meeting, missing, one.text, one.quoted)


def test_a_date_said_late_in_long_talk_is_evidence() -> None:
    long = " and there was more of it, which took quite a while to tell"
    second = 1_000_000_000
    lines = [
        ("Mira", f"I'll order the new chairs for the hall{long}.", 20),
        ("Tom", f"Good{long}.", 10),
        ("Mira", f"The new chairs for the hall, I'll order them by Friday{long}.", 12),
    ]
    rules, at = RuleEngine(), 0
    state = rules.start(
        MeetingContext(None, dt.date(2026, 3, 10), (Attendee("Mira", "Mira"), Attendee("Tom", "Tom")))
    )
    for number, (speaker, text, length) in enumerate(lines):
        state = rules.step(state, Spoken(f"u{number}", at, at + length * second, speaker, text))
        at += length * second
    (item,) = [i for i in rules.items(rules.finish(state)) if i.kind == "action_item"]
    assert item.due == dt.date(2026, 3, 13)
    assert {q.utterance_id for q in item.evidence} >= {"u0", "u2"}


def _due(*words: str) -> tuple[str | None, dt.date | None]:
    """What is due when so much is said on Tuesday, 10 March 2026."""
    rules = RuleEngine()
    state = rules.start(MeetingContext(None, dt.date(2026, 3, 10), (Attendee("Mira", "Mira"),)))
    for number, text in enumerate(words):
        state = rules.step(
            state, Spoken(f"u{number}", number * 10**10, number * 10**10 + 10**9, "Mira", text)
        )
    (item,) = rules.items(rules.finish(state))
    return item.due_text, item.due


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("I'll send the plan to Leo by Friday the 13th.", dt.date(2026, 3, 13)),
        ("I'll send the plan to Leo by Friday the 14th.", None),
        ("I'll send the plan to Leo on Friday first thing.", dt.date(2026, 3, 13)),
        ("i'll send the plan to Leo on friday first thing friday first thing", dt.date(2026, 3, 13)),
    ],
)
def test_a_day_and_its_date_must_agree(text: str, due: dt.date | None) -> None:
    words, found = _due(text)
    assert words is not None and "riday" in words
    assert found == due
