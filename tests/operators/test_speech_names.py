"""Near-misses of names."""

import pytest

from operators.speech.names import NameChange, correct_names

ATTENDEES = ("Sarah Whitfield", "Mark", "Katherine", "Anna", "Ben", "Yasmin Okafor")
ORDINARY = frozenset(
    [
        "mark",
        "market",
        "marked",
        "then",
        "and",
        "been",
        "can",
        "cat",
        "her",
        "an",
        "any",
        "the",
        "ask",
        "work",
    ]
)


@pytest.mark.parametrize(
    ("heard", "corrected"),
    [
        ("Sara will send it.", "Sarah will send it."),
        ("I asked Catherine about it.", "I asked Katherine about it."),
        ("That is Marc's list.", "That is Mark's list."),
        ("Give it to Whitfeld, please.", "Give it to Whitfield, please."),
        ("Yasmine can do it", "Yasmin can do it"),
        ("Yazmin can do it", "Yasmin can do it"),
    ],
)
def test_near_misses(heard: str, corrected: str) -> None:
    assert correct_names(heard, ATTENDEES, ORDINARY)[0] == corrected


@pytest.mark.parametrize(
    "text",
    [
        "The market marked it and then been.",
        "Mark can ask Anna and Ben.",
        "Anne is somebody else.",
        "Bean counters and hens.",
        "Katrina wrote to Sandra.",
        "",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert correct_names(text, ATTENDEES, ORDINARY) == (text, ())


def test_changes_say_what_was_heard_and_where() -> None:
    text, changes = correct_names("So Sara and Catherine's draft.", ATTENDEES, ORDINARY)
    assert text == "So Sarah and Katherine's draft."
    assert changes == (NameChange("Sara", "Sarah", 3), NameChange("Catherine", "Katherine", 13))
    assert all(text[c.position :].startswith(c.name) for c in changes)


def test_two_candidates_are_no_answer() -> None:
    assert correct_names("Ask Jonn.", ("John", "Jonne"), frozenset())[1] == ()


def test_known_words_stay() -> None:
    assert correct_names("The Sara release", ATTENDEES, ORDINARY, known=("Sara release",))[1] == ()
    assert correct_names("Sara", (), ORDINARY) == ("Sara", ())
