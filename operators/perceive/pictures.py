"""The picture streams of one meeting: packets in, slides out.

Decoding and reading happen elsewhere; this keeps what is under way, so that a restart can repeat it and
a stream's mark never passes something that has not been read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.packet import Codec, Packet
from models.slide_reader import TextLine
from operators.media.client import DecodedPictures, DecodeFailed, FullFrame, Role
from operators.pictures.picture import FeatureBlock, FeatureThinner
from operators.pictures.slides import Slide, SlideCandidate, SlideEvent, SlideSettings, SlideWatcher
from operators.pictures.stream import PictureStreamSettings

SAMPLE_NS: Final = PictureStreamSettings().sample_ns
_SET_BACK_NS: Final = 1_000_000_000
"""Stamps that go back by more are those of a clock that was set, or of another recording."""
MAX_REPEATED_BYTES: Final = 4 * 1024 * 1024
"""Coded bytes that are kept to set a restarted decoder going again."""


@dataclass(frozen=True, slots=True)
class DecodePicture:
    """Ask: decode this packet."""

    stream: str
    packet: Packet
    role: Role


@dataclass(frozen=True, slots=True)
class FetchFrame:
    """Ask: give the whole frame with this stamp."""

    stream: str
    frame_ns: int


@dataclass(frozen=True, slots=True)
class ReadSlide:
    """Ask: read the text of this picture."""

    stream: str
    frame_ns: int
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class SlideShown:
    """A slide came up on a stream."""

    stream: str
    slide: Slide


@dataclass(frozen=True, slots=True)
class PictureLost:
    """A packet of a stream came to nothing."""

    stream: str
    raw_ns: int
    reason: str
    shed: bool


@dataclass(frozen=True, slots=True)
class PictureFeatures:
    """Features of a camera frame, for the log."""

    stream: str
    block: FeatureBlock


PictureStep = PictureFeatures | DecodePicture | FetchFrame | ReadSlide | SlideShown | PictureLost


@dataclass(slots=True)
class _PictureStream:
    role: Role
    watcher: SlideWatcher
    newest_ns: int
    epoch: int
    seen_ns: int = -(2**63)
    """Newest frame that the watcher has seen: frames come again after a restart."""
    begins: list[int] = field(default_factory=list)
    """Stamps of packets that are being decoded with which stamps began anew, earlier or later than before."""
    undecoded: list[int] = field(default_factory=list)
    kept: list[Packet] = field(default_factory=list)
    """Packets since a key frame: what a decoder needs that begins anew, and slides that are not read yet."""
    period_ns: int = 0

    def forget_what_is_done(self) -> None:
        """Let go of the packets before the last key frame of which nothing is needed any more."""
        needed_ns = min([self.newest_ns, *(candidate.frame_ns for candidate in self.watcher.unread)])
        if self.role == "slides":
            needed_ns = min([needed_ns, *self.undecoded])
        begins = [
            place
            for place, packet in enumerate(self.kept)
            if packet.timestamp_ns <= needed_ns and (packet.key_frame or packet.codec is Codec.JPEG)
        ]
        if begins:
            del self.kept[: begins[-1]]


class MeetingPictures:
    """All picture streams of one meeting."""

    def __init__(self, settings: SlideSettings) -> None:
        self._settings = settings
        self._streams: dict[str, _PictureStream] = {}
        self._thinner = FeatureThinner()

    def push(self, stream: str, packet: Packet, role: Role) -> list[PictureStep]:
        """The next packet of a stream, in order."""
        known = self._streams.get(stream)
        if known is None:
            known = _PictureStream(
                role, SlideWatcher(self._settings), packet.timestamp_ns, packet.stream_epoch
            )
            self._streams[stream] = known
        if packet.stream_epoch != known.epoch or packet.timestamp_ns < known.newest_ns - _SET_BACK_NS:
            known.epoch = packet.stream_epoch
            known.begins.append(packet.timestamp_ns)
            known.kept.clear()
        gap = packet.timestamp_ns - known.newest_ns
        if 0 < gap < 10**10:
            known.period_ns = gap
        known.newest_ns = packet.timestamp_ns
        known.undecoded.append(packet.timestamp_ns)
        known.kept.append(packet)
        if packet.key_frame or packet.codec is Codec.JPEG:
            known.forget_what_is_done()
        while sum(len(p.payload) for p in known.kept) > MAX_REPEATED_BYTES:
            known.kept.pop(0)
        return [DecodePicture(stream, packet, role)]

    def decoded(self, result: DecodedPictures) -> list[PictureStep]:
        """Features of frames, oldest first."""
        known = self._streams.get(result.stream)
        if known is None:
            return []
        self._answered(known, result.timestamp_ns)
        out: list[PictureStep] = []
        for frame in result.frames:
            if frame.timestamp_ns <= known.seen_ns:
                continue
            known.seen_ns = frame.timestamp_ns
            if known.role == "camera":
                blocks = self._thinner.take(result.stream, frame.timestamp_ns, frame.volume, frame.patches)
                out += [PictureFeatures(result.stream, block) for block in blocks]
                continue
            out += self._steps(
                result.stream, known.watcher.observe(frame.timestamp_ns, frame.luma, frame.sharpness)
            )
        return out

    def failed(self, result: DecodeFailed) -> list[PictureStep]:
        """A packet or frame that could not be decoded."""
        known = self._streams.get(result.stream)
        if known is None:
            return []
        if result.timestamp_ns not in known.undecoded:
            return self._steps(result.stream, known.watcher.failed(result.timestamp_ns))
        self._answered(known, result.timestamp_ns)
        return [PictureLost(result.stream, result.timestamp_ns, result.reason, result.shed)]

    def fetched(self, result: FullFrame) -> list[PictureStep]:
        """The whole frame of a slide candidate."""
        return [ReadSlide(result.stream, result.timestamp_ns, result.jpeg)]

    def read(self, stream: str, frame_ns: int, lines: Sequence[TextLine] | None) -> list[PictureStep]:
        """The text of a slide candidate; None where it could not be read."""
        known = self._streams.get(stream)
        if known is None:
            return []
        if lines is None:
            return self._steps(stream, known.watcher.failed(frame_ns))
        return [SlideShown(stream, slide) for slide in known.watcher.read(frame_ns, lines)]

    def mark_ns(self, stream: str) -> int | None:
        """Raw time before which no further slide of this stream starts; None before its first packet."""
        known = self._streams.get(stream)
        if known is None:
            return None
        held = [known.newest_ns, *known.undecoded]
        if known.watcher.open_since_ns is not None:
            held.append(known.watcher.open_since_ns)
        return min(held)

    def undone_ns(self, stream: str) -> int | None:
        """Raw time of the first that is being decoded or read of a stream of slides; None where nothing is."""
        known = self._streams.get(stream)
        if known is None or known.role != "slides":
            return None
        asked = [candidate.start_ns for candidate in known.watcher.unread]
        return min([*known.undecoded, *asked], default=None)

    def recent(self, stream: str) -> Sequence[Packet]:
        """Packets of a stream with which a decoder can begin anew."""
        known = self._streams.get(stream)
        return () if known is None else known.kept

    def sampling_ns(self, stream: str) -> int:
        """Spacing of the stream's frames."""
        known = self._streams.get(stream)
        # A slide that is changing is looked at less often than frames come.
        return 0 if known is None else max(known.period_ns, SAMPLE_NS)

    def idle(self, stream: str) -> bool:
        """Whether nothing of the stream is being decoded or read."""
        known = self._streams.get(stream)
        return known is None or (not known.undecoded and not known.watcher.unread)

    def repeat(self) -> list[PictureStep]:
        """After a restart: ask again for all that had not been answered."""
        out: list[PictureStep] = []
        for name, known in self._streams.items():
            if known.begins:
                # Nothing was seen since: all that is kept is of the time after it.
                known.begins.clear()
                known.seen_ns = -(2**63)
            # The decoder starts cold: it needs everything since the key frame, answered or not.
            known.undecoded = [packet.timestamp_ns for packet in known.kept]
            out += [DecodePicture(name, packet, known.role) for packet in known.kept]
            for candidate in known.watcher.unread:
                if candidate.frame_ns in known.undecoded:
                    out.append(FetchFrame(name, candidate.frame_ns))
                else:
                    known.watcher.missed(candidate.frame_ns, known.newest_ns)
        return out

    def state(self) -> dict[str, Any]:
        """Plain values; `load` goes on from them."""
        streams = {
            name: {
                "role": known.role, "watcher": known.watcher.state(), "newest_ns": known.newest_ns,
                "seen_ns": known.seen_ns, "epoch": known.epoch, "begins": known.begins, "period_ns": known.period_ns,
                "kept": [_plain(packet) for packet in known.kept],
            }
            for name, known in self._streams.items()
        }  # fmt: skip
        return {"streams": streams, "thinner": self._thinner.state()}

    def load(self, raw: dict[str, Any]) -> None:
        """Go on where ``state`` was taken; call ``repeat`` next."""
        self._thinner = FeatureThinner.from_state(raw["thinner"])
        for name, part in raw["streams"].items():
            self._streams[name] = _PictureStream(
                role=part["role"], watcher=SlideWatcher.from_state(self._settings, part["watcher"]),
                newest_ns=part["newest_ns"], epoch=part["epoch"], seen_ns=part["seen_ns"], begins=list(part["begins"]),
                period_ns=part["period_ns"], kept=list(part["kept"]),
            )  # fmt: skip

    @staticmethod
    def _answered(known: _PictureStream, timestamp_ns: int) -> None:
        if timestamp_ns in known.undecoded:
            known.undecoded.remove(timestamp_ns)
        if known.begins and known.begins[0] == timestamp_ns:
            known.seen_ns = known.begins.pop(0) - 1

    def _steps(self, stream: str, events: Sequence[SlideEvent]) -> list[PictureStep]:
        return [
            FetchFrame(stream, event.frame_ns)
            if isinstance(event, SlideCandidate)
            else SlideShown(stream, event)
            for event in events
        ]


def _plain(packet: Packet) -> Packet:
    """The packet with bytes of its own: a view on a received message cannot be pickled."""
    return Packet(
        meeting_id=packet.meeting_id, device_id=packet.device_id, modality=packet.modality, codec=packet.codec,
        clock_kind=packet.clock_kind, stream_epoch=packet.stream_epoch, sequence=packet.sequence,
        timestamp_ns=packet.timestamp_ns, duration_ns=packet.duration_ns, payload=bytes(packet.payload),
        rate_hz=packet.rate_hz, width=packet.width, height=packet.height, channels=packet.channels,
        key_frame=packet.key_frame,
    )  # fmt: skip
