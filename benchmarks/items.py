"""Fits what judges items by rules and model together, and says by cross-validation how good the items are.

    python -m benchmarks.items --scores out_of_fold.pkl --scripts DIR… --research FOLDER --model GRAPH --out items.json

``--scores`` holds scores of meetings that the network which made them has not seen
(`models.minutes.stages calibrate --scores`). Probabilities of a meeting's items come from meetings of other groups, and
so do the thresholds with which its figures are counted; what is written is fitted on all. Prints one JSON line:
precision, recall and F1 by source and section; with ``--ablate`` also without rules, without model and without its
pointers.
"""

import argparse
import collections
import hashlib
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnxruntime

from models.minutes.appraisal import Appraisal, Choice, Judgement
from models.minutes.inputs import Told, Window
from models.minutes.scores import UtteranceScores
from models.verifier.research import read_research
from operators.understand.apart import apart
from operators.understand.appraise import FIGURES, figures_of
from operators.understand.cues import Figures
from operators.understand.density import SPARSE, sparse
from operators.understand.hybrid import HybridEngine
from operators.understand.state import Draft
from operators.understand.types import DraftItem, Family, Spoken
from operators.understand.when import Day
from operators.understand.whose import Taker

from . import item_choices
from .item_choices import KEYS, Key, Task, task_of
from .item_fit import fitted, probabilities
from .item_scores import EVERYDAY, RESEARCH, Counts, Limits, edges_of, f1, report_of, score_minutes
from .report import print_report, progress
from .script_minutes import entry_of
from .scripts import Script, context_of, everyday_scripts, research_scripts, spoken_of

SECTION_OF: Final[Mapping[Family, str]] = {
    "action": "action_items", "decision": "decisions", "question": "open_questions",
}  # fmt: skip
_OF_QUESTIONS: Final = frozenset((
    "by_rules", "support", "support_high", "likely", "likely_sum", "answer", "waits", "question_mark", "guarded", "joins",
    "summary",
))  # fmt: skip
"""Figures that questions are judged by: there are too few of them in annotated meetings to weigh all."""
_NOTHING: Final = np.zeros((1, 0), np.float16)
_EVEN: Final = 0.01
"""Where F1 is this close to the best one, the higher threshold is taken: fewer false items for the same worth."""
_GRID: Final = tuple(round(0.04 + 0.02 * step, 2) for step in range(34))
Table = Mapping[str, Mapping[Any, Any]]


