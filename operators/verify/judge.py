"""The seam of the verifier model: who says how probable it is that an item holds against its evidence."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Protocol

from contracts.minutes import Section


@dataclass(frozen=True, slots=True)
class Claimed:
    """What an item says, as it would be published."""

    section: Section
    text: str
    owner: str | None
    due: dt.date | None
    due_text: str | None


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of one speaker's speech, with the name where the speaker is known."""

    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an item's evidence stood in: the meeting, and what was said before and after."""

    title: str | None
    date: dt.date | None
    attendees: tuple[str, ...]
    before: tuple[Words, ...]
    after: tuple[Words, ...]


class Judge(Protocol):
    """Gives the probability that an item holds: right speaker and owner, date, polarity, modality, numbers.

    Called once for each item as it reads, never again for the same words; it must be a function of its
    arguments and bounded in time.
    """

    name: str
    """Version of the model, as minutes and audit tell it."""

    def probability(self, item: Claimed, evidence: tuple[Words, ...], context: Surroundings) -> float | None:
        """A calibrated probability of 0 to 1; None where it cannot judge such an item."""
