"""Kills, restarts, more workers, several processes: the same minutes, and no revision contradicted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from bytewax.recovery import init_db_dir

from contracts.topics import MINUTES, TIMELINE, Topic
from devices.inputs import open_inputs
from flows.brokers import free_port, guarded_command
from flows.installation import ROOT, Installation
from operators.settings import Settings
from tests.flows.live_chain import Chain, by_files, meeting_folder, plain

pytestmark = pytest.mark.slow
SETTINGS = {"MINUTED_PARTIALS": "false"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = meeting_folder(tmp_path_factory.mktemp("files") / "room", "m")
    return by_files(open_inputs([folder]))


def _more_than(chain: Chain, topic: Topic, count: int) -> bool:
    return len(chain.reader.of(topic)) >= count


@pytest.mark.parametrize("model", ["rules", "released"])
def test_kills_in_mid_meeting_change_nothing(tmp_path: Path, model: str) -> None:
    """One flow, the other, then both at once, which go on with more workers; two meetings are under way."""
    names = ("first", "second/zwei")
    expected = by_files(open_inputs([meeting_folder(tmp_path / "files", "m")]), Settings(model=model))
    assert (expected["versions"]["model"] is None) == (model == "rules")
    settings = SETTINGS | {"MINUTED_MODEL": model}
    with Installation(tmp_path / "installation", settings=settings) as installation:
        chain = Chain(installation)
        publishing = [
            # Long enough for the first restarts; what comes later is read after the last one.
            Thread(target=chain.publish, args=(meeting_folder(tmp_path / f"room{n}", name), name, 6.0))
            for n, name in enumerate(names)
        ]
        for thread in publishing:
            thread.start()
        for killed, topic, more in (("perceive", TIMELINE, 8), ("minutes", MINUTES, 3), ("both", MINUTES, 1)):
            before = len(chain.reader.of(topic))
            seen = before + (0 if all(chain.ended(name) for name in names) else more)
            chain.wait(partial(_more_than, chain, topic, seen), f"{seen} messages on {topic.name}")
            flows = [flow for name, flow in installation.flows.items() if killed in (name, "both")]
            for flow in flows:
                flow.kill()
                flow.arguments = ("-w", "2") if killed == "both" else flow.arguments
            for flow in flows:
                flow.start()
            for flow in flows:
                flow.wait_ready()
        for thread in publishing:
            thread.join()
        documents = [chain.minutes(name) for name in names]
        runs = {record.run for record in chain.log("first")}
        chain.close()
    assert [plain(document) for document in documents] == [expected, expected]
    assert len(runs) >= 2


def test_three_workers_give_the_same(tmp_path: Path, expected: dict[str, Any]) -> None:
    names = [f"meeting {n}" for n in range(4)]
    arguments = ("-w", "3")
    with Installation(tmp_path / "installation", settings=SETTINGS, arguments=arguments) as installation:
        chain = Chain(installation)
        for n, name in enumerate(names):
            chain.publish(meeting_folder(tmp_path / f"room{n}", name), name)
        documents = [chain.minutes(name) for name in names]
        chain.close()
    assert [plain(document) for document in documents] == [expected] * len(names)


class Cluster:
    """Both flows in one Dataflow, in two processes that make one Bytewax cluster."""

    def __init__(self, installation: Installation) -> None:
        self._directory = installation.directory
        self._environment = installation.environment
        self._recovery = installation.directory / "recovery-room"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        if not self._recovery.exists():
            self._recovery.mkdir()
            init_db_dir(self._recovery, 1)  # type: ignore[no-untyped-call]  # bytewax ships no types for it
        addresses = ";".join(f"127.0.0.1:{free_port()}" for _ in range(2))
        for index in range(2):
            command = [
                sys.executable, "-m", "bytewax.run", "flows.room", "-r", str(self._recovery), "-s", "2", "-b", "0",
                "-i", str(index), "-a", addresses,
            ]  # fmt: skip
            with (self._directory / f"room-{index}.log").open("ab") as log:
                process = subprocess.Popen(
                    guarded_command(command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
                    env=self._environment,
                )  # fmt: skip
            self._processes.append(process)

    def kill_one(self) -> None:
        """Kill one process: a supervisor then ends the other and starts both."""
        os.kill(self._processes[0].pid, signal.SIGKILL)
        for process in self._processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, Chain]]:
    with Installation(tmp_path / "installation", settings=SETTINGS, flows=()) as installation:
        processes, chain = Cluster(installation), Chain(installation)
        processes.start()
        yield processes, chain
        processes.close()
        chain.close()


def test_two_processes_give_the_same_and_survive_a_kill(
    cluster: tuple[Cluster, Chain], tmp_path: Path, expected: dict[str, Any]
) -> None:
    processes, chain = cluster
    names = [f"meeting {n}" for n in range(4)]
    for n, name in enumerate(names[:2]):
        chain.publish(meeting_folder(tmp_path / f"room{n}", name), name)
    documents = [chain.minutes(name) for name in names[:2]]
    folder = meeting_folder(tmp_path / "room2", names[2])
    publishing = Thread(target=chain.publish, args=(folder, names[2], 12.0))
    publishing.start()
    chain.wait(lambda: len(chain.reader.of(MINUTES, names[2])) >= 3, "its first minutes")
    processes.kill_one()
    processes.start()
    publishing.join()
    chain.publish(meeting_folder(tmp_path / "room3", names[3]), names[3])
    documents += [chain.minutes(name) for name in names[2:]]
    assert [plain(document) for document in documents] == [expected] * len(names)
