"""Small picture features: a volume of cell averages per frame and square patches of a reduced frame.

Rates chosen for one camera: five volumes a second (5 maps of 9x16 float16: 7,200 bytes a second) and one
patch frame a second (32 patches of 16x16 bytes: 8,192 bytes a second), with their headers 16 KB a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from contracts.packet import Codec

LUMA_WIDTH: Final = 320
LUMA_HEIGHT: Final = 180
"""Size of the small luma frame: four pixels of a 720p picture a side, so that one short word is seen."""

VOLUME_ROWS: Final = 9
VOLUME_COLUMNS: Final = 16
VOLUME_MAPS: Final = ("luma", "motion", "detail", "across", "down")
"""Maps of one volume, in this order, each in 0..1:

luma: mean brightness of the cell.
motion: mean absolute change of brightness since the frame before, scaled down to a change per 200 ms
    where the frames are further apart.
detail: mean absolute difference between neighbouring pixels, which rises where somebody writes on a board.
across, down: way that the cell's content went sideways and up or down, to and fro added up, in cells per
    200 ms; zero where the frames were too far apart to tell.
"""

PATCH_SIDE: Final = 16
PATCH_COLUMNS: Final = 8
PATCH_ROWS: Final = 4
PATCHES: Final = PATCH_COLUMNS * PATCH_ROWS

VOLUME_PERIOD_NS: Final = 200_000_000
PATCH_PERIOD_NS: Final = 1_000_000_000

CELL: Final = LUMA_WIDTH // VOLUME_COLUMNS
"""Side of a cell in pixels of the small frame."""
# The maps of a volume are those of a frame of half the small one's size.
_VOLUME_CELL = CELL // 2
# Camera noise moves every pixel by a level or two; only what exceeds it counts as motion.
_NOISE_LEVELS = 3.0

Luma = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """When two small frames show different pictures.

    levels: least difference in brightness (0..255) for a pixel to count as changed.
    min_changed: changed pixels, outside spots of pointer size, from which it is another picture.
    pointer_width, pointer_height: spots up to this size are a mouse pointer and never a change: 28 by 36
        pixels of a 720p picture.
    """

    levels: int = 12
    min_changed: int = 16
    pointer_width: int = 7
    pointer_height: int = 9


def changed_pixels(a: Luma, b: Luma, settings: ChangeSettings, ignore: Mask | None = None) -> Mask | None:
    """Where two small frames differ by more than a pointer, or None where they show the same picture.

    `a`, `b`: (180, 320) uint8. `ignore`: (180, 320) bool, areas that are not compared. Result: bool of the
    same shape.
    """
    changed = (cv2.absdiff(a, b) > settings.levels).astype(np.uint8)
    if ignore is not None:
        changed[ignore] = 0
    if int(np.count_nonzero(changed)) < settings.min_changed:
        return None
    # Letters of one line come apart at this size; widening joins them, so that a line is one spot.
    joined = cv2.dilate(changed, np.ones((3, 3), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    wide = stats[:, cv2.CC_STAT_WIDTH] > settings.pointer_width + 2
    high = stats[:, cv2.CC_STAT_HEIGHT] > settings.pointer_height + 2
    large = wide | high
    large[0] = False
    where = large[labels] & changed.astype(np.bool_)
    return where if int(np.count_nonzero(where)) >= settings.min_changed else None


def small_luma(plane: NDArray[np.uint8]) -> Luma:
    """Averages a luma plane of any shape (height, width) down to (180, 320), uint8."""
    resized = cv2.resize(plane, (LUMA_WIDTH, LUMA_HEIGHT), interpolation=cv2.INTER_AREA)
    return np.asarray(resized, dtype=np.uint8)


def sharpness(plane: NDArray[np.uint8]) -> float:
    """Variance of the Laplacian of a luma plane at half size; higher is sharper, no unit.

    Source: Pech-Pacheco et al., "Diatom autofocusing in brightfield microscopy", 2000.
    """
    half = cv2.resize(plane, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    return float(cv2.Laplacian(half, cv2.CV_16S).var())


def volume(
    luma: Luma, before: Luma | None, elapsed_ns: int, ways: NDArray[np.float32] | None = None
) -> NDArray[np.float16]:
    """Feature volume of one frame: shape (5, 9, 16) float16, maps as in `VOLUME_MAPS`.

    `before` is the small luma of the frame `elapsed_ns` earlier; without one, motion is zero. `ways`: the maps
    across and down, (2, 9, 16), as `movement.Movement` gathers them; None: zero.
    """
    current = _halved(luma)
    motion = np.zeros_like(current)
    if before is not None and elapsed_ns > 0:
        change = np.abs(current - _halved(before)) - np.float32(_NOISE_LEVELS)
        scale = np.float32(min(1.0, VOLUME_PERIOD_NS / elapsed_ns))
        motion = np.maximum(change, np.float32(0.0)) * scale
    detail = np.zeros_like(current)
    detail[:, 1:] += np.abs(np.diff(current, axis=1))
    detail[1:, :] += np.abs(np.diff(current, axis=0))
    maps = [_cells(each) for each in (current, motion, detail * np.float32(0.5))]
    gone = np.zeros((2, VOLUME_ROWS, VOLUME_COLUMNS), np.float32) if ways is None else np.clip(ways, 0.0, 1.0)
    return np.concatenate([np.stack(maps) / 255.0, gone]).astype(np.float16)


def patches(luma_plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Patches of the frame reduced to 128x64: shape (32, 16, 16) uint8, row by row from the top left.

    The frame is squeezed to 2:1, so that 32 patches cover it whole whatever its shape.
    """
    reduced = cv2.resize(
        luma_plane, (PATCH_COLUMNS * PATCH_SIDE, PATCH_ROWS * PATCH_SIDE), interpolation=cv2.INTER_AREA
    )
    grid = np.asarray(reduced, dtype=np.uint8).reshape(PATCH_ROWS, PATCH_SIDE, PATCH_COLUMNS, PATCH_SIDE)
    return np.ascontiguousarray(grid.transpose(0, 2, 1, 3)).reshape(PATCHES, PATCH_SIDE, PATCH_SIDE)


