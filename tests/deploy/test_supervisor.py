"""deploy/start and deploy/stop: everything comes up, what dies comes back, nothing is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.supervisor import LOG_BYTES, keep_short
from flows.brokers import EMBEDDED_SHARDS, EmbeddedBroker
from flows.healthy import health, process_started
from flows.standing_broker import broker_info

ROOT = Path(__file__).resolve().parents[2]


class Installed:
    """The scripts, run on a folder of their own against a broker that is there."""

    def __init__(self, folder: Path, broker: str, prefix: str) -> None:
        self.folder = folder
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MINUTED_")}
        self.environment = environment | {
            "PYTHON": sys.executable, "MINUTED_BOOTSTRAP_SERVERS": broker, "MINUTED_TOPIC_PREFIX": prefix,
            "MINUTED_SHARDS": str(EMBEDDED_SHARDS), "MINUTED_FETCH_WAIT_MAX_MS": "10",
        }  # fmt: skip

    def script(self, name: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / "deploy" / name), "--directory", str(self.folder)], env=self.environment | settings,
            capture_output=True, text=True, timeout=150,
        )  # fmt: skip

    def process(self, flow: str) -> int:
        (file,) = (self.folder / "state" / "alive").glob(f"{flow}.*.*")
        return int(file.name.rpartition(".")[2])


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def installed(tmp_path: Path, embedded_broker: EmbeddedBroker, topic_prefix: str) -> Iterator[Installed]:
    made = Installed(tmp_path, embedded_broker.bootstrap, topic_prefix)
    yield made
    if (tmp_path / "supervisor.json").exists():
        made.script("stop")


def test_a_flow_that_dies_comes_back_and_stop_leaves_nothing(installed: Installed) -> None:
    up = installed.script("start")
    assert up.returncode == 0 and "flows.perceive and flows.minutes ready" in up.stdout, up.stderr
    assert installed.script("start").stdout.startswith("already running")
    minutes, perceive = installed.process("minutes"), installed.process("perceive")
    os.kill(minutes, signal.SIGKILL)
    assert eventually(lambda: not process_started(minutes))
    assert eventually(lambda: health(installed.folder / "state", "minutes").healthy)
    assert installed.process("minutes") != minutes and installed.process("perceive") == perceive
    said = (installed.folder / "log" / "supervisor.log").read_text()
    assert "flows.minutes ended by signal SIGKILL, starting it again at once" in said
    again = installed.process("minutes")
    assert installed.script("stop").returncode == 0
    assert not process_started(again) and not process_started(perceive)
    assert not (installed.folder / "supervisor.json").exists()


@pytest.mark.kafka
def test_its_own_broker_comes_back_where_it_was_and_nothing_outlives_stop(
    tmp_path: Path, kafka_parts: None, topic_prefix: str
) -> None:
    del kafka_parts
    installed = Installed(tmp_path, "", topic_prefix)
    for name in ("MINUTED_BOOTSTRAP_SERVERS", "MINUTED_FETCH_WAIT_MAX_MS"):
        del installed.environment[name]
    try:
        up = installed.script("start")
        assert up.returncode == 0, up.stderr
        before = broker_info(tmp_path)
        assert before is not None and f"MINUTED_BOOTSTRAP_SERVERS={before.bootstrap}" in up.stdout
        os.kill(before.pid, signal.SIGKILL)
        assert eventually(lambda: (now := broker_info(tmp_path)) is not None and now.pid != before.pid)
        after = broker_info(tmp_path)
        assert after is not None and after.bootstrap == before.bootstrap
        # A supervisor that is killed takes its flows along; its broker keeps its data, and stays for `stop`.
        flows = [installed.process("minutes"), installed.process("perceive")]
        os.kill(json.loads((tmp_path / "supervisor.json").read_text())["pid"], signal.SIGKILL)
        assert eventually(lambda: not any(process_started(pid) for pid in flows))
        assert process_started(after.pid)
    finally:
        stopped = installed.script("stop")
    assert stopped.stdout.startswith("stopped") and not process_started(after.pid)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("MINUTED_BOOTSTRAP_SERVERS", "nowhere", "MINUTED_BOOTSTRAP_SERVERS is 'nowhere': use host:port"),
        ("MINUTED_SHARD", "2", "MINUTED_SHARD is no setting of minuted (MINUTED_SHARDS?)"),
        ("MINUTED_SPEECH_MODEL", "/no/such/model", "flows.perceive cannot run: flows.perceive:"),
    ],
)
def test_wrong_settings_are_one_line_and_nothing_keeps_trying(
    installed: Installed, setting: str, value: str, said: str
) -> None:
    done = installed.script("start", **{setting: value})
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"supervisor: {said}")
    assert not (installed.folder / "supervisor.json").exists()


@pytest.mark.parametrize(
    ("script", "python", "line"),
    [
        ("start", sys.executable, "supervisor: /proc/nowhere cannot be used (No such file or directory)"),
        ("start", "/nowhere", "deploy/start: /nowhere does not run; `make install` makes the environment"),
        ("stop", "/nowhere", "deploy/stop: /nowhere does not run; `make install` makes the environment"),
    ],
)
def test_what_cannot_be_started_is_one_line(script: str, python: str, line: str) -> None:
    done = subprocess.run(
        [ROOT / "deploy" / script, "--directory", "/proc/nowhere"], env={"PATH": os.environ["PATH"], "PYTHON": python},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, f"{line}\n")


def test_a_long_log_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "perceive.log"
    with log.open("ab") as writer:
        writer.write(b"x" * (LOG_BYTES + 1))
        writer.flush()
        keep_short(log)
        writer.write(b"and on\n")
    assert log.read_bytes() == b"and on\n"
    assert (tmp_path / "perceive.log.1").stat().st_size == LOG_BYTES + 1
