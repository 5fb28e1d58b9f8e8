"""Messages for fuzzing: good ones, and good ones that were bent, from a seed."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import av
import cv2
import google_crc32c
import numpy as np
import numpy.typing as npt
import soundfile

from contracts.examples import messages
from contracts.messages import (
    AttendeeInfo,
    ChannelSpeaker,
    EndOfStream,
    MeetingEnded,
    MeetingPurged,
    MeetingStarted,
    OcrMessage,
    TextLine,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.topics import AUDIO, CONTROL, DEVICE_TOPICS, OCR, TRANSCRIPT, VIDEO, Topic, TopicNames
from devices.media import PictureInfo
from devices.sound_blocks import coder_for
from devices.video import Encoder, Picture, VideoSettings
from operators.broker.source import Received

from .rooms import SAMPLE

START_NS: Final = 1_790_000_000 * 10**9
BLOCK_NS: Final = 20_000_000
_CRC_AT: Final = 12
_NUMBERS: Final = (0, 1, 0x7F, 0x80, 0xFF)
_STRANGE_VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 1e308, -0.0, 1e-320, float("nan"), float("inf"), "", " ", "*",
    "a" * 70, "x" * 5_000, "\u0000", "\u202eevil", "\u200b", "\ud800", "e\u0301", "NaN", "2026-02-30", "../../etc",
    "<script>", [], {}, [[]], [None], {"a": {}}, ["x"] * 200,
)  # fmt: skip
_STRANGE: Final = tuple(json.dumps(value) for value in _STRANGE_VALUES)


class Mutator:
    """Bends packets and JSON messages."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def packet(self, good: Sequence[bytes]) -> bytes:
        """A packet that was good; now and then it still is."""
        value = bytearray(self.chance.choice(good))
        way = self.chance.randrange(10)
        if way == 0:
            return bytes(value)
        if way == 1:
            return bytes(value[: self.chance.randrange(len(value))])
        if way == 2:
            return self.chance.randbytes(self.chance.randrange(120))
        if way == 3:
            return bytes(value) + self.chance.randbytes(self.chance.randrange(1, 20))
        for _ in range(self.chance.randint(1, 4)):
            # The header is where the sense is.
            place = self.chance.randrange(min(len(value), 96) if way < 9 else len(value))
            value[place] = self.chance.choice((*_NUMBERS, self.chance.randrange(256)))
        return with_checksum(bytes(value)) if way > 5 else bytes(value)

    def message(self, good: bytes) -> bytes:
        """A JSON message that was good; now and then it still is."""
        way = self.chance.randrange(10)
        if way == 0:
            return good
        if way == 1:
            return good[: self.chance.randrange(len(good))]
        if way == 2:
            value = bytearray(good)
            value[self.chance.randrange(len(value))] = self.chance.randrange(256)
            return bytes(value)
        if way == 3 and self.chance.random() < 0.1:
            return b"[" * self.chance.randrange(1, 5_000)
        parsed = json.loads(good)
        for _ in range(self.chance.randint(1, 2)):
            self._bend(parsed)
        return json.dumps(parsed).encode()

    def _bend(self, value: Any) -> None:
        """Change one thing somewhere in a JSON value."""
        while True:
            keys = (
                list(value)
                if isinstance(value, dict)
                else list(range(len(value)))
                if isinstance(value, list)
                else []
            )
            if not keys:
                return
            key = self.chance.choice(keys)
            if isinstance(value[key], dict | list) and value[key] and self.chance.random() < 0.7:
                value = value[key]
                continue
            way = self.chance.random()
            if way < 0.15 and isinstance(value, dict):
                del value[key]
            elif way < 0.25 and isinstance(value, dict):
                value[f"{key}_"] = value[key]
            else:
                value[key] = json.loads(self.chance.choice(_STRANGE))
            return


def with_checksum(packet: bytes) -> bytes:
    """The bytes with the checksum that fits them, where they are long enough to have one."""
    if len(packet) < 64:
        return packet
    blank = packet[:_CRC_AT] + bytes(4) + packet[_CRC_AT + 4 :]
    checksum = int(google_crc32c.value(blank))
    return packet[:_CRC_AT] + checksum.to_bytes(4, "little") + packet[_CRC_AT + 4 :]


class _Device:
    """One stream of a meeting that goes on, well or badly."""

    def __init__(
        self, meeting: str, name: str, payloads: Sequence[tuple[Codec, bytes, dict[str, Any]]]
    ) -> None:
        self.meeting = meeting
        self.name = name
        self.payloads = payloads
        self.epoch = 1
        self.sequence = 0
        self.count = 0
        self.shift_ns = 0
        self.sent: list[bytes] = []

    def packet(self, modality: Modality) -> Packet:
        codec, payload, rest = self.payloads[self.sequence % len(self.payloads)]
        step_ns = BLOCK_NS if modality is Modality.AUDIO else 100_000_000
        packet = Packet(
            self.meeting, self.name, modality, codec, ClockKind.PTP, self.epoch, self.sequence,
            START_NS + self.count * step_ns + self.shift_ns, step_ns, payload, **rest,
        )  # fmt: skip
        self.sequence += 1
        self.count += 1
        return packet


