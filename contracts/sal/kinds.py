"""Types of the rule language, read off the pydantic contracts, so that a rule cannot name a wrong field."""

import datetime
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ..messages import MeetingStarted
from ..minutes import MinutesDocument

Basic = Literal[
    "truth", "number", "text", "date", "moment", "duration", "numbers", "nothing", "list", "record"
]
_SPOKEN: Final[Mapping[str, str]] = {
    "truth": "a condition", "number": "a number", "text": "a text", "date": "a date", "moment": "a moment",
    "duration": "a duration", "numbers": "the numbers of a text", "nothing": "null", "list": "a list",
}  # fmt: skip
_TEXT_FIELDS: Final = ("text", "quote", "name", "what")
"""A record stands for its text where a text is wanted: the first of these fields that it has."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type. ``of`` is what a list holds, ``record`` the model of a record, ``values`` the only texts there are."""

    basic: Basic
    of: "Kind | None" = None
    record: "RecordKind | None" = None
    values: frozenset[str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.basic == "record" and self.record is not None:
            return self.record.spoken
        if self.basic == "list" and self.of is not None:
            of = self.of
            plural = {"truth": "conditions", "numbers": "numbers", "nothing": "nothing"}.get(
                of.basic, f"{of.basic}s"
            )
            return f"a list of {of.record.plural if of.record else plural}"
        return _SPOKEN[self.basic]


@dataclass(frozen=True, slots=True, eq=False)
class RecordKind:
    """A model of the contract: its fields with their types and whether they may be missing."""

    name: str
    fields: Mapping[str, tuple[Kind, bool]]
    factors: Mapping[str, float]
    """Microseconds in one unit of a field that holds a duration."""

    @property
    def text_field(self) -> str | None:
        """The field that stands for the record where a text is wanted."""
        return next((name for name in _TEXT_FIELDS if name in self.fields), None)

    @property
    def spoken(self) -> str:
        """With its article."""
        word = self.plural_word()
        return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"

    @property
    def plural(self) -> str:
        """More of them."""
        word = self.plural_word()
        return "pieces of evidence" if word == _WORDS["Evidence"] else f"{word}s"

    def plural_word(self) -> str:
        """The name as a word."""
        return _WORDS.get(self.name, self.name.lower())


_WORDS: Final[Mapping[str, str]] = {
    "ActionItem": "action item", "SummarySentence": "summary sentence", "SlideShown": "slide",
    "UtteranceShown": "utterance", "Evidence": "piece of evidence",
}  # fmt: skip
TRUTH: Final = Kind("truth")
NUMBER: Final = Kind("number")
TEXT: Final = Kind("text")
DATE: Final = Kind("date")
MOMENT: Final = Kind("moment")
DURATION: Final = Kind("duration")
NUMBERS: Final = Kind("numbers")
NOTHING: Final = Kind("nothing")
TEXTS: Final = Kind("list", TEXT)

_SIMPLE: Final[Mapping[type, Kind]] = {
    bool: TRUTH, int: NUMBER, float: NUMBER, str: TEXT, datetime.date: DATE, datetime.datetime: MOMENT,
}  # fmt: skip
_RECORDS: dict[type[BaseModel], Kind] = {}


def list_of(kind: Kind) -> Kind:
    """A list of that type."""
    return TEXTS if kind == TEXT else Kind("list", kind)


def _kind_of(annotation: Any) -> tuple[Kind, bool] | None:
    """Type of an annotation and whether the value may be missing; None where rules have no such type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind_of(arguments[0])
    if origin in (Union, types.UnionType):
        present = [a for a in arguments if a is not type(None)]
        found = _kind_of(present[0]) if len(present) == 1 else None
        return None if found is None else (found[0], found[1] or len(present) < len(arguments))
    if origin is Literal:
        return (
            (Kind("text", values=frozenset(arguments)), False)
            if all(isinstance(a, str) for a in arguments)
            else None
        )
    if origin is tuple and arguments[1:] == (...,):
        found = _kind_of(arguments[0])
        return None if found is None else (list_of(found[0]), False)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return record_kind(annotation), False
    if annotation in _SIMPLE:
        return _SIMPLE[annotation], False
    aware = getattr(annotation, "__name__", "") == "AwareDatetime"
    return (MOMENT, False) if aware else None


def record_kind(model: type[BaseModel]) -> Kind:
    """Type of a model's records. Fields named ``*_s`` and ``*_ms`` are durations."""
    if model not in _RECORDS:
        fields: dict[str, tuple[Kind, bool]] = {}
        factors: dict[str, float] = {}
        for name, told in model.model_fields.items():
            found = _kind_of(told.annotation)
            if found is None or name.endswith("_") or name == "type":
                continue
            if found[0] == NUMBER and name.endswith(("_s", "_ms")):
                factors[name] = 1e3 if name.endswith("_ms") else 1e6
                found = (DURATION, found[1])
            fields[name] = found
        _RECORDS[model] = Kind("record", record=RecordKind(model.__name__, fields, factors))
    return _RECORDS[model]


def text_of(kind: Kind) -> str | None:
    """The field by which a record stands for a text; empty for a text, None for what is neither."""
    if kind.basic == "text":
        return ""
    return kind.record.text_field if kind.basic == "record" and kind.record is not None else None


ITEM_LISTS: Final = ("decisions", "action_items", "open_questions", "answered_questions")
FINAL_LISTS: Final = ("utterances", "slides")
"""What is only complete when the meeting is over."""
GROWING: Final = (*ITEM_LISTS, "summary", "gaps", "notices", *FINAL_LISTS)
"""Lists that grow with the meeting; ``items`` is all four lists of items together."""
SHORT: Final = ("attendees", "key_topics", "agenda")
"""Lists that are known beforehand, more or less."""


def _meeting_kind() -> Kind:
    whole = record_kind(MinutesDocument).record
    opened = record_kind(MeetingStarted).record
    assert whole is not None and opened is not None
    fields = {name: whole.fields[name] for name in ("meeting_id", "title", "started", "duration_s")}
    return Kind(
        "record",
        record=RecordKind(
            "Meeting", fields | {"date": opened.fields["date"]}, {"duration_s": whole.factors["duration_s"]}
        ),
    )


def _names() -> dict[str, Kind]:
    whole, opened = record_kind(MinutesDocument).record, record_kind(MeetingStarted).record
    assert whole is not None and opened is not None
    item = whole.fields["decisions"][0]
    names = {name: whole.fields[name][0] for name in (*GROWING, "attendees")}
    return (
        {"meeting": _meeting_kind(), "items": item}
        | names
        | {name: opened.fields[name][0] for name in ("key_topics", "agenda")}
    )


NAMES: Final[Mapping[str, Kind]] = _names()
"""Everything that a rule can name without a variable, with its type."""
