"""Rendered rooms through a real broker and both flows, with faults of clocks and delivery, against the truth.

H.264, PCM and slides as devices send them, in real time: what the broker stamps is its own. Every room has a broker
and flows of its own: several rooms of video at once are more than the embedded broker takes. Held against the truth are
the clock records of the log, each second of each device, and the times of the evidence in the final minutes.
"""

import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Producer

from contracts.consumer import read_state
from contracts.messages import Calibration, EndOfStream, MeetingEnded
from contracts.minutes import MinutesState
from contracts.packet import Modality, Packet, encode
from contracts.timeline import TIMELINE_RECORD, ClockRecord, Fence, NoticeRecord, UtteranceRecord
from contracts.topics import AUDIO, MINUTES, STATE, TIMELINE, VIDEO
from devices.faults import ClockFault, DeviceClock, DeviceKind, RoomPlan, disturbed, plan_room
from devices.inputs import InputSettings, Room, open_inputs
from devices.media import SoundSettings, probe
from devices.publisher import Publisher, moved_control, tai_now_ns
from flows.installation import ROOT, Installation, InstallationError
from operators.timeline import is_step, to_timeline_ns

from . import report
from .alignment_play import ranked
from .alignment_rooms import SETTINGS, Setting
from .alignment_signal import with_flashes, with_tones
from .watching import Recorder, Seen

ROOMS: Final = tuple(ROOT / "build" / "rooms" / name for name in ("larvae", "ward", "standup"))
LENGTH_S: Final = 40.0
_S: Final = 1_000_000_000
_FLASH_AT_S: Final = 14.0
_BLOCK_MS: Final = 40
"""Sound in blocks twice as long as usual: the embedded broker pays for every message."""
_LEAD_NS: Final = 2 * _S
_FAULTY_MS: Final = 8.0
_CLAIM_MS: Final = 1.0
_STORED_MS: Final[Mapping[str, tuple[float, float]]] = {
    "sound": (0.8, 0.25), "camera": (2.0, 0.6), "slides": (2.0, 0.6),
}  # fmt: skip
_PAIR_OF: Final[Mapping[DeviceKind, str]] = {
    "sound": "sound_sound", "camera": "sound_video", "slides": "sound_slide",
}  # fmt: skip


@dataclass(frozen=True)
class Playing:
    """One room in one setting: what is sent, when by the room's own time, and what is wrong with its clocks."""

    room: Room
    setting: Setting
    length_ns: int
    kinds: Mapping[str, DeviceKind]
    plan: RoomPlan
    stored: Mapping[str, Calibration]
    events: Sequence[tuple[int, Packet]]
    ends: Sequence[EndOfStream]
    seed: int

    def error_ns(self, device: str, true_ns: int) -> int:
        """Error of the stamps with which the device's packets are handed on: a clock that stood still is gone over."""
        fault = replace(self.plan.devices[device].clock, frozen_at_s=None)
        return _error_ns(fault, self.room.start_ns, true_ns)


def _error_ns(fault: ClockFault, start_ns: int, true_ns: int) -> int:
    return int(DeviceClock(fault, start_ns, 0).error_ns(np.asarray([true_ns], np.int64))[0])


