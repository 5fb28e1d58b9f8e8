"""The calibration signal played into recorded media: tones into PCM blocks, light into coded pictures."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import av
import numpy as np
import numpy.typing as npt

from contracts.packet import Packet
from contracts.pulse_train import CHIRP_FROM_HZ, CHIRP_S, CHIRP_TO_HZ, ON_S, PULSES_S
from devices.media import PictureInfo
from devices.video import Encoder, Picture, VideoSettings

_S: Final = 1_000_000_000
_EXPOSURE_S: Final = 0.008
_TONE: Final = 0.15
_ROOM_LIGHT: Final = 90
"""Levels of luma that the flash adds to what a camera sees."""
_WHITE, _BLACK = 235, 16
_AROUND_NS: Final = _S
LASTS_S: Final = PULSES_S[-1] + ON_S
_NANOSECONDS: Final = Fraction(1, _S)


def with_tones(packets: Sequence[Packet], begin_ns: int, way_s: float) -> list[Packet]:
    """PCM blocks stamped with true times, with the signal in them as it comes after ``way_s``."""
    found = []
    for packet in packets:
        samples = np.frombuffer(packet.payload, np.dtype("<i2")).reshape(-1, packet.channels)
        since = (packet.timestamp_ns - begin_ns) / _S - way_s + np.arange(len(samples)) / packet.rate_hz
        tones = sum((_tone(since - at) for at in PULSES_S), np.zeros(len(samples)))
        if np.any(tones):
            mixed = np.clip(samples + 32767.0 * _TONE * tones[:, None], -32768, 32767)
            packet = replace(packet, payload=np.rint(mixed).astype("<i2").tobytes())
        found.append(packet)
    return found


def _tone(since: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    inside = (since >= 0) & (since < CHIRP_S)
    phase = CHIRP_FROM_HZ * since + 0.5 * (CHIRP_TO_HZ - CHIRP_FROM_HZ) / CHIRP_S * since**2
    softly = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * since / CHIRP_S))
    return np.where(inside, np.sin(2 * np.pi * phase) * softly, 0.0)


def with_flashes(
    packets: Sequence[Packet], info: PictureInfo, begin_ns: int, *, screen: bool
) -> list[Packet]:
    """H.264 access units stamped with true times, those around the signal decoded, lit and coded anew.

    ``screen``: the stream is the screen that shows the signal; else a camera in the room.
    """
    keys = [n for n, p in enumerate(packets) if p.key_frame]
    stamps = [p.timestamp_ns for p in packets]
    until_ns = begin_ns + round(LASTS_S * _S) + _AROUND_NS
    before = [k for k in keys if stamps[k] <= begin_ns - _AROUND_NS]
    after = [k for k in keys if stamps[k] >= until_ns]
    first, last = before[-1] if before else 0, after[0] if after else len(packets)
    encoder, found = Encoder(VideoSettings(), info), list(packets[:first])
    units = [
        u for picture in _lit(packets[first:last], begin_ns, screen=screen) for u in encoder.encode(picture)
    ]
    units += encoder.finish(packets[last - 1].duration_ns)
    for unit in units:
        packet = packets[bisect.bisect_left(stamps, unit.offset_ns)]
        found.append(replace(packet, payload=unit.payload, key_frame=unit.key_frame, width=unit.width,
                             height=unit.height, timestamp_ns=unit.offset_ns))  # fmt: skip
    found += packets[last:]
    return [replace(p, sequence=n) for n, p in enumerate(found)]


def _lit(packets: Sequence[Packet], begin_ns: int, *, screen: bool) -> Iterator[Picture]:
    decoder = av.CodecContext.create("h264", "r")
    if not isinstance(decoder, av.VideoCodecContext):
        raise TypeError("h264 is no video codec")
    for packet in packets:
        unit = av.Packet(bytes(packet.payload))
        unit.pts = unit.dts = packet.timestamp_ns
        unit.time_base = _NANOSECONDS
        yield from _pictures(decoder.decode(unit), begin_ns, screen=screen)
    yield from _pictures(decoder.decode(None), begin_ns, screen=screen)


def _pictures(frames: Sequence[av.VideoFrame], begin_ns: int, *, screen: bool) -> Iterator[Picture]:
    for frame in frames:
        if frame.pts is None:
            continue
        at_s = (frame.pts - begin_ns) / _S
        planes = np.array(frame.to_ndarray(format="yuv420p"), np.uint8)
        luma = planes[: frame.height]
        if screen and -0.5 < at_s < LASTS_S + 0.5:
            lit = any(at <= at_s < at + ON_S for at in PULSES_S)
            planes[:] = 128
            luma[:] = _WHITE if lit else _BLACK
        elif not screen:
            luma[:] = np.minimum(luma.astype(np.int16) + round(_ROOM_LIGHT * _share(at_s)), _WHITE)
        yield Picture(frame.pts, av.VideoFrame.from_ndarray(planes, "yuv420p"))


def _share(at_s: float) -> float:
    """Share of an exposure around ``at_s`` for which the light is on."""
    begin, end = at_s - _EXPOSURE_S / 2, at_s + _EXPOSURE_S / 2
    lit = sum(max(0.0, min(end, at + ON_S) - max(begin, at)) for at in PULSES_S)
    return lit / _EXPOSURE_S
