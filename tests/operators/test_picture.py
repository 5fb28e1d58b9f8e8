"""Picture features: shapes, values that can be worked out by hand, and the stated rate."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.packet import ClockKind, Codec, Modality, Packet, decode, encode, payload_array
from operators.pictures.picture import (
    PATCH_PERIOD_NS,
    VOLUME_PERIOD_NS,
    ChangeSettings,
    FeatureThinner,
    changed_pixels,
    patch_bytes,
    patches,
    sharpness,
    small_luma,
    volume,
    volume_bytes,
)

SECOND = 1_000_000_000


def test_volume_tells_where_something_moves() -> None:
    before = np.full((180, 320), 100, np.uint8)
    after = before.copy()
    after[40:60, 100:120] = 203
    maps = volume(after, before, VOLUME_PERIOD_NS)
    assert maps.shape == (5, 9, 16) and maps.dtype == np.float16
    motion = maps[1]
    assert np.argwhere(motion > 0).tolist() == [[2, 5]]
    assert float(motion[2, 5]) == pytest.approx(100 / 255, abs=1e-3)
    assert float(maps[0, 2, 5]) == pytest.approx(203 / 255, abs=1e-3)


def test_motion_is_per_200_ms_whatever_the_spacing() -> None:
    before, after = np.full((180, 320), 50, np.uint8), np.full((180, 320), 53 + 80, np.uint8)
    slow = volume(after, before, 4 * VOLUME_PERIOD_NS)[1]
    assert float(slow.max()) == pytest.approx(20 / 255, abs=1e-3)
    assert not volume(after, None, 0)[1].any()


def test_camera_noise_is_no_motion_and_writing_is_detail() -> None:
    rng = np.random.default_rng(1)
    board = np.full((180, 320), 128, np.uint8)
    noisy = (board + rng.integers(-1, 2, board.shape)).astype(np.uint8)
    assert not volume(noisy, board, VOLUME_PERIOD_NS)[1].any()
    written = board.copy()
    written[80:100:4, 160:180] = 20
    written[81:100:4, 160:180] = 20
    detail = volume(written, board, VOLUME_PERIOD_NS)[2]
    assert detail[4, 8] == detail.max() > 0.1


def test_patches_cover_the_frame_row_by_row() -> None:
    plane = np.zeros((1080, 1920), np.uint8)
    plane[:270, 240:480] = 200
    found = patches(plane)
    assert found.shape == (32, 16, 16) and found.dtype == np.uint8
    assert found[1].min() == 200 and not found[0].any() and not found[2:].any()


@pytest.mark.parametrize("shape", [(1080, 1920), (1920, 1080), (90, 160), (17, 33), (2160, 4096)])
def test_any_shape_becomes_the_small_frame(shape: tuple[int, int]) -> None:
    assert small_luma(np.full(shape, 7, np.uint8)).tolist() == np.full((180, 320), 7).tolist()


def test_sharpness_falls_with_blur() -> None:
    import cv2

    picture = np.zeros((360, 640), np.uint8)
    picture[::8, :] = 255
    blurred = np.asarray(cv2.GaussianBlur(picture, (9, 9), 3), np.uint8)
    assert sharpness(picture) > 4 * sharpness(blurred)


def test_changed_pixels_leaves_pointers_and_ignored_areas_out() -> None:
    blank = np.full((180, 320), 240, np.uint8)
    pointer, line, word = blank.copy(), blank.copy(), blank.copy()
    pointer[80:88, 140:147] = 0
    line[80:86, 40:120] = 0
    word[80:84, 40:50] = 0
    settings = ChangeSettings()
    assert changed_pixels(blank, pointer, settings) is None
    for change in (line, word):
        where = changed_pixels(blank, change, settings)
        assert where is not None and np.array_equal(where, change == 0)
    ignore = np.zeros((180, 320), np.bool_)
    ignore[60:100] = True
    assert changed_pixels(blank, line, settings, ignore) is None


def test_packets_carry_the_features_within_the_stated_rate() -> None:
    luma = np.arange(180 * 320, dtype=np.uint32).astype(np.uint8).reshape(180, 320)
    features, squares = volume(luma, None, 0), patches(luma)
    coded = packet(Codec.VOLUME_F16, volume_bytes(features), height=9, channels=5)
    square = packet(Codec.PATCHES_U8, patch_bytes(squares), height=16, channels=1)
    assert np.array_equal(payload_array(decode(encode(coded))), features)
    assert np.array_equal(payload_array(decode(encode(square))), squares)
    volumes_s, patches_s = SECOND // VOLUME_PERIOD_NS, SECOND // PATCH_PERIOD_NS
    assert volumes_s * len(encode(coded)) + patches_s * len(encode(square)) <= 17_000


def test_many_cameras_share_the_rate_of_one() -> None:
    maps, squares = np.zeros((5, 9, 16), np.float16), np.zeros((32, 16, 16), np.uint8)
    for cameras in (1, 2, 4):
        thinner = FeatureThinner()
        blocks = []
        for step in range(30 * 20):
            for camera in range(cameras):
                blocks += thinner.take(f"camera-{camera}/video", step * SECOND // 20, maps, squares)
            if step == 300:
                thinner = FeatureThinner.from_state(thinner.state())
        assert 13_000 <= sum(len(block.payload) for block in blocks) / 30 <= 17_000
        assert {(block.width, block.height, block.channels) for block in blocks} == {(16, 9, 5), (16, 16, 1)}


def packet(codec: Codec, payload: bytes, height: int, channels: int) -> Packet:
    return Packet(
        meeting_id="m",
        device_id="camera",
        modality=Modality.PICTURE_FEATURES,
        codec=codec,
        clock_kind=ClockKind.PTP,
        stream_epoch=1,
        sequence=0,
        timestamp_ns=0,
        duration_ns=VOLUME_PERIOD_NS,
        payload=payload,
        width=16,
        height=height,
        channels=channels,
    )
