"""Writes a rendered script as a room folder: sound, camera, slides, room.json and truth.json."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from devices.acoustics import Signal
from devices.rooms import camera, screen
from devices.rooms.film import write_film
from devices.rooms.render import Rendered, render
from devices.rooms.script import Form, read_script
from devices.rooms.timing import FRAMES_PER_SECOND
from devices.rooms.truth import flash_frame, room_document, truth_document
from devices.rooms.voices import read_clips

_SLIDE_QUALITY = 24
_CAMERA_QUALITY = 27


def build(script_path: Path, clips: Path, folders: Mapping[Form, Path]) -> None:
    """Build one script in one or more forms, each into its own folder; the pictures are made once.

    A folder appears whole or not at all; one that is there is replaced.

    Raises:
        ScriptError: the script or its clips cannot be used.
    """
    script = read_script(script_path)
    dry = read_clips(script, script_path.parent, clips)
    parent = next(iter(folders.values())).parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".building-") as scratch:
        films = Path(scratch) / "films"
        films.mkdir()
        shown: tuple[screen.Shown, ...] | None = None
        for form, folder in folders.items():
            heard = render(script, dry, form)
            if shown is None:
                shown = write_films(heard, films)
            out = Path(scratch) / form
            shutil.copytree(films, out)
            for device, signal in heard.devices.items():
                write_sound(out / f"{device}.flac", signal, heard.sample_rate_hz)
            write_json(out / "room.json", room_document(heard, slides=bool(shown)))
            write_json(out / "truth.json", truth_document(heard, shown))
            shutil.rmtree(folder, ignore_errors=True)
            out.rename(folder)


def write_films(heard: Rendered, out: Path) -> tuple[screen.Shown, ...]:
    """Camera and slides; what the screen shows when."""
    frames = heard.samples * FRAMES_PER_SECOND // heard.sample_rate_hz
    script = heard.script
    flash = (
        range(flash_frame(script), flash_frame(script) + screen.FLASH_FRAMES)
        if script.flash
        else range(-1, -1)
    )
    shown = screen.plan(script, heard.placed, frames)
    if shown:
        moving = screen.pictures(shown, flash.start if script.flash else None)
        write_film(out / "slides.mp4", moving, screen.WIDTH, screen.HEIGHT, quality=_SLIDE_QUALITY)
    people = camera.figures(script, heard.placed, frames)
    filmed = camera.pictures(people, frames, script.seed, flash)
    write_film(out / "camera.mp4", filmed, camera.WIDTH, camera.HEIGHT, quality=_CAMERA_QUALITY)
    return shown


def write_sound(path: Path, signal: Signal, sample_rate_hz: int) -> None:
    """Samples in -1..1, shape (channels, samples), as 16-bit FLAC."""
    pcm = np.clip(np.round(signal * 32768.0), -32768, 32767).astype(np.int16)
    soundfile.write(path, pcm.T, sample_rate_hz, format="FLAC", subtype="PCM_16", compression_level=0.6)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Readable JSON with a final newline."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
