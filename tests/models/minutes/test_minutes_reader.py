"""The expert that reads the words: its sums over talk, its graph, what it learns, and what the model makes of it."""

import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from models.minutes.corpora import Annotated, Line
from models.minutes.encoder import Encoder, pieces_of, weights_path
from models.minutes.inputs import WINDOW, Context
from models.minutes.reading import READER, ROLES, TABLE, ReaderSession, ReaderUnusable, read_around
from models.minutes.scores import HEADS
from models.minutes.session import RELEASED, MinutesModel, MinutesModelUnusable
from models.minutes.vectors import StateStore
from operators.understand.cues import CUES


def test_lines_speak_for_those_around_them_as_far_as_they_are_heard() -> None:
    chance = np.random.default_rng(1)
    tables = chance.normal(size=(45, TABLE)).astype(np.float32)
    newest = np.minimum(np.arange(45) + chance.integers(0, 9, 45), 44)
    found = read_around(tables, newest)
    told = tables.reshape(45, len(ROLES), len(HEADS))
    for line in range(45):
        expected = np.zeros(len(HEADS))
        for role, steps in enumerate(ROLES):
            for step in steps:
                other = line + step
                if 0 <= other <= newest[line] and other > newest[line] - WINDOW:
                    expected += told[other, role] / len(steps)
        assert np.abs(found[line] - expected).max() < 1e-5
    later = tables.copy()
    later[31:] += 1
    heard = np.minimum(newest, 30)
    assert np.array_equal(read_around(later, heard)[:31], read_around(tables, heard)[:31])


@pytest.mark.parametrize("graph", [b"", b"no graph", bytes(1000)])
def test_what_is_no_reader_is_refused(graph: bytes) -> None:
    with pytest.raises(ReaderUnusable):
        ReaderSession(graph)


def test_a_graph_of_another_form_is_refused() -> None:
    from models.minutes.encoder import GRAPH

    with pytest.raises(ReaderUnusable):
        ReaderSession(GRAPH.with_name("minutes.onnx").read_bytes())


@pytest.mark.train
def test_the_graph_says_what_was_trained_to_within_its_whole_numbers() -> None:
    torch = pytest.importorskip("torch")
    from models.minutes.encoder_weights import weights_of
    from models.minutes.reader import Reader, kept_of
    from models.minutes.reader_graph import told

    weights = weights_of(weights_path().read_bytes())
    readers = []
    for seed in range(3):
        torch.manual_seed(seed)
        readers.append(Reader(weights).eval())
        torch.nn.init.normal_(readers[-1].plain.weight, std=0.02)
    graph = told([kept_of(one) for one in readers])
    assert graph == told([kept_of(one) for one in readers])
    assert len(graph) < 6_500_000
    session, encoder = ReaderSession(graph), Encoder()
    for text in ("Yes.", "I'll send the offer to the printer by Friday, if that is all right with you."):
        (piece,) = pieces_of(text)
        _, before = encoder.run(encoder.tokens(piece))
        with torch.no_grad():
            alone = [r(torch.from_numpy(before), np.array([len(before)]))[0].numpy() for r in readers]
            double = torch.from_numpy(np.concatenate([before, before[:2]]))
            beside = readers[0](double, np.array([len(before), 2]))[0].numpy()
        assert np.abs(beside - alone[0]).max() < 1e-4, "a piece's table depends on no other piece"
        mean = np.mean(alone, axis=0)
        assert np.abs(session(before) - mean).max() < 0.05 * np.abs(mean).max()
        assert np.array_equal(session(before), session(before))


_SAID = (
    "I'll write it up tonight.",
    "Nice weather today.",
    "So is that agreed?",
    "Yes, fine by me.",
    "Never mind.",
)


def _meeting(number: int, count: int = 40) -> Annotated:
    """Promises are actions, and an agreement is a decision where somebody asked just before."""
    chance = random.Random(number)
    said = [chance.randrange(len(_SAID)) for _ in range(count)]
    labels = np.zeros((count, len(HEADS)), np.int8)
    labels[:, 0] = [one == 0 for one in said]
    labels[1:, 1] = [one == 3 and before == 2 for before, one in pairwise(said)]
    lines = tuple(Line(f"u{at}", "AB"[at % 2], _SAID[one]) for at, one in enumerate(said))
    return Annotated(f"m{number}", "everyday", f"m{number}", lines, labels, np.ones(count, np.float32))


