"""Whose voice is it? Tells a person's own speech at their microphone from cross-talk.

Every microphone in a room hears everybody. For each ordered pair of microphones the level difference falls into two
heaps: one while the person at the first speaks, one while the person at the second does. Their positions are learned
from the sound, so that unequal gains do no harm; until both have been seen, equal gains and a typical distance are
assumed. A frame is somebody's own speech when its level is clearly above what all other microphones together explain
as leakage; two people speaking at once are therefore both kept.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from operators.speech.stream import FRAME_NS

LEVELS_KEPT = 160
"""Frames (5 s) of each microphone that others are compared with, besides those that wait to be decided."""

_LOWEST_DB, _BINS = -45, 91
"""Histogram of level differences: 1 dB a bin, -45 to +45 dB."""


@dataclass(frozen=True)
class SeatSettings:
    """Levels in dB, times in ns.

    `assumed_leak_db`: how much weaker a neighbour's voice is than at their own microphone, before it is learned.
    `tail_ns`: for how long after a voice the room still sounds of it. `short_frames`: a piece with no more voiced
    frames is held against the other microphones once more as a whole, one of `lost_frames` against those of which
    something is missing meanwhile: against the loudest that came from them up to `lost_around_ns` before and after.
    """

    assumed_leak_db: float = -10.0
    own_above_db: float = 5.0
    keep_above_db: float = 3.0
    foreign_below_db: float = 1.0
    margin_limit_db: float = 12.0
    follow: float = 0.6
    audible_above_floor_db: float = 9.0
    faint_above_floor_db: float = 3.0
    reverberation_ns: int = 64_000_000
    tail_ns: int = 320_000_000
    gain_from_noise: float = 0.6
    max_gain_guess_db: float = 12.0
    learn_probability: float = 0.6
    learn_frames: float = 20.0
    min_heap_distance_db: float = 8.0
    short_frames: int = 16
    lost_frames: int = 24
    lost_around_ns: int = 1_000_000_000


@dataclass(slots=True)
class Level:
    """Level of one frame at corrected time.

    `floor_db` is what the microphone heard of the quiet room by then, filled when it is added: a frame is compared
    with floors of its own time, however much later sound has already come. `lost`: nothing came of this frame.
    """

    start_ns: int
    level_db: float
    probability: float
    floor_db: float = -70.0
    lost: bool = False


_NOTHING_DB = -115.0
"""Below what any microphone makes of a quiet room: lost packets, or digital silence."""
_HELD_NS = 400_000_000
"""For how long a microphone of which nothing comes passes for as loud as it was: somebody may go on speaking there."""


class Microphone:
    """Level history and noise floor of one microphone.

    Where packets were lost, it counts as being as loud as before for a moment: else whoever sits next to it would
    seem to say what their microphone overhears.
    """

    def __init__(self) -> None:
        self.levels: deque[Level] = deque()
        self._heard: Level | None = None
        self.floor_db = -70.0
        self._minimum_db = 0.0
        self._minimum_frames = 0
        self._settled = False

    def add(self, level: Level, undecided: int = 0) -> None:
        """Add the next frame; so many wait to be decided."""
        while len(self.levels) >= LEVELS_KEPT + undecided:
            self.levels.popleft()
        heard = self._heard
        level.lost = level.level_db < _NOTHING_DB
        if level.lost and heard is not None and level.start_ns - heard.start_ns <= _HELD_NS:
            self.levels.append(
                Level(level.start_ns, heard.level_db, heard.probability, self.floor_db, lost=True)
            )
            return
        self._heard = level
        self._learn_floor(level)
        level.floor_db = self.floor_db
        self.levels.append(level)

    def _learn_floor(self, level: Level) -> None:
        self._minimum_db = min(self._minimum_db, level.level_db)
        self._minimum_frames += 1
        if not self._settled:
            # The quietest of the first half second is the first guess.
            self.floor_db = max(-100.0, self._minimum_db)
            self._settled = self._minimum_frames >= 16
        elif level.level_db < self.floor_db:
            self.floor_db += 0.3 * (max(-100.0, level.level_db) - self.floor_db)
        # Minimum over about a second, followed slowly upwards: speech has pauses, a fan has none.
        if self._minimum_frames >= 32:
            self.floor_db += 0.15 * (max(-100.0, self._minimum_db) - self.floor_db)
            self._minimum_db, self._minimum_frames = 0.0, 0

    def loudest(self, first_ns: int, last_ns: int) -> Level | None:
        """The loudest of the frames that begin between the two times, with the floor of the newest of them.

        To half a frame: the stamps of two microphones differ by what their noise is, and that decides nothing. Where
        packets were lost, the frame before; None where there is none.
        """
        newest: Level | None = None
        found: Level | None = None
        for level in reversed(self.levels):
            if level.start_ns >= last_ns + FRAME_NS // 2:
                continue
            newest = newest or level
            if level.start_ns < first_ns - FRAME_NS // 2:
                if found is None and first_ns - level.start_ns <= _HELD_NS:
                    found = level
                break
            if found is None or level.level_db > found.level_db:
                found = level
        if found is None or newest is None:
            return None
        return Level(found.start_ns, found.level_db, found.probability, newest.floor_db)

    def lost(self, first_ns: int, last_ns: int) -> bool:
        """Whether of frames that begin between the two times, to half a frame, nothing came.

        Clocks that run apart leave one out now and then.
        """
        half = FRAME_NS // 2
        found = [level for level in self.levels if first_ns - half <= level.start_ns < last_ns + half]
        return len(found) < (last_ns - first_ns) // FRAME_NS or any(level.lost for level in found)

    def move(self, by_ns: int) -> None:
        """What was heard lies this much later than was thought."""
        if by_ns == 0:
            return  # nearly always; this is asked at every block of every microphone
        for level in self.levels:
            level.start_ns += by_ns
        if self._heard is not None and all(level is not self._heard for level in self.levels):
            self._heard.start_ns += by_ns

    def dump(self) -> list[Any]:
        """Plain values."""
        return [
            [_plain(level) for level in self.levels],
            self.floor_db,
            self._minimum_db,
            self._minimum_frames,
            self._settled,
            None if self._heard is None else _plain(self._heard),
        ]

    @classmethod
    def load(cls, raw: list[Any]) -> "Microphone":
        """Inverse of `dump`."""
        microphone = cls()
        microphone.levels.extend(Level(*level) for level in raw[0])
        microphone.floor_db, microphone._minimum_db = raw[1:3]
        microphone._minimum_frames, microphone._settled = raw[3:5]
        microphone._heard = None if raw[5] is None else Level(*raw[5])
        return microphone


def _plain(level: Level) -> list[Any]:
    return [level.start_ns, level.level_db, level.probability, level.floor_db, level.lost]


class PairBalance:
    """Level differences between two microphones: second minus first, in dB."""

    def __init__(self, settings: SeatSettings) -> None:
        self._settings = settings
        self._heap: npt.NDArray[np.float32] = np.zeros(_BINS, dtype=np.float32)
        self._since = 0
        self._learned = False
        self._guess_db = 0.0
        self.first_speaks_db = settings.assumed_leak_db
        self.second_speaks_db = -settings.assumed_leak_db

    def assume(self, noise_difference_db: float) -> None:
        """Guess the gains from the noise floors (second minus first) for as long as only the guess is there.

        Room noise shows a microphone's gain, a fan beside it feigns one: the guess believes it in part.
        """
        if self._learned:
            return
        limit = self._settings.max_gain_guess_db
        self._guess_db = min(limit, max(-limit, self._settings.gain_from_noise * noise_difference_db))
        if self._heap.sum() < self._settings.learn_frames:
            self.first_speaks_db = self._settings.assumed_leak_db + self._guess_db
            self.second_speaks_db = -self._settings.assumed_leak_db + self._guess_db

    def learn(self, difference_db: float) -> None:
        """Add a frame in which one of the two is the loudest voice."""
        self._heap *= 0.9995
        self._heap[min(_BINS - 1, max(0, round(difference_db) - _LOWEST_DB))] += 1.0
        self._since += 1
        if self._since >= 16:
            self._since = 0
            self._split()

    def _split(self) -> None:
        """Find the two heaps by the split with the greatest variance between them (Otsu 1979)."""
        values = np.arange(_BINS, dtype=np.float64) + _LOWEST_DB
        weight = np.cumsum(self._heap, dtype=np.float64)
        moment = np.cumsum(self._heap * values)
        below, above = weight[:-1], weight[-1] - weight[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = moment[:-1] / below, (moment[-1] - moment[:-1]) / above
            spread = np.where((below > 0) & (above > 0), below * above * np.square(high - low), 0.0)
        at = int(np.argmax(spread))
        enough = self._settings.learn_frames
        apart = float(high[at] - low[at]) if spread[at] > 0 else 0.0
        if below[at] >= enough and above[at] >= enough and apart >= self._settings.min_heap_distance_db:
            self.first_speaks_db, self.second_speaks_db = float(low[at]), float(high[at])
            self._learned = True
            return
        # One heap only: whose it is, the guess must say. The other side keeps its distance.
        if self._learned or weight[-1] < enough:
            return
        mean, leak = float(moment[-1] / weight[-1]), self._settings.assumed_leak_db
        # It lies as far on its side of the guess as this one on the other, within what rooms do.
        distance = min(-2.0 * leak, max(-leak, abs(mean - self._guess_db)))
        if mean < self._guess_db:
            self.first_speaks_db = min(mean, self._guess_db - 3.0)
            self.second_speaks_db = self._guess_db + distance
        else:
            self.second_speaks_db = max(mean, self._guess_db + 3.0)
            self.first_speaks_db = self._guess_db - distance

    def dump(self) -> list[Any]:
        """Plain values."""
        return [
            self._heap.tobytes(),
            self._since,
            self._learned,
            self._guess_db,
            self.first_speaks_db,
            self.second_speaks_db,
        ]

    def load(self, raw: list[Any]) -> None:
        """Take up what `dump` wrote."""
        self._heap = np.frombuffer(raw[0], dtype=np.float32).copy()
        self._since, self._learned, self._guess_db = raw[1:4]
        self.first_speaks_db, self.second_speaks_db = raw[4:]


class Seats:
    """All microphones of a meeting. Times are corrected by each device's clock offset before they come here."""

    def __init__(self, settings: SeatSettings) -> None:
        self.settings = settings
        self.microphones: dict[str, Microphone] = {}
        self._pairs: dict[tuple[str, str], PairBalance] = {}

    def add(self, microphone: str, level: Level, undecided: int = 0) -> None:
        """Tell the level of a frame, in order per microphone; so many frames of one wait to be decided."""
        self.microphones.setdefault(microphone, Microphone()).add(level, undecided)

    def forget(self, microphone: str) -> None:
        """The microphone is gone; what was learned about its pairs stays for its return."""
        self.microphones.pop(microphone, None)

    def move(self, microphone: str, by_ns: int) -> None:
        """What a microphone has heard lies this much later than was thought."""
        if microphone in self.microphones:
            self.microphones[microphone].move(by_ns)

    def margin_db(self, microphone: str, level: Level) -> float | None:
        """How far this frame is above what the other microphones explain as leakage, in dB.

        40 if only this microphone hears anything or there is no other, None if none does. Also learns from the
        frame.
        """
        # The same look-back on both sides: between syllables every microphone hears the room only, and the
        # comparison would be one of echoes.
        own, heard = self._side_by_side(microphone, level, self.settings.reverberation_ns)
        margin = self._above_others(microphone, own, heard)
        if margin is None and (not heard or own.level_db > own.floor_db + self.settings.faint_above_floor_db):
            # Nothing but this microphone hears anything now: somebody speaks softly into it, or the room still
            # sounds of what was said a moment ago.
            tail = self._above_others(
                microphone, *self._side_by_side(microphone, level, self.settings.tail_ns)
            )
            margin = 40.0 if tail is None else tail
        audible = own.level_db > own.floor_db + self.settings.audible_above_floor_db
        sure = level.probability >= self.settings.learn_probability
        if audible and sure and all(own.level_db >= found.level_db for _, found in heard):
            self._learn(microphone, own, heard)
        return margin

    def is_leak(self, microphone: str, voiced: list[Level], decided_ns: int) -> bool:
        """Whether a few frames that passed for somebody's own are, taken together, what another person leaked.

        Single frames between two syllables are easily mistaken; the loudest of them all is not. Where nothing came from
        the other person's microphone meanwhile, what came from it just before and after counts, up to `decided_ns`.
        """
        if not voiced or len(voiced) > self.settings.lost_frames:
            return False
        span = voiced[0].start_ns, voiced[-1].start_ns
        own = self._own(microphone, voiced[-1], span)
        own.level_db = max(level.level_db for level in voiced)
        for other, history in self.microphones.items():
            if other == microphone:
                continue
            lost = history.lost(*span)
            if not lost and len(voiced) > self.settings.short_frames:
                continue
            around_ns = self.settings.lost_around_ns if lost else 0
            last_ns = max(span[1], min(span[1] + around_ns, decided_ns))
            loudest = history.loudest(span[0] - around_ns, last_ns)
            if loudest is None or loudest.level_db <= loudest.floor_db + self.settings.audible_above_floor_db:
                continue
            leak_db = self._leak_db(other, loudest, microphone, own)
            if own.level_db - loudest.level_db - leak_db < self.settings.keep_above_db:
                return True
        return False

    def _own(self, microphone: str, level: Level, span: tuple[int, int]) -> Level:
        """The loudest of a microphone's own frames, and its floor at that time."""
        recent = self.microphones[microphone].loudest(*span)
        if recent is None:
            return Level(
                level.start_ns, level.level_db, level.probability, self.microphones[microphone].floor_db
            )
        recent.level_db = max(level.level_db, recent.level_db)
        return recent

    def _side_by_side(
        self, microphone: str, level: Level, back_ns: int
    ) -> tuple[Level, list[tuple[str, Level]]]:
        """The loudest that this microphone and each other one heard from `back_ns` before the frame to its end."""
        span = level.start_ns - back_ns, level.start_ns
        heard = [
            (other, found)
            for other, history in self.microphones.items()
            if other != microphone and (found := history.loudest(*span)) is not None
        ]
        return self._own(microphone, level, span), heard

    def _above_others(self, microphone: str, own: Level, heard: list[tuple[str, Level]]) -> float | None:
        """How far a level is above the leakage of each microphone that hears a voice; None where none does."""
        margins = [
            own.level_db - found.level_db - self._leak_db(other, found, microphone, own)
            for other, found in heard
            if found.level_db > found.floor_db + self.settings.audible_above_floor_db
        ]
        return min(margins, default=None)

    def _learn(self, microphone: str, own: Level, heard: list[tuple[str, Level]]) -> None:
        """Take in a frame in which this microphone is the loudest; in others a third person may be speaking."""
        for other, found in heard:
            difference = found.level_db - own.level_db
            pair = self._pair(microphone, own, other, found)
            pair.learn(difference if microphone < other else -difference)

    def _pair(self, one: str, at_one: Level, other: str, at_other: Level) -> PairBalance:
        first, second = sorted((one, other))
        pair = self._pairs.get((first, second))
        if pair is None:
            pair = self._pairs[(first, second)] = PairBalance(self.settings)
        noise_db = at_other.floor_db - at_one.floor_db
        pair.assume(noise_db if first == one else -noise_db)
        return pair

    def _leak_db(self, speaking: str, at_speaking: Level, hearing: str, at_hearing: Level) -> float:
        """Level at `hearing` minus level at `speaking` while only the latter speaks."""
        pair = self._pair(speaking, at_speaking, hearing, at_hearing)
        return pair.first_speaks_db if speaking < hearing else -pair.second_speaks_db

    def dump(self) -> dict[str, Any]:
        """State as plain values."""
        return {
            "microphones": {name: microphone.dump() for name, microphone in self.microphones.items()},
            "pairs": [[first, second, pair.dump()] for (first, second), pair in self._pairs.items()],
        }

    def load(self, raw: dict[str, Any]) -> None:
        """Take up what `dump` wrote."""
        self.microphones = {name: Microphone.load(part) for name, part in raw["microphones"].items()}
        self._pairs = {}
        for first, second, part in raw["pairs"]:
            pair = self._pairs[(first, second)] = PairBalance(self.settings)
            pair.load(part)
