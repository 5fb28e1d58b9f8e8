"""Which meetings are left out while a process does not keep up: the meeting that began last first, the others whole.

The one that began first never is: where there is one meeting, a machine that is busy for a while makes its text late
and loses nothing.

`Shedding` is the rule, fed with how far behind the process is; `Load` gathers that from all shards of a process and
tells an operator. What is left out becomes records on the log (`meeting.py`); nothing here is remembered by a
restarted flow.
"""

import math
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from operators.log import say

_LOOK_EVERY_S: Final = 0.5
_TELL_EVERY_S: Final = 60.0
_PAUSED_S: Final = 2.5
"""Looks that are further apart say that the process did not run meanwhile."""
_REMEMBERED: Final = 2_400
_SENDS_S: Final = 30.0
_STALE_S: Final = 3.0
"""A shard that has told nothing for so long has nothing to read."""


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """When meetings are left out, and taken back; all in seconds, infinity for never.

    `after_s`: how far behind the process may be. `window_s`: how long what has been done gets to help, and over which
    it is judged whether the process catches up by itself; a flow that was restarted does. `catching_up`: seconds a
    second by which the backlog must shrink to count as that. `calm_s`: how long it must have been hardly behind
    (`calm_below` of `after_s`) before a meeting is taken back. Where that was too soon, because the meeting had to be
    left out again within `again_s`, the next one waits twice as long, up to `calm_most_s`.
    """

    after_s: float = math.inf
    window_s: float = 5.0
    catching_up: float = 0.1
    calm_s: float = 10.0
    calm_below: float = 0.2
    again_s: float = 60.0
    calm_most_s: float = 300.0

    def __post_init__(self) -> None:
        if not (self.after_s > 0 and self.window_s > 0 and 0 < self.calm_below < 1):
            raise ValueError(
                "a limit, some time to look at and a share below 1 are needed: else all would be left out"
            )

    def build(self) -> "Shedding":
        """The rule, with nothing left out."""
        return Shedding(self)


@dataclass(frozen=True, slots=True)
class Change:
    """A meeting is left out from now on, or taken back after ``out_s`` seconds."""

    meeting: str
    what: Literal["left_out", "taken_back"]
    out_s: float = 0.0


class Shedding:
    """The rule. Times in seconds of any clock that goes on."""

    def __init__(self, settings: SheddingSettings) -> None:
        self._settings = settings
        self._out: dict[str, float] = {}
        self._looks: deque[tuple[float, float]] = deque()
        self._changed_s = -math.inf
        self._calm_since_s: float | None = None
        self._taken_back_s = -math.inf
        self._calm_s = settings.calm_s

    @property
    def out(self) -> Mapping[str, float]:
        """Meetings that are left out, the first one first, and since when."""
        return self._out

    def look(self, now_s: float, behind_s: float, began: Mapping[str, int]) -> Change | None:
        """What changes now; ``began``: the meetings that go on, and when each began (any order of integers)."""
        self._out = {meeting: since for meeting, since in self._out.items() if meeting in began}
        if behind_s < self._settings.after_s or (self._looks and now_s - self._looks[-1][0] > _PAUSED_S):
            # A process that was stopped, or cut off, is behind all at once: how it goes on from there is what counts.
            self._looks.clear()
        if behind_s >= self._settings.after_s:
            self._looks.append((now_s, behind_s))
        while len(self._looks) > 1 and self._looks[1][0] <= now_s - self._settings.window_s:
            self._looks.popleft()
        if behind_s >= self._settings.calm_below * self._settings.after_s:
            self._calm_since_s = None
        elif self._calm_since_s is None:
            self._calm_since_s = now_s
        if self._hopeless(now_s, behind_s):
            return self._leave_out(now_s, began)
        if self._out and len(self._out) == len(began):
            return self._take_back(now_s)  # those before it are over
        if self._out and self._calm_since_s is not None:
            calm_s = now_s - max(self._calm_since_s, self._changed_s)
            return self._take_back(now_s) if calm_s >= self._calm_s else None
        return None

    def _hopeless(self, now_s: float, behind_s: float) -> bool:
        """Whether the process is too far behind and what has been done so far does not bring it back."""
        if not self._looks:
            return False
        since_s, was_behind_s = self._looks[0]
        passed_s = now_s - since_s
        return (
            now_s - self._changed_s >= self._settings.window_s
            and passed_s >= self._settings.window_s
            and behind_s > was_behind_s - self._settings.catching_up * passed_s
        )

    def _leave_out(self, now_s: float, began: Mapping[str, int]) -> Change | None:
        rest = [meeting for meeting in began if meeting not in self._out]
        if len(rest) < 2:
            return None
        last = max(rest, key=lambda meeting: (began[meeting], meeting))
        if now_s - self._taken_back_s < self._settings.again_s:
            self._calm_s = min(2 * self._calm_s, self._settings.calm_most_s)
        elif not self._out:
            self._calm_s = self._settings.calm_s
        self._out[last], self._changed_s = now_s, now_s
        return Change(last, "left_out")

    def _take_back(self, now_s: float) -> Change:
        # The last one that was left out began before the others of them.
        meeting, since_s = self._out.popitem()
        self._changed_s = self._taken_back_s = now_s
        return Change(meeting, "taken_back", now_s - since_s)


