"""Names of people as they come in: what nobody sees is taken out, what belongs to a name stays."""

import json

import pytest
from pydantic import ValidationError

from contracts.messages import AttendeeInfo, TranscriptMessage


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\u202eannA\u202c", "annA"),
        ("\u200bAnna \u2067Berg\u2069\ufeff", "Anna Berg"),
        ("  Anna\u00a0 Berg\u200d", "Anna Berg"),
        ("نگار\u200cسادات", "نگار\u200cسادات"),
        ("José", "José"),
    ],
)
def test_a_name_keeps_what_is_seen(given: str, kept: str) -> None:
    assert AttendeeInfo(name=given).name == kept
    line = {
        "meeting_id": "m",
        "device_id": "d",
        "stream_epoch": 1,
        "sequence": 0,
        "timestamp_ns": 0,
        "text": "x",
    }
    assert TranscriptMessage.model_validate_json(json.dumps(line | {"speaker": given})).speaker == kept


def test_a_name_of_which_nothing_is_seen_is_nobodys() -> None:
    line = {
        "meeting_id": "m",
        "device_id": "d",
        "stream_epoch": 1,
        "sequence": 0,
        "timestamp_ns": 0,
        "text": "x",
    }
    assert TranscriptMessage.model_validate(line | {"speaker": "\u200b\u202e "}).speaker is None
    with pytest.raises(ValidationError):
        AttendeeInfo(name="\u200e")
