"""What the benchmarks play: the sample meeting, other rooms, and meetings of invented talk."""

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contracts.packet import Modality
from contracts.topics import DEFAULT_SHARDS, partition_of
from devices.inputs import open_inputs
from devices.streams import TextPiece
from devices.transcripts import TranscriptSource
from flows.installation import ROOT
from flows.latency import TrueUtterance, truth_of

SAMPLE: Final = ROOT / "devices" / "sample"
ATTENDEES: Final = ("Anna", "Ben", "Carla", "David")
_TALK: Final = (
    "The {thing} looks {quality} to me after the last {event}.",
    "I had a look at the {thing} on {day}, and it was {quality}.",
    "There is not much to say about the {thing} at the moment.",
    "What I liked about the {event} was how {quality} the {thing} felt.",
    "Well, the {thing} has been {quality} for a while now.",
    "People keep asking about the {thing} when they call.",
    "Right.",
    "Mm-hm, that makes sense.",
    "The {event} went on for too long, as always.",
    "Maybe the {thing} is more {quality} than it looks.",
    "You can see it on the slide, the {thing} went from {count} to {other}.",
    "Sorry, I did not hear that.",
)
_ITEMS: Final = (
    "I will send the {thing} to {name} by {day}.",
    "{name}, please check the {thing} before the next {event}.",
    "Let's go with the {quality} {thing} then, we agreed.",
    "We decided to move the {event} to {day}.",
    "Who is going to look after the {thing}?",
)
_WORDS: Final = {
    "thing": ("price list", "heating plan", "test report", "garden gate", "spare key", "bus timetable", "reading list"),
    "quality": ("solid", "a bit slow", "cheaper", "harder to read", "ready", "half finished"),
    "event": ("workshop", "review", "summer fair", "site visit", "training"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "name": ATTENDEES,
    "count": ("twelve", "thirty", "forty-five"),
    "other": ("ten", "sixty", "ninety"),
}  # fmt: skip
_PLACES: Final = ("house", "room", "branch", "route", "case", "order")
_ITEM_SHARE: Final = 0.12


@dataclass(frozen=True, slots=True)
class Played:
    """Input of ``minuted publish`` and what is said in it."""

    path: Path
    truth: tuple[TrueUtterance, ...]
    duration_s: float


def invented_talk(
    seed: int, utterances: int, *, gap_s: float = 0.4, items: float = _ITEM_SHARE
) -> list[TrueUtterance]:
    """A meeting made up from sentence patterns: mostly chatter, a share of decisions, actions and questions."""
    chance = random.Random(seed)
    said, now_s, speaker = [], 1.0, ATTENDEES[0]
    for number in range(utterances):
        pattern = chance.choice(_ITEMS if chance.random() < items else _TALK)
        words = {name: chance.choice(choice) for name, choice in _WORDS.items()}
        # Numbers make nearly every sentence one of its own: people do not repeat themselves word for word.
        words["thing"] += f" of {chance.choice(_PLACES)} {chance.randrange(1, 2_000)}"
        text = pattern.format(**words)
        if chance.random() < 0.7:
            speaker = chance.choice([name for name in ATTENDEES if name != speaker])
        end_s = round(now_s + 0.4 + 0.3 * len(text.split()), 3)
        said.append(TrueUtterance(f"u{number:05d}", speaker, now_s, end_s, text))
        now_s = round(end_s + gap_s * chance.uniform(0.5, 1.5), 3)
    return said


def transcript_room(folder: Path, truth: Sequence[TrueUtterance], info: dict[str, Any]) -> Played:
    """Write a room whose only device is a transcript of these utterances."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"start_s": u.start_s, "end_s": u.end_s, "speaker": u.speaker, "text": u.text})
        for u in truth
    ]
    (folder / "words.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "room.json").write_text(
        json.dumps({"title": "Benchmark", "attendees": [{"name": name} for name in ATTENDEES]} | info),
        encoding="utf-8",
    )
    return Played(folder, tuple(truth), max(u.end_s for u in truth))


def sound_room(path: Path) -> Played:
    """A room folder with a ``truth.json`` beside its devices.

    Raises:
        OSError: no ``truth.json``. ValueError: it cannot be read. devices.streams.InputError: no room.
    """
    truth = truth_of(json.loads((path / "truth.json").read_text(encoding="utf-8")))
    duration_ns = open_inputs([path]).duration_ns or 0
    return Played(path, tuple(truth), max(duration_ns / 1e9, max(u.end_s for u in truth)))


def heard_room(path: Path, scratch: Path) -> Played:
    """The sound of a room alone, without slides and cameras, in a folder of its own.

    Raises:
        OSError, ValueError, devices.streams.InputError: as `sound_room`.
    """
    info = json.loads((path / "room.json").read_text(encoding="utf-8"))
    devices = [
        stream.device_id for stream in open_inputs([path]).streams if stream.modality is Modality.AUDIO
    ]
    scratch.mkdir(parents=True)
    for file in path.iterdir():
        if file.stem in devices or file.name == "truth.json":
            shutil.copy(file, scratch / file.name)
    info["devices"] = {name: told for name, told in info.get("devices", {}).items() if name in devices}
    (scratch / "room.json").write_text(json.dumps(info), encoding="utf-8")
    return sound_room(scratch)


def spoken_room(path: Path, scratch: Path) -> Played:
    """The words of a room (its ``truth.json``, or any transcript) as a room of one transcript."""
    if (path / "truth.json").is_file():
        raw = json.loads((path / "truth.json").read_text(encoding="utf-8"))
        info = {key: raw[key] for key in ("title", "date", "attendees") if key in raw}
        return transcript_room(scratch, truth_of(raw), info)
    streams = [s for s in open_inputs([path]).streams if isinstance(s.source, TranscriptSource)]
    pieces = [piece for s in streams if isinstance(s.source, TranscriptSource) for piece in s.source.lines]
    if not pieces:
        raise ValueError(f"{path}: has neither truth.json nor a transcript")
    return transcript_room(scratch, [_true(number, piece) for number, piece in enumerate(pieces)], {})


def _true(number: int, piece: TextPiece) -> TrueUtterance:
    begin_s = piece.offset_ns / 1e9
    return TrueUtterance(
        f"u{number:05d}", piece.speaker, begin_s, begin_s + piece.duration_ns / 1e9, piece.text
    )


def meeting_ids(prefix: str, count: int, shards: int = DEFAULT_SHARDS) -> tuple[str, ...]:
    """Ids of meetings that lie on shards of their own as far as there are enough shards."""
    found: list[str] = []
    used: set[int] = set()
    number = 0
    while len(found) < count:
        number += 1
        name = f"{prefix}-{number}"
        shard = partition_of(name, shards)
        if shard in used and len(used) < shards:
            continue
        used.add(shard)
        found.append(name)
    return tuple(found)
