"""The built sample meeting against its truth. No speech synthesis, no recogniser: only files and numbers."""

import json
import math
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
import yaml

from devices import sample_meeting, sample_slides
from devices.acoustics import SPEED_OF_SOUND_M_S
from devices.room import RoomFile

ROOM = Path(sample_meeting.__file__).parent / "sample"
RATE = sample_meeting.SAMPLE_RATE_HZ
MICROPHONES = ("mic-1", "mic-2", "mic-3", "mic-4")

Sound = dict[str, npt.NDArray[np.float64]]
Document = dict[str, Any]


@pytest.fixture(scope="module")
def truth() -> Document:
    document: Document = json.loads((ROOM / "truth.json").read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def room() -> Document:
    document: Document = json.loads((ROOM / "room.json").read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def script() -> Document:
    document: Document = yaml.safe_load((ROOM / "script.yaml").read_text(encoding="utf-8"))
    return document


@pytest.fixture(scope="module")
def sound() -> Sound:
    """Samples of every microphone, shape (samples,), full scale = 1."""
    signals: Sound = {}
    for device in MICROPHONES:
        with av.open(str(ROOM / f"{device}.flac")) as file:
            stream = file.streams.audio[0]
            assert (stream.rate, stream.channels, stream.format.name) == (RATE, 1, "s16")
            blocks = [frame.to_ndarray().reshape(-1) for frame in file.decode(stream)]
        signals[device] = np.concatenate(blocks).astype(np.float64) / 32768.0
    return signals


def level_db(signal: npt.NDArray[np.float64]) -> float:
    return 10.0 * math.log10(float(np.mean(signal**2)) + 1e-12)


def seconds(stamp: int | None, time_base: Fraction | None) -> float:
    assert stamp is not None and time_base is not None
    return float(stamp * time_base)


def others_during(truth: Document, utterance: Document) -> list[Document]:
    return [
        other
        for other in truth["utterances"]
        if other is not utterance
        and other["end_sample"] > utterance["start_sample"]
        and other["start_sample"] < utterance["end_sample"]
    ]


def test_the_room_is_small_and_between_90_and_120_seconds(sound: Sound) -> None:
    assert sum(path.stat().st_size for path in ROOM.iterdir()) <= 10_000_000
    lengths = {len(signal) for signal in sound.values()}
    assert len(lengths) == 1
    assert 90.0 <= lengths.pop() / RATE <= 120.0


def test_sound_and_picture_end_together(sound: Sound, truth: Document) -> None:
    with av.open(str(ROOM / "slides.mp4")) as file:
        frames = file.streams.video[0].frames
    assert frames / sample_slides.FRAMES_PER_SECOND == pytest.approx(len(sound["mic-1"]) / RATE, abs=1e-9)
    assert truth["slides"][-1]["end_s"] == pytest.approx(len(sound["mic-1"]) / RATE, abs=1e-5)


def test_every_utterance_is_louder_at_its_own_microphone(sound: Sound, truth: Document) -> None:
    for utterance in truth["utterances"]:
        span = slice(utterance["start_sample"], utterance["end_sample"])
        levels = {device: level_db(signal[span]) for device, signal in sound.items()}
        own = levels.pop(utterance["device"])
        # Whoever speaks at the same time is of course loud at their own microphone.
        for other in others_during(truth, utterance):
            levels.pop(other["device"])
        assert own > -30.0, utterance["id"]
        assert own - max(levels.values()) > 8.0, (utterance["id"], own, levels)


def test_other_microphones_hear_the_talker_12_to_18_db_weaker(sound: Sound, truth: Document) -> None:
    differences: dict[tuple[str, str], list[float]] = {}
    gains = {"mic-1": 0.0, "mic-2": -1.5, "mic-3": 1.0, "mic-4": -0.5}
    for utterance in truth["utterances"]:
        if others_during(truth, utterance):
            continue
        span = slice(utterance["start_sample"], utterance["end_sample"])
        own = utterance["device"]
        for other in sound:
            if other != own:
                difference = level_db(sound[own][span]) - level_db(sound[other][span])
                differences.setdefault((own, other), []).append(difference - gains[own] + gains[other])
    assert len(differences) == 12
    for pair, values in differences.items():
        assert 11.0 <= float(np.median(values)) <= 18.0, pair


def test_own_microphone_hears_first_by_the_geometry(sound: Sound, truth: Document, room: Document) -> None:
    utterance = next(u for u in truth["utterances"] if u["id"] == "u13")
    start, end = utterance["start_sample"], utterance["end_sample"]
    mouth = room["seats"]["B"]["mouth_m"]
    own = math.dist(mouth, room["seats"]["B"]["microphone_m"])
    for device, seat in (("mic-1", "A"), ("mic-3", "C"), ("mic-4", "D")):
        expected = (math.dist(mouth, room["seats"][seat]["microphone_m"]) - own) / SPEED_OF_SOUND_M_S * RATE
        size = 1 << (2 * (end - start)).bit_length()
        cross = np.fft.rfft(sound[device][start:end], size) * np.conj(
            np.fft.rfft(sound["mic-2"][start:end], size)
        )
        correlation = np.fft.irfft(cross / (np.abs(cross) + 1e-9), size)[:400]
        assert int(np.argmax(correlation)) == pytest.approx(expected, abs=1.5), device


def test_speech_starts_and_ends_on_the_stated_samples(sound: Sound, truth: Document) -> None:
    floor = 10.0 ** (truth["speech_floor_dbfs"] / 20.0)
    checked = 0
    for utterance in truth["utterances"]:
        if others_during(truth, utterance):
            continue
        signal = sound[utterance["device"]]
        margin = RATE // 20
        before = signal[utterance["start_sample"] - margin : utterance["start_sample"]]
        edge = signal[utterance["start_sample"] : utterance["start_sample"] + margin]
        # What precedes the first sample is noise and the fading room; what follows is speech.
        assert float(np.max(np.abs(before))) < 2.5 * floor, utterance["id"]
        assert float(np.max(np.abs(edge))) > floor, utterance["id"]
        checked += 1
    assert checked >= 20


def test_noise_is_low_and_differs_between_microphones(sound: Sound) -> None:
    silence = {device: signal[: RATE // 2] for device, signal in sound.items()}
    for device, signal in silence.items():
        assert level_db(signal) == pytest.approx(-65.0, abs=0.7), device
    for one, other in combinations(MICROPHONES, 2):
        assert abs(float(np.corrcoef(silence[one], silence[other])[0, 1])) < 0.05


def test_nothing_is_clipped(sound: Sound) -> None:
    assert max(float(np.max(np.abs(signal))) for signal in sound.values()) < 0.9


def test_utterances_are_in_order_and_words_lie_inside(truth: Document) -> None:
    assert [u["start_sample"] for u in truth["utterances"]] == sorted(
        u["start_sample"] for u in truth["utterances"]
    )
    for utterance in truth["utterances"]:
        assert utterance["start_s"] == utterance["start_sample"] / RATE
        assert utterance["end_s"] == utterance["end_sample"] / RATE
        assert " ".join(word["text"] for word in utterance["words"]) == utterance["text"]
        # Phones at the edges fall below the speech floor, hence the tolerance.
        assert utterance["words"][0]["start_s"] == pytest.approx(utterance["start_s"], abs=0.15)
        assert utterance["words"][-1]["end_s"] == pytest.approx(utterance["end_s"], abs=0.25)
        for word in utterance["words"]:
            assert word["start_s"] < word["end_s"]
        for word, following in pairwise(utterance["words"]):
            assert word["end_s"] <= following["start_s"] + 1e-3


def test_people_overlap_at_different_microphones(truth: Document) -> None:
    overlaps = [
        (one["id"], other["id"])
        for one, other in combinations(truth["utterances"], 2)
        if min(one["end_s"], other["end_s"]) - max(one["start_s"], other["start_s"]) > 0.3
    ]
    assert len(overlaps) >= 3
    devices = {u["id"]: u["device"] for u in truth["utterances"]}
    assert all(devices[one] != devices[other] for one, other in overlaps)
    assert sum(u["backchannel"] for u in truth["utterances"]) >= 2


def test_truth_holds_every_kind_of_item(truth: Document) -> None:
    ids = {u["id"] for u in truth["utterances"]}
    minimum = {"decisions": 3, "action_items": 4, "open_questions": 1}
    minimum |= {"answered_questions": 1, "withdrawn": 1, "traps": 5}
    for kind, least in minimum.items():
        assert len(truth[kind]) >= least, kind
        for item in truth[kind]:
            assert item["evidence"] and set(item["evidence"]) <= ids
    actions = truth["action_items"]
    names = {person["name"] for person in truth["attendees"]}
    assert {a["owner"] is None for a in actions} == {a["due"] is None for a in actions} == {True, False}
    assert {a["owner"] for a in actions if a["owner"]} <= names
    assert all(a["due"] is None or a["due"] >= truth["date"] for a in actions)
    spoken = {u["id"]: u["text"].lower() for u in truth["utterances"]}
    for action in actions:
        if action["due_text"]:
            assert any(action["due_text"].lower() in spoken[e] for e in action["evidence"])


def test_video_is_1080p30_without_b_frames_and_with_key_frames(truth: Document) -> None:
    with av.open(str(ROOM / "slides.mp4")) as file:
        stream = file.streams.video[0]
        assert (stream.width, stream.height) == (1920, 1080)
        assert stream.average_rate is not None and float(stream.average_rate) == 30.0
        assert stream.codec_context.name == "h264"
        packets = [p for p in file.demux(stream) if p.size]
    assert all(p.pts is not None and p.pts == p.dts for p in packets)
    keys = [seconds(p.pts, p.time_base) for p in packets if p.is_keyframe]
    last = seconds(packets[-1].pts, packets[-1].time_base)
    assert keys[0] == 0.0
    assert max(b - a for a, b in pairwise([*keys, last])) <= 2.0
    assert {round(s["start_s"], 3) for s in truth["slides"]} <= {round(k, 3) for k in keys}


def test_slides_change_where_the_truth_says(truth: Document) -> None:
    slides = truth["slides"]
    assert 3 <= sum(not s["build"] for s in slides) <= 5
    assert sum(s["build"] for s in slides) == 1
    assert all(a["end_s"] == b["start_s"] for a, b in pairwise(slides))
    changes = [round(s["start_s"] * 30) for s in slides[1:]]
    with av.open(str(ROOM / "slides.mp4")) as file:
        stream = file.streams.video[0]
        for change in changes:
            file.seek(round((change / 30 - 2.0) * av.time_base))
            small: dict[int, npt.NDArray[np.float64]] = {}
            for frame in file.decode(stream):
                index = round(seconds(frame.pts, frame.time_base) * 30)
                if index in (change - 10, change - 1, change, change + 10):
                    grey = frame.reformat(width=480, height=270, format="gray").to_ndarray()
                    small[index] = grey.astype(np.float64)
                if index >= change + 10:
                    break
            step = float(np.mean(np.abs(small[change] - small[change - 1])))
            still = float(np.mean(np.abs(small[change - 1] - small[change - 10])))
            after = float(np.mean(np.abs(small[change + 10] - small[change])))
            assert step > 0.3 and step > 5.0 * max(still, after), (change, step, still, after)


def test_slide_lines_have_boxes_on_the_slide(truth: Document) -> None:
    for slide in truth["slides"]:
        assert slide["text"] == "\n".join(line["text"] for line in slide["lines"])
        for line in slide["lines"]:
            left, top, right, bottom = line["box"]
            assert 0 <= left < right <= sample_slides.WIDTH
            assert 0 <= top < bottom <= sample_slides.HEIGHT


def test_room_file_is_one_the_readers_accept(room: Document, truth: Document) -> None:
    read = RoomFile.model_validate(room)
    assert read.begins_ns == room["start_ns"] == truth["start_ns"]
    assert {(s.device, s.channel, s.speaker) for s in read.speakers()} == {
        ("mic-1", 0, "Anna"), ("mic-2", 0, "Ben"), ("mic-3", 0, "Mark"), ("mic-4", 0, "David"),
    }  # fmt: skip
    assert set(room) <= set(RoomFile.model_fields)
    for device in read.devices.values():
        assert device.file is not None and (ROOM / device.file).is_file()


def test_built_room_belongs_to_the_script(script: Document, truth: Document, room: Document) -> None:
    built = {u["id"]: (u["speaker"], u["text"]) for u in truth["utterances"]}
    assert built == {line["id"]: (line["speaker"], line["text"]) for line in script["lines"]}
    for kind in sample_meeting.ITEM_LISTS:
        assert truth[kind] == script["truth"][kind]
    seats = sample_meeting.read_seats(script)
    assert json.loads(json.dumps(sample_meeting.room_document(script, seats))) == room


def test_an_unknown_voice_is_named_with_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOM / "script.yaml").read_text(encoding="utf-8").replace("voice: slt", "voice: nobody")
    changed = tmp_path / "script.yaml"
    changed.write_text(text, encoding="utf-8")
    assert sample_meeting.main(["--out", str(tmp_path / "out"), "--script", str(changed)]) == 2
    assert "no such voice: nobody" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_evidence_of_unknown_utterances_is_refused(script: Document) -> None:
    script = {**script, "truth": {**script["truth"], "decisions": [{"text": "x", "evidence": ["u99"]}]}}
    with pytest.raises(ValueError, match="u99"):
        sample_meeting.truth_document(script, [], [], [0], 1)


def test_slides_out_of_order_are_refused(script: Document) -> None:
    slides = [script["slides"][0], {**script["slides"][0]}]
    with pytest.raises(ValueError, match="follow each other"):
        sample_meeting.slide_frames({**script, "slides": slides}, [])