def prepare(path: Path, setting: Setting, seconds: float, seed: int) -> Playing:
    """Read the beginning of a room and plan what goes wrong in it.

    Raises:
        devices.streams.InputError: it is no room.
    """
    longer = InputSettings(sound=SoundSettings(block_ms=_BLOCK_MS))
    room = open_inputs([path], meeting_id=f"{path.name}-{setting}", settings=longer)
    start, length_ns = room.start_ns, round(seconds * _S)
    packets: dict[str, list[Packet]] = {}
    kinds: dict[str, DeviceKind] = {}
    ways = np.random.default_rng([seed, 21])
    for stream in room.streams:
        messages = itertools.takewhile(lambda m: m.timestamp_ns < start + length_ns, stream.packets())
        mine = [m for m in messages if isinstance(m, Packet)]
        device = stream.name.rpartition("/")[0]
        if stream.modality is Modality.AUDIO:
            kinds[device] = "sound"
        else:
            kinds.setdefault(device, "slides" if "slide" in device else "camera")
        if setting == "flash":
            at_ns = start + round(_FLASH_AT_S * _S)
            if stream.modality is Modality.AUDIO:
                mine = with_tones(mine, at_ns, float(ways.uniform(0.7, 3.5)) / 343.0)
            elif (info := probe(stream.path).picture) is not None:
                mine = with_flashes(mine, info, at_ns, screen=kinds[device] == "slides")
        packets[stream.name] = mine
    plan = plan_room(kinds, start, seconds, seed)
    events: list[tuple[int, Packet]] = []
    ends = []
    for number, (name, mine) in enumerate(sorted(packets.items())):
        device = name.rpartition("/")[0]
        theirs = plan.devices[device]
        joined = [(p.timestamp_ns, p) for p in mine if p.timestamp_ns >= start + theirs.joins_at_s * _S]
        events += disturbed(joined, theirs, start, seed * 1000 + number)
        last = joined[-1][1]
        end_ns = last.timestamp_ns + last.duration_ns
        ends.append(
            EndOfStream(
                meeting_id=room.meeting_id, device_id=device, stream_epoch=1, sequence=last.sequence + 1,
                clock_kind=last.clock_kind, timestamp_ns=end_ns + _error_ns(theirs.clock, start, end_ns),
                modality="audio" if last.modality is Modality.AUDIO else "video",
            )
        )  # fmt: skip
    stored = {d: _stored(room, d, kind, plan, seed) for d, kind in kinds.items()}
    events.sort(key=lambda event: event[0])
    return Playing(
        room, setting, length_ns, kinds, plan, stored if setting == "calibrated" else {}, events, ends, seed
    )


def _stored(room: Room, device: str, kind: DeviceKind, plan: RoomPlan, seed: int) -> Calibration:
    fault, (bound_ms, sigma_ms) = plan.devices[device].clock, _STORED_MS[kind]
    random = np.random.default_rng([seed, 22, *device.encode()])
    offset = fault.offset_ns + round(float(random.normal(0.0, sigma_ms)) * 1e6)
    skew = fault.skew_ppb + float(random.normal(0.0, 300.0)) if fault.skew_ppb else 0.0
    return Calibration(
        meeting_id=room.meeting_id, device=device, offset_ns=offset, skew_ppb=skew, ref_ns=room.start_ns + offset,
        uncertainty_ns=round(bound_ms * 1e6),
    )  # fmt: skip


def send(installation: Installation, playing: Playing) -> tuple[int, float]:
    """Send a room in real time.

    Returns:
        By how much the meeting's times were moved, ns, and the most that a packet left late, ms.
    """
    link, meeting = installation.link, playing.room.meeting_id
    partition = link.names.partition(meeting)
    publisher = Publisher(link.bootstrap, link.names)
    producer = Producer(
        {"bootstrap.servers": link.bootstrap, "linger.ms": 5, "acks": "1", "socket.nagle.disable": True}
    )
    begin_ns, begin_s = tai_now_ns() + _LEAD_NS, time.monotonic() + _LEAD_NS / _S
    shift = begin_ns - playing.room.start_ns
    for message in moved_control(playing.room.control, shift):
        publisher.send_control(message)
    for calibration in playing.stored.values():
        publisher.send_control(calibration.model_copy(update={"ref_ns": calibration.ref_ns + shift}))
    publisher.flush()

    def put(modality: str, value: bytes) -> None:
        topic = link.names.of(AUDIO if modality == "audio" else VIDEO)
        producer.produce(topic, value=value, key=meeting.encode(), partition=partition)

    latest_s = 0.0
    for at_ns, packet in playing.events:
        value = encode(replace(packet, timestamp_ns=packet.timestamp_ns + shift, stream_epoch=begin_ns))
        due_s = begin_s + (at_ns - playing.room.start_ns) / _S
        while (wait_s := due_s - time.monotonic()) > 0:
            producer.poll(min(wait_s, 0.02))
        latest_s = max(latest_s, -wait_s)
        put("audio" if packet.modality is Modality.AUDIO else "video", value)
        producer.poll(0)
    producer.flush(30)
    for end in playing.ends:
        told = end.model_copy(update={"timestamp_ns": end.timestamp_ns + shift, "stream_epoch": begin_ns})
        put(end.modality, told.to_bytes())
    publisher.send_control(MeetingEnded(meeting_id=meeting, end_ns=begin_ns + playing.length_ns))
    producer.flush(30)
    publisher.flush()
    return shift, latest_s * 1e3


