"""How well speech is heard: word errors next to plain faster-whisper on whole files, invented words, names, speakers.

Recordings are one room of each script that is there, its microphones mixed into one track, and those of a manifest (one
JSON object a line: ``path``, ``text``, ``kind``) where one is given. Each file goes through the first flow's own steps as
``minuted run`` has them, and through faster-whisper with the same weights and as many threads: with greedy search as
ours (``beam_size=1``), and with the library's own five beams (``_default``). Everything else is as the library has it,
retries at higher temperatures included, seeded.

``wer_ratio`` is the ratio of pooled word error rates, ours to theirs, with a paired bootstrap over files.
``real_time_factor`` is seconds by the clock for a second of sound, ``processor_factor`` those of a processor. Both read a
file from disk; ours hears it as if it came live, one piece after the other, theirs has all of it at once.
``invented_words`` counts what the chain writes for sound without speech (`devices/noises.py`: made by formula, no
recordings). ``name_recall`` and ``speaker_accuracy`` are of rooms with a truth: seat microphones (``seats``), a
table device of two (``pair``), one mixed track (``mix``, where the right answer is null).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile

from contracts.messages import AgendaChanged, AttendeesChanged, MeetingStarted
from devices.inputs import Room, open_inputs
from devices.noises import KINDS, RATE_HZ, noise
from devices.streams import InputError
from flows.installation import ROOT
from models.speech_recogniser import ModelError, RecogniserSettings, SpeechRecogniser

from .report import print_report, progress
from .rooms import SAMPLE
from .speech_chain import Chain, Heard, Took, WholeFile
from .speech_scores import Attribution, Share, attribute, name_recall, names_of
from .word_errors import Errors, rate, ratio_of_rates, word_errors, words_of

ROOMS: Final = ROOT / "build" / "rooms"
_NOISE_S: Final = 32.0
_FORMS: Final = ("seats", "pair", "mix")


@dataclass(frozen=True, slots=True)
class Clip:
    """A recording and what is said in it."""

    path: Path
    text: str
    kind: str
    duration_s: float


def read_manifest(path: Path) -> list[Clip]:
    """Clips of a manifest that have a text. Paths count from its folder, or the folder above.

    Raises:
        OSError, ValueError: it cannot be read, or a file is missing.
    """
    clips = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line) if line.strip() else {}
        if not row.get("text"):
            continue
        places = [folder / row["path"] for folder in (path.parent, path.parent.parent)]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            raise ValueError(f"{path}, line {number}: {row['path']} is not there")
        clips.append(Clip(file, row["text"], row.get("kind", "speech"), soundfile.info(file).duration))
    if not clips:
        raise ValueError(f"{path}: no line has a text")
    return clips


def built_rooms() -> list[Path]:
    """The rooms that were built."""
    return [path.parent for path in sorted(ROOMS.glob("*/truth.json"))]


def found_rooms(of_each: int = 2) -> list[Path]:
    """The sample meeting, and of the rooms that were built the first ones of each form: more would take too long."""
    built = built_rooms()
    forms = {room: form_of(_json(room / "truth.json")) for room in built}
    return [SAMPLE, *(room for form in _FORMS for room in [r for r in built if forms[r] == form][:of_each])]


def one_of_each_script(rooms: Sequence[Path]) -> list[Path]:
    """The first room of each title: several forms of one script say the same words with the same voices, and a
    comparison that counts them all takes one meeting for many."""
    titles: dict[str, Path] = {}
    for room in rooms:
        titles.setdefault(str(_json(room / "truth.json").get("title", room.name)), room)
    return list(titles.values())


def form_of(truth: dict[str, Any]) -> str:
    """How a room is heard; the sample meeting, which does not say so, has a microphone for each seat."""
    form = str(truth.get("form", "seats"))
    return form if form in _FORMS else "seats"


def mixed_clips(rooms: Sequence[Path], scratch: Path) -> list[Clip]:
    """Each room as one track: the mean of its microphones."""
    clips = []
    for room in rooms:
        truth = _json(room / "truth.json")
        tracks = [
            soundfile.read(file, dtype="float32", always_2d=True)[0].mean(axis=1)
            for file in sorted(room.glob("*.flac"))
        ]
        mixed = np.mean(np.stack([track[: min(map(len, tracks))] for track in tracks]), axis=0)
        path = scratch / f"{room.name}.flac"
        soundfile.write(path, mixed, truth["sample_rate_hz"])
        said = sorted(truth["utterances"], key=lambda u: u["start_s"])
        text = " ".join(u["text"] for u in said)
        clips.append(Clip(path, text, form_of(truth), len(mixed) / truth["sample_rate_hz"]))
    return clips


def word_figures(chain: Chain, clips: Sequence[Clip], seed: int) -> dict[str, Any]:
    """Error rates and how long it takes, ours and faster-whisper's on the same files."""
    whole = WholeFile("", seed=seed)
    ours, greedy, default = _Words(), _Words(), _Words()
    for clip in clips:
        heard = chain.file(clip.path)
        ours.add(clip, heard.text, heard.took)
        greedy.add(clip, *whole.file(clip.path))
        wrong, theirs = ours.errors[-1], greedy.errors[-1]
        progress(f"speech: {clip.path.stem}: {wrong.wrong} / {theirs.wrong} errors of {wrong.said} words")
    # After all others, which draw from the same chance.
    for clip in clips:
        default.add(clip, *whole.file(clip.path, WholeFile.DEFAULT))
    kinds = [clip.kind for clip in clips]
    return {
        "wer": ours.rates(kinds),
        "wer_whole_file": greedy.rates(kinds),
        "wer_whole_file_default": default.rates(kinds),
        "wer_ratio": ratio_of_rates(ours.errors, greedy.errors, seed=seed).rounded(),
        "wer_ratio_default": ratio_of_rates(ours.errors, default.errors, seed=seed).rounded(),
        "files": len(clips),
        "words": sum(e.said for e in ours.errors),
        "real_time_factor": ours.wall(),
        "real_time_factor_whole_file": greedy.wall(),
        "real_time_factor_whole_file_default": default.wall(),
        "processor_factor": ours.processor(),
        "processor_factor_whole_file": greedy.processor(),
        "processor_factor_whole_file_default": default.processor(),
    }


