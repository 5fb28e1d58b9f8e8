"""Scores of speech that was heard in rooms: whose words, which names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .speech_chain import HeardWord
from .word_errors import words_of

_NEAR_S: Final = 1.0
"""A word that was heard may be this far from where it was said; recognisers know edges to a tenth of a second."""


@dataclass(slots=True)
class Share:
    """So many of so many."""

    right: int = 0
    of: int = 0

    def add(self, right: int, of: int) -> None:
        """Count more."""
        self.right, self.of = self.right + right, self.of + of

    def rounded(self) -> dict[str, float | int | None]:
        """As a report prints it."""
        return {"share": round(self.right / self.of, 4) if self.of else None, "n": self.of}


@dataclass(slots=True)
class Attribution:
    """Words with their right speaker, with another's, and with none, of words heard where they were said."""

    right: int = 0
    wrong: int = 0
    nobody: int = 0
    rooms: list[str] = field(default_factory=list)

    def rounded(self) -> dict[str, Any]:
        """As a report prints it."""
        counted = self.right + self.wrong + self.nobody
        return {
            "right": round(self.right / counted, 4) if counted else None,
            "wrong": round(self.wrong / counted, 4) if counted else None,
            "null": round(self.nobody / counted, 4) if counted else None,
            "words": counted,
            "rooms": self.rooms,
        }


def attribute(heard: Sequence[HeardWord], utterances: Iterable[dict[str, Any]], into: Attribution) -> None:
    """Count heard words by speaker against the truth: the nearest same word said within a second."""
    said = [
        (normal, word["start_s"], word["end_s"], utterance["speaker"])
        for utterance in utterances
        for word in utterance["words"]
        for normal in words_of(word["text"])
    ]
    for one in heard:
        for normal in words_of(one.text):
            near = [
                (abs(start + end - one.start_s - one.end_s), speaker)
                for text, start, end, speaker in said
                if text == normal and start - _NEAR_S <= one.end_s and end + _NEAR_S >= one.start_s
            ]
            if not near:
                continue
            speaker = min(near, key=lambda pair: pair[0])[1]
            into.right += one.speaker == speaker
            into.nobody += one.speaker is None
            into.wrong += one.speaker is not None and one.speaker != speaker


def names_of(room: dict[str, Any]) -> set[str]:
    """Names that are hard to guess: of attendees, and words with a capital in agenda and key topics."""
    names = {part for person in room["attendees"] for part in person["name"].split()}
    for line in (*room.get("agenda", ()), *room.get("key_topics", ())):
        # The first word of a line has a capital in any case.
        names |= {word for word in line.split()[1:] if word[:1].isupper()}
        if len(line.split()) == 1 and line[:1].isupper():
            names.add(line)
    return {name.lower() for name in names if re.fullmatch(r"[A-Za-z]{3,}", name) and name not in _TITLES}


_TITLES: Final = frozenset({"Mrs", "Miss", "Doctor", "Professor"})


def name_recall(said: str, heard: str, names: set[str]) -> tuple[int, int]:
    """How many of the spoken names were heard as often as they were said."""
    there, found = words_of(said), words_of(heard)
    right = sum(min(there.count(name), found.count(name)) for name in names)
    return right, sum(there.count(name) for name in names)
