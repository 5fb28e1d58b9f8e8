"""Stages of the minutes model's pipeline (`dvc.yaml`):

    python -m models.minutes.stages prepare --scripts DIR… --research FOLDER --out vectors/
    python -m models.minutes.stages train … --fold 0 --folds 3 --out fold-0.pt --raw fold-0.pkl      (once a fold)
    python -m models.minutes.stages words … --fold 0 --folds 3 --out words-0.npz --raw words-0.pkl            (the same)
    python -m models.minutes.stages read … --fold 0 --folds 3 --out reader-0.npz --raw reader-0.pkl           (the same)
    python -m models.minutes.stages calibrate … --raw fold-*.pkl --raw-words words-*.pkl --raw-reader reader-*.pkl
        --out calibration.json --mixture mixture.json --scores out_of_fold.pkl
    python -m models.minutes.stages export … --network fold-*.pt --words words-*.npz --reader reader-*.npz
        --mixture mixture.json --out minutes.onnx                                        (and minutes.reader.onnx beside)

What is released is the mean of the networks, of the linear models and of the readers of all folds. Thresholds and
calibration come from meetings that those which scored them have not seen. `prepare` keeps what it has encoded and
goes on there; the others are short.
"""

import argparse
import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.everyday_meetings import load_everyday
from models.minutes import calibrate as judge
from models.minutes import held_out, linear
from models.minutes.corpora import Annotated, everyday, research
from models.minutes.encoder import Encoder, joined, weights_path
from models.minutes.examples import Meeting, meeting_of, read_cues
from models.minutes.inputs import Floats, Layout
from models.minutes.noise import SUFFIX
from models.minutes.reading import READER, ReaderSession, read_around
from models.minutes.scores import Calibration, Mixture
from models.minutes.vectors import StateStore, VectorStore

_STRIDE: Final = 6
"""Lines between windows in training."""

_SCORED: Final = {"everyday": 1, "snippet": 1, "ami": 4, "icsi": 4}
"""The same where meetings are scored, by source: research meetings are long."""


def corpora(scripts: Sequence[Path], folders: Sequence[Path], apart: Sequence[str]) -> list[Annotated]:
    """All meetings to learn from: never those of the test split, nor those named in ``apart``.

    Raises:
        OSError, ValueError: a file cannot be read or is of another form.
    """
    out: list[Annotated] = []
    for folder in scripts:
        for meeting in load_everyday(folder):
            if meeting.split != "test" and meeting.meeting.removesuffix(SUFFIX) not in apart:
                # Writers who knew the model's task wrote the snippets; whole meetings are another kind of text.
                source = "everyday" if len(meeting.utterances) >= 50 else "snippet"
                made = everyday(meeting, "heard" if meeting.meeting.endswith(SUFFIX) else source)
                out.append(made)
    for folder in folders:
        source = folder.name
        out += research(source, folder / "meetings.train.jsonl", folder / "utterances.train.jsonl.gz")
    return out


