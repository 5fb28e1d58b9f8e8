"""How much one shard may hand on before the others have their turn."""

from dataclasses import dataclass
from typing import Final

MOST: Final = 500
"""Messages of one shard in one turn of the loop, however cheap they are."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """A turn of the loop takes a bounded number of messages of each shard, so that it ends after about ``turn_s``.

    All shards of a worker are read in turn, and a turn ends when every step has done its work on what the shards
    handed on. One meeting that sends a hundred times as much as others would otherwise make them wait for hundreds of
    its messages at a time. Where messages are cheap, turns grow up to ``most``: what is done once a turn costs less
    then. How messages are divided into turns changes nothing of what comes out.
    """

    least: int = 8
    most: int = MOST
    turn_s: float = 0.05

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most or self.turn_s <= 0:
            raise ValueError(
                "a turn needs at least one message of each shard and some time: nothing would be read"
            )


class Share:
    """How many messages one shard may hand on in its next turn, by how long the last one took."""

    def __init__(self, settings: TurnSettings) -> None:
        self._settings = settings
        self._size = settings.least

    def next(self, handed: int, took_s: float) -> int:
        """Messages of the next turn.

        Args:
            handed: messages that this shard handed on in the last turn.
            took_s: seconds from then until now, with the work of all steps on all shards.
        """
        least, most, turn_s = self._settings.least, self._settings.most, self._settings.turn_s
        if handed and took_s > turn_s:
            self._size = max(least, min(self._size, int(handed * turn_s / took_s)))
        elif handed >= self._size:
            self._size = min(most, 2 * self._size)
        return self._size
