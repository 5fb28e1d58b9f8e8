"""Builds the sample meeting: a script becomes four microphones, a slide video, room.json and truth.json.

    python -m devices.sample_meeting --out devices/sample

The built files are in the repository; only who changes the script needs the tools (flite, the piper voice
joe, the DejaVu fonts, Pillow). The same script and the same tool versions give the same bytes.

room.json, one folder = one room:

    meeting_id, title, date (ISO), start_time (ISO 8601, UTC), start_ns (PTP/TAI of sample 0 of every file),
    attendees     [{name, role, seat}]
    seats         {seat: {mouth_m: [x, y, z], microphone_m: [x, y, z]}}   metres from one corner of the floor
    devices       {device: {file, modality "audio", seat, speaker}, slides: {file, modality "video", role}}
    channel_map   [{device, channel, speaker}]
    agenda, key_topics  [str];  language "en"

truth.json; times in seconds from sample 0 of every file:

    meeting_id, title, date, start_ns, attendees, sample_rate_hz, speech_floor_dbfs, word_times
    utterances    [{id, speaker, device, start_sample, end_sample, start_s, end_s, text, words, backchannel}]
                  start_sample is the first sample of the direct sound at the talker's own microphone whose
                  magnitude is above speech_floor_dbfs, end_sample one past the last;
                  words [{start_s, end_s, text}]
    decisions, open_questions, withdrawn [{text, evidence}];  answered_questions [{text, answer, evidence}]
    action_items  [{text, owner, owner_kind, due, due_text, evidence}];  traps [{why, evidence}]
    slides        [{start_s, end_s, text, lines: [{text, box}], build}]
                  build: the slide before with more on it; box in pixels.  evidence: utterance ids
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import yaml

from contracts.leap_seconds import tai_from_utc_ns
from devices import sample_slides
from devices.acoustics import Microphone, PlacedClip, Point, Room, Signal, decibels, delayed, direct_path, mix
from devices.sample_voices import Clip, MissingTool, missing_tools, synthesise

SAMPLE_RATE_HZ = 16_000
SPEECH_DBFS_AT_ONE_METRE = -34.0
"""RMS over a clip's words; a microphone 29 cm away hears it at about -23 dBFS."""
SPEECH_FLOOR_DBFS = -50.0
"""About 15 dB above a microphone's noise: what lies below is not audible as the edge of a word."""
ITEM_LISTS = ("decisions", "action_items", "open_questions", "answered_questions", "withdrawn", "traps")


@dataclass(frozen=True)
class Placed:
    """One line of the script in the room; samples count from the start of the recording."""

    line: Mapping[str, Any]
    device: str
    clip: Clip
    clip_start: int
    speech_start: int
    speech_end: int
    mouth_delay: int


@dataclass(frozen=True)
class Seat:
    """Where one attendee sits and what stands in front of them."""

    name: str
    device: str
    voice: str
    mouth_m: Point
    microphone: Microphone


def build(script: Mapping[str, Any], out: Path) -> None:
    """Write the whole room into `out`.

    Raises MissingTool, and ValueError for a script that contradicts itself.
    """
    seats = read_seats(script)
    placed = place_lines(script, seats)
    end_s = max(p.speech_end for p in placed) / SAMPLE_RATE_HZ + script["lead_out_s"]
    frames = round(end_s * sample_slides.FRAMES_PER_SECOND)
    samples = frames * SAMPLE_RATE_HZ // sample_slides.FRAMES_PER_SECOND
    write_sound(script, seats, placed, samples, out)
    slides = [sample_slides.draw_slide(s) for s in script["slides"]]
    first_frames = slide_frames(script, placed)
    sample_slides.write_video(out / "slides.mp4", slides, first_frames, frames)
    write_json(out / "room.json", room_document(script, seats))
    write_json(out / "truth.json", truth_document(script, placed, slides, first_frames, frames))


def read_seats(script: Mapping[str, Any]) -> dict[str, Seat]:
    """The seats of the script by attendee, in the order of the attendees."""
    seats: dict[str, Seat] = {}
    for person in script["attendees"]:
        place = script["room"]["seats"][person["seat"]]
        microphone = Microphone(_point(place["microphone_m"]), place["gain_db"], script["room"]["noise_dbfs"])
        seats[person["name"]] = Seat(
            person["name"], person["device"], person["voice"], _point(place["mouth_m"]), microphone
        )
    return seats


