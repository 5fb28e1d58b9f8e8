"""From the stamps of a device to the meeting's timeline, by the clock records of the log."""

from collections.abc import Sequence

from contracts.timeline import ClockRecord


def to_timeline_ns(clock: ClockRecord, raw_ns: int) -> int:
    """Timeline time of a raw stamp: ``raw - offset - skew * (raw - ref)``, on integers but for the skew term."""
    skew_ns = round((raw_ns - clock.ref_ns) * clock.skew_ppb * 1e-9) if clock.skew_ppb else 0
    return raw_ns - clock.offset_ns - skew_ns


def clock_in_force(records: Sequence[ClockRecord], placed_by: int, raw_ns: int) -> ClockRecord | None:
    """The newest of a device's clock records that holds for a raw time, None where none does.

    Where a device's clock jumped, the same raw time may come twice, or never come again: what was placed
    (``placed_by``: number of the record) before the jump is not re-timed by what was learnt after it.
    """
    found = None
    for record in records:
        if record.number > placed_by and is_step(record):
            break
        if record.number == placed_by or record.from_raw_ns <= raw_ns:
            found = record
    return found


def is_step(clock: ClockRecord) -> bool:
    """Whether this record was written because the device's clock jumped."""
    return clock.number > 0 and clock.method == "arrival"
