"""Numbers and names that are read out: no zero, digit, unit or short name goes as a filler or a stutter."""

import pytest

from operators.compose import clean


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I call this to order at six oh two.", "I call this to order at six oh two."),
        ("Room four oh four is cold again.", "Room four oh four is cold again."),
        ("The code is oh seven nine from Monday.", "The code is oh seven nine from Monday."),
        ("Call extension two two four oh tomorrow.", "Call extension two two four oh tomorrow."),
        ("The gate code is four four seven one.", "The gate code is four four seven one."),
        ("The train is oh-four-twenty to Leeds.", "The train is oh-four-twenty to Leeds."),
        ("Oh-four-twenty is too early.", "Oh-four-twenty is too early."),
        ("We need a five mm drill for the wall.", "We need a five mm drill for the wall."),
        ("He went to the ER on Monday night.", "He went to the ER on Monday night."),
    ],
)
def test_what_counts_stays(said: str, text: str) -> None:
    assert clean(said) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Oh two things I wanted to say.", "Two things I wanted to say."),
        ("Oh-oh, the boxes are left here.", "The boxes are left here."),
        ("We have three oh and two boxes left.", "We have three and two boxes left."),
        ("It is the sixth, oh two people are ill.", "It is the sixth, two people are ill."),
        ("We need two two chairs for the hall.", "We need two chairs for the hall."),
        ("Mm the boiler is, er, twelve years old.", "The boiler is, twelve years old."),
        ("The er boiler in the the cellar leaks.", "The boiler in the cellar leaks."),
    ],
)
def test_fillers_and_stutters_go(said: str, text: str) -> None:
    assert clean(said) == text
