"""A whole installation for a while: broker, topics, both flows as processes of their own.

The demo and the benchmarks run the product as people do, by ``python -m bytewax.run``, and look at it
from outside. All children end with the program that started them.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from bytewax.recovery import init_db_dir

from contracts.topics import DEFAULT_SHARDS, TopicNames
from operators.broker.kafka_link import BrokerLink, create_topics

from .brokers import EMBEDDED_SHARDS, ApacheKafka, EmbeddedBroker, ServerProcess, guarded_command

ROOT: Final = Path(__file__).resolve().parents[1]
_READY_S: Final = 60.0
_SNAPSHOT_S: Final = "2"


class InstallationError(RuntimeError):
    """A flow did not come up or ended; the message is one line for people."""


class FlowProcess:
    """One flow run by ``python -m bytewax.run`` with recovery on."""

    def __init__(
        self, name: str, directory: Path, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._recovery = directory / f"recovery-{name}"
        self._environment = dict(environment)
        self.arguments = tuple(arguments)
        """Bytewax's own flags; may be changed between runs."""
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0

    @property
    def pid(self) -> int:
        """Process id of the running flow."""
        if self._process is None:
            raise InstallationError(f"flows.{self.name} is not running")
        return self._process.pid

    def start(self) -> None:
        """Start it; state and recovery of an earlier start are taken up."""
        if not self._recovery.exists():
            self._recovery.mkdir(parents=True)
            init_db_dir(self._recovery, 1)  # type: ignore[no-untyped-call]  # bytewax ships no types for it
        command = [
            sys.executable, "-m", "bytewax.run", f"flows.{self.name}", "-r", str(self._recovery), "-s", _SNAPSHOT_S, "-b", "0",
            *self.arguments,
        ]  # fmt: skip
        self._said_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                guarded_command(command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=ROOT, env=self._environment, start_new_session=True,
            )  # fmt: skip

    def wait_ready(self, timeout_s: float = _READY_S) -> None:
        """Wait for its line that it is ready.

        Raises:
            InstallationError: it ended, or did not say so in time.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            said = self._said()
            if f"flows.{self.name}: ready" in said or '"event": "ready"' in said:
                return
            self.check()
            time.sleep(0.02)
        raise InstallationError(
            f"flows.{self.name} was not ready after {timeout_s:.0f} s; its log is {self.log}"
        )

    def check(self) -> None:
        """Raises InstallationError where the flow has ended."""
        code = None if self._process is None else self._process.poll()
        if code is not None:
            lines = self._said().strip().splitlines()
            raise InstallationError(
                f"flows.{self.name} ended with code {code}: {lines[-1] if lines else 'it said nothing'}"
            )

    def _said(self) -> str:
        """What it has written since its last start."""
        return self.log.read_bytes()[self._said_before :].decode("utf-8", "replace")

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


class Installation:
    """Broker, topics and flows in one folder.

    Args:
        directory: everything that is written goes here.
        broker: kind of broker to start.
        flows: flow modules to run, each in a process of its own.
        settings: further ``MINUTED_*`` variables for the flows.
        arguments: Bytewax's own flags, for example ``("-w", "2")``.
    """

    def __init__(
        self, directory: Path, *, broker: Literal["embedded", "kafka"] = "embedded",
        flows: Sequence[str] = ("perceive", "minutes"), settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.directory = directory.resolve()
        kind: type[ServerProcess] = EmbeddedBroker if broker == "embedded" else ApacheKafka
        self.broker = kind(self.directory / "broker")
        # The embedded broker pays for every partition of a waiting fetch.
        self.names = TopicNames(shards=EMBEDDED_SHARDS if broker == "embedded" else DEFAULT_SHARDS)
        wait = self.broker.client_overrides.get("fetch.wait.max.ms")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MINUTED_")}
        environment |= {
            "MINUTED_BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "MINUTED_SHARDS": str(self.names.shards),
            "MINUTED_STATE_DIR": str(self.directory / "state"),
            "MINUTED_KEYS": str(self.directory / "keys"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            # Recognition has threads of its own; those of numeric libraries would only get in their way.
            "OMP_NUM_THREADS": "1",
        }
        if wait is not None:
            environment["MINUTED_FETCH_WAIT_MAX_MS"] = str(wait)
        self.environment = environment | dict(settings or {})
        self.flows = {name: FlowProcess(name, self.directory, self.environment, arguments) for name in flows}

    @property
    def keys(self) -> Path:
        """Folder with the keys of meetings."""
        return self.directory / "keys"

    @property
    def link(self) -> BrokerLink:
        """How to reach the broker."""
        return BrokerLink(self.broker.bootstrap, self.names, self.broker.client_overrides)

    def start(self) -> None:
        """Start the broker, make the topics, start the flows and wait until they are ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.broker.start()
        create_topics(self.link)
        for flow in self.flows.values():
            flow.start()
        for flow in self.flows.values():
            flow.wait_ready()

    def check(self) -> None:
        """Raises InstallationError where a flow has ended."""
        for flow in self.flows.values():
            flow.check()

    def close(self) -> None:
        """End everything."""
        for flow in self.flows.values():
            flow.kill()
        self.broker.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
