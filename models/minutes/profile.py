"""What this machine does with the minutes model: measured throughput, the settings that follow, the memory it takes."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.minutes.encoder import STATES, TEXT_WIDTH, weights_path
from models.minutes.inputs import WINDOW, Context, Told, Window
from models.minutes.session import RELEASED, MinutesModel, SessionSettings

BATCHES: Final = (1, 4, 12)
_TRIES: Final = 5
_LINE: Final = (
    "Could you send the numbers of the last quarter to the whole group by Friday afternoon, please?"
)

_RUNTIME: Final = 191_000_000
"""ONNX Runtime itself, the tokenizer, and what both set up at the first run; fitted on three runs."""
_ENCODER_TIMES: Final = 1.30
_NETWORK_TIMES: Final = 3.0
"""Memory of a session as a multiple of its file."""
_THREAD: Final = 600_000
_PIECE: Final = 2 * TEXT_WIDTH + 420
_TURN: Final = 7_500
"""One utterance in the window: figures of the rules, words cut into clauses, and what the state keeps of it."""
_CHUNK: Final = 4 * (STATES + 2 * 70) + 500
_CHUNKS: Final = 28
_ANSWER: Final = 13_000
"""Scores of one window that are kept."""
PIECES_KEPT: Final = 4096
ANSWERS_KEPT: Final = 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores and memory that this process may use."""

    cores: int
    memory_bytes: int

    @classmethod
    def here(cls) -> "Machine":
        """This machine, within the limits of a container."""
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        try:
            limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        except (OSError, ValueError):
            limit = total
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(cores, min(total, limit))


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that the model and the meetings it follows add to a process."""

    sessions: int
    caches: int
    meetings: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.sessions + self.caches + self.meetings


@dataclass(frozen=True, slots=True)
class Profile:
    """What was measured, and what follows from it.

    ``windows_per_s`` is by the number of windows in one run; ``pieces_per_s`` of the text encoder. The product
    runs one window at a time on one thread, whatever the gain of more would be: scores must not depend on batch
    mates, nor on how many cores a machine has.
    """

    machine: Machine
    provider: str
    pieces_per_s: float
    windows_per_s: tuple[tuple[int, float], ...]
    settings: SessionSettings

    @property
    def utterances_per_s(self) -> float:
        """Utterances that one core encodes and scores."""
        return 1.0 / (1.0 / self.pieces_per_s + 1.0 / self.windows_per_s[0][1])


def measured(model: MinutesModel, settings: SessionSettings) -> Profile:
    """Runs encoder and network for about half a second."""
    number = iter(range(10**9))

    def encode() -> None:
        model.vectors(f"{next(number)} {_LINE}")

    window = _full_window(model)
    windows = tuple(
        (size, size * _rate(lambda size=size: model.scores_together([window] * size)))  # type: ignore[misc]
        for size in BATCHES
    )
    return Profile(Machine.here(), "CPUExecutionProvider", _rate(encode), windows, settings)


def _rate(run: Callable[[], object]) -> float:
    """Runs a second, by the median of a few."""
    run()
    times = []
    for _ in range(_TRIES):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return 1.0 / max(1e-9, sorted(times)[_TRIES // 2])


def _full_window(model: MinutesModel) -> Window:
    context = Context()
    vectors = model.vectors(_LINE)
    for turn in range(6 * WINDOW):
        context = context.heard(Told(f"s{turn % 4}", 16, vectors, (0.0,) * len(model.layout.cues)))
    return context.window()


def memory_plan(
    meetings: int, utterances: int, settings: SessionSettings | None = None, network: Path = RELEASED
) -> MemoryPlan:
    """Memory for so many meetings of so many utterances each, before anything is loaded.

    Raises:
        OSError, EncoderUnusable: the weights are not there.
    """
    settings = settings or SessionSettings()
    threads = settings.encoder_threads + settings.network_threads
    sessions = (
        _RUNTIME
        + round(_ENCODER_TIMES * weights_path().stat().st_size)
        + round(_NETWORK_TIMES * network.stat().st_size)
        + threads * _THREAD
    )
    said = meetings * utterances
    pieces = min(PIECES_KEPT, said) * _PIECE
    answers = min(ANSWERS_KEPT, said) * _ANSWER
    turns = min(WINDOW, utterances) * (_TURN + _PIECE)
    chunks = min(_CHUNKS, utterances // 8) * _CHUNK
    return MemoryPlan(sessions, pieces + answers, meetings * (turns + chunks))