class TableScorer:
    """Scores that were made beforehand: of utterances by meeting, and by how many later ones were known."""

    name = "table"

    def __init__(self, table: Table, change: str = "") -> None:
        self._table = table
        self._change = change
        self._now: dict[str, Mapping[int, UtteranceScores]] = {}

    def begin(self, meeting: str) -> None:
        """Answer for this meeting from now on."""
        mine = self._table[meeting]
        looks = [look for look in mine if isinstance(look, int)]
        self._now = {
            name: {look: self._changed(mine[look][row]) for look in looks}
            for row, name in enumerate(mine["ids"])
        }

    def _changed(self, said: UtteranceScores) -> UtteranceScores:
        if self._change == "no pointers":
            return replace(said, joins=0.0, joins_to=(), owner=())
        return said

    def slices(self, spoken: Spoken) -> Iterator[None]:
        """See `Scorer`; nothing is left to do."""
        del spoken
        yield from ()

    def told(self, spoken: Spoken, cues: Figures) -> Told:
        """The utterance's id in the place of its speaker; nothing else is asked for."""
        del cues
        return Told(spoken.id, 0, _NOTHING, ())

    def scores(self, window: Window, digest: bytes) -> Sequence[UtteranceScores]:
        """See `Scorer`."""
        del digest
        newest = len(window.utterances) - 1
        return [self._at(told.speaker, newest - place) for place, told in enumerate(window.utterances)]

    def _at(self, name: str, later: int) -> UtteranceScores:
        looks = self._now.get(name)
        return UtteranceScores() if looks is None else looks[max(look for look in looks if look <= later)]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item in the making with its figures, its entry in the minutes, and whether the truth has it."""

    family: Family
    figures: tuple[float, ...]
    draft: Draft
    item: DraftItem
    entry: dict[str, Any]
    holds: bool
    takers: tuple[Taker, ...] = ()
    days: tuple[Day, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """All candidates of one meeting."""

    script: Script
    limits: Limits
    group: str
    sparse: bool
    candidates: tuple[Candidate, ...]


def judged_of(script: Script, engine: HybridEngine, limits: Limits, group: str) -> Judged:
    """What the engine would judge at the end of a meeting, each beside the truth."""
    spoken = spoken_of(script)
    by_id = {s.id: s for s in spoken}
    state = engine.start(context_of(script))
    for said in spoken:
        state = engine.step(state, said)
    state = engine.finish(state)
    thin, out = sparse(state), []
    for draft, item in engine.in_the_making(state):
        entry = entry_of(item, by_id, "model")
        found = edges_of([entry], SECTION_OF[draft.family], script, limits)
        figures, holds = figures_of(draft, state, thin), bool(found[0])
        may = engine.who_may(draft, state), engine.when_may(draft, state)
        out.append(Candidate(draft.family, figures, draft, item, entry, holds, *may))
    return Judged(script, limits, group, thin >= SPARSE, tuple(out))


def read_all(
    scripts: Sequence[Path], research: Sequence[Path], table: Table
) -> list[tuple[Script, Limits, str]]:
    """Scripts that there are scores of, how they are scored, and the group that stays together."""
    out: list[tuple[Script, Limits, str]] = []
    for script in everyday_scripts(scripts):
        if script["meeting"] in table and script.get("split") != "test":
            out.append((script, EVERYDAY, script["meeting"]))
    for folder in research:
        for split in ("dev", "train"):
            meetings = folder / f"meetings.{split}.jsonl"
            said = folder / f"utterances.{split}.jsonl.gz"
            if not meetings.is_file():
                continue
            people = {s["meeting"]: s["attendees"] for s in research_scripts(meetings, said)}
            for script in read_research(meetings, said):
                if script["meeting"] in table:
                    told = script | {"attendees": people[script["meeting"]], "date": None}
                    out.append((told, RESEARCH, script["meeting"][:-1]))
    return out


def folds_of(made: Sequence[Judged], folds: int) -> list[int]:
    """The fold of each meeting; groups stay together."""
    groups = sorted({m.group for m in made})
    fold = {group: (number * 7919) % len(groups) % folds for number, group in enumerate(groups)}
    return [fold[m.group] for m in made]


def judge(made: Sequence[Judged], folds: int, strength: float) -> tuple[list[dict[str, float]], Appraisal]:
    """Held-out probability of every candidate (by id of its entry), and the weights fitted on all."""
    fold = folds_of(made, folds)
    found: list[dict[str, float]] = [{} for _ in made]
    families: dict[str, Judgement] = {}
    for family in SECTION_OF:
        rows = [(place, c) for place, m in enumerate(made) for c in m.candidates if c.family == family]
        # Nobody annotated questions in research meetings: there they are unknown, not wrong.
        told = np.array(
            [family != "question" or made[place].limits != RESEARCH for place, _ in rows], np.bool_
        )
        figures = np.array([c.figures for _, c in rows]).reshape(-1, len(FIGURES)) * _weighed(family)
        holds = np.array([c.holds for _, c in rows], np.float64)
        held_in = np.array([fold[place] for place, _ in rows])
        for number in range(folds):
            seen = held_in != number
            weights = fitted(figures[seen & told], holds[seen & told], strength)
            for (place, c), p in zip(
                [r for r, kept in zip(rows, seen, strict=True) if not kept],
                probabilities(weights, figures[~seen]),
                strict=True,
            ):
                found[place][c.item.id] = float(p)
        weights = fitted(figures[told], holds[told], strength)
        families[family] = Judgement(tuple(map(float, weights[:-1])), float(weights[-1]), 0.5, 0.5)
    return found, Appraisal(FIGURES, "", families)


def _weighed(family: Family) -> npt.NDArray[np.float64]:
    """1 for the figures that a family is judged by."""
    return np.array([float(family != "question" or name in _OF_QUESTIONS) for name in FIGURES])


def published(
    meeting: Judged, sure: Mapping[str, float], family: Family, least: float
) -> tuple[Candidate, ...]:
    """What stands in the minutes of one kind where items from this probability on do."""
    likely = {
        c.item.id: HybridEngine.sure(sure[c.item.id], c.draft)
        for c in meeting.candidates
        if c.family == family
    }
    mine = [
        c
        for c in meeting.candidates
        if c.family == family and (likely[c.item.id] >= least or HybridEngine.stands(c.draft))
    ]
    kept = {item.id for _, item in apart([(c.draft, c.item) for c in mine], likely)}
    answered = "answered_question"  # stands in a section of its own, which no truth has
    return tuple(c for c in mine if c.item.id in kept and not c.item.withdrawn and c.item.kind != answered)


Choices = Mapping[Key, Choice | None]
"""What tells owners, and what tells days."""


def with_choices(meeting: Judged, choices: Choices) -> Judged:
    """A meeting whose tasks have the owners and days that are chosen."""
    for key, choice in choices.items():
        if choice is not None:
            candidates = tuple(
                replace(c, entry=_task(c, key).chosen(key, choice)) if c.family == "action" else c
                for c in meeting.candidates
            )
            meeting = replace(meeting, candidates=candidates)
    return meeting


def _task(c: Candidate, key: Key) -> Task:
    return task_of(key, c.entry, c.takers, c.days)


def judge_choices(
    made: Sequence[Judged],
    found: Sequence[Mapping[str, float]],
    least: Mapping[str, tuple[float, float]],
    folds: int,
) -> tuple[list[Choices], Choices]:
    """What tells owners and days, for each meeting fitted on those of other folds, and fitted on all.

    Each has one threshold for all meetings.
    """
    fold = folds_of(made, folds)
    held_out: list[dict[Key, Choice | None]] = [{} for _ in made]
    whole: dict[Key, Choice | None] = {}
    for key in KEYS:
        tasks = [
            (m.script, m.limits, [_task(c, key) for c in m.candidates if c.family == "action"]) for m in made
        ]
        parts = {
            number: item_choices.fit(
                [t for t, other in zip(tasks, fold, strict=True) if other != number], key
            )
            for number in set(fold)
        }

        def shown(place: int, key: Key = key) -> list[Task]:
            if _snippet(made[place]):
                return []
            items = published(made[place], found[place], "action", least["action"][made[place].sparse])
            return [_task(c, key) for c in items]

        limit = item_choices.threshold(tasks, key, [parts[number] for number in fold], shown)
        for mine, number in zip(held_out, fold, strict=True):
            mine[key] = _at(parts[number], limit)
        whole[key] = _at(item_choices.fit(tasks, key), limit)
    return list(held_out), whole


def _at(choice: Choice | None, limit: float) -> Choice | None:
    return choice and replace(choice, threshold=limit)


def _scored(meeting: Judged, family: Family, items: Sequence[Candidate]) -> Counts:
    section = SECTION_OF[family]
    return score_minutes(meeting.script, {section: [c.entry for c in items]}, meeting.limits, (section,))


@dataclass(frozen=True)
class Tallies:
    """Counts of every meeting for each kind and each threshold of the grid, so that thresholds cost nothing to try."""

    made: Sequence[Judged]
    counts: Mapping[Family, Sequence[Sequence[Counts]]]

    @classmethod
    def of(cls, made: Sequence[Judged], found: Sequence[Mapping[str, float]]) -> "Tallies":
        """From held-out probabilities."""
        counts: dict[Family, list[list[Counts]]] = {family: [] for family in SECTION_OF}
        for family, mine in counts.items():
            for meeting, sure in zip(made, found, strict=True):
                known: dict[tuple[str, ...], Counts] = {}
                row = []
                for least in _GRID:
                    items = published(meeting, sure, family, least)
                    names = tuple(c.item.id for c in items)
                    if names not in known:
                        known[names] = _scored(meeting, family, items)
                    row.append(known[names])
                mine.append(row)
        return cls(made, counts)

    def best(self, places: Sequence[int]) -> dict[str, tuple[float, float]]:
        """Thresholds (dense, sparse talk) with the best F1 on some of the meetings, for each kind."""
        out = {}
        for family in SECTION_OF:
            dense = self._best(family, places, thin=False)
            # Questions of sparse talk are not annotated anywhere.
            out[family] = (dense, dense if family == "question" else self._best(family, places, thin=True))
        return {str(family): least for family, least in out.items()}

    def _best(self, family: Family, places: Sequence[int], *, thin: bool) -> float:
        section = SECTION_OF[family]
        mine = [i for i in places if self.made[i].sparse == thin and not _snippet(self.made[i])]
        values = []
        for step in range(len(_GRID)):
            rows = [self.counts[family][i][step] for i in mine]
            hit, predicted, gold = (
                sum(row[section, name] for row in rows) for name in ("hit", "predicted", "gold")
            )
            values.append(f1(hit, predicted, gold))
        if not any(values):
            return 0.5
        return max(least for least, value in zip(_GRID, values, strict=True) if value >= max(values) - _EVEN)

    def at(self, place: int, least: Mapping[str, tuple[float, float]]) -> Counts:
        """Counts of one meeting with these thresholds, which are of the grid."""
        counts: Counts = collections.Counter()
        for family in SECTION_OF:
            counts += self.counts[family][place][_GRID.index(least[family][self.made[place].sparse])]
        return counts

    def nested(self, folds: int) -> list[Counts]:
        """Counts of each meeting with thresholds that were chosen on the other folds."""
        fold = folds_of(self.made, folds)
        least = {
            number: self.best([i for i, other in enumerate(fold) if other != number]) for number in set(fold)
        }
        return [self.at(place, least[number]) for place, number in enumerate(fold)]


def reports(made: Sequence[Judged], counts: Sequence[Counts]) -> dict[str, Any]:
    """Figures for short everyday meetings and for research meetings apart, from the counts of each meeting."""
    out = {}
    for name, limits in (("everyday", EVERYDAY), ("research", RESEARCH)):
        mine = [c for m, c in zip(made, counts, strict=True) if m.limits == limits and not _snippet(m)]
        if mine:
            out[name] = report_of(sum(mine, collections.Counter()))
    return out


def _snippet(meeting: Judged) -> bool:
    """Pieces of meetings teach, but a score on them says nothing of whole ones."""
    return meeting.limits == EVERYDAY and len(meeting.script["utterances"]) < 50


def made_of(
    inputs: Sequence[tuple[Script, Limits, str]],
    table: Table,
    change: str = "",
    engine_of: Callable[[TableScorer], HybridEngine] = lambda scorer: HybridEngine(scorer=scorer),
) -> list[Judged]:
    """All candidates of all meetings."""
    scorer = TableScorer(table, change)
    engine = engine_of(scorer)
    out = []
    for number, (script, limits, group) in enumerate(inputs, 1):
        scorer.begin(script["meeting"])
        out.append(judged_of(script, engine, limits, group))
        if number % 20 == 0:
            progress(f"{number}/{len(inputs)} meetings")
    return out


def version_of(graph: Path) -> str:
    """The name by which a network's weights are known."""
    session = onnxruntime.InferenceSession(graph.read_bytes(), providers=["CPUExecutionProvider"])
    return str(session.get_modelmeta().custom_metadata_map["name"])


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the input is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scores", type=Path, nargs="+", required=True)
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--research", type=Path, nargs="*", default=[])
    parser.add_argument(
        "--model", type=Path, help="graph of the network that gives the scores in the product"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--strength", type=float, default=1.0, help="how much large weights are held back")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth meeting")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="nothing here is random")
    given = parser.parse_args(arguments)
    begun = time.perf_counter()
    table: dict[str, Any] = {}
    for path in given.scores:
        table |= pickle.loads(path.read_bytes())
    inputs = read_all(given.scripts, given.research, table)[:: given.every]
    if not inputs:
        print("items: no meetings that there are scores of", file=sys.stderr)
        return 2
    made = made_of(inputs, table)
    found, appraisal = judge(made, given.folds, given.strength)
    tallies = Tallies.of(made, found)
    least = tallies.best(range(len(made)))
    held_out, choices = judge_choices(made, found, least, given.folds)
    made = [with_choices(m, mine) for m, mine in zip(made, held_out, strict=True)]
    tallies = Tallies.of(made, found)
    families = {
        name: replace(j, threshold=least[name][0], threshold_sparse=least[name][1])
        for name, j in appraisal.families.items()
    }
    if given.out is not None:
        name = version_of(given.model) if given.model is not None else ""
        graph = hashlib.sha256(given.model.read_bytes()).hexdigest() if given.model is not None else ""
        replace(
            appraisal,
            model=name,
            families=families,
            graph=graph,
            owners=choices["owner"],
            dates=choices["due"],
        ).write(given.out)
    told: dict[str, Any] = {
        "meetings": len(made),
        "thresholds": least | {key: choice and choice.threshold for key, choice in choices.items()},
        **reports(made, tallies.nested(given.folds)),
    }
    if given.ablate:
        told["ablations"] = _ablations(made, inputs, table, given.folds, given.strength)
    print_report("items", given.seed, told | {"seconds": round(time.perf_counter() - begun, 1)})
    return 0


