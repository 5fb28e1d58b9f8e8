"""Publishing meetings from processes of their own and collecting what the topics show of them."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.topics import MINUTES, PARTIALS, TIMELINE, Topic
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
        return self._finals.issuperset(meetings)

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


def play(
    installation: Installation,
    recorder: Recorder,
    publications: Sequence[tuple[Path, str]],
    options: Sequence[str],
    *,
    stagger_s: float,
    timeout_s: float,
) -> list[Publication]:
    """Publish meetings side by side and wait until the minutes of all are final.

    Raises:
        InstallationError: a part ended, or the minutes were not final in time.
    """
    running: list[Publication] = []
    try:
        for number, (path, meeting) in enumerate(publications):
            if number:
                time.sleep(stagger_s)
            running.append(Publication(installation, path, meeting, *options))
        meetings = [meeting for _, meeting in publications]
        deadline = time.monotonic() + timeout_s
        tick = threading.Event()
        # Every look at the children costs processor time that the measured programs may need.
        while not (recorder.finished(meetings) and all(p.done() for p in running)):
            installation.check()
            for publication in running:
                publication.done()
            if time.monotonic() > deadline:
                raise InstallationError(f"the minutes were not final after {timeout_s:.0f} s")
            tick.wait(0.1)
    finally:
        for publication in running:
            publication.kill()
    return running
