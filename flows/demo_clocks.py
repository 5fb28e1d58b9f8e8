"""The demo's faulty clocks: what is wrong with them, a publisher that stamps by them, and how they were found.

Run as ``python -m flows.demo_clocks FOLDER MEETING``, with the broker in the environment as for the flows.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from contracts.messages import MeetingStarted
from contracts.timeline import TIMELINE_RECORD, ClockRecord, ControlRecord, EndedRecord, MarkRecord
from devices.faults import ClockFault, DeviceClock
from devices.inputs import open_inputs
from devices.publisher import Publisher
from operators.clock.records import in_force
from operators.timeline import to_timeline_ns

from .command_settings import settings_of
from .files import is_features

FAULTS: Final[Mapping[str, ClockFault]] = {
    "mic-2": ClockFault(offset_ns=180_000_000, noise_ns=0),
    "mic-4": ClockFault(skew_ppb=80_000.0, noise_ns=0),
    "slides": ClockFault(offset_ns=3_200_000_000, noise_ns=0),
}
_S: Final = 10**9


class FaultyClocks:
    """Stamps of devices some of whose clocks are wrong; the room begins at the first time that is asked for."""

    def __init__(self, faults: Mapping[str, ClockFault] = FAULTS) -> None:
        self._faults = faults
        self._clocks: dict[str, DeviceClock] = {}
        self._begun_ns: int | None = None

    def __call__(self, device_id: str, time_ns: int) -> int:
        """What the device's clock shows at a time on the timeline."""
        if self._begun_ns is None:
            self._begun_ns = time_ns
        fault = self._faults.get(device_id)
        if fault is None:
            return time_ns
        clock = self._clocks.setdefault(device_id, DeviceClock(fault, self._begun_ns, 0))
        return int(clock.stamps_ns(np.asarray([time_ns], np.int64))[0])


@dataclass(frozen=True, slots=True)
class Followed:
    """How a faulty clock was found: seconds until its first estimate, and what it was off by then, at most; ms."""

    device: str
    found_s: float | None
    error_ms: float
    bound_ms: float

    @property
    def held(self) -> bool:
        """The error stayed within the bound."""
        return self.error_ms <= self.bound_ms


def followed(log: Iterable[bytes], faults: Mapping[str, ClockFault] = FAULTS) -> list[Followed]:
    """The log's clock records of the faulty devices against the truth, second by second, as it knows them in the end."""
    clocks: dict[str, list[ClockRecord]] = {}
    found_s: dict[str, float] = {}
    start_ns = end_ns = newest_ns = 0
    for line in log:
        if is_features(line):
            continue
        record = TIMELINE_RECORD.validate_json(line)
        if isinstance(record, ControlRecord) and isinstance(record.control, MeetingStarted):
            start_ns = newest_ns = record.control.start_ns or 0
        elif isinstance(record, MarkRecord) and record.stream.rpartition("/")[0] not in faults:
            newest_ns = max(newest_ns, record.raw_ns)
        elif isinstance(record, EndedRecord):
            end_ns = record.end_ns
        elif isinstance(record, ClockRecord) and record.device in faults:
            clocks.setdefault(record.device, []).append(record)
            if record.method == "online":
                found_s.setdefault(record.device, (newest_ns - start_ns) / _S)
    out = []
    for device in sorted(clocks):
        true = np.arange(start_ns + _S, max(end_ns, start_ns + 2 * _S), _S, dtype=np.int64)
        stamps = DeviceClock(faults[device], start_ns, 0).stamps_ns(true)
        held = [in_force(clocks[device], int(raw)) or clocks[device][0] for raw in stamps]
        errors = [
            abs(to_timeline_ns(r, int(raw)) - int(t)) / 1e6
            for r, raw, t in zip(held, stamps, true, strict=True)
        ]
        worst = max(range(len(errors)), key=lambda n: errors[n] / max(held[n].uncertainty_ns, 1))
        out.append(Followed(device, found_s.get(device), errors[worst], held[worst].uncertainty_ns / 1e6))
    return out


def clock_lines(log: Sequence[bytes], faults: Mapping[str, ClockFault] = FAULTS) -> list[str]:
    """What the demo tells of its clocks."""
    lines = [f"{len(faults)} of its clocks were wrong on purpose; found by arrival and voices alone:"]
    for one in followed(log, faults):
        wrong = _wrong(faults[one.device])
        if one.found_s is None:
            lines.append(f"  {one.device}, {wrong}: not found")
            continue
        within = "within" if one.held else "OUTSIDE"
        lines.append(
            f"  {one.device}, {wrong}: found after {one.found_s:.0f} s, taken off to {one.error_ms:.1f} ms, "
            f"{within} the bound of {one.bound_ms:.1f} ms"
        )
    return lines


def _wrong(fault: ClockFault) -> str:
    parts = []
    if fault.offset_ns:
        late = "late" if fault.offset_ns > 0 else "early"
        size = abs(fault.offset_ns)
        parts.append(f"{size / 1e9:.1f} s {late}" if size >= _S else f"{size / 1e6:.0f} ms {late}")
    if fault.skew_ppb:
        parts.append(f"{abs(fault.skew_ppb) / 1000:.0f} ppm {'fast' if fault.skew_ppb > 0 else 'slow'}")
    return ", ".join(parts)


def main(arguments: Sequence[str]) -> None:
    """Publish the room in real time, stamped by its faulty clocks."""
    folder, meeting = arguments
    settings = settings_of(None)
    room = open_inputs([Path(folder)], meeting_id=meeting)
    link = settings.link()
    Publisher(link.bootstrap, link.names, link.access, stamp=FaultyClocks()).publish(room)


if __name__ == "__main__":
    main(sys.argv[1:])
