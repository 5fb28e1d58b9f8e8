"""The benchmark of speech: its scores on made-up words, and its chain on a room made here."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from benchmarks.speech import Clip, one_of_each_script, read_manifest
from benchmarks.speech_chain import Chain, HeardWord
from benchmarks.speech_scores import Attribution, attribute, name_recall, names_of
from benchmarks.word_errors import Errors, rate, ratio_of_rates, word_errors, words_of
from devices.inputs import open_inputs
from models.speech_recogniser import RecogniserSettings, SpeechRecogniser

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I'll take 2, okay?", "i will take two ok"),
        ("Um, it's 1813.", "It is eighteen thirteen"),
        ("Mm-hm. Uh-huh. Yes.", "yes"),
        ("[laughs] We won't (really) go", "we will not go"),
        ("4,000 euros", "four thousand euros"),
        ("Mr. Dashwood's deskt- desktop", "mister dashwood’s desktop"),
        ("the 26th", "the twenty six th"),
        ("'Kay, 'cause he'd can't", "okay because he would can not"),
    ],
)
def test_spelling_is_no_error(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


def test_errors_are_counted_in_words() -> None:
    assert word_errors("We meet on Monday.", "we met Monday morning") == Errors(3, 4)
    assert rate([Errors(1, 4), Errors(0, 4)]) == 0.125
    assert rate([Errors(3, 0)]) is None


def test_the_ratio_is_paired_and_repeatable() -> None:
    chance = np.random.default_rng(0)
    theirs = [Errors(int(wrong), 50) for wrong in chance.integers(2, 20, 40)]
    same = ratio_of_rates(theirs, theirs, seed=1)
    assert (same.low, same.mid, same.high) == (1.0, 1.0, 1.0)
    double = [Errors(2 * e.wrong, e.said) for e in theirs]
    ratio = ratio_of_rates(double, theirs, seed=1)
    assert 1.95 < ratio.low <= ratio.mid <= ratio.high <= 2.0
    assert ratio == ratio_of_rates(double, theirs, seed=1)


def test_a_script_counts_once_in_however_many_forms_it_was_built(tmp_path: Path) -> None:
    for name, truth in (
        ("a", {"title": "Ward"}),
        ("a-mix", {"title": "Ward"}),
        ("b", {"title": "Trip"}),
        ("c", {}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "truth.json").write_text(json.dumps(truth))
    assert [room.name for room in one_of_each_script(sorted(tmp_path.iterdir()))] == ["a", "b", "c"]


def test_names_and_speakers() -> None:
    info = {
        "attendees": [{"name": "Anna"}, {"name": "Mrs Quist"}],
        "agenda": ["Old boiler"],
        "key_topics": ["Brennhaus"],
    }
    assert names_of(info) == {"anna", "quist", "brennhaus"}
    assert name_recall("Anna, call Anna and Quist.", "Hannah, call Anna and quest", {"anna", "quist"}) == (
        1,
        3,
    )
    words = [{"text": "Good", "start_s": 1.0, "end_s": 1.2}, {"text": "luck", "start_s": 1.2, "end_s": 1.5}]
    again = [{"text": "Good", "start_s": 9.0, "end_s": 9.2}]
    truth: list[dict[str, Any]] = [{"speaker": "Anna", "words": words}, {"speaker": "Ben", "words": again}]
    heard = [
        HeardWord(1.1, 1.3, "Good", "Anna"),
        HeardWord(1.2, 1.5, "luck.", None),
        HeardWord(9.1, 9.2, "good", "Anna"),
        HeardWord(5.0, 5.2, "Good", "Ben"),
    ]
    found = Attribution()
    attribute(heard, truth, found)
    assert (found.right, found.wrong, found.nobody) == (1, 1, 1)


def test_a_manifest_names_its_files_from_its_folder_or_the_one_above(tmp_path: Path) -> None:
    (tmp_path / "audio").mkdir()
    soundfile.write(tmp_path / "audio" / "a.wav", np.zeros(RATE_HZ), RATE_HZ)
    lines = [
        {"path": "audio/a.wav", "text": "Hello.", "kind": "k"},
        {"path": "a.wav", "text": "Yes."},
        {"path": "x"},
    ]
    manifest = tmp_path / "audio" / "manifest.jsonl"
    manifest.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    file = tmp_path / "audio" / "a.wav"
    assert read_manifest(manifest) == [Clip(file, "Hello.", "k", 1.0), Clip(file, "Yes.", "speech", 1.0)]
    manifest.write_text(json.dumps({"path": "gone.wav", "text": "No."}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 1: gone\.wav"):
        read_manifest(manifest)


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    return loaded


def spoken(truth: dict[str, Any], number: str) -> npt.NDArray[np.float64]:
    one = next(u for u in truth["utterances"] if u["id"] == number)
    sound: npt.NDArray[np.float64] = soundfile.read(
        SAMPLE / f"{one['device']}.flac", start=one["start_sample"], stop=one["end_sample"]
    )[0]
    return sound


def test_rooms_say_who_speaks_and_which_microphone_is_dead(tmp_path: Path, truth: dict[str, Any]) -> None:
    """From the files of a room to the log: a table device with known seats, and a seat that gives no sound."""
    microphones = [[3.0, 2.3, 0.8], [3.3, 2.3, 0.8]]
    seats = {"A": {"mouth_m": [2.0, 2.2, 1.2]}, "B": {"mouth_m": [4.3, 2.2, 1.2]}}
    late = 13  # samples: from seat A the second microphone hears later, from seat B the first
    parts = []
    for number, first in (("u08", 0), ("u13", 1)):
        sound = spoken(truth, number)
        both = np.zeros((len(sound) + late + RATE_HZ, 2))
        both[: len(sound), first], both[late : late + len(sound), 1 - first] = sound, sound
        parts.append(both)
    quiet = np.random.default_rng(0).normal(0.0, 2e-4, (sum(map(len, parts)), 2))
    table, seated = tmp_path / "table", tmp_path / "seats"
    table.mkdir()
    soundfile.write(table / "table.flac", np.concatenate(parts) + quiet, RATE_HZ)
    people = [{"name": "Anna", "seat": "A"}, {"name": "Ben", "seat": "B"}]
    info: dict[str, Any] = {"meeting_id": "m", "attendees": people, "seats": seats}
    info["devices"] = {"table": {"file": "table.flac", "modality": "audio", "microphones_m": microphones}}
    (table / "room.json").write_text(json.dumps(info), encoding="utf-8")
    seated.mkdir()
    voice = np.concatenate([spoken(truth, number) for number in ("u24", "u30", "u36")])
    soundfile.write(seated / "mic-1.flac", voice, RATE_HZ)
    soundfile.write(seated / "mic-2.flac", np.zeros(len(voice)), RATE_HZ)
    info["devices"] = {f"mic-{n}": {"modality": "audio", "seat": s} for n, s in ((1, "A"), (2, "B"))}
    (seated / "room.json").write_text(json.dumps(info), encoding="utf-8")
    chain = Chain(SpeechRecogniser(RecogniserSettings()))
    try:
        found = chain.room(open_inputs([table]))
        pause_s = len(parts[0]) / RATE_HZ - 0.5
        assert {w.speaker for w in found.words if w.start_s < pause_s} == {"Anna"}
        assert {w.speaker for w in found.words if w.start_s > pause_s} == {"Ben"}
        notices = chain.room(open_inputs([seated])).notices
    finally:
        chain.close()
    assert [n for n in notices if "mic-2 (Ben) gave no sound while others spoke" in n]
