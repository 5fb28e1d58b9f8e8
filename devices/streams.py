"""A device stream before Kafka: its messages, read lazily, and several streams merged by time.

A source knows one file and nothing of meetings; it yields pieces whose times count from the file's
zero. A ``Stream`` puts pieces into a meeting: ids, sequence numbers, stamps on the timeline.
"""

import heapq
import queue
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from pydantic import ValidationError

from contracts.messages import EndOfStream, OcrMessage, TranscriptMessage, TranscriptWord
from contracts.packet import ClockKind, Codec, Modality, Packet, stream_name

StreamMessage = Packet | TranscriptMessage | OcrMessage | EndOfStream
Note = Callable[[str], None]
"""Takes one readable sentence about something that was found out while reading."""
MAX_LENGTH_NS: Final = 86_400 * 10**9
"""Longest recording; a damaged header may promise years."""
READ_AHEAD: Final = 60
"""How many pictures are coded before their time: two seconds of them, some megabytes."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def readable(name: Path | str) -> str:
    """A file's name for messages: half characters of one that is no UTF-8 would fit into none."""
    return str(name).encode("utf-8", "replace").decode("utf-8")


def whole_characters(text: str) -> str:
    """Text with the sign for what cannot be read in the place of half characters, as JSON can spell them."""
    return _SURROGATE.sub("\ufffd", text)


class InputError(Exception):
    """An input that cannot be used; ``str()`` is one line: the file as people named it, and what is wrong."""

    def __init__(self, path: Path | str, what: str) -> None:
        self.path = Path(path)
        self.what = " ".join(what.split())
        super().__init__(f"{readable(self.path)}: {self.what}")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about one input that a person should know; the others go on. ``str()`` is one line."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{readable(self.path)}: {self.what}"

    @property
    def in_minutes(self) -> str:
        """The line without the folder: minutes go to people whom this machine's folders do not concern."""
        return f"{readable(self.path.name or self.path)}: {self.what}"


@dataclass(frozen=True, slots=True)
class MediaPiece:
    """One block of sound or one picture; times in ns from the file's zero."""

    offset_ns: int
    duration_ns: int
    codec: Codec
    payload: bytes
    rate_hz: int = 0
    width: int = 0
    height: int = 0
    channels: int = 0
    key_frame: bool = False


@dataclass(frozen=True, slots=True)
class WordPiece:
    """One word of a transcript; times in ns from the file's zero."""

    start_ns: int
    end_ns: int
    text: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class TextPiece:
    """One stretch of one speaker's words; times in ns from the file's zero."""

    offset_ns: int
    duration_ns: int
    speaker: str | None
    text: str
    words: tuple[WordPiece, ...] = ()


Piece = MediaPiece | TextPiece


