"""Which clock record places a device: from the kind of its stamps, its stored calibration or its anchor."""

import datetime
import math
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from contracts.leap_seconds import TAI_UTC_S
from contracts.messages import (
    ALL_MEETINGS,
    Calibration,
    ClockState,
    EndOfStream,
    MeetingStarted,
    OcrMessage,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Codec, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.broker.source import CaughtUp
from operators.clock.following import Following
from operators.clock.tracked import EstimateSettings
from operators.clock.wrap import wrapped_by_ns
from operators.ingest import Arrival, modality_of
from operators.timeline import to_timeline_ns

_ABSURD_NS: Final = 2**62
_FARTHEST_NS: Final = 2**63 - 1
_MOST_OFFSET_NS: Final = 2**63 - 2**61
"""What steps may add up to: still a number of 64 bits with a calibration on top."""
_NS_PER_S: Final = 1_000_000_000
_SOUND_M_PER_MS: Final = 0.343
_LONGEST_LOSS_NS: Final = 86_400 * _NS_PER_S
_MOST_UNCERTAINTY_NS: Final = 10**15
"""Eleven days: who says more says that nothing is known."""
"""TAI minus UTC now, where the meeting does not say it."""


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """Uncertainties that hold where nothing was measured, and what counts as a step of a device's clock."""

    ptp_uncertainty_ns: int = 1_000_000
    utc_uncertainty_ns: int = 20_000_000
    arrival_uncertainty_ns: int = 250_000_000
    step_ns: int = 10_000_000_000
    """A stream of sound or H.264 whose stamps leave their course by more than this has a stepped clock."""
    sparse_step_ns: int = 3600 * 1_000_000_000
    """The same for streams that may be silent for long: transcripts, slide text, single pictures."""
    far_ns: int = 48 * 3600 * 1_000_000_000
    """First stamps further than this from the meeting's start and from the arrival are not believed."""
    told_steps: int = 5
    """Steps of one device that are told one by one."""
    estimate: EstimateSettings = field(default_factory=EstimateSettings)
    drift_ppb: float = 5_000.0
    """By how much the skew of a clock that runs free may have changed since it was measured."""
    age_ns_per_day: int = 100_000
    """By how much a stored offset grows unsure."""
    old_days: int = 180
    """From this age on people are told how old a stored measurement is."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An arrival with the number of the clock record that places its device."""

    arrival: Arrival
    clock: int


ClockOutput = Timed | ClockRecord | NoticeRecord | CaughtUp
_DeviceBody = Packet | TranscriptMessage | OcrMessage | EndOfStream
_Method = Literal["stamped", "stored", "anchor", "arrival"]


@dataclass(slots=True)
class _Last:
    """The newest message of a stream: where its stretch ended by its stamps, and when it arrived."""

    raw_end_ns: int
    sequence: int
    arrival_ns: int


@dataclass(slots=True)
class _Device:
    record: ClockRecord
    kind: ClockKind
    base_ns: int
    """Offset of the stamps without calibration: of their kind of clock, an anchor or the arrival, and of steps."""
    steps: int = 0
    number: int = 0
    """Of the newest record written of it: what it was told, or estimated."""
    streams: dict[tuple[int, int], _Last] = field(default_factory=dict)
    """By modality and epoch."""


class MeetingClocks:
    """Clocks of one meeting's devices. Input order decides, nothing else."""

    def __init__(
        self, settings: ClockSettings, meeting_id: str, calibrations: dict[str, Calibration],
        states: dict[str, ClockState],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._meeting_id = meeting_id
        self._devices: dict[str, _Device] = {}
        self._calibrations = dict(calibrations)
        self._states = dict(states)
        self._tai_utc_s = TAI_UTC_S
        self._start_ns: int | None = None
        self._following = Following(settings.estimate, meeting_id)

    def feed(self, arrival: Arrival) -> list[ClockOutput]:
        """The arrival with its clock, after the clock records that it brings about."""
        arrival = self._in_its_kind(arrival)
        body = arrival.body
        if isinstance(body, Packet):
            # Nearly everything is one of these.
            out = self._placed(body, arrival)
            if arrival.arrival_ns > 0:
                arrival = self._followed(body, arrival, out)
            return [*out, Timed(arrival, self._devices[body.device_id].number)]
        if isinstance(body, MeetingStarted):
            self._start_ns = body.start_ns if body.start_ns is not None else self._start_ns
            self._following.ways(ways_ms(body))
            return [Timed(arrival, 0), *self._counts_utc_by(body.tai_utc_offset_s)]
        if isinstance(body, Calibration | ClockState):
            return [Timed(arrival, 0), *self.told(body)]
        if isinstance(body, TranscriptMessage | OcrMessage | EndOfStream):
            return [*self._placed(body, arrival), Timed(arrival, self._devices[body.device_id].number)]
        return [Timed(arrival, 0)]

    def _in_its_kind(self, arrival: Arrival) -> Arrival:
        """A message in the kind of stamps with which its device began: TAI and UTC differ by a known amount.

        A device that starts again with the other kind, or has a stream of each, keeps one clock.
        """
        body = arrival.body
        if not isinstance(body, _DeviceBody):
            return arrival
        device = self._devices.get(body.device_id)
        if device is None or device.kind is body.clock_kind:
            return arrival
        if ClockKind.MONOTONIC in (device.kind, body.clock_kind):
            return arrival
        leap_ns = self._tai_utc_s * _NS_PER_S
        moved = _moved(body, leap_ns if device.kind is ClockKind.PTP else -leap_ns, device.kind)
        return replace(arrival, body=moved)

    def _followed(self, body: Packet, arrival: Arrival, out: list[ClockOutput]) -> Arrival:
        """Adds to ``out`` what the streams themselves show of the clocks."""
        arrival_tai = arrival.arrival_ns + self._tai_utc_s * _NS_PER_S
        placed, records, notices = self._following.packet(body, arrival_tai)
        for record in records:
            device = self._devices[record.device]
            device.number += 1
            out.append(record.model_copy(update={"number": device.number}))
        out += notices
        return arrival if placed is body else replace(arrival, body=placed)

    def _drift_ms(self, record: ClockRecord) -> float:
        """How much surer a stored clock was a second before, in ms: one that has a skew runs free."""
        return self._settings.drift_ppb * 1e-6 if record.method == "stored" and record.skew_ppb else 0.0

    def seen(self, device: str, raw_ns: int, brightness: float) -> None:
        """Mean brightness (0..1) of a picture, by the stamp with which its packet was handed on."""
        self._following.seen(device, raw_ns, brightness)

    def told(self, body: Calibration | ClockState) -> list[ClockOutput]:
        """A calibration or clock state: what it changes for a device that is already sending.

        What was said of a device in this meeting stands against what is said for all meetings.
        """
        known: Calibration | ClockState | None = self._states.get(body.device)
        if isinstance(body, Calibration):
            known = self._calibrations.get(body.device)
        if body.meeting_id == ALL_MEETINGS and known is not None and known.meeting_id != ALL_MEETINGS:
            return []
        if isinstance(body, Calibration):
            self._calibrations[body.device] = body
        else:
            self._states[body.device] = body
        device = self._devices.get(body.device)
        if device is None:
            return []
        if isinstance(body, ClockState) and device.kind is ClockKind.MONOTONIC:
            anchor = _anchor_ns(body)
            device.base_ns = device.base_ns if anchor is None else anchor
        return self._again(device)

    def _counts_utc_by(self, tai_utc_s: int) -> list[ClockOutput]:
        change_ns, self._tai_utc_s = (tai_utc_s - self._tai_utc_s) * _NS_PER_S, tai_utc_s
        out: list[ClockOutput] = []
        for device in self._devices.values():
            if change_ns and device.kind is ClockKind.UTC:
                device.base_ns -= change_ns
                out += self._again(device)
        return out

    def _placed(self, body: _DeviceBody, arrival: Arrival) -> list[ClockOutput]:
        """Clock records that this stamp makes necessary."""
        device = self._devices.get(body.device_id)
        stream = (int(modality_of(body)), body.stream_epoch)
        raw, out = body.timestamp_ns, list[ClockOutput]()
        if device is None:
            device = self._devices[body.device_id] = self._first(body, arrival)
            self._following.told(device.record, self._drift_ms(device.record))
            out = [device.record, *self._doubt(device.record), *self._calibration_doubt(body.device_id)]
        else:
            course = self._course(device, body, stream, arrival)
            if stream not in device.streams:
                course = self._begun_anew(device, body, arrival)
            if course is not None:
                out = self._stepped(device, body.device_id, raw, course)
        if self._start_ns is None:
            self._start_ns = to_timeline_ns(device.record, raw)
        last, end_ns = device.streams.get(stream), raw + body.duration_ns
        # While a clock stands still nothing of it passes: when it goes on it may have been away for as long.
        stands = last is not None and last.raw_end_ns == end_ns
        since_ns = last.arrival_ns if last is not None and stands else arrival.arrival_ns
        device.streams[stream] = _Last(end_ns, body.sequence, since_ns)
        return out

    def _first(self, body: _DeviceBody, arrival: Arrival) -> _Device:
        """The device's first clock, from its stamp and what is known of it."""
        s, raw = self._settings, body.timestamp_ns
        arrival_tai = arrival.arrival_ns + self._tai_utc_s * _NS_PER_S
        anchor = _anchor_ns(self._states.get(body.device_id))
        base = 0
        by_arrival = False
        if body.clock_kind is ClockKind.UTC:
            base = -self._tai_utc_s * _NS_PER_S
        elif body.clock_kind is ClockKind.MONOTONIC:
            by_arrival = anchor is None
            base = raw - arrival_tai if anchor is None else anchor
        record = self._record(body.device_id, body.clock_kind, base, raw, by_arrival=by_arrival)
        if not self._credible(to_timeline_ns(record, raw), arrival):
            base = raw - (arrival_tai if arrival.arrival_ns > 0 else self._start_ns or 0)
            record = record.model_copy(
                update={"offset_ns": base, "ref_ns": raw, "skew_ppb": 0.0, "method": "arrival",
                        "uncertainty_ns": s.arrival_uncertainty_ns}
            )  # fmt: skip
        return _Device(record, body.clock_kind, base)

    def _credible(self, placed_ns: int, arrival: Arrival) -> bool:
        """Whether a first stamp lies in the meeting, or where it arrived.

        Only a broker's own append time proves a stamp wrong without a meeting's start to compare with:
        recordings of old meetings are published too.
        """
        far_ns = self._settings.far_ns
        ahead_ns = placed_ns - (arrival.arrival_ns + self._tai_utc_s * _NS_PER_S)
        if arrival.arrival_ns > 0 and abs(ahead_ns) <= far_ns:
            return True
        if self._start_ns is not None:
            return abs(placed_ns - self._start_ns) <= far_ns
        return arrival.arrival_ns <= 0 or (ahead_ns < 0 and not arrival.appended)

    def _record(self, name: str, kind: ClockKind, base_ns: int, raw: int, *, by_arrival: bool) -> ClockRecord:
        """A device's clock by its base and by what was measured or said of it."""
        s, state, calibration = self._settings, self._states.get(name), self._calibrations.get(name)
        method: _Method = "stamped"
        uncertainty = s.utc_uncertainty_ns if kind is ClockKind.UTC else s.ptp_uncertainty_ns
        if by_arrival:
            method, uncertainty = "arrival", s.arrival_uncertainty_ns
        elif kind is ClockKind.MONOTONIC:
            method = "anchor"
        if state is not None and state.estimated_error_ns is not None:
            uncertainty = max(uncertainty, state.estimated_error_ns)
        offset, skew, ref = base_ns, 0.0, raw
        if calibration is not None:
            # An offset on top of an unknown zero is as unsure as that zero.
            offset, skew, ref = (
                base_ns + calibration.offset_ns,
                calibration.skew_ppb,
                calibration.ref_ns or raw,
            )
            if not by_arrival:
                # A clock that runs free has left its offset by what its skew has changed since.
                a_day_ns = s.age_ns_per_day + (round(s.drift_ppb * 86_400) if skew else 0)
                aged_ns = max(0, self._age_days(calibration) or 0) * a_day_ns
                method, uncertainty = "stored", calibration.uncertainty_ns + aged_ns
        return ClockRecord(
            meeting_id=self._meeting_id, device=name, number=0, from_raw_ns=-(2**63), ref_ns=ref, offset_ns=offset,
            skew_ppb=skew, uncertainty_ns=min(uncertainty, _MOST_UNCERTAINTY_NS), method=method,
        )  # fmt: skip

    def _age_days(self, calibration: Calibration) -> int | None:
        """Days from a measurement to the meeting, None where either is not known."""
        if calibration.measured is None or not self._start_ns:
            return None
        held = datetime.datetime.fromtimestamp(self._start_ns // _NS_PER_S, datetime.UTC).date()
        return (held - calibration.measured).days

    def _calibration_doubt(self, name: str) -> list[NoticeRecord]:
        """What people should know of a stored measurement before they rest on it."""
        calibration = self._calibrations.get(name)
        age = None if calibration is None else self._age_days(calibration)
        # Days are local where they were noted: a day ahead is no contradiction.
        if age is None or -1 <= age <= self._settings.old_days:
            return []
        if age > 0:
            text = f"The calibration of {name} is {age} days old; its uncertainty has grown."
        else:
            text = f"The calibration of {name} is newer than the meeting; it may not hold for it."
        return [NoticeRecord(meeting_id=self._meeting_id, code="clock_calibration", text=text)]

    def _again(self, device: _Device) -> list[ClockOutput]:
        """The device's clock once more by what is known now, for all of its records since its last step."""
        old = device.record
        anchored = (
            device.kind is not ClockKind.MONOTONIC or _anchor_ns(self._states.get(old.device)) is not None
        )
        by_arrival = old.method == "arrival" and not anchored
        new = self._record(old.device, device.kind, device.base_ns, old.ref_ns, by_arrival=by_arrival)
        new = new.model_copy(update={"number": device.number + 1, "from_raw_ns": old.from_raw_ns})
        if new.model_copy(update={"number": old.number}) == old:
            return []
        device.record, device.number = new, device.number + 1
        self._following.told(new, self._drift_ms(new))
        return [new, *self._calibration_doubt(old.device)]

    def _course(
        self, device: _Device, body: _DeviceBody, stream: tuple[int, int], arrival: Arrival
    ) -> int | None:
        """Timeline time at which this message belongs by the stream's course, where its stamp has left it."""
        last = device.streams.get(stream)
        if last is None or arrival.arrival_ns <= 0:
            return None
        missing = max(0, body.sequence - last.sequence - 1)
        steady = isinstance(body, Packet) and body.codec is not Codec.JPEG
        lost_ns = missing * body.duration_ns if steady else 0
        # A counter that jumps by more than a day of packets has lost none of them.
        expected_raw = last.raw_end_ns + (lost_ns if lost_ns <= _LONGEST_LOSS_NS else 0)
        jump_ns, waited_ns = body.timestamp_ns - expected_raw, arrival.arrival_ns - last.arrival_ns
        allowed_ns = self._settings.step_ns if steady else self._settings.sparse_step_ns
        if abs(jump_ns) <= allowed_ns or abs(jump_ns - waited_ns) <= allowed_ns:
            # A device that pauses is away on the broker's clock for as long as on its own.
            return None
        placed_ns = to_timeline_ns(device.record, expected_raw)
        return placed_ns if steady else placed_ns + max(0, waited_ns)

    def _begun_anew(self, device: _Device, body: _DeviceBody, arrival: Arrival) -> int | None:
        """Timeline time of a known device's first message in another run or stream, where its stamp cannot be true.

        Stamps without a date count from when the device was switched on, which may have been just now.
        """
        if arrival.arrival_ns <= 0:
            return None
        arrived_ns = arrival.arrival_ns + self._tai_utc_s * _NS_PER_S
        placed_ns = to_timeline_ns(device.record, body.timestamp_ns)
        undated = body.clock_kind is ClockKind.MONOTONIC
        if undated and arrival.appended and abs(placed_ns - arrived_ns) > self._settings.step_ns:
            return arrived_ns
        return None if self._credible(placed_ns, arrival) else arrived_ns

    def _doubt(self, record: ClockRecord) -> list[NoticeRecord]:
        if record.method != "arrival":
            return []
        about_ms = record.uncertainty_ns // 1_000_000
        text = f"The clock of {record.device} is unknown or wrong; what it sent is placed by arrival, to about {about_ms} ms."
        return [NoticeRecord(meeting_id=self._meeting_id, code="clock_by_arrival", text=text)]

    def _stepped(self, device: _Device, name: str, raw: int, placed_ns: int) -> list[ClockOutput]:
        """The device's clock jumped: go on where the stream was, and say how unsure that is."""
        old = device.record
        jump_ns = to_timeline_ns(old, raw) - placed_ns
        if max(abs(raw - placed_ns), abs(device.base_ns + jump_ns)) >= _MOST_OFFSET_NS:
            raise ValueError(f"a stamp of {raw} ns leaves its stream by more than a clock can")
        device.base_ns += jump_ns
        device.steps += 1
        # The device's other streams are stamped by the same clock and will follow.
        device.streams = {
            stream: replace(last, raw_end_ns=last.raw_end_ns + jump_ns)
            for stream, last in device.streams.items()
        }
        wrapped = wrapped_by_ns(jump_ns)
        uncertainty = max(old.uncertainty_ns, self._settings.arrival_uncertainty_ns)
        if wrapped is not None:
            # A counter that began anew: nothing was lost but its upper half, and that is known.
            device.base_ns += wrapped - jump_ns
            placed_ns, uncertainty = to_timeline_ns(old, raw) - wrapped, old.uncertainty_ns
        device.record = old.model_copy(
            update={
                "number": device.number + 1, "from_raw_ns": raw, "ref_ns": raw, "offset_ns": raw - placed_ns, "method": "arrival",
                "uncertainty_ns": uncertainty,
            }
        )  # fmt: skip
        device.number += 1
        self._following.stepped(device.record)
        if wrapped is not None:
            return [device.record]
        if device.steps <= self._settings.told_steps:
            text = f"The clock of {name} jumped by {jump_ns / 1e9:.1f} s; what followed is placed as if it had not."
        else:
            text = f"The clock of {name} keeps jumping; its times are unsure."
        return [device.record, NoticeRecord(meeting_id=self._meeting_id, code="clock_step", text=text)]


def ways_ms(started: MeetingStarted) -> dict[tuple[str, str], float]:
    """How much later a voice comes to another microphone than to its speaker's own, where places are known.

    By the speaker's microphone and the other one; ms.
    """
    places = {m.device: m.position_m for m in started.microphones if m.channel == 0}
    mouths = {seat.speaker: seat.position_m for seat in started.seats}
    own = {c.device: mouths[c.speaker] for c in started.channel_map if c.channel == 0 and c.speaker in mouths}
    return {
        (device, other): (math.dist(mouth, place) - math.dist(mouth, places[device])) / _SOUND_M_PER_MS
        for device, mouth in own.items()
        if device in places
        for other, place in places.items()
        if other != device
    }


def check_believable(body: Calibration | ClockState) -> None:
    """Raises ValueError for a calibration that no clock can have: an offset must leave room for the stamps."""
    if isinstance(body, Calibration) and abs(body.offset_ns) >= _ABSURD_NS:
        raise ValueError(f"an offset of {body.offset_ns} ns is more than a clock can have")


def _moved(body: _DeviceBody, by_ns: int, kind: ClockKind) -> _DeviceBody:
    """A message with its stamps moved into another kind."""
    stamp_ns = min(max(body.timestamp_ns + by_ns, -_FARTHEST_NS), _FARTHEST_NS)
    if isinstance(body, Packet):
        return replace(body, timestamp_ns=stamp_ns, clock_kind=kind)
    if isinstance(body, TranscriptMessage):
        words = tuple(
            w.model_copy(update={"start_ns": w.start_ns + by_ns, "end_ns": w.end_ns + by_ns})
            for w in body.words
        )
        return body.model_copy(update={"timestamp_ns": stamp_ns, "clock_kind": kind, "words": words})
    return body.model_copy(update={"timestamp_ns": stamp_ns, "clock_kind": kind})


def _anchor_ns(state: ClockState | None) -> int | None:
    """Offset that an anchor gives a monotonic clock."""
    if state is None or state.anchor_raw_ns is None or state.anchor_timeline_ns is None:
        return None
    offset_ns = state.anchor_raw_ns - state.anchor_timeline_ns
    # An anchor that no real clock could have is none: an offset must leave room for the stamps.
    return offset_ns if abs(offset_ns) < _ABSURD_NS else None
