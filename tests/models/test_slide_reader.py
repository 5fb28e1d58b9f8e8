"""The slide reader on the sample meeting's own slides and on made-up layouts."""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from models.slide_reader import (
    SlideReader,
    SlideReaderSettings,
    TextLine,
    clean_text,
    reading_order,
    run_niced,
)
from models.speech_recogniser import ModelError
from tests.operators.slide_scenes import Pixels, page, photograph

SAMPLE = Path(__file__).resolve().parents[2] / "devices" / "sample"


@pytest.fixture(scope="module")
def reader() -> SlideReader:
    built = SlideReaderSettings().build()
    built.warm_up()
    return built


def frames_at(path: Path, times_s: list[float]) -> Iterator[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        wanted = list(times_s)
        for frame in container.decode(video=0):
            if wanted and frame.time is not None and frame.time >= wanted[0]:
                wanted.pop(0)
                yield np.asarray(frame.to_ndarray(format="bgr24"), np.uint8)
            if not wanted:
                return


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z0-9]+", text.lower()))


def test_reads_the_sample_slides(reader: SlideReader) -> None:
    slides = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))["slides"][:4]
    found = total = 0
    pictures = frames_at(SAMPLE / "slides.mp4", [slide["start_s"] + 1.5 for slide in slides])
    for picture, slide in zip(pictures, slides, strict=True):
        lines = reader.read(picture)
        expected, got = words(slide["text"]), words(" ".join(line.text for line in lines))
        found += (expected & got).total()
        total += expected.total()
        title, truth = lines[0], slide["lines"][0]
        assert title.text == truth["text"]
        x0, y0, x1, y1 = truth["box"]
        # The detector widens its boxes by a margin that grows with the height of the letters.
        assert np.allclose(title.box, [x0 / 1920, y0 / 1080, x1 / 1920, y1 / 1080], atol=0.03)
        assert all(0.6 <= line.confidence <= 1.0 for line in lines)
    assert found / total >= 0.98


def test_blank_and_tiny_pictures_have_no_text(reader: SlideReader) -> None:
    assert reader.read(np.full((1080, 1920, 3), 250, np.uint8)) == ()
    assert reader.read(np.zeros((4, 4, 3), np.uint8)) == ()
    assert reader.read(np.random.default_rng(3).integers(0, 255, (360, 640, 3)).astype(np.uint8)) == ()


def test_refuses_other_shapes(reader: SlideReader) -> None:
    with pytest.raises(ValueError, match="uint8"):
        reader.read(np.zeros((90, 160), np.uint8))


def test_missing_and_damaged_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="PP-OCRv6_det_small"):
        SlideReaderSettings(model_folder=tmp_path).build()
    for name in ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"):
        (tmp_path / name).write_bytes(b"not a network")
    with pytest.raises(ModelError, match="cannot be loaded"):
        SlideReaderSettings(model_folder=tmp_path).build()


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("•  Testing", "Testing"),
        ("•Testing", "Testing"),
        ("– Senior  staff", "Senior staff"),
        ("-5 % since May", "-5 % since May"),
        ("■", ""),
        ("Ｑ３：12％", "Q3:12%"),
        ("ﬁnal", "final"),
    ],
)
def test_clean_text(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


def line(text: str, x0: float, y0: float, x1: float) -> TextLine:
    return TextLine(text, (x0, y0, x1, y0 + 0.04), 1.0)


def order(lines: list[TextLine]) -> list[str]:
    return [each.text for each in reading_order(lines)]


def test_title_then_left_column_then_right_column() -> None:
    lines = [
        line("right column, its second long line", 0.55, 0.4, 0.9),
        line("left column, its second long line", 0.05, 0.4, 0.4),
        line("A title over both of the columns", 0.05, 0.1, 0.9),
        line("right column, its first long line", 0.55, 0.3, 0.9),
        line("left column, its first long line", 0.05, 0.3, 0.4),
    ]
    assert order(lines) == [
        "A title over both of the columns",
        "left column, its first long line",
        "left column, its second long line",
        "right column, its first long line",
        "right column, its second long line",
    ]


def test_table_is_read_row_by_row() -> None:
    lines = [
        line("Hosting", 0.1, 0.5, 0.2), line("1,500 euros", 0.6, 0.502, 0.8),
        line("Support", 0.1, 0.3, 0.2), line("2,500 euros", 0.6, 0.298, 0.8),
    ]  # fmt: skip
    assert order(lines) == ["Support", "2,500 euros", "Hosting", "1,500 euros"]


def test_wrapped_cells_are_read_cell_by_cell() -> None:
    lines = [
        line("Any task idea", 0.1, 0.30, 0.3), line("Task you are on", 0.6, 0.30, 0.8),
        line("with a note", 0.1, 0.35, 0.3), line("right now and", 0.6, 0.35, 0.8),
        line("how to do it", 0.1, 0.40, 0.3), line("not before", 0.6, 0.40, 0.8),
    ]  # fmt: skip
    assert order(lines) == [
        "Any task idea",
        "with a note",
        "how to do it",
        "Task you are on",
        "right now and",
        "not before",
    ]


def test_order_does_not_depend_on_detection_order() -> None:
    lines = [line(f"line {i} of the text that is long", 0.1, 0.1 + i * 0.06, 0.7) for i in range(8)]
    assert order(lines[::-1]) == order(lines) == [each.text for each in lines]


@pytest.mark.parametrize(("before", "after"), [(0, 10), (15, 15)])
def test_the_reading_thread_never_gets_more_priority_than_the_flow_was_given(before: int, after: int) -> None:
    found: list[int] = []

    def thread() -> None:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, max(before, os.getpriority(os.PRIO_PROCESS, me)))
        run_niced(SlideReaderSettings(niceness=10))
        found.append(os.getpriority(os.PRIO_PROCESS, me))

    reading = threading.Thread(target=thread)
    reading.start()
    reading.join()
    assert found[0] >= after


# Captures as they come

SAID = ("Errors fixed last week: 9", "Errors still open: 3", "Import of old files works")


def captured(how: str) -> Pixels:
    if how == "dark, small print":
        return page("Where we stand", SAID, dark=True, height_px=9)
    if how == "photograph behind":
        return page("Where we stand", SAID, dark=True, background=photograph(3))
    picture = page("Where we stand", SAID)
    if how == "blurred and askew":
        turn = cv2.getRotationMatrix2D((640, 360), 5, 0.9)
        askew = cv2.warpAffine(picture, turn, (1280, 720), borderValue=(60, 60, 60))
        return np.asarray(cv2.GaussianBlur(askew, (0, 0), 3.0), np.uint8)
    turns = {"on its left side": 1, "on its head": 2, "on its right side": 3}[how]
    return np.ascontiguousarray(np.rot90(picture, turns))


@pytest.mark.parametrize(
    "how",
    ["dark, small print", "photograph behind", "blurred and askew", "on its left side", "on its head",
     "on its right side"],
)  # fmt: skip
def test_reads_captures_as_they_come(reader: SlideReader, how: str) -> None:
    assert [line.text for line in reader.read(captured(how))] == ["Where we stand", *SAID]
