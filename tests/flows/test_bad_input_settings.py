"""Flows that cannot run, as people start them: one line, exit code 2, no stack trace; or a line, and waiting."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from contracts.topics import TOPICS, TopicNames
from flows.brokers import EmbeddedBroker, free_port, guarded_command
from flows.installation import ROOT
from flows.process_lock import lock_state, process_id
from operators.broker.kafka_link import BrokerLink, create_topics
from operators.deliver.keys import KeyStore


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker whose topics are as they should be."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        create_topics(BrokerLink(running.bootstrap, TopicNames(), running.client_overrides))
        yield running


def environment(broker: EmbeddedBroker | None, state: Path, **variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MINUTED_")}
    address = broker.bootstrap if broker is not None else f"127.0.0.1:{free_port()}"
    ours = {"MINUTED_BOOTSTRAP_SERVERS": address, "MINUTED_STATE_DIR": str(state), "PYTHONPATH": str(ROOT)}
    return kept | ours | variables


def refused(name: str, variables: dict[str, str]) -> str:
    """What a flow says that does not start; it must end with code 2 and one line."""
    command = [sys.executable, "-m", "bytewax.run", f"flows.{name}"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_a_setting_that_cannot_be_used(broker: EmbeddedBroker, tmp_path: Path) -> None:
    line = refused("minutes", environment(broker, tmp_path, MINUTED_SHARDS="sixteen"))
    assert line.startswith("flows.minutes: MINUTED_SHARDS is 'sixteen': input should be a valid integer")


def test_a_setting_that_there_is_not(broker: EmbeddedBroker, tmp_path: Path) -> None:
    line = refused("room", environment(broker, tmp_path, MINUTED_SHARD="8"))
    assert (
        line
        == "flows.room: MINUTED_SHARD is no setting of minuted (MINUTED_SHARDS?); `minuted doctor` lists them"
    )


def test_no_recogniser_weights(broker: EmbeddedBroker, tmp_path: Path) -> None:
    line = refused("perceive", environment(broker, tmp_path, MINUTED_SPEECH_MODEL="/nowhere/model"))
    assert line.startswith("flows.perceive: ")
    assert "/nowhere/model" in line


def test_missing_topics(broker: EmbeddedBroker, tmp_path: Path) -> None:
    line = refused("perceive", environment(broker, tmp_path, MINUTED_TOPIC_PREFIX="other."))
    assert line == (
        f"flows.perceive: other.{TOPICS[0].name} and {len(TOPICS) - 1} more topics do not exist at {broker.bootstrap}: "
        "`minuted topics create` makes them"
    )


def test_a_topic_with_the_wrong_number_of_partitions(broker: EmbeddedBroker, tmp_path: Path) -> None:
    names = TopicNames("odd.")
    link = BrokerLink(broker.bootstrap, names, broker.client_overrides)
    admin = AdminClient(link.client())
    admin.create_topics([NewTopic("odd.minuted.timeline", 3, 1)])["odd.minuted.timeline"].result(10)
    create_topics(link)
    line = refused("room", environment(broker, tmp_path, MINUTED_TOPIC_PREFIX="odd."))
    assert line.startswith("flows.room: odd.minuted.timeline has 3 partitions, MINUTED_SHARDS is 16: ")


def test_a_state_folder_that_cannot_be_written(broker: EmbeddedBroker, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    line = refused("minutes", environment(broker, file / "state"))
    assert line.startswith(f"flows.minutes: MINUTED_STATE_DIR {file / 'state'} cannot be written")


def test_rules_and_keys_that_cannot_be_used(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """A rule file with a mistake is told with its place; keys of another master key are not touched."""
    file = tmp_path / "house.sal"
    file.write_text('# ours\nassert "owned": all a in action_items: a.ovner != null\n')
    keys = tmp_path / "keys"
    line = refused("minutes", environment(broker, tmp_path, MINUTED_RULES=str(file), MINUTED_KEYS=str(keys)))
    assert line.startswith(f"flows.minutes: MINUTED_RULES {file}:2:") and "owner" in line
    KeyStore(keys, bytes(32))
    line = refused("minutes", environment(broker, tmp_path, MINUTED_KEYS=str(keys)))
    assert line == f"flows.minutes: MINUTED_KEYS or MINUTED_MASTER_KEY_FILE: {keys} needs the master key"


def test_a_flow_that_runs_already_on_the_same_state(broker: EmbeddedBroker, tmp_path: Path) -> None:
    lock_state(tmp_path, "minutes", 0)
    line = refused("minutes", environment(broker, tmp_path))
    assert line == (
        f"flows.minutes: another flows.minutes runs on the state directory {tmp_path} (process {os.getpid()}); "
        "end it first, or give this one state and recovery directories of its own"
    )
    # flows.room is both halves; the second process of a group is no second flow.
    lock_state(tmp_path, "minutes", 0)
    lock_state(tmp_path, "minutes", 1)
    assert "another flows.minutes runs" in refused("room", environment(broker, tmp_path))


@pytest.mark.parametrize(
    ("arguments", "variables", "number"),
    [
        ([], {}, 0),
        (["flows.minutes", "-r", "x", "-i", "1", "-a", "a;b"], {}, 1),
        (["flows.minutes", "-i2"], {"BYTEWAX_PROCESS_ID": "3"}, 2),
        (["flows.minutes", "--process-id=4"], {}, 4),
        (["flows.minutes"], {"BYTEWAX_PROCESS_ID": "3"}, 3),
        (["flows.minutes"], {"BYTEWAX_POD_NAME": "minuted-5", "BYTEWAX_STATEFULSET_NAME": "minuted"}, 5),
        (["flows.minutes", "-i", "x"], {}, 0),
    ],
)
def test_the_number_of_a_process_in_its_group(
    arguments: list[str], variables: dict[str, str], number: int
) -> None:
    assert process_id(arguments, variables) == number


def test_a_broker_nobody_answers_at_is_said_within_ten_seconds_and_waited_for(tmp_path: Path) -> None:
    variables = environment(None, tmp_path)
    address = variables["MINUTED_BOOTSTRAP_SERVERS"]
    log = tmp_path / "log"
    with log.open("wb") as out:
        flow = subprocess.Popen(
            guarded_command([sys.executable, "-m", "bytewax.run", "flows.minutes"]), cwd=ROOT, env=variables,
            stdout=out, stderr=out,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 30  # ten seconds, and the start of a process on a busy machine
        while not log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        away = f"flows.minutes: no broker answers at {address}; waiting for it, nothing is lost meanwhile"
        assert log.read_text().splitlines() == [away]
        with EmbeddedBroker(tmp_path / "broker", port=int(address.rpartition(":")[2])) as broker:
            create_topics(BrokerLink(broker.bootstrap))
            while "ready" not in log.read_text() and time.monotonic() < deadline + 30 and flow.poll() is None:
                time.sleep(0.05)
            lines = log.read_text().splitlines()
            assert lines[1] == f"flows.minutes: the broker at {address} answers again"
            # The topics may not have been there yet when it looked.
            assert lines[2] == "flows.minutes: ready" or "do not exist" in lines[2]
    finally:
        flow.kill()
        flow.wait()
