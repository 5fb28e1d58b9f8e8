"""Calibrating from a recording: signals made sample by sample, devices whose clocks are known to be wrong."""

import datetime
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from contracts.leap_seconds import TAI_UTC_NS
from contracts.messages import Calibration
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.pulse_train import ON_S, PULSES_S
from contracts.timeline import ClockRecord, MarkRecord
from devices.calibration_signal import LENGTH_S, page, pulse_times_s, signal_samples
from devices.inputs import open_inputs
from devices.stored_calibrations import SCHEMA, CalibrationProblem
from flows.calibrate import Outcome, measure
from flows.calibrate_command import calibrations_of, outcome_lines
from flows.calibrate_media import Taken
from flows.calibrate_moments import Heard, Seen, beep, flashes_in, trains
from flows.calibrate_plot import panels_of_log, panels_of_outcome, svg
from flows.cli import main

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_000 * S
RATE = 16_000
Samples = npt.NDArray[np.float32]


def noise(seconds: float, seed: int, level: float = 0.01) -> Samples:
    return np.random.default_rng(seed).normal(0.0, level, round(seconds * RATE)).astype(np.float32)


def microphone(
    device: str, offset_ns: int, way_ms: float, skew_ppb: float = 0.0, begins_s: float = 0.0
) -> Heard:
    """Hears the signal through noise; a skewed clock counts its own samples."""
    sound = noise(LENGTH_S + 1.0, len(device))
    true_s = begins_s + np.arange(len(sound)) / RATE / (1 + skew_ppb * 1e-9) - way_ms / 1000
    played = signal_samples(RATE)
    sound += 0.3 * np.interp(true_s, np.arange(len(played)) / RATE, played, left=0.0, right=0.0).astype(
        np.float32
    )
    return Heard(device, START + round(begins_s * S) + offset_ns, RATE, sound)


def camera(
    device: str,
    offset_ns: int,
    rate_hz: float,
    exposure_s: float,
    ambient: float = 0.2,
    screen_hz: float = 1e6,
) -> Seen:
    """Sees the light of a screen for the share of its exposure; stamps are the middles."""
    at = np.arange(round(LENGTH_S * rate_hz)) / rate_hz + 0.3 / rate_hz
    lit = np.zeros(len(at))
    for pulse in pulse_times_s():
        on, off = (round(edge * screen_hz) / screen_hz for edge in (pulse, pulse + ON_S))
        ends, begins = np.minimum(at + exposure_s / 2, off), np.maximum(at - exposure_s / 2, on)
        lit += np.clip((ends - begins) / exposure_s, 0.0, 1.0)
    stamps = START + offset_ns + np.rint(at * S).astype(np.int64)
    return Seen(device, stamps, ambient + 0.4 * lit, ambient / 2 + 0.05 * lit)


def by_device(outcome: Outcome) -> dict[str, tuple[float, float, float]]:
    """Offset and uncertainty in ms, skew in ppm."""
    return {m.device: (m.offset_ns / MS, m.uncertainty_ns / MS, m.skew_ppb / 1000) for m in outcome.measured}


def test_pulses_find_late_cameras_late_microphones_and_fast_clocks() -> None:
    heard = [
        microphone("mic-1", 0, 3.0), microphone("mic-22", 180 * MS, 6.0, begins_s=0.7), microphone("mic-333", 0, 4.0, 80_000.0),
    ]  # fmt: skip
    seen = [camera("wall", 3_200 * MS, 25.0, 0.020), camera("slides", 0, 30.0, 0.001, 0.0)]
    outcome = measure(heard, seen)
    found = by_device(outcome)
    # The middle of the first train comes 7.7 s after the fast clock's start.
    for device, true_ms in {"mic-22": 180.0, "mic-333": 0.62, "wall": 3200.0, "slides": 0.0}.items():
        offset, bound, _ = found[device]
        assert abs(offset - true_ms) <= bound
        assert bound < 12.0
    assert {d: round(skew) for d, (_, _, skew) in found.items()} == {
        "mic-1": 0, "mic-22": 0, "mic-333": 80, "wall": 0, "slides": 0,
    }  # fmt: skip
    assert outcome_lines(outcome) == [
        "mic-1: its clock is taken as right",
        "mic-22: stamps are 183 ms late (± 8 ms, by pulses); the flow will take that off",
        "mic-333: its clock runs 80 ppm fast (± 8 ms, by pulses); the flow will take that off",
        "wall: stamps are 3.20 s late (± 11 ms, by pulses); the flow will take that off",
        "slides: right as far as this can tell (± 9 ms, by pulses)",
    ]


