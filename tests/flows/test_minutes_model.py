"""The minutes model in the second flow: it is the first voice, and where it cannot be used rules speak and say so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devices.inputs import open_inputs
from flows.minutes_model import NO_MODEL, load_model, understanding
from flows.run_files import run_files
from models.minutes.appraisal import RELEASED as ITEMS
from models.minutes.appraisal import AppraisalUnusable
from models.minutes.session import RELEASED, MinutesModelUnusable
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
_HEARD = {
    "u19": "I suggest 4000 euros for online advertising.",
    "u20": "Agreed, we put 4,000 euros into online advertising.",
    "u36": "Wait, I looked at the budget again, the party is too expensive, let's forget the party.",
    "u37": "Fine, no party, then. Thank you all. See you next week.",
}
"""How the recogniser writes some lines of the sample meeting."""
_SAMPLE = ("launch Kestrel", "online advertising", "old desktop version")


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


@pytest.mark.parametrize("heard", [{}, _HEARD], ids=["written", "heard"])
def test_the_sample_meeting_gives_the_items_of_its_truth(heard: dict[str, str], tmp_path: Path) -> None:
    """What is decided beside something that is taken back stays: the two once became one in their words."""
    sample = Path(__file__).parents[2] / "devices" / "sample"
    truth = json.loads((sample / "truth.json").read_text())
    transcript = tmp_path / "sample.jsonl"
    kept = ("start_s", "end_s", "speaker", "text")
    rows = [
        {name: line[name] for name in kept} | {"text": heard.get(line["id"], line["text"])}
        for line in truth["utterances"]
    ]
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))
    minutes = _minutes(transcript, tmp_path / "out", "released")
    texts = {name: [i["text"] for i in minutes[name]] for name in ("decisions", "action_items")}
    assert [[w for w in _SAMPLE if w in text] for text in texts["decisions"]] == [[w] for w in _SAMPLE], texts
    owners = [i["owner"] for i in minutes["action_items"]]
    assert owners == [i["owner"] for i in truth["action_items"]], texts
    assert not any("party" in text for found in texts.values() for text in found)


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


def _one_weight_negated(graph: bytes) -> bytes:
    middle = len(graph) // 2
    return graph[:middle] + bytes([graph[middle] ^ 0x80]) + graph[middle + 1 :]


def _items_with(**changed: object) -> str:
    items = json.loads(ITEMS.read_text())
    items["families"]["action"] |= changed
    return json.dumps(items)


def _owners_with(**changed: object) -> str:
    items = json.loads(ITEMS.read_text())
    return json.dumps(items | {"owners": items["owners"] | changed})


@pytest.mark.parametrize(
    ("graph", "items", "said"),
    [
        (_one_weight_negated, None, "was made for another file than"),
        (None, _items_with(threshold=-5), "weights or thresholds beyond all reason"),
        (None, _items_with(bias=1e308), "weights or thresholds beyond all reason"),
        (None, _items_with(threshold="0.6"), "holds no weights of items"),
        (None, _items_with(threshold=True), "holds no weights of items"),
        (None, _owners_with(threshold=0), "weights or thresholds beyond all reason"),
        (None, _owners_with(bias=-1e9), "weights or thresholds beyond all reason"),
        (None, _owners_with(weights=[0.5]), "weights of other figures than it names"),
        (None, _owners_with(weights=[0.5], figures=["luck"]), "other figures than this version computes"),
        (None, _owners_with(figures=None), "holds no weights of items"),
        (None, "[" * 200_000, "holds no weights of items"),
    ],
)
def test_a_model_that_was_changed_is_not_used(
    tmp_path: Path, graph: Callable[[bytes], bytes] | None, items: str | None, said: str
) -> None:
    for beside in RELEASED.parent.glob("minutes*.onnx"):
        (tmp_path / beside.name).write_bytes(beside.read_bytes())
    (tmp_path / RELEASED.name).write_bytes((graph or bytes)(RELEASED.read_bytes()))
    (tmp_path / ITEMS.name).write_text(items or ITEMS.read_text())
    with pytest.raises((AppraisalUnusable, MinutesModelUnusable), match=said):
        load_model(Settings(model=str(tmp_path)))


def test_a_name_that_no_file_can_have_is_no_model() -> None:
    assert understanding(Settings(model="x" * 5000)).notices == (NO_MODEL,)


def test_which_engine_is_chosen() -> None:
    assert understanding(Settings(model="rules")).model is None
    assert understanding(Settings(model="released")).engine.origin == "model"
