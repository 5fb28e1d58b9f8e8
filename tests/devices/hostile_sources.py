"""Sources that behave as decoders do on hostile files; imported by the reading process too."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contracts.packet import Codec
from devices.streams import MediaPiece, Note


@dataclass(frozen=True)
class HostileSource:
    """One good block, then trouble."""

    trouble: Literal["crash", "hang", "swell", "give up", "none"]
    good: int = 1

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        note("about to misbehave")
        for number in range(self.good):
            yield MediaPiece(
                number * 20_000_000, 20_000_000, Codec.PCM_S16LE, bytes(640), rate_hz=16_000, channels=1
            )
        if self.trouble == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.trouble == "hang":
            time.sleep(60)
        if self.trouble == "swell":
            parts = []
            while True:
                parts.append(bytearray(32 * 1024 * 1024))
        if self.trouble == "give up":
            raise RuntimeError("avcodec_send_packet() returned -1094995529 in libavcodec")
