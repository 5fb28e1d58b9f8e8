"""Notices when the slide of one stream changes and asks for one reading per new slide.

Pure logic over small luma frames: no decoding, no text recognition, no clock but the frames' own stamps.
A slide is *pending* from the first frame that shows it, *settled* once it has stood still for `settle_ns`,
and *read* when the caller hands in its lines. Flipping back to a slide that was read costs no reading.

Where a reading brought no other text than the slide had (a presenter's tile, a film, a picture that comes
up), the area that had changed is *unrewarding*: from then on a change in it alone must stand still for longer,
twice as long each time, before it is read. A change anywhere else is read as ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from models.slide_reader import TextLine
from operators.pictures.picture import (
    CELL,
    LUMA_HEIGHT,
    LUMA_WIDTH,
    VOLUME_COLUMNS,
    VOLUME_ROWS,
    ChangeSettings,
    Luma,
    Mask,
    changed_pixels,
)

STATE_FORMAT: Final = 2

_THUMB = 10
# A first slide has none before it to be told from: half the thumbnail by 32 levels is taken for it.
_FIRST_DISTANCE = 288 * 32
_LIVE_OF, _LIVE_MIN = 6, 4
_MOST_WASTED = 8
_TRAIL_LIMIT = 40

Thumb = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SlideSettings:
    """When a picture counts as a new slide.

    change: what counts as another picture.
    settle_ns: how long a picture must stand still before it is read; fades and scrolling wait.
    sharpen_wait_ns: how long a picture may go on getting sharper before it is read anyway.
    trail_ns: how far back the first frame of a slide is looked for once it stands still.
    activity_ns: spacing of the samples from which areas in constant motion are found.
    patience_ns: how long a change in an unrewarding area must stand still; doubled by each further reading
        that brought nothing, up to `most_patience_ns`.
    known_limit, known_bytes: slides remembered for flipping back, and what their pictures may take together;
        least recently shown go first.
    max_tries: readings asked for one slide when they fail.
    """

    change: ChangeSettings = field(default_factory=ChangeSettings)
    settle_ns: int = 600_000_000
    sharpen_wait_ns: int = 3_000_000_000
    trail_ns: int = 5_000_000_000
    activity_ns: int = 400_000_000
    patience_ns: int = 4_000_000_000
    most_patience_ns: int = 32_000_000_000
    known_limit: int = 24
    known_bytes: int = 192 * 1024
    max_tries: int = 2

    def __post_init__(self) -> None:
        if self.settle_ns <= 0:
            raise ValueError("settle_ns must be positive, or every frame of a fade would be read")
        if self.known_limit < 2:
            raise ValueError("known_limit below 2 would read a slide again at each flip")

    def build(self) -> SlideWatcher:
        """A watcher for one stream that has seen nothing yet."""
        return SlideWatcher(self)


@dataclass(frozen=True, slots=True)
class SlideCandidate:
    """A new slide stands still and should be read once.

    `frame_ns` names the frame to read, `start_ns` the first frame on which the slide was seen.
    """

    start_ns: int
    frame_ns: int


@dataclass(frozen=True, slots=True)
class Slide:
    """A slide with its text. `known`: shown before, so it was not read again."""

    start_ns: int
    text: str
    lines: tuple[TextLine, ...]
    known: bool


SlideEvent = SlideCandidate | Slide


@dataclass(slots=True, eq=False)
class _Pending:
    start_ns: int
    seen_ns: int
    luma: Luma
    sharpness: float


@dataclass(slots=True, eq=False)
class _Known:
    """One slide.

    waiting: starts at which it was shown and whose text has not been given out.
    asked: whether its reading is under way; after a failure it is not, until the slide is seen again.
    versus: the slide before it, and `cells` (9, 16) bool where it differs from that one.
    """

    luma: Luma
    frame_ns: int
    lines: tuple[TextLine, ...] | None = None
    waiting: list[int] = field(default_factory=list)
    tries: int = 1
    asked: bool = True
    packed: bytes = b""
    versus: _Known | None = None
    cells: Mask = field(default_factory=lambda: np.ones((VOLUME_ROWS, VOLUME_COLUMNS), np.bool_))

    def __post_init__(self) -> None:
        # Once, not at each snapshot: a remembered picture never changes.
        self.packed = self.packed or _pack(self.luma)


class SlideWatcher:
    """Follows one stream. The caller feeds frames in time order and hands readings back in order."""

    def __init__(self, settings: SlideSettings) -> None:
        self._settings = settings
        self._known: list[_Known] = []
        self._current: _Known | None = None
        self._pending: _Pending | None = None
        # Thumbnails since the picture left the current slide, to find where the next one really began.
        self._trail: list[tuple[int, Thumb]] = []
        self._last_text: str | None = None
        self._activity_luma: Luma | None = None
        self._activity_ns = 0
        self._history = np.zeros((VOLUME_ROWS, VOLUME_COLUMNS), np.uint8)
        # How many readings in a row each cell has caused for nothing.
        self._wasted = np.zeros((VOLUME_ROWS, VOLUME_COLUMNS), np.uint8)

    def observe(self, timestamp_ns: int, luma: Luma, sharpness: float) -> list[SlideEvent]:
        """Takes one frame: small luma (90, 160) uint8 and its sharpness; returns what it brings about."""
        return [*self._overdue(timestamp_ns), *self._follow(timestamp_ns, luma, sharpness)]

    def _follow(self, timestamp_ns: int, luma: Luma, sharpness: float) -> list[SlideEvent]:
        self._note_activity(timestamp_ns, luma)
        live = self._live_mask()
        if self._current is not None and self._same(self._current.luma, luma, live):
            self._pending = None
            self._trail.clear()
            return []
        self._leave_trail(timestamp_ns, luma)
        pending = self._pending
        if pending is None or timestamp_ns < pending.seen_ns or not self._same(pending.luma, luma, live):
            self._pending = _Pending(timestamp_ns, timestamp_ns, luma.copy(), sharpness)
            return []
        rising = sharpness > 1.15 * pending.sharpness
        pending.seen_ns, pending.sharpness = timestamp_ns, sharpness
        stood_ns = timestamp_ns - pending.start_ns
        if stood_ns < self._settings.settle_ns or (rising and stood_ns < self._settings.sharpen_wait_ns):
            return []
        cells = self._changed_cells(luma, live)
        if stood_ns < self._patience_ns(cells):
            return []
        self._pending = None
        # No earlier than the trail: the stream's mark may have passed what lies before it.
        start_ns = max(self._first_seen(luma, pending.start_ns, live), self._trail[0][0])
        self._trail.clear()
        return self._settle(start_ns, timestamp_ns, luma, live, cells)

    def _changed_cells(self, luma: Luma, live: Mask) -> Mask:
        """Cells (9, 16) in which a picture differs from the slide that stands."""
        where = None
        if self._current is not None:
            where = changed_pixels(self._current.luma, luma, self._settings.change, live)
        if where is None:
            return np.ones((VOLUME_ROWS, VOLUME_COLUMNS), np.bool_)
        return np.asarray(where.reshape(VOLUME_ROWS, CELL, VOLUME_COLUMNS, CELL).any(axis=(1, 3)))

    def _patience_ns(self, cells: Mask) -> int:
        wasted = int(self._wasted[cells].min())
        if not wasted:
            return 0
        if cells.mean() > 0.5:
            # A film on the whole screen, or the slide that follows it, which must not be missed.
            return self._settings.patience_ns
        return min(self._settings.patience_ns << (wasted - 1), self._settings.most_patience_ns)

    def read(self, frame_ns: int, lines: Sequence[TextLine]) -> list[Slide]:
        """Takes the reading of the candidate with this `frame_ns`; gives the slides whose text it is.

        Empty where the text is that of the slide before: an animation or a pointer, not another slide.
        """
        entry = self._unread(frame_ns)
        if entry is None:
            return []
        entry.lines = tuple(lines)
        starts, entry.waiting = entry.waiting, []
        slides: list[Slide] = []
        before, entry.versus = entry.versus, None
        if before is not None and before.lines is not None:
            if _told_in(before.lines, entry.cells) == _told_in(entry.lines, entry.cells):
                # What was read elsewhere has not changed: keep it as it was read first.
                entry.lines = before.lines
                # One cell further: what moves there will not keep to the same cells.
                around = cv2.dilate(entry.cells.astype(np.uint8), np.ones((3, 3), np.uint8))
                self._wasted = np.minimum(self._wasted + around, _MOST_WASTED).astype(np.uint8)
            else:
                self._wasted[entry.cells] = 0
        for index, start_ns in enumerate(starts):
            slides += self._show(entry, start_ns, known=index > 0)
        return slides

    def failed(self, frame_ns: int) -> list[SlideEvent]:
        """The candidate's frame could not be had or read: the slide is asked for again at its next frame.

        After `max_tries` it stays without text, so that one bad slide cannot keep the reader busy. A slide
        that has gone meanwhile is given without text too, but is read when it is shown another time.
        """
        entry = self._unread(frame_ns)
        if entry is None:
            return []
        entry.asked = False
        if entry is not self._current:
            return self._give_up(entry)
        if entry.tries >= self._settings.max_tries:
            return list(self.read(frame_ns, ()))
        self._current = None
        return []

    def missed(self, frame_ns: int, newest_ns: int) -> None:
        """A restart lost the candidate's frame, which is no fault of the slide's: it is waited for anew from now on."""
        entry = self._unread(frame_ns)
        if entry is not None:
            entry.asked, entry.frame_ns = False, newest_ns
            entry.tries -= 1
            self._current = None if entry is self._current else self._current

    @property
    def open_since_ns(self) -> int | None:
        """Start of the earliest slide that has no text yet; the stream's mark must not pass it."""
        starts = [start for entry in self._known for start in entry.waiting]
        starts += [stamp for stamp, _ in self._trail[:1]]
        return min(starts, default=None)

    @property
    def unread(self) -> tuple[SlideCandidate, ...]:
        """Candidates that were asked for and not answered, to be asked again after a restart."""
        return tuple(
            SlideCandidate(entry.waiting[0], entry.frame_ns)
            for entry in self._known
            if entry.lines is None and entry.asked
        )

    def _overdue(self, timestamp_ns: int) -> list[SlideEvent]:
        """Slides whose reading failed and that did not come back into view: their mark is let go."""
        limit_ns = timestamp_ns - self._settings.trail_ns
        late = [
            each for each in self._known if not each.asked and each.lines is None and each.frame_ns < limit_ns
        ]
        return [event for entry in late for event in self._give_up(entry)]

    def _give_up(self, entry: _Known) -> list[SlideEvent]:
        self._known.remove(entry)
        return [slide for start_ns in entry.waiting for slide in self._show(entry, start_ns, known=False)]

    def _leave_trail(self, timestamp_ns: int, luma: Luma) -> None:
        if self._trail and timestamp_ns < self._trail[-1][0]:
            self._trail.clear()
        self._trail.append((timestamp_ns, _thumb(luma)))
        oldest_ns = timestamp_ns - self._settings.trail_ns
        self._trail = [each for each in self._trail[-_TRAIL_LIMIT:] if each[0] >= oldest_ns]

    def _first_seen(self, luma: Luma, start_ns: int, live: Mask) -> int:
        """Walks back from the settled picture over frames that are nearly the same.

        A picture that only gets sharper, or a moving face in a corner, has begun before it stood still.
        """
        final, still = _thumb(luma), ~live[::_THUMB, ::_THUMB]
        far = _FIRST_DISTANCE
        if self._current is not None:
            far = _distance(_thumb(self._current.luma), final, still)
        for stamp, thumb in reversed(self._trail):
            if _distance(thumb, final, still) > far / 4:
                break
            start_ns = min(start_ns, stamp)
        return start_ns

    def _settle(self, start_ns: int, frame_ns: int, luma: Luma, live: Mask, cells: Mask) -> list[SlideEvent]:
        entry = next((each for each in reversed(self._known) if self._same(each.luma, luma, live)), None)
        if entry is None:
            entry = _Known(_coarse(luma), frame_ns, waiting=[start_ns], versus=self._current, cells=cells)
            self._known.append(entry)
            self._current = entry
            self._forget_oldest()
            return [SlideCandidate(start_ns, frame_ns)]
        self._known.remove(entry)
        self._known.append(entry)
        self._current = entry
        if entry.lines is not None:
            return list(self._show(entry, start_ns, known=True))
        if not entry.asked:
            entry.asked, entry.frame_ns = True, frame_ns
            entry.tries += 1
            return [SlideCandidate(entry.waiting[0], frame_ns)]
        entry.waiting.append(start_ns)
        return []

    def _show(self, entry: _Known, start_ns: int, known: bool) -> list[Slide]:
        lines = entry.lines or ()
        text = "\n".join(line.text for line in lines)
        if text == self._last_text:
            return []
        self._last_text = text
        return [Slide(start_ns, text, lines, known)]

    def _unread(self, frame_ns: int) -> _Known | None:
        return next((each for each in self._known if each.frame_ns == frame_ns and each.lines is None), None)

    def _forget_oldest(self) -> None:
        # Slides that wait for their text are kept: their reading is still to come.
        readable = [entry for entry in self._known if entry.lines is not None and entry is not self._current]
        size = sum(len(entry.packed) for entry in self._known)
        for entry in readable:
            if len(self._known) <= self._settings.known_limit and size <= self._settings.known_bytes:
                return
            size -= len(entry.packed)
            self._known.remove(entry)

    def _same(self, a: Luma, b: Luma, live: Mask) -> bool:
        return changed_pixels(a, b, self._settings.change, live) is None

    def _note_activity(self, timestamp_ns: int, luma: Luma) -> None:
        """Keeps six yes/no samples per cell of whether it moved, to find video tiles."""
        before = self._activity_luma
        if before is not None and 0 <= timestamp_ns - self._activity_ns < self._settings.activity_ns:
            return
        if before is not None:
            moved = cv2.absdiff(before, luma) > self._settings.change.levels
            cells = moved.reshape(VOLUME_ROWS, CELL, VOLUME_COLUMNS, CELL).any(axis=(1, 3))
            # A change of most of the picture is another slide or a fade and tells nothing about tiles.
            if cells.mean() < 0.5:
                self._history = ((self._history << 1) | cells).astype(np.uint8) & (2**_LIVE_OF - 1)
        self._activity_luma, self._activity_ns = luma.copy(), timestamp_ns

    def _live_mask(self) -> Mask:
        live = (np.bitwise_count(self._history) >= _LIVE_MIN).astype(np.uint8)
        if live.any():
            live = np.asarray(cv2.dilate(live, np.ones((3, 3), np.uint8)), np.uint8)
        return live.repeat(CELL, axis=0).repeat(CELL, axis=1).astype(np.bool_)

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as plain values (ints, strings, bytes, lists)."""
        pending = self._pending
        return {
            "format": STATE_FORMAT,
            "known": [[*_known_state(entry), self._index(entry.versus)] for entry in self._known],
            "current": self._index(self._current),
            "pending": None
            if pending is None
            else [pending.start_ns, pending.seen_ns, _pack(pending.luma), pending.sharpness],
            "trail": [[stamp, thumb.tobytes()] for stamp, thumb in self._trail],
            "last_text": self._last_text,
            "activity": None if self._activity_luma is None else _pack(self._activity_luma),
            "activity_ns": self._activity_ns,
            "history": self._history.tobytes(),
            "wasted": self._wasted.tobytes(),
        }

    @classmethod
    def from_state(cls, settings: SlideSettings, state: dict[str, Any]) -> SlideWatcher:
        """A watcher that goes on where `state` was taken; raises ValueError for an unknown format."""
        if state["format"] != STATE_FORMAT:
            raise ValueError(f"slide state of format {state['format']}, this version reads {STATE_FORMAT}")
        watcher = cls(settings)
        watcher._known = [_known_from(each) for each in state["known"]]
        for entry, part in zip(watcher._known, state["known"], strict=True):
            entry.versus = None if part[-1] is None else watcher._known[part[-1]]
        watcher._current = None if state["current"] is None else watcher._known[state["current"]]
        if state["pending"] is not None:
            start_ns, seen_ns, luma, sharpness = state["pending"]
            watcher._pending = _Pending(start_ns, seen_ns, _unpack(luma), sharpness)
        watcher._trail = [(stamp, _thumb_from(data)) for stamp, data in state["trail"]]
        watcher._last_text = state["last_text"]
        watcher._activity_luma = None if state["activity"] is None else _unpack(state["activity"])
        watcher._activity_ns = state["activity_ns"]
        watcher._history = np.frombuffer(state["history"], np.uint8).reshape(VOLUME_ROWS, -1).copy()
        watcher._wasted = np.frombuffer(state["wasted"], np.uint8).reshape(VOLUME_ROWS, -1).copy()
        return watcher

    def _index(self, wanted: _Known | None) -> int | None:
        return next((i for i, each in enumerate(self._known) if each is wanted), None)


def _known_state(entry: _Known) -> list[Any]:
    lines = None
    if entry.lines is not None:
        lines = [[line.text, list(line.box), line.confidence] for line in entry.lines]
    cells = entry.cells.astype(np.uint8).tobytes()
    return [entry.packed, entry.frame_ns, lines, list(entry.waiting), entry.tries, entry.asked, cells]


def _known_from(state: list[Any]) -> _Known:
    luma, frame_ns, lines, waiting, tries, asked, cells = state[:7]
    restored = None
    if lines is not None:
        restored = tuple(TextLine(text, (box[0], box[1], box[2], box[3]), confidence)
                         for text, box, confidence in lines)  # fmt: skip
    where = np.frombuffer(cells, np.uint8).reshape(VOLUME_ROWS, -1).astype(np.bool_)
    return _Known(
        _unpack(luma), frame_ns, restored, list(waiting), tries, asked, packed=luma, cells=where
    )  # fmt: skip


def _told_in(lines: Sequence[TextLine], cells: Mask) -> list[str]:
    """Texts of the lines that lie in one of these cells (9, 16), at least in part."""
    found = []
    for line in lines:
        x0, y0, x1, y1 = line.box
        left, top = int(x0 * VOLUME_COLUMNS), int(y0 * VOLUME_ROWS)
        if cells[top : int(y1 * VOLUME_ROWS) + 1, left : int(x1 * VOLUME_COLUMNS) + 1].any():
            found.append(line.text)
    return found


def _thumb(luma: Luma) -> Thumb:
    """Thumbnail of shape (18, 32), uint8."""
    size = (LUMA_WIDTH // _THUMB, LUMA_HEIGHT // _THUMB)
    return np.asarray(cv2.resize(luma, size, interpolation=cv2.INTER_AREA), np.uint8)


def _distance(a: Thumb, b: Thumb, where: NDArray[np.bool_]) -> int:
    """Sum of the differences of two thumbnails, small ones left out as noise."""
    difference = np.asarray(cv2.absdiff(a, b))[where].astype(np.int64)
    return int(difference[difference > 6].sum())


def _thumb_from(data: bytes) -> Thumb:
    return np.frombuffer(data, np.uint8).reshape(LUMA_HEIGHT // _THUMB, LUMA_WIDTH // _THUMB)


def _coarse(luma: Luma) -> Luma:
    """Brightness in steps of four: a third smaller in the state, and far below what counts as a change."""
    return np.asarray((luma & 0xFC) | 2, np.uint8)


def _pack(luma: Luma) -> bytes:
    return zlib.compress(luma.tobytes(), 6)


def _unpack(data: bytes) -> Luma:
    return np.frombuffer(zlib.decompress(data), np.uint8).reshape(LUMA_HEIGHT, LUMA_WIDTH).copy()
