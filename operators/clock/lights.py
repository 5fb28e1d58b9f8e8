"""How bright pictures were, on their way from decoding back to the clocks.

Pictures are decoded behind the clock step, which has no way back in the dataflow: both steps of a shard
run in one thread of one process, so a box between them does. What lies in it when a process dies was
brightness of pictures that are decoded again.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 20_000
"""Brightness kept of a shard whose clocks do not come for it."""


@dataclass(frozen=True, slots=True)
class Light:
    """Mean brightness (0..1) of pictures of one device, by the stamps with which they left the clock step."""

    meeting_id: str
    device: str
    seen: Sequence[tuple[int, float]]


class Lights:
    """A box for each shard."""

    def __init__(self) -> None:
        self._boxes: dict[int, deque[Light]] = {}

    def put(self, shard: int, light: Light) -> None:
        """Pictures of a meeting of this shard were decoded."""
        self._boxes.setdefault(shard, deque(maxlen=_MOST)).append(light)

    def take(self, shard: int) -> list[Light]:
        """What has come since the last call, oldest first."""
        box = self._boxes.get(shard)
        found: list[Light] = []
        while box:
            found.append(box.popleft())
        return found
