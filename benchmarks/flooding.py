"""Twelve meetings through the steps of flows.minutes behind the log, one of which may send a hundred times as much.

Arrivals are simulated, the processor time of each turn is measured, and shards take turns as in the flow: so the figures
hardly depend on what else a machine does, and hold none of what broker and log add (`benchmarks.flood` has that).
"""

import collections
import itertools
import random
import time
from collections.abc import Sequence
from typing import Final

from flows.build import product_versions, verifier
from operators.align.aligned import Aligned, Heard, Setting, Settled
from operators.broker.sink import Outgoing
from operators.broker.turns import Share, TurnSettings
from operators.deliver.keys import OpenKeys
from operators.deliver.step import Deliver, judge
from operators.draft import Drafted, Drafting
from operators.pace import Pace, Paced
from operators.settings import Settings
from operators.understand.engine import RuleEngine
from operators.understand.types import MeetingContext, Spoken
from operators.verify.types import Draft

MEETINGS: Final = 12
EVERY_S: Final = 4.0
_STEP_NS: Final = 4_000_000_000
_PEOPLE: Final = 8
"""In a meeting: lines come from very many meetings, each with people of its own."""


class _Clock:
    """Simulated seconds, which go on while something is computed."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._begun: float | None = None

    def __call__(self) -> float:
        return self.now_s + (0.0 if self._begun is None else time.process_time() - self._begun)

    def __enter__(self) -> "_Clock":
        self._begun = time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.now_s, self._begun = self(), None


class _Shard:
    """One meeting on a shard of its own."""

    def __init__(self, number: int, engine: RuleEngine, pace: Pace) -> None:
        self.step: Paced[Aligned | Outgoing, Drafted] = Paced(Drafting(engine), pace)
        self.share = Share(TurnSettings())
        self.queue: collections.deque[tuple[float, str, str]] = collections.deque()
        self.handed = 0
        self._name = f"m{number}"
        self._setting = Setting(MeetingContext(), 0, 37)
        self._called: dict[str, str] = {}
        self._said: list[Spoken] = []
        self._arrived: collections.deque[float] = collections.deque()

    def arrived(self, until_s: float, took_s: float) -> list[Aligned | Outgoing]:
        """What the source hands on in this turn: each utterance, and the one before it as settled."""
        size = self.share.next(self.handed, took_s)
        self.handed = sum(at <= until_s for at, _, _ in itertools.islice(self.queue, size))
        out: list[Aligned | Outgoing] = []
        for _ in range(self.handed):
            at, speaker, text = self.queue.popleft()
            speaker = self._called.setdefault(speaker, f"Speaker {len(self._called) % _PEOPLE}")
            start = len(self._said) * _STEP_NS
            spoken = Spoken(f"{self._name}/{len(self._said)}", start, start + _STEP_NS - 1, speaker, text)
            out.append(Heard(self._name, self._setting, spoken))
            if self._said:
                before = self._said[-1]
                out.append(Settled(self._name, self._setting, (before,), False, (), (), spoken.end_ns))
            self._said.append(spoken)
            self._arrived.append(at)
        return out

    def shown(self, drafts: Sequence[Drafted], now_s: float) -> list[float]:
        """How long those waited, in ms, whose first draft is there now."""
        found = sum(isinstance(d, Draft) and d.stage == "provisional" for d in drafts)
        return [1e3 * (now_s - self._arrived.popleft()) for _ in range(found)]


def flooded(
    engine: RuleEngine, lines: Sequence[tuple[str, str]], times: int, most: int, seed: int
) -> list[float]:
    """Milliseconds from arrival to published items of all meetings but the first, which sends ``times`` as much.

    The others say the same at the same times whatever ``times`` is. The engine remembers what was said before: each
    call needs one that has heard nothing.

    Args:
        most: how much more the first meeting would send at the most: so long that the lines do for it.
    """
    clock, left = _Clock(), iter(lines)
    pace, guard = Pace(clock=clock), verifier(Settings())
    deliver = Deliver(product_versions(), OpenKeys())
    shards = [_Shard(m, engine, pace) for m in range(MEETINGS)]
    span_s = EVERY_S * len(lines) / (MEETINGS - 1 + most)
    for place, shard in reversed([*enumerate(shards)]):
        draw = random.Random(f"{seed}/{place}")
        count = int(span_s / EVERY_S * (1 if place else times))
        at = sorted(draw.uniform(0.0, span_s) for _ in range(count))
        shard.queue.extend((when, *line) for when, line in zip(at, left, strict=False))
    waited: list[float] = []
    took_s = 0.0
    while any(shard.queue or shard.step.next_timer_s() is not None for shard in shards):
        if all(shard.step.next_timer_s() is None for shard in shards):
            clock.now_s = max(clock.now_s, min(shard.queue[0][0] for shard in shards if shard.queue))
        begun_s = clock.now_s
        handed = [shard.arrived(begun_s, took_s) for shard in shards]
        with clock:
            # As the engine does: what is there of all shards, then what was put off, then the steps behind.
            out = [
                shard.step.on_batch(values) if values else []
                for shard, values in zip(shards, handed, strict=True)
            ]
            for shard, drafts in zip(shards, out, strict=True):
                if shard.step.next_timer_s() is not None:
                    drafts += shard.step.on_timer()
            for drafts in out:
                deliver.on_batch([judge(guard, drafted) for drafted in drafts])
        took_s = clock.now_s - begun_s
        for place, (shard, drafts) in enumerate(zip(shards, out, strict=True)):
            taken = shard.shown(drafts, clock.now_s)
            waited += taken if place else ()
    return waited
