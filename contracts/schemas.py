"""Writes what is generated from the contract: JSON Schema, AsyncAPI, the tables of the document.

    python -m contracts.schemas            write everything
    python -m contracts.schemas --check    write nothing; exit 1 naming the files that differ
    python -m contracts.schemas --golden   write golden files that do not exist yet, never another one

Golden files are what other programs were built on, so they are not written anew: one that no longer
agrees is named, and has to be deleted by hand first.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from . import asyncapi, examples
from .base import Message
from .catalogue import CARRIED, MODELS
from .minutes import ItemEvent
from .topics import TOPICS, Topic, partition_of

FOLDER: Final = Path(__file__).resolve().parent
DOCUMENT: Final = FOLDER.parent / "docs" / "contracts.md"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
EXAMPLE_MEETINGS: Final = ("weekly-2026-03-02", "room 4/Übergabe", "r1")
"""Meetings whose partitions the document shows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; the exit code says whether everything agreed."""
    parser = argparse.ArgumentParser(prog="python -m contracts.schemas", description="Contract files.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where files differ")
    parser.add_argument("--golden", action="store_true", help="write golden files that are missing")
    options = parser.parse_args(arguments)
    files = golden_files() if options.golden else generated_files()
    if options.golden and not options.check:
        files = {path: data for path, data in files.items() if path.exists() or _write(path, data)}
    elif not options.check:
        for path, data in files.items():
            _write(path, data)
        for path in stale_files():
            path.unlink()
    wrong = [path for path, data in files.items() if not path.exists() or path.read_bytes() != data]
    wrong += [] if options.golden else stale_files()
    for path in wrong:
        print(f"differs from the contract: {path}", file=sys.stderr)
    return 1 if wrong else 0


def generated_files() -> dict[Path, bytes]:
    """Content of every generated file by its path."""
    files = {FOLDER / "schema" / f"{name}.json": _json(json_schema(model)) for name, model in MODELS.items()}
    text = yaml.safe_dump(asyncapi.document(), sort_keys=False, allow_unicode=True, width=110)
    files[FOLDER / "asyncapi.yaml"] = text.encode()
    if DOCUMENT.exists():
        files[DOCUMENT] = filled_document(DOCUMENT.read_text(encoding="utf-8")).encode()
    return files


def stale_files() -> list[Path]:
    """Schema files of messages that no longer exist."""
    return sorted(path for path in (FOLDER / "schema").glob("*.json") if path.stem not in MODELS)


def golden_files() -> dict[Path, bytes]:
    """Content of every golden file by its path."""
    files = {}
    for name, example in examples.packets().items():
        files[FOLDER / "golden" / "packets" / f"{name}.bin"] = example.data
        files[FOLDER / "golden" / "packets" / f"{name}.json"] = _json(example.description)
    for name, message in examples.messages().items():
        files[FOLDER / "golden" / "messages" / f"{name}.json"] = message.to_bytes()
    return files


def json_schema(model: type[Message]) -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of what a reader accepts.

    ``type`` is required everywhere though the models have a default: readers tell messages apart by it.
    """
    schema = {"$schema": DIALECT} | model.model_json_schema(by_alias=True)
    if issubclass(model, ItemEvent):
        schema |= _ITEM_RULE
    _finish(schema)
    return schema


_ITEM_RULE: Final = {
    "if": {"properties": {"section": {"const": "action_items"}}},
    "then": {"properties": {"item": {"$ref": "#/$defs/ActionItem"}}},
    "else": {"properties": {"item": {"not": {"$ref": "#/$defs/ActionItem"}}}},
}
"""What the validator of item events checks; the models themselves cannot hand it to JSON Schema."""


def _finish(node: object) -> None:
    if isinstance(node, list):
        for part in node:
            _finish(part)
    if not isinstance(node, dict):
        return
    for name in ("type", "schema"):
        if "const" in (node.get("properties") or {}).get(name, {}):
            node["required"] = [name, *(other for other in node.get("required", []) if other != name)]
    if isinstance(node.get("description"), str):
        node["description"] = re.sub(r"\s+", " ", node["description"].replace("``", "`")).strip()
    for part in node.values():
        _finish(part)


def filled_document(text: str) -> str:
    """The document with every ``<!-- generated NAME -->`` block filled anew."""
    blocks = {
        "topics": topic_table(), "messages": message_table(), "layout": asyncapi.layout_markdown(),
        "partitions": partition_table(), "golden": golden_table(),
    }  # fmt: skip
    for name, block in blocks.items():
        begin, end = f"<!-- generated {name} -->\n", f"<!-- end {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{DOCUMENT.name} needs one block named {name}")
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{block}\n{end}{rest.partition(end)[2]}"
    return text


def topic_table() -> str:
    """Markdown table of all topics."""
    rows = [
        [
            f"`{topic.name}`", topic.carries, topic.format, asyncapi.key_rule(topic), _kept(topic),
            f"{topic.max_message_bytes // 2**20} MiB", topic.config["message.timestamp.type"],
        ]
        for topic in TOPICS
    ]  # fmt: skip
    return _table(["topic", "carries", "values", "key", "kept", "largest", "timestamp"], rows)


def message_table() -> str:
    """Markdown table of all JSON messages, topic by topic."""
    rows = [
        [f"`{topic.name}`", f"[`{name}`](../contracts/schema/{name}.json)", asyncapi.summary_of(model)]
        for topic, carried in CARRIED.items()
        for name, model in MODELS.items()
        if model in carried
    ]
    return _table(["topic", "type", "what it says"], rows)


def partition_table() -> str:
    """Markdown table of example meetings and their partitions."""
    rows = [
        [
            f"`{name}`",
            f"`{name.encode().hex()}`",
            f"{partition_of(name, 2**32)}",
            f"{partition_of(name, 16)}",
        ]
        for name in EXAMPLE_MEETINGS
    ]
    return _table(["meeting id", "its bytes", "CRC-32C", "modulo 16"], rows)


def golden_table() -> str:
    """Markdown table of the golden packets."""
    rows = [[f"`{name}.bin`", example.shows] for name, example in examples.packets().items()]
    return _table(["file", "shows"], rows)


def _kept(topic: Topic) -> str:
    if topic.retention_ms < 0:
        return "newest of each key" if topic.compacted else "for ever"
    minutes = topic.retention_ms // 60_000
    return f"{minutes // 1440} days" if minutes >= 1440 else f"{minutes} minutes"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _write(path: Path, data: bytes) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


if __name__ == "__main__":
    sys.exit(main())
