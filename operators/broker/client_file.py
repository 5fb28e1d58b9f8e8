"""Encryption and login of an installation's own broker, as its people write them down for any Kafka client.

One ``name=value`` a line, with the names of librdkafka, ``#`` before what is a remark:

    security.protocol=SASL_SSL
    ssl.ca.location=/etc/minuted/ca.pem
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=minuted
    sasl.password=…
"""

import logging
import re
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from contracts.small_files import read_small

_MOST_BYTES: Final = 65_536
_SILENT: Final = logging.getLogger("minuted.kafka")
_TAKEN: Final = re.compile(
    r"security\.protocol|(ssl|sasl|https)\..+|enable\.ssl\.certificate\.verification|enable\.sasl\..+"
    r"|broker\.address\.family|client\.(dns\.lookup|rack|id)|socket\.(?!nagle).+|connections\.max\.idle\.ms"
)
"""What a file may set. Acknowledgements, idempotence, offsets and groups are what the flows' promises rest on."""


def client_settings(path: Path) -> dict[str, str]:
    """Settings of the file.

    Raises:
        ValueError: it cannot be read, or a line is no setting or sets what is not left to it. No message repeats a
            value, which may be a password.
    """
    try:
        lines = read_small(path, _MOST_BYTES, pipes=True).decode().splitlines()
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror or error})") from error
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if not text or text.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not re.fullmatch(r"[a-z0-9._]+", name):
            raise ValueError(f"line {number} is not name=value")
        if not _TAKEN.fullmatch(name):
            raise ValueError(
                f"line {number}: {name} is not left to this file, which is for encryption and login"
            )
        settings[name] = value
    return settings


def check_client_file(path: Path) -> None:
    """Try the settings of the file on a client that connects to nothing.

    Raises:
        ValueError: as `client_settings`, or the client refuses one.
    """
    settings = client_settings(path)
    try:
        config: dict[str, Any] = {"logger": _SILENT, **settings}
        AdminClient(config)
    except KafkaException as error:
        raise ValueError(f"the Kafka client refuses it: {_without(settings, error.args[0].str())}") from None


def _without(settings: dict[str, str], said: str) -> str:
    for name, value in settings.items():
        if value and ("password" in name or "secret" in name or "key.pem" in name):
            said = said.replace(value, "…")
    return " ".join(said.split())
