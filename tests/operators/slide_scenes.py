"""Drawn screens, frame by frame: what people show in meetings and what makes a slide reader's life hard.

Everything is drawn from a seed at 1280x720, so that a scene is the same each time. A scene says how many
different slides it shows; a reader should ask for so many readings, and a few more are no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
WIDTH: Final = 1280
HEIGHT: Final = 720
FPS: Final = 5
POINTER: Final = np.array([[0, 0], [0, 17], [4, 13], [7, 19], [10, 18], [7, 12], [12, 12]], np.int32)
"""Outline of the usual mouse pointer, in pixels."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Frames at ``FPS``, and when each slide comes up (a letter names the slide).

    ``wasted``: how many readings more than slides are forgiven.
    """

    name: str
    frames: Callable[[], Iterator[Pixels]]
    starts_s: tuple[float, ...]
    letters: str = "abcdefgh"
    wasted: int = 0

    def text_at(self, at_s: float) -> str:
        """What stands on the screen at a time, in short."""
        return self.letters[max(0, sum(start_s <= at_s + 1e-6 for start_s in self.starts_s) - 1)]


def page(
    title: str, lines: Sequence[str], *, dark: bool = False, height_px: int = 30, top: int = 220,
    background: Pixels | None = None,
) -> Pixels:  # fmt: skip
    """A slide with a title and lines; ``height_px`` is about the height of a line's capitals."""
    paper, ink = ((24, 20, 18), (226, 230, 235)) if dark else ((250, 250, 250), (30, 25, 25))
    picture = np.full((HEIGHT, WIDTH, 3), paper, np.uint8) if background is None else background.copy()
    write(picture, title, 90, 130, 40, ink)
    for row, line in enumerate(lines):
        write(picture, line, 100, top + round(row * height_px * 2.1), height_px, ink)
    return picture


def write(picture: Pixels, text: str, x: int, y: int, height_px: int, ink: tuple[int, int, int]) -> None:
    """Text whose capitals are ``height_px`` high, its base line at ``y``."""
    scale = height_px / 22
    cv2.putText(
        picture, text, (x, y), cv2.FONT_HERSHEY_DUPLEX, scale, ink, max(1, round(scale * 1.6)), cv2.LINE_AA
    )  # fmt: skip


def photograph(seed: int) -> Pixels:
    """Soft shapes and grain, as a photograph behind text has them; dark enough for white letters."""
    chance = np.random.default_rng(seed)
    coarse = chance.integers(20, 120, (9, 16, 3), dtype=np.uint8)
    soft = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    grain = chance.normal(0, 4, soft.shape)
    return np.asarray(np.clip(soft.astype(np.float32) + grain, 0, 255), np.uint8)


def pointed(picture: Pixels, x: int, y: int, scale: float = 1.0) -> Pixels:
    """The picture with a mouse pointer on it."""
    out = picture.copy()
    shape = np.round(POINTER * scale).astype(np.int32) + np.array([x, y], np.int32)
    cv2.fillPoly(out, [shape], (255, 255, 255))
    cv2.polylines(out, [shape], True, (0, 0, 0), 1, cv2.LINE_AA)
    return out


def held(*parts: tuple[Pixels, float]) -> Iterator[Pixels]:
    """Each picture for so many seconds."""
    for picture, seconds in parts:
        for _ in range(round(seconds * FPS)):
            yield picture


TEXTS: Final = (
    ("Where we stand", ("Errors fixed last week: 9", "Errors still open: 3", "Import of old files works")),
    ("Budget", ("Advertising: 4,000 euros", "Hosting: 1,500 euros", "Left over: 800 euros")),
    ("Next steps", ("Ben repairs the import", "Mark writes the guide", "David prints the posters")),
)


def _pages(**look: bool | int) -> list[Pixels]:
    return [page(title, lines, **look) for title, lines in TEXTS]  # type: ignore[arg-type]


def _dark() -> Iterator[Pixels]:
    return held(*((each, 3) for each in _pages(dark=True)))


def _small_print() -> Iterator[Pixels]:
    whole = [f"{number}. paragraph about the terms of the lease" for number in range(1, 13)]
    for count in (9, 10, 11, 12):
        yield from held((page("Terms", whole[:count], height_px=11), 3))


def _short_lines() -> Iterator[Pixels]:
    """A build that adds one short word in ordinary print at a time."""
    lines = ["Who comes:", "Anna", "Ben", "Eva"]
    for count in (1, 2, 3, 4):
        yield from held((page("Summer fair", lines[:count], height_px=18), 3))


def _photographs() -> Iterator[Pixels]:
    behind = photograph(1)
    for title, lines in TEXTS:
        yield from held((page(title, lines, dark=True, background=behind), 3))


def _builds() -> Iterator[Pixels]:
    title, lines = TEXTS[2]
    for count in range(len(lines) + 1):
        yield from held((page(title, lines[:count]), 2.4))


