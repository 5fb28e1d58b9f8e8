"""Decoder children on real media and on media that is broken, too large or hostile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import cv2
import numpy as np
import pytest

from contracts.packet import Codec
from operators.media.client import (
    Decoded,
    DecodedPictures,
    DecodedSound,
    DecodeFailed,
    DecoderPool,
    DecodeSettings,
    FullFrame,
)
from operators.pictures.size import PictureError
from operators.pictures.slides import SlideCandidate, SlideSettings
from operators.pictures.stream import PictureStream, PictureStreamSettings

SAMPLE = Path(__file__).resolve().parents[2] / "devices" / "sample"
SECOND = 1_000_000_000


class Unit(NamedTuple):
    data: bytes
    key_frame: bool
    timestamp_ns: int


def access_units(path: Path, until_s: float) -> list[Unit]:
    """Annex B access units of a file's video, in decoding order."""
    units = []
    with av.open(str(path), mode="r") as container:
        stream = container.streams.video[0]
        annex_b = av.BitStreamFilterContext("h264_mp4toannexb", stream)
        for packet in container.demux(stream):
            if packet.pts is None or packet.time_base is None:
                continue
            time_ns = round(packet.pts * packet.time_base * SECOND)
            if time_ns > until_s * SECOND:
                break
            units += [Unit(bytes(each), each.is_keyframe, time_ns) for each in annex_b.filter(packet)]
    return units


