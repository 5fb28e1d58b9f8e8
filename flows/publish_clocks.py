"""What ``minuted publish`` says of clocks: stored calibrations, and the clock that devices here are stamped with."""

import datetime
from dataclasses import replace
from pathlib import Path

from contracts.messages import Calibration, MeetingStarted
from devices.inputs import Room
from devices.machine_clock import ClockReaders, ClockWatch, MachineClock, PtpMonitor, ptp_clock
from devices.room import RoomCalibration
from devices.stored_calibrations import doubt_of, read_stored
from devices.streams import InputError


def machine_clock(path: Path | None) -> tuple[MachineClock, ClockReaders]:
    """The clock that devices of this machine are stamped with, and what it is read by.

    Raises:
        InputError: the PTP clock that was asked for cannot be read.
    """
    readers = ClockReaders() if path is None else ClockReaders(ptp_ns=ptp_clock(path), kernel=PtpMonitor())
    return MachineClock(readers), readers


def watch_of(room: Room, readers: ClockReaders) -> ClockWatch:
    """Says of the room's devices what is said of the clock."""
    return ClockWatch(room.meeting_id, tuple(dict.fromkeys(s.device_id for s in room.streams)), readers)


def with_stored(room: Room, folder: Path | None) -> Room:
    """The room with what is stored of its devices' clocks."""
    if folder is None:
        return room
    names = {stream.device_id for stream in room.streams}
    stored = read_stored(existing(folder), names, room.problems.append)
    told = (Calibration(meeting_id=room.meeting_id, **one.model_dump()) for one in stored)
    return replace(room, control=(*room.control, *told))


def existing(folder: Path) -> Path:
    """The folder; raises InputError where there is none."""
    if not folder.is_dir():
        raise InputError(folder, "no folder of calibrations; `minuted calibrate --out` makes one")
    return folder


def doubts(room: Room, today: datetime.date) -> list[str]:
    """Stored calibrations that a person should measure anew."""
    started = next((c for c in room.control if isinstance(c, MeetingStarted)), None)
    day = today if room.live or started is None or started.date is None else started.date
    told = [c for c in room.control if isinstance(c, Calibration)]
    fields = set(RoomCalibration.model_fields)
    found = (doubt_of(RoomCalibration.model_validate(c.model_dump(include=fields)), day) for c in told)
    return [line for line in found if line is not None]
