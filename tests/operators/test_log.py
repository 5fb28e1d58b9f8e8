"""Lines for people and for programs: one format, one line each, and floods told sparingly."""

import datetime
import json

import pytest

from contracts.topics import DEADLETTER, TIMELINE
from operators.broker.sink import Outgoing, _Spokesman
from operators.log import Sparing, as_json, say


def test_text_is_the_line_and_json_is_one_object(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINUTED_LOG_FORMAT", raising=False)
    say("flows.minutes: ready", "ready", shards=16)
    monkeypatch.setenv("MINUTED_LOG_FORMAT", "json")
    say(
        "flows.minutes: meeting Größe: “so”\u2028",
        "notice",
        code="clock_step",
        message="never hides the line",
    )
    text, line, _ = capfd.readouterr().err.split("\n")
    assert text == "flows.minutes: ready"
    told = json.loads(line)
    assert datetime.datetime.fromisoformat(told.pop("time")).tzinfo is not None
    assert told == {
        "level": "warning", "event": "notice", "who": "flows.minutes", "message": "meeting Größe: “so”\u2028",
        "code": "clock_step",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "who", "message"),
    [
        ("flows.perceive: cannot write to x: y", "flows.perceive", "cannot write to x: y"),
        ("flow: partition 1: gone", "flow", "partition 1: gone"),
        ("something without a name", "", "something without a name"),
    ],
)
def test_who_says_it_is_a_field(line: str, who: str, message: str) -> None:
    told = json.loads(as_json(line, "failed", 0.0, {}))
    assert (told["who"], told["message"], told["level"]) == (who, message, "error")
    assert told["time"] == "1970-01-01T00:00:00.000+00:00"


def test_the_first_is_told_at_once_and_a_flood_once_in_a_while() -> None:
    now = [100.0]
    sparing = Sparing(10.0, lambda: now[0])
    assert [sparing.due() for _ in range(5)] == [1, 0, 0, 0, 0]
    now[0] += 10
    assert sparing.due() == 5
    now[0] += 10
    assert sparing.due() == 1


def test_dead_letters_and_notices_are_told_where_they_are_written(capfd: pytest.CaptureFixture[str]) -> None:
    spokesman = _Spokesman("flows.perceive")
    for number in range(3):
        value = json.dumps({"reason": "crc", "detail": "x"}).encode()
        spokesman.tell(Outgoing(DEADLETTER, b"k", value, "deadletter", f"minuted.audio/0/{number}"))
    notice = json.dumps(
        {"meeting_id": "m", "code": "clock_step", "text": "The clock of cam jumped."}
    ).encode()
    spokesman.tell(Outgoing(TIMELINE, b"m", notice, "timeline.notice"))
    assert capfd.readouterr().err.splitlines() == [
        "flows.perceive: a message, at minuted.audio/0/0, could not be read (crc); the bytes are on the dead-letter topic",
        "flows.perceive: meeting m: The clock of cam jumped.",
    ]
