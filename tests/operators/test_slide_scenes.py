"""Whole scenes past the slide watcher: each slide is asked for, and hardly any twice."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from models.slide_reader import TextLine
from operators.pictures.picture import sharpness, small_luma
from operators.pictures.slides import Slide, SlideCandidate, SlideSettings
from tests.operators.slide_scenes import FPS, SCENES, Scene

SECOND = 1_000_000_000
TEXT_BOX = (0.05, 0.1, 0.6, 0.75)
"""Where a slide's text stands; presenter tiles lie outside, films inside are no text."""


def played(scene: Scene) -> tuple[int, list[Slide]]:
    """How many readings a scene takes, and the slides that come of them."""
    watcher, readings = SlideSettings().build(), 0
    shown: list[Slide] = []
    for number, frame in enumerate(scene.frames()):
        plane = np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY), np.uint8)
        for event in watcher.observe(number * SECOND // FPS, small_luma(plane), sharpness(plane)):
            if not isinstance(event, SlideCandidate):
                shown.append(event)
                continue
            readings += 1
            text = scene.text_at(event.frame_ns / SECOND)
            shown += watcher.read(event.frame_ns, [TextLine(text, TEXT_BOX, 0.99)])
    return readings, shown


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_each_slide_is_read_about_once(scene: Scene) -> None:
    readings, shown = played(scene)
    different = len({scene.text_at(start_s) for start_s in scene.starts_s})
    assert [slide.text for slide in shown] == [scene.text_at(start_s) for start_s in scene.starts_s]
    for slide, start_s in zip(shown, scene.starts_s, strict=True):
        # A camera that focuses is read once the picture is sharp.
        assert -0.1 <= slide.start_ns / SECOND - start_s <= 2.5
    assert different <= readings <= different + scene.wasted


def test_a_changing_area_without_text_costs_less_and_less() -> None:
    watcher, readings = SlideSettings().build(), []
    chance = np.random.default_rng(1)
    blank = np.full((180, 320), 240, np.uint8)
    for step in range(180 * FPS):
        frame = blank.copy()
        if step % (7 * FPS) == 0:
            picture = chance.integers(0, 200, (60, 80), dtype=np.uint8)
        frame[100:160, 200:280] = picture
        for event in watcher.observe(step * SECOND // FPS, frame, 100.0):
            assert isinstance(event, SlideCandidate)
            readings.append(event.frame_ns // SECOND)
            watcher.read(event.frame_ns, [TextLine("the slide", (0.1, 0.1, 0.5, 0.3), 0.99)])
    assert len(readings) <= 5
    # Text that comes up in that place is read all the same, after a while.
    frame[120:130, 205:275] = 0
    late = [watcher.observe((180 + step) * SECOND, frame, 100.0) for step in range(40)]
    assert sum(map(len, late)) == 1


def test_a_place_that_brings_text_after_all_is_read_at_once_again() -> None:
    watcher = SlideSettings().build()
    texts, asked = iter(["one", "one", "two", "three"]), []
    for step in range(4 * 8 * FPS):
        picture = np.full((180, 320), 240, np.uint8)
        picture[60:90, 40:80] = 40 * (step // (8 * FPS))
        for event in watcher.observe(step * SECOND // FPS, picture, 100.0):
            assert isinstance(event, SlideCandidate)
            asked.append(round(event.frame_ns / SECOND, 1))
            watcher.read(event.frame_ns, [TextLine(next(texts), (0.0, 0.3, 1.0, 0.5), 0.99)])
    assert asked == [0.6, 8.6, 20.0, 24.6]
