"""Messages between the flow's process and its decoder children: a JSON head and raw blocks of bytes.

No pickles: what a child says may have been shaped by hostile media, so the parent only reads numbers,
short texts and arrays of known shape from it.

A message is two little-endian u32 (length of head, length of all blocks), the head, the blocks one after
the other; the head's `blocks` gives their lengths.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Final

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024

_LENGTHS = struct.Struct("<II")

Head = dict[str, Any]


class WireError(ConnectionError):
    """The other side is gone or sent something that is no message."""


def pack(head: Head, blocks: list[bytes]) -> bytes:
    """Bytes of one message."""
    head = {**head, "blocks": [len(block) for block in blocks]}
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([_LENGTHS.pack(len(text), sum(head["blocks"])), text, *blocks])


def receive(connection: socket.socket) -> tuple[Head, list[memoryview]] | None:
    """Next message, or None where the other side has closed; honours the socket's time-out.

    Raises `WireError` for a message cut short or damaged, `TimeoutError` where the time-out passes.
    """
    start = _read(connection, _LENGTHS.size, at_start=True)
    if start is None:
        return None
    head_bytes, block_bytes = _LENGTHS.unpack(start)
    if head_bytes + block_bytes > MAX_MESSAGE_BYTES:
        raise WireError("message is too long")
    body = _read(connection, head_bytes + block_bytes)
    if body is None:
        raise WireError("message was cut short")
    view = memoryview(body)
    try:
        head = json.loads(body[:head_bytes])
        sizes = [int(size) for size in head["blocks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise WireError("message has no readable head") from error
    if sum(sizes) != block_bytes or min(sizes, default=0) < 0:
        raise WireError("message blocks do not add up")
    blocks, position = [], head_bytes
    for size in sizes:
        blocks.append(view[position : position + size])
        position += size
    return head, blocks


def _read(connection: socket.socket, count: int, at_start: bool = False) -> bytearray | None:
    data = bytearray(count)
    view, done = memoryview(data), 0
    while done < count:
        got = connection.recv_into(view[done:])
        if got == 0:
            if at_start and done == 0:
                return None
            raise WireError("connection closed within a message")
        done += got
    return data
