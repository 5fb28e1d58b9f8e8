"""The verifier's pipeline from scripts to scores, on a few meetings, twice: the same bytes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("benchmarks", "contracts", "flows", "models", "operators", "devices", "dvc.yaml", "params.yaml")

pytestmark = pytest.mark.train


def _copy(folder: Path) -> None:
    """What the stages read, with eight meetings instead of all."""
    ignored = shutil.ignore_patterns("__pycache__", "*.flac", "*.mp4", "*.opus", "clips", "sample")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    kept = {"train": 0, "test": 0}
    for path in sorted((folder / "models" / "everyday").glob("*.json")):
        split = json.loads(path.read_text(encoding="utf-8"))["split"]
        kept[split] += 1
        if kept[split] > (5 if split == "train" else 3):
            path.unlink()


def _run(folder: Path, *command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path, "PYTHONPATH": str(folder), "DVC_NO_ANALYTICS": "1"},
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_from_scripts_to_scores_and_the_same_again(tmp_path: Path) -> None:
    pytest.importorskip("dvc")
    pytest.importorskip("onnx")
    _copy(tmp_path)
    dvc = str(Path(sys.executable).parent / "dvc")
    _run(tmp_path, dvc, "init", "--no-scm", "--quiet")
    _run(tmp_path, dvc, "repro", "--quiet", "verifier_evaluate")
    scores = json.loads((tmp_path / "build" / "verifier" / "scores.json").read_text(encoding="utf-8"))
    assert scores["auroc"] > 0.85 and scores["escaped"]["seen"] < 0.2
    graph = (tmp_path / "build" / "verifier" / "verifier.onnx").read_bytes()

    _run(tmp_path, dvc, "repro", "--quiet", "--force", "--no-run-cache", "verifier_evaluate")
    assert (tmp_path / "build" / "verifier" / "verifier.onnx").read_bytes() == graph
