"""How well slides are read from video: words, readings per slide, processor time while nothing changes.

Each video goes through the product as ``minuted publish`` and ``flows.perceive`` take it. What stood on the
log when a slide went is compared with the slide's true text, and so is one reading of the clean slide.
"""

import argparse
import collections
import json
import os
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import av
import cv2
import numpy as np
import numpy.typing as npt

from contracts.packet import Modality
from contracts.timeline import TIMELINE_RECORD, SlideRecord
from devices.inputs import Room, open_inputs
from devices.media import PictureInfo, picture_streams
from devices.streams import MediaPiece, Note, Stream
from devices.video import Encoder, Picture, VideoSettings
from flows.files import log_values, perceive_room
from flows.installation import ROOT
from models.slide_reader import SlideReader, SlideReaderSettings
from models.speech_recogniser import RecogniserSettings, SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators.perceive.pictures import ReadSlide
from operators.perceive.step import MediaWorkers, Owner
from operators.perceive.types import Ask, PerceiveSettings

from .report import print_report, progress
from .resources import usage_of
from .rooms import SAMPLE

Pixels = npt.NDArray[np.uint8]
_GROUP_S: Final = 2
_IDLE_S: Final = 120


@dataclass(frozen=True, slots=True)
class Shown:
    """A slide on the screen. ``whole``: its true text is all there, a build's earlier steps lack some."""

    key: str
    start_s: float
    end_s: float
    text: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """One video, what it shows, and pictures of its clean slides by key."""

    name: str
    path: Path
    shown: tuple[Shown, ...]
    clean: Mapping[str, Path]


class CountingWorkers(MediaWorkers):
    """The product's workers, counting the slides that they are asked to read."""

    readings = 0

    def ask(self, owner: Owner, ask: Ask) -> None:
        self.readings += isinstance(ask, ReadSlide)
        super().ask(owner, ask)


def product_workers() -> CountingWorkers:
    """The pools as the flow builds them."""
    return CountingWorkers(lambda: SpeechRecogniser(RecogniserSettings()))


def words(text: str) -> collections.Counter[str]:
    """Words of a text, without marks and case."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return collections.Counter(re.findall(r"\w+", plain))


@dataclass(slots=True)
class Tally:
    """Words that are true, that were read, and that are both."""

    true: int = 0
    read: int = 0
    both: int = 0

    def add(self, true: str, read: str) -> None:
        """Count one slide."""
        wanted, found = words(true), words(read)
        self.true += wanted.total()
        self.read += found.total()
        self.both += (wanted & found).total()

    @property
    def recall(self) -> float:
        """Share of the true words that were read."""
        return self.both / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        """Share of the read words that are true."""
        return self.both / self.read if self.read else 1.0


def manifest_cases(manifest: Path) -> list[Case]:
    """Slide videos of a manifest, with the pictures of their slides by source and page."""
    root = manifest.parent.parent
    entries = [json.loads(line) for line in manifest.read_text(encoding="utf-8").splitlines() if line.strip()]
    images = {
        (entry["source_path"], entry["page"]): root / entry["path"]
        for entry in entries
        if entry["kind"] == "slide_image"
    }
    cases = []
    for entry in entries:
        if entry["kind"] != "slide_video":
            continue
        events, end_s = entry["events"], float(entry["duration"])
        shown = []
        for event, after in zip(events, [*events[1:], None], strict=True):
            goes_on = after is not None and after["type"] == "build"
            key = f"{event['page']}/{event.get('step', 0)}"
            until_s = float(after["time"]) if after is not None else end_s
            shown.append(Shown(key, float(event["time"]), until_s, event["text"], not goes_on))
        clean = {
            f"{event['page']}/{event.get('step', 0)}": images[entry["source_path"], event["page"]]
            for event in events
            if (entry["source_path"], event["page"]) in images
        }
        cases.append(Case(entry["id"], root / entry["path"], tuple(shown), clean))
    return cases


def room_cases(folders: Iterable[Path]) -> list[Case]:
    """Slide videos of room folders with a ``truth.json``; clean slides are the file's own frames."""
    cases: list[Case] = []
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        slides = [slide for slide in truth.get("slides", ()) if slide.get("text")]
        video = folder / "slides.mp4"
        if slides and video.is_file():
            shown = tuple(Shown(s["text"], s["start_s"], s["end_s"], s["text"]) for s in slides)
            if any([s.text for s in shown] == [s.text for s in case.shown] for case in cases):
                continue  # another form of a room has other microphones, and the same slides
            cases.append(Case(folder.name, video, shown, {}))
    return cases


