"""Networks taken out of the released graph, which is the mean of them."""

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from benchmarks.item_tables import INPUT_OFF, one_of
from models.minutes.inputs import Context, Layout, Told, Window, feeds
from models.minutes.session import RELEASED
from operators.understand.cues import CUES


def _window() -> Window:
    chance, context = np.random.default_rng(0), Context()
    for number in range(40):
        text = (chance.normal(size=(1 + number % 2, 768)) * 0.05).astype(np.float16)
        context = context.heard(Told("ABC"[number % 3], 6, text, tuple(chance.random(len(CUES)).tolist())))
    return context.window()


@pytest.mark.train
def test_the_released_graph_is_the_mean_of_its_networks() -> None:
    pytest.importorskip("onnx")
    given = feeds([_window()], Layout(CUES))

    def heads(graph: bytes) -> npt.NDArray[np.float32]:
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(["heads"], given)[0])

    graph = RELEASED.read_bytes()
    each = [heads(one_of(graph, number)) for number in range(3)]
    assert np.abs(np.mean(each, axis=0) - heads(graph)).max() < 1e-4
    assert all(np.abs(one - other).max() > 0.1 for one, other in zip(each, [*each[1:], each[0]], strict=True))


@pytest.mark.train
def test_a_graph_of_fewer_networks_is_refused() -> None:
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="the mean of 3 networks"):
        one_of(RELEASED.read_bytes(), 3)
    with pytest.raises(ValueError, match="the mean of 1 networks"):
        one_of(one_of(RELEASED.read_bytes(), 0), 1)


def test_inputs_that_are_off_are_empty_and_nothing_else_is_changed() -> None:
    (told, *_) = _window().utterances
    without_cues, without_text = (INPUT_OFF[name](told) for name in ("cues", "text"))
    assert set(without_cues.cues) == {0.0} and not without_text.text.any()
    assert (without_cues.text == told.text).all() and without_text.cues == told.cues
    assert without_text.text.shape == told.text.shape
