"""The screen of a made-up meeting: slides drawn with OpenCV's own font, and what stands there at which frame."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import cv2
import numpy as np

from devices.rooms.film import Picture, Pixels, planes
from devices.rooms.script import Script, ScriptError, SlideScript
from devices.rooms.timing import FRAMES_PER_SECOND, Placed
from devices.rooms.voices import SAMPLE_RATE_HZ

WIDTH, HEIGHT = 1920, 1080
FLASH_FRAMES: Final = 3
Box = tuple[int, int, int, int]
Colour = tuple[int, int, int]
_REGULAR, _BOLD = 400, 650
_PAGE_CHARACTERS: Final = 62


@dataclass(frozen=True)
class Theme:
    """Colours as blue, green, red."""

    ground: Colour
    ink: Colour
    accent: Colour
    faint: Colour


THEMES: Final = {
    "light": Theme((255, 255, 255), (51, 39, 27), (168, 95, 31), (236, 226, 217)),
    "dark": Theme((38, 28, 22), (235, 232, 228), (120, 210, 255), (80, 66, 58)),
    "photo": Theme((90, 84, 70), (250, 250, 250), (160, 235, 255), (120, 112, 100)),
}


@dataclass(frozen=True)
class TextLine:
    """One line of text with its pixel box (left, top, right, bottom)."""

    text: str
    box: Box


@dataclass(frozen=True)
class Slide:
    """A drawn slide: BGR pixels of shape (at least 1080, 1920, 3) and its lines in reading order."""

    pixels: Pixels
    lines: tuple[TextLine, ...]

    def visible(self, offset: int) -> tuple[TextLine, ...]:
        """Lines wholly on the screen when the page is moved up by `offset` pixels; boxes on the screen."""
        moved = (
            TextLine(ln.text, (ln.box[0], ln.box[1] - offset, ln.box[2], ln.box[3] - offset))
            for ln in self.lines
        )
        return tuple(ln for ln in moved if ln.box[1] >= 0 and ln.box[3] <= HEIGHT)


@dataclass(frozen=True)
class Shown:
    """What the screen shows from `start_frame` to `end_frame`; a page moves from one offset to the other."""

    slide: Slide
    number: int
    """Place of the slide in the script, counted from 0; an earlier slide shown again keeps its own."""
    start_frame: int
    end_frame: int
    offset_from: int = 0
    offset_to: int = 0
    build: bool = False
    again: bool = False


@dataclass
class _Canvas:
    """A picture being drawn and the lines of text written on it so far."""

    pixels: Pixels
    theme: Theme
    lines: list[TextLine] = field(default_factory=list)

    def text(
        self, left: int, top: int, text: str, size: int, *, bold: bool = False, accent: bool = False
    ) -> int:
        """Write one line, `top` being that of a capital letter; the right edge of what was drawn."""
        region = self.pixels[max(0, top - size) : top + 2 * size]
        before = region.copy()
        colour = self.theme.accent if accent else self.theme.ink
        weight = _BOLD if bold else _REGULAR
        baseline = top + round(0.7 * size)
        cv2.putText(self.pixels, text, (left, baseline), colour, _font(), size, weight)
        rows, columns = np.nonzero(np.any(region != before, axis=2))
        if not len(rows) or int(columns.max()) >= WIDTH - 1:
            raise ScriptError(f"a slide has no room for {text!r} or no letters for it")
        up = max(0, top - size)
        box = (int(columns.min()), up + int(rows.min()), int(columns.max()) + 1, up + int(rows.max()) + 1)
        self.lines.append(TextLine(text, box))
        return box[2]

    def bar(self, box: Box, colour: Colour) -> None:
        """Fill a rectangle."""
        cv2.rectangle(self.pixels, box[:2], (box[2] - 1, box[3] - 1), colour, cv2.FILLED)


def draw(script: SlideScript) -> Slide:
    """One slide. Raises ScriptError for text that does not fit."""
    theme = THEMES[script.theme]
    height = HEIGHT
    if script.kind == "page":
        height = max(HEIGHT, 420 + 66 * len(_page_lines(script.paragraphs)))
    pixels = np.full((height, WIDTH, 3), theme.ground, np.uint8)
    if script.theme == "photo":
        pixels = _photo(pixels)
    canvas = _Canvas(pixels, theme)
    kinds = {"title": _title, "bullets": _bullets, "table": _table, "chart": _chart, "page": _page}
    kinds[script.kind](canvas, script)
    return Slide(canvas.pixels, tuple(canvas.lines))


def plan(script: Script, placed: Sequence[Placed], frames: int) -> tuple[Shown, ...]:
    """What is on the screen when.

    Raises:
        ScriptError: slides that do not follow each other.
    """
    starts = {p.line.id: p.speech_start / SAMPLE_RATE_HZ for p in placed}
    begins = [
        0 if s.before is None else round((starts[s.before] - s.lead_s) * FRAMES_PER_SECOND)
        for s in script.slides
    ]
    shown: list[Shown] = []
    drawn: dict[int, Slide] = {}
    for place, (slide, begin) in enumerate(zip(script.slides, begins, strict=True)):
        end = begins[place + 1] if place + 1 < len(begins) else frames
        if not 0 <= begin < end <= frames:
            raise ScriptError(f"slides.{place}: shown from frame {begin} to {end} of {frames}")
        number = next(n for n, s in enumerate(script.slides) if s.id == slide.show) if slide.show else place
        if number not in drawn:
            drawn[number] = draw(script.slides[number])
        page = drawn[number]
        travel = page.pixels.shape[0] - HEIGHT
        if slide.scroll_before is None or travel <= 0:
            shown.append(Shown(page, number, begin, end, build=slide.build, again=slide.show is not None))
            continue
        move = round(starts[slide.scroll_before] * FRAMES_PER_SECOND)
        rest = move + round(slide.scroll_s * FRAMES_PER_SECOND)
        if not begin < move < rest < end:
            raise ScriptError(
                f"slides.{place}: scrolls from frame {move} to {rest}, but is shown {begin} to {end}"
            )
        shown.append(Shown(page, number, begin, move, build=slide.build, again=slide.show is not None))
        shown.append(Shown(page, number, move, rest, 0, travel))
        shown.append(Shown(page, number, rest, end, travel, travel))
    return tuple(shown)


def pictures(shown: Sequence[Shown], flash_frame: int | None = None) -> Iterator[Picture]:
    """Every frame of the screen."""
    white = planes(np.full((HEIGHT, WIDTH, 3), 255, np.uint8))
    for part in shown:
        still = planes(np.ascontiguousarray(part.slide.pixels[part.offset_from : part.offset_from + HEIGHT]))
        for frame in range(part.start_frame, part.end_frame):
            if flash_frame is not None and flash_frame <= frame < flash_frame + FLASH_FRAMES:
                yield Picture(white, frame == flash_frame)
                continue
            after_flash = flash_frame is not None and frame == flash_frame + FLASH_FRAMES
            cut = after_flash or frame == part.start_frame
            if part.offset_from == part.offset_to:
                yield Picture(still, cut)
            else:
                top = offset_at(part, frame)
                yield Picture(planes(np.ascontiguousarray(part.slide.pixels[top : top + HEIGHT])), cut)


def offset_at(part: Shown, frame: int) -> int:
    """Pixels by which the page is moved up at a frame: slow, fast, slow."""
    share = (frame - part.start_frame) / (part.end_frame - part.start_frame)
    eased = share * share * (3.0 - 2.0 * share)
    return part.offset_from + round((part.offset_to - part.offset_from) * eased)


@lru_cache(maxsize=1)
def _font() -> cv2.FontFace:
    return cv2.FontFace("sans")


def _photo(pixels: Pixels) -> Pixels:
    """Something like a dim photograph, the same each time: blurred noise of several sizes."""
    height, width = pixels.shape[:2]
    chance = np.random.default_rng(7)
    light = np.zeros((height, width, 3), np.float32)
    for cells, strength in ((4, 70.0), (16, 30.0), (90, 14.0)):
        coarse = chance.standard_normal((cells, cells * 2, 3)).astype(np.float32)
        light += strength * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(
            np.float32
        )
    return np.clip(pixels.astype(np.float32) + 0.5 * light, 0.0, 150.0).astype(np.uint8)


def _heading(canvas: _Canvas, script: SlideScript) -> None:
    canvas.bar((0, 0, WIDTH, 24), canvas.theme.accent)
    canvas.text(120, 130, script.title or "", 84, bold=True, accent=True)
    canvas.bar((120, 240, WIDTH - 120, 246), canvas.theme.faint)


def _title(canvas: _Canvas, script: SlideScript) -> None:
    canvas.bar((0, 0, 72, HEIGHT), canvas.theme.accent)
    canvas.text(200, 320, script.title or "", 112, bold=True, accent=True)
    canvas.text(200, 500, script.subtitle or "", 76)
    for index, text in enumerate(script.footer):
        canvas.text(200, 780 + 84 * index, text, 50)


def _bullets(canvas: _Canvas, script: SlideScript) -> None:
    _heading(canvas, script)
    step = min(160, 680 // max(1, len(script.bullets)))
    for index, text in enumerate(script.bullets):
        top = 340 + step * index
        canvas.bar((134, top + 16, 148, top + 30), canvas.theme.accent)
        canvas.text(210, top, text, min(64, step - 30))


def _table(canvas: _Canvas, script: SlideScript) -> None:
    _heading(canvas, script)
    columns = len(script.rows[0])
    step = min(150, 700 // len(script.rows))
    for row, cells in enumerate(script.rows):
        top = 330 + step * row
        if row == 0:
            canvas.bar((120, top - 40, WIDTH - 120, top + step - 44), canvas.theme.faint)
        for column, text in enumerate(cells):
            canvas.text(150 + (WIDTH - 300) * column // columns, top, text, min(52, step - 50), bold=row == 0)
        canvas.bar((120, top + step - 44, WIDTH - 120, top + step - 41), canvas.theme.faint)


def _chart(canvas: _Canvas, script: SlideScript) -> None:
    _heading(canvas, script)
    largest = max(amount for _, amount in script.bars)
    step = min(180, 720 // len(script.bars))
    for index, (name, amount) in enumerate(script.bars):
        top = 320 + step * index
        canvas.text(120, top + step // 4, name, 52)
        end = 820 + round(560 * amount / largest)
        canvas.bar((820, top, end, top + step * 6 // 10), canvas.theme.accent)
        canvas.text(end + 36, top + step // 4, f"{amount:,g} {script.unit or ''}".strip(), 52)


def _page(canvas: _Canvas, script: SlideScript) -> None:
    _heading(canvas, script)
    for index, text in enumerate(_page_lines(script.paragraphs)):
        if text:
            canvas.text(150, 330 + 66 * index, text, 44)


def _page_lines(paragraphs: Sequence[str]) -> list[str]:
    """Paragraphs broken into lines, an empty one between two."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(paragraph, _PAGE_CHARACTERS), ""]
    return lines[:-1]
