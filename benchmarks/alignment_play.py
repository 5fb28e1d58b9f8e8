"""One simulated room through the clock step and the alignment: packets in, clock records out, held against the truth."""

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from contracts.leap_seconds import TAI_UTC_NS
from contracts.messages import Calibration, MeetingStarted
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.align.alignment import Alignment, AlignmentSettings
from operators.clock import ClockOutput, ClockSettings, MeetingClocks, Timed
from operators.ingest import Arrival
from operators.pictures.picture import (
    VOLUME_COLUMNS,
    VOLUME_MAPS,
    VOLUME_PERIOD_NS,
    VOLUME_ROWS,
    volume_bytes,
)
from operators.timeline import clock_in_force, to_timeline_ns

from .alignment_rooms import (
    BLOCK_NS,
    FLASH_AT_S,
    LENGTH_S,
    RATE_HZ,
    SETTINGS,
    START_NS,
    Setting,
    SignalRoom,
    Stream,
    make_room,
)

Errors = npt.NDArray[np.float64]
PAIRS: Final = ("sound_sound", "sound_video", "sound_slide")
PTP_BOUND_MS: Final = 1.0
_FAULTY_MS: Final = 8.0
_GREY: Final = volume_bytes(np.full((len(VOLUME_MAPS), VOLUME_ROWS, VOLUME_COLUMNS), 0.5, np.float16))
_STORED_MS: Final = {"sound": (0.8, 0.25), "camera": (2.0, 0.6), "slides": (2.0, 0.6)}
"""Bound that a stored calibration claims, and the standard deviation of what it is off by."""
_STORED_SKEW_PPB: Final = 300.0
_SETTLED_MS: Final[Mapping[Setting, float]] = {"calibrated": 8.0, "flash": 8.0, "blind": 45.0}
_SETTLED_FOR: Final = 5
_CLASSICAL_S: Final = 30.0


@dataclass(slots=True)
class _Passed:
    """One packet as it was passed on: true time, stamp, clock, and where it was placed at that moment."""

    true_ns: int
    raw_ns: int
    clock: int
    online_ms: float


@dataclass(slots=True)
class Played:
    """What came of a room in one setting. Errors in ms, estimated minus true."""

    room: int
    setting: Setting
    errors_ms: Errors
    bounds_ms: Errors
    pairs: Mapping[str, list[float]]
    faulty: set[str]
    healthy: set[str]
    named: set[str]
    settle_s: Errors
    quarantined_share: float
    packets: int
    seconds: float
    classical_ms: list[float] = field(default_factory=list)


