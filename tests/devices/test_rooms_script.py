"""Scripts of rooms: what is wrong is said in one line, and the kept scripts hold what rooms are for."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices.rooms import script as module
from devices.rooms.script import Line, Script, ScriptError, read_script
from devices.rooms.timing import length_samples, place
from devices.rooms.voices import SAMPLE_RATE_HZ, read_clips
from tests.devices.rooms_in_short import short_data

FOLDER = Path(module.__file__).parent
KEPT = sorted((FOLDER / "scripts").glob("*.yaml"))


def fault(tmp_path: Path, data: Any) -> str:
    """What reading the script complains about, without the file's name."""
    path = tmp_path / "short.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ScriptError) as caught:
        read_script(path)
    text = str(caught.value)
    assert "\n" not in text and text.startswith(f"{path}: ")
    return text.removeprefix(f"{path}: ")


def changed(where: str, value: Any) -> dict[str, Any]:
    """The short script with one field set; the path is written with dots."""
    data = short_data()
    *way, last = where.split(".")
    inner: Any = data
    for step in way:
        inner = inner[int(step)] if isinstance(inner, list) else inner[step]
    inner[int(last) if isinstance(inner, list) else last] = value
    return data


@pytest.mark.parametrize(
    ("where", "value", "expected"),
    [
        ("lines.1.gap_s", "soon", "lines.1.gap_s: input should be a valid number"),
        ("lines.1.gapp_s", 1, "lines.1.gapp_s: there is no such field"),
        ("lines.1.speaker", "Cora", "line u2: Cora is not in the room"),
        ("lines.1.speaker", "Mrs Far", "line u2: Mrs Far is not in the room"),
        ("lines.1.id", "u1", "line u1 stands 2 times"),
        ("lines.2.during", "u9", "line u3: during names u9, which is no line before it"),
        ("lines.2.offset_s", None, "lines.2: during and offset_s go together"),
        ("lines.0.text", "Well, [0.5]", "lines.0: a pause must stand between words"),
        ("lines.0.say", "well", "lines.0: say and pauses exclude each other"),
        ("attendees.1.seat", "Z", "attendee Ben sits at Z, which the room does not have"),
        ("attendees.1.seat", "A", "seat A stands 2 times"),
        ("attendees.0.voice", None, "line u1: Anna has no voice and the line no recording"),
        ("room.seats.A.mouth_m", [9, 1, 1], "room: seat A at 9 × 1 × 1 m lies outside the room of 5 × 4 × 2.6 m"),
        ("slides.1.before", "u9", "slides.1: there is no line u9"),
        ("slides.1.before", None, "slides.1: needs before, the line it appears at"),
        ("slides.0.before", "u1", "slides: the first slide is there from the start and has no before"),
        ("slides.1.show", "s9", "slides.1: show names s9, which is no slide before it"),
        ("slides.1.bullets", [], "slides.1: a slide of kind bullets needs bullets"),
        ("gestures.0.who", "Cora", "gestures.0: Cora is not in the room"),
        ("truth.decisions.0.evidence", ["u9"], "truth.decisions: there is no line u9"),
        ("truth.decisions.0.from_slide", {"amount": "s9"}, "truth.decisions: there is no slide s9 for amount"),
        ("start_time", "2026-03-10T09:00:00", "start_time: needs a time zone, like 2026-03-10T09:00:00Z"),
    ],
)  # fmt: skip
def test_each_fault_is_one_line(tmp_path: Path, where: str, value: Any, expected: str) -> None:
    assert fault(tmp_path, changed(where, value)).startswith(expected)


def test_files_that_are_no_scripts(tmp_path: Path) -> None:
    assert fault(tmp_path, "a: [1").startswith("no YAML: ")
    assert fault(tmp_path, "- a") == "no script: must be a mapping"
    assert fault(tmp_path, "") == "no script: must be a mapping"
    assert fault(tmp_path, "a: 1\nb: {c: 1, c: 2}") == "c stands 2 times in the mapping at line 2"
    assert fault(tmp_path, "title: x").startswith("kind: is missing")
    with pytest.raises(ScriptError, match=r"nowhere\.yaml: cannot be read: No such file"):
        read_script(tmp_path / "nowhere.yaml")


def test_pauses_cut_a_line_into_stretches() -> None:
    line = Line(id="u", speaker="Anna", text="We could, [0.75] I think, [1] wait.")
    assert line.stretches() == [("We could,", 0.75), ("I think,", 1.0), ("wait.", 0.0)]
    assert line.written == "We could, I think, wait."


def kept() -> list[Script]:
    return [read_script(path) for path in KEPT]


def test_the_kept_scripts_differ_and_hold_what_rooms_are_for() -> None:
    scripts = kept()
    assert len(scripts) >= 8
    assert len({s.kind for s in scripts}) == len({s.seed for s in scripts}) == len(scripts)
    assert {s.form for s in scripts} == set(module.FORMS)
    assert {slide.theme for s in scripts for slide in s.slides} == {"light", "dark", "photo"}
    assert all(0.2 <= s.room.rt60_s <= 0.6 for s in scripts)
    for script in scripts:
        lines, truth = script.lines, script.truth
        assert any(line.backchannel for line in lines) and any(len(line.stretches()) > 1 for line in lines)
        assert any(line.gap_s < 0.0 for line in lines), "nobody interrupts anybody"
        assert truth.decisions and truth.action_items and truth.open_questions and truth.traps
        assert any(item.due is not None and item.owner is not None for item in truth.action_items)
        voices = [person.voice for person in script.seated]
        assert all(a != b for a, b in combinations(voices, 2)), "two people with one voice"
    assert (
        sum(any(i.from_slide for _, i in s.truth.listed() if isinstance(i, module.Item)) for s in scripts)
        >= 2
    )
    assert sum(bool(s.truth.withdrawn) for s in scripts) >= len(scripts) - 1


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_the_kept_clips_fit_their_scripts(path: Path) -> None:
    script = read_script(path)
    placed = place(script, read_clips(script, path.parent, FOLDER / "clips"))
    assert 60.0 <= length_samples(script, placed) / SAMPLE_RATE_HZ <= 150.0
    for one in placed:
        assert [word.text for word in one.words] == one.line.written.split()
        # Word edges are the synthesiser's phones; its first and last ones may fade into silence.
        assert abs(one.words[0].start_s - one.speech_start / SAMPLE_RATE_HZ) < 0.12
        assert abs(one.words[-1].end_s - one.speech_end / SAMPLE_RATE_HZ) < 0.2


def test_a_changed_line_has_no_clip_any_more(tmp_path: Path) -> None:
    data = yaml.safe_load((FOLDER / "scripts" / "standup.yaml").read_text("utf-8"))
    data["lines"][4]["text"] = "Hm, maybe not."
    path = tmp_path / "standup.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ScriptError, match="line u05 was changed since its clip was made; make them with"):
        read_clips(read_script(path), tmp_path, FOLDER / "clips")
