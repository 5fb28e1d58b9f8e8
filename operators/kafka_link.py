"""What source, sink and journal share about the broker: client settings, checks, and plain words when it is away."""

import logging
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from contracts.topics import TOPICS, Topic, TopicNames

_METADATA_TIMEOUT_S: Final = 5.0
_QUIET: Final = logging.getLogger("minuted.kafka")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
"""librdkafka's own lines go nowhere: people get ours, once an outage, instead of one a second."""


@dataclass(frozen=True, slots=True)
class BrokerLink:
    """How to reach the broker, and how the topics are called there."""

    bootstrap: str
    names: TopicNames = field(default_factory=TopicNames)
    overrides: Mapping[str, str | int] = field(default_factory=dict)
    """librdkafka settings on top of ours, for example those of the embedded broker."""

    def client(self, watch: "BrokerWatch | None" = None) -> dict[str, Any]:
        """Settings that every client takes."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "minuted",
            "socket.keepalive.enable": True,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "logger": _QUIET,
        }
        if watch is not None:
            config["error_cb"] = watch.on_error
        return config

    def consumer(self, watch: "BrokerWatch | None" = None) -> dict[str, Any]:
        """Settings of a consumer that is told its partitions and keeps its own offsets."""
        config = self.client(watch) | {
            "group.id": "minuted",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": 32_768,
            "fetch.message.max.bytes": 6 * 1024 * 1024,
        }
        return config | {k: v for k, v in self.overrides.items() if k.startswith("fetch.")}

    def producer(self, watch: "BrokerWatch | None" = None) -> dict[str, Any]:
        """Settings of an idempotent producer that waits as long as the broker is away."""
        config = self.client(watch) | {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            "message.timeout.ms": 0,
            "message.max.bytes": 8 * 1024 * 1024,
        }
        return config | {k: v for k, v in self.overrides.items() if not k.startswith("fetch.")}


class BrokerWatch:
    """Says once that the broker is away, and once that it is back."""

    def __init__(self, who: str, bootstrap: str) -> None:
        self._who = who
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._away = False

    def on_error(self, error: KafkaError) -> None:
        """Error callback of a client."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.away()

    def away(self) -> None:
        """The broker does not answer."""
        with self._lock:
            if self._away:
                return
            self._away = True
        say(f"{self._who}: no broker answers at {self._bootstrap}; waiting for it, nothing is lost meanwhile")

    def back(self) -> None:
        """Something came from the broker."""
        with self._lock:
            was_away, self._away = self._away, False
        if was_away:
            say(f"{self._who}: the broker at {self._bootstrap} answers again")


class TopicProblem(RuntimeError):
    """Topics are missing or do not have the contract's shape."""


class BrokerUnreachable(RuntimeError):
    """No broker answered in the time given."""


def check_topics(
    link: BrokerLink, who: str, wanted: tuple[Topic, ...] = TOPICS, *, wait_s: float | None = None
) -> None:
    """Return once the broker answers and all topics are as the contract says.

    Args:
        wait_s: give up after so long with ``BrokerUnreachable``; None waits for ever, saying so once.

    Raises:
        TopicProblem: a topic is missing or has another number of partitions.
        BrokerUnreachable: nobody answered within ``wait_s``.
    """
    watch = BrokerWatch(who, link.bootstrap)
    admin = AdminClient(link.client())
    deadline = None if wait_s is None else time.monotonic() + wait_s
    while True:
        try:
            known = admin.list_topics(
                timeout=_METADATA_TIMEOUT_S if wait_s is None else min(wait_s, _METADATA_TIMEOUT_S)
            )
            break
        except KafkaException as error:
            if deadline is not None and time.monotonic() >= deadline:
                raise BrokerUnreachable(f"no broker answers at {link.bootstrap}") from error
            if wait_s is None:
                watch.away()
    watch.back()
    problems = []
    sizes = {
        len(found.partitions)
        for t in wanted
        if (found := known.topics.get(link.names.of(t))) and not found.error
    }
    if len(sizes) == 1 and sizes != {link.names.shards}:
        raise TopicProblem(
            f"the topics have {sizes.pop()} partitions, MINUTED_SHARDS is {link.names.shards}; both must be the same"
        )
    for topic in wanted:
        name = link.names.of(topic)
        found = known.topics.get(name)
        if found is None or found.error is not None:
            problems.append(f"{name} does not exist")
        elif len(found.partitions) != link.names.shards:
            problems.append(f"{name} has {len(found.partitions)} partitions instead of {link.names.shards}")
    if problems:
        raise TopicProblem(
            f"{'; '.join(problems)}. `minuted topics create` makes missing topics; a topic with another number of "
            "partitions must be deleted first, or MINUTED_SHARDS set to it"
        )


def create_topics(link: BrokerLink, *, replication: int = 1, wait_s: float = 30.0) -> list[str]:
    """Create the missing topics of the contract; names of those created.

    Raises:
        BrokerUnreachable: nobody answered within ``wait_s``.
        TopicProblem: the broker refused.
    """
    admin = AdminClient(link.client())
    deadline = time.monotonic() + wait_s
    while True:
        try:
            known = admin.list_topics(timeout=min(wait_s, _METADATA_TIMEOUT_S)).topics
            break
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise BrokerUnreachable(f"no broker answers at {link.bootstrap}") from error
    missing = [topic for topic in TOPICS if link.names.of(topic) not in known]
    if not missing:
        return []
    wanted = [
        NewTopic(
            link.names.of(t),
            num_partitions=link.names.shards,
            replication_factor=replication,
            config=t.config,
        )
        for t in missing
    ]
    for name, made in admin.create_topics(wanted, operation_timeout=wait_s).items():
        try:
            made.result(wait_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicProblem(f"{name} cannot be created: {error.args[0].str()}") from error
    return [link.names.of(t) for t in missing]


def differing_settings(link: BrokerLink) -> list[str]:
    """Topic settings that differ from the contract, as readable lines; empty where the broker cannot tell."""
    admin = AdminClient(link.client())
    resources = {ConfigResource(ResourceType.TOPIC, link.names.of(t)): t for t in TOPICS}
    lines = []
    for resource, future in admin.describe_configs(list(resources)).items():
        try:
            found = future.result(10)
        except KafkaException:
            continue
        for key, value in resources[resource].config.items():
            entry = found.get(key)
            if entry is not None and entry.value != value:
                lines.append(f"{resource.name}: {key} is {entry.value}, the contract says {value}")
    return lines


def say(line: str) -> None:
    """One line for people, on standard error."""
    print(line, file=sys.stderr, flush=True)
