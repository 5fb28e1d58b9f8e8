"""Pictures become H.264 in MP4: no B-frames, a key frame at every cut and at least every two seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np
import numpy.typing as npt
from av.video.frame import PictureType

from devices.rooms.timing import FRAMES_PER_SECOND

KEY_FRAME_INTERVAL: Final = 2 * FRAMES_PER_SECOND

Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Picture:
    """One frame: planes as the encoder takes them (see `planes`), and whether it begins something new."""

    planes: Pixels
    cut: bool = False


def planes(pixels: Pixels) -> Pixels:
    """BGR pixels of shape (height, width, 3) as 4:2:0, shape (height * 3 / 2, width)."""
    frame = av.VideoFrame.from_ndarray(pixels, format="bgr24").reformat(format="yuv420p")
    return frame.to_ndarray().astype(np.uint8, copy=False)


def write_film(path: Path, pictures: Iterable[Picture], width: int, height: int, *, quality: int) -> None:
    """Encode pictures at 30 a second; `quality` is x264's constant rate factor, smaller is better."""
    container = {"fflags": "+bitexact", "movflags": "+faststart"}
    with av.open(str(path), "w", format="mp4", options=container) as file:
        stream = file.add_stream("libx264", rate=FRAMES_PER_SECOND)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        # x264 divides pictures among threads, so with more than one the bytes would depend on the machine.
        stream.codec_context.thread_count = 1
        stream.codec_context.options = {
            "preset": "superfast", "crf": str(quality), "bf": "0", "g": str(KEY_FRAME_INTERVAL),
            "x264-params": "scenecut=0:threads=1:lookahead-threads=1", "flags": "+bitexact",
        }  # fmt: skip
        for index, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture.planes, format="yuv420p")
            frame.pts, frame.time_base = index, Fraction(1, FRAMES_PER_SECOND)
            if picture.cut:
                frame.pict_type = PictureType.I
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
