"""One microphone's sound as 32 ms frames on its raw time line.

A lost packet or two are filled with silence and written down as a gap. At a longer jump of the stamps the frame that
was being filled is dropped. The counting of samples goes on by what the stamps say is missing, so that a sample's
number is a function of the packets alone.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from models.voice_activity import FRAME_SAMPLES, VoiceState
from operators.speech.resample import TARGET_HZ, Resampler

FRAME_NS = FRAME_SAMPLES * 1_000_000_000 // TARGET_HZ

MAX_FILLED_NS = 100_000_000
"""A gap up to this long is filled with silence and reported with the piece; a longer one ends the piece."""

Pcm = npt.NDArray[np.int16]


@dataclass(slots=True)
class Frame:
    """32 ms of one microphone. `index` numbers its first sample (16 kHz) since the stream's first.

    `probability` and `level_db` are filled when voice activity has run, `margin_db` and the flags when it is
    decided whose voice it is, and `at_ns`, where the frame lies on the timeline by what was known then. `channels`,
    shape (512, channels), is the sound of the microphones of a table device that are heard as one, until it is
    compared (`seat_scores`).
    """

    index: int
    start_ns: int
    pcm: Pcm
    probability: float = 0.0
    level_db: float = -120.0
    margin_db: float = 0.0
    voiced: bool = False
    foreign: bool = False
    after_gap: bool = False
    at_ns: int = 0
    channels: Pcm | None = None
    seat_scores: tuple[float, ...] = ()

    @property
    def end_ns(self) -> int:
        """Raw time just after the last sample."""
        return self.start_ns + FRAME_NS

    def dump(self) -> list[Any]:
        """Plain values."""
        return [
            self.index,
            self.start_ns,
            self.pcm.tobytes(),
            self.probability,
            self.level_db,
            self.margin_db,
            self.voiced,
            self.foreign,
            self.after_gap,
            self.at_ns,
            None if self.channels is None else self.channels.tobytes(),
            list(self.seat_scores),
        ]

    @classmethod
    def load(cls, raw: list[Any]) -> "Frame":
        """Inverse of `dump`."""
        index, start_ns, pcm, *rest, channels, scores = raw
        frame = cls(index, start_ns, np.frombuffer(pcm, dtype=np.int16).copy(), *rest)
        if channels is not None:
            frame.channels = np.frombuffer(channels, dtype=np.int16).reshape(FRAME_SAMPLES, -1).copy()
        frame.seat_scores = tuple(scores)
        return frame


@dataclass(frozen=True)
class StreamName:
    """Which microphone: device and channel, and the epoch of its publisher."""

    device: str
    channel: int
    stream_epoch: int

    def piece_id(self, sample_index: int) -> str:
        """Identity of the piece that starts with this sample."""
        channel = f"#{self.channel}" if self.channel else ""
        return f"{self.device}{channel}/{self.stream_epoch}/{sample_index}"


def index_of(piece_id: str) -> int:
    """Number of the first sample of a piece."""
    return int(piece_id.rpartition("/")[2])


class SoundStream:
    """Cuts pushed blocks into frames. `waiting` holds frames whose voice activity has not been looked at."""

    def __init__(self, name: StreamName, speaker: str | None, sample_rate_hz: int, channels: int = 1) -> None:
        """Open a stream; with several `channels` their mean is heard, and frames keep what each of them heard.

        Raises:
            UnsupportedRate: the rate cannot be converted to 16 kHz.
        """
        self.name = name
        self.speaker = speaker
        self.sample_rate_hz = sample_rate_hz
        self.voice = VoiceState()
        self.waiting: deque[Frame] = deque()
        self.ended = False
        self.channels = channels
        self._resamplers = [Resampler(sample_rate_hz) for _ in range(channels)]
        self._rest = np.zeros((0, channels), dtype=np.int16)
        self.gaps: deque[tuple[int, int]] = deque(maxlen=64)
        self._next_index = 0
        self._base_index = 0
        self._inputs = 0
        self._anchor_index = 0
        self._anchor_ns = 0
        self._expected_ns: int | None = None
        self._gap_before_next = False

    @property
    def newest_ns(self) -> int | None:
        """Raw time up to which sound has come, or None before the first block."""
        return self._expected_ns

    @property
    def next_index(self) -> int:
        """Number of the first sample of the frame being filled."""
        return self._next_index

    @property
    def heard_ns(self) -> int:
        """How much sound has come since the stream began, what is missing of it included."""
        return self._next_index * 1_000_000_000 // TARGET_HZ

    @property
    def next_frame_ns(self) -> int | None:
        """Raw start of the frame being filled."""
        return None if self._expected_ns is None else self._time_of(self._next_index)

    def push(self, timestamp_ns: int, samples: Pcm, *, clock_set: bool = False) -> bool:
        """Add a block, shape (n,) or (n, channels), whose first sample was captured at `timestamp_ns` (raw).

        `clock_set`: nothing is missing before it though stamps may jump. True where they did: frames from
        the `next_index` of before on have the time of the clock as it was set.
        """
        if len(samples) == 0:
            return False
        samples = samples.reshape(len(samples), self.channels)
        duration_ns = len(samples) * 1_000_000_000 // self.sample_rate_hz
        stepped = False
        if self._expected_ns is not None:
            jump_ns = timestamp_ns - self._expected_ns
            if clock_set:
                stepped = jump_ns != 0
            elif MAX_FILLED_NS >= jump_ns > max(duration_ns * 6 // 10, 8_000_000):
                self._fill(jump_ns)
            elif abs(jump_ns) > max(duration_ns * 6 // 10, 8_000_000):
                self._break(jump_ns)
        first = self._base_index + self._inputs * TARGET_HZ // self.sample_rate_hz
        if self._expected_ns is None or self._gap_before_next or stepped:
            self._anchor_index, self._anchor_ns = first, timestamp_ns
        else:
            # Sound cards drift against the clock that stamps them and stamps jitter: follow, but smoothly.
            self._anchor_ns += (timestamp_ns - self._time_of(first)) // 8
        self._expected_ns = timestamp_ns + duration_ns
        self._inputs += len(samples)
        self._append(self._converted(samples))
        return stepped

    def _converted(self, samples: Pcm) -> Pcm:
        """At 16 kHz, shape (m, channels)."""
        return np.stack(
            [one.push(np.ascontiguousarray(samples[:, i])) for i, one in enumerate(self._resamplers)], axis=1
        )

    def _append(self, converted: Pcm) -> None:
        self._rest = np.concatenate((self._rest, converted)) if len(self._rest) else converted
        whole = len(self._rest) // FRAME_SAMPLES * FRAME_SAMPLES
        for start in range(0, whole, FRAME_SAMPLES):
            self._add_frame(self._rest[start : start + FRAME_SAMPLES].copy())
        self._rest = self._rest[whole:]

    def _add_frame(self, pcm: Pcm) -> None:
        mono = pcm[:, 0] if self.channels == 1 else np.asarray(np.rint(pcm.mean(axis=1)), dtype=np.int16)
        frame = Frame(
            self._next_index, self._time_of(self._next_index), mono, after_gap=self._gap_before_next
        )
        if self.channels > 1:
            frame.channels = pcm
        self.waiting.append(frame)
        self._gap_before_next = False
        self._next_index += FRAME_SAMPLES

    def end(self) -> None:
        """No more blocks come: the last, unfinished frame is filled up with silence."""
        if self.ended:
            return
        if len(self._rest):
            missing = FRAME_SAMPLES - len(self._rest)
            self._append(np.zeros((missing, self.channels), dtype=np.int16))
        self.ended = True

    def _time_of(self, index: int) -> int:
        return self._anchor_ns + (index - self._anchor_index) * 1_000_000_000 // TARGET_HZ

    def _fill(self, jump_ns: int) -> None:
        """Put silence where a packet or two are missing, and write down that it is no recorded silence."""
        assert self._expected_ns is not None
        missing = jump_ns * self.sample_rate_hz // 1_000_000_000
        self.gaps.append((self._expected_ns, self._expected_ns + jump_ns))
        self._inputs += missing
        self._append(self._converted(np.zeros((missing, self.channels), dtype=np.int16)))

    def _break(self, jump_ns: int) -> None:
        """Start anew after a longer gap; what had been collected of an unfinished frame goes."""
        self._next_index += len(self._rest) + max(0, jump_ns) * TARGET_HZ // 1_000_000_000
        self._base_index, self._inputs = self._next_index, 0
        self._rest = np.zeros((0, self.channels), dtype=np.int16)
        for resampler in self._resamplers:
            resampler.reset()
        self._gap_before_next = True

    def dump(self) -> dict[str, Any]:
        """State as plain values."""
        return {
            "name": [self.name.device, self.name.channel, self.name.stream_epoch],
            "speaker": self.speaker,
            "rate": self.sample_rate_hz,
            "voice": self.voice.dump(),
            "waiting": [frame.dump() for frame in self.waiting],
            "ended": self.ended,
            "channels": self.channels,
            "resamplers": [resampler.dump() for resampler in self._resamplers],
            "rest": self._rest.tobytes(),
            "counts": [self._next_index, self._base_index, self._inputs, self._anchor_index, self._anchor_ns],
            "gaps": [list(gap) for gap in self.gaps],
            "expected_ns": self._expected_ns,
            "gap": self._gap_before_next,
        }

    @classmethod
    def load(cls, raw: dict[str, Any]) -> "SoundStream":
        """Inverse of `dump`."""
        stream = cls(StreamName(*raw["name"]), raw["speaker"], raw["rate"], raw["channels"])
        stream.voice = VoiceState.load(raw["voice"])
        stream.waiting = deque(Frame.load(frame) for frame in raw["waiting"])
        stream.ended = raw["ended"]
        for resampler, part in zip(stream._resamplers, raw["resamplers"], strict=True):
            resampler.load(part)
        stream._rest = np.frombuffer(raw["rest"], dtype=np.int16).reshape(-1, stream.channels).copy()
        counts = raw["counts"]
        stream._next_index, stream._base_index, stream._inputs = counts[:3]
        stream._anchor_index, stream._anchor_ns = counts[3:]
        stream.gaps.extend((start, end) for start, end in raw["gaps"])
        stream._expected_ns = raw["expected_ns"]
        stream._gap_before_next = raw["gap"]
        return stream
