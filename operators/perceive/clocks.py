"""Where a raw time of a device lies on the timeline, by the clock records of one meeting that are known."""

from typing import Final

from contracts.timeline import ClockRecord
from operators.perceive.people import Seen
from operators.perceive.ways import Ways
from operators.timeline import clock_in_force, to_timeline_ns

_KEPT: Final = 31


class DeviceClocks:
    """Clock records of one meeting's devices, newest last. Plain data, part of the meeting's state."""

    def __init__(self) -> None:
        self.ways = Ways()
        self._newest: dict[str, ClockRecord] = {}
        self._past: dict[str, list[ClockRecord]] = {}

    def set(self, record: ClockRecord) -> ClockRecord | None:
        """Take a record in; the one that held before it."""
        before = self._newest.get(record.device)
        self._newest[record.device] = record
        self._past[record.device] = [*self._past.get(record.device, [])[-_KEPT:], record]
        return before

    def timeline_ns(self, device: str, raw_ns: int) -> int:
        """By the newest record of the device; the raw time itself where there is none."""
        clock = self._newest.get(device)
        return raw_ns if clock is None else to_timeline_ns(clock, raw_ns)

    def seen_ns(self, seen: Seen) -> int:
        """Where something seen lies by what is known of the device's clock now."""
        clock = clock_in_force(self._past.get(seen.device, []), seen.clock, seen.raw_ns)
        return seen.raw_ns if clock is None else to_timeline_ns(clock, seen.raw_ns)
