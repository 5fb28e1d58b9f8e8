"""What telemetry costs: the steps of ingest and of the minutes with telemetry absent, off and on, in turns.

*absent* runs the bare steps. *off* has them wrapped as a flow does without a collector. *on* sends spans and
metrics to a receiver in a process of its own that throws them away. Each round runs the three one after the other,
in changing order, on the same messages, and compares them with one another: a machine that is busy with something
else hits all three alike. Figures are processor time of this process with all its threads, the SDK's included.
Without Bytewax and broker around the steps, whose time telemetry does not touch, the shares are larger than in a
flow. Spans are limited by the second of the clock, so that on a machine that is busy with something else, where
a second of the clock holds less work, they weigh more.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from contracts.messages import AttendeeInfo, MeetingStarted
from contracts.minutes import Versions
from contracts.packet import Codec, Modality
from contracts.timeline import ClockRecord, ControlRecord, EndedRecord, Record, StreamRecord, UtteranceRecord
from contracts.topics import AUDIO, TIMELINE, TopicNames
from flows.latency import TrueUtterance
from operators import telemetry
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.source import Received
from operators.clock import ClockSettings
from operators.clock.step import Clock
from operators.deliver.keys import OpenKeys
from operators.deliver.step import Deliver, judge
from operators.draft import Drafting
from operators.ingest import Ingest, IngestSettings
from operators.telemetry.export import Exporting
from operators.understand.engine import RuleEngine
from operators.verify.check import Verifier

from .ingest import noise_blocks, values_of
from .report import print_report, progress
from .rooms import ATTENDEES, invented_talk

Mode = Literal["absent", "off", "on"]
MODES: Final[tuple[Mode, ...]] = ("absent", "off", "on")
S: Final = 1_000_000_000
_NAMES: Final = TopicNames(shards=1)
_START_NS: Final = 1_790_000_000 * S
_STREAM: Final = "captions/transcript"
Steps = Sequence[Callable[[list[Any]], list[Any]]]


def log_of(meeting: str, said: Sequence[TrueUtterance]) -> list[Received]:
    """The log of a meeting whose words came from outside, as `flows.minutes` reads it."""
    started = MeetingStarted(
        meeting_id=meeting, start_ns=_START_NS, title="Benchmark", speech_source="transcript",
        attendees=tuple(AttendeeInfo(name=name) for name in ATTENDEES), streams=(_STREAM,),
    )  # fmt: skip
    records: list[Record] = [
        ControlRecord(meeting_id=meeting, control=started, source="minuted.control/0/0"),
        ClockRecord(
            meeting_id=meeting, device="captions", number=0, from_raw_ns=0, ref_ns=0, offset_ns=0,
            uncertainty_ns=1_000_000, method="stamped",
        ),
        StreamRecord(meeting_id=meeting, stream=_STREAM, state="opened", stream_epoch=1, sequence=-1, raw_ns=_START_NS),
    ]  # fmt: skip
    for number, heard in enumerate(said):
        begin_ns, end_ns = (_START_NS + round(s * S) for s in (heard.start_s, heard.end_s))
        records.append(
            UtteranceRecord(
                meeting_id=meeting, id=f"captions/1/{number}", version=1, state="closed", stream=_STREAM,
                device="captions", clock=0, raw_start_ns=begin_ns, raw_end_ns=end_ns, mark_ns=end_ns,
                speaker=heard.speaker, text=heard.text, source="transcript", sampling_ms=0, boundary_ms=0,
            )
        )  # fmt: skip
    last_ns = _START_NS + round(max(u.end_s for u in said) * S)
    records.append(
        StreamRecord(
            meeting_id=meeting,
            stream=_STREAM,
            state="ended",
            stream_epoch=1,
            sequence=len(said),
            raw_ns=last_ns,
        )
    )
    records.append(EndedRecord(meeting_id=meeting, reason="control", end_ns=last_ns))
    context = telemetry_context(meeting)
    return [
        Received(TIMELINE.name, 0, place, _START_NS, False, record.model_dump_json().encode(), context)
        for place, record in enumerate(records)
    ]


def telemetry_context(meeting: str) -> str:
    """A W3C context as `flows.perceive` would have written it."""
    chance = random.Random(meeting)
    return f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01"


def ingest_steps(mode: Mode) -> Steps:
    """Ingest and clock of one shard."""
    return [
        _step("ingest", Ingest(IngestSettings(), _NAMES), mode), _step("clock", Clock(ClockSettings()), mode)
    ]  # fmt: skip


def minutes_steps(mode: Mode) -> Steps:
    """Align, understand, verify and deliver of one shard."""
    verifier = Verifier()

    def of_shard(value: tuple[int, Any]) -> tuple[int, Any]:
        return value[0], judge(verifier, value[1])

    verified = of_shard if mode == "absent" else telemetry.observed_function("verify", of_shard)
    versions = Versions(product="0", model=None, rules="rules", contract="minuted.minutes/1")
    return [
        _step("align", Align(AlignSettings()), mode),
        _step("understand", Drafting(RuleEngine()), mode),
        lambda values: [verified((0, value))[1] for value in values],
        _step("deliver", Deliver(versions, OpenKeys()), mode),
    ]


def _step(name: str, step: Any, mode: Mode) -> Callable[[list[Any]], list[Any]]:
    taken = step if mode == "absent" else telemetry.observed(name, step)
    return lambda values: list(taken.on_batch(values))


def cost_s(
    make: Callable[[Mode], Steps], messages: Sequence[Received], batch: int, mode: Mode, endpoint: str
) -> float:
    """Processor seconds of one pass over the messages; with telemetry on, until everything is sent."""
    with TemporaryDirectory() as state:
        if mode == "on":
            telemetry.start(Exporting("benchmark", "0", Path(state), endpoint))
        steps = make(mode)
        begun = time.process_time()
        for first in range(0, len(messages), batch):
            values: list[Any] = list(messages[first : first + batch])
            for step in steps:
                values = step(values)
        telemetry.stop()
        return time.process_time() - begun


def compare(
    what: str, make: Callable[[Mode], Steps], messages: Sequence[Received], *, batch: int, rounds: int, endpoint: str,
    chance: random.Random,
) -> dict[str, Any]:  # fmt: skip
    """Messages a second and core by mode, and the ratios of the rounds: middle, least and most."""
    spent: dict[Mode, list[float]] = {mode: [] for mode in MODES}
    for mode in MODES:
        cost_s(make, messages, batch, mode, endpoint)  # what is built at first use is not measured
    for number in range(rounds):
        for mode in chance.sample(MODES, len(MODES)):
            spent[mode].append(cost_s(make, messages, batch, mode, endpoint))
        progress(f"telemetry: {what}, round {number + 1} of {rounds}")
    figures: dict[str, Any] = {
        f"{mode}_per_s_core": round(len(messages) / statistics.median(spent[mode])) for mode in MODES
    }
    for mode in ("off", "on"):
        ratios = sorted(one / bare for one, bare in zip(spent[mode], spent["absent"], strict=True))
        figures[f"{mode}_ratio"] = {
            "mid": round(statistics.median(ratios), 4), "low": round(ratios[0], 4), "high": round(ratios[-1], 4),
        }  # fmt: skip
    return figures | {"messages": len(messages), "batch": batch, "rounds": rounds}


def run(
    *, seconds: int = 120, utterances: int = 300, meetings: int = 12, rounds: int = 9, seed: int = 0
) -> dict[str, Any]:
    """The figures of both halves."""
    chance = random.Random(seed)
    packets = values_of(AUDIO, Modality.AUDIO, noise_blocks(seconds, Codec.PCM_S16LE, seed), meetings=4)
    logs = [log_of(f"meeting-{m}", invented_talk(seed * 1_000 + m, utterances)) for m in range(meetings)]
    records = [log[place] for place in range(max(map(len, logs))) for log in logs if place < len(log)]
    receiver, endpoint = _receiver()
    try:
        return {
            "ingest": compare("ingest", ingest_steps, packets, batch=64, rounds=rounds, endpoint=endpoint, chance=chance),
            "minutes": compare("minutes", minutes_steps, records, batch=8, rounds=rounds, endpoint=endpoint, chance=chance),
        }  # fmt: skip
    finally:
        receiver.terminate()
        receiver.wait()


class _Throwaway(BaseHTTPRequestHandler):
    """Takes what is sent and forgets it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


def _receiver() -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "benchmarks.telemetry", "--receiver"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, f"http://127.0.0.1:{int(process.stdout.readline())}"


def _receive() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = HTTPServer(("127.0.0.1", 0), _Throwaway)
    print(server.server_port, flush=True)
    server.serve_forever()


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=120, help="of sound, in each of four meetings")
    parser.add_argument("--utterances", type=int, default=300, help="in each of twelve meetings")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--receiver", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.receiver:
        _receive()
        return 0
    if min(given.seconds, given.utterances, given.rounds) < 1:
        parser.error("--seconds, --utterances and --rounds start at 1")
    figures = run(seconds=given.seconds, utterances=given.utterances, rounds=given.rounds, seed=given.seed)
    print_report("telemetry", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
