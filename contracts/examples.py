"""One example of every packet kind and of every message; the golden files are made from them once.

The values hang together as far as one meeting's would, so that the files can be read as a story.
"""

import base64
import datetime
import hashlib
from dataclasses import dataclass, fields
from typing import Any, Final

from . import messages as m
from . import minutes as mi
from . import timeline as t
from .audit import FIRST, SealedEntry, bound_bytes, entry_hash
from .base import Message
from .catalogue import name_of
from .packet import ClockKind, Codec, Modality, Packet, encode, sign

MEETING: Final = "weekly-2026-03-02"
EPOCH: Final = 1_772_442_000_000_000_000
START_NS: Final = 1_772_442_037_000_000_000
"""2 March 2026, 9:00 UTC, as TAI."""
KEY: Final = b"an example, not a secret"
SECOND: Final = 1_000_000_000

_H264_KEY_FRAME: Final = base64.b64decode(
    "AAAAAWdCwAraEehAAAADAEAAAA8jxImoAAAAAWjOD8gAAAABZYiEOghgcAAuABQABFPQCsVisVisVisVisVisVisVisVhDA4ABkACgAM"
    "QCsVisVisVisVisVisVisVisVhDA4ABcACgAIQCsVisVisVisVisVisVisVisVhDA4ABkACgAKQCsVisVisVisVisVisVisVisVrMuXrY"
    "i9dbrYl4A=="
)
"""64 x 48 pixels: sequence and picture parameter sets and one intra picture, Annex B."""
_OPUS_PACKET: Final = base64.b64decode(
    "eIK1t2xHJOoCNa2d6LjhKeQ+w1bFJo1WEOmtGJbY7tmEMgLWmQLnhfowcMV6FgmJlzag8KROdNMNB2VNgp5iRdzHCV1d"
)
"""20 ms of one channel at 48 kHz."""


@dataclass(frozen=True, slots=True)
class PacketExample:
    """A packet, its bytes, and what it is there to show."""

    shows: str
    packet: Packet

    @property
    def data(self) -> bytes:
        return encode(self.packet)

    @property
    def description(self) -> dict[str, Any]:
        """Every field of the packet as JSON; enumerations by name, bytes in hexadecimal."""
        values: dict[str, Any] = {"shows": self.shows}
        for field in fields(Packet):
            value = getattr(self.packet, field.name)
            if isinstance(value, Modality | Codec | ClockKind):
                value = value.name
            elif isinstance(value, bytes | memoryview):
                value = bytes(value).hex()
            values[field.name] = value
        return values


def _packet(modality: Modality, codec: Codec, payload: bytes, **rest: Any) -> Packet:
    values: dict[str, Any] = {
        "meeting_id": MEETING, "device_id": "seat-1", "clock_kind": ClockKind.PTP, "stream_epoch": EPOCH,
        "sequence": 0, "timestamp_ns": START_NS, "duration_ns": 20_000_000,
    }  # fmt: skip
    return Packet(modality=modality, codec=codec, payload=payload, **(values | rest))