@pytest.mark.train
def test_it_learns_what_words_say_and_what_was_said_before() -> None:
    pytest.importorskip("torch")
    from models.minutes.encoder import joined
    from models.minutes.encoder_weights import weights_of
    from models.minutes.reader import ReaderSettings, fit, kept_of
    from models.minutes.reader_graph import told

    store, weights = StateStore(Encoder()), weights_of(weights_path().read_bytes())
    settings = ReaderSettings(epochs=6, rate=3e-4, head_rate=5e-3)
    reader = fit([_meeting(n) for n in range(12)], store.kept, weights, settings)
    short = [
        told([kept_of(fit([_meeting(0)], store.kept, weights, ReaderSettings(epochs=1)))]) for _ in range(2)
    ]
    assert short[0] == short[1], "seeded"
    session, unseen = ReaderSession(told([kept_of(reader)])), _meeting(99, 80)
    tables = np.stack([joined([session(x) for x in store.of(line.text)]) for line in unseen.lines])
    found = read_around(tables, np.arange(80))
    for head in (0, 1):
        holds = unseen.labels[:, head] > 0
        assert found[holds, head].min() > found[~holds, head].max(), HEADS[head]


@pytest.mark.train
def test_the_model_adds_the_share_of_the_reader_beside_it(tmp_path: Path) -> None:
    torch, onnx = pytest.importorskip("torch"), pytest.importorskip("onnx")
    from models.minutes.encoder_weights import weights_of
    from models.minutes.reader import Reader, kept_of
    from models.minutes.reader_graph import told

    torch.manual_seed(5)
    graph = told([kept_of(Reader(weights_of(weights_path().read_bytes())))])
    shares = [0.5, 0.25, 0, 0, 0, 1, 0, 0]

    def model(name: str, digest: str, beside: bytes) -> MinutesModel:
        whole = onnx.load(RELEASED)
        onnx.helper.set_model_props(
            whole,
            {
                **{p.key: p.value for p in whole.metadata_props},
                "reader": digest,
                "reader_shares": json.dumps(shares),
            },
        )
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(whole.SerializeToString())
        if beside:
            path.with_suffix(READER).write_bytes(beside)
        return MinutesModel(CUES, path)

    without, both = model("without", "", b""), model("both", ReaderSession(graph).digest, graph)
    said = [
        _SAID[n % 5] + (" And then we go on, one after the other. Fine?" if n % 3 else "") for n in range(25)
    ]
    context, heard = [Context(), Context()], []
    for at, text in enumerate(said):
        for n, one in enumerate((without, both)):
            context[n] = context[n].heard(one.told("AB"[at % 2], text, (0.1,) * len(CUES)))
    assert all(one.read is None for one in context[0].recent)
    plain, mixed = (m.scores(c.window()) for m, c in zip((without, both), context, strict=True))
    (again,) = both.scores_together([context[1].window()])
    calibration = json.loads(dict(_properties(RELEASED))["calibration"])
    tables = [one.read for one in context[1].recent if one.read is not None]
    assert len(tables) == WINDOW
    expected = read_around(np.stack(tables), np.full(WINDOW, WINDOW - 1))
    for place in range(WINDOW):
        for head, name in ((0, "action"), (1, "decision"), (2, "question"), (5, "withdrawn")):
            before, after = getattr(plain[place], name), getattr(mixed[place], name)
            moved = np.log(after / (1 - after)) - np.log(before / (1 - before))
            heard.append(moved)
            share = shares[head] * calibration["slope"][head]
            assert moved == pytest.approx(share * expected[place, head], abs=1e-4)
            assert getattr(again[place], name) == pytest.approx(after, abs=1e-5)
    assert np.abs(heard).max() > 0.05
    for name, digest, beside in (("missing", "a", b""), ("other", "a", graph), ("cut", "a", graph[:900])):
        with pytest.raises(MinutesModelUnusable, match="reader"):
            model(name, digest, beside)


def _properties(path: Path) -> list[tuple[str, str]]:
    import onnx

    return [(p.key, p.value) for p in onnx.load(path).metadata_props]
