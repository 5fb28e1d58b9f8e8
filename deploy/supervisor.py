"""Runs an installation without containers: ``deploy/start``, ``deploy/stop``, or ``deploy/start --foreground``.

A broker (Apache Kafka on this machine, or the one that MINUTED_BOOTSTRAP_SERVERS names), its topics, and the
flows, each started by ``deploy/flow`` and started again when it ends. Everything that is written goes into one
folder: ``log/``, ``state/``, ``recovery/``, ``keys/``, ``supervisor.json``.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from contracts.topics import TOPICS
from flows.brokers import BrokerError, guarded_command
from flows.healthy import health, process_started
from flows.standing_broker import STATE_DIRECTORY, broker_down, broker_info, broker_up
from operators.broker.kafka_link import BrokerUnreachable, TopicProblem, check_topics, create_topics
from operators.log import say
from operators.settings import SettingsProblem, load_settings

ROOT: Final = Path(__file__).resolve().parents[1]
LOG_BYTES: Final = 10_000_000
"""A log that is larger is put aside as ``….log.1``; one older part is kept."""
WRONG_SETTINGS: Final = 2
"""Exit code of a flow that cannot run as it is set up: starting it again would not help."""

_READY_S: Final = 120.0
_STOP_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.2
_BROKER_S: Final = 30.0
_PAUSES_S: Final = (0.0, 1.0, 5.0, 15.0, 30.0)
_STEADY_S: Final = 60.0


class CannotRun(RuntimeError):
    """What keeps the installation from running; the message is one line."""


@dataclass(frozen=True, slots=True)
class Running:
    """A supervisor at work, as its file tells."""

    pid: int
    started: str
    flows: list[str]
    own_broker: bool


def running(directory: Path) -> Running | None:
    """The supervisor of a folder; None when there is none. One that was killed is still told of: see ``alive``."""
    try:
        return Running(**json.loads((directory / "supervisor.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def alive(found: Running | None) -> bool:
    """Whether its process runs."""
    return found is not None and process_started(found.pid) == found.started


class Flow:
    """One flow, started again after each end, at growing distance while it does not last."""

    def __init__(self, name: str, directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = directory / "log" / f"{name}.log"
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0
        self._tries = 0
        self._start_at_s = 0.0
        self._started_s = 0.0

    def look_after(self, now_s: float) -> None:
        """Start it where it does not run and its pause is over.

        Raises:
            CannotRun: it ended with the exit code for wrong settings.
        """
        keep_short(self.log)
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._process = None
            self._ended(code, now_s)
        if now_s >= self._start_at_s:
            self._start(now_s)

    def end(self) -> None:
        """End it; it is safe to do so at any moment."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, now_s: float) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._said_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                guarded_command([str(ROOT / "deploy" / "flow"), self.name]), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, cwd=ROOT, env=self._environment, start_new_session=True,
            )  # fmt: skip
        self._started_s = now_s
        say(f"supervisor: flows.{self.name} started, process {self._process.pid}")

    def _ended(self, code: int, now_s: float) -> None:
        with self.log.open("rb") as log:
            log.seek(min(self._said_before, self.log.stat().st_size))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        if code == WRONG_SETTINGS:
            raise CannotRun(f"flows.{self.name} cannot run: {said}")
        self._tries = 1 if now_s - self._started_s > _STEADY_S else self._tries + 1
        pause_s = _PAUSES_S[min(self._tries, len(_PAUSES_S)) - 1]
        self._start_at_s = now_s + pause_s
        when = f"in {pause_s:.0f} s" if pause_s else "at once"
        say(f"supervisor: flows.{self.name} ended {how}, starting it again {when}. Its last line: {said}")


