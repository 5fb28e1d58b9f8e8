"""Short invented meetings of different trades, each with traps, read as a whole."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import yaml

from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken

FOLDER = Path(__file__).parent / "understand_meetings"
MEETINGS = {p.stem: yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted(FOLDER.glob("*.yaml"))}


def spoken_of(meeting: dict[str, Any]) -> list[Spoken]:
    """The lines at four words a second, with half a second between them."""
    out, now = [], 0
    for line in meeting["lines"]:
        head, text = line.split(": ", 1)
        identity, speaker = head.split(" ", 1)
        length = max(1, len(text.split())) * 250_000_000
        out.append(Spoken(identity, now, now + length, speaker, text, "transcript"))
        now += length + 500_000_000
    return out


def items_of(meeting: dict[str, Any]) -> tuple[DraftItem, ...]:
    people = tuple(Attendee(name, name, role) for name, role in meeting["people"].items())
    engine = RuleEngine()
    state = engine.start(MeetingContext(meeting["title"], meeting["date"], people))
    for spoken in spoken_of(meeting):
        state = engine.step(state, spoken)
    return engine.items(engine.finish(state))


def lines(item: DraftItem) -> set[str]:
    return {q.utterance_id for q in item.evidence}


WANTED = [(name, want) for name, meeting in MEETINGS.items() for want in meeting["expect"]]


@pytest.mark.parametrize(("name", "want"), WANTED, ids=[f"{n}-{w['at']}" for n, w in WANTED])
def test_item_is_found(name: str, want: dict[str, Any]) -> None:
    items = [i for i in items_of(MEETINGS[name]) if not i.withdrawn]
    found = [i for i in items if i.kind == want["kind"] and want["at"] in lines(i)]
    assert len(found) == 1, [(i.kind, i.text, lines(i)) for i in items]
    item = found[0]
    for word in want["words"]:
        assert word.lower() in item.text.lower()
    if want["kind"] == "action_item":
        assert (item.owner, item.due) == (want["owner"], want["due"])
        assert (item.due is None) or isinstance(item.due, dt.date)


NEVER = [(name, line) for name, meeting in MEETINGS.items() for line in meeting["never"]]


@pytest.mark.parametrize(("name", "line"), NEVER, ids=[f"{n}-{x}" for n, x in NEVER])
def test_trap_is_no_item(name: str, line: str) -> None:
    published = [i for i in items_of(MEETINGS[name]) if not i.withdrawn and i.kind != "answered_question"]
    assert not [i.text for i in published if i.evidence[0].utterance_id == line]


@pytest.mark.parametrize("name", [n for n, m in MEETINGS.items() if m.get("withdrawn")])
def test_taken_back_stays_marked(name: str) -> None:
    items = items_of(MEETINGS[name])
    for line in MEETINGS[name]["withdrawn"]:
        assert all(i.withdrawn for i in items if line in lines(i))
