"""What the reader says of an utterance, and what that means for those around it. No torch.

The reader is a last layer of the text encoder that was trained to judge (:mod:`models.minutes.reader`). Of each piece
of text it tells a table: how much the piece speaks for each head, in each role that its utterance may have: that of
the line that is scored, of the line before or after it, or of talk around (:data:`models.minutes.linear.ROLES`).
"""

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.minutes.inputs import WINDOW, Floats
from models.minutes.scores import HEADS

ROLES: Final[tuple[tuple[int, ...], ...]] = (
    (0,), (-1,), (1,), (-4, -3, -2), (2, 3, 4), (-11, -10, -9, -8, -7, -6, -5), (5, 6, 7, 8),
)  # fmt: skip
"""Steps from the line that is scored to those which play a role; their contributions are averaged, as if those
missing were silent."""

READER: Final = ".reader.onnx"
"""What the name of the reader's graph ends with; it lies beside that of the network."""

TABLE: Final = len(ROLES) * len(HEADS)


class ReaderUnusable(Exception):
    """The reader cannot be used; the message says why, in one line."""


class ReaderSession:
    """The trained layers in ONNX Runtime: states of a piece of text in, its table out, one piece a run."""

    def __init__(self, graph: bytes, threads: int = 1) -> None:
        """Raises: ReaderUnusable: it is no graph of a reader."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session: Any = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except Exception as error:
            raise ReaderUnusable("is no reader that can be loaded") from error
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if [x.name for x in inputs] != ["before"] or outputs[0].shape != [TABLE]:
            raise ReaderUnusable("was made for another version of the product")
        self.digest: str = hashlib.sha256(graph).hexdigest()
        """SHA-256 of the graph."""

    def __call__(self, before: Floats) -> Floats:
        """``before`` (tokens, states) as the encoder's last but one layer leaves them; (``TABLE``,)."""
        found: Floats = self._session.run(None, {"before": before})[0]
        return found


def read_around(tables: Floats, newest: npt.NDArray[np.int64]) -> Floats:
    """Logits of all lines of a stretch of talk, (lines, heads), when ``newest`` is the last line heard at each.

    ``tables`` (lines, ``TABLE``). Sums are made in a fixed order, one after the other.
    """
    count = len(tables)
    told = tables.reshape(count, len(ROLES), len(HEADS))
    lines = np.arange(count)
    out = np.zeros((count, len(HEADS)), np.float32)
    for role, steps in enumerate(ROLES):
        for step in steps:
            other = lines + step
            there = (other >= 0) & (other <= newest) & (other > newest - WINDOW)
            out[there] += told[other[there], role] * np.float32(1.0 / len(steps))
    return out


def read_file(path: Path) -> bytes:
    """Raises: ReaderUnusable: it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReaderUnusable(f"cannot be read ({error.strerror})") from error
