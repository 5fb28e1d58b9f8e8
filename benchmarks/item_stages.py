"""Items as they stand while a meeting goes on and when it is over, and summaries, on meetings not fitted on.

    python -m benchmarks.item_stages --scores out_of_fold.pkl --folds folds.pkl --scripts DIR… --research FOLDER

Each meeting runs through the engine with the weights and thresholds that `benchmarks.item_evaluation --out` kept for
its group; scripts that a recogniser might have heard (`models.minutes.noise`) with those of the script they come from.
``--unseen FOLDER`` adds research meetings of the split ``dev``, on the released model and on rules alone. An item is
``provisional`` as it was when it first stood in the minutes, ``settled`` as it was two utterances later, ``final`` when
the meeting was over. ``quiet`` counts false items for each hour of talk in which there are none. Prints one JSON line.
"""

import argparse
import collections
import math
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flows.minutes_model import load_model
from models.minutes.noise import SUFFIX
from models.verifier.research import read_research
from operators.settings import Settings
from operators.summary import summary
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine

from . import minutes_summary
from .item_nested import Fold, f1_of, grouped, interval, told
from .item_scores import EVERYDAY, RESEARCH, SECTIONS, Counts, Limits, score_minutes
from .items import Table, TableScorer
from .minutes_summary import Summarised
from .report import print_report, progress
from .script_minutes import SETTLED, Stood, entry_of
from .scripts import Script, context_of, everyday_scripts, research_scripts, rows, spoken_of

