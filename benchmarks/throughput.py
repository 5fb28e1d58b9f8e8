"""Twelve meetings of transcripts through broker and flows: as fast as possible, then at a steady 80 % of that.

``event_ms`` runs from sending an utterance until the first event that it caused is seen, for utterances
that cause one.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from contracts.topics import MINUTES
from devices.publisher import tai_now_ns
from flows.brokers import BrokerError
from flows.installation import Installation, InstallationError
from flows.latency import percentiles
from flows.observer import wait_for

from .report import print_report, progress
from .resources import ResourceWatch
from .rooms import invented_talk, meeting_ids
from .talk import Sender, event_times_ms, in_turn, lines_of
from .watching import Recorder

MEETINGS: Final = 12
_UTTERANCES: Final = 300
_STEADY_SHARE: Final = 0.8
_PATIENCE_S: Final = 300.0


class _Round:
    """Meetings that are sent together once."""

    def __init__(
        self, installation: Installation, name: str, meetings: int, utterances: int, seed: int
    ) -> None:
        self._installation = installation
        self._ids = meeting_ids(name, meetings, installation.names.shards)
        self.said = {
            meeting: invented_talk(seed * 1_000 + number, utterances)
            for number, meeting in enumerate(self._ids)
        }
        self.utterances = meetings * utterances

    def send(self, per_s: float | None) -> tuple[float, list[float], float]:
        """Send all; seconds until every meeting was final, event times in ms, and the most a line was late in ms."""
        start_ns = tai_now_ns()
        lines = [lines_of(meeting, said, start_ns) for meeting, said in self.said.items()]
        recorder = Recorder(self._installation, self._ids, (MINUTES,))
        sender = Sender(self._installation.link)
        try:
            # A new producer takes half a second to be let in by the broker; the meetings begin meanwhile.
            sender.send(meeting[0] for meeting in lines)
            begun = time.monotonic()
            late_ms = sender.send(in_turn(meeting[1:] for meeting in lines), per_s)
            if not wait_for(lambda: recorder.finished(self._ids), _PATIENCE_S, self._installation.check):
                raise InstallationError(f"the minutes were not final after {_PATIENCE_S:.0f} s")
            taken_s = time.monotonic() - begun
        finally:
            recorder.close()
        return taken_s, event_times_ms(recorder.messages, self.said, sender.sent_ns), late_ms


def measure(
    installation: Installation, *, meetings: int = MEETINGS, utterances: int = _UTTERANCES, seed: int = 0
) -> dict[str, Any]:
    """The figures of an installation that is up.

    Raises:
        InstallationError: a part ended, or took too long.
    """
    pids = {name: flow.pid for name, flow in installation.flows.items()}
    pids["broker"] = installation.broker.pid
    _Round(installation, "warm", min(meetings, 2), 20, seed).send(None)
    progress(f"throughput: {meetings} meetings of {utterances} utterances, as fast as possible")
    flood = _Round(installation, "flood", meetings, utterances, seed)
    with ResourceWatch(pids) as fast:
        taken_s, _, _ = flood.send(None)
    per_s = flood.utterances / taken_s
    progress(f"throughput: {per_s:.0f} utterances/s; now steadily {_STEADY_SHARE * per_s:.0f}")
    steady = _Round(installation, "steady", meetings, utterances, seed + 1)
    with ResourceWatch(pids) as even:
        _, event_ms, late_ms = steady.send(_STEADY_SHARE * per_s)
    return {
        "utterances_per_s": round(per_s, 1),
        "event_ms": percentiles(event_ms),
        "steady_per_s": round(_STEADY_SHARE * per_s, 1),
        "max_lateness_ms": round(late_ms, 1),
        "cpu_cores_fast": {name: round(fast.cores(name), 3) for name in pids},
        "cpu_cores_steady": {name: round(even.cores(name), 3) for name in pids},
        "cpu_ms_per_utterance": {
            name: round(1e3 * fast.watched[name].cpu_s / flood.utterances, 3) for name in pids
        },
        "cpu_waited_s": {"fast": round(fast.waited_s, 2), "steady": round(even.waited_s, 2)},
        "rss_mb": {name: round(even.watched[name].peak_mb, 1) for name in pids},
        "meetings": meetings,
        "utterances_a_meeting": utterances,
    }


def run(
    *, broker: str = "embedded", meetings: int = MEETINGS, utterances: int = _UTTERANCES, seed: int = 0,
    flows: tuple[str, ...] = ("perceive", "minutes"), voice: str = "model",
) -> dict[str, Any]:  # fmt: skip
    """Bring up an installation, measure it, and take it down.

    Raises:
        InstallationError, BrokerError: a part did not come up, ended, or took too long.
    """
    scratch = Path(tempfile.mkdtemp(prefix="minuted-throughput-"))
    kind: Any = "kafka" if broker == "kafka" else "embedded"
    try:
        settings = {"MINUTED_MODEL": "released" if voice == "model" else "rules"}
        with Installation(scratch, broker=kind, flows=flows, settings=settings) as installation:
            figures = measure(installation, meetings=meetings, utterances=utterances, seed=seed)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return figures | {"broker": broker, "flows": list(flows)}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 1 where a part of the product failed, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--voice", choices=("rules", "model"), default="model", help="who finds the items")
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--meetings", type=int, default=MEETINGS)
    parser.add_argument("--utterances", type=int, default=_UTTERANCES, help="in each meeting")
    parser.add_argument("--one-flow", action="store_true", help="flows.room instead of the two flows")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.meetings < 1 or given.utterances < 1:
        parser.error("--meetings and --utterances start at 1")
    try:
        figures = run(
            broker=given.broker, meetings=given.meetings, utterances=given.utterances, seed=given.seed,
            flows=("room",) if given.one_flow else ("perceive", "minutes"), voice=given.voice,
        )  # fmt: skip
    except BrokerError as error:
        progress(f"throughput: {error}")
        return 2
    except InstallationError as error:
        progress(f"throughput: {error}")
        return 1
    print_report("throughput", given.seed, figures | {"voice": given.voice})
    return 0


if __name__ == "__main__":
    sys.exit(main())
