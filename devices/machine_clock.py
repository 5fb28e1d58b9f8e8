"""The clock that this machine stamps with, and what its kernel says of it.

Stamps come from the first that there is of: the PTP hardware clock that was asked for (``/dev/ptpN`` through its
dynamic clock id, ``man 7 ptp``), the kernel's ``CLOCK_TAI`` where it keeps the offset to UTC, UTC and leap seconds. The
state comes from ``adjtimex(2)``: ``STA_UNSYNC``, ``maxerror`` and ``esterror``; a clock that lost its master goes
on in holdover and is less sure with every second.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from contracts.leap_seconds import TAI_UTC_NS, TAI_UTC_S
from contracts.messages import ClockState

from .streams import InputError

State = Literal["locked", "holdover", "free_running"]
HOLDOVER_PPB: Final = 5_000
"""By how much a clock may run off in the first hours without its master: a crystal without an oven."""
LEAST_ERROR_NS: Final = 1_000_000
"""Readers of the minutes see no difference below; packets claim a millisecond anyhow."""
_MOST_ERROR_NS: Final = 16 * 10**9
"""Where the kernel gives up counting (NTP_PHASE_LIMIT)."""
_STA_UNSYNC: Final = 0x0040
_TIME_ERROR: Final = 5
_LOOK_NS: Final = 1_000_000_000
_ASK_NS: Final = 5_000_000_000
_LEAST_TAI_NS: Final = 30 * 10**9
_MOST_TAI_NS: Final = 60 * 10**9
_MOST_PTP_OFF_NS: Final = 24 * 3600 * 10**9


@dataclass(frozen=True, slots=True)
class KernelClock:
    """What ``adjtimex`` tells: errors in microseconds, as the kernel counts them."""

    unsynchronised: bool
    maxerror_us: int
    esterror_us: int


class _Timex(ctypes.Structure):
    """``struct timex`` of Linux with 64-bit longs."""

    _fields_ = (
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("constant", ctypes.c_long),
        ("precision", ctypes.c_long), ("tolerance", ctypes.c_long), ("time_s", ctypes.c_long),
        ("time_us", ctypes.c_long), ("tick", ctypes.c_long), ("ppsfreq", ctypes.c_long), ("jitter", ctypes.c_long),
        ("shift", ctypes.c_int), ("stabil", ctypes.c_long), ("jitcnt", ctypes.c_long), ("calcnt", ctypes.c_long),
        ("errcnt", ctypes.c_long), ("stbcnt", ctypes.c_long), ("tai", ctypes.c_int), ("spare", ctypes.c_int * 11),
    )  # fmt: skip


def kernel_clock() -> KernelClock | None:
    """What this machine's kernel says of its clock; None where it says nothing. Only reads (``modes`` 0)."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        told = _Timex()
        result = int(libc.adjtimex(ctypes.byref(told)))
    except (OSError, AttributeError):
        return None
    if result < 0:
        return None
    unsynchronised = bool(int(told.status) & _STA_UNSYNC) or result == _TIME_ERROR
    return KernelClock(unsynchronised, int(told.maxerror), int(told.esterror))


def tai_clock_ns() -> int | None:
    """``CLOCK_TAI``, where the kernel keeps its offset to UTC."""
    clock = getattr(time, "CLOCK_TAI", None)
    if clock is None:
        return None
    tai_ns = time.clock_gettime_ns(clock)
    return tai_ns if _LEAST_TAI_NS <= tai_ns - time.time_ns() <= _MOST_TAI_NS else None


def dynamic_clock_id(descriptor: int) -> int:
    """The clock id of an open character device of a clock (``FD_TO_CLOCKID`` of the kernel)."""
    return (~descriptor << 3) | 3


def ptp_clock(path: Path) -> Callable[[], int]:
    """Reader of a PTP hardware clock, ns; the device stays open.

    Raises:
        InputError: it cannot be opened or read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        clock = dynamic_clock_id(descriptor)
        time.clock_gettime_ns(clock)
    except OSError as error:
        raise InputError(path, f"no PTP clock that can be read: {error.strerror}") from error
    return lambda: time.clock_gettime_ns(clock)


class PtpMonitor:
    """State of a PTP hardware clock as linuxptp's ``pmc`` tells it; None where it is not there.

    Asked at most every five seconds, since it is a program of its own.
    """

    def __init__(
        self, ask: Callable[[], str] | None = None, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._ask = ask or _ask_pmc
        self._now_ns = now_ns
        self._asked_ns: int | None = None
        self._known: KernelClock | None = None

    def __call__(self) -> KernelClock | None:
        if self._asked_ns is None or self._now_ns() - self._asked_ns >= _ASK_NS:
            self._asked_ns = self._now_ns()
            self._known = parse_time_status(self._ask())
        return self._known


def parse_time_status(text: str) -> KernelClock | None:
    """``TIME_STATUS_NP`` as ``pmc`` prints it: whether there is a grandmaster, and the offset to it."""
    fields = dict(parts for line in text.splitlines() if len(parts := line.split()) == 2)
    present, offset = fields.get("gmPresent"), fields.get("master_offset")
    if present is None or offset is None or not offset.lstrip("-").isdigit():
        return None
    return KernelClock(present != "true", _MOST_ERROR_NS // 1000, -(-abs(int(offset)) // 1000))


def _ask_pmc() -> str:
    try:
        done = subprocess.run(
            ["pmc", "-u", "-b", "0", "GET TIME_STATUS_NP"],
            capture_output=True, text=True, timeout=0.5, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


@dataclass(frozen=True, slots=True)
class ClockReaders:
    """What a machine's clocks are read by; tests give their own."""

    utc_ns: Callable[[], int] = time.time_ns
    tai_ns: Callable[[], int | None] = tai_clock_ns
    kernel: Callable[[], KernelClock | None] = kernel_clock
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    ptp_ns: Callable[[], int] | None = None


