"""The course of one stream's stamps: what its own count says, what its delivery says, and where they part.

A step of the clock moves the stamps against the count of blocks or pictures *and* moves the envelope of
delivery by as much the other way. A slower network moves only the envelope; a pause, a lost stretch or a
camera that halves its rate moves only the stamps. Neither is a step.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from operators.clock.envelope import Envelope, LowerHull
from operators.clock.pace import Pace

_MS: Final = 1_000_000
_DECIDE_AFTER_NS: Final = 2_000_000_000
SLOT_NS: Final = 1_500_000_000
_DECIDE_AT_LEAST: Final = 12
"""Packets that must have come after a jump before its envelope is believed."""
_SLOTS: Final = 24
"""Slots kept: a clock that stood still for half a minute is compared with what came before."""
_LEVEL_PACKETS: Final = 40
"""Of so many packets at least one has hardly queued."""
_LEVEL_NS: Final = 20 * _MS
"""Envelopes of two seconds differ by less than this where nothing happened."""
_FEW_LEVEL_NS: Final = 400 * _MS
"""The same where fewer packets came before: all of them may have queued."""
_ARRIVAL_UNSURE_NS: Final = 3 * _MS
"""Standard uncertainty of a jump that only delivery tells, from few packets on either side."""
_ROUTE_NS: Final = 60 * _MS
"""Ways to the broker become longer or shorter by less than this: delivery that moved by less shows no step alone."""
_COVER: Final = 3
"""Bounds are so many standard uncertainties."""
_AWAY_PACKETS: Final = 6
"""While a clock stands still: so many pictures in a row must leave the count of them, and on and on."""
_MOST_MISSING: Final = 100_000
"""A gap of more packets than this says nothing: the counter was set."""
_BACK_COSTS: Final = 50
_BACK_MOST: Final = 200
"""A clock that runs back again and again is counted on like one that stands still: more than about once in
``_BACK_COSTS`` packets, and its jumps are no longer told one by one."""
_SOUND_LIMIT_NS: Final = 15 * _MS
_PICTURE_LIMIT_NS: Final = 20 * _MS
_UNSTEADY_LIMIT_NS: Final = 60 * _MS


@dataclass(frozen=True, slots=True)
class Jump:
    """The device's clock was set, or stood still: stamps from ``from_raw_ns`` on are off by ``by_ns`` more.

    ``uncertainty_ns``: standard uncertainty of ``by_ns``. ``frozen``: it did not jump, it stood still.
    """

    from_raw_ns: int
    by_ns: int
    uncertainty_ns: int
    x: int
    """The same place on the axis that runs on through it."""
    frozen: bool = False
    by_arrival: bool = False
    """Its size is known from delivery alone."""


@dataclass(slots=True)
class _Suspicion:
    """Stamps left their course; whether that was the clock will be seen from what arrives."""

    raw_ns: int
    x: int
    jump_ns: int
    since_ns: int
    hull: LowerHull = field(default_factory=LowerHull)
    uncounted: bool = False
    """The stamps' own count says nothing of the size of the jump."""
    guessed: bool = False
    """A count that is not sharp was followed up to it: the axis is surely off by something."""
    thawed: bool = False
    """The clock had stood still and goes on …"""
    by_count_ns: int | None = None
    """… by so much more than pictures were counted, where they were."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A second or so of delivery: the packet that came soonest after its stamp, by ``delay_ns`` at ``x``."""

    number: int
    x: int
    delay_ns: int
    packets: int


