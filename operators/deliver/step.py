"""Verify and deliver as steps of the flow: drafts in, verified events out, the ledger kept by shard."""

import os
import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import bytewax.operators as op
from bytewax.operators import KeyedStream

from contracts.minutes import Versions
from contracts.sal import RuleSet
from operators.align.aligned import Purged, Traced
from operators.broker.sink import Outgoing
from operators.deliver.keys import KeyProblem, Keys
from operators.deliver.ledger import MeetingLedger
from operators.draft import Decided, Drafted
from operators.log import say
from operators.shard import by_shard
from operators.store import StepStore, Stores
from operators.telemetry import observed_function
from operators.verify.check import Verifier
from operators.verify.types import Draft, Verified

_PREFIX: Final = b"meeting/"
_PURGED: Final = b"purged/"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a person decided, with the rules that hold for it too."""

    decided: Decided
    rules: RuleSet | None

    @property
    def meeting_id(self) -> str:
        return self.decided.meeting_id


Judged = Verified | Ruling | Purged | Traced | Outgoing


class Deliver:
    """The step of one shard: verified drafts in, messages out.

    A purged meeting's key is destroyed one snapshot after the purge was handled: until then a crash leads back
    to a moment at which its last entries have to be sealed again.
    """

    def __init__(self, versions: Versions, keys: Keys) -> None:
        self._versions = versions
        self._keys = keys
        self._ledgers: dict[str, MeetingLedger] = {}
        self._traces: dict[str, str] = {}
        self._touched: set[str] = set()
        self._doomed: set[str] = set()
        """Purged meetings whose keys are still there."""
        self._proving: set[str] = set()
        """Those of them that are in the last snapshot; the next input proves that it is durable."""

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_PREFIX):
            ledger = pickle.loads(value)
            self._ledgers[ledger.meeting_id] = ledger
        self._doomed = {key.removeprefix(_PURGED).decode() for key, _ in store.scan(_PURGED)}
        self._proving = set(self._doomed)

    def save(self, store: StepStore) -> None:
        for name in sorted(self._touched):
            ledger = self._ledgers.get(name)
            if ledger is None:
                store.forget(_PREFIX + name.encode())
            else:
                store.put(_PREFIX + name.encode(), pickle.dumps(ledger))
            if name in self._doomed:
                store.put(_PURGED + name.encode(), b"")
            else:
                store.delete(_PURGED + name.encode())
        self._touched.clear()
        self._proving = set(self._doomed)

    def on_timer(self) -> Iterable[Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Judged]) -> list[Outgoing]:
        try:
            self._destroy_proven()
            return [message for value in values for message in self._handle(value)]
        except KeyProblem as problem:
            say(
                f"flows.minutes: {problem}. Stopping; nothing that was not written is marked as done",
                "failed",
            )
            # Raised, it would reach people as a stack trace; state and log are safe against a hard stop.
            os._exit(1)

    def _destroy_proven(self) -> None:
        for name in sorted(self._proving):
            self._keys.destroy(name)
            self._touched.add(name)
        self._doomed -= self._proving
        self._proving = set()

    def _handle(self, value: Judged) -> list[Outgoing]:
        if isinstance(value, Outgoing):
            return [value]
        name = value.draft.meeting_id if isinstance(value, Verified) else value.meeting_id
        if isinstance(value, Traced):
            self._traces[name] = value.traceparent
            return []
        ledger = None if name in self._doomed else self.ledger(name)
        if ledger is None:
            return []
        self._touched.add(name)
        trace = self._traces.get(name)
        if isinstance(value, Purged):
            told = ledger.purge()
            del self._ledgers[name]
            self._traces.pop(name, None)
            self._doomed.add(name)
        elif isinstance(value, Verified):
            told = ledger.apply(value)
        else:
            said = value.decided
            told = ledger.correct(said.said, said.evidence, said.first_ns, value.rules, said.context)
        return told if trace is None else [replace(message, traceparent=trace) for message in told]

    def ledger(self, meeting_id: str) -> MeetingLedger | None:
        """The ledger of a meeting, new where nothing was published of it; None where its key was destroyed.

        Raises:
            KeyProblem: the key store cannot be used.
        """
        known = self._ledgers.get(meeting_id)
        if known is not None and not known.locked:
            return known
        key = self._keys.key_of(meeting_id)
        if key is None:
            return None
        if known is None:
            known = self._ledgers[meeting_id] = MeetingLedger(meeting_id, self._versions)
        known.unlock(key)
        return known


def judge(verifier: Verifier, drafted: Drafted) -> Judged:
    """Verify what is a draft; people's decisions and purges pass."""
    if isinstance(drafted, Purged):
        verifier.forget(drafted.meeting_id)
    if isinstance(drafted, Decided):
        return Ruling(drafted, verifier.rules_of(drafted.rules))
    return verifier.verify(drafted) if isinstance(drafted, Draft) else drafted


def verify(up: KeyedStream[tuple[int, Drafted]], verifier: Verifier) -> KeyedStream[tuple[int, Judged]]:
    """Hold every item against its evidence."""

    def of_shard(value: tuple[int, Drafted]) -> tuple[int, Judged]:
        return value[0], judge(verifier, value[1])

    return op.map_value("verify", up, observed_function("verify", of_shard))


def deliver(
    up: KeyedStream[tuple[int, Judged]], stores: Stores, versions: Versions, keys: Keys
) -> KeyedStream[tuple[int, Outgoing]]:
    """Number what changed and address it to its topics."""
    return by_shard("deliver", up, stores, lambda _: Deliver(versions, keys))