class Traffic:
    """What comes in over the device topics: several meetings, each stream bent in its own ways."""

    def __init__(self, names: TopicNames, seed: int) -> None:
        self._names = names
        self._chance = random.Random(seed + 1)
        self._mutator = Mutator(seed + 2)
        self._offsets: dict[str, int] = {}
        self._control = [m.to_bytes() for name, m in sorted(messages().items()) if name in _CONTROL_NAMES]
        self._held: list[tuple[Topic, bytes]] = []
        self._round = 0
        self._pcm, self._flac, self._opus = _sound()
        self._video, self._jpeg = _pictures(seed)
        self._open()

    def _open(self) -> None:
        """New meetings; those before go on only in what comes late."""
        self._round += 1
        ids = [f"fuzz-{self._round}-{n}" for n in range(40)]
        here = [name for name in ids if self._names.partition(name) == 0][:5]
        self._meetings = [*here, *[name for name in ids if self._names.partition(name) == 1][:1]]
        self._devices = {
            meeting: [
                (AUDIO, Modality.AUDIO, _Device(meeting, "mic", self._pcm)),
                (AUDIO, Modality.AUDIO, _Device(meeting, "flac", self._flac)),
                (AUDIO, Modality.AUDIO, _Device(meeting, "opus", self._opus)),
                (VIDEO, Modality.VIDEO, _Device(meeting, "screen", self._video)),
                (VIDEO, Modality.VIDEO, _Device(meeting, "camera", self._jpeg)),
            ]
            for meeting in self._meetings
        }
        self._lines: dict[str, int] = dict.fromkeys(self._meetings, 0)
        for meeting in self._meetings[:3]:
            started = MeetingStarted(
                meeting_id=meeting, start_ns=START_NS, attendees=(AttendeeInfo(name="Anna"),),
                channel_map=(ChannelSpeaker(device="mic", speaker="Anna"),), slide_devices=("screen",),
            )  # fmt: skip
            self._held.append((CONTROL, started.to_bytes()))

    def quiet_s(self) -> float:
        """How much time goes by now: mostly hardly any, sometimes so much that streams are given up."""
        return self._chance.choice((0.01, 0.05, 0.3, 1.0)) if self._chance.random() < 0.9 else 1.0

    def next(self, number: int) -> Received:
        """The next message."""
        if number and number % 10_000 == 0:
            self._open()
        if self._held and self._chance.random() < 0.3:
            topic, value = self._held.pop(self._chance.randrange(len(self._held)))
        else:
            topic, value = self._one()
        if self._chance.random() < 0.01:
            topic = self._chance.choice(DEVICE_TOPICS)
        name = self._names.of(topic)
        offset = self._offsets[name] = self._offsets.get(name, -1) + 1
        arrival_ns = START_NS - 37 * 10**9 + number * 1_000_000
        return Received(name, 0, offset, arrival_ns, True, value)

    def _one(self) -> tuple[Topic, bytes]:
        meeting = self._chance.choice(self._meetings)
        way = self._chance.random()
        if way < 0.80:
            return self._media(meeting)
        if way < 0.92:
            return self._text(meeting)
        return CONTROL, self._controlled(meeting)

    def _media(self, meeting: str) -> tuple[Topic, bytes]:
        topic, modality, device = self._chance.choice(self._devices[meeting])
        self._trouble(device)
        if device.sent and self._chance.random() < 0.04:
            return topic, self._chance.choice(device.sent)
        packet = device.packet(modality)
        way = self._chance.random()
        if way < 0.06:
            packet = replace(packet, payload=self._bent(bytes(packet.payload)))
        value = encode(packet)
        device.sent = [*device.sent[-20:], value]
        if way > 0.97:
            self._held.append((topic, value))  # comes later, out of order or too late
            return self._one()
        if way > 0.93:
            return topic, self._mutator.packet([value])
        return topic, value

    def _trouble(self, device: _Device) -> None:
        """Now and then a device loses packets, starts again, or has its clock set."""
        way = self._chance.random()
        if way < 0.01:
            device.sequence += self._chance.choice((1, 2, 40, 2**40))
        elif way < 0.013:
            device.epoch, device.sequence = self._chance.choice(((device.epoch + 1) % 2**64, 2**64 - 1, 0)), 0
        elif way < 0.016:
            device.shift_ns += self._chance.choice((10**9, -(10**9), 3600 * 10**9, -(10**18)))
        if device.sequence > 2**41:
            device.epoch, device.sequence = device.epoch % 2**60 + 1, 0
        if abs(device.shift_ns) > 4 * 10**18:
            device.shift_ns = 0

    def _bent(self, payload: bytes) -> bytes:
        way = self._chance.randrange(4)
        if way == 0:
            return self._chance.randbytes(2 * self._chance.randrange(1, 600))
        if way == 1 and len(payload) > 4:
            return payload[: 2 * self._chance.randrange(1, len(payload) // 2)]
        value = bytearray(payload)
        for _ in range(self._chance.randint(1, 8)):
            value[self._chance.randrange(len(value))] = self._chance.randrange(256)
        return bytes(value)

    def _text(self, meeting: str) -> tuple[Topic, bytes]:
        number = self._lines[meeting]
        self._lines[meeting] += self._chance.choice((0, 1, 1, 1, 1, 1, 2))
        at_ns = START_NS + number * 2 * 10**9
        fields: dict[str, Any] = {
            "meeting_id": meeting,
            "stream_epoch": 1,
            "sequence": number,
            "timestamp_ns": at_ns,
        }
        kind: Callable[[], bytes] = self._chance.choice(
            (
                lambda: TranscriptMessage(
                    **fields, device_id="asr", duration_ns=10**9, speaker="Ben", text="I will call her by Monday."
                ).to_bytes(),
                lambda: OcrMessage(
                    **fields, device_id="reader", lines=(TextLine(text="Budget", box=(0.1, 0.1, 0.5, 0.2)),)
                ).to_bytes(),
                lambda: EndOfStream(**fields, device_id="asr", modality="transcript").to_bytes(),
            )
        )  # fmt: skip
        value = kind()
        topic = OCR if b'"reader"' in value else TRANSCRIPT
        if self._chance.random() < 0.02:
            topic = AUDIO
        return topic, self._mutator.message(value) if self._chance.random() < 0.3 else value

    def _controlled(self, meeting: str) -> bytes:
        way = self._chance.random()
        if way < 0.003:
            return MeetingPurged(meeting_id=meeting).to_bytes()
        if way < 0.02:
            return MeetingEnded(meeting_id=meeting).to_bytes()
        if way < 0.05:
            return b""
        value = self._chance.choice(self._control)
        if self._chance.random() < 0.8:
            value = value.replace(b"weekly-2026-03-02", meeting.encode())
        return self._mutator.message(value) if self._chance.random() < 0.5 else value


_CONTROL_NAMES: Final = frozenset(
    {"meeting_started", "meeting_ended", "attendees_changed", "channel_map_changed", "agenda_changed",
     "speaker_turns", "calibration", "clock_state", "rule_file", "correction", "name_corrected"}
)  # fmt: skip

_Payloads = list[tuple[Codec, bytes, dict[str, Any]]]


def _sound() -> tuple[_Payloads, _Payloads, _Payloads]:
    samples, rate_hz = soundfile.read(SAMPLE / "mic-1.flac", dtype="int16")
    said = np.asarray(samples[: 40 * rate_hz], np.int16).reshape(-1, 1)
    size = rate_hz // 50
    found = []
    for codec in (Codec.PCM_S16LE, Codec.FLAC, Codec.OPUS):
        blocks = coder_for(codec, rate_hz, 1, size).blocks(0, said)
        found.append(
            [(block.codec, block.payload, {"rate_hz": rate_hz, "channels": 1}) for block in blocks]
        )  # fmt: skip
    return found[0], found[1], found[2]


def _pictures(seed: int) -> tuple[_Payloads, _Payloads]:
    """A screen of 320x180 that changes every six seconds as H.264, and small JPEG pictures of noise."""
    chance = np.random.default_rng(seed)
    encoder = Encoder(VideoSettings(), PictureInfo("h264", "yuv420p", 320, 180, 10.0, 0))
    video: _Payloads = []
    for number in range(180):
        picture = np.full((180, 320, 3), 240, np.uint8)
        cv2.putText(
            picture, f"Slide {number // 60}", (20, 60 + 30 * (number // 60)), cv2.FONT_HERSHEY_SIMPLEX, 1.0, 0, 2
        )  # fmt: skip
        frame = _frame(picture)
        for unit in encoder.encode(Picture(number * 100_000_000, frame)):
            size: dict[str, Any] = {"rate_hz": 10, "width": 320, "height": 180, "key_frame": unit.key_frame}
            video.append((unit.codec, unit.payload, size))
    jpeg: _Payloads = []
    for _ in range(10):
        noise = chance.integers(0, 255, (90, 160, 3), dtype=np.uint8)
        data = cv2.imencode(".jpg", noise)[1].tobytes()
        jpeg.append((Codec.JPEG, data, {"width": 160, "height": 90, "key_frame": True}))
    return video, jpeg


def _frame(picture: npt.NDArray[np.uint8]) -> av.VideoFrame:
    return av.VideoFrame.from_ndarray(picture, format="bgr24").reformat(format="yuv420p")