def _ablations(
    made: Sequence[Judged],
    inputs: Sequence[tuple[Script, Limits, str]],
    table: Table,
    folds: int,
    strength: float,
) -> dict[str, Any]:
    """Figures with parts left out, each judged and thresholded anew."""
    model = [i for i, name in enumerate(FIGURES) if _of_model(name)]
    rules = [
        i
        for i, name in enumerate(FIGURES)
        if not _of_model(name) and name not in ("sparse", "place", "near_end")
    ]
    variants = {
        "no rules": [_without(m, rules) for m in made],
        "no model": [_without(m, model, rules_only=True) for m in made],
        "no pointers": made_of(inputs, table, "no pointers"),
    }
    out: dict[str, Any] = {}
    for name, changed in variants.items():
        found, _ = judge(changed, folds, strength)
        least = Tallies.of(changed, found).best(range(len(changed)))
        held_out, _ = judge_choices(changed, found, least, folds)
        changed = [with_choices(m, mine) for m, mine in zip(changed, held_out, strict=True)]
        out[name] = reports(changed, Tallies.of(changed, found).nested(folds))
    return out


def _of_model(name: str) -> bool:
    stem = name.removeprefix("sparse_")
    return stem.startswith(("likely", "owner_")) or stem in (
        "by_model", "other", "answer", "withdrawn", "undone", "summary", "joins", "judged_many", "mass",
    )  # fmt: skip


def _without(meeting: Judged, columns: Sequence[int], *, rules_only: bool = False) -> Judged:
    """The meeting with some figures at zero; ``rules_only`` also without what the model started."""
    gone, started = set(columns), FIGURES.index("by_model")
    kept = [c for c in meeting.candidates if not (rules_only and c.figures[started])]
    changed = tuple(
        replace(c, figures=tuple(0.0 if i in gone else f for i, f in enumerate(c.figures))) for c in kept
    )
    return replace(meeting, candidates=changed)


if __name__ == "__main__":
    sys.exit(main())
