"""Inputs become one meeting: ids, names, control messages, the order of messages, and what is told of bad ones."""

import datetime
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import cv2
import numpy as np
import pytest
import soundfile

from contracts.messages import Calibration, EndOfStream, MeetingStarted, SpeakerTurns, TranscriptMessage
from contracts.packet import Codec, Modality, Packet, valid_id
from devices.input_names import day_in_name, device_id_of, meeting_id_of
from devices.inputs import InputSettings, Room, open_inputs
from devices.media import SoundSettings
from devices.streams import InputError, MediaPiece, Note, Stream, TextPiece, due_ns, merged, read_ahead
from devices.transcripts import TranscriptSource
from devices.video import VideoSettings

SRT = "1\n00:00:01,000 --> 00:00:02,500\nAnn: Hello there.\n\n2\n00:00:03,000 --> 00:00:04,000\nBo: Good.\n"


def wav(path: Path, seconds: float = 1.0, channels: int = 1) -> Path:
    noise = np.random.default_rng(1).standard_normal((round(seconds * 8_000), channels)) * 0.1
    soundfile.write(path, noise.astype(np.float32), 8_000)
    return path


def text(path: Path, content: str = SRT) -> Path:
    path.write_text(content)
    return path


def started(room: Room) -> MeetingStarted:
    (message,) = [message for message in room.control if isinstance(message, MeetingStarted)]
    return message


def test_sound_beside_its_transcript(tmp_path: Path) -> None:
    room = open_inputs(
        [wav(tmp_path / "Weekly Sync 2026-05-04.wav", 5.0), text(tmp_path / "lines.srt")],
        title="Sync",
        attendees=["Ann", "Bo"],
        start_ns=10**18,
    )
    assert room.meeting_id == "weekly-sync-2026-05-04"
    message = started(room)
    assert (message.title, message.date) == ("Sync", datetime.date(2026, 5, 4))
    assert message.start_ns == room.start_ns == 10**18
    assert message.streams == ("Weekly Sync 2026-05-04/audio", "lines/transcript")
    assert [a.name for a in message.attendees] == ["Ann", "Bo"]
    assert message.speech_source == "sound"
    first = next(room.streams[1].packets())
    assert isinstance(first, TranscriptMessage)
    assert (first.timestamp_ns, first.duration_ns) == (10**18 + 10**9, 1_500_000_000)
    assert (first.speaker, first.text, first.sequence) == ("Ann", "Hello there.", 0)


def test_a_transcript_alone_is_the_source_of_speech(tmp_path: Path) -> None:
    message = started(open_inputs([text(tmp_path / "a.srt")]))
    assert message.speech_source == "transcript" and message.start_ns == 0 and message.date is None


def test_messages_come_in_the_order_in_which_devices_send_them(tmp_path: Path) -> None:
    room = open_inputs([wav(tmp_path / "a.wav", 5.0), wav(tmp_path / "b.wav", 2.0), text(tmp_path / "c.srt")])
    sent = list(merged(room.streams))
    due = [due_ns(message) for _, message in sent]
    assert due == sorted(due)
    for stream in room.streams:
        own = [message for source, message in sent if source.name == stream.name]
        assert isinstance(own[-1], EndOfStream)
        assert [message.sequence for message in own] == list(range(len(own)))
    # The first line is told when it is over, 2.5 s, after the sound of the same moment.
    line = next(i for i, (_, message) in enumerate(sent) if isinstance(message, TranscriptMessage))
    block = sent[line - 1][1]
    assert isinstance(block, Packet) and due_ns(block) == 2_500_000_000


def test_a_long_line_holds_back_the_lines_behind_it_only(tmp_path: Path) -> None:
    lines = (TextPiece(0, 9 * 10**9, None, "long"), TextPiece(10**9, 10**9, None, "short"))
    stream = Stream("m", "t", Modality.TRANSCRIPT, TranscriptSource(lines), tmp_path)
    sound = open_inputs([wav(tmp_path / "a.wav", 10.0)]).streams[0]
    sent = [message for _, message in merged([stream, sound])]
    spoken = [message.text for message in sent if isinstance(message, TranscriptMessage)]
    assert spoken == ["long", "short"]
    blocks = [due_ns(message) for message in sent if isinstance(message, Packet)]
    assert blocks == sorted(blocks) and len(blocks) == 500


