"""The publisher against brokers: what arrives, where, when, and what it says when it cannot."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contracts import topics
from contracts.messages import (
    CONTROL_MESSAGE,
    Calibration,
    EndOfStream,
    MeetingEnded,
    MeetingStarted,
    SpeakerTurn,
    SpeakerTurns,
    TranscriptMessage,
)
from contracts.packet import ClockKind, Modality, Packet, decode
from contracts.topics import Topic, TopicNames, partition_of
from devices.inputs import Room, open_inputs
from devices.publisher import (
    BrokerUnreachable,
    Publisher,
    PublishError,
    moved_control,
    tai_now_ns,
)
from flows.brokers import ApacheKafka, EmbeddedBroker, ServerProcess, free_port

SRT = "1\n00:00:00,100 --> 00:00:00,400\nAnn: Hello.\n\n2\n00:00:00,500 --> 00:00:00,700\nBo: Good.\n"
MS = 1_000_000


@pytest.fixture
def names(broker: ServerProcess, topic_prefix: str) -> TopicNames:
    """Names of the device topics, made on the broker of the test."""
    made = TopicNames(topic_prefix, shards=4)
    make_topics(broker.bootstrap, made, made.shards)
    return made


def make_topics(bootstrap: str, names: TopicNames, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [NewTopic(names.of(t), partitions, 1, config=t.config) for t in topics.DEVICE_TOPICS]
    for future in admin.create_topics(wanted).values():
        future.result()


def room_of(folder: Path, seconds: float = 1.0, meeting_id: str | None = None) -> Room:
    """A microphone and a transcript that starts at 1 s of an old timeline."""
    tone = 0.2 * np.sin(np.arange(round(seconds * 16_000)) / 10)
    soundfile.write(folder / "mic.wav", tone.astype(np.float32), 16_000)
    (folder / "words.srt").write_text(SRT)
    return open_inputs([folder / "mic.wav", folder / "words.srt"], meeting_id=meeting_id, start_ns=10**9)


def received(bootstrap: str, names: TopicNames, topic: Topic, count: int, partition: int) -> list[Message]:
    """All messages of a partition, ``count`` of them or more, in order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "test", "fetch.wait.max.ms": 5, "log_level": 0}
    )
    consumer.assign([TopicPartition(names.of(topic), partition, 0)])
    found: list[Message] = []
    patience = time.monotonic() + 20
    while len(found) < count and time.monotonic() < patience:
        found += [m for m in consumer.consume(100, 0.2) if m.error() is None]
    found += [m for m in consumer.consume(100, 0.3) if m.error() is None]
    consumer.close()
    return found


def test_everything_arrives_once_in_order_and_in_its_partition(
    broker: ServerProcess, names: TopicNames, tmp_path: Path
) -> None:
    meeting = "board/2026 März #1"
    room = room_of(tmp_path, meeting_id=meeting)
    before_ns = tai_now_ns()
    report = Publisher(broker.bootstrap, names).publish(room, speed="max")
    assert report.sent == {"control": 2, "mic/audio": 51, "words/transcript": 3}
    assert (report.delivered, report.failed, report.errors, report.stopped) == (56, 0, (), False)
    assert before_ns <= report.start_ns <= tai_now_ns() and report.end_ns == report.start_ns + 1000 * MS

    place = partition_of(meeting, 4)
    control = received(broker.bootstrap, names, topics.CONTROL, 2, place)
    assert [m.key() for m in control] == [
        b"board%2F2026%20M%C3%A4rz%20%231/meeting_started/",
        b"board%2F2026%20M%C3%A4rz%20%231/meeting_ended/",
    ]
    first, last = (CONTROL_MESSAGE.validate_json(m.value() or b"") for m in control)
    assert isinstance(first, MeetingStarted) and isinstance(last, MeetingEnded)
    assert first.start_ns == report.start_ns and last.end_ns == report.end_ns
    assert first.streams == ("mic/audio", "words/transcript")
    headers = dict(control[0].headers() or [])
    assert (
        headers["ce_type"] == b"minuted.meeting_started"
        and headers["ce_source"] == b"minuted/devices.publisher"
    )

    sound = [m.value() or b"" for m in received(broker.bootstrap, names, topics.AUDIO, 51, place)]
    packets = [decode(value) for value in sound[:-1]]
    assert [p.sequence for p in packets] == list(range(50))
    assert [p.timestamp_ns for p in packets] == [report.start_ns + n * 20 * MS for n in range(50)]
    assert {p.clock_kind for p in packets} == {ClockKind.PTP} and len({p.stream_epoch for p in packets}) == 1
    end = EndOfStream.model_validate_json(sound[-1])
    assert (end.sequence, end.timestamp_ns, end.modality) == (50, report.end_ns, "audio")
    assert end.stream_epoch == packets[0].stream_epoch > 1_700_000_000 * 10**9

    words = received(broker.bootstrap, names, topics.TRANSCRIPT, 3, place)
    assert [m.key() for m in words] == [meeting.encode()] * 3
    line = TranscriptMessage.model_validate_json(words[0].value() or b"")
    assert (line.speaker, line.timestamp_ns) == ("Ann", report.start_ns + 100 * MS)


