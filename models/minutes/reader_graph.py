"""Trained readers as one graph of standard operators that multiplies in 8 bits, as the encoder does.

The mean of several readers: their layers read the same states. Needs onnx, which training brings.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from models.minutes.encoder import STATES, TEXT_WIDTH
from models.minutes.encoder_graph import IR, OPSET, GraphInMaking, Layers
from models.minutes.encoder_weights import Tensors
from models.minutes.reader import SCALE, WIDTH
from models.minutes.reading import TABLE
from models.minutes.scores import HEADS

_SMALLEST = 1e-12


def graph(readers: Sequence[Tensors]) -> ModelProto:
    """States (tokens, 384) of a piece of text in, table (``TABLE``,) out; weights as ``kept_of`` gives them."""
    made = GraphInMaking()
    layers = Layers(made)
    made.constants.append(helper.make_tensor("scale", TensorProto.FLOAT, [], [SCALE]))
    made.constants.append(helper.make_tensor("share", TensorProto.FLOAT, [], [1.0 / len(readers)]))
    made.constants.append(helper.make_tensor("smallest", TensorProto.FLOAT, [], [_SMALLEST]))
    tokens, flat = made.whole("tokens", [0]), made.whole("flat", [-1])
    ends = made.whole("ends", [0, TABLE - len(HEADS)])
    tables: list[str] = []
    for number, _ in enumerate(readers):
        state = layers.add(f"{number}", "before")
        parts = []
        for kind in ("ReduceMean", "ReduceMax"):
            pooled = made.one(kind, state, tokens, keepdims=1)
            length = made.one("Max", made.one("ReduceL2", pooled, keepdims=1), "smallest")
            parts.append(made.one("Div", pooled, length))
        vector = made.one("Mul", made.one("Concat", *parts, axis=1), "scale")
        inner = made.one("Gelu", made.product(f"{number}.hidden", vector, TEXT_WIDTH, WIDTH))
        own = made.one("Pad", made.one("Reshape", _linear(made, f"{number}.plain", vector), flat), ends)
        table = made.one("Reshape", _linear(made, f"{number}.roles", inner), flat)
        tables.append(made.one("Add", table, own))
    total = tables[0]
    for table in tables[1:]:
        total = made.one("Add", total, table)
    made.nodes.append(helper.make_node("Mul", [total, "share"], ["table"]))
    known = {f"{n}.{name}": value for n, one in enumerate(readers) for name, value in one.items()}
    named = {tensor.name for tensor in made.weights}
    held = [
        numpy_helper.from_array(np.ascontiguousarray(value), name)
        for name, value in sorted(known.items())
        if name in named or name.split(".")[1] in ("roles", "plain")
    ]
    whole = helper.make_graph(
        made.nodes,
        "reader",
        [helper.make_tensor_value_info("before", TensorProto.FLOAT, ["tokens", STATES])],
        [helper.make_tensor_value_info("table", TensorProto.FLOAT, [TABLE])],
        [*held, *made.constants],
    )
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="")
    model.ir_version = IR
    return model


def _linear(made: GraphInMaking, name: str, value: str) -> str:
    return made.one("Add", made.one("MatMul", value, f"{name}.weight"), f"{name}.bias")


def told(readers: Sequence[Tensors]) -> bytes:
    """The graph as bytes, the same for the same weights."""
    found: bytes = graph(readers).SerializeToString(deterministic=True)
    return found


def write_weights(path: Path, weights: Tensors) -> None:
    """As :func:`read_weights` takes them."""
    with path.open("wb") as out:
        np.savez(out, allow_pickle=False, **weights)


def read_weights(path: Path) -> Tensors:
    """Raises: OSError, ValueError: no weights of this kind."""
    with np.load(path) as kept:
        return {name: kept[name] for name in kept.files}
