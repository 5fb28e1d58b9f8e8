"""Sends one room as many meetings at once, from one process that has coded everything before the first block is due.

``minuted publish`` reads, codes and sends a room in real time, as a machine in that room would; twelve of them on the
machine of the flows take processor time that is not the flows'. This sends the same messages at the same times for next
to nothing. Blocks of different meetings are not due together: meetings begin ``--stagger`` seconds apart.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from contracts.headers import Headers, cloud_event
from contracts.messages import EndOfStream, MeetingEnded, MeetingStarted
from contracts.packet import ClockKind, Modality, Packet, encode
from contracts.topics import AUDIO, CONTROL, VIDEO, Topic, TopicNames, compacted_key
from devices.inputs import Room, open_inputs
from devices.publisher import moved_control, tai_now_ns
from devices.streams import StreamMessage, due_ns, merged

from .report import progress

_TOPIC_OF: Final = {"audio": AUDIO, "video": VIDEO}
_LEAD_NS: Final = 1_000_000_000
_CODED_IN_NS: Final = 40_000
"""What a message takes to be coded, on a slow day: twice as long as usual."""
_CONTROL_AHEAD_NS: Final = 200_000_000
_END_AFTER_NS: Final = 50_000_000
_POLL_EVERY_NS: Final = 500_000_000


@dataclass(frozen=True, slots=True)
class Due:
    """A message and when it goes out, counted from the start of the first meeting."""

    at_ns: int
    topic: Topic
    meeting: str
    key: bytes
    value: bytes
    headers: Headers | None = None


def coded(
    room: Room, messages: list[tuple[str, StreamMessage]], begin_ns: int, meeting: str
) -> Iterator[Due]:
    """All of a meeting that begins ``begin_ns`` (TAI), with times counted from there."""
    shift_ns = begin_ns - room.start_ns
    key = meeting.encode()
    told = frozenset(name for name, _ in messages)
    for control in moved_control(room.control, shift_ns):
        control = control.model_copy(update={"meeting_id": meeting})
        if isinstance(control, MeetingStarted):
            control = control.model_copy(update={"streams": tuple(s for s in control.streams if s in told)})
        at = compacted_key(meeting, control.type, control.subject)
        yield Due(
            -_CONTROL_AHEAD_NS, CONTROL, meeting, at, control.to_bytes(), _headers(control.type, at.decode())
        )
    end_ns = 0
    for name, message in messages:
        offset_ns = due_ns(message) - room.start_ns
        end_ns = max(end_ns, offset_ns)
        topic = _TOPIC_OF[name.rpartition("/")[2]]
        stamp_ns = message.timestamp_ns + shift_ns
        if isinstance(message, Packet):
            packet = replace(
                message,
                meeting_id=meeting,
                timestamp_ns=stamp_ns,
                stream_epoch=begin_ns,
                clock_kind=ClockKind.PTP,
            )
            yield Due(offset_ns, topic, meeting, key, encode(packet))
        elif isinstance(message, EndOfStream):
            end = message.model_copy(
                update={"meeting_id": meeting, "timestamp_ns": stamp_ns, "stream_epoch": begin_ns}
            )
            yield Due(
                offset_ns, topic, meeting, key, end.to_bytes(), _headers(end.type, f"{meeting}/{name}/end")
            )
    ended = MeetingEnded(meeting_id=meeting, end_ns=begin_ns + end_ns)
    at = compacted_key(meeting, ended.type, ended.subject)
    yield Due(
        end_ns + _END_AFTER_NS, CONTROL, meeting, at, ended.to_bytes(), _headers(ended.type, f"{meeting}/end")
    )


def _headers(kind: str, event_id: str) -> Headers:
    return cloud_event(
        kind, event_id, "benchmarks.feeder", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )


class Sender:
    """Hands messages to the client when they are due."""

    def __init__(self, bootstrap: str, names: TopicNames) -> None:
        self._names = names
        self.failed = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap, "client.id": "feeder", "acks": "all", "enable.idempotence": True,
                "linger.ms": 5, "message.max.bytes": 8 * 1024 * 1024, "queue.buffering.max.kbytes": 256 * 1024,
                "socket.nagle.disable": True, "log_level": 2,
            }
        )  # fmt: skip
        self._producer.list_topics(timeout=30)

    def send(self, messages: list[Due], begin_ns: int) -> int:
        """Send all by the monotonic clock, whose ``begin_ns`` is their zero; the most that one was late, in ns."""
        late_ns = polled_ns = 0
        for message in messages:
            due = begin_ns + message.at_ns
            now_ns = time.monotonic_ns()
            if now_ns < due:
                if now_ns - polled_ns > _POLL_EVERY_NS:
                    polled_ns = now_ns
                    self._producer.poll(0)
                time.sleep((due - now_ns) / 1e9)
            late_ns = max(late_ns, now_ns - due)
            self._producer.produce(
                self._names.of(message.topic), value=message.value, key=message.key,
                partition=self._names.partition(message.meeting), headers=list(message.headers or ()),
                on_delivery=None if message.headers is None else self._on_delivery,
            )  # fmt: skip
        self._producer.flush(60)
        return late_ns

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        del message
        self.failed += error is not None


def main() -> int:
    """Command line; one JSON line when all is out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("room", type=Path)
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--shards", type=int, required=True)
    parser.add_argument("--meetings", nargs="+", required=True)
    parser.add_argument("--stagger", type=float, default=1.005)
    given = parser.parse_args()
    room = open_inputs([given.room])
    sound = [stream for stream in room.streams if stream.modality in (Modality.AUDIO, Modality.VIDEO)]
    messages = [(stream.name, message) for stream, message in merged(sound)]
    progress(f"feeder: coding {len(messages)} messages for {len(given.meetings)} meetings")
    sender = Sender(given.brokers, TopicNames(shards=given.shards))
    stagger_ns = round(given.stagger * 1e9)
    # The stamps are in what is coded, so the start has to be foreseen.
    begin = tai_now_ns() + _LEAD_NS + _CODED_IN_NS * len(messages) * len(given.meetings)
    wall = time.monotonic_ns() + begin - tai_now_ns()
    all_due: list[Due] = []
    for number, meeting in enumerate(given.meetings):
        later_ns = number * stagger_ns
        for message in coded(room, messages, begin + later_ns, meeting):
            all_due.append(replace(message, at_ns=message.at_ns + later_ns))
    all_due.sort(key=lambda message: message.at_ns)
    if time.monotonic_ns() > wall - _CONTROL_AHEAD_NS:
        progress("feeder: coding took longer than was foreseen; the first blocks go out late")
    print("ready", flush=True)
    cpu_s, wall_s = time.process_time(), time.monotonic()
    late_ns = sender.send(all_due, wall)
    used = (time.process_time() - cpu_s) / (time.monotonic() - wall_s)
    print(
        json.dumps(
            {"max_lateness_ms": round(late_ns / 1e6, 1), "failed": sender.failed, "cores": round(used, 3)}
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
