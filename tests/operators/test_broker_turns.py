"""Shards take turns: one that sends a hundred times as much holds the others up for a few messages only."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from contracts.topics import TIMELINE, TopicNames
from operators.broker import source
from operators.broker.kafka_link import BrokerLink
from operators.broker.turns import MOST, Share, TurnSettings

_NAMES = TopicNames("", 4)
_TOPIC = _NAMES.of(TIMELINE)


@dataclass(frozen=True)
class Sent:
    shard: int
    number: int

    def topic(self) -> str:
        return _TOPIC

    def partition(self) -> int:
        return self.shard

    def offset(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 2, 0

    def value(self) -> bytes:
        return b"%d" % self.number

    def headers(self) -> None:
        return None


@dataclass
class Consumer:
    """What stands on the partitions, as the source's shared consumer has it."""

    buffers: dict[tuple[str, int], deque[Sent]] = field(default_factory=dict)
    at_end: set[tuple[str, int]] = field(default_factory=set)

    def add(self, topic: str, partition: int, offset: int) -> None:
        del offset
        self.buffers[topic, partition] = deque()
        self.at_end.add((topic, partition))

    def pump(self) -> None:
        return

    def taken(self, place: tuple[str, int]) -> None:
        del place


class Loop:
    """The flow's loop with a clock of its own: every message handed on costs the steps so much time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turns: TurnSettings | None) -> None:
        self.now_s = 0.0
        self.consumer = Consumer()
        monkeypatch.setattr(source, "_SharedConsumer", lambda link, on_turn: self.consumer)
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        made = source.ShardSource(BrokerLink("nowhere:1", _NAMES), (TIMELINE,), turns=turns)
        self._parts = [made.build_part("timeline", name, None) for name in made.list_parts()]

    def send(self, shard: int, count: int) -> None:
        waiting = self.consumer.buffers[_TOPIC, shard]
        first = waiting[-1].number + 1 if waiting else 0
        waiting.extend(Sent(shard, first + n) for n in range(count))

    def turns(self, cost_s: float) -> Iterator[list[tuple[int, int]]]:
        """Shard and offset of what each turn takes, until nothing is left."""
        while True:
            told = [value for part in self._parts for _, value in part.next_batch()]
            if not told:
                return
            self.now_s += cost_s * len(told)
            yield [(shard, r.offset) for shard, r in told if isinstance(r, source.Received)]


def test_a_flood_holds_others_up_for_a_few_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, TurnSettings(least=4, turn_s=0.05))
    loop.send(2, 3000)
    order: list[tuple[int, int]] = []
    waited: list[int] = []
    for number, turn in enumerate(loop.turns(0.015)):
        order += turn
        waited += [sum(s == 2 for s, _ in turn) for s, _ in turn if s != 2]
        assert len(turn) <= 4 + 3
        if number % 10 == 0:
            for shard in (0, 1, 3):
                loop.send(shard, 1)
    assert len(waited) > 100
    assert max(waited) <= 4
    assert [n for s, n in order if s == 2] == list(range(3000))


def test_cheap_messages_are_taken_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, TurnSettings())
    loop.send(2, 5000)
    sizes = [len(turn) for turn in loop.turns(0.000_01)]
    assert sizes[0] == TurnSettings().least
    assert max(sizes) == MOST
    assert len(sizes) < 20


def test_without_turns_as_much_as_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, None)
    loop.send(2, 1200)
    assert [len(turn) for turn in loop.turns(1.0)] == [MOST, MOST, 200]


def test_a_share_settles_where_a_turn_takes_as_long_as_it_may() -> None:
    share, handed, took_s = Share(TurnSettings()), 0, 0.0
    sizes = []
    for _ in range(40):
        handed = share.next(handed, took_s)
        took_s = 0.01 + 0.001 * handed
        sizes.append(handed)
    assert all(20 <= size <= 80 for size in sizes[10:])


@pytest.mark.parametrize("wrong", [{"least": 0}, {"least": 600}, {"turn_s": 0.0}])
def test_turns_that_would_read_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="turn"):
        TurnSettings(**wrong)  # type: ignore[arg-type]
