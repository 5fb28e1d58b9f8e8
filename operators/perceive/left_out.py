"""Streams of a meeting that are left out under load: what of them is dropped, and how that stands on the log.

On the log a stream is `shed` after some packet and `resumed` at a later one; between them lies a gap of the kind
`shed`. What an earlier run wrote holds: a restarted flow drops just those packets again. Where that run was killed
before it wrote `resumed`, what follows is decided anew, and as media are still there they are heard.
"""

from dataclasses import dataclass

from contracts.packet import Codec, Modality, Packet
from contracts.timeline import AnyRecord, StreamRecord


@dataclass(slots=True)
class LeftOut:
    """A stream that is left out since the packet `sequence` of `epoch`; raw times by clock record `clock`."""

    epoch: int
    sequence: int
    clock: int
    from_ns: int
    to_ns: int
    packets: int = 0


@dataclass(frozen=True, slots=True)
class _Resumed:
    epoch: int
    raw_ns: int


class LeavingOut:
    """The streams of one meeting that are left out. Plain data, part of the meeting's state."""

    def __init__(self) -> None:
        self.streams: dict[str, LeftOut] = {}
        self.dropped = 0
        """Packets that were left out, over all streams and times."""
        self.told = False
        """Whether the minutes say so."""
        self._shed: dict[str, tuple[int, int]] = {}
        self._resumed: dict[tuple[str, int, int], _Resumed] = {}

    def decide(self, record: AnyRecord) -> None:
        """A record of an earlier run, in the order of the log, after the state of a snapshot was taken up."""
        if not isinstance(record, StreamRecord):
            return
        if record.state == "shed":
            self._shed[record.stream] = (record.stream_epoch, record.sequence)
        elif record.state == "resumed":
            # Where the log is read back from may lie between the two: then the snapshot knows that it is left out.
            left = self.streams.get(record.stream)
            begun = self._shed.pop(record.stream, None if left is None else (left.epoch, left.sequence))
            if begun is not None:
                self._resumed[record.stream, *begun] = _Resumed(record.stream_epoch, record.raw_ns)

    def begin(self, stream: str, left: LeftOut) -> None:
        """From here on a stream is left out."""
        self.streams[stream] = left

    def drops(self, packet: Packet, *, shed: bool, fresh: bool = False) -> bool:
        """Whether a packet of a stream that is left out is dropped too.

        `shed`: its meeting is still to be left out; `fresh`: no earlier run can have handled it.
        """
        left = self.streams[packet.stream]
        resumed = self._resumed.get((packet.stream, left.epoch, left.sequence))
        if resumed is not None and not fresh:
            # In a later epoch than the decided one its place is past, too.
            drop = (
                packet.timestamp_ns < resumed.raw_ns
                if packet.stream_epoch == resumed.epoch
                else (packet.stream_epoch == left.epoch)
            )
        else:
            drop = shed or not _begins_anew(packet)
        if drop:
            left.to_ns = max(left.to_ns, packet.timestamp_ns + packet.duration_ns)
            left.packets += 1
            self.dropped += 1
        return drop

    def end(self, stream: str) -> LeftOut | None:
        """A stream is heard again, or its meeting is over; None where it was not left out."""
        return self.streams.pop(stream, None)


def _begins_anew(packet: Packet) -> bool:
    """Whether a decoder can begin with this packet."""
    return packet.modality is not Modality.VIDEO or packet.key_frame or packet.codec is Codec.JPEG
