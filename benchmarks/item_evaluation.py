"""How good items are on meetings that nothing was fitted on: nested cross-validation, and parts left out.

    python -m benchmarks.item_evaluation --scores out_of_fold.pkl --scripts DIR… --research FOLDER --heads
    --without attention=PKL cues=PKL --out folds.pkl

``--scores`` holds scores of meetings by networks that have not seen them; for each meeting, weights and thresholds of
its items come from meetings of other series, thresholds from a cross-validation within those. Intervals (95 %) are
by drawing series anew. ``--ablate`` leaves rules or model out; ``--without`` names tables of scores that
`benchmarks.item_tables` made with a part of the network off (or nothing, to compare with), several of one name as one:
judged and thresholded anew. ``--heads`` adds figures of single utterances. ``--out`` keeps what judges each part of the meetings,
for `benchmarks.item_stages`. Prints one JSON line.
"""

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from models.minutes.scores import UtteranceScores
from models.minutes.stages import corpora
from operators.understand.cues import Reading
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine
from operators.understand.state import State
from operators.understand.types import Spoken

from . import head_scores
from .item_nested import Fold, by_source, figures, grouped, nested, told
from .item_scores import score_minutes
from .items import Judged, Table, TableScorer, made_of, read_all
from .report import print_report, progress
from .script_minutes import minutes_of

_BARE: Final = UtteranceScores()
EngineOf = Callable[[TableScorer], HybridEngine]


@dataclass(frozen=True)
class ModelAlone(HybridEngine):
    """Only the model starts items. The rules' grammar still says who and when, and what is said again."""

    def read(self, state: State, spoken: Spoken) -> tuple[State, Reading]:
        """As the whole engine, without what a rule started."""
        after, reading = super().read(state, spoken)
        return replace(after, drafts=tuple(d for d in after.drafts if d.by_model)), reading


def _unscored(table: Table) -> dict[str, dict[Any, Any]]:
    """The same meetings where the model says nothing."""
    return {
        name: {key: value if key == "ids" else [_BARE] * len(value) for key, value in mine.items()}
        for name, mine in table.items()
    }


def _whole(scorer: TableScorer) -> HybridEngine:
    return HybridEngine(scorer=scorer)


def _model_alone(scorer: TableScorer) -> HybridEngine:
    return ModelAlone(scorer=scorer)


def rules_alone(made: Sequence[Judged], seed: int) -> dict[str, Any]:
    """The rule engine as it is shipped, on the same meetings."""
    engine = RuleEngine()
    out = {}
    for name, places in by_source(made).items():
        mine = [made[place] for place in places]
        counts = [(m.group, score_minutes(m.script, minutes_of(m.script, engine), m.limits)) for m in mine]
        out[name] = told(grouped(counts), seed)
    return out


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Nested figures of meetings under changed conditions."""

    folds: int = 5
    strength: float = 3.0
    seed: int = 0

    def judged(self, made: Sequence[Judged]) -> tuple[list[Fold], dict[str, Any]]:
        """What judges each part of the meetings, and figures of all."""
        folds = nested(made, self.folds, self.strength, self.seed)
        return folds, figures(made, folds, self.seed)

    def under(self, inputs: Sequence[Any], table: Table, engine_of: EngineOf = _whole) -> dict[str, Any]:
        """Figures where other scores, or another engine, make the items."""
        return self.judged(made_of(inputs, table, engine_of=engine_of))[1]

    def ablated(self, inputs: Sequence[Any], made: Sequence[Judged], table: Table) -> dict[str, Any]:
        """The rules as shipped; rules with what is fitted for them alone; the model with no items of the rules."""
        out = {"rules as shipped": rules_alone(made, self.seed)}
        progress("rules, fitted")
        out["rules, fitted"] = self.under(inputs, _unscored(table))
        progress("model alone")
        return out | {"model alone": self.under(inputs, table, _model_alone)}

    def without(self, inputs: Sequence[Any], tables: Mapping[str, Table]) -> dict[str, Any]:
        """Figures with each of these tables, on the meetings that it holds."""
        out: dict[str, Any] = {}
        for name, table in tables.items():
            progress(f"without {name}")
            mine = [one for one in inputs if one[0]["meeting"] in table]
            out[name] = {"meetings": len(mine), **self.under(mine, table)}
        return out


def _read(paths: Iterable[Path]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for path in paths:
        table |= pickle.loads(path.read_bytes())
    return table


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the input is not there."""
    given = _arguments(arguments)
    begun = time.perf_counter()
    table = _read(given.scores)
    inputs = read_all(given.scripts, given.research, table)[:: given.every]
    if not inputs:
        print("item_evaluation: no meetings that there are scores of", file=sys.stderr)
        return 2
    evaluation = Evaluation(given.folds, given.strength, given.seed)
    made = made_of(inputs, table)
    folds, found = evaluation.judged(made)
    out: dict[str, Any] = {"meetings": len(made), **found}
    if given.out is not None:
        given.out.write_bytes(pickle.dumps(folds))
    if given.heads:
        truths = corpora(given.scripts, given.research, ())
        out["heads"] = head_scores.figures(truths, table, given.folds, given.seed)
    if given.ablate:
        out["ablations"] = evaluation.ablated(inputs, made, table)
    if given.without:
        paths: dict[str, list[Path]] = {}
        for name, _, path in (one.partition("=") for one in given.without):
            paths.setdefault(name, []).append(Path(path))
        out["without"] = evaluation.without(inputs, {name: _read(mine) for name, mine in paths.items()})
    print_report("item_evaluation", given.seed, out | {"seconds": round(time.perf_counter() - begun, 1)})
    return 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scores", type=Path, nargs="+", required=True)
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--research", type=Path, nargs="*", default=[])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--strength", type=float, default=3.0, help="as in benchmarks.items")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth meeting")
    parser.add_argument("--heads", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--without", nargs="*", default=[], metavar="NAME=PKL")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the parts and of the intervals")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
