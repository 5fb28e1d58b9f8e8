"""Reads the text of a slide picture with the RapidOCR networks that come inside its wheel.

The reader does no change detection: it is asked once per new slide and takes about a second of one core,
so callers run it in a background thread. ONNX Runtime releases the interpreter lock while it computes.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.speech_recogniser import ModelError

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as shares of the picture's width and height, 0..1, y downwards."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text on a slide; `confidence` is the recogniser's mean character probability, 0..1."""

    text: str
    box: Box
    confidence: float


@dataclass(frozen=True, slots=True)
class SlideReaderSettings:
    """How a slide is read.

    `detect_side_px` bounds the longer side of the picture in which text is looked for. Lines are then cut
    from a picture of at most `read_side_px`, so small print keeps its pixels.
    """

    model_folder: Path | None = None
    detect_side_px: int = 960
    read_side_px: int = 2000
    threads: int = 1
    min_confidence: float = 0.6
    niceness: int = 5

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError("threads must be at least 1")
        if not 320 <= self.detect_side_px <= self.read_side_px:
            raise ValueError("detect_side_px must lie between 320 and read_side_px")
        if not 0.0 <= self.min_confidence <= 1.0:
            raise ValueError("min_confidence must lie between 0 and 1")

    def build(self) -> SlideReader:
        """Loads the networks; raises `ModelError` where a file is missing or damaged."""
        return SlideReader(self)


DETECTOR_FILE = "PP-OCRv6_det_small.onnx"
RECOGNISER_FILE = "PP-OCRv6_rec_small.onnx"


class SlideReader:
    """Text lines of a picture in reading order. One instance serves one thread at a time."""

    def __init__(self, settings: SlideReaderSettings) -> None:
        self._settings = settings
        detector, recogniser = _model_files(settings.model_folder)
        self._engine = _load(settings, detector, recogniser)

    def warm_up(self) -> None:
        """Runs both networks once, so that the first slide does not pay for their start."""
        picture = np.full((180, 320, 3), 255, dtype=np.uint8)
        picture[80:100, 40:280:6] = 0
        self.read(picture)

    def read(self, image_bgr: NDArray[np.uint8]) -> tuple[TextLine, ...]:
        """Reads one picture of shape (height, width, 3), uint8, BGR; returns lines in reading order.

        An empty picture or one without text gives an empty tuple.
        """
        if image_bgr.ndim != 3 or image_bgr.shape[2] != 3 or image_bgr.dtype != np.uint8:
            raise ValueError("image must be uint8 of shape (height, width, 3)")
        height, width = image_bgr.shape[:2]
        if min(height, width) < 16:
            return ()
        found = self._found(image_bgr)
        if _doubtful(found):
            # A captured screen may stand on its head; a true slide is never read as badly as that.
            turned = self._found(np.ascontiguousarray(image_bgr[::-1, ::-1]))
            if _sureness(turned) > _sureness(found):
                return tuple(replace(line, box=_turned(line.box)) for line in self._ordered(turned))
        return self._ordered(found)

    def _found(self, image_bgr: NDArray[np.uint8]) -> list[TextLine]:
        """Everything that may be a line, sure or not."""
        height, width = image_bgr.shape[:2]
        result: Any = self._engine(image_bgr)
        if result.boxes is None or result.txts is None or result.scores is None:
            return []
        lines = []
        for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
            cleaned = clean_text(str(text))
            if cleaned:
                lines.append(
                    TextLine(cleaned, _box(np.asarray(corners), width, height), round(float(score), 4))
                )
        return lines

    def _ordered(self, found: Sequence[TextLine]) -> tuple[TextLine, ...]:
        """The sure lines as a person reads them."""
        lines = [line for line in found if line.confidence >= self._settings.min_confidence]
        if not _on_its_side(lines):
            return reading_order(lines)
        upright = {_upright(line.box): line for line in lines}
        return tuple(
            upright[line.box]
            for line in reading_order([replace(line, box=box) for box, line in upright.items()])
        )


DOUBT = 0.75
"""Mean confidence, by characters, below which a picture may stand on its head."""


