"""Vectors of all pieces of text that training reads, computed once and kept: the encoder does not learn."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from models.minutes.encoder import TEXT_WIDTH, Encoder, Vectors, pieces_of

_SHARD: Final = 4096
States = npt.NDArray[np.float16]


class VectorStore:
    """Pieces of text and their vectors, in a folder that fills up shard by shard; stopped work goes on there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at: dict[str, int] = {}
        self._shards: list[Vectors] = []
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.npz")):
            with np.load(path) as kept:
                self._keep([str(k) for k in kept["pieces"]], kept["vectors"])

    def _keep(self, pieces: list[str], vectors: Vectors) -> None:
        first = sum(len(s) for s in self._shards)
        self._shards.append(vectors)
        for row, piece in enumerate(pieces):
            self._at.setdefault(piece, first + row)

    def __len__(self) -> int:
        return len(self._at)

    def fill(self, texts: Iterable[str], encoder: Encoder) -> int:
        """Encode what is not there yet, each piece alone as the product does; the number of pieces that were new."""
        wanted = dict.fromkeys(p for text in texts for p in pieces_of(text) if p not in self._at)
        missing = sorted(wanted)
        for begin in range(0, len(missing), _SHARD):
            pieces = missing[begin : begin + _SHARD]
            vectors = np.stack([encoder.encoded(encoder.tokens(piece)) for piece in pieces])
            digest = hashlib.sha256("\n".join(pieces).encode()).hexdigest()[:16]
            temporary = self._folder / f"{digest}.part"
            with temporary.open("wb") as out:
                np.savez(out, pieces=np.array(pieces), vectors=vectors)
            temporary.replace(self._folder / f"{digest}.npz")
            self._keep(pieces, vectors)
            print(f"\r{begin + len(pieces)}/{len(missing)} pieces of text", end="", file=sys.stderr)
        if missing:
            print(file=sys.stderr)
        return len(missing)

    def table(self) -> "VectorTable":
        """All of it, to look texts up in."""
        rows = np.concatenate(self._shards) if self._shards else np.zeros((0, TEXT_WIDTH), np.float16)
        return VectorTable(self._at, rows)


class StateStore:
    """States of pieces of text before the encoder's last layer, which are too many to be kept on disk."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, list[States]] = {}

    def of(self, text: str) -> list[npt.NDArray[np.float32]]:
        """(tokens, states) of each piece."""
        return [self._encoder.run(self._encoder.tokens(piece))[1] for piece in pieces_of(text)]

    def kept(self, text: str) -> list[States]:
        """The same in half precision, computed once."""
        found = self._kept.get(text)
        if found is None:
            found = self._kept[text] = [one.astype(np.float16) for one in self.of(text)]
        return found


class VectorTable:
    """Looks up the vectors of an utterance."""

    def __init__(self, at: dict[str, int], rows: Vectors) -> None:
        self._at, self._rows = at, rows

    def of(self, text: str) -> Vectors:
        """(pieces, ``TEXT_WIDTH``).

        Raises:
            KeyError: a piece was never encoded.
        """
        index: npt.NDArray[np.int64] = np.array([self._at[piece] for piece in pieces_of(text)])
        return self._rows[index]
