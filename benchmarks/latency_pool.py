"""Many meetings one after the other, pooled; one that fails is named and counts as lost, the others keep their figures.

The embedded broker takes longer for each message the more messages a partition holds: after ten minutes of a room it
would be the broker that is measured. So it is begun anew every few minutes, with the flows. Apache Kafka is not.
"""

import math
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

from flows.installation import Installation, InstallationError
from flows.latency import LatencyMeter, LatencySamples
from models.speech_recogniser import model_folder

from .pool import Pooled
from .report import progress
from .resources import ResourceWatch
from .rival import RivalError, measure_rival
from .rooms import meeting_ids
from .watching import Outcome, Recorder, play

Broker = Literal["embedded", "kafka"]
_RANKS: Final = (1, 5, 10, 25, 50, 75, 90, 95, 98, 99)
"""Shares of all utterances, in per cent."""
_AFTER_END_S: Final = 60.0
_RENEW_AFTER_S: Final[dict[Broker, float]] = {"embedded": 180.0, "kafka": math.inf}


@dataclass(slots=True)
class Tally:
    """What has come of the pool so far."""

    by_kind: dict[str, LatencySamples] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Meetings that failed or were not final in time, and why."""
    lateness_ms: float = 0.0
    played_s: float = 0.0
    waited_s: float = 0.0
    installations: int = 0

    def add(self, one: Pooled, samples: LatencySamples) -> None:
        """Take in the measurements of a meeting."""
        self.by_kind.setdefault(one.kind, LatencySamples()).add(samples)
        self.played_s += one.played.duration_s

    def fail(self, one: Pooled, why: str) -> None:
        """A meeting failed: all that is said in it counts as lost."""
        name = one.played.path.name
        progress(f"latency: {name} failed: {why}")
        self.failed[name] = why
        self.add(one, LatencyMeter(name).samples(one.played.truth))

    def report(self) -> dict[str, Any]:
        """Figures of all together and by kind."""
        whole = LatencySamples()
        for samples in self.by_kind.values():
            whole.add(samples)
        return whole.report() | {
            "final_text_ms_ranks": {
                str(rank): round(ms, 1) for rank, ms in zip(_RANKS, _at_ranks(whole.final_text), strict=True)
            },
            "by_kind": {kind: samples.report() for kind, samples in sorted(self.by_kind.items())},
            "failed": self.failed,
            "cpu_waited_s": round(self.waited_s, 2),
            "max_lateness_ms": round(self.lateness_ms, 1),
            "played_s": round(self.played_s, 1),
            "installations": self.installations,
        }


def _at_ranks(values_ms: Sequence[float]) -> list[float]:
    """The value that this share of them does not exceed, for each rank; 0 where there is none."""
    ordered = sorted(values_ms)
    n = len(ordered)
    return [ordered[(rank * n + 99) // 100 - 1] if n else 0.0 for rank in _RANKS]


class Stage(Protocol):
    """What meetings are played on: an installation that is up."""

    waited_s: float
    """After its end: how long its threads waited for a processor."""

    def play(self, one: Pooled, number: int) -> tuple[LatencySamples, Outcome]:
        """Play one meeting, the ``number``-th of this stage.

        Raises:
            InstallationError: a part of it ended.
        """


class LiveStage:
    """Broker and both flows by themselves, watched from outside."""

    def __init__(self, directory: Path, broker: Broker) -> None:
        self._installation = Installation(directory, broker=broker)
        self.waited_s = 0.0

    def __enter__(self) -> Self:
        self._installation.start()
        flows = {name: flow.pid for name, flow in self._installation.flows.items()}
        self._resources = ResourceWatch(flows | {"broker": self._installation.broker.pid})
        self._resources.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)
        self.waited_s = self._resources.waited_s
        self._installation.close()

    def play(self, one: Pooled, number: int) -> tuple[LatencySamples, Outcome]:
        name = meeting_ids("pool", number + 1, self._installation.names.shards)[number]
        recorder = Recorder(self._installation, [name])
        try:
            outcome = play(
                self._installation, recorder, [(one.played.path, name)], [],
                stagger_s=0.0, timeout_s=one.played.duration_s + _AFTER_END_S,
            )  # fmt: skip
        finally:
            recorder.close()
        samples = recorder.meter(name).samples(one.played.truth)
        samples.lost_ids = [f"{one.played.path.name}/{lost.rpartition('/')[2]}" for lost in samples.lost_ids]
        return samples, outcome


def play_pool(
    pooled: Sequence[Pooled], stage: Callable[[int], AbstractContextManager[Stage]], renew_after_s: float
) -> Tally:
    """Play one after the other, on a new stage after so many seconds of meetings and after each that failed.

    Raises:
        InstallationError, BrokerError: a stage could not be begun.
    """
    tally, waiting = Tally(), deque(pooled)
    while waiting:
        tally.installations += 1
        with stage(tally.installations) as running:
            until_s, number, good = tally.played_s + renew_after_s, 0, True
            while waiting and good and tally.played_s < until_s:
                one = waiting.popleft()
                progress(
                    f"latency: {len(pooled) - len(waiting)} of {len(pooled)}: {one.played.path.name}, {one.kind}"
                )
                good = _play_one(running, one, number, tally)
                number += 1
        tally.waited_s += running.waited_s
    return tally


def _play_one(stage: Stage, one: Pooled, number: int, tally: Tally) -> bool:
    """Play one meeting; False where the stage is not to be used again."""
    try:
        samples, outcome = stage.play(one, number)
    except InstallationError as error:
        tally.fail(one, str(error))
        return False
    tally.lateness_ms = max(tally.lateness_ms, outcome.max_lateness_ms)
    if outcome.unfinished:
        # A meeting that does not end is a fault, whatever of it was seen in time.
        tally.fail(one, "; ".join(outcome.unfinished.values()))
        return False
    tally.add(one, samples)
    return True


def pool(
    pooled: Sequence[Pooled], *, broker: Broker = "embedded", rival_python: Path | None = None
) -> dict[str, Any]:
    """Figures of all together and by kind, next to the rival's where one is given.

    Raises:
        InstallationError, BrokerError: an installation could not be started.
    """
    scratch = Path(tempfile.mkdtemp(prefix="minuted-latency-"))
    try:
        tally = play_pool(
            pooled, lambda number: LiveStage(scratch / str(number), broker), _RENEW_AFTER_S[broker]
        )
        rival: dict[str, Any] | None = None
        if rival_python is not None:
            heard = [
                (p.sound, p.played.truth) for p in pooled if p.sound is not None and p.played.truth[0].text
            ]
            try:
                rival = measure_rival(rival_python, model_folder(""), heard, scratch)
            except RivalError as error:
                progress(f"latency: {error}")
                rival = {"failed": str(error)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return tally.report() | {
        "whisperlivekit": rival,
        "played": [one.played.path.name for one in pooled],
        "broker": broker,
    }