@pytest.mark.parametrize(("rate_hz", "screen_hz"), [(25.0, 50.0), (30.0, 60.0), (12.0, 60.0), (50.0, 144.0)])
def test_a_screen_that_shows_light_at_its_next_picture_does(rate_hz: float, screen_hz: float) -> None:
    heard = [microphone("mic-1", 0, 6.0), microphone("mic-2", 0, 5.0)]
    found = by_device(measure(heard, [camera("wall", -400 * MS, rate_hz, 0.008, screen_hz=screen_hz)]))
    offset, bound, _ = found["wall"]
    assert abs(offset + 400.0) <= min(bound, 12.0)
    assert bound < 25.0


def test_measured_distances_take_the_sounds_way_off() -> None:
    heard = [microphone("near", 0, 1.0), microphone("away", 50 * MS, 11.0)]
    outcome = measure(heard, [], distances_m={"near": 0.343, "away": 3.773}, reference="near")
    offset, bound, _ = by_device(outcome)["away"]
    assert abs(offset - 50.0) < 0.3
    assert bound < 3.0


def test_two_that_disagree_are_told_apart_by_arrival_or_not_at_all() -> None:
    heard = [microphone("a", 0, 5.0), microphone("b", 900 * MS, 5.0)]
    blind = measure(heard, [])
    assert by_device(blind)["a"][0] == 0.0
    assert "nobody can tell which of the clocks is right" in blind.remarks[0]
    told = measure(heard, [], arrival_error_ns={"a": -900 * MS, "b": 2 * MS})
    assert by_device(told)["b"][0] == 0.0
    assert abs(by_device(told)["a"][0] + 900.0) < 1.0
    assert told.remarks == ()


def test_one_flash_and_one_beep_do() -> None:
    tone = np.zeros(RATE, np.float32)
    beeps = np.sin(2 * np.pi * 2000.0 * np.arange(round(0.1 * RATE)) / RATE).astype(np.float32)
    heard = []
    for device, at_s, offset in (("one", 1.002, 0), ("two", 1.008, 300 * MS)):
        sound = noise(4.0, 7, 0.003)
        begin = round(at_s * RATE)
        sound[begin : begin + len(beeps)] += 0.2 * beeps
        heard.append(Heard(device, START + offset, RATE, sound))
        assert abs((beep(heard[-1]) or 0.0) - at_s) < 0.0025
    at = np.arange(120) / 30.0
    lit = ((at >= 0.99) & (at < 1.1)).astype(float)
    pictures = Seen(
        "wall", START - 700 * MS + np.rint(at * S).astype(np.int64), 0.9 + 0.02 * lit, 0.1 + 0.8 * lit
    )
    found = by_device(measure(heard, [pictures], reference="one"))
    assert abs(found["two"][0] - 300.0) <= found["two"][1] < 15.0
    assert abs(found["wall"][0] + 700.0) <= found["wall"][1] < 35.0
    assert beep(Heard("quiet", START, RATE, tone)) is None


def test_a_clap_places_microphones_and_says_that_it_places_no_pictures() -> None:
    clap = noise(0.4, 3, 0.5) * np.exp(-np.arange(round(0.4 * RATE)) / (0.03 * RATE)).astype(np.float32)
    heard = []
    for number, (at_s, offset) in enumerate(((2.0, 0), (3.5105, 250 * MS))):
        sound = noise(8.0, 20 + number, 0.004)
        begin = round(at_s * RATE)
        sound[begin : begin + len(clap)] += clap
        # The second file begins 1.5 s earlier and hears it 10.5 ms later.
        heard.append(Heard(f"mic-{number}", START - round(1.5 * S) * number + offset, RATE, sound))
    pictures = Seen("wall", START + np.arange(100) * 40 * MS, np.full(100, 0.3), np.full(100, 0.1))
    dead = Heard("dead", START, RATE, np.zeros(8 * RATE, np.float32))
    for others in ([], [dead]):
        outcome = measure([*others, *heard], [pictures])
        found, bound, _ = by_device(outcome)["mic-1"]
        assert abs(found - 260.5) < 0.2
        assert bound < 9.0
        missing = {d.device: "the clap is not clear there" for d in others}
        assert outcome.missing == missing | {"wall": "a clap places no pictures"}


def test_noise_calibrates_nothing() -> None:
    with pytest.raises(CalibrationProblem, match="no two devices of a, b have"):
        measure([Heard("a", START, RATE, noise(8.0, 1)), Heard("b", START, RATE, noise(8.0, 2))], [])
    with pytest.raises(CalibrationProblem, match="c: no such device; there are a"):
        measure([Heard("a", START, RATE, noise(1.0, 1))], [], reference="c")


