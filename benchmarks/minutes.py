"""Annotated meetings through the engines that find items, as files that scorers read, and scored.

``--meetings F --utterances F --predictions-out F`` for research meetings (AMI form, JSON Lines),
``--scripts DIR --minutes-dir DIR`` for everyday scripts. ``--engine both`` compares rules alone with rules and model;
files are then those of the model. ``--stage`` says what is written and scored: ``provisional`` each item as it was
when it first stood in the minutes, ``settled`` as it was two utterances later, ``final`` when the meeting was over.
Prints one JSON line with counts and speed, and with precision, recall and F1 where scripts hold their truth.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path
from typing import Any

from flows.minutes_model import load_model
from models.minutes.appraisal import AppraisalUnusable
from models.minutes.session import MinutesModelUnusable
from operators.settings import Settings
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine

from .item_evaluation import main as cross_validate
from .item_scores import Counts, report_of, score_minutes
from .report import print_report
from .script_minutes import LISTS, minutes_of
from .scripts import ROLES, Script, everyday_scripts, research_scripts


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
    """Command line; 0 when done, 2 when the input is not there or the model cannot be used."""
    given = _arguments(arguments)
    if given.cross_validate is not None:
        return cross_validate(given.cross_validate)
    research = bool(given.meetings and given.utterances and given.predictions_out)
    if not research and not (given.scripts and given.minutes_dir):
        print(
            "minutes: give --meetings, --utterances and --predictions-out, or --scripts and --minutes-dir",
            file=sys.stderr,
        )
        return 2
    scripts = (
        research_scripts(given.meetings, given.utterances) if research else everyday_scripts([given.scripts])
    )
    if given.only:
        scripts = [s for s in scripts if s["meeting"] in given.only.split(",")]
    engines: dict[str, RuleEngine] = {}
    if given.engine in ("rules", "both"):
        engines["rules"] = RuleEngine()
    if given.engine in ("model", "both"):
        try:
            scorer, appraisal = load_model(Settings(model=given.model))
        except (MinutesModelUnusable, AppraisalUnusable) as error:
            print(f"minutes: {error}", file=sys.stderr)
            return 2
        engines["model"] = HybridEngine(scorer=scorer, appraisal=appraisal)
    told: dict[str, Any] = {}
    for name, engine in engines.items():
        written, told[name] = _run(scripts, engine, given.stage)
    for minutes in [] if research else written:
        folder = given.minutes_dir / minutes["meeting_id"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "minutes.json").write_text(json.dumps(minutes, indent=1), encoding="utf-8")
    if research:
        given.predictions_out.write_text("".join(json.dumps(_prediction(m)) + "\n" for m in written))
    figures = told | {"stage": given.stage} if len(told) > 1 else next(iter(told.values()))
    print_report("minutes", given.seed, figures)
    return 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--meetings", type=Path)
    parser.add_argument("--utterances", type=Path)
    parser.add_argument("--predictions-out", type=Path)
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--minutes-dir", type=Path)
    parser.add_argument("--only", help="comma-separated meeting ids")
    parser.add_argument("--engine", choices=("rules", "model", "both"), default="rules")
    parser.add_argument("--model", default="released", help="as MINUTED_MODEL")
    parser.add_argument(
        "--cross-validate", nargs=argparse.REMAINDER, help="what follows is for benchmarks.item_evaluation"
    )
    parser.add_argument("--stage", choices=("provisional", "settled", "final"), default="final")
    parser.add_argument(
        "--seed", type=int, default=0, help="nothing here is random; kept for every benchmark"
    )
    return parser.parse_args(arguments)


def _run(
    scripts: list[Script], engine: RuleEngine, stage: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Minutes of all scripts, and counts, speed and scores."""
    begun = time.perf_counter()
    counts: collections.Counter[str] = collections.Counter()
    scores: Counts = collections.Counter()
    written = []
    for number, script in enumerate(scripts, 1):
        minutes = minutes_of(script, engine, stage)
        counts["meetings"] += 1
        counts["utterances"] += len(script["utterances"])
        for name in LISTS.values():
            counts[name] += len(minutes[name])
        if "truth" in script:
            scores += score_minutes(script, minutes)
        written.append(minutes)
        print(f"\r{number}/{len(scripts)} meetings", end="", file=sys.stderr)
    print(file=sys.stderr)
    seconds = time.perf_counter() - begun
    told: dict[str, Any] = {**counts, "utterances_per_s": round(counts["utterances"] / max(1e-9, seconds), 1)}
    return written, told | ({"scores": report_of(scores)} if scores else {})


if __name__ == "__main__":
    sys.exit(main())