def _prepare(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    encoder = Encoder(threads=given.threads)
    store = VectorStore(given.out)
    new = store.fill((line.text for m in meetings for line in m.lines), encoder)
    told = {"pieces": len(store), "new": new, "encoder": encoder.version}
    print(json.dumps(told), file=sys.stderr)


def _read(
    given: argparse.Namespace, meetings: Sequence[Annotated], stride: int
) -> tuple[Layout, list[Meeting]]:
    names, cues = read_cues(given.cues)
    vectors = VectorStore(given.vectors).table()
    return Layout(names), [meeting_of(m, vectors, cues, stride) for m in meetings]


def _train(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    import torch

    from models.minutes.network import NetworkSettings
    from models.minutes.train import TrainSettings, fit, scores

    torch.set_num_threads(given.threads)
    settings = TrainSettings(
        epochs=given.epochs, research=given.research_windows, seed=given.seed + given.fold
    )
    fold = held_out.folds_of(meetings, given.folds, given.seed)
    layout, seen = _read(given, [m for m in meetings if fold[m.group] != given.fold], _STRIDE)
    net = fit(seen, layout, NetworkSettings(), settings)
    held = [m for m in meetings if fold[m.group] == given.fold]
    found: dict[str, held_out.Raw] = {}
    for source, stride in _SCORED.items():
        _, unseen = _read(given, [m for m in held if m.source == source], stride)
        found |= {m.truth.name: scores(net, m, layout) for m in unseen}
    given.raw[0].write_bytes(pickle.dumps(found))
    torch.save(net.state_dict(), given.out)


def _words(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    fold = held_out.folds_of(meetings, given.folds, given.seed)
    _, cues = read_cues(given.cues)
    settings = linear.LinearSettings(given.inverse_penalty, given.research_share, seed=given.seed)
    model = linear.fit([m for m in meetings if fold[m.group] != given.fold], cues, settings)
    model.write(given.out)
    model = linear.Linear.read(given.out)
    held = [m for m in meetings if fold[m.group] == given.fold and m.source in _SCORED]
    found = {m.name: linear.scores(m, cues, model, _SCORED[m.source]) for m in held}
    given.raw[0].write_bytes(pickle.dumps(found))


def _read_words(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    import torch

    from models.minutes.encoder_weights import weights_of
    from models.minutes.reader import ReaderSettings, fit, kept_of
    from models.minutes.reader_graph import told, write_weights

    torch.set_num_threads(given.threads)
    fold = held_out.folds_of(meetings, given.folds, given.seed)
    states = StateStore(Encoder(threads=given.threads))
    settings = ReaderSettings(
        epochs=given.reader_epochs, research=given.reader_research, seed=given.seed + given.fold
    )
    mine = [m for m in meetings if m.source != "heard" and fold[m.group] != given.fold]
    reader = fit(mine, states.kept, weights_of(weights_path().read_bytes()), settings)
    kept = kept_of(reader)
    write_weights(given.out, kept)
    # What is released multiplies in 8 bits, and so does what is judged.
    session = ReaderSession(told([kept]), given.threads)
    found: dict[str, dict[int, Floats]] = {}
    for meeting in meetings:
        if fold[meeting.group] == given.fold and meeting.source in _SCORED:
            tables = np.stack([joined([session(x) for x in states.of(line.text)]) for line in meeting.lines])
            newest = held_out.newest_lines(len(meeting.lines), _SCORED[meeting.source])
            found[meeting.name] = {ahead: read_around(tables, last) for ahead, last in newest.items()}
    given.raw[0].write_bytes(pickle.dumps(found))


def _calibrate(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    network: dict[str, held_out.Raw] = {}
    words: dict[str, dict[int, Floats]] = {}
    reader: dict[str, dict[int, Floats]] = {}
    for path in given.raw:
        network |= pickle.loads(path.read_bytes())
    for voice, paths in ((words, given.raw_words), (reader, given.raw_reader)):
        for path in paths:
            voice |= pickle.loads(path.read_bytes())
    mixture = judge.mixture_of(meetings, network, words, reader)
    given.mixture.write_text(mixture.told() + "\n")
    raw = judge.mixed(network, words, reader, mixture)
    calibration = judge.calibrated(meetings, raw)
    given.out.write_text(calibration.told() + "\n")
    told = judge.figures(meetings, raw, calibration)
    given.figures.write_text(json.dumps(told, indent=1) + "\n")
    kept = {
        m.name: {
            "ids": [line.id for line in m.lines],
            **{ahead: judge.scores(m, raw[m.name], ahead, calibration) for ahead in held_out.AHEAD},
        }
        for m in meetings
        if m.name in raw
    }
    given.scores.write_bytes(pickle.dumps(kept))


def _export(given: argparse.Namespace, meetings: Sequence[Annotated]) -> None:
    import torch

    from models.minutes.export import Release, example_of, export
    from models.minutes.mixed import Mixed, Words
    from models.minutes.network import Averaged, MinutesNetwork, NetworkSettings
    from models.minutes.reader_graph import read_weights, told

    names, _ = read_cues(given.cues[:1])
    layout = Layout(names)
    networks = []
    for path in given.network:
        networks.append(MinutesNetwork(layout, NetworkSettings()))
        networks[-1].load_state_dict(torch.load(path, weights_only=True))
    words = Words(linear.Linear.mean([linear.Linear.read(path) for path in given.words]))
    mixture = Mixture.read(given.mixture.read_text())
    net = Mixed(Averaged(networks), words, mixture)
    reader = told([read_weights(path) for path in given.reader])
    given.out.with_suffix(READER).write_bytes(reader)
    calibration = Calibration.read(given.calibration.read_text())
    facts: Mapping[str, Any] = json.loads(given.figures.read_text())
    sizes = {s: sum(m.source == s for m in meetings) for s in sorted({m.source for m in meetings})}
    release = Release(
        layout, calibration, Encoder().version, {"meetings": sizes, "held_out": facts}, mixture.reader,
        ReaderSession(reader).digest,
    )  # fmt: skip
    print(export(net.eval(), example_of(layout), release, given.out), file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; each stage reads files and writes some."""
    parser = argparse.ArgumentParser(description="stages of the minutes model's pipeline")
    stages = parser.add_subparsers(dest="stage", required=True)
    work = {
        "prepare": _prepare, "train": _train, "words": _words, "read": _read_words, "calibrate": _calibrate,
        "export": _export,
    }  # fmt: skip
    for name in work:
        stage = stages.add_parser(name)
        stage.add_argument("--scripts", type=Path, nargs="*", default=[])
        stage.add_argument("--research", type=Path, nargs="*", default=[])
        stage.add_argument("--apart", nargs="*", default=[])
        stage.add_argument("--cues", type=Path, nargs="*", default=[])
        stage.add_argument("--vectors", type=Path)
        stage.add_argument("--out", type=Path, required=True)
        stage.add_argument("--seed", type=int, default=0)
        stage.add_argument("--threads", type=int, default=2)
        stage.add_argument("--epochs", type=int, default=10)
        stage.add_argument("--research-windows", type=int, default=1500)
        stage.add_argument("--inverse-penalty", type=float, default=1.0)
        stage.add_argument("--research-share", type=float, default=10.0)
        stage.add_argument("--reader-epochs", type=int, default=3)
        stage.add_argument("--reader-research", type=int, default=150)
        stage.add_argument("--fold", type=int, default=0)
        stage.add_argument("--folds", type=int, default=3)
        stage.add_argument("--raw", type=Path, nargs="*", default=[])
        stage.add_argument("--raw-words", type=Path, nargs="*", default=[])
        stage.add_argument("--raw-reader", type=Path, nargs="*", default=[])
        stage.add_argument("--reader", type=Path, nargs="*", default=[])
        stage.add_argument("--words", type=Path, nargs="*", default=[])
        stage.add_argument("--mixture", type=Path)
        stage.add_argument("--figures", type=Path)
        stage.add_argument("--scores", type=Path)
        stage.add_argument("--network", type=Path, nargs="*", default=[])
        stage.add_argument("--calibration", type=Path)
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    np.seterr(all="raise", under="ignore")
    work[given.stage](given, corpora(given.scripts, given.research, given.apart))
    return 0


if __name__ == "__main__":
    sys.exit(main())