@dataclass(slots=True)
class _Words:
    """What one recogniser made of the files, and how long it took."""

    errors: list[Errors] = field(default_factory=list)
    took: Took = field(default_factory=lambda: Took(0.0, 0.0))
    played_s: float = 0.0

    def add(self, clip: Clip, text: str, took: Took) -> None:
        self.errors.append(word_errors(clip.text, text))
        self.took += took
        self.played_s += clip.duration_s

    def rates(self, kinds: Sequence[str]) -> dict[str, Any]:
        """Error rates, pooled and of each kind of file."""
        by_kind = {
            kind: rate([e for e, k in zip(self.errors, kinds, strict=True) if k == kind])
            for kind in sorted(set(kinds))
        }
        return {
            "pooled": _rounded(rate(self.errors)),
            "by_kind": {k: _rounded(v) for k, v in by_kind.items()},
        }

    def wall(self) -> float:
        return round(self.took.wall_s / self.played_s, 4)

    def processor(self) -> float:
        return round(self.took.processor_s / self.played_s, 4)


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def noise_figures(chain: Chain, minutes: float, seed: int, scratch: Path) -> dict[str, Any]:
    """Words that are written for sound without speech."""
    rounds = max(1, round(minutes * 60.0 / _NOISE_S / len(KINDS) + 0.499))
    seconds = min(_NOISE_S, minutes * 60.0 / len(KINDS))
    invented: dict[str, list[str]] = {}
    for number in range(rounds):
        for kind in KINDS:
            path = scratch / f"noise-{number}-{kind.replace(' ', '-')}.wav"
            soundfile.write(path, noise(kind, seconds, seed * 1000 + number), RATE_HZ)
            text = chain.file(path).text
            path.unlink()
            if text:
                invented.setdefault(kind, []).append(text)
        progress(
            f"speech: sound without speech, round {number + 1} of {rounds}: {invented or 'nothing written'}"
        )
    return {
        "invented_words": sum(len(words_of(text)) for texts in invented.values() for text in texts),
        "invented": invented,
        "nonspeech_minutes": round(rounds * len(KINDS) * seconds / 60.0, 1),
    }


