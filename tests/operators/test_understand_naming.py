"""What *it*, *them* and *her* are stands in their place where that is plain, and short decisions say what they settle once."""

from __future__ import annotations

import datetime as dt

import pytest

from models.minutes.scores import UtteranceScores
from operators.language.text import clauses_of
from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken
from operators.understand.hybrid import HybridEngine
from operators.understand.joined import settled_text
from operators.understand.naming import told, work_in
from tests.operators.scored_talk import BY_SCORE, Says, read, said_by, standing

_CONTEXT = MeetingContext("Hall", dt.date(2026, 3, 10), tuple(Attendee(n, n) for n in ("Ann", "Bob", "Fi")))


def _items(*lines: str) -> list[DraftItem]:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        start = number * 4_000_000_000
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    return [i for i in engine.items(engine.finish(state)) if not i.withdrawn]


def _tasks(*lines: str) -> list[str]:
    return [i.text for i in _items(*lines) if i.kind == "action_item"]


@pytest.mark.parametrize(
    ("task", "about", "text"),
    [
        ("print them", "The labels", "Print the labels"),
        ("mend it on Friday", "The red coat is torn", "Mend the red coat on Friday"),
        ("fix that", "The fence by the creek is down again", "Fix the fence by the creek"),
        ("set it up", "So log rotation", "Set log rotation up"),
        ("set it up", "The long table in the hall", "Set up the long table in the hall"),
        ("collect them", "Three bids", "Collect three bids"),
        ("have them ready", "The books", "Have the books ready"),
        # one of two things, another number, no thing at all: what was said stays whole
        ("send it", "The printer needs the logo", "Send it (the printer needs the logo)"),
        ("mend it", "The red coat has a tear", "Mend it (the red coat has a tear)"),
        ("fix them", "The report", "Fix them (the report)"),
        ("fix it", "The pipe burst", "Fix it (the pipe burst)"),
        ("build it", "Cats don't vote", "Build it (Cats don't vote)"),
        ("do it here", "The oven is new", "Do it here (the oven is new)"),
        ("draft those", "Release notes, could you", "Draft release notes"),
    ],
)  # fmt: skip
def test_a_thing_stands_for_its_pronoun_where_it_is_plain(task: str, about: str, text: str) -> None:
    tokens, words = (clauses_of(said)[0].tokens for said in (task, about))
    assert told(task[:1].upper() + task[1:], tokens, words) == text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("Ann: My niece is a lawyer, I'll ring her tonight.",), "Ring my niece"),
        (("Ann: My cousin. I'll ask him tomorrow.",), "Ask my cousin"),
        (("Ann: Maybe Fi's sister?", "Bob: I'll ask her tomorrow."), "Ask Fi's sister"),
        (("Ann: My niece knows Bob's mother, I'll ring her tonight.",), "Ring her"),
        (("Ann: My car is broken, I'll ring her tonight.",), "Ring her"),
        (("Ann: Somebody called Ottoline. Fi had a letter of hers.", "Bob: I'll ring her tomorrow."), "Ring her"),
        (("Ann: Now the port winch.", "Bob: I'll grease it before supper tomorrow."), "Grease the port winch before supper"),
        (("Ann: Dirk should send her the programme.", "Bob: Dirk is ill.", "Ann: Then I'll send it myself tomorrow."),
         "Send the programme"),
        (("Ann: Are the books ready?", "Bob: Not quite, I'll have them ready by Friday."), "Have the books ready"),
    ],
)  # fmt: skip
def test_who_or_what_is_meant_is_named(lines: tuple[str, ...], text: str) -> None:
    assert _tasks(*lines)[-1] == text


@pytest.mark.parametrize(
    ("said", "work"),
    [
        ("I think we should put a size check in the pipeline.", "Put a size check in the pipeline"),
        ("Do we run a conflict check?", "Run a conflict check"),
        ("We should do it.", ""),
        ("The size check is new.", ""),
    ],
)
def test_work_that_was_proposed_is_what_is_done(said: str, work: str) -> None:
    assert work_in(clauses_of(said)[0].tokens) == work


@pytest.mark.parametrize(
    ("said", "about", "text"),
    [
        ("The twenty-eighth", "I'd plant on the twenty-fourth", "Plant on the twenty-eighth"),
        ("Thursday", "Let's meet on Tuesday", "Meet on Thursday"),
        ("The twenty-eighth", "I can't on the twenty-fourth", "The twenty-eighth"),
        ("Eighty", "We print sixty copies", "We print eighty copies"),
        ("South wall", "The picture goes on the north wall, yes", "The picture goes on the south wall"),
        ("We leave it as it is", "People will grumble", "We leave it as it is"),
        ("We shoot from the ladder", "Wednesday we shoot the kitchen scene instead", "We shoot from the ladder"),
        ("I suppose they can go online", "If the reports go online there are eight",
         "If the reports go online there are eight: I suppose they can go online"),
        ("Green it is", "The chairs in green or wood", "The chairs in green or wood: green it is"),
    ],
)  # fmt: skip
def test_a_short_decision_says_what_it_settles_once(said: str, about: str, text: str) -> None:
    assert settled_text(said, clauses_of(said)[0].tokens, clauses_of(about)[0]) == text


def test_what_only_asks_for_time_is_no_work() -> None:
    assert "Give me" not in _tasks("Ann: Somebody must check the roof.", "Bob: Give me until Friday week.")
    assert not [
        t
        for t in _tasks("Ann: Please order the chairs.", "Bob: Make it Friday, the shop's shut today.")
        if "Make" in t
    ]


def test_a_promise_names_the_work_that_the_model_saw_before() -> None:
    lines = [
        ("Mira", "The labels are on my computer."),
        ("Mira", "Fine."),
        ("Mira", "I'll print the labels on my computer by Friday."),
    ]
    likely = {line: UtteranceScores(action=0.9) for _, line in lines}
    engine = HybridEngine(scorer=Says(likely), appraisal=BY_SCORE)
    found = standing(engine, read(engine, said_by(*lines)), "action_item")
    assert [i.text for i in found] == ["Print the labels on my computer"]
