"""Utterances that are decided together, on their way to the log: what is said of the rest of the sound stays true."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from contracts.timeline import TIMELINE_RECORD, UtteranceRecord
from devices.inputs import open_inputs
from flows.files import log_values, perceive_room
from models.speech_context import Before
from models.speech_recogniser import Recognition, SpeechRecogniser, Word
from models.voice_activity import FRAME_SAMPLES, VoiceActivity
from operators.perceive.step import MediaWorkers
from operators.perceive.types import PerceiveSettings

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000


class Counting(SpeechRecogniser):
    """Hears a word in each 0.4 s, and the end of a sentence after the third."""

    def __init__(self) -> None:
        """Needs no weights."""

    def recognise(
        self,
        samples: npt.NDArray[np.float32],
        *,
        hotwords: tuple[str, ...] = (),
        word_times: bool = True,
        before: Before | None = None,
        voice: float = 0.0,
        thorough: bool = True,
    ) -> Recognition:
        words = tuple(
            Word(n * 0.4, (n + 1) * 0.4, f"word{n}{'.' if n == 2 else ''}", 0.9)
            for n in range(int(len(samples) / RATE_HZ / 0.4))
        )
        return Recognition(" ".join(word.text for word in words), words, average_log_probability=-0.2)


def test_no_utterance_begins_before_what_an_earlier_one_says_is_decided(tmp_path: Path) -> None:
    tracks = [soundfile.read(file, frames=40 * RATE_HZ)[0] for file in sorted(SAMPLE.glob("mic-*"))]
    soundfile.write(tmp_path / "table.wav", np.mean(tracks, axis=0), RATE_HZ)
    workers = MediaWorkers(Counting, recognition_workers=1)
    try:
        room = open_inputs([tmp_path / "table.wav"])
        lines = log_values(perceive_room(room, PerceiveSettings(), workers, VoiceActivity()))
        records = [TIMELINE_RECORD.validate_json(line) for line in lines]
    finally:
        workers.close()
    closed = [r for r in records if isinstance(r, UtteranceRecord) and r.state == "closed"]
    # What is cut out of the sound begins with a frame; only what is decided with something else does not.
    assert any(int(record.id.rpartition("/")[2]) % FRAME_SAMPLES for record in closed)
    for number, record in enumerate(closed):
        assert all(record.mark_ns <= later.raw_start_ns for later in closed[number + 1 :])
