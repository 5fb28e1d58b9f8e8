"""Slides of the sample meeting: drawn with Pillow and DejaVu Sans, encoded as 1080p30 H.264 in MP4.

Font and encoder settings are those a screen capture would have: large text on a plain ground, no B-frames, a key
frame at least every two seconds and at every change, so that the stream can be cut and joined at any packet.
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
    with av.open(str(path), "w", format="mp4", options={"fflags": "+bitexact", "movflags": "+faststart"}) as file:
        stream = file.add_stream("libx264", rate=FRAMES_PER_SECOND)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.thread_count = 1  # x264 divides pictures by thread: the bytes would follow the machine
        stream.codec_context.options = {
            "preset": "medium", "tune": "stillimage", "crf": "26", "bf": "0",
            "g": str(KEY_FRAME_INTERVAL),
        }  # fmt: skip
        for index, slide in enumerate(_shown(slides, first_frames, frames)):
            frame = av.VideoFrame.from_ndarray(slide.pixels, format="rgb24").reformat(format="yuv420p")
            frame.pts = index
            frame.time_base = Fraction(1, FRAMES_PER_SECOND)
            if index in first_frames:
                frame.pict_type = av.video.frame.PictureType.I
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _shown(slides: Sequence[Slide], first_frames: Sequence[int], frames: int) -> Iterator[Slide]:
    """The slide on the screen, frame by frame."""
    current = 0
    for index in range(frames):
        while current + 1 < len(slides) and first_frames[current + 1] <= index:
            current += 1
        yield slides[current]


def _heading(canvas: Canvas, description: Mapping[str, Any]) -> None:
    canvas.bar((0, 0, WIDTH, 24), ACCENT)
    canvas.text((120, 110), description["title"], 88, bold=True, ink=ACCENT)
    canvas.bar((120, 240, WIDTH - 120, 246), FAINT)


def _title(canvas: Canvas, description: Mapping[str, Any]) -> None:
    canvas.bar((0, 0, 72, HEIGHT), ACCENT)
    canvas.text((200, 300), description["title"], 150, bold=True, ink=ACCENT)
    canvas.text((200, 500), description["subtitle"], 84)
    for index, text in enumerate(description["footer"]):
        canvas.text((200, 760 + 80 * index), text, 52)


def _bullets(canvas: Canvas, description: Mapping[str, Any]) -> None:
    _heading(canvas, description)
    for index, text in enumerate(description["bullets"]):
        top = 360 + 170 * index
        canvas.bar((130, top + 26, 154, top + 50), ACCENT)
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
