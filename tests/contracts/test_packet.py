"""The packet codec: round trips, golden bytes, and that bad bytes give ``PacketError`` and nothing else."""

import hashlib
import hmac
import json
import struct
import tracemalloc
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import packet as p
from contracts.packet import ClockKind, Codec, Modality, Packet, PacketError, decode, encode, payload_array

GOLDEN = Path(p.__file__).parent / "golden" / "packets"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.bin"))
PCM = Packet(
    "weekly", "seat-1", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 5, 7, 1_000, 10_000_000, bytes(320),
    rate_hz=16_000, channels=1,
)  # fmt: skip


def described(name: str) -> Packet:
    """The packet that a golden description states, built without the code that wrote the description."""
    values: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    del values["shows"]
    values["modality"] = Modality[values["modality"]]
    values["codec"] = Codec[values["codec"]]
    values["clock_kind"] = ClockKind[values["clock_kind"]]
    values["payload"] = bytes.fromhex(values["payload"])
    values["tag"] = bytes.fromhex(values["tag"])
    return Packet(**values)


def with_checksum(data: bytes) -> bytes:
    """The bytes with a checksum that matches, so that a test reaches what lies behind it."""
    crc = google_crc32c.value(data[:12] + bytes(4) + data[16:])
    return data[:12] + struct.pack("<I", crc) + data[16:]


def reason_of(data: bytes) -> str:
    with pytest.raises(PacketError) as caught:
        decode(data)
    return caught.value.reason


def ids(max_bytes: int = p.MAX_ID_BYTES) -> st.SearchStrategy[str]:
    letters = st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"])
    return (
        st.text(letters, min_size=1, max_size=24)
        .map(lambda text: unicodedata.normalize("NFC", text))
        .filter(lambda text: p.valid_id(text) and text != p.ALL_MEETINGS and len(text.encode()) <= max_bytes)
    )


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    """Any packet that can be encoded."""
    modality = draw(st.sampled_from([m for m in Modality if p.CODECS_OF[m]]))
    codec = draw(st.sampled_from(sorted(p.CODECS_OF[modality])))
    channels, width, height = draw(st.integers(1, 8)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    unit = {
        Codec.PCM_S16LE: 2 * channels, Codec.MEL_F16: 2 * width, Codec.VOLUME_F16: 2 * width * height,
        Codec.PATCHES_U8: width * height,
    }.get(codec, 1)  # fmt: skip
    units = draw(st.binary(min_size=1, max_size=12))
    payload = (units * unit)[: len(units) * unit]
    u64 = st.integers(0, 2**64 - 1)
    tag = draw(st.binary(max_size=p.MAX_TAG_BYTES))
    return Packet(
        draw(ids()), draw(ids()), modality, codec, draw(st.sampled_from(ClockKind)), draw(u64), draw(u64),
        draw(st.integers(-(2**63), 2**63 - 1)), draw(st.integers(0, p.MAX_DURATION_NS)), payload,
        rate_hz=draw(st.integers(8_000, 192_000)), width=width, height=height, channels=channels,
        key_frame=draw(st.booleans()), key_id=draw(ids()) if tag else "", tag=tag,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_golden_packets_read_and_write_the_same(name: str) -> None:
    data = (GOLDEN / f"{name}.bin").read_bytes()
    assert decode(data) == described(name)
    assert encode(described(name)) == data


def test_golden_packets_cover_what_a_reader_must_know() -> None:
    read = [decode((GOLDEN / f"{name}.bin").read_bytes()) for name in NAMES]
    codecs = {Codec.PCM_S16LE, Codec.OPUS, Codec.H264, Codec.MEL_F16, Codec.PATCHES_U8, Codec.VOLUME_F16}
    assert codecs <= {packet.codec for packet in read}
    assert {packet.clock_kind for packet in read} == set(ClockKind)
    assert any(packet.key_frame for packet in read)
    assert any(packet.tag for packet in read)
    assert any(not packet.meeting_id.isascii() for packet in read)


@given(packets())
def test_what_is_written_is_read_back(packet: Packet) -> None:
    data = encode(packet)
    back = decode(data)
    assert back == packet
    assert encode(back) == data
    assert (len(data) - len(packet.payload)) % 8 == 0


@given(packets(), st.data())
@settings(max_examples=200)
def test_a_changed_packet_is_refused_or_the_same(packet: Packet, data: st.DataObject) -> None:
    good = encode(packet)
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(good) - 1))
        changed[position] ^= 1 << data.draw(st.integers(0, 7))
    changed = changed[: data.draw(st.integers(0, len(good)))] if data.draw(st.booleans()) else changed
    changed += data.draw(st.binary(max_size=9))
    try:
        assert decode(bytes(changed)) == packet
    except PacketError as error:
        assert error.reason in p.REASONS


