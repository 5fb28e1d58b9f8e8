"""The minutes model in the second flow: it is the first voice, and where it cannot be used rules speak and say so."""

import json
from pathlib import Path
from typing import Any

import pytest

from devices.inputs import open_inputs
from flows.minutes_model import NO_MODEL, understanding
from flows.run_files import run_files
from models.minutes.appraisal import RELEASED as ITEMS
from models.minutes.session import RELEASED
from operators.settings import Settings

_LINES = (
    ("Mira", "Okay, let's start with the printer."),
    ("Mira", "Tom, can you send the offer to the printer by Friday?"),
    ("Tom", "Yes, I'll do that."),
    ("Tom", "It rained the whole weekend."),
    ("Mira", "Then we have decided, we take the blue paper."),
    ("Tom", "Good, blue it is."),
    ("Mira", "Who opens the hall on Monday?"),
    ("Tom", "I don't know yet, we have to find out."),
    ("Mira", "Fine. That's all for today."),
)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    rows = [
        {"start_s": 5.0 * n, "end_s": 5.0 * n + 3.5, "speaker": who, "text": text}
        for n, (who, text) in enumerate(_LINES)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _minutes(transcript: Path, out: Path, model: str) -> dict[str, Any]:
    out.mkdir()
    run_files(open_inputs([transcript]), out, speed="max", settings=Settings(model=model))
    found: dict[str, Any] = json.loads((out / "minutes.json").read_text())
    return found


def _items(minutes: dict[str, Any]) -> list[dict[str, Any]]:
    return [i for name in ("decisions", "action_items", "open_questions") for i in minutes[name]]


def test_the_model_is_the_first_voice_and_the_log_read_again_gives_the_same_bytes(
    transcript: Path, tmp_path: Path
) -> None:
    minutes = _minutes(transcript, tmp_path / "a", "released")
    assert minutes["versions"]["model"].startswith("minutes-")
    assert NO_MODEL not in minutes["notices"]
    assert {i["origin"] for i in _items(minutes)} <= {"model", "rules"}
    assert any(i["origin"] == "model" for i in minutes["action_items"])
    (tmp_path / "b").mkdir()
    again = open_inputs([tmp_path / "a" / "timeline.jsonl"])
    run_files(again, tmp_path / "b", speed="max", settings=Settings(model="released"))
    assert (tmp_path / "a" / "minutes.json").read_bytes() == (tmp_path / "b" / "minutes.json").read_bytes()


def test_rules_alone_say_nothing_of_a_model(transcript: Path, tmp_path: Path) -> None:
    minutes = _minutes(transcript, tmp_path / "a", "rules")
    assert minutes["versions"]["model"] is None
    assert {i["origin"] for i in _items(minutes)} == {"rules"}
    assert NO_MODEL not in minutes["notices"]


@pytest.mark.parametrize("broken", ["missing", "truncated", "items of another model"])
def test_a_model_that_cannot_be_used_is_said_once_and_rules_write(
    transcript: Path, tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    if broken != "missing":
        graph = RELEASED.read_bytes()
        (folder / RELEASED.name).write_bytes(graph[:5000] if broken == "truncated" else graph)
        items = json.loads(ITEMS.read_text()) | {"model": "minutes-other"}
        (folder / ITEMS.name).write_text(json.dumps(items))
    minutes = _minutes(transcript, tmp_path / "a", str(folder))
    assert minutes["notices"].count(NO_MODEL) == 1
    assert minutes["versions"]["model"] is None
    assert {i["origin"] for i in _items(minutes)} == {"rules"}
    said = [line for line in capsys.readouterr().err.splitlines() if "written by rules" in line]
    assert len(said) == 1
    plain = _minutes(transcript, tmp_path / "b", "rules")
    assert _items(plain) == _items(minutes)


def test_which_engine_is_chosen() -> None:
    assert understanding(Settings(model="rules")).model is None
    assert understanding(Settings(model="released")).engine.origin == "model"
