"""Turns the coded pictures of one stream into small features. Runs in the decoder child only.

A slide stream costs almost nothing while nothing changes: only key frames are decoded. The frames between
two key frames are kept coded and decoded when the key frames differ, or at once when one of them is much
larger than its neighbours. A camera stream is decoded whole, because motion is what is asked of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, Final, Literal

import av
import cv2
import numpy as np
from av.video.codeccontext import VideoCodecContext
from numpy.typing import NDArray

from operators.pictures.movement import Movement
from operators.pictures.picture import (
    PATCH_PERIOD_NS,
    VOLUME_PERIOD_NS,
    ChangeSettings,
    Luma,
    changed_pixels,
    patches,
    sharpness,
    small_luma,
    volume,
)
from operators.pictures.size import PictureError, check_size, h264_sizes, jpeg_size

Role = Literal["slides", "camera"]

_NANOSECONDS = Fraction(1, 1_000_000_000)
_NEVER_NS: Final = -(2**63)
_CHANGE: Final = ChangeSettings()
# A little less than the period, so that frames whose stamps jitter are not passed over.
_CAMERA_SPACING_NS: Final = VOLUME_PERIOD_NS * 9 // 10


@dataclass(frozen=True, slots=True)
class PictureStreamSettings:
    """Bounds and spacing of one stream's decoding.

    sample_ns: spacing of the frames handed out while a slide changes.
    hot_ns: how long every frame is decoded after the last change.
    idle_jpeg_ns: spacing of decoded pictures of a JPEG slide stream while nothing changes.
    max_gop_bytes: coded bytes kept between two key frames; a longer stretch is not looked into.
    kept_gops, kept_jpegs, kept_bytes: how much of the past is kept coded, for whole frames that are asked for late.
    key_wait_ns: with key frames further apart than this, all frames are decoded from then on.
    """

    max_width: int = 4096
    max_height: int = 2304
    sample_ns: int = 100_000_000
    hot_ns: int = 1_000_000_000
    idle_jpeg_ns: int = 500_000_000
    max_gop_bytes: int = 8 * 1024 * 1024
    kept_gops: int = 20
    kept_jpegs: int = 64
    kept_bytes: int = 16 * 1024 * 1024
    key_wait_ns: int = 2_500_000_000
    jpeg_quality: int = 95


@dataclass(frozen=True, slots=True)
class FrameFeatures:
    """What is kept of one frame.

    luma: (180, 320) uint8. volume: (5, 9, 16) float16. patches: (32, 16, 16) uint8 about once a second for
    a camera, else None. sharpness: variance of the Laplacian, 0 for a camera.
    """

    timestamp_ns: int
    key_frame: bool
    width: int
    height: int
    sharpness: float
    luma: Luma
    volume: NDArray[np.float16]
    patches: NDArray[np.uint8] | None


@dataclass(slots=True)
class _Unit:
    timestamp_ns: int
    data: bytes


class PictureStream:
    """Decoding state of one stream; throws `PictureError` for what cannot be decoded."""

    def __init__(self, role: Role, settings: PictureStreamSettings) -> None:
        self._role = role
        self._settings = settings
        self._gop: list[_Unit] = []
        self._gop_bytes = 0
        self._earlier_gops: deque[list[_Unit]] = deque()
        self._decoder: VideoCodecContext | None = None
        self._hot_until_ns = _NEVER_NS
        self._typical_bytes = 0.0
        self._last: FrameFeatures | None = None
        self._patches_ns: int | None = None
        self._movement = Movement()
        self._jpegs: list[_Unit] = []
        self._light: list[tuple[int, float]] = []

    def jpeg(self, data: bytes, timestamp_ns: int) -> list[FrameFeatures]:
        """Features of one JPEG picture, or nothing where it comes too soon after the one before."""
        check_size(*jpeg_size(data), self._settings.max_width, self._settings.max_height)
        if not self._jpeg_due(len(data), timestamp_ns):
            return []
        # Decoded at a reduced scale, which skips most of the work for a large picture.
        width, height = jpeg_size(data)
        reduce = cv2.IMREAD_REDUCED_GRAYSCALE_2 if min(width, height) >= 360 else cv2.IMREAD_GRAYSCALE
        plane = cv2.imdecode(np.frombuffer(data, np.uint8), reduce)
        if plane is None:
            raise PictureError("JPEG picture cannot be decoded")
        self._keep_jpeg(timestamp_ns, data)
        self._light.append((timestamp_ns, _brightness(np.asarray(plane, np.uint8))))
        features = self._features(np.asarray(plane, np.uint8), width, height, timestamp_ns, True)
        return [features]

    def take_light(self) -> list[tuple[int, float]]:
        """Stamp and mean brightness (0..1) of all pictures that were decoded since the last call."""
        light, self._light = self._light, []
        return light

    def h264(self, data: bytes, key_frame: bool, timestamp_ns: int) -> list[FrameFeatures]:
        """Features that one access unit brings about, in time order; often none.

        Before the first key frame, and after a failure until the next one, there is nothing to decode.
        """
        for width, height in h264_sizes(data):
            check_size(width, height, self._settings.max_width, self._settings.max_height)
        if not key_frame and not self._gop:
            return []
        try:
            if self._role == "camera":
                return self._camera(data, key_frame, timestamp_ns)
            return self._key(data, timestamp_ns) if key_frame else self._between(data, timestamp_ns)
        except (PictureError, av.error.FFmpegError) as error:
            self._gop, self._decoder, self._hot_until_ns = [], None, _NEVER_NS
            reason = error if isinstance(error, PictureError) else "its data are damaged"
            raise PictureError(f"H.264 access unit cannot be decoded: {reason}") from error

    def full_frame(self, timestamp_ns: int) -> bytes:
        """The whole frame with this stamp as a JPEG picture; raises `PictureError` where it is not kept."""
        for unit in self._jpegs:
            if unit.timestamp_ns == timestamp_ns:
                # Coded anew: what came from outside must not reach a decoder outside this process.
                return self._jpeg_of(cv2.imdecode(np.frombuffer(unit.data, np.uint8), cv2.IMREAD_COLOR))
        for gop in (self._gop, *self._earlier_gops):
            if any(unit.timestamp_ns == timestamp_ns for unit in gop):
                try:
                    return self._encode(gop, timestamp_ns)
                except av.error.FFmpegError as error:
                    raise PictureError("the frame cannot be decoded") from error
        raise PictureError("the frame is no longer kept")

    def _key(self, data: bytes, timestamp_ns: int) -> list[FrameFeatures]:
        if self._last is not None and timestamp_ns <= self._last.timestamp_ns:
            # Stamps went back: another recording or a stepped clock. What came before has no order to it.
            self._last, self._gop, self._decoder = None, [], None
        frames = _decode_alone(data, timestamp_ns)
        plane = _luma_plane(frames[0])
        before, found = self._last, self._look_back(small_luma(plane))
        self._light.append((timestamp_ns, _brightness(plane)))
        self._keep(self._gop)
        self._gop, self._gop_bytes = [_Unit(timestamp_ns, data)], len(data)
        key = self._features(plane, frames[0].width, frames[0].height, timestamp_ns, True)
        if before is None or changed_pixels(before.luma, key.luma, _CHANGE) is not None:
            self._hot_until_ns = timestamp_ns + self._settings.hot_ns
        self._decoder = None
        if timestamp_ns < self._hot_until_ns:
            self._sample(self._heat())
        return [*found, key]

    def _keep(self, gop: list[_Unit]) -> None:
        """Keep a finished stretch for whole frames asked for later: the asking may be far behind on a busy machine."""
        self._earlier_gops.appendleft(gop)
        size = 0
        for place, kept in enumerate(self._earlier_gops):
            size += sum(len(unit.data) for unit in kept)
            if place > 0 and (size > self._settings.kept_bytes or place >= self._settings.kept_gops):
                while len(self._earlier_gops) > place:
                    self._earlier_gops.pop()
                return

    def _keep_jpeg(self, timestamp_ns: int, data: bytes) -> None:
        """The same for pictures; one that is sent again and again while a slide stands is kept once."""
        if self._jpegs and self._jpegs[-1].data == data:
            data = self._jpegs[-1].data
        self._jpegs.append(_Unit(timestamp_ns, data))
        size, later = 0, None
        for place, kept in enumerate(reversed(self._jpegs)):
            size += len(kept.data) if kept.data is not later else 0
            later = kept.data
            if place > 0 and (size > self._settings.kept_bytes or place >= self._settings.kept_jpegs):
                del self._jpegs[: len(self._jpegs) - place]
                return

    def _look_back(self, key_luma: Luma) -> list[FrameFeatures]:
        """Frames between the key frame before and this one, where they have something to tell."""
        if self._last is None:
            return []
        if self._decoder is not None:
            return self._sample(self._drain())
        if len(self._gop) < 2 or changed_pixels(self._last.luma, key_luma, _CHANGE) is None:
            return []
        try:
            return self._sample(chain(self._heat(), self._drain()))
        except av.error.FFmpegError:
            # The key frame that asked for this look is whole; a damaged frame before it is not its fault.
            return []

    def _between(self, data: bytes, timestamp_ns: int) -> list[FrameFeatures]:
        """A frame that is no key frame: kept coded, and decoded only while something may be changing."""
        if self._gop_bytes + len(data) > self._settings.max_gop_bytes:
            self._gop, self._decoder = [], None
            return []
        self._gop.append(_Unit(timestamp_ns, data))
        self._gop_bytes += len(data)
        suspicious = self._suspicious(len(data))
        if self._decoder is not None:
            return self._sample(_decode(self._decoder, data, timestamp_ns))
        late = timestamp_ns - self._gop[0].timestamp_ns > self._settings.key_wait_ns
        if not suspicious and not late:
            return []
        return self._sample(self._heat())

    def _heat(self) -> Iterator[av.VideoFrame]:
        """Starts decoding every frame, from the last key frame on, until a quiet key frame comes.

        One frame at a time: two seconds of 1080p frames at once would take 180 MB.
        """
        self._decoder = decoder = _decoder()
        for unit in self._gop:
            yield from _decode(decoder, unit.data, unit.timestamp_ns)

    def _drain(self) -> Iterator[av.VideoFrame]:
        if self._decoder is not None:
            yield from _drain(self._decoder)

    def _suspicious(self, size: int) -> bool:
        """Whether a coded frame is far larger than its neighbours were: something new came into view."""
        typical = self._typical_bytes
        self._typical_bytes += 0.1 * (size - typical)
        return size > 2048 and size > 6 * typical

    def _sample(self, frames: Iterable[av.VideoFrame]) -> list[FrameFeatures]:
        """Features of those frames that are far enough apart, each later than all before it."""
        found = []
        for frame in frames:
            stamp = frame.pts
            last = self._last
            if stamp is not None:
                self._light.append((stamp, _brightness(_luma_plane(frame))))
            if stamp is None or (last is not None and stamp < last.timestamp_ns + self._settings.sample_ns):
                continue
            features = self._features(_luma_plane(frame), frame.width, frame.height, stamp, False)
            if last is not None and changed_pixels(last.luma, features.luma, _CHANGE) is not None:
                self._hot_until_ns = stamp + self._settings.hot_ns
            found.append(features)
        return found

    def _camera(self, data: bytes, key_frame: bool, timestamp_ns: int) -> list[FrameFeatures]:
        if key_frame:
            self._gop = [_Unit(timestamp_ns, data)]
            if self._last is not None and timestamp_ns <= self._last.timestamp_ns:
                self._last, self._decoder = None, None
        if self._decoder is None:
            self._decoder = _decoder(fast=True)
        found = []
        for frame in _decode(self._decoder, data, timestamp_ns):
            stamp = frame.pts
            if stamp is None:
                continue
            plane = _luma_plane(frame)
            self._light.append((stamp, _brightness(plane)))
            self._movement.see(stamp, plane)
            if self._last and stamp < self._last.timestamp_ns + _CAMERA_SPACING_NS:
                continue
            found.append(self._features(plane, frame.width, frame.height, stamp, bool(frame.key_frame)))
        return found

    def _features(
        self, plane: NDArray[np.uint8], width: int, height: int, timestamp_ns: int, key_frame: bool
    ) -> FrameFeatures:
        luma, last = small_luma(plane), self._last
        before = None if last is None else last.luma
        elapsed_ns = 0 if last is None else timestamp_ns - last.timestamp_ns
        camera = self._role == "camera"
        due = self._patches_ns is None or not 0 <= timestamp_ns - self._patches_ns < PATCH_PERIOD_NS
        if camera and due:
            self._patches_ns = timestamp_ns
        self._last = FrameFeatures(
            timestamp_ns=timestamp_ns,
            key_frame=key_frame,
            width=width,
            height=height,
            sharpness=0.0 if camera else sharpness(plane),
            luma=luma,
            volume=volume(luma, before, elapsed_ns, self._movement.take() if camera else None),
            patches=patches(plane) if camera and due else None,
        )
        return self._last

    def _jpeg_due(self, size: int, timestamp_ns: int) -> bool:
        last = self._last
        if last is None or timestamp_ns < last.timestamp_ns:
            self._last = None
            self._typical_bytes = float(size)
            return True
        elapsed_ns = timestamp_ns - last.timestamp_ns
        if self._role == "camera":
            return elapsed_ns >= _CAMERA_SPACING_NS
        # A JPEG picture of the same screen has nearly the same size each time.
        changed = abs(size - self._typical_bytes) > 0.02 * self._typical_bytes
        self._typical_bytes = float(size)
        if changed:
            self._hot_until_ns = timestamp_ns + self._settings.hot_ns
        hot = timestamp_ns < self._hot_until_ns
        return elapsed_ns >= (self._settings.sample_ns if hot else self._settings.idle_jpeg_ns)

    def _encode(self, gop: list[_Unit], timestamp_ns: int) -> bytes:
        decoder = _decoder()
        frames: list[av.VideoFrame] = []
        for unit in gop:
            frames = _decode(decoder, unit.data, unit.timestamp_ns)
            if any(frame.pts == timestamp_ns for frame in frames):
                break
        else:
            frames = _drain(decoder)
        frame = next((each for each in frames if each.pts == timestamp_ns), None)
        if frame is None:
            raise PictureError("the frame is no longer kept")
        return self._jpeg_of(frame.to_ndarray(format="bgr24"))

    def _jpeg_of(self, picture: Any) -> bytes:
        if picture is None:
            raise PictureError("the frame cannot be decoded")
        done, coded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, self._settings.jpeg_quality])
        if not done:
            raise PictureError("the frame cannot be coded as JPEG")
        return coded.tobytes()


def _decoder(fast: bool = False) -> VideoCodecContext:
    """A decoder on one thread that reports damage instead of painting over it.

    `fast` leaves the loop filter out: blocks show a little, which averages over cells do not notice.
    """
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, VideoCodecContext)
    decoder.thread_count = 1
    decoder.options = {"err_detect": "explode", "skip_loop_filter": "all" if fast else "default"}
    return decoder


def _decode(decoder: VideoCodecContext, data: bytes, timestamp_ns: int) -> list[av.VideoFrame]:
    packet = av.Packet(data)
    packet.pts = packet.dts = timestamp_ns
    packet.time_base = _NANOSECONDS
    return list(decoder.decode(packet))


def _drain(decoder: VideoCodecContext) -> list[av.VideoFrame]:
    return list(decoder.decode(None))


def _decode_alone(data: bytes, timestamp_ns: int) -> list[av.VideoFrame]:
    decoder = _decoder()
    frames = [*_decode(decoder, data, timestamp_ns), *_drain(decoder)]
    if not frames:
        raise PictureError("no picture in it")
    return frames


_EIGHT_BIT_LUMA = frozenset(
    {"yuv420p", "yuvj420p", "yuv422p", "yuvj422p", "yuv444p", "yuvj444p", "nv12", "gray"}
)


def _brightness(plane: NDArray[np.uint8]) -> float:
    """Mean of a luma plane, 0..1, by every eighth pixel of every eighth row."""
    return round(float(plane[::8, ::8].mean()) / 255.0, 4)


def _luma_plane(frame: av.VideoFrame) -> NDArray[np.uint8]:
    """Luma of a frame, shape (height, width) uint8; a view where the frame holds it in eight bits."""
    if frame.format.name not in _EIGHT_BIT_LUMA:
        return np.asarray(frame.to_ndarray(format="gray"), np.uint8)
    plane = frame.planes[0]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    return np.asarray(rows[: frame.height, : frame.width], np.uint8)
