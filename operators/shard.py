"""Stateful steps keyed by shard: the thin Bytewax side of every step that remembers something.

A step is a plain object (``ShardStep``). This module opens its store, rolls it back to the snapshot
before the first input, hands over batches and timers, and lets the step write its state just before
the marker of a snapshot is taken. Shards are never discarded, so recovery rows stay bounded.
"""

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import bytewax.operators as op
from bytewax.operators import KeyedStream, StatefulBatchLogic

from operators import telemetry
from operators.log import say
from operators.shard_step import ShardStep
from operators.store import Marker, StateError, StepStore, Stores

X = TypeVar("X")
Y = TypeVar("Y")


class ShardLogic(StatefulBatchLogic[tuple[int, X], tuple[int, Y], Marker | None]):
    """Runs one ``ShardStep`` under Bytewax. Inputs and outputs are ``(shard, value)`` under the shard's key."""

    def __init__(
        self, stores: Stores, family: str, make: Callable[[int], ShardStep[X, Y]], resumed: Marker | None
    ) -> None:
        self._stores = stores
        self._family = family
        self._make = make
        self._running: tuple[ShardStep[X, Y], StepStore] | None = None
        if resumed is not None:
            self._open(resumed["shard"], resumed)

    def on_batch(self, values: list[tuple[int, X]]) -> tuple[Iterable[tuple[int, Y]], bool]:
        step, store = self._running or self._open(values[0][0], None)
        store.begin(proved=True)
        out = step.on_batch([value for _, value in values])
        return [(store.shard, value) for value in out], self.RETAIN

    def on_notify(self) -> tuple[Iterable[tuple[int, Y]], bool]:
        if self._running is None:
            return (), self.RETAIN
        step, store = self._running
        store.begin(proved=False)
        return [(store.shard, value) for value in step.on_timer()], self.RETAIN

    def notify_at(self) -> datetime | None:
        wait_s = None if self._running is None else self._running[0].next_timer_s()
        return None if wait_s is None else datetime.now(UTC) + timedelta(seconds=wait_s)

    def snapshot(self) -> Marker | None:
        if self._running is None:
            return None
        step, store = self._running
        step.save(store)
        return store.marker()

    def _open(self, shard: int, marker: Marker | None) -> tuple[ShardStep[X, Y], StepStore]:
        try:
            store = self._stores.step(shard, self._family)
            store.roll_back(marker)
        except StateError as error:
            say(f"flows: {error}", "failed")
            # Raised, it would reach people as a stack trace; state and log are safe against a hard stop.
            os._exit(1)
        step = telemetry.observed(self._family, self._make(shard))
        step.open(store)
        self._running = (step, store)
        return self._running


def by_shard(
    step_id: str,
    up: KeyedStream[tuple[int, X]],
    stores: Stores,
    make: Callable[[int], ShardStep[X, Y]],
) -> KeyedStream[tuple[int, Y]]:
    """Run a step on every shard; its store's column family has the step's name.

    Args:
        step_id: name of the step, unique in the flow.
        up: ``(shard key, (shard, input))``; the result has the same form.
        stores: databases of this flow.
        make: builds the step of a shard.
    """
    return op.stateful_batch(step_id, up, lambda resumed: ShardLogic(stores, step_id, make, resumed))


def shard_key(shard: int) -> str:
    """Key of a shard in keyed streams and partitions."""
    return f"{shard:02d}"
