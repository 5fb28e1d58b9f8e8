"""A script at signal level: what each microphone of each form hears, before any encoding and any clock.

script = read_script(path)
heard = render(script, read_clips(script, scripts, clips), "pair")
heard.devices["table"]      # float64, shape (channels, samples), full scale = 1
heard.placed                # who said what when, exact, at the mouth
heard.path("Anna", "table", 1).delay_s
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from devices.acoustics import SPEED_OF_SOUND_M_S, Microphone, PlacedClip, Point, Signal
from devices.rooms.acoustics import Box, simulate
from devices.rooms.script import Form, Pair, Script, ScriptError, Seat
from devices.rooms.timing import Placed, length_samples, place
from devices.rooms.voices import SAMPLE_RATE_HZ
from devices.sample_voices import Clip

_TOWARDS_MIDDLE_M: Final = 0.3
_BELOW_MOUTH_M: Final = 0.15
_TABLE_M: Final = 0.78
_BEEP_HZ: Final = 2_000.0
BEEP_S: Final = 0.1
_BEEP_LEVEL: Final = 0.05
_MIX_GAIN: Final = 0.7
"""A desk takes every microphone a little down so that the sum does not clip."""


@dataclass(frozen=True)
class Placement:
    """A microphone and the channel that carries it."""

    device: str
    channel: int
    microphone: Microphone
    seat: str | None = None


@dataclass(frozen=True)
class SoundPath:
    """The straight way of somebody's voice to a microphone."""

    speaker: str
    device: str
    channel: int
    distance_m: float

    @property
    def delay_s(self) -> float:
        """How much later than at the mouth the sound is heard."""
        return self.distance_m / SPEED_OF_SOUND_M_S


@dataclass(frozen=True)
class Rendered:
    """A meeting as its microphones hear it, and the truth about it."""

    script: Script
    form: Form
    sample_rate_hz: int
    samples: int
    devices: Mapping[str, Signal]
    """Signals of shape (channels, samples) by device."""
    placements: tuple[Placement, ...]
    placed: tuple[Placed, ...]
    paths: tuple[SoundPath, ...]

    def path(self, speaker: str, device: str, channel: int = 0) -> SoundPath:
        """The way from somebody to a microphone."""
        return next(p for p in self.paths if (p.speaker, p.device, p.channel) == (speaker, device, channel))


def render(script: Script, clips: Mapping[str, Clip], form: Form | None = None) -> Rendered:
    """What the microphones of `form` (None: the script's own) hear.

    Raises:
        ScriptError: a line before the recording's start, or a microphone that would clip.
    """
    form = form or script.form
    placed = place(script, clips)
    samples = length_samples(script, placed)
    placements = placements_of(script, form)
    mouths = {person.name: script.room.seats[person.seat].mouth_m for person in script.seated if person.seat}
    dry = [PlacedClip(p.samples, p.start_sample, mouths[p.line.speaker]) for p in placed]
    if script.flash is not None:
        dry.append(PlacedClip(beep(), round(script.flash.at_s * SAMPLE_RATE_HZ), script.flash.position_m))
    heard = simulate(
        dry, [p.microphone for p in placements], Box(script.room.size_m, script.room.rt60_s),
        samples=samples, sample_rate_hz=SAMPLE_RATE_HZ, seed=script.seed,
    )  # fmt: skip
    devices = _by_device(form, placements, heard)
    for device, signal in devices.items():
        if (peak := float(np.max(np.abs(signal)))) >= 1.0:
            raise ScriptError(f"{device} would clip (peak {peak:.2f}): lower its gain_db")
    paths = tuple(
        SoundPath(name, p.device, p.channel, math.dist(mouth, p.microphone.position_m))
        for name, mouth in mouths.items()
        for p in placements
    )
    return Rendered(script, form, SAMPLE_RATE_HZ, samples, devices, placements, placed, paths)


def placements_of(script: Script, form: Form) -> tuple[Placement, ...]:
    """The microphones of a form. Of the mixed track they are those that the desk adds up."""
    noise = script.room.noise_dbfs
    if form == "pair":
        pair = script.room.pair or middle_pair(script)
        return tuple(
            Placement("table", channel, Microphone(place, gain, noise))
            for channel, (place, gain) in enumerate(zip(pair_places(pair), pair.gain_db, strict=True))
        )
    middle = _middle([seat.mouth_m for seat in script.room.seats.values()])
    return tuple(
        Placement(
            f"mic-{number}", 0,
            Microphone(_microphone_of(script.room.seats[person.seat], middle), script.room.seats[person.seat].gain_db, noise),
            person.seat,
        )
        for number, person in enumerate(script.seated, start=1)
        if person.seat is not None
    )  # fmt: skip


def middle_pair(script: Script) -> Pair:
    """Two microphones in the middle of the table, turned so that the delays of all seats differ most."""
    mouths = [script.room.seats[person.seat].mouth_m for person in script.seated if person.seat]
    x, y, _ = _middle(mouths)
    choices = [Pair(centre_m=(x, y, _TABLE_M), angle_deg=float(angle)) for angle in range(0, 180, 5)]
    return max(choices, key=lambda pair: _least_difference(pair, mouths))


def pair_places(pair: Pair) -> tuple[Point, Point]:
    """Where the two microphones of a pair stand, channel 0 first."""
    x, y, z = pair.centre_m
    along, across = (
        pair.spacing_m / 2.0 * part
        for part in (math.cos(math.radians(pair.angle_deg)), math.sin(math.radians(pair.angle_deg)))
    )
    first = (round(x - along, 4), round(y - across, 4), z)
    return first, (round(x + along, 4), round(y + across, 4), z)


def beep(sample_rate_hz: int = SAMPLE_RATE_HZ) -> Signal:
    """A short tone that starts and ends softly, at its level one metre away."""
    time = np.arange(round(BEEP_S * sample_rate_hz)) / sample_rate_hz
    edge = np.minimum(1.0, np.minimum(time, BEEP_S - time) / 0.002)
    tone: Signal = _BEEP_LEVEL * edge * np.sin(2.0 * math.pi * _BEEP_HZ * time)
    return tone


def _by_device(form: Form, placements: Sequence[Placement], heard: Signal) -> dict[str, Signal]:
    if form == "mix":
        return {"mix": heard.sum(axis=0, keepdims=True) * _MIX_GAIN}
    devices = dict.fromkeys(p.device for p in placements)
    return {
        device: heard[[row for row, p in enumerate(placements) if p.device == device]] for device in devices
    }


def _least_difference(pair: Pair, mouths: Sequence[Point]) -> float:
    """The smallest difference between two seats' delays, in metres of path."""
    first, second = pair_places(pair)
    delays = sorted(math.dist(mouth, second) - math.dist(mouth, first) for mouth in mouths)
    return min((after - before for before, after in pairwise(delays)), default=0.0)


def _microphone_of(seat: Seat, middle: Point) -> Point:
    if seat.microphone_m is not None:
        return seat.microphone_m
    x, y, z = seat.mouth_m
    away = math.hypot(middle[0] - x, middle[1] - y) or 1.0
    step = _TOWARDS_MIDDLE_M / away
    return (
        round(x + (middle[0] - x) * step, 4), round(y + (middle[1] - y) * step, 4), round(z - _BELOW_MOUTH_M, 4),
    )  # fmt: skip


def _middle(places: Sequence[Point]) -> Point:
    x, y, z = (sum(values) / len(places) for values in zip(*places, strict=True))
    return (round(x, 4), round(y, 4), round(z, 4))
