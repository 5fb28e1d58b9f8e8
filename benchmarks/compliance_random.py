"""Random meetings under random rule files: items that claim what nobody said, owners that look alike, bent texts."""

import datetime as dt
from dataclasses import replace
from random import Random
from typing import Final

from contracts.minutes import Stage
from contracts.sal import RuleSet
from operators.understand.types import Attendee, DraftItem, Kind, MeetingContext, Quote, Spoken
from operators.understand.types import SummarySentence as DraftSentence
from operators.verify.check import Verifier
from operators.verify.types import Draft

from .compliance_holding import GuardedMeeting, Tally
from .random_rules import PEOPLE, random_rules, random_text

_START_NS: Final = 1_800_000_000_000_000_000
_S: Final = 10**9
_EARLY: Final[tuple[Stage, ...]] = ("provisional", "settled")
_KINDS: Final[tuple[Kind, ...]] = ("decision", "action_item", "open_question", "answered_question")
_DRAFTS: Final = 24
_ITEMS: Final = 14


def random_meeting(
    seed: int, number: int, rules: RuleSet | None, verifier: Verifier | None, tally: Tally
) -> None:
    """One meeting of random drafts; under a random rule file where none is given."""
    rng = Random(f"{seed}/{number}")
    under = rules or random_rules(rng, rng.randint(1, 12))
    guard = verifier if verifier is not None and rules is not None else Verifier(rules=under)
    meeting_id = f"random-{number}"
    meeting = GuardedMeeting(meeting_id, under, guard, tally)
    spoken = {u.id: u for u in (_utterance(rng, n) for n in range(30))}
    context = MeetingContext(
        "Random", rng.choice((None, dt.date(2026, 3, 2))), tuple(Attendee(p) for p in sorted(set(PEOPLE) - {""})), (),
        tuple(dict.fromkeys(random_text(rng) or "topic" for _ in range(rng.randint(0, 2)))),
    )  # fmt: skip
    items: dict[str, DraftItem] = {}
    for place in range(_DRAFTS):
        for _ in range(rng.randint(1, 4)):
            item = _item(rng, f"i{rng.randrange(_ITEMS)}", spoken)
            items[item.id] = item
        if items and rng.random() < 0.15:
            gone = rng.choice(sorted(items))
            items[gone] = replace(items[gone], withdrawn=True)
        last = place == _DRAFTS - 1
        stage: Stage = "final" if last else rng.choice(_EARLY)
        summary = tuple(
            DraftSentence(random_text(rng) or "x", (_quote(rng, spoken),)) for _ in range(rng.randint(0, 2))
        )
        draft = Draft(
            meeting_id, stage, context, _START_NS + 600 * _S, tuple(items.values()), spoken, summary,
            zero_ns=_START_NS, start_ns=_START_NS, duration_ns=600 * _S,
            speakers=tuple(sorted({u.speaker for u in spoken.values() if u.speaker})),
        )  # fmt: skip
        meeting.feed(draft)
    guard.forget(meeting_id)
    tally.hours += 600 / 3600


def _utterance(rng: Random, number: int) -> Spoken:
    at_ns = _START_NS + number * 5 * _S
    text = random_text(rng) or "right"
    return Spoken(f"mic/1/{number}", at_ns, at_ns + 3 * _S, rng.choice((None, *PEOPLE[:6])), text, "mic")


def _quote(rng: Random, spoken: dict[str, Spoken]) -> Quote:
    if rng.random() < 0.05:
        return Quote("mic/1/nowhere", 0, 5)
    said = spoken[rng.choice(sorted(spoken))]
    first = rng.randrange(len(said.text)) if rng.random() < 0.3 else 0
    return Quote(said.id, first, len(said.text) + (3 if rng.random() < 0.03 else 0))


def _item(rng: Random, item_id: str, spoken: dict[str, Spoken]) -> DraftItem:
    quotes = tuple(_quote(rng, spoken) for _ in range(rng.choice((0, 1, 1, 1, 2, 3))))
    real = [spoken[q.utterance_id].text for q in quotes if q.utterance_id in spoken]
    text = rng.choice(real) if real and rng.random() < 0.5 else random_text(rng)
    kind = rng.choice(_KINDS)
    action = kind == "action_item"
    owner = rng.choice((None, *PEOPLE)) if action else None
    due = (
        rng.choice((None, dt.date(2026, 2, 27), dt.date(2026, 3, 6), dt.date(2026, 3, 10)))
        if action
        else None
    )
    return DraftItem(
        item_id, kind, text, rng.choice((0.2, 0.5, 0.7, 0.95)), owner or None, rng.random() < 0.2, due,
        rng.choice((None, "by Friday", "on 10 March", "some day")) if action else None, quotes, False, (),
    )  # fmt: skip
