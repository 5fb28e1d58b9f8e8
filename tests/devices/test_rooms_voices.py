"""Dry clips of rooms: kept, recorded, and what speaking them needs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from devices.rooms import speak
from devices.rooms.script import Script, ScriptError, Voice
from devices.rooms.voices import SAMPLE_RATE_HZ, read_clips, write_clips
from devices.sample_voices import Word
from tests.devices.rooms_in_short import short_clips, short_data, short_script


def test_kept_clips_come_back_where_they_were(tmp_path: Path) -> None:
    script = short_script()
    spoken = short_clips(script)
    write_clips(script, spoken, tmp_path)
    for name, clip in read_clips(script, tmp_path, tmp_path).items():
        assert len(clip.samples) == len(spoken[name].samples)
        assert clip.words[0].end_s == pytest.approx(spoken[name].words[0].end_s, abs=1e-4)
        # The codec changes samples a little and times not at all.
        cross = np.correlate(clip.samples, spoken[name].samples, "full")
        assert int(np.argmax(cross)) == len(clip.samples) - 1
        assert float(np.corrcoef(clip.samples, spoken[name].samples)[0, 1]) > 0.9


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("{", "the clips of short cannot be read; make them with"),
        ('{"u1": 3}', "the clips of short cannot be read; make them with"),
        ("{}", "line u1 has no clip; make them with"),
        (None, "ends before the clip of line u3; make them with"),
    ],
)
def test_a_broken_index_is_one_line(tmp_path: Path, index: str | None, expected: str) -> None:
    script = short_script()
    write_clips(script, short_clips(script), tmp_path)
    path = tmp_path / "short.json"
    if index is None:
        entries = json.loads(path.read_text("utf-8"))
        entries["u3"]["samples"] += 10_000
        index = json.dumps(entries)
    path.write_text(index, encoding="utf-8")
    with pytest.raises(ScriptError, match=expected):
        read_clips(script, tmp_path, tmp_path)


def recorded() -> dict[str, Any]:
    data = short_data()
    data["attendees"][0] |= {"voice": None}
    data["lines"] = [{"id": "u1", "speaker": "Anna", "text": "Hello there.", "recording": "anna.wav"}]
    return data | {"slides": [], "gestures": [], "truth": {}}


def test_a_recording_takes_the_place_of_a_voice(tmp_path: Path) -> None:
    script = Script.model_validate(recorded())
    time = np.arange(22_050) / 44_100
    both = np.stack([0.4 * np.sin(2 * np.pi * 440 * time), np.zeros(22_050)], axis=1)
    soundfile.write(tmp_path / "anna.wav", both, 44_100)
    clip = read_clips(script, tmp_path, tmp_path)["u1"]
    assert clip.words == () and len(clip.samples) == SAMPLE_RATE_HZ // 2
    assert float(np.max(np.abs(clip.samples[800:-800]))) == pytest.approx(0.2, rel=0.02)
    (tmp_path / "anna.json").write_text('[["Hello", 0.0, 0.2], ["there.", 0.2, 0.5]]')
    assert read_clips(script, tmp_path, tmp_path)["u1"].words[1] == Word("there.", 0.2, 0.5)
    (tmp_path / "anna.json").write_text('[["Hello", "later"]]')
    with pytest.raises(ScriptError, match=r"line u1: the recording .* cannot be read"):
        read_clips(script, tmp_path, tmp_path)


def test_what_speaking_needs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(name: str) -> None:
        return None

    monkeypatch.setattr("shutil.which", without)
    monkeypatch.setattr("importlib.util.find_spec", without)
    lines = speak.missing(short_script())
    assert lines[0] == "flite: apt-get install flite"
    assert lines[-1] == "parselmouth: pip install praat-parselmouth"
    path = tmp_path / "short.yaml"
    path.write_text(json.dumps(short_data()), encoding="utf-8")
    assert speak.main([str(path), "--clips", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == lines


def test_a_voice_that_is_left_as_it_is_needs_no_tool() -> None:
    sound = short_clips(short_script())["u1"].samples
    assert speak.changed(sound, Voice(name="slt", pace=1.2)) is sound


def test_what_leans_to_one_side_is_put_straight() -> None:
    time = np.arange(SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
    tone = 0.2 * np.sin(2 * np.pi * 200 * time)
    kept = speak.audible(tone + 0.1)
    middle = slice(2_000, -2_000)
    assert kept[middle] == pytest.approx(tone[middle], abs=0.005)
