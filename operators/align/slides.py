"""Slides at times of the timeline: which one stood, and where its lines were."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contracts.timeline import SlideRecord
from operators.align.interpolate import Box, Times


@dataclass(frozen=True, slots=True)
class LineAt:
    """A line of text and where it is, in shares of the picture."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class SlideAt:
    """The slide that stood at one time. ``id`` None: none had come up, or the stream has a gap there."""

    id: str | None
    text: str = ""
    lines: tuple[LineAt, ...] = ()
    error_ns: int = 0
    device: str = ""
    sampling_ms: float = 0.0


NO_SLIDE = SlideAt(None)


def standing(starts_ns: Times, times_ns: Times) -> list[int]:
    """Number of the slide that stood at each time, -1 before the first."""
    found: list[int] = (np.searchsorted(starts_ns, times_ns, side="right") - 1).tolist()
    return found


def slide_at(slide: SlideRecord, following: SlideRecord | None, share: float, error_ns: int) -> SlideAt:
    """A standing slide; lines that the following one has too are on their way to their place there.

    Args:
        following: the next slide of the stream, None where it is too far away to be gone towards.
        share: how much of the way is done, 0 to 1.
    """
    ahead = {} if following is None else _by_text(following)
    lines = []
    for number, text in _numbered(slide):
        box = slide.lines[number].box
        goal = ahead.get(text)
        moved = box if goal is None else _mixed(box, goal, share)
        lines.append(LineAt(slide.lines[number].text, moved))
    return SlideAt(slide.id, slide.text, tuple(lines), error_ns, slide.device, slide.sampling_ms)


def _mixed(a: Box, b: Box, share: float) -> Box:
    left, top, right, bottom = (x * (1.0 - share) + y * share for x, y in zip(a, b, strict=True))
    return left, top, right, bottom


def _numbered(slide: SlideRecord) -> Sequence[tuple[int, tuple[str, int]]]:
    """Lines with their text and how often it came before: equal lines are told apart by their order."""
    seen: dict[str, int] = {}
    out = []
    for number, line in enumerate(slide.lines):
        seen[line.text] = seen.get(line.text, -1) + 1
        out.append((number, (line.text, seen[line.text])))
    return out


def _by_text(slide: SlideRecord) -> dict[tuple[str, int], Box]:
    return {text: slide.lines[number].box for number, text in _numbered(slide)}
