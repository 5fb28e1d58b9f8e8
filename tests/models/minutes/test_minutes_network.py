"""The network and its graph: the operator is in it, a window stands for itself, the graph computes the same."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from models.minutes.inputs import Layout, Window, feeds  # noqa: E402
from models.minutes.network import MinutesNetwork, NetworkSettings  # noqa: E402
from models.minutes.scores import HEADS, Calibration, Mixture, Outputs, scores_of  # noqa: E402
from models.minutes.train import plan_of, tensors_of  # noqa: E402
from tests.models.minutes.test_minutes_inputs import LAYOUT, heard, told  # noqa: E402
from tests.models.minutes.test_minutes_words import weights  # noqa: E402

pytestmark = pytest.mark.train
RELEASED = Path(__file__).resolve().parents[3] / "models" / "minutes" / "minutes.onnx"
SMALL = NetworkSettings(width=32, layers=2, heads=2, hidden=48)


@pytest.fixture(scope="module")
def net() -> Any:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    return MinutesNetwork(LAYOUT, SMALL).eval()


def run(net: Any, windows: list[Window], layout: Layout = LAYOUT) -> list[Any]:
    given = feeds(windows, layout)
    with torch.no_grad():
        return [x.numpy() for x in net(tensors_of(given), plan_of(given))]


def test_a_window_scores_alike_alone_and_among_others(net: Any) -> None:
    windows = [heard(60).window(), heard(2).window(), heard(33).window()]
    together = scores_of(Outputs(*run(net, windows)), windows, Calibration())
    for window, mine in zip(windows, together, strict=True):
        (alone,) = scores_of(Outputs(*run(net, [window])), [window], Calibration())
        for one, other in zip(alone, mine, strict=True):
            assert one.action == pytest.approx(other.action, abs=1e-6)
            assert one.due is not None and other.due is not None and one.due[0] == other.due[0]
            assert [who for who, _ in one.owner] == [who for who, _ in other.owner]


def test_older_talk_reaches_the_newest_line_through_the_operator_alone(net: Any) -> None:
    def newest(window: Window) -> Any:
        return run(net, [window])[0][len(window.utterances) - 1]

    window = heard(60).window()
    without = dataclasses.replace(window, older=())
    assert np.abs(newest(window) - newest(without)).max() > 1e-5
    net.gain.zero_()
    try:
        assert np.array_equal(newest(window), newest(without)), "nothing but attention joins tokens"
    finally:
        net.gain.fill_(1.0)


def test_pointers_never_point_where_nobody_spoke_nor_forward(net: Any) -> None:
    window = Window(tuple(told(n) for n in range(5)))
    owner, joins = run(net, [window])[1:3]
    assert (owner[:, 5:20] < -100).all() and (owner[:, :5] > -100).all()
    for row in range(5):
        own = 4 - row
        assert (joins[row, : own + 1] < -100).all() and (joins[row, own + 1 : 5] > -100).all()


def test_the_graph_computes_the_same_and_goes_through_the_operator(net: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    import onnxruntime

    from models.minutes.export import Release, example_of, export, without_attention
    from models.minutes.mixed import Mixed, Words
    from models.minutes.network import Averaged

    other = MinutesNetwork(LAYOUT, SMALL).eval()
    shares = Mixture((0.5,) * len(HEADS), (1.5,) * len(HEADS))
    both = Mixed(Averaged([net, other]), Words(weights(1)), shares).eval()
    path = tmp_path / "minutes.onnx"
    export(both, example_of(LAYOUT), Release(LAYOUT, Calibration(), "none", {}), path)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    for windows in (
        [heard(60).window()],
        [Window((told(1, senses=False),))],
        [heard(90).window(), heard(3).window()],
    ):
        found = session.run(["heads", "owner", "joins", "due"], feeds(windows, LAYOUT))
        for one, expected in zip(found, run(both, windows), strict=True):
            assert one.shape == expected.shape and np.abs(one - expected).max() < 1e-4

    # Without the operator's part the figures of a window no longer depend on what else is in it.
    cut = onnxruntime.InferenceSession(
        without_attention(path.read_bytes()), providers=["CPUExecutionProvider"]
    )
    window = heard(60).window()
    without = dataclasses.replace(window, older=())
    full, less = (cut.run(["heads"], feeds([w], LAYOUT))[0] for w in (window, without))
    assert np.array_equal(full, less)
    assert not np.array_equal(full, session.run(["heads"], feeds([window], LAYOUT))[0])


def test_the_released_graph_goes_through_the_operator() -> None:
    onnx = pytest.importorskip("onnx")
    import onnxruntime

    from models.minutes.export import without_attention

    model = onnx.load(RELEASED)
    told_of = {p.key: p.value for p in model.metadata_props}
    layout = Layout(tuple(json.loads(told_of["cues"])))
    assert told_of["layout"] == layout.digest() and json.loads(told_of["heads"]) == list(HEADS)
    lines = tuple(
        dataclasses.replace(told(n, senses=False), cues=(0.1,) * len(layout.cues)) for n in range(20)
    )
    window = Window(lines)
    graph = RELEASED.read_bytes()
    before, after = (
        onnxruntime.InferenceSession(g, providers=["CPUExecutionProvider"])
        for g in (graph, without_attention(graph))
    )
    one, other = (s.run(["heads"], feeds([window], layout))[0] for s in (before, after))
    assert np.abs(one - other).max() > 0.1
