"""Clocks of one meeting's devices, from their stamps, their arrival, and what they heard and saw.

Inside, every device has its own axis ``x``: its stamps minus its jumps minus a constant that brings it near
the broker's time. Unknown is ``deviation(x) = x - true time``, piecewise linear, in milliseconds. All that is
known of it is one system of equations, solved anew every ``EVERY_NS`` over the last three minutes; what is
older stands as a prior. See docs/clocks.md for the equations.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from contracts.packet import Modality
from operators.clock.course import SLOT_NS, Jump, StreamCourse
from operators.clock.cues import chirp_times
from operators.clock.equations import Layout, Measured, equations
from operators.clock.judge import Judge
from operators.clock.solve import Solution, solve
from operators.clock.sounds import (
    WINDOW_S,
    Block,
    Levels,
    SoundRing,
    Stretch,
    Window,
    level_db,
    phat_peak,
    windows_of,
)
from operators.clock.tracked import (
    KEPT_JUMPS,
    KNOT_NS,
    Claim,
    DeviceKind,
    EstimateSettings,
    Finding,
    Freeze,
    Pair,
    Prior,
    Tracked,
)

EVERY_NS: Final = 10_000_000_000
_FIRST_NS: Final = 5_000_000_000
_LEAST_NS: Final = 3_000_000_000
_LISTEN_EVERY_NS: Final = 1_000_000_000
_LISTEN_BEHIND_NS: Final = 1_900_000_000
_SEEN_WITHIN_NS: Final = 4_000_000_000
"""How long decoding may take: flashes are used that late, so that its pace decides nothing."""
_KEPT_BINS: Final = 18
_BROKER_NS: Final = 20_000_000
_MOST_JUMP_NS: Final = 10**15
"""No clock is off by days in mid-meeting; counters and stamps that say so are not followed."""
_COUNTED_MS: Final = 2.0
_COUNTED_PICTURES_MS: Final = 350.0
_COUNTED_THAWED_MS: Final = 20.0
_GUESSED_NS: Final = 5_000_000_000
_STEP_NS: Final = 8_000_000
"""A clock that is set by more is named."""
_KEPT_PAIRS: Final = 2
"""Measurements kept of each talker, microphone and bin of time."""


class MeetingEstimator:
    """Feeds on packets in each stream's own order; ``due`` says when a new estimate is there."""

    def __init__(self, settings: EstimateSettings) -> None:
        self.settings = settings
        self.devices: dict[str, Tracked] = {}
        self.ways: dict[tuple[str, str], float] = {}
        """How much later a voice comes to the second microphone than to its speaker's own, the first; ms."""
        self.base_ns: int | None = None
        self._replayed_ns: int | None = None
        """What the broker's time is behind the meeting's where a recording is sent; None until it is known."""
        self._solved_ns = 0
        self._listened_ns = 0
        self._levels = Levels()
        self._pairs: dict[tuple[str, str, int], list[Pair]] = {}
        self._found: list[Finding] = []

    # --- what comes in

    def stamped(
        self, device: str, stream: Modality, kind: DeviceKind, claim: Claim,
        epoch: int, sequence: int, raw_ns: int, duration_ns: int, arrival_ns: int,
    ) -> list[Jump]:  # fmt: skip
        """A packet's stamp and arrival; jumps of the device's clock that are certain by now."""
        arrival_ns += self._replayed_ns or 0
        tracked = self.devices.get(device)
        if tracked is None or (kind == "sound" and tracked.kind == "picture"):
            course = StreamCourse(sound=kind == "sound")
            tracked = self.devices[device] = Tracked(device, kind, claim, course, stream)
        if tracked.stream != stream:
            return []
        if self.base_ns is None:
            self.base_ns = self._solved_ns = self._listened_ns = arrival_ns
        fresh = tracked.course.last_sequence < 0
        # While a clock of pictures stands still they are held against their arrival: the broker's clock may be set.
        watched = tracked.course.frozen and not tracked.course.sound
        moved_ns = self._broker_moved_ns(tracked, arrival_ns - 2 * SLOT_NS) if watched else 0
        jumps = tracked.course.feed(epoch, sequence, raw_ns, duration_ns, arrival_ns, moved_ns)
        since_ns = tracked.course.ripe_since_ns
        if since_ns is not None:
            jumps += tracked.course.decide(arrival_ns, self._broker_moved_ns(tracked, since_ns))
        if any(abs(jump.by_ns) > _MOST_JUMP_NS for jump in jumps):
            self.forget(device)
            return []
        if fresh:
            tracked.first_x = tracked.course.last_x
        for jump in jumps:
            self._jumped(tracked, jump)
        self._stands_still(tracked)
        return jumps

    def _broker_moved_ns(self, doubted: Tracked, since_ns: int) -> int:
        """By how much the delivery of the other devices has moved, all alike: that was the broker's clock."""
        before = doubted.course.lately()
        if not before:
            return 0
        # A clock that stood still is compared with what came before that: the others from then on, too.
        first = min(before[0].number, since_ns // SLOT_NS - 1)
        others = [t.course for t in self.devices.values() if t is not doubted and not t.course.doubtful]
        found = (course.moved(first, before[-1].number, since_ns) for course in others)
        moved = sorted(m for m in found if m is not None)
        return moved[len(moved) // 2] if len(moved) > 1 and abs(moved[len(moved) // 2]) > _BROKER_NS else 0

    def heard(self, device: str, raw_ns: int, samples: Block, rate_hz: int) -> None:
        """Mono sound of a block whose stamp has just gone through ``stamped``."""
        tracked = self.devices[device]
        if not tracked.course.doubtful:
            course = tracked.course
            tracked.ring.push(raw_ns - course.shift_ns - course.zero_ns, samples, rate_hz)

    def seen(self, device: str, x_ns: int, brightness: float) -> None:
        """Mean brightness (0..1) of the picture at ``x_ns``."""
        tracked = self.devices.get(device)
        if tracked is not None:
            tracked.flashes.push(x_ns, brightness)

    def forget(self, device: str) -> None:
        """What is said of the device's stamps has changed: begin with it anew."""
        if self.devices.pop(device, None) is not None:
            self._pairs = {key: kept for key, kept in self._pairs.items() if device not in key[:2]}

    def advance(self, arrival_ns: int) -> bool:
        """Time on the broker has come so far; whether a new estimate was made."""
        if self.base_ns is None:
            return False
        arrival_ns += self._replayed_ns or 0
        # At whole seconds of the broker's time, whichever packet happens to come first after them.
        if arrival_ns // _LISTEN_EVERY_NS > self._listened_ns // _LISTEN_EVERY_NS:
            self._listened_ns = arrival_ns
            self._listen(arrival_ns // _LISTEN_EVERY_NS * _LISTEN_EVERY_NS - _LISTEN_BEHIND_NS)
        every_ns = _FIRST_NS if arrival_ns - self.base_ns < 3 * EVERY_NS else EVERY_NS
        begun = arrival_ns - self.base_ns > _LEAST_NS
        if begun and arrival_ns // every_ns > self._solved_ns // every_ns:
            self._solved_ns = arrival_ns
            self._solve()
            return True
        return False

    def __getstate__(self) -> dict[str, Any]:
        """Without the last seconds of sound: bulky, and heard again before they are missed."""
        state = dict(self.__dict__)
        state["devices"] = {name: replace(t, ring=SoundRing()) for name, t in self.devices.items()}
        return state

    def findings(self) -> list[Finding]:
        """What was found out since the last call."""
        found, self._found = self._found, []
        return found

    # --- sound

    def _listen(self, near_ns: int) -> None:
        """One window of all microphones: who speaks, how much later the others hear it, chirps."""
        if self.base_ns is None:
            return
        stretches: dict[int, list[tuple[Tracked, Stretch]]] = {}
        for tracked in self.devices.values():
            if tracked.kind != "sound" or not tracked.ring.blocks:
                continue
            stretch = tracked.ring.stretch(near_ns + round(1e6 * self._expected(tracked, near_ns)))
            if stretch is not None:
                stretches.setdefault(tracked.ring.rate_hz, []).append((tracked, stretch))
        windows: dict[str, Window] = {}
        beeps = False
        for rate_hz, found in stretches.items():
            together = windows_of([stretch for _, stretch in found], rate_hz)
            chirps = chirp_times(together, rate_hz)
            beeps = beeps or any(chirps)
            for (tracked, _), window, places in zip(found, together, chirps, strict=True):
                windows[tracked.name] = window
                for place in places:
                    tracked.chirps.add(window.begin_x + round(place / rate_hz * 1e9))
        if beeps:
            # The loudspeaker of the calibration signal sits before nobody.
            return
        talker = self._levels.talker({name: level_db(w.samples) for name, w in windows.items()})
        if talker is None:
            return
        number = near_ns // EVERY_NS
        own, rate_hz = windows[talker], self.devices[talker].ring.rate_hz
        middle = round(WINDOW_S * 5e8)
        for name, window in windows.items():
            kept = self._pairs.setdefault((talker, name, number), [])
            if name == talker or self.devices[name].ring.rate_hz != rate_hz or len(kept) >= _KEPT_PAIRS:
                continue
            peak = phat_peak(window, own, rate_hz)
            if peak is not None:
                other_x = window.begin_x + middle + round(peak.lag_s * 1e9)
                kept.append(Pair(own.begin_x + middle, other_x))

    def _expected(self, tracked: Tracked, near_ns: int) -> float:
        """Deviation in ms, by the last solution or by arrival alone."""
        if tracked.curve is not None and self.base_ns is not None:
            return tracked.deviation_ms(near_ns, self.base_ns)
        level = tracked.course.envelope.level(0.0, near_ns)
        floor = self.settings.sound_floor_ms[0]
        return floor - (level or 0) / 1e6

    # --- solving

    def _solve(self) -> None:
        base_ns = self.base_ns
        known = [t for t in self.devices.values() if t.course.envelope.in_real_time()]
        if base_ns is None or 2 * len(known) <= len(self.devices):
            # A recording that is sent faster than it was made: arrival says nothing of its clocks.
            return
        judge = Judge(self.settings, base_ns)
        if self._replayed_ns is None:
            self._replayed_ns = self._sent_later_ns(known, judge)
            if self._replayed_ns:
                self.base_ns, self.devices = None, {}
                return
        self._forget_old(known, base_ns)
        for tracked in known:
            if tracked.curve is None and not tracked.named:
                self._found += judge.rough(tracked)
            elif not tracked.named:
                # By now arrival has been weighed with all the rest: each time the claim gets its chance.
                tracked.believed = True
        layout, solution = self._settled(known, base_ns, judge)
        self._found += judge.named(known, layout, solution)
        for tracked in known:
            tracked.curve = layout.curve(tracked, solution)
            knots, values, _ = tracked.curve
            tracked.course.skew = float((values[-1] - values[-2]) / (knots[-1] - knots[-2]) * 1e-3)

    def _sent_later_ns(self, known: Sequence[Tracked], judge: Judge) -> int:
        """By how much the devices' time differs from the broker's where most of them agree on it, else 0.

        A recording that is sent later has its stamps from then: all of its clocks are off by the same. By what
        TAI and UTC differ they are off for another reason.
        """
        errors = sorted(judge.rough_error_ms(t) or 0.0 for t in known)
        middle = errors[len(errors) // 2]
        most_ms = self.settings.coarse_ms
        near = sum(abs(error - middle) < most_ms for error in errors)
        confused = abs(abs(middle) - self.settings.epoch_ms) < most_ms
        alike = abs(middle) > most_ms and 2 * near > len(errors)
        return round(middle * 1e6) if alike and not confused else 0

    def _settled(self, known: Sequence[Tracked], base_ns: int, judge: Judge) -> tuple[Layout, Solution]:
        """Solve, try without the claims that do not fit, and keep those away that are then refuted."""
        tried: set[str] = set()
        without: list[Tracked] = []
        while True:
            measured = Measured(known, self._pairs, base_ns, self._solved_ns - _SEEN_WITHIN_NS, self.ways)
            layout, rows = equations(measured, self.settings)
            solution = solve(layout.count, rows)
            innocent = [t for t in without if judge.verdict(t, layout, solution) == "fits"]
            without = []
            for tracked in innocent:
                tracked.believed = True
            changed = judge.new_routes(known, layout, solution)
            if not innocent and not changed:
                without = judge.suspects([t for t in known if t.name not in tried], layout, rows, solution)
                if not without:
                    return layout, solution
            for tracked in without:
                tracked.believed = False
                tried.add(tracked.name)

    def _forget_old(self, known: Sequence[Tracked], base_ns: int) -> None:
        """Keep three minutes; what a curve was where they begin stands as a prior."""
        newest = max(t.course.envelope.bins[-1][0] for t in known)
        oldest = newest - _KEPT_BINS + 1
        self._pairs = {key: kept for key, kept in self._pairs.items() if key[2] >= oldest}
        knot = -(-(oldest * EVERY_NS - base_ns) // KNOT_NS)
        for tracked in known:
            bins = tracked.course.envelope.bins
            while len(bins) > 1 and bins[0][0] < oldest:
                bins.popleft()
            if tracked.curve is None or (tracked.prior is not None and tracked.prior.knot >= knot):
                continue
            if tracked.first_x - base_ns >= knot * KNOT_NS:
                continue
            at = base_ns + knot * KNOT_NS
            value, sigma = tracked.deviation_ms(at, base_ns), tracked.sigma_ms(at, base_ns)
            slope = tracked.deviation_ms(at + KNOT_NS, base_ns) - value
            # What follows the knot has had its say in the value: twice the uncertainty makes up for that.
            tracked.prior = Prior(knot, value, 2.0 * sigma + 0.05, slope, 0.3)
            tracked.first_x = at

    def _stands_still(self, tracked: Tracked) -> None:
        """Note from where to where a clock stood still, and how far counting can be trusted there."""
        course = tracked.course
        open_one = tracked.freezes[-1] if tracked.freezes and tracked.freezes[-1].end_x is None else None
        if course.frozen and open_one is None:
            extra_ms = _COUNTED_MS if course.sound else _COUNTED_PICTURES_MS
            lasts_ns = course.last_end_ns if course.sound else course.pace.period_ns
            stop = Freeze(course.stood_x, None, extra_ms, course.counted_x, lasts_ns / 1e6)
            tracked.freezes = [*tracked.freezes[-3:], stop]
        elif open_one is not None:
            if not course.counts:
                # Pictures were counted at the wrong rate until arrival showed it.
                left_ms = [abs(ns) / 1e6 for ns in course.away]
                open_one.extra_ms = max([open_one.extra_ms, *left_ms])
            if not course.doubtful:
                open_one.end_x = course.last_x

    def _jumped(self, tracked: Tracked, jump: Jump) -> None:
        if jump.frozen:
            # What follows is passed on as if the clock had gone on: no jump is left for the records.
            tracked.rewritten_ns += jump.by_ns
        else:
            if jump.by_arrival:
                # It makes up for what the guesses just before it were off by.
                tracked.jumps = [
                    (x, replace(j, uncertainty_ns=0) if jump.x - x < _GUESSED_NS else j)
                    for x, j in tracked.jumps
                ]
            told = replace(jump, from_raw_ns=jump.from_raw_ns - tracked.rewritten_ns)
            tracked.jumps.append((jump.x, told))
            while len(tracked.jumps) > KEPT_JUMPS:
                tracked.shift_before_ns += tracked.jumps.pop(0)[1].by_ns
            if tracked.freezes and tracked.freezes[-1].end_x is None:
                if tracked.course.counts:
                    # The thaw shows what counting was off by in the end.
                    tracked.freezes[-1].extra_ms = abs(jump.by_ns) / 1e6 + _COUNTED_THAWED_MS
                tracked.freezes[-1].end_x = jump.x
        stands = jump.frozen and tracked.course.frozen
        if not tracked.named and (stands or (not jump.frozen and abs(jump.by_ns) > _STEP_NS)):
            tracked.named = True
            what: Literal["frozen", "step"] = "frozen" if jump.frozen else "step"
            self._found.append(Finding(tracked.name, what, jump.by_ns / 1e6))
