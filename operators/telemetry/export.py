"""Sends spans and metrics by OTLP over HTTP; imported only where telemetry is on.

Everything is sent by threads of the SDK from bounded queues. A collector that is away is told of once; what does
not fit into the queues meanwhile is dropped. Nothing here makes a step wait.
"""

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from operators.ingest import Ingest
from operators.log import say
from operators.shard_step import ShardStep
from operators.telemetry import PERCEIVE_STEPS, STEPS
from operators.telemetry.steps import (
    Budget,
    Contexts,
    ObservedIngest,
    ObservedStep,
    Windows,
    observed_function,
)

_SWEEP_S: Final = 0.5
_TIMEOUT_S: Final = 5.0
_CLOSE_S: Final = 1.0
_SECONDS: Final = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.2,
    0.35,
    0.5,
    0.75,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    120.0,
)
"""Upper edges of the histograms, in seconds; the targets of latency are among them."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, as docs/operations.md lists it; ``attribute`` is the one that it has, or empty."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    meaning: str
    attribute: str = ""


METRICS: Final = (
    Metric("minuted.messages.read", "counter", "{message}", "device messages, and records of the log, read", "topic"),
    Metric("minuted.messages.rejected", "counter", "{message}", "messages that became dead letters", "reason"),
    Metric("minuted.messages.late", "counter", "{message}", "came after their place had been given up"),
    Metric("minuted.messages.lost", "counter", "{message}", "missing in their stream"),
    Metric("minuted.messages.duplicate", "counter", "{message}", "came a second time and were dropped"),
    Metric("minuted.records", "counter", "{record}", "written to the log", "type"),
    Metric("minuted.utterances", "counter", "{utterance}", "written to the log", "state"),
    Metric("minuted.revisions", "counter", "{revision}", "minutes events published", "type"),
    Metric("minuted.items", "counter", "{item}", "items added or changed", "verdict"),
    Metric("minuted.review.requests", "counter", "{request}", "questions to people, withheld items among them", "withheld"),
    Metric("minuted.step.busy", "counter", "s", "time that a step worked", "step"),
    Metric("minuted.recognition.wait", "histogram", "s", "a piece of speech waited for a worker", "kind"),
    Metric("minuted.recognition.duration", "histogram", "s", "its recognition took", "kind"),
    Metric("minuted.text.latency", "histogram", "s", "end of speech to its text, where stamps are of now", "state"),
    Metric("minuted.sink.flush", "histogram", "s", "wait for the broker at a snapshot"),
    Metric("minuted.read.behind", "gauge", "s", "age of what is read from the broker, since it was sent", "shard"),
    Metric("minuted.work.waiting", "gauge", "{change}", "read, and put off since their meeting brings too much", "shard"),
    Metric("minuted.meetings.overdue", "gauge", "{meeting}", "told to be over half a minute ago, not ended", "shard"),
    Metric("minuted.meetings.shed", "gauge", "{meeting}", "left out, as the flow does not keep up", "shard"),
    Metric("minuted.packets.shed", "counter", "{packet}", "left out, as the flow did not keep up", "shard"),
    Metric("minuted.clock.bound", "gauge", "s", "how well the clock of a device is known", "device"),
    Metric("minuted.clock.error", "gauge", "s", "how far the clock of a device was off", "device"),
    Metric("minuted.state.size", "gauge", "By", "bytes in the state directory"),
)  # fmt: skip


class CollectorWatch:
    """Says once that the collector is away, and once that it is back. For all threads that send to it."""

    def __init__(self, service: str, where: str) -> None:
        self._service = service
        self._where = where
        self._away = self._closed = False
        self._answered_s = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Say nothing more."""
        with self._lock:
            self._closed = True

    def result(self, good: bool, begun_s: float, status: int | None = None) -> None:
        """Something was sent, or could not be; ``begun_s`` is when that began, on a monotonic clock.

        ``status``: what the collector answered, None where it did not.
        """
        with self._lock:
            if good:
                self._answered_s = time.monotonic()
            # What began before somebody else was answered says nothing of now.
            if good != self._away or self._closed or (not good and begun_s <= self._answered_s):
                return
            self._away = not good
            # Under the lock, so that the lines come in the order of what they tell.
            if good:
                say(
                    f"{self._service}: the telemetry collector at {self._where} answers again",
                    "telemetry_back",
                )
            elif status is None:
                say(
                    f"{self._service}: no telemetry collector answers at {self._where}; the flow goes on without",
                    "telemetry_away",
                )
            else:
                say(
                    f"{self._service}: the telemetry collector at {self._where} refuses what is sent (HTTP {status}); "
                    "the flow goes on without",
                    "telemetry_away",
                )


