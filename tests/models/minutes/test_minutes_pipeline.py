"""The minutes model's pipeline from scripts to a graph that the product loads, on a few short meetings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NEEDED = (
    "benchmarks",
    "contracts",
    "kernels",
    "models",
    "operators",
    "devices",
    "flows",
    "dvc.yaml",
    "params.yaml",
)

MEETINGS = {"allotment-water", "bakery-halvergate", "bakery-quay-and-hill", "ambulance-station"}
"""By name: which three one learns from says a lot, and new meetings are no reason to learn from others."""

pytestmark = pytest.mark.train


def _copy(folder: Path) -> None:
    """What the stages read, with a handful of meetings cut short, and one that no stage may learn from."""
    ignored = shutil.ignore_patterns(
        "__pycache__", "*.flac", "*.mp4", "*.opus", "clips", "sample", "minutes.onnx", "minutes.reader.onnx"
    )
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    snippets = sorted((folder / "models" / "everyday_snippets").glob("*.json"))
    learnt = [p for p in snippets if json.loads(p.read_text(encoding="utf-8"))["split"] == "train"]
    kept = {p.stem for p in (*learnt[:6], *[p for p in snippets if p not in learnt][:1])}
    for place in ("everyday", "everyday_snippets"):
        for path in (folder / "models" / place).glob("*.json"):
            if path.stem not in MEETINGS | kept:
                path.unlink()
    text = (folder / "params.yaml").read_text(encoding="utf-8")
    # Neither folders nor figures of the released weights: what is bundled is enough to go through every stage.
    (folder / "params.yaml").write_text(
        text.replace("  epochs: ", "  epochs: 8 # ").replace("reader_epochs: ", "reader_epochs: 1 # "),
        encoding="utf-8",
    )


def test_from_scripts_to_a_graph_that_loads(tmp_path: Path) -> None:
    for package in ("dvc", "onnx", "onnxscript", "torch"):
        pytest.importorskip(package)
    _copy(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": path, "PYTHONPATH": str(tmp_path), "DVC_NO_ANALYTICS": "1", "OMP_NUM_THREADS": "2",
    }  # fmt: skip

    def run(*command: str) -> None:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]

    dvc = str(Path(sys.executable).parent / "dvc")
    run(dvc, "init", "--no-scm", "--quiet")
    run(dvc, "repro", "--quiet", "minutes_items")
    figures = json.loads((tmp_path / "build" / "minutes" / "figures.json").read_text(encoding="utf-8"))
    assert figures["everyday"]["ahead_8"]["action"]["auroc"] > 0.55
    assert {"everyday", "snippet"} <= set(figures)

    from models.minutes.appraisal import Appraisal
    from models.minutes.session import MinutesModel
    from operators.understand.cues import CUES

    model = MinutesModel(CUES, tmp_path / "build" / "minutes" / "minutes.onnx")
    model.warm_up()
    assert model.name.startswith("minutes-")
    assert Appraisal.read(tmp_path / "build" / "minutes" / "items.json").model == model.name
    mixture = json.loads((tmp_path / "build" / "minutes" / "mixture.json").read_text(encoding="utf-8"))
    assert mixture["words"][0] > 0 and min(*mixture["network"], *mixture["reader"]) >= 0
    from models.minutes.session import MinutesModelUnusable

    reader = tmp_path / "build" / "minutes" / "minutes.reader.onnx"
    whole = reader.read_bytes()
    for broken in (whole[:1000], whole + b"\0", b""):
        reader.write_bytes(broken)
        with pytest.raises(MinutesModelUnusable, match="reader"):
            MinutesModel(CUES, tmp_path / "build" / "minutes" / "minutes.onnx")
