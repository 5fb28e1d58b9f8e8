"""Plays 16 kHz mono PCM to a WhisperLiveKit server in real time and prints what it shows, one JSON line each time.

Runs in the server's own Python: `python rival_client.py WAV URL`. A line is {"seen_s", "text"}: seconds since
the first sample went out, and all text that is on display then, what may still change included.
"""

import asyncio
import importlib
import json
import sys
import time
import wave
from typing import Any

_RATE_HZ = 16_000
_BLOCK = 1_600
_PATIENCE_S = 30.0


def _pcm(path: str) -> bytes:
    with wave.open(path) as sound:
        return bytes(sound.readframes(sound.getnframes()))


async def _play(path: str, url: str) -> None:
    websockets: Any = importlib.import_module("websockets")
    sound = _pcm(path)
    async with websockets.connect(url) as socket:
        await socket.recv()
        begun_s = time.monotonic()

        async def send() -> None:
            for start in range(0, len(sound) // 2, _BLOCK):
                # A block can be sent when its last sample has been spoken, not before.
                await asyncio.sleep(max(0.0, begun_s + (start + _BLOCK) / _RATE_HZ - time.monotonic()))
                await socket.send(sound[2 * start : 2 * (start + _BLOCK)])
            await socket.send(b"")

        async def show() -> None:
            last = ""
            async for raw in socket:
                message = json.loads(raw)
                if message.get("type") == "ready_to_stop":
                    return
                lines = [line.get("text") or "" for line in message.get("lines", ())]
                text = " ".join([*lines, message.get("buffer_transcription") or ""]).strip()
                if text != last:
                    last = text
                    print(json.dumps({"seen_s": time.monotonic() - begun_s, "text": text}), flush=True)

        length_s = len(sound) / 2 / _RATE_HZ
        await asyncio.wait_for(asyncio.gather(send(), show()), length_s + _PATIENCE_S)


if __name__ == "__main__":
    asyncio.run(_play(sys.argv[1], sys.argv[2]))
