"""Faults of clocks and delivery on demand: true capture times in, stamps and arrivals out, seeded.

A plan says what is wrong with one device. ``DeviceClock`` turns true times into the stamps that the device
would write, ``deliver`` says what of it reaches the broker, when and in which order, ``BrokerClock`` what
the broker's clock shows then. The same plan and seed give the same stamps and arrivals; the truth stays known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from contracts.leap_seconds import TAI_UTC_NS
from contracts.packet import Modality, Packet

Nanoseconds = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
DeviceKind = Literal["sound", "camera", "slides"]
ClockFaultName = Literal["offset", "skew", "step", "frozen", "epoch"]
RateFaultName = Literal["late_join", "slow_camera", "variable_rate"]
CLOCK_FAULTS: Final[tuple[ClockFaultName, ...]] = ("offset", "skew", "step", "frozen", "epoch")

MAX_OFFSET_NS: Final = 3_200_000_000
MAX_SKEW_PPB: Final = 100_000.0
"""What a stamp is off by where UTC is taken for TAI, or TAI for UTC (since 2017)."""
BROKER_TICK_NS: Final = 1_000_000
"""Kafka's LogAppendTime counts milliseconds."""


@dataclass(frozen=True, slots=True)
class ClockFault:
    """What is wrong with a device's clock; times ``at_s`` count from the start of the room.

    ``wander_ppb``: how far the skew swings to either side of ``skew_ppb``, once in ``wander_period_s``.
    """

    offset_ns: int = 0
    skew_ppb: float = 0.0
    wander_ppb: float = 0.0
    wander_period_s: float = 300.0
    step_at_s: float | None = None
    step_ns: int = 0
    frozen_at_s: float | None = None
    frozen_for_s: float = 0.0
    epoch_ns: int = 0
    noise_ns: int = 50_000
    """Standard deviation of single stamps about the clock."""


@dataclass(frozen=True, slots=True)
class DeliveryFault:
    """How packets travel: a floor, heavy-tailed queueing above it, loss in bursts, repeats, a new route.

    Queueing is lognormal, cut at ``most_ns``: nearly all packets are a little late and a few very late.
    """

    floor_ns: int = 5_000_000
    jitter_ns: int = 4_000_000
    """Median of the queueing."""
    jitter_shape: float = 1.2
    most_ns: int = 300_000_000
    loss: float = 0.0
    burst: float = 5.0
    """Mean number of packets lost in a row."""
    duplicates: float = 0.0
    route_at_s: float | None = None
    route_ns: int = 0
    """How much longer the floor is after the change of the route."""


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """Everything that is wrong with one device, and what is right: its kind and picture rate."""

    kind: DeviceKind
    clock: ClockFault = field(default_factory=ClockFault)
    delivery: DeliveryFault = field(default_factory=DeliveryFault)
    joins_at_s: float = 0.0
    rate_hz: float = 50.0
    drops_at_s: float | None = None
    drops_to_hz: float = 12.0
    variable_rate: bool = False
    faults: tuple[ClockFaultName | RateFaultName, ...] = ()

    @property
    def clock_faults(self) -> tuple[ClockFaultName, ...]:
        """Those of the faults that make stamps wrong."""
        return tuple(f for f in CLOCK_FAULTS if f in self.faults)


