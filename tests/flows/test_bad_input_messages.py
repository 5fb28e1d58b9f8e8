"""Packets and messages that are wrong, sent through a real broker: what comes out, and that nothing stops."""

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from contracts.messages import AnyControl, EndOfStream, MeetingEnded, MeetingStarted, TranscriptMessage
from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.timeline import AnyRecord, ControlRecord, EndedRecord, GapRecord, NoticeRecord, StreamRecord
from contracts.topics import AUDIO, CONTROL, OCR, TIMELINE, TRANSCRIPT, VIDEO, Topic
from devices.publisher import tai_now_ns
from tests.flows.live_chain import Chain

S = 1_000_000_000
MS = 1_000_000
BLOCK_NS = 20 * MS


class Meeting:
    """A transcript device and a microphone of a meeting of its own, sent by hand."""

    def __init__(self, chain: Chain, name: str, *, start: bool = True) -> None:
        self.chain = chain
        self.name = name
        self.zero_ns = tai_now_ns()
        self._line = 0
        if start:
            self.control(MeetingStarted(meeting_id=name, start_ns=self.zero_ns, speech_source="transcript"))

    def control(self, message: AnyControl) -> None:
        self.chain.control(message)

    def line(
        self, at_s: float, text: str, *, sequence: int | None = None, epoch: int = 1
    ) -> TranscriptMessage:
        """The next line of the transcript."""
        number = self._line if sequence is None else sequence
        self._line = number + 1
        return TranscriptMessage(
            meeting_id=self.name, device_id="asr", stream_epoch=epoch, sequence=number, speaker="Anna", text=text,
            timestamp_ns=self.zero_ns + round(at_s * S), duration_ns=2 * S,
        )  # fmt: skip

    def say(self, at_s: float, text: str) -> None:
        self.chain.send(TRANSCRIPT, self.line(at_s, text).to_bytes(), self.name)

    def sound(
        self, sequence: int, *, codec: Codec = Codec.PCM_S16LE, payload: bytes | None = None, epoch: int = 1
    ) -> Packet:
        noise = np.random.default_rng(sequence).integers(-40, 40, 320, dtype=np.int16)
        return Packet(
            self.name, "mic", Modality.AUDIO, codec, ClockKind.PTP, epoch, sequence, self.zero_ns + sequence * BLOCK_NS, BLOCK_NS,
            noise.tobytes() if payload is None else payload, rate_hz=16_000, channels=1,
        )  # fmt: skip

    def finish(self, end_s: float = 30) -> list[AnyRecord]:
        """End all that was begun; the meeting's log once the minutes are final."""
        end_ns = self.zero_ns + round(end_s * S)
        opened = {r.stream: r for r in self.log() if isinstance(r, StreamRecord) and r.state == "opened"}
        for stream in {"asr/transcript"} & set(opened):
            self.end(stream, self._line, end_ns)
        self.control(MeetingEnded(meeting_id=self.name, end_ns=end_ns))
        self.document = self.chain.minutes(self.name)
        return self.log()

    def end_sound(self, sequence: int) -> None:
        self.end("mic/audio", sequence, self.zero_ns + sequence * BLOCK_NS)

    def end(self, stream: str, sequence: int, at_ns: int) -> None:
        device, _, modality = stream.partition("/")
        fields = {"meeting_id": self.name, "device_id": device, "stream_epoch": 1, "sequence": sequence,
                  "timestamp_ns": at_ns, "modality": modality}  # fmt: skip
        topic = {"audio": AUDIO, "transcript": TRANSCRIPT, "video": VIDEO}[modality]
        self.chain.send(topic, EndOfStream.model_validate(fields).to_bytes(), self.name)

    def log(self) -> list[AnyRecord]:
        return self.chain.log(self.name)

    def heard(self) -> list[str]:
        return [r.text for r in self.log() if r.type == "utterance"]

    def wait_heard(self, text: str) -> None:
        self.chain.wait(lambda: text in self.heard(), f"{text!r} on the log")


@pytest.fixture
def meeting(chain: Chain, request: pytest.FixtureRequest) -> Iterator[Callable[..., Meeting]]:
    """Makes meetings named after the test."""
    name = request.node.name.removeprefix("test_")

    def make(**options: bool) -> Meeting:
        return Meeting(chain, name[:50], **options)

    yield make
    chain.installation.check()  # whatever was sent, the flows are still there


