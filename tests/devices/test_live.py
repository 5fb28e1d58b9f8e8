"""Live capture: recorded driver buffers, and FFmpeg's own test devices in place of hardware, which nobody has here."""

import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
import pytest

from contracts.messages import EndOfStream, MeetingStarted
from contracts.packet import Modality, Packet
from devices.live import DriverBuffer, LiveDevice, LivePictures, LiveSound, as_they_come, capture, open_live
from devices.streams import InputError, MediaPiece

ZERO_NS = 1_800_000_000_000_000_000
MS = 1_000_000
RATE_HZ = 48_000


def _sound(first: int, count: int) -> av.AudioFrame:
    """Samples that count up, so that each block tells where it was taken from."""
    ramp = (np.arange(first, first + count) % 30_000).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(ramp.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate, frame.time_base = RATE_HZ, Fraction(1, 1_000_000)
    return frame


def _microphone(starts_ms: list[float], count: int = 1_024) -> LiveSound:
    """Buffers of ``count`` samples with these driver stamps after the zero."""

    def buffers(_: LiveDevice) -> Iterator[DriverBuffer]:
        for number, start_ms in enumerate(starts_ms):
            yield DriverBuffer(_sound(number * count, count), ZERO_NS + round(start_ms * MS))

    device = LiveDevice("microphone", "anna", "hw:1,0", "alsa")
    return LiveSound(device, ZERO_NS, buffers=buffers, now_utc_ns=lambda: ZERO_NS + 50 * MS)


def test_a_block_has_the_stamp_of_its_first_sample_and_jitter_of_the_driver_is_smoothed() -> None:
    length_ms = 1_024e3 / RATE_HZ
    chance = np.random.default_rng(4)
    starts_ms = [100 + n * length_ms + chance.normal(0, 1.5) for n in range(300)]
    starts_ms[0] = 100.0
    noted: list[str] = []
    pieces = list(_microphone(starts_ms).pieces(noted.append))
    late_ms = [p.offset_ns / MS - (100 + n * 20) for n, p in enumerate(pieces)]
    assert max(abs(late) for late in late_ms) < 1.5
    steps_ms = np.diff([p.offset_ns / MS for p in pieces])
    assert np.abs(steps_ms - 20).max() < 0.4
    assert [int(np.frombuffer(p.payload, "<i2")[0]) for p in pieces[:3]] == [0, 960, 1920]
    assert noted == []


def test_samples_that_the_driver_lost_are_a_gap_in_time() -> None:
    length_ms = 1_024e3 / RATE_HZ
    starts_ms = [n * length_ms + (500 if n >= 20 else 0) for n in range(40)]
    noted: list[str] = []
    pieces = list(_microphone(starts_ms).pieces(noted.append))
    steps_ms = np.diff([p.offset_ns / MS for p in pieces])
    assert steps_ms.max() == pytest.approx(500 + 20, abs=20) and (steps_ms > 100).sum() == 1
    assert noted == ["its driver lost samples; the gap is left out"]


def test_stamps_on_no_clock_of_ours_are_replaced_by_arrival_and_it_is_said() -> None:
    noted: list[str] = []
    pieces = list(_microphone([-1e9, -1e9 + 21.33]).pieces(noted.append))
    assert pieces[0].offset_ns == 50 * MS - 1_024 * 10**9 // RATE_HZ
    assert noted == ["its driver gives no absolute stamps; it is stamped when its buffers arrive"]


def test_pictures_keep_the_stamps_of_the_driver() -> None:
    stamps_ms = [5.0, 38.4, 71.6, 105.2, 138.3]

    def buffers(_: LiveDevice) -> Iterator[DriverBuffer]:
        for number, at_ms in enumerate(stamps_ms):
            pixels = np.full((90, 160, 3), 40 * number, np.uint8)
            yield DriverBuffer(
                av.VideoFrame.from_ndarray(pixels, format="rgb24"), ZERO_NS + round(at_ms * MS)
            )

    camera = LivePictures(
        LiveDevice("camera", "wall", "/dev/video0", "v4l2"),
        ZERO_NS,
        buffers=buffers,
        now_utc_ns=lambda: ZERO_NS,
    )
    pieces = list(camera.pieces(lambda what: None))
    assert [p.offset_ns / MS for p in pieces] == stamps_ms[:-1]
    assert pieces[0].key_frame


def test_devices_of_a_machine_become_a_room_with_seats_and_a_slide_screen() -> None:
    tai_ns = ZERO_NS + 37 * 10**9
    devices = [
        LiveDevice.parse("microphone", "Anna=hw:1,0"),
        LiveDevice.parse("camera", "/dev/video0"),
        LiveDevice.parse("screen", "slides=:0"),
    ]
    room = open_live(
        devices, meeting_id="m", title="Stand-up", attendees=("Anna", "Ben"), tai_ns=tai_ns, utc_ns=ZERO_NS
    )
    (started,) = room.control
    assert isinstance(started, MeetingStarted)
    assert [(c.device, c.speaker) for c in started.channel_map] == [("Anna", "Anna")]
    assert started.slide_devices == ("slides",)
    assert set(started.streams) == {"Anna/audio", "camera-video0/video", "slides/video"}
    with pytest.raises(InputError, match="two devices of this name"):
        open_live(
            [devices[0], devices[0]], meeting_id="m", title=None, attendees=(), tai_ns=tai_ns, utc_ns=ZERO_NS
        )


def test_streams_of_a_machine_do_not_wait_for_each_other_and_stop_when_asked() -> None:
    """Both devices run at their own pace; FFmpeg's generators stand in for hardware."""
    now_ns = time.time_ns()
    devices = [
        LiveDevice.parse("microphone", "tone=lavfi:sine=440:sample_rate=48000,arealtime"),
        LiveDevice.parse("camera", "chart=lavfi:testsrc=size=160x90:rate=5,realtime"),
    ]
    room = open_live(devices, meeting_id="m", title=None, attendees=(), tai_ns=now_ns, utc_ns=now_ns)
    stop, seen = threading.Event(), {Modality.AUDIO: 0, Modality.VIDEO: 0}
    for stream, message in as_they_come(room.streams, stop):
        assert not isinstance(message, EndOfStream)
        assert isinstance(message, Packet) and message.modality is stream.modality
        seen[stream.modality] += 1
        if seen[Modality.VIDEO] == 4:
            stop.set()
    assert seen[Modality.AUDIO] > 20


def test_a_device_that_is_unplugged_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = av.VideoFrame.from_ndarray(np.zeros((90, 160, 3), np.uint8), format="rgb24")
    steps: list[object] = [frame, av.BlockingIOError(11, "not yet"), frame, av.OSError(19, "No such device")]

    class Driver:
        streams = (type("Stream", (), {"type": "video"})(),)

        def __enter__(self) -> "Driver":
            return self

        def __exit__(self, *_: object) -> None: ...

        def decode(self, _: object) -> Iterator[object]:
            while steps:
                if isinstance(step := steps.pop(0), Exception):
                    raise step
                yield step

    monkeypatch.setattr(av, "open", lambda *_, **__: Driver())
    taken = capture(LiveDevice.parse("camera", "/dev/video0"))
    assert [next(taken).frame, next(taken).frame] == [frame, frame]
    with pytest.raises(
        InputError, match=r"^/dev/video0: this camera gives nothing any more: No such device$"
    ):
        next(taken)


@pytest.mark.parametrize(("kind", "address"), [("camera", "/dev/video97"), ("microphone", "hw:97,0")])
def test_a_device_that_is_not_there_is_one_line(kind: str, address: str) -> None:
    device = LiveDevice.parse("camera" if kind == "camera" else "microphone", address)
    source = LivePictures(device, 0) if kind == "camera" else LiveSound(device, 0)
    with pytest.raises(InputError, match=f"this {kind} cannot be opened by"):
        pieces: list[MediaPiece] = list(source.pieces(lambda what: None))
        assert pieces == []