class DeviceClock:
    """The clock that a device stamps with.

    Args:
        fault: what is wrong with it.
        start_ns: true time of the room's start, to which the fault's times refer.
        seed: of the noise of single stamps.
    """

    def __init__(self, fault: ClockFault, start_ns: int, seed: int) -> None:
        self._fault = fault
        self._start_ns = start_ns
        self._seed = seed

    def error_ns(self, true_ns: Nanoseconds) -> Nanoseconds:
        """Stamp minus true time, without the noise of single stamps: shape as given."""
        fault = self._fault
        since = (true_ns - self._start_ns) / 1e9
        stopped = np.zeros_like(since)
        if fault.frozen_at_s is not None:
            # A clock that stood still is behind by how long it stood.
            stopped = np.clip(since - fault.frozen_at_s, 0.0, fault.frozen_for_s)
        runs = since - stopped
        drift = fault.skew_ppb * runs
        if fault.wander_ppb:
            turn = 2 * np.pi / fault.wander_period_s
            drift = drift + fault.wander_ppb / turn * (1 - np.cos(turn * runs))
        error = np.rint(drift - stopped * 1e9).astype(np.int64) + fault.offset_ns + fault.epoch_ns
        if fault.step_at_s is not None:
            error = error + np.where(since >= fault.step_at_s, fault.step_ns, 0)
        return np.asarray(error, np.int64)

    def is_frozen(self, true_ns: Nanoseconds) -> npt.NDArray[np.bool_]:
        """Whether the clock stands still at these times."""
        if self._fault.frozen_at_s is None:
            return np.zeros(np.shape(true_ns), np.bool_)
        since = (true_ns - self._start_ns) / 1e9 - self._fault.frozen_at_s
        return np.asarray((since >= 0) & (since < self._fault.frozen_for_s), np.bool_)

    def stamps_ns(self, true_ns: Nanoseconds) -> Nanoseconds:
        """What the device writes on captures at these true times: shape as given."""
        noise = np.random.default_rng([self._seed, 1]).normal(0.0, self._fault.noise_ns, true_ns.shape)
        noise[self.is_frozen(true_ns)] = 0.0
        return np.asarray(true_ns + self.error_ns(true_ns) + np.rint(noise).astype(np.int64), np.int64)


