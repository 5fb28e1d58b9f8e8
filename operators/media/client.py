"""Decoding of compressed media in child processes: bytes in, features out.

Hostile or broken media can crash, hang or swell a decoder. Each child therefore has a memory limit, each
request a time limit; what goes wrong costs the packet in hand and a restart, never the flow. Sound and
pictures have children of their own, so that a look back over two seconds of video delays no sound.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from contracts.packet import Codec
from operators.media.types import (
    PICTURE_CODECS,
    SOUND_CODECS,
    Decoded,
    DecodedPictures,
    DecodedSound,
    DecodeFailed,
    DecodeSettings,
    Frame,
    FullFrame,
    Kind,
    Request,
    Role,
)
from operators.media.wire import Head
from operators.media.worker import DecoderWorker

__all__ = [
    "DecodeFailed",
    "DecodeSettings",
    "Decoded",
    "DecodedPictures",
    "DecodedSound",
    "DecoderPool",
    "Frame",
    "FullFrame",
    "Kind",
    "Role",
]


class DecoderPool:
    """Hands packets to children and gives results back in order per stream.

    `submit`, `request_frame` and `collect` never block and are called by one thread.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self._settings = settings
        self._done: deque[Decoded] = deque()
        self._workers: dict[Kind, list[DecoderWorker]] = {"sound": [], "pictures": []}
        self._worker_of: dict[tuple[Kind, str], DecoderWorker] = {}

    def submit(
        self,
        stream: str,
        codec: Codec,
        data: bytes | memoryview,
        key_frame: bool,
        timestamp_ns: int,
        meta: Any = None,
        *,
        role: Role = "slides",
        channels: int = 1,
    ) -> None:
        """Takes one block of sound, access unit or picture; the result comes from `collect`.

        `stream` must be unique over meetings and stream epochs. `role` tells a screen from a camera.
        """
        if codec in SOUND_CODECS:
            head: Head = {"op": codec.name.lower(), "stream": stream, "channels": channels}
            kind: Kind = "sound"
        elif codec in PICTURE_CODECS:
            head = {"op": codec.name.lower(), "stream": stream, "role": role}
            head |= {"t": timestamp_ns, "key": key_frame}
            kind = "pictures"
        else:
            raise ValueError(f"{codec.name} is not compressed and needs no decoder")
        self._put(kind, Request(stream, timestamp_ns, meta, head, bytes(data)))

    def request_frame(self, stream: str, timestamp_ns: int, meta: Any = None) -> None:
        """Asks for the whole frame with this stamp; it is kept for two key frames. Answer: `FullFrame`."""
        head = {"op": "full", "stream": stream, "role": "slides", "t": timestamp_ns}
        self._put("pictures", Request(stream, timestamp_ns, meta, head, b""))

    def forget(self, stream: str) -> None:
        """The stream is over: its decoding state is dropped. Gives no result."""
        for kind in ("sound", "pictures"):
            worker = self._worker_of.pop((kind, stream), None)
            if worker is not None:
                worker.put(Request(stream, 0, None, {"op": "forget", "stream": stream}, b""))

    def collect(self) -> list[Decoded]:
        """What is done since the last call, in order per stream."""
        found = []
        while self._done:
            found.append(self._done.popleft())
        return found

    @property
    def waiting(self) -> int:
        """Packets whose result is still to come."""
        return sum(worker.waiting for workers in self._workers.values() for worker in workers)

    def drain(self, timeout_s: float) -> list[Decoded]:
        """Waits until nothing is waiting, for the end of a file; raises TimeoutError after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while self.waiting:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.waiting} packets are still being decoded after {timeout_s} s")
            time.sleep(0.002)
        return self.collect()

    def warm_up(self, kinds: Sequence[Kind] = ("sound", "pictures")) -> None:
        """Starts one child of each kind, so that the first packet does not wait for it."""
        for kind in kinds:
            if not self._workers[kind]:
                self._workers[kind].append(DecoderWorker(kind, self._settings, self._done))

    def child_pids(self) -> list[int]:
        """Process ids of the children that run now."""
        pids = [worker.pid for workers in self._workers.values() for worker in workers]
        return [pid for pid in pids if pid is not None]

    def close(self) -> None:
        """Ends all children; results not collected are lost."""
        for workers in self._workers.values():
            for worker in workers:
                worker.close()
            workers.clear()
        self._worker_of.clear()

    def __enter__(self) -> DecoderPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, kind: Kind, request: Request) -> None:
        worker = self._worker(kind, request.stream)
        if worker.waiting >= self._settings.max_waiting:
            # Through the worker's queue, so that it comes after the results of what is waiting before it.
            request.head = {"op": "shed"}
            request.data = b""
        worker.put(request)

    def _worker(self, kind: Kind, stream: str) -> DecoderWorker:
        worker = self._worker_of.get((kind, stream))
        if worker is None:
            workers = self._workers[kind]
            most = self._settings.sound_children if kind == "sound" else self._settings.picture_children
            if len(workers) < most:
                workers.append(DecoderWorker(kind, self._settings, self._done))
            counts = {id(each): 0 for each in workers}
            for used in self._worker_of.values():
                counts[id(used)] = counts.get(id(used), 0) + 1
            worker = min(workers, key=lambda each: counts[id(each)])
            self._worker_of[(kind, stream)] = worker
        return worker
