"""Meetings that bring more than their share are worked off in slices, so that others need not wait for them.

All shards of a worker take turns in one thread, and what runs is not interrupted. Each meeting has a budget of words.
Within it, what a meeting brings is done at once. What a meeting brings beyond it waits and is done slice by slice: in turns
in which no other meeting brought anything, and in every second turn where others always do. Slices are short as long
as little waits; they grow with what waits, and where there is no meeting within its budget, as when a log is read anew, up
to what a turn may take. That decides when something is done, never what comes out.
"""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from operators import telemetry
from operators.store import StepStore

_WAITING: Final = b"waiting"
_DONE: Final = object()
_REMEMBERED: Final = 4096
"""Meetings whose budgets are remembered; those that have all of theirs are forgotten first."""

X = TypeVar("X")
Y = TypeVar("Y")


@dataclass(frozen=True, slots=True)
class PaceSettings:
    """Words that a meeting may bring, and how long a slice of the work on more than that takes.

    People together speak three words a second or so, quick ones five.

    Attributes:
        words_per_s, words_at_once: what a meeting may bring in the long run, and at once.
        slice_s: a slice ends with the piece of work in which it has taken so long.
        turn_s: so long all shards' slices may take together where no meeting is within its budget, or as much waits as may.
        calm_s: a meeting within its budget that brought nothing for so long does not count.
        most_waiting: values of one shard that are to wait at most.
        overfull_s: so long a turn works on what is more than that. It is longer than the turn that the source of the
            log plans for (`operators.broker.turns`), which then hands on half as much, and so on: the log waits.
    """

    words_per_s: float = 20.0
    words_at_once: float = 200.0
    slice_s: float = 0.0005
    turn_s: float = 0.025
    calm_s: float = 10.0
    most_waiting: int = 500
    overfull_s: float = 0.1

    def __post_init__(self) -> None:
        if (
            min(self.words_per_s, self.words_at_once, self.slice_s, self.turn_s, self.calm_s, self.overfull_s)
            <= 0
            or self.most_waiting < 1
        ):
            raise ValueError("a meeting needs words, and work on what is beyond them needs time")