def read_video(case: Case, workers: CountingWorkers) -> tuple[list[tuple[float, str]], int]:
    """Slides as they stood on the log, by start in seconds, and how many readings they took."""
    before = workers.readings
    room = open_inputs([case.path])
    # Videos that are shared with sound would be heard too.
    room = replace(room, streams=tuple(s for s in room.streams if s.modality is Modality.VIDEO))
    found = []
    for value in log_values(perceive_room(room, PerceiveSettings(), workers, VoiceActivity())):
        record = TIMELINE_RECORD.validate_json(value)
        if isinstance(record, SlideRecord):
            found.append((record.raw_start_ns / 1e9, record.text))
    return sorted(found), workers.readings - before


def frame_at(path: Path, at_s: float) -> Pixels:
    """The file's frame at a time."""
    with av.open(str(path)) as container:
        stream = picture_streams(container)[0]
        last = None
        for frame in container.decode(stream):
            if last is not None and frame.time is not None and frame.time > at_s:
                break
            last = frame
        if last is None:
            raise ValueError(f"{path} has no frame")
        return np.asarray(last.to_ndarray(format="bgr24"), np.uint8)


def clean_text(case: Case, slide: Shown, reader: SlideReader) -> str:
    """What one reading of the clean slide gives."""
    if slide.key in case.clean:
        picture = np.asarray(cv2.imread(str(case.clean[slide.key]), cv2.IMREAD_COLOR), np.uint8)
    else:
        picture = frame_at(case.path, slide.end_s - 0.3)
    return "\n".join(line.text for line in reader.read(picture))


def measure_reading(cases: Sequence[Case]) -> dict[str, Any]:
    """Words and readings over all cases, and of each."""
    reader = SlideReaderSettings().build()
    workers = product_workers()
    all_read, all_clean = Tally(), Tally()
    passes = true_slides = 0
    by_video: dict[str, Any] = {}
    clean_texts: dict[tuple[str, str], str] = {}
    try:
        for case in cases:
            begun = time.monotonic()
            found, readings = read_video(case, workers)
            read, clean = Tally(), Tally()
            for slide in (each for each in case.shown if each.whole):
                on_log = [text for start_s, text in found if start_s < slide.end_s - 0.1]
                place = (str(case.clean.get(slide.key, case.path)), slide.key)
                if place not in clean_texts:
                    clean_texts[place] = clean_text(case, slide, reader)
                for tally, text in ((read, on_log[-1] if on_log else ""), (clean, clean_texts[place])):
                    tally.add(slide.text, text)
            distinct = len({slide.key for slide in case.shown})
            by_video[case.name] = _figures(read, clean) | {
                "readings": readings, "slides": distinct, "on_log": len(found),
            }  # fmt: skip
            for total, part in ((all_read, read), (all_clean, clean)):
                total.true, total.read, total.both = (
                    total.true + part.true, total.read + part.read, total.both + part.both
                )  # fmt: skip
            passes, true_slides = passes + readings, true_slides + distinct
            progress(f"slides: {case.name} {by_video[case.name]} in {time.monotonic() - begun:.0f} s")
    finally:
        workers.close()
    return _figures(all_read, all_clean) | {
        "passes_per_slide": round(passes / true_slides, 3), "readings": passes, "slides": true_slides,
        "by_video": by_video,
    }  # fmt: skip


