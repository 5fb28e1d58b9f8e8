"""Spans and counts around the steps of the flows; imported only where telemetry is on.

A span stands for one activation of a step that said something of a meeting. Activations that said nothing (a
block of silence, a mark) are added up and become one span a second. What would be more than ``SPANS_PER_S`` shares
spans for longer: a replay at full speed would else make more spans than minutes, and a hundred meetings side by
side a hundred spans a second. Counts are kept in plain integers, and swept up twice a second.

All spans of a meeting are one trace. Its context is that of the first message that brought one (``traceparent``);
a meeting whose devices send none gets a context that follows from its name, so that every process and every run
finds the same. What `flows.perceive` writes to the log carries the context of its span, and what `flows.minutes`
publishes that of the span that published it.
"""

import hashlib
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol
from urllib.parse import unquote

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags, Tracer

from contracts.leap_seconds import utc_from_tai_ns
from contracts.messages import ALL_MEETINGS
from contracts.timeline import ClockRecord
from contracts.topics import DEADLETTER, MINUTES, REVIEW, TIMELINE
from operators.align.aligned import Traced
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.clock.placing import Timed
from operators.ingest import Arrival, Ingest, Late, Loss
from operators.shard_step import ShardStep
from operators.store import StepStore
from operators.verify.types import Verified

SPANS_PER_S: Final = 20.0
"""Spans that one step makes at most, over some seconds; one costs about a tenth of a millisecond."""
WINDOW_NS: Final = 1_000_000_000
LONGEST_NS: Final = 30_000_000_000
"""A window ends after so long even where its step has made its spans."""

_BURST: Final = 40.0
_MEETINGS: Final = 10_000
"""Meetings whose context is remembered; an older one begins again with the context of its next message."""
_BELIEVABLE_S: Final = (-1.0, 600.0)
"""Between the end of speech and its text; outside it the stamps are not of now: a replay."""
_QUIET_KINDS: Final = frozenset(
    {"timeline.mark", "timeline.picture_features", "timeline.sound_features", "partial"}
)
_WRITERS: Final = frozenset({"perceive", "deliver"})
"""The last step of each half: what it hands on is written to topics."""
_REASON: Final = re.compile(rb'"reason":"([a-z_]{1,40})"')
_VERDICT: Final = re.compile(rb'"verdict":"([a-z_]{1,40})"')
_STATE: Final = re.compile(rb'"state":"([a-z_]{1,40})"')
_DEVICE: Final = re.compile(rb'"device":"((?:[^"\\]|\\.){1,200})"')
_RAW_END: Final = re.compile(rb'"raw_end_ns":(-?\d+)')


class Meters(Protocol):
    """Where counts and measurements go."""

    def count(self, name: str, number: float, attribute: str = "") -> None:
        """Add to a counter; ``attribute`` is the value of its one attribute."""

    def measure(self, name: str, value: float, attribute: str = "") -> None:
        """Add to a histogram, or set a gauge."""

    def clock_measured(self, device: str, bound_ns: int) -> None:
        """The clock of a device is known to within so much."""


def context_of_meeting(meeting_id: str) -> str:
    """The W3C context of a meeting whose devices send none: it follows from the name alone."""
    digest = hashlib.blake2b(meeting_id.encode(), digest_size=24, person=b"minuted trace").hexdigest()
    return f"00-{digest[:32]}-{digest[32:]}-01"


class Contexts:
    """The context of each meeting, shared by the steps of a process."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def given(self, meeting_id: str, traceparent: str) -> None:
        """A message of the meeting came with this context; the first of each trace counts, a new trace does not."""
        with self._lock:
            known = self._of.get(meeting_id)
            # From the log come contexts of one trace, each of the span that wrote the record: the newest is the cause.
            if known is None or known[:35] == traceparent[:35]:
                self._of[meeting_id] = traceparent
                self._of.move_to_end(meeting_id)
            if len(self._of) > _MEETINGS:
                self._of.popitem(last=False)

    def parent(self, meeting_id: str) -> Context:
        """What a span of the meeting hangs on."""
        _, trace_id, span_id, flags = (self._of.get(meeting_id) or context_of_meeting(meeting_id)).split("-")
        remote = SpanContext(int(trace_id, 16), int(span_id, 16), True, TraceFlags(int(flags, 16)))
        return trace.set_span_in_context(NonRecordingSpan(remote), Context())


class Budget:
    """How many spans a step may make; shared by its shards and by all meetings."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._left = _BURST
        self._at_s = clock_s()

    def take(self) -> bool:
        """Whether one more may be made."""
        now_s = self._clock_s()
        self._left = min(_BURST, self._left + (now_s - self._at_s) * SPANS_PER_S)
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Came:
    """What came to a step in one activation: messages by meeting, and what else is counted."""

    __slots__ = ("counts", "meetings")

    def __init__(self) -> None:
        self.meetings: dict[str, int] = {}
        self.counts: Counter[tuple[str, str]] = Counter()


