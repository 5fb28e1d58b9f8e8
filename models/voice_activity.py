"""Voice activity per 32 ms frame with Silero's network (the ONNX file inside the faster-whisper wheel).

The exported graph takes one stream a run, but any number of its frames; so a run costs 0.06 ms for each further
frame of the same stream, and streams follow each other. State is plain arrays, so that a stream can be snapshotted.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import ModelError

FRAME_SAMPLES = 512
"""Frame length at 16 kHz: 32 ms."""

CONTEXT_SAMPLES = 64
"""What the network sees of the frame before."""

_HIDDEN = 128

Floats = npt.NDArray[np.float32]


def _hidden() -> Floats:
    return np.zeros((1, 1, _HIDDEN), dtype=np.float32)


@dataclass
class VoiceState:
    """Memory of one stream between calls."""

    hidden: Floats = field(default_factory=_hidden)
    cell: Floats = field(default_factory=_hidden)
    context: Floats = field(default_factory=lambda: np.zeros(CONTEXT_SAMPLES, dtype=np.float32))

    def dump(self) -> bytes:
        """The state as bytes, about 1.3 KB."""
        return b"".join(part.tobytes() for part in (self.hidden, self.cell, self.context))

    @classmethod
    def load(cls, raw: bytes) -> "VoiceState":
        """Inverse of `dump`.

        Raises:
            ValueError: wrong length.
        """
        values = np.frombuffer(raw, dtype=np.float32)
        if len(values) != 2 * _HIDDEN + CONTEXT_SAMPLES:
            raise ValueError(f"voice state of {len(raw)} bytes")
        return cls(
            hidden=values[:_HIDDEN].reshape(1, 1, _HIDDEN).copy(),
            cell=values[_HIDDEN : 2 * _HIDDEN].reshape(1, 1, _HIDDEN).copy(),
            context=values[2 * _HIDDEN :].copy(),
        )


class VoiceActivity:
    """The network, shared by all streams. Not for several threads at once."""

    def __init__(self, path: Path | None = None) -> None:
        """Load the network, by default the one that faster-whisper brings.

        Raises:
            ModelError: file missing or not the expected graph.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        file = path or _bundled()
        try:
            self._session: Any = onnxruntime.InferenceSession(
                str(file), sess_options=options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except Exception as error:  # onnxruntime raises classes of its own that it does not export
            reason = str(error).splitlines()[0]
            raise ModelError(f"voice activity: cannot load {file}: {reason}") from None
        names = {tensor.name for tensor in self._session.get_inputs()}
        if names != {"input", "h", "c"}:
            raise ModelError(f"voice activity: {file} has inputs {sorted(names)}, expected c, h, input")

    def probabilities(self, state: VoiceState, frames: Floats) -> Floats:
        """Speech probability per frame.

        Args:
            state: memory of this stream, updated.
            frames: float32 in -1..1 at 16 kHz, shape (n, 512), directly after those of the call before.

        Returns:
            Shape (n,), 0..1.
        """
        if len(frames) == 0:
            return np.zeros(0, dtype=np.float32)
        joined = np.empty((len(frames), CONTEXT_SAMPLES + FRAME_SAMPLES), dtype=np.float32)
        joined[:, CONTEXT_SAMPLES:] = frames
        joined[0, :CONTEXT_SAMPLES] = state.context
        joined[1:, :CONTEXT_SAMPLES] = frames[:-1, -CONTEXT_SAMPLES:]
        found, hidden, cell = self._session.run(None, {"input": joined, "h": state.hidden, "c": state.cell})
        state.hidden, state.cell = hidden, cell
        state.context = frames[-1, -CONTEXT_SAMPLES:].copy()
        return np.asarray(found, dtype=np.float32).reshape(-1)


def _bundled() -> Path:
    from faster_whisper.utils import get_assets_path

    files = sorted(Path(get_assets_path()).glob("silero_vad*.onnx"))
    if not files:
        raise ModelError("voice activity: the faster-whisper package carries no silero_vad file")
    return files[-1]
