"""The released minutes model in ONNX Runtime: utterances and windows in, calibrated scores out."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, overload

import numpy as np

from models.minutes.encoder import TOKENIZER, Encoder, EncoderUnusable, Vectors, pieces_of
from models.minutes.inputs import Floats, Layout, Told, Window, feeds
from models.minutes.reading import READER, TABLE, ReaderSession, ReaderUnusable, read_around, read_file
from models.minutes.scores import (
    HEADS,
    Calibration,
    Outputs,
    UtteranceScores,
    due_of,
    scores_of,
    scores_of_line,
)
from models.minutes.words import grams_of

RELEASED: Final = Path(__file__).with_name("minutes.onnx")
_OUTPUTS: Final = ("heads", "owner", "joins", "due")
_EMPTY: Final[tuple[tuple[str, ...], ...]] = ((), (), ())


class MinutesModelUnusable(Exception):
    """The model cannot be used; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Threads of the text encoder and of the network; one each keeps other meetings' work moving."""

    encoder_threads: int = 1
    network_threads: int = 1

    def __post_init__(self) -> None:
        if min(self.encoder_threads, self.network_threads) < 1:
            raise ValueError("a session needs a thread")


class MinutesModel:
    """Encoder and network. Scores are a function of the window alone: each window is a run of its own.

    Args:
        cues: names of the rules' figures that this version computes; weights made for others are refused.
    """

    def __init__(
        self,
        cues: tuple[str, ...],
        path: Path = RELEASED,
        settings: SessionSettings = SessionSettings(),
        *,
        encoder: Path | None = None,
        tokenizer: Path = TOKENIZER,
    ) -> None:
        """Raises: MinutesModelUnusable: a file is missing or broken, or made for something else."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.network_threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            graph = path.read_bytes()
            self._session: Any = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            told = self._session.get_modelmeta().custom_metadata_map
        except OSError as error:
            raise MinutesModelUnusable(f"{path}: cannot be read ({error.strerror})") from error
        except Exception as error:
            raise MinutesModelUnusable(f"{path}: is no minutes model that can be loaded") from error
        self.digest: str = hashlib.sha256(graph).hexdigest()
        """SHA-256 of the graph's file."""
        self._path = path
        self.layout, self._calibration = _described(path, told, cues)
        self._reader, self._shares = _reader_of(path, told, settings.encoder_threads)
        self.name: str = told["name"]
        """Version of the weights, for `versions`."""
        try:
            self._encoder = Encoder(encoder, tokenizer, settings.encoder_threads, self._reader)
        except EncoderUnusable as error:
            raise MinutesModelUnusable(str(error)) from error
        if told.get("encoder") != self._encoder.version:
            raise MinutesModelUnusable(f"{path}: was trained with another text encoder than is installed")

    def vectors(self, text: str) -> Vectors:
        """Vectors of an utterance's pieces; bounded, however long it is."""
        return self._encoder.encode(text)

    def read_pieces(self, text: str) -> Iterator[None]:
        """Find the vectors of an utterance's pieces one by one; they are kept for when they are asked for."""
        for piece in pieces_of(text):
            self._encoder.piece(piece)
            yield

    def read(self, text: str) -> Floats | None:
        """What the reader says of an utterance; None where there is no reader."""
        return self._encoder.read(text)[1] if self._reader is not None else None

    def told(self, speaker: str, text: str, cues: tuple[float, ...]) -> Told:
        """What the graph reads of an utterance; bounded, however long it is."""
        vectors, read = self._encoder.read(text)
        return Told(speaker, len(text.split()), vectors, cues, grams=grams_of(text), read=read)

    def scores(self, window: Window) -> Sequence[UtteranceScores]:
        """Scores of all utterances of a window, oldest first."""
        if not window.utterances:
            return ()
        found = self._session.run(list(_OUTPUTS), feeds([window], self.layout))
        return _Scored(self._with_reader(Outputs(*found), [window]), window, self._calibration)

    def scores_together(self, windows: Sequence[Window]) -> list[list[UtteranceScores]]:
        """Scores of several windows in one run: the last digits may differ from those of single runs."""
        if not windows:
            return []
        found = self._session.run(list(_OUTPUTS), feeds(windows, self.layout))
        return scores_of(self._with_reader(Outputs(*found), windows), windows, self._calibration)

    def _with_reader(self, outputs: Outputs, windows: Sequence[Window]) -> Outputs:
        """With the reader's share in every head; who has no table is silent."""
        if self._reader is None:
            return outputs
        said = [_read(window) * self._shares for window in windows]
        return replace(outputs, heads=outputs.heads + np.concatenate(said))

    def warm_up(self) -> None:
        """Run once, so that the first utterance of a meeting does not wait for memory to be set up.

        Raises:
            MinutesModelUnusable: it does not run, or what comes out are no probabilities.
        """
        try:
            told = self.told("", "Good morning.", (0.0,) * len(self.layout.cues))
            (first,) = self.scores(Window((told,)))
        except Exception as error:  # the library's own kinds, and ours for outputs of other shapes
            raise MinutesModelUnusable(f"{self._path}: does not run") from error
        if not all(0 <= x <= 1 for x in (first.action, first.decision, first.question, first.summary)):
            raise MinutesModelUnusable(f"{self._path}: its weights are broken")


