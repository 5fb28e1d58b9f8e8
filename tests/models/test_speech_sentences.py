"""Where a sentence is held to end, so that it can be settled while speech goes on."""

import pytest

from models.speech_hotwords import Word
from models.speech_reading import says_again
from models.speech_sentences import AFTER_S, ends_sentence, settled_words


def words(text: str, probability: float = 0.9) -> list[Word]:
    """Half a second a word; a star behind a word makes it unsure."""
    return [
        Word(n / 2, (n + 1) / 2, word.rstrip("*"), 0.3 if word.endswith("*") else probability)
        for n, word in enumerate(text.split())
    ]


@pytest.mark.parametrize(
    "text", ["We meet on Monday.", "Who does that?", "Then it stays!", 'He said "fine."']
)
def test_sentences(text: str) -> None:
    assert ends_sentence(words(text))


@pytest.mark.parametrize(
    "text",
    [
        "We meet on Monday",
        "We meet on Monday...",
        "So.",
        "We should talk to the.",
        "I think we should.",
        "I saw Dr.",
        "",
        "- .",
    ],
)
def test_what_may_go_on(text: str) -> None:
    assert not ends_sentence(words(text))


def test_unsure_words_are_not_settled() -> None:
    assert not ends_sentence(words("We meet on* Monday.*"))
    assert ends_sentence(words("We* meet* on Monday."))


def test_the_last_sentence_that_ended_a_while_ago_is_settled() -> None:
    heard = words("We meet there. Who is in? I am not so sure")
    assert settled_words(heard, 5.0) == 6
    # Its last word ends 3 s after the first sample.
    assert settled_words(heard, 3.0 + AFTER_S) == 6
    assert settled_words(heard, 2.98 + AFTER_S) == 3
    assert settled_words(heard[:6], 1.4 + AFTER_S) == 0


def test_settled_words_are_settled_again_when_nothing_else_is_known() -> None:
    heard = words("Right. We meet there. Who* is* in? I am not so sure")
    for tenths in range(80):
        count = settled_words(heard, tenths / 10)
        assert settled_words(heard[:count], tenths / 10) == count


def test_what_is_copied_from_what_was_written_is_noticed() -> None:
    before = words("This is not what I did not say in the first one.")
    assert says_again(before, words("I did not say in the first one."))
    assert says_again(before, words("the first one"))
    assert not says_again(before, words("not say it"))
    assert not says_again(before, words("first one"))
    assert not says_again((), words("We meet on Monday."))