def test_a_room_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Board room"
    folder.mkdir()
    wav(folder / "m1.wav", 2.0)
    wav(folder / "m2.wav", 2.0)
    (folder / "deck").mkdir()
    cv2.imwrite(str(folder / "deck" / "0s.png"), np.full((90, 160, 3), 90, np.uint8))
    for name in ("truth.json", "README.md", "script.yaml", ".hidden.wav", "LICENSE"):
        (folder / name).write_text("{}")
    (folder / "room.json").write_text(
        json.dumps(
            {
                "start_ns": 7 * 10**9,
                "date": "2026-01-02",
                "attendees": [{"name": "Ann", "seat": "A"}],
                "devices": {
                    "left": {"file": "m1.wav", "seat": "A", "start_s": 0.5},
                    "deck": {"file": "deck", "role": "slides"},
                },
                "calibration": [{"device": "left", "offset_ns": 42, "uncertainty_ns": 3}],
            }
        )
    )
    room = open_inputs([folder])
    message = started(room)
    assert [stream.name for stream in room.streams] == ["deck/video", "left/audio", "m2/audio"]
    assert (room.meeting_id, message.title, room.start_ns, room.start_known) == (
        "board-room",
        "Board room",
        7 * 10**9,
        True,
    )
    assert [(c.device, c.speaker) for c in message.channel_map] == [("left", "Ann")]
    assert message.slide_devices == ("deck",)
    assert next(room.streams[1].packets()).timestamp_ns == 7_500_000_000
    assert [c.offset_ns for c in room.control if isinstance(c, Calibration)] == [42]
    assert room.problems == []


def test_one_bad_file_in_a_folder_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    wav(tmp_path / "good.wav")
    (tmp_path / "bad.mp4").write_bytes(b"\0" * 1000)
    (tmp_path / "notes.docx").write_bytes(b"PK\3\4")
    (tmp_path / "empty.vtt").write_bytes(b"")
    room = open_inputs([tmp_path])
    assert [stream.name for stream in room.streams] == ["good/audio"]
    assert [problem.in_minutes for problem in room.problems] == [
        "bad.mp4: damaged, cut short or empty: neither sound nor video can be read from it",
        "empty.vtt: empty file",
        "notes.docx: not a sound, video, image folder or transcript",
    ]


def test_slides_may_lie_beside_the_sound(tmp_path: Path) -> None:
    wav(tmp_path / "talk.wav", 4.0)
    for number in (1, 2):
        cv2.imwrite(str(tmp_path / f"page{number}.png"), np.full((90, 160, 3), 90, np.uint8))
    room = open_inputs([tmp_path])
    assert [stream.name for stream in room.streams] == ["talk/audio", "slides/video"]
    assert started(room).slide_devices == ("slides",)


def test_a_file_that_two_devices_claim_is_read_once_and_told(tmp_path: Path) -> None:
    wav(tmp_path / "a.wav")
    text(tmp_path / "room.json", '{"devices": {"one": {"file": "a.wav"}, "two": {"file": "a.wav"}}}')
    room = open_inputs([tmp_path])
    assert [stream.name for stream in room.streams] == ["two/audio"]
    assert [p.in_minutes for p in room.problems] == [
        "room.json: a.wav is named by two devices, one and two; it is read as two"
    ]


def test_devices_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    room = open_inputs(
        [wav(tmp_path / "a" / "mic.wav"), wav(tmp_path / "b" / "mic.wav"), text(tmp_path / "mic.srt")]
    )
    assert [stream.name for stream in room.streams] == ["mic/audio", "mic-2/audio", "mic-3/transcript"]


def test_speaker_turns_go_to_their_sound(tmp_path: Path) -> None:
    turns = "SPEAKER {0} 1 0.5 0.25 <NA> <NA> ann <NA> <NA>\n"
    sounds = [wav(tmp_path / "one.wav"), wav(tmp_path / "two.wav")]
    room = open_inputs([*sounds, text(tmp_path / "x.rttm", turns.format("two"))], start_ns=10**9)
    (message,) = [m for m in room.control if isinstance(m, SpeakerTurns)]
    assert message.device == "two"
    assert [(t.start_ns, t.end_ns, t.speaker) for t in message.turns] == [
        (1_500_000_000, 1_750_000_000, "ann")
    ]
    room = open_inputs([sounds[0], text(tmp_path / "x.rttm", turns.format("elsewhere"))])
    assert [m.device for m in room.control if isinstance(m, SpeakerTurns)] == ["one"]
    room = open_inputs([*sounds, text(tmp_path / "x.rttm", turns.format("elsewhere"))])
    assert [p.in_minutes for p in room.problems] == [
        "x.rttm: speaker turns of no sound file that is here, left out"
    ]


