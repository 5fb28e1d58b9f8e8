"""JSON messages that devices, outside recognisers, rooms and people send."""

import datetime
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, model_validator

from .base import (
    ClockKind,
    Count,
    Id,
    LengthNs,
    Line,
    MeetingId,
    Message,
    Milliseconds,
    Name,
    Ns,
    PersonName,
    Sha256,
    Share,
    Somebody,
    Text,
)  # fmt: skip
from .packet import ALL_MEETINGS as ALL_MEETINGS
from .topics import compacted_key


class TranscriptWord(Message):
    """One word with its times on the clock of the message."""

    start_ns: Ns
    end_ns: Ns
    text: Name
    probability: Share | None = None


class Stamped(Message):
    """Fields by which a JSON device message is ordered and de-duplicated, as in the packet header."""

    meeting_id: MeetingId
    device_id: Id
    stream_epoch: Count
    sequence: Count
    clock_kind: ClockKind = ClockKind.PTP
    timestamp_ns: Ns
    duration_ns: Annotated[int, Field(ge=0, le=86_400 * 10**9)] = 0


class TranscriptMessage(Stamped):
    """A stretch of one speaker's words from an outside recogniser."""

    type: Literal["transcript"] = "transcript"
    speaker: Somebody = None
    text: Text
    words: tuple[TranscriptWord, ...] = Field((), max_length=20_000)


Box = tuple[Share, Share, Share, Share]
"""Left, top, right, bottom as shares of the picture's width and height."""


class TextLine(Message):
    """One line of a slide; ``box`` in shares of width and height."""

    text: Text
    box: Box
    confidence: Share = 1.0


class OcrMessage(Stamped):
    """All text lines that a slide reader sees from the stamp on."""

    type: Literal["ocr"] = "ocr"
    lines: tuple[TextLine, ...] = Field((), max_length=2_000)


class EndOfStream(Stamped):
    """The device says that its stream is over; sent on the topic of ``modality``."""

    type: Literal["end_of_stream"] = "end_of_stream"
    modality: Literal["video", "audio", "ocr", "transcript"]


DeviceMessage = Annotated[TranscriptMessage | OcrMessage | EndOfStream, Field(discriminator="type")]
DEVICE_MESSAGE: TypeAdapter[TranscriptMessage | OcrMessage | EndOfStream] = TypeAdapter(DeviceMessage)


class AttendeeInfo(Message):
    """Somebody in the meeting. ``speaker`` is the label that streams use, where it is not the name."""

    name: PersonName
    speaker: Somebody = None
    role: Name | None = None


class ChannelSpeaker(Message):
    """Who sits at a channel of an audio device."""

    device: Id
    channel: Annotated[int, Field(ge=0, le=7)] = 0
    speaker: PersonName


Metres = Annotated[float, Field(ge=-1_000.0, le=1_000.0, allow_inf_nan=False)]
Position = tuple[Metres, Metres, Metres]
"""A place in the room: metres from one corner of the floor, the third upwards."""


class SeatPlace(Message):
    """Where somebody's mouth is while they sit at their place."""

    speaker: PersonName
    position_m: Position


class MicrophonePlace(Message):
    """Where the microphone behind one channel of an audio device stands."""

    device: Id
    channel: Annotated[int, Field(ge=0, le=7)] = 0
    position_m: Position


class Control(Message):
    """Base of control messages."""

    meeting_id: MeetingId

    @property
    def subject(self) -> str:
        """Last part of the compacted key: a newer message of the same subject replaces this one."""
        return ""


def control_key(message: "AnyControl") -> bytes:
    """Key on ``minuted.control``: ``meeting/type/subject``."""
    return compacted_key(message.meeting_id, message.type, message.subject)


class MeetingStarted(Control):
    """A meeting opens; everything but the id may be missing."""

    type: Literal["meeting_started"] = "meeting_started"
    start_ns: Ns | None = None
    title: Name | None = None
    date: datetime.date | None = None
    attendees: tuple[AttendeeInfo, ...] = Field((), max_length=500)
    channel_map: tuple[ChannelSpeaker, ...] = Field((), max_length=64)
    seats: tuple[SeatPlace, ...] = Field((), max_length=64)
    """Places of people in the room, where they are known."""
    microphones: tuple[MicrophonePlace, ...] = Field((), max_length=64)
    """Places of microphones, where they are known: the delay between two of them tells who speaks."""
    agenda: tuple[Name, ...] = Field((), max_length=200)
    key_topics: tuple[Name, ...] = Field((), max_length=200)
    slide_devices: tuple[Id, ...] = Field((), max_length=16)
    """Video devices that show slides; other video devices are cameras. Empty: every video device may."""
    streams: tuple[Name, ...] = Field((), max_length=64)
    """Streams to expect, ``device/modality``; the meeting does not end before each was seen to its end."""
    tai_utc_offset_s: Annotated[int, Field(ge=0, le=1000)] = 37
    speech_source: Literal["sound", "transcript"] = "sound"
    priority: Annotated[int, Field(ge=0, le=9)] = 5
    implicit: bool = False
    """Opened by the flow because media came without any control message."""


class MeetingEnded(Control):
    """The meeting is over; ``end_ns`` on the timeline where known."""

    type: Literal["meeting_ended"] = "meeting_ended"
    end_ns: Ns | None = None


class MeetingPurged(Control):
    """All data of the meeting must go."""

    type: Literal["meeting_purged"] = "meeting_purged"


class AttendeesChanged(Control):
    """The attendee list from now on; also carries speaker turns' labels."""

    type: Literal["attendees"] = "attendees"
    attendees: tuple[AttendeeInfo, ...] = Field((), max_length=500)


