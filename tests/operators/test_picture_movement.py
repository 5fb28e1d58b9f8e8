"""Which way cells move, against pictures that were moved by known ways."""

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from operators.align.gestures import MAPS, GestureWatch
from operators.pictures.movement import CELL, FURTHEST_NS, SPACING_NS, Movement, displacement, reduced

MS = 1_000_000


def texture(right: float = 0.0, down: float = 0.0) -> npt.NDArray[np.uint8]:
    """A head-sized patch with soft texture on an even ground, 640x360, moved by pixels of that size."""
    rng = np.random.default_rng(4)
    patch = cv2.GaussianBlur(rng.uniform(0, 255, (100, 100)).astype(np.float32), (0, 0), 10)
    patch = 60.0 + 140.0 * (patch - patch.min()) / (patch.max() - patch.min())
    ground = np.full((360, 640), 150.0, np.float32)
    ground[120:220, 200:300] = patch
    move = np.asarray([[1.0, 0.0, right], [0.0, 1.0, down]], np.float32)
    return np.asarray(cv2.warpAffine(ground, move, (640, 360), borderMode=cv2.BORDER_REPLICATE), np.uint8)


@pytest.mark.parametrize(("right", "down"), [(4.0, 0.0), (-4.0, 0.0), (0.0, 4.0), (0.0, -4.0)])
def test_displacement_of_a_moved_patch(right: float, down: float) -> None:
    moved = displacement(reduced(texture()), reduced(texture(right, down)))
    inside = moved[:, 3:5, 5:7].mean(axis=(1, 2))
    assert inside == pytest.approx([right / 4.0, down / 4.0], abs=0.3)
    assert np.abs(moved[:, :, 12:]).max() < 0.01


def test_a_nod_goes_down_and_a_shake_across_whatever_their_phase() -> None:
    # At five frames a second a shake of 2.5 Hz is seen at the same place each time.
    for axis in (0, 1):
        movement, ways = Movement(), np.zeros((2, 9, 16), np.float32)
        for frame in range(30):
            way = 8.0 * np.sin(2.0 * np.pi * 2.5 * frame / 30.0)
            movement.see(frame * 33_333_333, texture(*((way, 0.0) if axis == 0 else (0.0, way))))
            if frame % 6 == 0:
                ways += movement.take()
        assert ways[axis].sum() > 3.0 * ways[1 - axis].sum()
        assert ways[axis].sum() > 5.0


def test_noise_and_frames_far_apart_move_nothing() -> None:
    rng = np.random.default_rng(5)
    movement = Movement()
    for frame in range(12):
        noisy = texture().astype(np.int16) + rng.normal(0.0, 2.0, (360, 640))
        movement.see(frame * SPACING_NS, np.clip(noisy, 0, 255).astype(np.uint8))
    assert float(movement.take().max()) < 0.03
    movement.see(0, texture())
    movement.see(FURTHEST_NS + 1, texture(8.0))
    assert not movement.take().any()


def test_ways_are_cells_in_200_ms_whatever_the_spacing() -> None:
    taken = []
    for spacing_ns in (60 * MS, 120 * MS):
        movement = Movement()
        for frame in range(4):
            movement.see(frame * spacing_ns, texture(right=frame * spacing_ns / (60 * MS) * 2.0))
        taken.append(float(movement.take()[0, 3:5, 5:7].mean()))
    assert taken[0] == pytest.approx(0.5 * 200 / 60 / CELL, rel=0.35)
    assert taken[0] == pytest.approx(taken[1], rel=0.35)


def test_a_camera_whose_features_tell_no_ways_was_not_watched() -> None:
    """That nobody raised a hand before it says nothing then."""
    watch, other = GestureWatch(), GestureWatch()
    still = np.zeros((MAPS, 9, 16), np.float16)
    moved = still.copy()
    moved[4, 3, 5] = 1.0
    for number in range(20):
        watch.see(number * 200_000_000, 0, still)
        other.see(number * 200_000_000, 0, moved if number < 3 else still)
    assert not watch.stretches
    assert len(other.stretches) == 1