Make = Callable[..., Meeting]


def crc_fits(packet: bytes, place: int, value: int) -> bytes:
    """The packet with a byte changed and its checksum made to fit."""
    from contracts.packet import _checksum

    changed = packet[:place] + bytes([value]) + packet[place + 1 :]
    return changed[:12] + _checksum(changed).to_bytes(4, "little") + changed[16:]


def broken(good: bytes) -> dict[str, tuple[str, bytes]]:
    """Every way a packet can be wrong: name, expected reason, bytes."""
    huge = good[:56] + (2**32 - 1).to_bytes(4, "little") + good[60:]
    return {
        "magic": ("magic", b"RIFF" + good[4:]),
        "version": ("version", good[:4] + b"\x02" + good[5:]),
        "checksum": ("crc", good[:-1] + bytes([good[-1] ^ 1])),
        "cut off": ("truncated", good[: len(good) // 2]),
        "cut in the header": ("truncated", good[:20]),
        "empty": ("truncated", b""),
        "absurd payload length": ("too_large", huge),
        "absurd picture": ("too_large", crc_fits(crc_fits(good, 53, 0xFF), 52, 0xFF)),
        "unknown codec": ("unknown_codec", crc_fits(good, 9, 99)),
        "unknown clock": ("unknown_codec", crc_fits(good, 10, 99)),
        "no rate": ("bad_field", crc_fits(crc_fits(good, 48, 0), 49, 0)),
        "reserved flag": ("bad_field", crc_fits(good, 5, 0x80)),
        "control character in an id": ("bad_id", crc_fits(good, 64, 7)),
        "JSON that is none": ("schema", b'{"type": "end_of_stream", '),
    }


def test_packets_that_cannot_be_read_are_dead_letters_and_the_meeting_goes_on(meeting: Make) -> None:
    m = meeting()
    m.say(1, "Before it.")
    sent = {}
    for name, (reason, value) in broken(encode(m.sound(0))).items():
        sent[m.chain.send(AUDIO, value, m.name)] = (name, reason, value)
    random.seed(1)
    noise = random.randbytes(300)
    sent[m.chain.send(VIDEO, noise, m.name)] = ("noise", "magic", noise)
    m.say(20, "After it.")
    m.wait_heard("After it.")
    m.finish()
    letters = {
        letter.offset: letter
        for letter in m.chain.dead_letters(m.name)
        if letter.topic.startswith("minuted.")
    }
    for offset, (name, reason, value) in sent.items():
        letter = letters[offset]
        assert (letter.reason, letter.partition) == (reason, m.chain.link.names.partition(m.name)), name
        assert letter.topic in ("minuted.audio", "minuted.video"), name
        assert base64.b64decode(letter.bytes_base64) == value, name
        assert (letter.size, bool(letter.detail)) == (len(value), True), name


@pytest.mark.parametrize(
    ("topic", "value", "reason"),
    [
        (TRANSCRIPT, b'{"type": "transcript", "text": 5}', "schema"),
        (TRANSCRIPT, b"\xff\xfe", "schema"),
        (OCR, b"[" * 100_000, "schema"),
        (CONTROL, b'{"type": "meeting_started", "meeting_id": "a\\u0000b"}', "schema"),
        (CONTROL, b'{"type": "no_such_thing", "meeting_id": "m"}', "schema"),
        (CONTROL, b'{"type": "meeting_started", "meeting_id": "somebody else"}', "partition"),
        (
            AUDIO,
            b'{"type":"ocr","meeting_id":"m","device_id":"d","stream_epoch":1,"sequence":0,"timestamp_ns":0}',
            "topic",
        ),
    ],
)  # fmt: skip
def test_messages_that_make_no_sense(chain: Chain, topic: Topic, value: bytes, reason: str) -> None:
    offset = chain.send(topic, value, "m")
    name = chain.link.names.of(topic)

    def found() -> bool:
        return any(
            x.topic == name and x.offset == offset and x.reason == reason for x in chain.dead_letters("m")
        )

    chain.wait(found, "the dead letter")


def test_sound_that_cannot_be_decoded_is_a_gap_of_its_stream(meeting: Make) -> None:
    m = meeting()
    m.say(1, "Before it.")
    random.seed(2)
    m.chain.packets(m.sound(n, codec=Codec.FLAC, payload=random.randbytes(400)) for n in range(3))
    m.end_sound(3)
    m.say(20, "After it.")
    m.wait_heard("After it.")
    log = m.finish()
    gaps = {(r.stream, r.raw_start_ns) for r in log if isinstance(r, GapRecord) and r.what == "undecodable"}
    assert gaps == {("mic/audio", m.zero_ns + n * BLOCK_NS) for n in range(3)}
    assert m.document.gaps


def test_a_picture_stream_of_noise_is_a_gap_of_its_stream(meeting: Make) -> None:
    m = meeting()
    random.seed(3)
    pictures = [
        Packet(m.name, "laptop", Modality.VIDEO, Codec.H264, ClockKind.PTP, 1, n, m.zero_ns + n * 33 * MS, 33 * MS,
               b"\0\0\0\1" + random.randbytes(4000), 30, 640, 480, key_frame=n == 0)
        for n in range(4)
    ]  # fmt: skip
    m.chain.packets(pictures, VIDEO)
    m.end("laptop/video", 4, m.zero_ns + 4 * 33 * MS)
    m.say(20, "After it.")
    m.wait_heard("After it.")
    log = m.finish()
    assert {r.what for r in log if isinstance(r, GapRecord) and r.stream == "laptop/video"} == {"undecodable"}


def test_duplicate_and_reordered_packets_are_put_right(meeting: Make) -> None:
    m = meeting()
    lines = [m.line(2 * n, f"Line {n}.") for n in range(5)]
    for index in (0, 0, 2, 1, 1, 4, 3, 0):
        m.chain.send(TRANSCRIPT, lines[index].to_bytes(), m.name)
    m.wait_heard("Line 4.")
    m.finish()
    assert m.heard() == [f"Line {n}." for n in range(5)]


def test_late_packets_are_counted_and_told(meeting: Make) -> None:
    m = meeting()
    held_back = [m.sound(n) for n in (3, 7)]
    m.chain.packets(m.sound(n) for n in range(60) if n not in (3, 7))
    m.chain.wait(lambda: any(isinstance(r, GapRecord) for r in m.log()), "the gap")
    m.chain.packets([*held_back, m.sound(5)])  # the last one is a repetition, not late
    m.end_sound(60)
    m.say(1, "Words.")
    m.wait_heard("Words.")
    log = m.finish()
    lost = [r for r in log if isinstance(r, GapRecord) and r.what == "lost"]
    assert [(r.raw_start_ns - m.zero_ns) // BLOCK_NS for r in lost] == [3, 7]
    assert any("2 packets came too late" in notice for notice in m.document.notices)


def test_a_clock_that_steps_in_mid_meeting_leaves_the_meeting_alone(meeting: Make) -> None:
    m = meeting()
    stepped = [m.sound(n) for n in range(100)]
    stepped[50:] = [replace(p, timestamp_ns=p.timestamp_ns + 3600 * S) for p in stepped[50:]]
    m.chain.packets(stepped)
    m.end_sound(100)
    m.say(1, "Words.")
    m.wait_heard("Words.")
    m.finish()
    assert [n for n in m.document.notices if "jumped" in n] == [
        "The clock of mic jumped by 3600.0 s; what followed is placed as if it had not."
    ]
    assert m.document.duration_s <= 31


@pytest.mark.parametrize("away_ns", [2**62, -50 * 365 * 86_400 * S])
def test_a_stamp_from_another_century_does_not_stretch_the_meeting(meeting: Make, away_ns: int) -> None:
    m = meeting()
    m.say(1, "Before it.")
    stray = m.line(5, "From elsewhere.")
    stray = stray.model_copy(update={"timestamp_ns": stray.timestamp_ns + away_ns})
    m.chain.send(TRANSCRIPT, stray.to_bytes(), m.name)
    m.say(9, "After it.")
    m.wait_heard("After it.")
    m.finish()
    assert 0 < m.document.duration_s <= 31
    assert any("jumped" in n for n in m.document.notices)
    assert set(m.heard()) == {"Before it.", "From elsewhere.", "After it."}


def test_without_control_the_meeting_opens_itself_and_speakers_are_channels(meeting: Make) -> None:
    m = meeting(start=False)
    m.say(1, "I will send the plan by Friday.")
    m.wait_heard("I will send the plan by Friday.")
    log = m.finish()
    first = log[0] if isinstance(log[0], ControlRecord) else log[1]
    assert isinstance(first, ControlRecord)
    assert (first.source, getattr(first.control, "implicit", False)) == ("implicit", True)
    assert [a.name for a in m.document.attendees] == ["Anna"]
    assert len(m.document.action_items) == 1


def test_expected_streams_that_never_come_are_given_up_and_said(chain: Chain) -> None:
    m = Meeting(chain, "one device is off", start=False)
    m.control(
        MeetingStarted(
            meeting_id=m.name,
            start_ns=m.zero_ns,
            streams=("asr/transcript", "camera/video"),
            speech_source="transcript",
        )
    )
    m.say(1, "Words.")
    m.wait_heard("Words.")
    log = m.finish()  # waits for the camera, then goes without it
    assert ("camera/video", "given_up") in {(r.stream, r.state) for r in log if isinstance(r, StreamRecord)}
    assert any("camera/video" in notice for notice in m.document.notices)


def test_a_recogniser_that_says_nothing_for_a_while_is_no_broken_device(meeting: Make) -> None:
    m = meeting()
    m.say(1, "Before the pause.")
    m.chain.wait(
        lambda: any(isinstance(r, StreamRecord) and r.state == "given_up" for r in m.log()), "the pause"
    )
    m.say(20, "After the pause.")
    m.wait_heard("After the pause.")
    m.finish()
    assert m.document.gaps == ()
    assert m.document.notices == ()


def test_a_microphone_that_goes_silent_is_told(meeting: Make) -> None:
    m = meeting()
    m.chain.packets(m.sound(n) for n in range(10))
    m.say(1, "Words.")
    m.chain.wait(lambda: any(isinstance(r, GapRecord) for r in m.log()), "the gap")
    m.finish()
    assert ["silent" in gap.what for gap in m.document.gaps] == [True]


def test_a_publisher_that_restarts_in_mid_meeting_goes_on(meeting: Make) -> None:
    m = meeting()
    m.say(1, "Before it.")
    m.wait_heard("Before it.")
    m.chain.send(TRANSCRIPT, m.line(9, "After it.", sequence=0, epoch=2).to_bytes(), m.name)
    m.chain.send(TRANSCRIPT, m.line(12, "And on.", sequence=1, epoch=2).to_bytes(), m.name)
    m.wait_heard("And on.")
    fields = {"meeting_id": m.name, "device_id": "asr", "stream_epoch": 2, "sequence": 2,
              "timestamp_ns": m.zero_ns + 14 * S, "modality": "transcript"}  # fmt: skip
    m.chain.send(TRANSCRIPT, EndOfStream.model_validate(fields).to_bytes(), m.name)
    m.finish()
    assert m.heard() == ["Before it.", "After it.", "And on."]


def test_what_comes_after_the_end_changes_nothing(meeting: Make) -> None:
    m = meeting()
    m.say(1, "I will send the plan by Friday.")
    m.wait_heard("I will send the plan by Friday.")
    m.finish()
    revision = m.document.revision
    m.say(40, "I will also paint the fence by Monday.")
    m.control(MeetingEnded(meeting_id=m.name))
    m.chain.wait(lambda: sum(isinstance(r, ControlRecord) for r in m.log()) == 3, "the second end on the log")
    assert m.chain.minutes(m.name).revision == revision
    assert sum(isinstance(r, EndedRecord) for r in m.log()) == 1


def test_a_tombstone_on_control_is_no_message(meeting: Make) -> None:
    m = meeting()
    m.chain.send(CONTROL, b"", m.name, key=b"gone/attendees/")
    m.say(1, "Words.")
    m.wait_heard("Words.")
    m.finish()
    assert not [x for x in m.chain.dead_letters(m.name) if x.topic == "minuted.control" and x.size == 0]


def test_notices_reach_the_log_once(chain: Chain) -> None:
    texts = [
        (r.meeting_id, r.text)
        for message in chain.reader.of(TIMELINE)
        if message.value[:1] == b"{" and b'"notice"' in message.value
        for r in chain.log(message.key.decode())
        if isinstance(r, NoticeRecord) and r.to_bytes() == message.value
    ]
    assert len(texts) == len(set(texts))