class Supervisor:
    """Broker, topics and flows until it is told to stop.

    Args:
        directory: everything that is written goes here.
        flows: names of the flows to run.
        environment: of the flows; without MINUTED_BOOTSTRAP_SERVERS Apache Kafka is started on this machine.
    """

    def __init__(self, directory: Path, flows: Sequence[str], environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._own_broker = "MINUTED_BOOTSTRAP_SERVERS" not in environment
        folders = {"MINUTED_STATE_DIR": str(directory / "state"), "MINUTED_KEYS": str(directory / "keys")}
        self._environment = folders | dict(environment)
        self._environment |= {"PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
        # Recognition has threads of its own; those of numeric libraries would only get in their way.
        self._environment.setdefault("OMP_NUM_THREADS", "1")
        self._port: int | None = None
        self._flow_names = list(flows)
        self._flows: list[Flow] = []
        self._stop = threading.Event()

    def stop(self, *_: object) -> None:
        """End ``run`` soon; usable as a signal handler."""
        self._stop.set()

    def run(self) -> None:
        """Start everything and keep it running until ``stop``.

        Raises:
            CannotRun: something is set up wrongly; what had been started is ended.
        """
        present = running(self._directory)
        if alive(present) and present is not None:
            raise CannotRun(f"a supervisor runs already in {self._directory}, process {present.pid}")
        file = self._directory / "supervisor.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        me = Running(os.getpid(), process_started(os.getpid()), self._flow_names, self._own_broker)
        file.write_text(json.dumps(asdict(me)) + "\n")
        try:
            self._prepare()
            self._flows = [Flow(name, self._directory, self._environment) for name in self._flow_names]
            while not self._stop.wait(_LOOK_EVERY_S):
                if self._own_broker and broker_info(self._directory) is None:
                    say("supervisor: the broker ended, starting it again")
                    self._start_broker()
                for flow in self._flows:
                    flow.look_after(time.monotonic())
        finally:
            for flow in self._flows:
                flow.end()
            if self._own_broker:
                broker_down(self._directory)
            file.unlink(missing_ok=True)
            say("supervisor: stopped")

    def _prepare(self) -> None:
        os.environ.update(self._environment)
        try:
            load_settings()  # before anything is started that a wrong one would make pointless
            if self._own_broker:
                self._start_broker()
                os.environ["MINUTED_BOOTSTRAP_SERVERS"] = self._environment["MINUTED_BOOTSTRAP_SERVERS"]
            link = load_settings().link()
            create_topics(link, wait_s=_BROKER_S)
            check_topics(link, "supervisor", TOPICS, wait_s=_BROKER_S)
        except (SettingsProblem, BrokerUnreachable, TopicProblem) as problem:
            raise CannotRun(str(problem)) from problem

    def _start_broker(self) -> None:
        deadline = time.monotonic() + _BROKER_S
        while True:
            try:
                info = broker_up(self._port, "kafka", directory=self._directory)
                break
            except BrokerError as problem:
                # Everybody knows its port by now, and the system gives it back a moment after the end.
                if self._port is None or time.monotonic() > deadline:
                    raise CannotRun(f"{problem}. Or name a broker in MINUTED_BOOTSTRAP_SERVERS") from problem
            if self._stop.wait(_LOOK_EVERY_S):
                return
        self._port = info.port
        self._environment["MINUTED_BOOTSTRAP_SERVERS"] = info.bootstrap
        say(f"supervisor: {info.kind} broker at {info.bootstrap}, log {info.log}")


def keep_short(log: Path) -> None:
    """Put a log aside that has grown; its writer appends, so it goes on at the beginning of the emptied file."""
    try:
        if log.stat().st_size > LOG_BYTES:
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))
            os.truncate(log, 0)
    except OSError:
        return  # not there yet, or a full disk: then the flow has other troubles


def start(directory: Path, arguments: Sequence[str], flows: Sequence[str]) -> str:
    """Start a supervisor in the background and wait until its flows are healthy; what to tell people.

    Raises:
        CannotRun: it did not come up.
    """
    present = running(directory)
    if alive(present) and present is not None:
        return f"already running, supervisor process {present.pid}, logs in {directory / 'log'}"
    log = directory / "log" / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    keep_short(log)
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "run", *arguments], stdin=subprocess.DEVNULL,
            stdout=said, stderr=subprocess.STDOUT, cwd=ROOT, env=os.environ, start_new_session=True,
        )  # fmt: skip
    state = ROOT / os.environ.get("MINUTED_STATE_DIR", directory / "state")
    if not _until(
        lambda: all(health(state, f).healthy for f in flows) or process.poll() is not None, _READY_S
    ):
        raise CannotRun(f"not ready after {_READY_S:.0f} s, and still trying; look into {directory / 'log'}")
    if process.poll() is not None:
        with log.open("rb") as read:
            read.seek(begin)
            lines = read.read().decode("utf-8", "replace").strip().splitlines()
        reasons = [line.removeprefix("supervisor: ") for line in lines if line != "supervisor: stopped"]
        raise CannotRun(reasons[-1] if reasons else f"the supervisor ended; look into {log}")
    names = " and ".join(f"flows.{name}" for name in flows)
    where = broker_info(directory)
    broker = f"\nexport MINUTED_BOOTSTRAP_SERVERS={where.bootstrap}" if where is not None else ""
    return f"{names} ready, supervisor process {process.pid}, logs in {directory / 'log'}{broker}"


def stop(directory: Path) -> str:
    """End the supervisor of a folder and all that it started; what to tell people.

    Raises:
        CannotRun: it does not end.
    """
    present = running(directory)
    if present is None:
        return f"nothing runs in {directory}"
    if alive(present):
        os.kill(present.pid, signal.SIGTERM)
        if not _until(lambda: not alive(present), _STOP_S):
            raise CannotRun(f"the supervisor, process {present.pid}, does not end")
    elif present.own_broker:
        broker_down(directory)  # the supervisor was killed: its flows have ended with it, the broker has not
    (directory / "supervisor.json").unlink(missing_ok=True)
    return "stopped; recovery and state are kept"


def _until(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def main() -> int:
    """0 done, 2 what cannot run as it is set up (one line)."""
    parser = argparse.ArgumentParser(prog="deploy/start", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("start", "stop", "run"), help=argparse.SUPPRESS)
    parser.add_argument("--all-in-one", action="store_true", help="both flows in one process (flows.room)")
    parser.add_argument("--foreground", action="store_true", help="stay, for systemd and the like")
    parser.add_argument("--directory", type=Path, default=STATE_DIRECTORY, help="where logs and state go")
    given = parser.parse_args()
    directory: Path = given.directory.resolve()
    flows = ("room",) if given.all_in_one else ("perceive", "minutes")
    try:
        if given.command == "stop":
            print(stop(directory))
        elif given.command == "start" and not given.foreground:
            print(start(directory, sys.argv[2:], flows))
        else:
            supervisor = Supervisor(directory, flows, os.environ)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, supervisor.stop)
            supervisor.run()
    except (CannotRun, BrokerError) as problem:
        say(f"supervisor: {problem}")
        return WRONG_SETTINGS
    except OSError as problem:
        say(f"supervisor: {problem.filename or directory} cannot be used ({problem.strerror})")
        return WRONG_SETTINGS
    return 0


if __name__ == "__main__":
    sys.exit(main())
