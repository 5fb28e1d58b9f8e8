"""room.json: what it may say, and one readable line for each way in which it can be wrong."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from devices.room import RoomFile, read_room
from devices.streams import InputError


def read(folder: Path, content: Any) -> tuple[RoomFile, list[str]]:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "room.json").write_bytes(text)
    notes: list[str] = []
    return read_room(folder, notes.append), notes


def test_a_folder_without_it_is_a_room(tmp_path: Path) -> None:
    notes: list[str] = []
    assert read_room(tmp_path, notes.append) == RoomFile() and notes == []


def test_all_of_it(tmp_path: Path) -> None:
    room, notes = read(
        tmp_path,
        {
            "schema": "whatever",
            "meeting_id": "board/2026 März",
            "title": "Board",
            "date": "2026-03-10",
            "start_time": "2026-03-10T10:00:00.25+01:00",
            "language": "en",
            "attendees": ["Ann", {"name": "Bo", "role": "chair", "seat": "B"}],
            "seats": {"B": {"mouth_m": [1, 2, 1.2], "microphone_m": [1, 1.8, 1]}},
            "devices": {
                "m1": {
                    "file": "m1.wav",
                    "modality": "audio",
                    "speaker": "Ann",
                    "start_s": 1.5,
                    "microphones_m": [[2, 2, 1], [2.25, 2, 1]],
                },
                "m2": {"file": "m2.wav", "seat": "B"},
                "m3": {"file": "m3.wav", "seat": "Z"},
            },
            "channel_map": [{"device": "m1", "channel": 1, "speaker": "Cy"}],
            "agenda": ["Budget"],
            "key_topics": ["boiler"],
            "speech_source": "transcript",
            "calibration": [{"device": "m1", "offset_ns": 5_000_000, "uncertainty_ns": 1000}],
        },
    )
    assert notes == []
    # TAI is 37 s ahead of UTC.
    assert room.begins_ns == (1_773_133_200 + 37) * 10**9 + 250_000_000
    assert room.meeting_date == datetime.date(2026, 3, 10)
    assert [a.name for a in room.attendees] == ["Ann", "Bo"]
    assert room.seats["B"].mouth_m == (1.0, 2.0, 1.2)
    assert [(s.device, s.channel, s.speaker) for s in room.speakers()] == [
        ("m1", 1, "Cy"), ("m1", 0, "Ann"), ("m2", 0, "Bo"),
    ]  # fmt: skip
    assert [(s.speaker, s.position_m) for s in room.places()] == [("Bo", (1.0, 2.0, 1.2))]
    assert [(m.device, m.channel, m.position_m) for m in room.microphones()] == [
        ("m1", 0, (2.0, 2.0, 1.0)), ("m1", 1, (2.25, 2.0, 1.0)), ("m2", 0, (1.0, 1.8, 1.0)),
    ]  # fmt: skip
    assert room.devices["m1"].start_s == 1.5 and room.calibration[0].offset_ns == 5_000_000


def test_the_start_in_its_several_forms(tmp_path: Path) -> None:
    assert read(tmp_path, {"start_ns": 5, "start_time": "2026-03-10T09:00:00Z"})[0].begins_ns == 5
    without_zone = read(tmp_path, {"start_time": "2026-03-10T09:00:00"})[0]
    assert without_zone.begins_ns == (1_773_133_200 + 37) * 10**9
    # The day is the one of the room, not of Greenwich.
    far = read(tmp_path, {"start_time": "2026-03-10T23:30:00-08:00"})[0]
    assert far.meeting_date == datetime.date(2026, 3, 10)
    assert RoomFile().begins_ns is None and RoomFile().meeting_date is None


def test_a_mistyped_field_is_told(tmp_path: Path) -> None:
    room, notes = read(tmp_path, b"\xef\xbb\xbf" + json.dumps({"attendes": [], "title": "T"}).encode())
    assert room.title == "T"
    assert notes == ["room.json has unknown fields, ignored: attendes"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "room.json: no JSON: it cannot be understood from line 1, column 1 on"),
        (b'{"title": "x",\n}', "room.json: no JSON: "),
        (b"\xff\xfe\xfd", "room.json: no JSON: it is not UTF-8 text"),
        (b"[" * 100_000, "room.json: no room: its JSON is nested too deeply"),
        ([], "room.json: no room: must be a JSON object"),
        ({"attendees": [{"role": "x"}]}, "room.json: attendees.0.name: is missing"),
        ({"date": "10th of March"}, "room.json: date: "),
        ({"devices": {"a\u0000b": {}}}, "room.json: devices.a\u0000b.[key]: "),
        ({"meeting_id": "é" * 40}, "room.json: meeting_id: must be NFC text of 1 to 64 bytes"),
    ],
)
def test_what_is_wrong_with_it_is_said_in_one_line(tmp_path: Path, content: Any, what: str) -> None:
    with pytest.raises(InputError) as failure:
        read(tmp_path, content)
    assert str(failure.value).startswith(f"{tmp_path}/{what}")
    assert "\n" not in str(failure.value)
