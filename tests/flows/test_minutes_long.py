"""Long meetings by the released model: what was plainly said does not go under because there is more talk."""

import json
import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from benchmarks.scripts import context_of, spoken_of
from flows.minutes_model import understanding
from operators.settings import Settings
from operators.understand.engine import RuleEngine
from operators.understand.types import DraftItem, MeetingContext, Spoken

FOLDER = Path(__file__).resolve().parents[2] / "models" / "everyday"
SMALL_TALK = (
    "The weather was quite nice over there.", "My dog ate the sofa again.", "Yeah, that was a funny film.",
    "I had soup for lunch.", "It was blue, sort of.", "The train is always full.", "Hm, right.",
    "She told me about the trip.", "We saw a heron in the pond.",
)  # fmt: skip


@lru_cache(maxsize=1)
def engine() -> RuleEngine:
    return understanding(Settings(model="released")).engine


def items_of(spoken: list[Spoken], context: MeetingContext) -> tuple[DraftItem, ...]:
    state = engine().start(context)
    for one in spoken:
        state = engine().step(state, one)
    return tuple(i for i in engine().items(engine().finish(state)) if not i.withdrawn)


def one_after_the_other(meetings: list[list[Spoken]]) -> list[Spoken]:
    out: list[Spoken] = []
    for number, spoken in enumerate(meetings):
        begin = out[-1].end_ns + 5_000_000_000 if out else 0
        out += [
            replace(s, id=f"{number}.{s.id}", start_ns=s.start_ns + begin, end_ns=s.end_ns + begin)
            for s in spoken
        ]
    return out


def test_a_meeting_of_four_halves_has_the_items_of_each() -> None:
    names = ("storage-night", "site-morning", "allotment-water", "engine-room")
    scripts = [json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in names]
    contexts = [context_of(script) for script in scripts]
    attendees = tuple({a.name: a for c in contexts for a in c.attendees}.values())
    context = replace(contexts[0], attendees=attendees)
    meetings = [spoken_of(script) for script in scripts]
    alone = {i.text for spoken in meetings for i in items_of(list(spoken), context)}
    joined = one_after_the_other([list(spoken) for spoken in meetings])
    assert len(joined) > 250
    together = {i.text for i in items_of(joined, context)}
    assert len(alone) > 20
    assert len(alone & together) >= 0.8 * len(alone)
    assert len(together - alone) <= 0.2 * len(together)


def test_small_talk_around_a_decision_takes_nothing_from_it() -> None:
    draw = random.Random(5)
    business = [
        ("Anna", "We decided to buy the red chairs for the office."),
        ("Ben", "Agreed."),
        ("Anna", "Who will take care of the parking permits?"),
        ("Ben", "I do not know, we leave that open."),
    ]
    step = 4_000_000_000
    for talk in (60, 240, 260, 600):
        lines = [(draw.choice(("Anna", "Ben")), draw.choice(SMALL_TALK)) for _ in range(talk)]
        lines = lines[: talk // 2] + business + lines[talk // 2 :]
        spoken = [
            Spoken(f"u{n}", n * step, n * step + 3_000_000_000, who, text)
            for n, (who, text) in enumerate(lines)
        ]
        found = items_of(spoken, MeetingContext(attendees=()))
        assert [(i.kind, i.text) for i in found] == [
            ("decision", "Buy the red chairs for the office"),
            ("open_question", "Who will take care of the parking permits?"),
        ], talk
