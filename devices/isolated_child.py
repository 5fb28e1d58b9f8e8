"""The process that reads media files for others: ``python -m devices.isolated_child FD PARENT``.

It loads the libraries, then forks a child for every connection that comes in over the inherited socket FD.
"""

import ctypes
import json
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import av
import cv2

from .isolated import HEAD, IS_ANSWER, IS_CHILD, IS_DONE, IS_ERROR, IS_NOTE, IS_PIECE, PIECE
from .media import MediaInfo, probe
from .streams import InputError, MediaPiece, Source

_MEGABYTE = 1024 * 1024


def main() -> None:
    """Entry of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    die_with(int(sys.argv[2]))
    # Libraries report damage on the terminal; the reasons go to the parent instead.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    av.logging.set_level(av.logging.PANIC)
    cv2.setNumThreads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=int(sys.argv[1])) as control:
        control.send(b"r")
        while True:
            message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not message:
                return
            for descriptor in descriptors:
                parent = os.getpid()
                if os.fork() == 0:
                    control.close()
                    die_with(parent)
                    try:
                        serve(socket.socket(fileno=descriptor))
                    finally:
                        os._exit(0)
                os.close(descriptor)


def die_with(parent: int) -> None:
    """End this process when its parent ends: a decoder stuck in native code would not notice."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def serve(connection: socket.socket) -> None:
    """Answer the one request of this connection."""
    with connection.makefile("rb") as requests, connection.makefile("wb") as out:
        (length,) = struct.unpack("<I", requests.read(4))
        folder, memory_mb, what, subject = pickle.loads(requests.read(length))
        try:
            send(out, IS_CHILD, str(os.getpid()).encode())
            out.flush()
            os.chdir(folder)
            limit_memory(memory_mb)
            if what == "probe":
                send(out, IS_ANSWER, json.dumps(described(probe(subject))).encode())
            else:
                read(subject, out)
            send(out, IS_DONE, b"")
        except ConnectionError:
            return  # whoever asked wants no more
        except InputError as error:
            send(out, IS_ERROR, error.what.encode("utf-8", "replace"))
        except MemoryError:
            send(out, IS_ERROR, b"reading it needs more memory than a file may take")
        except Exception:
            # Whatever hostile bytes bring about in a library is that file's failure.
            send(out, IS_ERROR, b"damaged: a decoder gave up on it")


def read(source: Source, out: BinaryIO) -> None:
    """Send a source's pieces; a live reader far ahead is held up by the connection."""
    for piece in source.pieces(lambda what: send(out, IS_NOTE, what.encode("utf-8", "replace"))):
        if not isinstance(piece, MediaPiece):
            raise TypeError("only media are read in a process of their own")
        head = PIECE.pack(
            piece.offset_ns, piece.duration_ns, piece.codec, piece.rate_hz, piece.width, piece.height,
            piece.channels, piece.key_frame,
        )  # fmt: skip
        send(out, IS_PIECE, head + piece.payload)
        if piece.width:
            out.flush()  # a picture takes a while, and the next one may come much later


def send(out: BinaryIO, kind: bytes, body: bytes) -> None:
    """Write one message."""
    out.write(HEAD.pack(kind, len(body)) + body)


def described(info: MediaInfo) -> dict[str, Any]:
    """What is in a file, as JSON values."""
    values = asdict(info)
    values["recorded"] = info.recorded.isoformat() if info.recorded is not None else None
    return values


def limit_memory(memory_mb: int) -> None:
    """Limit this process's address space to what it has and so much more."""
    loaded = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    limit = loaded + memory_mb * _MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