class _Scored(Sequence[UtteranceScores]):
    """Scores of one window. Of twenty utterances three are looked at: each is worked out when it is asked for."""

    def __init__(self, outputs: Outputs, window: Window, calibration: Calibration) -> None:
        self._outputs, self._window, self._calibration = outputs, window, calibration
        piece, self._due = len(outputs.heads), []
        for row, told in enumerate(window.utterances):
            due, piece = due_of(outputs, row, piece, len(told.text))
            self._due.append(due)
        self._found: dict[int, UtteranceScores] = {}

    def __len__(self) -> int:
        return len(self._window.utterances)

    @overload
    def __getitem__(self, place: int) -> UtteranceScores: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[UtteranceScores]: ...

    def __getitem__(self, place: int | slice) -> UtteranceScores | Sequence[UtteranceScores]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = range(len(self))[place]
        if at not in self._found:
            found = self._outputs
            line = Outputs(found.heads[at], found.owner[at], found.joins[at], self._due[at])
            self._found[at] = scores_of_line(line, self._window, at, self._calibration)
        return self._found[at]


_SILENT: Final = np.zeros(TABLE, np.float32)


def _read(window: Window) -> Floats:
    tables = [_SILENT if told.read is None else told.read for told in window.utterances]
    newest = np.full(len(tables), len(tables) - 1)
    return read_around(np.stack(tables), newest)


def _reader_of(path: Path, told: dict[str, str], threads: int) -> tuple[ReaderSession | None, Floats]:
    """The reader beside a graph that was calibrated with one, and its share of each head."""
    if not told.get("reader"):
        return None, np.zeros(len(HEADS), np.float32)
    beside = path.with_suffix(READER)
    try:
        reader = ReaderSession(read_file(beside), threads)
        shares = np.array(json.loads(told["reader_shares"]), np.float32)
    except ReaderUnusable as error:
        raise MinutesModelUnusable(f"{beside}: {error}") from error
    except (KeyError, ValueError, TypeError) as error:
        raise MinutesModelUnusable(f"{path}: is no minutes model") from error
    if reader.digest != told["reader"] or shares.shape != (len(HEADS),) or not np.isfinite(shares).all():
        raise MinutesModelUnusable(f"{beside}: belongs to other weights than {path.name}")
    return reader, shares


def _described(path: Path, told: dict[str, str], cues: tuple[str, ...]) -> tuple[Layout, Calibration]:
    """Layout and calibration of a graph, held against what this version computes."""
    try:
        senses = [tuple(map(str, names)) for names in json.loads(told.get("senses", json.dumps(_EMPTY)))]
        layout = Layout(tuple(json.loads(told["cues"])), *senses)
        heads = tuple(json.loads(told["heads"]))
        calibration = Calibration.read(told["calibration"])
        named = told["name"]
    except (KeyError, ValueError, TypeError) as error:
        raise MinutesModelUnusable(f"{path}: is no minutes model") from error
    if not named or layout.cues != cues or heads != HEADS or told.get("layout") != layout.digest():
        raise MinutesModelUnusable(f"{path}: was made for another version of the product")
    if not np.isfinite([*calibration.slope, *calibration.shift]).all():
        raise MinutesModelUnusable(f"{path}: its calibration is broken")
    return layout, calibration
