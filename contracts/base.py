"""What all JSON messages share."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from .packet import ALL_MEETINGS, MAX_ID_BYTES, valid_id
from .packet import ClockKind as ClockKind

MAX_TEXT_CHARS = 100_000
_I64 = 2**63


def _checked_id(text: str) -> str:
    if not valid_id(text):
        raise ValueError("must be NFC text of 1 to 64 bytes without control characters")
    return text


def _checked_meeting(text: str) -> str:
    if text == ALL_MEETINGS:
        raise ValueError(f"{ALL_MEETINGS!r} stands for all meetings; only calibrations, clocks and rules may")
    return text


# What JSON Schema cannot say (bytes, normal form) is in the description, the rest in its own words.
_ID_SCHEMA: dict[str, JsonValue] = {
    "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
    "description": "Unicode in normal form C, at most 64 bytes of UTF-8, no control characters.",
}
Id = Annotated[
    str,
    Field(min_length=1, max_length=MAX_ID_BYTES, json_schema_extra=_ID_SCHEMA),
    AfterValidator(_checked_id),
]
"""Meeting or device id: NFC, at most 64 bytes of UTF-8, no control characters."""
MeetingId = Annotated[
    str,
    Field(
        min_length=1, max_length=MAX_ID_BYTES, json_schema_extra=_ID_SCHEMA | {"not": {"const": ALL_MEETINGS}}
    ),
    AfterValidator(_checked_id),
    AfterValidator(_checked_meeting),
]
"""Id of one meeting."""
Ns = Annotated[int, Field(ge=-_I64, lt=_I64)]
"""Nanoseconds, signed 64 bits. Above 2**53: a JSON reader needs whole numbers wider than a double."""
LengthNs = Annotated[int, Field(ge=0, lt=_I64)]
"""A length of time or an uncertainty, nanoseconds."""
Count = Annotated[int, Field(ge=0, lt=2**64)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Line = Annotated[str, Field(max_length=1_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


# Left in a name they would reorder the line it stands in, or make two names of what reads as one.
_UNSEEN = dict.fromkeys(
    [0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_JOINERS = "\u200c\u200d"
"""They belong into some names, but not to their ends."""


def seen(value: object) -> object:
    """A name without the marks nobody sees: directions, spaces of no width; other values as they are."""
    if not isinstance(value, str):
        return value
    return " ".join(value.translate(_UNSEEN).split()).strip(_JOINERS)


def _seen_or_nobody(value: object) -> object:
    return seen(value) or None if isinstance(value, str) else value


PersonName = Annotated[Name, BeforeValidator(seen)]
"""Name of somebody, or the label somebody speaks under."""
Somebody = Annotated[Name | None, BeforeValidator(_seen_or_nobody)]
"""The same, or null for nobody; a name of which nothing is seen is nobody's."""
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]
"""What people read; everything that is reckoned with is in nanoseconds."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Message(BaseModel):
    """A JSON message of the contract: frozen, unknown fields ignored so that newer writers do no harm."""

    # The strings below fields become descriptions in the JSON Schema.
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    def to_bytes(self) -> bytes:
        """Canonical bytes: fields in declared order, UTF-8, no spaces; same value, same bytes."""
        return self.model_dump_json(by_alias=True).encode("utf-8")
