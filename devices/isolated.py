"""Reading media files in child processes, so that a file that crashes, hangs or swells a decoder costs itself only.

One process loads the libraries once and forks a child for each reading. A child's memory is limited, and it
is killed when nothing comes from it for too long. What it sends is numbers, short texts and payloads.
"""

import contextlib
import datetime
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from contracts.packet import MAX_PAYLOAD_BYTES, Codec

from .media import MediaInfo, PictureInfo, SoundInfo
from .streams import InputError, MediaPiece, Note, Piece, Source

HEAD: Final = struct.Struct("<cI")
"""Kind and length of what follows."""
PIECE: Final = struct.Struct("<qqBIHHBB")
"""Offset, duration, codec, rate, width, height, channels, key frame; the payload follows."""
IS_CHILD: Final = b"C"
IS_PIECE: Final = b"P"
IS_NOTE: Final = b"N"
IS_ANSWER: Final = b"A"
IS_ERROR: Final = b"E"
IS_DONE: Final = b"D"
_START_S: Final = 60.0
_MAX_BYTES: Final = 2 * MAX_PAYLOAD_BYTES + 1024
"""A reader's largest picture is told apart and refused by the reader; nothing longer than this is believed."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may take.

    memory_mb: address space of a child on top of its libraries; a picture of 8192 x 8192 takes 300 MB.
    silent_s: longest time in which nothing comes from a child that is asked for more.
    """

    memory_mb: int = 2048
    silent_s: float = 90.0


@dataclass(frozen=True, slots=True)
class IsolatedSource:
    """A source that is read in a process of its own; ``path`` names the file in what is said of it."""

    inner: Source
    path: Path
    limits: ReadLimits = field(default_factory=ReadLimits)

    def pieces(self, note: Note) -> Iterator[Piece]:
        """Pieces of the inner source; see ``Source``."""
        for kind, body in _exchange(self.path, self.limits, ("pieces", self.inner)):
            if kind == IS_NOTE:
                note(body.decode("utf-8", "replace"))
            elif kind == IS_PIECE:
                yield _piece(body)


def isolated_probe(path: Path, limits: ReadLimits | None = None) -> MediaInfo:
    """What is in a media file, found out in a process of its own; see ``probe``.

    Raises:
        InputError: nothing in it can be read, or reading it ended or overstrained the child.
    """
    for kind, body in _exchange(path, limits or ReadLimits(), ("probe", path)):
        if kind == IS_ANSWER:
            found: dict[str, Any] = json.loads(body)
            day, sound, picture = found["recorded"], found["sound"], found["picture"]
            return MediaInfo(
                found["duration_ns"],
                None if sound is None else SoundInfo(**sound),
                None if picture is None else PictureInfo(**picture),
                None if day is None else datetime.date.fromisoformat(day),
                tuple(found["notes"]),
            )
    raise InputError(path, "damaged: nothing could be found out about it")


def _exchange(path: Path, limits: ReadLimits, request: tuple[str, Any]) -> Iterator[tuple[bytes, bytes]]:
    connection = _READERS.child(pickle.dumps((os.getcwd(), limits.memory_mb, *request)))
    if connection is None:
        raise InputError(path, "the process that reads files cannot be started")
    with connection, connection.makefile("rb") as stream:
        connection.settimeout(limits.silent_s)
        child: int | None = None
        try:
            while True:
                kind, body = _message(path, limits, stream)
                if kind == IS_CHILD:
                    with contextlib.suppress(OSError):  # it may have said all by now
                        child = os.pidfd_open(int(body))
                elif kind == IS_ERROR:
                    raise InputError(path, body.decode("utf-8", "replace"))
                elif kind == IS_DONE:
                    return
                else:
                    yield kind, body
        finally:
            if child is not None:
                # It may hang in native code, where it would not notice that nobody listens any more.
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(child, signal.SIGKILL)
                os.close(child)


def _message(path: Path, limits: ReadLimits, stream: IO[bytes]) -> tuple[bytes, bytes]:
    """The next message of a child."""
    try:
        head = stream.read(HEAD.size)
        kind, length = HEAD.unpack(head) if len(head) == HEAD.size else (b"", 0)
        body = stream.read(length) if length <= _MAX_BYTES else b""
    except TimeoutError:
        raise InputError(path, f"reading it hangs: nothing came for {limits.silent_s:.0f} s") from None
    except OSError:
        kind, length, body = b"", 0, b""
    if not kind or len(body) != length:
        raise InputError(path, "damaged: its decoder broke down over it")
    return kind, body


def _piece(body: bytes) -> MediaPiece:
    offset_ns, duration_ns, codec, rate_hz, width, height, channels, key_frame = PIECE.unpack_from(body)
    return MediaPiece(
        offset_ns, duration_ns, Codec(codec), body[PIECE.size :], rate_hz, width, height, channels, bool(key_frame)
    )  # fmt: skip


class _Readers:
    """The process that forks readers; it starts at the first file and ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def child(self, request: bytes) -> socket.socket | None:
        """Our end of the connection to a new child that has this request; None where none can be had."""
        with self._lock:
            for _ in range(2):
                try:
                    ours, theirs = socket.socketpair()
                except OSError:
                    return None
                try:
                    with theirs:
                        socket.send_fds(self._started(), [b"f"], [theirs.fileno()])
                    ours.sendall(struct.pack("<I", len(request)) + request)
                    return ours
                except OSError:
                    ours.close()
                    self._forget()
        return None

    def _started(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._forget()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "devices.isolated_child", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        # Loading the libraries is no part of what a file may take.
        ours.settimeout(_START_S)
        if ours.recv(1) != b"r":
            raise OSError("the process that reads files did not come up")
        ours.settimeout(None)
        self._control = ours
        return ours

    def _forget(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


_READERS: Final = _Readers()
