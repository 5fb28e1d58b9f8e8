"""Parts of the released graph, and of what it reads, that are off."""

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from benchmarks.item_tables import GRAPH_OFF, INPUT_OFF, with_zeros
from models.minutes.inputs import Context, Layout, Told, Window, feeds
from models.minutes.session import RELEASED
from operators.understand.cues import CUES


def _window() -> Window:
    chance, context = np.random.default_rng(0), Context()
    for number in range(40):
        text = (chance.normal(size=(1 + number % 2, 768)) * 0.05).astype(np.float16)
        context = context.heard(
            Told("ABC"[number % 3], 6, text, tuple(chance.random(len(CUES)).tolist()), grams=(7, 11 + number))
        )
    return context.window()


@pytest.mark.train
@pytest.mark.parametrize("part", GRAPH_OFF)
def test_a_part_of_the_released_graph_is_off(part: str) -> None:
    pytest.importorskip("onnx")
    given = feeds([_window()], Layout(CUES))

    def heads(graph: bytes) -> npt.NDArray[np.float32]:
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(["heads"], given)[0])

    graph = RELEASED.read_bytes()
    off = with_zeros(graph, GRAPH_OFF[part])
    assert np.abs(heads(off) - heads(graph)).max() > 0.1
    assert heads(with_zeros(off, GRAPH_OFF[part])).tolist() == heads(off).tolist()


@pytest.mark.train
def test_network_and_linear_model_add_up_to_the_released_graph() -> None:
    pytest.importorskip("onnx")
    given, graph = feeds([_window()], Layout(CUES)), RELEASED.read_bytes()

    def heads(graph: bytes) -> npt.NDArray[np.float32]:
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(["heads"], given)[0])

    parts = [heads(with_zeros(graph, GRAPH_OFF[part])) for part in ("network", "linear")]
    assert np.abs(sum(parts) - heads(graph)).max() < 1e-3


@pytest.mark.train
def test_a_graph_without_such_a_part_is_refused() -> None:
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="no weights"):
        with_zeros(RELEASED.read_bytes(), ".nothing")


def test_inputs_that_are_off_are_empty_and_nothing_else_is_changed() -> None:
    (told, *_) = _window().utterances
    without_cues, without_text = (INPUT_OFF[name](told) for name in ("cues", "text"))
    assert set(without_cues.cues) == {0.0} and not without_text.text.any()
    assert (without_cues.text == told.text).all() and without_text.cues == told.cues
    assert without_text.text.shape == told.text.shape