def test_the_log_of_a_meeting_goes_alone(tmp_path: Path) -> None:
    log = text(tmp_path / "timeline.jsonl", '{"type": "control", "meeting_id": "m"}\n')
    room = open_inputs([log])
    assert room.timeline == log and room.streams == ()
    with pytest.raises(InputError, match="goes alone"):
        open_inputs([log, wav(tmp_path / "a.wav")])


@pytest.mark.parametrize(
    "stem", ["call-10:30", "take%02d", "-dash", "two\nlines", "\u202ereversed", "not-\udcff-utf8"]
)
def test_files_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stem: str) -> None:
    """Relative paths: with a folder before them, colons were never read as protocols."""
    monkeypatch.chdir(tmp_path)
    cv2.imwrite("picture.png", np.full((90, 160, 3), 90, np.uint8))
    Path("picture.png").rename(f"{stem}.png")
    cv2.imwrite("take00.png", np.full((45, 80, 3), 90, np.uint8))
    wav(Path("sound.wav")).rename(f"{stem}.wav")
    room = open_inputs([Path(f"{stem}.wav"), Path(f"{stem}.png")])
    sound, pictures = (list(stream.packets()) for stream in room.streams)
    assert len(sound) > 10 and room.problems == []
    assert isinstance(pictures[0], Packet) and (pictures[0].width, pictures[0].height) == (160, 90)
    assert str(started(room).title).encode("utf-8")


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ([], ".: no input given"),
        (["no-such.wav"], "no-such.wav: file not found"),
        (["a.wav", "no-such.wav"], "no-such.wav: file not found"),
        (["notes.docx"], "notes.docx: not a sound, video, image folder or transcript"),
        (["empty"], "empty: nothing in this folder is a sound, video, picture or transcript"),
        (["t.rttm"], "t.rttm: speaker turns need the sound they belong to beside them"),
        (["room", "a.wav"], "room: a room folder goes alone, not with other inputs"),
        (["broken"], "broken/room.json: no JSON: it cannot be understood from line 1, column 1 on"),
        (["never"], "never/room.json: start of the meeting: must be a time between 1900 and 2100"),
        (
            ["all"],
            "all/room.json: meeting_id: '*' stands for all meetings; only calibrations, clocks and rules may",
        ),
        (["outside"], "outside/room.json: ../a.wav lies outside of this folder; left out"),
        (["gone"], "gone/gone.wav: file not found, though room.json names it"),
    ],
)
def test_wrong_inputs_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "room", "broken", "gone", "never", "all", "outside"):
        Path(folder).mkdir()
    wav(Path("a.wav"))
    wav(Path("room/a.wav"))
    text(Path("notes.docx"), "words")
    text(Path("t.rttm"), "SPEAKER a 1 0.5 0.25 <NA> <NA> ann <NA> <NA>\n")
    text(Path("broken/room.json"), "")
    for folder, about in (("never", {"start_time": "9999-01-01T00:00:00Z"}), ("all", {"meeting_id": "*"})):
        wav(Path(folder) / "a.wav")
        text(Path(folder) / "room.json", json.dumps(about))
    text(Path("outside/room.json"), '{"devices": {"x": {"file": "../a.wav"}}}')
    text(Path("gone/room.json"), '{"devices": {"x": {"file": "gone.wav"}}}')
    with pytest.raises(InputError) as failure:
        open_inputs([Path(name) for name in names])
    assert str(failure.value) == what


@pytest.mark.parametrize(
    ("name", "meeting"),
    [
        ("Weekly Sync", "weekly-sync"),
        ("GMT20240506-140012_Recording_1920x1080", "gmt20240506-140012-recording-1920x1080"),
        ("u\u0308ber/müsli", "über-müsli"),
        ("会議 2", "会議-2"),
        ("___", "meeting"),
        ("é" * 50, "é" * 32),
    ],
)
def test_meeting_ids(name: str, meeting: str) -> None:
    assert meeting_id_of(name) == meeting
    assert valid_id(meeting)


def test_device_ids_keep_the_name_as_far_as_they_can() -> None:
    assert device_id_of("Zoë's mic (2)") == "Zoë's mic (2)"
    assert valid_id(device_id_of("a\tb\u0000" + "長" * 40)) and device_id_of("\u0001") == "-"


def test_the_day_in_a_name() -> None:
    assert day_in_name("GMT20240506-140012_Recording.mp4") == datetime.date(2024, 5, 6)
    assert day_in_name("2024-05-06 14-00-12.mkv") == datetime.date(2024, 5, 6)
    assert day_in_name("call_20249906.wav") is None and day_in_name("123456789012.wav") is None