def test_what_a_recording_lacks_is_said() -> None:
    quiet = [Heard(name, START, RATE, noise(8.0, seed, 0.003)) for seed, name in enumerate(("b", "c"))]
    words = {"notes": "a transcript, which has nothing to measure"}
    for heard, line in (
        ([], "there is nothing to measure; notes: a transcript, which has nothing to measure"),
        ([microphone("a", 0, 3.0)], "a is the only device here, and .*; it has the calibration signal; "),
        (quiet[:1], "b is the only device here, and .*; it has no clear calibration signal either; "),
        (
            [*quiet, microphone("a", 0, 3.0)],
            "only a has the calibration signal; it is not clear in b, c; notes",
        ),
    ):
        with pytest.raises(CalibrationProblem, match=line):
            measure(heard, [], unmeasurable=words)
    outcome = measure([microphone("a", 0, 3.0), microphone("d", 0, 3.0)], [], unmeasurable=words)
    assert "notes: not calibrated: a transcript, which has nothing to measure" in outcome_lines(outcome)


def test_trains_are_found_among_false_pulses_and_with_missing_ones() -> None:
    random = np.random.default_rng(5)
    times = np.asarray([2.0 + p for n, p in enumerate(PULSES_S) if n not in (0, 5, 8)])
    mixed = np.concatenate([times + random.uniform(-0.001, 0.001, len(times)), random.uniform(0.0, 30.0, 12)])
    (begin,) = trains(mixed, 0.003)
    assert abs(begin - 2.0) < 0.001
    assert trains(random.uniform(0.0, 30.0, 20), 0.003) == []


def test_a_light_that_stays_and_one_that_was_there_already_are_no_flashes() -> None:
    at = START + np.arange(200) * 40 * MS
    levels = np.full(200, 0.2)
    levels[50:57] = 0.8
    levels[150:] = 0.9
    ((began, ended),) = flashes_in(at, levels)
    assert began == (at[49], at[50])
    assert ended == (at[56], at[57])


def test_what_is_stored_of_a_skewed_clock_holds_from_its_first_stamp() -> None:
    fast = microphone("fast", 40 * MS, 3.0, 80_000.0)
    outcome = measure([microphone("right", 0, 3.0), fast, microphone("too", 0, 3.0)], [])
    taken = Taken()
    for one in (fast, microphone("right", 0, 3.0), microphone("too", 0, 3.0)):
        pcm = (one.samples[:320] * 20_000).astype("<i2").tobytes()
        packet = Packet(
            "m", one.device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, 0, one.first_ns, 20 * MS, pcm,
            rate_hz=RATE, channels=1,
        )  # fmt: skip
        taken.packet(packet, one.first_ns + 20 * MS + 30 * MS)
    assert taken.arrival_error_ns["right"] == -21 * MS
    day = datetime.date(2026, 3, 10)
    stored = {c.device: c for c in calibrations_of(outcome, taken, day, recorded=True)}
    # What 80 ppm made of it before the first train is taken off again.
    assert abs(stored["fast"].offset_ns - 40 * MS) < 0.1 * MS
    assert stored["fast"].ref_ns == 0
    live = {c.device: c for c in calibrations_of(outcome, taken, day, recorded=False)}
    assert live["fast"].ref_ns > START
    assert abs(live["fast"].offset_ns - 40.62 * MS) < 0.1 * MS
    assert TAI_UTC_NS == 37 * S
    assert svg(panels_of_outcome(outcome, 60.0)).count("<path") > 6


def test_the_page_stands_alone_and_plays_the_contracts_pulses() -> None:
    text = page()
    assert "http" not in text
    assert "src=" not in text
    for pulse in pulse_times_s():
        assert f"{pulse}" in text