class Source(Protocol):
    """Reads one stream of one file."""

    def pieces(self, note: Note) -> Iterator[Piece]:
        """Pieces by rising offset, read as they are asked for; every call starts anew.

        Damage is told to ``note`` and skipped; raises ``InputError`` where nothing can be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """One device and modality of a meeting."""

    meeting_id: str
    device_id: str
    modality: Modality
    source: Source
    path: Path
    start_ns: int = 0
    """Timeline time of the file's zero."""
    duration_ns: int | None = None
    """Length that the file claims, where it does."""
    stream_epoch: int = 0
    clock_kind: ClockKind = ClockKind.PTP
    problems: list[Problem] = field(default_factory=list, compare=False, repr=False)
    """Shared with the room; grows while the stream is read."""

    @property
    def name(self) -> str:
        """``device/modality``."""
        return stream_name(self.device_id, self.modality)

    def packets(self) -> Iterator[StreamMessage]:
        """Messages in order of their stamps, read lazily; the last one is ``EndOfStream``.

        A stream that turns out to be unreadable ends early, with a problem noted.
        """
        sequence, end_ns = 0, self.start_ns
        try:
            for piece in self.source.pieces(self._note):
                if isinstance(piece, MediaPiece) and piece.offset_ns > MAX_LENGTH_NS:
                    self._note("goes on for more than a day; the rest is left out")
                    break
                try:
                    message = self._message(piece, sequence)
                except ValidationError:
                    at_s = piece.offset_ns / 1e9
                    self._note(
                        f"what stands at {at_s:.1f} s fits no message (text too long or out of bounds); left out"
                    )
                    continue
                yield message
                sequence += 1
                end_ns = max(end_ns, self.start_ns + piece.offset_ns + piece.duration_ns)
        except InputError as error:
            # One file that a codec gives up on must not take the room with it.
            where = f"cannot be read beyond {(end_ns - self.start_ns) / 1e9:.1f} s: " if sequence else ""
            self._note(where + error.what)
        yield EndOfStream(
            meeting_id=self.meeting_id, device_id=self.device_id, stream_epoch=self.stream_epoch,
            sequence=sequence, clock_kind=self.clock_kind, timestamp_ns=end_ns,
            modality=_MODALITY_NAME[self.modality],
        )  # fmt: skip

    def _note(self, what: str) -> None:
        problem = Problem(self.path, what)
        if problem not in self.problems:
            self.problems.append(problem)

    def _message(self, piece: Piece, sequence: int) -> Packet | TranscriptMessage:
        stamp_ns = self.start_ns + piece.offset_ns
        if isinstance(piece, TextPiece):
            return TranscriptMessage(
                meeting_id=self.meeting_id, device_id=self.device_id, stream_epoch=self.stream_epoch,
                sequence=sequence, clock_kind=self.clock_kind, timestamp_ns=stamp_ns,
                duration_ns=piece.duration_ns, speaker=piece.speaker,
                text=whole_characters(piece.text),
                words=tuple(
                    TranscriptWord(
                        start_ns=self.start_ns + word.start_ns, end_ns=self.start_ns + word.end_ns,
                        text=word.text, probability=word.probability,
                    )
                    for word in piece.words
                ),
            )  # fmt: skip
        return Packet(
            meeting_id=self.meeting_id, device_id=self.device_id, modality=self.modality, codec=piece.codec,
            clock_kind=self.clock_kind, stream_epoch=self.stream_epoch, sequence=sequence,
            timestamp_ns=stamp_ns, duration_ns=piece.duration_ns, payload=piece.payload,
            rate_hz=piece.rate_hz, width=piece.width, height=piece.height, channels=piece.channels,
            key_frame=piece.key_frame,
        )  # fmt: skip


def due_ns(message: StreamMessage) -> int:
    """When a device could have sent the message: sound and words at their end, pictures at their stamp."""
    if isinstance(message, Packet) and message.modality is Modality.VIDEO:
        return message.timestamp_ns
    return message.timestamp_ns + message.duration_ns


def read_ahead(stream: Stream) -> Generator[StreamMessage, None, None]:
    """A stream's messages, video read by a thread of its own up to ``READ_AHEAD`` pictures early.

    Coding one picture takes longer than a block of sound may be late. The coders let other threads run.
    """
    if stream.modality is not Modality.VIDEO:
        yield from stream.packets()
        return
    ready: queue.Queue[StreamMessage | BaseException | None] = queue.Queue(READ_AHEAD)
    over = threading.Event()

    def offered(item: StreamMessage | BaseException | None) -> bool:
        while not over.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            if all(offered(message) for message in stream.packets()):
                offered(None)
        except BaseException as error:
            offered(error)

    threading.Thread(target=read, name=f"read {stream.name}", daemon=True).start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()


def merged(
    streams: Iterable[Stream], read: Callable[[Stream], Iterator[StreamMessage]] | None = None
) -> Iterator[tuple[Stream, StreamMessage]]:
    """Messages of several streams in the order in which devices would have sent them.

    Ties keep the order of the streams; within a stream the order never changes. ``read`` is how a stream
    is read, ``Stream.packets`` where it is None.
    """
    heap: list[tuple[int, int, StreamMessage, Stream, Iterator[StreamMessage]]] = []

    def push(index: int, floor_ns: int, stream: Stream, messages: Iterator[StreamMessage]) -> None:
        message = next(messages, None)
        if message is not None:
            # A transcript's longer line may be due after the next, shorter one.
            heapq.heappush(heap, (max(floor_ns, due_ns(message)), index, message, stream, messages))

    for index, stream in enumerate(streams):
        push(index, -(2**63), stream, stream.packets() if read is None else read(stream))
    while heap:
        due, index, message, stream, messages = heapq.heappop(heap)
        yield stream, message
        push(index, due, stream, messages)


_MODALITY_NAME: dict[Modality, Literal["video", "audio", "ocr", "transcript"]] = {
    Modality.VIDEO: "video",
    Modality.AUDIO: "audio",
    Modality.OCR: "ocr",
    Modality.TRANSCRIPT: "transcript",
}
