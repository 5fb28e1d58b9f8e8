"""Reads the topics of one meeting from outside, in a thread of its own, for the demo and the benchmarks.

It begins where the topics end when it is made, before its meeting is published. What stood there before is of other
meetings, and to read the embedded broker from the beginning takes it time with the square of what it holds.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from contracts.topics import DEADLETTER, MINUTES, PARTIALS, REVIEW, STATE, TIMELINE, Topic
from devices.publisher import tai_now_ns
from operators.broker.kafka_link import BrokerLink

WATCHED: Final = (TIMELINE, PARTIALS, MINUTES, STATE, REVIEW, DEADLETTER)
_POLL_S: Final = 0.2
_ASK_S: Final = 10.0

OnMessage = Callable[[Topic, bytes, int, int], None]
"""Called with topic, value, the TAI time at which the message was there, and the TAI time of its stamp (ms exact)."""


class Observer:
    """Hands every message that comes to a meeting's partition from now on to a callback, as soon as it can be read.

    A few older ones may come first: the embedded broker knows its end only to within a batch.
    """

    def __init__(
        self, link: BrokerLink, meeting_ids: tuple[str, ...], on_message: OnMessage,
        topics: tuple[Topic, ...] = WATCHED,
    ) -> None:  # fmt: skip
        self._topics = {link.names.of(t): t for t in topics}
        self._on_message = on_message
        self._stop = threading.Event()
        self._consumer = Consumer(
            link.consumer() | {"enable.partition.eof": False, "auto.offset.reset": "earliest"}
        )
        partitions = sorted({link.names.partition(m) for m in meeting_ids})
        self._consumer.assign(
            [TopicPartition(name, p, self._end_of(name, p)) for name in self._topics for p in partitions]
        )
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def _end_of(self, name: str, partition: int) -> int:
        """Where the partition ends now: asked for here and not left to the reader, which would look later."""
        try:
            return int(
                self._consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=_ASK_S)[1]
            )
        except KafkaException:
            return OFFSET_BEGINNING

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join(timeout=5)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(_POLL_S)
            if message is None or message.error() is not None:
                continue
            seen_ns, utc_ns = tai_now_ns(), time.time_ns()
            sent_ns = message.timestamp()[1] * 1_000_000 + (seen_ns - utc_ns)
            self._on_message(self._topics[message.topic() or ""], message.value() or b"", seen_ns, sent_ns)


def wait_for(
    condition: Callable[[], bool], timeout_s: float, check: Callable[[], None] = lambda: None
) -> bool:
    """Wait until a condition holds; False where it did not in time. ``check`` may raise."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        check()
        time.sleep(0.02)
    return condition()
