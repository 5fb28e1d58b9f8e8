"""Blocks of sound as payloads of packets: PCM as it is, FLAC and Opus as one frame of the codec a block."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt

from contracts.packet import Codec

from .streams import MediaPiece

Samples = npt.NDArray[np.int16]


@dataclass(slots=True)
class PcmCoder:
    rate_hz: int
    channels: int
    size: int

    def blocks(self, start: int, samples: Samples) -> Iterator[MediaPiece]:
        """Blocks of ``samples``, whose first one is number ``start`` from the file's zero."""
        for first in range(0, len(samples), self.size):
            block = samples[first : first + self.size]
            payload = block.astype("<i2", copy=False).tobytes()
            yield self.piece(start + first, len(block), Codec.PCM_S16LE, payload)

    def piece(self, start: int, count: int, codec: Codec, payload: bytes) -> MediaPiece:
        offset_ns = start * 10**9 // self.rate_hz
        end_ns = (start + count) * 10**9 // self.rate_hz
        return MediaPiece(
            offset_ns, end_ns - offset_ns, codec, payload, rate_hz=self.rate_hz, channels=self.channels
        )  # fmt: skip


class CompressingCoder(PcmCoder):
    """FLAC or Opus: one frame of the codec a block, without container or header."""

    __slots__ = ("_codec", "_encoder", "_next", "_pending")

    def __init__(self, codec: Codec, rate_hz: int, channels: int, size: int) -> None:
        super().__init__(rate_hz, channels, size)
        self._codec = codec
        self._encoder: av.AudioCodecContext | None = None
        self._next = 0
        self._pending: list[int] = []

    def blocks(self, start: int, samples: Samples) -> Iterator[MediaPiece]:
        """As for PCM. An Opus block's stamp is that of what its decoder returns for it."""
        for first in range(0, len(samples), self.size):
            block = samples[first : first + self.size]
            if self._encoder is None or start + first != self._next:
                self._encoder = self._new_encoder()
            self._next = start + first + len(block)
            if len(block) < self.size:
                block = np.concatenate((block, np.zeros((self.size - len(block), self.channels), np.int16)))
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(block).reshape(1, -1), format="s16", layout=self._encoder.layout.name
            )
            frame.sample_rate, frame.time_base = self.rate_hz, Fraction(1, self.rate_hz)
            frame.pts = start + first
            for packet in self._encoder.encode(frame):
                if packet.pts is not None:
                    yield self.piece(packet.pts, self.size, self._codec, bytes(packet))

    def _new_encoder(self) -> av.AudioCodecContext:
        name = "flac" if self._codec is Codec.FLAC else "libopus"
        encoder = av.CodecContext.create(name, "w")
        if not isinstance(encoder, av.AudioCodecContext):
            raise TypeError(f"{name} is no sound codec")
        encoder.sample_rate, encoder.format = self.rate_hz, av.AudioFormat("s16")
        encoder.time_base = Fraction(1, self.rate_hz)
        encoder.layout = _coded_layout(self.channels)
        if self._codec is Codec.FLAC:
            encoder.options = {"frame_size": str(self.size), "compression_level": "5"}
        else:
            encoder.options = {"frame_duration": str(self.size * 1000 // self.rate_hz), "application": "voip"}
        encoder.open()
        return encoder


def _coded_layout(channels: int) -> str:
    return ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1")[channels - 1]


def coder_for(codec: Codec, rate_hz: int, channels: int, size: int) -> PcmCoder:
    if codec is Codec.PCM_S16LE:
        return PcmCoder(rate_hz, channels, size)
    return CompressingCoder(codec, rate_hz, channels, size)
