"""Alignment of one meeting: what each stream shows, sounds and says at any times of the timeline.

Picture features are linear between the two frames around a time (raw patches: the nearest before), sound is
linear between samples with the skew of its device taken out, a slide is the one that stood, its lines on
their way to where the next one has them. What lies in a gap is marked as not known. Times follow the clock
records known when asked, so a device found wrong later is placed right from then on.
"""

import bisect
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from contracts.packet import Codec, Modality, Packet, payload_array
from contracts.timeline import ClockRecord, GapRecord, SlideRecord
from operators.align.gestures import GestureWatch
from operators.align.interpolate import (
    Between,
    Box,
    Mask,
    Times,
    Values,
    between,
    held,
    linear,
    on_timeline,
    under_box,
)
from operators.align.slides import NO_SLIDE, SlideAt, slide_at, standing
from operators.align.sound import SoundSettings, SoundTrack
from operators.understand.sensed import Gesture

_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """How much is kept, and what counts as a gap.

    Attributes:
        keep_ns: features older than this, by the newest of their stream, are let go; slides and gestures stay.
        most_frames: of one stream and kind, whatever their stamps say; as many slides and gaps.
        picture_gap_ns: frames further apart than this have a gap between them.
        patches_gap_ns: the same for patches, which come less often; also how long one holds.
        slide_move_ns: lines move between slides that are no further apart than this; else they stand.
        lattice: points down and across at which a feature is taken under a box.
    """

    keep_ns: int = 60 * _NS
    most_frames: int = 4_096
    picture_gap_ns: int = 2 * _NS
    patches_gap_ns: int = 10 * _NS
    slide_move_ns: int = 2 * _NS
    lattice: tuple[int, int] = (3, 8)
    sound: SoundSettings = field(default_factory=SoundSettings)


@dataclass(frozen=True, slots=True)
class SeriesAt:
    """A stream at n times.

    Attributes:
        values: (n, ...) float32, zero where nothing is known.
        known: (n,) False in gaps, before the first frame and after the last.
        error_ns: (n,) clock bound.
        sampling_ns: (n,) distance of the frames, or age of the one that holds.
    """

    values: Values
    known: Mask
    error_ns: npt.NDArray[np.int64]
    sampling_ns: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AlignedAt:
    """All streams of a meeting at the same n times.

    Attributes:
        volumes: by stream, values (n, maps, rows, columns).
        patches: by stream, values (n, patches, side, side), 0 to 255.
        mel: by stream, values (n, bands).
        sound: by stream, values (n,), -1 to 1.
        slides: by stream, n slides.
    """

    times_ns: Times
    volumes: dict[str, SeriesAt]
    patches: dict[str, SeriesAt]
    mel: dict[str, SeriesAt]
    sound: dict[str, SeriesAt]
    slides: dict[str, list[SlideAt]]


@dataclass(frozen=True, slots=True)
class Frame:
    """Features at one raw stamp.

    Attributes:
        number: counts the frames of a meeting as they stand on the log.
        clock: number of the newest clock record known when it was read.
    """

    number: int
    raw_ns: int
    clock: int
    values: npt.NDArray[np.float16] | npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KeptFrame:
    """A frame with the stream that it is of, as it goes into a store."""

    stream: str
    device: str
    codec: Codec
    frame: Frame


@dataclass(slots=True)
class _Series:
    """Frames of one kind of one stream, in the order in which they stand on the log."""

    device: str
    frames: deque[Frame] = field(default_factory=deque)


_KINDS: Final = {Codec.VOLUME_F16: "volumes", Codec.PATCHES_U8: "patches", Codec.MEL_F16: "mel"}


