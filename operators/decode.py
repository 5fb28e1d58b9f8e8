"""Decoding of compressed media in child processes: bytes in, features out.

Hostile or broken media can crash, hang or swell a decoder. Each child therefore has a memory limit, each
request a time limit; what goes wrong costs the packet in hand and a restart, never the flow. Sound and
pictures have children of their own, so that a look back over two seconds of video delays no sound.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from contracts.packet import Codec
from operators.decode_wire import Head, WireError, pack, receive
from operators.picture import LUMA_HEIGHT, LUMA_WIDTH, PATCH_SIDE, VOLUME_COLUMNS, VOLUME_ROWS, Luma

Role = Literal["slides", "camera"]
Kind = Literal["sound", "pictures"]

SOUND_CODECS: Final = frozenset({Codec.FLAC, Codec.OPUS})
PICTURE_CODECS: Final = frozenset({Codec.H264, Codec.JPEG})


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """Limits of the decoder children.

    sound_children, picture_children: most processes of each kind; they start when first needed.
    memory_mb: address space of a child on top of its libraries.
    request_ms: longest time for one packet, after which the child is killed.
    start_ms: longest time for a child to come up.
    max_waiting: packets that may wait for one child; further ones fail at once, so memory stays bounded.
    crash_limit, quarantine_ms: a stream that kills its child this often in a row is refused for a while.
    """

    sound_children: int = 1
    picture_children: int = 1
    memory_mb: int = 512
    request_ms: int = 4000
    start_ms: int = 20_000
    max_waiting: int = 2000
    crash_limit: int = 3
    quarantine_ms: int = 30_000
    picture_niceness: int = 5
    max_width: int = 4096
    max_height: int = 2304

    def __post_init__(self) -> None:
        if min(self.sound_children, self.picture_children) < 1:
            raise ValueError("at least one child of each kind is needed, or its packets would wait for ever")
        if self.memory_mb < 64:
            raise ValueError("memory_mb below 64 leaves no room for one 1080p picture and its references")

    def build(self) -> DecoderPool:
        """A pool without any child running yet."""
        return DecoderPool(self)


@dataclass(frozen=True, slots=True)
class Frame:
    """Features of one frame. luma (90, 160) uint8; volume (3, 9, 16) float16; patches (32, 16, 16) uint8."""

    timestamp_ns: int
    key_frame: bool
    width: int
    height: int
    sharpness: float
    luma: Luma
    volume: NDArray[np.float16]
    patches: NDArray[np.uint8] | None


@dataclass(frozen=True, slots=True)
class DecodedSound:
    """Samples of one block, shape (n, channels) int16."""

    stream: str
    timestamp_ns: int
    meta: Any
    samples: NDArray[np.int16]
    rate_hz: int


@dataclass(frozen=True, slots=True)
class DecodedPictures:
    """What one access unit or picture brought about: often no frame, sometimes those of two seconds."""

    stream: str
    timestamp_ns: int
    meta: Any
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class FullFrame:
    """A whole frame that was asked for, coded as JPEG."""

    stream: str
    timestamp_ns: int
    meta: Any
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class DecodeFailed:
    """One packet or request that came to nothing, and why, in words for the dead letter.

    `restarted`: the child died over it, so its streams go on at their next key frame.
    `shed`: nothing is wrong with the packet, there were too many.
    """

    stream: str
    timestamp_ns: int
    meta: Any
    reason: str
    restarted: bool = False
    shed: bool = False


Decoded = DecodedSound | DecodedPictures | FullFrame | DecodeFailed


@dataclass(slots=True)
class _Request:
    stream: str
    timestamp_ns: int
    meta: Any
    head: Head
    data: bytes


@dataclass(slots=True)
class _Crashes:
    count: int = 0
    until: float = 0.0


class DecoderPool:
    """Hands packets to children and gives results back in order per stream.

    `submit`, `request_frame` and `collect` never block and are called by one thread.
    """

    def __init__(self, settings: DecodeSettings) -> None:
        self._settings = settings
        self._done: deque[Decoded] = deque()
        self._workers: dict[Kind, list[_Worker]] = {"sound": [], "pictures": []}
        self._worker_of: dict[tuple[Kind, str], _Worker] = {}

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
        self._put(kind, _Request(stream, timestamp_ns, meta, head, bytes(data)))

    def request_frame(self, stream: str, timestamp_ns: int, meta: Any = None) -> None:
        """Asks for the whole frame with this stamp; it is kept for two key frames. Answer: `FullFrame`."""
        head = {"op": "full", "stream": stream, "role": "slides", "t": timestamp_ns}
        self._put("pictures", _Request(stream, timestamp_ns, meta, head, b""))

    def forget(self, stream: str) -> None:
        """The stream is over: its decoding state is dropped. Gives no result."""
        for kind in ("sound", "pictures"):
            worker = self._worker_of.pop((kind, stream), None)
            if worker is not None:
                worker.put(_Request(stream, 0, None, {"op": "forget", "stream": stream}, b""))

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
                self._workers[kind].append(_Worker(kind, self._settings, self._done))

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

    def _put(self, kind: Kind, request: _Request) -> None:
        worker = self._worker(kind, request.stream)
        if worker.waiting >= self._settings.max_waiting:
            # Through the worker's queue, so that it comes after the results of what is waiting before it.
            request.head = {"op": "shed"}
            request.data = b""
        worker.put(request)

    def _worker(self, kind: Kind, stream: str) -> _Worker:
        worker = self._worker_of.get((kind, stream))
        if worker is None:
            workers = self._workers[kind]
            most = self._settings.sound_children if kind == "sound" else self._settings.picture_children
            if len(workers) < most:
                workers.append(_Worker(kind, self._settings, self._done))
            counts = {id(each): 0 for each in workers}
            for used in self._worker_of.values():
                counts[id(used)] = counts.get(id(used), 0) + 1
            worker = min(workers, key=lambda each: counts[id(each)])
            self._worker_of[(kind, stream)] = worker
        return worker


BATCH_REQUESTS: Final = 32
BATCH_BYTES: Final = 64 * 1024
"""Requests sent together fit the socket's buffer, so sending never waits for a child that is answering."""