class _Window:
    """What a step did for one meeting since its last span ended."""

    __slots__ = ("activations", "begun_ns", "busy_ns", "inputs", "last_ns", "outputs", "span", "traceparent")

    def __init__(self, begun_ns: int) -> None:
        self.begun_ns = self.last_ns = begun_ns
        self.activations = self.inputs = self.outputs = self.busy_ns = 0
        self.span: Span | None = None
        self.traceparent = ""


class Windows:
    """The open windows of one step of one shard: the dataflow's thread fills them, the sweeper ends old ones."""

    def __init__(self, name: str, tracer: Tracer, contexts: Contexts, budget: Budget, meters: Meters) -> None:
        self.name = name
        self.contexts = contexts
        self._counts: Counter[tuple[str, str]] = Counter()
        self._tracer = tracer
        self._budget = budget
        self._meters = meters
        self._lock = threading.Lock()
        self._open: dict[str, _Window] = {}
        self._last: dict[str, str] = {}
        self._busy_ns = 0
        self._clocks: dict[tuple[str, str], ClockRecord] = {}

    def note(self, begun_ns: int, came: "Came", outputs: Sequence[Any]) -> list[Any]:
        """An activation is over; the outputs, those that are written with the context of their span."""
        inputs = came.meetings
        said: dict[str, int] = {}
        with self._lock:
            if came.counts:
                self._counts.update(came.counts)
            told = [
                value if type(value) in _PASSING else self._told(value, begun_ns, said) for value in outputs
            ]
            ended_ns = time.time_ns()
            self._busy_ns += ended_ns - begun_ns
            meetings = inputs.keys() | said.keys()
            for meeting_id in meetings:
                window = self._window(meeting_id, begun_ns)
                window.inputs += inputs.get(meeting_id, 0)
                window.outputs += said.get(meeting_id, 0)
                self._worked(meeting_id, window, (ended_ns - begun_ns) // len(meetings), ended_ns)
            return told

    def note_one(self, begun_ns: int, meeting_id: str) -> None:
        """An activation that took one thing of a meeting and gave one: what `note` does, for what runs once a draft."""
        with self._lock:
            ended_ns = time.time_ns()
            self._busy_ns += ended_ns - begun_ns
            window = self._window(meeting_id, begun_ns)
            self._begin(meeting_id, window, begun_ns)
            window.inputs += 1
            window.outputs += 1
            self._worked(meeting_id, window, ended_ns - begun_ns, ended_ns)

    def _worked(self, meeting_id: str, window: _Window, busy_ns: int, ended_ns: int) -> None:
        window.activations += 1
        window.busy_ns += busy_ns
        window.last_ns = ended_ns
        if window.span is not None and self._budget.take():
            self._end(meeting_id, window)

    def placed(self, record: ClockRecord) -> None:
        """From now on this record places its device."""
        if len(self._clocks) > _MEETINGS:
            self._clocks.clear()
        self._clocks[record.meeting_id, record.device] = record
        self._meters.clock_measured(record.device, record.uncertainty_ns)

    def sweep(self, *, everything: bool = False) -> None:
        """End windows that are old enough, and hand the counts on."""
        now_ns = time.time_ns()
        with self._lock:
            for meeting_id, window in list(self._open.items()):
                age_ns = now_ns - window.begun_ns
                if everything or age_ns >= LONGEST_NS or (age_ns >= WINDOW_NS and self._budget.take()):
                    self._begin(meeting_id, window, window.begun_ns)
                    self._end(meeting_id, window)
            counts, self._counts = self._counts, Counter()
            busy_ns, self._busy_ns = self._busy_ns, 0
        if busy_ns:
            self._meters.count("minuted.step.busy", busy_ns / 1e9, self.name)
        for (name, attribute), number in counts.items():
            self._meters.count(name, number, attribute)

    def _told(self, value: Any, begun_ns: int, said: dict[str, int]) -> Any:
        if type(value) is not Outgoing:
            if type(value) is Traced:  # align reads it off the log, so to it this is news
                self.contexts.given(value.meeting_id, value.traceparent)
                return value
            meeting_id = _meeting_of(value)
            said[meeting_id] = said.get(meeting_id, 0) + 1
            self._begin(meeting_id, self._window(meeting_id, begun_ns), begun_ns)
            return value
        if self.name not in _WRITERS:
            return value
        meeting_id = _addressed(value)
        self._written(meeting_id, value)
        if not meeting_id:
            return value
        if value.kind in _QUIET_KINDS:
            # The log then changes its context once for each thing said, not back and forth with every mark.
            last = self._last.get(meeting_id)
            return value if last is None else replace(value, traceparent=last)
        said[meeting_id] = said.get(meeting_id, 0) + 1
        window = self._window(meeting_id, begun_ns)
        self._begin(meeting_id, window, begun_ns)
        return replace(value, traceparent=window.traceparent)

    def _written(self, meeting_id: str, message: Outgoing) -> None:
        topic, kind = message.topic, message.kind
        if topic is TIMELINE:
            self._counts["minuted.records", kind.removeprefix("timeline.")] += 1
            if kind == "timeline.utterance":
                self._utterance(meeting_id, message.value)
        elif topic is MINUTES:
            self._counts["minuted.revisions", kind] += 1
            if kind in ("item_added", "item_changed"):
                self._counts["minuted.items", _found(_VERDICT, message.value)] += 1
        elif topic is DEADLETTER:
            self._counts["minuted.messages.rejected", _found(_REASON, message.value)] += 1
        elif topic is REVIEW:
            self._counts["minuted.review.requests", str(b'"withheld":true' in message.value).lower()] += 1

    def _utterance(self, meeting_id: str, value: bytes) -> None:
        state = _found(_STATE, value)
        self._counts["minuted.utterances", state] += 1
        raw_end = _RAW_END.search(value)
        clock = self._clocks.get((meeting_id, _found(_DEVICE, value)))
        if raw_end is None or clock is None or state == "withdrawn":
            return
        raw_ns = int(raw_end[1])
        end_ns = raw_ns - clock.offset_ns - round(clock.skew_ppb * 1e-9 * (raw_ns - clock.ref_ns))
        latency_s = (time.time_ns() - utc_from_tai_ns(end_ns)) / 1e9
        if _BELIEVABLE_S[0] < latency_s < _BELIEVABLE_S[1]:
            self._meters.measure("minuted.text.latency", latency_s, state)

    def _window(self, meeting_id: str, begun_ns: int) -> _Window:
        window = self._open.get(meeting_id)
        if window is None:
            window = self._open[meeting_id] = _Window(begun_ns)
        return window

    def _begin(self, meeting_id: str, window: _Window, begun_ns: int) -> None:
        if window.span is not None:
            return
        window.span = self._tracer.start_span(
            self.name, self.contexts.parent(meeting_id), start_time=begun_ns, attributes={"minuted.meeting": meeting_id}
        )  # fmt: skip
        window.traceparent = traceparent(window.span.get_span_context())
        if len(self._last) > _MEETINGS:
            self._last.clear()
        self._last[meeting_id] = window.traceparent

    def _end(self, meeting_id: str, window: _Window) -> None:
        del self._open[meeting_id]
        if window.span is None:
            return
        window.span.set_attributes(
            {
                "minuted.activations": window.activations, "minuted.inputs": window.inputs,
                "minuted.outputs": window.outputs, "minuted.busy_s": window.busy_ns / 1e9,
            }
        )  # fmt: skip
        window.span.end(window.last_ns)


class ObservedStep:
    """A step of one shard, measured."""

    def __init__(self, step: ShardStep[Any, Any], windows: Windows) -> None:
        self._step = step
        self._windows = windows

    def open(self, store: StepStore) -> None:
        self._step.open(store)

    def save(self, store: StepStore) -> None:
        self._step.save(store)

    def next_timer_s(self) -> float | None:
        return self._step.next_timer_s()

    def on_timer(self) -> Iterable[Any]:
        begun_ns = time.time_ns()
        out = list(self._step.on_timer())
        return self._windows.note(begun_ns, Came(), out) if out else out

    def on_batch(self, values: list[Any]) -> Iterable[Any]:
        begun_ns = time.time_ns()
        came = self._arrived(values)
        return self._windows.note(begun_ns, came, list(self._step.on_batch(values)))

    def _arrived(self, values: list[Any]) -> Came:
        came = Came()
        meetings = came.meetings
        for value in values:
            kind = type(value)
            if kind is Timed:
                name = value.arrival.meeting_id
                meetings[name] = meetings.get(name, 0) + 1
            elif kind is Arrival:
                meetings[value.meeting_id] = meetings.get(value.meeting_id, 0) + 1
            elif kind is Received:
                came.counts["minuted.messages.read", value.topic] += 1
            elif kind is Traced:
                self._windows.contexts.given(value.meeting_id, value.traceparent)
            elif kind is ClockRecord:
                self._windows.placed(value)
            elif kind is not CaughtUp and kind is not Outgoing:
                name = _meeting_of(value)
                meetings[name] = meetings.get(name, 0) + 1
        return came


class ObservedIngest(ObservedStep):
    """The first step: its inputs have no meeting before they are read, so what came of them is looked at."""

    def __init__(self, ingest: Ingest, windows: Windows) -> None:
        super().__init__(ingest, windows)
        self._ingest = ingest
        self._repeated = 0

    def open(self, store: StepStore) -> None:
        super().open(store)
        self._repeated = self._ingest.repeated

    def on_batch(self, values: list[Any]) -> Iterable[Any]:
        begun_ns = time.time_ns()
        out = list(self._ingest.on_batch(values))
        came = Came()
        # Thousands of packets a second pass here: tight loops, and nothing a packet that can be done once a batch.
        for topic, number in Counter([value.topic for value in values if type(value) is Received]).items():
            came.counts["minuted.messages.read", topic] = number
        arrivals = [value for value in out if type(value) is Arrival]
        came.meetings = Counter([arrival.meeting_id for arrival in arrivals])
        for meeting_id, context in {(a.meeting_id, a.traceparent) for a in arrivals}:
            if context is not None:
                self._windows.contexts.given(meeting_id, context)
        for body in [arrival.body for arrival in arrivals if type(arrival.body) in (Late, Loss)]:
            if type(body) is Late:
                came.counts["minuted.messages.late", ""] += 1
            elif type(body) is Loss:
                came.counts["minuted.messages.lost", ""] += body.packets
        if len(out) < len(values):  # something waits, or came a second time
            repeated = self._ingest.repeated
            came.counts["minuted.messages.duplicate", ""] += repeated - self._repeated
            self._repeated = repeated
        return self._windows.note(begun_ns, came, out)


def traceparent(context: SpanContext) -> str:
    """W3C trace context of a span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def observed_function(function: Callable[[Any], Any], windows: Windows) -> Callable[[Any], Any]:
    """A step that takes and gives ``(shard, value)``, measured."""

    def measured(value: Any) -> Any:
        begun_ns = time.time_ns()
        out = function(value)
        if isinstance(out[1], Outgoing | Traced):
            return out
        windows.note_one(begun_ns, _meeting_of(value[1]))
        return out

    return measured


_PASSING: Final = frozenset({CaughtUp, Arrival, Timed, ClockRecord})
"""What goes from step to step many times a second without saying anything of a meeting."""


def _meeting_of(value: Any) -> str:
    name: str = value.draft.meeting_id if type(value) is Verified else value.meeting_id
    return name


def _addressed(message: Outgoing) -> str:
    """Meeting of a message by its key; empty where the key is a place (dead letters) or means all meetings."""
    if message.topic is DEADLETTER:
        return ""
    key = message.key.decode("utf-8", "replace")
    name = unquote(key.partition("/")[0]) if message.topic.compacted else key
    return "" if name == ALL_MEETINGS else name


def _found(pattern: re.Pattern[bytes], value: bytes) -> str:
    found = pattern.search(value)
    return found[1].decode("utf-8", "replace") if found else "unknown"
