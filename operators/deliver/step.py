"""Verify and deliver as steps of the flow: drafts in, verified events out, the ledger kept by shard."""

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import bytewax.operators as op
from bytewax.operators import KeyedStream

from contracts.minutes import Versions
from operators.align.grid import Purged, Traced
from operators.broker.sink import Outgoing
from operators.deliver.ledger import MeetingLedger
from operators.draft import Decided, Drafted
from operators.shard import by_shard
from operators.store import StepStore, Stores
from operators.verify.check import Verifier
from operators.verify.types import Draft, Verified

_PREFIX: Final = b"meeting/"

Judged = Verified | Decided | Purged | Traced | Outgoing


class Deliver:
    """The step of one shard: verified drafts in, messages out."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._ledgers: dict[str, MeetingLedger] = {}
        self._traces: dict[str, str] = {}
        self._touched: set[str] = set()

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_PREFIX):
            ledger = pickle.loads(value)
            self._ledgers[ledger.meeting_id] = ledger

    def save(self, store: StepStore) -> None:
        for name in sorted(self._touched):
            ledger = self._ledgers.get(name)
            if ledger is None:
                store.delete(_PREFIX + name.encode())
            else:
                store.put(_PREFIX + name.encode(), pickle.dumps(ledger))
        self._touched.clear()

    def on_timer(self) -> Iterable[Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Judged]) -> list[Outgoing]:
        out: list[Outgoing] = []
        for value in values:
            if isinstance(value, Outgoing):
                out.append(value)
                continue
            name = value.draft.meeting_id if isinstance(value, Verified) else value.meeting_id
            self._touched.add(name)
            if isinstance(value, Purged):
                self._ledgers.pop(name, None)
                continue
            if isinstance(value, Traced):
                self._traces[name] = value.traceparent
                continue
            ledger = self.ledger(name)
            told = ledger.apply(value) if isinstance(value, Verified) else ledger.correct(value.correction)
            trace = self._traces.get(name)
            out += told if trace is None else [replace(message, traceparent=trace) for message in told]
        return out

    def ledger(self, meeting_id: str) -> MeetingLedger:
        """The ledger of a meeting, new where nothing was published of it."""
        known = self._ledgers.get(meeting_id)
        if known is None:
            known = self._ledgers[meeting_id] = MeetingLedger(meeting_id, self._versions)
        return known


def judge(verifier: Verifier, drafted: Drafted) -> Judged:
    """Verify what is a draft; people's decisions and purges pass."""
    return verifier.verify(drafted) if isinstance(drafted, Draft) else drafted


def verify(up: KeyedStream[tuple[int, Drafted]], verifier: Verifier) -> KeyedStream[tuple[int, Judged]]:
    """Hold every item against its evidence."""

    def of_shard(value: tuple[int, Drafted]) -> tuple[int, Judged]:
        return value[0], judge(verifier, value[1])

    return op.map_value("verify", up, of_shard)


def deliver(
    up: KeyedStream[tuple[int, Judged]], stores: Stores, versions: Versions
) -> KeyedStream[tuple[int, Outgoing]]:
    """Number what changed and address it to its topics."""
    return by_shard("deliver", up, stores, lambda _: Deliver(versions))
