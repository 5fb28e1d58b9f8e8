"""Telemetry at the edges of a step: off it is not there; on, spans are few and whole, and counts are right."""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from contracts.timeline import ClockRecord, MarkRecord, UtteranceRecord
from contracts.topics import DEADLETTER, MINUTES, TIMELINE, TopicNames
from docs.metrics_table import PAGE, with_table
from operators import telemetry
from operators.align.aligned import Traced
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.ingest import Ingest, IngestSettings
from operators.log import Event
from operators.store import StepStore
from operators.telemetry.export import METRICS, CollectorWatch, Exporting
from operators.telemetry.steps import (
    LONGEST_NS,
    WINDOW_NS,
    Budget,
    Contexts,
    ObservedIngest,
    ObservedStep,
    Windows,
    context_of_meeting,
)
from tests.operators.otlp_collector import Collector, eventually

S = 1_000_000_000
FIRST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


class Says:
    """A step that answers each input with messages that a test has put down."""

    def __init__(self) -> None:
        self.answers: list[list[Any]] = []

    def open(self, store: StepStore) -> None: ...

    def save(self, store: StepStore) -> None: ...

    def next_timer_s(self) -> float | None:
        return None

    def on_timer(self) -> Iterable[Any]:
        return self.answers.pop(0) if self.answers else ()

    def on_batch(self, values: list[Any]) -> Iterable[Any]:
        return self.answers.pop(0) if self.answers else ()