@dataclass(frozen=True)
class Judged:
    """One room in one setting against the truth; ms."""

    setting: Setting
    errors: list[float]
    bounds: list[float]
    pairs: Mapping[str, list[float]]
    evidence: list[tuple[float, float]]
    """Error and bound of the evidence."""
    faulty: set[str]
    healthy: set[str]
    named: set[str]
    outside: list[str]
    """Of each device that leaves its bound: how often, by how much, and what is wrong with it."""


def judged(playing: Playing, shift_ns: int, seen: Sequence[Seen]) -> Judged:
    """Hold what the log and the minutes say against the truth."""
    clocks: dict[str, list[ClockRecord]] = {device: [] for device in playing.kinds}
    spoken: list[UtteranceRecord] = []
    named: set[str] = set()
    minutes: MinutesState | None = None
    for message in seen:
        if message.topic is STATE and message.value:
            state = read_state(message.value)
            if state.meeting_id == playing.room.meeting_id:
                minutes = state if minutes is None or state.revision > minutes.revision else minutes
        elif message.topic is TIMELINE and message.value.startswith(b"{"):
            record = TIMELINE_RECORD.validate_json(message.value)
            if isinstance(record, Fence) or record.meeting_id != playing.room.meeting_id:
                continue
            if isinstance(record, ClockRecord):
                clocks[record.device].append(record)
            elif isinstance(record, UtteranceRecord) and record.state == "closed":
                spoken.append(record)
            elif isinstance(record, NoticeRecord):
                wrong = "agrees" not in record.text
                named |= {d for d in playing.kinds if wrong and f"clock of {d} " in record.text}
    by_second = {device: _by_second(playing, device, shift_ns, clocks[device]) for device in playing.kinds}
    values = [value for mine in by_second.values() for value in mine.values()]
    return Judged(
        playing.setting, [e for e, _, _ in values], [b for _, b, _ in values], _pairs(playing, by_second),
        _evidence(playing, shift_ns, clocks, spoken, minutes), _faulty(playing),
        {d for d in playing.kinds if not playing.plan.devices[d].clock_faults}, named,
        [text for d, mine in by_second.items() if (text := _outside(playing, d, mine))],
    )  # fmt: skip


def _outside(playing: Playing, device: str, mine: Mapping[int, tuple[float, float, bool]]) -> str:
    left = [(abs(error), second) for second, (error, bound, _) in mine.items() if abs(error) > bound]
    if not left:
        return ""
    worst, second = max(left)
    faults = ", ".join(playing.plan.devices[device].faults) or "none"
    return (
        f"{playing.room.meeting_id}/{device}: {len(left)} of {len(mine)} s, worst {worst:.1f} ms of"
        f" {mine[second][1]:.1f} at {second} s; faults: {faults}"
    )


