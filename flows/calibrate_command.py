"""``minuted calibrate``: shows how, measures the clocks of a room's devices, stores and publishes what it found."""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .command_settings import PATIENCE_S, settings_of

if TYPE_CHECKING:
    # What measures takes seconds to import: other commands do not wait for it.
    from devices.inputs import Room
    from devices.room import RoomCalibration

    from .calibrate import Measured, Outcome
    from .calibrate_media import Taken

HOW: Final = """\
Calibrating a room takes a minute:
1. minuted calibrate --signal signal.html   (or signal.mp4)
   writes the signal: flashes of light, each with a short tone.
2. Record with all devices, or publish them, and play the signal where every camera sees it and every
   microphone hears it; the slide input should show it too. Without it, a clap places the microphones.
3. minuted calibrate FILES or ROOM_FOLDER   reads the recording,
   minuted calibrate --meeting ID --publish   reads what the devices send to the broker.
   It says which clock is wrong and by how much, and writes calibration/DEVICE.json.
minuted calibrate timeline.jsonl --plot clocks.svg   shows how a meeting's clocks were followed."""


def calibrate(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT…]", help="recordings, one room folder, or the log of a meeting"),
    ] = None,
    signal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the signal: a page (.html) or a film (.mp4)")
    ] = None,
    meeting: Annotated[str | None, typer.Option(help="measure what this meeting's devices send")] = None,
    brokers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="broker; default from MINUTED_BOOTSTRAP_SERVERS")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, max=3600, help="how much of a recording is read, or how long is listened")
    ] = 75.0,
    reference: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="whose clock is taken as right; default: the most")
    ] = None,
    distance: Annotated[
        list[str] | None,
        typer.Option(metavar="DEVICE=METRES", help="from the loudspeaker to a microphone, where measured"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for DEVICE.json; default calibration in the room's folder")
    ] = None,
    publish: Annotated[bool, typer.Option(help="send it as control messages, for all meetings")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT.svg", help="picture of the stamps' errors")
    ] = None,
) -> None:
    """Find out which clocks of a room are wrong and by how much; without arguments, says how."""
    from devices.inputs import open_inputs
    from devices.stored_calibrations import FOLDER, CalibrationProblem, write_stored

    if signal is not None:
        _write_signal(signal)
        return
    if not inputs and meeting is None:
        print(HOW)
        return
    if inputs and meeting is not None:
        raise CalibrationProblem("calibrate: name either recordings or --meeting")
    room = open_inputs(inputs) if inputs else None
    if room is not None and room.timeline is not None:
        _plot_log(room.timeline, plot)
        return
    from .calibrate import measure
    from .calibrate_media import from_room, from_topics
    from .calibrate_plot import panels_of_outcome, svg

    distances = _distances(distance or ())
    if room is not None:
        taken = from_room(room, seconds)
    else:
        link = settings_of(brokers).link()
        print(f"minuted: listening for {seconds:g} s; play the signal now", file=sys.stderr)
        taken = from_topics(link, meeting or "", seconds, PATIENCE_S)
    outcome = measure(
        taken.heard(), taken.seen(), reference=reference, distances_m=distances,
        arrival_error_ns=taken.arrival_error_ns, unmeasurable=taken.unmeasurable(),
    )  # fmt: skip
    for problem in [] if room is None else room.problems:
        print(f"minuted: {problem}", file=sys.stderr)
    day = None if room is None else _day_of(room)
    stored = calibrations_of(
        outcome, taken, day or datetime.datetime.now(datetime.UTC).date(), room is not None
    )
    for line in outcome_lines(outcome):
        print(line)
    folder = out or (inputs[0] / FOLDER if inputs and inputs[0].is_dir() else Path(FOLDER))
    for path in write_stored(folder, stored):
        print(f"wrote {path}")
    if plot is not None:
        _write(plot, svg(panels_of_outcome(outcome, taken.span_s())))
    if publish:
        _publish(stored, brokers)


