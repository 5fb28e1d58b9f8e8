"""What the network reads: a window of utterances at full resolution, and older talk ever coarser.

Everything here is numpy alone, and one piece of code for training and for meetings. A window is a pure function of
the utterances heard so far; what it keeps of them is bounded, however long a meeting lasts.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from models.minutes import words
from models.minutes.encoder import STATES, TEXT_WIDTH, Vectors

WINDOW: Final = 20
"""Utterances at full resolution."""

SETTLED: Final = 2
"""Utterances that a settled score has seen after its own."""

FINAL: Final = 8
"""Utterances that a final score has seen after its own, where the meeting had them."""

SPEAKERS: Final = 8
GLOBALS: Final = 4
MODALITIES: Final = ("utterance", "text", "sound", "picture", "slide", "older")
ALLOWED: Final = (
    *((0, seen) for seen in range(5)),
    *((1, seen) for seen in range(5)),
    (2, 0), (2, 1), (2, 2), (2, 3),
    (3, 0), (3, 1), (3, 2), (3, 3),
    (4, 0), (4, 1), (4, 4),
    (5, 5),
)  # fmt: skip
"""Who sees whom inside a window: (looks, is seen). What the camera shows says nothing of a slide, and the reverse."""

CHUNK: Final = 8
"""Utterances of the finest summary of older talk; each level is twice as coarse."""
_KEPT_A_LEVEL: Final = 4
_LEVELS: Final = 10
_STRUCTURE: Final = 3 + SPEAKERS

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Told:
    """What the network reads of one utterance. A sense that is missing is None: it then has no token."""

    speaker: str
    words: int
    text: Vectors
    """Vectors of its pieces as :class:`models.minutes.encoder.Encoder` makes them, at least one."""
    cues: tuple[float, ...]
    """What the rules saw (``operators.understand.cues``)."""
    sound: tuple[float, ...] | None = None
    picture: tuple[float, ...] | None = None
    slide: tuple[float, ...] | None = None
    grams: tuple[int, ...] = ()
    """Buckets of its words (:func:`models.minutes.words.grams_of`)."""
    read: Floats | None = None
    """What the reader says of it (:mod:`models.minutes.reading`); None where there is no reader."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the figures that go in; weights are made for one. A sense without names has no part in a network."""

    cues: tuple[str, ...]
    sound: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    slide: tuple[str, ...] = ()

    @property
    def core(self) -> int:
        """Figures of an utterance besides its text."""
        return _STRUCTURE + len(self.cues)

    @property
    def widths(self) -> dict[str, int]:
        """Figures of a token of each kind that a network of this layout reads, besides the utterances themselves."""
        senses = {"sound": len(self.sound), "picture": len(self.picture), "slide": len(self.slide)}
        return {"text": TEXT_WIDTH, **{name: width for name, width in senses.items() if width}}

    @property
    def older(self) -> int:
        """Figures of a chunk of older talk."""
        return STATES + 2 * len(self.cues) + 2

    def digest(self) -> str:
        """Short name of everything that weights rely on."""
        told = [self.cues, self.sound, self.picture, self.slide, WINDOW, SPEAKERS, GLOBALS, ALLOWED, CHUNK]
        told += [_KEPT_A_LEVEL, _LEVELS, TEXT_WIDTH, "pieces of one are spoken alone", words.VERSION]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive utterances in sums, so that two chunks make a coarser one."""

    count: int
    text: Floats
    cues: Floats
    most: Floats

    def joined(self, later: "Chunk") -> "Chunk":
        """Both as one."""
        return Chunk(
            self.count + later.count,
            self.text + later.text,
            self.cues + later.cues,
            np.maximum(self.most, later.most),
        )


@dataclass(frozen=True, slots=True)
class Context:
    """A meeting so far, as far as the network sees it: plain arrays, bounded, exact on replay."""

    recent: tuple[Told, ...] = ()
    growing: Chunk | None = None
    """Utterances that have left the window and do not fill a chunk yet."""
    levels: tuple[tuple[Chunk, ...], ...] = field(default=())
    """Chunks of older talk, the finest level first, oldest first within a level."""

    def heard(self, told: Told) -> "Context":
        """With one more utterance."""
        if len(self.recent) < WINDOW:
            return Context((*self.recent, told), self.growing, self.levels)
        fresh = _chunk(self.recent[0])
        growing = fresh if self.growing is None else self.growing.joined(fresh)
        levels = self.levels
        if growing.count >= CHUNK:
            levels, left = _pushed(levels, growing), None
        else:
            left = growing
        return Context((*self.recent[1:], told), left, levels)

    def window(self) -> "Window":
        """What the network is asked about now."""
        older = [chunk for level in reversed(self.levels) for chunk in level]
        return Window(self.recent, (*older, self.growing) if self.growing is not None else tuple(older))


@dataclass(frozen=True, slots=True)
class Window:
    """Utterances oldest first, and what came before them."""

    utterances: tuple[Told, ...]
    older: tuple[Chunk, ...] = ()


def _chunk(told: Told) -> Chunk:
    cues = np.array(told.cues, np.float32)
    return Chunk(1, told.text[:, :STATES].astype(np.float32).mean(axis=0), cues, cues)


def _pushed(levels: tuple[tuple[Chunk, ...], ...], chunk: Chunk) -> tuple[tuple[Chunk, ...], ...]:
    """A full chunk more; a level that overflows hands its two oldest, as one, to the next."""
    out: list[tuple[Chunk, ...]] = list(levels)
    moving: Chunk | None = chunk
    for depth in range(_LEVELS):
        if moving is None:
            break
        if depth == len(out):
            out.append(())
        here = (*out[depth], moving)
        moving = None
        if len(here) > _KEPT_A_LEVEL:
            both = here[0].joined(here[1])
            last = depth == _LEVELS - 1
            here = (both, *here[2:]) if last else here[2:]
            moving = None if last else both
        out[depth] = here
    return tuple(out)


def feeds(windows: Sequence[Window], layout: Layout) -> dict[str, npt.NDArray[np.generic]]:
    """Inputs of the graph for a batch of windows; each stands for itself.

    * ``utterance`` (N, layout.core) and ``place`` (N): figures of each utterance, and how far from the newest it is.
    * ``text`` (pieces of utterances that have several), and ``sound``, ``picture``, ``slide`` where the layout has
      them: rows of figures; ``text_of`` and so on: the utterance each belongs to.
    * ``grams`` (N, G): buckets of each utterance's words, filled up with 0.
    * ``spoken`` (N, TEXT_WIDTH): mean over an utterance's pieces; ``cell`` (N): its place in ``grid``, flat.
    * ``older`` (O, layout.older).
    * ``order`` (tokens): where each content token of the packed batch comes from, counting through the six
      modalities.
    * ``grid`` (windows, WINDOW): utterance at each place, -1 where there is none.
    * ``window_starts``, ``window_meeting``, ``meeting_windows``, ``global_starts``, ``modality``: the plan of the
      attention operator (``kernels.plan``).
    """
    rows = _Rows(layout)
    for window in windows:
        rows.add(window)
    return rows.arrays()


class _Rows:
    """Rows of a batch in the making."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._utterance: list[Floats] = []
        self._place: list[int] = []
        self._spoken: list[Floats] = []
        self._grams: list[tuple[int, ...]] = []
        self._cell: list[int] = []
        self._figures: dict[str, list[npt.ArrayLike]] = {name: [] for name in MODALITIES[1:]}
        self._of: dict[str, list[int]] = {name: [] for name in MODALITIES[1:5]}
        self._tokens: list[tuple[int, int]] = []
        self._starts = [0]
        self._owners: list[int] = []
        self._first_windows = [0]
        self._grid: list[list[int]] = []

    def add(self, window: Window) -> None:
        meeting = len(self._grid)
        if window.older:
            since = np.cumsum([0, *(chunk.count for chunk in window.older[:0:-1])])[::-1]
            for chunk, later in zip(window.older, since, strict=True):
                self._token("older", _older(chunk, int(later)))
            self._close(meeting)
        grid = [-1] * WINDOW
        slots = _slots(window.utterances)
        for index, told in enumerate(window.utterances):
            place, row = len(window.utterances) - 1 - index, len(self._place)
            grid[place] = row
            self._tokens.append((0, row))
            before = window.utterances[index - 1] if index else None
            self._utterance.append(_core(told, before, slots[told.speaker]))
            self._place.append(place)
            text = told.text.astype(np.float32)
            self._spoken.append(text[0] if len(text) == 1 else text.mean(axis=0))
            self._cell.append(meeting * WINDOW + place)
            self._grams.append(told.grams)
            if len(told.text) > 1:
                # The text of a single piece is in `spoken` already.
                for piece in told.text:
                    self._token("text", piece, row)
            for name, figures in (("sound", told.sound), ("picture", told.picture), ("slide", told.slide)):
                if figures is not None and name in self._layout.widths:
                    self._token(name, figures, row)
        self._close(meeting)
        self._first_windows.append(len(self._owners))
        self._grid.append(grid)

    def _token(self, name: str, figures: npt.ArrayLike, row: int | None = None) -> None:
        self._tokens.append((MODALITIES.index(name), len(self._figures[name])))
        self._figures[name].append(figures)
        if row is not None:
            self._of[name].append(row)

    def _close(self, meeting: int) -> None:
        if len(self._tokens) > self._starts[-1]:
            self._starts.append(len(self._tokens))
            self._owners.append(meeting)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        layout = self._layout
        widths = layout.widths
        sizes = [len(self._place), *(len(self._figures[name]) for name in MODALITIES[1:])]
        begin = np.concatenate([[0], np.cumsum(sizes)])
        kinds = np.array([kind for kind, _ in self._tokens], np.int64)
        at = np.array([row for _, row in self._tokens], np.int64)
        globals_ = np.arange(len(self._grid) + 1) * GLOBALS + len(self._tokens)
        out: dict[str, npt.NDArray[np.generic]] = {
            "utterance": _stacked(self._utterance, layout.core),
            "place": np.array(self._place, np.int64),
            "spoken": _stacked(self._spoken, TEXT_WIDTH),
            "cell": np.array(self._cell, np.int64),
            "grams": _filled(self._grams),
            **{name: _stacked(self._figures[name], width) for name, width in widths.items()},
            **{f"{name}_of": np.array(self._of[name], np.int64) for name in widths},
            "older": _stacked(self._figures["older"], layout.older),
            "order": begin[kinds] + at if len(kinds) else at,
            "grid": np.array(self._grid, np.int64).reshape(-1, WINDOW),
            "window_starts": np.array(self._starts, np.int32),
            "window_meeting": np.array(self._owners, np.int32),
            "meeting_windows": np.array(self._first_windows, np.int32),
            "global_starts": globals_.astype(np.int32),
            "modality": kinds.astype(np.int32),
        }
        return out