@dataclass(frozen=True, slots=True)
class BrokerClock:
    """The broker's own clock: a little fast or slow, set by a step now and then, in whole milliseconds."""

    start_ns: int
    skew_ppb: float = 0.0
    offset_ns: int = 0
    step_at_s: float | None = None
    step_ns: int = 0

    def append_ns(self, arrival_ns: Nanoseconds) -> Nanoseconds:
        """Append times of what arrives at these true times."""
        since = arrival_ns - self.start_ns
        shown = arrival_ns + self.offset_ns + np.rint(since * (self.skew_ppb * 1e-9)).astype(np.int64)
        if self.step_at_s is not None:
            shown = shown + np.where(since >= self.step_at_s * 1e9, self.step_ns, 0)
        return np.asarray(shown // BROKER_TICK_NS * BROKER_TICK_NS, np.int64)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What reached the broker: which capture, and when; in the order of arrival."""

    index: npt.NDArray[np.int64]
    arrival_ns: Nanoseconds


def deliver(sent_ns: Nanoseconds, fault: DeliveryFault, start_ns: int, seed: int) -> Delivered:
    """Send packets through the network.

    Args:
        sent_ns: true times at which the packets are complete, ascending; shape (packets,).
        fault: how they travel.
        start_ns: true time of the room's start.
        seed: of queueing, loss and repeats.
    """
    random = np.random.default_rng([seed, 2])
    count = len(sent_ns)
    index = np.flatnonzero(~_lost(count, fault, random))
    if fault.duplicates > 0.0:
        again = index[random.random(len(index)) < fault.duplicates]
        index = np.concatenate([index, again])
    queue = np.minimum(fault.jitter_ns * random.lognormal(0.0, fault.jitter_shape, len(index)), fault.most_ns)
    arrival = sent_ns[index] + fault.floor_ns + np.rint(queue).astype(np.int64)
    if fault.route_at_s is not None:
        changed = sent_ns[index] - start_ns >= fault.route_at_s * 1e9
        arrival = arrival + np.where(changed, fault.route_ns, 0)
    order = np.argsort(arrival, kind="stable")
    return Delivered(index[order], np.asarray(arrival[order], np.int64))


def disturbed(
    packets: Sequence[tuple[int, Packet]], plan: DevicePlan, start_ns: int, seed: int
) -> list[tuple[int, Packet]]:
    """Packets of one device as its plan would have them arrive: true arrival time and packet, in that order.

    Args:
        packets: true capture time and clean packet, ascending; nothing but stamps is changed.
        plan: what is wrong with the device; its picture rate and when it joins are the packets' own.
        start_ns: true time of the room's start.
        seed: of everything.
    """
    true_ns = np.asarray([at for at, _ in packets], np.int64)
    # A block of sound is complete, and can be sent, only when it is over.
    lasts = [p.duration_ns if p.modality is Modality.AUDIO else 0 for _, p in packets]
    stamps = DeviceClock(plan.clock, start_ns, seed).stamps_ns(true_ns)
    found = deliver(true_ns + np.asarray(lasts, np.int64), plan.delivery, start_ns, seed)
    return [
        (int(arrival), replace(packets[place][1], timestamp_ns=int(stamps[place])))
        for place, arrival in zip(found.index.tolist(), found.arrival_ns.tolist(), strict=True)
    ]


def _lost(count: int, fault: DeliveryFault, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Bursts of lost packets (Gilbert 1960): the share and the mean length as the fault says."""
    lost = np.zeros(count, np.bool_)
    if fault.loss <= 0.0:
        return lost
    begins = np.flatnonzero(random.random(count) < fault.loss / fault.burst)
    for begin, length in zip(begins, random.geometric(1.0 / fault.burst, len(begins)), strict=True):
        lost[begin : begin + length] = True
    return lost


def capture_times_ns(plan: DevicePlan, start_ns: int, end_ns: int, seed: int) -> Nanoseconds:
    """True capture times of a device's packets: blocks of sound, or the middle of pictures' exposures."""
    random = np.random.default_rng([seed, 3])
    begin = start_ns + round(plan.joins_at_s * 1e9) + int(random.integers(0, 20_000_000))
    span_s = (end_ns - begin) / 1e9
    if span_s <= 0:
        return np.zeros(0, np.int64)
    steps = np.full(round(span_s * plan.rate_hz) + 1, 1.0 / plan.rate_hz)
    if plan.variable_rate:
        steps = random.uniform(1.0 / 30.0, 1.0 / plan.drops_to_hz, len(steps))
    at = np.cumsum(steps) - steps[0]
    if plan.drops_at_s is not None:
        change = plan.drops_at_s - plan.joins_at_s
        kept = at[at < change]
        after = kept[-1] if len(kept) else 0.0
        slow = np.arange(1, round((span_s - after) * plan.drops_to_hz) + 2) / plan.drops_to_hz
        at = np.concatenate([kept, after + slow])
    times = begin + np.rint(at * 1e9).astype(np.int64)
    return np.asarray(times[times < end_ns], np.int64)


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """What is wrong in one room: by device, and with the broker's clock."""

    devices: Mapping[str, DevicePlan]
    broker: BrokerClock


def plan_room(
    devices: Mapping[str, DeviceKind], start_ns: int, length_s: float, seed: int, *, faulty: float = 0.35, least_sound: int = 2
) -> RoomPlan:  # fmt: skip
    """A random room under all faults.

    Args:
        devices: kind by device.
        start_ns: true time of the room's start.
        length_s: how long it goes on.
        seed: of everything.
        faulty: share of devices whose clock is wrong; at least three stay right, ``least_sound`` of them microphones.
    """
    random = np.random.default_rng([seed, 4])
    names = list(devices)
    right = {name: bool(random.random() >= faulty) for name in names}
    sound = [n for n in names if devices[n] == "sound"]
    for name in list(random.permutation(sound)):
        if sum(right[n] for n in sound) < least_sound:
            right[str(name)] = True
    for name in list(random.permutation(names)):
        if sum(right.values()) < min(3, len(names)):
            right[str(name)] = True
    plans = {n: _plan_device(devices[n], length_s, right=right[n], random=random) for n in names}
    step = random.random() < 0.3
    broker = BrokerClock(
        start_ns, float(random.uniform(-20_000.0, 20_000.0)), int(random.normal(0.0, 5_000_000.0)),
        float(random.uniform(0.3, 0.8) * length_s) if step else None,
        int(random.choice([-1, 1]) * random.uniform(20e6, 500e6)),
    )  # fmt: skip
    return RoomPlan(plans, broker)


_FLOORS_MS: Final[dict[DeviceKind, tuple[float, float]]] = {
    "sound": (2.0, 14.0), "camera": (15.0, 60.0), "slides": (10.0, 55.0),
}  # fmt: skip
"""Least and greatest time from the end of a capture to the broker without queueing: drivers and encoders."""
_RATES_HZ: Final[dict[DeviceKind, tuple[float, ...]]] = {
    "sound": (50.0,),
    "camera": (25.0, 30.0),
    "slides": (25.0, 30.0),
}


def _plan_device(
    kind: DeviceKind, length_s: float, *, right: bool, random: np.random.Generator
) -> DevicePlan:
    faults: list[ClockFaultName | RateFaultName] = []
    clock = ClockFault(noise_ns=50_000 if kind == "sound" else 200_000)
    if not right:
        name = CLOCK_FAULTS[int(random.choice(len(CLOCK_FAULTS), p=(0.35, 0.25, 0.2, 0.1, 0.1)))]
        clock = _clock_fault(name, clock.noise_ns, length_s, random)
        faults.append(name)
    drops_at_s: float | None = None
    variable = False
    joins_at_s = 0.0
    if kind == "camera" and random.random() < 0.3:
        drops_at_s = float(random.uniform(0.2, 0.7) * length_s)
        faults.append("slow_camera")
    elif kind == "camera" and random.random() < 0.2:
        variable = True
        faults.append("variable_rate")
    if random.random() < 0.1:
        joins_at_s = float(random.uniform(0.0, 0.25) * length_s)
        faults.append("late_join")
    low, high = _FLOORS_MS[kind]
    changes = random.random() < 0.25
    delivery = DeliveryFault(
        floor_ns=int(random.uniform(low, high) * 1e6), jitter_ns=int(random.uniform(2e6, 8e6)),
        jitter_shape=float(random.uniform(1.0, 1.4)), loss=0.02, duplicates=0.01,
        route_at_s=float(random.uniform(0.2, 0.8) * length_s) if changes else None,
        route_ns=int(random.uniform(5e6, 40e6)),
    )  # fmt: skip
    rate = float(random.choice(_RATES_HZ[kind]))
    return DevicePlan(
        kind,
        clock,
        delivery,
        joins_at_s,
        rate,
        drops_at_s,
        12.0,
        variable_rate=variable,
        faults=tuple(faults),
    )


def _clock_fault(
    name: ClockFaultName, noise_ns: int, length_s: float, random: np.random.Generator
) -> ClockFault:
    """One fault of a clock; a clock that is not held by anything drifts and wanders besides."""
    sign = int(random.choice([-1, 1]))
    middle_s = float(random.uniform(0.3, 0.7) * length_s)
    skew = float(random.uniform(-MAX_SKEW_PPB, MAX_SKEW_PPB))
    match name:
        case "offset":
            return ClockFault(offset_ns=int(random.uniform(-MAX_OFFSET_NS, MAX_OFFSET_NS)), noise_ns=noise_ns)
        case "skew":
            offset = int(random.uniform(-MAX_OFFSET_NS, MAX_OFFSET_NS))
            wander, period = float(random.uniform(1_000, 8_000)), float(random.uniform(200.0, 600.0))
            return ClockFault(offset, skew, wander, period, noise_ns=noise_ns)
        case "step":
            by = sign * int(random.uniform(100e6, 2e9))
            return ClockFault(step_at_s=middle_s, step_ns=by, noise_ns=noise_ns)
        case "frozen":
            stands_s = float(random.uniform(5.0, 20.0))
            return ClockFault(frozen_at_s=middle_s, frozen_for_s=stands_s, noise_ns=noise_ns)
        case "epoch":
            return ClockFault(epoch_ns=sign * TAI_UTC_NS, noise_ns=noise_ns)
