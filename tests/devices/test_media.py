"""Sound, video and pictures of files made here: every sample and picture comes out once, at its time."""

import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from contracts.messages import EndOfStream
from contracts.packet import Codec, Modality, Packet, decode, encode
from devices.inputs import InputSettings, open_inputs
from devices.media import AudioCodecName, SoundSettings, probe
from devices.pictures import PictureSource, is_picture_folder
from devices.streams import InputError, MediaPiece, Source, StreamMessage
from devices.video import VideoSettings

Floats = npt.NDArray[np.float32]
MS = 1_000_000


def tone(seconds: float, rate_hz: int, channels: int = 1) -> Floats:
    """A chirp, so that no two stretches are alike; shape (samples, channels)."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    parts = [0.4 * np.sin(2 * np.pi * (200 + 150 * t + 40 * channel) * t) for channel in range(channels)]
    return np.stack(parts, axis=1).astype(np.float32)


def write_media(
    path: Path,
    *,
    sound: str | None = None,
    sound_start_s: float = 0.0,
    layout: str = "mono",
    video: str | None = None,
    size: tuple[int, int] = (320, 240),
    stamps_s: list[float] | None = None,
    gop: int = 25,
    b_frames: int = 0,
    seconds: float = 2.0,
    sweep: bool = False,
) -> Path:
    """A file with a chirp at 48 kHz and pictures at ``stamps_s`` (25 a second).

    Each picture is brighter than the one before, or with ``sweep`` brightens from left to right.
    """
    with av.open(str(path), "w") as container:
        packets: list[Any] = []
        if video is not None:
            picture: Any = container.add_stream(video, rate=25)
            picture.width, picture.height, picture.pix_fmt = (
                *size,
                "yuvj420p" if video == "mjpeg" else "yuv420p",
            )
            ticks = 25 if path.suffix == ".avi" else 1000
            picture.codec_context.time_base = Fraction(1, ticks)
            picture.gop_size, picture.max_b_frames = gop, b_frames
            for number, stamp_s in enumerate(stamps_s or [n / 25 for n in range(round(seconds * 25))]):
                pixels = np.full((size[1], size[0], 3), 20 + number * 3 % 200, np.uint8)
                if sweep:
                    pixels[:] = np.linspace(0, 255, size[0]).astype(np.uint8)[:, np.newaxis]
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                frame.pts, frame.time_base = round(stamp_s * ticks), Fraction(1, ticks)
                packets.extend(picture.encode(frame))
            packets.extend(picture.encode(None))
        if sound is not None:
            stream: Any = container.add_stream(sound, rate=48_000, layout=layout)
            samples = tone(seconds, 48_000, stream.layout.nb_channels)
            whole = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout=layout)
            whole.sample_rate, whole.time_base = 48_000, Fraction(1, 48_000)
            whole.pts = round(sound_start_s * 48_000)
            resampler = av.AudioResampler(
                stream.codec_context.format, layout, 48_000, stream.frame_size or 1024
            )
            for part in [*resampler.resample(whole), *resampler.resample(None)]:
                packets.extend(stream.encode(part))
            packets.extend(stream.encode(None))
        for packet in sorted(packets, key=lambda packet: (packet.dts or 0) * packet.time_base):
            container.mux(packet)
    return path


def messages_of(path: Path, modality: Modality, settings: InputSettings | None = None) -> list[Packet]:
    """Packets of one stream, checked to be as the contract wants them."""
    room = open_inputs([path], settings=settings)
    stream = next(stream for stream in room.streams if stream.modality is modality)
    *packets, end = list[StreamMessage](stream.packets())
    assert (
        isinstance(end, EndOfStream)
        and end.modality == modality.name.lower()
        and end.sequence == len(packets)
    )
    found: list[Packet] = []
    for number, packet in enumerate(packets):
        assert isinstance(packet, Packet) and packet.sequence == number
        found.append(decode(encode(packet)))
    assert found, "no packet at all"
    assert end.timestamp_ns == found[-1].timestamp_ns + found[-1].duration_ns
    assert all(a.timestamp_ns < b.timestamp_ns for a, b in pairwise(found))
    return found


def samples_of(packets: list[Packet]) -> npt.NDArray[np.int16]:
    return np.concatenate([np.frombuffer(p.payload, "<i2").reshape(-1, p.channels) for p in packets])


def brightness_of(packets: list[Packet]) -> list[float]:
    """Mean of each picture, decoded as a reader would that joined at the first packet."""
    if packets[0].codec is Codec.JPEG:
        pictures = [cv2.imdecode(np.frombuffer(p.payload, np.uint8), cv2.IMREAD_GRAYSCALE) for p in packets]
        return [float(picture.mean()) for picture in pictures if picture is not None]
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, av.VideoCodecContext)
    frames: list[av.VideoFrame] = []
    for packet in packets:
        frames += decoder.decode(av.Packet(bytes(packet.payload)))
    frames += decoder.decode(None)
    return [float(frame.to_ndarray(format="gray").mean()) for frame in frames]


def slices_of(unit: bytes) -> list[bytes]:
    """Slices of an access unit as MP4 stores them, each behind its length; what else it holds is left out."""
    parts: list[bytes] = []
    while unit:
        size = int.from_bytes(unit[:4], "big")
        parts.append(unit[4 : 4 + size])
        unit = unit[4 + size :]
    return [part for part in parts if part[0] & 0x1F in (1, 5)]


# --- sound --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_pcm_keeps_every_sample_at_its_own_rate(tmp_path: Path, rate_hz: int, channels: int) -> None:
    path = tmp_path / "a.wav"
    written = (tone(1.01, rate_hz, channels) * 32767).astype(np.int16)
    soundfile.write(path, written, rate_hz, subtype="PCM_16")
    packets = messages_of(path, Modality.AUDIO)
    assert np.array_equal(samples_of(packets), written)
    assert {(p.rate_hz, p.channels, p.codec) for p in packets} == {(rate_hz, channels, Codec.PCM_S16LE)}
    block = rate_hz * 20 // 1000
    assert [p.timestamp_ns for p in packets] == [n * block * 10**9 // rate_hz for n in range(len(packets))]
    assert all(19 * MS <= p.duration_ns <= 20 * MS for p in packets[:-1])


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW"])
def test_sample_formats_become_sixteen_bits(tmp_path: Path, subtype: str) -> None:
    path, signal = tmp_path / "a.wav", tone(0.5, 16_000, 2)
    soundfile.write(path, signal, 16_000, subtype=subtype)
    got = samples_of(messages_of(path, Modality.AUDIO)) / 32768
    assert got.shape == signal.shape
    assert np.abs(got - signal).max() < (0.02 if subtype in {"PCM_U8", "ULAW"} else 0.0001)


@pytest.mark.parametrize(("rate_hz", "expected_hz"), [(96_000, 48_000), (64_000, 48_000), (6_000, 8_000)])
def test_other_rates_are_resampled_in_place(tmp_path: Path, rate_hz: int, expected_hz: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1.0, rate_hz), rate_hz)
    packets = messages_of(path, Modality.AUDIO)
    got, wanted = samples_of(packets)[:, 0] / 32768, tone(1.0, expected_hz)[:, 0]
    assert {p.rate_hz for p in packets} == {expected_hz} and len(got) == len(wanted)
    inner = slice(200, -200)
    assert np.abs(got[inner] - wanted[inner]).max() < 0.01


def test_microphones_stay_apart_and_cinema_sound_becomes_stereo(tmp_path: Path) -> None:
    for channels in (4, 6, 8, 12):
        path = tmp_path / f"mics{channels}.wav"
        soundfile.write(path, tone(0.2, 16_000, channels), 16_000)
        packets = messages_of(path, Modality.AUDIO)
        assert {p.channels for p in packets} == {min(channels, 8)}
        wanted = tone(0.2, 16_000, channels)[:, : min(channels, 8)]
        assert np.abs(samples_of(packets) / 32768 - wanted).max() < 0.0001
    film = write_media(tmp_path / "film.m4a", sound="aac", layout="5.1")
    assert {p.channels for p in messages_of(film, Modality.AUDIO)} == {2}


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp3", "libmp3lame"), ("a.m4a", "aac"), ("a.opus", "libopus"), ("a.flac", "flac"), ("a.mka", "aac"),
     ("a.ogg", "libopus"), ("a.webm", "libopus"), ("a.ts", "aac"), ("a.avi", "pcm_s16le"), ("a.mov", "aac")],
)  # fmt: skip
def test_containers_and_codecs_keep_time(tmp_path: Path, name: str, codec: str) -> None:
    path = write_media(tmp_path / name, sound=codec)
    packets = messages_of(path, Modality.AUDIO)
    got, wanted = samples_of(packets)[:, 0] / 32768, tone(2.0, 48_000)[:, 0]
    assert packets[0].timestamp_ns == 0
    assert abs(len(got) - len(wanted)) <= 2400  # a codec's last frame is padded
    # Encoders without a place for their delay (ADTS in a transport stream) shift by some milliseconds.
    delays = range(-100, 2200, 4)
    errors = [float(np.abs(got[9_600 + d : 19_200 + d] - wanted[9_600:19_200]).mean()) for d in delays]
    assert min(errors) < 0.08
    assert abs(delays[int(np.argmin(errors))]) < 48 * (50 if name.endswith((".ts", ".avi")) else 3)


@pytest.mark.parametrize("coding", ["flac", "opus"])
def test_compressed_blocks_decode_to_the_sound_at_their_stamps(
    tmp_path: Path, coding: AudioCodecName
) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1.0, 16_000), 16_000)
    packets = messages_of(path, Modality.AUDIO, InputSettings(sound=SoundSettings(coding)))
    decoder = av.CodecContext.create(coding, "r")
    assert isinstance(decoder, av.AudioCodecContext)
    if coding == "opus":
        decoder.sample_rate, decoder.layout = 48_000, "mono"
    wanted, rate = tone(1.0, 16_000)[:, 0], 48_000 if coding == "opus" else 16_000
    for packet in packets[:-1]:
        (frame,) = decoder.decode(av.Packet(bytes(packet.payload)))
        block = frame.to_ndarray().reshape(-1)
        assert frame.sample_rate == rate and abs(frame.samples * 10**9 // rate - packet.duration_ns) <= 1
        if 10 <= packet.sequence < 40:
            loud = block[:: rate // 16_000] / (1 if block.dtype == np.float32 else 32768)
            begin = round(packet.timestamp_ns * 16_000 / 10**9)
            assert np.abs(loud - wanted[begin : begin + len(loud)]).mean() < (
                0.001 if coding == "flac" else 0.1
            )


def test_sound_that_starts_late_keeps_its_offset(tmp_path: Path) -> None:
    for name in ("late.mp4", "late.mkv", "late.mov"):
        path = write_media(tmp_path / name, sound="aac", sound_start_s=1.5, video="libx264", seconds=3)
        packets = messages_of(path, Modality.AUDIO)
        assert abs(packets[0].timestamp_ns - 1_500 * MS) < 30 * MS
        assert messages_of(path, Modality.VIDEO)[0].timestamp_ns == 0


def test_a_pause_in_the_recording_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "paused.mkv"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for start in (0, 160_000):
            for first in range(0, 16_000, 1_000):
                block = np.full((1, 1_000), 1 + start // 1_000, np.int16)
                frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = 16_000, start + first, Fraction(1, 16_000)
                container.mux(stream.encode(frame))
    packets = messages_of(path, Modality.AUDIO)
    stamps = [p.timestamp_ns for p in packets]
    assert stamps[49:52] == [980 * MS, 10_000 * MS, 10_020 * MS]
    assert len(samples_of(packets)) == 32_000


# --- video --------------------------------------------------------------------------------------


def test_fit_h264_is_handed_through_bit_for_bit(tmp_path: Path) -> None:
    path = write_media(tmp_path / "v.mp4", video="libx264", gop=25)
    packets = messages_of(path, Modality.VIDEO)
    assert [p.timestamp_ns for p in packets] == [n * 40 * MS for n in range(50)]
    assert [p.sequence for p in packets if p.key_frame] == [0, 25]
    assert all(bytes(p.payload[:4]) == b"\0\0\0\1" for p in packets)
    with av.open(str(path)) as container:
        written = [slices_of(bytes(packet)) for packet in container.demux(video=0) if packet.size]
    for packet, slices in zip(packets, written, strict=True):
        assert re.split(rb"\x00?\x00\x00\x01", bytes(packet.payload))[-len(slices) :] == slices
    assert {(p.width, p.height, p.rate_hz, p.codec) for p in packets} == {(320, 240, 25, Codec.H264)}
    # A reader that joins at the second key frame sees the rest.
    assert len(brightness_of(packets[25:])) == 25


@pytest.mark.parametrize(
    ("gop", "b_frames", "name"), [(250, 0, "v.mp4"), (25, 2, "v.mp4"), (25, 2, "v.mkv"), (250, 2, "v.avi")]
)
def test_other_h264_is_coded_anew(tmp_path: Path, gop: int, b_frames: int, name: str) -> None:
    path = write_media(tmp_path / name, video="libx264", gop=gop, b_frames=b_frames, seconds=5)
    packets = messages_of(path, Modality.VIDEO)
    assert len(packets) == 125
    keys = [p.timestamp_ns for p in packets if p.key_frame]
    assert len(keys) >= 3
    assert all(b - a <= 2_000 * MS for a, b in zip(keys, [*keys[1:], 5_000 * MS], strict=True))
    shown = brightness_of(packets)
    assert len(shown) == 125 and shown == sorted(shown[:60]) + shown[60:]


@pytest.mark.parametrize("coding", ["h264", "jpeg"])
def test_variable_frame_rate_and_still_screens(tmp_path: Path, coding: Literal["h264", "jpeg"]) -> None:
    stamps = [0.0, 0.1, 0.15, 4.2, 4.24, 9.0]
    path = write_media(tmp_path / "vfr.mkv", video="libx264", stamps_s=stamps, gop=250)
    packets = messages_of(path, Modality.VIDEO, InputSettings(video=VideoSettings(coding)))
    at = [p.timestamp_ns // MS for p in packets]
    assert {round(stamp * 1000) for stamp in stamps} <= set(at)
    # A picture that stays is sent again, so that nobody takes a still screen for a dead camera.
    assert all(b - a <= 1_100 for a, b in pairwise(at))
    shown = dict(zip(at, brightness_of(packets), strict=True))
    assert abs(shown[150] - shown[at[at.index(4200) - 1]]) < 2 < abs(shown[150] - shown[4200])
    keys = [p.timestamp_ns for p in packets if p.key_frame]
    assert all(b - a <= 2_000 * MS for a, b in pairwise(keys))


def test_large_fast_and_portrait_video_is_made_fit(tmp_path: Path) -> None:
    big = write_media(tmp_path / "big.mp4", video="libx264", size=(3840, 2160), stamps_s=[0.0, 0.5])
    assert {(p.width, p.height) for p in messages_of(big, Modality.VIDEO)} == {(1920, 1080)}
    tall = write_media(tmp_path / "tall.mp4", video="libx264", size=(1080, 1920), stamps_s=[0.0, 0.5])
    assert {(p.width, p.height) for p in messages_of(tall, Modality.VIDEO)} == {(1080, 1920)}
    fast = write_media(tmp_path / "fast.mp4", video="libx264", stamps_s=[n / 60 for n in range(120)])
    assert 55 <= len(messages_of(fast, Modality.VIDEO)) <= 61
    odd = write_media(tmp_path / "odd.avi", video="mjpeg", size=(322, 241), seconds=0.2)
    assert {(p.width, p.height) for p in messages_of(odd, Modality.VIDEO)} == {(322, 240)}


def test_a_telephone_held_upright(tmp_path: Path) -> None:
    path = write_media(
        tmp_path / "phone.mp4", video="mjpeg", size=(320, 240), stamps_s=[0.0, 0.5], sweep=True
    )
    data = bytearray(path.read_bytes())
    # The matrix of the track header: shown a quarter turn clockwise.
    matrix = data.index(b"tkhd") + 4 + 40
    quarter = (0, 1 << 16, 0, -1 << 16, 0, 0, 240 << 16, 0, 1 << 30)
    data[matrix : matrix + 36] = b"".join(value.to_bytes(4, "big", signed=True) for value in quarter)
    path.write_bytes(data)
    packets = messages_of(path, Modality.VIDEO, InputSettings(video=VideoSettings("jpeg")))
    assert {(p.width, p.height) for p in packets} == {(240, 320)}
    picture = cv2.imdecode(np.frombuffer(packets[0].payload, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    # What was dark on the left is dark at the top.
    assert picture[:20].mean() < 40 and picture[-20:].mean() > 200 and abs(picture[:, :20].mean() - 127) < 20


def test_one_picture_a_second_and_moving_gifs(tmp_path: Path) -> None:
    slow = write_media(tmp_path / "slow.mp4", video="libx264", stamps_s=[float(n) for n in range(6)], gop=1)
    assert [p.timestamp_ns // MS for p in messages_of(slow, Modality.VIDEO)][:3] == [0, 1_000, 2_000]
    path = tmp_path / "a.gif"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("gif", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb8"
        for number in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), number * 20, np.uint8), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame.reformat(format="rgb8")))
        container.mux(stream.encode(None))
    packets = messages_of(path, Modality.VIDEO)
    assert len(packets) == 10 and packets[5].timestamp_ns == 1_000 * MS


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["none.wav", "junk.mp4", "zero.mkv", "half.mp4", "list.m3u8", "a.docx", "words.txt"]
)
def test_what_is_no_recording_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    noise = np.random.default_rng(7).bytes(50_000)
    if name == "none.wav":
        soundfile.write(path, np.zeros((0, 1), np.float32), 16_000)
    elif name == "half.mp4":  # its index stands at the end, which is missing
        whole = write_media(tmp_path / "whole.mp4", video="libx264").read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif name == "list.m3u8":
        path.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.ts\n#EXT-X-ENDLIST\n")
    else:
        path.write_bytes({"zero.mkv": b"", "words.txt": b"Dear all,\n" * 20}.get(name, noise))
    what = {
        "zero.mkv": "empty file",
        "list.m3u8": "not a sound, video, image folder or transcript",
        "a.docx": "not a sound, video, image folder or transcript",
        "words.txt": "not a sound, video, image folder or transcript",
    }.get(name, "damaged, cut short or empty: neither sound nor video can be read from it")
    with pytest.raises(InputError) as failure:
        open_inputs([path])
    assert str(failure.value) == f"{path}: {what}"


@pytest.mark.parametrize(
    ("name", "sound"), [("a.flac", "flac"), ("v.mkv", "aac"), ("v.ts", "aac"), ("a.mp3", "libmp3lame")]
)
def test_a_file_cut_in_the_middle_yields_its_beginning(tmp_path: Path, name: str, sound: str) -> None:
    video = "libx264" if name.startswith("v") else None
    whole = write_media(tmp_path / name, sound=sound, video=video, seconds=8).read_bytes()
    path = tmp_path / ("cut-" + name)
    path.write_bytes(whole[: len(whole) // 2])
    room = open_inputs([path])
    for stream in room.streams:
        *packets, end = stream.packets()
        assert packets and end.timestamp_ns > 1_500 * MS
    if name in {"a.flac", "v.mkv"}:  # the others do not say how long they were meant to be
        assert any("cut short" in str(problem) for problem in room.problems)


@pytest.mark.parametrize(
    ("name", "sound"), [("a.flac", "flac"), ("v.mkv", "aac"), ("v.mp4", "aac"), ("v.ts", "aac")]
)
def test_damage_in_the_middle_costs_what_is_damaged(tmp_path: Path, name: str, sound: str) -> None:
    video = "libx264" if name.startswith("v") else None
    data = bytearray(write_media(tmp_path / name, sound=sound, video=video, seconds=8, gop=10).read_bytes())
    middle = len(data) // 2
    data[middle : middle + 200] = np.random.default_rng(3).bytes(200)
    path = tmp_path / ("hurt-" + name)
    path.write_bytes(data)
    room = open_inputs([path])
    for stream in room.streams:
        *packets, end = stream.packets()
        assert packets[0].timestamp_ns < 100 * MS
        assert end.timestamp_ns > 7_000 * MS, f"{stream.name} ends at {end.timestamp_ns / 1e9} s"


def test_a_cover_picture_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "cover.mp3"
    write_media(path, sound="libmp3lame")
    assert probe(path).picture is None
    assert [stream.name for stream in open_inputs([path]).streams] == ["cover/audio"]


# --- pictures -----------------------------------------------------------------------------------


def draw(path: Path, level: int, size: tuple[int, int] = (640, 360)) -> None:
    assert cv2.imwrite(str(path), np.full((size[1], size[0], 3), level, np.uint8))


def slide_changes(source: Source, notes: list[str]) -> list[tuple[float, int]]:
    """Second and brightness of each slide that comes up."""
    changes: list[tuple[float, int]] = []
    for piece in source.pieces(notes.append):
        assert isinstance(piece, MediaPiece) and piece.key_frame
        picture = cv2.imdecode(np.frombuffer(piece.payload, np.uint8), cv2.IMREAD_GRAYSCALE)
        assert picture is not None and picture.shape == (piece.height, piece.width)
        level = round(float(picture.mean()) / 10) * 10
        if not changes or changes[-1][1] != level:
            changes.append((piece.offset_ns / 1e9, level))
    return changes


@pytest.mark.parametrize(
    ("names", "starts"),
    [
        (["deck_00-00-05.png", "deck_00-01-10.png", "deck_01-00-00.5.png"], [5.0, 70.0, 3600.5]),
        (["0.5s.png", "12s.png", "90.25s.png"], [0.5, 12.0, 90.25]),
        (["Shot 2024-05-06 at 10.15.00.png", "Shot 2024-05-06 at 10.16.30.png", "Shot 2024-05-06 at 11.00.00.png"],
         [0.0, 90.0, 2700.0]),
    ],
)  # fmt: skip
def test_slides_come_up_when_their_names_say(tmp_path: Path, names: list[str], starts: list[float]) -> None:
    for number, name in enumerate(names):
        draw(tmp_path / name, 50 + 50 * number)
    notes: list[str] = []
    source = PictureSource.of(tmp_path, VideoSettings(), notes.append)
    assert slide_changes(source, notes) == [(start, 50 + 50 * n) for n, start in enumerate(starts)]
    assert notes == []


def test_slides_without_times_share_the_meeting_by_number(tmp_path: Path) -> None:
    folder = tmp_path / "deck"
    folder.mkdir()
    for number in (10, 2, 1):
        draw(folder / f"slide{number}.png", number * 10)
    sound = tmp_path / "talk.wav"
    soundfile.write(sound, tone(6.0, 16_000), 16_000)
    room = open_inputs([sound, folder])
    source = room.streams[1].source
    assert slide_changes(source, []) == [(0.0, 10), (2.0, 20), (4.0, 100)]
    assert [p.in_minutes for p in room.problems] == [
        "deck: its slides carry no times; they are taken to have been shown for equally long"
    ]
    assert room.control[0].slide_devices == ("deck",)  # type: ignore[union-attr]


def test_pictures_large_damaged_and_of_other_kinds(tmp_path: Path) -> None:
    draw(tmp_path / "1s.jpg", 100, (4000, 3000))
    (tmp_path / "2s.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    (tmp_path / "3s.png").write_bytes(b"")
    draw(tmp_path / "4s.bmp", 200)
    (tmp_path / "Thumbs.db").write_bytes(b"x")
    assert is_picture_folder(tmp_path)
    notes: list[str] = []
    source = PictureSource.of(tmp_path, VideoSettings(), notes.append)
    assert slide_changes(source, notes) == [(1.0, 100), (4.0, 200)]
    assert notes == ["2s.png: damaged or no picture", "3s.png: damaged or no picture"]
    first = next(source.pieces(notes.append))
    assert (first.width, first.height) == (1440, 1080)