def test_settings_refuse_what_the_contract_does_not_allow() -> None:
    with pytest.raises(ValueError, match="block_ms"):
        SoundSettings(block_ms=5)
    with pytest.raises(ValueError, match="Opus"):
        SoundSettings("opus", block_ms=30)
    with pytest.raises(ValueError, match="two seconds"):
        VideoSettings(key_every_ns=3 * 10**9)


def test_a_stream_can_be_read_twice_and_gives_the_same(tmp_path: Path) -> None:
    settings = InputSettings(sound=SoundSettings("flac", block_ms=40))
    (stream,) = open_inputs([wav(tmp_path / "a.wav")], settings=settings).streams
    once, again = list(stream.packets()), list(stream.packets())
    assert once == again
    first = once[0]
    assert isinstance(first, Packet) and first.codec is Codec.FLAC and first.duration_ns == 40_000_000


class Failing:
    """A source whose codec gives up after two pieces."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        for number in range(2):
            yield MediaPiece(
                number * 20_000_000, 20_000_000, Codec.JPEG, b"x", width=2, height=2, key_frame=True
            )
        raise self._error


def test_a_codec_that_gives_up_ends_its_own_stream_only(tmp_path: Path) -> None:
    stream = Stream(
        "m", "cam", Modality.VIDEO, Failing(InputError("cam.mp4", "no more")), tmp_path / "cam.mp4"
    )
    sound = open_inputs([wav(tmp_path / "a.wav")]).streams[0]
    sent = [(source.name, message) for source, message in merged([stream, sound])]
    ends = {name: message for name, message in sent if isinstance(message, EndOfStream)}
    assert ends["cam/video"].sequence == 2 and ends["cam/video"].timestamp_ns == 40_000_000
    assert ends["a/audio"].sequence == 50
    assert [str(problem) for problem in stream.problems] == [
        f"{tmp_path}/cam.mp4: cannot be read beyond 0.0 s: no more"
    ]


def test_reading_ahead_gives_the_same_messages_and_ends_its_thread(tmp_path: Path) -> None:
    for number in range(3):
        cv2.imwrite(str(tmp_path / f"{100 * number}s.png"), np.full((90, 160, 3), 90, np.uint8))
    (stream,) = open_inputs([tmp_path]).streams
    assert list(read_ahead(stream)) == list(stream.packets())
    threads = threading.active_count()
    reader = read_ahead(stream)
    next(reader)
    assert threading.active_count() == threads + 1
    reader.close()
    patience = time.monotonic() + 5
    while threading.active_count() > threads and time.monotonic() < patience:
        time.sleep(0.01)
    assert threading.active_count() == threads
    broken = Stream("m", "cam", Modality.VIDEO, Failing(KeyError("a fault of ours")), tmp_path)
    with pytest.raises(KeyError):
        list(read_ahead(broken))


def test_no_damage_to_a_file_ends_the_program(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "s.png"), np.random.default_rng(2).integers(0, 255, (90, 160, 3), np.uint8))
    whole = {
        ".wav": wav(tmp_path / "w.wav", 0.5).read_bytes(),
        ".srt": SRT.encode(),
        ".vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi<00:01.500><c> you</c> &amp; me</v>\n",
        ".jsonl": b'{"start_s": 1.5, "end_s": 2, "text": "hi", "words": [[1.5, 2, "hi"]]}\n' * 3,
        ".rttm": b"SPEAKER a 1 0.5 0.25 <NA> <NA> ann <NA> <NA>\n" * 3,
        ".png": (tmp_path / "s.png").read_bytes(),
    }
    soundfile.write(tmp_path / "f.flac", np.zeros(4_000, np.float32), 8_000)
    whole[".flac"] = (tmp_path / "f.flac").read_bytes()
    random = Random(11)
    outcomes = {"read": 0, "refused": 0}
    for number in range(300):
        suffix = random.choice(sorted(whole))
        data = bytearray(whole[suffix])
        if random.random() < 0.3:
            del data[random.randrange(1, len(data)) :]
        for _ in range(random.choice((1, 4, 40))):
            data[random.randrange(len(data))] = random.randrange(256)
        path = tmp_path / f"hurt{number}{suffix}"
        path.write_bytes(data)
        try:
            room = open_inputs([path])
        except InputError as error:
            assert "\n" not in str(error) and path.name in str(error)
            outcomes["refused"] += 1
        else:
            for stream in room.streams:
                *_, last = stream.packets()
                assert isinstance(last, EndOfStream)
            outcomes["read"] += 1
    assert min(outcomes.values()) > 30