def packets() -> dict[str, PacketExample]:
    """Packets by the name of their golden file."""
    ramp = b"".join((40 * n - 3200).to_bytes(2, "little", signed=True) for n in range(160))
    pcm = _packet(
        Modality.AUDIO, Codec.PCM_S16LE, ramp, rate_hz=16_000, channels=1, sequence=7, duration_ns=10_000_000
    )
    half = bytes.fromhex("003c00c000380000")
    examples = {
        "audio_pcm": ("10 ms of one channel at 16 kHz", pcm),
        "audio_pcm_8_channels": (
            "interleaved channels: sample 0 of all channels, then sample 1",
            _packet(
                Modality.AUDIO, Codec.PCM_S16LE, ramp[:32], rate_hz=48_000, channels=8, duration_ns=41_666
            ),
        ),
        "audio_opus": (
            "one Opus packet; the payload is not padded, the header is",
            _packet(Modality.AUDIO, Codec.OPUS, _OPUS_PACKET, rate_hz=48_000, channels=1),
        ),
        "audio_authenticated": ("a tag under the key `an example, not a secret`", sign(pcm, "room-7", KEY)),
        "audio_unicode_ids": (
            "ids of 64 bytes, slashes and letters outside ASCII, and the extremes of every number",
            _packet(
                Modality.AUDIO, Codec.PCM_S16LE, b"\xff\x7f\x00\x80",
                meeting_id="Büro/会議 " + "é" * 25 + "x", device_id="麦克风/" * 6 + "no 1",
                clock_kind=ClockKind.MONOTONIC, stream_epoch=2**64 - 1, sequence=2**64 - 1,
                timestamp_ns=-(2**63), duration_ns=0, rate_hz=192_000, channels=2,
            ),
        ),
        "video_h264_key_frame": (
            "an access unit in Annex B that starts with its parameter sets; flag bit 0",
            _packet(
                Modality.VIDEO, Codec.H264, _H264_KEY_FRAME, device_id="beamer", clock_kind=ClockKind.UTC,
                timestamp_ns=START_NS - 37 * SECOND, duration_ns=33_333_333, rate_hz=30, width=64, height=48,
                key_frame=True,
            ),
        ),
        "sound_features_mel": (
            "two rows of two bins, half floats: 1, -2 and 0.5, 0",
            _packet(Modality.SOUND_FEATURES, Codec.MEL_F16, half, rate_hz=100, width=2),
        ),
        "picture_features_volume": (
            "one frame of two rows and two columns, half floats",
            _packet(
                Modality.PICTURE_FEATURES, Codec.VOLUME_F16, half, device_id="camera", rate_hz=5, width=2,
                height=2, duration_ns=200_000_000,
            ),
        ),
        "picture_features_patches": (
            "two frames of two rows and three columns, bytes",
            _packet(
                Modality.PICTURE_FEATURES, Codec.PATCHES_U8, bytes(range(12)), device_id="camera", rate_hz=5,
                width=3, height=2, duration_ns=400_000_000,
            ),
        ),
    }  # fmt: skip
    return {name: PacketExample(*example) for name, example in examples.items()}


def messages() -> dict[str, Message]:
    """Messages by their name; every message of the contract once."""
    listed = [*_device_messages(), *_control_messages(), *_records(), *_minutes(), *_reports()]
    return {name_of(type(message)): message for message in listed}


def _at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND)


_STAMP: Final[dict[str, Any]] = {"meeting_id": MEETING, "stream_epoch": EPOCH}
_PEOPLE: Final = (
    m.AttendeeInfo(name="Anna Berg", role="project manager"),
    m.AttendeeInfo(name="José Núñez", speaker="seat-2"),
)
_SEATS: Final = (m.ChannelSpeaker(device="seat-1", speaker="Anna Berg"),)
_PLACES: Final = (m.SeatPlace(speaker="Anna Berg", position_m=(1.75, 1.25, 1.25)),)
_MICROPHONES: Final = (
    m.MicrophonePlace(device="table", channel=0, position_m=(2.375, 2.0, 0.75)),
    m.MicrophonePlace(device="table", channel=1, position_m=(2.625, 2.0, 0.75)),
)
_LINE: Final = m.TextLine(text="Budget 2026: 40 000 €", box=(0.125, 0.25, 0.75, 0.3125), confidence=0.96875)


def _device_messages() -> list[Message]:
    words = (
        m.TranscriptWord(start_ns=_at(12.5), end_ns=_at(12.75), text="Let's", probability=0.875),
        m.TranscriptWord(start_ns=_at(12.75), end_ns=_at(13.0), text="go."),
    )
    return [
        m.TranscriptMessage(
            **_STAMP, device_id="captions", sequence=3, clock_kind=ClockKind.UTC,
            timestamp_ns=_at(12.5) - 37 * SECOND, duration_ns=SECOND // 2, speaker="Anna Berg",
            text="Let's go.", words=words,
        ),
        m.OcrMessage(**_STAMP, device_id="beamer", sequence=0, timestamp_ns=_at(4), lines=(_LINE,)),
        m.EndOfStream(
            **_STAMP, device_id="seat-1", sequence=180_000, timestamp_ns=_at(3600), modality="audio"
        ),
    ]  # fmt: skip


