"""Records of the journal ``minuted.timeline``: what was heard, seen and decided, once and in order.

Times named ``raw_*`` are on the device's clock; the clock record of the given number converts them.
``run`` is the run of ``flows.perceive`` that wrote the record; readers ignore records of an older
run that come after the fence of a newer one.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from .base import Count, Id, LengthNs, Line, MeetingId, Message, Milliseconds, Name, Ns, Share, Text
from .messages import ControlMessage, TextLine

Pitch = Annotated[float, Field(ge=0.0, le=2_000.0, allow_inf_nan=False)]


class Record(Message):
    """Base of JSON records on the timeline."""

    meeting_id: MeetingId
    run: Count = 0


class Fence(Message):
    """A new run of the writer begins on this partition; belongs to no meeting."""

    type: Literal["fence"] = "fence"
    run: Count
    shard: Count


class ControlRecord(Record):
    """A control message or correction, in its place on the log."""

    type: Literal["control"] = "control"
    control: ControlMessage
    source: Line
    """``topic/partition/offset`` of the message, or ``implicit``."""

    @property
    def identity(self) -> str:
        """Name under which this record stands on the log once."""
        return f"control/{self.source}"


class StreamRecord(Record):
    """A stream appeared, ended by its device, was given up as silent, is left out under load (shed), or came back.

    ``sequence`` is the last packet handled before, -1 where there was none; with the state it makes the
    record's identity.
    """

    type: Literal["stream"] = "stream"
    stream: Name
    state: Literal["opened", "ended", "given_up", "shed", "resumed"]
    stream_epoch: Count
    sequence: Annotated[int, Field(ge=-1, lt=2**64)]
    raw_ns: Ns

    @property
    def identity(self) -> str:
        return f"stream/{self.stream}/{self.stream_epoch}/{self.sequence}/{self.state}"


class ClockRecord(Record):
    """From ``from_raw_ns`` on the device's stamps are ``t = raw - offset - skew * (raw - ref)``."""

    type: Literal["clock"] = "clock"
    device: Id
    number: Count
    from_raw_ns: Ns
    ref_ns: Ns
    offset_ns: Ns
    skew_ppb: Annotated[float, Field(ge=-1e6, le=1e6)] = 0.0
    uncertainty_ns: LengthNs
    method: Literal["stamped", "stored", "anchor", "online", "arrival"]

    @property
    def identity(self) -> str:
        return f"clock/{self.device}/{self.number}"


class MarkRecord(Record):
    """No record of the stream that starts before ``raw_ns`` follows."""

    type: Literal["mark"] = "mark"
    stream: Name
    raw_ns: Ns

    @property
    def identity(self) -> str:
        return f"mark/{self.stream}/{self.raw_ns}"


class RecordWord(Message):
    """A word and its raw times."""

    start_ns: Ns
    end_ns: Ns
    text: Name
    probability: Share | None = None


class Prosody(Message):
    """How the voice of an utterance ended, for readers who want to tell a question from a statement."""

    step_ns: Annotated[int, Field(gt=0, lt=10**9)]
    pitch_hz: tuple[Pitch, ...] = Field(max_length=200)
    """Pitch at the end, every ``step_ns``; 0 where there was no voice. The last one is the last with voice."""
    typical_hz: Pitch
    """Median pitch of the utterance."""
    level_db: Annotated[float, Field(ge=-200.0, le=20.0)]
    """Loudness of what was voiced, full scale = 0."""


class UtteranceRecord(Record):
    """One speaker's stretch of speech.

    ``tentative``: speech may go on. ``closed``: as it stays. ``withdrawn``: was cross-talk or no speech.
    The id follows from the input: device, stream epoch and first sample or message.
    """

    type: Literal["utterance"] = "utterance"
    id: Name
    version: Count
    state: Literal["tentative", "closed", "withdrawn"]
    stream: Name
    device: Id
    clock: Count
    raw_start_ns: Ns
    raw_end_ns: Ns
    mark_ns: Ns
    speaker: Name | None
    text: Text
    heard: Text | None = None
    """What the recogniser heard, where names in ``text`` were corrected."""
    words: tuple[RecordWord, ...] = Field((), max_length=20_000)
    source: Literal["recogniser", "transcript"]
    confidence: Share = 1.0
    sampling_ms: Milliseconds
    boundary_ms: Milliseconds
    prosody: Prosody | None = None
    """None where there was no sound to take it from."""

    @property
    def identity(self) -> str:
        return f"utterance/{self.id}/{self.version}/{self.state}"


class SlideRecord(Record):
    """A slide came up; it stays until the next one of the same stream."""

    type: Literal["slide"] = "slide"
    id: Name
    stream: Name
    device: Id
    clock: Count
    raw_start_ns: Ns
    mark_ns: Ns
    text: Text
    lines: tuple[TextLine, ...] = Field((), max_length=2_000)
    known: bool = False
    """Seen before in this meeting; its text was taken over, not read again."""
    sampling_ms: Milliseconds

    @property
    def identity(self) -> str:
        return f"slide/{self.id}"


class GapRecord(Record):
    """A stretch of a stream is missing."""

    type: Literal["gap"] = "gap"
    stream: Name
    device: Id
    clock: Count
    raw_start_ns: Ns
    raw_end_ns: Ns
    what: Literal["lost", "undecodable", "shed", "silent_device", "late"]

    @property
    def identity(self) -> str:
        return f"gap/{self.stream}/{self.raw_start_ns}/{self.what}"


class NoticeRecord(Record):
    """Something that readers of the minutes should know."""

    type: Literal["notice"] = "notice"
    code: Name
    text: Text

    @property
    def identity(self) -> str:
        return f"notice/{self.code}/{self.text}"


class EndedRecord(Record):
    """The meeting is over. Appended once every live stream's mark has passed ``end_ns``."""

    type: Literal["ended"] = "ended"
    reason: Literal["control", "idle", "end_of_input"]
    end_ns: Ns

    @property
    def identity(self) -> str:
        return "ended"


AnyRecord = (
    ControlRecord | StreamRecord | ClockRecord | MarkRecord | UtteranceRecord | SlideRecord | GapRecord
    | NoticeRecord | EndedRecord
)  # fmt: skip
TimelineRecord = Annotated[AnyRecord | Fence, Field(discriminator="type")]
TIMELINE_RECORD: TypeAdapter[AnyRecord | Fence] = TypeAdapter(TimelineRecord)
