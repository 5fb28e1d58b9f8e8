"""What is said of values that fit no model: our words, one line, the place first."""

import datetime
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from contracts.refusals import first_refusal, refusal_line


class Inner(BaseModel):
    names: tuple[str, ...] = Field((), max_length=2)
    day: datetime.date | None = None
    at: datetime.datetime | None = None
    count: int = 0


class Outer(BaseModel):
    inner: Inner = Inner()
    listed: dict[str, int] = {}


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"inner": []}, "inner: must be an object with named fields"),
        ({"inner": {"names": "Anna"}}, "inner.names: must be a list"),
        ({"inner": {"names": ["a", "b", "c"]}}, "inner.names: has more than 2 entries"),
        ({"inner": {"names": [5]}}, "inner.names.0: must be text"),
        ({"inner": {"day": "10.3.2026"}}, "inner.day: must be a day like 2026-03-10"),
        ({"inner": {"at": "nine"}}, "inner.at: must be a time like 2026-03-10T09:00:00Z"),
        ({"inner": {"count": "9" * 5000}}, "inner.count: is too large a number"),
        (
            {"inner": {"count": "many"}},
            "inner.count: input should be a valid integer, unable to parse string",
        ),
        ({"listed": 3}, "listed: must be an object with named fields"),
        (3, "must be an object with named fields"),
    ],
)
def test_the_first_refusal_in_words(value: Any, line: str) -> None:
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(value)
    assert refusal_line(error.value).startswith(line)


def test_broken_json_is_called_so() -> None:
    with pytest.raises(ValidationError) as error:
        Outer.model_validate_json(b"{")
    assert first_refusal(error.value) == ("", "is no JSON")
