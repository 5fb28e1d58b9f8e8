"""A room of files through both flows with faults of clocks and delivery, without a broker: arrival times are made up.

What tests and the benchmark of lost packets play. Slow work answers at once, so that the same faults give the same log.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from contracts.packet import Packet, encode
from contracts.timeline import TIMELINE_RECORD
from contracts.topics import AUDIO, CONTROL, VIDEO, TopicNames
from devices.faults import ClockFault, DeliveryFault, DeviceClock, deliver
from devices.inputs import Room, open_inputs
from devices.streams import due_ns
from flows.build import product_versions
from flows.files import MinutesOfLog, OrderedWorkers, log_values
from models.speech_recogniser import RecogniserSettings, SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.clock import Clock, ClockSettings
from operators.ingest import Ingest, IngestSettings
from operators.perceive.step import MediaWorkers, Perceive
from operators.perceive.types import PerceiveSettings

S: Final = 1_000_000_000
MS: Final = 1_000_000
_UTC_NS: Final = 37 * S
_SOUND_NS, _PICTURE_NS = 9 * MS, 38 * MS
"""The least time from capture to append."""


@dataclass(frozen=True)
class Captured:
    """A room and the packets of each of its streams, as they were before anything happened to them."""

    room: Room
    packets: Mapping[str, tuple[Packet, ...]]


def capture(folder: Path, seconds: float) -> Captured:
    """Read the first seconds of a room folder."""
    room = open_inputs([folder])
    end_ns = room.start_ns + round(seconds * S)
    packets: dict[str, tuple[Packet, ...]] = {}
    for stream in room.streams:
        kept = []
        for message in stream.packets():
            if message.timestamp_ns >= end_ns:
                break
            if isinstance(message, Packet):
                kept.append(message)
        packets[stream.name] = tuple(kept)
    return Captured(room, packets)


def arrivals(
    captured: Captured, clocks: Mapping[str, ClockFault], delivery: DeliveryFault, seed: int = 0
) -> Iterator[tuple[int, str, Packet]]:
    """When each packet is appended (ns, UTC), its stream, and itself stamped by its device's clock; in that order."""
    start_ns, found = captured.room.start_ns, []
    for of_stream, (name, packets) in enumerate(captured.packets.items(), start=seed):
        device = name.rpartition("/")[0]
        true = np.asarray([p.timestamp_ns for p in packets], np.int64)
        stamps = DeviceClock(clocks.get(device, ClockFault()), start_ns, of_stream).stamps_ns(true)
        floor = _SOUND_NS if name.endswith("/audio") else _PICTURE_NS
        sent = np.asarray([due_ns(p) for p in packets], np.int64)
        came = deliver(sent, replace(delivery, floor_ns=floor), start_ns, of_stream)
        for index, at in zip(came.index.tolist(), came.arrival_ns.tolist(), strict=True):
            stamped = replace(packets[index], timestamp_ns=int(stamps[index]), stream_epoch=1)
            found.append((at // MS * MS - _UTC_NS, name, index, stamped))
    for at, name, _, stamped in sorted(found, key=lambda f: f[:3]):
        yield at, name, stamped


@dataclass(frozen=True)
class Played:
    """The log and the minutes."""

    log: list[Any]
    minutes: dict[str, Any]

    def records(self, kind: type) -> list[Any]:
        return [r for r in self.log if isinstance(r, kind)]


def play(
    captured: Captured, clocks: Mapping[str, ClockFault], delivery: DeliveryFault, seed: int = 0
) -> Played:
    """The room through the steps of both flows."""
    ingest, clock = Ingest(IngestSettings(), TopicNames(shards=1)), Clock(ClockSettings())
    # Answers at once: how far slow work lags behind is the machine's business, not the clocks'.
    workers = OrderedWorkers(MediaWorkers(lambda: SpeechRecogniser(RecogniserSettings())), ahead=0)
    perceive = Perceive(
        0, PerceiveSettings(), VoiceActivity(), workers, NoJournal(), live=False, clock_s=lambda: 0.0, run=lambda: 0
    )  # fmt: skip
    offsets = dict.fromkeys((CONTROL.name, AUDIO.name, VIDEO.name), -1)
    log: list[bytes] = []

    def through(topic: str, value: bytes, arrival_ns: int) -> None:
        offsets[topic] += 1
        message = Received(topic, 0, offsets[topic], arrival_ns, True, value)
        take(perceive.on_batch(clock.on_batch(ingest.on_batch([message]))))

    def take(messages: list[Outgoing]) -> None:
        log.extend(log_values(messages))

    try:
        for control in captured.room.control:
            through(CONTROL.name, control.to_bytes(), captured.room.start_ns - _UTC_NS - 1)
        for at, name, stamped in arrivals(captured, clocks, delivery, seed):
            through(AUDIO.name if name.endswith("/audio") else VIDEO.name, encode(stamped), at)
        take(list(perceive.finish_input()))
        while perceive.busy:
            answer = workers.drain(0)
            if answer is None:
                raise RuntimeError("nothing is outstanding, but the meeting has not ended")
            take(list(perceive.answered(*answer)))
    finally:
        workers.close()
    minutes = MinutesOfLog(product_versions())
    for value in log:
        minutes.read(value)
    document = minutes.document()
    if document is None:
        raise RuntimeError("the log has no end of the meeting")
    return Played([TIMELINE_RECORD.validate_json(v) for v in log], json.loads(document.to_bytes()))