def encode_h264(pictures: list[np.ndarray[Any, Any]], rate: int, key_every: int) -> list[Unit]:
    """Annex B access units of grey pictures (height, width) uint8."""
    height, width = pictures[0].shape
    encoder = av.CodecContext.create("libx264", "w")
    assert isinstance(encoder, av.VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.framerate, encoder.gop_size, encoder.max_b_frames = rate, key_every, 0  # type: ignore[assignment]
    encoder.options = {"preset": "ultrafast", "tune": "zerolatency", "threads": "1", "forced-idr": "1"}
    packets = []
    for picture in pictures:
        colour = np.asarray(cv2.cvtColor(picture, cv2.COLOR_GRAY2RGB), np.uint8)
        frame = av.VideoFrame.from_ndarray(colour, format="rgb24")
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return [Unit(bytes(each), each.is_keyframe, i * SECOND // rate) for i, each in enumerate(packets)]


@pytest.fixture(scope="module")
def sample_units() -> list[Unit]:
    return access_units(SAMPLE / "slides.mp4", 11.0)


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[DecoderPool]:
    """One pool for all tests that leave its children alone: each start of a child takes half a second."""
    with DecoderPool(DecodeSettings(request_ms=20_000)) as built:
        yield built


@pytest.fixture
def pool(shared_pool: DecoderPool) -> Iterator[DecoderPool]:
    yield shared_pool
    for stream in ("s", "m/slides", "m/camera", "m/mic", "m", "jpeg", "h264"):
        shared_pool.forget(stream)
    assert shared_pool.drain(30) == []


@pytest.fixture
def own_pool() -> Iterator[DecoderPool]:
    """A pool whose children the test may kill."""
    with DecoderPool(DecodeSettings(request_ms=20_000)) as built:
        yield built


def frames(results: list[Decoded]) -> list[tuple[int, int, int]]:
    return [
        (frame.timestamp_ns, frame.width, frame.height)
        for result in results
        if isinstance(result, DecodedPictures)
        for frame in result.frames
    ]


def failures(results: list[Decoded]) -> list[DecodeFailed]:
    return [result for result in results if isinstance(result, DecodeFailed)]


def submit_all(pool: DecoderPool, stream: str, units: list[Unit], **options: Any) -> list[Decoded]:
    for index, unit in enumerate(units):
        pool.submit(stream, Codec.H264, unit.data, unit.key_frame, unit.timestamp_ns, index, **options)
    return pool.drain(60)


def test_slides_of_the_sample_meeting(pool: DecoderPool, sample_units: list[Unit]) -> None:
    results = submit_all(pool, "m/slides", sample_units)
    assert [result.meta for result in results] == list(range(len(sample_units)))
    assert failures(results) == []
    stamps = [stamp for stamp, _, _ in frames(results)]
    assert stamps == sorted(set(stamps))
    # Little is decoded: ten a second around the two changes, key frames otherwise.
    assert 15 < len(stamps) < 60

    watcher = SlideSettings().build()
    asked: list[SlideCandidate] = []
    for result in results:
        assert isinstance(result, DecodedPictures)
        for frame in result.frames:
            events = watcher.observe(frame.timestamp_ns, frame.luma, frame.sharpness)
            asked += [event for event in events if isinstance(event, SlideCandidate)]
    assert len(asked) == 2 and asked[0].start_ns == 0

    pool.request_frame("m/slides", asked[1].frame_ns, "candidate")
    (full,) = pool.drain(20)
    assert isinstance(full, FullFrame) and full.meta == "candidate"
    picture = cv2.imdecode(np.frombuffer(full.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None and picture.shape == (1080, 1920, 3)


def test_a_frame_long_gone_is_refused(pool: DecoderPool, sample_units: list[Unit]) -> None:
    submit_all(pool, "s", sample_units)
    pool.request_frame("s", 12345)
    pool.request_frame("never seen", 0)
    assert [failed.reason for failed in failures(pool.drain(20))] == ["the frame is no longer kept"] * 2


def test_truncated_access_unit_costs_one_packet(pool: DecoderPool, sample_units: list[Unit]) -> None:
    keys = [index for index, unit in enumerate(sample_units) if unit.key_frame]
    broken = list(sample_units)
    key = broken[keys[1]]
    broken[keys[1]] = key._replace(data=key.data[: len(key.data) // 3])
    results = submit_all(pool, "s", broken)
    (failed,) = failures(results)
    assert failed.meta == keys[1] and "H.264" in failed.reason and not failed.restarted
    stamps = [stamp for stamp, _, _ in frames(results)]
    assert sample_units[keys[0]].timestamp_ns in stamps
    # The stream goes on with the next key frame and not before it.
    lost_ns, next_ns = sample_units[keys[1]].timestamp_ns, sample_units[keys[2]].timestamp_ns
    assert not any(lost_ns <= stamp < next_ns for stamp in stamps)
    assert next_ns in stamps


def test_joining_in_the_middle_waits_for_a_key_frame(pool: DecoderPool, sample_units: list[Unit]) -> None:
    keys = [index for index, unit in enumerate(sample_units) if unit.key_frame]
    results = submit_all(pool, "s", sample_units[5 : keys[1] + 1])
    assert failures(results) == []
    assert [stamp for stamp, _, _ in frames(results)] == [sample_units[keys[1]].timestamp_ns]


def test_a_forgotten_stream_starts_anew(pool: DecoderPool, sample_units: list[Unit]) -> None:
    submit_all(pool, "s", sample_units[:3])
    pool.forget("s")
    results = submit_all(pool, "s", sample_units[3:6])
    assert len(results) == 3 and frames(results) == []


def jpeg(picture: np.ndarray[Any, Any], quality: int = 90) -> bytes:
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def test_jpeg_stream_is_sampled_and_gives_full_frames(pool: DecoderPool) -> None:
    picture = np.full((1080, 1920), 240, np.uint8)
    cv2.putText(picture, "Budget", (200, 400), cv2.FONT_HERSHEY_SIMPLEX, 6, 0, 12)
    data = jpeg(picture)
    for index in range(30):
        pool.submit("s", Codec.JPEG, data, True, index * SECOND // 10)
    results = pool.drain(30)
    assert failures(results) == []
    seen = frames(results)
    assert len(results) == 30 and len(seen) < 12 and seen[0] == (0, 1920, 1080)
    pool.request_frame("s", seen[-1][0])
    (full,) = pool.drain(20)
    assert isinstance(full, FullFrame) and full.jpeg[:2] == b"\xff\xd8"


def test_pictures_asked_for_late_are_still_there(pool: DecoderPool) -> None:
    """Files are read far ahead of their answers: pictures two seconds apart, and the first is asked for last."""
    for index in range(24):
        pool.submit(
            "s", Codec.JPEG, jpeg(np.full((360, 640), 10 * index, np.uint8)), True, 2 * index * SECOND
        )
    pool.request_frame("s", 0)
    *_, full = pool.drain(30)
    assert isinstance(full, FullFrame)
    first = cv2.imdecode(np.frombuffer(full.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert first is not None and first.mean() < 5


def test_what_is_kept_of_pictures_is_bounded_and_repeats_take_nothing() -> None:
    noise = [jpeg(np.random.default_rng(seed).integers(0, 255, (360, 640), np.uint8)) for seed in range(2)]
    settings = PictureStreamSettings(kept_bytes=2 * len(noise[0]), kept_jpegs=40)
    stream = PictureStream("slides", settings)
    for index in range(30):
        stream.jpeg(noise[0], index * SECOND)
    assert stream.full_frame(0)
    for index in range(30, 34):
        stream.jpeg(noise[index % 2], index * SECOND)
    assert stream.full_frame(33 * SECOND)
    with pytest.raises(PictureError, match="no longer kept"):
        stream.full_frame(29 * SECOND)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JPEG"),
        (bytes(range(256)) * 40, "not a JPEG"),
        (b"\xff\xd8" + np.random.default_rng(7).bytes(5000) + b"\xff\xd9", "JPEG"),
        (jpeg(np.full((240, 320), 9, np.uint8))[:-40], "cut short"),
    ],
)
def test_bytes_that_are_no_picture(pool: DecoderPool, data: bytes, reason: str) -> None:
    pool.submit("s", Codec.JPEG, data, True, 0)
    good = jpeg(np.full((240, 320), 9, np.uint8))
    pool.submit("s", Codec.JPEG, good, True, SECOND)
    failed, fine = pool.drain(20)
    assert isinstance(failed, DecodeFailed) and reason in failed.reason and not failed.restarted
    assert isinstance(fine, DecodedPictures) and len(fine.frames) == 1


def jpeg_bomb() -> bytes:
    """A small picture whose header claims 65535x65535 pixels."""
    data = bytearray(jpeg(np.full((16, 16), 9, np.uint8)))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    return bytes(data)


def test_picture_bombs_are_refused_by_their_header(pool: DecoderPool) -> None:
    pool.submit("jpeg", Codec.JPEG, jpeg_bomb(), True, 0)
    wide = encode_h264([np.zeros((64, 4224), np.uint8)], 10, 10)
    pool.submit("h264", Codec.H264, wide[0].data, True, 0)
    reasons = [failed.reason for failed in failures(pool.drain(20))]
    assert "65535x65535" in reasons[0]
    assert "4224x64" in reasons[1]


def camera_pictures(count: int) -> list[np.ndarray[Any, Any]]:
    pictures = []
    for index in range(count):
        picture = np.tile(np.linspace(40, 200, 640, dtype=np.uint8), (360, 1))
        cv2.circle(picture, (100 + 6 * index, 180), 30, 255, -1)
        pictures.append(picture)
    return pictures


def test_camera_features_follow_what_moves(pool: DecoderPool) -> None:
    units = encode_h264(camera_pictures(60), 30, 30)
    results = submit_all(pool, "m/camera", units, role="camera")
    assert failures(results) == []
    found = [f for result in results if isinstance(result, DecodedPictures) for f in result.frames]
    assert 9 <= len(found) <= 11
    with_patches = [frame for frame in found if frame.patches is not None]
    assert len(with_patches) == 2 and with_patches[0].patches is not None
    assert with_patches[0].patches.shape == (32, 16, 16)
    motion = found[5].volume[1].astype(np.float32)
    row, column = np.unravel_index(int(motion.argmax()), motion.shape)
    x = 100 + 6 * round(found[5].timestamp_ns * 30 / SECOND)
    assert row in (3, 4, 5) and abs(int(column) - x / 40) <= 2


def sound_blocks(codec: str, rate_hz: int, channels: int) -> tuple[list[bytes], np.ndarray[Any, Any]]:
    layout = "stereo" if channels == 2 else "mono"
    encoder = av.CodecContext.create(codec, "w")
    assert isinstance(encoder, av.AudioCodecContext)
    encoder.sample_rate, encoder.layout, encoder.format = rate_hz, layout, "s16"
    encoder.open()
    count = encoder.frame_size
    tone = (8000 * np.sin(np.arange(10 * count * channels) / 9)).astype(np.int16)
    blocks = []
    for index in range(10):
        part = tone[index * count * channels : (index + 1) * count * channels]
        frame = av.AudioFrame.from_ndarray(part[None, :], format="s16", layout=layout)
        frame.sample_rate = rate_hz
        blocks += [bytes(packet) for packet in encoder.encode(frame)]
    blocks += [bytes(packet) for packet in encoder.encode(None) if packet.size]
    return blocks, tone.reshape(-1, channels)


@pytest.mark.parametrize("channels", [1, 2])
def test_flac_blocks_are_exact(pool: DecoderPool, channels: int) -> None:
    blocks, tone = sound_blocks("flac", 16_000, channels)
    for index, block in enumerate(blocks):
        pool.submit("m/mic", Codec.FLAC, block, False, index * SECOND // 50, channels=channels)
    results = pool.drain(20)
    sounds = [result for result in results if isinstance(result, DecodedSound)]
    assert len(sounds) == len(blocks) and {sound.rate_hz for sound in sounds} == {16_000}
    assert np.array_equal(np.concatenate([sound.samples for sound in sounds]), tone)


@pytest.mark.parametrize("channels", [1, 2])
def test_opus_blocks_come_at_48_khz(pool: DecoderPool, channels: int) -> None:
    blocks, tone = sound_blocks("libopus", 48_000, channels)
    for index, block in enumerate(blocks):
        pool.submit("m/mic", Codec.OPUS, block, False, index * SECOND // 50, channels=channels)
    sounds = [result for result in pool.drain(20) if isinstance(result, DecodedSound)]
    assert [sound.samples.shape for sound in sounds] == [(960, channels)] * len(blocks)
    assert {sound.rate_hz for sound in sounds} == {48_000}
    loudness = np.abs(np.concatenate([s.samples for s in sounds[2:-1]]).astype(np.float64)).mean()
    assert loudness == pytest.approx(np.abs(tone.astype(np.float64)).mean(), rel=0.1)


def test_whole_flac_file_in_a_block(pool: DecoderPool, tmp_path: Path) -> None:
    import soundfile

    tone = (8000 * np.sin(np.arange(1600) / 9)).astype(np.int16)
    soundfile.write(tmp_path / "block.flac", tone, 16_000, subtype="PCM_16")
    pool.submit("m", Codec.FLAC, (tmp_path / "block.flac").read_bytes(), False, 0)
    (sound,) = pool.drain(20)
    assert isinstance(sound, DecodedSound) and np.array_equal(sound.samples[:, 0], tone)


def test_damaged_sound_costs_its_own_block(pool: DecoderPool) -> None:
    blocks, _ = sound_blocks("flac", 16_000, 1)
    damaged = blocks[3][:20] + bytes(8) + blocks[3][28:]
    for block in [*blocks[:3], damaged, b"", b"RIFF", *blocks[4:]]:
        pool.submit("m", Codec.FLAC, block, False, 0)
    results = pool.drain(20)
    assert [isinstance(result, DecodeFailed) for result in results] == [False] * 3 + [True] * 3 + [False] * 6
    pool.submit("m", Codec.OPUS, b"", False, 0)
    pool.submit("m", Codec.OPUS, b"\x08" * 30, False, 0, channels=6)
    assert [failed.reason for failed in failures(pool.drain(20))] == [
        "block of sound is empty",
        "bare Opus packets carry one or two channels, not 6",
    ]


def damaged_packets(rng: np.random.Generator, units: list[Unit]) -> Iterator[tuple[Codec, Unit]]:
    """Real packets of every codec with bytes changed, cut off or put in, and stamps that jump."""
    flac, opus = sound_blocks("flac", 16_000, 1)[0], sound_blocks("libopus", 48_000, 1)[0]
    picture = jpeg(np.asarray(rng.integers(0, 255, (72, 128)), np.uint8))
    for index in range(240):
        unit = units[index % len(units)]
        for codec, data in (
            (Codec.H264, unit.data),
            (Codec.JPEG, picture),
            (Codec.FLAC, flac[index % len(flac)]),
            (Codec.OPUS, opus[index % len(opus)]),
        ):
            changed = bytearray(data)
            if rng.random() < 0.5:
                for position in rng.integers(0, len(changed), 4):
                    changed[position] = rng.integers(0, 256)
            if rng.random() < 0.2:
                del changed[int(rng.integers(0, len(changed))) :]
            if rng.random() < 0.2:
                changed += rng.bytes(20)
            stamp_ns = unit.timestamp_ns - int(rng.random() < 0.05) * int(rng.integers(0, 10 * SECOND))
            yield codec, Unit(bytes(changed), bool(unit.key_frame ^ (rng.random() < 0.05)), stamp_ns)


def test_damaged_packets_are_each_accounted_for(pool: DecoderPool, sample_units: list[Unit]) -> None:
    children = sorted(pool.child_pids())
    count = 0
    for codec, unit in damaged_packets(np.random.default_rng(11), sample_units):
        pool.submit(f"fuzz/{codec.name}", codec, unit.data, unit.key_frame, unit.timestamp_ns, count)
        count += 1
    results = pool.drain(120)
    assert sorted(result.meta for result in results) == list(range(count))
    assert all(failed.reason and not failed.restarted for failed in failures(results))
    assert len(failures(results)) > count // 10
    assert not children or sorted(pool.child_pids()) == children


def test_uncompressed_sound_is_a_mistake_of_the_caller(pool: DecoderPool) -> None:
    with pytest.raises(ValueError, match="not compressed"):
        pool.submit("m", Codec.PCM_S16LE, b"", False, 0)


def wait_for_child(pool: DecoderPool) -> int:
    pool.submit("warm", Codec.JPEG, b"", True, 0)
    pool.drain(20)
    (pid,) = pool.child_pids()
    return pid


def test_killed_in_the_middle_costs_one_packet(own_pool: DecoderPool, sample_units: list[Unit]) -> None:
    keys = [index for index, unit in enumerate(sample_units) if unit.key_frame]
    pid = wait_for_child(own_pool)
    submit_all(own_pool, "s", sample_units[: keys[1]])
    # Stopped first, so that the kill falls on a child with requests in hand.
    os.kill(pid, signal.SIGSTOP)
    for unit in sample_units[keys[1] :]:
        own_pool.submit("s", Codec.H264, unit.data, unit.key_frame, unit.timestamp_ns)
    # Only time tells that the pool's thread has sent them: nothing of it can be seen from outside.
    time.sleep(0.5)
    os.kill(pid, signal.SIGKILL)
    results = own_pool.drain(60)
    (failed,) = failures(results)
    assert failed.timestamp_ns == sample_units[keys[1]].timestamp_ns
    assert failed.restarted and "died" in failed.reason
    assert [r.timestamp_ns for r in results] == [unit.timestamp_ns for unit in sample_units[keys[1] :]]
    assert min(stamp for stamp, _, _ in frames(results)) == sample_units[keys[2]].timestamp_ns
    assert own_pool.child_pids() != [pid]


def test_killed_between_packets_costs_none(own_pool: DecoderPool, sample_units: list[Unit]) -> None:
    pid = wait_for_child(own_pool)
    os.kill(pid, signal.SIGKILL)
    while own_pool.child_pids():
        time.sleep(0.01)
    assert failures(submit_all(own_pool, "s", sample_units[:3])) == []


def test_a_hanging_child_is_killed_and_others_go_on(sample_units: list[Unit]) -> None:
    with DecoderPool(DecodeSettings(request_ms=1500)) as pool:
        pid = wait_for_child(pool)
        os.kill(pid, signal.SIGSTOP)
        pool.submit("a", Codec.H264, sample_units[0].data, True, 0)
        pool.submit("b", Codec.H264, sample_units[0].data, True, 0)
        blocks, _ = sound_blocks("flac", 16_000, 1)
        pool.submit("mic", Codec.FLAC, blocks[0], False, 0)
        results = pool.drain(60)
        by_stream = {result.stream: result for result in results}
        assert isinstance(by_stream["mic"], DecodedSound)
        hung = by_stream["a"]
        assert isinstance(hung, DecodeFailed) and hung.restarted and "1500 ms" in hung.reason
        assert isinstance(by_stream["b"], DecodedPictures) and len(by_stream["b"].frames) == 1


def test_a_stream_that_kills_its_decoder_is_refused_for_a_while(sample_units: list[Unit]) -> None:
    with DecoderPool(DecodeSettings(crash_limit=2, request_ms=2000)) as pool:
        for _ in range(2):
            os.kill(wait_for_child(pool), signal.SIGSTOP)
            pool.submit("evil", Codec.H264, sample_units[0].data, True, 0)
            assert failures(pool.drain(30))[0].restarted
        pool.submit("evil", Codec.H264, sample_units[0].data, True, 0)
        pool.submit("good", Codec.H264, sample_units[0].data, True, 0)
        refused, fine = pool.drain(30)
        assert isinstance(refused, DecodeFailed) and "refused" in refused.reason
        assert isinstance(fine, DecodedPictures) and fine.frames


def test_too_many_waiting_packets_are_shed_in_order() -> None:
    with DecoderPool(DecodeSettings(max_waiting=3)) as pool:
        pid = wait_for_child(pool)
        os.kill(pid, signal.SIGSTOP)
        for index in range(6):
            pool.submit("s", Codec.JPEG, b"", True, index)
        os.kill(pid, signal.SIGCONT)
        results = failures(pool.drain(30))
        assert [failed.timestamp_ns for failed in results] == list(range(6))
        assert [failed.shed for failed in results] == [False] * 3 + [True] * 3


def test_memory_limit_holds() -> None:
    with DecoderPool(DecodeSettings(memory_mb=16, request_ms=20_000)) as pool:
        units = encode_h264([np.zeros((2304, 4096), np.uint8)], 10, 10)
        pool.submit("large", Codec.H264, units[0].data, True, 0)
        pool.submit("small", Codec.JPEG, jpeg(np.full((240, 320), 9, np.uint8)), True, 0)
        large, small = pool.drain(60)
        assert isinstance(large, DecodeFailed)
        assert isinstance(small, DecodedPictures) and small.frames


def test_children_end_with_the_pool_and_with_the_parent(tmp_path: Path) -> None:
    with DecoderPool(DecodeSettings()) as pool:
        pid = wait_for_child(pool)
    assert not Path(f"/proc/{pid}").exists()

    script = (
        "import time\n"
        "from contracts.packet import Codec\n"
        "from operators.media.client import DecoderPool, DecodeSettings\n"
        "pool = DecoderPool(DecodeSettings())\n"
        "pool.submit('s', Codec.JPEG, b'', True, 0)\n"
        "pool.drain(20)\n"
        "print(pool.child_pids()[0], flush=True)\n"
        "time.sleep(60)\n"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, signal.SIGSTOP)
        parent.kill()
    deadline = time.monotonic() + 5
    while _running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(child)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python"], ids=["ends", "cannot be started"])
def test_a_child_that_does_not_come_up_fails_its_packets(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with DecoderPool(DecodeSettings()) as pool:
        for index in range(40):
            pool.submit("s", Codec.JPEG, b"", True, index)
        reasons = {failed.reason for failed in failures(pool.drain(30))}
    assert reasons == {"the decoder process cannot be started"}


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one child"):
        DecodeSettings(sound_children=0)
    with pytest.raises(ValueError, match="memory_mb"):
        DecodeSettings(memory_mb=1)
