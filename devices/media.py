"""Sound and video files of any container that PyAV reads: what is in them, and their sound in blocks.

The zero of a file is the earliest start among its streams, so sound that starts late beside a picture
keeps its offset and a transport stream's arbitrary clock does not matter.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

import av
import av.container
import numpy as np
import soxr  # type: ignore[import-untyped]
from av.stream import Disposition, Stream

from contracts.packet import Codec

from .sound_blocks import Samples, coder_for
from .streams import InputError, MediaPiece, Note

MEDIA_SUFFIXES: Final = frozenset(
    {
        ".wav", ".wave", ".w64", ".flac", ".mp3", ".m4a", ".m4b", ".aac", ".ogg", ".oga", ".opus", ".wma",
        ".aif", ".aiff", ".caf", ".au", ".amr", ".ac3", ".mka", ".spx",
        ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".mts", ".m2ts", ".wmv",
        ".asf", ".flv", ".3gp", ".3g2", ".ogv", ".gif", ".mxf", ".h264",
    }
)  # fmt: skip
"""Endings that promise sound or video; such a file is called damaged where it cannot be read."""

_NOT_RECORDINGS: Final = frozenset(
    {"tty", "concat", "hls", "dash", "sdp", "lavfi", "webvtt", "srt", "ass", "image2"}
)  # fmt: skip
"""Formats that are text or point at other files, which a recording must not do."""
_GUESSED_LENGTH: Final = frozenset({"mp3", "aac", "ac3", "amr"})
"""Formats without a length of their own; a difference from the guess says nothing about damage."""

MAX_BLOCK_CHANNELS: Final = 8
MIN_RATE_HZ: Final = 8_000
MAX_RATE_HZ: Final = 48_000
MAX_PIXELS: Final = 8192 * 8192
_OPUS_RATES: Final = (48_000, 24_000, 16_000, 12_000, 8_000)
_JUMP_S: Final = 0.05
"""A stamp this far from the running sample count is a gap or an overlap, not rounding."""
_RESET_S: Final = 4 * 3600
"""A jump this large, or one back of more than a second, is a restarted counter: time goes on without it."""
_CUT_S: Final = 1.0

AudioCodecName = Literal["pcm", "flac", "opus"]


@dataclass(frozen=True, slots=True)
class SoundSettings:
    """How sound is cut and coded. ``opus`` falls back to FLAC above two channels."""

    codec: AudioCodecName = "pcm"
    block_ms: int = 20

    def __post_init__(self) -> None:
        if not 10 <= self.block_ms <= 100:
            raise ValueError(f"block_ms must be 10 to 100, as the contract says, got {self.block_ms}")
        if self.codec == "opus" and self.block_ms not in (10, 20, 40, 60):
            raise ValueError(f"an Opus block has 10, 20, 40 or 60 ms, got {self.block_ms}")


@dataclass(frozen=True, slots=True)
class SoundInfo:
    """The sound of a file; ``channels`` and ``rate_hz`` as recorded."""

    rate_hz: int
    channels: int
    surround: bool
    """A cinema layout with a bass channel, not that many microphones."""


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """The video of a file; ``fps`` is the average, 0 where unknown."""

    codec: str
    pixel_format: str
    width: int
    height: int
    fps: float
    rotation: int
    """Degrees by which the picture must be turned counter-clockwise to stand upright."""


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What a media file holds; at least one of ``sound`` and ``picture``."""

    duration_ns: int | None
    sound: SoundInfo | None
    picture: PictureInfo | None
    recorded: datetime.date | None
    """The day the recorder wrote into the file, where it did."""
    notes: tuple[str, ...] = ()


@contextmanager
def opened(path: Path) -> Iterator[av.container.InputContainer]:
    """Container of a local file; no other file and no network is read for it.

    Raises:
        InputError: not found, empty, damaged or no recording.
    """
    try:
        if not path.is_file() and path.exists():
            raise InputError(path, "not a file")  # opening a pipe or device would wait for somebody
        if path.stat().st_size == 0:
            raise InputError(path, "empty file")
        # Absolute: of a name like "call-10:30.mp3" the part before the colon would be taken for a protocol.
        container = av.open(
            str(path.absolute()), "r", options={"protocol_whitelist": "file"}, metadata_errors="replace"
        )  # fmt: skip
    except FileNotFoundError as error:
        raise InputError(path, "file not found") from error
    except PermissionError as error:
        raise InputError(path, "no permission to read it") from error
    except (av.FFmpegError, OSError, ValueError) as error:
        raise InputError(path, _unreadable(path)) from error
    with container:
        if _NOT_RECORDINGS & set(container.format.name.split(",")):
            raise InputError(path, _unreadable(path))
        yield container


