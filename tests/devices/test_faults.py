"""Faults on demand: what a plan says is what stamps and arrivals show, and the truth stays known."""

from dataclasses import replace

import numpy as np
import pytest

from contracts.packet import ClockKind, Codec, Modality, Packet
from devices.faults import (
    BROKER_TICK_NS,
    BrokerClock,
    ClockFault,
    DeliveryFault,
    DeviceClock,
    DeviceKind,
    DevicePlan,
    capture_times_ns,
    deliver,
    disturbed,
    plan_room,
)

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S
KINDS: dict[str, DeviceKind] = {
    "mic-0": "sound", "mic-1": "sound", "mic-2": "sound", "mic-3": "sound", "camera": "camera", "slides": "slides",
}  # fmt: skip


def times(length_s: int = 100) -> np.ndarray:
    return START + np.arange(length_s * 50, dtype=np.int64) * 20 * MS


@pytest.mark.parametrize(
    ("fault", "after_s", "error_ns"),
    [
        (ClockFault(offset_ns=-3_200 * MS), 60, -3_200 * MS),
        (ClockFault(skew_ppb=100_000.0), 60, 6 * MS),
        (ClockFault(step_at_s=50.0, step_ns=700 * MS), 49, 0),
        (ClockFault(step_at_s=50.0, step_ns=700 * MS), 51, 700 * MS),
        (ClockFault(frozen_at_s=50.0, frozen_for_s=5.0), 52, -2 * S),
        (ClockFault(frozen_at_s=50.0, frozen_for_s=5.0), 80, -5 * S),
        (ClockFault(epoch_ns=-37 * S), 60, -37 * S),
    ],
)
def test_a_clock_is_off_by_what_its_fault_says(fault: ClockFault, after_s: int, error_ns: int) -> None:
    at = np.asarray([START + after_s * S])
    clock = DeviceClock(fault, START, seed=3)
    assert clock.error_ns(at)[0] == error_ns
    assert abs(clock.stamps_ns(at)[0] - at[0] - error_ns) < 300_000


def test_wander_comes_back_after_its_period() -> None:
    clock = DeviceClock(ClockFault(wander_ppb=10_000.0, wander_period_s=40.0), START, seed=0)
    error = clock.error_ns(START + np.arange(0, 81, 20, dtype=np.int64) * S) / MS
    assert np.allclose(error, [0.0, 0.1273, 0.0, 0.1273, 0.0], atol=0.001)


def test_a_frozen_clock_repeats_one_stamp() -> None:
    clock = DeviceClock(ClockFault(frozen_at_s=10.0, frozen_for_s=5.0), START, seed=0)
    stamps = clock.stamps_ns(times(20))
    assert len(set(stamps[500:750].tolist())) == 1


def test_delivery_loses_in_bursts_repeats_reorders_and_never_comes_early() -> None:
    sent = times()
    fault = DeliveryFault(floor_ns=5 * MS, loss=0.02, duplicates=0.01, route_at_s=50.0, route_ns=30 * MS)
    found = deliver(sent, fault, START, seed=1)
    delay = found.arrival_ns - sent[found.index]
    before = sent[found.index] < START + 50 * S
    assert 5 * MS <= delay[before].min() < 6 * MS
    assert 35 * MS <= delay[~before].min() < 36 * MS
    assert np.percentile(delay, 99) > 40 * MS > np.median(delay)
    arrived = np.unique(found.index)
    assert 0.01 < 1 - len(arrived) / len(sent) < 0.035
    gaps = np.diff(arrived)[np.diff(arrived) > 1] - 1
    assert gaps.mean() > 2.5  # in bursts
    assert 0.005 < len(found.index) / len(arrived) - 1 < 0.015
    assert np.any(np.diff(found.index) < 0) and np.all(np.diff(found.arrival_ns) >= 0)


def test_cameras_drop_their_rate_and_devices_join_late() -> None:
    plan = DevicePlan("camera", joins_at_s=10.0, rate_hz=25.0, drops_at_s=30.0)
    at = (capture_times_ns(plan, START, START + 60 * S, seed=0) - START) / S
    assert 10.0 <= at[0] < 10.03
    assert np.allclose(np.diff(at[at < 30.0]), 0.04) and np.allclose(np.diff(at[at > 30.0]), 1 / 12)


def test_the_brokers_clock_counts_milliseconds_and_is_set() -> None:
    broker = BrokerClock(START, step_at_s=1.0, step_ns=-100 * MS)
    shown = broker.append_ns(np.asarray([START + S - 1, START + S]))
    assert np.all(shown % BROKER_TICK_NS == 0)
    assert (shown - START).tolist() == [999 * MS, 900 * MS]


def test_the_same_seed_plans_the_same_room_and_some_devices_stay_right() -> None:
    assert plan_room(KINDS, START, 120.0, 7) == plan_room(KINDS, START, 120.0, 7)
    faults = set()
    for seed in range(60):
        plans = plan_room(KINDS, START, 120.0, seed).devices
        right = [name for name, plan in plans.items() if not plan.clock_faults]
        assert len(right) >= 3 and sum(plans[n].kind == "sound" for n in right) >= 2
        faults |= {fault for plan in plans.values() for fault in plan.faults}
    assert faults == {
        "offset", "skew", "step", "frozen", "epoch", "late_join", "slow_camera", "variable_rate",
    }  # fmt: skip


def test_real_packets_are_disturbed_in_nothing_but_stamps_and_order() -> None:
    first = Packet(
        "m", "mic", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, 0, START, 20 * MS, bytes(2), 16_000, 0, 0, 1
    )  # fmt: skip
    clean = [
        (at, replace(first, sequence=n, timestamp_ns=at, payload=bytes([n % 256, 0])))
        for n, at in enumerate(times(10).tolist())
    ]
    plan = DevicePlan("sound", ClockFault(offset_ns=S), DeliveryFault(duplicates=0.02, loss=0.02))
    found = disturbed(clean, plan, START, seed=4)
    assert found == disturbed(clean, plan, START, seed=4)
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert [p.sequence for _, p in found] != sorted(p.sequence for _, p in found)
    for arrival_ns, packet in found:
        true_ns, before = clean[packet.sequence]
        assert abs(packet.timestamp_ns - true_ns - S) < MS and arrival_ns >= true_ns + 25 * MS
        assert replace(packet, timestamp_ns=before.timestamp_ns) == before
