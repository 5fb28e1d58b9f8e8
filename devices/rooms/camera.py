"""A camera at the end of the table: simple figures whose mouths follow their own voices and whose arms and heads do
what the script says. Nobody sits quite still, and the picture has a sensor's noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from devices.rooms.film import Picture, Pixels, planes
from devices.rooms.script import Gesture, Script
from devices.rooms.timing import FRAMES_PER_SECOND, SPEECH_DBFS_AT_ONE_METRE, Placed
from devices.rooms.voices import SAMPLE_RATE_HZ

WIDTH, HEIGHT = 640, 360
_NOISE_FIELDS: Final = 8
_NOISE_LEVELS: Final = 2.0
_HEAD: Final = 30
_CLOTHES: Final = (
    (150, 90, 60),
    (70, 120, 60),
    (60, 70, 150),
    (120, 70, 120),
    (60, 130, 150),
    (110, 110, 110),
)
_SKIN: Final = (
    (150, 180, 225),
    (95, 130, 185),
    (130, 165, 215),
    (70, 100, 150),
    (160, 190, 230),
    (110, 145, 200),
)
_HAIR: Final = ((40, 50, 70), (25, 25, 30), (60, 90, 140), (30, 30, 40), (120, 120, 125), (35, 60, 95))

Curve = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """One person as the camera sees them at every frame; curves of shape (frames,)."""

    name: str
    place: tuple[int, int]
    """Middle of the head at rest, pixels."""
    mouth: Curve
    """0 closed to 1 wide open."""
    sway: Curve
    """Sideways, pixels."""
    nod: Curve
    """Downwards, pixels."""
    hand: Curve
    """0 on the table to 1 raised."""


def figures(script: Script, placed: Sequence[Placed], frames: int) -> tuple[Figure, ...]:
    """Everybody in the room with all their movements."""
    starts = {p.line.id: p.speech_start / SAMPLE_RATE_HZ for p in placed}
    count = len(script.seated)
    result: list[Figure] = []
    for index, person in enumerate(script.seated):
        chance = np.random.default_rng([script.seed, 101, index])
        own = [g for g in script.gestures if g.who == person.name]
        time = np.arange(frames) / FRAMES_PER_SECOND
        mouth = _mouth([p for p in placed if p.line.speaker == person.name], frames)
        sway = 1.5 * np.sin(2.0 * math.pi * (0.11 + 0.07 * chance.random()) * time + 6.28 * chance.random())
        # Who talks moves more than who listens.
        nod = 2.0 * _smooth(mouth, 9) * np.sin(2.0 * math.pi * 1.3 * time + 6.28 * chance.random())
        sway += sum((_wave(g, starts, time, 2.5, 8.0) for g in own if g.kind == "shake"), np.zeros(frames))
        nod += sum((_wave(g, starts, time, 2.0, 9.0) for g in own if g.kind == "nod"), np.zeros(frames))
        hand = sum((_raised(g, starts, time) for g in own if g.kind == "raise_hand"), np.zeros(frames))
        x = WIDTH * (2 * index + 1) // (2 * count)
        # People on the far side sit higher in the picture.
        y = 118 + (26 if index % 2 else 0)
        result.append(Figure(person.name, (x, y), mouth, sway, nod, np.clip(hand, 0.0, 1.0)))
    return tuple(result)


def pictures(
    people: Sequence[Figure], frames: int, seed: int, flash_frames: range = range(0)
) -> Iterator[Picture]:
    """Every frame of the camera."""
    noise = _noise(seed)
    background = _background()
    for frame in range(frames):
        pixels = background.copy()
        for index, figure in enumerate(people):
            _draw_person(pixels, figure, index, frame)
        cv2.rectangle(pixels, (0, 262), (WIDTH, HEIGHT), (88, 120, 150), cv2.FILLED)
        for index, figure in enumerate(people):
            _draw_hand(pixels, figure, index, frame)
        if frame in flash_frames:
            pixels = np.full_like(pixels, 250)
        shaken = cv2.add(pixels, noise[frame * 5 % _NOISE_FIELDS], dtype=cv2.CV_8U)
        yield Picture(
            planes(np.asarray(shaken, dtype=np.uint8)), frame in (flash_frames.start, flash_frames.stop)
        )


def _mouth(own: Sequence[Placed], frames: int) -> Curve:
    """How far the mouth is open at the middle of every frame, from the loudness of the person's own voice."""
    step = SAMPLE_RATE_HZ / FRAMES_PER_SECOND
    power = np.zeros(frames)
    edges = np.round(np.arange(frames + 1) * step).astype(int)
    for placed in own:
        total = np.concatenate(([0.0], np.cumsum(placed.samples**2)))
        inside = np.clip(edges - placed.start_sample, 0, len(placed.samples))
        power += (total[inside[1:]] - total[inside[:-1]]) / step
    level = 10.0 * np.log10(power + 1e-12) - SPEECH_DBFS_AT_ONE_METRE
    return np.clip((level + 24.0) / 30.0, 0.0, 1.0)


