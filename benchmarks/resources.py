"""Processor time and memory of processes and all their children, from /proc."""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_MB: Final = os.sysconf("SC_PAGE_SIZE") / 1e6
_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children use: seconds of processor time so far, resident memory now."""

    cpu_s: float
    rss_mb: float


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    own_cpu_s: float
    reaped_cpu_s: float
    """Of children that have ended and were waited for."""
    rss_mb: float


def usage_of(pid: int) -> Usage:
    """Usage of a process and all its living descendants; ended children count with their time.

    Pages that a child shares with its parent count in both.
    """
    processes = _processes()
    children: dict[int, list[int]] = {}
    for child, process in processes.items():
        children.setdefault(process.parent, []).append(child)
    cpu_s = rss_mb = 0.0
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        waiting += children.get(current, ())
        if current in processes:
            cpu_s += processes[current].own_cpu_s + processes[current].reaped_cpu_s
            rss_mb += processes[current].rss_mb
    return Usage(cpu_s, rss_mb)


def waited_s(pid: int) -> float:
    """Seconds that the living threads of a process and its descendants were ready but had no processor.

    Zero where the kernel does not count it (schedstat).
    """
    children: dict[int, list[int]] = {}
    for child, process in _processes().items():
        children.setdefault(process.parent, []).append(child)
    total_ns, waiting = 0, [pid]
    while waiting:
        current = waiting.pop()
        waiting += children.get(current, ())
        for file in Path(f"/proc/{current}/task").glob("*/schedstat"):
            try:
                total_ns += int(file.read_text(encoding="ascii").split()[1])
            except (OSError, IndexError, ValueError):
                continue
    return total_ns / 1e9


def _processes() -> dict[int, _Process]:
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it ended meanwhile
        # The name in parentheses may hold spaces; fields are counted from behind it (proc(5), from field 3 on).
        fields = text.rpartition(")")[2].split()
        own, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        found[int(entry.name)] = _Process(
            int(fields[1]), own / _TICKS_PER_S, reaped / _TICKS_PER_S, int(fields[21]) * _PAGE_MB
        )
    return found


@dataclass(slots=True)
class Watched:
    """One watched process over the time of watching."""

    cpu_s: float = 0.0
    rss_mb: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start of watching, and memory then."""

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.rss_mb), default=0.0)


class ResourceWatch:
    """Looks at named processes several times a second, in a thread of its own.

    Args:
        pids: process ids by name; each counts with all its children.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._begun = {name: usage_of(pid).cpu_s for name, pid in self._pids.items()}
        self._waited_before = sum(waited_s(pid) for pid in self._pids.values())
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)
        self.watched = {name: Watched() for name in self._pids}
        self.duration_s = 0.0
        self.waited_s = 0.0
        """How long threads that were ready had to wait for a processor, all together: what others on the machine cost."""

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        self.duration_s = time.monotonic() - self._started
        for name, pid in self._pids.items():
            now = usage_of(pid)
            self.watched[name].cpu_s = max(self.watched[name].cpu_s, now.cpu_s - self._begun[name])
            self.watched[name].rss_mb.append((self.duration_s, now.rss_mb))

    def cores(self, *names: str) -> float:
        """Processor cores that these processes kept busy together, on average; all without names."""
        busy_s = sum(self.watched[name].cpu_s for name in names or self._pids)
        return busy_s / self.duration_s if self.duration_s else 0.0

    def peak_mb(self, *names: str) -> float:
        """Most memory that these processes held at one time."""
        series = [self.watched[name].rss_mb for name in names or self._pids]
        return max((sum(mb for _, mb in moment) for moment in zip(*series, strict=False)), default=0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        self.waited_s = max(0.0, sum(waited_s(pid) for pid in self._pids.values()) - self._waited_before)
