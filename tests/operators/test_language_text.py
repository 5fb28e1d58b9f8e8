"""What cues read of the words that were said."""

import pytest

from operators.language.text import clauses_of, words_of


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("yeah okay ill do it", "yes okay i will do it"),
        ("canal ones ill let the sergeant know", "canal ones i will let the sergeant know"),
        ("Ill ring them.", "i will ring them"),
        ("in that case id rather wait", "in that case i would rather wait"),
        ("youll have it friday", "you will have it friday"),
        ("hes away and we couldnt ask", "he is away and we could not ask"),
        ("he fell ill and left", "he fell ill and left"),
        ("if they're ill you'd not send", "if they are ill you would not send"),
        ("she was very ill today", "she was very ill today"),
        ("the id card", "the id card"),
        ("Send me the user ID please", "send me the user id please"),
        ("Wilma's ill", "wilma 's ill"),
    ],
)
def test_words_without_apostrophes_mean_what_they_do_with_them(said: str, read: str) -> None:
    assert " ".join(clause.norm for clause in clauses_of(said)) == read
    assert [said[t.first : t.last] for t in words_of(said)] == [t.text for t in words_of(said)]
