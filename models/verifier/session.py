"""The released verifier in ONNX Runtime: cases in, probabilities out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.verifier.features import FEATURES, Case, features

RELEASED: Final = Path(__file__).with_name("verifier.onnx")


class VerifierUnusable(Exception):
    """The weights cannot be used; the message says why, in one line."""


class VerifierModel:
    """Judges cases one by one or in batches; a score does not depend on what else is in the batch."""

    def __init__(self, path: Path = RELEASED) -> None:
        """Raises: VerifierUnusable: missing, broken, or made for other figures."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            data = path.read_bytes()
            self._session: Any = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            told = self._session.get_modelmeta().custom_metadata_map
        except OSError as error:
            raise VerifierUnusable(f"{path}: cannot be read ({error.strerror})") from error
        except Exception as error:
            raise VerifierUnusable(f"{path}: is no verifier that can be loaded") from error
        if told.get("features") != ",".join(FEATURES):
            raise VerifierUnusable(f"{path}: was made for other figures than this version computes")
        self.name: str = told.get("name", "")
        """Version of the weights, for `versions` and the audit."""
        try:
            (found,) = self._session.run(None, {"features": np.zeros((1, len(FEATURES)), np.float32)})
            broken = not 0 <= float(found[0]) <= 1
        except Exception as error:
            raise VerifierUnusable(f"{path}: does not run as a verifier") from error
        if broken or not self.name:
            raise VerifierUnusable(f"{path}: its weights are broken")

    def probabilities(self, cases: Sequence[Case]) -> list[float]:
        """Probability that each case holds."""
        if not cases:
            return []
        rows = np.stack([features(case) for case in cases])
        return [float(p) for p in self._session.run(None, {"features": rows})[0]]

    def probability(self, case: Case) -> float:
        """Probability that one case holds."""
        return self.probabilities([case])[0]
