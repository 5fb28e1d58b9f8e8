"""Cameras, microphones and screens of this machine as device streams, stamped by their drivers.

Capture goes through FFmpeg's devices, as they come with PyAV: ALSA for sound, Video4Linux for cameras, X11 for a
screen. Their buffers carry the wall-clock time that the driver gave them: for sound that of the first sample (the
driver's delay is taken off), for a camera that of the frame's end of readout, so up to an exposure later than its
middle; `calibration` is what takes such an offset out. A driver without absolute stamps (their distance from now is
more than some seconds) is stamped on arrival, and said to be.
"""

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import av
import numpy as np

from contracts.messages import AttendeeInfo, ChannelSpeaker, MeetingStarted
from contracts.packet import Codec, Modality, valid_id

from .input_names import meeting_id_of
from .inputs import Room
from .media import PictureInfo, SoundConverter, SoundSettings
from .sound_blocks import coder_for
from .streams import InputError, MediaPiece, Note, Problem, Stream, StreamMessage
from .video import Encoder, Picture, VideoSettings

Kind = Literal["microphone", "camera", "screen"]
DRIVERS: Final[dict[Kind, str]] = {"microphone": "alsa", "camera": "v4l2", "screen": "x11grab"}
_OPTIONS: Final[dict[str, dict[str, str]]] = {
    # Absolute times instead of seconds since start-up.
    "v4l2": {"ts": "abs"},
    "x11grab": {"framerate": "10"},
}
_TRUSTED_NS: Final = 10_000_000_000
"""A driver's stamp further from now than this is on no clock that we know."""
_JUMP_NS: Final = 40_000_000
"""Sound further from where it should go on was interrupted: samples are missing."""
_ARRIVAL_JUMP_NS: Final = 500_000_000
_FOLLOW: Final = 0.05
"""Share of a smaller difference that each buffer moves the stamps by: the driver's jitter is not the device's."""
_QUEUE: Final = 200
_NOT_YET_S: Final = 0.005
_ALSA_CONFIG: Final = Path("/usr/share/alsa/alsa.conf")


@dataclass(frozen=True, slots=True)
class LiveDevice:
    """One device of this machine: ``name`` in the meeting, ``address`` for its driver (``hw:1,0``, ``/dev/video0``)."""

    kind: Kind
    name: str
    address: str
    driver: str = ""

    def __post_init__(self) -> None:
        if not valid_id(self.name) or not self.address:
            raise InputError(
                self.address or self.name, "use NAME=ADDRESS or ADDRESS, with a name of 1 to 64 bytes"
            )

    @classmethod
    def parse(cls, kind: Kind, text: str) -> "LiveDevice":
        """From ``ADDRESS`` or ``NAME=ADDRESS``; ``driver:`` may stand before the address (``alsa:default``).

        Raises:
            InputError: it names nothing.
        """
        name, equals, address = text.partition("=")
        if not equals:
            name, address = "", text
        driver, colon, rest = address.partition(":")
        if colon and driver in ("alsa", "oss", "v4l2", "x11grab", "lavfi"):
            address = rest
        else:
            driver = DRIVERS[kind]
        return cls(kind, name or f"{kind}-{Path(address).name or address}"[:64], address, driver)


@dataclass(frozen=True, slots=True)
class DriverBuffer:
    """What a driver hands over: a frame, and its UTC stamp where it has one."""

    frame: av.AudioFrame | av.VideoFrame
    stamp_ns: int | None


Capture = Callable[[LiveDevice], Iterator[DriverBuffer]]


def capture(device: LiveDevice) -> Iterator[DriverBuffer]:
    """Buffers of a device of this machine, as they come.

    Raises:
        InputError: it cannot be opened.
    """
    if device.driver == "alsa" and "ALSA_CONFIG_PATH" not in os.environ and _ALSA_CONFIG.exists():
        # The library inside the wheel looks for its configuration where it was built.
        os.environ["ALSA_CONFIG_PATH"] = str(_ALSA_CONFIG)
    try:
        with _quiet(device.driver == "alsa"):
            container = av.open(device.address, format=device.driver, options=_OPTIONS.get(device.driver, {}))
    except (av.FFmpegError, ValueError, OSError) as error:
        raise InputError(
            device.address, f"this {device.kind} cannot be opened by {device.driver}: {_reason(error)}"
        ) from error
    with container:
        kind = "audio" if device.kind == "microphone" else "video"
        streams = [s for s in container.streams if s.type == kind]
        if not streams:
            raise InputError(device.address, f"{device.driver} gives no {kind}")
        try:
            for frame in _frames(container, streams[0]):
                at = None if frame.pts is None or frame.time_base is None else frame.pts * frame.time_base
                yield DriverBuffer(frame, None if at is None else round(at * 10**9))
        except (av.FFmpegError, OSError) as error:
            # Somebody has pulled its plug: the other devices go on.
            raise InputError(
                device.address, f"this {device.kind} gives nothing any more: {_reason(error)}"
            ) from error