@dataclass(slots=True)
class _Reading:
    """How far behind one shard is, by the newest of its media that was handled."""

    at_s: float
    behind_s: float


class Load:
    """How far behind one process is, over all its shards, and which meetings it therefore leaves out.

    For any number of threads. `waited_s`: how long the piece of speech has waited that waits longest for recognition;
    a process whose recogniser is behind does not keep up either.
    """

    def __init__(
        self, settings: SheddingSettings, waited_s: Callable[[], float] = lambda: 0.0,
        *, clock_s: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._rule = settings.build()
        self._waited_s = waited_s
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._began: dict[str, int] = {}
        self._read_s: dict[str, float] = {}
        self._ages: dict[int, dict[str, float]] = {}
        self._usual: dict[str, float] = {}
        """Age of a meeting's media when all that had come was handled: what its clock and the broker's differ by."""
        self._readings: dict[int, _Reading] = {}
        self._read_behind: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        """How far behind reading was at each look."""
        self._out: frozenset[str] = frozenset()
        self._looked_s = self._told_s = -math.inf

    @property
    def out(self) -> frozenset[str]:
        """Meetings that are left out."""
        return self._out

    def read(self, shard: int, meeting: str, began: int, age_s: float) -> None:
        """A meeting's media were handled.

        ``began``: when the meeting did; ``age_s``: how long they stood on the broker, or since when they were captured
        where that is less (a recording sent faster than it was made; negative where its time is still to come).
        """
        with self._lock:
            now_s = self._clock_s()
            self._began[meeting], self._read_s[meeting] = began, now_s
            self._ages.setdefault(shard, {})[meeting] = age_s
            usual_s = self._usual.get(meeting)
            if usual_s is None:
                # A meeting that begins: what the clocks differ by is known from the others.
                others = sorted(self._usual.values())
                usual_s = others[len(others) // 2] if others else 0.0
            self._readings[shard] = _Reading(now_s, age_s - usual_s)

    def caught_up(self, shard: int) -> None:
        """All that stood on the broker for a shard was handled."""
        with self._lock:
            self._usual |= self._ages.get(shard, {})
            self._readings.pop(shard, None)

    def gone(self, meeting: str) -> None:
        """A meeting is over."""
        with self._lock:
            self._began.pop(meeting, None)
            for known in (self._read_s, self._usual, *self._ages.values()):
                known.pop(meeting, None)

    def look(self) -> None:
        """Decide what is left out from now on; cheap to call often."""
        now_s = self._clock_s()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return
        with self._lock:
            if now_s - self._looked_s < _LOOK_EVERY_S:
                return
            self._looked_s = now_s
            behind_s = self._behind_s(now_s)
            # To leave out a meeting that sends nothing would help nobody.
            sending = {m: began for m, began in self._began.items() if now_s - self._read_s[m] < _SENDS_S}
            before = self._out
            change = self._rule.look(now_s, behind_s, sending)
            self._out = frozenset(self._rule.out)
            for meeting in sorted(before - self._out - {change.meeting if change else ""}):
                say(
                    f"flows.perceive: meeting {meeting} is no longer left out: it is over or sends nothing",
                    "taken_back",
                    meeting=meeting,
                )
            if change is not None:
                self._say(change, behind_s, len(sending))
                self._told_s = now_s
            elif self._out and now_s - self._told_s >= _TELL_EVERY_S:
                self._told_s = now_s
                since = ", ".join(f"{m} for {now_s - since_s:.0f} s" for m, since_s in self._rule.out.items())
                say(f"flows.perceive: still left out: {since}", "shed", meetings=len(self._out))

    def _behind_s(self, now_s: float) -> float:
        """How old the oldest sound is that is read, or waits to be recognised; the lock is held.

        Speech that waits had an age when it was asked for: after a stop both together fall while the flow catches up,
        though the queue of the recogniser grows meanwhile.
        """
        reading_s = max(
            (r.behind_s for r in self._readings.values() if now_s - r.at_s < _STALE_S), default=0.0
        )
        self._read_behind.append((now_s, reading_s))
        waited_s = self._waited_s()
        if waited_s <= 0.0:
            return reading_s
        asked = bisect_right(self._read_behind, now_s - waited_s, key=lambda entry: entry[0])
        return max(reading_s, waited_s + self._read_behind[max(0, asked - 1)][1])

    def _say(self, change: Change, behind_s: float, sending: int) -> None:
        if change.what == "taken_back":
            say(
                f"flows.perceive: meeting {change.meeting} is taken back after {change.out_s:.0f} s",
                "taken_back",
                meeting=change.meeting, seconds=round(change.out_s, 1),
            )  # fmt: skip
            return
        say(
            f"flows.perceive: {behind_s:.0f} s behind and not catching up: sound and pictures of meeting {change.meeting}, "
            f"which began last, are left out until it does ({len(self._out)} of {sending} meetings)",
            "shed",
            meeting=change.meeting, seconds=round(behind_s, 1),
        )  # fmt: skip