def ranked(values: Sequence[float]) -> dict[str, float | int]:
    """p50, p99 and maximum of absolute values in ms."""
    if not values:
        return {"p50_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0, "n": 0}
    found = np.abs(np.asarray(values))
    return {
        "p50_ms": round(float(np.median(found)), 3), "p99_ms": round(float(np.percentile(found, 99)), 3),
        "max_ms": round(float(found.max()), 3), "n": len(found),
    }  # fmt: skip


def play_room(seed: int, length_s: float = LENGTH_S) -> list[Played]:
    """Make a room and play it in every setting."""
    room = make_room(seed, length_s)
    found = [_play(room, setting) for setting in SETTINGS]
    found[-1].classical_ms = classical_errors(room)
    return found


def _arrivals(room: SignalRoom, setting: Setting) -> Iterator[tuple[Stream, int, Arrival]]:
    """All packets in the order in which ingest hands them on."""
    streams = list(room.streams(setting).values())
    order = np.concatenate([np.full(len(s.order), n) for n, s in enumerate(streams)])
    numbers = np.concatenate([s.order for s in streams])
    appended = np.concatenate([s.append_ns for s in streams])
    released = np.concatenate([s.released_ns for s in streams])
    for place in np.lexsort((order, released)).tolist():
        stream, number = streams[int(order[place])], int(numbers[place])
        arrival_ns = int(appended[place]) - TAI_UTC_NS
        yield stream, number, Arrival("room", _packet(stream, number), arrival_ns, True, "minuted/0/0")


def _packet(stream: Stream, number: int) -> Packet:
    stamp = int(stream.stamps_ns[number])
    if stream.samples is None:
        return Packet(
            "room", stream.name, Modality.VIDEO, Codec.H264, ClockKind.PTP, 1, number, stamp,
            round(1e9 / stream.plan.rate_hz), b"\0", round(stream.plan.rate_hz), 160, 90,
        )  # fmt: skip
    sound = np.rint(stream.samples[number] * 32768.0).astype("<i2").tobytes()
    return Packet(
        "room", stream.name, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, number, stamp, BLOCK_NS, sound,
        RATE_HZ, 0, 0, 1,
    )  # fmt: skip


def _volume(stream: Stream, number: int) -> Packet:
    return Packet(
        "room", stream.name, Modality.PICTURE_FEATURES, Codec.VOLUME_F16, ClockKind.PTP, 0, number,
        int(stream.stamps_ns[number]), VOLUME_PERIOD_NS, _GREY, 0, VOLUME_COLUMNS, VOLUME_ROWS, len(VOLUME_MAPS),
    )  # fmt: skip


def calibration_of(stream: Stream, seed: int) -> Calibration:
    """A stored measurement of this device from just before the meeting: nearly right, and says how nearly."""
    fault, (bound_ms, sigma_ms) = stream.plan.clock, _STORED_MS[stream.plan.kind]
    random = np.random.default_rng([seed, *stream.name.encode()])
    offset = fault.offset_ns + round(float(random.normal(0.0, sigma_ms)) * 1e6)
    skew = fault.skew_ppb + float(random.normal(0.0, _STORED_SKEW_PPB)) if fault.skew_ppb else 0.0
    return Calibration(
        meeting_id="room", device=stream.name, offset_ns=offset, skew_ppb=skew, ref_ns=START_NS + offset,
        uncertainty_ns=round(bound_ms * 1e6),
    )  # fmt: skip


def _play(room: SignalRoom, setting: Setting) -> Played:
    clocks = MeetingClocks(ClockSettings(), "room", {}, {})
    streams = room.streams(setting)
    started = MeetingStarted(meeting_id="room", start_ns=START_NS)
    clocks.feed(Arrival("room", started, START_NS - TAI_UTC_NS, True, "minuted/0/0"))
    stored = {name: calibration_of(s, room.seed) for name, s in streams.items()}
    if setting == "calibrated":
        for calibration in stored.values():
            clocks.told(calibration)
    records: dict[str, list[ClockRecord]] = {name: [] for name in streams}
    passed: dict[str, list[_Passed]] = {name: [] for name in streams}
    named: set[str] = set()
    alignment, next_features_ns = Alignment(AlignmentSettings()), dict.fromkeys(streams, 0)
    came = [
        (s, number, a, _features(s, number, next_features_ns)) for s, number, a in _arrivals(room, setting)
    ]
    # No flow holds the packets of a whole meeting, nor has its collector go through them.
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    outs = [_step(clocks, alignment, *one) for one in came]
    seconds = time.process_time() - begun
    gc.unfreeze()
    for (stream, number, _, _), out in zip(came, outs, strict=True):
        for value in out:
            if isinstance(value, ClockRecord):
                records[value.device].append(value)
            elif isinstance(value, NoticeRecord):
                named |= {n for n in streams if f"clock of {n} " in value.text and "agrees" not in value.text}
            elif isinstance(value, Timed) and isinstance(value.arrival.body, Packet):
                raw_ns = value.arrival.body.timestamp_ns
                placed_ns = _placed(records[stream.name], value.clock, raw_ns)[0]
                true_ns = int(stream.true_ns[number])
                late_ms = (placed_ns - true_ns) / 1e6
                passed[stream.name].append(_Passed(true_ns, raw_ns, value.clock, late_ms))
    return _judged(room, setting, streams, records, passed, named, len(came), seconds)


def _features(stream: Stream, number: int, next_ns: dict[str, int]) -> Packet | None:
    """Features of a picture, as often as those of a camera stand on the log."""
    raw_ns = int(stream.stamps_ns[number])
    if stream.brightness is None or raw_ns < next_ns[stream.name]:
        return None
    next_ns[stream.name] = raw_ns + VOLUME_PERIOD_NS
    return _volume(stream, number)


def _step(
    clocks: MeetingClocks, alignment: Alignment, stream: Stream, number: int, arrival: Arrival,
    volume: Packet | None,
) -> list[ClockOutput]:  # fmt: skip
    """What is measured: one packet through clocks and alignment."""
    out = clocks.feed(arrival)
    if volume is not None:
        alignment.features(volume)
    for value in out:
        if isinstance(value, ClockRecord):
            alignment.clock(value)
        elif isinstance(value, Timed):
            body = value.arrival.body
            if isinstance(body, Packet) and body.modality is Modality.AUDIO:
                alignment.sound(body)
            elif isinstance(body, Packet) and stream.brightness is not None:
                clocks.seen(stream.name, body.timestamp_ns, float(stream.brightness[number]))
    return out


def _placed(records: list[ClockRecord], clock: int, raw_ns: int) -> tuple[int, int]:
    """Time on the timeline and bound by the records known, both in ns."""
    record = clock_in_force(records, clock, raw_ns)
    if record is None:
        raise RuntimeError("a packet without a clock record")
    return to_timeline_ns(record, raw_ns), record.uncertainty_ns


def _judged(
    room: SignalRoom, setting: Setting, streams: Mapping[str, Stream], records: Mapping[str, list[ClockRecord]],
    passed: Mapping[str, list[_Passed]], named: set[str], packets: int, seconds: float,
) -> Played:  # fmt: skip
    """Hold the final placing of one packet a second against the truth."""
    by_second: dict[str, dict[int, float]] = {}
    errors: list[float] = []
    bounds: list[float] = []
    faulty: set[str] = set()
    settle: list[float] = []
    quarantined = 0
    for name, stream in streams.items():
        mine: dict[int, float] = {}
        frozen = stream.clock.is_frozen(stream.true_ns)
        first_ns = int(stream.true_ns[0])
        standing = set(((stream.true_ns[frozen] - START_NS) // 1_000_000_000).tolist())
        for one in passed[name]:
            second = (one.true_ns - START_NS) // 1_000_000_000
            if second in mine or one.true_ns - first_ns < 500_000_000:
                continue
            placed_ns, bound_ns = _placed(records[name], one.clock, one.raw_ns)
            error = (placed_ns - one.true_ns) / 1e6
            errors.append(error)
            bounds.append(bound_ns / 1e6)
            mine[second] = error
            # A clock that stands still says nothing; what is counted on meanwhile is quarantined.
            quarantined += second in standing
        by_second[name] = {s: e for s, e in mine.items() if s not in standing}
        if _told_error_ms(stream, setting, room.seed) > _FAULTY_MS:
            faulty.add(name)
        settle.append(_settled_s(stream, passed[name], setting))
    return Played(
        room.seed, setting, np.asarray(errors), np.asarray(bounds), _pairs(streams, by_second), faulty,
        {n for n, s in streams.items() if not s.plan.clock_faults}, named, np.asarray(settle),
        quarantined / max(1, len(errors)), packets, seconds,
    )  # fmt: skip


def _told_error_ms(stream: Stream, setting: Setting, seed: int) -> float:
    """By how much what is said of a device's stamps is wrong beyond what it claims; ms."""
    wrong_ns = stream.clock.error_ns(stream.true_ns).astype(np.float64)
    bound_ms = PTP_BOUND_MS
    if setting == "calibrated":
        stored = calibration_of(stream, seed)
        since = stream.true_ns - START_NS
        wrong_ns = wrong_ns - stored.offset_ns - since * (stored.skew_ppb * 1e-9)
        bound_ms = stored.uncertainty_ns / 1e6
    return float(np.max(np.abs(wrong_ns))) / 1e6 - bound_ms


def _pairs(
    streams: Mapping[str, Stream], errors: Mapping[str, Mapping[int, float]]
) -> dict[str, list[float]]:
    """Differences of errors at the same second, by kinds of devices."""
    found: dict[str, list[float]] = {pair: [] for pair in PAIRS}
    names = list(streams)
    second_kind = {"sound": "sound_sound", "camera": "sound_video", "slides": "sound_slide"}
    for place, one in enumerate(names):
        if streams[one].plan.kind != "sound":
            continue
        for two in names[place + 1 :]:
            pair = second_kind[streams[two].plan.kind]
            both = errors[one].keys() & errors[two].keys()
            found[pair] += [errors[one][s] - errors[two][s] for s in sorted(both)]
    return found


def _settled_s(stream: Stream, passed: list[_Passed], setting: Setting) -> float:
    """Seconds from when a device was there (and its pulses were over) until it stays placed well."""
    ready_ns = int(stream.true_ns[0])
    if setting == "flash":
        ready_ns = max(ready_ns, START_NS + round((FLASH_AT_S + 10.0) * 1e9))
    well = 0
    last_second = -1
    for one in passed:
        second = (one.true_ns - ready_ns) // 1_000_000_000
        if second == last_second or second < 0:
            continue
        last_second = second
        well = well + 1 if abs(one.online_ms) <= _SETTLED_MS[setting] else 0
        if well >= _SETTLED_FOR:
            return float(second - _SETTLED_FOR + 1)
    return float(LENGTH_S)


def classical_errors(room: SignalRoom) -> list[float]:
    """Sound to sound where each file gets one offset, by one cross-correlation of its beginning; ms."""
    sounds = [s for s in room.plain.values() if s.samples is not None]
    placed = [_by_stamps(s) for s in sounds]
    offsets = [0.0, *(_one_lag_s(placed[0], other) for other in placed[1:])]
    errors: list[dict[int, float]] = []
    for stream, offset_s in zip(sounds, offsets, strict=True):
        off = (stream.stamps_ns - stream.stamps_ns[0]) / 1e6 + offset_s * 1e3
        true = (stream.true_ns - sounds[0].true_ns[0]) / 1e6
        seconds = (stream.true_ns - START_NS) // 1_000_000_000
        errors.append(dict(zip(seconds.tolist(), (off - true).tolist(), strict=True)))
    return [
        one[s] - two[s]
        for place, one in enumerate(errors)
        for two in errors[place + 1 :]
        for s in sorted(one.keys() & two.keys())
    ]


def _by_stamps(stream: Stream) -> npt.NDArray[np.float32]:
    """The first seconds of a file, every block where its stamp puts it from the first on."""
    size = round(_CLASSICAL_S * RATE_HZ)
    out = np.zeros(size, np.float32)
    if stream.samples is None:
        return out
    block = stream.samples.shape[1]
    starts = np.rint((stream.stamps_ns - stream.stamps_ns[0]) * (RATE_HZ / 1e9)).astype(np.int64)
    for number in stream.order.tolist():
        place = int(starts[number])
        if 0 <= place <= size - block:
            out[place : place + block] = stream.samples[number]
    return out


def _one_lag_s(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> float:
    """Start of the second file after the first one's, by the greatest peak of one correlation (PHAT)."""
    size = 1 << (2 * len(first) - 1).bit_length()
    cross = np.fft.rfft(first, size) * np.conj(np.fft.rfft(second, size))
    found = np.fft.irfft(cross / np.maximum(np.abs(cross), 1e-9), size)
    reach = len(first) - 1
    near = np.concatenate([found[-reach:], found[: reach + 1]])
    return (int(np.argmax(near)) - reach) / RATE_HZ
