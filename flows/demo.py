"""The demo: broker, flows, publisher and a live view of the sample meeting, all on this machine."""

import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.console import Console

from contracts.topics import MINUTES, REVIEW, STATE, TIMELINE, Topic
from operators.deliver.keys import KeyStore
from operators.settings import load_settings

from .brokers import guarded_command
from .demo_clocks import clock_lines
from .files import log_line
from .installation import ROOT, Installation, InstallationError
from .latency import LatencyMeter, latency_lines, truth_of
from .live_view import LiveView
from .observer import Observer, wait_for
from .output import write_minutes
from .review import Cases
from .review_command import case_lines
from .run_files import minutes_by
from .topic_reader import Found
from .watch import run_view

SAMPLE: Final = ROOT / "devices" / "sample"
MEETING: Final = "demo"
_STATE_S: Final = 3.0


class _Seen:
    """What the observer saw: for the view, for the figures, and for the files."""

    def __init__(self) -> None:
        self.meter = LatencyMeter(MEETING)
        self.log: list[bytes] = []
        self.state = b""
        self.cases = Cases()
        self._for_view: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()

    def on_message(self, topic: Topic, value: bytes, seen_ns: int, sent_ns: int) -> None:
        self.meter.feed(topic.name, value, seen_ns, sent_ns)
        if topic is TIMELINE:
            self.log.append(log_line(value))
        elif topic is STATE:
            self.state = value
        elif topic is REVIEW:
            self.cases.feed(Found(topic.name, 0, 0, b"", value))
        self._for_view.put((topic.name, value))

    def poll(self) -> Iterable[tuple[str, bytes]]:
        """Messages for the view; waits a moment for the first."""
        out = []
        try:
            out.append(self._for_view.get(timeout=0.05))
            while len(out) < 500:
                out.append(self._for_view.get_nowait())
        except queue.Empty:
            pass
        return out


def demo(out: Path, *, speed: str = "realtime", console: Console | None = None) -> None:
    """Play the sample meeting through the whole product and leave its minutes in ``out``.

    Raises:
        InstallationError: a part did not come up or ended.
        OSError: ``out`` cannot be written.
    """
    console = console or Console()
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="minuted-demo-"))
    try:
        console.print("Starting broker and flows …", markup=False)
        with Installation(scratch) as installation:
            _play(installation, out, speed, console)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _play(installation: Installation, out: Path, speed: str, console: Console) -> None:
    seen = _Seen()
    observer = Observer(installation.link, (MEETING,), seen.on_message)
    observer.start()
    # Sent faster than it was made, a recording says nothing of its clocks: then all of them are right.
    publish = [sys.executable, "-m", "flows.demo_clocks", str(SAMPLE), MEETING]
    if speed != "realtime":
        publish = [
            sys.executable, "-m", "flows.cli", "publish", str(SAMPLE), "--meeting", MEETING,
            "--brokers", installation.broker.bootstrap, "--speed", speed,
        ]  # fmt: skip
    publisher = subprocess.Popen(
        guarded_command(publish),
        cwd=ROOT, env=installation.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=(installation.directory / "publish.log").open("wb"), start_new_session=True,
    )  # fmt: skip
    failed = threading.Event()

    def stop() -> bool:
        try:
            installation.check()
        except InstallationError:
            failed.set()
        if publisher.poll() not in (None, 0):
            failed.set()
        return failed.is_set()

    truth = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    try:
        run_view(
            LiveView(MEETING), seen.poll, console, stop=stop, until_final=True,
            last_lines=lambda: () if failed.is_set() else _last_lines(seen, truth, out, speed, installation),
        )  # fmt: skip
    finally:
        publisher.kill()
        publisher.wait()
        observer.close()
    installation.check()
    if failed.is_set():
        said = (installation.directory / "publish.log").read_text(errors="replace").strip().splitlines()
        raise InstallationError(f"the publisher ended: {said[-1] if said else 'it said nothing'}")


def _waiting(cases: Cases) -> list[str]:
    """What waits for a person, with why and the words that were said."""
    waiting = cases.open(MEETING)
    if not waiting:
        return []
    count = len(waiting)
    lines = [
        f"{count} statement{'s wait' if count > 1 else ' waits'} for a person; `minuted review` asks while flows run:"
    ]
    for case in waiting:
        _, *told = case_lines(case)
        lines += told
    return lines


def _last_lines(
    seen: _Seen, truth: dict[str, object], out: Path, speed: str, installation: Installation
) -> list[str]:
    """Write the files, made from the log alone, and say what was measured."""
    minutes = minutes_by(load_settings(), KeyStore(installation.keys))
    written = [m for value in list(seen.log) for m in minutes.read(value)]
    document = minutes.document()
    if document is None:
        raise InstallationError("the log has no end of the meeting")
    write_minutes(document, out, date=minutes.date, timeline=seen.log, audit=minutes.audit)
    states = [m.value for m in written if m.topic is STATE]
    # The final event and the state that it speaks of lie on two topics: either may be read first.
    same = bool(states) and wait_for(lambda: states[-1] == seen.state, _STATE_S)
    events = sum(m.topic is MINUTES for m in written)
    lines = latency_lines(seen.meter.report(truth_of(truth))) if speed == "realtime" else []
    lines += clock_lines(seen.log) if speed == "realtime" else []
    replay = "the same bytes" if same else "OTHER bytes than the flow published"
    lines.append(f"Read again from the log: {events} revisions, {replay}.")
    lines += _waiting(seen.cases)
    lines.append(f"Minutes: {out / 'minutes.md'}, {out / 'minutes.json'}, {out / 'transcript.vtt'}")
    return lines
