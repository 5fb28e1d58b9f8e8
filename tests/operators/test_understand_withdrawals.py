"""Ways of taking something back, by its owner, by others and by who leads, and talk that only sounds like it."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.understand.engine import Attendee, DraftItem, MeetingContext, RuleEngine, Spoken

TASK = ("Ana: right, next", "Bob: I'll ring the plumber about the boiler on Friday", "Ana: thanks Bob")
DECISION = (
    "Ana: right, next",
    "Ana: okay, we'll buy the green tent",
    "Cy: fine by me",
    "Bob: agreed",
)
BETWEEN = ("Cy: it was cold in here yesterday",)
BY_OWNER = (
    "scratch that",
    "Actually, strike that.",
    "forget it",
    "oh never mind",
    "sorry, I can't do Friday after all, somebody else please",
    "hold on, I'm away on Friday",
    "wait, I'm on holiday that week, somebody else will have to ring",
    "I take that back",
    "I've changed my mind about the plumber",
    "take me off the plumber",
    "on second thought, no, I won't ring him",
    "actually no, I don't need to ring him, the landlord does that",
    "hang on, that clashes with my shift, I can't",
    "I can't do it after all, sorry",
    "you'll have to find somebody else for the plumber",
    "I have to back out of the plumber thing",
    "count me out on the plumber",
    "I won't have time for the plumber after all",
    "I said I'd ring the plumber but I'm in court all day, so no",
    "leave me out of it then",
    "No, I'm withdrawing that",
    "I'll have to pass on the plumber",
)
BY_OTHERS = (
    "Bob, don't bother, it's done already",
    "no need any more, the boiler works again",
    "the plumber isn't needed any more",
    "Bob, you can forget the plumber, he's already been",
    "never mind the plumber then",
    "you don't need to ring the plumber any more",
    "skip the plumber, my brother fixed it",
    "drop the plumber",
    "that's off then",
    "cancel that, the landlord has rung him",
    "then you don't have to ring the plumber",
    "let's leave the plumber",
    "then we can leave out the plumber",
    "Bob, forget it, I've already rung him",
)
OF_DECISION = (
    "hold on, scratch that, it's too dear",
    "on second thoughts, let's not",
    "let's not buy the tent after all",
    "actually no, no tent",
    "so no tent then",
    "let's leave it, we have no money",
    "I was wrong there, we can't afford the tent",
    "we can't do that then",
    "the tent is off",
    "let's drop the tent",
    "let's shelve the tent for now",
    "park the tent until next year",
    "we said the green tent but that's sold out, so that's off",
    "let's go back to the old one",
    "let's keep the old tent after all",
    "I changed my mind, no tent",
    "let's undo that",
    "bin the tent idea",
    "let's forget about the tent",
    "that won't work, it's sold out",
    "not the green tent after all",
    "then we won't buy it",
    "we're not buying it then",
    "let's call the tent off",
    "better not buy it after all",
    "oh, then we'd better not",
    "I'd rather we didn't buy it after all",
    "we have to take the tent off the list",
    "right, tent's cancelled",
    "okay then we don't buy the tent",
    "let's reverse that, no tent",
)
ORDINARY_TALK = (
    "never mind the weather",
    "we dropped the price last year",
    "don't forget the keys",
    "I can't complain",
    "that's not so bad after all",
    "let's not forget the time",
    "my brother never minds",
    "we skipped lunch",
    "let's leave it at that",
    "they cancelled the train again",
    "it doesn't work, the projector",
    "he changed his mind about the car",
    "I don't need sugar, thanks",
    "that's off topic",
    "I was wrong about the weather",
    "let's not get ahead of ourselves",
    "drop me an email",
    "let's skip to the next point",
    "I can't hear you",
    "you don't need to shout",
    "strike that gong if you like",
    "let's park there next time",
    "no need to thank me",
    "we can't park there then",
    "forget about the traffic, what a day",
    "I'm away next week by the way",
    "never mind, go on",
    "let's not worry",
    "that's out of the way then",
    "let's leave that for next week's meeting",
    "I can't be doing with the blue ones, they look like a swimming pool",
    "I won't die on that hill",
    "I'm not laughing",
    "I'm not arguing with a man who gets up at five",
    "No wonder it was cold",
    "No objection from me",
    "Not announced to me either?",
    "Good, then forget my sticker, we print new ones",
    "I withdraw the worry",
    "Forget what I said about the weekends",
    "it's off a crane, that seat",
    "I always forget that you work there",
    "no swords on the stage",
)


AWAY_WITH_A_DECISION = (
    "kill the tent",
    "okay, let's kill the tent then",
    "nix the tent, we have no money",
    "We throw the tent away and take the hut",
    "let's throw the green tent out",
    "then we chuck the tent overboard",
    "Okay so the tent's out.",
    "okay so tent's out",
    "so the tent's history",
    "then the green tent is out, it's sold",
)
SAID_ALIKE = (
    "he threw the tent away once",
    "throw the tent out to me when you get there",
    "the tent's out in the yard",
    "so he's out",
    "we scrap that old form every year",
    "that would kill the lawn",
    "they killed the lights",
    "so the sun's out",
    "we skip Monday lunch",
    "my aunt throws the wine out",
    "then the word is out",
)


def items_after(*lines: str) -> tuple[DraftItem, ...]:
    """Items of a meeting of these lines at four words a second."""
    people = (Attendee("Ana", "Ana", "chair"), Attendee("Bob", "Bob"), Attendee("Cy", "Cy"))
    engine = RuleEngine()
    state = engine.start(MeetingContext("House", dt.date(2026, 3, 4), people))
    now = 0
    for place, line in enumerate(lines):
        speaker, text = line.split(": ", 1)
        end = now + len(text.split()) * 250_000_000
        state = engine.step(state, Spoken(f"u{place}", now, end, speaker, text))
        now = end + 500_000_000
    return engine.items(engine.finish(state))


def of_second_line(items: tuple[DraftItem, ...], kind: str) -> list[DraftItem]:
    return [i for i in items if i.kind == kind and any(q.utterance_id == "u1" for q in i.evidence)]


def test_both_are_items_when_nothing_is_taken_back() -> None:
    assert [i.withdrawn for i in of_second_line(items_after(*TASK, *BETWEEN), "action_item")] == [False]
    assert [i.withdrawn for i in of_second_line(items_after(*DECISION, *BETWEEN), "decision")] == [False]


@pytest.mark.parametrize("text", BY_OWNER)
def test_owner_takes_a_task_back(text: str) -> None:
    found = of_second_line(items_after(*TASK, *BETWEEN, f"Bob: {text}"), "action_item")
    assert all(i.withdrawn for i in found)


@pytest.mark.parametrize("text", BY_OTHERS)
def test_somebody_else_says_that_it_is_not_needed(text: str) -> None:
    found = of_second_line(items_after(*TASK, *BETWEEN, f"Cy: {text}"), "action_item")
    assert all(i.withdrawn for i in found)


@pytest.mark.parametrize("text", OF_DECISION)
def test_decision_is_reversed(text: str) -> None:
    found = of_second_line(items_after(*DECISION, *BETWEEN, f"Ana: {text}"), "decision")
    assert all(i.withdrawn for i in found)


@pytest.mark.parametrize("speaker", ["Ana", "Bob"])
@pytest.mark.parametrize("text", ORDINARY_TALK)
def test_ordinary_talk_takes_nothing_back(text: str, speaker: str) -> None:
    for base in (TASK, DECISION):
        assert not any(i.withdrawn for i in items_after(*base, *BETWEEN, f"{speaker}: {text}"))


def test_a_named_thing_is_taken_back_and_not_what_was_said_last() -> None:
    lines = (
        *DECISION,
        "Bob: I'll ring the plumber about the boiler on Friday",
        "Ana: Good, but forget the tent.",
    )
    found = {i.text: i.withdrawn for i in items_after(*lines)}
    assert found["We'll buy the green tent"]
    assert not found["Ring the plumber about the boiler"]


@pytest.mark.parametrize("text", AWAY_WITH_A_DECISION)
def test_a_decision_is_done_away_with_by_its_name(text: str) -> None:
    found = of_second_line(items_after(*DECISION, *BETWEEN, f"Ana: {text}"), "decision")
    assert found
    assert all(i.withdrawn for i in found)


@pytest.mark.parametrize("text", SAID_ALIKE)
def test_words_like_it_do_away_with_nothing(text: str) -> None:
    for base in (TASK, DECISION):
        assert not any(i.withdrawn for i in items_after(*base, *BETWEEN, f"Bob: {text}"))


@pytest.mark.parametrize("text", ["Kill Saturday", "okay then we skip Saturday, nobody can come"])
def test_a_day_is_done_away_with_by_its_name(text: str) -> None:
    lines = ("Ana: right, next", "Ana: okay, we'll open on Saturday", "Cy: fine by me", "Bob: agreed")
    found = of_second_line(items_after(*lines, *BETWEEN, f"Ana: {text}"), "decision")
    assert found
    assert all(i.withdrawn for i in found)


@pytest.mark.parametrize("verb", ["cancel", "scrap", "drop"])
def test_a_task_to_do_away_with_something_is_not_taken_back_by_its_own_words(verb: str) -> None:
    lines = ("Ana: right, next", f"Bob: I'll {verb} the second coach on Friday", "Ana: thanks Bob", *BETWEEN)
    found = of_second_line(items_after(*lines, f"Ana: Good, {verb} the second coach."), "action_item")
    assert found
    assert not any(i.withdrawn for i in found)
