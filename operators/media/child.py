"""The process in which media are decoded: `python -m operators.media.child FD JSON`.

Reads requests from the inherited socket FD and answers each in order. Limits its own memory, loses its
priority to the flow where told so, and dies with its parent. Everything that decodes is imported here and
nowhere in the flow's process.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any

from operators.media.wire import Head, WireError, pack, receive

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """memory_mb: address space allowed on top of what the loaded libraries take."""

    kind: str
    memory_mb: int
    niceness: int
    max_width: int
    max_height: int
    parent_pid: int


class MediaDecoder:
    """Answers requests for any number of streams of one kind, sound or pictures."""

    def __init__(self, settings: ChildSettings) -> None:
        self._settings = settings
        self._streams: dict[str, Any] = {}

    def answer(self, head: Head, data: bytes) -> tuple[Head, list[bytes]]:
        """Head and blocks of the reply; a failure is a reply with `error`."""
        try:
            if head["op"] == "forget":
                self._streams.pop(head["stream"], None)
                return {}, []
            if self._settings.kind == "sound":
                return self._sound(head, data)
            return self._pictures(head, data)
        except ValueError as error:
            return {"error": str(error)[:300]}, []
        except MemoryError:
            self._streams.pop(head["stream"], None)
            return {"error": "decoding needs more memory than allowed"}, []
        except Exception as error:
            # Whatever hostile bytes bring about in a library is that packet's failure, not a reason to restart.
            self._streams.pop(head["stream"], None)
            return {"error": f"a decoder gave up on it ({type(error).__name__})"}, []

    def _sound(self, head: Head, data: bytes) -> tuple[Head, list[bytes]]:
        from operators.speech.sound_stream import SoundStream

        stream = self._streams.setdefault(head["stream"], SoundStream())
        samples, rate_hz = stream.flac(data) if head["op"] == "flac" else stream.opus(data, head["channels"])
        return {"rate_hz": rate_hz, "channels": samples.shape[1]}, [samples.tobytes()]

    def _pictures(self, head: Head, data: bytes) -> tuple[Head, list[bytes]]:
        from operators.pictures.stream import PictureStream, PictureStreamSettings

        stream = self._streams.get(head["stream"])
        if stream is None:
            settings = self._settings
            bounds = PictureStreamSettings(max_width=settings.max_width, max_height=settings.max_height)
            stream = self._streams[head["stream"]] = PictureStream(head["role"], bounds)
        if head["op"] == "full":
            return {}, [stream.full_frame(head["t"])]
        at_ns = head["t"]
        found = stream.jpeg(data, at_ns) if head["op"] == "jpeg" else stream.h264(data, head["key"], at_ns)
        blocks: list[bytes] = []
        frames = []
        for each in found:
            sharpness = round(each.sharpness, 3)
            frames.append([each.timestamp_ns, each.key_frame, each.width, each.height, sharpness])
            blocks += [each.luma.tobytes(), each.volume.tobytes()]
            blocks.append(b"" if each.patches is None else each.patches.tobytes())
        return {"frames": frames, "light": stream.take_light()}, blocks


def limit_process(settings: ChildSettings) -> None:
    """Applies the limits of this process; called after the libraries are loaded."""
    if sys.platform == "linux":
        # A decoder stuck in native code would not notice that its parent is gone.
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
        with open("/proc/self/statm", encoding="ascii") as statm:
            loaded = int(statm.read().split()[0]) * resource.getpagesize()
        limit = loaded + settings.memory_mb * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(settings.niceness)
    if os.getppid() != settings.parent_pid:
        raise SystemExit(0)


def load_libraries(kind: str) -> None:
    """Imports what decodes, so that the memory limit counts from there and the first packet is not late."""
    import av

    av.logging.set_level(av.logging.PANIC)
    if kind == "sound":
        importlib.import_module("operators.speech.sound_stream")
    else:
        import cv2

        importlib.import_module("operators.pictures.stream")
        cv2.setNumThreads(1)


def serve(connection: socket.socket, settings: ChildSettings) -> None:
    """Answers until the other side closes."""
    decoder = MediaDecoder(settings)
    connection.sendall(pack({"ready": True}, []))
    while True:
        try:
            message = receive(connection)
        except WireError:
            return
        if message is None:
            return
        head, blocks = message
        reply, payload = decoder.answer(head, bytes(blocks[0]) if blocks else b"")
        try:
            connection.sendall(pack(reply, payload))
        except OSError:
            return


def main() -> None:
    """Entry of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = ChildSettings(**json.loads(sys.argv[2]))
    load_libraries(settings.kind)
    limit_process(settings)
    # Libraries report damage on the terminal; the reasons go to the parent instead.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection, settings)


if __name__ == "__main__":
    main()
