"""Numbers in a text, in digits or words, with every reading that a listener may give them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from .words import words


def _numbered(listed: str, first: int, step: int = 1) -> dict[str, float]:
    return {word: float(first + step * place) for place, word in enumerate(listed.split())}


_UNITS: Final = _numbered(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""", 0
)  # fmt: skip
_VALUES: Final = (
    _UNITS
    | _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
    | _numbered(
        """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
        fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""", 1
    )
    | {"thirtieth": 30.0}
)  # fmt: skip
_SCALES: Final = {
    "dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "grand": 1e3, "million": 1e6, "billion": 1e9,
    "k": 1e3, "m": 1e6, "bn": 1e9,
}  # fmt: skip
_WORD_SCALES: Final = frozenset({"dozen", "hundred", "thousand", "million", "billion"})
_SUFFIXES: Final = ("am", "pm", "st", "nd", "rd", "th", "bn", "k", "m", "s", "h", "g", "x")
_MAX_DIGITS: Final = 18
_MAX_RUN: Final = 12
"""Longer rows of number words are a list or a telephone number: read word by word."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a text: for each the values it may mean, and all values together, parts included."""

    readings: tuple[frozenset[float], ...]
    values: frozenset[float]

    def within(self, other: "Numbers") -> bool:
        """Whether each of these numbers can be found in ``other``."""
        return all(reading & other.values for reading in self.readings)


NO_NUMBERS: Final = Numbers((), frozenset())


def _digits(word: str) -> float | None:
    if not word[:1].isdigit():
        return None
    scale = 1.0
    for suffix in _SUFFIXES:
        if word.endswith(suffix):
            word, scale = word[: -len(suffix)], _SCALES.get(suffix, 1.0)
            break
    bare = word.replace(",", "").replace(":", ".")
    if not bare.replace(".", "", 1).isdecimal() or len(bare) > _MAX_DIGITS:
        return None
    return float(bare) * scale


def _value(word: str) -> float | None:
    found = _VALUES.get(word)
    return _digits(word) if found is None else found


def _rows(text: str) -> Iterable[list[str]]:
    """Words of each number: *five hundred*, *three point five*, *a dozen*."""
    row: list[str] = []
    for word in (*words(text), ""):
        joins = bool(row) and (word in _SCALES or word in ("and", "point"))
        if joins or word in _WORD_SCALES or _value(word) is not None:
            row.append(word)
            continue
        while row and row[-1] in ("and", "point"):
            row.pop()
        if row:
            yield row
        row = []


def _cardinal(row: Sequence[str]) -> float:
    """Value of a number read as one: scales multiply what stands before them, the rest adds up."""
    total = current = 0.0
    for place, word in enumerate(row):
        if word == "point":
            after = [_UNITS[w] for w in row[place + 1 :] if _UNITS.get(w, 10.0) < 10]
            return total + current + sum([digit / 10.0 ** (at + 1) for at, digit in enumerate(after[:6])])
        scale = _SCALES.get(word)
        if scale is None:
            current += _value(word) or 0.0
        elif scale <= 100:
            current = (current or 1.0) * scale
        else:
            total, current = total + (current or 1.0) * scale, 0.0
    return total + current


def _readings(row: Sequence[str]) -> frozenset[float]:
    """The number as one, and as a year or price said in two halves (*twenty twenty six*)."""
    found = {_cardinal(row)}
    if not any(word in _SCALES for word in row):
        for cut in range(1, len(row)):
            left, right = _cardinal(row[:cut]), _cardinal(row[cut:])
            if 10 <= left < 100 and 0 < right < 100:
                found.add(left * 100 + right)
    return frozenset(round(value, 6) for value in found)


def _parts(row: Sequence[str]) -> Iterable[Sequence[str]]:
    begin = 0
    for place, word in enumerate((*row, "and")):
        if word == "and":
            if begin < place and "and" in row:
                yield row[begin:place]
            begin = place + 1


def _read(text: str) -> Numbers:
    readings: list[frozenset[float]] = []
    values: set[float] = set()
    for row in _rows(text):
        parts = [round(value, 6) for word in row if (value := _value(word)) is not None]
        values.update(parts)
        if len(row) <= _MAX_RUN:
            readings.append(_readings(row))
            values |= readings[-1]
            for part in _parts(row):  # "twenty and thirty" is also two numbers
                values |= _readings(part)
        else:
            readings += [frozenset({part}) for part in parts]
    return Numbers(tuple(readings), frozenset(values)) if readings else NO_NUMBERS


_remembered = lru_cache(maxsize=4_096)(_read)


def numbers(text: str) -> Numbers:
    """Numbers of one text. *Five hundred*, *500* and *0.5k* are the same number."""
    return _remembered(text) if len(text) <= 2_000 else _read(text)


def numbers_of_all(texts: Iterable[str]) -> Numbers:
    """Numbers of several texts; none reaches from one text into the next."""
    found = [read for text in texts if (read := numbers(text)) is not NO_NUMBERS]
    if len(found) <= 1:
        return found[0] if found else NO_NUMBERS
    readings = tuple(reading for read in found for reading in read.readings)
    return Numbers(readings, frozenset().union(*(read.values for read in found)))
