"""Media packet: the binary layout of device topics and of feature records on the timeline.

Little-endian, fixed part of 64 bytes, then meeting id, device id, optional key id and tag, padding
to a multiple of eight, payload. Reading is a view on the received bytes; nothing is copied.

======  ====  ==========================================================================
offset  size  field
======  ====  ==========================================================================
0       4     magic ``MNTD``
4       1     layout version (1)
5       1     flags: bit 0 key frame
6       2     header length: offset of the payload, a multiple of 8
8       1     modality
9       1     codec
10      1     clock kind of the stamp
11      1     channels (0 where it has no meaning)
12      4     CRC-32C of the whole packet with these four bytes as zero
16      8     stream epoch: new at every start of the publisher
24      8     sequence: 0, 1, 2 … within (meeting, device, modality, stream epoch)
32      8     timestamp, ns, signed: capture time of the first sample or middle of exposure
40      8     duration, ns, signed, not negative
48      4     rate: samples or pictures a second, 0 where unknown
52      2     width in pixels or bins, 0 where it has no meaning
54      2     height in pixels or rows
56      4     payload length in bytes
60      1     length of the meeting id, UTF-8 NFC, 1..64 bytes
61      1     length of the device id, UTF-8 NFC, 1..64 bytes
62      1     length of the key id, 0 where the packet is not authenticated
63      1     length of the authentication tag, 0 where the packet is not authenticated
======  ====  ==========================================================================

Bits and bytes without a meaning are zero and a reader refuses anything else, so every packet has
exactly one encoding and a later version may give them one. The tag, where there is one, is
HMAC-SHA-256 under the key named by the key id, over the whole packet with the checksum and the tag
itself as zero bytes.
"""

import enum
import hashlib
import hmac
import struct
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, get_args

import google_crc32c
import numpy as np
import numpy.typing as npt

MAGIC: Final = b"MNTD"
VERSION: Final = 1
MAX_ID_BYTES: Final = 64
"""Of the meeting id, the device id and the key id each, in UTF-8."""
MAX_TAG_BYTES: Final = 64
ALL_MEETINGS: Final = "*"
"""Meeting id of control messages that hold for all meetings; no meeting can have it."""
MAX_PAYLOAD_BYTES: Final = 4 * 1024 * 1024
"""Largest payload a reader accepts; a 1080p key frame is far below it."""
MAX_DURATION_NS: Final = 10_000_000_000
MAX_WIDTH: Final = 4096
MAX_HEIGHT: Final = 4096

_FIXED: Final = struct.Struct("<4sBBHBBBBIQQqqIHHIBBBB")
_CRC_OFFSET: Final = 12
_FLAG_KEY_FRAME: Final = 1


class Modality(enum.IntEnum):
    """What a stream carries."""

    VIDEO = 1
    AUDIO = 2
    OCR = 3
    TRANSCRIPT = 4
    SOUND_FEATURES = 5
    PICTURE_FEATURES = 6


class Codec(enum.IntEnum):
    """How the payload is coded."""

    PCM_S16LE = 1
    FLAC = 2
    OPUS = 3
    H264 = 4
    JPEG = 5
    MEL_F16 = 6
    PATCHES_U8 = 7
    VOLUME_F16 = 8


class ClockKind(enum.IntEnum):
    """Which clock the timestamp was read from."""

    PTP = 1
    """TAI, as PTP counts it."""
    UTC = 2
    MONOTONIC = 3
    """Counts from an unknown zero; needs an anchor message."""


CODECS_OF: Final[dict[Modality, frozenset[Codec]]] = {
    Modality.VIDEO: frozenset({Codec.H264, Codec.JPEG}),
    Modality.AUDIO: frozenset({Codec.PCM_S16LE, Codec.FLAC, Codec.OPUS}),
    Modality.OCR: frozenset(),
    Modality.TRANSCRIPT: frozenset(),
    Modality.SOUND_FEATURES: frozenset({Codec.MEL_F16}),
    Modality.PICTURE_FEATURES: frozenset({Codec.PATCHES_U8, Codec.VOLUME_F16}),
}


_KINDS: Final = {
    bytes((modality, codec, clock)): (modality, codec, clock)
    for modality, codecs in CODECS_OF.items()
    for codec in codecs
    for clock in ClockKind
}
"""The allowed combinations by their three header bytes: one lookup checks and converts all three."""

Reason = Literal["magic", "version", "truncated", "crc", "too_large", "bad_id", "unknown_codec", "bad_field"]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class PacketError(ValueError):
    """Bytes that are no packet; ``reason`` is a short stable word for counters."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Packet:
    """One media packet. Times in nanoseconds of the clock that ``clock_kind`` names."""

    meeting_id: str
    device_id: str
    modality: Modality
    codec: Codec
    clock_kind: ClockKind
    stream_epoch: int
    sequence: int
    timestamp_ns: int
    duration_ns: int
    payload: bytes | memoryview
    rate_hz: int = 0
    width: int = 0
    height: int = 0
    channels: int = 0
    key_frame: bool = False
    key_id: str = ""
    tag: bytes = b""

    @property
    def stream(self) -> str:
        """Name of the packet's stream within its meeting."""
        return stream_name(self.device_id, self.modality)