def _scrolling() -> Iterator[Pixels]:
    tall = np.concatenate(_pages())
    for index in range(len(TEXTS)):
        top = index * HEIGHT
        yield from held((tall[top : top + HEIGHT], 3))
        if index + 1 < len(TEXTS):
            for step in range(1, 8):
                yield tall[top + step * HEIGHT // 8 : top + step * HEIGHT // 8 + HEIGHT]


def _animation() -> Iterator[Pixels]:
    """Lines fly in from the right, one after the other, without a rest between them."""
    title, lines = TEXTS[0]
    yield from held((page(title, ()), 3))
    for count in range(len(lines)):
        for step in range(6):
            picture = page(title, lines[:count])
            write(picture, lines[count], 1100 - step * 190, 220 + 63 * count, 30, (30, 25, 25))
            yield picture
    yield from held((page(title, lines), 4))


def _pointer() -> Iterator[Pixels]:
    chance = np.random.default_rng(4)
    for picture in _pages()[:2]:
        for _ in range(6):
            x, y = (int(chance.integers(60, size)) for size in (1150, 650))
            for step in range(4):
                yield pointed(picture, x + 25 * step, y, 1.25)
            yield from held((pointed(picture, x + 75, y, 1.25), 1.0))


def _presenter() -> Iterator[Pixels]:
    """A presenter's picture over the corner: a head that sways, and now and then an arm."""
    chance = np.random.default_rng(5)
    room = chance.integers(60, 160, (190, 260, 3), dtype=np.uint8)
    room = np.asarray(cv2.GaussianBlur(room, (0, 0), 25), np.uint8)
    for index, picture in enumerate(_pages()):
        for number in range(6 * FPS):
            tile, at = room.copy(), number + index * 6 * FPS
            sway = round(10 * np.sin(at / 3.0))
            cv2.ellipse(tile, (130 + sway, 95), (38, 52), 0, 0, 360, (120, 150, 200), -1)
            cv2.ellipse(tile, (130 + sway // 2, 210), (90, 70), 0, 0, 360, (70, 60, 50), -1)
            if at % 17 < 5:
                cv2.line(tile, (60, 190), (40 + 8 * (at % 17), 90), (120, 150, 200), 24)
            out = picture.copy()
            out[HEIGHT - 200 : HEIGHT - 10, WIDTH - 270 : WIDTH - 10] = tile
            yield out


def _calm_presenter() -> Iterator[Pixels]:
    """A presenter who moves for a moment every few seconds and then sits still in another pose."""
    for index, picture in enumerate(_pages()[:2]):
        for number in range(16 * FPS):
            pose = (number // (2 * FPS)) + 20 * index
            chance = np.random.default_rng(pose)
            x, y = int(chance.integers(80, 180)), int(chance.integers(70, 120))
            out = picture.copy()
            tile = np.full((190, 260, 3), 90, np.uint8)
            cv2.ellipse(tile, (x, y), (38, 52), 0, 0, 360, (120, 150, 200), -1)
            out[HEIGHT - 200 : HEIGHT - 10, WIDTH - 270 : WIDTH - 10] = tile
            yield out


def _flipping() -> Iterator[Pixels]:
    a, b, c = _pages()
    return held((a, 3), (b, 3), (a, 3), (c, 3), (b, 3), (a, 3))


def _video_on_slide(cut_every: int) -> Iterator[Pixels]:
    """Half the slide is a film with a cut every so many frames, for 20 s; then the next slide."""
    frame = page("Our new film", ("Shown at the fair",), top=640)
    for number in range(20 * FPS):
        chance = np.random.default_rng(number // cut_every)
        shot = cv2.resize(chance.integers(0, 255, (6, 8, 3), dtype=np.uint8), (640, 400))
        shot = np.roll(shot, 12 * (number % cut_every), axis=1)
        out = frame.copy()
        out[170:570, 320:960] = shot
        yield out
    yield from held((_pages()[1], 4))


def _film_on_the_whole_screen() -> Iterator[Pixels]:
    """A slide, half a minute of a film in which the camera rests for two or five seconds, and another slide."""
    yield from held((_pages()[0], 4))
    for number in range(8):
        shot = np.random.default_rng(100 + number).integers(0, 255, (5, 7, 3), dtype=np.uint8)
        picture = np.asarray(cv2.resize(shot, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), np.uint8)
        yield from held((picture, 5 if number % 3 == 2 else 2))
    yield from held((_pages()[1], 8))


def _blurred_then_sharp() -> Iterator[Pixels]:
    """A camera looks at the screen and takes its time to focus after each change."""
    grain = np.random.default_rng(7).normal(0, 2.0, (HEIGHT // 2, WIDTH // 2, 3))
    for picture in _pages():
        half = cv2.resize(picture, (WIDTH // 2, HEIGHT // 2), interpolation=cv2.INTER_AREA)
        for number in range(4 * FPS):
            blurred = cv2.GaussianBlur(half, (0, 0), max(0.6, 4.5 - 0.65 * number))
            noisy = np.clip(blurred + np.roll(grain, 7 * number, axis=0), 0, 255).astype(np.uint8)
            yield np.asarray(cv2.resize(noisy, (WIDTH, HEIGHT)), np.uint8)


def _single_digits() -> Iterator[Pixels]:
    """A number in large print is counted up."""
    for count in (7, 8, 9):
        yield from held((page("Guests so far", (str(count),), height_px=60, top=400), 3))


SCENES: Final = (
    Scene("dark", _dark, (0, 3, 6)),
    Scene("small print", _small_print, (0, 3, 6, 9)),
    Scene("short lines", _short_lines, (0, 3, 6, 9)),
    Scene("photographs", _photographs, (0, 3, 6)),
    Scene("builds", _builds, (0, 2.4, 4.8, 7.2)),
    Scene("scrolling", _scrolling, (0, 4.4, 8.8)),
    Scene("animation", _animation, (0, 6.4)),
    Scene("pointer", _pointer, (0, 10.8)),
    Scene("presenter", _presenter, (0, 6, 12)),
    Scene("calm presenter", _calm_presenter, (0, 16), wasted=2),
    Scene("flipping", _flipping, (0, 3, 6, 9, 12, 15), "abacba"),
    Scene("film with cuts", lambda: _video_on_slide(7), (0, 20)),
    Scene("slide show", lambda: _video_on_slide(15), (0, 20)),
    Scene("film on the whole screen", _film_on_the_whole_screen, (0, 4, 26), wasted=3),
    Scene("camera that focuses", _blurred_then_sharp, (0, 4, 8)),
    Scene("single digits", _single_digits, (0, 3, 6)),
)
