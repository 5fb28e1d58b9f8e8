"""What is wrong with a rule file: where, why, and what was probably meant."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_SHOWN_CHARS: Final = 120
_MAX_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake. ``line`` and ``column`` count from 1; ``length`` characters are underlined."""

    line: int
    column: int
    message: str
    suggestion: str = ""
    source: str = ""
    length: int = 1

    def __str__(self) -> str:
        """Message with the line, a caret below the place, and the suggestion."""
        before, shown = self.column - 1, self.source.replace("\t", " ")
        if len(shown) > _SHOWN_CHARS:
            cut = min(max(0, before - _SHOWN_CHARS // 2), len(shown) - _SHOWN_CHARS)
            shown, before = shown[cut : cut + _SHOWN_CHARS], before - cut
        marked = "^" * max(1, min(self.length, len(shown) - before))
        gutter = len(str(self.line))
        lines = [f"{self.message}", f"{self.line} | {shown}", f"{' ' * gutter} | {' ' * before}{marked}"]
        if self.suggestion:
            lines.append(f"{' ' * gutter} = {self.suggestion}")
        return "\n".join(lines)


class RuleError(ValueError):
    """A rule file that cannot be used; ``mistakes`` are in order of their place."""

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        self.name = name
        self.mistakes = tuple(sorted(mistakes, key=lambda m: (m.line, m.column)))
        super().__init__(self.short())

    def short(self) -> str:
        """One line: the first mistake and how many more there are."""
        first, more = self.mistakes[0], len(self.mistakes) - 1
        told = f"{self.name}:{first.line}:{first.column}: {first.message}"
        told += f" ({first.suggestion})" if first.suggestion else ""
        return told + (f", and {more} more" if more else "")

    def long(self) -> str:
        """Every mistake with its line and a caret, as people read it."""
        shown = [f"{self.name}:{m.line}:{m.column}: {m}" for m in self.mistakes[:_MAX_SHOWN]]
        if len(self.mistakes) > _MAX_SHOWN:
            shown.append(f"… and {len(self.mistakes) - _MAX_SHOWN} more")
        return "\n\n".join(shown)


class Problem(Exception):
    """A mistake at characters ``first`` to ``last`` of one rule; becomes a ``Mistake`` with its line."""

    def __init__(self, first: int, last: int, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.first, self.last = first, last
        self.message, self.suggestion = message, suggestion


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that ``word`` was probably meant to be; empty where none is near."""
    by_low = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word[:60].lower(), by_low, n=1, cutoff=0.6)
    return by_low[found[0]] if found else ""


def meant(word: str, known: Iterable[str], *, what: str = "") -> str:
    """Suggestion for a word that is not known: the nearest one, or all where they are few."""
    names = sorted(known)
    if near := nearest(word, names):
        return f"did you mean “{near}”?"
    return f"{what or 'there is'} {', '.join(names)}" if 0 < len(names) <= 14 else ""
