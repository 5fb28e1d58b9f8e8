"""Sound without speech, made by formula: what a recogniser must write nothing for.

Every kind is a function of its seed, so nothing has to be recorded or licensed. They are imitations, and meant to be:
laughter, applause and music are built from the same envelopes and spectra as the real ones, not sampled from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

RATE_HZ: Final = 16_000

Signal = npt.NDArray[np.float64]
_Chance = np.random.Generator


def noise(kind: str, seconds: float, seed: int) -> npt.NDArray[np.float32]:
    """Sound of a kind, shape (seconds * 16000,), mono at 16 kHz, its peak between -40 and -3 dB of full scale.

    Raises:
        KeyError: no such kind; `KINDS` names them.
    """
    chance = np.random.default_rng([seed, *kind.encode()])
    samples = round(seconds * RATE_HZ)
    made = KINDS[kind](samples, chance)[:samples]
    peak = float(np.max(np.abs(made)))
    if peak > 0.0:
        made = made / peak * 10.0 ** (chance.uniform(-40.0, -3.0) / 20.0)
    return made.astype(np.float32)


def _silence(samples: int, chance: _Chance) -> Signal:
    del chance
    return np.zeros(samples)


def _hiss(samples: int, chance: _Chance) -> Signal:
    return _coloured(samples, chance, chance.uniform(-0.3, 0.6))


def _rumble(samples: int, chance: _Chance) -> Signal:
    return _coloured(samples, chance, 2.0)


def _coloured(samples: int, chance: _Chance, slope: float) -> Signal:
    """Noise whose power falls with frequency to the power of `slope`."""
    spectrum = np.fft.rfft(chance.standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1.0 / RATE_HZ)
    spectrum *= (np.maximum(hertz, 20.0) / 1000.0) ** (-slope / 2.0)
    spectrum[hertz < 20.0] = 0.0
    return np.asarray(np.fft.irfft(spectrum, samples))


def _band(samples: int, chance: _Chance, low_hz: float, high_hz: float) -> Signal:
    spectrum = np.fft.rfft(chance.standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1.0 / RATE_HZ)
    spectrum *= np.exp(-np.square(np.log2(np.maximum(hertz, 1.0) / np.sqrt(low_hz * high_hz))) * 2.0)
    return np.asarray(np.fft.irfft(spectrum, samples))


def _time(samples: int) -> Signal:
    return np.asarray(np.arange(samples) / RATE_HZ)


def _hum(samples: int, chance: _Chance) -> Signal:
    time_s, mains_hz = _time(samples), chance.choice([50.0, 60.0])
    parts = [
        chance.uniform(0.1, 1.0)
        / order
        * np.sin(2 * np.pi * mains_hz * order * time_s + chance.uniform(0, 6.3))
        for order in (1, 2, 3, 4, 5, 6, 8, 10, 12)
    ]
    return np.asarray(np.sum(parts, axis=0) + 0.02 * chance.standard_normal(samples))


def _fan(samples: int, chance: _Chance) -> Signal:
    """Air with the slow beat of blades, and the motor's tone."""
    time_s, blades_hz = _time(samples), chance.uniform(15.0, 45.0)
    beat = 1.0 + 0.25 * np.sin(2 * np.pi * blades_hz * time_s)
    motor = 0.1 * np.sin(2 * np.pi * blades_hz * 6.0 * time_s)
    air = _coloured(samples, chance, 1.2)
    return np.asarray(air / np.std(air) * 0.3 * beat + motor)


def _placed(samples: int, starts: npt.NDArray[np.int64], make: Callable[[], Signal]) -> Signal:
    made = np.zeros(samples)
    for start in starts:
        one = make()[: samples - start]
        made[start : start + len(one)] += one
    return made


def _starts(samples: int, chance: _Chance, per_s: float) -> npt.NDArray[np.int64]:
    count = max(1, chance.poisson(per_s * samples / RATE_HZ))
    return np.sort(chance.integers(0, samples, count))


def _burst(chance: _Chance, length_s: float, low_hz: float, high_hz: float) -> Signal:
    samples = max(64, round(length_s * RATE_HZ))
    fall = np.exp(-5.0 * np.arange(samples) / samples)
    return np.asarray(_band(samples, chance, low_hz, high_hz) * fall * chance.uniform(0.3, 1.0))


def _applause(samples: int, chance: _Chance) -> Signal:
    swell = np.interp(np.arange(samples), [0, 0.1 * samples, 0.6 * samples, samples], [0.1, 1.0, 0.8, 0.05])
    claps = _placed(samples, _starts(samples, chance, 60.0), lambda: _burst(chance, 0.03, 800.0, 3000.0))
    return np.asarray(claps * swell)


def _keyboard(samples: int, chance: _Chance) -> Signal:
    keys = _placed(samples, _starts(samples, chance, 5.0), lambda: _burst(chance, 0.02, 1500.0, 5000.0))
    return np.asarray(keys + 0.004 * chance.standard_normal(samples))


def _paper(samples: int, chance: _Chance) -> Signal:
    crackle = _placed(samples, _starts(samples, chance, 40.0), lambda: _burst(chance, 0.01, 2000.0, 7000.0))
    moves = np.clip(np.sin(2 * np.pi * 0.4 * _time(samples) + chance.uniform(0, 6.3)), 0.0, 1.0)
    return np.asarray((crackle + 0.1 * chance.standard_normal(samples)) * moves)


