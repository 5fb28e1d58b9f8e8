"""What is known about a rendered room: the contents of room.json and truth.json.

`room_document` is what a device publisher may know; its fields are those of `devices/room.py`. `truth_document`:

    meeting_id, title, kind, date, start_ns, form, duration_s, rt60_s, attendees [{name, role, present}]
    sample_rate_hz, speech_floor_dbfs, word_times
    utterances    [{id, speaker, device, start_sample, end_sample, start_s, end_s, text, words, backchannel, overlaps,
                    items}]   times at the mouth, from sample 0 of every file; `device` is the microphone of the talker's
                  seat, or the only device; words [{start_s, end_s, text}]; overlaps: ids of lines that sound at the same
                  time; items [{kind, index}]: where the lists below name the line as evidence
    paths         [{speaker, device, channel, distance_m, delay_s}]   a microphone hears the mouth delay_s later;
                  of the mixed track one for each microphone in it
    microphones   [{device, channel, position_m, gain_db}]
    decisions, open_questions, withdrawn [{text, evidence, from_slide, from_camera}];  answered_questions, with an answer;
    action_items  [{text, owner, owner_kind, due, due_text, evidence, ...}];  traps [{why, evidence}]
                  from_slide {field: index in slides}: what only a slide tells; from_camera [field]: what only the
                  camera tells
    slides        [{start_s, end_s, text, lines [{text, box}], build, number, again, theme}]   boxes in pixels; a page
                  that scrolls is two entries, and its movement lies between them
    slide_events  [{at_s, end_s, kind: first | change | build | again | scroll, number}]
    gestures      [{who, kind, start_s, end_s}];  flash {at_s, end_s} or null
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from contracts.leap_seconds import tai_from_utc_ns
from devices.rooms.render import BEEP_S, Rendered
from devices.rooms.screen import FLASH_FRAMES, Shown, TextLine
from devices.rooms.script import Item, Script
from devices.rooms.timing import FRAMES_PER_SECOND, SPEECH_FLOOR_DBFS, Placed


def start_ns(script: Script) -> int:
    """PTP time (TAI) of sample 0."""
    return tai_from_utc_ns(int(script.start_time.timestamp()) * 1_000_000_000)


def room_document(heard: Rendered, *, slides: bool) -> dict[str, Any]:
    """The content of room.json."""
    script = heard.script
    microphones = {p.seat: p.microphone.position_m for p in heard.placements if p.seat is not None}
    devices: dict[str, dict[str, Any]] = {}
    for device in heard.devices:
        own = [p for p in heard.placements if p.device == device]
        devices[device] = {"file": f"{device}.flac", "modality": "audio"}
        if own and own[0].seat is not None:
            devices[device] |= {"seat": own[0].seat, "speaker": _sitting(script, own[0].seat)}
        if own:
            devices[device]["microphones_m"] = [p.microphone.position_m for p in own]
    devices["camera"] = {"file": "camera.mp4", "modality": "video", "role": "camera"}
    if slides:
        devices["slides"] = {"file": "slides.mp4", "modality": "video", "role": "slides"}
    return {
        "meeting_id": script.meeting_id,
        "title": script.title,
        "date": script.date.isoformat(),
        "start_time": script.start_time.isoformat(),
        "start_ns": start_ns(script),
        "attendees": [
            person.model_dump(include={"name", "role", "seat"}, exclude_none=True)
            for person in script.attendees
        ],
        "seats": {
            person.seat: {"mouth_m": script.room.seats[person.seat].mouth_m}
            | ({"microphone_m": microphones[person.seat]} if heard.form == "seats" else {})
            for person in script.seated
            if person.seat is not None
        },
        "devices": devices,
        "channel_map": [
            {"device": p.device, "channel": p.channel, "speaker": _sitting(script, p.seat)}
            for p in heard.placements
            if p.seat is not None and heard.form == "seats"
        ],
        "agenda": list(script.agenda),
        "key_topics": list(script.key_topics),
        "language": "en",
    }


def truth_document(heard: Rendered, shown: tuple[Shown, ...]) -> dict[str, Any]:
    """The content of truth.json."""
    script = heard.script
    starts = {p.line.id: p.speech_start / heard.sample_rate_hz for p in heard.placed}
    ordered = sorted(heard.placed, key=lambda p: (p.speech_start, p.line.id))
    slides = [part for part in shown if part.offset_from == part.offset_to]
    flash = script.flash
    return {
        "meeting_id": script.meeting_id,
        "title": script.title,
        "kind": script.kind,
        "date": script.date.isoformat(),
        "start_ns": start_ns(script),
        "form": heard.form,
        "duration_s": heard.samples / heard.sample_rate_hz,
        "rt60_s": script.room.rt60_s,
        "attendees": [
            {"name": person.name, "role": person.role, "present": person.seat is not None}
            for person in script.attendees
        ],
        "sample_rate_hz": heard.sample_rate_hz,
        "speech_floor_dbfs": SPEECH_FLOOR_DBFS,
        "word_times": "phone times of the synthesiser, at the mouth",
        "utterances": [_utterance(heard, placed) for placed in ordered],
        "paths": [
            {
                "speaker": path.speaker, "device": path.device, "channel": path.channel,
                "distance_m": round(path.distance_m, 6), "delay_s": round(path.delay_s, 9),
            }
            for path in heard.paths
        ],
        "microphones": [
            {
                "device": p.device, "channel": p.channel, "position_m": p.microphone.position_m,
                "gain_db": p.microphone.gain_db,
            }
            for p in heard.placements
        ],
        **_items(script, slides),
        "slides": [_slide(script, part) for part in slides],
        "slide_events": _slide_events(shown),
        "gestures": [
            {
                "who": g.who, "kind": g.kind, "start_s": round(starts[g.line] + g.offset_s, 6),
                "end_s": round(starts[g.line] + g.offset_s + g.length_s, 6),
            }
            for g in script.gestures
        ],
        "flash": None if flash is None else {
            "at_s": flash_frame(script) / FRAMES_PER_SECOND,
            "end_s": (flash_frame(script) + FLASH_FRAMES) / FRAMES_PER_SECOND,
            "beep_s": flash.at_s, "beep_end_s": flash.at_s + BEEP_S, "position_m": flash.position_m,
        },
    }  # fmt: skip


def flash_frame(script: Script) -> int:
    """The first frame of the flash; a flash is wanted on a frame's own time."""
    return 0 if script.flash is None else round(script.flash.at_s * FRAMES_PER_SECOND)