@dataclass(slots=True)
class StreamCourse:
    """One stream, packet by packet in its own order. All times int ns; ``sound``: blocks of known duration."""

    sound: bool
    zero_ns: int = 0
    """What is taken off stamps to get ``x``, which runs near the broker's time."""
    shift_ns: int = 0
    """Sum of the jumps: stamps minus this run on as if the clock had never been touched."""
    skew: float = 0.0
    """Of the stamps against the broker's clock, as far as it is known; set from outside."""
    envelope: Envelope = field(default_factory=Envelope)
    frozen: bool = False
    epoch: int = 0
    last_sequence: int = -1
    last_raw_ns: int = 0
    last_x: int = 0
    last_end_ns: int = 0
    last_leaves_ns: int = 0
    repeats: int = 0
    back: int = 0
    """Grows each time that the stamps run back and shrinks with each packet."""
    pace: Pace = field(default_factory=Pace)
    away: deque[int] = field(default_factory=lambda: deque(maxlen=_AWAY_PACKETS))
    """How much later than by their count the last pictures came while the clock stood still."""
    counts: bool = True
    """Whether pictures are counted while the clock stands still; else they are placed by their arrival."""
    stood_x: int = 0
    """Where the clock began to stand still, and where the first packet lies that was counted on."""
    counted_x: int = 0
    suspicion: _Suspicion | None = None
    slots: deque[Slot] = field(default_factory=lambda: deque(maxlen=_SLOTS))
    """Delivery by arrival time, oldest first, but for what is doubtful."""

    def feed(
        self, epoch: int, sequence: int, raw_ns: int, duration_ns: int, arrival_ns: int, broker_moved_ns: int = 0
    ) -> list[Jump]:  # fmt: skip
        """The next packet; jumps of the clock that are certain by now.

        ``epoch``: a new one is a publisher that started again and counts anew. ``raw_ns``: its stamp.
        ``arrival_ns``: when it stood on the broker (on the scale of the timeline). ``broker_moved_ns``: by how
        much all other devices' delivery has moved since the clock stands still.
        """
        lasts_ns = duration_ns if self.sound else 0
        if self.last_sequence < 0:
            self.zero_ns, self.epoch = raw_ns + lasts_ns - arrival_ns, epoch
            self._went_on(sequence, raw_ns, raw_ns - self.zero_ns, lasts_ns)
            self.envelope.push(arrival_ns, self.last_x, arrival_ns - lasts_ns - self.last_x)
            return []
        count = sequence - self.last_sequence
        anew = epoch != self.epoch or count > _MOST_MISSING
        if count <= 0 and not anew:
            return []
        self.epoch = epoch
        jumps: list[Jump] = []
        x = raw_ns - self.shift_ns - self.zero_ns
        step_ns = x - self.last_x
        leaves_ns = step_ns - self._expected(count)
        still = raw_ns == self.last_raw_ns
        if self.sound and not anew:
            # A clock stops, and goes on, between two blocks: the parts of a block count as well.
            short_ns = self.last_leaves_ns if self.repeats == 0 and self.last_leaves_ns < -_MS else 0
            if still:
                leaves_ns += short_ns
            elif short_ns < -_SOUND_LIMIT_NS:
                # It did not stop, it was set back by less than a block.
                jumps.append(self._jumped(raw_ns, short_ns, x - short_ns))
                x, step_ns, self.suspicion = x - short_ns, step_ns - short_ns, None
                self.back += _BACK_COSTS
            still = still or (self.repeats > 0 and leaves_ns < -_MS)
        elif still and not self.sound:
            leaves_ns = self._stopped(x, leaves_ns, arrival_ns - broker_moved_ns)
        self.last_leaves_ns = 0 if anew else leaves_ns
        self.back = max(0, self.back - 1)
        if anew:
            # Nothing says how long the publisher was away; what arrives will show whether its clock was set.
            self.repeats, self.frozen = 0, False
            self.pace.begin_anew()
            self._suspect(raw_ns, x, 0, arrival_ns, uncounted=True, guessed=False)
        elif still or step_ns <= 0 or (self.sound and leaves_ns < -_SOUND_LIMIT_NS and self.back > 0):
            # Time that stands still or runs back needs no second witness. Sound that goes on by too little for the
            # first time has stopped or was set back: the next block will tell.
            self.back = min(self.back + (0 if still else _BACK_COSTS), 2 * _BACK_MOST)
            wild = self.back > _BACK_MOST
            if not still:
                x -= self._returned(leaves_ns, arrival_ns, jumps, wild=wild)
            jumps.append(self._jumped(raw_ns, leaves_ns, x - leaves_ns, frozen=still or wild))
            x -= leaves_ns
            self.last_leaves_ns = 0
            self.suspicion = None
            if not (still or wild or self.sound or self.steady):
                self._suspect(raw_ns, x, 0, arrival_ns, uncounted=True, guessed=True)
            if raw_ns == self.last_raw_ns:
                self.repeats += 1
                if self.repeats == 1 and not self.frozen:
                    self.stood_x, self.counted_x = self.last_x, x
            else:
                self.repeats = 0
                if wild and not self.frozen:
                    self.stood_x = self.counted_x = x
            self.frozen = self.repeats >= 3 or wild
        else:
            thawed = self.repeats >= 3 and not self.sound
            self.repeats, self.frozen = 0, False
            # The first interval of pictures is what their period is learned from; it leaves nothing.
            counted = self.sound or self.pace.known
            left_ns = leaves_ns if self.sound else abs(leaves_ns)
            if self.sound and left_ns > _SOUND_LIMIT_NS and self.back > _BACK_MOST:
                # Of a clock that runs to and fro the count alone is believed.
                jumps.append(self._jumped(raw_ns, leaves_ns, x - leaves_ns, frozen=True))
                x, self.last_leaves_ns, self.frozen = x - leaves_ns, 0, True
            elif (counted and left_ns > self._limit()) or thawed:
                self._suspect(raw_ns, x, leaves_ns, arrival_ns, uncounted=thawed, guessed=thawed)
                if thawed and self.suspicion is not None:
                    self.suspicion.thawed = True
                    self.suspicion.by_count_ns = leaves_ns if self.counts else None
            if not self.sound:
                self.pace.add(sequence, x, step_ns / count)
        self._went_on(sequence, raw_ns, x, lasts_ns)
        delay_ns = arrival_ns - lasts_ns - x
        if self.suspicion is not None:
            self.suspicion.hull.push(x, delay_ns)
        elif not self.frozen or self.sound:
            self.envelope.push(arrival_ns, x, delay_ns)
            self._remember(arrival_ns, x, delay_ns)
        return jumps

    def _returned(self, leaves_ns: int, arrival_ns: int, jumps: list[Jump], *, wild: bool) -> int:
        """Adds the jump that a step back has undone before it was decided; its size, 0 where there was none.

        Stamps that return to their course have not paused in between: what took them off was the clock, too.
        """
        away = self.suspicion
        if away is None or away.uncounted or not self.steady:
            return 0
        if away.jump_ns <= 0 or abs(away.jump_ns + leaves_ns) > self._limit():
            return 0
        by_ns = away.jump_ns
        self.back = min(self.back + _BACK_COSTS, 2 * _BACK_MOST)
        jumps.append(self._jumped(away.raw_ns, by_ns, away.x - by_ns, frozen=wild))
        for x, y in zip(away.hull.x, away.hull.y, strict=True):
            self.envelope.push(arrival_ns, x - by_ns, y + by_ns)
        return by_ns

    @property
    def doubtful(self) -> bool:
        """Whether stamps cannot be believed right now."""
        return self.frozen or self.suspicion is not None

    def _stopped(self, x: int, leaves_ns: int, arrival_ns: int) -> int:
        """By how much a picture whose clock stands still leaves its course."""
        level = self._level_before(self.last_x)
        if self.repeats == 0:
            self.counts = self.steady or level is None
            self.away.clear()
        if level is not None:
            by_arrival_ns = x - round(arrival_ns - level)
            self.away.append(leaves_ns - by_arrival_ns)
            self.counts = self.counts and not self._runs_away()
            if not self.counts:
                # How many pictures came says little of the time; when they came says it but for their queueing.
                return min(by_arrival_ns, -_MS)
        # The picture before was the first of those that stand still: it went on by a part of its period.
        return leaves_ns + (min(0, self.last_leaves_ns) if self.repeats == 0 else 0)

    def _runs_away(self) -> bool:
        """Whether pictures come at another rate since their clock stands still: later and later, or sooner and sooner.

        A new route or a step of the broker's clock moves them once, queueing moves single ones.
        """
        away = list(self.away)
        if len(away) < _AWAY_PACKETS:
            return False
        half = _AWAY_PACKETS // 2
        before, after = min(away[:half]), min(away[half:])
        later = before > _LEVEL_NS and after - before > _ROUTE_NS
        return later or (max(away) < -_LEVEL_NS and before - after > _ROUTE_NS)

    def _expected(self, count: int) -> int:
        if self.sound:
            return self.last_end_ns + (count - 1) * self.last_end_ns
        return self.pace.expected_ns(count)

    @property
    def steady(self) -> bool:
        """Whether the count of packets tells the time: sound always, pictures at a constant rate."""
        return self.sound or self.pace.steady

    def _limit(self) -> int:
        if self.sound:
            return _SOUND_LIMIT_NS
        return _PICTURE_LIMIT_NS if self.steady else _UNSTEADY_LIMIT_NS

    def _went_on(self, sequence: int, raw_ns: int, x: int, lasts_ns: int) -> None:
        self.last_sequence, self.last_raw_ns, self.last_x, self.last_end_ns = sequence, raw_ns, x, lasts_ns

    def _jumped(
        self, raw_ns: int, by_ns: int, x: int, *, frozen: bool = False, by_arrival: bool = False,
        unsure_ns: int = _ARRIVAL_UNSURE_NS,
    ) -> Jump:  # fmt: skip
        """``unsure_ns``: of a jump that only delivery tells."""
        self.shift_ns += by_ns
        if not frozen:
            self.envelope.part()
            self.pace.begin_anew()
        if not by_arrival:
            unsure_ns = self._count_unsure_ns()
        return Jump(raw_ns, by_ns, unsure_ns, x, frozen, by_arrival)

    def _count_unsure_ns(self) -> int:
        """Standard uncertainty of a jump whose size the count tells."""
        if self.sound:
            return _MS // 5
        if not self.steady:
            return _UNSTEADY_LIMIT_NS // 3
        return self.pace.unsure_ns

    def _suspect(
        self, raw_ns: int, x: int, leaves_ns: int, arrival_ns: int, *, uncounted: bool, guessed: bool
    ) -> None:
        if self.suspicion is None:
            self.suspicion = _Suspicion(
                raw_ns, x, leaves_ns, arrival_ns, uncounted=uncounted, guessed=guessed
            )
        else:
            self.suspicion.jump_ns += leaves_ns

    def _remember(self, arrival_ns: int, x: int, delay_ns: int) -> None:
        """Delivery of each second or two: what it was just before a suspicion, and whether all devices' has moved."""
        number = arrival_ns // SLOT_NS
        last = self.slots[-1] if self.slots else None
        if last is None or number > last.number:
            self.slots.append(Slot(number, x, delay_ns, 1))
        elif delay_ns < last.delay_ns:
            self.slots[-1] = Slot(last.number, x, delay_ns, last.packets + 1)
        else:
            self.slots[-1] = replace(last, packets=last.packets + 1)

    def lately(self) -> list[Slot]:
        """The last slots, as many as hold packets enough to know the shortest way."""
        found: list[Slot] = []
        packets = 0
        for slot in reversed(self.slots):
            if packets >= _LEVEL_PACKETS:
                break
            found.append(slot)
            packets += slot.packets
        return found[::-1]

    def _level_before(self, about_x: int) -> float | None:
        """The envelope at ``about_x`` by the last packets that were not doubtful: routes and brokers change."""
        return min((s.delay_ns + self.skew * (s.x - about_x) for s in self.lately()), default=None)

    def moved(self, first: int, last: int, since_ns: int) -> int | None:
        """By how much delivery has become later since slots ``first`` to ``last``; None where that cannot be said."""
        slot = since_ns // SLOT_NS
        before = [s.delay_ns for s in self.slots if first <= s.number <= last and s.number < slot]
        after = [s.delay_ns for s in self.slots if s.number > slot]
        return min(after) - min(before) if before and after else None

    @property
    def ripe_since_ns(self) -> int | None:
        """Since when a jump is suspected about which ``decide`` can now say something."""
        suspicion = self.suspicion
        if suspicion is None or suspicion.hull.count < _DECIDE_AT_LEAST:
            return None
        return suspicion.since_ns if self.last_x - suspicion.x > _DECIDE_AFTER_NS else None

    def decide(self, arrival_ns: int, broker_moved_ns: int = 0) -> list[Jump]:
        """Compare delivery before and after: the suspicion becomes a jump or is dropped.

        ``broker_moved_ns``: by how much all other devices' delivery has moved meanwhile.
        """
        suspicion = self.suspicion
        if suspicion is None:
            return []
        self.suspicion = None
        before = self._level_before(suspicion.x)
        after = suspicion.hull.lowest(self.skew, suspicion.x) - broker_moved_ns
        found: list[Jump] = []
        by_ns = 0
        enough = sum(slot.packets for slot in self.lately()) >= _DECIDE_AT_LEAST
        if before is not None and self.envelope.in_real_time():
            moved_ns = round(before - after)
            jump = self._weighed(suspicion, moved_ns, enough=enough)
            if jump is not None:
                by_ns, unsure_ns = jump
                found = [
                    self._jumped(
                        suspicion.raw_ns, by_ns, suspicion.x - by_ns, by_arrival=unsure_ns > 0,
                        unsure_ns=unsure_ns,
                    )
                ]  # fmt: skip
                self.last_x -= by_ns
        for x, y in zip(suspicion.hull.x, suspicion.hull.y, strict=True):
            self.envelope.push(arrival_ns, x - by_ns, y + by_ns)
        return found

    def _weighed(self, suspicion: _Suspicion, moved_ns: int, *, enough: bool) -> tuple[int, int] | None:
        """Size of the jump by what stamps and delivery (``moved_ns``) say; None where there was none.

        The second number: standard uncertainty where only delivery tells the size, 0 where the count does. A jump
        of nothing with an uncertainty: there may have been one.
        """
        size_ns = abs(moved_ns)
        if suspicion.thawed:
            return self._thawed(suspicion, moved_ns) if enough or size_ns > _FEW_LEVEL_NS else None
        least_ns = (_MS if suspicion.guessed else _LEVEL_NS) if enough else _FEW_LEVEL_NS
        if size_ns <= least_ns:
            return None
        if self._count_agrees(suspicion, moved_ns):
            return suspicion.jump_ns, 0
        if not suspicion.uncounted and suspicion.jump_ns * moved_ns <= 0:
            return None
        if size_ns < _ROUTE_NS and not suspicion.guessed:
            # As well a new route: nobody is accused, but the bound holds for either.
            return 0, _ARRIVAL_UNSURE_NS + size_ns // _COVER
        return moved_ns, _ARRIVAL_UNSURE_NS

    def _thawed(self, suspicion: _Suspicion, moved_ns: int) -> tuple[int, int]:
        """The same of pictures whose clock stood still.

        Where they were counted, and delivery says something else, it may be that the way to the broker has changed
        meanwhile, or that pictures were left out, which makes whole periods. Where they were not counted, a change
        of the way cannot be seen.
        """
        differs_ns = moved_ns - (suspicion.by_count_ns or 0)
        if suspicion.by_count_ns is None or abs(differs_ns) >= _ROUTE_NS:
            return moved_ns, (2 * _ROUTE_NS) // (3 * _COVER)
        period_ns = self.pace.period_ns
        pictures = round(differs_ns / period_ns)
        left_out = pictures != 0 and abs(differs_ns - pictures * period_ns) < _COVER * _ARRIVAL_UNSURE_NS
        unsure_ns = _ARRIVAL_UNSURE_NS + abs(differs_ns) // _COVER
        return (moved_ns if left_out else suspicion.by_count_ns), unsure_ns

    def _count_agrees(self, suspicion: _Suspicion, moved_ns: int) -> bool:
        """Whether the stamps' own count tells the size of a jump that delivery shows roughly."""
        if not self.steady or suspicion.uncounted:
            return False
        # The route may have changed in the same seconds; a count of samples is beyond doubt.
        most_ns = max(_LEVEL_NS, abs(suspicion.jump_ns) // 3) if self.sound else _LEVEL_NS
        return abs(suspicion.jump_ns - moved_ns) < most_ns
