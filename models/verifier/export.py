"""The fitted model as an ONNX graph of standard operators."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from models.verifier.features import FEATURES, KINDS
from models.verifier.fit import FIGURES, Weights


def export(weights: Weights, path: Path) -> str:
    """Write the graph; features (n, features) in, probability (n,) out. Returns the name of the version.

    Needs the package `onnx`, which training brings.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def constant(name: str, value: Any) -> Any:
        return numpy_helper.from_array(np.asarray(value), name)

    figures = weights.figures.astype(np.float32)
    parts = (figures, weights.bias, weights.slopes, weights.knots, np.array([weights.shift]))
    digest = hashlib.sha256(b"".join(part.astype(np.float32).tobytes() for part in parts)).hexdigest()
    name = f"verifier-{digest[:12]}"
    nodes = [
        helper.make_node("Slice", ["features", "zero", "figures", "columns"], ["x"]),
        helper.make_node("Slice", ["features", "kind_first", "width", "columns"], ["kind"]),
        helper.make_node("MatMul", ["kind", "weights"], ["w"]),
        helper.make_node("Mul", ["x", "w"], ["product"]),
        helper.make_node("ReduceSum", ["product", "columns"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["kind", "bias"], ["b"]),
        helper.make_node("Add", ["sum", "b"], ["raw"]),
        helper.make_node("Unsqueeze", ["raw", "columns"], ["column"]),
        helper.make_node("Sub", ["column", "knots"], ["beyond"]),
        helper.make_node("Relu", ["beyond"], ["bent"]),
        helper.make_node("Concat", ["column", "bent"], ["line"], axis=1),
        helper.make_node("MatMul", ["line", "slopes"], ["sloped"]),
        helper.make_node("Add", ["sloped", "shift"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["probability"]),
    ]
    constants = [
        constant("zero", np.array([0], np.int64)),
        constant("figures", np.array([FIGURES], np.int64)),
        constant("kind_first", np.array([len(FEATURES) - len(KINDS)], np.int64)),
        constant("width", np.array([len(FEATURES)], np.int64)),
        constant("columns", np.array([1], np.int64)),
        constant("weights", figures),
        constant("bias", weights.bias.astype(np.float32)),
        constant("knots", weights.knots.astype(np.float32)[None, :]),
        constant("slopes", weights.slopes.astype(np.float32)),
        constant("shift", np.float32(weights.shift)),
    ]
    graph = helper.make_graph(
        nodes, "verifier",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["cases", len(FEATURES)])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["cases"])], constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"name": name, "features": ",".join(FEATURES)})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return name