def place_lines(script: Mapping[str, Any], seats: Mapping[str, Seat]) -> list[Placed]:
    """Synthesise every line and find its place: `gap_s` after the end of the latest-ending line before it."""
    placed: list[Placed] = []
    latest_end = round(script["lead_in_s"] * SAMPLE_RATE_HZ)
    for line in script["lines"]:
        seat = seats[line["speaker"]]
        clip = synthesise(
            seat.voice, line["text"], SAMPLE_RATE_HZ, say=line.get("say"), pace=line.get("pace", 1.0)
        )
        clip = levelled(clip)
        path = direct_path(seat.mouth_m, seat.microphone, SAMPLE_RATE_HZ)
        first, end = speech_bounds(delayed(clip.samples, path))
        speech_start = latest_end + round(line.get("gap_s", 0.0) * SAMPLE_RATE_HZ)
        start = speech_start - first
        placed.append(
            Placed(line, seat.device, clip, start, speech_start, start + end, round(path.delay_samples))
        )
        latest_end = max(latest_end, start + end)
    return placed


def levelled(clip: Clip) -> Clip:
    """The clip with the RMS of its words at SPEECH_DBFS_AT_ONE_METRE."""
    spans = [
        clip.samples[round(w.start_s * clip.sample_rate_hz) : round(w.end_s * clip.sample_rate_hz)]
        for w in clip.words
    ]
    level = float(np.sqrt(np.mean(np.concatenate(spans) ** 2)))
    return Clip(clip.samples * (decibels(SPEECH_DBFS_AT_ONE_METRE) / level), clip.sample_rate_hz, clip.words)


def speech_bounds(samples: Signal) -> tuple[int, int]:
    """First sample above SPEECH_FLOOR_DBFS and one past the last."""
    loud = np.flatnonzero(np.abs(samples) > decibels(SPEECH_FLOOR_DBFS))
    if not len(loud):
        raise ValueError("a clip has no sample above the speech floor")
    return int(loud[0]), int(loud[-1]) + 1


def write_sound(
    script: Mapping[str, Any], seats: Mapping[str, Seat], placed: Sequence[Placed], samples: int, out: Path
) -> None:
    """One FLAC file for each microphone: 16 kHz, mono, 16 bit."""
    shape = script["room"]
    room = Room(_point(shape["size_m"]), shape["wall_reflection"], shape["tail_db"], shape["tail_decay_s"])
    clips = [PlacedClip(p.clip.samples, p.clip_start, seats[p.line["speaker"]].mouth_m) for p in placed]
    microphones = [seat.microphone for seat in seats.values()]
    heard = mix(clips, microphones, room, samples=samples, sample_rate_hz=SAMPLE_RATE_HZ, seed=script["seed"])
    peak = float(np.max(np.abs(heard)))
    if peak >= 1.0:
        raise ValueError(f"the mix would clip (peak {peak:.2f}): lower SPEECH_DBFS_AT_ONE_METRE or a gain")
    for seat, signal in zip(seats.values(), heard, strict=True):
        write_flac(out / f"{seat.device}.flac", signal)


def write_flac(path: Path, signal: Signal) -> None:
    """Samples in -1..1, shape (samples,), as 16-bit FLAC."""
    pcm = np.clip(np.round(signal * 32768.0), -32768, 32767).astype(np.int16)
    with av.open(str(path), "w", format="flac", options={"fflags": "+bitexact"}) as file:
        stream = file.add_stream("flac", rate=SAMPLE_RATE_HZ, layout="mono", format="s16")
        stream.codec_context.options = {"compression_level": "12", "flags": "+bitexact"}
        for start in range(0, len(pcm), 4096):
            frame = av.AudioFrame.from_ndarray(
                pcm[np.newaxis, start : start + 4096], format="s16", layout="mono"
            )
            frame.sample_rate = SAMPLE_RATE_HZ
            frame.pts = start
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def slide_frames(script: Mapping[str, Any], placed: Sequence[Placed]) -> list[int]:
    """The first frame of every slide, increasing, beginning with 0."""
    starts = {p.line["id"]: p.speech_start / SAMPLE_RATE_HZ for p in placed}
    frames = [
        round((starts[s["before"]] - s["lead_s"]) * sample_slides.FRAMES_PER_SECOND) if "before" in s else 0
        for s in script["slides"]
    ]
    if frames[0] != 0 or any(b <= a for a, b in pairwise(frames)):
        raise ValueError(f"slides must begin at frame 0 and follow each other, not {frames}")
    return frames


