"""Annotated meetings through the rule engine, as files that the scorers read.

``--meetings F --utterances F --predictions-out F`` for research meetings (AMI form, JSON Lines),
``--scripts DIR --minutes-dir DIR`` for everyday scripts. Prints one JSON line with counts and speed.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path
from typing import Any

from operators.compose import summary
from operators.understand.engine import DraftItem, MeetingContext, RuleEngine, Spoken, SummarySentence

from .report import print_report
from .scripts import ROLES, context_of, everyday_scripts, research_scripts, spoken_of

_LISTS = {
    "decision": "decisions",
    "action_item": "action_items",
    "open_question": "open_questions",
    "answered_question": "answered_questions",
}


def _evidence(quotes: tuple[Any, ...], by_id: dict[str, Spoken]) -> list[dict[str, Any]]:
    out = []
    for quote in quotes:
        said = by_id[quote.utterance_id]
        length = max(1, len(said.text))
        span = said.end_ns - said.start_ns
        out.append(
            {
                "kind": "speech",
                "start_s": (said.start_ns + span * quote.first / length) / 1e9,
                "end_s": (said.start_ns + span * quote.last / length) / 1e9,
                "device": said.device,
                "speaker": said.speaker,
                "quote": said.text[quote.first : quote.last],
                "error_ms": said.error_ms,
                "sampling_ms": said.sampling_ms,
                "boundary_ms": said.boundary_ms,
            }
        )
    return out


def entry_of(item: DraftItem, by_id: dict[str, Spoken], origin: str) -> dict[str, Any]:
    """An item as it stands in minutes.json, with the reasons and whether it was taken back."""
    entry: dict[str, Any] = {
        "id": item.id,
        "text": item.text,
        "confidence": item.confidence,
        "origin": origin,
        "verdict": "pass",
        "evidence": _evidence(item.evidence, by_id),
        "reasons": list(item.reasons),
        "withdrawn": item.withdrawn,
    }
    if item.kind == "action_item":
        entry |= {"owner": item.owner, "due": item.due and item.due.isoformat(), "due_text": item.due_text}
    return entry


def minutes_of(script: dict[str, Any]) -> dict[str, Any]:
    """Minutes of one script: ``utterances``, ``attendees``, ``date`` and so on in, minutes.json shape out."""
    spoken, context = spoken_of(script), context_of(script)
    engine = RuleEngine()
    state = engine.start(context)
    for utterance in spoken:
        state = engine.step(state, utterance)
    state = engine.finish(state)
    items = tuple(i for i in engine.items(state) if not i.withdrawn)
    by_id = {s.id: s for s in spoken}
    minutes: dict[str, Any] = {"schema": "minuted.minutes/1", "meeting_id": script["meeting"]}
    minutes["summary"] = [
        {"text": s.text, "evidence": _evidence(s.evidence, by_id)} for s in _summary(state, context, items)
    ]
    for name in _LISTS.values():
        minutes[name] = []
    for item in items:
        minutes[_LISTS[item.kind]].append(entry_of(item, by_id, engine.origin))
    return minutes


def _summary(
    state: Any, context: MeetingContext, items: tuple[DraftItem, ...]
) -> tuple[SummarySentence, ...]:
    return summary(state, context, items)


def _prediction(minutes: dict[str, Any]) -> dict[str, Any]:
    """One line in the form of the research scorer: spans in seconds, the owner is a role."""

    def item(entry: dict[str, Any]) -> dict[str, Any]:
        out = {
            "text": entry["text"],
            "evidence": [[e["start_s"], e["end_s"]] for e in entry["evidence"]],
            "confidence": entry["confidence"],
            "reasons": entry["reasons"],
        }
        if "owner" in entry:
            out["assignee"] = entry["owner"] if entry["owner"] in ROLES else None
        return out

    return {
        "meeting": minutes["meeting_id"],
        "action_items": [item(e) for e in minutes["action_items"]],
        "decisions": [item(e) for e in minutes["decisions"]],
        "summary": " ".join(s["text"] for s in minutes["summary"]),
    }


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the input is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--meetings", type=Path)
    parser.add_argument("--utterances", type=Path)
    parser.add_argument("--predictions-out", type=Path)
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--minutes-dir", type=Path)
    parser.add_argument("--only", help="comma-separated meeting ids")
    parser.add_argument(
        "--seed", type=int, default=0, help="nothing here is random; kept for every benchmark"
    )
    args = parser.parse_args(arguments)
    research = bool(args.meetings and args.utterances and args.predictions_out)
    if not research and not (args.scripts and args.minutes_dir):
        print(
            "minutes: give --meetings, --utterances and --predictions-out, or --scripts and --minutes-dir",
            file=sys.stderr,
        )
        return 2
    scripts = (
        research_scripts(args.meetings, args.utterances) if research else everyday_scripts([args.scripts])
    )
    if args.only:
        scripts = [s for s in scripts if s["meeting"] in args.only.split(",")]
    begun = time.perf_counter()
    counts: collections.Counter[str] = collections.Counter()
    lines: list[str] = []
    for number, script in enumerate(scripts, 1):
        minutes = minutes_of(script)
        counts["meetings"] += 1
        counts["utterances"] += len(script["utterances"])
        for name in _LISTS.values():
            counts[name] += len(minutes[name])
        if research:
            lines.append(json.dumps(_prediction(minutes)))
        else:
            folder = args.minutes_dir / script["meeting"]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "minutes.json").write_text(json.dumps(minutes, indent=1), encoding="utf-8")
        print(f"\r{number}/{len(scripts)} meetings", end="", file=sys.stderr)
    print(file=sys.stderr)
    seconds = time.perf_counter() - begun
    if research:
        args.predictions_out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rate = counts["utterances"] / seconds if seconds else 0.0
    print_report("minutes", args.seed, {**counts, "utterances_per_s": round(rate, 1)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
