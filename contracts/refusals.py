"""Why a message or file does not fit its model, in words for people instead of the library's."""

from typing import Final

from pydantic import ValidationError

_WORDS: Final = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object with named fields",
    "model_type": "must be an object with named fields",
    "model_attributes_type": "must be an object with named fields",
    "string_type": "must be text",
    "string_unicode": "must be text in UTF-8",
    "int_parsing_size": "is too large a number",
    "date_type": "must be a day like 2026-03-10",
    "date_parsing": "must be a day like 2026-03-10",
    "date_from_datetime_parsing": "must be a day like 2026-03-10",
    "date_from_datetime_inexact": "must be a day like 2026-03-10, without a time",
    "datetime_type": "must be a time like 2026-03-10T09:00:00Z",
    "datetime_parsing": "must be a time like 2026-03-10T09:00:00Z",
    "datetime_from_date_parsing": "must be a time like 2026-03-10T09:00:00Z",
    "missing": "is missing",
    "extra_forbidden": "there is no such field",
    "json_invalid": "is no JSON",
    "json_type": "is no JSON",
}
"""Kinds of mistakes whose own words are about Python or parsers."""


def first_refusal(error: ValidationError) -> tuple[str, str]:
    """The first of what is wrong: the field, empty for the whole, and what is wrong with it, in one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    said = _WORDS.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    if first["type"] == "too_long":
        said = f"has more than {first['ctx']['max_length']} entries"
    said = " ".join(said.split())
    return field, said[:1].lower() + said[1:]


def refusal_line(error: ValidationError) -> str:
    """The same as one line."""
    field, what = first_refusal(error)
    return f"{field}: {what}" if field else what
