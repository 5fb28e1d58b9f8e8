"""Size of a coded picture from its header alone, so that a bomb is refused before it is decoded."""

from __future__ import annotations

from collections.abc import Iterator


class PictureError(ValueError):
    """The bytes are no picture this product decodes; the message is the reason for the dead letter."""


def check_size(width: int, height: int, max_width: int, max_height: int) -> None:
    """Raises `PictureError` unless the picture fits the bound, upright or on its side."""
    long_side, short_side = max(width, height), min(width, height)
    if short_side < 1 or long_side > max(max_width, max_height) or short_side > min(max_width, max_height):
        raise PictureError(f"picture of {width}x{height} is outside the bound of {max_width}x{max_height}")


def jpeg_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a JPEG picture from its frame header (ITU-T T.81, B.2.2).

    Raises `PictureError` where there is no frame header or the picture does not end with an end marker,
    because a decoder fills what is missing with grey and says nothing.
    """
    if data[:2] != b"\xff\xd8":
        raise PictureError("not a JPEG picture")
    if b"\xff\xd9" not in data[-64:]:
        raise PictureError("JPEG picture is cut short")
    position = 2
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            raise PictureError("JPEG markers are damaged")
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if position + 9 > len(data):
                break
            height = int.from_bytes(data[position + 5 : position + 7], "big")
            width = int.from_bytes(data[position + 7 : position + 9], "big")
            return width, height
        if marker == 0xDA or length < 2:
            break
        position += 2 + length
    raise PictureError("JPEG picture has no frame header")


def h264_sizes(access_unit: bytes) -> Iterator[tuple[int, int]]:
    """(width, height) of every sequence parameter set in an Annex B access unit (ITU-T H.264, 7.3.2.1.1).

    Raises `PictureError` where there is no start code or a parameter set ends too early.
    """
    position = access_unit.find(b"\x00\x00\x01")
    if position < 0 or position > 1:
        raise PictureError("not an Annex B access unit")
    while position >= 0:
        start = position + 3
        position = access_unit.find(b"\x00\x00\x01", start)
        end = position if position >= 0 else len(access_unit)
        if start < end and access_unit[start] & 0x1F == 7:
            # A parameter set is a few dozen bytes; a longer one is read no further than this.
            yield _sequence_size(access_unit[start + 1 : min(end, start + 1024)])


_HIGH_PROFILES = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})


class _Bits:
    """Bits of a parameter set, emulation prevention bytes removed."""

    def __init__(self, data: bytes) -> None:
        raw = data.replace(b"\x00\x00\x03", b"\x00\x00")
        self._value = int.from_bytes(raw, "big")
        self._left = 8 * len(raw)

    def take(self, count: int) -> int:
        if count > self._left:
            raise PictureError("H.264 parameter set ends too early")
        self._left -= count
        return (self._value >> self._left) & ((1 << count) - 1)

    def unsigned(self) -> int:
        """Exponential Golomb code, ITU-T H.264, 9.1."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 31:
                raise PictureError("H.264 parameter set is damaged")
        return (1 << zeros) - 1 + self.take(zeros)

    def signed(self) -> int:
        code = self.unsigned()
        return (code + 1) // 2 if code % 2 else -(code // 2)


def _sequence_size(data: bytes) -> tuple[int, int]:
    bits = _Bits(data)
    profile = bits.take(8)
    bits.take(16)
    bits.unsigned()
    chroma_format = 1
    if profile in _HIGH_PROFILES:
        chroma_format = _skip_high_profile(bits)
    bits.unsigned()
    order_type = bits.unsigned()
    if order_type == 0:
        bits.unsigned()
    elif order_type == 1:
        bits.take(1)
        bits.signed()
        bits.signed()
        for _ in range(min(bits.unsigned(), 255)):
            bits.signed()
    bits.unsigned()
    bits.take(1)
    width = 16 * (bits.unsigned() + 1)
    map_units = bits.unsigned() + 1
    frames_only = bits.take(1)
    height = 16 * map_units * (2 - frames_only)
    if not frames_only:
        bits.take(1)
    bits.take(1)
    if bits.take(1):
        left, right, top, bottom = (bits.unsigned() for _ in range(4))
        unit_x = 2 if chroma_format in (1, 2) else 1
        unit_y = (2 if chroma_format == 1 else 1) * (2 - frames_only)
        width -= unit_x * (left + right)
        height -= unit_y * (top + bottom)
    return width, height


def _skip_high_profile(bits: _Bits) -> int:
    chroma_format = bits.unsigned()
    if chroma_format == 3:
        bits.take(1)
    bits.unsigned()
    bits.unsigned()
    bits.take(1)
    if bits.take(1):
        for index in range(8 if chroma_format != 3 else 12):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if index < 6 else 64)
    return chroma_format


def _skip_scaling_list(bits: _Bits, size: int) -> None:
    last, following = 8, 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last
