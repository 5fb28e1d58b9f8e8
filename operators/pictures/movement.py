"""Which way things move in a picture, cell by cell: what tells a nod from a shake of the head.

The displacement of a cell between two frames is the least-squares solution of the brightness equation over its
pixels (Lucas and Kanade, "An iterative image registration technique", IJCAI 1981), one step, held towards zero
where a cell has little texture. It holds for displacements of up to about two pixels of the reduced frame, so
frames must be close together.
"""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH: Final = 160
HEIGHT: Final = 90
CELL: Final = 10
SPACING_NS: Final = 60_000_000
"""Frames closer than this to the one before are passed over: it would cost without telling more."""
FURTHEST_NS: Final = 150_000_000
"""Between frames further apart a head may have been anywhere."""
_TEXTURE: Final = 200.0
"""Added to the squared gradients of a cell: the gradients of a sensor's noise give no displacement."""
_MOST_PIXELS: Final = 4.0
_PER_NS: Final = 200_000_000

Reduced = NDArray[np.float32]


def reduced(plane: NDArray[np.uint8]) -> Reduced:
    """A luma plane of any shape as float32 (90, 160), a little blurred so that gradients hold for a pixel or two."""
    small = cv2.resize(plane, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.GaussianBlur(small.astype(np.float32), (5, 5), 1.2), np.float32)


def displacement(before: Reduced, after: Reduced) -> NDArray[np.float32]:
    """Displacement of each cell in pixels of the reduced frame: shape (2, 9, 16), right and down positive."""
    middle = (before + after) * np.float32(0.5)
    across, down, changed = np.zeros_like(middle), np.zeros_like(middle), after - before
    across[:, 1:-1] = (middle[:, 2:] - middle[:, :-2]) * np.float32(0.5)
    down[1:-1] = (middle[2:] - middle[:-2]) * np.float32(0.5)
    xx, yy = _sums(across * across) + _TEXTURE, _sums(down * down) + _TEXTURE
    xy, xt, yt = _sums(across * down), _sums(across * changed), _sums(down * changed)
    determinant = xx * yy - xy * xy
    moved = np.stack([(xy * yt - yy * xt) / determinant, (xy * xt - xx * yt) / determinant])
    return np.asarray(np.clip(moved, -_MOST_PIXELS, _MOST_PIXELS), np.float32)


class Movement:
    """Gathers displacements of one camera's frames until they are taken."""

    def __init__(self) -> None:
        self._last: tuple[int, Reduced] | None = None
        self._ways = np.zeros((2, HEIGHT // CELL, WIDTH // CELL), np.float32)
        self._spent_ns = 0

    def see(self, timestamp_ns: int, plane: NDArray[np.uint8]) -> None:
        """The next frame's luma, any size."""
        elapsed_ns = SPACING_NS if self._last is None else timestamp_ns - self._last[0]
        if 0 < elapsed_ns < SPACING_NS:
            return
        frame = reduced(plane)
        if self._last is not None and 0 < elapsed_ns <= FURTHEST_NS:
            self._ways += np.abs(displacement(self._last[1], frame))
            self._spent_ns += elapsed_ns
        self._last = (timestamp_ns, frame)

    def take(self) -> NDArray[np.float32]:
        """Way of each cell across and down since the last call, in cells per 200 ms: shape (2, 9, 16)."""
        scale = _PER_NS / (CELL * max(self._spent_ns, 1)) if self._spent_ns else 0.0
        taken = np.asarray(self._ways * np.float32(scale), np.float32)
        self._ways = np.zeros_like(self._ways)
        self._spent_ns = 0
        return taken


def _sums(values: Reduced) -> NDArray[np.float32]:
    cells = values.reshape(HEIGHT // CELL, CELL, WIDTH // CELL, CELL)
    return np.asarray(cells.sum(axis=(1, 3)), np.float32)
