"""What comes with records of the log, or instead of them, on its way through the minutes flow."""

from contracts.messages import MeetingStarted
from contracts.minutes import Versions
from contracts.timeline import ControlRecord, EndedRecord, UtteranceRecord
from contracts.topics import DEADLETTER, MINUTES
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.deliver.keys import OpenKeys
from operators.deliver.step import Deliver, judge
from operators.draft import Drafting
from operators.understand.engine import RuleEngine
from operators.verify.check import Verifier

TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
RECORDS = (
    ControlRecord(meeting_id="m", control=MeetingStarted(meeting_id="m", start_ns=0), source="control/0/0"),
    UtteranceRecord(
        meeting_id="m", id="t/0/0", version=1, state="closed", stream="t/transcript", device="t", clock=0,
        raw_start_ns=0, raw_end_ns=10**9, mark_ns=0, speaker="Ann", text="I will send the report by Friday.",
        source="transcript", sampling_ms=0.0, boundary_ms=0.0,
    ),
    EndedRecord(meeting_id="m", reason="control", end_ns=2 * 10**9),
)  # fmt: skip


def through(values: list[bytes], traceparent: str | None = None) -> list[Outgoing]:
    align, drafting, deliver = (
        Align(AlignSettings()),
        Drafting(RuleEngine()),
        Deliver(Versions(product="0", model=None, rules="r", contract="c"), OpenKeys()),
    )
    verifier = Verifier()
    out: list[Outgoing] = []
    for offset, value in enumerate(values):
        received = Received("minuted.timeline", 0, offset, 0, True, value, traceparent)
        drafted = drafting.on_batch(align.on_batch([received]))
        out += deliver.on_batch([judge(verifier, d) for d in drafted])
    return out


def test_the_trace_of_the_log_reaches_the_minutes() -> None:
    out = through([record.to_bytes() for record in RECORDS], TRACE)
    assert [m.topic for m in out if m.topic is MINUTES]
    assert {m.traceparent for m in out} == {TRACE}
    assert {m.traceparent for m in through([record.to_bytes() for record in RECORDS])} == {None}


def test_a_record_that_cannot_be_read_is_a_dead_letter_and_nothing_else_changes() -> None:
    good = [record.to_bytes() for record in RECORDS]
    bad = [b'{"type": "utterance"}', b"", b"{", b"null", b'{"type":"fence","run":-1,"shard":0}']
    out = through([bad[0], good[0], *bad[1:], *good[1:]])
    letters = [m for m in out if m.topic is DEADLETTER]
    assert len(letters) == len(bad)
    assert [m.value for m in out if m.topic is not DEADLETTER] == [m.value for m in through(good)]
