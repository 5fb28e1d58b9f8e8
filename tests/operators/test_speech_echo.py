"""Echo or two people: text, time and level together."""

import pytest

from operators.speech.echo import is_echo

SPAN = (0, 2_000_000_000)
LATER = (3_000_000_000, 5_000_000_000)


@pytest.mark.parametrize(
    ("text", "louder", "margin_db", "echo"),
    [
        ("We launch on Thursday.", "we launch on Thursday", 5.0, True),
        ("we launch the product on Thursday", "We launch the product on Thursday.", 30.0, True),
        ("launch on thursday", "So we launch on Thursday, the 26th", 5.0, True),
        ("launch on thursday", "So we launch on Thursday, the 26th", 20.0, False),
        ("Yes.", "Yes.", 15.0, False),
        ("Yes.", "Yes.", 3.0, True),
        ("No way.", "We launch on Thursday.", 3.0, False),
        ("", "We launch on Thursday.", 3.0, False),
    ],
)
def test_echo(text: str, louder: str, margin_db: float, echo: bool) -> None:
    assert is_echo(text, louder, SPAN, SPAN, margin_db) is echo


def test_the_same_words_later_are_no_echo() -> None:
    assert not is_echo("We launch on Thursday.", "We launch on Thursday.", LATER, SPAN, 3.0)
