"""Brokers for the tests, each started at most once in a run, and only when a test asks for it.

A test that takes `broker` runs against both kinds. Whatever needs Apache Kafka carries the mark `kafka` of
itself; without Java 17 and Maven it is skipped, or fails where MINUTED_REQUIRE_KAFKA=1 says that it must run.
"""

import os
import uuid
from collections.abc import Iterator

import pytest

from flows.brokers import ApacheKafka, BrokerError, EmbeddedBroker, ServerProcess, find_java, kafka_jars


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for Apache Kafka."""
    for item in items:
        if "apache_kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def embedded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """The embedded broker, shared by the whole run: use `topic_prefix` to keep to yourself."""
    with EmbeddedBroker(tmp_path_factory.mktemp("embedded")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_parts() -> None:
    """Java and the jars of Apache Kafka, or else no test that needs them."""
    try:
        find_java()
        kafka_jars()
    except BrokerError as error:
        if os.environ.get("MINUTED_REQUIRE_KAFKA") == "1":
            pytest.fail(f"MINUTED_REQUIRE_KAFKA=1, but {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def apache_kafka(kafka_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Apache Kafka, shared by the whole run. Tests that kill a broker start one of their own."""
    quick_cleaner = {"log.cleaner.backoff.ms": "200"}  # compaction within a test's patience
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), properties=quick_cleaner) as broker:
        yield broker


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> ServerProcess:
    """Each kind of broker in turn."""
    name = "embedded_broker" if request.param == "embedded" else "apache_kafka"
    server: ServerProcess = request.getfixturevalue(name)
    return server


@pytest.fixture
def topic_prefix() -> str:
    """A prefix for topic names that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}."
