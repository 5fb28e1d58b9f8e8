"""Numbers as they are read out, digit by digit: what is a filler or a stutter elsewhere counts in them (*six oh two*)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from operators.language.slips import NUMBERS, Word
from operators.language.words import words_in


class Spelled(Word, Protocol):
    """What is read of a word here."""

    @property
    def joint(self) -> str: ...


_ZERO = "oh"
_DIGITS = words_in("zero nought one two three four five six seven eight nine")
_LEAST = 3
"""From so many digits in a row on one said twice is no stutter (*two two four*)."""
_UNITS = words_in("mm ah")
"""Units that are written as what people murmur (*a five mm drill*)."""
_NAMES = frozenset(("ER", "UH", "AH", "OH", "MM", "HM", "EH"))
_BEFORE_NAMES = words_in("the an a this that our at in to from")


def means_something(tokens: Sequence[Spelled], index: int) -> bool:
    """Whether a word that mostly is a filler is none here: a zero, a unit after a number, or short for a name (*the ER*)."""
    token = tokens[index]
    before = (
        tokens[index - 1]
        if index and not (tokens[index - 1].comma or tokens[index - 1].ends_clause)
        else None
    )
    if token.low == _ZERO and not token.comma and _is_zero(tokens, index, before):
        return True
    if before is None:
        return False
    if token.low in _UNITS:
        return _is_number(before)
    return token.text in _NAMES and before.low in _BEFORE_NAMES and not before.text.isupper()


def _is_zero(tokens: Sequence[Spelled], index: int, before: Spelled | None) -> bool:
    """Between numbers (*six oh two*), at the end of digits (*four oh*) or before two of them (*oh seven nine*)."""
    after = 0
    while index + after < len(tokens) - 1 and not _parted(tokens[index + after]):
        if not (_is_digit(tokens[index + after + 1]) or (not after and _is_number(tokens[index + 1]))):
            break
        after += 1
    if before is not None and _is_number(before):
        closes = (
            _is_digit(before)
            and index > 1
            and _is_digit(tokens[index - 2])
            and not _parted(tokens[index - 2])
        )
        return after > 0 or closes
    if before is not None and before.low == _ZERO:
        return after > 0
    run = tokens[index + 1 : index + 1 + after]
    written = bool(tokens[index].joint) and any(t.low != _ZERO for t in run)  # *oh-four-twenty*
    return written or (before is not None and after >= _LEAST - 1)


def in_a_row(tokens: Sequence[Spelled], index: int) -> bool:
    """Whether a word is one of several digits or single letters that are read out one by one."""
    first = last = index
    while first > 0 and not _parted(tokens[first - 1]) and _is_digit(tokens[first - 1]):
        first -= 1
    while last + 1 < len(tokens) and not _parted(tokens[last]) and _is_digit(tokens[last + 1]):
        last += 1
    return _is_digit(tokens[index]) and last - first + 1 >= _LEAST


def _parted(token: Spelled) -> bool:
    return token.comma or token.ends_clause


def _is_number(token: Spelled) -> bool:
    return token.low in NUMBERS or token.low in _DIGITS or token.low[:1].isdigit()


def _is_digit(token: Spelled) -> bool:
    """A digit, or a capital that is spelled (*B B two*); *I* and *A* are words."""
    letter = len(token.text) == 1 and token.text.isupper() and token.text not in "AI"
    return (
        token.low in _DIGITS or token.low == _ZERO or letter or (len(token.low) == 1 and token.low.isdigit())
    )
