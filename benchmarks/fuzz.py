"""Broken, strange and hostile messages through the codec and through the first flow: nothing may crash or vanish.

Each message ends up somewhere: accepted, a repetition, late, waiting for a missing one, nothing to read
(a tombstone), or a dead letter with its reason. The counts must add up to what was sent.
"""

import argparse
import collections
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from contracts.base import Message
from contracts.catalogue import MODELS
from contracts.examples import messages, packets
from contracts.messages import DeadLetter
from contracts.packet import PacketError, decode, encode
from contracts.timeline import TIMELINE_RECORD
from contracts.topics import CONTROL, DEADLETTER, TIMELINE, TopicNames
from flows.build import product_versions
from flows.files import MinutesOfLog
from models.voice_activity import VoiceActivity
from operators.broker.journal import NoJournal
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp, Received
from operators.clock import Clock, ClockSettings, Timed
from operators.ingest import Arrival, Ingest, IngestSettings, Late, Loss
from operators.perceive.step import Perceive
from operators.perceive.types import PerceiveSettings
from operators.shard_step import ShardStep
from operators.store import StepStore, Stores

from .fuzz_traffic import Mutator, Traffic
from .fuzz_workers import FuzzWorkers
from .report import print_report, progress

CODEC: int = 1_000_000
FLOW: int = 100_000
_FAMILIES = ("ingest", "clock", "perceive")
_SNAPSHOT_EVERY = 5_000
_TELL_EVERY = 20_000