def _sureness(lines: Sequence[TextLine]) -> float:
    characters = sum(len(line.text) for line in lines)
    return sum(line.confidence * len(line.text) for line in lines) / characters if characters else 0.0


def _doubtful(lines: Sequence[TextLine]) -> bool:
    return len(lines) >= 2 and _sureness(lines) < DOUBT


def _on_its_side(lines: Sequence[TextLine]) -> bool:
    """Whether most text runs from top to bottom: the recogniser turns such lines, their order is to be turned too."""
    tall = sum(
        len(line.text) for line in lines if line.box[3] - line.box[1] > 2 * (line.box[2] - line.box[0])
    )
    return tall > sum(len(line.text) for line in lines) / 2


def _turned(box: Box) -> Box:
    """A box in the picture turned by half."""
    return (1 - box[2], 1 - box[3], 1 - box[0], 1 - box[1])


def _upright(box: Box) -> Box:
    """A box in the picture turned by a quarter, counter-clockwise, so that its text lies level."""
    return (box[1], 1 - box[2], box[3], 1 - box[0])


def run_niced(settings: SlideReaderSettings) -> None:
    """Lowers the priority of the calling thread; meant as the initializer of the pool that reads slides.

    On Linux niceness belongs to a thread, elsewhere to the whole process, so it is left alone there.
    """
    if settings.niceness and hasattr(os, "sched_getaffinity"):
        thread = threading.get_native_id()
        # A flow that was started with less priority keeps it: only root may raise it, others would fail.
        niceness = max(settings.niceness, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


_BULLETS = frozenset("•◦▪■□▸►▶‣●○∙·*–—-")


def clean_text(text: str) -> str:
    """Plain letters for full-width forms and ligatures, single blanks, no bullet in front.

    Empty where nothing but bullets and marks was read.
    """
    words = unicodedata.normalize("NFKC", text).split()
    while words and all(letter in _BULLETS for letter in words[0]):
        words = words[1:]
    if words and words[0][0] in _BULLETS - frozenset("*–—-"):
        words[0] = words[0].lstrip("".join(_BULLETS))
    cleaned = " ".join(word for word in words if word)
    return cleaned if any(letter.isalnum() for letter in cleaned) else ""


def _model_files(folder: Path | None) -> tuple[Path, Path]:
    if folder is None:
        try:
            folder = Path(str(files("rapidocr"))) / "models"
        except ModuleNotFoundError as error:
            raise ModelError("package rapidocr is not installed: slides cannot be read") from error
    found = (folder / DETECTOR_FILE, folder / RECOGNISER_FILE)
    for path in found:
        if not path.is_file():
            raise ModelError(f"slide reader model is missing: {path}")
    return found


def _load(settings: SlideReaderSettings, detector: Path, recogniser: Path) -> Any:
    # Imported late: the import takes most of a second and only the process that reads slides needs it.
    from rapidocr import RapidOCR

    threads = settings.threads
    try:
        engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                # Slides stand upright; the 180 degree classifier only costs time and turns some lines over.
                "Global.use_cls": False,
                "Global.max_side_len": settings.read_side_px,
                "Det.model_path": str(detector),
                "Det.limit_type": "max",
                "Det.limit_side_len": settings.detect_side_px,
                "Rec.model_path": str(recogniser),
                # On one core a batch saves nothing and pads every line to the longest of its batch.
                "Rec.rec_batch_num": 1,
                # Short lines are padded to this shape; the default of 320 wastes work on single words.
                "Rec.rec_img_shape": [3, 48, 160],
                "EngineConfig.onnxruntime.intra_op_num_threads": threads,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )
        engine(np.full((64, 64, 3), 255, dtype=np.uint8))
        engine(np.full((48, 96, 3), 255, dtype=np.uint8), use_det=False, use_rec=True)
        engine.update_params(use_det=True)
    except Exception as error:
        raise ModelError(f"slide reader model in {detector.parent} cannot be loaded: {error}") from error
    return engine