class Alignment:
    """One meeting's streams; what comes in is what stands on the log, in its order."""

    def __init__(self, settings: AlignmentSettings) -> None:
        self._settings = settings
        self._clocks: dict[str, list[ClockRecord]] = {}
        self._series: dict[tuple[str, Codec], _Series] = {}
        self._sound: dict[str, tuple[str, SoundTrack]] = {}
        self._slides: dict[str, list[SlideRecord]] = {}
        self._gaps: dict[str, deque[GapRecord]] = {}
        self._next = 0
        self.watches: dict[str, GestureWatch] = {}
        """Of each stream of picture features: what was seen so far. A store keeps them whole."""
        self.changed: dict[int, KeptFrame | None] = {}
        """Frames that a store does not have yet, and (None) those that it still has."""
        self.refused = 0
        """Feature packets that do not say what their header claims."""

    def clock(self, record: ClockRecord) -> None:
        """A clock record; it re-times what is kept of its device."""
        bisect.insort(self._clocks.setdefault(record.device, []), record, key=lambda r: r.number)

    def features(self, packet: Packet) -> None:
        """Picture or sound features. A frame that is known is not taken again."""
        rows = _rows(packet)
        if rows is None:
            self.refused += 1
            return
        series = self._series.setdefault((packet.stream, packet.codec), _Series(packet.device_id))
        frames, clock = series.frames, self._newest(packet.device_id)
        while frames and frames[-1].values.shape != rows.shape[1:]:
            self._drop_oldest(frames)
        for number, values in enumerate(rows):
            raw_ns = packet.timestamp_ns + number * _period_ns(packet, len(rows))
            # A restarted writer says again what it had said; a clock that was set back has another number.
            if frames and frames[-1].clock == clock and raw_ns <= frames[-1].raw_ns:
                continue
            frame = Frame(self._next, raw_ns, clock, values)
            self._next += 1
            frames.append(frame)
            self.changed[frame.number] = KeptFrame(packet.stream, packet.device_id, packet.codec, frame)
            if packet.modality is Modality.PICTURE_FEATURES:
                self.watches.setdefault(packet.stream, GestureWatch()).see(raw_ns, clock, values)
        self._let_go(packet.device_id, frames)

    def restore(self, kept: KeptFrame) -> None:
        """A frame out of a store, in the order of their numbers."""
        self._series.setdefault((kept.stream, kept.codec), _Series(kept.device)).frames.append(kept.frame)
        self._next = kept.frame.number + 1

    def forget(self) -> None:
        """The meeting is over: features are not asked for any more. What was seen in them stays."""
        for series in self._series.values():
            while series.frames:
                self._drop_oldest(series.frames)
        self._series.clear()
        self._sound.clear()

    def sound(self, packet: Packet, channel: int = 0) -> None:
        """A block of PCM sound."""
        samples = np.frombuffer(packet.payload, "<i2")[channel :: packet.channels]
        known = self._sound.get(packet.stream)
        if known is None or known[1].rate_hz != packet.rate_hz:
            known = (packet.device_id, SoundTrack(self._settings.sound, packet.rate_hz))
            self._sound[packet.stream] = known
        clocks = self._clocks.get(packet.device_id)
        known[1].push(packet.timestamp_ns, samples, clocks[-1] if clocks else None)

    def slide(self, record: SlideRecord) -> None:
        """A slide came up."""
        slides = self._slides.setdefault(record.stream, [])
        slides[:] = [s for s in slides if s.id != record.id]
        slides.append(record)
        del slides[: -self._settings.most_frames]

    def gap(self, record: GapRecord) -> None:
        """A stretch of a stream is missing."""
        gaps = self._gaps.setdefault(record.stream, deque(maxlen=self._settings.most_frames))
        gaps.append(record)

    def at(self, times_ns: Times) -> AlignedAt:
        """All streams at n times, in any order."""
        found: dict[Codec, dict[str, SeriesAt]] = {codec: {} for codec in _KINDS}
        for stream, codec in sorted(self._series):
            found[codec][stream] = self._series_at(stream, codec, times_ns)
        return AlignedAt(
            times_ns, found[Codec.VOLUME_F16], found[Codec.PATCHES_U8], found[Codec.MEL_F16],
            {stream: self._sound_at(stream, times_ns) for stream in sorted(self._sound)},
            self.slides_at(times_ns),
        )  # fmt: skip

    def slides_at(self, times_ns: Times) -> dict[str, list[SlideAt]]:
        """By stream, the slide that stood at each of n times."""
        return {stream: self._slides_at(stream, times_ns) for stream in sorted(self._slides)}

    def gestures(self) -> list[Gesture]:
        """All that cameras have seen people do, by time."""
        found = []
        for stream, watch in sorted(self.watches.items()):
            seen, device = watch.gestures(), stream.rpartition("/")[0]
            clocks = [g.clock for g in seen]
            starts, bounds = self._times(device, clocks, [g.start_raw_ns for g in seen])
            ends, _ = self._times(device, clocks, [g.end_raw_ns for g in seen])
            for one, start, end, bound in zip(
                seen, starts.tolist(), ends.tolist(), bounds.tolist(), strict=True
            ):
                ms = (bound / 1e6, one.boundary_ns / 1e6, one.boundary_ns / 1e6)
                found.append(Gesture(one.kind, start, end, device, one.place, None, one.confidence, *ms))
        return sorted(found, key=lambda g: (g.start_ns, g.device, g.place, g.kind))

    def watched(self) -> list[tuple[int, int]]:
        """Stretches of the timeline that some camera has watched without a break."""
        found: list[tuple[int, int]] = []
        for stream, watch in sorted(self.watches.items()):
            device, clocks = stream.rpartition("/")[0], [s.clock for s in watch.stretches]
            since, _ = self._times(device, clocks, [s.since_ns for s in watch.stretches])
            until, _ = self._times(device, clocks, [s.until_ns for s in watch.stretches])
            found += zip(since.tolist(), until.tolist(), strict=True)
        return found

    def under_boxes(self, stream: str, times_ns: Times, boxes: Sequence[Box]) -> SeriesAt:
        """Maps of a stream's feature volume under a box for each time: values (n, maps)."""
        knots, volumes, bounds = self._knots(stream, Codec.VOLUME_F16)
        place = self._marked(stream, between(knots, times_ns, self._settings.picture_gap_ns), times_ns)
        where = np.asarray(boxes, np.float64).reshape(-1, 4)
        values = under_box(volumes, place, where, self._settings.lattice)
        return SeriesAt(values, place.known, _worst(bounds, place), place.apart_ns)

    def volumes_between(self, stream: str, start_ns: int, end_ns: int) -> tuple[Times, Values]:
        """The frames themselves from start to end: times (k,) and values (k, maps, rows, columns)."""
        knots, volumes, _ = self._knots(stream, Codec.VOLUME_F16)
        first, last = np.searchsorted(knots, [start_ns, end_ns + 1])
        return knots[first:last], volumes[first:last]

    def _series_at(self, stream: str, codec: Codec, times_ns: Times) -> SeriesAt:
        knots, values, bounds = self._knots(stream, codec)
        if codec is Codec.PATCHES_U8:
            # Patches are a picture, made small: between two of them there is none.
            place = held(knots, times_ns, self._settings.patches_gap_ns)
        else:
            place = between(knots, times_ns, self._settings.picture_gap_ns)
        place = self._marked(stream, place, times_ns)
        return SeriesAt(linear(values, place), place.known, _worst(bounds, place), place.apart_ns)

    def _sound_at(self, stream: str, times_ns: Times) -> SeriesAt:
        device, track = self._sound[stream]
        values, known, bounds = track.at(times_ns, self._clocks.get(device, ()))
        known &= ~self._in_gap(stream, times_ns)
        sampling = np.where(known, _NS // track.rate_hz, 0)
        return SeriesAt(np.where(known, values, np.float32(0)), known, np.where(known, bounds, 0), sampling)

    def _slides_at(self, stream: str, times_ns: Times) -> list[SlideAt]:
        slides = self._slides[stream]
        starts, bounds = self._times(
            slides[0].device, [s.clock for s in slides], [s.raw_start_ns for s in slides]
        )
        order = np.argsort(starts, kind="stable")
        starts, bounds, slides = starts[order], bounds[order], [slides[n] for n in order.tolist()]
        missing = self._in_gap(stream, times_ns)
        out = []
        for n, place in enumerate(standing(starts, times_ns)):
            if place < 0 or missing[n]:
                out.append(NO_SLIDE)
                continue
            following, share = None, 0.0
            if place + 1 < len(slides):
                apart = int(starts[place + 1] - starts[place])
                if apart <= self._settings.slide_move_ns:
                    following, share = slides[place + 1], int(times_ns[n] - starts[place]) / max(1, apart)
            out.append(slide_at(slides[place], following, share, int(bounds[place])))
        return out

    def _knots(self, stream: str, codec: Codec) -> tuple[Times, Values, npt.NDArray[np.int64]]:
        """Frames of a series by time: times (k,), values (k, ...), clock bounds (k,)."""
        series = self._series.get((stream, codec))
        if series is None or not series.frames:
            return np.zeros(0, np.int64), np.zeros((0, 1, 1, 1), np.float32), np.zeros(0, np.int64)
        frames = list(series.frames)
        times, bounds = self._times(series.device, [f.clock for f in frames], [f.raw_ns for f in frames])
        # Where two frames fall on one time, the one that came later counts.
        times, chosen = np.unique(times[::-1], return_index=True)
        chosen = len(frames) - 1 - chosen
        values = np.stack([frames[n].values for n in chosen.tolist()]).astype(np.float32)
        return times, values, bounds[chosen]

    def _times(
        self, device: str, clocks: Sequence[int], raw_ns: Sequence[int]
    ) -> tuple[Times, npt.NDArray[np.int64]]:
        return on_timeline(
            self._clocks.get(device, ()), np.asarray(clocks, np.int64), np.asarray(raw_ns, np.int64)
        )

    def _marked(self, stream: str, place: Between, times_ns: Times) -> Between:
        """The same places, those in a gap that the log tells of not known."""
        known = place.known & ~self._in_gap(stream, times_ns)
        return Between(place.before, place.after, place.share, known, np.where(known, place.apart_ns, 0))

    def _in_gap(self, stream: str, times_ns: Times) -> Mask:
        inside = np.zeros(len(times_ns), np.bool_)
        # Features are made from the pictures or the sound of their device: what is missing there is missing here.
        for name in (stream, *_sources_of(stream)):
            gaps = self._gaps.get(name)
            if not gaps:
                continue
            device, clocks = gaps[0].device, [g.clock for g in gaps]
            starts, _ = self._times(device, clocks, [g.raw_start_ns for g in gaps])
            ends, _ = self._times(device, clocks, [g.raw_end_ns for g in gaps])
            order = np.argsort(starts, kind="stable")
            # A time is in a gap if one of those that began before it has not ended.
            until = np.maximum.accumulate(ends[order])
            began = np.searchsorted(starts[order], times_ns, side="right") - 1
            inside |= (began >= 0) & (until[np.maximum(began, 0)] > times_ns)
        return inside

    def _newest(self, device: str) -> int:
        known = self._clocks.get(device)
        return known[-1].number if known else 0

    def _let_go(self, device: str, frames: deque[Frame]) -> None:
        newest = frames[-1]
        while len(frames) > self._settings.most_frames or (
            self._since_ns(device, frames[0], newest) > self._settings.keep_ns
        ):
            self._drop_oldest(frames)

    def _drop_oldest(self, frames: deque[Frame]) -> None:
        number = frames.popleft().number
        if self.changed.pop(number, None) is None:
            self.changed[number] = None

    def _since_ns(self, device: str, first: Frame, last: Frame) -> int:
        """Timeline time from one frame to another."""
        if first.clock == last.clock:
            return last.raw_ns - first.raw_ns
        times, _ = self._times(device, [first.clock, last.clock], [first.raw_ns, last.raw_ns])
        return int(times[1] - times[0])


def _sources_of(stream: str) -> tuple[str, ...]:
    device, _, modality = stream.rpartition("/")
    source = {"picture_features": Modality.VIDEO, "sound_features": Modality.AUDIO}.get(modality)
    return () if source is None else (f"{device}/{source.name.lower()}",)


def _rows(packet: Packet) -> npt.NDArray[np.float16] | npt.NDArray[np.uint8] | None:
    """Frames of a feature packet, (frames, ...), copied; None where payload and header do not fit."""
    values = payload_array(packet)
    if packet.codec is Codec.PATCHES_U8:
        return np.array(values, np.uint8)[None]
    if packet.codec is Codec.VOLUME_F16:
        if packet.channels == 0 or len(values) % packet.channels:
            return None
        values = values.reshape(-1, packet.channels, packet.height, packet.width)
    elif packet.codec is not Codec.MEL_F16:
        return None
    rows = values.astype(np.float16)
    return rows if np.isfinite(rows).all() else None


def _period_ns(packet: Packet, rows: int) -> int:
    return _NS // packet.rate_hz if packet.rate_hz else packet.duration_ns // rows


def _worst(bounds: npt.NDArray[np.int64], place: Between) -> npt.NDArray[np.int64]:
    """Clock bound at each place: the larger of its two frames'."""
    if len(bounds) == 0:
        return np.zeros(len(place.known), np.int64)
    return np.where(place.known, np.maximum(bounds[place.before], bounds[place.after]), 0)
