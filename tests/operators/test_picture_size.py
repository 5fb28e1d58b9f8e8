"""Sizes from headers: right on real pictures, never an unexpected exception on broken ones."""

from __future__ import annotations

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.pictures.size import PictureError, check_size, h264_sizes, jpeg_size


def h264(width: int, height: int, profile: str, pixel_format: str = "yuv420p") -> bytes:
    encoder = av.CodecContext.create("libx264", "w")
    assert isinstance(encoder, av.VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = width, height, pixel_format
    encoder.options = {"preset": "ultrafast", "profile": profile, "threads": "1"}
    frame = av.VideoFrame.from_ndarray(np.zeros((height, width, 3), np.uint8), format="rgb24")
    packets = [*encoder.encode(frame), *encoder.encode(None)]
    return bytes(packets[0])


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (640, 360), (1080, 1920), (130, 98)])
@pytest.mark.parametrize("profile", ["baseline", "main", "high"])
def test_h264_size(width: int, height: int, profile: str) -> None:
    assert list(h264_sizes(h264(width, height, profile))) == [(width, height)]


def test_h264_size_with_full_chroma() -> None:
    assert list(h264_sizes(h264(134, 90, "high444", "yuv444p"))) == [(134, 90)]


@pytest.mark.parametrize("progressive", [0, 1])
def test_jpeg_size(progressive: int) -> None:
    options = [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive]
    data = cv2.imencode(".jpg", np.zeros((90, 160, 3), np.uint8), options)[1].tobytes()
    assert jpeg_size(data) == (160, 90)
    with pytest.raises(PictureError, match="cut short"):
        jpeg_size(data[:-30])


def test_bounds_hold_upright_and_on_the_side() -> None:
    check_size(4096, 2304, 4096, 2304)
    check_size(1080, 1920, 4096, 2304)
    for width, height in [(4097, 100), (2305, 2305), (0, 10), (65535, 65535)]:
        with pytest.raises(PictureError, match=f"{width}x{height}"):
            check_size(width, height, 4096, 2304)


@given(st.binary(max_size=200))
def test_random_bytes_end_in_a_reason(data: bytes) -> None:
    for read in (
        lambda: list(h264_sizes(b"\0\0\1\x67" + data)),
        lambda: jpeg_size(b"\xff\xd8" + data + b"\xff\xd9"),
    ):
        try:
            read()
        except PictureError as error:
            assert str(error)


@given(st.integers(0, 400), st.integers(0, 255))
def test_one_damaged_byte_ends_in_a_size_or_a_reason(position: int, value: int) -> None:
    data = bytearray(SAMPLE)
    data[position % len(data)] = value
    try:
        sizes = list(h264_sizes(bytes(data)))
    except PictureError:
        return
    assert all(isinstance(width, int) and isinstance(height, int) for width, height in sizes)


SAMPLE = h264(320, 180, "high")
