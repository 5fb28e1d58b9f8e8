"""Annotated meetings as scripts: research meetings (AMI form, JSON Lines) and everyday ones, ready for the engine."""

import collections
import datetime as dt
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from operators.understand.types import Attendee, MeetingContext, Spoken

ROLES: Final = {
    "PM": "project manager",
    "ME": "marketing expert",
    "UI": "user interface designer",
    "ID": "industrial designer",
}
Script = dict[str, Any]


def spoken_of(script: Mapping[str, Any]) -> list[Spoken]:
    """Utterances in their final order; starts and ends in seconds become nanoseconds."""
    said = (_spoken(line, number) for number, line in enumerate(script["utterances"]))
    return sorted(said, key=lambda s: (s.start_ns, s.id))


def _spoken(line: Mapping[str, Any], number: int) -> Spoken:
    start = line.get("start_s", line.get("start", 0.0))
    end = line.get("end_s", line.get("end", start))
    return Spoken(
        str(line.get("id", f"u{number:05d}")),
        round(float(start) * 1e9),
        round(float(end) * 1e9),
        line.get("speaker"),
        line["text"],
        "transcript",
    )


def context_of(script: Mapping[str, Any]) -> MeetingContext:
    """What a script says of its meeting besides the speech."""
    return MeetingContext(
        script.get("title"),
        dt.date.fromisoformat(script["date"]) if script.get("date") else None,
        tuple(Attendee(a["name"], a.get("speaker"), a.get("role")) for a in script.get("attendees", ())),
        tuple(script.get("agenda", ())),
        tuple(script.get("key_topics", ())),
    )


def rows(path: Path) -> list[dict[str, Any]]:
    """Lines of a JSON Lines file, packed or not."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.decode("utf-8").splitlines() if line.strip()]


def everyday_scripts(folders: Sequence[Path]) -> list[Script]:
    """All scripts (*.json) of folders."""
    return [json.loads(p.read_text(encoding="utf-8")) for f in folders for p in sorted(f.glob("*.json"))]


def research_scripts(meetings: Path, utterances: Path) -> list[Script]:
    """Research meetings; speakers are named by their role, dates are not told."""
    by_meeting: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows(utterances):
        by_meeting[row["meeting"]].append(row)
    scripts = []
    for meeting in rows(meetings):
        said = by_meeting[meeting["meeting"]]
        roles = {u["speaker"]: u.get("role") for u in said}
        attendees = [
            {"name": role or f"Speaker {label}", "speaker": label, "role": ROLES.get(role or "")}
            for label, role in sorted(roles.items())
        ]
        scripts.append({"meeting": meeting["meeting"], "utterances": said, "attendees": attendees})
    return scripts
