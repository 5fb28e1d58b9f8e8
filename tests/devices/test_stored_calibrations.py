"""Stored calibrations: files that can be used, and a line for each that cannot."""

import datetime
import json
from pathlib import Path

import pytest

from contracts.messages import Calibration
from devices.inputs import open_inputs
from devices.publisher import moved_control
from devices.room import RoomCalibration
from devices.stored_calibrations import doubt_of, read_stored, write_stored
from devices.streams import Problem

DAY = datetime.date(2026, 3, 10)
WALL = RoomCalibration(
    device="wall/é", offset_ns=3_200_000_000, skew_ppb=-80.5, ref_ns=7, uncertainty_ns=11, method="pulses", measured=DAY
)  # fmt: skip


def read(folder: Path, *devices: str) -> tuple[tuple[RoomCalibration, ...], list[str]]:
    problems: list[Problem] = []
    return read_stored(folder, devices, problems.append), [p.in_minutes for p in problems]


def test_what_is_written_is_read_again_and_replaced(tmp_path: Path) -> None:
    write_stored(tmp_path / "calibration", [WALL.model_copy(update={"offset_ns": 1})])
    (path,) = write_stored(tmp_path / "calibration", [WALL])
    assert path.parent == tmp_path / "calibration"
    assert read(tmp_path / "calibration", "wall/é") == ((WALL,), [])
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_device_whose_name_begins_with_a_dot_is_not_hidden(tmp_path: Path) -> None:
    hidden = WALL.model_copy(update={"device": "..mic/.1"})
    write_stored(tmp_path, [hidden])
    assert read(tmp_path, "..mic/.1") == ((hidden,), [])


def test_no_folder_is_no_problem(tmp_path: Path) -> None:
    assert read(tmp_path / "none", "mic") == ((), [])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"schema": "other/1"}, "mic.json: calibration left out: it does not say that it is one"),
        ({"offset_ns": "soon"}, "mic.json: calibration left out: offset_ns: input should be a valid integer"),
        ({"offset_ns": 2**62}, "mic.json: calibration left out: no clock is off by"),
        ({"uncertainty_ns": -1}, "mic.json: calibration left out: uncertainty_ns: "),
        ({"uncertainty_ns": 2**63}, "mic.json: calibration left out: uncertainty_ns: "),
        ({"skew_ppb": float("nan")}, "mic.json: calibration left out: skew_ppb: "),
        ({"device": "cam"}, "mic.json: calibration left out: it is of another device, cam"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_and_the_others_count(
    tmp_path: Path, change: dict[str, object], line: str
) -> None:
    mic = WALL.model_copy(update={"device": "mic"})
    write_stored(tmp_path, [mic, WALL])
    document = json.loads((tmp_path / "mic.json").read_text()) | change
    (tmp_path / "mic.json").write_text(json.dumps(document))
    found, problems = read(tmp_path, "mic", "cam", "wall/é")
    assert found == (WALL,)
    assert len(problems) == 1
    assert problems[0].startswith(line)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\0\xff", "1", "[]"])
def test_a_broken_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "mic.json").write_text(text, encoding="latin-1")
    found, problems = read(tmp_path, "mic")
    assert (found, len(problems)) == ((), 1)
    assert "\n" not in problems[0]


def test_a_device_that_is_not_there_is_told(tmp_path: Path) -> None:
    write_stored(tmp_path, [WALL.model_copy(update={"device": "mic-7"})])
    assert read(tmp_path, "mic-1")[1] == [
        "mic-7.json: calibration left out: it is of mic-7, which is not in this meeting"
    ]


@pytest.mark.parametrize(
    ("day", "said"),
    [
        (DAY, None),
        (DAY + datetime.timedelta(days=365), None),
        (DAY + datetime.timedelta(days=366), "mic: its calibration is 366 days old; measure it again"),
        (DAY - datetime.timedelta(days=1), None),
        (DAY - datetime.timedelta(days=2), "mic: its calibration is newer than the meeting (2026-03-10)"),
        (None, None),
    ],
)
def test_old_and_new_ones_are_doubted(day: datetime.date | None, said: str | None) -> None:
    assert doubt_of(WALL.model_copy(update={"device": "mic"}), day) == said


def test_a_room_rests_on_what_is_stored_beside_it(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"start_s": 0, "end_s": 1, "speaker": "Anna", "text": "Hello"}\n')
    about = {"start_time": "2026-03-10T09:00:00Z", "calibration": [{"device": "notes", "offset_ns": 5}]}
    (tmp_path / "room.json").write_text(json.dumps(about))
    told = WALL.model_copy(update={"device": "notes", "ref_ns": 0})
    write_stored(tmp_path / "calibration", [told, WALL])
    room = open_inputs([tmp_path])
    found = [c for c in room.control if isinstance(c, Calibration)]
    assert [(c.device, c.offset_ns, c.measured) for c in found] == [("notes", 3_200_000_000, DAY)]
    assert [p.in_minutes for p in room.problems] == [
        "wall%2F%C3%A9.json: calibration left out: it is of wall/é, which is not in this meeting"
    ]
    # Sent later, an offset that holds from the first stamp on still does.
    (moved,) = [c for c in moved_control(room.control, 10**15) if isinstance(c, Calibration)]
    assert (moved.ref_ns, moved.measured) == (0, DAY + datetime.timedelta(days=11))