def _door(samples: int, chance: _Chance) -> Signal:
    slams = _placed(samples, _starts(samples, chance, 0.3), lambda: _burst(chance, 0.35, 60.0, 400.0))
    steps = _placed(samples, _starts(samples, chance, 1.5), lambda: 0.2 * _burst(chance, 0.06, 100.0, 900.0))
    return np.asarray(slams + steps + 0.002 * chance.standard_normal(samples))


def _laughter(samples: int, chance: _Chance) -> Signal:
    """Bouts of "ha": five voiced bursts a second with falling pitch, no consonants and no words."""
    made = np.zeros(samples)
    position = round(chance.uniform(0.2, 1.0) * RATE_HZ)
    while position < samples:
        pitch_hz = chance.uniform(160.0, 380.0)
        for number in range(int(chance.integers(3, 9))):
            one = _ha(chance, pitch_hz * 0.96**number) * 0.85**number
            end = min(samples, position + len(one))
            made[position:end] += one[: max(0, end - position)]
            position += round(chance.uniform(0.17, 0.23) * RATE_HZ)
            if position >= samples:
                break
        position += round(chance.uniform(1.0, 3.0) * RATE_HZ)
    return made + 0.002 * chance.standard_normal(samples)


def _ha(chance: _Chance, pitch_hz: float) -> Signal:
    """One voiced burst: harmonics under one broad formant, breath before it."""
    samples = round(0.13 * RATE_HZ)
    time_s = _time(samples)
    voice = np.zeros(samples)
    for order in range(1, 16):
        hertz = pitch_hz * order
        if hertz < 4000.0:
            weight = np.exp(-np.square((hertz - 900.0) / 700.0)) + 0.1
            voice += weight * np.sin(2 * np.pi * hertz * time_s)
    breath = chance.standard_normal(samples) * 0.8
    return np.asarray((0.7 * voice + breath) * np.hanning(samples) / 4.0)


_SCALE: Final = (0, 2, 4, 5, 7, 9, 11)


def _tone(hertz: float, length: int, overtones: int) -> Signal:
    time_s = _time(length)
    parts = [np.sin(2 * np.pi * hertz * k * time_s) / k**1.5 for k in range(1, overtones + 1)]
    return np.asarray(np.sum(parts, axis=0) * np.exp(-2.5 * time_s))


def _music(samples: int, chance: _Chance) -> Signal:
    """Chords that change each second, a melody over them and a beat."""
    made, root_hz = np.zeros(samples), chance.uniform(100.0, 180.0)
    step = round(chance.uniform(0.2, 0.4) * RATE_HZ)
    for number, start in enumerate(range(0, samples, step)):
        length = min(step * 2, samples - start)
        degree = int(chance.integers(0, 7))
        made[start : start + length] += _tone(root_hz * 2 ** (2 + _SCALE[degree] / 12), length, 6)
        if number % 4 == 0:
            long = min(step * 4, samples - start)
            for third in (0, 2, 4):
                note = degree + third
                made[start : start + long] += 0.5 * _tone(
                    root_hz * 2 ** (1 + note // 7 + _SCALE[note % 7] / 12), long, 4
                )
        if number % 2 == 0:
            beat = _burst(chance, 0.1, 60.0, 250.0)[: samples - start]
            made[start : start + len(beat)] += beat
    return made


def _phone(samples: int, chance: _Chance) -> Signal:
    """A bell of two tones, two seconds in six, as telephones ring."""
    time_s, low_hz = _time(samples), chance.uniform(420.0, 900.0)
    warble = np.where((time_s * 20.0) % 1.0 < 0.5, low_hz, low_hz * 1.25)
    ringing = (time_s + chance.uniform(0, 6.0)) % 6.0 < 2.0
    return np.asarray(np.sin(2 * np.pi * np.cumsum(warble) / RATE_HZ) * ringing)


def _dial_tone(samples: int, chance: _Chance) -> Signal:
    """Continuous dial tone, then the pairs of tones of keys being pressed (ITU-T Q.23)."""
    time_s = _time(samples)
    tone = np.sin(2 * np.pi * 350.0 * time_s) + np.sin(2 * np.pi * 440.0 * time_s)
    keys = ((697, 1209), (770, 1336), (852, 1477), (941, 1336))
    for start in _starts(samples, chance, 0.8):
        low_hz, high_hz = keys[int(chance.integers(0, len(keys)))]
        part = slice(start, start + round(0.15 * RATE_HZ))
        tone[part] = np.sin(2 * np.pi * low_hz * time_s[part]) + np.sin(2 * np.pi * high_hz * time_s[part])
    return np.asarray(tone)


def _cough(samples: int, chance: _Chance) -> Signal:
    coughs = _placed(samples, _starts(samples, chance, 0.5), lambda: _burst(chance, 0.3, 300.0, 2500.0))
    return np.asarray(coughs + 0.002 * chance.standard_normal(samples))


KINDS: Final[Mapping[str, Callable[[int, _Chance], Signal]]] = {
    "silence": _silence, "hiss": _hiss, "rumble": _rumble, "hum": _hum, "fan": _fan, "music": _music,
    "applause": _applause, "keyboard": _keyboard, "laughter": _laughter, "cough": _cough, "door": _door,
    "paper": _paper, "phone": _phone, "dial tone": _dial_tone,
}  # fmt: skip
"""Every kind of sound without speech."""
