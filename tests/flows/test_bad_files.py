"""``minuted run`` on people's worst folders: what cannot be read is named, and the rest becomes minutes."""

import json
import wave
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import soundfile

from flows import cli
from tests.flows.live_chain import meeting_folder

RATES = ((8_000, "PCM_U8"), (11_025, "PCM_16"), (44_100, "PCM_24"), (48_000, "FLOAT"))


def run(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and what was said."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    said = capfd.readouterr()
    return ended.value.code if isinstance(ended.value.code, int) else 1, said.out, said.err


def transcribed(folder: Path) -> Path:
    """A room whose words come from its transcripts, whatever sound lies beside them."""
    room = meeting_folder(folder, "m")
    info = json.loads((room / "room.json").read_text())
    (room / "room.json").write_text(json.dumps(info | {"speech_source": "transcript"}))
    return room


def quiet(path: Path, rate_hz: int, channels: int = 1, kind: str = "PCM_16", seconds: float = 2.0) -> Path:
    """A recording in which nobody says anything."""
    noise = np.random.default_rng(1).normal(0, 0.001, (round(seconds * rate_hz), channels))
    soundfile.write(path, noise, rate_hz, subtype=kind)
    return path


def film(path: Path, size: tuple[int, int], times_s: list[float]) -> Path:
    """A video without sound whose pictures come up at these times."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for at_s in times_s:
            picture = np.full((size[1], size[0], 3), 240, np.uint8)
            cv2.putText(picture, "Plan", (20, size[1] // 2), cv2.FONT_HERSHEY_DUPLEX, 2.0, (20, 20, 20), 3)
            frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
            frame.pts, frame.time_base = round(at_s * 30), Fraction(1, 30)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def test_one_bad_file_of_each_kind_among_good_ones(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    room, out = transcribed(tmp_path / "room"), tmp_path / "out"
    noise = np.random.default_rng(2).bytes(30_000)
    good = quiet(room / "good.flac", 16_000).read_bytes()
    bad: dict[str, tuple[bytes, str]] = {
        "no-media.mp4": (
            b"This is a letter, not a film.\n" * 50,
            "neither sound nor video can be read from it",
        ),
        "noise.mp3": (noise, "neither sound nor video can be read from it"),
        "empty.wav": (b"", "empty file"),
        "nothing.vtt": (b"", "empty file"),
        "no-cues.srt": (b"1\n\nHello\n", "no transcript: no line has times"),
        "binary.jsonl": (bytes(range(256)) * 40, "no transcript: line 1 (no JSON)"),
        "turns.rttm": (b"SPEAKER x 1 nan nan <NA> <NA> ann <NA> <NA>\n", "no speaker turns"),
        "strange.xyz": (noise, "not a sound, video, image folder or transcript"),
    }
    for name, (content, _) in bad.items():
        (room / name).write_bytes(content)
    (room / "cut.flac").write_bytes(good[: len(good) // 2])
    code, printed, said = run(capfd, "run", room, "--out", out)
    assert code == 0, said
    for name, (_, what) in bad.items():
        assert [
            what in line for line in said.splitlines() if line.startswith(f"minuted: {room / name}: ")
        ] == [True], name
    assert any(f"minuted: {room}/cut.flac: " in line for line in said.splitlines())
    assert "Traceback" not in said and "av.error" not in said and "Errno" not in said
    document = json.loads((out / "minutes.json").read_text())
    assert len(document["utterances"]) == 15
    for name in (*bad, "cut.flac"):
        assert any(notice.startswith(f"{name}: ") for notice in document["notices"]), name
    assert printed.endswith(f"15 utterances: {out / 'minutes.md'}\n")


def test_sound_of_every_form_beside_a_transcript(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    for rate_hz, kind in RATES:
        quiet(room / f"mic-{rate_hz}.wav", rate_hz, kind=kind)
    quiet(room / "surround.wav", 48_000, channels=6)
    quiet(room / "surround.flac", 44_100, channels=2)
    with wave.open(str(room / "no-samples.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", "not compressed"))
    code, _, said = run(capfd, "run", room, "--out", tmp_path / "out")
    assert code == 0
    assert [line.split(": ")[1] for line in said.splitlines()] == [str(room / "no-samples.wav")]
    log = (tmp_path / "out" / "timeline.jsonl").read_text()
    for name in (*(f"mic-{rate_hz}" for rate_hz, _ in RATES), "surround", "surround-2"):
        assert f'"stream":"{name}/audio"' in log, name


def test_video_of_strange_forms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    film(room / "portrait-slides.mp4", (360, 640), [n / 5 for n in range(15)])
    film(room / "slow-slides.mkv", (640, 360), [0, 1, 2, 3])
    film(room / "uneven-slides.mkv", (640, 360), [0, 0.1, 0.13, 1.4, 1.5, 4.0])
    film(room / "large-slides.mp4", (3840, 2160), [0, 0.5, 1.0])
    whole = film(tmp_path / "whole.mp4", (640, 360), [n / 5 for n in range(30)]).read_bytes()
    (room / "no-index.mp4").write_bytes(whole[: len(whole) * 3 // 4])
    code, _, said = run(capfd, "run", room, "--out", tmp_path / "out", "--json")
    assert code == 0
    assert [line.split(": ")[1] for line in said.splitlines()] == [str(room / "no-index.mp4")]
    slides = json.loads((tmp_path / "out" / "minutes.json").read_text())["slides"]
    assert [slide["text"].split()[0] for slide in slides] == ["Plan"] * 4


def test_a_folder_of_pictures_alone_gives_its_slides(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    deck = tmp_path / "deck"
    deck.mkdir()
    for number, title in enumerate(("Budget plan", "Launch in May")):
        picture = np.full((360, 640, 3), 240, np.uint8)
        cv2.putText(picture, title, (40, 180), cv2.FONT_HERSHEY_DUPLEX, 2.0, (20, 20, 20), 3)
        cv2.imwrite(str(deck / f"slide-{number}.png"), picture)
    code, _, _ = run(capfd, "run", deck, "--out", tmp_path / "out", "--json")
    assert code == 0
    slides = json.loads((tmp_path / "out" / "minutes.json").read_text())["slides"]
    assert [(slide["start_s"], slide["text"]) for slide in slides] == [
        (0.0, "Budget plan"), (10.0, "Launch in May")
    ]  # fmt: skip


CAPTIONS = {
    "unsorted.vtt": (
        "WEBVTT\n\n00:09.000 --> 00:10.000\nLast.\n\n00:01.000 --> 00:02.000\nFirst.\n",
        ["First.", "Last."],
    ),
    "overlapping.srt": (
        "1\n00:00:01,000 --> 00:00:09,000\nAnna: One.\n\n2\n00:00:02,000 --> 00:00:03,000\nBen: Two.\n",
        ["One.", "Two."],
    ),
    "doubled.vtt": (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nOnce.\n\n00:01.000 --> 00:02.000\nOnce.\n",
        ["Once."],
    ),
    "empty.vtt": (
        "WEBVTT\n\n00:01.000 --> 00:02.000\n\n\n00:03.000 --> 00:04.000\nThere.\n",
        ["There."],
    ),
    "style.vtt": (
        "WEBVTT\n\nSTYLE\n::cue { color: red }\n\nNOTE not said\n\n"
        "00:01.000 --> 00:02.000\n<v.loud Ann &amp; Bo><b>Yes &lt;5&gt;.</b>\n",
        ["Yes <5>."],
    ),
    "mark.srt": ("\ufeff1\n00:00:01,000 --> 00:00:02,000\nMarked.\n", ["Marked."]),
}


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions_as_they_come(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    content, heard = CAPTIONS[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    code, _, said = run(capfd, "run", tmp_path / name, "--out", tmp_path / "out")
    assert (code, said) == (0, "")
    document = json.loads((tmp_path / "out" / "minutes.json").read_text())
    assert [line["text"] for line in document["utterances"]] == heard


@pytest.mark.parametrize(
    "write",
    [
        lambda path, text: path.write_bytes(text.encode("cp1252")),
        lambda path, text: path.write_bytes(text.encode("utf-16")),
        lambda path, text: path.write_bytes(text.encode("utf-16-be")),
    ],
    ids=["Windows-1252", "UTF-16", "UTF-16 without a mark"],
)
def test_captions_in_other_encodings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], write: Callable[[Path, str], None]
) -> None:
    write(tmp_path / "m.srt", "1\n00:00:01,000 --> 00:00:02,000\nJosé: Grüße aus Köln.\n")
    code, _, said = run(capfd, "run", tmp_path / "m.srt", "--out", tmp_path / "out")
    assert (code, said) == (0, "")
    line = json.loads((tmp_path / "out" / "minutes.json").read_text())["utterances"][0]
    assert "Grüße aus Köln." in line["text"]


def test_a_log_whose_first_lines_are_missing_is_read_and_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(capfd, "run", meeting_folder(tmp_path / "room", "m"), "--out", tmp_path / "out")
    lines = (tmp_path / "out" / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"utterance"' in line)
    (tmp_path / "tail.jsonl").write_bytes(b"".join(lines[first:]))
    code, _, said = run(capfd, "run", tmp_path / "tail.jsonl", "--out", tmp_path / "tail")
    what = "the beginning of the log is missing; the minutes hold only what follows"
    assert (code, said) == (0, f"minuted: {tmp_path}/tail.jsonl: {what}\n")
    assert what in json.loads((tmp_path / "tail" / "minutes.json").read_text())["notices"]
    code, _, said = run(capfd, "run", tmp_path / "out" / "timeline.jsonl", "--out", tmp_path / "again")
    assert (code, said) == (0, "")


def test_a_transcript_with_more_speakers_than_any_room(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps({"start_s": 2 * n, "end_s": 2 * n + 1, "speaker": f"Caller {n}", "text": "Hello there."})
        for n in range(300)
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    code, _, _ = run(capfd, "run", tmp_path / "m.jsonl", "--out", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "minutes.json").read_text())
    assert (code, len(document["attendees"]), len(document["utterances"])) == (0, 256, 300)
    assert "300 different speakers; the first 256 are listed and looked for by name." in document["notices"]
