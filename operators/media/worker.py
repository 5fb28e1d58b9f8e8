"""One decoder child and the thread that talks to it.

The thread sends small batches, takes the answers in order, and kills the child when an answer is overdue.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from operators.media.types import (
    Decoded,
    DecodedPictures,
    DecodedSound,
    DecodeFailed,
    DecodeSettings,
    Frame,
    FullFrame,
    Kind,
    Request,
)
from operators.media.wire import Head, WireError, pack, receive
from operators.pictures.picture import LUMA_HEIGHT, LUMA_WIDTH, PATCH_SIDE, VOLUME_COLUMNS, VOLUME_ROWS

BATCH_REQUESTS: Final = 32
BATCH_BYTES: Final = 64 * 1024
"""Requests sent together fit the socket's buffer, so sending never waits for a child that is answering."""


@dataclass(slots=True)
class _Crashes:
    count: int = 0
    until: float = 0.0


class DecoderWorker:
    """One child and the thread that talks to it."""

    def __init__(self, kind: Kind, settings: DecodeSettings, done: deque[Decoded]) -> None:
        self._kind: Kind = kind
        self._settings = settings
        self._done = done
        self._queue: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._closing = False
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._crashes: dict[str, _Crashes] = {}
        self._failed_starts = 0
        self._no_start_until = 0.0
        # Taken from the queue, but too much for the batch before it.
        self._held: Request | None = None
        self._thread = threading.Thread(target=self._run, name=f"decode-{kind}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Requests put and not yet answered."""
        return self._waiting

    @property
    def pid(self) -> int | None:
        """Process id of the child, or None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def put(self, request: Request) -> None:
        """Queues a request; from any thread."""
        with self._lock:
            self._waiting += 1
        self._queue.put(request)

    def close(self) -> None:
        """Kills the child and ends the thread."""
        self._closing = True
        self._queue.put(None)
        process = self._process
        if process is not None:
            process.kill()
        self._thread.join(timeout=10)
        self._stop_child()

    def _run(self) -> None:
        # The child dies with the thread that started it (Linux), which is this one and lives as long.
        self._start_child()
        while True:
            batch = self._next_batch()
            if batch is None or self._closing:
                return
            while batch and not self._closing:
                batch = self._exchange(batch)

    def _next_batch(self) -> list[Request] | None:
        first = self._held or self._queue.get()
        self._held = None
        if first is None:
            return None
        batch, size = [first], len(first.data)
        while len(batch) < BATCH_REQUESTS:
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                break
            if request is None:
                return None
            size += len(request.data)
            if size > BATCH_BYTES:
                self._held = request
                break
            batch.append(request)
        return batch

    def _exchange(self, batch: list[Request]) -> list[Request]:
        """Sends requests and takes their answers; returns those to send again after a restart."""
        while batch and self._refuse(batch[0]):
            batch = batch[1:]
        # A refused request ends the batch before it, so that results keep their order.
        count = next((i for i, request in enumerate(batch) if self._refusal(request)), len(batch))
        batch, rest = batch[:count], batch[count:]
        if not batch:
            return rest
        if self.pid is None and not self._start_child():
            for request in batch:
                self._fail(request, "the decoder process cannot be started")
            return rest
        answered = 0
        try:
            connection = self._connected()
            connection.sendall(b"".join(pack(request.head, [request.data]) for request in batch))
            for request in batch:
                message = receive(connection)
                if message is None:
                    raise WireError("connection closed")
                self._finish(request, _result(request, *message))
                answered += 1
        except (OSError, MemoryError, ValueError, KeyError, IndexError, TypeError) as error:
            self._after_crash(batch[answered], error)
            return [*batch[answered + 1 :], *rest]
        return rest

    def _refusal(self, request: Request) -> str | None:
        if request.head["op"] == "shed":
            return "too many packets are waiting to be decoded"
        crashes = self._crashes.get(request.stream)
        if crashes is not None and time.monotonic() < crashes.until:
            return f"refused: the stream ended its decoder {self._settings.crash_limit} times in a row"
        return None

    def _refuse(self, request: Request) -> bool:
        reason = self._refusal(request)
        if reason is not None:
            self._fail(request, reason, shed=request.head["op"] == "shed")
        return reason is not None

    def _after_crash(self, request: Request, error: Exception) -> None:
        if self._closing:
            return
        if isinstance(error, TimeoutError):
            reason = f"decoding took longer than {self._settings.request_ms} ms"
        else:
            reason = "the decoder process died over it"
        self._stop_child()
        crashes = self._crashes.setdefault(request.stream, _Crashes())
        crashes.count += 1
        if crashes.count >= self._settings.crash_limit:
            crashes.count = 0
            crashes.until = time.monotonic() + self._settings.quarantine_ms / 1000
        self._fail(request, reason, restarted=True)

    def _fail(self, request: Request, reason: str, restarted: bool = False, shed: bool = False) -> None:
        failed = DecodeFailed(request.stream, request.timestamp_ns, request.meta, reason, restarted, shed)
        self._finish(request, failed)

    def _finish(self, request: Request, result: Decoded) -> None:
        if request.head["op"] == "forget":
            self._crashes.pop(request.stream, None)
        else:
            if not isinstance(result, DecodeFailed):
                self._crashes.pop(request.stream, None)
            self._done.append(result)
        with self._lock:
            self._waiting -= 1

    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise WireError("there is no decoder process")
        return self._socket

    def _start_child(self) -> bool:
        """Starts the child and waits until it is ready; False where it does not come up.

        After `crash_limit` failures it is not tried for a while, so that a broken installation burns no core.
        """
        self._stop_child()
        if time.monotonic() < self._no_start_until:
            return False
        message = self._greeting()
        if message is not None:
            self._failed_starts = 0
            return True
        self._stop_child()
        self._failed_starts += 1
        if self._failed_starts >= self._settings.crash_limit:
            self._no_start_until = time.monotonic() + self._settings.quarantine_ms / 1000
        return False

    def _greeting(self) -> object | None:
        """What a new child says when it is up; None where it cannot be started or says nothing."""
        settings = self._settings
        child = {
            "kind": self._kind,
            "memory_mb": settings.memory_mb,
            "niceness": 0 if self._kind == "sound" else settings.picture_niceness,
            "max_width": settings.max_width,
            "max_height": settings.max_height,
            "parent_pid": os.getpid(),
        }
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        try:
            # A machine out of processes, memory or file numbers refuses here: this thread must outlive that.
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "operators.media.child", str(theirs.fileno()), json.dumps(child)],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    # One thread per library: the children are the unit of parallelism.
                    env={
                        **os.environ,
                        "PYTHONPATH": path,
                        "OMP_NUM_THREADS": "1",
                        "OPENBLAS_NUM_THREADS": "1",
                    },
                )
            self._socket.settimeout(settings.start_ms / 1000)
            message = receive(self._socket)
            self._socket.settimeout(settings.request_ms / 1000)
        except OSError:
            return None
        return message

    def _stop_child(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            self._process = None


def _result(request: Request, head: Head, blocks: list[memoryview]) -> Decoded:
    """Turns a child's answer into a result; a ValueError or KeyError means the child talks nonsense."""
    stream, timestamp_ns, meta = request.stream, request.timestamp_ns, request.meta
    if "error" in head:
        return DecodeFailed(stream, timestamp_ns, meta, str(head["error"]))
    operation = request.head["op"]
    if operation == "forget":
        return DecodedPictures(stream, timestamp_ns, meta, ())
    if operation == "full":
        return FullFrame(stream, timestamp_ns, meta, bytes(blocks[0]))
    if operation in ("flac", "opus"):
        samples = np.frombuffer(blocks[0], np.int16).reshape(-1, int(head["channels"]))
        return DecodedSound(stream, timestamp_ns, meta, samples, int(head["rate_hz"]))
    frames = tuple(
        _frame(described, blocks[3 * index : 3 * index + 3]) for index, described in enumerate(head["frames"])
    )
    light = tuple((int(at_ns), float(brightness)) for at_ns, brightness in head["light"])
    return DecodedPictures(stream, timestamp_ns, meta, frames, light)


def _frame(described: list[Any], blocks: list[memoryview]) -> Frame:
    timestamp_ns, key_frame, width, height, sharpness = described
    luma, volume, patches = blocks
    return Frame(
        timestamp_ns=int(timestamp_ns),
        key_frame=bool(key_frame),
        width=int(width),
        height=int(height),
        sharpness=float(sharpness),
        luma=np.frombuffer(luma, np.uint8).reshape(LUMA_HEIGHT, LUMA_WIDTH),
        volume=np.frombuffer(volume, np.float16).reshape(-1, VOLUME_ROWS, VOLUME_COLUMNS),
        patches=np.frombuffer(patches, np.uint8).reshape(-1, PATCH_SIDE, PATCH_SIDE) if patches else None,
    )
