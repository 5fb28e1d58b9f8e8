"""A meeting through the whole chain: broker, both flows, consumer; and the same by the way of files."""

import datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.headers import traceparent_of
from contracts.topics import MINUTES, STATE, TIMELINE
from devices.inputs import open_inputs
from tests.flows.live_chain import Chain, by_files, meeting_folder, plain


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = meeting_folder(tmp_path_factory.mktemp("files") / "room", "m")
    return by_files(open_inputs([folder]))


def test_the_meeting_is_worth_its_name(expected: dict[str, Any]) -> None:
    texts = {
        name: [i["text"] for i in expected[name]] for name in ("decisions", "action_items", "open_questions")
    }
    assert any("Saturday" in text for text in texts["decisions"])
    assert {i["owner"] for i in expected["action_items"]} >= {"Ben", "Anna"}
    assert len(texts["open_questions"]) == 1


@pytest.mark.parametrize("meeting_id", ["stall", "Q3/ Größe 会議 % +/x"])
def test_minutes_by_the_broker_are_those_by_files(
    chain: Chain, tmp_path: Path, expected: dict[str, Any], meeting_id: str
) -> None:
    chain.publish(meeting_folder(tmp_path / "room", meeting_id), meeting_id)
    document = chain.minutes(meeting_id)
    assert document.meeting_id == meeting_id
    assert plain(document) == expected
    shard = chain.link.names.partition(meeting_id)
    for topic in (TIMELINE, MINUTES):
        assert {m.partition for m in chain.reader.of(topic, meeting_id)} == {shard}
    assert document.key in {m.key for m in chain.reader.of(STATE)}


def test_a_meeting_in_real_time_speaks_before_it_is_over(chain: Chain, tmp_path: Path) -> None:
    chain.publish(meeting_folder(tmp_path / "room", "live"), "live", speed=20.0)
    chain.minutes("live")
    stages = [
        m.value.split(b'"stage":"')[1].split(b'"')[0].decode() for m in chain.reader.of(MINUTES, "live")
    ]
    assert stages[0] == "provisional"
    assert "settled" in stages
    assert stages[-1] == "final"


def test_messages_carry_what_routers_need(chain: Chain, tmp_path: Path) -> None:
    chain.publish(meeting_folder(tmp_path / "room", "routed"), "routed")
    chain.minutes("routed")
    for message in [*chain.reader.of(MINUTES, "routed"), *chain.reader.of(TIMELINE, "routed")]:
        assert message.headers["ce_type"].startswith(b"minuted.")
        assert message.headers["ce_id"]
        assert b"flows." in message.headers["ce_source"]
        assert datetime.datetime.fromisoformat(message.headers["ce_time"].decode()).tzinfo is not None
        assert traceparent_of(message.headers.items()) is None
