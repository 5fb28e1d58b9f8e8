"""Weights of the text encoder out of the package's ONNX file, cut to 7 bits for products in whole numbers.

The package's own graph multiplies in 32 bits. The graph beside this file (`encoder.onnx`, made by
`models.minutes.encoder_graph`) multiplies what is quantised as it comes, in 8 bits by 7: so no sum of two products
leaves 16 bits, and processors with dot products of 8 bits and those without find the same numbers.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
LAYERS: Final = 6
_LARGEST: Final = 63
"""A weight's largest amount: 255 · 63 · 2 is less than 2¹⁵."""
_PARTS: Final = (("mixed", 3), ("out", 1), ("up", 1), ("down", 1))
"""Matrices of a layer and of how many of the package's each is made: query, key and value stand side by side."""
_KINDS: Final[Mapping[int, npt.DTypeLike]] = {1: np.float32, 3: np.int8, 7: np.int64}
"""Element types of `TensorProto` that occur."""

Tensors = dict[str, npt.NDArray[np.generic]]


def tensors_of(model: bytes) -> Tensors:
    """Initializers of an ONNX model by name, in their order (onnx.proto: ModelProto.graph, GraphProto.initializer).

    Raises:
        ValueError: it is no model of this form.
    """
    out: Tensors = {}
    data = memoryview(model)
    for field, graph in _fields(data):
        if field != 7 or not isinstance(graph, memoryview):
            continue
        for part, tensor in _fields(graph):
            if part == 5 and isinstance(tensor, memoryview):
                name, value = _tensor(tensor)
                out[name] = value
    return out


def weights_of(model: bytes) -> Tensors:
    """What `encoder.onnx` calls for, by name, out of the package's file.

    Raises:
        ValueError: it is not the file that this version knows.
    """
    if hashlib.sha256(model).hexdigest() != WEIGHTS_SHA256:
        raise ValueError("another text encoder than this version knows")
    found = tensors_of(model)
    embeddings = "inner.embeddings."
    out: Tensors = {
        "words": found[f"{embeddings}word_embeddings.weight_q"],
        "words.scale": found[f"{embeddings}word_embeddings.weight_scale"],
        "places": _opened(found, f"{embeddings}position_embeddings.weight")
        + found[f"{embeddings}token_type_embeddings.weight"][:1].astype(np.float32),
        **_norm(found, "first", f"{embeddings}LayerNorm"),
    }
    matrices = iter(
        [name.removesuffix("_q") for name in found if name.startswith("val_") and name.endswith("_q")]
    )
    for layer in range(LAYERS):
        inner = f"inner.encoder.layer.{layer}."
        attention = f"{inner}attention.self."
        biases = {
            "mixed": [f"{attention}{name}.bias" for name in ("query", "key", "value")],
            "out": [f"{inner}attention.output.dense.bias"],
            "up": [f"{inner}intermediate.dense.bias"],
            "down": [f"{inner}output.dense.bias"],
        }
        for part, count in _PARTS:
            whole = np.concatenate([_opened(found, next(matrices)) for _ in range(count)], axis=1)
            out[f"{layer}.{part}"], out[f"{layer}.{part}.scale"] = seven_bits(whole)
            out[f"{layer}.{part}.bias"] = np.concatenate([found[name] for name in biases[part]])
        out |= _norm(found, f"{layer}.heard", f"{inner}attention.output.LayerNorm")
        out |= _norm(found, f"{layer}.said", f"{inner}output.LayerNorm")
    return out


def seven_bits(whole: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """A matrix as whole numbers up to ``_LARGEST`` and a factor for each column."""
    scale = (np.abs(whole).max(axis=0, keepdims=True) / np.float32(_LARGEST)).astype(np.float32)
    return np.rint(whole / scale).astype(np.int8), scale


def _opened(found: Tensors, name: str) -> npt.NDArray[np.float32]:
    return found[f"{name}_q"].astype(np.float32) * found[f"{name}_scale"].astype(np.float32)


def _norm(found: Tensors, name: str, source: str) -> Tensors:
    return {f"{name}.weight": found[f"{source}.weight"], f"{name}.bias": found[f"{source}.bias"]}


def _tensor(data: memoryview) -> tuple[str, npt.NDArray[np.generic]]:
    dims: list[int] = []
    kind, name, raw = 0, "", memoryview(b"")
    for field, value in _fields(data):
        if field == 1:
            dims += [value] if isinstance(value, int) else list(_whole_numbers(value))
        elif field == 2 and isinstance(value, int):
            kind = value
        elif field == 8 and isinstance(value, memoryview):
            name = bytes(value).decode()
        elif field == 9 and isinstance(value, memoryview):
            raw = value
    if kind not in _KINDS:
        return name, np.zeros(0, np.float32)
    return name, np.frombuffer(raw, _KINDS[kind]).reshape(dims)


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Fields of a protocol buffer message: number and value (developers.google.com/protocol-buffers, encoding)."""
    at = 0
    while at < len(data):
        tag, at = _whole_number(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _whole_number(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _whole_number(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError("no protocol buffer")
        if at + size > len(data):
            raise ValueError("a protocol buffer that is cut off")
        yield tag >> 3, data[at : at + size]
        at += size


def _whole_numbers(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _whole_number(data, at)
        yield value


def _whole_number(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a protocol buffer that is cut off")