def room_figures(chain: Chain, rooms: Sequence[Path]) -> dict[str, Any]:
    """Names and speakers of rooms with a truth."""
    with_hotwords, without = Share(), Share()
    speakers = {form: Attribution() for form in _FORMS}
    for folder in rooms:
        truth, info = _json(folder / "truth.json"), _json(folder / "room.json")
        said = " ".join(u["text"] for u in truth["utterances"])
        names, room = names_of(info), open_inputs([folder])
        told, untold = chain.room(room), chain.room(_untold(room))
        with_hotwords.add(*name_recall(said, told.text, names))
        without.add(*name_recall(said, untold.text, names))
        form = form_of(truth)
        speakers[form].rooms.append(folder.name)
        _attribute(told, truth, speakers[form])
        progress(f"speech: {folder.name} ({form}): speakers {speakers[form].rounded()}")
    return {
        "name_recall": {"with_hotwords": with_hotwords.rounded(), "without": without.rounded()},
        "speaker_accuracy": {form: found.rounded() for form, found in speakers.items()},
    }


def _attribute(heard: Heard, truth: dict[str, Any], into: Attribution) -> None:
    attribute(heard.words, truth["utterances"], into)


def _untold(room: Room) -> Room:
    """The room as if nobody had said who comes and what is on the agenda."""
    control = tuple(
        message.model_copy(update={"attendees": (), "agenda": (), "key_topics": ()})
        if isinstance(message, MeetingStarted)
        else message
        for message in room.control
        if not isinstance(message, AttendeesChanged | AgendaChanged)
    )
    return replace(room, control=control)


def measure(
    clips: Sequence[Clip], rooms: Sequence[Path], *, noise_minutes: float, seed: int, scratch: Path
) -> dict[str, Any]:
    """All figures of the report.

    Raises:
        ModelError: no weights. devices.streams.InputError: a file cannot be read.
    """
    begun = time.monotonic()
    recogniser = SpeechRecogniser(RecogniserSettings(workers=2))
    recogniser.warm_up()
    chain = Chain(recogniser)
    try:
        figures = word_figures(chain, clips, seed)
        figures |= noise_figures(chain, noise_minutes, seed, scratch)
        figures |= room_figures(chain, rooms)
    finally:
        chain.close()
    return figures | {"whole_file": WholeFile.OPTIONS, "seconds": round(time.monotonic() - begun, 1)}


def _json(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 done, 2 wrong input."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speech", description=__doc__)
    parser.add_argument("--manifest", type=Path, help="recordings with texts, one JSON object a line")
    parser.add_argument(
        "--rooms",
        type=Path,
        nargs="*",
        help="room folders (default: the sample, and of build/rooms one of each script for words and the first two of "
        "each form for names and speakers)",
    )
    parser.add_argument("--noise-minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rooms = found_rooms() if options.rooms is None else options.rooms
    with tempfile.TemporaryDirectory(prefix="minuted-speech-") as name:
        scratch = Path(name)
        try:
            clips = [] if options.manifest is None else read_manifest(options.manifest)
            spoken = [SAMPLE, *built_rooms()] if options.rooms is None else rooms
            clips += mixed_clips(one_of_each_script(spoken), scratch)
            if not clips:
                raise ValueError("neither recordings nor rooms to hear")
            figures = measure(
                clips, rooms, noise_minutes=options.noise_minutes, seed=options.seed, scratch=scratch
            )
        except (OSError, ValueError, InputError, ModelError) as error:
            print(f"benchmarks.speech: {error}", file=sys.stderr)
            return 2
    print_report("speech", options.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
