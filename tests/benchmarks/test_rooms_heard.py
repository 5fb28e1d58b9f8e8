"""A room of which only the sound is played."""

from pathlib import Path

from benchmarks.rooms import SAMPLE, heard_room, sound_room
from contracts.messages import MeetingStarted
from contracts.packet import Modality
from devices.inputs import open_inputs


def test_a_room_is_heard_without_its_pictures(tmp_path: Path) -> None:
    heard = heard_room(SAMPLE, tmp_path / "heard")
    room = open_inputs([heard.path])
    assert {stream.modality for stream in room.streams} == {Modality.AUDIO}
    assert room.problems == []
    assert heard.truth == sound_room(SAMPLE).truth
    (told,), (before,) = (open_inputs([path]).control for path in (heard.path, SAMPLE))
    assert isinstance(told, MeetingStarted) and isinstance(before, MeetingStarted)
    assert told.channel_map == before.channel_map
    assert not told.slide_devices