def _sitting(script: Script, seat: str | None) -> str:
    return next(person.name for person in script.seated if person.seat == seat)


def _utterance(heard: Rendered, placed: Placed) -> dict[str, Any]:
    rate, line = heard.sample_rate_hz, placed.line
    seat = heard.script.person(line.speaker).seat
    device = next((p.device for p in heard.placements if p.seat == seat), "table")
    overlaps = [
        other.line.id
        for other in heard.placed
        if other is not placed
        and other.speech_start < placed.speech_end
        and placed.speech_start < other.speech_end
    ]
    counted: dict[str, int] = {}
    items: list[dict[str, Any]] = []
    for kind, item in heard.script.truth.listed():
        index = counted.get(kind, 0)
        counted[kind] = index + 1
        if line.id in item.evidence:
            items.append({"kind": kind, "index": index})
    return {
        "id": line.id,
        "speaker": line.speaker,
        "device": "mix" if heard.form == "mix" else device,
        "start_sample": placed.speech_start,
        "end_sample": placed.speech_end,
        "start_s": placed.speech_start / rate,
        "end_s": placed.speech_end / rate,
        "text": line.written,
        "words": [
            {"start_s": round(word.start_s, 4), "end_s": round(word.end_s, 4), "text": word.text}
            for word in placed.words
        ],
        "backchannel": line.backchannel,
        "overlaps": overlaps,
        "items": items,
    }


def _items(script: Script, slides: list[Shown]) -> dict[str, Any]:
    numbers = {slide.id: number for number, slide in enumerate(script.slides) if slide.show is None}
    lists: dict[str, Any] = {kind: [] for kind in type(script.truth).model_fields}
    for kind, item in script.truth.listed():
        entry = item.model_dump(mode="json")
        if isinstance(item, Item):
            # The index among the entries of the truth, not among those of the script.
            entry["from_slide"] = {
                field: next(i for i, part in enumerate(slides) if part.number == numbers[name])
                for field, name in item.from_slide.items()
            }
        lists[kind].append(entry)
    return lists


def _slide(script: Script, part: Shown) -> dict[str, Any]:
    lines: tuple[TextLine, ...] = part.slide.visible(part.offset_from)
    return {
        "start_s": round(part.start_frame / FRAMES_PER_SECOND, 6),
        "end_s": round(part.end_frame / FRAMES_PER_SECOND, 6),
        "text": "\n".join(line.text for line in lines),
        "lines": [{"text": line.text, "box": line.box} for line in lines],
        "build": part.build,
        "number": part.number,
        "again": part.again,
        "theme": script.slides[part.number].theme,
    }


def _slide_events(shown: tuple[Shown, ...]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for before, part in pairwise((None, *shown)):
        at_s = round(part.start_frame / FRAMES_PER_SECOND, 6) if part is not None else 0.0
        if part is None:
            continue
        if part.offset_from != part.offset_to:
            kind, end_s = "scroll", round(part.end_frame / FRAMES_PER_SECOND, 6)
        elif before is not None and before.slide is part.slide:
            continue
        else:
            kind = (
                "first" if before is None else "again" if part.again else "build" if part.build else "change"
            )
            end_s = at_s
        events.append({"at_s": at_s, "end_s": end_s, "kind": kind, "number": part.number})
    return events
