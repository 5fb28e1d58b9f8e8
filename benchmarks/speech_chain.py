"""Sound through the product's own chain of files, and through plain faster-whisper on the whole file."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from contracts.packet import Modality
from contracts.timeline import TIMELINE_RECORD, UtteranceRecord
from devices.inputs import Room, open_inputs
from flows.files import log_values, perceive_room
from models.speech_recogniser import SpeechRecogniser, model_folder
from models.voice_activity import VoiceActivity
from operators.perceive.step import MediaWorkers
from operators.perceive.types import PerceiveSettings

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HeardWord:
    """One word as it stands on the log; times in seconds from the room's start."""

    start_s: float
    end_s: float
    text: str
    speaker: str | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What came out of the chain. `text` is in order of start."""

    text: str
    words: tuple[HeardWord, ...]
    notices: tuple[str, ...]
    took: "Took"


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took, in seconds by the clock and of processor time in this process."""

    wall_s: float
    processor_s: float

    def __add__(self, other: "Took") -> "Took":
        return Took(self.wall_s + other.wall_s, self.processor_s + other.processor_s)

    @classmethod
    def since(cls, begun: "Took") -> "Took":
        """From `begun`, as `now` gave it."""
        now = cls.now()
        return cls(now.wall_s - begun.wall_s, now.processor_s - begun.processor_s)

    @classmethod
    def now(cls) -> "Took":
        """Readings to count from."""
        return cls(time.monotonic(), time.process_time())


class Chain:
    """The first flow without a broker, with loaded weights."""

    def __init__(self, recogniser: SpeechRecogniser, workers: int = 2) -> None:
        self._settings = PerceiveSettings(ordinary_words=recogniser.ordinary_words())
        self._voice = VoiceActivity()
        self._workers = MediaWorkers(lambda: recogniser, recognition_workers=workers)

    def file(self, path: Path) -> Heard:
        """One sound file as a meeting of its own."""
        return self.room(open_inputs([path]))

    def room(self, room: Room) -> Heard:
        """A room's sound: its pictures are left out, they would only cost time here."""
        sound = replace(room, streams=tuple(s for s in room.streams if s.modality is Modality.AUDIO))
        begun = Took.now()
        messages = perceive_room(sound, self._settings, self._workers, self._voice)
        lines = list(log_values(messages))
        return _heard(lines, room.start_ns, Took.since(begun))

    def close(self) -> None:
        """Stop the threads and child processes."""
        self._workers.close()


def _heard(lines: Iterable[bytes], start_ns: int, took: Took) -> Heard:
    standing: dict[str, UtteranceRecord] = {}
    notices: list[str] = []
    for line in lines:
        kind = json.loads(line)["type"]
        if kind == "notice":
            notices.append(json.loads(line)["text"])
        if kind != "utterance":
            continue
        record = TIMELINE_RECORD.validate_json(line)
        assert isinstance(record, UtteranceRecord)
        if record.state == "withdrawn":
            standing.pop(record.id, None)
        else:
            standing[record.id] = record
    said = sorted(standing.values(), key=lambda record: (record.raw_start_ns, record.id))
    words = tuple(
        HeardWord((w.start_ns - start_ns) / 1e9, (w.end_ns - start_ns) / 1e9, w.text, record.speaker)
        for record in said
        for w in record.words
    )
    return Heard(" ".join(record.text for record in said), words, tuple(notices), took)


class WholeFile:
    """faster-whisper with the same weights and as many threads, fed with a whole file at once."""

    OPTIONS: Final[dict[str, Any]] = {"language": "en"}
    """All else as faster-whisper has it: 30 s windows, text of earlier windows as prompt, no voice activity filter, and
    retries by sampling at rising temperatures where a window looks wrong."""

    GREEDY: Final = 1
    DEFAULT: Final = 5
    """The library's own number of beams."""

    def __init__(self, model: str, *, threads: int = 2, seed: int = 0) -> None:
        import ctranslate2
        from faster_whisper import WhisperModel

        ctranslate2.set_random_seed(seed)
        self._model = WhisperModel(
            str(model_folder(model)),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads,
            local_files_only=True,
        )

    def file(self, path: Path, beam_size: int = GREEDY) -> tuple[str, Took]:
        """Text of a file, and how long it took, reading the file included."""
        begun = Took.now()
        segments, _ = self._model.transcribe(str(path), beam_size=beam_size, **self.OPTIONS)
        text = " ".join(segment.text.strip() for segment in segments)
        return text, Took.since(begun)
