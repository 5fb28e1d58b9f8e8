"""Tells of meetings that were told to be over and do not end: the logic of when to tell an operator."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OverdueSettings:
    """A meeting is overdue ``after_s`` seconds after it was told to be over; told of again each ``every_s``."""

    after_s: float = 30.0
    every_s: float = 120.0

    def build(self) -> "Overdue":
        """The logic, with nothing seen yet."""
        return Overdue(self)


class Overdue:
    """Keeps since when each meeting of a shard is waited for; times in seconds of any clock that goes on."""

    def __init__(self, settings: OverdueSettings) -> None:
        self._settings = settings
        self._since_s: dict[str, float] = {}
        self._told_s: dict[str, float] = {}

    def look(self, now_s: float, waiting: Iterable[str]) -> dict[str, float]:
        """Seconds of waiting of those of the ``waiting`` meetings of which to tell now."""
        self._since_s = {meeting: self._since_s.get(meeting, now_s) for meeting in waiting}
        self._told_s = {m: told for m, told in self._told_s.items() if m in self._since_s}
        due = {}
        for meeting in self.overdue(now_s):
            told_s = self._told_s.get(meeting)
            if told_s is None or now_s - told_s >= self._settings.every_s:
                self._told_s[meeting] = now_s
                due[meeting] = now_s - self._since_s[meeting]
        return due

    def overdue(self, now_s: float) -> list[str]:
        """Meetings that are waited for too long."""
        return [m for m, since in self._since_s.items() if now_s - since >= self._settings.after_s]
