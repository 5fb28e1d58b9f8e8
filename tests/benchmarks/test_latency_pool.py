"""A meeting of the pool that fails is named and counts as lost; all others keep their figures."""

from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.latency_pool import play_pool
from benchmarks.pool import Pooled
from benchmarks.rooms import Played
from benchmarks.watching import Outcome
from flows.installation import InstallationError
from flows.latency import UNMATCHED_MS, LatencySamples, TrueUtterance

SAID = (TrueUtterance("u1", None, 1.0, 2.0, "we ship it"), TrueUtterance("u2", None, 3.0, 4.0, "fine"))


class Scripted:
    """A stage on which some meetings fail; keeps which stage played which meeting."""

    def __init__(self, number: int, played: list[tuple[int, int, str]]) -> None:
        self.waited_s = 0.5
        self._number, self._played = number, played

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def play(self, one: Pooled, number: int) -> tuple[LatencySamples, Outcome]:
        name = one.played.path.name
        self._played.append((self._number, number, name))
        if name == "breaks":
            raise InstallationError("flows.perceive ended with code 1: out of memory")
        unfinished = {"pool-1": "its log has not ended"} if name == "never-ends" else {}
        return LatencySamples(final_text=[200.0, 300.0]), Outcome(12.0, unfinished)


def pooled(*names: str, kind: str = "real") -> list[Pooled]:
    """Meetings of a minute each."""
    return [Pooled(kind, Played(Path(name), SAID, 60.0), None) for name in names]


def test_one_that_fails_costs_no_other_its_figures() -> None:
    played: list[tuple[int, int, str]] = []
    meetings = pooled("first", "never-ends", "third", "breaks", "last")
    report = play_pool(meetings, lambda number: Scripted(number, played), 10_000.0).report()
    assert [name for _, _, name in played] == ["first", "never-ends", "third", "breaks", "last"]
    assert report["failed"] == {
        "never-ends": "its log has not ended",
        "breaks": "flows.perceive ended with code 1: out of memory",
    }
    assert report["final_text_ms"]["n"] == 10
    assert report["final_text_ms"]["p50"] == 300.0
    assert report["final_text_ms"]["p95"] == UNMATCHED_MS
    assert report["lost"] == 4
    assert report["lost_ids"] == ["never-ends/u1", "never-ends/u2", "breaks/u1", "breaks/u2"]
    # After a failure nothing of what failed is used again.
    assert [stage for stage, _, _ in played] == [1, 1, 2, 2, 3]
    assert report["cpu_waited_s"] == 1.5


def test_a_broker_that_slows_with_what_it_holds_is_renewed_in_time() -> None:
    played: list[tuple[int, int, str]] = []
    play_pool(pooled("a", "b", "c", "d", "e"), lambda number: Scripted(number, played), 100.0)
    assert played == [(1, 0, "a"), (1, 1, "b"), (2, 0, "c"), (2, 1, "d"), (3, 0, "e")]