def _unreadable(path: Path) -> str:
    if path.suffix.lower() in MEDIA_SUFFIXES:
        return "damaged, cut short or empty: neither sound nor video can be read from it"
    return "not a sound, video, image folder or transcript"


def probe(path: Path) -> MediaInfo:
    """What is in a media file; one frame of each kind is decoded to be sure.

    Raises:
        InputError: nothing in it can be read.
    """
    notes: list[str] = []
    with opened(path) as container:
        length, recorded = container.duration, _recording_day(container.metadata)
        sounds = sound_streams(container)
        pictures = picture_streams(container)
    if len(sounds) > 1:
        notes.append(f"has {len(sounds)} sound tracks; the first is read")
    if len(pictures) > 1:
        notes.append(f"has {len(pictures)} video tracks; the first is read")
    sound = _probe_sound(path) if sounds else None
    picture = _probe_picture(path) if pictures else None
    for name, found, there in (("sound", sound, sounds), ("video", picture, pictures)):
        if there and found is None:
            notes.append(f"its {name} cannot be decoded and is left out")
    if sound is None and picture is None:
        raise InputError(path, _unreadable(path))
    duration_ns = None if length is None or length <= 0 else length * 1000
    return MediaInfo(duration_ns, sound, picture, recorded, tuple(notes))


def _probe_sound(path: Path) -> SoundInfo | None:
    with opened(path) as container:
        for frame in decoded(container, sound_streams(container)[0], []):
            if isinstance(frame, av.AudioFrame) and frame.samples and frame.sample_rate:
                names = {channel.name for channel in frame.layout.channels}
                return SoundInfo(frame.sample_rate, frame.layout.nb_channels, "LFE" in names)
    return None


def _probe_picture(path: Path) -> PictureInfo | None:
    with opened(path) as container:
        stream = picture_streams(container)[0]
        if stream.codec_context.width * stream.codec_context.height > MAX_PIXELS:
            return None
        rate = stream.average_rate
        for frame in decoded(container, stream, []):
            if isinstance(frame, av.VideoFrame):
                return PictureInfo(
                    stream.codec_context.name, frame.format.name, frame.width, frame.height,
                    float(rate) if rate else 0.0, int(frame.rotation) % 360,
                )  # fmt: skip
    return None


def picture_streams(container: av.container.InputContainer) -> list[av.VideoStream]:
    """Video streams that a decoder is there for and that are no cover picture."""
    return [
        stream
        for stream in container.streams.video
        if stream.codec_context is not None and not stream.disposition & Disposition.attached_pic
    ]


def sound_streams(container: av.container.InputContainer) -> list[av.AudioStream]:
    """Sound streams that a decoder is there for."""
    return [stream for stream in container.streams.audio if stream.codec_context is not None]


class SteadyTime:
    """Stamps of a stream, going on evenly where the counter behind them starts again."""

    def __init__(self, usual_ns: int) -> None:
        self._usual_ns = usual_ns
        self._base_ns = 0
        self._last_ns: int | None = None

    def __call__(self, stamp_ns: int) -> int:
        """The stamp in ns, moved by all restarts so far."""
        at_ns = stamp_ns + self._base_ns
        if self._last_ns is not None and not -(10**9) < at_ns - self._last_ns < _RESET_S * 10**9:
            self._base_ns += self._last_ns + self._usual_ns - at_ns
            at_ns = self._last_ns + self._usual_ns
        self._last_ns = at_ns if self._last_ns is None else max(at_ns, self._last_ns)
        return at_ns


def zero_of(container: av.container.InputContainer) -> Fraction:
    """The file's zero in seconds of its own clock."""
    return Fraction(container.start_time or 0, av.time_base)


