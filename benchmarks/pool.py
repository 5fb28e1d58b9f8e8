"""What the latency of many rooms and of real speech is measured on.

Real recordings come without sample-exact ends: transcribers mark a turn loosely. The last spoken sample is
therefore found in the sound itself, apart from everything that the product does: the last 10 ms in which the
level is well above the recording's own noise. Where a manifest names turns, an utterance is a turn with its end
moved back to that point; where it does not, an utterance is what lies between pauses.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import soundfile

from flows.latency import TrueUtterance

from .rooms import Played, sound_room

REAL_KINDS: Final = (
    "real_meeting",
    "real_conversation",
    "real_multi_speaker",
    "spontaneous_speech",
    "public_speech",
)
_FRAME_S: Final = 0.01
_ABOVE_NOISE_DB: Final = 12.0
_BELOW_LOUD_DB: Final = 35.0
_PAUSE_S: Final = 0.5
_SHORTEST_S: Final = 0.15


@dataclass(frozen=True, slots=True)
class Pooled:
    """One thing to play and what kind it is: ``seats``, ``pair``, ``mix`` or ``real``."""

    kind: str
    played: Played
    sound: Path | None
    """The single sound file, where there is one."""


def speech_frames(sound: npt.NDArray[np.float32], rate_hz: int) -> npt.NDArray[np.bool_]:
    """Which 10 ms frames of mono sound hold speech, by level alone; shape (frames,)."""
    size = round(_FRAME_S * rate_hz)
    frames = sound[: len(sound) // size * size].reshape(-1, size)
    level_db = 10 * np.log10(np.mean(frames.astype(np.float64) ** 2, axis=1) + 1e-12)
    quiet, loud = np.percentile(level_db, 10), np.percentile(level_db, 95)
    return np.asarray(level_db > max(quiet + _ABOVE_NOISE_DB, loud - _BELOW_LOUD_DB))


def stretches(speech: npt.NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Start and end in seconds of what lies between pauses."""
    found: list[tuple[float, float]] = []
    for frame in np.flatnonzero(speech):
        start_s = float(frame) * _FRAME_S
        if found and start_s - found[-1][1] < _PAUSE_S:
            found[-1] = (found[-1][0], start_s + _FRAME_S)
        else:
            found.append((start_s, start_s + _FRAME_S))
    return [(start, end) for start, end in found if end - start >= _SHORTEST_S]


def real_truth(entry: dict[str, Any], speech: npt.NDArray[np.bool_]) -> list[TrueUtterance]:
    """Utterances of one line of an audio manifest, ends as they are in the sound."""
    turns = [s for s in entry.get("segments") or () if s.get("text")]
    if not turns:
        return [
            TrueUtterance(f"r{number}", None, start, end, "")
            for number, (start, end) in enumerate(stretches(speech))
        ]
    found = []
    for number, turn in enumerate(turns):
        first, last = (round(turn[key] / _FRAME_S) for key in ("start", "end"))
        active = np.flatnonzero(speech[first:last])
        if len(active):
            end_s = (first + int(active[-1]) + 1) * _FRAME_S
            found.append(TrueUtterance(f"r{number}", turn["speaker"], turn["start"], end_s, turn["text"]))
    return found


def real_speech(manifest: Path, scratch: Path) -> list[Pooled]:
    """Rooms of one microphone each for the real conversations of a manifest.

    Raises:
        OSError, ValueError, KeyError: the manifest or a file in it cannot be read.
    """
    pooled = []
    for line in manifest.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] not in REAL_KINDS:
            continue
        path = manifest_file(manifest, entry["path"])
        sound, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
        truth = real_truth(entry, speech_frames(sound.mean(axis=1), rate_hz))
        if not truth:
            continue
        folder = scratch / entry["id"]
        folder.mkdir(parents=True)
        shutil.copy(path, folder / f"room{path.suffix}")
        (folder / "room.json").write_text(json.dumps({"title": entry["id"]}), encoding="utf-8")
        length_s = len(sound) / rate_hz
        pooled.append(Pooled("real", Played(folder, tuple(truth), length_s), folder / f"room{path.suffix}"))
    return pooled


def manifest_file(manifest: Path, name: str) -> Path:
    """A file that a manifest names, relative to its folder or to the one above it."""
    beside = manifest.parent / name
    return beside if beside.exists() else manifest.parent.parent / name


def simulated_rooms(folders: Sequence[Path]) -> list[Pooled]:
    """Rooms of the simulator; their form stands in ``truth.json``.

    Raises:
        OSError, ValueError, devices.streams.InputError: one of them cannot be read.
    """
    pooled = []
    for folder in folders:
        form = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["form"]
        sounds = [p for p in folder.iterdir() if p.suffix in (".wav", ".flac")]
        pooled.append(Pooled(form, sound_room(folder), sounds[0] if len(sounds) == 1 else None))
    return pooled
