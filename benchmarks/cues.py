"""What the rules see in every utterance of annotated meetings, as a file for training the minutes model.

``--scripts DIR...`` for everyday scripts, ``--meetings FILE --utterances FILE`` for research meetings. The file
(``--out``, JSON Lines, packed with gzip) has one line a meeting: ``meeting``, ``names`` (of the figures), ``ids`` of
the utterances in their final order, ``cues`` (a row of figures for each). Prints one JSON line with counts and speed.
"""

import argparse
import gzip
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from operators.understand.cues import CUES, Figures, cues_of
from operators.understand.engine import RuleEngine

from .report import print_report
from .scripts import Script, context_of, everyday_scripts, research_scripts, spoken_of


def cues_in(script: Script, engine: RuleEngine) -> tuple[list[str], list[Figures]]:
    """Ids of the utterances in their final order, and the figures of each."""
    state = engine.start(context_of(script))
    ids: list[str] = []
    rows: list[Figures] = []
    for spoken in spoken_of(script):
        state, reading = engine.read(state, spoken)
        ids.append(spoken.id)
        rows.append(cues_of(reading))
    return ids, rows


@contextmanager
def packed(path: Path) -> Iterator[io.TextIOBase]:
    """Text packed with gzip; the same text makes the same file, whenever it is written."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=file, mtime=0) as content,
        io.TextIOWrapper(content, encoding="utf-8") as out,
    ):
        yield out


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the input is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--meetings", type=Path)
    parser.add_argument("--utterances", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="nothing here is random")
    given = parser.parse_args(arguments)
    scripts = everyday_scripts(given.scripts)
    if given.meetings and given.utterances:
        scripts += research_scripts(given.meetings, given.utterances)
    if not scripts:
        print("cues: give --scripts, or --meetings and --utterances", file=sys.stderr)
        return 2
    begun, count, engine = time.perf_counter(), 0, RuleEngine()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with packed(given.out) as out:
        for number, script in enumerate(scripts, 1):
            ids, rows = cues_in(script, engine)
            count += len(ids)
            line = {"meeting": script["meeting"], "names": CUES, "ids": ids, "cues": rows}
            out.write(json.dumps(line) + "\n")
            print(f"\r{number}/{len(scripts)} meetings", end="", file=sys.stderr)
    print(file=sys.stderr)
    rate = count / (time.perf_counter() - begun)
    print_report(
        "cues", given.seed, {"meetings": len(scripts), "utterances": count, "utterances_per_s": round(rate)}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
