"""Messages of the contract: what is refused, what is kept, and keys and partitions."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from contracts import catalogue, examples, headers, topics
from contracts.messages import (
    CONTROL_MESSAGE,
    DEVICE_MESSAGE,
    MAX_DEAD_BYTES,
    Calibration,
    MeetingEnded,
    RuleFile,
    control_key,
)
from contracts.minutes import MINUTES_EVENT, ActionItem, Evidence, Item, ItemAdded, MinutesState
from contracts.packet import MAX_PAYLOAD_BYTES
from contracts.timeline import TIMELINE_RECORD

READERS: list[TypeAdapter[Any]] = [
    CONTROL_MESSAGE, DEVICE_MESSAGE, TIMELINE_RECORD, MINUTES_EVENT, TypeAdapter(MinutesState),
]  # fmt: skip
EXAMPLES = examples.messages()
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def read(reader: TypeAdapter[Any], data: bytes) -> Any:
    """The message, or None where it was refused in the one way that readers expect."""
    try:
        return reader.validate_json(data)
    except ValidationError:
        return None


@given(JSON_VALUES)
def test_random_json_is_refused(value: Any) -> None:
    for reader in READERS:
        assert read(reader, json.dumps(value).encode()) is None


@given(st.binary(max_size=60))
def test_random_bytes_are_refused(data: bytes) -> None:
    for reader in READERS:
        assert read(reader, data) is None


@given(st.sampled_from(sorted(EXAMPLES)), st.data())
@settings(max_examples=300)
def test_a_message_with_one_field_replaced_is_refused_or_read(name: str, data: st.DataObject) -> None:
    value = json.loads(EXAMPLES[name].to_bytes())
    node = value
    while True:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
            node = node[key]
        else:
            break
    node[key] = data.draw(JSON_VALUES)
    model = catalogue.MODELS[name]
    back = read(TypeAdapter(model), json.dumps(value).encode())
    if back is not None:
        again = model.model_validate_json(back.to_bytes())
        assert again.to_bytes() == back.to_bytes()


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"type":' * 5_000,
        b'{"type":"meeting_ended","meeting_id":"m","end_ns":' + b"9" * 5_000 + b"}",
        b'{"type":"meeting_ended","meeting_id":"m","end_ns":1e400}',
        b'{"type":"meeting_ended","meeting_id":"m","end_ns":NaN}',
        b'{"type":"meeting_ended","meeting_id":"\\ud800"}',
        b'{"type":"meeting_ended","meeting_id":"\xff"}',
        b'{"type":"meeting_ended","meeting_id":"*"}',
        b'{"type":"meeting_ended","meeting_id":"e\xcc\x81"}',
        b'{"type":"meeting_ended","meeting_id":"' + b"x" * 65 + b'"}',
        b'{"type":"meeting_ended"}',
        b'{"meeting_id":"m"}',
        b"",
    ],
)
def test_hostile_control_messages_are_refused(data: bytes) -> None:
    assert read(CONTROL_MESSAGE, data) is None


def test_fields_of_newer_writers_are_ignored() -> None:
    value = json.loads(EXAMPLES["meeting_ended"].to_bytes()) | {"mood": "good"}
    assert CONTROL_MESSAGE.validate_json(json.dumps(value)) == EXAMPLES["meeting_ended"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_minutes_hold_no_numbers_that_json_lacks(number: float) -> None:
    with pytest.raises(ValidationError):
        Evidence(
            kind="speech", start_s=number, end_s=0.0, device="d", speaker=None, quote="", error_ms=0.0,
            sampling_ms=0.0, boundary_ms=0.0,
        )  # fmt: skip


def test_owner_and_due_belong_to_action_items() -> None:
    plain = Item(id="1", text="x", confidence=1.0, origin="rules", verdict="pass", evidence=())
    action = ActionItem(**plain.model_dump(), owner=None, due=None, due_text=None)
    place: dict[str, Any] = {"meeting_id": "m", "generation": 1, "revision": 1, "stage": "settled"}
    assert ItemAdded(**place, section="action_items", item=action)
    with pytest.raises(ValidationError):
        ItemAdded(**place, section="action_items", item=plain)
    with pytest.raises(ValidationError):
        ItemAdded(**place, section="decisions", item=action)


def test_only_what_may_hold_for_all_meetings_does() -> None:
    assert Calibration(meeting_id="*", device="d", offset_ns=0)
    assert RuleFile(meeting_id="*", name="n", content="", sha256="0" * 64)
    with pytest.raises(ValidationError):
        MeetingEnded(meeting_id="*")


def test_compacted_keys_are_percent_encoded_and_differ_by_subject() -> None:
    assert (
        control_key(MeetingEnded(meeting_id="room 4/Übergabe")) == b"room%204%2F%C3%9Cbergabe/meeting_ended/"
    )
    assert control_key(Calibration(meeting_id="*", device="a/b", offset_ns=0)) == b"%2A/calibration/a%2Fb"
    keys = {control_key(Calibration(meeting_id="*", device=device, offset_ns=0)) for device in ("a", "b")}
    assert len(keys) == 2
    state = EXAMPLES["minutes_state"]
    assert isinstance(state, MinutesState)
    assert state.key == b"weekly-2026-03-02/minutes/"


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, as RFC 3720 defines it: independent of the library in use."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(st.text(max_size=20), st.integers(1, 64))
def test_partition_is_crc32c_of_the_id(meeting_id: str, partitions: int) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert topics.partition_of(meeting_id, partitions) == crc32c(meeting_id.encode()) % partitions


def test_topic_names_take_the_prefix() -> None:
    names = topics.TopicNames("site-a.", shards=4)
    assert names.of(topics.VIDEO) == "site-a.minuted.video"
    assert names.bare("site-a.minuted.video") == "minuted.video"
    assert names.partition("weekly-2026-03-02") in range(4)
    for wrong in ("minuted.video", "site-a.minuted.else"):
        with pytest.raises(ValueError, match="no topic of this installation"):
            names.bare(wrong)
    with pytest.raises(ValueError, match="at least 1"):
        topics.TopicNames(shards=0)
    with pytest.raises(ValueError, match="prefix"):
        topics.TopicNames("site a/")


def test_topics_are_as_wide_as_what_they_carry() -> None:
    assert topics.VIDEO.max_message_bytes > MAX_PAYLOAD_BYTES + 400
    assert topics.DEADLETTER.max_message_bytes > MAX_DEAD_BYTES * 4 // 3 + 400_000
    widest = max(topic.max_message_bytes for topic in (topics.TRANSCRIPT, topics.OCR, topics.CONTROL))
    assert topics.TIMELINE.max_message_bytes >= 3 * widest


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_trace_context_passes_through_where_well_formed() -> None:
    told = headers.cloud_event("final", "m/1/5", "flows.minutes", "2026-03-02T09:00:00Z", TRACE)
    assert ("ce_type", b"minuted.final") in told
    assert headers.traceparent_of(told) == TRACE
    bad = [
        "",
        TRACE[:-1],
        TRACE + "\n",
        TRACE.upper(),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
    ]
    for text in bad:
        assert headers.traceparent_of([("traceparent", text.encode())]) is None
        assert headers.traceparent_of(headers.cloud_event("x", "1", "s", "t", text)) is None
    for odd in (None, [], [("traceparent", None)], [("traceparent", b"\xff\xfe")], [("other", b"1")]):
        assert headers.traceparent_of(odd) is None