def volume_bytes(features: NDArray[np.float16]) -> bytes:
    """Payload of a VOLUME_F16 packet (width 16, height 9, channels 5): little-endian float16."""
    return features.astype("<f2").tobytes()


def patch_bytes(features: NDArray[np.uint8]) -> bytes:
    """Payload of a PATCHES_U8 packet (width 16, height 16, channels 1): 32 patches of 256 bytes."""
    return features.tobytes()


@dataclass(frozen=True, slots=True)
class FeatureBlock:
    """One PICTURE_FEATURES packet to be: its codec, payload and the header fields that describe them."""

    codec: Codec
    timestamp_ns: int
    duration_ns: int
    payload: bytes
    width: int
    height: int
    channels: int


class FeatureThinner:
    """Keeps the features of one meeting within the rate of one camera, however many it has.

    With n picture streams each gives a volume every n * 200 ms and patches every n seconds at most.
    """

    def __init__(self) -> None:
        self._given: dict[str, tuple[int, int]] = {}

    def take(
        self,
        stream: str,
        timestamp_ns: int,
        volume_maps: NDArray[np.float16],
        patch_grid: NDArray[np.uint8] | None,
    ) -> list[FeatureBlock]:
        """Blocks to publish for one frame: none, a volume (5, 9, 16), patches (32, 16, 16) or both."""
        volume_ns, patches_ns = self._given.setdefault(stream, (_LONG_AGO_NS, _LONG_AGO_NS))
        share = len(self._given)
        blocks = []
        if _due(timestamp_ns, volume_ns, share * VOLUME_PERIOD_NS):
            volume_ns = timestamp_ns
            payload = volume_bytes(volume_maps)
            period_ns = share * VOLUME_PERIOD_NS
            size = (VOLUME_COLUMNS, VOLUME_ROWS, len(VOLUME_MAPS))
            blocks.append(FeatureBlock(Codec.VOLUME_F16, timestamp_ns, period_ns, payload, *size))
        if patch_grid is not None and _due(timestamp_ns, patches_ns, share * PATCH_PERIOD_NS):
            patches_ns = timestamp_ns
            payload = patch_bytes(patch_grid)
            period_ns = share * PATCH_PERIOD_NS
            size = (PATCH_SIDE, PATCH_SIDE, 1)
            blocks.append(FeatureBlock(Codec.PATCHES_U8, timestamp_ns, period_ns, payload, *size))
        self._given[stream] = (volume_ns, patches_ns)
        return blocks

    def state(self) -> dict[str, list[int]]:
        """Plain values for a snapshot."""
        return {stream: list(given) for stream, given in self._given.items()}

    @classmethod
    def from_state(cls, state: dict[str, list[int]]) -> FeatureThinner:
        """Goes on where `state` was taken."""
        thinner = cls()
        thinner._given = {stream: (given[0], given[1]) for stream, given in state.items()}
        return thinner


_LONG_AGO_NS: Final = -(2**62)


def _due(timestamp_ns: int, last_ns: int, period_ns: int) -> bool:
    # Frames do not come on the dot: one that is a little early would else be passed over for the next.
    # A stamp before the last one is another clock, and counts anew.
    return not 0 <= timestamp_ns - last_ns < period_ns - VOLUME_PERIOD_NS // 10


def _cells(values: NDArray[np.float32]) -> NDArray[np.float32]:
    means = values.reshape(VOLUME_ROWS, _VOLUME_CELL, VOLUME_COLUMNS, _VOLUME_CELL).mean(axis=(1, 3))
    return np.asarray(means, np.float32)


def _halved(luma: Luma) -> NDArray[np.float32]:
    # In whole levels, as a frame of that size would have been made of the picture itself.
    half = cv2.resize(luma, (LUMA_WIDTH // 2, LUMA_HEIGHT // 2), interpolation=cv2.INTER_AREA)
    return np.asarray(half, np.float32)