def _figures(read: Tally, clean: Tally) -> dict[str, Any]:
    return {
        "word_recall": round(read.recall, 4), "word_precision": round(read.precision, 4),
        "clean_word_recall": round(clean.recall, 4), "clean_word_precision": round(clean.precision, 4),
        "recall_ratio": round(read.recall / clean.recall, 4) if clean.recall else None, "words": read.true,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class StillSource:
    """A 1080p30 stream of one slide: groups of two seconds, coded once and repeated."""

    units: tuple[MediaPiece, ...]
    seconds: int

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """Access units by rising time."""
        del note
        for group in range(self.seconds // _GROUP_S):
            for unit in self.units:
                yield replace(unit, offset_ns=unit.offset_ns + group * _GROUP_S * 10**9)


def still_units(picture: Pixels, *, noise: int, seed: int) -> tuple[MediaPiece, ...]:
    """One group of pictures, 1080p30; ``noise`` is how many levels each pixel wavers by."""
    height, width = picture.shape[:2]
    encoder = Encoder(VideoSettings(), PictureInfo("h264", "yuv420p", width, height, 30.0, 0))
    planes = av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(format="yuv420p").to_ndarray()
    wavering = np.random.default_rng(seed).integers(-noise, noise + 1, (height, width), dtype=np.int16)
    units: list[MediaPiece] = []
    for number in range(30 * _GROUP_S):
        wavered = planes.copy()
        # The same grain moved about: as random for a coder, and made in no time.
        grain = np.roll(wavering, (37 * number, 91 * number), (0, 1)) if noise else wavering
        wavered[:height] = np.clip(planes[:height].astype(np.int16) + grain, 0, 255)
        frame = av.VideoFrame.from_ndarray(wavered, format="yuv420p")
        units += encoder.encode(Picture(number * 10**9 // 30, frame))
    units += encoder.finish(10**9 // 30)
    return tuple(units)


def measure_idle(*, seconds: int, noise: int, seed: int) -> dict[str, float]:
    """Cores that one still 1080p30 stream takes: checking, decoding and looking for a change."""
    picture = frame_at(SAMPLE / "slides.mp4", 1.0)
    source = StillSource(still_units(picture, noise=noise, seed=seed), seconds)
    stream = Stream("idle", "laptop", Modality.VIDEO, source, Path("idle.mp4"), duration_ns=seconds * 10**9)
    room = Room("idle", (), (stream,))
    workers = product_workers()
    try:
        workers.warm_up()
        voice, before, own = VoiceActivity(), usage_of(os.getpid()), time.process_time()
        for _ in perceive_room(room, PerceiveSettings(), workers, voice):
            pass
        # The one slide is read once; that is no part of an idle stream.
        read_s = _reading_s(picture)
        flow_s = time.process_time() - own - read_s
        all_s = usage_of(os.getpid()).cpu_s - before.cpu_s - read_s
    finally:
        workers.close()
    kbit_s = sum(len(unit.payload) for unit in source.units) * 8 / _GROUP_S / 1000
    return {
        "cores": round(max(all_s, 0.0) / seconds, 4), "flow_cores": round(max(flow_s, 0.0) / seconds, 4),
        "kbit_s": round(kbit_s),
    }  # fmt: skip


def _reading_s(picture: Pixels) -> float:
    reader = SlideReaderSettings().build()
    reader.warm_up()
    begun = time.process_time()
    reader.read(picture)
    return time.process_time() - begun


def run(cases: Sequence[Case], *, idle_s: int, seed: int) -> dict[str, Any]:
    """All figures; ``idle_s`` is how long the still streams last."""
    figures = measure_reading(cases)
    progress("slides: idle streams")
    idle = measure_idle(seconds=idle_s, noise=0, seed=seed)
    noisy = measure_idle(seconds=idle_s, noise=2, seed=seed)
    return figures | {"idle_cores": idle["cores"], "idle": idle, "idle_noisy": noisy, "idle_s": idle_s}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--manifest", type=Path, help="slide images and slide videos, one JSON object a line")
    parser.add_argument("--only", help="comma-separated ids of videos")
    parser.add_argument("--idle-s", type=int, default=_IDLE_S, help="length of the still streams")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.manifest is not None:
        if not given.manifest.is_file():
            progress(f"slides: {given.manifest}: file not found")
            return 2
        cases = manifest_cases(given.manifest)
    else:
        built = sorted(path.parent for path in (ROOT / "build" / "rooms").glob("*/truth.json"))
        cases = room_cases([SAMPLE, *built])
    if given.only:
        cases = [case for case in cases if case.name in given.only.split(",")]
    if not cases or given.idle_s < _GROUP_S:
        progress("slides: no slide video with a truth to compare with, or --idle-s below 2")
        return 2
    figures = run(cases, idle_s=given.idle_s, seed=given.seed)
    source = str(given.manifest) if given.manifest else "rooms"
    print_report("slides", given.seed, figures | {"input": source})
    return 0


if __name__ == "__main__":
    sys.exit(main())
