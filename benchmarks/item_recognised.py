"""Items from recognised speech against items from the words as they were said, in rooms with truth.

    minuted run ROOM --out RUNS/NAME-OF-ROOM      (for each room)
    python -m benchmarks.item_recognised --rooms ROOM… --runs RUNS

Both texts go through the same engines without pictures and sound, so that the difference is that of the words, their
times and speakers alone. A recognised item counts where its time covers what the truth names as evidence. Prints one
JSON line.
"""

import argparse
import collections
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from flows.minutes_model import load_model
from models.minutes.appraisal import AppraisalUnusable
from models.minutes.session import MinutesModelUnusable
from operators.settings import Settings
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine

from .item_nested import f1_of
from .item_scores import SECTIONS, Counts, report_of, score_minutes
from .report import print_report
from .script_minutes import minutes_of
from .scripts import Script

_TRUTH: Final = (*SECTIONS, "withdrawn", "traps")


def said_in(room: Path) -> Script:
    """What was said in a room, and what the minutes should hold.

    Raises:
        OSError, ValueError, KeyError: the room has no truth.
    """
    told = json.loads((room / "truth.json").read_text(encoding="utf-8"))
    return {
        "meeting": told["meeting_id"],
        "title": told["title"],
        "date": told["date"],
        "attendees": told["attendees"],
        "utterances": told["utterances"],
        "truth": {section: told[section] for section in _TRUTH},
    }


def heard_in(run: Path) -> list[dict[str, Any]]:
    """Utterances as they were recognised, with their times in the meeting.

    Raises:
        OSError, ValueError, KeyError: the run has no minutes.
    """
    found: list[dict[str, Any]] = json.loads((run / "minutes.json").read_text(encoding="utf-8"))["utterances"]
    return found


def counted(script: Script, heard: Sequence[Mapping[str, Any]], engine: RuleEngine) -> tuple[Counts, Counts]:
    """Counts from the words as they were said, and as they were recognised."""
    clean = score_minutes(script, minutes_of(script, engine))
    recognised = score_minutes(script, minutes_of(script | {"utterances": list(heard)}, engine))
    return clean, recognised


def _lost(clean: float, recognised: float) -> float | None:
    """Share of F1 that is gone; None where there was none."""
    return round(1 - recognised / clean, 3) if clean else None


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when a room was not run or the model cannot be used."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rooms", type=Path, nargs="+", required=True)
    parser.add_argument("--runs", type=Path, required=True, help="folder with a folder for each room")
    parser.add_argument("--model", default="released", help="as MINUTED_MODEL")
    parser.add_argument("--seed", type=int, default=0, help="nothing here is random")
    given = parser.parse_args(arguments)
    try:
        scorer, appraisal = load_model(Settings(model=given.model))
        rooms = [(said_in(room), heard_in(given.runs / room.name)) for room in given.rooms]
    except (MinutesModelUnusable, AppraisalUnusable, OSError, ValueError, KeyError) as error:
        print(f"item_recognised: {error}", file=sys.stderr)
        return 2
    out: dict[str, Any] = {"rooms": len(rooms)}
    engines = {"rules": RuleEngine(), "model": HybridEngine(scorer=scorer, appraisal=appraisal)}
    for name, engine in engines.items():
        clean: Counts = collections.Counter()
        recognised: Counts = collections.Counter()
        for script, heard in rooms:
            one, other = counted(script, heard, engine)
            clean.update(one)
            recognised.update(other)
        lost = {s: _lost(f1_of(s)(clean), f1_of(s)(recognised)) for s in SECTIONS}
        out[name] = {"said": report_of(clean), "recognised": report_of(recognised), "lost": lost}
    print_report("item_recognised", given.seed, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
