"""TAI minus UTC by date, from IERS Bulletin C; a table with a date, since no clock can know it by itself.

Source: the IERS list of leap seconds up to Bulletin C of January 2026; the first entry is 1972, when UTC in
its present form began. A test holds it against the system's own list where there is one.
"""

import bisect
import datetime
from typing import Final

LEAP_SECONDS: Final[tuple[tuple[str, int], ...]] = (
    ("1972-01-01", 10), ("1972-07-01", 11), ("1973-01-01", 12), ("1974-01-01", 13), ("1975-01-01", 14),
    ("1976-01-01", 15), ("1977-01-01", 16), ("1978-01-01", 17), ("1979-01-01", 18), ("1980-01-01", 19),
    ("1981-07-01", 20), ("1982-07-01", 21), ("1983-07-01", 22), ("1985-07-01", 23), ("1988-01-01", 24),
    ("1990-01-01", 25), ("1991-01-01", 26), ("1992-07-01", 27), ("1993-07-01", 28), ("1994-07-01", 29),
    ("1996-01-01", 30), ("1997-07-01", 31), ("1999-01-01", 32), ("2006-01-01", 33), ("2009-01-01", 34),
    ("2012-07-01", 35), ("2015-07-01", 36), ("2017-01-01", 37),
)  # fmt: skip
"""First day (UTC) and TAI minus UTC in seconds from then on."""
TAI_UTC_S: Final = LEAP_SECONDS[-1][1]
"""TAI minus UTC in seconds since the last leap second of the table."""
TAI_UTC_NS: Final = TAI_UTC_S * 10**9
_STARTS_NS: Final = tuple(
    int(datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 10**9
    for day, _ in LEAP_SECONDS
)


def tai_utc_s(utc_ns: int) -> int:
    """TAI minus UTC in whole seconds at a UTC time; before 1972 what held at its beginning."""
    place = bisect.bisect_right(_STARTS_NS, utc_ns) - 1
    return LEAP_SECONDS[max(place, 0)][1]


def utc_from_tai_ns(tai_ns: int) -> int:
    """UTC of a TAI time, both in ns since 1970; inside a leap second the second after it."""
    guess = tai_ns - tai_utc_s(tai_ns) * 10**9
    return tai_ns - tai_utc_s(guess) * 10**9


def tai_from_utc_ns(utc_ns: int) -> int:
    """TAI of a UTC time, both in ns since 1970."""
    return utc_ns + tai_utc_s(utc_ns) * 10**9