def stream_name(device_id: str, modality: Modality) -> str:
    """``device/modality``: the name of a stream within its meeting."""
    return f"{device_id}/{modality.name.lower()}"


def valid_id(text: str) -> bool:
    """Whether a text can be a meeting or device id: NFC, 1..64 bytes of UTF-8, no control characters."""
    if not text or not unicodedata.is_normalized("NFC", text):
        return False
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False
    return size <= MAX_ID_BYTES and not any(unicodedata.category(c) in {"Cc", "Cs"} for c in text)


def encode(packet: Packet) -> bytes:
    """Bytes of a packet.

    Raises:
        PacketError: a field does not fit the layout; nothing is truncated silently.
    """
    meeting, device, key = _names_bytes(packet.meeting_id, packet.device_id, packet.key_id)
    header_length = (_FIXED.size + len(meeting) + len(device) + len(key) + len(packet.tag) + 7) & ~7
    payload = bytes(packet.payload)
    _check_values(packet, len(payload))
    try:
        fixed = _FIXED.pack(
            MAGIC, VERSION, _FLAG_KEY_FRAME if packet.key_frame else 0, header_length,
            packet.modality, packet.codec, packet.clock_kind, packet.channels, 0,
            packet.stream_epoch, packet.sequence, packet.timestamp_ns, packet.duration_ns,
            packet.rate_hz, packet.width, packet.height, len(payload),
            len(meeting), len(device), len(key), len(packet.tag),
        )  # fmt: skip
    except struct.error as error:
        raise PacketError("bad_field", str(error)) from error
    head = fixed + meeting + device + key + packet.tag
    head += bytes(header_length - len(head))
    crc = google_crc32c.extend(google_crc32c.value(head), payload)
    return head[:_CRC_OFFSET] + struct.pack("<I", crc) + head[_CRC_OFFSET + 4 :] + payload


def decode(data: bytes) -> Packet:
    """Packet of the given bytes; its payload is a view on them, aligned to eight bytes from their start.

    Nothing is allocated by what the header claims: lengths are compared with ``len(data)`` first.

    Raises:
        PacketError: with one of the words of ``Reason``.
    """
    if len(data) < _FIXED.size:
        raise PacketError("truncated", f"{len(data)} bytes, the fixed header alone has {_FIXED.size}")
    (
        magic, version, flags, header_length, modality, codec, clock_kind, channels, crc, epoch, sequence,
        timestamp_ns, duration_ns, rate_hz, width, height, length, n_meeting, n_device, n_key, n_tag,
    ) = _FIXED.unpack_from(data)  # fmt: skip
    if magic != MAGIC:
        raise PacketError("magic", f"starts with {magic!r}")
    if version != VERSION:
        raise PacketError("version", f"layout version {version}, this reader knows {VERSION}")
    if length > MAX_PAYLOAD_BYTES:
        raise PacketError("too_large", f"payload of {length} bytes")
    names_end = _FIXED.size + n_meeting + n_device + n_key
    used = names_end + n_tag
    if header_length != (used + 7) & ~7 or len(data) != header_length + length:
        raise PacketError("truncated", f"{len(data)} bytes where the header says {header_length} + {length}")
    if crc != _checksum(data):
        raise PacketError("crc", "the checksum does not match")
    if flags & ~_FLAG_KEY_FRAME or any(data[used:header_length]):
        raise PacketError("bad_field", "a reserved flag or a byte of the padding is set")
    kinds = _KINDS.get(data[8:11])
    if kinds is None:
        raise PacketError("unknown_codec", f"modality {modality}, codec {codec}, clock kind {clock_kind}")
    meeting, device, key_id = _names(data[_FIXED.size : names_end], n_meeting, n_device)
    packet = Packet(
        meeting, device, kinds[0], kinds[1], kinds[2], epoch, sequence, timestamp_ns, duration_ns,
        memoryview(data)[header_length:], rate_hz, width, height, channels, flags == _FLAG_KEY_FRAME,
        key_id, data[names_end:used],
    )  # fmt: skip
    _check_values(packet, length)
    return packet


def sign(packet: Packet, key_id: str, key: bytes) -> Packet:
    """The packet with an authentication tag under the named key."""
    blank = replace(packet, key_id=key_id, tag=bytes(hashlib.sha256().digest_size))
    return replace(blank, tag=_tag(encode(blank), blank.tag, key))


def is_authentic(data: bytes, key: bytes) -> bool:
    """Whether an encoded packet carries a tag that was made with this key.

    Raises:
        PacketError: the bytes are no packet.
    """
    tag = decode(data).tag
    return len(tag) == hashlib.sha256().digest_size and hmac.compare_digest(tag, _tag(data, tag, key))


