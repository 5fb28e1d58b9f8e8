"""A meeting of three lines whose clips are noise, so that no voice is needed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from devices.rooms.script import Script
from devices.rooms.voices import SAMPLE_RATE_HZ
from devices.sample_voices import Clip, Word


def short_script(**changes: Any) -> Script:
    """The meeting with some of its fields replaced."""
    return Script.model_validate(short_data() | changes)


def short_data() -> dict[str, Any]:
    """The meeting as a YAML file would give it."""
    return {
        "meeting_id": "short",
        "title": "Short",
        "kind": "test",
        "date": "2026-03-10",
        "start_time": "2026-03-10T09:00:00Z",
        "seed": 3,
        "lead_in_s": 0.5,
        "lead_out_s": 0.4,
        "attendees": [
            {"name": "Anna", "role": "chair", "seat": "A", "voice": "slt"},
            {"name": "Ben", "seat": "B", "voice": {"name": "joe", "pitch": 0.9}},
            {"name": "Mrs Far"},
        ],
        "agenda": ["Boxes"],
        "room": {
            "size_m": [5.0, 4.0, 2.6],
            "rt60_s": 0.3,
            "seats": {"A": {"mouth_m": [1.8, 1.2, 1.2]}, "B": {"mouth_m": [3.2, 2.6, 1.2], "gain_db": -2}},
        },
        "lines": [
            {"id": "u1", "speaker": "Anna", "text": "Which box [0.5] is it?"},
            {"id": "u2", "speaker": "Ben", "text": "That one.", "gap_s": -0.2},
            {"id": "u3", "speaker": "Anna", "text": "Mm-hm.", "during": "u2", "offset_s": 0.1, "backchannel": True},
        ],
        "slides": [
            {"id": "s1", "kind": "title", "title": "Boxes", "subtitle": "All of them"},
            {"id": "s2", "before": "u2", "lead_s": 0.2, "title": "Price", "bullets": ["Red: 4 €", "Blue: 5 €"]},
        ],
        "gestures": [{"who": "Ben", "kind": "raise_hand", "line": "u2", "length_s": 0.8}],
        "truth": {
            "decisions": [{"text": "The blue box for 5 €", "evidence": ["u2"], "from_slide": {"amount": "s2"}}],
            "open_questions": [{"text": "Which box?", "evidence": ["u1"]}],
        },
    }  # fmt: skip


def short_clips(script: Script) -> Mapping[str, Clip]:
    """Noise of 100 to 4,000 Hz for every line, with silence around it that is no speech."""
    clips: dict[str, Clip] = {}
    for number, line in enumerate(script.lines):
        size = SAMPLE_RATE_HZ * (8 - 2 * number) // 10
        spectrum = np.fft.rfft(np.random.default_rng([9, number]).standard_normal(size))
        hertz = np.fft.rfftfreq(size, 1.0 / SAMPLE_RATE_HZ)
        spectrum[(hertz < 100) | (hertz > 4_000)] = 0.0
        noise = np.fft.irfft(spectrum, size)
        samples = np.concatenate([np.zeros(320), 0.3 * noise / np.max(np.abs(noise)), np.zeros(480)])
        clips[line.id] = Clip(samples, SAMPLE_RATE_HZ, (Word("noise", 0.02, 0.02 + size / SAMPLE_RATE_HZ),))
    return clips
