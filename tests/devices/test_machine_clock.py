"""What this machine's clock is read by, with readers of the test's own."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devices.machine_clock import (
    LEAST_ERROR_NS,
    ClockReaders,
    ClockWatch,
    KernelClock,
    MachineClock,
    PtpMonitor,
    _Timex,
    dynamic_clock_id,
    parse_time_status,
    ptp_clock,
)
from devices.streams import InputError

S = 1_000_000_000
MS = 1_000_000
UTC = 1_780_000_000 * S


@dataclass
class Machine:
    """A machine whose clocks the test turns."""

    monotonic: int = 0
    utc_extra: int = 0
    ptp_extra: int | None = None
    kernel: KernelClock | None = field(default_factory=lambda: KernelClock(False, 2_000, 300))
    keeps_tai: bool = True

    def readers(self) -> ClockReaders:
        ptp: Callable[[], int] | None = None
        if self.ptp_extra is not None:
            ptp = lambda: UTC + 37 * S + self.monotonic + (self.ptp_extra or 0)  # noqa: E731
        return ClockReaders(
            utc_ns=lambda: UTC + self.monotonic + self.utc_extra,
            tai_ns=lambda: UTC + self.monotonic + self.utc_extra + 37 * S if self.keeps_tai else None,
            kernel=lambda: self.kernel, monotonic_ns=lambda: self.monotonic, ptp_ns=ptp,
        )  # fmt: skip


def test_the_kernels_record_is_laid_out_as_linux_has_it() -> None:
    # Offsets of struct timex on x86-64 and arm64, linux/timex.h.
    if ctypes.sizeof(ctypes.c_long) != 8:
        pytest.skip("the layout of 64-bit Linux")
    places = {"maxerror": 24, "esterror": 32, "status": 40, "constant": 48, "tick": 88, "tai": 160}
    assert {name: getattr(_Timex, name).offset for name in places} == places
    assert ctypes.sizeof(_Timex) == 208


def test_clock_id_of_a_device_is_the_kernels() -> None:
    # FD_TO_CLOCKID of linux/posix-timers: descriptor 3 is -29.
    assert dynamic_clock_id(3) == -29
    assert dynamic_clock_id(4) == -37


@pytest.mark.parametrize(("keeps_tai", "source"), [(True, "CLOCK_TAI"), (False, "UTC + 37 s")])
def test_stamps_are_tai_with_and_without_the_kernels_offset(keeps_tai: bool, source: str) -> None:
    clock = MachineClock(Machine(keeps_tai=keeps_tai).readers())
    assert clock.source == source
    assert clock.now_ns() == (UTC + 37 * S, UTC)


def test_stamps_follow_the_ptp_clock_while_utc_is_slewed() -> None:
    machine = Machine(ptp_extra=40 * MS)
    clock = MachineClock(machine.readers())
    assert clock.now_ns() == (UTC + 37 * S + 40 * MS, UTC)
    stamp = clock.stamper()
    assert stamp("mic", 1000) == 1000
    # UTC falls back by 5 ms: a driver's UTC stamp of the same moment is 5 ms less, and must come out as before.
    machine.monotonic, machine.utc_extra = 10 * S, -5 * MS
    assert stamp("mic", 10 * S - 5 * MS) == 10 * S


def test_a_ptp_clock_that_nobody_has_set_is_refused() -> None:
    with pytest.raises(InputError, match="nobody has set it"):
        MachineClock(Machine(ptp_extra=-400 * 24 * 3600 * S).readers())
    with pytest.raises(InputError, match="no PTP clock"):
        ptp_clock(Path("/nonexistent/ptp0"))


def test_a_clock_that_loses_its_master_is_less_sure_with_age() -> None:
    machine = Machine()
    watch = ClockWatch("m", ("mic", "cam"), machine.readers())
    first = watch.changes()
    assert [(m.device, m.state, m.estimated_error_ns) for m in first] == [
        ("mic", "locked", LEAST_ERROR_NS),
        ("cam", "locked", LEAST_ERROR_NS),
    ]
    machine.monotonic = 60 * S
    assert watch.changes() == []
    machine.kernel = KernelClock(True, 16_000_000, 300)
    told = []
    for second in range(61, 4061):
        machine.monotonic = second * S
        told += [(m.state, m.estimated_error_ns) for m in watch.changes() if m.device == "mic"]
    assert {state for state, _ in told} == {"holdover"}
    errors = [error or 0 for _, error in told]
    # 5 ppm of 4,000 s are 20 ms: told each time that it has doubled, not each second.
    assert errors == sorted(errors)
    assert 4 <= len(errors) <= 6
    assert 16 * MS <= errors[-1] <= 21 * MS
    machine.monotonic, machine.kernel = 4100 * S, KernelClock(False, 2_000, 300)
    assert [m.state for m in watch.changes()] == ["locked", "locked"]


def test_a_clock_that_was_never_set_says_so_and_a_silent_kernel_says_nothing() -> None:
    machine = Machine(kernel=KernelClock(True, 16_000_000, 16_000_000))
    (told,) = ClockWatch("m", ("mic",), machine.readers()).changes()
    assert (told.state, told.estimated_error_ns) == ("free_running", 16 * S)
    assert ClockWatch("m", ("mic",), Machine(kernel=None).readers()).changes() == []


def test_what_linuxptp_says_is_read() -> None:
    text = "sending: GET TIME_STATUS_NP\n\tRESPONSE\n\t\tmaster_offset              -2501\n\t\tgmPresent   true\n"
    assert parse_time_status(text) == KernelClock(False, 16_000_000, 3)
    lost = parse_time_status(text.replace("true", "false"))
    assert lost is not None and lost.unsynchronised
    assert parse_time_status("pmc: no such command") is None


def test_linuxptp_is_asked_every_five_seconds() -> None:
    asked: list[int] = []
    now = [0]

    def ask() -> str:
        asked.append(now[0])
        return ""

    monitor = PtpMonitor(ask, lambda: now[0] * S)
    for second in range(12):
        now[0] = second
        assert monitor() is None
    assert asked == [0, 5, 10]
