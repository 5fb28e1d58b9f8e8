"""The AsyncAPI 3.0 document of all topics, built from the topic table and the message models."""

import re
from typing import Any, Final

from . import topics
from .base import Message
from .catalogue import CARRIED, MODELS, name_of
from .packet import MAX_PAYLOAD_BYTES, VERSION
from .packet import __doc__ as PACKET_LAYOUT
from .timeline import Fence
from .topics import DEFAULT_SHARDS, DEVICE_TOPICS, TOPICS, Topic

CONTRACT_VERSION: Final = "1.0.0"
"""Of topics, packets and messages together: minor for additions, major where a reader would break."""
PACKET_TYPE: Final = "application/vnd.minuted.packet"
JSON_SCHEMA: Final = "application/schema+json;version=draft-2020-12"
_BINDING: Final = "0.5.0"
Node = dict[str, Any]


def document() -> Node:
    """The whole document, in an order that reads well."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "minuted",
            "version": CONTRACT_VERSION,
            "description": (
                "Streams of a meeting room in, minutes out. Every topic has the same number of partitions, "
                "and the producer sets the partition itself: CRC-32C (Castagnoli) of the UTF-8 meeting id, "
                "modulo the number of partitions. Topic names may carry a prefix of the installation."
            ),
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {_id(topic): _channel(topic) for topic in TOPICS},
        "operations": dict(_operation(topic) for topic in TOPICS),
        "components": {
            "messages": {"packet": _packet()} | {name: _message(name, model) for name, model in _sent()},
            "messageTraits": {"json": _json_trait()},
        },
    }


def key_rule(topic: Topic) -> str:
    """What the key of a topic's messages is, in words."""
    if topic is topics.STATE:
        return "`meeting/minutes/`"
    if topic.compacted:
        return "`meeting/type/subject`"
    if topic is topics.DEADLETTER:
        return "`topic/partition/offset` of what it holds"
    return "meeting id, empty for a fence" if topic is topics.TIMELINE else "meeting id"


def _id(topic: Topic) -> str:
    return topic.name.removeprefix("minuted.").replace(".", "_")


def _sent() -> list[tuple[str, type[Message]]]:
    sent = {model for carried in CARRIED.values() for model in carried}
    return [(name, model) for name, model in MODELS.items() if model in sent]


def _names(topic: Topic) -> list[str]:
    return ["packet"] * ("packet" in topic.format) + [name_of(model) for model in CARRIED[topic]]


def _channel(topic: Topic) -> Node:
    return {
        "address": topic.name,
        "description": topic.carries[0].upper() + topic.carries[1:] + f". Key: {key_rule(topic)}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _names(topic)},
        "bindings": {
            "kafka": {
                "topic": topic.name,
                "partitions": DEFAULT_SHARDS,
                "topicConfiguration": {
                    "cleanup.policy": ["compact" if topic.compacted else "delete"],
                    "retention.ms": topic.retention_ms,
                    "max.message.bytes": topic.max_message_bytes,
                    "message.timestamp.type": topic.config["message.timestamp.type"],
                },
                "bindingVersion": _BINDING,
            }
        },
    }


def _operation(topic: Topic) -> tuple[str, Node]:
    action = "receive" if topic in DEVICE_TOPICS else "send"
    name = action + "".join(part.capitalize() for part in _id(topic).split("_"))
    return name, {
        "action": action,
        "channel": {"$ref": f"#/channels/{_id(topic)}"},
        "messages": [{"$ref": f"#/channels/{_id(topic)}/messages/{name}"} for name in _names(topic)],
    }


def _message(name: str, model: type[Message]) -> Node:
    return {
        "name": name,
        "title": model.__name__,
        "summary": summary_of(model),
        "contentType": "application/json",
        "traits": [{"$ref": "#/components/messageTraits/json"}],
        "payload": {"schemaFormat": JSON_SCHEMA, "schema": {"$ref": f"schema/{name}.json"}},
        "bindings": {"kafka": _key(_key_of(model))},
    }


def summary_of(model: type[Message]) -> str:
    """First line of a model's docstring, with Markdown's single back quotes."""
    return (model.__doc__ or "").strip().splitlines()[0].replace("``", "`")


def _packet() -> Node:
    return {
        "name": "packet",
        "title": "Packet",
        "summary": "One block of sound, access unit of video or block of features.",
        "description": layout_markdown(),
        "contentType": PACKET_TYPE,
        "payload": {
            "type": "string",
            "format": "binary",
            "description": f"Layout version {VERSION}; a payload of at most {MAX_PAYLOAD_BYTES} bytes.",
        },
        "headers": {"type": "object", "properties": {"traceparent": _traceparent()}},
        "bindings": {"kafka": _key(_meeting_key())},
    }


def layout_markdown() -> str:
    """The packet layout as ``packet.py`` states it, its table in Markdown."""
    intro, head, rows, rules = re.split(r"^=+ .*\n", PACKET_LAYOUT or "", flags=re.M)
    table = [re.split(r" {2,}", line.strip(), maxsplit=2) for line in (head + rows).strip().splitlines()]
    table.insert(1, ["---"] * 3)
    lines = "\n".join(f"| {' | '.join(cells)} |" for cells in table)
    return f"{_flow(intro)}\n\n{lines}\n\n{_flow(rules)}".replace("``", "`")


def _flow(text: str) -> str:
    """Paragraphs on one line each."""
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _json_trait() -> Node:
    text = {"type": "string"}
    return {
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "description": "CloudEvents attributes: for routing and tracing, no part of the identity.",
            "properties": {
                "ce_specversion": {"type": "string", "const": "1.0"},
                "ce_id": text | {"description": "Unique within the source."},
                "ce_type": text | {"description": "`minuted.` and the message's type."},
                "ce_source": text | {"description": "`minuted/` and the part that wrote it."},
                "ce_time": text | {"format": "date-time"},
                "content-type": {"type": "string", "const": "application/json"},
                "traceparent": _traceparent(),
            },
        },
    }


def _traceparent() -> Node:
    return {
        "type": "string",
        "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
        "description": "W3C trace context, passed through from the message that caused this one.",
    }


def _key(schema: Node) -> Node:
    # Written out, not referred to: AsyncAPI's own schema finds a reference here ambiguous.
    return {"key": schema, "bindingVersion": _BINDING}


def _key_of(model: type[Message]) -> Node:
    (topic, *_) = (topic for topic, carried in CARRIED.items() if model in carried)
    if topic is topics.DEADLETTER:
        return {"type": "string", "description": "`topic/partition/offset` of the message it holds."}
    if model is Fence:
        return {"type": "string", "const": ""}
    return _compacted_key() if topic.compacted else _meeting_key()


def _meeting_key() -> Node:
    return {"type": "string", "description": "The meeting id in UTF-8."}


def _compacted_key() -> Node:
    return {
        "type": "string",
        "pattern": "^[^/]+/[^/]+/[^/]*$",
        "description": "`meeting/type/subject`, each part percent-encoded; a newer one replaces it.",
    }
