"""A meeting's clocks followed: packets in, clock records and notices out where what was said is not what is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from contracts.packet import Codec, Modality, Packet
from contracts.timeline import ClockRecord, NoticeRecord
from operators.clock.course import Jump
from operators.clock.estimate import MeetingEstimator
from operators.clock.records import differs, in_force, pieces, record_of, to_raw_ns
from operators.clock.tracked import KEPT_JUMPS, Claim, EstimateSettings, Finding, Tracked
from operators.timeline import to_timeline_ns

_KEPT_RECORDS: Final = 24
_KEPT_PICTURES: Final = 900
"""Pictures whose brightness may still come: those of half a minute."""
_NS_PER_MS: Final = 1e6


@dataclass(slots=True)
class _Followed:
    """A device: what was said of its stamps, and the records that hold."""

    told: ClockRecord
    claim: Claim
    records: list[ClockRecord] = field(default_factory=list)
    pictures: dict[int, int] = field(default_factory=dict)
    """Where on ``x`` the last pictures lie, by the stamp with which they were handed on."""
    since_x: int | None = None
    """Where the last step lies: what is before it is not placed anew."""
    stood_x: int | None = None
    """Where the last stop of the clock began."""


class Following:
    """Estimates of one meeting as records; numbers are given by whoever writes them."""

    def __init__(self, settings: EstimateSettings, meeting_id: str) -> None:
        self._meeting_id = meeting_id
        self._estimator = MeetingEstimator(settings)
        self._devices: dict[str, _Followed] = {}

    def ways(self, known: Mapping[tuple[str, str], float]) -> None:
        """How much later a voice comes to another microphone than to its speaker's own, ms."""
        self._estimator.ways = dict(known)

    def told(self, record: ClockRecord, per_s_ms: float = 0.0) -> None:
        """What is said of a device's stamps, for the first time or anew."""
        self._estimator.forget(record.device)
        self._devices[record.device] = _Followed(record, _claim(record, per_s_ms), [record])

    def stepped(self, record: ClockRecord) -> None:
        """The device's clock jumped so far that it was placed anew at once: its course goes on."""
        followed = self._devices[record.device]
        followed.told, followed.claim = record, _claim(record, followed.claim.per_s_ms)
        followed.records = [*followed.records[-_KEPT_RECORDS:], record]
        tracked = self._estimator.devices.get(record.device)
        followed.since_x = None if tracked is None else tracked.course.last_x

    def packet(self, body: Packet, arrival_ns: int) -> tuple[Packet, list[ClockRecord], list[NoticeRecord]]:
        """The packet (its stamp as if the clock had never stood still), records and notices.

        ``arrival_ns``: append time on the timeline's scale (TAI).
        """
        followed = self._devices[body.device_id]
        told_ns = to_timeline_ns(followed.told, body.timestamp_ns)
        jumps = self._estimator.stamped(
            body.device_id, body.modality, "sound" if body.modality is Modality.AUDIO else "picture",
            followed.claim, body.stream_epoch, body.sequence, told_ns, body.duration_ns, arrival_ns,
        )  # fmt: skip
        records = [r for jump in jumps if not jump.frozen for r in self._jumped(followed, jump)]
        tracked = self._estimator.devices.get(body.device_id)
        if tracked is None:
            return body, [], []
        if body.codec is Codec.PCM_S16LE and tracked.stream is body.modality:
            samples = np.frombuffer(body.payload, np.dtype("<i2"))[:: body.channels]
            self._estimator.heard(body.device_id, told_ns, samples, body.rate_hz)
        if tracked.rewritten_ns:
            body = replace(body, timestamp_ns=body.timestamp_ns - tracked.rewritten_ns)
            records += self._stands_still(followed, tracked)
        if (
            body.modality is Modality.VIDEO
            and tracked.stream is body.modality
            and not tracked.course.doubtful
        ):
            followed.pictures[body.timestamp_ns] = tracked.course.last_x
            if len(followed.pictures) > _KEPT_PICTURES:
                del followed.pictures[next(iter(followed.pictures))]
        if self._estimator.advance(arrival_ns):
            records += self._estimated()
        notices = [self._notice(finding) for finding in self._estimator.findings()]
        return body, records, notices

    def seen(self, device: str, raw_ns: int, brightness: float) -> None:
        """Mean brightness (0..1) of a picture, by the stamp with which ``packet`` handed it on."""
        followed = self._devices.get(device)
        x_ns = None if followed is None else followed.pictures.get(raw_ns)
        if x_ns is not None:
            self._estimator.seen(device, x_ns, brightness)

    def _stands_still(self, followed: _Followed, tracked: Tracked) -> list[ClockRecord]:
        """Once for each stop: since it began the device is placed by counting, and known no better than that."""
        stop = tracked.freezes[-1] if tracked.freezes else None
        if stop is None or stop.end_x is not None or stop.begin_x == followed.stood_x:
            return []
        followed.stood_x = stop.begin_x
        found = []
        for x in sorted({stop.begin_x, stop.counted_x}):
            raw_ns = self._raw_ns(followed, tracked, x)
            before = in_force(followed.records, raw_ns) or followed.told
            unsure_ns = before.uncertainty_ns + round(stop.within_ms(x) * _NS_PER_MS)
            found.append(
                before.model_copy(
                    update={"from_raw_ns": raw_ns, "uncertainty_ns": unsure_ns, "method": "online"}
                )
            )
        return self._written(followed, found)

    @staticmethod
    def _raw_ns(followed: _Followed, tracked: Tracked, x: int) -> int:
        """The stamp with which a place on ``x`` is handed on now."""
        shift_ns = tracked.course.zero_ns + tracked.course.shift_ns - tracked.rewritten_ns
        return to_raw_ns(followed.told, x + shift_ns)

    def _jumped(self, followed: _Followed, jump: Jump) -> list[ClockRecord]:
        """A first record for what follows a jump, until it is estimated better."""
        tracked = self._estimator.devices[followed.told.device]
        raw_ns = to_raw_ns(followed.told, jump.from_raw_ns - tracked.rewritten_ns)
        before = in_force(followed.records, raw_ns - jump.by_ns) or followed.told
        back = jump.by_ns < 0
        record = before.model_copy(
            update={
                "from_raw_ns": raw_ns, "offset_ns": before.offset_ns + jump.by_ns,
                "uncertainty_ns": before.uncertainty_ns + 3 * jump.uncertainty_ns,
                # Set back, the same stamps come twice: what was placed before must stay where it is.
                "method": "arrival" if back else "online",
            }
        )  # fmt: skip
        if back:
            followed.since_x = jump.x
        return self._written(followed, [record])

    def _estimated(self) -> list[ClockRecord]:
        """Records of all devices whose estimates say something else than what holds."""
        out: list[ClockRecord] = []
        for name, followed in self._devices.items():
            tracked = self._estimator.devices.get(name)
            if tracked is None or tracked.curve is None or self._estimator.base_ns is None:
                continue
            out += self._of_device(followed, tracked, self._estimator.base_ns)
        return out

    def _of_device(self, followed: _Followed, tracked: Tracked, base_ns: int) -> list[ClockRecord]:
        since, at_first = followed.since_x, followed.since_x is not None or tracked.prior is None
        if len(tracked.jumps) >= KEPT_JUMPS:
            # Jumps before these are forgotten, and with them what stamps meant then.
            since, at_first = max(tracked.jumps[0][0], since or 0), False
        found = pieces(tracked, base_ns, self._estimator.settings)
        found = [p for p in found if since is None or p.end_x > since]
        new = [
            record_of(
                piece, followed.told, tracked.course.zero_ns, 0,
                first=place == 0 and piece.jump_told_ns is None and at_first,
            )
            for place, piece in enumerate(found)
        ]  # fmt: skip
        measured_before = followed.told.method == "stored"
        untouched = len(followed.records) == 1
        if tracked.believed and not tracked.named and not measured_before and untouched and new:
            # Stamps that are right need no estimate, unless they claim next to nothing. Where one was made that
            # turned out wrong, it must not stand.
            most = max(r.uncertainty_ns for r in new)
            if most > 0.6 * followed.told.uncertainty_ns:
                return []
        at = differs(new, followed.records, self._raw_ns(followed, tracked, tracked.course.last_x))
        return [] if at is None else self._written(followed, new[at:])

    def _written(self, followed: _Followed, records: Sequence[ClockRecord]) -> list[ClockRecord]:
        followed.records = [*followed.records, *records][-_KEPT_RECORDS:]
        return list(records)

    def _notice(self, finding: Finding) -> NoticeRecord:
        return NoticeRecord(meeting_id=self._meeting_id, code="clock_wrong", text=text_of(finding))


def _claim(record: ClockRecord, per_s_ms: float) -> Claim:
    return Claim(record.uncertainty_ns / _NS_PER_MS, per_s_ms)


def text_of(finding: Finding) -> str:
    """What people are told of a device's clock."""
    device, seconds = finding.device, abs(finding.error_ms) / 1e3
    late = "ahead" if finding.error_ms > 0 else "behind"
    match finding.what:
        case "offset":
            return f"The clock of {device} is {seconds:.3f} s {late}; its times are corrected."
        case "skew":
            pace = "fast" if finding.skew_ppm > 0 else "slow"
            return (
                f"The clock of {device} runs {abs(finding.skew_ppm):.0f} ppm {pace}; its times are corrected."
            )
        case "step":
            way = "forward" if finding.error_ms > 0 else "back"
            return f"The clock of {device} was set {way} by {seconds:.3f} s; its times are corrected."
        case "frozen":
            return (
                f"The clock of {device} stood still or ran back; its times go on by the count of its packets."
            )
        case "epoch":
            return f"The clock of {device} is {seconds:.0f} s {late}: TAI and UTC are confused; its times are corrected."
        case "agrees":
            return f"The clock of {device} agrees with the others again."
