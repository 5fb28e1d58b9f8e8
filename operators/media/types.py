"""What goes into the decoder children and what comes out: settings, requests, results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from contracts.packet import Codec
from operators.media.wire import Head
from operators.pictures.picture import Luma

Role = Literal["slides", "camera"]
Kind = Literal["sound", "pictures"]

SOUND_CODECS: Final = frozenset({Codec.FLAC, Codec.OPUS})
PICTURE_CODECS: Final = frozenset({Codec.H264, Codec.JPEG})


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """Limits of the decoder children.

    sound_children, picture_children: most processes of each kind; they start when first needed.
    memory_mb: address space of a child on top of its libraries.
    request_ms: longest time for one packet, after which the child is killed.
    start_ms: longest time for a child to come up.
    max_waiting: packets that may wait for one child; further ones fail at once, so memory stays bounded.
    crash_limit, quarantine_ms: a stream that kills its child this often in a row is refused for a while.
    """

    sound_children: int = 1
    picture_children: int = 1
    memory_mb: int = 512
    request_ms: int = 5000
    start_ms: int = 20_000
    max_waiting: int = 2000
    crash_limit: int = 3
    quarantine_ms: int = 30_000
    picture_niceness: int = 5
    max_width: int = 4096
    max_height: int = 2304

    def __post_init__(self) -> None:
        if min(self.sound_children, self.picture_children) < 1:
            raise ValueError("at least one child of each kind is needed, or its packets would wait for ever")
        if self.memory_mb < 16:
            raise ValueError("memory_mb below 16 leaves no room for one 1080p picture")


@dataclass(frozen=True, slots=True)
class Frame:
    """Features of one frame. luma (180, 320) uint8; volume (3, 9, 16) float16; patches (32, 16, 16) uint8."""

    timestamp_ns: int
    key_frame: bool
    width: int
    height: int
    sharpness: float
    luma: Luma
    volume: NDArray[np.float16]
    patches: NDArray[np.uint8] | None


@dataclass(frozen=True, slots=True)
class DecodedSound:
    """Samples of one block, shape (n, channels) int16."""

    stream: str
    timestamp_ns: int
    meta: Any
    samples: NDArray[np.int16]
    rate_hz: int


@dataclass(frozen=True, slots=True)
class DecodedPictures:
    """What one access unit or picture brought about: often no frame, sometimes those of two seconds.

    light: stamp and mean brightness (0..1) of every picture that was decoded on the way, oldest first.
    """

    stream: str
    timestamp_ns: int
    meta: Any
    frames: tuple[Frame, ...]
    light: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class FullFrame:
    """A whole frame that was asked for, coded as JPEG."""

    stream: str
    timestamp_ns: int
    meta: Any
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class DecodeFailed:
    """One packet or request that came to nothing, and why, in words for the dead letter.

    `restarted`: the child died over it, so its streams go on at their next key frame.
    `shed`: nothing is wrong with the packet, there were too many.
    """

    stream: str
    timestamp_ns: int
    meta: Any
    reason: str
    restarted: bool = False
    shed: bool = False


Decoded = DecodedSound | DecodedPictures | FullFrame | DecodeFailed


@dataclass(slots=True)
class Request:
    """One message to a child; `meta` stays here and comes back with the result."""

    stream: str
    timestamp_ns: int
    meta: Any
    head: Head
    data: bytes
