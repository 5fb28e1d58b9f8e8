"""What one meeting that sends a hundred times as much costs the others, in the flows as people run them.

Twelve meetings of transcripts go on side by side through broker and flows, each with an utterance every four seconds;
then the same anew, where one of them sends ``--times`` as much. ``event_ms`` is that of the other eleven: from sending
an utterance to the first provisional event after it. Their utterances are far enough apart to tell which one it was,
also where the event is about an earlier one, and most that they say causes one, so that there are enough.
``added_p99`` is what the flood adds to their 99th percentile, as a share. Kafka has a shard for each meeting; the
embedded broker has two, so that some of the eleven share theirs with the flood. Prints one JSON line.
"""

import argparse
import bisect
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from contracts.topics import MINUTES, partition_of
from devices.publisher import tai_now_ns
from flows.brokers import BrokerError
from flows.installation import Installation, InstallationError
from flows.latency import TrueUtterance, percentiles
from flows.observer import wait_for

from .report import print_report, progress
from .resources import ResourceWatch
from .rooms import invented_talk, meeting_ids
from .talk import Line, Sender, lines_of
from .watching import Recorder, Seen

MEETINGS: Final = 12
EVERY_S: Final = 4.0
TIMES: Final = 100
SECONDS: Final = 120.0
_ITEM_SHARE: Final = 0.8
"""Of what the others say so much makes an item."""
_PATIENCE_S: Final = 120.0
_WARM: Final = 20


def plan(
    meetings: Sequence[str], seconds: float, times: float, seed: int
) -> tuple[list[tuple[float, Line]], dict[str, list[TrueUtterance]]]:
    """What is sent when, and what the meetings but the first say."""
    draw = random.Random(seed)
    start_ns = tai_now_ns()
    sent: list[tuple[float, Line]] = []
    said: dict[str, list[TrueUtterance]] = {}
    for number, meeting in enumerate(meetings):
        each_s = EVERY_S / (1.0 if number else times)
        count = max(1, int(seconds / each_s))
        talk = invented_talk(seed * 1_000 + number, count, **({"items": _ITEM_SHARE} if number else {}))
        if number:
            said[meeting] = talk
        first, *lines = lines_of(meeting, talk, start_ns)
        begin_s = draw.uniform(0.0, min(EVERY_S, seconds / 2))
        sent.append((0.0, first))
        spoken = [line for line in lines if line.spoken is not None]
        sent += [(1.0 + begin_s + place * each_s, line) for place, line in enumerate(spoken)]
        # Meetings end after all has been measured: what an end costs is another question.
        sent += [(3.0 + EVERY_S + seconds, line) for line in lines if line.spoken is None]
    return sorted(sent, key=lambda pair: pair[0]), said


def others(
    installation: Installation, meetings: int, seconds: float, times: float, seed: int
) -> dict[str, Any]:
    """Times of all meetings but the first, which sends so many times as much, and what the flows used.

    Raises:
        InstallationError: a part ended, or took too long.
    """
    ids = meeting_ids(f"x{times:g}", meetings, installation.names.shards)
    sent, said = plan(ids, seconds, times, seed)
    shards = [partition_of(meeting, installation.names.shards) for meeting in ids]
    recorder = Recorder(installation, tuple(said), (MINUTES,))
    sender = Sender(installation.link)
    pids = {name: flow.pid for name, flow in installation.flows.items()} | {"broker": installation.broker.pid}
    try:
        with ResourceWatch(pids) as used:
            late_ms = sender.send_at(sent)
        if not wait_for(lambda: recorder.finished(tuple(said)), _PATIENCE_S, installation.check):
            raise InstallationError(f"the minutes were not final after {_PATIENCE_S:.0f} s")
    finally:
        recorder.close()
    times_ms = {
        beside: first_events_ms(recorder.messages, which, sender.sent_ns)
        for beside, which in _groups(ids, shards)
    }
    return {
        "event_ms": percentiles([t for taken in times_ms.values() for t in taken]),
        "event_ms_by_shard": {beside: percentiles(taken) for beside, taken in times_ms.items() if taken},
        "max_lateness_ms": round(late_ms, 1),
        "cpu_cores": {name: round(used.cores(name), 3) for name in pids},
        "cpu_waited_s": round(used.waited_s, 2),
    }


