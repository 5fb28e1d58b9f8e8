"""A broker that stays when the program that started it has ended, until it is taken down.

Word of it is kept in one file, `broker.json` in the state folder, beside its log and its data.
"""

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from flows.brokers import (
    CLIENT_OVERRIDES,
    ApacheKafka,
    BrokerError,
    BrokerKind,
    EmbeddedBroker,
    ServerProcess,
    listens,
)
from flows.healthy import process_started

STATE_DIRECTORY = Path(__file__).resolve().parents[1] / ".minuted"
"""The state folder when none is named: in the checkout, so that `down` finds the broker from anywhere."""

DEFAULT_PORT = 9092
"""What Kafka programs try when told nothing else."""

_SERVERS: Mapping[BrokerKind, type[ServerProcess]] = {"embedded": EmbeddedBroker, "kafka": ApacheKafka}


@dataclass(frozen=True)
class BrokerInfo:
    """A broker that was left running: where it answers, its process, and the log to look into."""

    kind: BrokerKind
    bootstrap: str
    pid: int
    started: str
    """When the system started the process, so that a later one with the same number is not taken for it."""
    log: str

    @property
    def port(self) -> int:
        """The TCP port of `bootstrap`."""
        return int(self.bootstrap.rpartition(":")[2])

    @property
    def client_overrides(self) -> dict[str, str | int]:
        """Consumer settings that this kind of broker needs."""
        return dict(CLIENT_OVERRIDES[self.kind])


def broker_up(
    port: int | None = None, kind: BrokerKind = "embedded", *, directory: Path = STATE_DIRECTORY
) -> BrokerInfo:
    """Start a broker that outlives this program, or find the one of this kind that is up already.

    port: None takes 9092 where that is free, else any free one.
    Raises BrokerError when it cannot start, or when another kind or port is up already.
    """
    present = broker_info(directory)
    if present is not None:
        if present.kind == kind and port in (None, present.port):
            return present
        raise BrokerError(
            f"a broker ({present.kind}) is up already on {present.bootstrap}; take it down first"
        )
    if port is None and not listens(DEFAULT_PORT):
        port = DEFAULT_PORT
    server = _SERVERS[kind](directory / kind, port=port, guarded=False)
    server.start()
    info = BrokerInfo(kind, server.bootstrap, server.pid, process_started(server.pid), str(server.log))
    try:
        (directory / "broker.json").write_text(json.dumps(asdict(info), indent=1) + "\n")
    except OSError:
        server.kill()
        raise
    return info


def broker_info(directory: Path = STATE_DIRECTORY) -> BrokerInfo | None:
    """The broker that `broker_up` left running, None when there is none or it has ended."""
    try:
        info = BrokerInfo(**json.loads((directory / "broker.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return info if process_started(info.pid) == info.started else None


def broker_down(directory: Path = STATE_DIRECTORY) -> BrokerInfo | None:
    """Stop the broker that `broker_up` left running, and tell which it was; None when there is none.

    Raises BrokerError when it does not end within 20 s.
    """
    info = broker_info(directory)
    if info is not None:
        # The embedded broker has nothing to bring in order, and on SIGTERM it waits for its clients to go.
        how = signal.SIGTERM if info.kind == "kafka" else signal.SIGKILL
        deadline = time.monotonic() + 20
        os.kill(info.pid, how)
        # The port is freed a little after the process counts as ended, when its last thread has gone.
        while process_started(info.pid) == info.started or listens(info.port):
            if time.monotonic() > deadline:
                raise BrokerError(f"the broker on {info.bootstrap} (process {info.pid}) does not end")
            time.sleep(0.01)
    (directory / "broker.json").unlink(missing_ok=True)
    return info
