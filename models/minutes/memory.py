"""What memory the minutes model takes, before anything of it is loaded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.minutes.encoder import PIECES_KEPT, STATES, TEXT_WIDTH, weights_path
from models.minutes.inputs import WINDOW
from models.minutes.reading import READER, TABLE
from models.minutes.session import RELEASED, SessionSettings

_RUNTIME: Final = 80_000_000
"""ONNX Runtime itself, the tokenizer, and what both set up at the first run; fitted on three runs."""
_ENCODER_TIMES: Final = 1.30
_NETWORK_TIMES: Final = 3.0
"""Memory of a session as a multiple of its file."""
_THREAD: Final = 600_000
_PIECE: Final = 2 * TEXT_WIDTH + 4 * TABLE + 600
_TURN: Final = 7_500
"""One utterance in the window: figures of the rules, words cut into clauses, and what the state keeps of it."""
_CHUNK: Final = 4 * (STATES + 2 * 70) + 500
_CHUNKS: Final = 28
_ANSWER: Final = 13_000
"""Scores of one window that are kept."""
_FOUND: Final = 26_000
_FOUND_KEPT: Final = 1200
"""What rules and judgement lately found of an utterance and its items, all meetings together; fitted on three runs."""
ANSWERS_KEPT: Final = 1024
"""Windows whose scores are kept: what is heard is scored again when it settles, mostly in the same order."""


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
        + round(_ENCODER_TIMES * _size(network.with_suffix(READER)))
        + threads * _THREAD
    )
    said = meetings * utterances
    pieces = min(PIECES_KEPT, said) * _PIECE
    answers = min(ANSWERS_KEPT, said) * _ANSWER
    found = min(_FOUND_KEPT, said) * _FOUND
    turns = min(WINDOW, utterances) * (_TURN + _PIECE)
    chunks = min(_CHUNKS, utterances // 8) * _CHUNK
    return MemoryPlan(sessions, pieces + answers + found, meetings * (turns + chunks))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
