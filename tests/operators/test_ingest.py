"""Ingest as lists of messages: what is handed on, in which order, and what becomes of the rest."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.messages import (
    DeadLetter,
    EndOfStream,
    MeetingEnded,
    MeetingStarted,
    OcrMessage,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.topics import AUDIO, CONTROL, DEADLETTER, OCR, TRANSCRIPT, VIDEO, Topic, TopicNames
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.ingest import Arrival, Ingest, IngestSettings, Late, Loss
from operators.store import Marker, StepStore, Stores

MS = 1_000_000
BLOCK_NS = 20 * MS
SETTINGS = IngestSettings(lateness_ns=500 * MS)
NAMES = TopicNames(prefix="t.", shards=1)
Out = Arrival | Outgoing | CaughtUp


def sound(sequence: int, *, epoch: int = 1, device: str = "mic", stamp_ns: int | None = None) -> bytes:
    stamp = sequence * BLOCK_NS if stamp_ns is None else stamp_ns
    return encode(
        Packet("m", device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, epoch, sequence, stamp, BLOCK_NS,
               bytes(640), rate_hz=16_000, channels=1)
    )  # fmt: skip


def words(sequence: int, at_s: float, *, epoch: int = 1) -> bytes:
    return TranscriptMessage(
        meeting_id="m", device_id="asr", stream_epoch=epoch, sequence=sequence, timestamp_ns=int(at_s * 1e9),
        duration_ns=2_000 * MS, text=f"words {sequence}",
    ).to_bytes()  # fmt: skip


def end(sequence: int, modality: str = "audio", device: str = "mic") -> bytes:
    message = {"meeting_id": "m", "device_id": device, "stream_epoch": 1, "sequence": sequence,
               "timestamp_ns": sequence * BLOCK_NS, "modality": modality}  # fmt: skip
    return EndOfStream.model_validate(message).to_bytes()


@dataclass
class Run:
    """An ingest step fed by hand, on a clock of its own."""

    now_s: float = 0.0
    offset: int = -1

    def __post_init__(self) -> None:
        self.step = Ingest(SETTINGS, NAMES, clock_s=lambda: self.now_s)

    def feed(self, values: Sequence[bytes], topic: Topic = AUDIO) -> list[Out]:
        out: list[Out] = []
        for value in values:
            self.offset += 1
            received = Received(NAMES.of(topic), 0, self.offset, 10**18 + self.offset, True, value)
            out += self.step.on_batch([received])
        return out

    def wait(self, seconds: float) -> list[Out]:
        """Nothing comes for so long, and the source says so."""
        first = self.step.on_batch([CaughtUp(0)])
        self.now_s += seconds
        return [o for o in first + self.step.on_batch([CaughtUp(0)]) if not isinstance(o, CaughtUp)]


def story(out: Sequence[Out]) -> list[str]:
    """The output in short: sequence numbers, ``lost FROM-TO``, ``late``, ``end``, ``dead REASON``."""
    told = []
    for value in out:
        if isinstance(value, Outgoing):
            told.append(f"dead {DeadLetter.model_validate_json(value.value).reason}")
            continue
        assert isinstance(value, Arrival)
        body = value.body
        if isinstance(body, Loss):
            told.append(f"lost {body.packets} until {body.raw_end_ns // MS} ms")
        elif isinstance(body, Late):
            told.append("late")
        elif isinstance(body, EndOfStream):
            told.append("end")
        elif isinstance(body, Packet | TranscriptMessage | OcrMessage):
            told.append(str(body.sequence))
        else:
            told.append(body.type)
    return told


def blocks(*numbers: int) -> list[bytes]:
    return [sound(n) for n in numbers]


# Order, repetition, loss


def test_in_order_and_each_once() -> None:
    run = Run()
    assert story(run.feed(blocks(0, 1, 1, 0, 2))) == ["0", "1", "2"]


def test_reordered_inside_the_bound() -> None:
    run = Run()
    assert story(run.feed(blocks(0, 3, 2, 1, 4))) == ["0", "1", "2", "3", "4"]


def test_a_packet_that_waits_is_not_taken_twice() -> None:
    run = Run()
    assert story(run.feed(blocks(0, 2, 2, 1))) == ["0", "1", "2"]


def test_a_lost_packet_is_given_up_once_the_stream_is_past_the_bound() -> None:
    run = Run()
    within = [0, 1, *range(3, 28)]
    assert story(run.feed(blocks(*within))) == ["0", "1"]
    assert story(run.feed(blocks(28)))[:2] == ["lost 1 until 60 ms", "3"]


def test_what_comes_after_its_place_was_given_up_is_late_and_not_a_repetition() -> None:
    run = Run()
    run.feed(blocks(0, 1, *range(3, 40)))
    assert story(run.feed(blocks(2))) == ["late"]
    assert story(run.feed(blocks(5))) == []  # this one was handed on


def test_a_stream_may_be_joined_in_the_middle() -> None:
    run = Run()
    assert story(run.feed(blocks(1000, 1001, 999))) == ["1000", "1001", "late"]


def test_the_first_packets_of_a_new_stream_may_be_out_of_order() -> None:
    run = Run()
    assert story(run.feed(blocks(2, 1, 0))) == ["0", "1", "2"]


def test_streams_do_not_wait_for_each_other() -> None:
    run = Run()
    assert story(run.feed([sound(0), sound(2), sound(0, device="mic-2"), sound(1, device="mic-2")])) == [
        "0",
        "0",
        "1",
    ]


def test_no_more_are_held_than_allowed() -> None:
    run = Run()
    run.feed([sound(0)])
    same_stamp = [sound(n, stamp_ns=BLOCK_NS) for n in range(2, 2 + SETTINGS.max_held)]
    assert len(run.feed(same_stamp)) == SETTINGS.max_held + 1


# Ends and new starts


def test_the_end_of_a_stream_pushes_out_what_waits_for_a_lost_packet() -> None:
    run = Run()
    assert story(run.feed([*blocks(0, 1, 3, 4), end(5)])) == ["0", "1", "lost 1 until 60 ms", "3", "4", "end"]
    assert story(run.feed(blocks(2))) == ["late"]


def test_a_loss_right_before_the_end_is_told() -> None:
    run = Run()
    assert story(run.feed([*blocks(0, 1), end(3)])) == ["0", "1", "lost 1 until 60 ms", "end"]


def test_a_restarted_publisher_begins_a_new_epoch() -> None:
    run = Run()
    restarted = [sound(n, epoch=2) for n in (0, 1)]
    assert story(run.feed([*blocks(0, 1, 3), *restarted, sound(4), sound(2, epoch=2)])) == [
        "0", "1", "lost 1 until 60 ms", "3", "0", "1", "late", "2",
    ]  # fmt: skip


def test_a_device_whose_clock_was_set_back_at_its_restart_is_heard() -> None:
    run = Run()
    again = [sound(n, epoch=1) for n in (0, 1)]
    assert story(run.feed([sound(0, epoch=9), *again, sound(1, epoch=9)])) == ["0", "0", "1", "late"]


# Transcripts and slides, whose messages are seconds apart


def test_swapped_transcript_messages_come_in_order() -> None:
    run = Run()
    messages = [words(0, 1), words(2, 9), words(1, 5), words(3, 12)]
    assert story(run.feed(messages, TRANSCRIPT)) == ["0", "1", "2", "3"]


def test_a_lost_transcript_message_holds_the_next_one_for_the_bound_only() -> None:
    run = Run()
    assert story(run.feed([words(0, 1), words(2, 9)], TRANSCRIPT)) == ["0"]
    assert story(run.wait(0.4)) == []
    assert story(run.wait(0.2)) == ["lost 1 until 9000 ms", "2"]
    assert story(run.feed([words(1, 5)], TRANSCRIPT)) == ["late"]


def test_a_busy_flow_gives_nothing_up_before_it_has_read_what_is_there() -> None:
    run = Run()
    run.feed([words(0, 1), words(2, 9)], TRANSCRIPT)
    run.now_s += 60
    assert story(run.feed([words(1, 5)], TRANSCRIPT)) == ["1", "2"]


def test_a_transcript_message_that_cannot_be_read_does_not_stop_the_ones_after_it() -> None:
    run = Run()
    broken = words(1, 5).replace(b'"text"', b'"tekst"')
    assert story(run.feed([words(0, 1), broken, words(2, 9)], TRANSCRIPT)) == ["0", "dead schema"]
    assert story(run.wait(0.6)) == ["lost 1 until 9000 ms", "2"]


@settings(deadline=None)
@given(st.permutations(range(12)), st.integers(0, 3))
def test_any_order_within_the_bound_gives_the_same(order: list[int], repeat: int) -> None:
    run = Run()
    assert story(run.feed(blocks(*order, *order[:repeat]))) == [str(n) for n in range(12)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 90), max_size=120))
def test_nothing_is_handed_on_twice_or_backwards(order: list[int]) -> None:
    run = Run()
    numbers = [int(told) for told in story(run.feed([*blocks(*order), end(91)])) if told.isdigit()]
    assert numbers == sorted(set(numbers))


# What cannot be read


PACKET = sound(0)


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("truncated", PACKET[:40]),
        ("truncated", PACKET[:-1]),
        ("magic", b"JUNK" + PACKET[4:]),
        ("version", PACKET[:4] + b"\x09" + PACKET[5:]),
        ("crc", PACKET[:-1] + b"\x01"),
        ("too_large", PACKET[:56] + (2**31).to_bytes(4, "little") + PACKET[60:]),
        ("schema", b"{"),
        ("schema", b"{" * 20_000),
        ("schema", b'{"type": "transcript"}'),
        ("schema", end(1).replace(b'"m"', b'"m\\u0000"')),
        ("topic", words(0, 1)),
        ("topic", end(1, "video")),
    ],
)
def test_a_dead_letter_says_what_where_and_why(reason: str, value: bytes) -> None:
    run = Run()
    run.feed(blocks(0))
    out = run.feed([value])
    assert len(out) == 1
    message = out[0]
    assert isinstance(message, Outgoing)
    assert message.topic is DEADLETTER
    letter = DeadLetter.model_validate_json(message.value)
    assert (letter.reason, letter.topic, letter.partition, letter.offset) == (reason, "t.minuted.audio", 0, 1)
    assert base64.b64decode(letter.bytes_base64) == value
    assert letter.size == len(value)
    assert letter.detail
    assert story(run.feed(blocks(1))) == ["1"]


def with_crc(packet: bytes, place: int, value: int) -> bytes:
    """The packet with one header byte changed and a checksum that fits again."""
    from contracts.packet import _checksum

    changed = packet[:place] + bytes([value]) + packet[place + 1 :]
    return changed[:12] + _checksum(changed).to_bytes(4, "little") + changed[16:]


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("unknown_codec", with_crc(PACKET, 9, 200)),
        ("bad_field", with_crc(PACKET, 5, 2)),
        ("bad_field", with_crc(PACKET, 11, 0)),
        ("bad_id", with_crc(PACKET, 64, 7)),
    ],
)
def test_a_packet_that_is_whole_but_makes_no_sense(reason: str, value: bytes) -> None:
    assert story(Run().feed([value])) == [f"dead {reason}"]


def test_what_stands_on_a_partition_that_is_not_its_meetings() -> None:
    names = TopicNames(shards=16)
    right = names.partition("m")
    step = Ingest(SETTINGS, names)
    wrong = Received(AUDIO.name, (right + 1) % 16, 7, 0, True, sound(0))
    letters = [v for v in step.on_batch([wrong]) if isinstance(v, Outgoing)]
    letter = DeadLetter.model_validate_json(letters[0].value)
    assert (letter.reason, letter.meeting_id, letter.offset) == ("partition", "m", 7)
    assert str(right) in letter.detail
    assert story(step.on_batch([replace(wrong, shard=right)])) == ["0"]


def test_a_message_too_large_to_pass_on_is_cut_in_its_dead_letter() -> None:
    value = b"JUNK" + bytes(5 * 1024 * 1024)
    out = Run().feed([value], VIDEO)
    assert isinstance(out[0], Outgoing)
    letter = DeadLetter.model_validate_json(out[0].value)
    assert letter.size == len(value)
    assert len(out[0].value) < DEADLETTER.max_message_bytes


# Control


def test_control_passes_and_tombstones_say_nothing() -> None:
    run = Run()
    messages = [
        MeetingStarted(meeting_id="m").to_bytes(),
        b"",
        MeetingEnded(meeting_id="m").to_bytes(),
        b"{}",
    ]
    assert story(run.feed(messages, CONTROL)) == ["meeting_started", "meeting_ended", "dead schema"]


def test_an_empty_message_elsewhere_is_a_dead_letter() -> None:
    assert story(Run().feed([b""])) == ["dead truncated"]
    assert story(Run().feed([b""], OCR)) == ["dead schema"]


# State


def restarted(run: Run, store: StepStore, markers: list[Marker]) -> Run:
    """The same step after a restart from its snapshot."""
    fresh = Run(run.now_s, run.offset)
    store.roll_back(markers[-1])
    fresh.step.open(store)
    return fresh


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_snapshot_anywhere_goes_on_the_same(tmp_path: object, cut: int) -> None:
    values = [*blocks(0, 2, 3), sound(0, device="mic-2"), *blocks(1, 5, 4), end(6)]
    stores = Stores(tmp_path, "perceive", ("ingest",))  # type: ignore[arg-type]
    store = stores.step(0, "ingest")
    store.roll_back(None)
    run = Run()
    run.step.open(store)
    store.begin(proved=True)
    out = run.feed(values[:cut])
    run.step.save(store)
    run = restarted(run, store, [store.marker()])
    out += run.feed(values[cut:])
    assert story(out) == story(Run().feed(values))
    stores.close()


def test_a_transcript_that_waits_is_given_up_after_a_restart_too(tmp_path: object) -> None:
    stores = Stores(tmp_path, "perceive", ("ingest",))  # type: ignore[arg-type]
    store = stores.step(0, "ingest")
    store.roll_back(None)
    run = Run()
    run.step.open(store)
    store.begin(proved=True)
    run.feed([words(0, 1), words(2, 9)], TRANSCRIPT)
    run.step.save(store)
    run = restarted(run, store, [store.marker()])
    assert story(run.wait(0.6)) == ["lost 1 until 9000 ms", "2"]
    stores.close()


def test_settings_that_would_lose_everything_are_refused() -> None:
    with pytest.raises(ValueError, match="lateness"):
        IngestSettings(lateness_ns=-1)