STAGES: Final = ("provisional", "settled", "final")
_SECTION: Final = {"decision": "decisions", "action_item": "action_items", "open_question": "open_questions"}
_BIN_S: Final = 60.0
Minutes = Mapping[str, Sequence[dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    """A meeting, how it is scored, what it stays together with, and how its engine comes about."""

    source: str
    script: Script
    limits: Limits
    group: str
    engine: Callable[[], RuleEngine]
    abstract: str = ""


@dataclass(frozen=True)
class Followed:
    """Items of a meeting at each stage, as entries of minutes, and its summary."""

    stages: Mapping[str, Minutes]
    summary: str


def followed(script: Script, engine: RuleEngine) -> Followed:
    """A meeting from its first to its last utterance."""
    spoken, context = spoken_of(script), context_of(script)
    by_id = {s.id: s for s in spoken}
    stood = {"provisional": Stood(0), "settled": Stood(SETTLED)}
    state = engine.start(context)
    for said in spoken:
        state = engine.step(state, said)
        items = engine.items(state)
        for kept in stood.values():
            kept.see(items)
    state = engine.finish(state)
    final = tuple(i for i in engine.items(state) if not i.withdrawn)
    stages: dict[str, Minutes] = {}
    for name in STAGES:
        minutes: dict[str, list[dict[str, Any]]] = {section: [] for section in SECTIONS}
        for item in stood[name].items() if name in stood else final:
            if item.kind in _SECTION:
                minutes[_SECTION[item.kind]].append(entry_of(item, by_id, engine.origin))
        stages[name] = minutes
    return Followed(stages, " ".join(s.text for s in summary(state, context, final)))


def quiet(script: Script, minutes: Minutes) -> collections.Counter[str]:
    """Seconds of talk with no item near, and items by section that rest on such talk alone.

    Talk is quiet by the minute: where neither it nor the minutes beside it hold evidence of the truth.
    """
    said = script["utterances"]
    busy: set[int] = set()
    evidence = {e for section in SECTIONS for entry in script["truth"][section] for e in entry["evidence"]}
    for u in said:
        if u["id"] in evidence:
            busy.update(range(int(u["start_s"] // _BIN_S) - 1, int(u["end_s"] // _BIN_S) + 2))
    bins = range(math.ceil(max((u["end_s"] for u in said), default=0.0) / _BIN_S))
    out: collections.Counter[str] = collections.Counter()
    out["bins"] = sum(place not in busy for place in bins)
    for section in SECTIONS:
        for item in minutes[section]:
            places = {int(e[key] // _BIN_S) for e in item["evidence"] for key in ("start_s", "end_s")}
            out[section] += not places & busy
    return out


def per_hour(found: collections.Counter[str], sections: Iterable[str]) -> dict[str, float]:
    """False items for each hour of quiet talk."""
    hours = found["bins"] * _BIN_S / 3600
    return {"hours": round(hours, 2)} | {s: round(found[s] / max(1e-9, hours), 2) for s in sections}


class Gathered:
    """What was found in all meetings of a source."""

    def __init__(self) -> None:
        self.counts: dict[str, list[tuple[str, Counts]]] = {name: [] for name in STAGES}
        self.quiet: collections.Counter[str] = collections.Counter()
        self.summaries: list[Summarised] = []

    def add(self, case: Case) -> None:
        """Run a meeting and score it."""
        found = followed(case.script, case.engine())
        for name, minutes in found.stages.items():
            self.counts[name].append((case.group, score_minutes(case.script, minutes, case.limits)))
        self.quiet.update(quiet(case.script, found.stages["final"]))
        said = [u["text"] for u in case.script["utterances"]]
        self.summaries.append(Summarised(found.summary, case.abstract, said))

    def told(self, *, questions: bool, seed: int) -> dict[str, Any]:
        """Figures; research meetings have no questions in their truth."""
        out: dict[str, Any] = {name: told(grouped(counts), seed) for name, counts in self.counts.items()}
        out["quiet"] = per_hour(self.quiet, SECTIONS if questions else SECTIONS[:2])
        summaries = minutes_summary.figures(self.summaries)
        return out | ({"summary": summaries} if summaries else {})


def cost(clean: Gathered, heard: Gathered, seed: int) -> dict[str, Any]:
    """Share of F1 that a recogniser's errors take, on the meetings that are there both ways."""
    there = {group for group, _ in heard.counts["final"]}
    both: list[tuple[str, Counts]] = []
    for mark, gathered in (("", clean), ("heard ", heard)):
        for group, counts in gathered.counts["final"]:
            if group in there:
                both.append((group, collections.Counter({(mark + a, b): n for (a, b), n in counts.items()})))
    by_group = grouped(both)
    total: Counts = sum(by_group.values(), collections.Counter())
    out = {}
    for section in SECTIONS:

        def lost(counts: Counts, section: str = section) -> float:
            return 1 - f1_of(f"heard {section}")(counts) / max(1e-9, f1_of(section)(counts))

        out[section] = {"lost": round(lost(total), 3), "interval": interval(by_group, lost, seed)}
    return out


def cases_of(given: argparse.Namespace, table: Table, folds: Sequence[Fold]) -> list[Case]:
    """Meetings that there are scores and judges of."""
    of = {group: fold.appraisal for fold in folds for group in fold.groups}
    scorer = TableScorer(table)

    def engine_of(meeting: str, group: str) -> Callable[[], RuleEngine]:
        def engine() -> RuleEngine:
            scorer.begin(meeting)
            return HybridEngine(scorer=scorer, appraisal=of[group])

        return engine

    out = []
    for script in everyday_scripts(given.scripts):
        name = script["meeting"]
        group = name.removesuffix(SUFFIX)
        if name in table and group in of and script.get("split") != "test":
            source = "everyday" if group == name else "heard"
            out.append(Case(source, script, EVERYDAY, group, engine_of(name, group)))
    for folder in given.research:
        for script, abstract in research(folder, "train"):
            name = script["meeting"]
            group = name[:-1]
            if name in table and group in of:
                out.append(Case("research", script, RESEARCH, group, engine_of(name, group), abstract))
    return out


def unseen(folders: Sequence[Path]) -> list[Case]:
    """Research meetings of the split ``dev``, on the released model and on rules alone."""
    if not folders:
        return []
    scorer, appraisal = load_model(Settings(model="released"))
    engines = {"": HybridEngine(scorer=scorer, appraisal=appraisal), " by rules": RuleEngine()}

    def case(name: str, engine: RuleEngine, script: Script, abstract: str) -> Case:
        return Case(name, script, RESEARCH, script["meeting"][:-1], lambda: engine, abstract)

    return [
        case(f"unseen {folder.name}{kind}", engine, script, abstract)
        for folder in folders
        for script, abstract in research(folder, "dev")
        for kind, engine in engines.items()
    ]


def research(folder: Path, split: str) -> list[tuple[Script, str]]:
    """Research meetings as scripts, and their abstracts; people go by their roles, dates are not told.

    Meetings that nobody has summed up have no truth and are left out.
    """
    meetings, said = folder / f"meetings.{split}.jsonl", folder / f"utterances.{split}.jsonl.gz"
    people = {s["meeting"]: s["attendees"] for s in research_scripts(meetings, said)}
    abstracts = {
        m["meeting"]: " ".join(s["text"] for s in m["summary"].get("abstract") or ())
        for m in rows(meetings)
        if m["summary"]
    }
    return [
        (script | {"attendees": people[script["meeting"]], "date": None}, abstracts[script["meeting"]])
        for script in read_research(meetings, said)
        if script["meeting"] in abstracts
    ]


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the input is not there."""
    given = _arguments(arguments)
    begun = time.perf_counter()
    table: dict[str, Any] = {}
    for path in given.scores:
        table |= pickle.loads(path.read_bytes())
    folds = pickle.loads(given.folds.read_bytes()) if given.folds is not None else ()
    cases = [*cases_of(given, table, folds), *unseen(given.unseen)][:: given.every]
    if not cases:
        print("item_stages: no meetings that there are scores and judges of", file=sys.stderr)
        return 2
    found: dict[str, Gathered] = collections.defaultdict(Gathered)
    for number, case in enumerate(cases, 1):
        found[case.source].add(case)
        if number % 10 == 0:
            progress(f"{number}/{len(cases)} meetings")
    out: dict[str, Any] = {
        source: mine.told(questions=source in ("everyday", "heard"), seed=given.seed)
        for source, mine in found.items()
    }
    if "heard" in found and "everyday" in found:
        out["cost of errors"] = cost(found["everyday"], found["heard"], given.seed)
    out["meetings"] = {source: len(mine.summaries) for source, mine in found.items()}
    print_report("item_stages", given.seed, out | {"seconds": round(time.perf_counter() - begun, 1)})
    return 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scores", type=Path, nargs="*", default=[])
    parser.add_argument("--folds", type=Path, help="from benchmarks.item_evaluation --out")
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--research", type=Path, nargs="*", default=[])
    parser.add_argument("--unseen", type=Path, nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="only every so manieth meeting")
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
