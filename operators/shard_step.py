"""What a step of one shard offers to whatever runs it."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from operators.store import StepStore

X = TypeVar("X")
Y_co = TypeVar("Y_co", covariant=True)


class ShardStep(Protocol[X, Y_co]):
    """What a step offers; all calls come from one thread, never two at once for one shard."""

    def open(self, store: StepStore) -> None:
        """Load state from the store, already rolled back. Called once, before anything else."""

    def on_batch(self, values: list[X]) -> Iterable[Y_co]:
        """Handle inputs of one activation, oldest first."""

    def on_timer(self) -> Iterable[Y_co]:
        """The time asked for has come."""

    def next_timer_s(self) -> float | None:
        """Seconds until ``on_timer`` is wanted, None for never."""

    def save(self, store: StepStore) -> None:
        """Write what a resumed step needs; the marker of a snapshot is taken right after."""
