"""What source, sink and journal share about the broker: client settings, checks, and plain words when it is away."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
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
from operators.log import Event, say

_METADATA_TIMEOUT_S: Final = 5.0
_PROBE_TIMEOUT_S: Final = 3.0
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
    access: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Encryption and login; never shown, since passwords are among them."""

    def client(self, watch: "BrokerWatch | None" = None) -> dict[str, Any]:
        """Settings that every client takes."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "minuted",
            "socket.keepalive.enable": True,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "logger": _QUIET,
            **self.access,
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


class Refusal:
    """What a broker says that takes no connection of ours: wrong login, a certificate that does not fit."""

    def __init__(self) -> None:
        self.said = ""

    def __call__(self, error: KafkaError) -> None:
        """Error callback of a client."""
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            # librdkafka puts the address in front and the time it took behind.
            self.said = " ".join(error.str().rpartition("/bootstrap: ")[2].split(" (after ")[0].split())

    def hear(self, admin: AdminClient) -> str:
        """Take what the client has for its callback; the reason as the end of a line, empty where none is known."""
        admin.poll(0)
        return f"; it refuses: {self.said}" if self.said else ""


class BrokerWatch:
    """Says once that the broker is away, and once that it is back.

    Clients report what they see late: an error may be handed over when the broker has long been back. So a
    report only makes a thread ask the broker, and what that hears is told.
    """

    def __init__(
        self, who: str, bootstrap: str, *, answers: Callable[[], bool], tell: Callable[[str, Event], None],
        pause_s: float = 0.5,
    ) -> None:  # fmt: skip
        self._who = who
        self._bootstrap = bootstrap
        self._answers = answers
        self._tell = tell
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._asking = False

    def on_error(self, error: KafkaError) -> None:
        """Error callback of a client."""
        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL):
            self.suspect()

    def suspect(self) -> None:
        """The broker may not answer; returns at once."""
        with self._lock:
            if self._asking:
                return
            self._asking = True
        threading.Thread(target=self._ask, name="broker-watch", daemon=True).start()

    def _ask(self) -> None:
        if not self._answers():
            self._tell(away_line(self._who, self._bootstrap), "broker_away")
            while not self._answers():
                time.sleep(self._pause_s)
            self._tell(back_line(self._who, self._bootstrap), "broker_back")
        with self._lock:
            self._asking = False


def away_line(who: str, bootstrap: str) -> str:
    """What people read when the broker is away."""
    return f"{who}: no broker answers at {bootstrap}; waiting for it, nothing is lost meanwhile"


def back_line(who: str, bootstrap: str) -> str:
    """What people read when the broker is back."""
    return f"{who}: the broker at {bootstrap} answers again"


_watches: dict[str, BrokerWatch] = {}


def broker_watch(who: str, link: BrokerLink) -> BrokerWatch:
    """The watch of this process over a broker.

    Source, sink and journal share it, so that an outage is told once; the first to ask gives the name.
    """
    known = _watches.get(link.bootstrap)
    if known is None:
        watch = BrokerWatch(who, link.bootstrap, answers=lambda: _answers(link), tell=say)
        known = _watches.setdefault(link.bootstrap, watch)
    return known


def _answers(link: BrokerLink) -> bool:
    try:
        AdminClient(link.client()).list_topics(timeout=_PROBE_TIMEOUT_S)
    except KafkaException:
        return False
    return True


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
    broker_watch(who, link)  # from here on the process has its name
    told = ""
    refusal = Refusal()
    admin = AdminClient(link.client() | {"error_cb": refusal})
    deadline = None if wait_s is None else time.monotonic() + wait_s
    while True:
        try:
            known = admin.list_topics(
                timeout=_METADATA_TIMEOUT_S if wait_s is None else min(wait_s, _METADATA_TIMEOUT_S)
            )
            break
        except KafkaException as error:
            if deadline is not None and time.monotonic() >= deadline:
                raise BrokerUnreachable(_waited(link, wait_s) + refusal.hear(admin)) from error
            away = away_line(who, link.bootstrap) + refusal.hear(admin)
            if wait_s is None and told != away:
                say(away, "broker_away")
                told = away
    if told:
        say(back_line(who, link.bootstrap), "broker_back")
    sizes = {
        name: len(found.partitions)
        for topic in wanted
        if (found := known.topics.get(name := link.names.of(topic))) is not None and found.error is None
    }
    missing = [name for topic in wanted if (name := link.names.of(topic)) not in sizes]
    if missing:
        others = f" and {len(missing) - 1} more topics do" if len(missing) > 1 else " does"
        raise TopicProblem(
            f"{missing[0]}{others} not exist at {link.bootstrap}: `minuted topics create` makes them"
        )
    for name, count in sizes.items():
        if len(set(sizes.values())) == 1 and count != link.names.shards:
            raise TopicProblem(
                f"the topics have {count} partitions, MINUTED_SHARDS is {link.names.shards}; both must be the same"
            )
        if count != link.names.shards:
            raise TopicProblem(
                f"{name} has {count} partitions, MINUTED_SHARDS is {link.names.shards}: delete the topic and run "
                "`minuted topics create`, which makes it with the right number"
            )


def create_topics(link: BrokerLink, *, replication: int = 1, wait_s: float = 30.0) -> list[str]:
    """Create the missing topics of the contract; names of those created.

    Raises:
        BrokerUnreachable: nobody answered within ``wait_s``.
        TopicProblem: the broker refused.
    """
    refusal = Refusal()
    admin = AdminClient(link.client() | {"error_cb": refusal})
    deadline = time.monotonic() + wait_s
    while True:
        try:
            known = admin.list_topics(timeout=min(wait_s, _METADATA_TIMEOUT_S)).topics
            break
        except KafkaException as error:
            if time.monotonic() >= deadline:
                raise BrokerUnreachable(_waited(link, wait_s) + refusal.hear(admin)) from error
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


def _waited(link: BrokerLink, wait_s: float | None) -> str:
    return f"no broker answers at {link.bootstrap} (waited {wait_s:g} s)"


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
