"""Rooms at signal level for ``benchmarks.alignment``: voices, microphones, pictures' brightness, packets, truth.

Nothing is coded or decoded: a microphone's packet holds samples taken at the true times of its own clock, a
camera's the brightness of its exposure. Voices are made here (pulses of a glottis through resonances).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from contracts.pulse_train import CHIRP_FROM_HZ, CHIRP_S, CHIRP_TO_HZ, ON_S, PULSES_S
from devices.acoustics import Microphone, PlacedClip, Point, Room, mix
from devices.faults import (
    DeviceClock,
    DeviceKind,
    DevicePlan,
    Nanoseconds,
    RoomPlan,
    capture_times_ns,
    deliver,
    plan_room,
)

Signal = npt.NDArray[np.float64]
Setting = Literal["calibrated", "flash", "blind"]
SETTINGS: Final[tuple[Setting, ...]] = ("calibrated", "flash", "blind")
RATE_HZ: Final = 16_000
BLOCK_NS: Final = 20_000_000
LENGTH_S: Final = 120.0
FLASH_AT_S: Final = 34.0
START_NS: Final = 1_790_000_037_000_000_000


@dataclass(frozen=True, slots=True)
class Stream:
    """What one device sends and what of it arrives.

    true_ns: true capture times, by sequence number. stamps_ns: what the device writes.
    order: sequence numbers in the order of release by ingest. append_ns: their append times.
    """

    name: str
    plan: DevicePlan
    clock: DeviceClock
    true_ns: Nanoseconds
    stamps_ns: Nanoseconds
    order: npt.NDArray[np.int64]
    append_ns: Nanoseconds
    released_ns: Nanoseconds
    samples: npt.NDArray[np.float32] | None
    brightness: Signal | None


@dataclass(frozen=True, slots=True)
class SignalRoom:
    """One room: its streams with and without the calibration signal, and its plan."""

    seed: int
    plan: RoomPlan
    plain: Mapping[str, Stream]
    pulsed: Mapping[str, Stream]

    def streams(self, setting: Setting) -> Mapping[str, Stream]:
        """Streams of a setting: only ``flash`` has the calibration signal."""
        return self.pulsed if setting == "flash" else self.plain


def make_room(seed: int, length_s: float = LENGTH_S) -> SignalRoom:
    """A random room under all faults."""
    random = np.random.default_rng([seed, 10])
    microphones = int(random.integers(4, 6))
    kinds: dict[str, DeviceKind] = {f"mic-{n + 1}": "sound" for n in range(microphones)}
    kinds |= {"camera-1": "camera", "camera-2": "camera", "slides": "slides"}
    plan = plan_room(kinds, START_NS, length_s, seed)
    sound, pulses = _sound(microphones, length_s, seed, random)
    plain: dict[str, Stream] = {}
    pulsed: dict[str, Stream] = {}
    for place, (name, kind) in enumerate(kinds.items()):
        stream = _stream(name, plan, length_s, seed * 1000 + place)
        if kind == "sound":
            plain[name] = replace(stream, samples=_taken(sound[place], stream))
            pulsed[name] = replace(stream, samples=_taken(sound[place] + pulses[place], stream))
        else:
            dark = _brightness(stream, kind, seed * 1000 + place)
            plain[name] = replace(stream, brightness=dark)
            pulsed[name] = replace(stream, brightness=dark + 0.35 * _lit_share(stream, random))
    return SignalRoom(seed, plan, plain, pulsed)


def _stream(name: str, room: RoomPlan, length_s: float, seed: int) -> Stream:
    plan = room.devices[name]
    end_ns = START_NS + round(length_s * 1e9)
    true_ns = capture_times_ns(plan, START_NS, end_ns, seed)
    clock = DeviceClock(plan.clock, START_NS, seed)
    lasts_ns = BLOCK_NS if plan.kind == "sound" else 0
    found = deliver(true_ns + lasts_ns, plan.delivery, START_NS, seed)
    append = room.broker.append_ns(found.arrival_ns)
    # What ingest does: repeats go, the rest is handed on in the order of its numbers.
    numbers, first = np.unique(found.index, return_index=True)
    released = np.maximum.accumulate(found.arrival_ns[first])
    return Stream(
        name, plan, clock, true_ns, clock.stamps_ns(true_ns), numbers, append[first], released, None, None
    )


def _taken(room_signal: Signal, stream: Stream) -> npt.NDArray[np.float32]:
    """Samples of every block at the true times of the device, shape (blocks, samples)."""
    block = round(BLOCK_NS * RATE_HZ / 1e9)
    at = (stream.true_ns - START_NS)[:, None] * (RATE_HZ / 1e9) + np.arange(block)[None, :]
    at = np.clip(at, 0.0, len(room_signal) - 1.000001)
    low = at.astype(np.intp)
    taken = room_signal[low] + (at - low) * (room_signal[low + 1] - room_signal[low])
    return np.asarray(np.round(np.clip(taken, -1.0, 1.0) * 32767.0) / 32768.0, np.float32)


def _sound(
    microphones: int, length_s: float, seed: int, random: np.random.Generator
) -> tuple[Signal, Signal]:
    """Voices at every microphone, and the calibration signal alone; shape (microphones, samples) each."""
    size = (float(random.uniform(4.5, 7.0)), float(random.uniform(3.5, 5.0)), 2.8)
    mouths: list[Point] = []
    places: list[Microphone] = []
    for n in range(microphones):
        turn = 2 * math.pi * (n + float(random.uniform(-0.15, 0.15))) / microphones
        mouth = (size[0] / 2 + 1.6 * math.cos(turn), size[1] / 2 + 1.0 * math.sin(turn), 1.2)
        inward = float(random.uniform(0.3, 0.5))
        place = (mouth[0] - inward * math.cos(turn), mouth[1] - inward * math.sin(turn), 0.8)
        mouths.append(mouth)
        places.append(Microphone(place, float(random.uniform(-4.0, 4.0)), -62.0))
    decay = float(random.uniform(0.2, 0.5))
    room = Room(size, float(random.uniform(0.3, 0.6)), float(random.uniform(-14.0, -8.0)), decay)
    samples = round(length_s * RATE_HZ)
    clips = list(_turns(mouths, length_s, random))
    heard = mix(clips, places, room, samples=samples, sample_rate_hz=RATE_HZ, seed=seed)
    quiet = [Microphone(m.position_m, m.gain_db, -200.0) for m in places]
    source: Point = (0.4, size[1] / 2 + 0.3, 1.3)
    tones = [
        PlacedClip(0.2 * _tone(), round((FLASH_AT_S + at) * RATE_HZ), source)
        for at in PULSES_S
        if FLASH_AT_S + at < length_s
    ]
    pulses = mix(tones, quiet, room, samples=samples, sample_rate_hz=RATE_HZ, seed=seed + 1)
    return heard, pulses


def _tone() -> Signal:
    time = np.arange(round(CHIRP_S * RATE_HZ)) / RATE_HZ
    phase = CHIRP_FROM_HZ * time + 0.5 * (CHIRP_TO_HZ - CHIRP_FROM_HZ) / CHIRP_S * time**2
    return np.asarray(np.sin(2 * np.pi * phase) * np.hanning(len(time)) ** 0.5)


def _turns(mouths: list[Point], length_s: float, random: np.random.Generator) -> Iterator[PlacedClip]:
    """People taking turns, pauses between them, now and then two at once."""
    at = 0.5
    while at < length_s - 1.5:
        who = int(random.integers(0, len(mouths)))
        lasts = float(min(random.uniform(1.5, 6.0), length_s - at - 0.2))
        yield PlacedClip(_voice(lasts, 90.0 + 25.0 * who, random), round(at * RATE_HZ), mouths[who])
        at += lasts + float(random.uniform(-0.4, 0.8))


def _voice(lasts_s: float, pitch_hz: float, random: np.random.Generator) -> Signal:
    """Something like speech: syllables of a few per second, voiced through formants, hissed in between."""
    count = round(lasts_s * RATE_HZ)
    out = np.zeros(count)
    at = 0
    while at < count:
        size = min(int(random.uniform(0.09, 0.28) * RATE_HZ), count - at)
        time = np.arange(size) / RATE_HZ
        if random.random() < 0.7:
            pitch = pitch_hz * float(random.uniform(0.85, 1.25)) * (1 + 0.05 * np.sin(2 * np.pi * 3 * time))
            phase = np.cumsum(pitch) / RATE_HZ
            source = np.diff(np.floor(phase), prepend=0.0) + 0.03 * random.standard_normal(size)
            for formant in (random.uniform(300, 800), random.uniform(900, 2200), random.uniform(2300, 3200)):
                source = source + 1.5 * _resonance(source, float(formant))
        else:
            source = 0.25 * np.diff(random.standard_normal(size), prepend=0.0)
        envelope = np.hanning(size) ** 0.6 * float(random.uniform(0.3, 1.0))
        scale = 0.05 / (float(np.sqrt(np.mean(source**2))) + 1e-9)
        out[at : at + size] = source * scale * envelope
        at += size + int(random.uniform(0.0, 0.06) * RATE_HZ)
    return out


def _resonance(source: Signal, hertz: float) -> Signal:
    """A two-pole resonance, by its transfer function."""
    size = 1 << (2 * len(source)).bit_length()
    radius = math.exp(-math.pi * 90.0 / RATE_HZ)
    turn = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    poles = 1.0 - 2.0 * radius * math.cos(2 * math.pi * hertz / RATE_HZ) * turn + radius**2 * turn**2
    return np.asarray(np.fft.irfft(np.fft.rfft(source, size) * (1.0 - radius) / poles, size)[: len(source)])


def _brightness(stream: Stream, kind: DeviceKind, seed: int) -> Signal:
    """Mean brightness of each picture: a camera flickers a little, slides change in steps."""
    random = np.random.default_rng([seed, 11])
    count = len(stream.true_ns)
    if kind == "slides":
        changes = np.cumsum(random.random(count) < 0.004)
        return 0.2 + 0.25 * random.random(int(changes[-1]) + 1 if count else 1)[changes]
    sway = np.cumsum(random.normal(0.0, 0.002, count))
    return 0.35 + 0.05 * np.sin(sway) + random.normal(0.0, 0.004, count)


def _lit_share(stream: Stream, random: np.random.Generator) -> Signal:
    """Share of each picture's exposure for which the light was on."""
    exposure = float(random.uniform(0.004, 0.016))
    since = (stream.true_ns - START_NS) / 1e9 - FLASH_AT_S
    lit = np.zeros(len(since))
    for at in PULSES_S:
        begin, end = np.maximum(since - exposure / 2, at), np.minimum(since + exposure / 2, at + ON_S)
        lit += np.clip(end - begin, 0.0, None) / exposure
    return lit