def test_real_time_is_kept(embedded_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path) -> None:
    names = TopicNames(topic_prefix, shards=2)
    make_topics(embedded_broker.bootstrap, names, 2)
    told: list[tuple[int, int | None]] = []
    begin = time.monotonic()
    report = Publisher(embedded_broker.bootstrap, names).publish(
        room_of(tmp_path), progress=lambda done, whole: told.append((done, whole))
    )
    assert 1.0 <= time.monotonic() - begin < 6.0
    assert report.max_lateness_ns < 500 * MS  # below a millisecond on a machine with time to spare
    assert told and told[0][1] == 1000 * MS and [done for done, _ in told] == sorted(done for done, _ in told)
    # A block is sent when its last sample would have been heard: its stamp lies one block before that.
    place = names.partition("mic")
    for message in received(embedded_broker.bootstrap, names, topics.AUDIO, 51, place)[:-1]:
        packet = decode(message.value() or b"")
        sent_ms = message.timestamp()[1]
        due_ms = (packet.timestamp_ns + packet.duration_ns) / MS - 37_000
        assert -50 < sent_ms - due_ms < 1_000


def test_only_some_streams_without_an_end(
    embedded_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix, shards=2)
    make_topics(embedded_broker.bootstrap, names, 2)
    report = Publisher(embedded_broker.bootstrap, names).publish(
        room_of(tmp_path), speed=50, only=frozenset({Modality.TRANSCRIPT}), keep_open=True, start_ns=77
    )
    assert report.sent == {"control": 1, "words/transcript": 3} and report.start_ns == 77
    (message,) = received(embedded_broker.bootstrap, names, topics.CONTROL, 1, names.partition("mic"))
    started = CONTROL_MESSAGE.validate_json(message.value() or b"")
    assert isinstance(started, MeetingStarted)
    assert started.streams == ("words/transcript",) and started.speech_source == "transcript"


def test_a_stop_ends_the_streams_where_they_are(
    embedded_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix, shards=2)
    make_topics(embedded_broker.bootstrap, names, 2)
    stop = threading.Event()
    publisher = Publisher(embedded_broker.bootstrap, names)

    def stop_after(done_ns: int, whole_ns: int | None) -> None:
        if done_ns > 300 * MS:
            stop.set()

    report = publisher.publish(room_of(tmp_path, seconds=30.0), progress=stop_after, stop=stop)
    assert report.stopped and report.end_ns - report.start_ns < 20_000 * MS
    sound = received(
        embedded_broker.bootstrap, names, topics.AUDIO, report.sent["mic/audio"], names.partition("mic")
    )
    last, end = decode(sound[-2].value() or b""), EndOfStream.model_validate_json(sound[-1].value() or b"")
    assert (end.sequence, end.timestamp_ns) == (last.sequence + 1, last.timestamp_ns + last.duration_ns)
    assert end.stream_epoch == last.stream_epoch
    # Started again, the same devices are a new epoch.
    again = publisher.publish(room_of(tmp_path), speed="max")
    count = report.sent["mic/audio"] + again.sent["mic/audio"]
    sound = received(embedded_broker.bootstrap, names, topics.AUDIO, count, names.partition("mic"))
    assert decode(sound[-2].value() or b"").stream_epoch > last.stream_epoch


def test_a_device_with_a_wrong_clock(
    embedded_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix, shards=2)
    make_topics(embedded_broker.bootstrap, names, 2)
    publisher = Publisher(
        embedded_broker.bootstrap,
        names,
        stamp=lambda device, time_ns: time_ns + (5 if device == "mic" else 0),
    )
    publisher.publish(room_of(tmp_path), speed="max", start_ns=0)
    sound = received(embedded_broker.bootstrap, names, topics.AUDIO, 51, names.partition("mic"))
    assert decode(sound[1].value() or b"").timestamp_ns == 20 * MS + 5
    words = received(embedded_broker.bootstrap, names, topics.TRANSCRIPT, 3, names.partition("mic"))
    assert TranscriptMessage.model_validate_json(words[0].value() or b"").timestamp_ns == 100 * MS


