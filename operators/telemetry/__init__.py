"""Telemetry as the edges of the flows see it: off unless `start` was called, and then a probe around each step.

Logic knows nothing of it. A step is handed to ``observed`` when it is built: off, that returns the step itself,
so nothing is left on its path; on, it returns the step in a wrapper that measures it. The probe there is sends by
OTLP (`export.py`; who starts a flow imports it only where telemetry is on, since the SDK takes a second to import).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol, TypeVar

from operators.shard_step import ShardStep

F = TypeVar("F", bound=Callable[[Any], Any])

PERCEIVE_STEPS: Final = ("ingest", "clock", "perceive")
STEPS: Final = (*PERCEIVE_STEPS, "align", "understand", "verify", "deliver")
"""Steps that have spans, in the order in which a meeting passes them."""


class Probe(Protocol):
    """What the edges tell while telemetry is on."""

    def step(self, name: str, step: ShardStep[Any, Any]) -> ShardStep[Any, Any]:
        """The step of one shard, measured."""

    def function(self, name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A step that is a function of one value, measured."""

    def recognised(self, owner: Hashable, kind: str, waited_s: float, took_s: float) -> None:
        """A piece of speech of ``(shard, meeting)`` waited for a worker so long, and its recognition took so long."""

    def flushed(self, took_s: float) -> None:
        """The sink waited so long for the broker to have everything."""

    def read_behind(self, shard: int, age_s: float) -> None:
        """The newest message that a source handed on had been sent so long before."""

    def work_waiting(self, shard: int, number: int) -> None:
        """So many changes of meetings that bring more than their share have been read and wait to be worked off."""

    def meetings_overdue(self, shard: int, number: int) -> None:
        """So many meetings were told to be over a while ago and have not ended."""

    def meetings_shed(self, shard: int, number: int, packets: int) -> None:
        """So many meetings are left out as the flow does not keep up; so many more packets were since the last call."""

    def clock_measured(self, device: str, bound_ns: int, error_ns: int | None = None) -> None:
        """The clock of a device is known to within ``bound_ns``; ``error_ns`` where something told how far it was off."""

    def close(self) -> None:
        """Send what is left, for a moment at most."""


_probe: Probe | None = None


def start(with_probe: Probe) -> None:
    """Measure the steps that are built from now on, until `stop`."""
    global _probe
    _probe = with_probe


def stop() -> None:
    """Send what is left and go off again; does nothing where it is off."""
    global _probe
    probe, _probe = _probe, None
    if probe is not None:
        probe.close()


def probe() -> Probe | None:
    """The probe; None while telemetry is off."""
    return _probe


def observed(name: str, step: ShardStep[Any, Any]) -> ShardStep[Any, Any]:
    """The step of one shard, measured where telemetry is on."""
    return step if _probe is None else _probe.step(name, step)


def observed_function(name: str, function: F) -> F:
    """A step that is a function of one value, measured where telemetry is on."""
    return function if _probe is None else _probe.function(name, function)  # type: ignore[return-value]  # same signature