def _recording_day(metadata: dict[str, str]) -> datetime.date | None:
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)", metadata.get("creation_time", "") or metadata.get("date", ""))
    try:
        day = datetime.date(*(int(part) for part in match.groups())) if match else None
    except ValueError:
        return None
    # Recorders without a clock write the epoch of their format.
    return day if day is not None and day.year > 1990 else None


def packets_of(
    container: av.container.InputContainer,
    stream: av.AudioStream | av.VideoStream,
    breaks_off: Callable[[], None],
) -> "Iterator[av.Packet[Stream]]":
    """Packets of a stream, an empty one at the end; ``breaks_off`` is called where the container is broken."""
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
        except IndexError:
            # A packet of a stream that was not there when the file was opened; PyAV has no place for it.
            packets = container.demux(stream)
            continue
        except (av.FFmpegError, OSError):
            breaks_off()
            return
        if packet is None:
            return
        yield packet


def decoded(
    container: av.container.InputContainer, stream: av.AudioStream | av.VideoStream, damaged: list[int]
) -> Iterator[av.AudioFrame | av.VideoFrame]:
    """Frames of a stream. A packet that cannot be decoded is counted in ``damaged`` and skipped."""
    for packet in packets_of(container, stream, lambda: damaged.append(1)):
        try:
            frames = packet.decode()
        except EOFError:
            return
        except (av.FFmpegError, ValueError):
            damaged.append(0)
            continue
        yield from (frame for frame in frames if isinstance(frame, av.AudioFrame | av.VideoFrame))


