"""Gestures out of a camera's small features: nods, shakes of the head, raised hands.

A nod or a shake is a short bout of movement at one place of the picture, up and down or sideways (maps
``across`` and ``down`` of the feature volume). A raised hand is something high and narrow that comes up with a
movement, stands still and is gone again (patches against what is usual there). What is found depends on the
frames of one stream in their order, on nothing else.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import cv2
import numpy as np
import numpy.typing as npt

from operators.understand.sensed import GestureKind

_MS: Final = 1_000_000
_BREAK_NS: Final = 2_000 * _MS
_MOST_STRETCHES: Final = 1_024
_ACROSS, _DOWN = 3, 4
MAPS: Final = 5
"""Volumes with fewer maps do not say which way things move."""

Image = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GestureSettings:
    """What counts as a gesture. Ways are in cells per 200 ms, pictures are 128x64 with levels 0 to 255.

    Attributes:
        noise: way of a cell that sensor noise brings about.
        moving: way of three neighbouring columns together from which something moves there.
        shortest_ns, longest_ns: of a nod or shake.
        clear: share of the way that has to be in one direction.
        crowd: share of columns from which it is the camera that moves, or everybody.
        levels: change of brightness that counts.
        settles: by how much a frame a lasting change becomes usual, levels.
        hand_height, hand_width, hand_area: bounds of what a hand with its arm covers, pixels.
        most_joined: two parts above each other are one arm if they are no wider together than this.
        rises_within_ns: a hand has come up with a movement no longer ago than this when it is first seen.
        most: gestures that are remembered.
    """

    noise: float = 0.02
    moving: float = 0.5
    shortest_ns: int = 450 * _MS
    longest_ns: int = 2_500 * _MS
    clear: float = 0.65
    crowd: float = 0.6
    levels: float = 14.0
    settles: float = 2.0
    hand_height: tuple[int, int] = (6, 40)
    hand_width: tuple[int, int] = (2, 22)
    hand_area: tuple[int, int] = (14, 300)
    most_joined: int = 13
    rises_within_ns: int = 1_600 * _MS
    most: int = 4_096


@dataclass(frozen=True, slots=True)
class SeenGesture:
    """A gesture on the camera's own clock.

    Attributes:
        clock: number of the newest clock record known when it began.
        place: across the picture, 0 left to 1 right.
        boundary_ns: how sharply its beginning is known.
    """

    kind: GestureKind
    start_raw_ns: int
    end_raw_ns: int
    clock: int
    place: float
    confidence: float
    boundary_ns: int


@dataclass(slots=True)
class _Bout:
    """Movement at one place that goes on, or has just stopped."""

    start_ns: int
    last_ns: int
    clock: int
    columns: npt.NDArray[np.float64]
    across: float = 0.0
    down: float = 0.0
    strongest: float = 0.0


@dataclass(slots=True)
class _Hand:
    start_ns: int
    last_ns: int
    clock: int
    box: tuple[int, int, int, int]
    """Left, top, right, bottom, pixels of the small picture."""


@dataclass(slots=True)
class Stretch:
    """How long a camera was watched without a break, on its own clock."""

    since_ns: int
    until_ns: int
    clock: int


@dataclass(slots=True)
class GestureWatch:
    """Watches one camera. Picklable; its size does not grow with the meeting beyond ``most`` gestures."""

    settings: GestureSettings = field(default_factory=GestureSettings)
    stretches: deque[Stretch] = field(default_factory=lambda: deque(maxlen=_MOST_STRETCHES))
    _tells_ways: bool = False
    """Whether its volumes have said which way anything moves."""
    _spacing_ns: int = 0
    _bouts: list[_Bout] = field(default_factory=list)
    _moved: deque[tuple[int, npt.NDArray[np.float32]]] = field(default_factory=lambda: deque(maxlen=16))
    """Of the last volumes: raw time and the way at each column."""
    _usual: Image | None = None
    _hands: list[_Hand] = field(default_factory=list)
    _found: deque[SeenGesture] = field(default_factory=deque)

    def see(self, raw_ns: int, clock: int, values: npt.NDArray[np.float16] | npt.NDArray[np.uint8]) -> None:
        """The next frame of features of either kind."""
        if values.dtype == np.uint8:
            self.patches(raw_ns, clock, values.astype(np.uint8))
        else:
            self.volume(raw_ns, clock, values.astype(np.float16))

    def volume(self, raw_ns: int, clock: int, maps: npt.NDArray[np.float16]) -> None:
        """The next volume, (maps, rows, columns)."""
        if len(maps) < MAPS:
            return
        self._tells_ways = self._tells_ways or bool(maps[[_ACROSS, _DOWN]].any())
        if not self._tells_ways:
            # Slow cameras and single pictures never do: that nobody moved in them says nothing.
            return
        self._goes_on(raw_ns, clock)
        ways = np.maximum(maps[[_ACROSS, _DOWN]].astype(np.float32) - self.settings.noise, 0.0).sum(axis=1)
        wide = np.stack([np.convolve(way, np.ones(3), "same") for way in ways])
        self._moved.append((raw_ns, wide.sum(axis=0).astype(np.float32)))
        total = wide.sum(axis=0)
        active = total > self.settings.moving
        if active.mean() > self.settings.crowd:
            self._bouts.clear()
            return
        for first, last in _runs(active):
            self._moving(raw_ns, clock, first, last, ways)
        for bout in [b for b in self._bouts if raw_ns - b.last_ns > self._spacing_ns * 3 // 2]:
            self._bouts.remove(bout)
            self._over(bout)

    def patches(self, raw_ns: int, clock: int, squares: npt.NDArray[np.uint8]) -> None:
        """The next patches, (32, 16, 16): the whole picture, reduced to 128x64."""
        if squares.shape != (32, 16, 16):
            return
        picture = squares.reshape(4, 8, 16, 16).transpose(0, 2, 1, 3).reshape(64, 128).astype(np.float32)
        if self._usual is None:
            self._usual = picture
            return
        change = picture - self._usual
        # Light that goes up or down for the whole room moves nobody's hand.
        change -= np.median(change)
        seen = self._boxes((np.abs(change) > self.settings.levels).astype(np.uint8))
        for hand in list(self._hands):
            match = next((box for box in seen if _overlap(box, hand.box)), None)
            if match is None:
                self._hands.remove(hand)
                self._lowered(hand, raw_ns)
            else:
                seen.remove(match)
                hand.last_ns = raw_ns
        for box in seen:
            start_ns = self._came_up(box, raw_ns)
            if start_ns is not None:
                self._hands.append(_Hand(start_ns, raw_ns, clock, box))
        self._usual += np.clip(change, -self.settings.settles, self.settings.settles)

    def gestures(self) -> list[SeenGesture]:
        """All gestures so far by their start; hands that are still up end where they were last seen."""
        found = [*self._found, *(self._raised(hand, hand.last_ns) for hand in self._hands)]
        hands = [g for g in found if g.kind == "raise_hand"]
        kept = [g for g in found if g.kind == "raise_hand" or not any(_is_arm(g, hand) for hand in hands)]
        return sorted(kept, key=lambda g: (g.start_raw_ns, g.place, g.kind))

    def _goes_on(self, raw_ns: int, clock: int) -> None:
        """Take note of the time; after a break or a clock that was set, all that was under way is void."""
        last = self.stretches[-1] if self.stretches else None
        elapsed_ns = 0 if last is None else raw_ns - last.until_ns
        if last is not None and 0 < elapsed_ns < _BREAK_NS and last.clock == clock:
            self._spacing_ns = max(elapsed_ns, 100 * _MS)
            last.until_ns = raw_ns
            return
        self.stretches.append(Stretch(raw_ns, raw_ns, clock))
        if last is None or not 0 < elapsed_ns < _BREAK_NS:
            self._spacing_ns = 200 * _MS
            self._bouts.clear()
            self._moved.clear()
            self._hands.clear()

    def _moving(self, raw_ns: int, clock: int, first: int, last: int, ways: npt.NDArray[np.float32]) -> None:
        middle = np.zeros(ways.shape[1])
        middle[first : last + 1] = ways[:, first : last + 1].sum(axis=0)
        bout = next((b for b in self._bouts if float(np.minimum(b.columns, middle).sum()) > 0.0), None)
        if bout is None:
            bout = _Bout(raw_ns - self._spacing_ns, raw_ns, clock, np.zeros(ways.shape[1]))
            self._bouts.append(bout)
        bout.last_ns = raw_ns
        bout.columns = bout.columns + middle
        bout.across += float(ways[0, first : last + 1].sum())
        bout.down += float(ways[1, first : last + 1].sum())
        bout.strongest = max(bout.strongest, float(middle.sum()))

    def _over(self, bout: _Bout) -> None:
        length_ns = bout.last_ns - bout.start_ns
        if not self.settings.shortest_ns <= length_ns <= self.settings.longest_ns:
            return
        share = bout.down / (bout.down + bout.across)
        clear = max(share, 1.0 - share)
        if clear < self.settings.clear or bout.strongest < 2.0 * self.settings.moving:
            return
        kind: GestureKind = "nod" if share > 0.5 else "shake"
        columns = np.arange(len(bout.columns)) + 0.5
        place = float((columns * bout.columns).sum() / bout.columns.sum() / len(columns))
        self._keep(
            SeenGesture(
                kind, bout.start_ns, bout.last_ns, bout.clock, round(place, 3),
                round(min(0.95, 0.5 + (clear - 0.5)), 3), self._spacing_ns,
            )
        )  # fmt: skip

    def _boxes(self, mask: npt.NDArray[np.uint8]) -> list[tuple[int, int, int, int]]:
        """What changed and has the size of a hand with its arm."""
        whole = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
        whole = cv2.morphologyEx(whole, cv2.MORPH_CLOSE, np.ones((3, 1), np.uint8))
        _, _, stats, _ = cv2.connectedComponentsWithStats(whole, connectivity=8)
        found = []
        for left, top, width, height, area in stats[1:].tolist():
            fits = (
                _within(height, self.settings.hand_height)
                and _within(width, self.settings.hand_width)
                and _within(area, self.settings.hand_area)
            )
            if fits and height >= width // 2:
                found.append((left, top, left + width, top + height))
        return self._joined(sorted(found))

    def _joined(self, boxes: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
        """Hand and sleeve come apart where one of them is as bright as what is behind it: above each other is one."""
        joined: list[tuple[int, int, int, int]] = []
        for box in boxes:
            last = joined[-1] if joined else None
            both = None if last is None else _around(last, box)
            if (
                last is not None
                and both is not None
                and (
                    box[0] < last[2] + 2
                    and both[2] - both[0] <= max(self.settings.most_joined, last[2] - last[0])
                )
            ):
                joined[-1] = both
            else:
                joined.append(box)
        return joined

    def _came_up(self, box: tuple[int, int, int, int], raw_ns: int) -> int | None:
        """When the movement began with which this came into view; None where it is still moving, or none was seen."""
        moved = [(t, w) for t, w in self._moved if 0 <= raw_ns - t <= self.settings.rises_within_ns]
        if not moved:
            return None
        columns = len(moved[0][1])
        first, last = box[0] * columns // 128, min(columns - 1, (box[2] - 1) * columns // 128)
        there = [(t, float(w[first : last + 1].max())) for t, w in moved]
        if there[-1][1] > self.settings.moving:
            return None
        active = [t for t, way in there if way > self.settings.moving]
        return active[0] - self._spacing_ns if active else None

    def _lowered(self, hand: _Hand, raw_ns: int) -> None:
        """A hand is gone: it ended with the last movement there since it was last seen."""
        columns = len(self._moved[0][1]) if self._moved else 16
        first, last = hand.box[0] * columns // 128, min(columns - 1, (hand.box[2] - 1) * columns // 128)
        active = [
            t for t, w in self._moved
            if hand.last_ns < t <= raw_ns and float(w[first : last + 1].max()) > self.settings.moving
        ]  # fmt: skip
        self._keep(self._raised(hand, max(active, default=raw_ns)))

    def _raised(self, hand: _Hand, end_ns: int) -> SeenGesture:
        place = (hand.box[0] + hand.box[2]) / 256.0
        return SeenGesture(
            "raise_hand", hand.start_ns, end_ns, hand.clock, round(place, 3), 0.9, self._spacing_ns
        )

    def _keep(self, gesture: SeenGesture) -> None:
        self._found.append(gesture)
        while len(self._found) > self.settings.most:
            self._found.popleft()


def _runs(active: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last of each stretch of neighbouring true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], active.astype(np.int8), [0]))))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _within(value: int, bounds: tuple[int, int]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _around(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _is_arm(gesture: SeenGesture, hand: SeenGesture) -> bool:
    """Whether a nod or shake is only the arm that went up or came down."""
    near = abs(gesture.place - hand.place) < 0.12
    edges = (hand.start_raw_ns, hand.end_raw_ns)
    return near and any(
        gesture.start_raw_ns - 600 * _MS <= edge <= gesture.end_raw_ns + 600 * _MS for edge in edges
    )
