"""Generated files agree with the models, are valid by their own rules, and describe the golden files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from contracts import asyncapi, catalogue, schemas, topics
from contracts.topics import TOPICS

GOLDEN = schemas.FOLDER / "golden" / "messages"
ODD: list[Any] = [None, True, -1, 2**64, 1e300, 0.5, "", "x", "x" * 201, "*", "a\nb", "2026-13-02", [], {}]
REPAIR = "run python -m contracts.schemas and look at the difference"


def document() -> Any:
    return yaml.safe_load((schemas.FOLDER / "asyncapi.yaml").read_text(encoding="utf-8"))


def schema_text(name: str) -> str:
    return (schemas.FOLDER / "schema" / f"{name}.json").read_text(encoding="utf-8")


def validator(name: str) -> Draft202012Validator:
    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_generated_files_are_up_to_date() -> None:
    for path, data in schemas.generated_files().items():
        assert path.exists() and path.read_bytes() == data, f"{path.name}: {REPAIR}"
    assert schemas.stale_files() == []


def test_golden_files_are_what_the_examples_say() -> None:
    for path, data in schemas.golden_files().items():
        assert path.read_bytes() == data, f"{path.name} was changed, or what it was written from"


def test_check_names_the_file_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    monkeypatch.setattr(schemas, "DOCUMENT", tmp_path / "none.md")
    assert schemas.main([]) == 0
    assert schemas.main(["--check"]) == 0
    (tmp_path / "schema" / "ocr.json").write_text("{}\n")
    (tmp_path / "schema" / "of_old.json").write_text("{}\n")
    assert schemas.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "ocr.json" in told and "of_old.json" in told and "slide.json" not in told
    assert schemas.main([]) == 0
    assert not (tmp_path / "schema" / "of_old.json").exists()


def test_golden_files_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schemas, "FOLDER", tmp_path)
    assert schemas.main(["--golden"]) == 0
    changed = tmp_path / "golden" / "messages" / "ocr.json"
    changed.write_text("{}")
    (tmp_path / "golden" / "packets" / "audio_pcm.bin").unlink()
    assert schemas.main(["--golden"]) == 1
    assert changed.read_text() == "{}"
    assert "ocr.json" in capsys.readouterr().err
    assert (tmp_path / "golden" / "packets" / "audio_pcm.bin").exists()


@pytest.mark.parametrize("name", sorted(catalogue.MODELS))
def test_golden_message_is_valid_and_keeps_its_bytes(name: str) -> None:
    data = (GOLDEN / f"{name}.json").read_bytes()
    value = json.loads(data)
    check = validator(name)
    check.validate(value)
    assert catalogue.MODELS[name].model_validate_json(data).to_bytes() == data
    assert not check.is_valid(value | {"type": "another", "schema": "another"})
    for field in json.loads(schema_text(name))["required"]:
        assert not check.is_valid({key: value[key] for key in value if key != field}), field


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values in a JSON value but the whole."""
    parts = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [(*path, key) for key, _ in parts] + [
        found for key, part in parts for found in places(part, (*path, key))
    ]


@pytest.mark.parametrize("name", sorted(catalogue.MODELS))
def test_what_the_schema_accepts_is_read(name: str) -> None:
    check, model = validator(name), catalogue.MODELS[name]
    data = (GOLDEN / f"{name}.json").read_bytes()
    accepted = 0
    for path in places(json.loads(data)):
        for odd in ODD:
            value = json.loads(data)
            node = value
            for part in path[:-1]:
                node = node[part]
            node[path[-1]] = odd
            if check.is_valid(value):
                model.model_validate_json(json.dumps(value))
                accepted += 1
    assert accepted or name == "fence"  # whose two numbers no odd value fits


def test_every_message_says_its_type() -> None:
    for name, model in catalogue.MODELS.items():
        told_apart = "type" in model.model_fields or "schema_" in model.model_fields
        assert told_apart, name
    assert len({*catalogue.MODELS.values()}) == len(catalogue.MODELS)


def test_every_topic_is_described() -> None:
    assert set(catalogue.CARRIED) == set(TOPICS)
    channels = document()["channels"]
    assert [channel["address"] for channel in channels.values()] == [topic.name for topic in TOPICS]
    for topic, channel in zip(TOPICS, channels.values(), strict=True):
        kafka = channel["bindings"]["kafka"]
        assert kafka["partitions"] == topics.DEFAULT_SHARDS
        told = kafka["topicConfiguration"]
        assert {name: str(value).strip("[]'") for name, value in told.items()} == topic.config
        assert ("packet" in channel["messages"]) == ("packet" in topic.format)


def resolve(pointer: str, root: Any) -> Any:
    """What a reference names; a file's content where it names a file. Raises where there is nothing."""
    file, _, path = pointer.partition("#")
    node = json.loads((schemas.FOLDER / file).read_text(encoding="utf-8")) if file else root
    for part in path.split("/")[1:]:
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for part in node.values() for found in references(part)]
    return [found for part in node for found in references(part)] if isinstance(node, list) else []


def test_asyncapi_references_resolve() -> None:
    root = document()
    found = references(root)
    assert len(found) > 100
    for pointer in found:
        assert resolve(pointer, root), pointer


def test_asyncapi_has_what_the_specification_requires() -> None:
    root = document()
    assert root["asyncapi"] == "3.0.0"
    assert root["info"]["title"] and root["info"]["version"] == asyncapi.CONTRACT_VERSION
    assert set(root) <= {
        "asyncapi", "info", "defaultContentType", "channels", "operations", "components",
    }  # fmt: skip
    for operation in root["operations"].values():
        assert operation["action"] in {"send", "receive"}
        channel = resolve(operation["channel"]["$ref"], root)
        for message in operation["messages"]:
            assert message["$ref"].startswith(operation["channel"]["$ref"] + "/messages/")
            assert message["$ref"].rsplit("/", 1)[1] in channel["messages"]
    received = {o["channel"]["$ref"] for o in root["operations"].values() if o["action"] == "receive"}
    assert len(received) == len(topics.DEVICE_TOPICS)
    for name, message in root["components"]["messages"].items():
        assert set(message) <= {
            "name", "title", "summary", "description", "contentType", "payload", "headers", "traits",
            "bindings",
        }  # fmt: skip
        assert "key" in message["bindings"]["kafka"], name
    packet = root["components"]["messages"]["packet"]
    assert packet["contentType"] == asyncapi.PACKET_TYPE
    assert "| 12 | 4 | CRC-32C" in packet["description"]


def test_layout_table_agrees_with_the_codec() -> None:
    rows = [line.split(" | ") for line in asyncapi.layout_markdown().splitlines() if line.startswith("| ")][
        2:
    ]
    place = 0
    for offset, size, *_ in rows:
        assert int(offset.strip("| ")) == place
        place += int(size)
    assert place == 64
