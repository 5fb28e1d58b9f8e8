"""What other senses than words tell about an utterance, as figures of fixed length for the network.

A sense that was not there is marked absent, and its figures are zero only to fill their places: a network
reads the mask, never the zeros.

vector, present = sense_vector(sound=(0.7, 0.4, 0.9, 0.1))
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

SOUND: Final = ("rise", "slope", "voiced", "level")
"""Pitch at the end against the utterance's own (6 semitones = 1), its slope (20 semitones a second = 1), share of
the end that was voiced, loudness (-30 dB of full scale = 0, 30 dB = 1)."""
PICTURE: Final = ("nods", "shakes", "hands", "surest", "moving", "place_known")
"""Movements that began before the next utterance (4 nods or shakes, 8 hands = 1), confidence of the surest,
share of the motion at the speaker's place, and whether that place is known."""
SLIDE: Final = ("lines", "dates", "numbers", "shared", "pointed_at")
"""The slide that stood: lines (10 = 1), lines with a date, lines with a number (5 = 1), share of the utterance's
content words on it, whether the words point at it."""
GROUPS: Final = (("sound", SOUND), ("picture", PICTURE), ("slide", SLIDE))
SENSES: Final = (*SOUND, *PICTURE, *SLIDE)
"""Names of the figures in the order in which they stand in the vector."""

Vector = npt.NDArray[np.float32]
Present = npt.NDArray[np.bool_]


def sense_vector(
    sound: Sequence[float] | None = None,
    picture: Sequence[float] | None = None,
    slide: Sequence[float] | None = None,
) -> tuple[Vector, Present]:
    """Figures of one utterance: float32 (len(SENSES),) in -1..1, and bool (3,) for sound, picture, slide.

    None: that sense was not there. Figures beyond -1..1 are cut off.

    Raises:
        ValueError: a sense has another number of figures than its names, or one that is no number.
    """
    vector, present = np.zeros(len(SENSES), np.float32), np.zeros(len(GROUPS), np.bool_)
    place = 0
    for group, ((name, names), figures) in enumerate(zip(GROUPS, (sound, picture, slide), strict=True)):
        if figures is not None:
            if len(figures) != len(names) or not np.isfinite(figures).all():
                raise ValueError(f"{name} takes {len(names)} finite figures ({', '.join(names)})")
            vector[place : place + len(names)] = np.clip(figures, -1.0, 1.0)
            present[group] = True
        place += len(names)
    return vector, present
