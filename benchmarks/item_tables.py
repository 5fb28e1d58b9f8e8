"""Scores of all training meetings by networks that have not seen them, with a part of the network or its input off.

    python -m benchmarks.item_tables --graph minutes.onnx --scripts DIR… --research FOLDER --cues FILE… --vectors DIR
    --without attention --out PKL

``--graph`` is the mean of the networks of all folds; each meeting is scored by the one that was trained without it,
taken out of the graph. Scripts, research, apart, cues, vectors, folds and seed are those of the training
(`models.minutes.stages`). What comes out has the form of its ``out_of_fold.pkl``, with a score at every utterance.
Nothing is trained anew: a part that is off is off for a network which has learned with it. Prints one JSON line.

Needs onnx, which training brings, and torch for ``--without attention``.
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
from models.minutes.scores import UtteranceScores
from models.minutes.session import RELEASED, MinutesModel
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
    return replace(told, text=np.zeros_like(told.text), grams=())


INPUT_OFF: Final[Mapping[str, Change]] = {"cues": _without_cues, "text": _without_text}
"""What the network does not get, by name."""


def one_of(graph: bytes, number: int) -> bytes:
    """The graph with one of its averaged networks alone.

    Raises:
        ValueError: the graph is no mean of that many networks.
    """
    import onnx

    model = onnx.load_from_string(graph)
    made = {name: node for node in model.graph.node for name in node.output}
    chosen = 0
    for node in model.graph.node:
        stack = made.get(node.input[0]) if node.op_type == "ReduceMean" else None
        if stack is None or stack.op_type != "Concat":
            continue
        if number >= len(stack.input):
            raise ValueError(f"the graph is the mean of {len(stack.input)} networks")
        stack.input[:] = [stack.input[number]]
        chosen += 1
    if not chosen:
        raise ValueError("the graph is no mean of networks")
    needed = {output.name for output in model.graph.output}
    kept = []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(kept))
    found: bytes = model.SerializeToString(deterministic=True)
    return found


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


def told_of(truth: Annotated, vectors: VectorTable, cues: CueTable, change: Change) -> Iterable[Told]:
    """What the network reads of a meeting.

    Raises:
        KeyError: text that was never encoded, or an utterance without figures.
    """
    for line in truth.lines:
        words, figures = len(line.text.split()), cues[truth.name, line.id]
        yield change(Told(line.speaker, words, vectors.of(line.text), figures, grams=grams_of(line.text)))


def tables(
    meetings: Sequence[Annotated],
    fold: Mapping[str, int],
    models: Mapping[int, MinutesModel],
    read: Callable[[Annotated], Iterable[Told]],
) -> dict[str, dict[Any, Any]]:
    """Table of all meetings, each by the network of the fold that it was held out in."""
    out: dict[str, dict[Any, Any]] = {}
    for number, truth in enumerate(meetings, 1):
        found = scored(read(truth), models[fold[truth.group]].scores)
        out[truth.name] = {"ids": [line.id for line in truth.lines], **found}
        if number % 20 == 0:
            progress(f"{number}/{len(meetings)} meetings")
    return out


def _graphs(graph: bytes, folds: int, without: str | None) -> dict[int, bytes]:
    if without == "attention":
        from models.minutes.export import without_attention

        graph = without_attention(graph)
    return {number: one_of(graph, number) for number in range(folds)}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when there is nothing to score."""
    given = _arguments(arguments)
    begun = time.perf_counter()
    meetings = corpora(given.scripts, given.research, given.apart)
    fold = folds_of(meetings, given.folds, given.seed)
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
        for number, graph in _graphs(given.graph.read_bytes(), given.folds, given.without).items():
            path = Path(folder) / f"fold-{number}.onnx"
            path.write_bytes(graph)
            models[number] = MinutesModel(CUES, path)
        table = tables(mine, fold, models, lambda truth: told_of(truth, vectors, cues, change))
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
    parser.add_argument("--graph", type=Path, default=RELEASED)
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--research", type=Path, nargs="*", default=[])
    parser.add_argument("--apart", nargs="*", default=[])
    parser.add_argument("--cues", type=Path, nargs="+", required=True)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--sources", nargs="+", default=["everyday", "ami"], help="also heard, snippet, icsi")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth meeting of each source")
    parser.add_argument("--without", choices=("attention", *INPUT_OFF))
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the training: it says who was held out where")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