class _Answers:
    """The status of the newest answer of a collector. A redirection is success to the SDK, and yet nothing arrives."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.session: requests.Session | None = None
        if not any(
            "CREDENTIAL_PROVIDER" in name for name in os.environ
        ):  # then the SDK makes sessions of its own
            self.session = requests.Session()
            self.session.hooks["response"].append(self._note)

    def good(self, succeeded: bool) -> bool:
        """Whether what was sent has arrived."""
        return succeeded and (self.status is None or self.status < 300)

    def _note(self, response: requests.Response, **_: Any) -> None:
        self.status = response.status_code


class _Spans(OTLPSpanExporter):
    def __init__(self, told: CollectorWatch, **settings: Any) -> None:
        self._answers = _Answers()
        super().__init__(session=self._answers.session, **settings)
        self._told = told

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        begun_s, self._answers.status = time.monotonic(), None
        result = super().export(spans)
        good = self._answers.good(result is SpanExportResult.SUCCESS)
        self._told.result(good, begun_s, self._answers.status)
        return result


class _Metrics(OTLPMetricExporter):
    def __init__(self, told: CollectorWatch, **settings: Any) -> None:
        self._answers = _Answers()
        super().__init__(session=self._answers.session, **settings)
        self._told = told

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **settings: Any
    ) -> MetricExportResult:
        begun_s, self._answers.status = time.monotonic(), None
        result = super().export(metrics_data, timeout_millis, **settings)
        good = self._answers.good(result is MetricExportResult.SUCCESS)
        self._told.result(good, begun_s, self._answers.status)
        return result


class Exporting:
    """The probe of a process whose spans and metrics are sent.

    Args:
        service: name of the flow.
        version: of the product.
        state_dir: its size is a metric.
        endpoint: base address of the collector; None takes OTEL_EXPORTER_OTLP_ENDPOINT.
    """

    def __init__(self, service: str, version: str, state_dir: Path, endpoint: str | None) -> None:
        quiet = logging.getLogger("opentelemetry")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False  # people get our line, once an outage, instead of one for each attempt
        resource = Resource.create({"service.name": service, "service.version": version})
        told = self._told = CollectorWatch(
            service, endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "the default address")
        )
        base = None if endpoint is None else endpoint.rstrip("/")
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans = _Spans(told, endpoint=base and f"{base}/v1/traces", timeout=_TIMEOUT_S)
        self._tracers.add_span_processor(BatchSpanProcessor(spans))
        metrics = _Metrics(told, endpoint=base and f"{base}/v1/metrics", timeout=_TIMEOUT_S)
        self._meters = MeterProvider(
            [PeriodicExportingMetricReader(metrics)], resource, shutdown_on_exit=False
        )
        self._tracer = self._tracers.get_tracer("minuted", version)
        # Both halves may run in one process, and what one writes to the log is what the other begins from.
        perceive, minutes = Contexts(), Contexts()
        self._contexts = {name: perceive if name in PERCEIVE_STEPS else minutes for name in STEPS}
        self._budgets: dict[str, Budget] = {}
        self._windows: list[Windows] = []
        self._attributes = {metric.name: metric.attribute for metric in METRICS}
        self._instruments: dict[str, Counter | Histogram | Gauge] = {}
        self._make_instruments(version, state_dir)
        self._closing = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="telemetry", daemon=True)
        self._sweeper.start()
        atexit.register(self.close)

    def step(self, name: str, step: ShardStep[Any, Any]) -> ShardStep[Any, Any]:
        windows = self._windows_of(name)
        return ObservedIngest(step, windows) if isinstance(step, Ingest) else ObservedStep(step, windows)

    def function(self, name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return observed_function(function, self._windows_of(name))

    def recognised(self, owner: Hashable, kind: str, waited_s: float, took_s: float) -> None:
        self.measure("minuted.recognition.wait", waited_s, kind)
        self.measure("minuted.recognition.duration", took_s, kind)
        meeting_id = str(owner[1] if isinstance(owner, tuple) else owner)
        now_ns = time.time_ns()
        span = self._tracer.start_span(
            "recognise", self._contexts["perceive"].parent(meeting_id), start_time=now_ns - round(took_s * 1e9),
            attributes={"minuted.meeting": meeting_id, "minuted.kind": kind, "minuted.waited_s": waited_s},
        )  # fmt: skip
        span.end(now_ns)

    def flushed(self, took_s: float) -> None:
        self.measure("minuted.sink.flush", took_s)

    def read_behind(self, shard: int, age_s: float) -> None:
        self.measure("minuted.read.behind", age_s, str(shard))

    def work_waiting(self, shard: int, number: int) -> None:
        self.measure("minuted.work.waiting", number, str(shard))

    def meetings_overdue(self, shard: int, number: int) -> None:
        self.measure("minuted.meetings.overdue", number, str(shard))

    def meetings_shed(self, shard: int, number: int, packets: int) -> None:
        self.measure("minuted.meetings.shed", number, str(shard))
        if packets > 0:
            self.count("minuted.packets.shed", packets, str(shard))

    def clock_measured(self, device: str, bound_ns: int, error_ns: int | None = None) -> None:
        self.measure("minuted.clock.bound", bound_ns / 1e9, device)
        if error_ns is not None:
            self.measure("minuted.clock.error", error_ns / 1e9, device)

    def count(self, name: str, number: float, attribute: str = "") -> None:
        """Add to a counter; ``attribute`` is the value of its one attribute."""
        instrument = self._instruments[name]
        assert isinstance(instrument, Counter)
        instrument.add(number, self._labelled(name, attribute))

    def measure(self, name: str, value: float, attribute: str = "") -> None:
        """Add to a histogram, or set a gauge."""
        instrument = self._instruments[name]
        attributes = self._labelled(name, attribute)
        if isinstance(instrument, Histogram):
            instrument.record(value, attributes)
        elif isinstance(instrument, Gauge):
            instrument.set(value, attributes)

    def close(self) -> None:
        """Send what is left, for a second at most, and end."""
        if self._closing.is_set():
            return
        self._closing.set()
        atexit.unregister(self.close)
        self._sweep_once(everything=True)
        # In threads of their own: a collector that is away must not hold the end of a flow.
        senders = [
            threading.Thread(target=end, daemon=True)
            for end in (self._tracers.shutdown, self._meters.shutdown)
        ]
        for sender in senders:
            sender.start()
        deadline_s = time.monotonic() + _CLOSE_S
        for sender in senders:
            sender.join(max(0.0, deadline_s - time.monotonic()))
        self._told.close()

    def _windows_of(self, name: str) -> Windows:
        budget = self._budgets.setdefault(name, Budget())
        windows = Windows(name, self._tracer, self._contexts[name], budget, self)
        self._windows.append(windows)
        return windows

    def _labelled(self, name: str, attribute: str) -> dict[str, str]:
        label = self._attributes[name]
        return {f"minuted.{label}": attribute} if label else {}

    def _make_instruments(self, version: str, state_dir: Path) -> None:
        meter = self._meters.get_meter("minuted", version)
        for metric in METRICS:
            if metric.name == "minuted.state.size":
                meter.create_observable_gauge(
                    metric.name, [lambda options: _size(state_dir, options)], metric.unit, metric.meaning
                )
            elif metric.kind == "counter":
                self._instruments[metric.name] = meter.create_counter(
                    metric.name, metric.unit, metric.meaning
                )
            elif metric.kind == "histogram":
                self._instruments[metric.name] = meter.create_histogram(
                    metric.name,
                    metric.unit,
                    metric.meaning,
                    explicit_bucket_boundaries_advisory=list(_SECONDS),
                )
            else:
                self._instruments[metric.name] = meter.create_gauge(metric.name, metric.unit, metric.meaning)

    def _sweep(self) -> None:
        while not self._closing.wait(_SWEEP_S):
            self._sweep_once()

    def _sweep_once(self, *, everything: bool = False) -> None:
        for windows in self._windows:
            windows.sweep(everything=everything)


def _size(folder: Path, options: CallbackOptions) -> Iterable[Observation]:
    del options
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue  # RocksDB removes files as it goes
    yield Observation(total)
