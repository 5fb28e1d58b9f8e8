"""Kafka headers of JSON messages: CloudEvents attributes and W3C trace context.

They describe a message for routers and tracing; nothing in them is part of a message's identity.
"""

import re
from collections.abc import Iterable
from typing import Final

SOURCE_PREFIX: Final = "minuted/"
_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
Headers = list[tuple[str, bytes]]


def cloud_event(
    kind: str, event_id: str, source: str, time_iso: str, traceparent: str | None = None
) -> Headers:
    """Headers of one message.

    Args:
        kind: message type without prefix, for example ``item_added``.
        event_id: unique within ``source``.
        source: which part wrote it, for example ``flows.minutes``.
        time_iso: RFC 3339 time of the event.
        traceparent: passed through from the message that caused this one; dropped where malformed.
    """
    headers: Headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_type", f"minuted.{kind}".encode()),
        ("ce_source", (SOURCE_PREFIX + source).encode()),
        ("ce_time", time_iso.encode()),
        ("content-type", b"application/json"),
    ]
    if traceparent is not None and _TRACEPARENT.fullmatch(traceparent):
        headers.append(("traceparent", traceparent.encode()))
    return headers


def traceparent_of(headers: Iterable[tuple[str, bytes | str | None]] | None) -> str | None:
    """The W3C trace context of a received message, or None where absent or malformed."""
    for name, value in headers or ():
        if name == "traceparent" and isinstance(value, bytes):
            text = value.decode("ascii", "replace")
            return text if _TRACEPARENT.fullmatch(text) else None
    return None