def calibrations_of(
    outcome: Outcome, taken: Taken, day: datetime.date, recorded: bool
) -> list[RoomCalibration]:
    """What is stored of a measurement: of a recording the offset at a device's first stamp."""
    from devices.room import RoomCalibration

    first = {d.device: d.first_ns for d in taken.heard()}
    first |= {d.device: int(d.at_ns[0]) for d in taken.seen() if d.device not in first}
    found = []
    for one in outcome.measured:
        offset, ref = one.offset_ns, one.at_ns if one.skew_ppb else 0
        if recorded and one.skew_ppb:
            # The recording is a meeting itself: its times count from its beginning, wherever it is moved to.
            offset, ref = offset - round(one.skew_ppb * 1e-9 * (one.at_ns - first[one.device])), 0
        found.append(
            RoomCalibration(
                device=one.device, offset_ns=offset, skew_ppb=round(one.skew_ppb, 1), ref_ns=ref,
                uncertainty_ns=one.uncertainty_ns, method=one.method, measured=day,
            )
        )  # fmt: skip
    return found


def outcome_lines(outcome: Outcome) -> list[str]:
    """What was found, in plain words."""
    lines = [_line(one) for one in outcome.measured]
    lines += [f"{name}: not calibrated: {why}" for name, why in sorted(outcome.missing.items())]
    return lines + list(outcome.remarks)


def _line(one: Measured) -> str:
    if one.method == "reference":
        return f"{one.device}: its clock is taken as right"
    late = "late" if one.offset_ns > 0 else "early"
    sure = f"(± {one.uncertainty_ns / 1e6:.0f} ms, by {one.method})"
    runs = ""
    if one.skew_ppb:
        pace = "fast" if one.skew_ppb > 0 else "slow"
        runs = f"runs {abs(one.skew_ppb) / 1000:.0f} ppm {pace}"
    if not one.wrong and not runs:
        return f"{one.device}: right as far as this can tell {sure}"
    if not one.wrong:
        return f"{one.device}: its clock {runs} {sure}; the flow will take that off"
    wrong = f"stamps are {_amount(abs(one.offset_ns))} {late}"
    return (
        f"{one.device}: {wrong}{' and its clock ' + runs if runs else ''} {sure}; the flow will take that off"
    )


def _amount(ns: int) -> str:
    return f"{ns / 1e9:.2f} s" if ns >= 10**9 else f"{ns / 1e6:.0f} ms"


def _write_signal(path: Path) -> None:
    from devices.calibration_signal import LENGTH_S, page, write_film
    from devices.stored_calibrations import CalibrationProblem

    match path.suffix.lower():
        case ".html" | ".htm":
            _write(path, page())
        case ".mp4":
            write_film(path)
        case _:
            raise CalibrationProblem(f"--signal {path}: use a name that ends with .html or .mp4")
    print(
        f"wrote {path}: flashes with tones, {LENGTH_S:.0f} s; play it, then run minuted calibrate on the recording"
    )


def _write(path: Path, text: str) -> None:
    from devices.streams import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror}") from error


def _distances(given: Sequence[str]) -> Mapping[str, float]:
    from devices.stored_calibrations import CalibrationProblem

    found: dict[str, float] = {}
    for text in given:
        name, _, metres = text.rpartition("=")
        try:
            value = float(metres)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value <= 100:
            raise CalibrationProblem(f"--distance {text}: use DEVICE=METRES, 0 to 100")
        found[name] = value
    return found


def _day_of(room: Room) -> datetime.date | None:
    return next((getattr(c, "date", None) for c in room.control if c.type == "meeting_started"), None)


def _plot_log(log: Path, plot: Path | None) -> None:
    from devices.stored_calibrations import CalibrationProblem
    from devices.streams import InputError

    from .calibrate_plot import panels_of_log, svg

    if plot is None:
        raise CalibrationProblem(
            f"{log}: the log of a meeting; say --plot OUT.svg to see how its clocks were followed"
        )
    try:
        panels = panels_of_log(log.read_bytes().splitlines())
    except ValueError as error:
        raise InputError(log, "a line is no record of a meeting's log") from error
    if not panels:
        raise CalibrationProblem(f"{log}: it has no clock of any device")
    _write(plot, svg(panels))
    print(f"wrote {plot}")


def _publish(stored: Sequence[RoomCalibration], brokers: str | None) -> None:
    from contracts.messages import ALL_MEETINGS, Calibration

    from .control_sender import ControlSender

    sender = ControlSender(settings_of(brokers).link(), wait_s=PATIENCE_S)
    for one in stored:
        sender.send(Calibration(meeting_id=ALL_MEETINGS, **one.model_dump()))
    print(f"published {len(stored)} calibrations, for all meetings")
