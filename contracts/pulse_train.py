"""The calibration signal: flashes and chirps at once, at gaps of which no two are alike.

A page, a file or a lamp with a buzzer plays it once; each pulse is light for ``ON_S`` and, from the same
moment, a rising tone of ``CHIRP_S``. Pulses fall anywhere between pictures, so their edges, taken together,
place a camera far more finely than one flash could.
"""

from typing import Final

PULSES_S: Final = (0.0, 0.828, 1.824, 2.643, 3.447, 4.189, 5.004, 6.015, 6.815, 7.738, 8.76, 9.628)
"""Starts of the pulses, in seconds from the first: on and off, they fall evenly between the pictures of a camera
at 12, 15, 24, 25, 30 or 50 a second (no gap above 0.15 of a period, with two pulses missed)."""
ON_S: Final = 0.272
"""How long each light stays on."""
CHIRP_S: Final = 0.05
CHIRP_FROM_HZ: Final = 800.0
CHIRP_TO_HZ: Final = 3600.0
