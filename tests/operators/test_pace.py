"""A meeting that floods its shard waits for the others, and its minutes come out the same."""

import itertools
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from flows.minutes_model import load_model
from operators.align.aligned import Aligned, Ended, Heard, Setting, Settled
from operators.broker.sink import Outgoing
from operators.draft import Drafted, Drafting, MeetingDrafts, per_worker_pace
from operators.pace import Pace, Paced, PaceSettings
from operators.settings import Settings
from operators.store import Stores
from operators.summary import summary
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine
from operators.understand.state import State
from operators.understand.types import MeetingContext, Spoken, SummarySentence
from operators.verify.types import Draft

S = 1_000_000_000
SETTING = Setting(MeetingContext(), 0, 37)
TALK = (
    "We decided to move the launch to the second of June.",
    "I will write the release notes by Friday.",
    "Who is going to talk to the printers?",
    "No, let's not move the launch.",
    "Ben, can you book the room for Monday?",
    "Yes, I will do that.",
)
TIGHT = PaceSettings(words_per_s=1.0, words_at_once=1.0, slice_s=0.01, turn_s=0.01)


@dataclass
class Clock:
    """Goes on by itself a little with each look."""

    now: float = 0.0
    step: float = 0.004

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@dataclass(frozen=True)
class CountedEngine(RuleEngine):
    """Counts how many utterances it reads."""

    read_so_far: list[str] = field(default_factory=list)

    def step(self, state: State, spoken: Spoken) -> State:
        self.read_so_far.append(spoken.id)
        return super().step(state, spoken)


def said(meeting: str, count: int) -> list[Aligned | Outgoing]:
    """Utterances of a meeting, each settled two later, and its end."""
    spoken = tuple(
        Spoken(f"{meeting}{n}", n * S, n * S + S, "Anna" if n % 3 else "Ben", TALK[n % len(TALK)])
        for n in range(count)
    )
    out: list[Aligned | Outgoing] = []
    for n, one in enumerate(spoken):
        out.append(Heard(meeting, SETTING, one))
        if n >= 2:
            out.append(Settled(meeting, SETTING, (spoken[n - 2],), False, (), (), one.end_ns))
    return [*out, Ended(meeting, SETTING, spoken, (), (), (), count * S)]


def of_meeting(drafts: list[Drafted], meeting: str) -> list[Drafted]:
    return [d for d in drafts if isinstance(d, Draft) and d.meeting_id == meeting]


def drained(step: Paced[Aligned | Outgoing, Drafted]) -> list[Drafted]:
    out: list[Drafted] = []
    while step.next_timer_s() is not None:
        out += step.on_timer()
    return out


@pytest.mark.parametrize("seed", range(4))
def test_drafts_are_the_same_however_work_is_sliced(seed: int) -> None:
    draw = random.Random(seed)
    changes = [
        c for both in itertools.zip_longest(said("a", 12), said("b", 7)) for c in both if c is not None
    ]
    whole = Drafting(RuleEngine()).on_batch(changes)
    step = Paced(Drafting(RuleEngine()), Pace(TIGHT, Clock(step=draw.choice((0.0, 0.004, 0.5)))))
    out: list[Drafted] = []
    while changes:
        size = draw.randint(1, 6)
        out += step.on_batch(changes[:size])
        del changes[:size]
        for _ in range(draw.randint(0, 3)):
            out += step.on_timer()
    out += drained(step)
    for meeting in ("a", "b"):
        assert of_meeting(out, meeting) == of_meeting(whole, meeting)


def test_what_is_beyond_the_budget_waits_and_others_do_not() -> None:
    step = Paced(Drafting(RuleEngine()), Pace(TIGHT, Clock(step=0.0)))
    flood, calm = said("flood", 20), said("calm", 1)[:1]
    out = step.on_batch([*flood, *calm])
    assert len(of_meeting(out, "flood")) == 1
    assert len(of_meeting(out, "calm")) == 1
    assert step.next_timer_s() == 0.0
    assert len(of_meeting([*out, *drained(step)], "flood")) == len(flood)


def test_a_slice_waits_for_a_turn_in_which_nobody_else_was_served() -> None:
    pace = Pace(TIGHT, Clock(step=0.02))
    busy, other = Paced(Drafting(RuleEngine()), pace), Paced(Drafting(RuleEngine()), pace)
    busy.on_batch(said("flood", 4))
    busy.on_timer()
    other.on_batch(said("calm", 1)[:1])
    assert not busy.on_timer()
    assert busy.on_timer() or busy.on_timer()


@pytest.mark.parametrize("behind", (1, 3))
def test_what_waits_gets_its_turn_where_others_are_always_served(behind: int) -> None:
    pace = Pace(TIGHT, Clock(step=0.02))
    busy = [Paced(Drafting(RuleEngine()), pace) for _ in range(behind)]
    other = Paced(Drafting(RuleEngine()), pace)
    for place, step in enumerate(busy):
        step.on_batch(said(f"flood{place}", 4))
    out: list[list[Drafted]] = [[] for _ in busy]
    for turn in range(80):
        other.on_batch(said(f"calm{turn}", 1)[:1])
        for place, step in enumerate(busy):
            out[place] += step.on_timer()
    assert all(step.next_timer_s() is None for step in busy)
    assert all(drafts for drafts in out)


def test_no_more_waits_than_may() -> None:
    settings = PaceSettings(words_per_s=1.0, words_at_once=1.0, most_waiting=5)
    step = Paced(Drafting(RuleEngine()), Pace(settings, Clock(step=0.0)))
    changes = said("flood", 30)
    assert len(of_meeting(step.on_batch(changes), "flood")) == len(changes) - 5