@given(packets(), st.data())
@settings(max_examples=300)
def test_a_changed_header_with_a_matching_checksum_is_refused_or_has_one_encoding(
    packet: Packet, data: st.DataObject
) -> None:
    changed = bytearray(encode(packet))
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, min(len(changed), 200) - 1))] = data.draw(st.integers(0, 255))
    try:
        back = decode(with_checksum(bytes(changed)))
    except PacketError as error:
        assert error.reason in p.REASONS
    else:
        assert encode(back) == with_checksum(bytes(changed))


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_are_refused(data: bytes, magic: bool) -> None:
    assert reason_of(p.MAGIC + bytes([p.VERSION]) + data if magic else data) in p.REASONS


def test_payload_is_an_aligned_view() -> None:
    data = encode(replace(PCM, payload=np.arange(160, dtype="<i2").tobytes()))
    packet = decode(data)
    assert isinstance(packet.payload, memoryview)
    assert packet.payload.obj is data
    samples = payload_array(packet)
    assert samples.shape == (160, 1)
    assert samples[3, 0] == 3
    assert not samples.flags.owndata
    assert samples.flags.aligned
    assert samples.ctypes.data % 8 == 0


@pytest.mark.parametrize("offset", [6, 56, 60, 61, 62, 63])
def test_claimed_lengths_allocate_nothing(offset: int) -> None:
    size = {6: 2, 56: 4}.get(offset, 1)
    data = encode(PCM)
    lying = with_checksum(data[:offset] + b"\xff" * size + data[offset + size :])
    tracemalloc.start()
    try:
        assert reason_of(lying) in {"truncated", "too_large"}
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, 0x4E, "magic"),
        (4, 2, "version"),
        (5, 2, "bad_field"),
        (8, 0, "unknown_codec"),
        (8, 4, "unknown_codec"),
        (9, 99, "unknown_codec"),
        (9, Codec.H264, "unknown_codec"),
        (10, 0, "unknown_codec"),
        (11, 0, "bad_field"),
        (11, 9, "bad_field"),
        (47, 1, "bad_field"),
        (48, 0, "bad_field"),
        (53, 0x80, "too_large"),
        (64, 0x01, "bad_id"),
        (64, 0xFF, "bad_id"),
        (76, 1, "bad_field"),
    ],
)
def test_each_field_is_checked(position: int, value: int, reason: str) -> None:
    data = bytearray(encode(PCM))
    data[position] = value
    if position == 47:
        data[40:48] = struct.pack("<q", p.MAX_DURATION_NS + 1)
    if position == 48:
        data[48:52] = bytes(4)
    assert reason_of(with_checksum(bytes(data))) == reason


@pytest.mark.parametrize(
    "change",
    [
        {"meeting_id": ""},
        {"meeting_id": "*"},
        {"meeting_id": "x" * 65},
        {"meeting_id": "é" * 33},
        {"meeting_id": "e\u0301"},
        {"device_id": "a\nb"},
        {"device_id": "\ud800"},
        {"key_id": "\ud800", "tag": b"x"},
        {"key_id": "k"},
        {"tag": b"x"},
        {"key_id": "k", "tag": bytes(65)},
        {"payload": b""},
        {"payload": bytes(3)},
        {"payload": bytes(p.MAX_PAYLOAD_BYTES + 2)},
        {"duration_ns": -1},
        {"duration_ns": p.MAX_DURATION_NS + 1},
        {"sequence": 2**64},
        {"stream_epoch": -1},
        {"timestamp_ns": 2**63},
        {"rate_hz": 7_999},
        {"channels": 9},
        {"width": 4_097},
        {"height": -1},
        {"codec": Codec.H264},
        {"modality": Modality.OCR},
        {"modality": Modality.SOUND_FEATURES, "codec": Codec.MEL_F16, "width": 0},
        {"modality": Modality.PICTURE_FEATURES, "codec": Codec.VOLUME_F16, "width": 7, "height": 9},
    ],
)
def test_what_does_not_fit_is_not_written(change: dict[str, Any]) -> None:
    with pytest.raises(PacketError):
        encode(replace(PCM, **change))


def test_a_tag_covers_everything_but_checksum_and_itself() -> None:
    signed = encode(p.sign(PCM, "room", b"secret"))
    assert p.is_authentic(signed, b"secret")
    assert not p.is_authentic(signed, b"another")
    assert not p.is_authentic(encode(PCM), b"secret")
    tag = signed.index(decode(signed).tag)
    for position in [5, 20, 64, 70, tag, len(signed) - 1]:
        changed = bytearray(signed)
        changed[position] ^= 1
        assert not p.is_authentic(with_checksum(bytes(changed)), b"secret")


def test_golden_tag_is_reproduced_by_the_rule_in_words() -> None:
    data = bytearray((GOLDEN / "audio_authenticated.bin").read_bytes())
    start = 64 + data[60] + data[61] + data[62]
    tag = bytes(data[start : start + data[63]])
    data[12:16] = bytes(4)
    data[start : start + len(tag)] = bytes(len(tag))
    assert hmac.new(b"an example, not a secret", bytes(data), hashlib.sha256).digest() == tag
