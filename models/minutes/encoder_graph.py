"""The text encoder as a graph of standard operators that multiplies in 8 bits, without its weights:

    python -m models.minutes.encoder_graph models/minutes/encoder.onnx

One piece of text at a time, without padding: numbers are quantised by what the piece itself holds, so that no state
depends on what else is encoded. Needs onnx, which training brings.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto, NodeProto, TensorProto, helper

from models.minutes.encoder_weights import LAYERS

OPSET: Final = 20
IR: Final = 9
_STATES: Final = 384
_HEADS: Final = 12
_WIDTH: Final = _STATES // _HEADS
_INNER: Final = 1536
_WORDS: Final = 30522
_PLACES: Final = 512
_EPSILON: Final = 1e-12


class GraphInMaking:
    """Nodes in the making; each method adds some and gives the name of what comes out."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.constants: list[TensorProto] = []

    def op(self, kind: str, inputs: Sequence[str], outputs: int = 1, **settings: Any) -> list[str]:
        names = [f"{kind}_{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **settings))
        return names

    def one(self, kind: str, *inputs: str, **settings: Any) -> str:
        return self.op(kind, inputs, 1, **settings)[0]

    def weight(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> str:
        """A tensor that whoever loads the graph brings."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "weights"
        self.weights.append(tensor)
        return name

    def whole(self, name: str, values: Sequence[int]) -> str:
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], list(values)))
        return name

    def norm(self, name: str, value: str) -> str:
        parts = [self.weight(f"{name}.{part}", (_STATES,)) for part in ("weight", "bias")]
        return self.one("LayerNormalization", value, *parts, axis=-1, epsilon=_EPSILON)

    def product(self, name: str, value: str, rows: int, columns: int) -> str:
        """``value`` (tokens, rows) by a matrix of 7 bits, and its bias."""
        quantised, scale, zero = self.op("DynamicQuantizeLinear", [value], 3)
        matrix = self.weight(name, (rows, columns), TensorProto.INT8)
        found = self.one("MatMulInteger", quantised, matrix, zero)
        factor = self.one("Mul", scale, self.weight(f"{name}.scale", (1, columns)))
        scaled = self.one("Mul", self.one("Cast", found, to=TensorProto.FLOAT), factor)
        return self.one("Add", scaled, self.weight(f"{name}.bias", (columns,)))


class Layers:
    """Layers of the encoder; each is added to a graph in the making."""

    def __init__(self, made: GraphInMaking) -> None:
        self._made = made
        self._apart = made.whole("apart", [-1, 3, _HEADS, _WIDTH])
        self._joined = made.whole("joined", [-1, _STATES])
        made.constants.append(helper.make_tensor("root", TensorProto.FLOAT, [], [_WIDTH**-0.5]))

    def add(self, name: str, state: str) -> str:
        """One more layer on states (tokens, 384); ``name`` begins the names of its weights."""
        made = self._made
        mixed = made.one("Reshape", made.product(f"{name}.mixed", state, _STATES, 3 * _STATES), self._apart)
        by_head = made.one("Transpose", mixed, perm=[1, 2, 0, 3])
        query, key, value = made.op("Split", [by_head], 3, axis=0, num_outputs=3)
        turned = made.one("Transpose", key, perm=[0, 1, 3, 2])
        alike = made.one("Mul", made.one("MatMul", query, turned), "root")
        seen = made.one("MatMul", made.one("Softmax", alike, axis=-1), value)
        flat = made.one("Reshape", made.one("Transpose", seen, perm=[0, 2, 1, 3]), self._joined)
        heard = made.product(f"{name}.out", flat, _STATES, _STATES)
        state = made.norm(f"{name}.heard", made.one("Add", heard, state))
        up = made.one("Gelu", made.product(f"{name}.up", state, _STATES, _INNER))
        down = made.product(f"{name}.down", up, _INNER, _STATES)
        return made.norm(f"{name}.said", made.one("Add", down, state))


def graph() -> ModelProto:
    """The graph: token ids (tokens,) in; states (1, tokens, 384) out, and (tokens, 384) before the last layer."""
    made = GraphInMaking()
    rows = made.one("Gather", made.weight("words", (_WORDS, _STATES), TensorProto.INT8), "ids")
    scales = made.one("Gather", made.weight("words.scale", (_WORDS, 1)), "ids")
    said = made.one("Mul", made.one("Cast", rows, to=TensorProto.FLOAT), scales)
    start, axis = made.whole("start", [0]), made.whole("axis", [0])
    places = made.one(
        "Slice", made.weight("places", (_PLACES, _STATES)), start, made.one("Shape", "ids"), axis
    )
    state = made.norm("first", made.one("Add", said, places))
    layers = Layers(made)
    before = state
    for number in range(LAYERS):
        before, state = state, layers.add(str(number), state)
    made.nodes.append(helper.make_node("Identity", [before], ["before"]))
    lead = made.whole("lead", [0])
    made.nodes.append(helper.make_node("Unsqueeze", [state, lead], ["states"]))
    whole = helper.make_graph(
        made.nodes,
        "encoder",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"])],
        [
            helper.make_tensor_value_info("states", TensorProto.FLOAT, [1, "tokens", _STATES]),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, ["tokens", _STATES]),
        ],
        [*made.weights, *made.constants],
    )
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="")
    model.ir_version = IR
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    given = parser.parse_args(arguments)
    given.out.write_bytes(graph().SerializeToString(deterministic=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