class _Worker:
    """One child and the thread that talks to it."""

    def __init__(self, kind: Kind, settings: DecodeSettings, done: deque[Decoded]) -> None:
        self._kind: Kind = kind
        self._settings = settings
        self._done = done
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._closing = False
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._crashes: dict[str, _Crashes] = {}
        # Taken from the queue, but too much for the batch before it.
        self._held: _Request | None = None
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

    def put(self, request: _Request) -> None:
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

    def _next_batch(self) -> list[_Request] | None:
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

    def _exchange(self, batch: list[_Request]) -> list[_Request]:
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
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            self._after_crash(batch[answered], error)
            return [*batch[answered + 1 :], *rest]
        return rest

    def _refusal(self, request: _Request) -> str | None:
        if request.head["op"] == "shed":
            return "too many packets are waiting to be decoded"
        crashes = self._crashes.get(request.stream)
        if crashes is not None and time.monotonic() < crashes.until:
            return f"refused: the stream ended its decoder {self._settings.crash_limit} times in a row"
        return None

    def _refuse(self, request: _Request) -> bool:
        reason = self._refusal(request)
        if reason is not None:
            self._fail(request, reason, shed=request.head["op"] == "shed")
        return reason is not None

    def _after_crash(self, request: _Request, error: Exception) -> None:
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

    def _fail(self, request: _Request, reason: str, restarted: bool = False, shed: bool = False) -> None:
        failed = DecodeFailed(request.stream, request.timestamp_ns, request.meta, reason, restarted, shed)
        self._finish(request, failed)

    def _finish(self, request: _Request, result: Decoded) -> None:
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
        """Starts the child and waits until it is ready; False where it does not come up."""
        self._stop_child()
        settings = self._settings
        ours, theirs = socket.socketpair()
        child = {
            "kind": self._kind,
            "memory_mb": settings.memory_mb,
            "niceness": 0 if self._kind == "sound" else settings.picture_niceness,
            "max_width": settings.max_width,
            "max_height": settings.max_height,
            "parent_pid": os.getpid(),
        }
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "operators.decode_child", str(theirs.fileno()), json.dumps(child)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # One thread per library: the children are the unit of parallelism.
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._socket = ours
        try:
            ours.settimeout(settings.start_ms / 1000)
            message = receive(ours)
            ours.settimeout(settings.request_ms / 1000)
        except OSError:
            message = None
        if message is None:
            self._stop_child()
        return message is not None

    def _stop_child(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            self._process = None


def _result(request: _Request, head: Head, blocks: list[memoryview]) -> Decoded:
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
    return DecodedPictures(stream, timestamp_ns, meta, frames)


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
