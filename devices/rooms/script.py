"""The script of a made-up meeting: who says what when, what the screen shows, who moves, what minutes must hold.

One YAML file is one meeting; `read_script` checks it and says in one line what is wrong with it. Lengths are
metres from one corner of the floor, the third coordinate upwards; times are seconds.

A line starts `gap_s` after the end of the latest-ending line before it (negative: into it), or `offset_s` after
the start of the line named in `during`. `[0.8]` in its text is a pause of 0.8 s.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from contracts.base import Id, Name
from contracts.messages import Position
from contracts.refusals import refusal_line
from devices.rooms.intonation import Intonation

Form = Literal["seats", "pair", "mix"]
"""One microphone a seat; two channels in the middle of the table; one track mixed from the seats."""

FORMS: Final[tuple[Form, ...]] = ("seats", "pair", "mix")
MAX_LENGTH_S: Final = 3_600.0
_PAUSE: Final = re.compile(r"\s*\[(\d+(?:\.\d+)?)\]\s*")

Seconds = Annotated[float, Field(ge=-MAX_LENGTH_S, le=MAX_LENGTH_S, allow_inf_nan=False)]
LongText = Annotated[str, Field(min_length=1, max_length=20_000)]
Decibels = Annotated[float, Field(ge=-120.0, le=60.0, allow_inf_nan=False)]


class ScriptError(ValueError):
    """A script that cannot be used; the text is one line that says where and what."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Voice(_Part):
    """A synthesiser's voice and what is done to it: factors on pitch, formants and speed."""

    name: Name
    pitch: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    formant: Annotated[float, Field(ge=0.7, le=1.4)] = 1.0
    pace: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0


