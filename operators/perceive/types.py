"""What perception of a meeting takes, asks for and gives, and what it knows of each stream."""

import math
from dataclasses import dataclass, field
from typing import Literal

from contracts.messages import PartialText
from contracts.packet import Modality, Packet
from contracts.timeline import AnyRecord
from operators.perceive.pictures import DecodePicture, FetchFrame, ReadSlide
from operators.pictures.slides import SlideSettings
from operators.speech.events import RecognitionRequest
from operators.speech.recognise import SpeechSettings


@dataclass(frozen=True, slots=True)
class PerceiveSettings:
    """``stream_idle_s``, ``meeting_idle_s``: silence after which a stream, a meeting is given up (wall clock).

    ``late_s``: speech that is behind by more does not wait for slides to be read.
    """

    stream_idle_s: float = 15.0
    late_s: float = math.inf
    meeting_idle_s: float = 600.0
    speech: SpeechSettings = field(default_factory=SpeechSettings)
    slides: SlideSettings = field(default_factory=SlideSettings)
    ordinary_words: frozenset[str] = frozenset()
    """Lower-case words that are never taken for a misheard name."""


@dataclass(frozen=True, slots=True)
class DecodeSound:
    """Ask: decode this block of sound."""

    stream: str
    packet: Packet


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A packet whose media no decoder could read."""

    packet: Packet
    reason: str


Ask = RecognitionRequest | DecodeSound | DecodePicture | FetchFrame | ReadSlide
Emission = AnyRecord | Packet | Undecodable | PartialText | Ask


@dataclass(slots=True)
class Stream:
    """What perception knows of one stream."""

    device: str
    modality: Modality
    state: Literal["expected", "opened", "ended", "given_up", "shed"] = "expected"
    epoch: int = 0
    sequence: int = -1
    clock: int = 0
    raw_ns: int = 0
    end_raw_ns: int | None = None
    """Where the device said that its stream ends; the stream has ended once it is drained."""
    logged_mark_ns: int | None = None
    last: tuple[int, int] | None = None
    """Raw end and arrival of the last packet."""
    clock_set_at: set[int] = field(default_factory=set)
    """Stamps of blocks before which the device's clock was set while no sound is missing."""
    undecoded: list[Packet] = field(default_factory=list)
    features: int = 0

    @property
    def name(self) -> str:
        """``device/modality``, as in marks and control messages."""
        return f"{self.device}/{self.modality.name.lower()}"

    @property
    def told_mark_ns(self) -> int | None:
        """Mark of a stream of messages, which come when there is something to say."""
        return self.logged_mark_ns if self.end_raw_ns is None else self.raw_ns

    @property
    def over(self) -> bool:
        """Whether nothing of it is waited for; but for `ended` it may come back."""
        return self.state in ("ended", "given_up", "shed")