class Noted:
    """Meters that remember."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], float] = {}
        self.measured: list[tuple[str, float, str]] = []

    def count(self, name: str, number: float, attribute: str = "") -> None:
        self.counts[name, attribute] = self.counts.get((name, attribute), 0) + number

    def measure(self, name: str, value: float, attribute: str = "") -> None:
        self.measured.append((name, value, attribute))

    def clock_measured(self, device: str, bound_ns: int) -> None:
        self.measured.append(("bound", bound_ns / S, device))


class Bench:
    """A step under observation, its spans and its counts."""

    def __init__(self, name: str, budget: Budget | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.noted = Noted()
        self.contexts = Contexts()
        self.windows = Windows(name, provider.get_tracer("t"), self.contexts, budget or Budget(), self.noted)
        self.says = Says()
        self.step = ObservedStep(self.says, self.windows)

    def run(self, inputs: list[Any], answer: list[Any]) -> list[Any]:
        self.says.answers.append(answer)
        return list(self.step.on_batch(inputs))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()


def utterance(state: str = "closed", end_ns: int = 5 * S) -> Outgoing:
    record = UtteranceRecord.model_validate(
        {
            "meeting_id": "m", "id": "mic/1/0", "version": 1, "state": state, "stream": "mic/audio", "device": "mic",
            "clock": 0, "raw_start_ns": end_ns - S, "raw_end_ns": end_ns, "mark_ns": end_ns, "speaker": None,
            "text": '"state":"tentative" is what she said', "source": "recogniser", "sampling_ms": 1, "boundary_ms": 1,
        }
    )  # fmt: skip
    return Outgoing(TIMELINE, b"m", record.to_bytes(), "timeline.utterance", record.identity)


def mark() -> Outgoing:
    record = MarkRecord(meeting_id="m", stream="mic/audio", raw_ns=1)
    return Outgoing(TIMELINE, b"m", record.to_bytes(), "timeline.mark", record.identity)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_off_a_step_is_what_it_was_and_the_sdk_is_not_imported() -> None:
    step = Says()
    assert telemetry.observed("perceive", step) is step
    assert telemetry.observed_function("verify", repr) is repr
    done = subprocess.run(
        [sys.executable, "-c", "import sys, flows.build; print([m for m in sys.modules if m.startswith('opentelemetry')])"],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_what_is_said_carries_the_context_of_its_span() -> None:
    bench = Bench("perceive")
    bench.contexts.given("m", FIRST)
    (told,) = bench.run([], [utterance()])
    (span,) = bench.spans
    assert span.context is not None and span.parent is not None
    assert told.traceparent == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"
    assert f"{span.context.trace_id:032x}" == FIRST[3:35] and f"{span.parent.span_id:016x}" == FIRST[36:52]
    assert span.name == "perceive" and attributes(span)["minuted.meeting"] == "m"
    assert told.value == utterance().value, "telemetry never touches what is said"


def test_a_meeting_keeps_its_trace_and_follows_its_newest_span() -> None:
    contexts = Contexts()
    contexts.given("m", FIRST)
    contexts.given("m", OTHER)
    contexts.given("m", FIRST[:36] + "3" * 16 + "-01")
    bench = Bench("align")
    bench.run([Traced("m", FIRST), Traced("m", OTHER)], [])
    bench.run([MarkRecord(meeting_id="m", stream="mic/audio", raw_ns=1)], [NamedMeeting("m")])
    (span,) = bench.spans
    assert span.context is not None and f"{span.context.trace_id:032x}" == FIRST[3:35]


class NamedMeeting:
    """Something a step hands on about a meeting."""

    def __init__(self, meeting_id: str) -> None:
        self.meeting_id = meeting_id


def test_without_a_context_every_process_finds_the_same_trace() -> None:
    first, second = Bench("perceive"), Bench("deliver")
    first.run([], [utterance()])
    second.run([], [Outgoing(MINUTES, b"m", b'{"verdict":"pass"}', "item_added")])
    traces = {span.context.trace_id for bench in (first, second) for span in bench.spans if span.context}
    assert {f"{trace:032x}" for trace in traces} == {context_of_meeting("m")[3:35]}
    assert context_of_meeting("m") != context_of_meeting("n")


def test_what_says_nothing_becomes_one_span_a_second() -> None:
    bench = Bench("perceive")
    for _ in range(50):
        assert bench.run([NamedMeeting("m")], [mark()])[0].traceparent is None
    bench.windows.sweep()
    assert not bench.spans
    next(iter(bench.windows._open.values())).begun_ns -= WINDOW_NS
    bench.windows.sweep()
    (span,) = bench.spans
    found = attributes(span)
    assert (found["minuted.activations"], found["minuted.inputs"], found["minuted.outputs"]) == (50, 50, 0)
    assert bench.noted.counts["minuted.records", "mark"] == 50


def test_marks_go_on_under_the_last_span_so_that_the_log_does_not_flicker() -> None:
    bench = Bench("perceive")
    (told,) = bench.run([], [utterance()])
    assert bench.run([], [mark()])[0].traceparent == told.traceparent


def test_a_replay_shares_spans_where_a_live_meeting_has_its_own() -> None:
    now = [0.0]
    bench = Bench("perceive", Budget(lambda: now[0]))
    for _ in range(1000):
        bench.run([], [utterance()])
    bench.windows.sweep(everything=True)
    assert len(bench.spans) == 41
    assert sum(attributes(span)["minuted.outputs"] for span in bench.spans) == 1000
    now[0] = 60.0
    bench.run([], [utterance()])
    assert len(bench.spans) == 42


def test_a_hundred_meetings_share_what_one_step_may_make() -> None:
    now = [0.0]
    bench = Bench("align", Budget(lambda: now[0]))
    for number in range(100):
        bench.run([NamedMeeting(f"m{number}")], [])
    for window in bench.windows._open.values():
        window.begun_ns -= WINDOW_NS
    bench.windows.sweep()
    assert len(bench.spans) == 40
    now[0] = 1.0
    bench.windows.sweep()
    assert len(bench.spans) == 60
    for window in bench.windows._open.values():
        window.begun_ns -= LONGEST_NS
    bench.windows.sweep()
    assert len(bench.spans) == 100


def test_each_message_is_counted_by_what_it_says() -> None:
    perceive, deliver = Bench("perceive"), Bench("deliver")
    letter = Outgoing(
        DEADLETTER, b"minuted.audio/0/7", b'{"reason":"crc","topic":"minuted.audio"}', "deadletter"
    )
    perceive.run([], [utterance("tentative"), utterance(), letter])
    deliver.run([], [Outgoing(MINUTES, b"m", b'{"item":{"verdict":"repaired"}}', "item_changed")])
    for bench in (perceive, deliver):
        bench.windows.sweep()
    counts = perceive.noted.counts | deliver.noted.counts
    assert counts["minuted.utterances", "tentative"] == counts["minuted.utterances", "closed"] == 1
    assert counts["minuted.messages.rejected", "crc"] == 1
    assert counts["minuted.items", "repaired"] == counts["minuted.revisions", "item_changed"] == 1
    assert {name for name, _ in counts} <= {metric.name for metric in METRICS}


def test_latency_is_measured_where_stamps_are_of_now() -> None:
    bench = Bench("perceive")
    clock = ClockRecord(
        meeting_id="m", device="mic", number=0, from_raw_ns=0, ref_ns=0, offset_ns=-37 * S, uncertainty_ns=2_000_000,
        method="stamped",
    )  # fmt: skip
    bench.run([clock], [utterance(end_ns=time.time_ns() - S // 4)])
    bench.run([], [utterance(end_ns=5 * S)])
    bound, (name, seconds, state) = bench.noted.measured
    assert bound == ("bound", 0.002, "mic")
    assert (name, state) == ("minuted.text.latency", "closed") and 0.25 <= seconds < 1.0


def test_ingest_counts_what_was_late_lost_or_came_twice() -> None:
    from contracts.packet import ClockKind, Codec, Modality, Packet, encode

    names = TopicNames(shards=1)
    bench = Bench("ingest")
    step = ObservedIngest(Ingest(IngestSettings(max_held=1), names), bench.windows)

    def received(sequence: int) -> Received:
        packet = Packet(
            "m", "mic", Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, sequence, sequence * 20_000_000, 20_000_000,
            bytes(640), rate_hz=16_000, channels=1,
        )  # fmt: skip
        return Received("minuted.audio", 0, sequence, 0, True, encode(packet), FIRST)

    for sequence in (0, 1, 1, 3, 2):
        list(step.on_batch([received(sequence)]))
    bench.windows.sweep(everything=True)
    counts = bench.noted.counts
    assert counts["minuted.messages.read", "minuted.audio"] == 5
    assert counts["minuted.messages.duplicate", ""] == 1
    assert counts["minuted.messages.lost", ""] == 1
    assert counts["minuted.messages.late", ""] == 1
    (span,) = bench.spans
    assert span.context is not None and f"{span.context.trace_id:032x}" == FIRST[3:35]


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.close()


def test_a_collector_that_is_away_is_told_of_once_and_costs_nothing(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    collector.status = 400
    probe = Exporting("flows.perceive", "1", tmp_path, collector.endpoint + "/")
    said = []

    def told(what: str) -> bool:
        said.append(capfd.readouterr().err)
        return what in "".join(said)

    assert eventually(lambda: told("refuses what is sent"))
    step = probe.step("perceive", says := Says())
    says.answers = [[utterance()] for _ in range(5000)]
    begun = time.monotonic()
    for _ in range(5000):
        list(step.on_batch([]))
    assert time.monotonic() - begun < 10
    collector.status = 200
    assert eventually(lambda: told("answers again"))
    lines = "".join(said).splitlines()
    assert lines == [
        f"flows.perceive: the telemetry collector at {collector.endpoint}/ refuses what is sent (HTTP 400); "
        "the flow goes on without",
        f"flows.perceive: the telemetry collector at {collector.endpoint}/ answers again",
    ]
    assert eventually(lambda: collector.metrics.get(("minuted.utterances", "closed")) == 5000)
    assert eventually(lambda: ("minuted.state.size", "") in collector.metrics)
    probe.close()


def test_a_request_that_failed_before_another_was_answered_says_nothing_of_now(
    capfd: pytest.CaptureFixture[str],
) -> None:
    watch, begun_s = CollectorWatch("flows.perceive", "here"), time.monotonic()
    for good in (False, True, False, True):
        watch.result(good, begun_s)
    assert [line.rpartition(" ")[2] for line in capfd.readouterr().err.splitlines()] == ["without", "again"]
    watch.result(False, time.monotonic())
    assert "no telemetry collector" in capfd.readouterr().err


@pytest.mark.parametrize("status", [307, 404])
def test_a_collector_that_answers_and_takes_nothing_is_told_so(
    collector: Collector, tmp_path: Path, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    collector.status = status
    probe = Exporting("flows.perceive", "1", tmp_path, collector.endpoint)
    list(probe.step("perceive", Says()).on_batch([]))
    probe.close()
    assert capfd.readouterr().err == (
        f"flows.perceive: the telemetry collector at {collector.endpoint} refuses what is sent (HTTP {status}); "
        "the flow goes on without\n"
    )


def test_the_end_of_a_flow_waits_for_no_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Exporting("flows.perceive", "1", tmp_path, "http://127.0.0.1:9")
    list(probe.step("perceive", Says()).on_batch([]))
    begun = time.monotonic()
    probe.close()
    assert time.monotonic() - begun < 4


def test_the_table_of_metrics_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m docs.metrics_table"
    assert {event for event in get_args(Event) if f"`{event}`" not in page} == {"said"}
