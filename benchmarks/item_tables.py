"""Scores of all training meetings by networks that have not seen them, with a part of the network or its input off.

    python -m benchmarks.item_tables --graphs fold-0.onnx fold-1.onnx fold-2.onnx --scripts DIR… --research FOLDER
    --cues FILE… --vectors DIR --without attention --out PKL

``--graphs`` are those of all folds, in their order: `models.minutes.stages export` makes each of one network and one
linear model. A meeting is scored by the one that was trained without it. Scripts, research, apart, cues, vectors and
seed are those of the training. What comes out has the form of its ``out_of_fold.pkl``, with a score at every utterance.
Nothing is trained anew: a part that is off is off for a network which has learned with it. Prints one JSON line.

Needs onnx, which training brings, for what is off in the graph.
"""

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.minutes.corpora import Annotated
from models.minutes.examples import CueTable, read_cues
from models.minutes.held_out import AHEAD, folds_of
from models.minutes.inputs import Context, Told, Window
from models.minutes.reading import READER
from models.minutes.scores import UtteranceScores
from models.minutes.session import MinutesModel
from models.minutes.stages import corpora
from models.minutes.vectors import VectorStore, VectorTable
from models.minutes.words import grams_of
from operators.understand.cues import CUES

from .report import print_report, progress

Scored = Callable[[Window], Sequence[UtteranceScores]]
Change = Callable[[Told], Told]


def _as_it_is(told: Told) -> Told:
    return told


def _without_cues(told: Told) -> Told:
    return replace(told, cues=(0.0,) * len(told.cues))


def _without_text(told: Told) -> Told:
    return replace(told, text=np.zeros_like(told.text), grams=(), read=None)


def _without_reader(told: Told) -> Told:
    return replace(told, read=None)


INPUT_OFF: Final[Mapping[str, Change]] = {
    "cues": _without_cues, "text": _without_text, "reader": _without_reader,
}  # fmt: skip
"""What the model does not get, by name."""

GRAPH_OFF: Final = {"attention": ".gain", "network": ".of_network", "linear": ".of_words"}
"""Ends of the names of weights that are zero where a part of the graph is off: the attention operator's output, the
network's share of the heads, the linear model's."""


def with_zeros(graph: bytes, end: str) -> bytes:
    """The graph with nothing in all weights whose names end like this.

    Raises:
        ValueError: there are none.
    """
    import onnx

    model = onnx.load_from_string(graph)
    found = [part for part in model.graph.initializer if part.name.endswith(end)]
    if not found:
        raise ValueError(f"the graph has no weights {end}")
    for part in found:
        nothing = np.zeros_like(onnx.numpy_helper.to_array(part))
        part.CopyFrom(onnx.numpy_helper.from_array(nothing, part.name))
    out: bytes = model.SerializeToString(deterministic=True)
    return out


def scored(told: Iterable[Told], scores: Scored) -> dict[int, list[UtteranceScores]]:
    """Scores of every utterance with so many heard after it (fewer at the end), as a running meeting has them."""
    context = Context()
    out: dict[int, list[UtteranceScores]] = {ahead: [] for ahead in AHEAD}
    count = 0
    found: Sequence[UtteranceScores] = ()
    for count, one in enumerate(told, 1):
        context = context.heard(one)
        found = scores(context.window())
        for ahead, mine in out.items():
            if count > ahead:
                mine.append(found[len(found) - 1 - ahead])
    for mine in out.values():
        left = count - len(mine)
        mine.extend(found[len(found) - left :] if left else ())
    return out


def told_of(
    truth: Annotated, model: MinutesModel, vectors: VectorTable, cues: CueTable, change: Change
) -> Iterable[Told]:
    """What the network reads of a meeting, and what the model's reader says of it.

    Raises:
        KeyError: text that was never encoded, or an utterance without figures.
    """
    for line in truth.lines:
        words, figures = len(line.text.split()), cues[truth.name, line.id]
        read, vector = model.read(line.text), vectors.of(line.text)
        yield change(Told(line.speaker, words, vector, figures, grams=grams_of(line.text), read=read))


def tables(
    meetings: Sequence[Annotated],
    fold: Mapping[str, int],
    models: Mapping[int, MinutesModel],
    read: Callable[[Annotated, MinutesModel], Iterable[Told]],
) -> dict[str, dict[Any, Any]]:
    """Table of all meetings, each by the network of the fold that it was held out in."""
    out: dict[str, dict[Any, Any]] = {}
    for number, truth in enumerate(meetings, 1):
        model = models[fold[truth.group]]
        found = scored(read(truth, model), model.scores)
        out[truth.name] = {"ids": [line.id for line in truth.lines], **found}
        if number % 20 == 0:
            progress(f"{number}/{len(meetings)} meetings")
    return out


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when there is nothing to score."""
    given = _arguments(arguments)
    begun = time.perf_counter()
    meetings = corpora(given.scripts, given.research, given.apart)
    fold = folds_of(meetings, len(given.graphs), given.seed)
    mine = [
        m for source in given.sources for m in [m for m in meetings if m.source == source][:: given.every]
    ]
    if not mine:
        print("item_tables: no meetings of these sources", file=sys.stderr)
        return 2
    _, cues = read_cues(given.cues)
    vectors = VectorStore(given.vectors).table()
    change = INPUT_OFF.get(given.without, _as_it_is)
    with tempfile.TemporaryDirectory() as folder:
        models = {}
        for number, path in enumerate(given.graphs):
            if given.without in GRAPH_OFF:
                graph, reader = (
                    with_zeros(path.read_bytes(), GRAPH_OFF[given.without]),
                    path.with_suffix(READER),
                )
                path = Path(folder) / f"fold-{number}.onnx"
                path.write_bytes(graph)
                if reader.is_file():
                    path.with_suffix(READER).write_bytes(reader.read_bytes())
            models[number] = MinutesModel(CUES, path)
        table = tables(mine, fold, models, lambda truth, model: told_of(truth, model, vectors, cues, change))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(pickle.dumps(table))
    told = {
        "meetings": {source: sum(m.source == source for m in mine) for source in given.sources},
        "utterances": sum(len(m.lines) for m in mine),
        "without": given.without or "nothing",
        "seconds": round(time.perf_counter() - begun, 1),
    }
    print_report("item_tables", given.seed, told)
    return 0


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--graphs", type=Path, nargs="+", required=True)
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--research", type=Path, nargs="*", default=[])
    parser.add_argument("--apart", nargs="*", default=[])
    parser.add_argument("--cues", type=Path, nargs="+", required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--sources", nargs="+", default=["everyday", "ami"], help="also heard, snippet, icsi")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth meeting of each source")
    parser.add_argument("--without", choices=(*GRAPH_OFF, *INPUT_OFF))
    parser.add_argument("--seed", type=int, default=0, help="of the training: it says who was held out where")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
