"""Slides of the sample meeting: drawn with Pillow and DejaVu Sans, encoded as 1080p30 H.264 in MP4.

Large text on a plain ground; no B-frames; a key frame at every change and at least every two seconds, so that
who joins late sees the slide within two seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Box = tuple[int, int, int, int]

WIDTH, HEIGHT = 1920, 1080
FRAMES_PER_SECOND = 30
KEY_FRAME_INTERVAL = 2 * FRAMES_PER_SECOND
FONT_FOLDER = Path("/usr/share/fonts/truetype/dejavu")
GROUND, INK, ACCENT, FAINT = "#ffffff", "#1b2733", "#1f5fa8", "#d9e2ec"


@dataclass(frozen=True)
class Line:
    """One line of text with its pixel box (left, top, right, bottom)."""

    text: str
    box: Box


@dataclass
class Canvas:
    """A picture being drawn and the lines of text written on it so far."""

    image: Image.Image = field(default_factory=lambda: Image.new("RGB", (WIDTH, HEIGHT), GROUND))
    lines: list[Line] = field(default_factory=list)

    def text(self, at: tuple[int, int], text: str, size: int, *, bold: bool = False, ink: str = INK) -> None:
        """Write one line with its top left corner at `at`."""
        name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
        font = ImageFont.truetype(str(FONT_FOLDER / name), size)
        draw = ImageDraw.Draw(self.image)
        left, top, right, bottom = draw.textbbox(at, text, font=font)
        draw.text(at, text, font=font, fill=ink)
        self.lines.append(Line(text, (int(left), int(top), int(right), int(bottom))))

    def bar(self, box: Box, colour: str) -> None:
        """Fill a rectangle."""
        ImageDraw.Draw(self.image).rectangle(box, fill=colour)


@dataclass(frozen=True)
class Slide:
    """A finished slide: pixels of shape (1080, 1920, 3), uint8 RGB, and its lines in reading order."""

    pixels: npt.NDArray[np.uint8]
    lines: tuple[Line, ...]


def missing_fonts() -> list[str]:
    """What has to be installed before slides can be drawn, one line each."""
    wanted = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
    if all((FONT_FOLDER / name).is_file() for name in wanted):
        return []
    return ["DejaVu Sans: apt-get install fonts-dejavu-core"]


def draw_slide(description: Mapping[str, Any]) -> Slide:
    """One slide of the script. Raises ValueError for a kind of slide that does not exist."""
    kinds: dict[str, Callable[[Canvas, Mapping[str, Any]], None]] = {
        "title": _title, "bullets": _bullets, "table": _table, "chart": _chart,
    }  # fmt: skip
    if description["kind"] not in kinds:
        raise ValueError(f"slide kind {description['kind']!r} is not one of {', '.join(kinds)}")
    canvas = Canvas()
    kinds[description["kind"]](canvas, description)
    return Slide(np.asarray(canvas.image), tuple(canvas.lines))


def write_video(path: Path, slides: Sequence[Slide], first_frames: Sequence[int], frames: int) -> None:
    """Encode `frames` frames; slide i is shown from frame first_frames[i] on (the first from frame 0)."""
    container = {"fflags": "+bitexact", "movflags": "+faststart"}
    with av.open(str(path), "w", format="mp4", options=container) as file:
        stream = file.add_stream("libx264", rate=FRAMES_PER_SECOND)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        # x264 divides pictures among threads, so with more than one the bytes would depend on the machine.
        stream.codec_context.thread_count = 1
        stream.codec_context.options = {
            "preset": "medium", "tune": "stillimage", "crf": "26", "bf": "0",
            "g": str(KEY_FRAME_INTERVAL),
        }  # fmt: skip
        planes = [_planes(slide) for slide in slides]
        for index, shown in enumerate(_shown(first_frames, frames)):
            frame = av.VideoFrame.from_ndarray(planes[shown], format="yuv420p")
            frame.pts = index
            frame.time_base = Fraction(1, FRAMES_PER_SECOND)
            if index in first_frames:
                frame.pict_type = av.video.frame.PictureType.I
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _planes(slide: Slide) -> npt.NDArray[np.uint8]:
    """The slide as the encoder takes it, converted once instead of for every frame."""
    frame = av.VideoFrame.from_ndarray(slide.pixels, format="rgb24").reformat(format="yuv420p")
    return frame.to_ndarray().astype(np.uint8, copy=False)


def _shown(first_frames: Sequence[int], frames: int) -> Iterator[int]:
    """Number of the slide on the screen, frame by frame."""
    current = 0
    for index in range(frames):
        while current + 1 < len(first_frames) and first_frames[current + 1] <= index:
            current += 1
        yield current


def _heading(canvas: Canvas, description: Mapping[str, Any]) -> None:
    canvas.bar((0, 0, WIDTH, 24), ACCENT)
    canvas.text((120, 110), description["title"], 88, bold=True, ink=ACCENT)
    canvas.bar((120, 240, WIDTH - 120, 246), FAINT)


def _title(canvas: Canvas, description: Mapping[str, Any]) -> None:
    canvas.bar((0, 0, 72, HEIGHT), ACCENT)
    canvas.text((200, 300), description["title"], 120, bold=True, ink=ACCENT)
    canvas.text((200, 480), description["subtitle"], 84)
    for index, text in enumerate(description["footer"]):
        canvas.text((200, 760 + 80 * index), text, 52)


def _bullets(canvas: Canvas, description: Mapping[str, Any]) -> None:
    _heading(canvas, description)
    for index, text in enumerate(description["bullets"]):
        top = 360 + 170 * index
        canvas.bar((134, top + 32, 148, top + 46), ACCENT)
        canvas.text((210, top), text, 68)


def _table(canvas: Canvas, description: Mapping[str, Any]) -> None:
    _heading(canvas, description)
    for row, cells in enumerate(description["rows"]):
        top = 340 + 180 * row
        if row == 0:
            canvas.bar((120, top - 30, WIDTH - 120, top + 100), FAINT)
        for column, text in enumerate(cells):
            canvas.text((150 + (0, 780, 1230)[column], top), text, 60, bold=row == 0)
        canvas.bar((120, top + 118, WIDTH - 120, top + 121), FAINT)


def _chart(canvas: Canvas, description: Mapping[str, Any]) -> None:
    _heading(canvas, description)
    largest = max(amount for _, amount in description["bars"])
    for index, (name, amount) in enumerate(description["bars"]):
        top = 350 + 210 * index
        canvas.text((120, top + 20), name, 60)
        end = 860 + round(480 * amount / largest)
        canvas.bar((860, top, end, top + 110), ACCENT)
        canvas.text((end + 40, top + 20), f"{amount:,} {description['unit']}", 60)
