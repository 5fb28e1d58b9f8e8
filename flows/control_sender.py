"""Sends control messages, for commands; each is delivered before the command goes on."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer

from contracts.messages import ALL_MEETINGS, AnyControl, control_key
from contracts.topics import CONTROL
from operators.broker.kafka_link import BrokerLink, BrokerUnreachable


class ControlSender:
    """One producer on ``minuted.control``."""

    def __init__(self, link: BrokerLink, *, wait_s: float = 30.0) -> None:
        self._link = link
        self._wait_s = wait_s
        self._producer = Producer(link.producer())

    def send(self, message: AnyControl) -> None:
        """Send a message under its compacted key.

        Raises:
            BrokerUnreachable: it was not delivered in time.
        """
        self._deliver([(control_key(message), message.to_bytes())], message.meeting_id)

    def erase(self, keys: Iterable[bytes], meeting_id: str) -> None:
        """Take keys of a meeting off the topic: compaction then forgets what they held."""
        self._deliver([(key, None) for key in keys], meeting_id)

    def _deliver(self, messages: list[tuple[bytes, bytes | None]], meeting_id: str) -> None:
        failed: list[str] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(str(error))

        names = self._link.names
        for key, value in messages:
            # What holds for all meetings stands in every partition: each is read alone.
            everywhere = range(names.shards)
            for partition in everywhere if meeting_id == ALL_MEETINGS else (names.partition(meeting_id),):
                self._producer.produce(
                    names.of(CONTROL), key=key, value=value, partition=partition, on_delivery=on_delivery
                )
        if self._producer.flush(self._wait_s) > 0 or failed:
            why = failed[0] if failed else f"waited {self._wait_s:g} s"
            raise BrokerUnreachable(f"{self._link.bootstrap} did not take a control message ({why})")