@dataclass(frozen=True, slots=True)
class SoundSource:
    """Sound of a file as blocks of ``settings.block_ms``; a stretch's last block may be shorter.

    Rate: as recorded within 8 to 48 kHz, else 48 or 8 kHz. Channels: as recorded up to eight; a cinema
    layout becomes stereo unless ``keep_channels``. Never holds more than a few decoded frames.
    """

    path: Path
    info: SoundInfo
    settings: SoundSettings = field(default_factory=SoundSettings)
    duration_ns: int | None = None
    keep_channels: bool = False

    @property
    def rate_hz(self) -> int:
        """Sample rate of the blocks."""
        rate = min(max(self.info.rate_hz, MIN_RATE_HZ), MAX_RATE_HZ)
        if self.codec is Codec.OPUS and rate not in _OPUS_RATES:
            return 48_000
        return rate

    @property
    def channels(self) -> int:
        """Channels of the blocks."""
        if self.info.surround and not self.keep_channels:
            return 2
        return min(self.info.channels, MAX_BLOCK_CHANNELS)

    @property
    def codec(self) -> Codec:
        """Codec of the blocks."""
        if self.settings.codec == "opus" and self.channels <= 2:
            return Codec.OPUS
        return Codec.PCM_S16LE if self.settings.codec == "pcm" else Codec.FLAC

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """Blocks by rising time; see ``Source``."""
        size = self.rate_hz * self.settings.block_ms // 1000
        if self.info.channels > MAX_BLOCK_CHANNELS and not self.info.surround:
            note(f"has {self.info.channels} channels; the first {MAX_BLOCK_CHANNELS} are read")
        end_ns, held, start = 0, np.zeros((0, self.channels), np.int16), 0
        coder = coder_for(self.codec, self.rate_hz, self.channels, size)
        for position, samples in self._stretches(note):
            if position != start + len(held):
                yield from coder.blocks(start, held)
                held, start = held[:0], position
            held = np.concatenate((held, samples))
            whole = len(held) // size * size
            for piece in coder.blocks(start, held[:whole]):
                end_ns = piece.offset_ns + piece.duration_ns
                yield piece
            held, start = held[whole:], start + whole
        for piece in coder.blocks(start, held):
            end_ns = piece.offset_ns + piece.duration_ns
            yield piece
        self._compare_length(end_ns, note)

    def _stretches(self, note: Note) -> Iterator[tuple[int, Samples]]:
        """Position of the first sample and samples ``(samples, channels)`` at ``rate_hz``."""
        target = None if self.rate_hz == self.info.rate_hz else self.rate_hz
        damaged: list[int] = []
        resampler: soxr.ResampleStream | None = None
        begin = expected = made = 0
        any_sound = False
        for position, samples in self._recorded(damaged):
            any_sound = True
            if target is None:
                yield position, samples
                continue
            if resampler is None or position != expected:
                if resampler is not None:
                    yield begin + made, self._resampled(resampler, samples[:0], last=True)
                resampler = soxr.ResampleStream(self.info.rate_hz, target, self.channels, dtype="int16")
                begin, made = round(position * target / self.info.rate_hz), 0
            expected = position + len(samples)
            out = self._resampled(resampler, samples, last=False)
            yield begin + made, out
            made += len(out)
        if resampler is not None:
            yield begin + made, self._resampled(resampler, np.zeros((0, self.channels), np.int16), last=True)
        if not any_sound:
            raise InputError(self.path, "damaged: no sound can be decoded")
        if damaged:
            places = f"{len(damaged)} place{'s' if len(damaged) > 1 else ''}"
            note(f"its sound is damaged in {places}; what can be read is used")

    def _resampled(self, resampler: soxr.ResampleStream, samples: Samples, *, last: bool) -> Samples:
        out = np.asarray(resampler.resample_chunk(samples if self.channels > 1 else samples[:, 0], last=last))
        return out.astype(np.int16, copy=False).reshape(-1, self.channels)

    def _recorded(self, damaged: list[int]) -> Iterator[tuple[int, Samples]]:
        """Position and samples at the recorded rate, without overlaps."""
        rate = self.info.rate_hz
        with opened(self.path) as container:
            stream, zero = sound_streams(container)[0], zero_of(container)
            convert = SoundConverter(rate, self.channels, self.info.surround and not self.keep_channels)
            expected: int | None = None
            base = Fraction(0)
            for frame in decoded(container, stream, damaged):
                if not isinstance(frame, av.AudioFrame):
                    continue
                at = expected or 0
                if frame.pts is not None and frame.time_base is not None:
                    at = round((frame.pts * frame.time_base - zero - base) * rate)
                samples = convert(frame)
                if expected is None:
                    expected = max(at, 0)
                    samples = samples[max(-at, 0) :]
                elif not -rate < at - expected < _RESET_S * rate:
                    base += Fraction(at - expected, rate)
                elif at - expected > _JUMP_S * rate:
                    expected = at
                elif expected - at > _JUMP_S * rate:
                    samples = samples[expected - at :]
                if len(samples):
                    yield expected, samples
                    expected += len(samples)

    def _compare_length(self, end_ns: int, note: Note) -> None:
        missing_ns = (self.duration_ns or 0) - end_ns
        if missing_ns > _CUT_S * 10**9 and self.path.suffix.lower().lstrip(".") not in _GUESSED_LENGTH:
            claimed = (self.duration_ns or 0) / 1e9
            note(f"its sound ends after {end_ns / 1e9:.1f} s, the file promises {claimed:.1f} s: cut short?")


class SoundConverter:
    """Turns decoded frames into ``(samples, channels)`` int16; takes changes of format in mid-stream."""

    def __init__(self, rate_hz: int, channels: int, downmix: bool) -> None:
        self._rate_hz = rate_hz
        self._channels = channels
        self._downmix = downmix
        self._setup: tuple[str, str, int] | None = None
        self._resampler: av.AudioResampler | None = None

    def __call__(self, frame: av.AudioFrame) -> Samples:
        setup = (frame.format.name, frame.layout.name, frame.sample_rate)
        if self._resampler is None or setup != self._setup:
            same = frame.layout.nb_channels == self._channels or frame.layout.nb_channels > MAX_BLOCK_CHANNELS
            layout = frame.layout if same and not self._downmix else _standard_layout(self._channels)
            self._resampler, self._setup = av.AudioResampler("s16", layout, self._rate_hz), setup
        frame.pts = None  # a stamp that jumps would make the resampler invent or drop samples
        parts = [
            out.to_ndarray().reshape(-1, out.layout.nb_channels)[:, : self._channels]
            for out in self._resampler.resample(frame)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self._channels), np.int16)


def _standard_layout(channels: int) -> str:
    return {1: "mono", 2: "stereo"}.get(channels, f"{channels} channels")
