"""What all JSON messages share."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .packet import ClockKind, valid_id

MAX_TEXT_CHARS = 100_000
_I64 = 2**63


def _checked_id(text: str) -> str:
    if not valid_id(text):
        raise ValueError("must be NFC text of 1 to 64 bytes without control characters")
    return text


Id = Annotated[str, AfterValidator(_checked_id)]
"""Meeting or device id."""
Ns = Annotated[int, Field(ge=-_I64, lt=_I64)]
"""Nanoseconds, signed 64 bits."""
Count = Annotated[int, Field(ge=0, lt=2**64)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
__all__ = ["MAX_TEXT_CHARS", "ClockKind", "Count", "Id", "Message", "Milliseconds", "Name", "Ns", "Share", "Text"]


class Message(BaseModel):
    """A JSON message of the contract: frozen, unknown fields ignored so that newer writers do no harm."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")

    def to_bytes(self) -> bytes:
        """Canonical bytes: fields in declared order, UTF-8, no spaces; the same value gives the same bytes."""
        return self.model_dump_json().encode("utf-8")
