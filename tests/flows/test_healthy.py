"""The check of a running flow: ready only when it turns, stuck when it does not, gone when its process is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.healthy import DEFAULT_STATE_DIR, STALE_S, Heartbeat, forget_ended, health, main
from operators.settings import Settings


def test_not_ready_before_the_first_turn(tmp_path: Path) -> None:
    beat = Heartbeat(tmp_path, "perceive", "devices")
    assert health(tmp_path).line == f"no flow is ready (state in {tmp_path})"
    assert not health(tmp_path, "perceive").healthy
    beat()
    assert health(tmp_path, "perceive").healthy and health(tmp_path).healthy
    assert not health(tmp_path, "minutes").healthy


def test_a_loop_that_stands_still_is_told(tmp_path: Path) -> None:
    Heartbeat(tmp_path, "perceive", "devices")()
    Heartbeat(tmp_path, "room", "timeline")()
    (file,) = (tmp_path / "alive").glob("perceive.*")
    old = file.stat().st_mtime - STALE_S - 1
    os.utime(file, (old, old))
    assert (
        "perceive (devices, process" in health(tmp_path).line
        and "has not turned for 31 s" in health(tmp_path).line
    )
    assert health(tmp_path, "room").healthy


def test_what_an_ended_process_left_does_not_count(tmp_path: Path) -> None:
    source = (
        "import sys; from pathlib import Path; from flows.healthy import Heartbeat; "
        "Heartbeat(Path(sys.argv[1]), 'minutes', 'timeline')()"
    )
    subprocess.run([sys.executable, "-c", source, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    Heartbeat(tmp_path, "perceive", "devices")()
    assert len(list((tmp_path / "alive").iterdir())) == 2
    assert not health(tmp_path, "minutes").healthy
    forget_ended(tmp_path)
    (left,) = (tmp_path / "alive").iterdir()
    assert left.name == f"perceive.devices.{os.getpid()}"


def test_a_folder_that_cannot_be_written_does_not_stop_the_loop(tmp_path: Path) -> None:
    (tmp_path / "alive").write_text("in the way")
    Heartbeat(tmp_path, "perceive", "devices")()
    assert not health(tmp_path).healthy


def test_the_check_is_light_and_agrees_with_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Settings.model_fields["state_dir"].default == Path(DEFAULT_STATE_DIR)
    monkeypatch.setenv("MINUTED_STATE_DIR", str(tmp_path))
    assert main(["perceive"]) == 1 and "is not ready" in capsys.readouterr().err
    Heartbeat(tmp_path, "perceive", "devices")()
    assert main(["perceive"]) == 0 and capsys.readouterr().out.startswith("ready: perceive")
    heavy = "import sys, flows.healthy; print(sorted({'pydantic', 'typer', 'numpy', 'confluent_kafka'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", heavy],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"