def _frames(
    container: av.container.InputContainer, stream: av.stream.Stream
) -> Iterator[av.AudioFrame | av.VideoFrame]:
    while True:
        try:
            for frame in container.decode(stream):
                if isinstance(frame, av.AudioFrame | av.VideoFrame):
                    yield frame
            return
        except av.BlockingIOError:
            time.sleep(_NOT_YET_S)  # a driver that has nothing yet and does not wait


@contextlib.contextmanager
def _quiet(wanted: bool) -> Iterator[None]:
    """ALSA writes its own lines about a device that is not there; ours says so."""
    if not wanted:
        yield
        return
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _reason(error: Exception) -> str:
    """FFmpeg's word for it, in one line."""
    text = getattr(error, "strerror", None) or str(error)
    return text.splitlines()[0] if text else type(error).__name__


class _Stamps:
    """Time of each buffer in ns since the zero of the capture."""

    def __init__(self, zero_utc_ns: int, note: Note, now_utc_ns: Callable[[], int]) -> None:
        self._zero_utc_ns = zero_utc_ns
        self._note = note
        self._now_utc_ns = now_utc_ns
        self._trusted: bool | None = None

    @property
    def jump_ns(self) -> int:
        """How far a stamp may be from where sound should go on; arrival also waits for our own processor."""
        return _JUMP_NS if self._trusted else _ARRIVAL_JUMP_NS

    def __call__(self, buffer: DriverBuffer, length_ns: int) -> int:
        now_ns = self._now_utc_ns()
        if self._trusted is None:
            self._trusted = buffer.stamp_ns is not None and abs(now_ns - buffer.stamp_ns) < _TRUSTED_NS
            if not self._trusted:
                self._note("its driver gives no absolute stamps; it is stamped when its buffers arrive")
        if self._trusted and buffer.stamp_ns is not None:
            return buffer.stamp_ns - self._zero_utc_ns
        return now_ns - length_ns - self._zero_utc_ns