class MachineClock:
    """Turns times of the machine's UTC clock into stamps on the timeline (TAI)."""

    def __init__(self, readers: ClockReaders | None = None) -> None:
        """Look at the clocks.

        Raises:
            InputError: the PTP clock that was asked for shows another day.
        """
        self._readers = readers or ClockReaders()
        self._ahead_ns = self._ahead()
        self._looked_ns = self._readers.monotonic_ns()
        if self._readers.ptp_ns is not None and abs(self._ahead_ns - TAI_UTC_NS) > _MOST_PTP_OFF_NS:
            raise InputError(
                "--ptp-clock", "it is more than a day off this machine's clock: nobody has set it"
            )

    @property
    def source(self) -> str:
        """Which clock stamps come from, for people."""
        if self._readers.ptp_ns is not None:
            return "the PTP hardware clock"
        return "CLOCK_TAI" if self._readers.tai_ns() is not None else f"UTC + {TAI_UTC_S} s"

    def now_ns(self) -> tuple[int, int]:
        """The same moment on the timeline and in UTC."""
        utc_ns = self._readers.utc_ns()
        return utc_ns + self._ahead_ns, utc_ns

    def stamper(self) -> Callable[[str, int], int]:
        """For a publisher whose streams began with ``now_ns``: what a time on the timeline is by the clock of now."""
        begun_ns = self._ahead_ns

        def stamp(device_id: str, time_ns: int) -> int:
            del device_id
            if self._readers.monotonic_ns() - self._looked_ns >= _LOOK_NS:
                # UTC is slewed by others than the PTP clock: how far they are apart changes while one streams.
                self._looked_ns, self._ahead_ns = self._readers.monotonic_ns(), self._ahead()
            return time_ns + self._ahead_ns - begun_ns

        return stamp

    def _ahead(self) -> int:
        """By how much the stamping clock is ahead of UTC, read between two readings of UTC."""
        before_ns = self._readers.utc_ns()
        now_ns = self._readers.ptp_ns() if self._readers.ptp_ns is not None else self._readers.tai_ns()
        after_ns = self._readers.utc_ns()
        return TAI_UTC_NS if now_ns is None else now_ns - (before_ns + after_ns) // 2


@dataclass(slots=True)
class ClockWatch:
    """Says what the kernel says of the clock: at first, and when it has changed by what matters."""

    meeting_id: str
    devices: Sequence[str]
    readers: ClockReaders = field(default_factory=ClockReaders)
    _told: tuple[State, int] | None = None
    _looked_ns: int | None = None
    _locked_error_ns: int | None = None
    """What the error was when the clock was last seen locked …"""
    _locked_ns: int = 0
    """… and when that was, monotonic."""

    def changes(self) -> list[ClockState]:
        """Messages to send now; looks at the clock at most once a second."""
        now_ns = self.readers.monotonic_ns()
        if self._looked_ns is not None and now_ns - self._looked_ns < _LOOK_NS:
            return []
        self._looked_ns = now_ns
        found = self.state(now_ns)
        if found is None or not self._matters(*found):
            return []
        self._told = found
        state, error_ns = found
        return [
            ClockState(meeting_id=self.meeting_id, device=name, state=state, estimated_error_ns=error_ns)
            for name in self.devices
        ]

    def state(self, now_ns: int) -> tuple[State, int] | None:
        """The clock's state and estimated error; None where the kernel says nothing."""
        kernel = self.readers.kernel()
        if kernel is None:
            return None
        if not kernel.unsynchronised:
            self._locked_error_ns, self._locked_ns = kernel.esterror_us * 1000, now_ns
            return "locked", max(LEAST_ERROR_NS, self._locked_error_ns)
        if self._locked_error_ns is None:
            return "free_running", min(_MOST_ERROR_NS, max(LEAST_ERROR_NS, kernel.maxerror_us * 1000))
        ran_ns = (now_ns - self._locked_ns) * HOLDOVER_PPB // 10**9
        return "holdover", min(_MOST_ERROR_NS, max(LEAST_ERROR_NS, self._locked_error_ns + ran_ns))

    def _matters(self, state: State, error_ns: int) -> bool:
        """Another state, or an error twice or half of what was told: each message begins a new clock record."""
        if self._told is None or state != self._told[0]:
            return True
        return not self._told[1] < 2 * error_ns < 4 * self._told[1]