def _voice(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Attendee(_Part):
    """Somebody invited. Who has no seat is not there: others may speak of them."""

    name: Name
    role: Name | None = None
    seat: Name | None = None
    voice: Annotated[Voice | None, BeforeValidator(_voice)] = None
    level_db: Decibels = 0.0
    """How much louder than others they speak."""


class Seat(_Part):
    """A place at the table and the microphone in front of it."""

    mouth_m: Position
    microphone_m: Position | None = None
    """None: 0.3 m towards the middle of all seats and 0.15 m below the mouth."""
    gain_db: Decibels = 0.0


class Pair(_Part):
    """Two microphones on the table, `spacing_m` apart on a line turned by `angle_deg` from the first axis."""

    centre_m: Position
    spacing_m: Annotated[float, Field(gt=0.0, le=2.0)] = 0.3
    angle_deg: Annotated[float, Field(ge=-360.0, le=360.0)] = 0.0
    gain_db: tuple[Decibels, Decibels] = (6.0, 5.2)


class RoomShape(_Part):
    """A box-shaped room. `rt60_s` 0 is a room without walls."""

    size_m: Position
    rt60_s: Annotated[float, Field(ge=0.0, le=1.5)]
    noise_dbfs: Decibels = -65.0
    seats: dict[str, Seat]
    pair: Pair | None = None

    @model_validator(mode="after")
    def _inside(self) -> Self:
        places = {f"seat {name}": seat.mouth_m for name, seat in self.seats.items()}
        places |= {f"microphone of seat {n}": s.microphone_m for n, s in self.seats.items() if s.microphone_m}
        if self.pair is not None:
            places["pair"] = self.pair.centre_m
        for what, place in places.items():
            if not all(0.0 < at < size for at, size in zip(place, self.size_m, strict=True)):
                raise ValueError(
                    f"{what} at {_metres(place)} lies outside the room of {_metres(self.size_m)}"
                )
        return self


class Line(_Part):
    """One thing said. `say` is what the synthesiser is given where it differs from the text."""

    id: Name
    speaker: Name
    text: LongText
    gap_s: Seconds = 0.4
    during: Name | None = None
    offset_s: Seconds | None = None
    say: LongText | None = None
    pace: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    backchannel: bool = False
    intonation: Intonation | None = None
    """How the voice ends where that alone tells a question from a statement."""
    recording: Name | None = None
    """A sound file beside the script, in place of a synthesiser."""

    @property
    def written(self) -> str:
        """The text without its pauses."""
        return _PAUSE.sub(" ", self.text).strip()

    def stretches(self) -> list[tuple[str, float]]:
        """Text between pauses, each with the pause in seconds that follows."""
        parts = _PAUSE.split(self.text)
        pauses = [float(part) for part in parts[1::2]] + [0.0]
        return list(zip(parts[0::2], pauses, strict=True))

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if (self.during is None) != (self.offset_s is None):
            raise ValueError("during and offset_s go together")
        if not all(text.strip() for text, _ in self.stretches()):
            raise ValueError("a pause must stand between words")
        if self.say is not None and len(self.stretches()) > 1:
            raise ValueError("say and pauses exclude each other")
        return self


class SlideScript(_Part):
    """What the screen shows from `lead_s` before the line `before` on, until the next slide.

    `show` brings an earlier slide back. A `page` taller than the screen scrolls to its end when the line
    `scroll_before` begins, within `scroll_s`.
    """

    id: Name | None = None
    show: Name | None = None
    kind: Literal["title", "bullets", "table", "chart", "page"] = "bullets"
    theme: Literal["light", "dark", "photo"] = "light"
    before: Name | None = None
    lead_s: Seconds = 0.3
    build: bool = False
    title: Name | None = None
    subtitle: Name | None = None
    footer: tuple[Name, ...] = ()
    bullets: tuple[Name, ...] = ()
    rows: tuple[tuple[Name, ...], ...] = ()
    bars: tuple[tuple[Name, float], ...] = ()
    unit: Name | None = None
    paragraphs: tuple[LongText, ...] = ()
    scroll_before: Name | None = None
    scroll_s: Annotated[float, Field(gt=0.0, le=30.0)] = 2.0

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        needed = {
            "title": self.subtitle,
            "bullets": self.bullets,
            "table": self.rows,
            "chart": self.bars,
            "page": self.paragraphs,
        }
        if self.show is None and self.title is None:
            raise ValueError("a slide needs a title, or the slide to show again")
        if self.show is None and not needed[self.kind]:
            fields = {"title": "subtitle", "table": "rows", "chart": "bars", "page": "paragraphs"}
            raise ValueError(f"a slide of kind {self.kind} needs {fields.get(self.kind, 'bullets')}")
        if len({len(row) for row in self.rows}) > 1:
            raise ValueError("the rows of a table must be equally long")
        if self.scroll_before is not None and self.kind != "page":
            raise ValueError("only a page scrolls")
        return self


class Gesture(_Part):
    """A movement that the camera sees, `offset_s` after the start of the line `line`."""

    who: Name
    kind: Literal["nod", "shake", "raise_hand"]
    line: Name
    offset_s: Seconds = 0.0
    length_s: Annotated[float, Field(gt=0.0, le=60.0)] = 1.2


class Flash(_Part):
    """A flash on screen and camera and a beep from `position_m`, both at `at_s`."""

    at_s: Annotated[float, Field(ge=0.0, le=MAX_LENGTH_S)]
    position_m: Position


class Item(_Part):
    """Something that minutes must hold; `evidence` are ids of lines, `from_slide` the field that only a slide tells."""

    text: Name
    evidence: Annotated[tuple[Name, ...], Field(min_length=1)]
    from_slide: dict[str, Name] = Field(default_factory=dict)
    """Field of the item → id of the slide that alone carries it."""
    from_camera: tuple[Name, ...] = ()
    """Fields of the item that only the camera tells: a vote by raised hands, a nod for a yes."""


class ActionItem(Item):
    """A task. `owner` None: nobody was named."""

    owner: Name | None = None
    owner_kind: Literal["self", "accepted", "named", "none"] = "none"
    due: datetime.date | None = None
    due_text: Name | None = None


class AnsweredQuestion(Item):
    """A question that found its answer."""

    answer: Name


class Trap(_Part):
    """What sounds like an item and is none."""

    why: Name
    evidence: Annotated[tuple[Name, ...], Field(min_length=1)]


class Items(_Part):
    """What minutes must hold and must not hold."""

    decisions: tuple[Item, ...] = ()
    action_items: tuple[ActionItem, ...] = ()
    open_questions: tuple[Item, ...] = ()
    answered_questions: tuple[AnsweredQuestion, ...] = ()
    withdrawn: tuple[Item, ...] = ()
    traps: tuple[Trap, ...] = ()

    def listed(self) -> Iterator[tuple[str, Item | Trap]]:
        """Every item with the name of its list."""
        for kind in type(self).model_fields:
            for item in getattr(self, kind):
                yield kind, item


class Script(_Part):
    """A whole meeting."""

    meeting_id: Id
    title: Name
    kind: Name
    """What sort of meeting it is: stand-up, budget, clinic."""
    date: datetime.date
    start_time: datetime.datetime
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    form: Form = "seats"
    lead_in_s: Annotated[float, Field(ge=0.0, le=120.0)] = 1.0
    lead_out_s: Annotated[float, Field(ge=0.0, le=120.0)] = 1.5
    attendees: Annotated[tuple[Attendee, ...], Field(min_length=1)]
    agenda: tuple[Name, ...] = ()
    key_topics: tuple[Name, ...] = ()
    room: RoomShape
    lines: Annotated[tuple[Line, ...], Field(min_length=1)]
    slides: tuple[SlideScript, ...] = ()
    gestures: tuple[Gesture, ...] = ()
    flash: Flash | None = None
    truth: Items = Items()

    @field_validator("start_time")
    @classmethod
    def _has_zone(cls, value: datetime.datetime) -> datetime.datetime:
        if value.tzinfo is None:
            raise ValueError("needs a time zone, like 2026-03-10T09:00:00Z")
        return value

    @property
    def seated(self) -> tuple[Attendee, ...]:
        """Who is in the room."""
        return tuple(person for person in self.attendees if person.seat is not None)

    def person(self, name: str) -> Attendee:
        """The attendee of that name."""
        return next(person for person in self.attendees if person.name == name)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for problem in (*self._people(), *self._times(), *self._screen(), *self._references()):
            raise ValueError(problem)
        return self

    def _people(self) -> Iterator[str]:
        yield from _repeated("attendee", (person.name for person in self.attendees))
        yield from _repeated("seat", (person.seat for person in self.seated if person.seat is not None))
        for person in self.seated:
            if person.seat not in self.room.seats:
                yield f"attendee {person.name} sits at {person.seat}, which the room does not have"
        here = {person.name: person for person in self.seated}
        for line in self.lines:
            if line.speaker not in here:
                yield f"line {line.id}: {line.speaker} is not in the room"
            elif here[line.speaker].voice is None and line.recording is None:
                yield f"line {line.id}: {line.speaker} has no voice and the line no recording"

    def _times(self) -> Iterator[str]:
        yield from _repeated("line", (line.id for line in self.lines))
        before: set[str] = set()
        for line in self.lines:
            if line.during is not None and line.during not in before:
                yield f"line {line.id}: during names {line.during}, which is no line before it"
            before.add(line.id)

    def _screen(self) -> Iterator[str]:
        yield from _repeated("slide", (slide.id for slide in self.slides if slide.id is not None))
        if self.slides and self.slides[0].before is not None:
            yield "slides: the first slide is there from the start and has no before"
        known: set[str] = set()
        for number, slide in enumerate(self.slides):
            if number > 0 and slide.before is None:
                yield f"slides.{number}: needs before, the line it appears at"
            if slide.show is not None and slide.show not in known:
                yield f"slides.{number}: show names {slide.show}, which is no slide before it"
            if slide.id is not None and slide.show is None:
                known.add(slide.id)

    def _references(self) -> Iterator[str]:
        lines, slides = {line.id for line in self.lines}, {slide.id for slide in self.slides}
        here = {person.name for person in self.seated}
        for number, slide in enumerate(self.slides):
            for name in (slide.before, slide.scroll_before):
                if name is not None and name not in lines:
                    yield f"slides.{number}: there is no line {name}"
        for number, gesture in enumerate(self.gestures):
            if gesture.line not in lines:
                yield f"gestures.{number}: there is no line {gesture.line}"
            if gesture.who not in here:
                yield f"gestures.{number}: {gesture.who} is not in the room"
        for kind, item in self.truth.listed():
            for name in item.evidence:
                if name not in lines:
                    yield f"truth.{kind}: there is no line {name}"
            if isinstance(item, Item):
                for field, name in item.from_slide.items():
                    if name not in slides:
                        yield f"truth.{kind}: there is no slide {name} for {field}"


@dataclass(frozen=True, slots=True)
class _UniqueKeys:
    """Tells which key of a YAML mapping stands twice; YAML readers keep the last one silently."""

    path: Path

    def check(self, node: yaml.Node | None) -> None:
        """Raises ScriptError for the first repeated key below `node`."""
        if isinstance(node, yaml.MappingNode):
            keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            for name, count in keys.items():
                if count > 1:
                    line = node.start_mark.line + 1
                    raise ScriptError(
                        f"{self.path}: {name} stands {count} times in the mapping at line {line}"
                    )
            for _, value in node.value:
                self.check(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                self.check(value)


def read_script(path: Path) -> Script:
    """The script in a file. The file's name without ending is the meeting's id where it gives none.

    Raises:
        ScriptError: the file cannot be read, is no YAML, or a field is missing, unknown, wrong or contradictory.
    """
    try:
        text = path.read_text("utf-8")
        _UniqueKeys(path).check(yaml.compose(text, Loader=yaml.SafeLoader))
        data = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ScriptError(f"{path}: no YAML: {getattr(error, 'problem', error)}{where}") from error
    except RecursionError as error:
        raise ScriptError(f"{path}: nested too deeply") from error
    if not isinstance(data, dict):
        raise ScriptError(f"{path}: no script: must be a mapping")
    try:
        return Script.model_validate({"meeting_id": path.stem} | data)
    except ValidationError as error:
        raise ScriptError(f"{path}: {refusal_line(error)}") from error


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name} stands {count} times"


def _metres(place: Position) -> str:
    return " × ".join(f"{value:g}" for value in place) + " m"
