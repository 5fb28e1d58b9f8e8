"""The calibration signal: flashes and chirps at once, at gaps of which no two are alike.

A page, a file or a lamp with a buzzer plays it once; each pulse is light for ``ON_S`` and, from the same
moment, a rising tone of ``CHIRP_S``. Pulses fall anywhere between pictures, so their edges, taken together,
place a camera far more finely than one flash could.
"""

from typing import Final

PULSES_S: Final = (0.0, 0.61, 1.37, 2.3, 3.05, 4.13, 4.79, 5.72, 6.59, 7.26, 8.37, 9.11)
"""Starts of the pulses, in seconds from the first."""
ON_S: Final = 0.25
"""How long each light stays on."""
CHIRP_S: Final = 0.05
CHIRP_FROM_HZ: Final = 800.0
CHIRP_TO_HZ: Final = 3600.0
