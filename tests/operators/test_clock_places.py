"""Where people and microphones are known to be, the sound's way no longer hides a clock's error."""

import numpy as np
import pytest

from contracts.messages import ChannelSpeaker, MeetingStarted, MicrophonePlace, SeatPlace
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord
from operators.clock import ClockSettings, MeetingClocks
from operators.clock.placing import ways_ms
from operators.ingest import Arrival
from operators.timeline import clock_in_force, to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S
RATE = 16_000
LENGTH_S = 32
LATE_NS = 30 * MS
PLACES = {"mic-1": (1.0, 1.0, 1.0), "mic-2": (2.5, 1.0, 1.0), "mic-3": (1.0, 3.2, 1.0)}
MOUTHS = {"mic-1": (0.7, 1.0, 1.0), "mic-2": (2.8, 1.0, 1.0)}
SPEAKERS = {"mic-1": "Anna", "mic-2": "Ben"}


def started(*, places: bool) -> MeetingStarted:
    """A meeting of two; nobody sits before the third microphone."""
    return MeetingStarted(
        meeting_id="m", start_ns=START,
        channel_map=tuple(ChannelSpeaker(device=d, speaker=s) for d, s in SPEAKERS.items()) if places else (),
        seats=tuple(SeatPlace(speaker=SPEAKERS[d], position_m=p) for d, p in MOUTHS.items()) if places else (),
        microphones=tuple(MicrophonePlace(device=d, position_m=p) for d, p in PLACES.items()) if places else (),
    )  # fmt: skip


def spoken() -> dict[str, np.ndarray]:
    """Two people in turns of two seconds, by their microphone: syllables of noise with pauses, full scale 1."""
    random = np.random.default_rng(3)
    voices = {}
    for turn, device in enumerate(MOUTHS):
        syllables = random.random(LENGTH_S * 4) < 0.7
        syllables &= np.arange(LENGTH_S * 4) // 8 % 2 == turn
        voices[device] = random.normal(0.0, 0.1, LENGTH_S * RATE) * np.repeat(syllables, RATE // 4)
    return voices


def bound_and_error_ms(*, places: bool) -> tuple[float, float]:
    """Of a microphone that is late and that nobody sits before, as it stands in the end."""
    clocks, records = MeetingClocks(ClockSettings(), "m", {}, {}), list[ClockRecord]()
    clocks.feed(Arrival("m", started(places=places), START - 37 * S, True, "control/0/0"))
    voices, random, at = spoken(), np.random.default_rng(4), np.arange(LENGTH_S * RATE)
    sounds = {}
    for device, place in PLACES.items():
        sound = random.normal(0.0, 3e-4, len(at))
        for mouth, voice in zip(MOUTHS.values(), voices.values(), strict=True):
            away_m = float(np.linalg.norm(np.subtract(place, mouth)))
            sound += np.interp(at - away_m / 343.0 * RATE, at, voice) * 0.3 / away_m
        sounds[device] = np.rint(32767 * sound)
    for number in range(LENGTH_S * 50):
        for device, sound in sounds.items():
            true_ns = START + number * 20 * MS
            late_ns = LATE_NS if device == "mic-3" else 0
            payload = sound[number * 320 : (number + 1) * 320].astype("<i2").tobytes()
            packet = Packet("m", device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, number,
                            true_ns + late_ns, 20 * MS, payload, RATE, 0, 0, 1)  # fmt: skip
            at_ns = true_ns + 29 * MS + number * 7 % 5 * MS - 37 * S
            out = clocks.feed(Arrival("m", packet, at_ns, True, "audio/0/0"))
            records += [r for r in out if isinstance(r, ClockRecord) and r.device == "mic-3"]
    raw_ns = START + 25 * S + LATE_NS
    record = clock_in_force(records, 10**9, raw_ns)
    assert record is not None
    return record.uncertainty_ns / 1e6, abs(to_timeline_ns(record, raw_ns) - START - 25 * S) / 1e6


def test_places_take_the_sounds_way_out_of_the_bound() -> None:
    known_ms, error_ms = bound_and_error_ms(places=True)
    assert error_ms <= known_ms < 4.0
    unknown_ms, error_ms = bound_and_error_ms(places=False)
    assert error_ms <= unknown_ms and unknown_ms > 2 * known_ms


def test_ways_are_differences_of_distances_by_the_speed_of_sound() -> None:
    ways = ways_ms(started(places=True))
    assert ways == {
        ("mic-1", "mic-2"): pytest.approx((1.8 - 0.3) / 0.343),
        ("mic-2", "mic-1"): pytest.approx((1.8 - 0.3) / 0.343),
        ("mic-1", "mic-3"): pytest.approx((np.hypot(0.3, 2.2) - 0.3) / 0.343),
        ("mic-2", "mic-3"): pytest.approx((np.hypot(1.8, 2.2) - 0.3) / 0.343),
    }
    assert ways_ms(started(places=False)) == {}