def test_nobody_at_the_address(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    begin = time.monotonic()
    with pytest.raises(BrokerUnreachable, match=f"no broker answers at {address} \\(waited 1 s\\)"):
        Publisher(address, TopicNames(), unreachable_after_s=1.0).publish(room_of(tmp_path))
    assert time.monotonic() - begin < 20


def test_topics_that_are_missing_or_cut_otherwise(
    broker: ServerProcess, names: TopicNames, topic_prefix: str, tmp_path: Path
) -> None:
    room = room_of(tmp_path)
    with pytest.raises(
        PublishError, match=rf"no topic other\.{topics.AUDIO.name}: minuted topics create makes it"
    ):
        Publisher(broker.bootstrap, TopicNames("other.", 4)).publish(room)
    with pytest.raises(PublishError, match="has 4 partitions, the settings say 16"):
        Publisher(broker.bootstrap, TopicNames(topic_prefix, 16)).publish(room)


def test_the_broker_goes_away_in_the_middle(tmp_path: Path) -> None:
    names = TopicNames("", shards=2)
    with EmbeddedBroker(tmp_path / "broker") as broker:
        make_topics(broker.bootstrap, names, 2)
        publisher = Publisher(broker.bootstrap, names, unreachable_after_s=2.0)
        killed: list[float] = []

        def kill_once(done_ns: int, whole_ns: int | None) -> None:
            if not killed and done_ns > 100 * MS:
                broker.kill()
                killed.append(time.monotonic())

        with pytest.raises(BrokerUnreachable):
            publisher.publish(room_of(tmp_path, seconds=60.0), progress=kill_once)
        assert 1.0 < time.monotonic() - killed[0] < 20


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.usefixtures("kafka_parts")
def test_a_broker_that_comes_back_gets_everything(tmp_path: Path) -> None:
    names = TopicNames("", shards=2)
    quick = {"broker.session.timeout.ms": "1000"}
    with ApacheKafka(tmp_path / "kafka", properties=quick) as broker:
        make_topics(broker.bootstrap, names, 2)
        happened: list[str] = []

        def restart_once(done_ns: int, whole_ns: int | None) -> None:
            if not happened and done_ns > 200 * MS:
                happened.append("killed")
                broker.kill()
                broker.start()

        report = Publisher(broker.bootstrap, names).publish(
            room_of(tmp_path, seconds=2.0), progress=restart_once
        )
        assert happened and report.failed == 0
        sound = received(broker.bootstrap, names, topics.AUDIO, 101, names.partition("mic"))
        assert [decode(m.value() or b"").sequence for m in sound[:-1]] == list(range(100))


def test_control_moves_with_the_meeting() -> None:
    control = (
        MeetingStarted(meeting_id="m", start_ns=10),
        MeetingStarted(meeting_id="m"),
        SpeakerTurns(meeting_id="m", device="d", turns=(SpeakerTurn(start_ns=11, end_ns=12, speaker="a"),)),
        Calibration(meeting_id="m", device="d", offset_ns=3, ref_ns=10),
    )
    moved = moved_control(control, 100)
    assert isinstance(moved[0], MeetingStarted) and moved[0].start_ns == 110
    assert moved[1] == control[1]
    assert isinstance(moved[2], SpeakerTurns) and (moved[2].turns[0].start_ns, moved[2].turns[0].end_ns) == (
        111,
        112,
    )
    assert isinstance(moved[3], Calibration) and (moved[3].ref_ns, moved[3].offset_ns) == (110, 3)


def test_now_in_tai_is_ahead_of_utc() -> None:
    assert 30 < (tai_now_ns() - time.time_ns()) / 1e9 < 60


@pytest.mark.parametrize("speed", [0, -1.0, float("inf"), float("nan")])
def test_a_speed_must_be_positive(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        Publisher("127.0.0.1:1", TopicNames()).publish(room_of(tmp_path), speed=speed)


def test_settings_the_client_does_not_know() -> None:
    with pytest.raises(PublishError, match=r"Kafka client settings: .*no\.such"):
        Publisher("127.0.0.1:1", TopicNames(), {"no.such": "x"})


def test_packets_are_what_the_sound_was(
    embedded_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    names = TopicNames(topic_prefix, shards=2)
    make_topics(embedded_broker.bootstrap, names, 2)
    room = room_of(tmp_path)
    Publisher(embedded_broker.bootstrap, names).publish(room, speed="max")
    sound = received(embedded_broker.bootstrap, names, topics.AUDIO, 51, names.partition("mic"))
    published = [bytes(decode(m.value() or b"").payload) for m in sound[:-1]]
    assert published == [bytes(p.payload) for p in room.streams[0].packets() if isinstance(p, Packet)]
