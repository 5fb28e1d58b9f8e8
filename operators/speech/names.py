"""Near-misses of attendees' names in recognised text.

Conservative on purpose: a wrong name in minutes is worse than a misspelt one. A word becomes a name only when it is no
ordinary English word, sounds like exactly one attendee's name, ends with the same sound and differs from it in a
letter or two. What was heard is kept beside the correction.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import jellyfish

_WORD = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿ]+(?:['’][A-Za-z]+)?")

MIN_LETTERS = 4
"""Shorter names have too many ordinary words for neighbours."""


@dataclass(frozen=True)
class NameChange:
    """One correction. `position` is the character at which the word begins in the corrected text."""

    heard: str
    name: str
    position: int


def correct_names(
    text: str, names: Sequence[str], ordinary: Set[str], known: Sequence[str] = ()
) -> tuple[str, tuple[NameChange, ...]]:
    """Write near-misses of names as the names.

    Args:
        text: what was heard.
        names: attendees, each one or more words; every word of four letters or more is a candidate.
        ordinary: lower-case words that are never names (`SpeechRecogniser.ordinary_words`).
        known: further words that are right as they are (agenda, slides).

    Returns:
        The corrected text and what was changed, in order.
    """
    if not names:
        return text, ()
    candidates = sorted({part for name in names for part in name.split() if len(part) >= MIN_LETTERS})
    keep = {part.lower() for words in (names, known) for word in words for part in word.split()}
    changes: list[NameChange] = []
    pieces: list[str] = []
    last = length = 0
    for match in _WORD.finditer(text):
        name = _name_for(match.group(), candidates, keep, ordinary)
        if name is None:
            continue
        stem, ending = _split_possessive(match.group())
        before = text[last : match.start()]
        changes.append(NameChange(heard=stem, name=name, position=length + len(before)))
        pieces.extend((before, name, ending))
        length += len(before) + len(name) + len(ending)
        last = match.end()
    return "".join([*pieces, text[last:]]), tuple(changes)


def _name_for(word: str, candidates: Sequence[str], keep: Set[str], ordinary: Set[str]) -> str | None:
    stem, _ = _split_possessive(word)
    lower = stem.lower()
    if len(stem) < MIN_LETTERS - 1 or lower in keep or lower in ordinary:
        return None
    close = [name for name in candidates if _sounds_alike(lower, name.lower())]
    return close[0] if len(close) == 1 else None


def _sounds_alike(heard: str, name: str) -> bool:
    if abs(len(heard) - len(name)) > 2 or _ending(heard) != _ending(name):
        return False
    distance = jellyfish.damerau_levenshtein_distance(heard, name)
    if jellyfish.metaphone(heard) == jellyfish.metaphone(name):
        return distance <= max(2, len(name) // 3)
    # Another consonant, but one letter of a long name only.
    return distance == 1 and len(name) >= 6 and heard[0] == name[0]


def _ending(word: str) -> str:
    """Sound class of the end: Metaphone drops vowels, yet Anne and Anna are two people."""
    bare = re.sub(r"(?<=[aeiou])h$", "", word)
    bare = re.sub(r"(?<=[^aeiou])(ie|ey|ee|i)$", "y", bare)
    return bare[-1] if bare and bare[-1] in "aouy" else ""


def _split_possessive(word: str) -> tuple[str, str]:
    for mark in ("'", "’"):
        stem, found, ending = word.partition(mark)
        if found and ending == "s":
            return stem, mark + ending
    return word, ""