def first_events_ms(
    seen: Iterable[Seen], meetings: Collection[str], sent_ns: Mapping[tuple[str, int], int]
) -> list[float]:
    """From sending each utterance to the first provisional event before the next one, where there is any."""
    sent = {m: sorted(at for (meeting, _), at in sent_ns.items() if meeting == m) for m in meetings}
    known: set[tuple[str, int]] = set()
    taken: list[float] = []
    for message in seen:
        event = json.loads(message.value)
        meeting = event["meeting_id"]
        if meeting not in sent or event["stage"] != "provisional":
            continue
        place = bisect.bisect_right(sent[meeting], message.seen_ns) - 1
        if place >= 0 and (meeting, place) not in known:
            known.add((meeting, place))
            taken.append((message.seen_ns - sent[meeting][place]) / 1e6)
    return taken


def _groups(ids: Sequence[str], shards: Sequence[int]) -> Iterator[tuple[str, set[str]]]:
    """The meetings but the first by whether they share its shard."""
    rest = list(zip(ids[1:], shards[1:], strict=True))
    yield "own", {meeting for meeting, shard in rest if shard != shards[0]}
    yield "shared", {meeting for meeting, shard in rest if shard == shards[0]}


def _warm(installation: Installation, seed: int) -> None:
    """Everything has run once: the first utterance of a process is no measure."""
    ids = meeting_ids("warm", 2, installation.names.shards)
    recorder, sender = Recorder(installation, ids, (MINUTES,)), Sender(installation.link)
    try:
        for number, meeting in enumerate(ids):
            sender.send(lines_of(meeting, invented_talk(seed + 7_000 + number, _WARM), tai_now_ns()))
        if not wait_for(lambda: recorder.finished(ids), _PATIENCE_S, installation.check):
            raise InstallationError("the meetings that warm up were not final in time")
    finally:
        recorder.close()


def run(
    *, broker: Literal["embedded", "kafka"] = "kafka", voice: Literal["model", "rules"] = "model",
    meetings: int = MEETINGS, seconds: float = SECONDS, times: float = TIMES, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Both rounds, each with an installation of its own, and their ratio.

    Raises:
        InstallationError, BrokerError: a part did not come up, ended, or took too long.
    """
    figures: dict[str, Any] = {}
    for much in (1.0, times):
        scratch = Path(tempfile.mkdtemp(prefix="minuted-flood-"))
        settings = {"MINUTED_MODEL": "released" if voice == "model" else "rules"}
        try:
            with Installation(scratch, broker=broker, settings=settings) as installation:
                _warm(installation, seed)
                progress(
                    f"flood: {meetings} meetings for {seconds:.0f} s, the first sends {much:g} times as much"
                )
                figures[f"{much:g}_times"] = told = others(installation, meetings, seconds, much, seed)
                progress(f"flood: {told}")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    before, after = (figures[f"{much:g}_times"]["event_ms"] for much in (1.0, times))
    figures["added_p99"] = round(after["p99"] / before["p99"] - 1, 3)
    return figures | {"broker": broker, "voice": voice, "meetings": meetings, "seconds": seconds}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 1 where a part of the product failed, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--voice", choices=("rules", "model"), default="model", help="who finds the items")
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="kafka")
    parser.add_argument("--meetings", type=int, default=MEETINGS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each round")
    parser.add_argument("--times", type=float, default=TIMES, help="how much more the first meeting sends")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.meetings < 2 or given.seconds <= 0 or given.times < 1:
        parser.error("--meetings starts at 2, --times at 1, and --seconds are more than none")
    try:
        figures = run(
            broker=given.broker, voice=given.voice, meetings=given.meetings, seconds=given.seconds,
            times=given.times, seed=given.seed,
        )  # fmt: skip
    except BrokerError as error:
        progress(f"flood: {error}")
        return 2
    except InstallationError as error:
        progress(f"flood: {error}")
        return 1
    print_report("flood", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
