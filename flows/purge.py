"""``minuted purge``: all data of a meeting goes; what cannot go at once is named with its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from contracts.messages import control_key
from contracts.topics import AUDIT, CONTROL, MINUTES, STATE, TOPICS, Topic
from operators.broker.kafka_link import BrokerLink
from operators.deliver.keys import KeyStore

from .control_sender import ControlSender
from .review import purged, purging
from .topic_reader import TopicReader

_AGAIN_S: Final = 3.0
"""The message is sent again so often: what comes after a snapshot proves to the flows that it is durable."""
_HOURS_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What a purge has done: the flows said so, and the key is destroyed (None: it cannot be seen from here)."""

    told: bool
    key_destroyed: bool | None
    erased: int


def purge(link: BrokerLink, meeting_id: str, keys: KeyStore | None, *, wait_s: float) -> PurgeReport:
    """Purge a meeting and wait until the flows have done it.

    Raises:
        BrokerUnreachable, TopicProblem: as :class:`TopicReader`.
        ReviewProblem: no meeting can have that id.
    """
    message = purging(meeting_id)
    sender = ControlSender(link)
    with TopicReader(link, (CONTROL,), meeting_id) as control:
        standing = {found.key: found.value for found in control.to_end()}
    sender.send(message)
    # The purge itself stays on the topic: whoever reads it from its beginning must purge too.
    mine = quote(meeting_id, safe="").encode() + b"/"
    old = [
        k for k, v in standing.items() if k.startswith(mine) and v is not None and k != control_key(message)
    ]
    sender.erase(old, meeting_id)
    told, destroyed = False, None if keys is None else keys.destroyed(meeting_id)
    deadline = time.monotonic() + wait_s
    again = time.monotonic() + _AGAIN_S
    with TopicReader(link, (MINUTES,), meeting_id) as minutes:
        while time.monotonic() < deadline and not (told and destroyed):
            told = told or purged(minutes.poll(), meeting_id)
            destroyed = None if keys is None else keys.destroyed(meeting_id)
            if time.monotonic() >= again:
                sender.send(message)
                again = time.monotonic() + _AGAIN_S
    return PurgeReport(told, destroyed, len(old))


def remains() -> Iterator[str]:
    """What is left on the topics, and for how long."""
    for topic in TOPICS:
        if topic is STATE:
            yield f"{topic.name}: erased; gone at the broker's next compaction"
        elif topic is CONTROL:
            yield f"{topic.name}: the purge itself; the rest is erased and gone at the broker's next compaction"
        elif topic is AUDIT:
            yield f"{topic.name}: sealed entries that nobody can open any more; the chain still verifies"
        else:
            yield f"{topic.name}: what is there stays for up to {_kept(topic)}"


def _kept(topic: Topic) -> str:
    hours = topic.retention_ms // _HOURS_MS
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours} h" if hours > 1 else f"{topic.retention_ms // 60_000} minutes"
