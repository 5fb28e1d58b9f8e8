"""The text encoder that multiplies in whole numbers: its weights, how near it is to the package's own, what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from models.minutes import encoder as encoders
from models.minutes.encoder import GRAPH, TOKENIZER, Encoder, EncoderUnusable, pooled, weights_path
from models.minutes.encoder_weights import tensors_of, weights_of

_SAID = (
    "I'll call the bank.",
    "Could you send the numbers of the last quarter to the whole group by Friday afternoon?",
    "Okay, so what we are going to do next is to go through all the parts, and then we decide on the colour of the case",
    "Hm.",
)  # fmt: skip


@pytest.fixture(scope="module")
def weights() -> bytes:
    return weights_path().read_bytes()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


def test_no_sum_of_two_products_leaves_sixteen_bits(weights: bytes) -> None:
    found = weights_of(weights)
    matrices = [name for name, value in found.items() if value.dtype == np.int8 and name != "words"]
    assert len(matrices) == 24
    largest = max(int(np.abs(found[name].astype(np.int64)).max()) for name in matrices)
    assert 255 * largest * 2 < 2**15
    assert largest == 63, "seven bits are used"


def test_vectors_point_where_those_of_the_package_do(encoder: Encoder, weights: bytes) -> None:
    own = onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
    for text in _SAID[:3]:
        ids = np.array([encoder.tokens(text)], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        known = pooled(own.run(None, given)[0])[0].astype(float)
        assert encoder.encoded(encoder.tokens(text)).astype(float) @ known > 2 * 0.985


def test_a_vector_is_that_of_its_piece_alone_bit_by_bit(encoder: Encoder) -> None:
    first = [encoder.encoded(encoder.tokens(text)).tobytes() for text in _SAID]
    other = Encoder(threads=2)
    for text, known in reversed(list(zip(_SAID, first, strict=True))):
        assert other.encoded(other.tokens(text)).tobytes() == known
        assert encoder.encode(text)[0].shape == (768,)


def test_the_graph_is_what_its_module_makes() -> None:
    pytest.importorskip("onnx")
    from models.minutes.encoder_graph import graph

    assert graph().SerializeToString(deterministic=True) == GRAPH.read_bytes()
    assert GRAPH.stat().st_size < 50_000, "the weights stay in their package"


def test_tensors_are_read_as_the_library_reads_them(weights: bytes) -> None:
    onnx: Any = pytest.importorskip("onnx")
    from onnx import numpy_helper

    found = tensors_of(weights)
    library = {
        t.name: numpy_helper.to_array(t) for t in onnx.load_model_from_string(weights).graph.initializer
    }
    for name in ("val_49_q", "val_473_scale", "inner.embeddings.position_embeddings.weight_q"):
        mine: npt.NDArray[np.generic] = found[name]
        assert mine.dtype == library[name].dtype and np.array_equal(mine, library[name])


def test_files_that_cannot_be_used_are_refused_without_a_word_on_standard_output(
    tmp_path: Path, weights: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cut, empty, broken = tmp_path / "cut.onnx", tmp_path / "empty.onnx", tmp_path / "graph.onnx"
    cut.write_bytes(weights[: len(weights) // 2])
    empty.write_bytes(b"")
    for path in (cut, empty, TOKENIZER, tmp_path / "missing.onnx", tmp_path):
        with pytest.raises(EncoderUnusable) as refused:
            Encoder(path)
        assert "\n" not in str(refused.value)
    whole = GRAPH.read_bytes()
    for data in (
        whole[: len(whole) // 2],
        b"",
        whole.replace(b"MatMulInteger", b"regetnIluMtaM"),
    ):
        broken.write_bytes(data)
        monkeypatch.setattr(encoders, "GRAPH", broken)
        with pytest.raises(EncoderUnusable, match=r"graph\.onnx"):
            Encoder()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("data", [b"\x3a", b"\x3a\xff", b"\x3a\x05ab", b"\xff" * 20, b"\x3b\x00", b""])
def test_bytes_that_are_no_model_are_refused_or_hold_no_tensors(data: bytes) -> None:
    try:
        assert tensors_of(data) == {}
    except ValueError as error:
        assert "buffer" in str(error)