class Pace:
    """Budgets of all meetings, shared by the shards of one worker, which take turns in its thread."""

    def __init__(
        self, settings: PaceSettings = PaceSettings(), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._calm: dict[str, float] = {}
        """When meetings within their budgets last brought something; the newest last."""
        self.served = 0
        """How often a meeting within its budget was served."""
        self.behind: set[int] = set()
        """Shards that have something waiting."""

    def takes(self, meeting_id: str, words: int) -> bool:
        """Count what a meeting brings; whether that is within its budget."""
        now, most = self.clock(), self.settings.words_at_once
        left, since = self._left.get(meeting_id, (most, now))
        left = min(most, left + (now - since) * self.settings.words_per_s)
        within = left > 0
        # What is beyond the budget is not owed for ever: after a flood a meeting is soon like any other.
        self._left[meeting_id] = max(-most, left - words), now
        self._calm.pop(meeting_id, None)
        if within:
            self._calm[meeting_id] = now
        self._trim(now)
        if len(self._left) > _REMEMBERED:
            self._forget(now)
        return within

    def waits(self, meeting_id: str) -> None:
        """A meeting that still has something waiting is none for which slices must be short."""
        self._calm.pop(meeting_id, None)

    def _trim(self, now: float) -> None:
        while self._calm and next(iter(self._calm.values())) <= now - self.settings.calm_s:
            del self._calm[next(iter(self._calm))]

    def slice_s(self, waiting: int) -> float:
        """How long a slice may take now, where so many values wait."""
        self._trim(self.clock())
        longest = max(self.settings.slice_s, self.settings.turn_s / max(1, len(self.behind)))
        if not self._calm:
            return longest
        # Half of what may wait is no hurry: that is a minute or two of a meeting.
        hurry = min(1.0, max(0.0, 2 * waiting / self.settings.most_waiting - 1))
        return self.settings.slice_s + hurry * (longest - self.settings.slice_s)

    def _forget(self, now: float) -> None:
        most, rate = self.settings.words_at_once, self.settings.words_per_s
        self._left = {
            name: (left, since)
            for name, (left, since) in self._left.items()
            if left + (now - since) * rate < most
        }

    def serve(self) -> None:
        """A meeting within its budget was served."""
        self.served += 1


class Sliced(Protocol[X, Y]):
    """A step whose work on one value can be begun before it."""

    def open(self, store: StepStore) -> None:
        """As in `operators.shard_step`."""

    def save(self, store: StepStore) -> None:
        """As in `operators.shard_step`."""

    def on_batch(self, values: list[X]) -> list[Y]:
        """As in `operators.shard_step`."""

    def meeting_of(self, value: X) -> str | None:
        """Whose a value is; None where it needs no work."""

    def words_in(self, value: X) -> int:
        """How much work a value is, in words that were said."""

    def slices(self, value: X) -> Iterator[None]:
        """Do beforehand, bit by bit, what `on_batch` will need for the value; changes nothing that comes out."""


class Paced(Generic[X, Y]):
    """The step of a shard, at the pace of its meetings. Values of one meeting stay in their order."""

    def __init__(self, step: Sliced[X, Y], pace: Pace, shard: int = 0) -> None:
        self._step = step
        self._shard = shard
        self._told = 0
        self._pace = pace
        self._waiting: dict[str, deque[X]] = {}
        self._begun: dict[str, Iterator[None]] = {}
        self._kept = False
        self._seen = 0
        """`Pace.served` when this shard last looked."""
        self._stood_back = False

    def open(self, store: StepStore) -> None:
        self._step.open(store)
        kept = store.get(_WAITING)
        self._kept = kept is not None
        self._waiting = {} if kept is None else {name: deque(values) for name, values in pickle.loads(kept)}
        self._tell()

    def save(self, store: StepStore) -> None:
        self._step.save(store)
        if self._waiting:
            store.put(
                _WAITING, pickle.dumps([(name, list(values)) for name, values in self._waiting.items()])
            )
        elif self._kept:
            store.forget(_WAITING)  # it may be of a meeting that was purged
        self._kept = bool(self._waiting)

    def on_batch(self, values: list[X]) -> list[Y]:
        out: list[Y] = []
        for value in values:
            meeting_id = self._step.meeting_of(value)
            if meeting_id is None:
                out += self._step.on_batch([value])
                continue
            within = self._pace.takes(meeting_id, self._step.words_in(value))
            if meeting_id in self._waiting or not within:
                self._waiting.setdefault(meeting_id, deque()).append(value)
                self._pace.waits(meeting_id)
                continue
            out += self._step.on_batch([value])
            self._pace.serve()
        until = self._pace.clock() + self._pace.settings.overfull_s
        while self._many() > self._pace.settings.most_waiting and self._pace.clock() < until:
            out += self._finish(next(iter(self._waiting)))
        self._tell()
        return out

    def _many(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _may_slice(self) -> bool:
        """Not in a turn in which another meeting was served, but in every second one."""
        served, self._seen = self._seen != self._pace.served, self._pace.served
        self._stood_back = served and not self._stood_back
        return not self._stood_back

    def on_timer(self) -> Iterable[Y]:
        out: list[Y] = []
        if not self._waiting or not self._may_slice():
            return out
        until = self._pace.clock() + self._pace.slice_s(self._many())
        while self._waiting:
            out += self._slice(next(iter(self._waiting)))
            if self._pace.clock() >= until:
                break
        self._tell()
        return out

    def _tell(self) -> None:
        if self._waiting:
            self._pace.behind.add(id(self))
        else:
            self._pace.behind.discard(id(self))
        waiting = self._many()
        if waiting != self._told and (probe := telemetry.probe()) is not None:
            probe.work_waiting(self._shard, waiting)
        self._told = waiting

    def next_timer_s(self) -> float | None:
        return 0.0 if self._waiting else None

    def _slice(self, meeting_id: str) -> list[Y]:
        """One bit of work on what a meeting has waiting."""
        begun = self._begun.get(meeting_id)
        if begun is None:
            begun = self._begun[meeting_id] = self._step.slices(self._waiting[meeting_id][0])
        worked = next(begun, _DONE) is not _DONE
        return [] if worked else self._finish(meeting_id)

    def _finish(self, meeting_id: str) -> list[Y]:
        """The rest of the work on the first value that waits; then it is another meeting's turn."""
        self._begun.pop(meeting_id, None)
        waiting = self._waiting.pop(meeting_id)
        value: Any = waiting.popleft()
        if waiting:
            self._waiting[meeting_id] = waiting
        return self._step.on_batch([value])
