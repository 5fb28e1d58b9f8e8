"""Turns coded blocks of sound of one stream into samples. Runs in the decoder child only."""

from __future__ import annotations

import io
import struct
from typing import Any, Final

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from numpy.typing import NDArray

MAX_BLOCK_S: Final = 10
"""Longest sound one block may hold; a longer one is refused before it fills the memory."""

OPUS_RATE_HZ: Final = 48_000


class SoundError(ValueError):
    """The bytes are no block of sound this product decodes; the message is the reason."""


class SoundStream:
    """Decoding state of one stream: FLAC or Opus blocks in, interleaved samples out.

    A block is either bare (one or more FLAC frames; one Opus packet) or a small file of its own
    (native FLAC, Ogg). Bare Opus has at most two channels.
    """

    def __init__(self) -> None:
        self._opus: AudioCodecContext | None = None
        self._opus_channels = 0

    def flac(self, data: bytes) -> tuple[NDArray[np.int16], int]:
        """Samples of shape (n, channels) int16 and their rate in Hz; wider samples keep their top 16 bits."""
        if data[:4] == b"fLaC":
            return _file(data)
        if data[:2] not in (b"\xff\xf8", b"\xff\xf9"):
            raise SoundError("not a FLAC block")
        decoder = _open("flac", {"err_detect": "crccheck+explode"})
        parser = av.CodecContext.create("flac", "r")
        frames: list[AudioFrame] = []
        for packet in [*parser.parse(data), *parser.parse(None)]:
            frames += _decode(decoder, packet)
        return _joined(frames)

    def opus(self, data: bytes, channels: int) -> tuple[NDArray[np.int16], int]:
        """Samples of shape (n, channels) int16 at 48 kHz."""
        if data[:4] == b"OggS":
            return _file(data)
        if not data:
            raise SoundError("block of sound is empty")
        if channels not in (1, 2):
            raise SoundError(f"bare Opus packets carry one or two channels, not {channels}")
        if self._opus is None or self._opus_channels != channels:
            self._opus, self._opus_channels = _open_opus(channels), channels
        try:
            return _joined(_decode(self._opus, av.Packet(data)))
        except SoundError:
            self._opus = None
            raise


def _open(name: str, options: dict[str, str]) -> AudioCodecContext:
    decoder = av.CodecContext.create(name, "r")
    assert isinstance(decoder, AudioCodecContext)
    decoder.thread_count = 1
    decoder.options = options
    return decoder


def _open_opus(channels: int) -> AudioCodecContext:
    decoder = _open("opus", {"err_detect": "explode"})
    # The identification header of RFC 7845, 5.1, without pre-skip: streams are joined in the middle.
    decoder.extradata = b"OpusHead" + struct.pack("<BBHIhB", 1, channels, 0, OPUS_RATE_HZ, 0, 0)
    decoder.layout = "stereo" if channels == 2 else "mono"
    decoder.sample_rate = OPUS_RATE_HZ
    return decoder


def _decode(decoder: AudioCodecContext, packet: av.Packet[Any]) -> list[AudioFrame]:
    try:
        return list(decoder.decode(packet))
    except av.error.FFmpegError as error:
        raise SoundError("block of sound cannot be decoded: its data are damaged") from error


def _file(data: bytes) -> tuple[NDArray[np.int16], int]:
    frames: list[AudioFrame] = []
    try:
        with av.open(io.BytesIO(data), mode="r") as container:
            stream = container.streams.audio[0]
            stream.codec_context.thread_count = 1
            samples = 0
            for frame in container.decode(stream):
                samples += frame.samples
                if samples > MAX_BLOCK_S * frame.sample_rate:
                    raise SoundError(f"block of sound is longer than {MAX_BLOCK_S} s")
                frames.append(frame)
    except (av.error.FFmpegError, IndexError) as error:
        raise SoundError(
            "block of sound cannot be decoded: the small file that it is holds no sound"
        ) from error
    return _joined(frames)


def _joined(frames: list[AudioFrame]) -> tuple[NDArray[np.int16], int]:
    if not frames:
        raise SoundError("block of sound holds no samples")
    rate_hz = frames[0].sample_rate
    parts = [_samples(frame) for frame in frames]
    joined = np.concatenate(parts)
    if len(joined) > MAX_BLOCK_S * rate_hz:
        raise SoundError(f"block of sound is longer than {MAX_BLOCK_S} s")
    return joined, rate_hz


def _samples(frame: AudioFrame) -> NDArray[np.int16]:
    """Samples of one frame, shape (n, channels) int16."""
    values = frame.to_ndarray()
    channels = frame.layout.nb_channels
    interleaved = values.reshape(-1, channels) if not frame.format.is_planar else values.T
    kind = frame.format.packed.name
    if kind == "s16":
        return np.ascontiguousarray(interleaved, dtype=np.int16)
    if kind == "s32":
        return np.ascontiguousarray(np.asarray(interleaved, np.int32) >> 16, dtype=np.int16)
    if kind == "flt":
        scaled = np.rint(np.asarray(interleaved, np.float32) * 32768.0)
        return np.ascontiguousarray(np.clip(scaled, -32768, 32767), dtype=np.int16)
    raise SoundError(f"sound of sample format {kind} is not supported")
