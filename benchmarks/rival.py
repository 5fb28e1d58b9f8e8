"""WhisperLiveKit on the same weights and sound, played in real time: when is the last word of an utterance shown?

It is not a dependency: it needs torch and an environment of its own. ``--rival-python`` names the Python of an
environment with ``whisperlivekit`` in it. Its server runs as its documentation says, with its LocalAgreement
policy on faster-whisper, which takes the very weights that the product runs on.
"""

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import soundfile
import soxr  # type: ignore[import-untyped]
from rapidfuzz.distance import Levenshtein

from flows.brokers import free_port, guarded_command, listens
from flows.latency import UNMATCHED_MS, TrueUtterance, normalised, percentiles

from .report import progress

_CLIENT: Final = Path(__file__).with_name("rival_client.py")
_RATE_HZ: Final = 16_000
_START_S: Final = 120.0
_PATIENCE_S: Final = 60.0


class RivalError(Exception):
    """The rival could not be run; the message says why."""


@dataclass(frozen=True, slots=True)
class Shown:
    """All text on display from ``seen_s`` on, seconds since the first sample."""

    seen_s: float
    text: str


def last_word_ms(shown: Sequence[Shown], truth: Sequence[TrueUtterance]) -> list[float]:
    """For each true utterance: from its last sample until its last understood word stands as it stays.

    The text shown last is laid beside the words that were said; an utterance none of whose words is in it
    counts ``UNMATCHED_MS``.
    """
    final = normalised(shown[-1].text).split() if shown else []
    said: list[str] = []
    ends: list[int] = []
    in_order = sorted(truth, key=lambda u: u.end_s)
    for utterance in in_order:
        said += normalised(utterance.text).split()
        ends.append(len(said))
    place = _places(said, final)
    stands = _stands_since(shown, final)
    taken, begin = [], 0
    for utterance, end in zip(in_order, ends, strict=True):
        found = [place[i] for i in range(begin, end) if i in place]
        begin = end
        seen_s = stands[max(found)] if found else None
        taken.append(UNMATCHED_MS if seen_s is None else 1e3 * (seen_s - utterance.end_s))
    return taken


def _places(said: Sequence[str], final: Sequence[str]) -> dict[int, int]:
    """Position of a word said in the text shown, for the words that were understood."""
    place: dict[int, int] = {}
    for block in Levenshtein.opcodes(said, final):
        if block.tag == "equal":
            place |= {
                block.src_start + k: block.dest_start + k for k in range(block.src_end - block.src_start)
            }
    return place


def _stands_since(shown: Sequence[Shown], final: Sequence[str]) -> list[float]:
    """When each word of the last text was first shown after the same words as in the end, and stayed."""
    since = [0.0] * len(final)
    standing = 0
    for state in shown:
        words = normalised(state.text).split()
        same = 0
        while same < min(len(words), len(final)) and words[same] == final[same]:
            same += 1
        for index in range(standing, same):
            since[index] = state.seen_s
        standing = same
    return since


class Rival:
    """A WhisperLiveKit server, from ``python`` with the weights in ``model``."""

    def __init__(self, python: Path, model: Path, log: Path) -> None:
        self._python, self._port = python, free_port()
        command = [
            str(python), "-m", "whisperlivekit.basic_server", "--host", "127.0.0.1", "--port", str(self._port),
            "--backend", "faster-whisper", "--backend-policy", "localagreement", "--model-path", str(model),
            "--lan", "en", "--pcm-input", "-l", "ERROR",
        ]  # fmt: skip
        self._log = log
        self._process = subprocess.Popen(
            guarded_command(command), stdin=subprocess.DEVNULL, stdout=log.open("wb"), stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while not listens(self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RivalError(f"WhisperLiveKit did not start; {log} says why")
            time.sleep(0.2)

    def play(self, sound: Path) -> list[Shown]:
        """What it showed of one file, played in real time.

        Raises:
            RivalError: the client failed, or did not end.
        """
        wav = self._log.with_suffix(".wav")
        samples, rate_hz = soundfile.read(sound, dtype="float32", always_2d=True)
        soundfile.write(
            wav, soxr.resample(samples.mean(axis=1), rate_hz, _RATE_HZ), _RATE_HZ, subtype="PCM_16"
        )
        try:
            done = subprocess.run(
                [str(self._python), str(_CLIENT), str(wav), f"ws://127.0.0.1:{self._port}/asr"],
                capture_output=True, text=True, check=False, timeout=len(samples) / rate_hz + _PATIENCE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise RivalError(f"{sound.name}: no end within {error.timeout:.0f} s") from error
        if done.returncode and not done.stdout:
            said = done.stderr.strip().splitlines()
            raise RivalError(f"{sound.name}: {said[-1] if said else 'the client failed'}")
        return [Shown(**json.loads(line)) for line in done.stdout.splitlines()]

    def close(self) -> None:
        """Stop the server."""
        self._process.kill()
        self._process.wait()


def measure_rival(
    python: Path, model: Path, sounds: Sequence[tuple[Path, Sequence[TrueUtterance]]], scratch: Path
) -> dict[str, Any]:
    """Figures of the rival on sound files with what is said in them.

    Raises:
        RivalError: it could not be started. A sound that it failed on counts as lost.
    """
    rival = Rival(python, model, scratch / "rival.log")
    taken: list[float] = []
    failed: dict[str, str] = {}
    try:
        for number, (sound, truth) in enumerate(sounds, 1):
            progress(f"latency: WhisperLiveKit, {number} of {len(sounds)}: {sound.name}")
            try:
                taken += last_word_ms(rival.play(sound), truth)
            except RivalError as error:
                progress(f"latency: {error}")
                failed[sound.name] = str(error)
                taken += last_word_ms([], truth)
    finally:
        rival.close()
    seen = [ms for ms in taken if ms != UNMATCHED_MS]
    return {
        "last_word_ms": percentiles(seen), "utterances": len(taken), "lost": len(taken) - len(seen), "failed": failed,
    }  # fmt: skip
