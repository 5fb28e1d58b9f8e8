"""The trained network as an ONNX graph of standard operators, with all that is needed to read its scores.

Needs torch, onnx and onnxscript, which training brings.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kernels.onnx import OPSET, translation_table
from kernels.plan import Plan
from models.minutes.encoder import TEXT_WIDTH
from models.minutes.inputs import GLOBALS, Context, Layout, Told, feeds
from models.minutes.mixed import Mixed
from models.minutes.network import OUTPUTS, PLAN, inputs_of
from models.minutes.scores import HEADS, Calibration
from models.minutes.words import BUCKETS


class _Graph(nn.Module):  # type: ignore[misc]  # torch ships no types here
    """The network with its plan among the inputs."""

    def __init__(self, net: Mixed) -> None:
        super().__init__()
        self.net = net
        self.inputs = inputs_of(net.layout)

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.inputs, values, strict=True))
        starts, owners, meetings, globals_, modality = (given[name] for name in PLAN)
        # Tiles are how a GPU program cuts windows; standard operators know none, so any tensor will do for them.
        plan = Plan(
            starts, owners, meetings, globals_, modality, self.net.allow, owners, owners, meetings,
            tokens=given["order"].shape[0] + GLOBALS * given["grid"].shape[0],
            max_window=1, max_globals=1, tile=16,
        )  # fmt: skip
        found: tuple[Tensor, ...] = self.net(given, plan)
        return found


def example_of(layout: Layout) -> dict[str, Tensor]:
    """A batch to trace: two windows with older talk and every sense, no two counts alike."""
    chance = np.random.default_rng(0)

    def told(number: int) -> Told:
        there = [number % step == 0 for step in (3, 4, 5)]
        widths = [len(layout.sound), len(layout.picture), len(layout.slide)]
        grams = tuple(int(g) for g in chance.integers(1, BUCKETS, 1 + number % 6))
        text = (chance.normal(size=(1 + number % 3, TEXT_WIDTH)) * 0.05).astype(np.float16)
        sound, picture, slide = (
            (0.5,) * width if seen and width else None for width, seen in zip(widths, there, strict=True)
        )
        cues = (0.1,) * len(layout.cues)
        return Told("ABC"[number % 3], 5, text, cues, sound, picture, slide, grams)

    windows = []
    for length in (150, 31, 17):
        context = Context()
        for number in range(length):
            context = context.heard(told(number))
        windows.append(context.window())
    return {name: torch.from_numpy(array) for name, array in feeds(windows, layout).items()}


@dataclass(frozen=True, slots=True)
class Release:
    """What goes with the weights."""

    layout: Layout
    calibration: Calibration
    encoder: str
    """SHA-256 of the text encoder's weights."""
    facts: Mapping[str, Any]
    """Figures of the training, for the model card and for thresholds."""
    reader_shares: tuple[float, ...] = (0.0,) * len(HEADS)
    """What share of each head's logit the reader has."""
    reader: str = ""
    """SHA-256 of the reader's graph; empty where there is none."""


def export(net: Mixed, example: Mapping[str, Tensor], release: Release, path: Path) -> str:
    """Write the graph; returns the name of its version.

    ``example`` is a batch of two windows or more, with every modality in it and no two counts alike.
    """
    import onnx

    graph = _Graph(net).eval()
    names = graph.inputs
    values = tuple(example[name] for name in names)
    free = torch.export.Dim.DYNAMIC
    shapes = tuple({0: free, 1: free} if name == "grams" else {0: free} for name in names)
    made = torch.onnx.export(
        graph, values, dynamo=True, opset_version=OPSET, verbose=False, input_names=list(names),
        output_names=list(OUTPUTS), custom_translation_table=translation_table(),
        dynamic_shapes=(shapes,),
    )  # fmt: skip
    model = made.model_proto
    weights = b"".join(
        part.raw_data for part in sorted(model.graph.initializer, key=lambda one: str(one.name))
    )
    told = release.calibration.told() + release.reader + json.dumps(release.reader_shares)
    name = f"minutes-{hashlib.sha256(weights + told.encode()).hexdigest()[:12]}"
    onnx.helper.set_model_props(
        model,
        {
            "name": name,
            "layout": release.layout.digest(),
            "cues": json.dumps(release.layout.cues),
            "senses": json.dumps([release.layout.sound, release.layout.picture, release.layout.slide]),
            "heads": json.dumps(HEADS),
            "calibration": release.calibration.told(),
            "encoder": release.encoder,
            "reader": release.reader,
            "reader_shares": json.dumps(release.reader_shares),
            "facts": json.dumps(dict(release.facts)),
        },
    )
    for part in (model.graph.node, model.graph.value_info):
        for one in part:
            one.ClearField("doc_string")
            if hasattr(one, "metadata_props"):
                del one.metadata_props[:]
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return name


def without_attention(graph: bytes) -> bytes:
    """A graph whose attention adds nothing, all else being equal: for ablation.

    Raises:
        ValueError: attention is nowhere in the graph.
    """
    import onnx

    model = onnx.load_from_string(graph)
    gains = [part for part in model.graph.initializer if part.name.endswith(".gain")]
    if not gains:
        raise ValueError("the graph has no attention that could be taken out")
    for gain in gains:
        gain.CopyFrom(onnx.numpy_helper.from_array(np.zeros(1, np.float32), gain.name))
    found: bytes = model.SerializeToString(deterministic=True)
    return found