def room_document(script: Mapping[str, Any], seats: Mapping[str, Seat]) -> dict[str, Any]:
    """The content of room.json; its keys are described at the top of this module."""
    people = {person["name"]: person for person in script["attendees"]}
    devices: dict[str, dict[str, str]] = {
        seat.device: {
            "file": f"{seat.device}.flac", "modality": "audio", "seat": people[name]["seat"], "speaker": name,
        }
        for name, seat in seats.items()
    }  # fmt: skip
    devices["slides"] = {"file": "slides.mp4", "modality": "video", "role": "slides"}
    return {
        "meeting_id": script["meeting_id"],
        "title": script["title"],
        "date": script["date"],
        "start_time": script["start_time"],
        "start_ns": start_ns(script),
        "attendees": [{key: p[key] for key in ("name", "role", "seat")} for p in script["attendees"]],
        "seats": {
            people[name]["seat"]: {"mouth_m": seat.mouth_m, "microphone_m": seat.microphone.position_m}
            for name, seat in seats.items()
        },
        "devices": devices,
        "channel_map": [
            {"device": seat.device, "channel": 0, "speaker": name} for name, seat in seats.items()
        ],
        "agenda": script["agenda"],
        "key_topics": script["key_topics"],
        "language": "en",
    }


def truth_document(
    script: Mapping[str, Any],
    placed: Sequence[Placed],
    slides: Sequence[sample_slides.Slide],
    first_frames: Sequence[int],
    frames: int,
) -> dict[str, Any]:
    """The content of truth.json; its keys are described at the top of this module."""
    known = {p.line["id"] for p in placed}
    items = script["truth"]
    for kind in ITEM_LISTS:
        unknown = {e for item in items[kind] for e in item["evidence"]} - known
        if unknown:
            raise ValueError(f"{kind} name utterances that do not exist: {sorted(unknown)}")
    rate = sample_slides.FRAMES_PER_SECOND
    ends = [*first_frames[1:], frames]
    return {
        "meeting_id": script["meeting_id"],
        "title": script["title"],
        "date": script["date"],
        "start_ns": start_ns(script),
        "attendees": [{key: p[key] for key in ("name", "role")} for p in script["attendees"]],
        "sample_rate_hz": SAMPLE_RATE_HZ,
        "speech_floor_dbfs": SPEECH_FLOOR_DBFS,
        "word_times": "phone times of the synthesiser",
        "utterances": [_utterance(p) for p in sorted(placed, key=lambda p: (p.speech_start, p.line["id"]))],
        **{kind: items[kind] for kind in ITEM_LISTS},
        "slides": [
            {
                "start_s": round(start / rate, 6),
                "end_s": round(end / rate, 6),
                "text": "\n".join(line.text for line in slide.lines),
                "lines": [{"text": line.text, "box": line.box} for line in slide.lines],
                "build": bool(description.get("build", False)),
            }
            for description, slide, start, end in zip(
                script["slides"], slides, first_frames, ends, strict=True
            )
        ],
    }


def start_ns(script: Mapping[str, Any]) -> int:
    """PTP time (TAI) of sample 0."""
    return tai_from_utc_ns(int(datetime.fromisoformat(script["start_time"]).timestamp()) * 1_000_000_000)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Readable JSON with a final newline."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _utterance(placed: Placed) -> dict[str, Any]:
    offset = placed.clip_start + placed.mouth_delay
    return {
        "id": placed.line["id"],
        "speaker": placed.line["speaker"],
        "device": placed.device,
        "start_sample": placed.speech_start,
        "end_sample": placed.speech_end,
        "start_s": placed.speech_start / SAMPLE_RATE_HZ,
        "end_s": placed.speech_end / SAMPLE_RATE_HZ,
        "text": placed.line["text"],
        "words": [
            {
                "start_s": round(offset / SAMPLE_RATE_HZ + word.start_s, 4),
                "end_s": round(offset / SAMPLE_RATE_HZ + word.end_s, 4),
                "text": word.text,
            }
            for word in placed.clip.words
        ],
        "backchannel": bool(placed.line.get("backchannel", False)),
    }


def _point(values: Sequence[float]) -> Point:
    x, y, z = values
    return (float(x), float(y), float(z))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when built, 2 with one line for each missing tool or a fault in the script."""
    parser = argparse.ArgumentParser(
        prog="python -m devices.sample_meeting", description="Builds the sample meeting."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder the room is written into")
    parser.add_argument("--script", type=Path, default=Path(__file__).parent / "sample" / "script.yaml")
    options = parser.parse_args(arguments)
    script = yaml.safe_load(options.script.read_text(encoding="utf-8"))
    missing = missing_tools([p["voice"] for p in script["attendees"]]) + sample_slides.missing_fonts()
    if missing:
        print("\n".join(missing), file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        build(script, options.out)
    except (MissingTool, ValueError) as fault:
        print(f"{options.script}: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