def _tag(data: bytes, tag: bytes, key: bytes) -> bytes:
    """HMAC-SHA-256 over the packet with checksum and tag as zero bytes; ``tag`` only gives its length."""
    start = _FIXED.size + sum(data[60:63])
    blank = data[:_CRC_OFFSET] + bytes(4) + data[_CRC_OFFSET + 4 : start] + bytes(len(tag))
    return hmac.digest(key, blank + data[start + len(tag) :], "sha256")


@lru_cache(maxsize=1024)
def _names_bytes(meeting_id: str, device_id: str, key_id: str) -> tuple[bytes, bytes, bytes]:
    """Checked UTF-8 of the ids. Cached, since a publisher sends thousands of packets under the same ones."""
    for what, text in (("meeting id", meeting_id), ("device id", device_id), ("key id", key_id)):
        if not valid_id(text) and (text or what != "key id"):
            raise PacketError("bad_id", f"{what} must be NFC text of 1 to {MAX_ID_BYTES} bytes, got {text!r}")
    if meeting_id == ALL_MEETINGS:
        raise PacketError("bad_id", f"{ALL_MEETINGS!r} stands for all meetings")
    return meeting_id.encode("utf-8"), device_id.encode("utf-8"), key_id.encode("utf-8")


@lru_cache(maxsize=1024)
def _names(names: bytes, n_meeting: int, n_device: int) -> tuple[str, str, str]:
    """Meeting, device and key id from their bytes. Cached: checking them anew costs a third of a decode."""
    try:
        meeting = names[:n_meeting].decode("utf-8")
        device = names[n_meeting : n_meeting + n_device].decode("utf-8")
        key_id = names[n_meeting + n_device :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise PacketError("bad_id", str(error)) from error
    _names_bytes(meeting, device, key_id)
    return meeting, device, key_id


def payload_array(packet: Packet) -> npt.NDArray[np.int16] | npt.NDArray[np.float16] | npt.NDArray[np.uint8]:
    """Payload as an array without a copy.

    Shapes: PCM ``(samples, channels)`` int16; mel ``(frames, width)`` float16; volume
    ``(frames, height, width)`` float16; patches ``(frames, height, width)`` uint8; other codecs
    ``(bytes,)`` uint8.
    """
    if packet.codec is Codec.PCM_S16LE:
        return np.frombuffer(packet.payload, np.dtype("<i2")).reshape(-1, packet.channels)
    if packet.codec is Codec.MEL_F16:
        return np.frombuffer(packet.payload, np.dtype("<f2")).reshape(-1, packet.width)
    if packet.codec is Codec.VOLUME_F16:
        return np.frombuffer(packet.payload, np.dtype("<f2")).reshape(-1, packet.height, packet.width)
    if packet.codec is Codec.PATCHES_U8:
        return np.frombuffer(packet.payload, np.uint8).reshape(-1, packet.height, packet.width)
    return np.frombuffer(packet.payload, np.uint8)


def _checksum(data: bytes) -> int:
    head = google_crc32c.value(data[:_CRC_OFFSET] + b"\0\0\0\0")
    return int(google_crc32c.extend(head, data[_CRC_OFFSET + 4 :]))


def _check_values(packet: Packet, length: int) -> None:
    """Refuse values that no honest device sends, before anything is allocated for them."""
    codec, channels = packet.codec, packet.channels
    if codec not in CODECS_OF[packet.modality]:
        raise PacketError("unknown_codec", f"{codec.name} in a {packet.modality.name} stream")
    if length == 0:
        raise PacketError("bad_field", "the payload is empty")
    if length > MAX_PAYLOAD_BYTES:
        raise PacketError("too_large", f"payload of {length} bytes")
    if not 0 <= packet.duration_ns <= MAX_DURATION_NS:
        raise PacketError("bad_field", f"duration of {packet.duration_ns} ns")
    if packet.width > MAX_WIDTH or packet.height > MAX_HEIGHT:
        raise PacketError("too_large", f"picture of {packet.width} x {packet.height}")
    if bool(packet.key_id) != bool(packet.tag) or len(packet.tag) > MAX_TAG_BYTES:
        raise PacketError("bad_field", f"a key id and a tag of 1 to {MAX_TAG_BYTES} bytes go together")
    if packet.modality is Modality.AUDIO:
        if not (8_000 <= packet.rate_hz <= 192_000 and 1 <= channels <= 8):
            raise PacketError("bad_field", f"{packet.rate_hz} Hz with {channels} channels")
        if codec is Codec.PCM_S16LE and length % (2 * channels):
            raise PacketError("bad_field", f"{length} bytes are no whole samples of {channels} channels")
        return
    item = _ITEM_BYTES.get(codec)
    if item is not None:
        row = item * packet.width * (packet.height if codec is not Codec.MEL_F16 else 1)
        if row == 0 or length % row:
            raise PacketError("bad_field", f"{length} bytes are no whole rows of {row}")


_ITEM_BYTES: Final[dict[Codec, int]] = {Codec.MEL_F16: 2, Codec.VOLUME_F16: 2, Codec.PATCHES_U8: 1}