class Crashes:
    """What should never be: each kind of crash with its count and the first input that caused it."""

    def __init__(self) -> None:
        self.found: collections.Counter[str] = collections.Counter()
        self.first: dict[str, str] = {}

    def add(self, error: BaseException, value: bytes) -> None:
        """Remember a crash by its kind and place."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        kind = f"{type(error).__name__} at {place}"
        self.found[kind] += 1
        if kind not in self.first:
            self.first[kind] = f"{error} <- {value[:200]!r}"
            progress(f"fuzz: CRASH {kind}: {self.first[kind]}")
            progress("".join(traceback.format_exception(error)))


def fuzz_codec(count: int, seed: int) -> dict[str, Any]:
    """``count`` packets and JSON messages through their readers, half of each."""
    mutator, crashes = Mutator(seed), Crashes()
    outcomes: collections.Counter[str] = collections.Counter()
    good = [example.data for example in packets().values()]
    texts = [(MODELS[name], message.to_bytes()) for name, message in sorted(messages().items())]
    begun = time.monotonic()
    for number in range(count):
        if number % 2:
            value = mutator.packet(good)
            outcome = _read_packet(value, crashes)
        else:
            model, text = mutator.chance.choice(texts)
            value = mutator.message(text)
            outcome = _read_message(model, value, crashes, again=number % 20 == 0)
        outcomes[outcome] += 1
    return {
        "sent": count, "outcomes": dict(sorted(outcomes.items())), "crashes": sum(crashes.found.values()),
        "crash_kinds": dict(crashes.found), "unaccounted": count - outcomes.total(),
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


def _read_packet(value: bytes, crashes: Crashes) -> str:
    try:
        packet = decode(value)
        if encode(packet) != value:
            raise AssertionError("an accepted packet is not what its fields encode to")
    except PacketError as error:
        return f"packet {error.reason}"
    except Exception as error:
        crashes.add(error, value)
        return "crash"
    return "packet accepted"


def _read_message(model: type[Message], value: bytes, crashes: Crashes, *, again: bool) -> str:
    try:
        message = model.model_validate_json(value)
        if again and model.model_validate_json(message.to_bytes()) != message:
            raise AssertionError("an accepted message changes when it is written and read again")
    except ValidationError:
        return "message schema"
    except Exception as error:
        crashes.add(error, value)
        return "crash"
    return "message accepted"


class FuzzedFlow:
    """The steps of ``flows.perceive`` on one shard, with their state on disk, and the minutes behind them."""

    def __init__(self, names: TopicNames, folder: Path, workers: FuzzWorkers, crashes: Crashes) -> None:
        self._names = names
        self._workers = workers
        self._crashes = crashes
        self._now_s = 0.0
        self._voice = VoiceActivity()
        self._stores = Stores(folder, "fuzz", _FAMILIES)
        self._minutes = MinutesOfLog(product_versions())
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.later: collections.Counter[str] = collections.Counter()
        self._ingest = Ingest(IngestSettings(), names, clock_s=lambda: self._now_s)
        self._clock = Clock(ClockSettings())
        self._perceive = Perceive(
            0, PerceiveSettings(stream_idle_s=15, meeting_idle_s=90), self._voice, workers, NoJournal(),
            clock_s=lambda: self._now_s, run=lambda: 1,
        )  # fmt: skip
        steps: tuple[ShardStep[Any, Any], ...] = (self._ingest, self._clock, self._perceive)
        self._steps = tuple((step, self._store(name)) for step, name in zip(steps, _FAMILIES, strict=True))
        for step, store in self._steps:
            step.open(store)

    def _store(self, family: str) -> StepStore:
        store = self._stores.step(0, family)
        store.roll_back(None)
        store.begin(proved=True)
        return store

    def feed(self, received: Received) -> None:
        """One message, and what becomes of it."""
        repeated, waiting, purged = self._duplicates(), self.waiting(), len(self._ingest._purged)
        try:
            out = self._ingest.on_batch([received])
        except Exception as error:
            self._crashes.add(error, received.value)
            self.outcomes["crash"] += 1
            return
        self._count(out)
        if len(self._ingest._purged) > purged:
            self.outcomes["of a purged meeting"] += waiting - self.waiting()
        elif self._duplicates() > repeated:
            self.outcomes["repeated"] += self._duplicates() - repeated
        elif not out and self.waiting() == waiting:
            self.outcomes[self._unseen(received)] += 1
        self._on(out, received.value)

    def passes(self, seconds: float) -> None:
        """All that stands on the broker was read, and so much time goes by."""
        self._now_s += seconds
        out = self._ingest.on_batch([CaughtUp(0)])
        self._count(out)
        self._on(out, b"time")

    def settle(self) -> None:
        """Take what the workers have to say."""
        try:
            self._log(self._perceive.on_timer())
        except Exception as error:
            self._crashes.add(error, b"an answer")

    def save(self) -> None:
        """A snapshot of all steps."""
        try:
            for step, store in self._steps:
                step.save(store)
                store.begin(proved=True)
        except Exception as error:
            self._crashes.add(error, b"a snapshot")

    def waiting(self) -> int:
        """Messages that wait for a missing one."""
        return sum(len(o.held) for m in self._ingest._meetings.values() for o in m._streams.values())

    def close(self) -> None:
        """Give the store back."""
        self._stores.close()

    def _duplicates(self) -> int:
        return sum(order.duplicates for order in self._ingest._meetings.values())

    def _unseen(self, received: Received) -> str:
        """Why nothing at all came of a message."""
        if not received.value and received.topic == self._names.of(CONTROL):
            return "tombstone"
        purged = any(meeting.encode() in received.value for meeting in self._ingest._purged)
        return "of a purged meeting" if purged else "lost"

    def _count(self, out: list[Any]) -> None:
        """Accepted messages are counted when they are handed on, perhaps long after they came."""
        for value in out:
            if isinstance(value, Outgoing):
                self.outcomes[f"dead letter: {DeadLetter.model_validate_json(value.value).reason}"] += 1
            elif isinstance(value, Arrival) and isinstance(value.body, Late):
                self.outcomes["late"] += 1
            elif isinstance(value, Arrival) and not isinstance(value.body, Loss):
                self.outcomes["accepted"] += 1

    def _on(self, out: list[Any], value: bytes) -> None:
        try:
            timed = self._clock.on_batch(out)
            self.later["timed"] += sum(isinstance(one, Timed) for one in timed)
            self._log(self._perceive.on_batch(timed))
        except Exception as error:
            self._crashes.add(error, value)

    def _log(self, out: list[Outgoing]) -> None:
        for message in out:
            if message.topic is DEADLETTER:
                self.later[f"dead letter: {DeadLetter.model_validate_json(message.value).reason}"] += 1
            elif message.topic is TIMELINE and message.value[:1] == b"{":
                record = TIMELINE_RECORD.validate_json(message.value)
                self.later[f"record: {record.type}"] += 1
                self._minutes.read(message.value)
            else:
                self.later[message.topic.name] += 1
                if message.topic is TIMELINE:
                    decode(message.value)


def fuzz_flow(count: int, seed: int) -> dict[str, Any]:
    """``count`` messages through ingest, clock and perceive, decoders included, and their log into minutes."""
    names = TopicNames(shards=2)
    folder = Path(tempfile.mkdtemp(prefix="minuted-fuzz-"))
    crashes, workers = Crashes(), FuzzWorkers(seed)
    begun = time.monotonic()
    flow = FuzzedFlow(names, folder, workers, crashes)
    try:
        traffic = Traffic(names, seed)
        for number in range(count):
            flow.feed(traffic.next(number))
            if number % 50 == 0:
                flow.passes(traffic.quiet_s())
            while workers.outstanding(0) > 400:
                time.sleep(0.001)
                flow.settle()
            if number % _SNAPSHOT_EVERY == 0:
                flow.save()
            if number and number % _TELL_EVERY == 0:
                progress(f"fuzz: {number} messages through the flow")
        deadline = time.monotonic() + 60
        while workers.outstanding(0) and time.monotonic() < deadline:
            time.sleep(0.002)
            flow.settle()
        flow.outcomes["waiting for a missing one"] = flow.waiting()
        unanswered = workers.outstanding(0)
    finally:
        workers.close()
        flow.close()
        shutil.rmtree(folder, ignore_errors=True)
    # A message of which nothing came is not accounted for.
    lost = flow.outcomes.pop("lost", 0)
    if lost:
        progress(f"fuzz: {lost} messages came to nothing")
    return {
        "sent": count, "outcomes": dict(sorted(flow.outcomes.items())), "later": dict(sorted(flow.later.items())),
        "crashes": sum(crashes.found.values()), "crash_kinds": dict(crashes.found),
        "unaccounted": count - flow.outcomes.total(), "unanswered": unanswered,
        "decoder_restarts": workers.restarts, "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


def run(*, codec: int, flow: int, seed: int) -> dict[str, Any]:
    """Both parts; a part of no messages is left out."""
    figures: dict[str, Any] = {}
    if codec:
        progress(f"fuzz: {codec} messages through the codec")
        figures["codec"] = fuzz_codec(codec, seed)
    if flow:
        progress(f"fuzz: {flow} messages through the flow")
        figures["flow"] = fuzz_flow(flow, seed)
    figures["crashes"] = sum(part["crashes"] for part in figures.values())
    figures["unaccounted"] = sum(
        abs(figures[name]["unaccounted"]) for name in ("codec", "flow") if name in figures
    )
    return figures


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 where nothing crashed and all is accounted for, else 1; 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--codec", type=int, default=CODEC, help="messages through the readers")
    parser.add_argument("--flow", type=int, default=FLOW, help="messages through the first flow")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.codec < 0 or given.flow < 0 or not given.codec + given.flow:
        progress("fuzz: --codec and --flow must not be negative, and one of them above 0")
        return 2
    figures = run(codec=given.codec, flow=given.flow, seed=given.seed)
    print_report("fuzz", given.seed, figures)
    return 1 if figures["crashes"] or figures["unaccounted"] else 0


if __name__ == "__main__":
    sys.exit(main())
