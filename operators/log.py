"""What the programs say about themselves: one line on standard error for each thing that matters.

``MINUTED_LOG_FORMAT`` is ``text`` (the line as people read it) or ``json`` (one object a line for log collectors).
"""

import datetime
import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Final, Literal

LogFormat = Literal["text", "json"]
Event = Literal[
    "ready", "stop", "broker_away", "broker_back", "messages_expired", "notice", "dead_letter",
    "refused", "failed", "telemetry_away", "telemetry_back", "behind", "caught_up", "meeting_overdue", "shed",
    "taken_back", "said",
]  # fmt: skip
"""What a line is about, for programs that read the log."""

_ERRORS: Final[frozenset[Event]] = frozenset({"failed"})
_WARNINGS: Final[frozenset[Event]] = frozenset(
    {
        "broker_away",
        "messages_expired",
        "notice",
        "dead_letter",
        "refused",
        "telemetry_away",
        "behind",
        "meeting_overdue",
        "shed",
    }
)
_WHO: Final = re.compile(r"([a-z]+(?:\.[a-z_]+)?): ")


def say(line: str, event: Event = "said", **fields: str | int | float) -> None:
    """One line for people, on standard error.

    Args:
        line: who says what, for example ``flows.minutes: ready``; without line breaks.
        event: what it is about.
        fields: what a program would look for in the line.
    """
    if os.environ.get("MINUTED_LOG_FORMAT") == "json":
        line = as_json(line, event, time.time(), fields)
    print(line, file=sys.stderr, flush=True)


def as_json(line: str, event: Event, now_s: float, fields: dict[str, str | int | float]) -> str:
    """The line as one JSON object: time, level, event, who, message, and the fields."""
    who = _WHO.match(line)
    level = "error" if event in _ERRORS else "warning" if event in _WARNINGS else "info"
    told: dict[str, str | int | float] = {
        "time": datetime.datetime.fromtimestamp(now_s, datetime.UTC).isoformat(timespec="milliseconds"),
        "level": level,
        "event": event,
        "who": who[1] if who else "",
        "message": line[who.end() :] if who else line,
    }
    return json.dumps(told | {k: v for k, v in fields.items() if k not in told}, ensure_ascii=False)


class Sparing:
    """Says the first of many alike at once, then at most one line each ``every_s`` with how many there were."""

    def __init__(self, every_s: float = 10.0, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock_s = clock_s
        self._next_s = 0.0
        self._silent = 0

    def due(self) -> int:
        """How many to tell of now, this one included; 0 to stay silent."""
        self._silent += 1
        now_s = self._clock_s()
        if now_s < self._next_s:
            return 0
        self._next_s = now_s + self._every_s
        told, self._silent = self._silent, 0
        return told
