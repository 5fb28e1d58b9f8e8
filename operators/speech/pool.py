"""Recognition in threads: what must be heard first, partial text when there is room.

CTranslate2 lets go of the interpreter lock, so threads are enough and all of them share one copy of the weights.
"""

import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import Before, Recognition
from operators import telemetry
from operators.speech.events import RecognitionRequest


class Recogniser(Protocol):
    """What the pool needs of a recogniser; it is called by several threads at once."""

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
        """Recognise one piece."""
        ...


@dataclass(frozen=True)
class PoolSettings:
    """`workers` run side by side. `max_waiting` bounds the queue of decisive requests.

    A request that has waited for longer than `behind_s` is heard without second looks, and its answer says so. Where
    sentences end is never decided in a hurry.
    """

    workers: int = 2
    max_waiting: int = 256
    behind_s: float = math.inf

    def __post_init__(self) -> None:
        if self.workers < 1 or self.max_waiting < 1:
            raise ValueError("workers and max_waiting must be at least 1")


class Superseded(Exception):
    """The answer to a request that a newer one of the same piece has made void; it was not recognised."""


class PoolFull(Exception):
    """More decisive requests wait than `max_waiting`: recognition does not keep up with the sound."""


_Piece = tuple[Hashable, str]
Answer = tuple[RecognitionRequest, Recognition | Exception]


class RecognitionPool:
    """Bounded pool of worker threads.

    Every request gets exactly one answer. Finals and speculative passes go first, in the order of their
    priority. A newer speculative pass of a piece
    replaces one that still waits, since its answer would be superseded. Partial passes run only while another worker
    stays free, and only the newest of each piece; with one worker there are none. So when recognition is behind,
    partial passes are left out first, and then second looks.
    """

    def __init__(self, factory: Callable[[], Recogniser], settings: PoolSettings) -> None:
        """Build the recogniser (once) and start the workers.

        Raises:
            ModelError: from the factory.
        """
        self.settings = settings
        self._recogniser = factory()
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, _Piece, RecognitionRequest, float]] = []
        self._partials: dict[_Piece, RecognitionRequest] = {}
        self._answers: list[Answer] = []
        self._busy = 0
        self._count = 0
        self._closing = False
        self._probe = telemetry.probe()
        self._threads = [
            threading.Thread(target=self._work, name=f"recognition-{number}", daemon=True)
            for number in range(settings.workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, request: RecognitionRequest, meeting: Hashable = None) -> None:
        """Queue a request. Piece ids are unique within a meeting only, so its name goes with them.

        Raises:
            PoolFull: a decisive request and no room; take answers and try again.
            RuntimeError: the pool is closed.
        """
        with self._changed:
            if self._closing:
                raise RuntimeError("the recognition pool is closed")
            # Any newer request of a piece, a partial one too, means that older ones are void.
            piece = (meeting, request.piece_id)
            self._supersede(piece, request.version)
            if request.kind == "partial":
                self._partials[piece] = request
            else:
                if len(self._waiting) >= self.settings.max_waiting:
                    raise PoolFull(f"{len(self._waiting)} pieces wait for recognition")
                self._count += 1
                self._waiting.append((request.priority, self._count, piece, request, time.monotonic()))
            self._changed.notify()

    def collect(self) -> list[Answer]:
        """Answers since the last call, in the order in which they were finished. Never waits."""
        with self._changed:
            answers, self._answers = self._answers, []
            return answers

    def outstanding(self) -> int:
        """Decisive requests that have not been answered, plus passes that run."""
        with self._changed:
            return len(self._waiting) + self._busy

    def waited_s(self) -> float:
        """How long the decisive request has waited that waits longest; 0 where none does."""
        with self._changed:
            return max((time.monotonic() - entry[4] for entry in self._waiting), default=0.0)

    def close(self) -> None:
        """Drop what waits, let running passes end, and stop the threads."""
        with self._changed:
            self._closing = True
            self._waiting.clear()
            self._partials.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _supersede(self, piece: _Piece, version: int) -> None:
        void = [entry[3] for entry in self._waiting if entry[2] == piece and entry[3].version < version]
        partial = self._partials.pop(piece, None)
        if partial is not None:
            void.append(partial)
        self._waiting = [entry for entry in self._waiting if not any(entry[3] is v for v in void)]
        self._answers += [(request, Superseded()) for request in void]

    def _next(self) -> tuple[_Piece, RecognitionRequest, float] | None:
        """The request to run now, if any, and since when it waited; the lock is held."""
        if self._waiting:
            first = min(range(len(self._waiting)), key=lambda place: self._waiting[place][:2])
            return self._waiting.pop(first)[2:]
        if self._partials and self._busy + 1 < self.settings.workers:
            piece = next(iter(self._partials))
            return piece, self._partials.pop(piece), time.monotonic()
        return None

    def _work(self) -> None:
        while True:
            with self._changed:
                while (chosen := self._next()) is None:
                    if self._closing:
                        return
                    self._changed.wait()
                self._busy += 1
            (meeting, _), request, asked_s = chosen
            begun_s = time.monotonic()
            thorough = request.holds or begun_s - asked_s <= self.settings.behind_s
            answer: Recognition | Exception
            try:
                answer = self._recogniser.recognise(
                    request.samples,
                    hotwords=request.hotwords,
                    word_times=request.kind != "partial",
                    before=request.before,
                    voice=request.voice,
                    thorough=thorough,
                )
            except Exception as error:  # whatever the weights do to one piece must not end the thread
                answer = error
            if self._probe is not None:
                kind = request.kind if thorough else "hurried"
                self._probe.recognised(meeting, kind, begun_s - asked_s, time.monotonic() - begun_s)
            with self._changed:
                self._busy -= 1
                self._answers.append((request, answer))
                self._changed.notify()
