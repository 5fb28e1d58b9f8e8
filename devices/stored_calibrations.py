"""Stored calibrations: one small JSON file for each device, in the folder ``calibration`` of a room.

    {"schema": "minuted.calibration/1", "device": "wall", "offset_ns": 3200000000, "skew_ppb": 0.0, "ref_ns": 0,
     "uncertainty_ns": 11000000, "method": "pulses", "measured": "2026-03-10"}

``timeline = raw - offset - skew * (raw - ref)``; ``ref_ns`` 0 is the device's first stamp in a meeting.
"""

import datetime
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from pydantic import ValidationError

from contracts.refusals import refusal_line
from contracts.small_files import read_small

from .room import RoomCalibration
from .streams import InputError, Problem

FOLDER: Final = "calibration"
SCHEMA: Final = "minuted.calibration/1"
OLD_DAYS: Final = 365
_MOST_BYTES: Final = 64 * 1024
_MOST_OFFSET_NS: Final = 2**62
_OTHERS: Final = 256
"""Most files that are looked at."""


class CalibrationProblem(Exception):
    """A recording or request that calibrates nothing; the message is one line."""


def write_stored(folder: Path, calibrations: Sequence[RoomCalibration]) -> list[Path]:
    """One file for each; what was stored of the same devices before is replaced.

    Raises:
        InputError: the folder cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in calibrations:
            path = folder / f"{_file_name(one.device)}.json"
            document = {"schema": SCHEMA, **one.model_dump(mode="json")}
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            # A crash must not leave half a file that then counts as broken.
            fresh.replace(path)
            written.append(path)
    except OSError as error:
        raise InputError(folder, f"cannot be written: {error.strerror}") from error
    return written


def read_stored(
    folder: Path, devices: Collection[str], problem: Callable[[Problem], None]
) -> tuple[RoomCalibration, ...]:
    """The calibrations in a folder that can be used for these devices; each that cannot is told in a line."""
    try:
        paths = sorted(p for p in folder.iterdir() if p.suffix == ".json" and not p.name.startswith("."))
    except FileNotFoundError:
        return ()
    except OSError as error:
        problem(Problem(folder, f"calibrations cannot be read: {error.strerror}"))
        return ()
    found: list[RoomCalibration] = []
    for path in paths[:_OTHERS]:
        try:
            one = _read(path)
        except InputError as error:
            problem(Problem(path, f"calibration left out: {error.what}"))
            continue
        if one.device not in devices:
            problem(
                Problem(path, f"calibration left out: it is of {one.device}, which is not in this meeting")
            )
        else:
            found.append(one)
    return tuple(found)


def doubt_of(calibration: RoomCalibration, day: datetime.date | None) -> str | None:
    """What people should know of a calibration before they rest on it on this day, None where nothing."""
    if calibration.measured is None or day is None:
        return None
    age = (day - calibration.measured).days
    if age > OLD_DAYS:
        return f"{calibration.device}: its calibration is {age} days old; measure it again"
    if age < -1:
        # Days are local where they were noted: one day ahead is no contradiction.
        return f"{calibration.device}: its calibration is newer than the meeting ({calibration.measured})"
    return None


def _file_name(device: str) -> str:
    name = quote(device, safe=" ()[]+,;=@")
    # A file whose name begins with a dot is hidden, and looked at by nobody.
    return "%2E" + name[1:] if name.startswith(".") else name


def _read(path: Path) -> RoomCalibration:
    """One file; raises InputError."""
    try:
        data = json.loads(read_small(path, _MOST_BYTES))
    except OSError as error:
        raise InputError(path, f"it cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, "it is broken, no JSON") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(path, f"it does not say that it is one (schema {SCHEMA})")
    try:
        one = RoomCalibration.model_validate(data)
    except ValidationError as error:
        raise InputError(path, refusal_line(error)) from error
    if abs(one.offset_ns) >= _MOST_OFFSET_NS:
        raise InputError(path, f"no clock is off by {one.offset_ns} ns")
    if unquote(path.stem) != one.device:
        raise InputError(path, f"it is of another device, {one.device}")
    return one
