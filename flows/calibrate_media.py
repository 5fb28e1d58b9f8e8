"""What cameras saw and microphones heard, from recorded files or from the device topics, for a calibration.

Pictures are decoded in this process: it is a command that a person runs, and nothing else ends with it.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Final

import av
import numpy as np
import scipy.ndimage  # type: ignore[import-untyped]
from av.video.codeccontext import VideoCodecContext

from contracts.leap_seconds import TAI_UTC_NS
from contracts.packet import ClockKind, Codec, Modality, Packet, PacketError, decode, payload_array
from contracts.topics import AUDIO, VIDEO
from devices.inputs import Room
from devices.stored_calibrations import CalibrationProblem
from devices.streams import merged
from operators.broker.kafka_link import BrokerLink
from operators.pictures.size import PictureError, check_size, h264_sizes, jpeg_size
from operators.speech.sound_stream import SoundStream

from .calibrate_moments import Heard, Seen
from .topic_reader import Found, TopicReader

_NANOSECONDS: Final = Fraction(1, 10**9)
_WIDTH: Final = 96
_HEIGHT: Final = 54
_DARK_PERCENT: Final = 3
_GAP_NS: Final = 5_000_000
"""Sound whose stamp is later than its count by more has lost a stretch; silence stands for it."""
_LONGEST_GAP_NS: Final = 60 * 10**9
_NEAR_BLOCKS: Final = 51
"""Stamps of single blocks are noisy: what they leave the count of samples by is the median of so many."""
_FLOOR_NS: Final = {Modality.AUDIO: 9_000_000, Modality.VIDEO: 38_000_000}
"""Usual shortest way from the capture to the broker."""


_UNDATED: Final = "its stamps count from when it was switched on; measure it by a clock that has a date"


class Taken:
    """Collects packets of devices: sound as samples, pictures as brightness."""

    def __init__(self) -> None:
        self._sound: dict[str, _Sound] = {}
        self._pictures: dict[str, _Pictures] = {}
        self.arrival_error_ns: dict[str, int] = {}
        """What stamps are off by at most, as their arrival has it: late where above 0."""
        self._others: dict[str, str] = {}
        self._runs: dict[tuple[str, Modality], list[int]] = {}
        """Stream epochs of each stream in the order in which they began."""

    def packet(self, packet: Packet, arrival_ns: int | None = None) -> None:
        """Take in a packet; what cannot be decoded is passed over. ``arrival_ns``: append time, TAI.

        Of a publisher that started again counts what it has sent since.
        """
        if packet.clock_kind is ClockKind.MONOTONIC:
            self.expect(packet.device_id, _UNDATED)
            return
        if packet.clock_kind is ClockKind.UTC:
            # Calibrations come on top of what the kind of clock is off by.
            packet = replace(packet, timestamp_ns=packet.timestamp_ns + TAI_UTC_NS)
        if self._is_over(packet):
            return
        if packet.modality is Modality.AUDIO:
            self._sound.setdefault(packet.device_id, _Sound()).take(packet)
        elif packet.modality is Modality.VIDEO:
            self._pictures.setdefault(packet.device_id, _Pictures()).take(packet)
        else:
            return
        if arrival_ns is not None:
            ahead = (
                packet.timestamp_ns + packet.duration_ns * (packet.modality is Modality.AUDIO) - arrival_ns
            )
            error = ahead + _FLOOR_NS[packet.modality]
            known = self.arrival_error_ns.get(packet.device_id)
            self.arrival_error_ns[packet.device_id] = error if known is None else max(known, error)

    def _is_over(self, packet: Packet) -> bool:
        """Whether the packet is of a run of its publisher that a later one has followed."""
        runs = self._runs.setdefault((packet.device_id, packet.modality), [])
        if packet.stream_epoch not in runs:
            runs.append(packet.stream_epoch)
            of_kind = self._sound if packet.modality is Modality.AUDIO else self._pictures
            of_kind.pop(packet.device_id, None)
            self.arrival_error_ns.pop(packet.device_id, None)
        return packet.stream_epoch != runs[-1]

    def expect(self, device: str, otherwise: str) -> None:
        """Name a device that should be there, and what is to be said where nothing of it can be measured."""
        self._others.setdefault(device, otherwise)

    def unmeasurable(self) -> dict[str, str]:
        """Devices without sound or pictures that could be read, and why."""
        known = {d.device for d in self.heard()} | {d.device for d in self.seen()}
        sent = dict.fromkeys((*self._sound, *self._pictures), "none of what it sent can be decoded")
        return {name: why for name, why in (sent | self._others).items() if name not in known}

    def span_s(self) -> float:
        """Length of the longest stream."""
        spans = [len(d.samples) / d.rate_hz for d in self.heard()]
        return max([*spans, *((int(d.at_ns[-1]) - int(d.at_ns[0])) / 1e9 for d in self.seen())], default=0.0)

    def heard(self) -> list[Heard]:
        """Sound by device."""
        found = [sound.heard(name) for name, sound in sorted(self._sound.items())]
        return [one for one in found if one is not None]

    def seen(self) -> list[Seen]:
        """Brightness by device."""
        return [p.seen(name) for name, p in sorted(self._pictures.items()) if len(p.at_ns) > 2]


class _Sound:
    def __init__(self) -> None:
        self._stream = SoundStream()
        self._blocks: dict[int, tuple[int, np.ndarray]] = {}
        self._rate_hz = 0

    def take(self, packet: Packet) -> None:
        try:
            if packet.codec is Codec.PCM_S16LE:
                samples, rate_hz = payload_array(packet), packet.rate_hz
            elif packet.codec is Codec.FLAC:
                samples, rate_hz = self._stream.flac(bytes(packet.payload))
            else:
                samples, rate_hz = self._stream.opus(bytes(packet.payload), packet.channels)
        except ValueError:
            return
        if self._rate_hz in (0, rate_hz):
            self._rate_hz = rate_hz
            mono = samples[:, 0].astype(np.float32) * np.float32(1 / 32768)
            self._blocks[packet.sequence] = (packet.timestamp_ns, mono)

    def heard(self, name: str) -> Heard | None:
        """All blocks in their order; what is missing is silence."""
        parts: list[np.ndarray] = []
        places: list[int] = []
        leaves: list[float] = []
        first_ns = count = 0
        for _, (at_ns, samples) in sorted(self._blocks.items()):
            if not parts:
                first_ns = at_ns
            gap_ns = at_ns - first_ns - round(count * 1e9 / self._rate_hz)
            # What the clock drifts is no gap: it grows from block to block, and a lost one comes at once.
            lost_ns = gap_ns - (leaves[-1] if leaves else 0)
            if _GAP_NS < lost_ns < _LONGEST_GAP_NS:
                parts.append(np.zeros(round(lost_ns * self._rate_hz / 1e9), np.float32))
                count += len(parts[-1])
                gap_ns -= round(len(parts[-1]) * 1e9 / self._rate_hz)
            places.append(count)
            leaves.append(gap_ns)
            parts.append(samples)
            count += len(samples)
        if not count:
            return None
        smooth = scipy.ndimage.median_filter(np.asarray(leaves, np.float64), _NEAR_BLOCKS, mode="nearest")
        return Heard(
            name, first_ns, self._rate_hz, np.concatenate(parts), (np.asarray(places, np.float64), smooth)
        )


class _Pictures:
    def __init__(self) -> None:
        self._decoder: VideoCodecContext | None = None
        self.at_ns: list[int] = []
        self._levels: list[tuple[float, float]] = []

    def take(self, packet: Packet) -> None:
        data = bytes(packet.payload)
        try:
            for frame in self._jpeg(data) if packet.codec is Codec.JPEG else self._h264(data, packet):
                small = frame.reformat(_WIDTH, _HEIGHT, "gray", interpolation="AREA").to_ndarray()
                at_ns = packet.timestamp_ns if frame.pts is None else int(frame.pts)
                if not self.at_ns or at_ns > self.at_ns[-1]:
                    self.at_ns.append(at_ns)
                    self._levels.append(
                        (float(small.mean()) / 255, float(np.percentile(small, _DARK_PERCENT)) / 255)
                    )
        except (PictureError, av.FFmpegError, ValueError):
            self._decoder = None

    def _jpeg(self, data: bytes) -> Iterator[av.VideoFrame]:
        check_size(*jpeg_size(data), 4096, 2304)
        for frame in VideoCodecContext.create("mjpeg", "r").decode(av.Packet(data)):
            frame.pts = None
            yield frame

    def _h264(self, data: bytes, packet: Packet) -> Iterator[av.VideoFrame]:
        for width, height in h264_sizes(data):
            check_size(width, height, 4096, 2304)
        if self._decoder is None:
            if not packet.key_frame:
                return
            self._decoder = VideoCodecContext.create("h264", "r")
            self._decoder.options = {"flags": "low_delay"}
            self._decoder.thread_count = 1
        unit = av.Packet(data)
        unit.pts, unit.time_base = packet.timestamp_ns, _NANOSECONDS
        yield from self._decoder.decode(unit)

    def seen(self, name: str) -> Seen:
        levels = np.asarray(self._levels, np.float64)
        return Seen(name, np.asarray(self.at_ns, np.int64), levels[:, 0], levels[:, 1])


def from_room(room: Room, within_s: float) -> Taken:
    """The beginning of a recorded room, so many seconds of it."""
    taken = Taken()
    until_ns = room.start_ns + round(within_s * 1e9)
    for stream in sorted(room.streams, key=lambda s: s.modality is Modality.TRANSCRIPT):
        words = stream.modality is Modality.TRANSCRIPT
        taken.expect(
            stream.device_id,
            "a transcript, which has nothing to measure" if words
            else f"no sound or picture in the first {within_s:g} s could be read",
        )  # fmt: skip
    for _, message in merged(room.streams):
        if message.timestamp_ns > until_ns:
            break
        if isinstance(message, Packet):
            taken.packet(message)
    return taken


def from_topics(link: BrokerLink, meeting_id: str, lasts_s: float, patience_s: float) -> Taken:
    """What a meeting's devices have sent, and send for so many seconds from now on.

    Raises:
        BrokerUnreachable: no broker answers.
        CalibrationProblem: nothing of the meeting is there.
    """
    taken, begun = Taken(), time.monotonic()
    with TopicReader(link, (AUDIO, VIDEO), meeting_id, wait_s=patience_s) as reader:
        count = _taken_in(taken, meeting_id, reader.to_end())
        while time.monotonic() - begun < lasts_s:
            count += _taken_in(taken, meeting_id, reader.poll())
    if not count:
        raise CalibrationProblem(f"no sound or picture of meeting {meeting_id} is on the topics")
    return taken


def _taken_in(taken: Taken, meeting_id: str, messages: Iterable[Found]) -> int:
    """How many packets of the meeting were among the messages."""
    count = 0
    for message in messages:
        if message.value is None:
            continue
        try:
            packet = decode(message.value)
        except PacketError:
            continue
        if packet.meeting_id == meeting_id:
            taken.packet(packet, message.time_ms * 10**6 + TAI_UTC_NS)
            count += 1
    return count
