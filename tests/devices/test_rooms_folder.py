"""Built room folders: the same bytes twice, readable by the product, pictures and truth agree."""

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
import yaml

from contracts.packet import Modality
from devices.inputs import open_inputs
from devices.media import probe
from devices.rooms import __main__ as command
from devices.rooms.folder import build
from devices.rooms.script import Form, Script
from devices.rooms.voices import write_clips
from devices.video import VideoSource
from tests.devices.rooms_in_short import short_clips, short_data

FORMS: tuple[Form, ...] = ("seats", "pair", "mix")


def written(folder: Path, data: dict[str, Any]) -> Path:
    """The script as a file with its clips beside it, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    script = Script.model_validate(data)
    path = folder / "short.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    write_clips(script, short_clips(script), folder)
    return path


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> dict[Form, Path]:
    """The short meeting in every form."""
    base = tmp_path_factory.mktemp("rooms")
    script = written(base / "scripts", short_data())
    folders: dict[Form, Path] = {form: base / f"short-{form}" for form in FORMS}
    build(script, script.parent, folders)
    return folders


def truth(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "truth.json").read_text("utf-8"))
    return document


def frames(path: Path) -> npt.NDArray[np.uint8]:
    """All frames as grey pixels, shape (frames, height, width)."""
    with av.open(str(path)) as file:
        return np.stack([frame.to_ndarray(format="gray") for frame in file.decode(video=0)])


def test_the_same_script_gives_the_same_bytes(rooms: dict[Form, Path], tmp_path: Path) -> None:
    again = tmp_path / "again"
    scripts = rooms["pair"].parent / "scripts"
    build(scripts / "short.yaml", scripts, {"pair": again})
    names = sorted(path.name for path in again.iterdir())
    assert names == ["camera.mp4", "room.json", "slides.mp4", "table.flac", "truth.json"]
    for name in names:
        assert (again / name).read_bytes() == (rooms["pair"] / name).read_bytes(), name


def test_the_product_reads_every_form(rooms: dict[Form, Path]) -> None:
    for form, folder in rooms.items():
        room = open_inputs([folder])
        assert not room.problems
        started = room.control[0]
        assert started.type == "meeting_started" and started.slide_devices == ("slides",)
        assert [s.position_m for s in started.seats] == [(1.8, 1.2, 1.2), (3.2, 2.6, 1.2)]
        length_ns = round(truth(folder)["duration_s"] * 1e9)
        assert [round(s.duration_ns or 0, -7) for s in room.streams] == [length_ns] * len(room.streams)
        for stream in room.streams:
            if stream.modality is Modality.VIDEO:
                # Handed through as it is: key frames at most two seconds apart, no B-frames.
                picture = probe(stream.path).picture
                assert picture is not None and VideoSource(stream.path, picture).fit()
        speakers = {(c.device, c.speaker) for c in started.channel_map}
        assert speakers == ({("mic-1", "Anna"), ("mic-2", "Ben")} if form == "seats" else set())
        channels = {(m.device, m.channel) for m in started.microphones}
        expected = {"seats": {("mic-1", 0), ("mic-2", 0)}, "pair": {("table", 0), ("table", 1)}, "mix": set()}
        assert channels == expected[form]


def test_the_truth_says_who_what_when_and_for_what(rooms: dict[Form, Path]) -> None:
    first, second, third = truth(rooms["seats"])["utterances"]
    assert (first["id"], first["speaker"], first["device"]) == ("u1", "Anna", "mic-1")
    assert first["text"] == "Which box is it?" and first["start_s"] == 0.5 == first["start_sample"] / 16_000
    assert first["items"] == [{"kind": "open_questions", "index": 0}]
    assert second["items"] == [{"kind": "decisions", "index": 0}]
    assert second["overlaps"] == ["u1", "u3"] and third["backchannel"]
    document = truth(rooms["mix"])
    assert {u["device"] for u in document["utterances"]} == {"mix"}
    assert document["decisions"][0]["from_slide"] == {"amount": 1}
    assert document["attendees"][2] == {"name": "Mrs Far", "role": None, "present": False}
    assert document["gestures"][0]["who"] == "Ben"


def test_the_screen_changes_when_the_truth_says(rooms: dict[Form, Path]) -> None:
    first, second = truth(rooms["seats"])["slides"]
    pictures = frames(rooms["seats"] / "slides.mp4")
    change = round(second["start_s"] * 30)
    assert first["end_s"] == second["start_s"] and second["text"] == "Price\nRed: 4 €\nBlue: 5 €"
    steps = np.abs(np.diff(pictures[:, ::4, ::4].astype(int), axis=0)).mean(axis=(1, 2))
    assert int(np.argmax(steps)) + 1 == change and np.sort(steps)[-2] < 0.2 * steps.max()
    for line in second["lines"]:
        left, top, right, bottom = line["box"]
        inside = pictures[-1, top:bottom, left:right]
        assert inside.min() < 120 and inside.max() > 200
        around = pictures[-1, top - 8 : bottom + 8, left - 8 : right + 8].astype(int)
        assert (around < 120).sum() == pytest.approx((inside < 120).sum(), abs=8), "the box is too small"


def test_the_camera_sees_who_speaks_and_who_raises_a_hand(rooms: dict[Form, Path]) -> None:
    pictures = frames(rooms["seats"] / "camera.mp4").astype(int)
    document = truth(rooms["seats"])
    first, second, _ = document["utterances"]
    silent = slice(3, round(first["start_s"] * 30))
    alone = slice(round(first["start_s"] * 30) + 2, round(second["start_s"] * 30))

    def moving(part: slice, side: int, rows: slice) -> float:
        seen = pictures[part, rows, 320 * side : 320 * (side + 1)]
        return float(np.abs(np.diff(seen, axis=0)).mean())

    mouths = slice(100, 190)
    assert moving(alone, 0, mouths) > 1.5 * moving(silent, 0, mouths)
    assert moving(alone, 0, mouths) > 1.5 * moving(alone, 1, mouths)
    gesture = document["gestures"][0]
    hand = pictures[round((gesture["start_s"] + 0.4) * 30), 60:200, 520:560]
    assert np.abs(hand - pictures[round(gesture["start_s"] * 30) - 1, 60:200, 520:560]).mean() > 5.0


def test_a_page_scrolls_a_slide_comes_back_and_a_flash_lights_up(tmp_path: Path) -> None:
    data = short_data()
    data["flash"] = {"at_s": 0.1, "position_m": [1.0, 1.0, 1.0]}
    data["slides"] = [
        {"id": "p", "kind": "page", "title": "Long", "paragraphs": ["word " * 60] * 3, "scroll_before": "u1", "scroll_s": 0.4},
        {"id": "s2", "before": "u2", "lead_s": -0.1, "title": "Price", "bullets": ["Red"], "theme": "photo"},
        {"show": "p", "before": "u2", "lead_s": -0.3},
    ]  # fmt: skip
    script = written(tmp_path / "scripts", data)
    build(script, script.parent, {"mix": tmp_path / "out"})
    document = truth(tmp_path / "out")
    assert [event["kind"] for event in document["slide_events"]] == ["first", "scroll", "change", "again"]
    top, bottom, _, again = document["slides"]
    assert (
        top["lines"][0]["text"] == "Long"
        and bottom["lines"][0]["text"] != "Long"
        and again["text"] == top["text"]
    )
    assert bottom["start_s"] == pytest.approx(top["end_s"] + 0.4, abs=0.04)
    assert document["decisions"][0]["from_slide"] == {"amount": 2}
    slides, camera = frames(tmp_path / "out" / "slides.mp4"), frames(tmp_path / "out" / "camera.mp4")
    assert list(np.flatnonzero(camera.mean(axis=(1, 2)) > 220)) == [3, 4, 5]
    assert list(np.flatnonzero(slides[:9].min(axis=(1, 2)) > 225)) == [3, 4, 5]
    assert document["flash"]["at_s"] == document["flash"]["beep_s"] == 0.1


def test_the_command_builds_once_and_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = short_data() | {"slides": []}
    data["truth"]["decisions"] = []
    script = written(tmp_path / "scripts", data)
    options = ["--scripts", str(script.parent), "--clips", str(script.parent), "--out", str(tmp_path / "out")]
    assert command.main([*options, "--form", "mix"]) == 0
    room = tmp_path / "out" / "short-mix"
    made = (room / "room.json").stat().st_ino
    assert command.main([*options, "--form", "mix"]) == 0
    assert (room / "room.json").stat().st_ino == made, "built again though nothing changed"
    capsys.readouterr()
    assert command.main([*options, "nobody"]) == 2
    assert capsys.readouterr().err.strip().endswith("nobody.yaml: cannot be read: No such file or directory")
    (script.parent / "short.json").write_text("{}")
    assert command.main(options) == 2
    assert "line u1 has no clip; make them with" in capsys.readouterr().err
    assert not (tmp_path / "out" / "short").exists() and not list((tmp_path / "out").glob(".building-*"))