def _by_second(
    playing: Playing, device: str, shift_ns: int, clocks: Sequence[ClockRecord]
) -> dict[int, tuple[float, float, bool]]:
    """Error, bound, and whether the clock stood still, of a stamp in each second."""
    plan, start = playing.plan.devices[device], playing.room.start_ns
    found = {}
    for second in range(int(plan.joins_at_s) + 2, int(playing.length_ns / _S) - 1):
        true_ns = start + second * _S
        raw_ns = true_ns + playing.error_ns(device, true_ns) + shift_ns
        placed = _placed(clocks, raw_ns, true_ns + shift_ns)
        if placed is None:
            continue
        stands = DeviceClock(plan.clock, start, 0).is_frozen(np.asarray([true_ns], np.int64))
        found[second] = ((placed[0] - true_ns - shift_ns) / 1e6, placed[1] / 1e6, bool(stands[0]))
    return found


def _placed(clocks: Sequence[ClockRecord], raw_ns: int, true_ns: int) -> tuple[int, int] | None:
    """Timeline time and bound of a stamp; where a clock was set back, the one from before or after it."""
    ahead = [r for r in clocks if is_step(r) and to_timeline_ns(r, r.from_raw_ns) > true_ns + 1_000_000]
    known = itertools.takewhile(lambda r: not ahead or r is not ahead[0], clocks)
    record = next((r for r in reversed(list(known)) if r.from_raw_ns <= raw_ns), None)
    return None if record is None else (to_timeline_ns(record, raw_ns), record.uncertainty_ns)