class ChannelMapChanged(Control):
    """Who sits at which channel from now on."""

    type: Literal["channel_map"] = "channel_map"
    channel_map: tuple[ChannelSpeaker, ...] = Field((), max_length=64)


class AgendaChanged(Control):
    """Agenda and key topics from now on."""

    type: Literal["agenda"] = "agenda"
    agenda: tuple[Name, ...] = Field((), max_length=200)
    key_topics: tuple[Name, ...] = Field((), max_length=200)


class SpeakerTurn(Message):
    """Who spoke when on a device without a channel map (an RTTM line)."""

    start_ns: Ns
    end_ns: Ns
    speaker: PersonName


class SpeakerTurns(Control):
    """Speaker turns of one device from an outside diarisation; times on the timeline."""

    type: Literal["speaker_turns"] = "speaker_turns"
    device: Id
    turns: tuple[SpeakerTurn, ...] = Field((), max_length=20_000)

    @property
    def subject(self) -> str:
        return self.device


class Calibration(Control):
    """A stored measurement: ``timeline = raw - offset - skew * (raw - ref)``."""

    meeting_id: Id
    type: Literal["calibration"] = "calibration"
    device: Id
    offset_ns: Ns
    skew_ppb: Annotated[float, Field(ge=-1e6, le=1e6)] = 0.0
    ref_ns: Ns = 0
    uncertainty_ns: LengthNs = 0
    method: Name = "stored"
    measured: datetime.date | None = None

    @property
    def subject(self) -> str:
        return self.device


class ClockState(Control):
    """What a device's operating system says of its clock."""

    meeting_id: Id
    type: Literal["clock_state"] = "clock_state"
    device: Id
    state: Literal["locked", "holdover", "free_running"]
    estimated_error_ns: LengthNs | None = None
    anchor_raw_ns: Ns | None = None
    """A reading of a monotonic clock …"""
    anchor_timeline_ns: Ns | None = None
    """… and the timeline time of the same moment."""

    @property
    def subject(self) -> str:
        return self.device


class RuleFile(Control):
    """A rule file with its content; ``sha256`` is checked before it is used."""

    meeting_id: Id
    type: Literal["rules"] = "rules"
    name: Name
    content: Text
    sha256: Sha256

    @property
    def subject(self) -> str:
        return self.name


class Correction(Control):
    """What a person decided about an item; void where the item is no longer the one that was looked at.

    ``add`` says that something was missed: ``section``, ``text`` and the ``utterances`` that it rests on.
    """

    type: Literal["correction"] = "correction"
    correction_id: Name
    item_id: Name
    action: Literal["accept", "change", "reject", "add"]
    expected_text: Text | None = None
    text: Text | None = None
    owner: Somebody = None
    due: datetime.date | None = None
    by: PersonName
    clear: Annotated[tuple[Literal["owner", "due"], ...], Field(max_length=2)] = ()
    """Fields that shall be empty."""
    expected_sha256: Sha256 | None = None
    """``item_sha256`` of the review request that this answers."""
    section: Literal["decisions", "action_items", "open_questions", "answered_questions"] | None = None
    """Where an added item stands."""
    utterances: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    """Ids of the utterances that an added item rests on."""

    @property
    def subject(self) -> str:
        return self.correction_id

    @model_validator(mode="after")
    def _says_what(self) -> "Correction":
        said = self.text is not None or self.owner is not None or self.due is not None
        if self.action == "change" and not said and not self.clear:
            raise ValueError("a change needs at least one of text, owner, due and clear")
        if self.action == "add" and (self.text is None or self.section is None or not self.utterances):
            raise ValueError("an addition needs section, text and utterances")
        if ("owner" in self.clear and self.owner is not None) or (
            "due" in self.clear and self.due is not None
        ):
            raise ValueError("a field cannot be set and cleared at once")
        return self


class NameCorrected(Control):
    """How somebody or something is really called: what was ``heard`` means ``name`` from now on."""

    type: Literal["name"] = "name"
    name: PersonName
    heard: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)]
    by: Name

    @property
    def subject(self) -> str:
        return self.name


AnyControl = (
    MeetingStarted | MeetingEnded | MeetingPurged | AttendeesChanged | ChannelMapChanged | AgendaChanged
    | SpeakerTurns | Calibration | ClockState | RuleFile | Correction | NameCorrected
)  # fmt: skip
ControlMessage = Annotated[AnyControl, Field(discriminator="type")]
CONTROL_MESSAGE: TypeAdapter[AnyControl] = TypeAdapter(ControlMessage)


MAX_DEAD_BYTES = 4 * 1024 * 1024


class DeadLetter(Message):
    """Something that could not be read, where it stood, and its bytes."""

    type: Literal["deadletter"] = "deadletter"
    reason: Name
    detail: Text
    topic: Name
    partition: Annotated[int, Field(ge=0, lt=2**31)]
    offset: Annotated[int, Field(ge=-1, lt=2**63)]
    """-1 where the message was read and only later turned out to hold media that cannot be decoded."""
    meeting_id: Line | None = None
    """As far as it could be read; need not be a valid id."""
    bytes_base64: Annotated[str, Field(max_length=MAX_DEAD_BYTES * 4 // 3 + 4)]
    """Original bytes, at most the first ``MAX_DEAD_BYTES`` of them."""
    size: Count
    """How many bytes there were."""


class PartialText(Message):
    """What has been understood of speech that goes on; superseded by the next one of the same piece."""

    type: Literal["partial"] = "partial"
    meeting_id: MeetingId
    piece_id: Name
    version: Count
    speaker: Name | None
    device: Id
    start_ns: Ns
    end_ns: Ns
    text: Text
    boundary_ms: Milliseconds = 0.0
