"""What is found with a slide, raised hands, a nod or a rising voice, and what without, where words alone cannot tell.

    python -m benchmarks.item_senses --rooms ROOM… --seeds 5

Four cases are made by seed from patterns: a task due on "the date up there", a motion put to the vote, a request that
only a nod answers, a statement that asks by its tone. Each is read with what a camera, a screen reader or an ear would
have told (a share ``--missed`` of them missing), without it, and with its opposite (a slide with no date, hands that
stay down, a shake of the head, a falling voice), under which nothing may be found. ``--rooms`` are rooms of the
simulator: items whose truth says that they take the slide or the camera, with the room's slides and gestures and
without. By rules and by the released model: pictures and sound reach items through rules in both. Prints one JSON line.
"""

import argparse
import collections
import datetime as dt
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from flows.minutes_model import load_model
from models.minutes.appraisal import AppraisalUnusable
from models.minutes.session import MinutesModelUnusable
from operators.settings import Settings
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine
from operators.understand.sensed import Gesture, GestureKind, Senses, Shown, Tone
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken

from .item_recognised import said_in
from .item_scores import EVERYDAY, SECTIONS, pairs_of
from .report import print_report, progress
from .script_minutes import entry_of
from .scripts import Script, context_of, spoken_of

KINDS: Final = ("date", "hands", "nod", "tone")
_S: Final = 1_000_000_000
_STEP_NS: Final = 5 * _S
_LENGTH_NS: Final = 3 * _S
_TODAY: Final = dt.date(2026, 3, 9)
_PEOPLE: Final = ("Mira", "Tom", "Ana", "Joost", "Lena", "Pavel")
_TASKS: Final = (
    "order the chairs", "print the posters", "book the hall", "write to the bank", "repair the pump", "call the caterer",
    "translate the leaflet", "collect the keys", "test the scanner", "paint the fence",
)  # fmt: skip
_MOTIONS: Final = (
    "we buy the green tent", "we move the office to the ground floor", "we cancel the summer fair",
    "we hire a second cook", "we lease the van for a year", "we close the shop on Mondays",
)  # fmt: skip
_STATES: Final = (
    "The boiler is running again", "The new drums are in the cellar", "Your sister has the spare key",
    "The printers have sent the second proof", "The council has paid for the bus", "They deliver before the weekend",
)  # fmt: skip
_TALK: Final = (
    "The weather was better last year.",
    "It took me an hour to get here.",
    "My tea is cold already.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A short talk with the item that it holds if the senses are believed."""

    kind: str
    spoken: tuple[Spoken, ...]
    at: int
    """Utterance to which the senses belong."""
    seen: Senses
    opposite: Senses
    section: str
    owner: str | None = None
    due: dt.date | None = None

    def read(self, senses: Senses | None) -> tuple[Spoken, ...]:
        """The talk with these senses around the one utterance."""
        return tuple(replace(s, senses=senses) if n == self.at else s for n, s in enumerate(self.spoken))


def cases_of(seed: int, count: int) -> list[Case]:
    """So many cases of each kind."""
    chance = random.Random(f"senses:{seed}")
    return [_MAKERS[kind](chance) for kind in KINDS for _ in range(count)]


def _date(chance: random.Random) -> Case:
    one, other = chance.sample(_PEOPLE, 2)
    task, day = chance.choice(_TASKS), _TODAY + dt.timedelta(days=chance.randint(3, 60))
    words = chance.choice(
        ("by the date up there", "by that date on the slide", "by the deadline on the screen")
    )
    lines = ("Spring fair", f"Deadline: {day:%A}, {day.day} {day:%B} {day.year}", "Stalls and music")
    said = _said(
        (other, "This is what we have to keep in mind."), (one, f"I'll {task} {words}."), (other, "Thanks.")
    )
    bare = Senses(shown=(Shown("s1", "laptop", (lines[0], lines[2]), 2.0, 200.0),))
    seen = Senses(shown=(Shown("s1", "laptop", lines, 2.0, 200.0),))
    return Case("date", said, 1, seen, bare, "action_item", one, day)


def _hands(chance: random.Random) -> Case:
    one, other, third = chance.sample(_PEOPLE, 3)
    call = chance.choice(("Those in favour, please.", "Hands up, please.", "Who is for it? Hands, please."))
    said = _said(
        (one, f"I would like to propose that {chance.choice(_MOTIONS)}."), (other, call), (third, "On to the next point.")
    )  # fmt: skip
    seen = _moves(1, "raise_hand", chance.sample(_PEOPLE, chance.randint(3, 4)))
    return Case("hands", said, 1, seen, Senses(watched=True), "decision")


def _nod(chance: random.Random) -> Case:
    one, other, third = chance.sample(_PEOPLE, 3)
    said = _said((one, f"{other}, could you {chance.choice(_TASKS)}?"), (third, chance.choice(_TALK)))
    return Case("nod", said, 0, _moves(0, "nod", [other]), _moves(0, "shake", [other]), "action_item", other)


def _tone(chance: random.Random) -> Case:
    one, other = chance.sample(_PEOPLE, 2)
    said = _said(
        (one, f"{chance.choice(_STATES)}."), (other, chance.choice(("Hm.", "Um.", "I have no idea.")))
    )
    rising = Senses(tone=Tone(chance.uniform(2.5, 6.0), chance.uniform(8.0, 25.0), 0.7, -25.0))
    return Case("tone", said, 0, rising, Senses(tone=Tone(-2.0, -8.0, 0.7, -25.0)), "open_question")


_MAKERS: Final[Mapping[str, Callable[[random.Random], Case]]] = {
    "date": _date, "hands": _hands, "nod": _nod, "tone": _tone,
}  # fmt: skip


def _said(*lines: tuple[str, str]) -> tuple[Spoken, ...]:
    return tuple(
        Spoken(f"u{n}", n * _STEP_NS, n * _STEP_NS + _LENGTH_NS, who, text) for n, (who, text) in enumerate(lines)
    )  # fmt: skip


def _moves(at: int, kind: GestureKind, people: Sequence[str]) -> Senses:
    begin = at * _STEP_NS + _LENGTH_NS
    made = tuple(
        Gesture(kind, begin + n, begin + _S + n, "camera", n / 8, who, 0.9, 2.0, 200.0, 200.0)
        for n, who in enumerate(people)
    )
    return Senses(made, watched=True)


def items_in(engine: RuleEngine, spoken: Sequence[Spoken], context: MeetingContext) -> tuple[DraftItem, ...]:
    """What stands in the minutes when all has been said."""
    state = engine.start(context)
    for one in spoken:
        state = engine.step(state, one)
    return tuple(i for i in engine.items(engine.finish(state)) if not i.withdrawn)


def found_in(engine: RuleEngine, case: Case, senses: Senses | None) -> bool:
    """Whether the item is there, with its owner and its date."""
    context = MeetingContext(date=_TODAY, attendees=tuple(Attendee(name, name) for name in _PEOPLE))
    for item in items_in(engine, case.read(senses), context):
        right = item.owner == case.owner and item.due == case.due
        if item.kind == case.section and (right or (case.owner is None and case.due is None)):
            return True
    return False


def made_cases(engine: RuleEngine, seeds: Sequence[int], count: int, missed: float) -> dict[str, Any]:
    """Share of cases found with the sense, without it, and under its opposite: mean, and least and most of the seeds."""
    shares: dict[str, dict[str, list[float]]] = {kind: collections.defaultdict(list) for kind in KINDS}
    for seed in seeds:
        chance = random.Random(f"missed:{seed}")
        hits: collections.Counter[tuple[str, str]] = collections.Counter()
        for case in cases_of(seed, count):
            seen = None if chance.random() < missed else case.seen
            for name, senses in (("with", seen), ("without", None), ("opposite", case.opposite)):
                hits[case.kind, name] += found_in(engine, case, senses)
        for kind in KINDS:
            for name in ("with", "without", "opposite"):
                shares[kind][name].append(hits[kind, name] / count)
    return {
        kind: {
            name: [round(v, 3) for v in (sum(values) / len(values), min(values), max(values))]
            for name, values in mine.items()
        }
        for kind, mine in shares.items()
    }


def sensed(script: Script, truth: Mapping[str, Any]) -> list[Spoken]:
    """What was said in a room with its slides and gestures as the truth has them."""
    spoken = spoken_of(script)
    out = []
    for place, one in enumerate(spoken):
        until = spoken[place + 1].start_ns if place + 1 < len(spoken) else one.end_ns + 6 * _S
        moves = tuple(
            Gesture(
                g["kind"], round(g["start_s"] * _S), round(g["end_s"] * _S), "camera", 0.5, g["who"], 0.9, 2.0, 200.0, 200.0
            )
            for g in truth["gestures"]
            if one.start_ns <= g["start_s"] * _S < until
        )  # fmt: skip
        shown = tuple(
            Shown(f"s{s['number']}", "laptop", tuple(line["text"] for line in s["lines"]), 2.0, 200.0)
            for s in truth["slides"]
            if s["start_s"] * _S <= one.end_ns < s["end_s"] * _S
        )
        out.append(replace(one, senses=Senses(moves, shown, watched=bool(truth["gestures"]))))
    return out


def room_cases(engine: RuleEngine, rooms: Sequence[Path]) -> dict[str, dict[str, int]]:
    """Items of rooms that take the slide or the camera: how many, and how many found (and right) with and without.

    Right is an item whose owner and date are those of the truth. The date of a decision stands in its text, which
    comes from what was said: that a slide was read into it shows in its evidence alone.
    """
    out: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for room in rooms:
        truth = json.loads((room / "truth.json").read_text(encoding="utf-8"))
        script, context = said_in(room), context_of(said_in(room))
        whole = sensed(script, truth)
        reads = {
            "all": whole,
            "without slides": [replace(s, senses=_less(s.senses, shown=())) for s in whole],
            "without camera": [replace(s, senses=_less(s.senses, gestures=(), watched=False)) for s in whole],
            "words alone": [replace(s, senses=None) for s in whole],
        }
        for name, spoken in reads.items():
            found = items_in(engine, spoken, context)
            _count(out, name, script, truth, found, {s.id: s for s in spoken})
    return {kind: dict(counts) for kind, counts in sorted(out.items())}


def _less(senses: Senses | None, **changes: Any) -> Senses | None:
    return None if senses is None else replace(senses, **changes)


def _count(
    out: dict[str, collections.Counter[str]],
    name: str,
    script: Script,
    truth: Mapping[str, Any],
    found: Sequence[DraftItem],
    by_id: dict[str, Spoken],
) -> None:
    kinds = {"decisions": "decision", "action_items": "action_item", "open_questions": "open_question"}
    for section in SECTIONS:
        items = [i for i in found if i.kind == kinds[section]]
        entries = [entry_of(i, by_id, "rules") for i in items]
        placed = {j: i for i, j in pairs_of(entries, section, script, EVERYDAY)}
        for number, entry in enumerate(truth[section]):
            marks = [f"slide: {what}" for what in entry["from_slide"]] + [
                f"camera: {what}" for what in entry["from_camera"]
            ]
            for mark in marks:
                out[mark]["items"] += name == "all"
                at = placed.get(number)
                out[mark][f"found, {name}"] += at is not None
                wanted = entry.get("due"), entry.get("owner")
                got = (entries[at].get("due"), entries[at].get("owner")) if at is not None else None
                out[mark][f"right, {name}"] += got == wanted
                out[mark][f"shown, {name}"] += at is not None and bool(items[at].senses)


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when a room has no truth or the model cannot be used."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rooms", type=Path, nargs="*", default=[], help="folders of rooms with their truth")
    parser.add_argument("--model", default="released", help="as MINUTED_MODEL")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", type=int, default=20, help="of each kind and seed")
    parser.add_argument(
        "--missed", type=float, default=0.1, help="share of what is seen or heard that gets lost"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    given = parser.parse_args(arguments)
    try:
        scorer, appraisal = load_model(Settings(model=given.model))
        engines = {"rules": RuleEngine(), "model": HybridEngine(scorer=scorer, appraisal=appraisal)}
        told: dict[str, Any] = {"cases": given.cases, "seeds": given.seeds, "missed": given.missed}
        for name, engine in engines.items():
            progress(name)
            seeds = range(given.seed, given.seed + given.seeds)
            told[name] = {"made": made_cases(engine, seeds, given.cases, given.missed)}
            if given.rooms:
                told[name]["rooms"] = room_cases(engine, given.rooms)
    except (MinutesModelUnusable, AppraisalUnusable, OSError, ValueError, KeyError) as error:
        print(f"item_senses: {error}", file=sys.stderr)
        return 2
    print_report("item_senses", given.seed, told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
