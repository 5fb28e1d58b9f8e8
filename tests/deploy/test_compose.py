"""The compose file: valid by its specification, and set up as the documents promise."""

import copy
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, ValidationError

from flows.brokers import KAFKA_VERSION
from operators.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SCHEMA = json.loads(
    (Path(__file__).parent / "compose-spec" / "compose-spec.json").read_text(encoding="utf-8")
)
FLOWS = ("perceive", "minutes", "room")


def validate(document: dict[str, Any]) -> None:
    Draft7Validator(SCHEMA).validate(document)


def test_the_file_follows_the_compose_specification() -> None:
    validate(COMPOSE)


def test_the_validator_finds_what_compose_would_refuse() -> None:
    misspelt = copy.deepcopy(COMPOSE)
    misspelt["services"]["perceive"]["restarts"] = misspelt["services"]["perceive"].pop("restart")
    unknown = copy.deepcopy(COMPOSE)
    unknown["services"]["perceive"]["depends_on"]["topics"]["condition"] = "service_done"
    for broken in (misspelt, unknown):
        with pytest.raises(ValidationError):
            validate(broken)


def test_compose_itself_takes_the_file() -> None:
    commands = [["docker", "compose"], ["docker-compose"]]
    works = [c for c in commands if shutil.which(c[0]) and _runs([*c, "version"])]
    if not works:
        pytest.skip("neither docker compose nor docker-compose is installed")
    done = subprocess.run(
        [*works[0], "-f", str(FILE), "--profile", "all-in-one", "config", "--quiet"], capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_flows_start_when_broker_and_topics_are_there() -> None:
    services = COMPOSE["services"]
    assert services["topics"]["depends_on"]["kafka"]["condition"] == "service_healthy"
    for name in FLOWS:
        flow = services[name]
        assert flow["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
        assert flow["command"] == ["/opt/minuted/deploy/flow", name]
        assert flow["restart"] == "unless-stopped"
        # One volume for state and recovery: see deploy/flow for where recovery goes.
        assert flow["volumes"] == [f"{name}:/data"] and name in COMPOSE["volumes"]
        assert flow["environment"]["MINUTED_STATE_DIR"] == "/data/state"
    assert services["room"]["profiles"] == ["all-in-one"]


def test_every_service_has_its_bounds() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["mem_limit"], name
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
        assert "restart" in service, name


def test_the_broker_is_the_one_that_is_tested_and_keeps_its_data() -> None:
    kafka = COMPOSE["services"]["kafka"]
    assert kafka["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert kafka["volumes"] == [f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}"]
    assert kafka["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert kafka["ports"] == ["${KAFKA_BIND:-127.0.0.1}:${KAFKA_PORT:-9092}:9092"]


def test_the_example_of_settings_names_real_ones_with_their_defaults() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    lines = re.findall(r"^#?([A-Z_]+)=(.*)$", text, re.MULTILINE)
    shown = dict(lines)
    assert len(shown) == len(lines)
    interpolated = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", FILE.read_text(encoding="utf-8")))
    for name, value in shown.items():
        if name in interpolated:
            assert value == interpolated.pop(name), name
        else:
            field = Settings.model_fields[name.removeprefix("MINUTED_").lower()]
            default = field.default
            shown_as = "" if default is None else str(default).lower() if isinstance(default, bool) else None
            assert type(default)(value) == default if shown_as is None else value == shown_as
    assert interpolated == {}, "the compose file reads what .env.example does not show"


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
