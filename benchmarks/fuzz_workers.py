"""Workers for fuzzing: real decoders for what comes in, invented answers where a network would answer."""

import random
import threading
from dataclasses import replace

from models.slide_reader import TextLine
from models.speech_recogniser import Recognition
from operators.media.client import DecodeFailed, DecoderPool, DecodeSettings
from operators.perceive.pictures import DecodePicture, FetchFrame, ReadSlide
from operators.perceive.step import Answer, Owner, Recognised, SlideRead
from operators.perceive.types import Ask, DecodeSound
from operators.speech.events import RecognitionRequest

_HEARD = (
    "",
    "I will send the plan by Friday.",
    "We agreed to launch in May.",
    "Who pays for the hall?",
    "\u202eso \u0000 be it",
    "Mm-hm.",
)
_READ = ("Budget", "Launch on 26 March", "\u202etxet", "4,000 euros")


class FuzzWorkers:
    """Like ``MediaWorkers``; recognition and reading answer at once, now and then by failing."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._decoders = DecoderPool(DecodeSettings(quarantine_ms=50))
        self._answers: list[tuple[str, Answer]] = []
        self._asked = 0
        self.restarts = 0

    def ask(self, owner: Owner, ask: Ask) -> None:
        self._asked += 1
        meeting = owner[1]
        if isinstance(ask, RecognitionRequest):
            failed = self._chance.random() < 0.02
            found = RuntimeError("no") if failed else Recognition(self._chance.choice(_HEARD))
            self._answers.append((meeting, Recognised(ask, found)))
        elif isinstance(ask, DecodePicture | DecodeSound):
            packet = ask.packet
            role = ask.role if isinstance(ask, DecodePicture) else "slides"
            self._decoders.submit(
                f"{meeting}/{ask.stream}", packet.codec, packet.payload, packet.key_frame, packet.timestamp_ns,
                (meeting, ask), role=role, channels=packet.channels,
            )  # fmt: skip
        elif isinstance(ask, FetchFrame):
            self._decoders.request_frame(f"{meeting}/{ask.stream}", ask.frame_ns, (meeting, ask))
        else:
            self._answers.append((meeting, self._slide(ask)))

    def _slide(self, ask: ReadSlide) -> SlideRead:
        if self._chance.random() < 0.05:
            return SlideRead(ask, None)
        line = TextLine(self._chance.choice(_READ), (0.1, 0.1, 0.6, 0.2), 0.9)
        return SlideRead(ask, (line,))

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        del shard
        for result in self._decoders.collect():
            meeting, ask = result.meta
            self.restarts += isinstance(result, DecodeFailed) and result.restarted
            self._answers.append((meeting, replace(result, stream=ask.stream, meta=None)))
        answers, self._answers = self._answers, []
        self._asked -= len(answers)
        return answers

    def outstanding(self, shard: int) -> int:
        del shard
        return self._asked

    def close(self) -> None:
        self._decoders.close()
