"""When a meeting ends: what belongs to it may come after the message that says so."""

from contracts.messages import EndOfStream, MeetingEnded, MeetingStarted, TranscriptMessage
from contracts.packet import ClockKind
from contracts.timeline import TIMELINE_RECORD
from contracts.topics import CONTROL, TRANSCRIPT, Topic, TopicNames
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.broker.source import CaughtUp, Received
from operators.clock import Clock, ClockSettings
from operators.ingest import Ingest, IngestSettings
from operators.perceive.step import Answer, Owner, Perceive
from operators.perceive.types import Ask, PerceiveSettings


class NoWorkers:
    def ask(self, owner: Owner, ask: Ask) -> None:
        raise AssertionError("a transcript asks for nothing")

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        return []

    def outstanding(self, shard: int) -> int:
        return 0

    def close(self) -> None:
        pass


START = MeetingStarted(meeting_id="m", start_ns=0)
END = MeetingEnded(meeting_id="m")
WORDS = [
    TranscriptMessage(
        meeting_id="m", device_id="t", stream_epoch=0, sequence=n, clock_kind=ClockKind.PTP, timestamp_ns=n * 10**9,
        duration_ns=10**9, speaker="Ann", text=f"Word {n}.",
    )
    for n in range(3)
]  # fmt: skip
OVER = EndOfStream(
    meeting_id="m", device_id="t", stream_epoch=0, sequence=3, timestamp_ns=3 * 10**9, modality="transcript"
)


def kinds(messages: list[tuple[Topic, bytes]]) -> list[str]:
    """Types of the records that these messages bring onto the log, marks and clocks left out."""
    now_s = [0.0]
    ingest, clock = Ingest(IngestSettings(), TopicNames(shards=1)), Clock(ClockSettings())
    perceive = Perceive(
        0,
        PerceiveSettings(),
        VoiceActivity(),
        NoWorkers(),
        NoJournal(),
        clock_s=lambda: now_s[0],
        run=lambda: 1,
    )
    out = []
    arrivals = [Received(t.name, 0, n, 10**18, True, value) for n, (t, value) in enumerate(messages)]
    ticks: list[Received | CaughtUp] = [CaughtUp(0)] * 8
    for item in [*arrivals, *ticks]:
        now_s[0] += 0.25
        out += perceive.on_batch(clock.on_batch(ingest.on_batch([item])))
    records = [TIMELINE_RECORD.validate_json(m.value) for m in out]
    return [r.type for r in records if r.type not in ("mark", "clock")]


def test_words_that_come_after_the_end_was_told_are_in_the_minutes() -> None:
    words = [(TRANSCRIPT, m.to_bytes()) for m in (*WORDS, OVER)]
    told_first = kinds([(CONTROL, START.to_bytes()), (CONTROL, END.to_bytes()), *words])
    assert told_first.count("utterance") == 3
    assert told_first[-1] == "ended"


def test_a_meeting_whose_named_streams_are_over_ends_at_once() -> None:
    named = START.model_copy(update={"streams": ("t/transcript",)})
    words = [(TRANSCRIPT, m.to_bytes()) for m in (*WORDS, OVER)]
    found = kinds([(CONTROL, named.to_bytes()), *words, (CONTROL, END.to_bytes())])
    assert found.count("utterance") == 3
    assert found[-1] == "ended"


def test_a_meeting_without_any_stream_ends_too() -> None:
    assert kinds([(CONTROL, START.to_bytes()), (CONTROL, END.to_bytes())])[-1] == "ended"