def _box(corners: NDArray[Any], width: int, height: int) -> Box:
    x0, y0 = corners.min(axis=0)
    x1, y1 = corners.max(axis=0)
    return (
        round(float(np.clip(x0 / width, 0, 1)), 5),
        round(float(np.clip(y0 / height, 0, 1)), 5),
        round(float(np.clip(x1 / width, 0, 1)), 5),
        round(float(np.clip(y1 / height, 0, 1)), 5),
    )


COLUMN_GAP = 0.02
"""Least width of the empty stripe between two columns, as a share of the picture's width."""

TABLE_CELL_CHARACTERS = 18
"""Side by side stripes whose lines are shorter than this and level with each other are rows of a table."""


def reading_order(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    """Orders lines as a person reads them: top-down, a left column before the one on its right.

    A stretch of lines is split at empty horizontal stripes first where a line spans the whole width
    (a title over two columns), then at the widest empty vertical stripe. Rows of a table stay together.
    """
    if len(lines) < 2:
        return tuple(lines)
    columns = _split_columns(lines)
    if columns is not None:
        left, right = columns
        return reading_order(left) + reading_order(right)
    bands = _split_bands(lines)
    if bands is not None:
        upper, lower = bands
        return reading_order(upper) + reading_order(lower)
    return _rows(lines)


def _split_columns(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine]] | None:
    by_left = sorted(lines, key=lambda line: (line.box[0], line.box[1], line.text))
    reach = by_left[0].box[2]
    best: tuple[float, int] | None = None
    for index in range(1, len(by_left)):
        gap = by_left[index].box[0] - reach
        if gap >= COLUMN_GAP and (best is None or gap > best[0]):
            best = (gap, index)
        reach = max(reach, by_left[index].box[2])
    if best is None:
        return None
    left, right = by_left[: best[1]], by_left[best[1] :]
    # A single line beside a block is a bullet, a page number or a label: it belongs to its row.
    if min(len(left), len(right)) < 2 or _is_table(left, right):
        return None
    return left, right


def _is_table(left: Sequence[TextLine], right: Sequence[TextLine]) -> bool:
    level = sum(any(_same_row(line.box, other.box) for other in left) for line in right)
    lengths = sorted(len(line.text) for line in (*left, *right))
    if level < 0.75 * len(right) or lengths[len(lengths) // 2] > TABLE_CELL_CHARACTERS:
        return False
    # Lines that follow closely are wrapped text of one cell, unless they are columns of figures.
    figures = sum(any(letter.isdigit() for letter in line.text) for line in right)
    return _stands_apart(left) or _stands_apart(right) or figures >= 0.5 * len(right)


def _stands_apart(lines: Sequence[TextLine]) -> bool:
    """Whether the lines of a stripe are further apart than those of a paragraph."""
    by_top = sorted(lines, key=lambda line: line.box[1])
    gaps = sorted(
        (below.box[1] - above.box[3]) / max(above.box[3] - above.box[1], 1e-6)
        for above, below in pairwise(by_top)
    )
    return gaps[len(gaps) // 2] >= 0.5


def _split_bands(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[TextLine]] | None:
    """Splits at the widest empty horizontal stripe; None where no stripe parts the lines."""
    by_top = sorted(lines, key=lambda line: (line.box[1], line.box[0], line.text))
    reach = by_top[0].box[3]
    best: tuple[float, int] | None = None
    for index in range(1, len(by_top)):
        gap = by_top[index].box[1] - reach
        if gap > 0 and (best is None or gap > best[0]):
            best = (gap, index)
        reach = max(reach, by_top[index].box[3])
    if best is None:
        return None
    return by_top[: best[1]], by_top[best[1] :]


def _rows(lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
    rows: list[list[TextLine]] = []
    for line in sorted(lines, key=lambda line: (line.box[1] + line.box[3], line.box[0], line.text)):
        if rows and _same_row(rows[-1][0].box, line.box):
            rows[-1].append(line)
        else:
            rows.append([line])
    return tuple(line for row in rows for line in sorted(row, key=lambda line: (line.box[0], line.text)))


def _same_row(a: Box, b: Box) -> bool:
    overlap = min(a[3], b[3]) - max(a[1], b[1])
    return overlap > 0.5 * min(a[3] - a[1], b[3] - b[1])
