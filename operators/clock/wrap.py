"""Counters that begin anew: 32-bit time stamps as RTP has them (RFC 3550)."""

from typing import Final

TICK_RATES_HZ: Final = (1_000, 8_000, 16_000, 24_000, 32_000, 44_100, 48_000, 90_000, 96_000, 1_000_000)
"""Rates at which 32-bit counters of media devices commonly run (RFC 3551: the media clock)."""
_SLACK_NS: Final = 50_000_000


def wrapped_by_ns(jump_ns: int) -> int | None:
    """How far a counter of 32 bits at a common rate falls back, where a jump is one of these; negative."""
    for rate_hz in TICK_RATES_HZ:
        turn_ns = (1 << 32) * 1_000_000_000 // rate_hz
        if abs(jump_ns + turn_ns) <= _SLACK_NS:
            return -turn_ns
    return None
