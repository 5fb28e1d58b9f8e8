"""Meetings whose end, or whose device's silence, comes before what was said has been recognised; and those that hang."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import soundfile

from contracts.messages import EndOfStream, MeetingEnded, MeetingStarted
from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.timeline import TIMELINE_RECORD, AnyRecord, Fence, MarkRecord, NoticeRecord
from contracts.topics import AUDIO, CONTROL, TIMELINE, VIDEO, TopicNames
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.broker.source import Backlog, CaughtUp, Received
from operators.clock import Clock, ClockSettings
from operators.ingest import Ingest, IngestSettings
from operators.media.client import DecodedPictures
from operators.perceive.overdue import OverdueSettings
from operators.perceive.pictures import DecodePicture
from operators.perceive.step import Answer, Owner, Perceive, Recognised
from operators.perceive.types import Ask, PerceiveSettings
from operators.speech.events import RecognitionRequest

SOUND = Path(__file__).resolve().parents[2] / "devices" / "sample" / "mic-1.flac"
BLOCK_NS = 20_000_000
UTTERANCE_S = 4.2
"""The first sentence of the sample ends at 3.64 s."""


@dataclass
class Late:
    """A recogniser whose answers come when they are let go."""

    asked: list[tuple[str, RecognitionRequest]] = field(default_factory=list)
    pictures: list[DecodePicture] = field(default_factory=list)
    """These have no answer until ``decoded`` is set."""
    free: bool = False
    hurried: bool = False
    decoded: bool = False
    _starts: list[int] = field(default_factory=list)

    def ask(self, owner: Owner, ask: Ask) -> None:
        if isinstance(ask, DecodePicture):
            self.pictures.append(ask)
            return
        assert isinstance(ask, RecognitionRequest)
        self.asked.append((owner[1], ask))
        if ask.kind != "partial":
            self._starts.append(ask.start_ns)

    def starts_s(self) -> list[float]:
        """Where pieces begin whose words were asked for, counted from the first sound."""
        return [(start_ns - 10**18) / 1e9 for start_ns in self._starts]

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        if self.decoded:
            pictures, self.pictures = self.pictures, []
            return [("m", DecodedPictures(p.stream, p.packet.timestamp_ns, None, (), ())) for p in pictures]
        if not self.free:
            return []
        asked, self.asked = self.asked, []
        found = Recognition(
            "Good morning, let's plan the release.", average_log_probability=-0.1, hurried=self.hurried
        )
        return [(meeting, Recognised(request, found)) for meeting, request in asked]

    def outstanding(self, shard: int) -> int:
        return len(self.asked)

    def close(self) -> None:
        pass


class Shard:
    """The three steps of the first flow, a clock that is moved by hand, and a recogniser that can be held."""

    def __init__(self, late_s: float = math.inf) -> None:
        self.now_s = 0.0
        self.workers = Late()
        self.log: list[AnyRecord | Fence] = []
        self._ingest, self._clock = Ingest(IngestSettings(), TopicNames(shards=1)), Clock(ClockSettings())
        self.perceive = Perceive(
            0, PerceiveSettings(stream_idle_s=5.0, late_s=late_s), VoiceActivity(), self.workers, NoJournal(),
            clock_s=lambda: self.now_s, run=lambda: 1,
        )  # fmt: skip

    def feed(self, *values: tuple[str, bytes]) -> None:
        for topic, value in values:
            self._step(Received(topic, 0, len(self.log), 10**18, True, value))

    def wait(self, seconds: float) -> None:
        """Nothing more comes, and the flow has read all that there is."""
        for _ in range(round(seconds / 0.25)):
            self.now_s += 0.25
            self._step(CaughtUp(0))

    def kinds(self) -> list[str]:
        return [r.type for r in self.log if not isinstance(r, MarkRecord) and r.type != "clock"]

    def _step(self, value: Received | CaughtUp) -> None:
        for message in self.perceive.on_batch(self._clock.on_batch(self._ingest.on_batch([value]))):
            if message.topic is TIMELINE:
                self.log.append(TIMELINE_RECORD.validate_json(message.value))


def sound(seconds: float) -> Iterator[tuple[str, bytes]]:
    """The first seconds of the sample's first microphone."""
    samples, rate_hz = soundfile.read(SOUND, dtype="int16")
    size = rate_hz * BLOCK_NS // 10**9
    for number in range(round(seconds * rate_hz) // size):
        block = np.ascontiguousarray(samples[number * size : (number + 1) * size])
        packet = Packet(
            meeting_id="m", device_id="mic", modality=Modality.AUDIO, codec=Codec.PCM_S16LE, clock_kind=ClockKind.PTP,
            stream_epoch=1, sequence=number, timestamp_ns=10**18 + number * BLOCK_NS, duration_ns=BLOCK_NS,
            payload=block.tobytes(), rate_hz=rate_hz, channels=1,
        )  # fmt: skip
        yield AUDIO.name, encode(packet)


def picture() -> tuple[str, bytes]:
    """A picture of the slides, at the beginning."""
    packet = Packet(
        meeting_id="m", device_id="slides", modality=Modality.VIDEO, codec=Codec.JPEG, clock_kind=ClockKind.PTP,
        stream_epoch=1, sequence=0, timestamp_ns=10**18, duration_ns=BLOCK_NS, payload=b"jpeg", width=320, height=180,
        key_frame=True,
    )  # fmt: skip
    return VIDEO.name, encode(packet)


def end_of_stream(seconds: float) -> tuple[str, bytes]:
    number = round(seconds * 10**9) // BLOCK_NS
    over = EndOfStream(
        meeting_id="m", device_id="mic", stream_epoch=1, sequence=number, timestamp_ns=10**18 + number * BLOCK_NS,
        modality="audio",
    )  # fmt: skip
    return AUDIO.name, over.to_bytes()


STARTED = MeetingStarted(meeting_id="m", start_ns=10**18, streams=("mic/audio",)).to_bytes()
OVER = MeetingEnded(meeting_id="m", end_ns=10**18 + round(UTTERANCE_S * 1e9)).to_bytes()


def test_a_meeting_waits_for_text_however_long_recognition_takes() -> None:
    shard = Shard()
    shard.feed((CONTROL.name, STARTED), *sound(UTTERANCE_S), end_of_stream(UTTERANCE_S), (CONTROL.name, OVER))
    shard.wait(20.0)
    # Longer than a stream may be silent: but it is not the device that is silent, it is we who are slow.
    assert "ended" not in shard.kinds()
    assert not [r for r in shard.log if r.type in ("gap", "notice")]
    shard.workers.free = True
    # One microphone that nobody owns: its sound waits for where sentences end.
    shard.wait(1.0)
    assert shard.kinds()[-3:] == ["utterance", "stream", "ended"]


def test_minutes_say_once_that_words_were_heard_in_a_hurry() -> None:
    for hurried in (True, False):
        shard = Shard()
        shard.workers.free, shard.workers.hurried = True, hurried
        shard.feed(*sound(UTTERANCE_S), *sound(2 * UTTERANCE_S))
        notices = [record.code for record in shard.log if isinstance(record, NoticeRecord)]
        assert notices.count("hurried") == hurried


def test_words_wait_for_slides_of_which_recognition_is_to_be_told() -> None:
    """A picture takes very long. What was said ten seconds after it may be told of it; what was said before, not."""
    shard = Shard()
    shard.workers.free = True
    shard.feed(picture(), *sound(24.0))
    before = shard.workers.starts_s()
    assert before
    assert max(before) < 10.0
    shard.workers.decoded = True
    shard.wait(0.5)
    assert shard.workers.starts_s()[: len(before)] == before
    assert max(shard.workers.starts_s()) > 10.0
    # Who is late by more than that does not wait.
    shard = Shard(late_s=3.0)
    shard.workers.free = True
    shard.feed(picture(), *sound(24.0))
    assert max(shard.workers.starts_s()) > 10.0


def test_a_sentence_that_its_device_breaks_off_is_written() -> None:
    shard = Shard()
    shard.feed((CONTROL.name, STARTED), *sound(2.5))
    shard.wait(6.0)
    assert [r.type for r in shard.log][-1] == "gap"
    shard.feed((CONTROL.name, OVER))
    shard.wait(1.0)
    assert "ended" not in shard.kinds()
    shard.workers.free = True
    shard.wait(0.5)
    assert shard.kinds()[-2:] == ["utterance", "ended"]
    (said,) = [r for r in shard.log if r.type == "utterance"]
    assert (said.state, said.source) == ("closed", "recogniser")


def test_a_device_that_comes_back_after_it_was_given_up_is_heard_again() -> None:
    shard = Shard()
    shard.workers.free = True
    blocks = list(sound(24.0))
    shard.feed((CONTROL.name, STARTED), *blocks[:125])
    shard.wait(6.0)
    shard.feed(*blocks[1000:])
    shard.wait(0.5)
    states = [r.state for r in shard.log if r.type == "stream"]
    assert states == ["opened", "given_up", "resumed"]
    said = [r for r in shard.log if r.type == "utterance"]
    assert [r.state for r in said if r.id == said[0].id][-1] == "closed"
    assert said[-1].id != said[0].id
    assert said[-1].raw_start_ns >= 10**18 + 20 * 10**9


def test_an_operator_hears_what_a_meeting_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    shard = Shard()
    shard.feed((CONTROL.name, STARTED), *sound(UTTERANCE_S), end_of_stream(UTTERANCE_S), (CONTROL.name, OVER))
    shard.wait(40.0)
    (line,) = [text for text in capsys.readouterr().err.splitlines() if "has not ended" in text]
    assert line.startswith("flows.perceive: meeting m was told to be over 30 s ago")
    assert line.endswith("it waits for mic/audio: 1 answers of the workers")
    shard.workers.free = True
    shard.wait(200.0)
    assert "has not ended" not in capsys.readouterr().err


def test_what_ended_long_ago_costs_nothing_more() -> None:
    shard = Shard()
    shard.workers.free = True
    shard.feed((CONTROL.name, STARTED), *sound(UTTERANCE_S), end_of_stream(UTTERANCE_S), (CONTROL.name, OVER))
    shard.wait(1.0)
    assert shard.kinds()[-1] == "ended"
    shard.perceive._touched.clear()
    shard.wait(5.0)
    # Nothing is written again at every snapshot, and no sound is kept.
    assert not shard.perceive._touched
    assert shard.perceive._meetings["m"].state()["hearing"]["speech"]["microphones"] == []


def test_a_meeting_is_told_of_once_and_again_after_a_while() -> None:
    overdue = OverdueSettings(after_s=30.0, every_s=120.0).build()
    told = {now: overdue.look(now, ["m"]) for now in range(0, 300, 10)}
    assert {now: list(found) for now, found in told.items() if found} == {30: ["m"], 150: ["m"], 270: ["m"]}
    assert overdue.look(300, []) == {}
    assert overdue.look(310, ["m"]) == {}, "it begins anew"


def test_a_shard_that_is_behind_is_told_of_sparingly() -> None:
    backlog = Backlog()
    ages = [(0.1, 0), (5.0, 10), (11.0, 20), (30.0, 50), (40.0, 81), (3.0, 90), (1.0, 100), (1.0, 110)]
    told = [(now, backlog.read(age, now)) for age, now in ages]
    assert [entry for entry in told if entry[1]] == [(20, "behind"), (81, "behind"), (100, "caught_up")]
