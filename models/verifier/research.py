"""Research meetings (AMI form, JSON Lines) as scripts: utterances, people, and which utterances items rest on.

    python -m models.verifier.research --meetings FILE --utterances FILE.gz --out DIR

`docs/data.md` says where the corpora come from. They annotate neither owners nor dates, and what is not linked may
still be an item: scripts say so (``owners_known`` false, no traps).
"""

import argparse
import collections
import gzip
import json
import sys
from pathlib import Path
from typing import Any


def script_of(meeting: dict[str, Any], utterances: list[dict[str, Any]]) -> dict[str, Any]:
    """One meeting as a script."""
    spoken = [
        {"id": u["id"], "start_s": u["start"], "end_s": u["end"], "speaker": u["speaker"], "text": u["text"]}
        for u in utterances
        if u["text"].strip()
    ]
    linked: dict[str, list[str]] = collections.defaultdict(list)
    for u in utterances:
        for link in u.get("links") or ():
            linked[link].append(u["id"])
    truth: dict[str, Any] = {"open_questions": [], "traps": [], "withdrawn": [], "owners_known": False}
    for section, name in (("decision", "decisions"), ("action", "action_items")):
        truth[name] = [
            {"text": s["text"], "evidence": linked[s["id"]]}
            for s in (meeting["summary"] or {}).get(section) or ()
            if linked[s["id"]]
        ]
    people = [
        {"name": p["role"] or f"Speaker {p['speaker']}", "speaker": p["speaker"], "role": p.get("role_name")}
        for p in meeting["participants"]
    ]
    return {
        "meeting": meeting["meeting"], "title": meeting["meeting"], "date": meeting.get("date"), "attendees": people,
        "utterances": spoken, "truth": truth, "split": "train",
    }  # fmt: skip


def read_research(meetings: Path, utterances: Path) -> list[dict[str, Any]]:
    """All meetings of a file as scripts.

    Raises:
        OSError, ValueError, KeyError: a file cannot be read or is of another form.
    """
    said: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    with gzip.open(utterances, "rt", encoding="utf-8") as lines:
        for line in lines:
            utterance = json.loads(line)
            said[utterance["meeting"]].append(utterance)
    told = [json.loads(line) for line in meetings.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [script_of(meeting, said[meeting["meeting"]]) for meeting in told]


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--meetings", type=Path, required=True)
    parser.add_argument("--utterances", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for script in read_research(given.meetings, given.utterances):
        path = given.out / f"{script['meeting']}.json"
        path.write_text(json.dumps(script, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
