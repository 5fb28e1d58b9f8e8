"""Rendered rooms against the truth about them: when each line sounds, where, and how loud."""

import math
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

from devices.acoustics import SPEED_OF_SOUND_M_S, Signal, decibels
from devices.rooms.render import BEEP_S, middle_pair, pair_places, placements_of, render
from devices.rooms.script import Pair, Script, ScriptError
from devices.rooms.timing import SPEECH_DBFS_AT_ONE_METRE, SPEECH_FLOOR_DBFS, place
from tests.devices.rooms_in_short import short_clips, short_data, short_script

RATE = 16_000


def quiet(**changes: Any) -> Script:
    """The short meeting in a room without walls and noise."""
    room = short_data()["room"] | {"rt60_s": 0, "noise_dbfs": -120}
    return short_script(room=room, **changes)


def lag(later: Signal, earlier: Signal) -> float:
    """Samples by which `later` lags, to a hundredth."""
    size = 16 * (1 << (len(later) + len(earlier)).bit_length())
    spectrum = np.fft.rfft(later, size // 16) * np.conj(np.fft.rfft(earlier, size // 16))
    best = int(np.argmax(np.fft.irfft(spectrum, size)))
    return (best - size if best > size // 2 else best) / 16


def test_lines_follow_each_other_to_the_sample() -> None:
    script = short_script()
    first, second, third = place(script, short_clips(script))
    assert first.speech_start == round(0.5 * RATE)
    assert second.speech_start == first.speech_end - round(0.2 * RATE)
    assert third.speech_start == second.speech_start + round(0.1 * RATE)
    for one in (first, second, third):
        loud = np.flatnonzero(np.abs(one.samples) > decibels(SPEECH_FLOOR_DBFS))
        assert (
            one.speech_start == one.start_sample + loud[0]
            and one.speech_end == one.start_sample + loud[-1] + 1
        )
        assert one.words[0].start_s == pytest.approx(one.start_sample / RATE + 0.02)
        active = one.samples[320 : len(one.samples) - 480]
        level = 20.0 * math.log10(float(np.sqrt(np.mean(active**2))))
        assert level == pytest.approx(SPEECH_DBFS_AT_ONE_METRE, abs=0.3)


def test_a_line_before_the_recording_is_refused() -> None:
    data = short_data()
    data["lines"][1] |= {"gap_s": -5.0}
    script = Script.model_validate(data)
    with pytest.raises(ScriptError, match=r"line u2 would begin \d\.\d\d s before the recording"):
        place(script, short_clips(script))


@pytest.mark.parametrize("form", ["seats", "pair"])
def test_every_microphone_hears_a_line_when_geometry_says(form: Literal["seats", "pair"]) -> None:
    lines = short_data()["lines"][:1]
    script = quiet(lines=lines, gestures=[], truth={}, slides=[])
    heard = render(script, short_clips(script), form)
    said = heard.placed[0]
    assert len(heard.paths) == 4
    for place_ in heard.placements:
        signal = heard.devices[place_.device][place_.channel]
        path = heard.path("Anna", place_.device, place_.channel)
        assert path.distance_m == pytest.approx(math.dist((1.8, 1.2, 1.2), place_.microphone.position_m))
        expected = said.start_sample + path.distance_m / SPEED_OF_SOUND_M_S * RATE
        assert lag(signal, said.samples) == pytest.approx(expected, abs=0.05)
        gain = float(np.sqrt(np.sum(signal**2) / np.sum(said.samples**2)))
        assert gain == pytest.approx(decibels(place_.microphone.gain_db) / path.distance_m, rel=0.02)


def test_the_forms_have_the_devices_they_promise() -> None:
    script = short_script()
    clips = short_clips(script)
    seats, pair, mix = (render(script, clips, form) for form in ("seats", "pair", "mix"))
    assert {device: signal.shape[0] for device, signal in seats.devices.items()} == {"mic-1": 1, "mic-2": 1}
    assert {device: signal.shape[0] for device, signal in pair.devices.items()} == {"table": 2}
    assert list(mix.devices) == ["mix"] and seats.samples == pair.samples == mix.samples
    both = seats.devices["mic-1"] + seats.devices["mic-2"]
    assert np.allclose(mix.devices["mix"], 0.7 * both)
    assert seats.samples % (RATE // 10) == 0
    # Whoever sits at a microphone is its loudest talker.
    own = slice(seats.placed[0].speech_start, seats.placed[0].speech_start + RATE // 4)
    assert np.std(seats.devices["mic-1"][0, own]) > 2.0 * np.std(seats.devices["mic-2"][0, own])


def test_the_pair_is_turned_so_that_seats_can_be_told_apart() -> None:
    seats = {
        "A": {"mouth_m": [1.8, 1.2, 1.2]}, "B": {"mouth_m": [3.2, 1.2, 1.2]},
        "C": {"mouth_m": [1.8, 2.8, 1.2]}, "D": {"mouth_m": [3.2, 2.8, 1.2]},
    }  # fmt: skip
    names = ("Anna", "Ben", "Cora", "Dan")
    people = [{"name": n, "seat": s, "voice": "slt"} for n, s in zip(names, "ABCD", strict=True)]
    script = short_script(attendees=people, room=short_data()["room"] | {"seats": seats})
    first, second = pair_places(middle_pair(script))
    assert math.dist(first, second) == pytest.approx(0.3, abs=1e-3)
    mouths = [script.room.seats[s].mouth_m for s in "ABCD"]
    delays = sorted((math.dist(m, second) - math.dist(m, first)) / SPEED_OF_SOUND_M_S * RATE for m in mouths)
    assert min(b - a for a, b in pairwise(delays)) > 3.0  # samples at 16 kHz


def test_a_pair_and_microphones_stand_where_the_script_says() -> None:
    pair = Pair(centre_m=(2.0, 2.0, 0.8), spacing_m=0.4, angle_deg=90.0)
    assert pair_places(pair) == ((2.0, 1.8, 0.8), (2.0, 2.2, 0.8))
    room = short_data()["room"] | {"pair": pair.model_dump()}
    room["seats"]["B"] |= {"microphone_m": [3.0, 2.0, 0.9]}
    script = short_script(room=room)
    assert [p.microphone.position_m[1] for p in placements_of(script, "pair")] == [1.8, 2.2]
    first, second = placements_of(script, "seats")
    assert second.microphone.position_m == (3.0, 2.0, 0.9) and second.microphone.gain_db == -2.0
    # 0.3 m towards the middle of the seats and 0.15 m below the mouth.
    assert math.dist(first.microphone.position_m[:2], (1.8, 1.2)) == pytest.approx(0.3, abs=1e-3)
    assert first.microphone.position_m[2] == pytest.approx(1.05)


def test_a_microphone_that_would_clip_is_named() -> None:
    room = short_data()["room"]
    room["seats"]["B"] |= {"gain_db": 60}
    script = short_script(room=room)
    with pytest.raises(ScriptError, match=r"mic-2 would clip \(peak \d+\.\d\d\): lower its gain_db"):
        render(script, short_clips(script), "seats")


def test_the_beep_of_a_flash_is_heard() -> None:
    script = quiet(flash={"at_s": 0.1, "position_m": [1.0, 1.0, 1.0]}, lead_in_s=0.6)
    heard = render(script, short_clips(script), "seats")
    signal = heard.devices["mic-1"][0]
    away = math.dist((1.0, 1.0, 1.0), heard.placements[0].microphone.position_m) / SPEED_OF_SOUND_M_S
    loud = np.flatnonzero(np.abs(signal[: round(0.5 * RATE)]) > 1e-4) / RATE
    assert loud[0] == pytest.approx(0.1 + away, abs=1e-3)
    assert loud[-1] == pytest.approx(0.1 + away + BEEP_S, abs=1e-3)