def _control_messages() -> list[m.AnyControl]:
    rules = "# no rules yet\n"
    return [
        m.MeetingStarted(
            meeting_id=MEETING, start_ns=START_NS, title="Weekly", date=datetime.date(2026, 3, 2),
            attendees=_PEOPLE, channel_map=_SEATS, seats=_PLACES, microphones=_MICROPHONES,
            agenda=("Budget", "Launch"), key_topics=("budget",),
            slide_devices=("beamer",), streams=("seat-1/audio", "beamer/video"),
        ),
        m.MeetingEnded(meeting_id=MEETING, end_ns=_at(3600)),
        m.MeetingPurged(meeting_id=MEETING),
        m.AttendeesChanged(meeting_id=MEETING, attendees=_PEOPLE),
        m.ChannelMapChanged(meeting_id=MEETING, channel_map=_SEATS),
        m.AgendaChanged(meeting_id=MEETING, agenda=("Budget",), key_topics=("budget",)),
        m.SpeakerTurns(
            meeting_id=MEETING, device="table",
            turns=(m.SpeakerTurn(start_ns=_at(1), end_ns=_at(2.5), speaker="Anna Berg"),),
        ),
        m.Calibration(
            meeting_id=m.ALL_MEETINGS, device="beamer", offset_ns=-41_200_000, skew_ppb=-1250.5,
            ref_ns=START_NS, uncertainty_ns=900_000, method="flash and click",
            measured=datetime.date(2026, 2, 27),
        ),
        m.ClockState(
            meeting_id=MEETING, device="seat-1", state="locked", estimated_error_ns=350,
            anchor_raw_ns=8_123_456_789, anchor_timeline_ns=START_NS,
        ),
        m.RuleFile(
            meeting_id=m.ALL_MEETINGS, name="default", content=rules,
            sha256=hashlib.sha256(rules.encode()).hexdigest(),
        ),
        m.Correction(
            meeting_id=MEETING, correction_id="c-1", item_id="a1", action="change",
            expected_text="Send the offer.", owner="José Núñez", due=datetime.date(2026, 3, 6),
            by="Anna Berg",
        ),
        m.NameCorrected(meeting_id=MEETING, name="Brightwater", heard=("bright water",), by="Anna Berg"),
    ]  # fmt: skip


def _records() -> list[Message]:
    placed: dict[str, Any] = {"meeting_id": MEETING, "run": 1, "device": "seat-1", "clock": 0}
    return [
        t.Fence(run=1, shard=13),
        t.ControlRecord(
            meeting_id=MEETING, run=1, control=m.MeetingEnded(meeting_id=MEETING, end_ns=_at(3600)),
            source="minuted.control/13/4",
        ),
        t.StreamRecord(
            meeting_id=MEETING, run=1, stream="seat-1/audio", state="opened", stream_epoch=EPOCH, sequence=-1,
            raw_ns=START_NS,
        ),
        t.ClockRecord(
            meeting_id=MEETING, run=1, device="seat-1", number=0, from_raw_ns=START_NS, ref_ns=START_NS,
            offset_ns=0, uncertainty_ns=1_000_000, method="stamped",
        ),
        t.MarkRecord(meeting_id=MEETING, run=1, stream="seat-1/audio", raw_ns=_at(12.4)),
        t.UtteranceRecord(
            **placed, id=f"seat-1/{EPOCH}/200000", version=2, state="closed", stream="seat-1/audio",
            raw_start_ns=_at(12.5), raw_end_ns=_at(15), mark_ns=_at(15.2), speaker="Anna Berg",
            text="José, please send the offer by Friday.", heard="Jose, please send the offer by Friday.",
            words=(t.RecordWord(start_ns=_at(12.5), end_ns=_at(12.875), text="José,", probability=0.75),),
            source="recogniser", confidence=0.9375, sampling_ms=20.0, boundary_ms=40.0,
            prosody=t.Prosody(
                step_ns=16_000_000, pitch_hz=(118.5, 117.25, 0.0, 110.0), typical_hz=124.5, level_db=-26.5
            ),
        ),
        t.SlideRecord(
            **(placed | {"device": "beamer"}), id=f"beamer/{EPOCH}/120", stream="beamer/video",
            raw_start_ns=_at(4), mark_ns=_at(4.5), text=_LINE.text, lines=(_LINE,), sampling_ms=33.333,
        ),
        t.GapRecord(
            **placed, stream="seat-1/audio", raw_start_ns=_at(40), raw_end_ns=_at(41.5), what="lost"
        ),
        t.NoticeRecord(meeting_id=MEETING, run=1, code="no_control", text="No control message came."),
        t.EndedRecord(meeting_id=MEETING, run=1, reason="control", end_ns=_at(3600)),
    ]  # fmt: skip