@dataclass(frozen=True, slots=True)
class LiveSound:
    """Sound of a device as blocks; the stamp of a block is that of its first sample."""

    device: LiveDevice
    zero_utc_ns: int
    settings: SoundSettings = field(default_factory=SoundSettings)
    buffers: Capture = capture
    now_utc_ns: Callable[[], int] = time.time_ns

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """Blocks as they come, from the zero on; see ``Source``. Where the driver lost samples, time goes on without them."""
        stamps = _Stamps(self.zero_utc_ns, note, self.now_utc_ns)
        convert: SoundConverter | None = None
        held, held_ns, size, rate_hz = np.zeros((0, 1), np.int16), 0, 0, 0
        for buffer in self.buffers(self.device):
            if not isinstance(buffer.frame, av.AudioFrame):
                continue
            if convert is None:
                rate_hz, channels = buffer.frame.sample_rate, min(buffer.frame.layout.nb_channels, 8)
                convert, size = (
                    SoundConverter(rate_hz, channels, False),
                    rate_hz * self.settings.block_ms // 1000,
                )
                held = np.zeros((0, channels), np.int16)
            samples = convert(buffer.frame)
            at_ns = stamps(buffer, len(samples) * 10**9 // rate_hz)
            expected_ns = held_ns + len(held) * 10**9 // rate_hz
            if held_ns == 0 or abs(at_ns - expected_ns) > stamps.jump_ns:
                if held_ns:
                    note("its driver lost samples; the gap is left out")
                # What was held is less than a block: it goes with the gap.
                held, held_ns = held[:0], at_ns
            else:
                held_ns += round(_FOLLOW * (at_ns - expected_ns))
            held = np.concatenate((held, samples))
            while len(held) >= size:
                if held_ns >= 0:
                    yield self._piece(held[:size], held_ns, rate_hz)
                held, held_ns = held[size:], held_ns + size * 10**9 // rate_hz

    def _piece(
        self, block: "np.ndarray[tuple[int, int], np.dtype[np.int16]]", at_ns: int, rate_hz: int
    ) -> MediaPiece:
        coder = coder_for(Codec.PCM_S16LE, rate_hz, block.shape[1], len(block))
        (piece,) = coder.blocks(0, block)
        return MediaPiece(
            at_ns, piece.duration_ns, piece.codec, piece.payload, rate_hz=rate_hz, channels=block.shape[1]
        )


@dataclass(frozen=True, slots=True)
class LivePictures:
    """Pictures of a camera or a screen as H.264, each with the stamp of its driver."""

    device: LiveDevice
    zero_utc_ns: int
    settings: VideoSettings = field(default_factory=lambda: VideoSettings(max_fps=30))
    buffers: Capture = capture
    now_utc_ns: Callable[[], int] = time.time_ns

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """Access units as they come; see ``Source``."""
        stamps = _Stamps(self.zero_utc_ns, note, self.now_utc_ns)
        least_ns = round(0.9e9 / self.settings.max_fps)
        encoder: Encoder | None = None
        last_ns = -least_ns
        for buffer in self.buffers(self.device):
            if not isinstance(buffer.frame, av.VideoFrame):
                continue
            at_ns = stamps(buffer, 0)
            if at_ns < 0 or at_ns - last_ns < least_ns:
                continue
            if encoder is None:
                frame = buffer.frame
                info = PictureInfo(
                    "raw", frame.format.name, frame.width, frame.height, self.settings.max_fps, 0
                )
                encoder = Encoder(self.settings, info)
            last_ns = at_ns
            yield from encoder.encode(Picture(at_ns, buffer.frame))


def open_live(
    devices: Sequence[LiveDevice],
    *,
    meeting_id: str | None,
    title: str | None,
    attendees: tuple[str, ...],
    tai_ns: int,
    utc_ns: int,
    buffers: Capture = capture,
) -> Room:
    """Devices of this machine as a room; ``tai_ns`` and ``utc_ns`` are the same moment on both clocks: its zero.

    A microphone that is named like an attendee is that person's seat.

    Raises:
        InputError: two devices of the same name.
    """
    names = [d.name for d in devices]
    for name in names:
        if names.count(name) > 1:
            raise InputError(name, "two devices of this name; say NAME=ADDRESS")
    meeting = meeting_id or meeting_id_of(title or "live")
    problems: list[Problem] = []
    streams = tuple(
        Stream(
            meeting, d.name, Modality.AUDIO if d.kind == "microphone" else Modality.VIDEO,
            LiveSound(d, utc_ns, buffers=buffers) if d.kind == "microphone" else LivePictures(d, utc_ns, buffers=buffers),
            Path(d.address), tai_ns, problems=problems,
        )
        for d in devices
    )  # fmt: skip
    started = MeetingStarted(
        meeting_id=meeting, start_ns=tai_ns, title=title,
        attendees=tuple(AttendeeInfo(name=name) for name in attendees),
        channel_map=tuple(
            ChannelSpeaker(device=d.name, channel=0, speaker=d.name)
            for d in devices
            if d.kind == "microphone" and d.name in attendees
        ),
        slide_devices=tuple(d.name for d in devices if d.kind == "screen"),
        streams=tuple(stream.name for stream in streams),
    )  # fmt: skip
    return Room(meeting, (started,), streams, tai_ns, True, None, problems, live=True)


def as_they_come(streams: Sequence[Stream], stop: threading.Event) -> Iterator[tuple[Stream, StreamMessage]]:
    """Messages of live streams in the order in which they are there; each is read by a thread of its own."""
    ready: queue.Queue[tuple[Stream, StreamMessage | BaseException | None]] = queue.Queue(_QUEUE)

    def offer(stream: Stream, item: StreamMessage | BaseException | None) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                ready.put((stream, item), timeout=0.1)
                return

    def read(stream: Stream) -> None:
        try:
            for message in stream.packets():
                offer(stream, message)
                if stop.is_set():
                    return
            offer(stream, None)
        except BaseException as error:
            offer(stream, error)

    for stream in streams:
        threading.Thread(target=read, args=(stream,), name=f"capture {stream.name}", daemon=True).start()
    running = len(streams)
    while running and not stop.is_set():
        try:
            stream, item = ready.get(timeout=0.1)
        except queue.Empty:
            continue
        if item is None:
            running -= 1
        elif isinstance(item, BaseException):
            raise item
        else:
            yield stream, item
