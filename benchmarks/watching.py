"""Publishing meetings from processes of their own and collecting what the topics show of them."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.topics import MINUTES, PARTIALS, TIMELINE, Topic
from devices.publisher import tai_now_ns
from flows.brokers import guarded_command
from flows.installation import ROOT, Installation, InstallationError
from flows.latency import LatencyMeter
from flows.observer import Observer

LOOKED_AT: Final = (TIMELINE, PARTIALS, MINUTES)


@dataclass(frozen=True, slots=True)
class Seen:
    """One message of a topic and when it was seen; times in TAI nanoseconds."""

    topic: Topic
    value: bytes
    seen_ns: int
    sent_ns: int


class Recorder:
    """Keeps every message for later: reading them meanwhile would make the next one seem late."""

    def __init__(
        self, installation: Installation, meetings: Sequence[str], topics: tuple[Topic, ...] = LOOKED_AT
    ) -> None:
        self.messages: list[Seen] = []
        self._finals: set[str] = set()
        self._observer = Observer(installation.link, tuple(meetings), self._on_message, topics)
        self._observer.start()

    def _on_message(self, topic: Topic, value: bytes, seen_ns: int, sent_ns: int) -> None:
        self.messages.append(Seen(topic, value, seen_ns, sent_ns))
        if topic is MINUTES and b'"type":"final"' in value:
            self._finals.add(json.loads(value)["meeting_id"])

    def finished(self, meetings: Sequence[str]) -> bool:
        """Whether the minutes of all these meetings are final."""
        return not self.unfinished(meetings)

    def unfinished(self, meetings: Sequence[str]) -> tuple[str, ...]:
        """Those of these meetings whose minutes are not final."""
        return tuple(meeting for meeting in meetings if meeting not in self._finals)

    def how_far(self, meeting: str) -> str:
        """How far a meeting has come that is not final, in words: what the log and the minutes show of it."""
        name = f'"meeting_id":"{meeting}"'.encode()
        log = [m for m in self.messages if m.topic is TIMELINE and name in m.value]
        events = sum(m.topic is MINUTES and name in m.value for m in self.messages)
        if not log:
            return "nothing of it is on the log"
        if any(b'"type":"ended"' in m.value for m in log):
            return f"its log has ended, {events} minutes events came, no final ones"
        silent_s = (tai_now_ns() - log[-1].seen_ns) / 1e9
        return f"its log has not ended, {len(log)} records, the last {silent_s:.0f} s ago; {events} minutes events"

    def told_shed(self) -> int:
        """How many stretches the log says were left out because the flow did not keep up."""
        return sum(m.topic is TIMELINE and b'"what":"shed"' in m.value for m in self.messages)

    def told_hurried(self) -> int:
        """How many meetings say that doubtful words were not listened to a second time, as recognition was behind."""
        return sum(m.topic is TIMELINE and b'"code":"hurried"' in m.value for m in self.messages)

    def meter(self, meeting: str) -> LatencyMeter:
        """What was seen of one meeting."""
        meter = LatencyMeter(meeting)
        for m in self.messages:
            meter.feed(m.topic.name, m.value, m.seen_ns, m.sent_ns)
        return meter

    def close(self) -> None:
        """Stop reading."""
        self._observer.close()


class Publication:
    """``minuted publish`` of one meeting in a process of its own."""

    def __init__(self, installation: Installation, path: Path, meeting: str, *options: str) -> None:
        self.meeting = meeting
        self._log = installation.directory / f"publish-{meeting}.log"
        self._out = installation.directory / f"publish-{meeting}.json"
        command = [
            sys.executable, "-m", "flows.cli", "publish", str(path), "--meeting", meeting,
            "--brokers", installation.broker.bootstrap, *options,
        ]  # fmt: skip
        self._process = subprocess.Popen(
            guarded_command(command), cwd=ROOT, env=installation.environment, stdin=subprocess.DEVNULL,
            stdout=self._out.open("wb"), stderr=self._log.open("wb"), start_new_session=True,
        )  # fmt: skip

    def done(self) -> bool:
        """Whether everything is out.

        Raises:
            InstallationError: it failed.
        """
        code = self._process.poll()
        if code not in (None, 0):
            said = self._log.read_text(errors="replace").strip().splitlines()
            raise InstallationError(f"publishing {self.meeting}: {said[-1] if said else f'exit code {code}'}")
        return code == 0

    @property
    def max_lateness_ms(self) -> float:
        """The most that a message went out after its moment; only once it is done."""
        told = json.loads(self._out.read_text(encoding="utf-8").strip().splitlines()[-1])
        return float(told["max_lateness_ms"])

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class Feeding:
    """One room as several meetings, sent by one process that takes next to no processor time (``feeder.py``)."""

    def __init__(
        self, installation: Installation, path: Path, meetings: Sequence[str], stagger_s: float
    ) -> None:
        self.meeting = ", ".join(meetings)
        command = [
            sys.executable, "-m", "benchmarks.feeder", str(path), "--brokers", installation.broker.bootstrap,
            "--shards", str(installation.names.shards), "--stagger", str(stagger_s), "--meetings", *meetings,
        ]  # fmt: skip
        self._process = subprocess.Popen(
            guarded_command(command), cwd=ROOT, env=installation.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        if self._line() != "ready":
            raise InstallationError("the feeder did not get ready")
        self.max_lateness_ms = 0.0

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def done(self) -> bool:
        """Whether everything is out.

        Raises:
            InstallationError: it failed.
        """
        code = self._process.poll()
        if code == 0 and self.max_lateness_ms == 0.0:
            told = json.loads(self._line())
            if told["failed"]:
                raise InstallationError(f"{told['failed']} messages of the feeder were not delivered")
            self.max_lateness_ms = float(told["max_lateness_ms"])
        elif code not in (None, 0):
            raise InstallationError(f"the feeder ended with code {code}")
        return code == 0

    def kill(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of meetings that were published.

    ``unfinished`` are those whose minutes were not final in time, and how far they came.
    """

    max_lateness_ms: float
    unfinished: Mapping[str, str]


def play(
    installation: Installation,
    recorder: Recorder,
    publications: Sequence[tuple[Path, str]],
    options: Sequence[str],
    *,
    stagger_s: float,
    timeout_s: float,
    feed: bool = False,
) -> Outcome:
    """Publish meetings side by side and wait until the minutes of all are final, or the time is up.

    ``feed``: one process sends them all (``feeder.py``); they are one room then, and there are no ``options``.

    Raises:
        InstallationError: a flow ended, or a publication failed.
    """
    running: list[Publication | Feeding] = []
    try:
        if feed:
            running.append(Feeding(installation, publications[0][0], [m for _, m in publications], stagger_s))
        deadline = time.monotonic() + timeout_s
        for number, (path, meeting) in enumerate(() if feed else publications):
            if number:
                time.sleep(stagger_s)
            running.append(Publication(installation, path, meeting, *options))
        meetings = [meeting for _, meeting in publications]
        tick = threading.Event()
        # Every look at the children costs processor time that the measured programs may need.
        while recorder.unfinished(meetings) or not all(p.done() for p in running):
            installation.check()
            for publication in running:
                publication.done()
            if time.monotonic() > deadline:
                break
            tick.wait(0.1)
        missing = {m: recorder.how_far(m) for m in recorder.unfinished(meetings)}
        missing |= {p.meeting: "it was not published to its end" for p in running if not p.done()}
        return Outcome(max((p.max_lateness_ms for p in running if p.done()), default=0.0), missing)
    finally:
        for publication in running:
            publication.kill()
