"""Flashes of real coded pictures reach the clocks, and tie a camera to what microphones heard."""

from collections.abc import Iterator
from functools import cache

import av
import numpy as np
import pytest

from contracts.messages import MeetingStarted
from contracts.packet import ClockKind, Codec, Modality, Packet
from contracts.pulse_train import ON_S, PULSES_S
from contracts.timeline import ClockRecord, NoticeRecord
from devices.media import PictureInfo
from devices.streams import MediaPiece
from devices.video import Encoder, Picture, VideoSettings
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.clock import Clock, ClockSettings, Timed
from operators.clock.cues import FlashWatch, chirp
from operators.clock.lights import Light, Lights
from operators.ingest import Arrival
from operators.media.client import DecodedPictures
from operators.media.types import Role
from operators.perceive.step import Answer, Owner, Perceive
from operators.perceive.types import Ask, PerceiveSettings
from operators.pictures.stream import PictureStream, PictureStreamSettings
from operators.timeline import clock_in_force, to_timeline_ns

S = 1_000_000_000
MS = 1_000_000
START = 1_790_000_037 * S
RATE = 16_000
FPS = 25
FLASH_S = 6.3
LENGTH_S = 31
BEHIND_NS = 60 * MS


@cache
def coded(*, screen: bool) -> tuple[tuple[int, bytes, bool], ...]:
    """Time since the start, access unit and key flag of what a camera, or a screen's capture, saw of the signal."""
    encoder = Encoder(VideoSettings(), PictureInfo("h264", "yuv420p", 160, 96, FPS, 0))
    texture = np.random.default_rng(1).integers(30, 90, (96, 160)).astype(np.float64)
    units: list[MediaPiece] = []
    for number in range(LENGTH_S * FPS):
        at_s = number / FPS + 0.0113
        begin, end = at_s - FLASH_S - 0.004, at_s - FLASH_S + 0.004
        lit = sum(max(0.0, min(end, at + ON_S) - max(begin, at)) for at in PULSES_S) / 0.008
        planes = np.full((144, 160), 128, np.uint8)
        planes[:96] = (16 + 219 * round(lit)) if screen else texture + 100 * lit
        picture = Picture(round(at_s * S), av.VideoFrame.from_ndarray(planes, "yuv420p"))
        units += encoder.encode(picture)
    units += encoder.finish(S // FPS)
    return tuple((u.offset_ns, u.payload, u.key_frame) for u in units)


def lights_of(role: Role, stamps_off_ns: int = 0) -> list[list[tuple[int, float]]]:
    """What decoding each access unit says of brightness."""
    stream, found = PictureStream(role, PictureStreamSettings()), []
    for at_ns, payload, key in coded(screen=role == "slides"):
        stream.h264(payload, key, START + at_ns + stamps_off_ns)
        found.append(stream.take_light())
    return found


@pytest.mark.parametrize("role", ["camera", "slides"])
def test_every_flash_of_a_coded_stream_is_seen_where_it_was(role: Role) -> None:
    watch = FlashWatch()
    for at_ns, brightness in (one for some in lights_of(role) for one in some):
        watch.push(at_ns, brightness)
    # A screen's capture is looked at closely only once something has changed.
    assert len(watch.pulses) >= (12 if role == "camera" else 10)
    for (before, lit), (still, dark) in watch.pulses:
        place = (lit - START) / S - FLASH_S
        at = min(PULSES_S, key=lambda pulse: abs(pulse - place))
        assert before <= START + round((FLASH_S + at) * S) <= lit + 5 * MS
        assert still <= START + round((FLASH_S + at + ON_S) * S) <= dark + 5 * MS


def heard() -> np.ndarray:
    sound = np.random.default_rng(2).normal(0.0, 0.003, LENGTH_S * RATE)
    for at in PULSES_S:
        begin = round((FLASH_S + at + 0.005) * RATE)
        sound[begin : begin + len(chirp(RATE))] += 0.2 * chirp(RATE)
    return np.rint(sound * 32767).astype("<i2")


def arrivals() -> Iterator[tuple[int, Arrival]]:
    """Microphones that are right and a camera that is behind, as they arrive; the number of the camera's picture."""
    sound, found = heard(), list[tuple[int, int, Packet]]()
    for number in range(LENGTH_S * 50):
        at_ns, part = START + number * 20 * MS, sound[number * 320 : (number + 1) * 320].tobytes()
        for place, device in enumerate(("mic-1", "mic-2")):
            packet = Packet("m", device, Modality.AUDIO, Codec.PCM_S16LE, ClockKind.PTP, 1, number, at_ns, 20 * MS,
                            part, RATE, 0, 0, 1)  # fmt: skip
            found.append((at_ns + 20 * MS + 9 * MS + (number * 7 % 5 + place) * MS, -1, packet))
    for number, (at_ns, payload, key) in enumerate(coded(screen=False)):
        packet = Packet("m", "camera", Modality.VIDEO, Codec.H264, ClockKind.PTP, 1, number,
                        START + at_ns - BEHIND_NS, S // FPS, payload, FPS, 160, 96, 0, key)  # fmt: skip
        found.append((START + at_ns + 38 * MS + number * 7 % 5 * MS, number, packet))
    for at, number, packet in sorted(found, key=lambda f: (f[0], f[2].device_id)):
        yield number, Arrival("m", packet, at // MS * MS - 37 * S, True, "minuted/0/0")


def followed(decoding_takes: int | None) -> tuple[list[ClockRecord], list[str]]:
    """Clock records and notices of the room; brightness comes so many pictures late, or never."""
    lights, records, notices = Lights(), list[ClockRecord](), list[str]()
    clock = Clock(ClockSettings(), 0, lights)
    clock.on_batch(
        [Arrival("m", MeetingStarted(meeting_id="m", start_ns=START), START - 37 * S, True, "c/0/0")]
    )
    said = lights_of("camera", -BEHIND_NS)
    for number, arrival in arrivals():
        for out in clock.on_batch([arrival]):
            if isinstance(out, ClockRecord):
                records.append(out)
            elif isinstance(out, NoticeRecord):
                notices.append(out.text)
        if decoding_takes is not None and number >= decoding_takes:
            lights.put(0, Light("m", "camera", said[number - decoding_takes]))
    return records, notices


def test_a_camera_that_is_behind_is_placed_by_its_flashes_however_long_decoding_takes() -> None:
    at_once, notices = followed(1)
    assert any("camera is 0.0" in text or "camera is 0.1" in text for text in notices)
    true_ns = START + 28 * S
    placed = clock_in_force([r for r in at_once if r.device == "camera"], 10**9, true_ns - BEHIND_NS)
    assert placed is not None
    assert abs(to_timeline_ns(placed, true_ns - BEHIND_NS) - true_ns) <= min(placed.uncertainty_ns, 8 * MS)
    assert placed.uncertainty_ns < 16 * MS
    assert followed(75) == (at_once, notices)  # three seconds late
    assert followed(None)[1] == []  # by arrival alone its way could be as long


class NoWorkers:
    """Takes every ask, answers none."""

    def ask(self, owner: Owner, ask: Ask) -> None: ...

    def collect(self, shard: int) -> list[tuple[str, Answer]]:
        return []

    def outstanding(self, shard: int) -> int:
        return 0

    def close(self) -> None: ...


def test_brightness_of_decoded_pictures_goes_back_to_the_clocks_of_their_shard() -> None:
    lights = Lights()
    perceive = Perceive(
        3, PerceiveSettings(), VoiceActivity(), NoWorkers(), NoJournal(), live=False, lights=lights
    )
    perceive.on_batch([Timed(next(a for n, a in arrivals() if n == 0), 0)])
    answer = DecodedPictures("camera/video", START, None, (), ((START, 0.25), (START + 1, 0.75)))
    perceive.answered("m", answer)
    perceive.answered("gone", answer)
    assert lights.take(3) == [Light("m", "camera", ((START, 0.25), (START + 1, 0.75)))]
    assert lights.take(3) == lights.take(0) == []