def _smooth(curve: Curve, width: int) -> Curve:
    return np.convolve(curve, np.ones(width) / width, mode="same")


def _wave(gesture: Gesture, starts: dict[str, float], time: Curve, hertz: float, pixels: float) -> Curve:
    """A movement to and fro for the gesture's length."""
    since = time - (starts[gesture.line] + gesture.offset_s)
    inside = (since >= 0.0) & (since < gesture.length_s)
    wave: Curve = np.where(inside, pixels * np.sin(2.0 * math.pi * hertz * since), 0.0)
    return wave


def _raised(gesture: Gesture, starts: dict[str, float], time: Curve) -> Curve:
    """An arm that goes up within 0.4 s and down again at the end."""
    since = time - (starts[gesture.line] + gesture.offset_s)
    return np.clip(np.minimum(since / 0.4, (gesture.length_s - since) / 0.4), 0.0, 1.0)


def _noise(seed: int) -> list[npt.NDArray[np.int16]]:
    chance = np.random.default_rng([seed, 202])
    return [
        np.round(_NOISE_LEVELS * chance.standard_normal((HEIGHT, WIDTH, 3))).astype(np.int16)
        for _ in range(_NOISE_FIELDS)
    ]


def _background() -> Pixels:
    shade = np.linspace(190, 140, HEIGHT)[:, np.newaxis, np.newaxis]
    tinted = np.broadcast_to(shade + np.array([6.0, 2.0, -4.0]), (HEIGHT, WIDTH, 3))
    pixels: Pixels = np.ascontiguousarray(tinted, dtype=np.uint8)
    cv2.rectangle(pixels, (230, 14), (410, 66), (235, 235, 230), cv2.FILLED)
    return pixels


def _draw_person(pixels: Pixels, figure: Figure, index: int, frame: int) -> None:
    x = figure.place[0] + round(float(figure.sway[frame]))
    y = figure.place[1] + round(float(figure.nod[frame]))
    body_y = figure.place[1] + 130
    skin, hair = _SKIN[index % len(_SKIN)], _HAIR[index % len(_HAIR)]
    cv2.ellipse(
        pixels, (x, body_y), (52, 92), 0, 180, 360, _CLOTHES[index % len(_CLOTHES)], cv2.FILLED, cv2.LINE_AA
    )
    cv2.circle(pixels, (x, y - 6), _HEAD + 4, hair, cv2.FILLED, cv2.LINE_AA)
    cv2.ellipse(pixels, (x, y + 2), (_HEAD - 4, _HEAD), 0, 0, 360, skin, cv2.FILLED, cv2.LINE_AA)
    for side in (-9, 9):
        cv2.circle(pixels, (x + side, y - 4), 3, (30, 30, 30), cv2.FILLED, cv2.LINE_AA)
    opened = 1 + round(9.0 * float(figure.mouth[frame]))
    cv2.ellipse(pixels, (x, y + 16), (9, opened), 0, 0, 360, (50, 40, 110), cv2.FILLED, cv2.LINE_AA)


def _draw_hand(pixels: Pixels, figure: Figure, index: int, frame: int) -> None:
    share = float(figure.hand[frame])
    x, y = figure.place
    # Whoever sits at the edge raises the hand that the camera sees.
    side = 1 if x + 72 <= WIDTH else -1
    elbow = (x + side * 50, y + 118 - round(30 * share))
    hand = (x + side * (34 + round(24 * share)), y + 150 - round(190 * share))
    cv2.line(pixels, (x + side * 40, y + 100), elbow, _CLOTHES[index % len(_CLOTHES)], 16, cv2.LINE_AA)
    cv2.line(pixels, elbow, hand, _CLOTHES[index % len(_CLOTHES)], 14, cv2.LINE_AA)
    cv2.circle(pixels, hand, 11, _SKIN[index % len(_SKIN)], cv2.FILLED, cv2.LINE_AA)