def _stacked(rows: Sequence[npt.ArrayLike], width: int) -> Floats:
    if not rows:
        return np.zeros((0, width), np.float32)
    return np.asarray(rows, np.float32).reshape(-1, width)


def _filled(rows: Sequence[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    out = np.zeros((len(rows), max(1, *map(len, rows)) if rows else 1), np.int64)
    for at, row in enumerate(rows):
        out[at, : len(row)] = row
    return out


def _slots(utterances: Sequence[Told]) -> dict[str, int]:
    """Speakers by how lately they spoke; those beyond the last slot share it."""
    slots: dict[str, int] = {}
    for told in reversed(utterances):
        slots.setdefault(told.speaker, min(len(slots), SPEAKERS - 1))
    return slots


def _core(told: Told, before: Told | None, slot: int) -> Floats:
    who = [0.0] * SPEAKERS
    who[slot] = 1.0
    known = [float(bool(told.speaker)), float(before is not None and before.speaker == told.speaker)]
    size = [float(np.log1p(min(told.words, 400)) / 6.0)]
    return np.array([*size, *known, *who, *told.cues], np.float32)


def _older(chunk: Chunk, later: int) -> Floats:
    """Figures of a chunk after which `later` utterances left the window."""
    size = [np.log1p(chunk.count) / 10.0, np.log1p(later) / 10.0]
    return np.concatenate([chunk.text / chunk.count, chunk.cues / chunk.count, chunk.most, size]).astype(
        np.float32
    )