_VERSIONS: Final = mi.Versions(product="0.1.0", model=None, rules="5f0c", contract="1.0.0")
_EVIDENCE: Final = mi.Evidence(
    kind="speech", start_s=12.5, end_s=15.0, device="seat-1", speaker="Anna Berg",
    quote="Jose, please send the offer by Friday.", error_ms=1.0, sampling_ms=20.0, boundary_ms=40.0,
)  # fmt: skip
_ACTION: Final = mi.ActionItem(
    id="a1", text="Send the offer.", confidence=0.9375, origin="rules", verdict="pass", evidence=(_EVIDENCE,),
    owner="José Núñez", due=datetime.date(2026, 3, 6), due_text="by Friday",
)  # fmt: skip
_QUESTION: Final = mi.Item(
    id="q1", text="Who signs?", confidence=0.5, origin="rules", verdict="review", evidence=(_EVIDENCE,)
)
_SUMMARY: Final = (mi.SummarySentence(text="José sends the offer by Friday.", evidence=(_EVIDENCE,)),)


def _minutes() -> list[Message]:
    body: dict[str, Any] = {
        "meeting_id": MEETING, "generation": 1, "revision": 5, "title": "Weekly",
        "started": datetime.datetime(2026, 3, 2, 9, tzinfo=datetime.UTC), "start_ns": START_NS,
        "duration_s": 3600.0,
        "attendees": (mi.Attendee(name="Anna Berg", speaker="Anna Berg", external=False),),
        "summary": _SUMMARY, "decisions": (), "action_items": (_ACTION,), "open_questions": (),
        "answered_questions": (_QUESTION,), "gaps": (mi.Gap(start_s=40.0, end_s=41.5, what="seat-1: lost"),),
        "notices": ("No control message came.",), "review": mi.Review(waiting=1), "versions": _VERSIONS,
    }  # fmt: skip
    state = mi.MinutesState(**body)
    step: dict[str, Any] = {"meeting_id": MEETING, "generation": 1}
    return [
        mi.ItemAdded(**step, revision=1, stage="provisional", section="action_items", item=_ACTION),
        mi.ItemChanged(**step, revision=2, stage="settled", section="answered_questions", item=_QUESTION),
        mi.ItemWithdrawn(
            **step, revision=3, stage="settled", section="decisions", item_id="d1", reason="taken back"
        ),
        mi.SummaryChanged(**step, revision=4, stage="settled", summary=_SUMMARY),
        mi.MeetingFinal(
            **step, revision=5, stage="final", duration_s=3600.0, counts={"action_items": 1},
            review=state.review, notices=state.notices,
            document_sha256=hashlib.sha256(state.to_bytes()).hexdigest(),
        ),
        mi.MinutesPurged(**step, revision=6, stage="final"),
        state,
        mi.MinutesDocument(
            **body, slides=(mi.SlideShown(start_s=4.0, end_s=60.0, text=_LINE.text),),
            utterances=(
                mi.UtteranceShown(
                    id="u1", start_s=12.5, end_s=15.0, speaker="Anna Berg", text="José, please send it."
                ),
            ),
        ),
    ]  # fmt: skip


def _reports() -> list[Message]:
    spoilt = b"MNTD\x02 of a later layout"
    return [
        m.PartialText(
            meeting_id=MEETING, piece_id=f"seat-1/{EPOCH}/200000", version=1, speaker=None, device="seat-1",
            start_ns=_at(12.5), end_ns=_at(13.5), text="José, please", boundary_ms=120.0,
        ),
        mi.ReviewRequest(
            meeting_id=MEETING, generation=1, request_id="r-1", item_id="q1", section="open_questions",
            reason="two people were named", text="Who signs?", withheld=False, evidence=(_EVIDENCE,),
        ),
        mi.AuditEntry(
            meeting_id=MEETING, generation=1, sequence=0, stage="provisional", item_id="a1",
            section="action_items", verdict="pass", checks={"evidence": True, "owner_stated": True},
            actions=(), origin="rules", versions=_VERSIONS,
        ),
        _sealed(),
        m.DeadLetter(
            reason="version", detail="layout version 2, this reader knows 1", topic="minuted.audio",
            partition=13, offset=41, bytes_base64=base64.b64encode(spoilt).decode(), size=len(spoilt),
        ),
    ]  # fmt: skip


def _sealed() -> SealedEntry:
    """An entry whose ciphertext is no ciphertext: what it shows is how an entry is hashed."""
    bound, sealed = bound_bytes(MEETING, 1, 0, False, FIRST), b"stands for an encrypted audit message"
    return SealedEntry(
        meeting_id=MEETING, generation=1, sequence=0, previous=FIRST,
        ciphertext=base64.b64encode(sealed).decode(), sha256=entry_hash(bound, sealed),
    )  # fmt: skip
