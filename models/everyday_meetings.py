"""Invented everyday meetings with exact truth, for training and for a second score beside the research corpora."""

import datetime as dt
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

FOLDER: Final = Path(__file__).parent / "everyday"
"""The meetings that come with the project; its README tells how they were written."""

Split = Literal["train", "test"]
Carrier = Literal["slide", "picture", "sound"]
OwnerKind = Literal["self", "accepted", "named", "group", "none", "ambiguous"]
Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0.0)]
UtteranceIds = Annotated[tuple[str, ...], Field(min_length=1)]


class EverydayError(ValueError):
    """A folder or file of meetings that cannot be used; the message names it."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Span(_Part):
    start_s: Seconds
    end_s: Seconds

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.end_s <= self.start_s:
            raise ValueError(f"ends at {self.end_s} s, before it begins at {self.start_s} s")
        return self


class EverydayAttendee(_Part):
    """Somebody in the room."""

    name: Text
    role: Text | None = None


class EverydayUtterance(_Span):
    """One turn. `intonation` is given where it alone tells whether the words ask or state."""

    id: Text
    speaker: Text
    text: Text
    intonation: Literal["rising", "falling"] | None = None


class EverydaySlide(_Span):
    """What the screen shows; the first line is its title."""

    text: Text


class EverydayGesture(_Span):
    """A movement that only the camera sees."""

    who: Text
    kind: Literal["nod", "shake", "raise_hand"]


class EverydayItem(_Part):
    """A truth entry. `needs` names what carries it, or a part of it, where the words alone do not."""

    text: Text
    evidence: UtteranceIds
    needs: Carrier | None = None


class EverydayAction(EverydayItem):
    """A task. `owner` is None for groups, for nobody, and where a name fits two attendees."""

    owner: Text | None
    owner_kind: OwnerKind
    external: bool = False
    """The owner is not in the room."""
    due: dt.date | None
    due_text: Text | None


class EverydayTrap(_Part):
    """Words that sound like an item and are none."""

    why: Text
    evidence: UtteranceIds
    needs: Carrier | None = None


class EverydayTruth(_Part):
    """What the minutes of the meeting must and must not hold."""

    decisions: tuple[EverydayItem, ...]
    action_items: tuple[EverydayAction, ...]
    open_questions: tuple[EverydayItem, ...]
    withdrawn: tuple[EverydayItem, ...]
    traps: tuple[EverydayTrap, ...]

    def entries(self) -> tuple[EverydayItem | EverydayTrap, ...]:
        """All of them, in the order of the fields."""
        return (
            *self.decisions,
            *self.action_items,
            *self.open_questions,
            *self.withdrawn,
            *self.traps,
        )


class EverydayMeeting(_Part):
    """One meeting: who was there, what was said, shown and done, and what follows from it."""

    meeting: Text
    title: Text
    date: dt.date
    start_time: Annotated[str, Field(pattern=r"^\d{2}:\d{2}$")]
    style: Text | None = None
    split: Split | None = None
    """None: the file says nothing about it; such meetings are in no split."""
    attendees: Annotated[tuple[EverydayAttendee, ...], Field(min_length=1)]
    agenda: tuple[Text, ...]
    key_topics: tuple[Text, ...]
    utterances: Annotated[tuple[EverydayUtterance, ...], Field(min_length=1)]
    slides: tuple[EverydaySlide, ...] = ()
    gestures: tuple[EverydayGesture, ...] = ()
    truth: EverydayTruth

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        names = {person.name for person in self.attendees}
        ids = {said.id for said in self.utterances}
        if len(names) < len(self.attendees):
            raise ValueError("two attendees have the same full name")
        if len(ids) < len(self.utterances):
            raise ValueError("two utterances have the same id")
        strangers = {said.speaker for said in self.utterances} | {moved.who for moved in self.gestures}
        if strangers - names:
            raise ValueError(f"not among the attendees: {', '.join(sorted(strangers - names))}")
        unknown = {place for entry in self.truth.entries() for place in entry.evidence} - ids
        if unknown:
            raise ValueError(f"evidence without an utterance: {', '.join(sorted(unknown))}")
        if any(later.start_s < earlier.start_s for earlier, later in pairwise(self.utterances)):
            raise ValueError("utterances are not in the order of their starts")
        return self


def load_everyday(folder: Path | None = None, split: Split | None = None) -> tuple[EverydayMeeting, ...]:
    """The meetings of a folder in the order of their file names; without a folder, the project's own.

    `split` keeps only that part; meetings that name no split are then left out.

    Raises:
        EverydayError: the folder holds no meeting, a file is not one, or two have the same id.
    """
    place = FOLDER if folder is None else folder
    found: dict[str, EverydayMeeting] = {}
    for path in sorted(place.glob("*.json")):
        try:
            meeting = EverydayMeeting.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise EverydayError(f"{path}: {error}") from error
        if meeting.meeting in found:
            raise EverydayError(f"{path}: there is another meeting {meeting.meeting!r}")
        found[meeting.meeting] = meeting
    if not found:
        raise EverydayError(f"{place}: no meetings (*.json) there")
    return tuple(meeting for meeting in found.values() if split in (None, meeting.split))
