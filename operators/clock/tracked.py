"""What is known of one device's clock while its meeting goes on."""

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from contracts.packet import Modality
from operators.clock.course import Jump, StreamCourse
from operators.clock.cues import FlashWatch, PulsesHeard
from operators.clock.solve import Vector
from operators.clock.sounds import SoundRing

DeviceKind = Literal["sound", "picture"]
KEPT_JUMPS: Final = 8
"""Of so many jumps of a clock place and size are kept; of older ones only what they come to."""
KNOT_NS: Final = 20_000_000_000
"""Distance of the knots of a clock's curve: wander over less is far below a tenth of a millisecond."""


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """What is known of any room before it begins, in ms, and what counts as a contradiction.

    ``floor``: mean and standard deviation of the shortest way from capture to broker, by kind. It cannot be
    told from a clock's error by arrival alone.
    """

    sound_floor_ms: tuple[float, float] = (9.0, 6.0)
    picture_floor_ms: tuple[float, float] = (38.0, 16.0)
    broker_ms: float = 20.0
    skew_ppm: float = 60.0
    wander_ms: float = 0.08
    """How far a free clock may leave a straight line from one knot to the next."""
    accuse_ms: float = 4.0
    accuse_sigmas: float = 5.0
    coarse_ms: float = 150.0
    """Claims further than this from what arrival says are put aside before anything is solved."""
    epoch_ms: float = 37_000.0
    """TAI minus UTC: what stamps of the wrong epoch are off by."""
    cover: float = 3.0
    """Bounds are so many standard uncertainties."""
    least_bound_ms: float = 0.3


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said of a device's stamps: right within ``bound_ms``, which ages by ``per_s_ms`` a second."""

    bound_ms: float
    per_s_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A device contradicts the rest, or no longer does."""

    device: str
    what: Literal["offset", "skew", "step", "frozen", "epoch", "agrees"]
    error_ms: float
    skew_ppm: float = 0.0


@dataclass(frozen=True, slots=True)
class Prior:
    """What a device's curve was at a knot when everything before it was forgotten; ms, and ms a knot."""

    knot: int
    value_ms: float
    sigma_ms: float
    slope_ms: float
    slope_sigma_ms: float


@dataclass(frozen=True, slots=True)
class Pair:
    """The same sound at the microphone before its talker and at another one: times on their ``x``."""

    talker_x: int
    other_x: int


@dataclass(slots=True)
class Freeze:
    """A stretch of ``x`` that is known by counting alone; ``end_x`` is None while it lasts."""

    begin_x: int
    end_x: int | None
    extra_ms: float
    """What counting may have been off by."""
    counted_x: int = 0
    """The first that was counted; before it stands one that still has the stamp of the stop …"""
    first_ms: float = 0.0
    """… and may be off by this besides."""

    def within_ms(self, x: int) -> float:
        """What a bound has to allow for at ``x``, which lies in the stretch."""
        return self.extra_ms + (self.first_ms if x < self.counted_x else 0.0)


@dataclass(slots=True)
class Tracked:
    """One device. ``stream``: the one whose stamps are followed; sound before pictures."""

    name: str
    kind: DeviceKind
    claim: Claim
    course: StreamCourse
    stream: Modality
    first_x: int = 0
    believed: bool = True
    named: bool = False
    refuted: int = 0
    """How many estimates in a row have refuted what is said of it."""
    doubted_ms: float = 0.0
    """Where its claim is neither believed nor refuted: how far a bound must reach that holds in either case."""
    jumps: list[tuple[int, Jump]] = field(default_factory=list)
    """Where on ``x`` the clock jumped, and how."""
    shift_before_ns: int = 0
    """Sum of older jumps, which are no longer kept one by one."""
    rewritten_ns: int = 0
    """How long the clock stood still, by the count of packets: stamps are passed on as if it had not."""
    freezes: list[Freeze] = field(default_factory=list)
    routes: list[int] = field(default_factory=list)
    """Bins at which the way to the broker became longer or shorter."""
    claim_shift_ns: int = 0
    """Sum of the jumps after which the claim is taken to hold …"""
    claim_from_x: int | None = None
    """… and since when; None for from the beginning."""
    ring: SoundRing = field(default_factory=SoundRing)
    chirps: PulsesHeard = field(default_factory=PulsesHeard)
    flashes: FlashWatch = field(default_factory=FlashWatch)
    prior: "Prior | None" = None
    curve: tuple[Vector, Vector, Vector] | None = None
    """Knots (s), deviation (ms), standard uncertainty (ms) as last solved."""

    def deviation_ms(self, x_ns: float, base_ns: int) -> float:
        """``x - true time`` as last solved, straight on beyond the knots."""
        if self.curve is None:
            return 0.0
        knots, values, _ = self.curve
        at = (x_ns - base_ns) / 1e9
        if len(knots) > 1 and at > knots[-1]:
            slope = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
            return float(values[-1] + slope * (at - knots[-1]))
        return float(np.interp(at, knots, values))

    def sigma_ms(self, x_ns: float, base_ns: int) -> float:
        """Standard uncertainty of ``deviation_ms``, growing beyond the knots."""
        if self.curve is None:
            return 1e6
        knots, _, sigmas = self.curve
        at = (x_ns - base_ns) / 1e9
        return float(np.interp(at, knots, sigmas))