def test_a_logs_picture_shows_what_held_when() -> None:
    def record(number: int, offset_ns: int, bound_ns: int) -> bytes:
        return ClockRecord(
            meeting_id="m", device="cam", number=number, from_raw_ns=-(2**63), ref_ns=0, offset_ns=offset_ns,
            uncertainty_ns=bound_ns, method="online" if number else "stamped",
        ).to_bytes()  # fmt: skip

    def mark(at_s: int) -> bytes:
        return MarkRecord(meeting_id="m", stream="cam/video", raw_ns=START + at_s * S).to_bytes()

    lines = [record(0, 0, MS), mark(0), mark(1), record(1, 3_200 * MS, 40 * MS), mark(2), mark(3)]
    (panel,) = panels_of_log(lines)
    assert [(p.at_s, p.stamped_ms, p.placed_ms, p.bound_ms) for p in panel.points] == [
        (0.0, 3200.0, 3200.0, 1.0), (1.0, 3200.0, 3200.0, 1.0), (2.0, 3200.0, 3200.0, 1.0), (2.0, 3200.0, 0.0, 40.0),
        (3.0, 3200.0, 0.0, 40.0),
    ]  # fmt: skip
    assert "cam" in svg([panel])
    with pytest.raises(ValueError, match="validation error"):
        panels_of_log([b"{}"])


def test_a_folder_is_calibrated_from_the_command_line_and_then_rests_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    for device, offset_ns in (("mic-1", 0), ("mic-2", 0), ("mic-3", 250 * MS)):
        begins = microphone(device, 0, 5.0, begins_s=-offset_ns / S)
        soundfile.write(room / f"{device}.wav", begins.samples[: 15 * RATE], RATE)
    (room / "room.json").write_text(json.dumps({"start_time": "2026-03-10T09:00:00Z"}))
    assert run("calibrate", str(room), "--plot", str(tmp_path / "clocks.svg")) == 0
    said = capsys.readouterr().out
    assert "mic-3: stamps are 250 ms late (± 8 ms, by pulses); the flow will take that off" in said
    assert (tmp_path / "clocks.svg").read_text().startswith("<svg")
    written = {"start_s": 1.0, "end_s": 2.0, "text": "Now."}
    (tmp_path / "notes.jsonl").write_text(json.dumps(written))
    assert run("calibrate", str(tmp_path / "notes.jsonl")) == 2
    assert capsys.readouterr().err == (
        "minuted: there is nothing to measure; notes: a transcript, which has nothing to measure\n"
    )
    stored = [c for c in open_inputs([room]).control if isinstance(c, Calibration) and c.device == "mic-3"]
    assert [(round(c.offset_ns / MS), c.measured) for c in stored] == [(250, datetime.date(2026, 3, 10))]
    for arguments, line in (
        (("--reference", "mic-9"), "minuted: mic-9: no such device; there are mic-1, mic-2, mic-3"),
        (("--distance", "mic-1=far"), "minuted: --distance mic-1=far: use DEVICE=METRES, 0 to 100"),
        (("--meeting", "m"), "minuted: calibrate: name either recordings or --meeting"),
        (("--signal", "signal.gif"), "minuted: --signal signal.gif: use a name that ends with .html or .mp4"),
    ):
        assert run("calibrate", str(room), "--seconds", "1", *arguments) == 2
        assert capsys.readouterr().err.strip().splitlines() == [line]
    assert run("calibrate") == 0
    assert "Calibrating a room takes a minute" in capsys.readouterr().out


def test_calibrations_that_do_not_fit_are_marked_in_the_minutes_and_the_meeting_goes_on(
    tmp_path: Path,
) -> None:
    room, folder = tmp_path / "room", tmp_path / "room" / "calibration"
    folder.mkdir(parents=True)
    line = {"start_s": 1.0, "end_s": 3.0, "speaker": "Anna", "text": "We decided to open on Saturday."}
    for device in ("old", "new", "fine"):
        (room / f"{device}.jsonl").write_text(json.dumps(line | {"speaker": device.title()}) + "\n")
    (room / "room.json").write_text(json.dumps({"start_time": "2026-03-10T09:00:00Z"}))
    one = {"schema": SCHEMA, "offset_ns": 5 * MS, "uncertainty_ns": MS}
    for name, said in {
        "old": one | {"device": "old", "measured": "2024-03-10"},
        "new": one | {"device": "new", "measured": "2027-01-02"},
        "gone": one | {"device": "gone"},
        "fine": one | {"device": "somebody"},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(said))
    (folder / "broken.json").write_text('{"schema": ')
    assert run("run", str(room), "--out", str(tmp_path / "out")) == 0
    minutes = json.loads((tmp_path / "out" / "minutes.json").read_text())
    assert minutes["decisions"]
    for mark in (
        "The calibration of old is 730 days old",
        "The calibration of new is newer than the meeting",
        "gone, which is not in this meeting",
        "it is of another device, somebody",
        "it is broken, no JSON",
    ):
        assert sum(mark in notice for notice in minutes["notices"]) == 1, (mark, minutes["notices"])


def run(*arguments: str) -> int | str | None:
    """Exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code
