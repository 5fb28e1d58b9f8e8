"""Clock: gives every device a clock record, from its stamps, its stored calibration or its anchor.

Estimating clocks online plugs in here: another source of ``ClockRecord`` for the same device.
"""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from bytewax.operators import KeyedStream

from contracts.messages import (
    ALL_MEETINGS,
    Calibration,
    ClockState,
    EndOfStream,
    MeetingStarted,
    OcrMessage,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Packet
from contracts.timeline import ClockRecord, NoticeRecord

from .ingest import Arrival, modality_of
from .shard import by_shard
from .sink import Outgoing
from .store import StepStore, Stores

_PREFIX: Final = b"meeting/"
_GLOBAL: Final = b"global"
DEFAULT_TAI_UTC_S: Final = 37
"""TAI minus UTC since 2017 (IERS Bulletin C)."""


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """Uncertainties that hold where nothing was measured, and what counts as a step of a device's clock."""

    ptp_uncertainty_ns: int = 1_000_000
    utc_uncertainty_ns: int = 20_000_000
    arrival_uncertainty_ns: int = 250_000_000
    step_ns: int = 10_000_000_000
    """A jump of a stream's stamps by more than this without a new stream epoch is a step of its clock."""
    far_ns: int = 48 * 3600 * 1_000_000_000
    """First stamps further than this from the meeting's start or the arrival are not believed."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An arrival with the number of the clock record that places its device."""

    arrival: Arrival
    clock: int


ClockOutput = Timed | ClockRecord | NoticeRecord


@dataclass(slots=True)
class _Device:
    record: ClockRecord
    last_raw_ns: dict[str, int] = field(default_factory=dict)


class MeetingClocks:
    """Clocks of one meeting's devices. Input order decides, nothing else."""

    def __init__(
        self, settings: ClockSettings, meeting_id: str, calibrations: dict[str, Calibration]
    ) -> None:
        self._settings = settings
        self._meeting_id = meeting_id
        self._devices: dict[str, _Device] = {}
        self._calibrations = dict(calibrations)
        self._states: dict[str, ClockState] = {}
        self._tai_utc_s = DEFAULT_TAI_UTC_S
        self._start_ns: int | None = None

    def feed(self, arrival: Arrival) -> list[ClockOutput]:
        """The arrival with its clock, after the clock records that it brings about."""
        body = arrival.body
        if isinstance(body, MeetingStarted):
            self._tai_utc_s = body.tai_utc_offset_s
            self._start_ns = body.start_ns
        elif isinstance(body, Calibration):
            self._calibrations[body.device] = body
            return [Timed(arrival, 0), *self._replaced(body.device)]
        elif isinstance(body, ClockState):
            self._states[body.device] = body
            return [Timed(arrival, 0), *self._replaced(body.device)]
        elif isinstance(body, Packet | TranscriptMessage | OcrMessage | EndOfStream):
            out = self._placed(body, arrival)
            return [*out, Timed(arrival, self._devices[body.device_id].record.number)]
        return [Timed(arrival, 0)]

    def _placed(
        self, body: Packet | TranscriptMessage | OcrMessage | EndOfStream, arrival: Arrival
    ) -> list[ClockOutput]:
        """Clock records that this stamp makes necessary."""
        device = self._devices.get(body.device_id)
        stream = f"{modality_of(body).name}/{body.stream_epoch}"
        raw = body.timestamp_ns
        out: list[ClockOutput] = []
        if device is None:
            record = self._first_record(body.device_id, body.clock_kind, raw, arrival)
            device = self._devices[body.device_id] = _Device(record)
            out = [record, *self._doubt(record)]
        elif isinstance(body, Packet):
            last = device.last_raw_ns.get(stream)
            if last is not None and abs(raw - last) > self._settings.step_ns:
                out = self._stepped(device, body.device_id, raw, raw - last)
        if not isinstance(body, EndOfStream):
            device.last_raw_ns[stream] = raw + body.duration_ns
        return out

    def _first_record(self, device: str, kind: ClockKind, raw: int, arrival: Arrival) -> ClockRecord:
        s = self._settings
        arrival_tai = arrival.arrival_ns + self._tai_utc_s * 1_000_000_000
        state = self._states.get(device)
        method: Literal["stamped", "stored", "anchor", "arrival"] = "stamped"
        offset, uncertainty = 0, s.ptp_uncertainty_ns
        if kind is ClockKind.UTC:
            offset, uncertainty = -self._tai_utc_s * 1_000_000_000, s.utc_uncertainty_ns
        elif kind is ClockKind.MONOTONIC:
            if state is not None and state.anchor_raw_ns is not None and state.anchor_timeline_ns is not None:
                offset, method = state.anchor_raw_ns - state.anchor_timeline_ns, "anchor"
            else:
                offset, uncertainty, method = raw - arrival_tai, s.arrival_uncertainty_ns, "arrival"
        if state is not None and state.estimated_error_ns is not None:
            uncertainty = max(uncertainty, state.estimated_error_ns)
        calibration = self._calibrations.get(device)
        skew, ref = 0.0, raw
        if calibration is not None:
            offset += calibration.offset_ns
            skew, ref, method = calibration.skew_ppb, calibration.ref_ns or raw, "stored"
            uncertainty = calibration.uncertainty_ns
        placed = raw - offset
        near = self._start_ns if self._start_ns is not None else arrival_tai
        if (
            abs(placed - near) > s.far_ns
            and abs(placed - arrival_tai) > s.far_ns
            and self._start_ns is not None
        ):
            offset, skew, ref, method = raw - arrival_tai, 0.0, raw, "arrival"
            uncertainty = s.arrival_uncertainty_ns
        return ClockRecord(
            meeting_id=self._meeting_id, device=device, number=0, from_raw_ns=-(2**63), ref_ns=ref, offset_ns=offset,
            skew_ppb=skew, uncertainty_ns=uncertainty, method=method,
        )  # fmt: skip

    def _doubt(self, record: ClockRecord) -> list[NoticeRecord]:
        if record.method != "arrival":
            return []
        about_ms = record.uncertainty_ns // 1_000_000
        text = f"The clock of {record.device} cannot be believed; it is placed by arrival, to about {about_ms} ms."
        return [NoticeRecord(meeting_id=self._meeting_id, code="clock_by_arrival", text=text)]

    def _stepped(self, device: _Device, name: str, raw: int, jump_ns: int) -> list[ClockOutput]:
        """The device's clock jumped: go on where the stream was, and say how unsure that is."""
        old = device.record
        device.record = old.model_copy(
            update={
                "number": old.number + 1, "from_raw_ns": raw, "offset_ns": old.offset_ns + jump_ns, "method": "arrival",
                "uncertainty_ns": max(old.uncertainty_ns, self._settings.arrival_uncertainty_ns),
            }
        )  # fmt: skip
        text = f"The clock of {name} jumped by {jump_ns / 1e9:.1f} s; its records after that are placed as if it had not."
        return [device.record, NoticeRecord(meeting_id=self._meeting_id, code="clock_step", text=text)]

    def _replaced(self, name: str) -> list[ClockOutput]:
        """A calibration or clock state came while the device was already sending."""
        device = self._devices.get(name)
        calibration = self._calibrations.get(name)
        if device is None or calibration is None:
            return []
        old = device.record
        base = -self._tai_utc_s * 1_000_000_000 if old.offset_ns < -1_000_000_000 else 0
        device.record = old.model_copy(
            update={
                "number": old.number + 1, "offset_ns": base + calibration.offset_ns, "skew_ppb": calibration.skew_ppb,
                "ref_ns": calibration.ref_ns or old.ref_ns, "uncertainty_ns": calibration.uncertainty_ns, "method": "stored",
            }
        )  # fmt: skip
        return [device.record]


class Clock:
    """The step of one shard."""

    def __init__(self, settings: ClockSettings) -> None:
        self._settings = settings
        self._meetings: dict[str, MeetingClocks] = {}
        self._global: dict[str, Calibration] = {}
        self._touched: set[str] = set()

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_PREFIX):
            meeting, clocks = pickle.loads(value)
            self._meetings[meeting] = clocks
        saved = store.get(_GLOBAL)
        if saved is not None:
            self._global = pickle.loads(saved)

    def save(self, store: StepStore) -> None:
        for meeting in sorted(self._touched):
            if meeting != ALL_MEETINGS:
                store.put(_PREFIX + meeting.encode(), pickle.dumps((meeting, self._meetings[meeting])))
            else:
                store.put(_GLOBAL, pickle.dumps(self._global))
        self._touched.clear()

    def on_timer(self) -> Iterable[ClockOutput | Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Arrival | Outgoing]) -> list[ClockOutput | Outgoing]:
        out: list[ClockOutput | Outgoing] = []
        for value in values:
            if isinstance(value, Outgoing):
                out.append(value)
                continue
            self._touched.add(value.meeting_id)
            if value.meeting_id == ALL_MEETINGS:
                if isinstance(value.body, Calibration):
                    self._global[value.body.device] = value.body
                out.append(Timed(value, 0))
                continue
            clocks = self._meetings.get(value.meeting_id)
            if clocks is None:
                clocks = self._meetings[value.meeting_id] = MeetingClocks(
                    self._settings, value.meeting_id, self._global
                )
            out.extend(clocks.feed(value))
        return out


def clock(
    up: KeyedStream[tuple[int, Arrival | Outgoing]], stores: Stores, settings: ClockSettings
) -> KeyedStream[tuple[int, ClockOutput | Outgoing]]:
    """Attach the clock record in force to every arrival."""
    return by_shard("clock", up, stores, lambda _: Clock(settings))
