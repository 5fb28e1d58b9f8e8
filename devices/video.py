"""Video of a file as access units: H.264 handed through where it is fit for a stream, else coded anew.

Fit means what the contract and a live reader need: key frames at most two seconds apart, pictures in
the order they were shown (no B-frames; cameras send none), 4:2:0, at most 1080p30, upright. Stamps come
from the file's presentation times, so a variable frame rate stays true.
"""

import collections
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

import av
import cv2
import numpy as np
import numpy.typing as npt
from av.bitstream import BitStreamFilterContext
from av.video.frame import PictureType

from contracts.packet import Codec

from .media import PictureInfo, SteadyTime, decoded, opened, packets_of, picture_streams, zero_of
from .streams import InputError, MediaPiece, Note

_NAL_SLICE: Final = 1
_NAL_IDR: Final = 5
_NAL_SPS: Final = 7
_NAL_PPS: Final = 8
_SCAN_BYTES: Final = 256 * 1024 * 1024
"""How much of a file without an index is looked through before its H.264 is handed on."""
_CUT_NS: Final = 2_000_000_000
MAX_UNIT_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """How video becomes access units. ``h264`` hands a fit file's own packets through."""

    codec: Literal["h264", "jpeg"] = "h264"
    max_long_side: int = 1920
    max_short_side: int = 1080
    max_fps: float = 30.0
    key_every_ns: int = 2_000_000_000
    repeat_every_ns: int = 1_000_000_000
    """A picture that stays is sent again this often, so that a still screen is no silent stream."""
    quality: int = 23
    """x264's constant rate factor; smaller is better."""
    jpeg_quality: int = 90

    def __post_init__(self) -> None:
        if not 0 < self.key_every_ns <= 2_000_000_000:
            raise ValueError("key_every_ns must be at most two seconds: readers join a stream at key frames")
        if not 0 < self.repeat_every_ns <= 2_000_000_000 or self.max_fps <= 0:
            raise ValueError("repeat_every_ns must be at most two seconds and max_fps positive")

    def fitted(self, width: int, height: int) -> tuple[int, int]:
        """Even width and height within the limits, in the same proportion."""
        long, short = max(width, height), min(width, height)
        scale = min(Fraction(self.max_long_side, long), Fraction(self.max_short_side, short), Fraction(1))
        return max(2, int(width * scale) // 2 * 2), max(2, int(height * scale) // 2 * 2)


@dataclass(frozen=True, slots=True)
class Picture:
    """One decoded picture; ``at_ns`` from the file's zero."""

    at_ns: int
    frame: av.VideoFrame


@dataclass(frozen=True, slots=True)
class VideoSource:
    """Video of a file. Never holds more than a few pictures."""

    path: Path
    info: PictureInfo
    settings: VideoSettings = field(default_factory=VideoSettings)
    duration_ns: int | None = None

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """Access units by rising stamp; see ``Source``."""
        end_ns = begin_ns = longest_ns = 0
        units = self._handed_through(note) if self.fit() else self._coded_anew(note)
        for piece in units:
            if len(piece.payload) > MAX_UNIT_BYTES:
                note(f"the picture at {piece.offset_ns / 1e9:.1f} s takes more than 4 MiB and is left out")
                continue
            longest_ns = max(longest_ns, piece.offset_ns - begin_ns)
            begin_ns, end_ns = piece.offset_ns, piece.offset_ns + piece.duration_ns
            yield piece
        # A screen that nobody touches has no new picture for as long as it had none before.
        allowed_ns = max(_CUT_NS, 2 * longest_ns, (self.duration_ns or 0) // 20)
        if self.duration_ns is not None and self.duration_ns - end_ns > allowed_ns:
            claimed = self.duration_ns / 1e9
            note(f"its video ends after {end_ns / 1e9:.1f} s, the file promises {claimed:.1f} s: cut short?")

    def fit(self) -> bool:
        """Whether the file's own H.264 is handed through."""
        info, settings = self.info, self.settings
        if settings.codec != "h264" or info.codec != "h264" or info.rotation:
            return False
        if info.pixel_format not in {"yuv420p", "yuvj420p"} or info.fps > settings.max_fps * 1.05:
            return False
        # Coded height is a multiple of 16, so 1080p may say 1088.
        if max(info.width, info.height) > settings.max_long_side + 8:
            return False
        if min(info.width, info.height) > settings.max_short_side + 8:
            return False
        return _streamable(self.path, settings.key_every_ns)

    def _handed_through(self, note: Note) -> Iterator[MediaPiece]:
        with opened(self.path) as container:
            stream, zero = picture_streams(container)[0], zero_of(container)
            to_annex_b = BitStreamFilterContext("h264_mp4toannexb", stream)
            usual_ns = _frame_ns(self.info.fps)
            steady = SteadyTime(usual_ns)
            began, last_ns = False, -1
            for packet in packets_of(
                container, stream, lambda: note("its video breaks off: damaged or cut short")
            ):
                try:
                    units = list(to_annex_b.filter(packet)) if packet.size else []
                except (av.FFmpegError, ValueError):
                    note("its video is damaged; what can be read is used")
                    to_annex_b.flush()
                    # What follows builds on what is lost.
                    began, units = False, []
                for unit in units:
                    payload = bytes(unit)
                    key = _has_idr(payload)
                    began = began or key
                    if not began or unit.pts is None or unit.time_base is None:
                        continue  # nothing can be decoded before the first key frame
                    at_ns = steady(_nanoseconds(unit.pts * unit.time_base - zero))
                    if at_ns <= last_ns:
                        continue
                    last_ns = at_ns
                    length_ns = _nanoseconds(unit.duration * unit.time_base) if unit.duration else usual_ns
                    yield MediaPiece(
                        at_ns, min(length_ns, 10**10), Codec.H264, payload, round(self.info.fps),
                        self.info.width, self.info.height, key_frame=key,
                    )  # fmt: skip

    def _coded_anew(self, note: Note) -> Iterator[MediaPiece]:
        encoder = Encoder(self.settings, self.info)
        for picture in self._pictures(note):
            yield from encoder.encode(picture)
        yield from encoder.finish(_frame_ns(self.info.fps))

    def _pictures(self, note: Note) -> Iterator[Picture]:
        """Pictures by rising time, at most ``max_fps`` a second, the first one never before zero."""
        spacing_ns, usual_ns = round(10**9 / self.settings.max_fps * 0.9), _frame_ns(self.info.fps)
        steady = SteadyTime(usual_ns)
        damaged: list[int] = []
        last_ns: int | None = None
        with opened(self.path) as container:
            stream, zero = picture_streams(container)[0], zero_of(container)
            stream.codec_context.thread_count, stream.thread_type = 2, "AUTO"
            if self.info.fps >= 2 * self.settings.max_fps:
                # Pictures that no other one builds on would mostly be decoded to be dropped.
                stream.codec_context.skip_frame = "NONREF"
            # AVI stores no presentation times; what is guessed for B-frames is out of order.
            decoding_times = container.format.name == "avi"
            for frame in decoded(container, stream, damaged):
                if not isinstance(frame, av.VideoFrame):
                    continue
                stamp = frame.dts if decoding_times else frame.pts
                if stamp is not None and frame.time_base is not None:
                    at_ns = max(0, steady(_nanoseconds(stamp * frame.time_base - zero)))
                else:
                    at_ns = 0 if last_ns is None else last_ns + usual_ns
                if last_ns is None or at_ns - last_ns >= spacing_ns:
                    last_ns = at_ns
                    yield Picture(at_ns, frame)
        if last_ns is None:
            raise InputError(self.path, "damaged: no picture can be decoded")
        if damaged:
            places = f"{len(damaged)} place{'s' if len(damaged) > 1 else ''}"
            note(f"its video is damaged in {places}; what can be read is used")


class Encoder:
    """Codes pictures as H.264 or JPEG; each call may give repetitions of the one before first."""

    def __init__(self, settings: VideoSettings, info: PictureInfo) -> None:
        self._settings = settings
        self._rate_hz = max(1, round(min(info.fps or settings.max_fps, settings.max_fps)))
        self._rotation = info.rotation
        self._context: av.VideoCodecContext | None = None
        self._size = (0, 0)
        self._held: Picture | None = None
        self._last_key_ns: int | None = None
        self._count = 0
        self._pending: collections.deque[tuple[int, int, bool]] = collections.deque()

    def encode(self, picture: Picture) -> Iterator[MediaPiece]:
        """Units up to the one before ``picture``, whose own length only the next one tells."""
        yield from self._until(picture.at_ns)
        frame = upright(picture.frame, self._rotation)
        width, height = self._settings.fitted(frame.width, frame.height)
        same = (frame.width, frame.height, frame.format.name) == (width, height, "yuv420p")
        self._held = Picture(picture.at_ns, frame if same else _scaled(frame, width, height))

    def finish(self, length_ns: int) -> Iterator[MediaPiece]:
        """Units of the last picture, which stays for ``length_ns``."""
        if self._held is not None:
            yield from self._until(self._held.at_ns + length_ns)
        if self._context is not None:
            yield from self._units(self._context.encode(None))

    def _until(self, end_ns: int) -> Iterator[MediaPiece]:
        if self._held is None:
            return
        at_ns, frame = self._held.at_ns, self._held.frame
        while at_ns < end_ns:
            # A rest shorter than a tenth of the spacing is not worth a picture of its own.
            step_ns = self._settings.repeat_every_ns
            until_ns = end_ns if end_ns - at_ns < step_ns * 11 // 10 else at_ns + step_ns
            yield from self._coded(frame, at_ns, until_ns - at_ns)
            at_ns = until_ns

    def _coded(self, frame: av.VideoFrame, at_ns: int, length_ns: int) -> Iterator[MediaPiece]:
        if self._settings.codec == "jpeg":
            payload = jpeg_of(frame.to_ndarray(format="bgr24"), self._settings.jpeg_quality)
            size = (frame.width, frame.height)
            yield MediaPiece(at_ns, length_ns, Codec.JPEG, payload, self._rate_hz, *size, key_frame=True)
            return
        if self._context is None or self._size != (frame.width, frame.height):
            if self._context is not None:
                yield from self._units(self._context.encode(None))
            self._context, self._size = self._opened(frame), (frame.width, frame.height)
            self._last_key_ns = None
        # Whether the next picture would come too late to be the key frame.
        late_ns = at_ns + length_ns - self._settings.key_every_ns
        due = self._last_key_ns is None or late_ns > self._last_key_ns
        if due:
            self._last_key_ns = at_ns
        frame.pict_type = PictureType.I if due else PictureType.NONE
        frame.pts, frame.time_base = self._count, Fraction(1, self._rate_hz)
        self._count += 1
        self._pending.append((at_ns, length_ns, due))
        yield from self._units(self._context.encode(frame))

    def _opened(self, frame: av.VideoFrame) -> av.VideoCodecContext:
        context = av.CodecContext.create("libx264", "w")
        if not isinstance(context, av.VideoCodecContext):
            raise TypeError("libx264 is no video codec")
        context.width, context.height, context.pix_fmt = frame.width, frame.height, "yuv420p"
        context.time_base, context.framerate = Fraction(1, self._rate_hz), Fraction(self._rate_hz)
        context.max_b_frames, context.gop_size, context.thread_count = 0, 10_000, 2
        context.options = {
            "preset": "superfast", "tune": "zerolatency", "forced-idr": "1",
            "crf": str(self._settings.quality),
            "x264-params": "repeat-headers=1:annexb=1:scenecut=0",
        }  # fmt: skip
        return context

    def _units(self, packets: "list[av.Packet[av.VideoStream]]") -> Iterator[MediaPiece]:
        for packet in packets:
            at_ns, length_ns, _ = self._pending.popleft()
            payload = bytes(packet)
            yield MediaPiece(
                at_ns, length_ns, Codec.H264, payload, self._rate_hz, *self._size, key_frame=_has_idr(payload)
            )  # fmt: skip


def jpeg_of(pixels: npt.ArrayLike, quality: int) -> bytes:
    """JPEG file of pixels ``(height, width, 3)`` in BGR order."""
    done, data = cv2.imencode(".jpg", np.asarray(pixels), [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise ValueError("the picture cannot be coded as JPEG")
    return bytes(data.tobytes())


def upright(frame: av.VideoFrame, rotation: int) -> av.VideoFrame:
    """The frame turned counter-clockwise by ``rotation`` degrees, in quarter turns."""
    turns = rotation % 360 // 90
    if turns == 0:
        return frame
    pixels = np.rot90(frame.to_ndarray(format="bgr24"), turns).astype(np.uint8)
    return av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="bgr24")


def _scaled(frame: av.VideoFrame, width: int, height: int) -> av.VideoFrame:
    return frame.reformat(width=width, height=height, format="yuv420p", interpolation="BICUBIC")


def _streamable(path: Path, key_every_ns: int) -> bool:
    """Whether key frames are near enough and stamps rise; the index answers, else the packets do."""
    limit_s = Fraction(key_every_ns, 10**9) * Fraction(101, 100)
    with opened(path) as container:
        stream = picture_streams(container)[0]
        time_base = stream.time_base or Fraction(1, 90_000)
        if stream.codec_context.has_b_frames:
            return False
        keys = [entry.timestamp for entry in stream.index_entries if entry.is_keyframe]
        indexed = len(stream.index_entries) > len(keys)
        longest = max((after - before for before, after in itertools.pairwise(keys)), default=0)
        if indexed and longest > limit_s / time_base:
            return False
        to_annex_b = BitStreamFilterContext("h264_mp4toannexb", stream)
        last_key: int | None = None
        last_pts: int | None = None
        read = 0
        try:
            for packet in container.demux(stream):
                at, size, key = packet.pts, packet.size, packet.is_keyframe
                if at is None or not size:
                    continue
                if last_pts is not None and at <= last_pts:
                    return False
                # The filter takes the packet's bytes with it; it must see every packet.
                if not all(_can_join(bytes(unit)) or not key for unit in to_annex_b.filter(packet)):
                    return False
                last_pts, read = at, read + size
                if key:
                    last_key = at
                elif last_key is None or at - last_key > limit_s / time_base:
                    return False
                if read > (_SCAN_BYTES >> 4 if indexed else _SCAN_BYTES):
                    break
        except (av.FFmpegError, OSError, ValueError, IndexError):
            return False  # the decoder finds its way around damage better than a reader of bare packets
        return last_key is not None


def _nal_kinds(unit: bytes) -> set[int]:
    """Kinds of the NAL units of an Annex B access unit, up to and with its first slice."""
    kinds: set[int] = set()
    start = unit.find(b"\0\0\1")
    while 0 <= start < len(unit) - 3 and not kinds & {_NAL_SLICE, _NAL_IDR}:
        kinds.add(unit[start + 3] & 0x1F)
        start = unit.find(b"\0\0\1", start + 3)
    return kinds


def _has_idr(payload: bytes) -> bool:
    """Whether an access unit is a key frame from which decoding can begin."""
    return _NAL_IDR in _nal_kinds(payload)


def _can_join(payload: bytes) -> bool:
    """Whether a reader can begin with this access unit: a key frame with its parameter sets before it."""
    return {_NAL_IDR, _NAL_SPS, _NAL_PPS} <= _nal_kinds(payload)


def _frame_ns(fps: float) -> int:
    return round(10**9 / fps) if 0.1 <= fps <= 1000 else 10**9 // 30


def _nanoseconds(seconds: Fraction) -> int:
    return round(seconds * 10**9)
