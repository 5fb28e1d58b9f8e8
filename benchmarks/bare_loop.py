"""The least that any path through the broker costs: one program that consumes a topic and produces to another."""

import argparse
import subprocess
import sys
import time
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    NewTopic,
)

from flows.brokers import guarded_command
from flows.installation import ROOT, Installation
from operators.broker.kafka_link import BrokerLink

_IN: Final = "benchmark.loop.in"
_OUT: Final = "benchmark.loop.out"
_READY: Final = b"ready"
_WAIT_S: Final = 20.0


def bare_loop_ms(
    installation: Installation, *, messages: int, every_s: float, payload_bytes: int = 400
) -> list[float]:
    """Milliseconds from producing a message to seeing its copy, one message after the other.

    Raises:
        TimeoutError: a copy did not come back.
    """
    link = installation.link
    admin = AdminClient(link.client())
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in (_IN, _OUT)]).values():
        made.result(_WAIT_S)
    command = [sys.executable, "-m", "benchmarks.bare_loop", link.bootstrap, *_fetch_option(link)]
    loop = subprocess.Popen(
        guarded_command(command), cwd=ROOT, env=installation.environment, stdin=subprocess.DEVNULL
    )
    consumer, producer = _consumer(link, _OUT), Producer(link.producer())
    taken: list[float] = []
    try:
        _next(consumer)  # the loop's word that it reads
        for number in range(messages):
            value = number.to_bytes(8, "big").ljust(payload_bytes, b".")
            begun = time.perf_counter()
            producer.produce(_IN, value, partition=0)
            producer.poll(0)
            if _next(consumer) != value:
                raise TimeoutError("the bare loop answered out of order")
            taken.append((time.perf_counter() - begun) * 1e3)
            time.sleep(every_s)
    finally:
        loop.kill()
        loop.wait()
        consumer.close()
    return taken


def _fetch_option(link: BrokerLink) -> list[str]:
    wait = link.overrides.get("fetch.wait.max.ms")
    return [] if wait is None else ["--fetch-wait-ms", str(wait)]


def _consumer(link: BrokerLink, topic: str) -> Consumer:
    consumer = Consumer(link.consumer() | {"enable.partition.eof": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    return consumer


def _next(consumer: Consumer) -> bytes:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            return message.value() or b""
    raise TimeoutError("nothing came back through the bare loop")


def main() -> None:
    """The loop itself, until it is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("--fetch-wait-ms", type=int)
    given: Any = parser.parse_args()
    overrides = {} if given.fetch_wait_ms is None else {"fetch.wait.max.ms": given.fetch_wait_ms}
    link = BrokerLink(given.bootstrap, overrides=overrides)
    consumer, producer = _consumer(link, _IN), Producer(link.producer())
    producer.produce(_OUT, _READY, partition=0)
    producer.flush()
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            producer.produce(_OUT, message.value(), partition=0)
            producer.flush()


if __name__ == "__main__":
    main()