def test_a_turn_ends_where_far_too_much_waits() -> None:
    settings = PaceSettings(words_per_s=1.0, words_at_once=1.0, most_waiting=5, overfull_s=0.1)
    step = Paced(Drafting(RuleEngine()), Pace(settings, Clock(step=0.001)))
    changes = said("flood", 300)
    first = step.on_batch(changes)
    assert 0 < len(of_meeting(first, "flood")) < 150
    assert len(of_meeting([*first, *step.on_batch([])], "flood")) > len(of_meeting(first, "flood"))
    whole = Drafting(RuleEngine()).on_batch(changes)
    assert of_meeting([*step.on_batch([]), *drained(step)], "flood")[-1] == of_meeting(whole, "flood")[-1]


def test_shards_of_different_threads_do_not_share_a_pace() -> None:
    seen: list[Pace] = []
    workers = per_worker_pace()

    def look() -> None:
        seen.extend((workers(), workers()))

    for _ in range(2):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen[0] is seen[1] and seen[2] is seen[3] and seen[0] is not seen[2]


@pytest.mark.parametrize("slices", (0, 1, 3))
def test_what_waits_is_in_the_snapshot(tmp_path: Path, slices: int) -> None:
    changes = said("m", 9)
    stores = Stores(tmp_path, "minutes", ("understand",))
    store = stores.step(0, "understand")
    store.roll_back(None)
    first, second = (Paced(Drafting(RuleEngine()), Pace(TIGHT, Clock())) for _ in range(2))
    first.open(store)
    store.begin(proved=True)
    out = first.on_batch(changes[:9])
    for _ in range(slices):
        out += first.on_timer()
    first.save(store)
    marker = store.marker()
    store.begin(proved=True)
    drained(first)  # goes on, saves, and is killed
    first.save(store)
    store.roll_back(marker)
    second.open(store)
    assert second.next_timer_s() == 0.0
    out += second.on_batch(changes[9:])
    out += drained(second)
    second.save(store)
    assert out == Drafting(RuleEngine()).on_batch(changes)
    assert store.get(b"waiting") is None
    stores.close()


def test_work_done_beforehand_is_not_done_again() -> None:
    engine = CountedEngine()
    meeting, plain = MeetingDrafts("m", engine), MeetingDrafts("m", RuleEngine())
    for change in said("m", 6):
        before = len(engine.read_so_far)
        assert not isinstance(change, Outgoing)
        for _ in meeting.slices(change):
            pass
        ahead = len(engine.read_so_far)
        assert meeting.feed(change) == plain.feed(change)
        assert len(engine.read_so_far) == ahead or before == ahead
    assert len(engine.read_so_far) <= 2 * 6 + 1


def test_a_model_reads_in_pieces_and_says_the_same() -> None:
    scorer, appraisal = load_model(Settings(model="released"))
    meeting, plain = (MeetingDrafts("m", HybridEngine(scorer=scorer, appraisal=appraisal)) for _ in range(2))
    for place, change in enumerate(said("m", 9)):
        assert not isinstance(change, Outgoing)
        pieces = sum(1 for _ in meeting.slices(change))
        made, told = meeting.made, meeting.told
        (draft,) = drafts = meeting.feed(change)
        assert drafts == plain.feed(change)
        assert isinstance(draft, Draft)
        match change:
            case Heard() if place:
                assert pieces > 3
                assert made is not None and draft.items is made[1], "items made beforehand are not made again"
            case Settled():
                assert told is None or draft.summary is told[2]
        assert meeting.told is None
    assert pieces > 0


def test_a_summary_is_made_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def counted(*of: Any) -> tuple[SummarySentence, ...]:
        made.append(len(made))
        return summary(*of)

    monkeypatch.setattr("operators.draft.summary", counted)
    meeting, plain = MeetingDrafts("m", RuleEngine()), MeetingDrafts("m", RuleEngine())
    for change in said("m", 40)[:-1]:
        assert not isinstance(change, Outgoing)
        for _ in meeting.slices(change):
            pass
        before = len(made)
        drafts = meeting.feed(change)
        assert len(made) == before or before == 0
        assert drafts == plain.feed(change)
        made[:] = made[: before + 1]
    assert len(made) > 1


def test_slices_are_long_only_where_nobody_is_within_its_budget() -> None:
    clock = Clock(step=0.0)
    pace = Pace(
        PaceSettings(words_per_s=1.0, words_at_once=5.0, slice_s=0.002, turn_s=0.02, calm_s=10.0), clock
    )
    pace.behind |= {1, 2}
    assert pace.takes("flood", 9)
    assert not pace.takes("flood", 9)
    pace.waits("flood")
    assert pace.slice_s(1) == 0.01
    pace.takes("calm", 2)
    assert pace.slice_s(1) == pace.slice_s(250) == 0.002
    assert pace.slice_s(375) == pytest.approx(0.006)
    assert pace.slice_s(900) == 0.01
    clock.now = 11.0
    assert pace.slice_s(1) == 0.01


def test_a_budget_comes_back_with_time() -> None:
    clock = Clock(step=0.0)
    pace = Pace(PaceSettings(words_per_s=2.0, words_at_once=10.0), clock)
    assert pace.takes("m", 30)
    assert not pace.takes("m", 1)
    assert pace.takes("other", 1)
    clock.now = 6.0
    assert pace.takes("m", 1)


@pytest.mark.parametrize("wrong", ({"words_per_s": 0.0}, {"slice_s": 0.0}, {"most_waiting": 0}))
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a meeting needs words"):
        PaceSettings(**wrong)  # type: ignore[arg-type]
