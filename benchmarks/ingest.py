"""Media packets a second and core through reading, checking, clock and placing on the timeline.

Sound as it is (PCM) needs nothing else, so its figure is that of the flow's own steps. FLAC, Opus and H.264
are decoded in child processes; their figures count the processor time of these too.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from contracts.messages import MeetingStarted
from contracts.packet import ClockKind, Codec, Modality, Packet, encode, payload_array
from contracts.timeline import ClockRecord
from contracts.topics import AUDIO, CONTROL, VIDEO, Topic, TopicNames
from devices.sound_blocks import coder_for
from devices.streams import MediaPiece
from devices.video import VideoSettings
from operators.broker.source import Received
from operators.clock import Clock, ClockSettings, Timed
from operators.ingest import Ingest, IngestSettings
from operators.media.client import DecodedSound, DecodeFailed, DecoderPool, DecodeSettings, Role
from operators.timeline import to_timeline_ns

from .report import print_report, progress
from .resources import usage_of
from .rooms import SAMPLE
from .slides import frame_at, still_units

RATE_HZ: Final = 16_000
BLOCK_NS: Final = 20_000_000
BATCH: Final = 256
"""Messages of one activation of a step; the source hands on what a fetch gave."""
_NAMES: Final = TopicNames(shards=1)
_ARRIVAL_NS: Final = 1_790_000_000 * 10**9
_WAITING: Final = 1_000


def values_of(
    topic: Topic, modality: Modality, pieces: Sequence[MediaPiece], *, meetings: int
) -> list[Received]:
    """Messages of one stream a meeting, in turn, as the source hands them on."""
    values: list[Received] = []
    for number, piece in enumerate(pieces):
        for meeting in range(meetings):
            packet = Packet(
                f"meeting-{meeting}", "device", modality, piece.codec, ClockKind.UTC, 1, number,
                _ARRIVAL_NS + piece.offset_ns, piece.duration_ns, piece.payload, piece.rate_hz, piece.width,
                piece.height, piece.channels, piece.key_frame,
            )  # fmt: skip
            place, arrival_ns = len(values), _ARRIVAL_NS + piece.offset_ns + piece.duration_ns
            values.append(Received(topic.name, 0, place, arrival_ns, True, encode(packet)))
    return values


class Chain:
    """Ingest and clock as the flow runs them, then each packet's place on the timeline."""

    def __init__(self, meetings: int) -> None:
        self._ingest = Ingest(IngestSettings(), _NAMES)
        self._clock = Clock(ClockSettings())
        self._records: dict[tuple[str, str], ClockRecord] = {}
        for meeting in range(meetings):
            started = MeetingStarted(meeting_id=f"meeting-{meeting}", start_ns=_ARRIVAL_NS + 37 * 10**9)
            self.placed([Received(CONTROL.name, 0, meeting, _ARRIVAL_NS, True, started.to_bytes())])

    def placed(self, batch: list[Received]) -> list[tuple[int, Packet]]:
        """Timeline time of each packet that came through."""
        found = []
        for value in self._clock.on_batch(self._ingest.on_batch(list(batch))):
            if isinstance(value, ClockRecord):
                self._records[value.meeting_id, value.device] = value
            elif isinstance(value, Timed) and isinstance(value.arrival.body, Packet):
                packet = value.arrival.body
                record = self._records[packet.meeting_id, packet.device_id]
                found.append((to_timeline_ns(record, packet.timestamp_ns), packet))
        return found


def noise_blocks(seconds: int, codec: Codec, seed: int) -> list[MediaPiece]:
    """Blocks of 20 ms of quiet noise with a tone in it."""
    chance = np.random.default_rng(seed)
    at = np.arange(seconds * RATE_HZ)
    tone = 4000 * np.sin(2 * np.pi * 440 * at / RATE_HZ)
    samples = (tone + chance.normal(0, 300, len(at))).astype(np.int16)[:, None]
    size = RATE_HZ // 50
    return list(coder_for(codec, RATE_HZ, 1, size).blocks(0, samples))


def measure_pcm(*, seconds: int, meetings: int, seed: int) -> dict[str, Any]:
    """Packets a second and core of the flow's steps; samples are viewed, nothing is copied."""
    values = values_of(AUDIO, Modality.AUDIO, noise_blocks(seconds, Codec.PCM_S16LE, seed), meetings=meetings)
    chain, frames = Chain(meetings), 0
    begun = time.process_time()
    for first in range(0, len(values), BATCH):
        for _, packet in chain.placed(values[first : first + BATCH]):
            frames += len(payload_array(packet))
    cpu_s = time.process_time() - begun
    if frames != len(values) * RATE_HZ // 50:
        raise RuntimeError(f"{frames} samples of {len(values) * RATE_HZ // 50} came through")
    return {"packets_per_s_core": round(len(values) / cpu_s), "packets": len(values)}


