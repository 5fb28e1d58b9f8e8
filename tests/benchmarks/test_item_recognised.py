"""Items from recognised speech: by time, not by the names of utterances."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import item_recognised

_SAID = (
    ("Mira", "Good morning, let's talk about the hall."),
    ("Tom", "I'll order the new chairs by Friday."),
    ("Mira", "Thank you. We decided to paint the hall green."),
    ("Tom", "Good."),
)


def _room(folder: Path) -> Path:
    said = [
        {"id": f"u{n}", "speaker": who, "text": text, "start_s": 5.0 * n, "end_s": 5.0 * n + 4}
        for n, (who, text) in enumerate(_SAID)
    ]
    task = {"text": "Order new chairs", "evidence": ["u1"], "owner": "Tom", "owner_kind": "self"}
    truth: dict[str, Any] = {
        "meeting_id": "hall", "title": "Hall", "date": "2026-03-10", "utterances": said,
        "attendees": [{"name": "Mira", "role": None}, {"name": "Tom", "role": None}],
        "action_items": [task | {"due": "2026-03-13", "due_text": "by Friday"}],
        "decisions": [{"text": "The hall is painted green", "evidence": ["u2"]}],
        "open_questions": [], "withdrawn": [], "traps": [],
    }  # fmt: skip
    room = folder / "hall"
    room.mkdir()
    (room / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    return room


def _run(folder: Path, later_s: float) -> None:
    """What was recognised: other names, no case, one word wrong, everything so much later than it was said."""
    (folder / "hall").mkdir(parents=True)
    heard = [
        {"id": f"mic/{n}", "speaker": who, "text": text.lower().replace("chairs", "shares"),
         "start_s": 5.0 * n + later_s, "end_s": 5.0 * n + 4 + later_s}
        for n, (who, text) in enumerate(_SAID)
    ]  # fmt: skip
    (folder / "hall" / "minutes.json").write_text(json.dumps({"utterances": heard}), encoding="utf-8")


@pytest.mark.parametrize(("later_s", "lost"), [(0.3, 0.0), (60.0, 1.0)])
def test_what_is_recognised_at_its_time_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], later_s: float, lost: float
) -> None:
    _run(tmp_path / "runs", later_s)
    given = ["--rooms", str(_room(tmp_path)), "--runs", str(tmp_path / "runs")]
    assert item_recognised.main(given) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rules"]["said"]["action_items"]["f1"] == 1.0
    assert told["rules"]["lost"] == {"action_items": lost, "decisions": lost, "open_questions": None}


def test_a_room_that_was_not_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert item_recognised.main(["--rooms", str(_room(tmp_path)), "--runs", str(tmp_path)]) == 2
    assert "minutes.json" in capsys.readouterr().err
