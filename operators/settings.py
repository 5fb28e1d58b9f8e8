"""Settings of the flows, from ``MINUTED_*`` variables; one place, listed by ``minuted doctor`` and the docs."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.refusals import first_refusal
from contracts.topics import DEFAULT_SHARDS, TopicNames
from operators.broker.client_file import check_client_file, client_settings
from operators.broker.kafka_link import BrokerLink


class SettingsProblem(ValueError):
    """A setting cannot be used; the message is one line that names the variable."""


def _addresses(text: str) -> str:
    for address in text.split(","):
        host, _, port = address.strip().rpartition(":")
        if (
            not re.fullmatch(r"[^\s:]+|\[[0-9A-Fa-f:.]+\]", host)
            or not port.isdecimal()
            or not 0 < int(port) < 65_536
        ):
            raise ValueError("use host:port, several with commas between them")
    return text


def _client(path: Path | None) -> Path | None:
    if path is not None:
        check_client_file(path)
    return path


def _collector(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError("use an address such as http://collector:4318")
    return text


def _prefix(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]*", text):
        raise ValueError("use letters, digits, '.', '_' and '-' only")
    return text


def _said(value: object) -> object:
    # Compose files and scripts set variables to nothing where they mean none.
    return None if value == "" else value


def _named(value: object) -> object:
    if value == "":
        raise ValueError("name a folder, or leave it unset")
    return value


Folder = Annotated[Path, BeforeValidator(_named)]
MaybeFile = Annotated[
    Annotated[Path, WithJsonSchema({"type": "string", "format": "file-path"})] | None, BeforeValidator(_said)
]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """All settings. Durations carry their unit in the name."""

    model_config = SettingsConfigDict(env_prefix="MINUTED_", frozen=True, extra="ignore")

    bootstrap_servers: Annotated[str, AfterValidator(_addresses)] = Field(
        "127.0.0.1:9092", description="Kafka brokers, host:port separated by commas"
    )
    kafka_client: Annotated[MaybeFile, AfterValidator(_client)] = Field(
        None,
        description="file with encryption and login for the brokers: `name=value` a line, names of librdkafka",
    )
    topic_prefix: Annotated[str, AfterValidator(_prefix)] = Field(
        "", max_length=100, description="put before every topic name"
    )
    shards: Annotated[int, Field(ge=1, le=1024)] = Field(
        DEFAULT_SHARDS, description="partitions of every topic, and shards of state; fixed once topics exist"
    )
    fetch_wait_max_ms: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None,
        description="how long the broker may hold a fetch; for the embedded broker, which does not wake a waiting one",
    )
    state_dir: Folder = Field(
        Path(".minuted/state"), description="where RocksDB keeps the state of the steps"
    )
    state_sync: bool = Field(
        False, description="force state to the disk at each snapshot: survives power loss, costs time"
    )
    rules: MaybeFile = Field(
        None, description="rule file (.sal) that minutes are held against; empty for the one of the product"
    )
    model: Annotated[str, BeforeValidator(lambda value: value or "released")] = Field(
        "released",
        description="minutes model: `released`, `rules` for none, or a folder or file (.onnx); one that cannot be used is said",
    )
    verifier: Annotated[str, BeforeValidator(lambda value: value or "released")] = Field(
        "released",
        description="verifier model: `released`, `off`, or a file (.onnx); one that cannot be used is said and left out",
    )
    judge_threshold: Annotated[float, Field(ge=0, le=1)] = Field(
        0.99,
        description="probability of the verifier model under which rules write an item and a person is asked",
    )
    keys: Folder = Field(
        Path(".minuted/keys"),
        description="where the keys of meetings are kept, which seal their audit entries",
    )
    master_key_file: MaybeFile = Field(
        None,
        description="file with a master key (32 bytes, or 64 hexadecimal digits) that wraps the keys of meetings",
    )
    speech_model: str = Field(
        "", description="faster-whisper model by folder or name; empty for the bundled tiny.en"
    )
    speech_device: Literal["cpu", "cuda"] = Field("cpu", description="where recognition runs")
    recognition_workers: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="pieces of speech recognised at once"
    )
    partials: bool = Field(True, description="publish text while somebody is still speaking")
    stream_idle_s: Seconds = Field(15.0, description="a stream silent for so long is given up")
    meeting_idle_s: Seconds = Field(600.0, description="a meeting silent for so long is over")
    shed_after_s: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        10.0, description="how late work may be before some of it is left out"
    )
    lateness_ms: Annotated[int, Field(ge=0, le=60_000)] = Field(
        500, description="how far packets may be out of order"
    )

    log_format: Literal["text", "json"] = Field(
        "text", description="how the flows write their lines on standard error"
    )
    otlp_endpoint: Annotated[str, AfterValidator(_collector)] = Field(
        "", description="base address of an OpenTelemetry collector (OTLP over HTTP); empty sends nothing"
    )

    def link(self) -> BrokerLink:
        """How to reach the broker."""
        overrides: dict[str, str | int] = {}
        if self.fetch_wait_max_ms is not None:
            overrides["fetch.wait.max.ms"] = self.fetch_wait_max_ms
        access = {} if self.kafka_client is None else client_settings(self.kafka_client)
        return BrokerLink(
            self.bootstrap_servers, TopicNames(self.topic_prefix, self.shards), overrides, access
        )


def load_settings(**given: Any) -> Settings:
    """Settings from the environment, with explicit values on top.

    Raises:
        SettingsProblem: a variable has a value that cannot be used, or a ``MINUTED_`` variable is unknown.
    """
    known = {f"MINUTED_{name.upper()}" for name in Settings.model_fields}
    unknown = sorted(
        name for name in os.environ if name.startswith("MINUTED_") and name not in known | _NOT_OURS
    )
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 1, 0.8)
        meant = f" ({near[0]}?)" if near else ""
        raise SettingsProblem(f"{unknown[0]} is no setting of minuted{meant}; `minuted doctor` lists them")
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = f"MINUTED_{str(first['loc'][0]).upper()}" if first["loc"] else "a setting"
        value = str(first["input"]) if isinstance(first["input"], Path) else first["input"]
        raise SettingsProblem(f"{name} is {value!r}: {first_refusal(error)[1]}") from error


_NOT_OURS = frozenset({"MINUTED_REQUIRE_KAFKA"})
"""Variables with our prefix that are read elsewhere (by the tests)."""