def measure_decoded(
    topic: Topic, modality: Modality, pieces: Sequence[MediaPiece], settings: DecodeSettings, *,
    role: Role = "slides",
) -> dict[str, Any]:  # fmt: skip
    """Packets a second and core with decoding in a child."""
    values = values_of(topic, modality, pieces, meetings=1)
    chain, answers, pid = Chain(1), 0, os.getpid()
    with DecoderPool(settings) as pool:
        # The first packet waits until the child has loaded its libraries, which is no part of a packet's cost.
        for place_ns, packet in chain.placed(values[:1]):
            _submit(pool, packet, place_ns, role)
        answers += _taken(pool.drain(60))
        before = usage_of(pid).cpu_s
        for first in range(1, len(values), BATCH):
            for place_ns, packet in chain.placed(values[first : first + BATCH]):
                _submit(pool, packet, place_ns, role)
            while pool.waiting > _WAITING:
                time.sleep(0.005)
            answers += _taken(pool.collect())
        answers += _taken(pool.drain(300))
        cpu_s = max(usage_of(pid).cpu_s - before, 0.01)
    if answers != len(values):
        raise RuntimeError(f"{answers} of {len(values)} packets were answered")
    return {"packets_per_s_core": round(len(values) / cpu_s, 1), "packets": len(values)}


def _submit(pool: DecoderPool, packet: Packet, place_ns: int, role: Role) -> None:
    pool.submit(
        "m/device", packet.codec, packet.payload, packet.key_frame, place_ns, role=role, channels=packet.channels
    )  # fmt: skip


def _taken(results: Sequence[Any]) -> int:
    for result in results:
        if isinstance(result, DecodeFailed):
            raise RuntimeError(f"a good packet failed: {result.reason}")
        if isinstance(result, DecodedSound) and not len(result.samples):
            raise RuntimeError("a block came back empty")
    return len(results)


def moving_units(seconds: int, seed: int) -> list[MediaPiece]:
    """1080p30 of the sample's slide with light noise, as a camera or a capture card gives it."""
    picture: npt.NDArray[np.uint8] = frame_at(SAMPLE / "slides.mp4", 1.0)
    group = still_units(picture, noise=2, seed=seed)
    length_ns = sum(unit.duration_ns for unit in group)
    return [
        MediaPiece(
            unit.offset_ns + number * length_ns, unit.duration_ns, unit.codec, unit.payload, unit.rate_hz,
            unit.width, unit.height, key_frame=unit.key_frame,
        )
        for number in range(max(1, seconds // 2))
        for unit in group
    ]  # fmt: skip


def run(*, seconds: int, meetings: int, seed: int) -> dict[str, Any]:
    """All figures; ``seconds`` of sound a meeting, half as many of video."""
    decode = DecodeSettings()
    pcm = [measure_pcm(seconds=seconds, meetings=meetings, seed=seed) for _ in range(3)]
    best = max(pcm, key=lambda each: int(each["packets_per_s_core"]))
    figures: dict[str, Any] = {
        "pcm_packets_per_s_core": best["packets_per_s_core"],
        "pcm": best | {"runs": [each["packets_per_s_core"] for each in pcm], "batch": BATCH, "meetings": meetings},
    }  # fmt: skip
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "flac": lambda: measure_decoded(
            AUDIO, Modality.AUDIO, noise_blocks(seconds, Codec.FLAC, seed), decode
        ),
        "opus": lambda: measure_decoded(
            AUDIO, Modality.AUDIO, noise_blocks(seconds, Codec.OPUS, seed), decode
        ),
        "h264_slides": lambda: measure_decoded(VIDEO, Modality.VIDEO, units, decode),
        "h264_camera": lambda: measure_decoded(VIDEO, Modality.VIDEO, units, decode, role="camera"),
    }
    units = moving_units(max(2, seconds // 2), seed)
    for name, part in parts.items():
        figures[name] = part()
        progress(f"ingest: {name} {figures[name]['packets_per_s_core']} packets/s a core")
    return figures | {"video": f"1080p30, {VideoSettings().quality} crf, two-second groups"}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="length of each stream")
    parser.add_argument("--meetings", type=int, default=12, help="streams of PCM, one a meeting")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.seconds < 1 or given.meetings < 1:
        progress("ingest: --seconds and --meetings start at 1")
        return 2
    figures = run(seconds=given.seconds, meetings=given.meetings, seed=given.seed)
    print_report("ingest", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
