"""Meetings of transcripts as ready-made messages, sent as fast as wanted, and which event each message caused."""

import bisect
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer

from contracts.messages import AttendeeInfo, EndOfStream, MeetingEnded, MeetingStarted, TranscriptMessage
from contracts.topics import CONTROL, MINUTES, TRANSCRIPT, Topic, TopicNames, compacted_key
from devices.publisher import tai_now_ns
from flows.latency import TrueUtterance
from operators.broker.kafka_link import BrokerLink

from .rooms import ATTENDEES
from .watching import Seen

_DEVICE: Final = "captions"
_NS_PER_S: Final = 1_000_000_000
_NEAR_S: Final = 0.005
_QUEUE: Final = 200_000


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a meeting; ``spoken`` is the number of its utterance, None for control and ends."""

    meeting: str
    topic: Topic
    key: bytes
    value: bytes
    spoken: int | None = None


def lines_of(meeting: str, said: Sequence[TrueUtterance], start_ns: int) -> list[Line]:
    """All messages of a meeting of one outside recogniser, in the order in which they are sent."""
    name = meeting.encode()
    started = MeetingStarted(
        meeting_id=meeting, start_ns=start_ns, title="Benchmark", speech_source="transcript",
        attendees=tuple(AttendeeInfo(name=attendee) for attendee in ATTENDEES),
        streams=(f"{_DEVICE}/transcript",),
    )  # fmt: skip
    lines = [
        Line(meeting, CONTROL, compacted_key(meeting, started.type, started.subject), started.to_bytes())
    ]
    for number, utterance in enumerate(said):
        begin_ns, end_ns = (start_ns + round(s * _NS_PER_S) for s in (utterance.start_s, utterance.end_s))
        words = TranscriptMessage(
            meeting_id=meeting, device_id=_DEVICE, stream_epoch=start_ns, sequence=number, timestamp_ns=begin_ns,
            duration_ns=end_ns - begin_ns, speaker=utterance.speaker, text=utterance.text,
        )  # fmt: skip
        lines.append(Line(meeting, TRANSCRIPT, name, words.to_bytes(), number))
    last_ns = start_ns + round(max(u.end_s for u in said) * _NS_PER_S)
    over = EndOfStream(
        meeting_id=meeting, device_id=_DEVICE, stream_epoch=start_ns, sequence=len(said), timestamp_ns=last_ns,
        modality="transcript",
    )  # fmt: skip
    ended = MeetingEnded(meeting_id=meeting, end_ns=last_ns)
    lines.append(Line(meeting, TRANSCRIPT, name, over.to_bytes()))
    lines.append(Line(meeting, CONTROL, compacted_key(meeting, ended.type, ended.subject), ended.to_bytes()))
    return lines


def in_turn(meetings: Iterable[Sequence[Line]]) -> Iterator[Line]:
    """One line of each meeting after the other, as if they went on side by side."""
    waiting = [iter(lines) for lines in meetings]
    while waiting:
        for lines in list(waiting):
            line = next(lines, None)
            if line is None:
                waiting.remove(lines)
            else:
                yield line


class Sender:
    """Sends lines and remembers when each utterance went out (TAI ns)."""

    def __init__(self, link: BrokerLink) -> None:
        self._names: TopicNames = link.names
        self._producer = Producer(link.producer() | {"queue.buffering.max.messages": _QUEUE})
        self.sent_ns: dict[tuple[str, int], int] = {}

    def send(self, lines: Iterable[Line], per_s: float | None = None) -> float:
        """Send all, at an even pace where one is given; the most that a line was late, in ms."""
        return self.send_at((0.0 if per_s is None else n / per_s, line) for n, line in enumerate(lines))

    def send_at(self, plan: Iterable[tuple[float, Line]]) -> float:
        """Send each line so many seconds after the start, the first at once; the most that one was late, in ms.

        Lines for second 0 go as fast as they can and count as never late.
        """
        begun, late_s = time.monotonic(), 0.0
        for due_s, line in plan:
            if due_s > 0:
                wait_s = begun + due_s - time.monotonic()
                if wait_s > 0:
                    time.sleep(wait_s)
                late_s = max(late_s, -wait_s)
            if line.spoken is not None:
                self.sent_ns[line.meeting, line.spoken] = tai_now_ns()
            self._producer.produce(
                self._names.of(line.topic), key=line.key, value=line.value,
                partition=self._names.partition(line.meeting),
            )  # fmt: skip
            self._producer.poll(0)
        self._producer.flush()
        return late_s * 1e3


def event_times_ms(
    seen: Iterable[Seen], said: Mapping[str, Sequence[TrueUtterance]], sent_ns: Mapping[tuple[str, int], int]
) -> list[float]:
    """For each utterance that caused one: from sending it until its first provisional event was seen.

    The cause is the utterance with which the evidence of the event ends. Events come in the order of their causes:
    one that points back behind an earlier one was caused by something that is not its evidence, and is left out.
    """
    ends = {meeting: [u.end_s for u in utterances] for meeting, utterances in said.items()}
    newest: dict[str, int] = {}
    taken: list[float] = []
    for message in seen:
        if message.topic is not MINUTES:
            continue
        event = json.loads(message.value)
        meeting = event["meeting_id"]
        if meeting not in ends or event["stage"] != "provisional" or "item" not in event:
            continue
        speech = [e["end_s"] for e in event["item"]["evidence"] if e["kind"] == "speech"]
        place = bisect.bisect_left(ends[meeting], max(speech, default=0.0) - _NEAR_S)
        if place == len(ends[meeting]) or abs(ends[meeting][place] - max(speech, default=0.0)) > _NEAR_S:
            continue
        if place > newest.get(meeting, -1):
            newest[meeting] = place
            taken.append((message.seen_ns - sent_ns[meeting, place]) / 1e6)
    return taken