def _pairs(
    playing: Playing, by_second: Mapping[str, Mapping[int, tuple[float, float, bool]]]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {pair: [] for pair in _PAIR_OF.values()}
    for one, two in itertools.combinations(
        sorted(playing.kinds, key=lambda d: playing.kinds[d] != "sound"), 2
    ):
        if playing.kinds[one] != "sound":
            continue
        for second in by_second[one].keys() & by_second[two].keys():
            (a, _, stood), (b, _, stands) = by_second[one][second], by_second[two][second]
            if not (stood or stands):
                found[_PAIR_OF[playing.kinds[two]]].append(a - b)
    return found


def _evidence(
    playing: Playing, shift_ns: int, clocks: Mapping[str, Sequence[ClockRecord]],
    spoken: Sequence[UtteranceRecord], minutes: MinutesState | None,
) -> list[tuple[float, float]]:  # fmt: skip
    """Where each piece of spoken evidence begins, against where its device captured that, and what it claims."""
    if minutes is None:
        return []
    items = [*minutes.decisions, *minutes.action_items, *minutes.open_questions]
    found = []
    for piece in (e for item in items for e in item.evidence if e.kind == "speech"):
        at_ns = playing.room.start_ns + shift_ns + round(piece.start_s * _S)
        raws = [
            (abs(placed[0] - at_ns), raw)
            for u in spoken
            if u.device == piece.device
            for raw in (u.raw_start_ns, *(w.start_ns for w in u.words))
            if (placed := _placed(clocks[u.device], raw, at_ns)) is not None
        ]
        away_ns, raw_ns = min(raws, default=(_S, 0))
        if away_ns > 2_000_000:
            continue
        true_ns = at_ns - shift_ns
        for _ in range(3):
            true_ns = raw_ns - shift_ns - playing.error_ns(piece.device, true_ns)
        found.append(((at_ns - shift_ns - true_ns) / 1e6, piece.error_ms))
    return found


def _faulty(playing: Playing) -> set[str]:
    found = set()
    times = playing.room.start_ns + np.arange(0, playing.length_ns, _S // 4, dtype=np.int64)
    for device in playing.kinds:
        plan, stored = playing.plan.devices[device], playing.stored.get(device)
        here = times[times >= playing.room.start_ns + plan.joins_at_s * _S]
        wrong = DeviceClock(plan.clock, playing.room.start_ns, 0).error_ns(here).astype(np.float64)
        bound_ms = _CLAIM_MS
        if stored is not None:
            wrong = wrong - stored.offset_ns - (here - playing.room.start_ns) * (stored.skew_ppb * 1e-9)
            bound_ms = stored.uncertainty_ns / 1e6
        if float(np.max(np.abs(wrong))) / 1e6 - bound_ms > _FAULTY_MS:
            found.add(device)
    return found


def measure(
    paths: Sequence[Path], seed: int, seconds: float = LENGTH_S, settings: Sequence[Setting] = SETTINGS,
    patience_s: float = 120.0,
) -> dict[str, Any]:  # fmt: skip
    """Play the rooms in each setting and report.

    Raises:
        InstallationError: a flow ended, or the minutes were not final in time.
    """
    all_judged: list[Judged] = []
    late_ms, packets = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="minuted-alignment-") as scratch:
        for setting in settings:
            for number, path in enumerate(paths):
                playing = prepare(path, setting, seconds, seed * 1009 + number)
                report.progress(f"alignment: {path.name}, {setting}")
                with Installation(Path(scratch) / f"{setting}-{number}") as installation:
                    shift, most_ms, seen = _played(installation, playing, patience_s)
                late_ms, packets = max(late_ms, most_ms), packets + len(playing.events)
                all_judged.append(judged(playing, shift, seen))
    return figures(all_judged) | {
        "rooms": [p.name for p in paths], "seconds": seconds, "packets": packets, "sent_late_max_ms": round(late_ms, 1),
        "broker": "embedded, one for each room and setting",
    }  # fmt: skip


def _played(
    installation: Installation, playing: Playing, patience_s: float
) -> tuple[int, float, Sequence[Seen]]:
    """What was sent (as ``send`` has it) and all that the topics show of it."""
    meetings = [playing.room.meeting_id]
    recorder = Recorder(installation, meetings, (TIMELINE, MINUTES, STATE))
    try:
        shift, most_ms = send(installation, playing)
        deadline = time.monotonic() + patience_s
        while not recorder.finished(meetings):
            installation.check()
            if time.monotonic() > deadline:
                how_far = recorder.how_far(meetings[0])
                raise InstallationError(f"no final minutes after {patience_s:.0f} s: {how_far}")
            time.sleep(0.2)
        time.sleep(1.0)
    finally:
        recorder.close()
    return shift, most_ms, recorder.messages


def figures(rooms: Sequence[Judged]) -> dict[str, Any]:
    """The report of all rooms in all settings; the keys are those of the rooms at signal level."""
    out: dict[str, Any] = {"media": True}
    coverage: dict[str, float] = {}
    for setting in dict.fromkeys(j.setting for j in rooms):
        mine = [j for j in rooms if j.setting == setting]
        out[setting] = {pair: ranked([e for j in mine for e in j.pairs[pair]]) for pair in _PAIR_OF.values()}
        errors = np.abs(np.asarray([e for j in mine for e in j.errors]))
        bounds = np.asarray([b for j in mine for b in j.bounds])
        coverage[setting] = round(float(np.mean(errors <= bounds)), 5)
        evidence = np.abs(np.asarray([e for j in mine for e in j.evidence]).reshape(-1, 2))
        out[setting] |= {
            "error_median_ms": round(float(np.median(errors)), 3), "bound_median_ms": round(float(np.median(bounds)), 3),
            "evidence": ranked(evidence[:, 0].tolist())
            | {"within_bound": int(np.sum(evidence[:, 0] <= evidence[:, 1]))},
        }  # fmt: skip
    faulty, healthy = sum(len(j.faulty) for j in rooms), sum(len(j.healthy) for j in rooms)
    named = sum(len(j.faulty & j.named) for j in rooms)
    return out | {
        "bound_coverage": min(coverage.values()), "bound_coverage_by_setting": coverage,
        "faulty_named": {
            "share": round(named / faulty, 5) if faulty else 1.0, "faulty": faulty, "healthy": healthy,
            "accused": sum(len(j.healthy & j.named) for j in rooms),
        },
        "outside": [text for j in rooms for text in j.outside],
    }  # fmt: skip
