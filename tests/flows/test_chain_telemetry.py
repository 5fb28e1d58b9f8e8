"""From the device packet to the minutes event in one trace: real flows, a real broker, a real OTLP receiver."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from contracts.headers import traceparent_of
from contracts.messages import MeetingStarted
from contracts.packet import encode
from contracts.topics import AUDIO, CONTROL, MINUTES, TIMELINE, TRANSCRIPT
from flows.installation import Installation
from operators.telemetry import STEPS
from tests.flows.live_chain import Chain
from tests.flows.test_bad_input_messages import Meeting
from tests.operators.otlp_collector import Collector, eventually

DEVICE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.close()


def test_a_meeting_is_one_trace_from_the_packet_to_the_minutes(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
    settings = {"MINUTED_OTLP_ENDPOINT": collector.endpoint, "MINUTED_LOG_FORMAT": "json"}
    with Installation(tmp_path, settings=settings) as installation:
        chain = Chain(installation)
        try:
            meeting = Meeting(chain, "traced", start=False)
            producer = Producer(chain.link.producer())
            lines = ["So we decided that the stall opens on Saturday at nine.", "That is all, thank you."]
            started = MeetingStarted(
                meeting_id="traced", start_ns=meeting.zero_ns, speech_source="transcript"
            )
            sent = [
                (CONTROL, started.to_bytes()),
                (AUDIO, encode(meeting.sound(0))),
                (AUDIO, b"not a packet"),
            ]
            sent += [(TRANSCRIPT, meeting.line(at_s, text).to_bytes()) for at_s, text in enumerate(lines, 2)]
            for topic, value in sent:
                producer.produce(
                    chain.link.names.of(topic), value, key=b"traced", partition=chain.link.names.partition("traced"),
                    headers=[("traceparent", DEVICE.encode())],
                )  # fmt: skip
            producer.flush()
            meeting.end_sound(1)
            meeting.finish()
            said = next(m for m in chain.reader.of(TIMELINE, "traced") if b'"type":"utterance"' in m.value)
            added = next(m for m in chain.reader.of(MINUTES, "traced") if b'"type":"item_added"' in m.value)
            heard, published = traceparent_of(said.headers.items()), traceparent_of(added.headers.items())
            assert heard is not None and published is not None

            def spans_there() -> bool:
                names = {span.name for span in list(collector.spans)}
                ids = {span.span_id.hex() for span in list(collector.spans)}
                return names >= set(STEPS) and {heard[36:52], published[36:52]} <= ids

            assert eventually(spans_there), {span.name for span in collector.spans}
            counted = [
                ("minuted.messages.rejected", "truncated"),
                ("minuted.items", "pass"),
                ("minuted.sink.flush", ""),
            ]
            assert eventually(lambda: all(key in collector.metrics for key in counted)), collector.metrics
            flow = installation.flows["minutes"]
            process = flow._process
            assert process is not None
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == -signal.SIGTERM
            logs = {name: f.log.read_text() for name, f in installation.flows.items()}
        finally:
            chain.close()
    spans = {span.span_id.hex(): span for span in collector.spans}
    assert {span.trace_id.hex() for span in spans.values()} == {DEVICE[3:35]}
    deliver, perceive = spans[published[36:52]], spans[heard[36:52]]
    assert (deliver.name, collector.services[deliver.span_id]) == ("deliver", "flows.minutes")
    assert (perceive.name, collector.services[perceive.span_id]) == ("perceive", "flows.perceive")
    assert spans[deliver.parent_span_id.hex()].name == "perceive"
    assert perceive.parent_span_id.hex() == DEVICE[36:52]
    for span in spans.values():
        meetings = [a.value.string_value for a in span.attributes if a.key == "minuted.meeting"]
        assert meetings == ["traced"] and span.end_time_unix_nano >= span.start_time_unix_nano
    assert '"event": "ready"' in logs["perceive"] and '"event": "dead_letter"' in logs["perceive"]
    assert '"event": "stop"' in logs["minutes"]
