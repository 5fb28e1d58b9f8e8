"""From the start of the process to the first packet handled, with models on the disk and packets waiting.

The clock starts with ``python -m bytewax.run flows.perceive`` and stops when the log shows that the stream of
the waiting packets was opened. Every start has state and recovery folders of its own.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Producer

from contracts.packet import ClockKind, Codec, Modality, Packet, encode
from contracts.topics import AUDIO, TIMELINE, Topic
from devices.publisher import tai_now_ns
from flows.brokers import BrokerError
from flows.installation import ROOT, FlowProcess, Installation, InstallationError
from flows.latency import percentiles
from flows.observer import Observer, wait_for

from .report import print_report, progress
from .rooms import meeting_ids

_BLOCKS: Final = 50
_BLOCK_NS: Final = 20_000_000
_RATE_HZ: Final = 16_000
_PATIENCE_S: Final = 120.0


def _packets(meeting: str, seed: int) -> list[bytes]:
    """A second of quiet noise in blocks of 20 ms."""
    chance, start_ns = np.random.default_rng(seed), tai_now_ns()
    samples = _RATE_HZ * _BLOCK_NS // 1_000_000_000
    return [
        encode(
            Packet(
                meeting_id=meeting, device_id="mic-1", modality=Modality.AUDIO, codec=Codec.PCM_S16LE,
                clock_kind=ClockKind.PTP, stream_epoch=start_ns, sequence=number,
                timestamp_ns=start_ns + number * _BLOCK_NS, duration_ns=_BLOCK_NS, rate_hz=_RATE_HZ, width=0, height=0,
                channels=1, key_frame=False, payload=chance.integers(-20, 20, samples).astype("<i2").tobytes(),
            )
        )
        for number in range(_BLOCKS)
    ]  # fmt: skip


def _first_packet_s(installation: Installation, meeting: str, number: int, seed: int) -> float:
    """One start with packets of a meeting of its own waiting."""
    link = installation.link
    producer = Producer(link.producer())
    for value in _packets(meeting, seed):
        producer.produce(
            link.names.of(AUDIO), key=meeting.encode(), value=value, partition=link.names.partition(meeting)
        )
    producer.flush()
    handled = threading.Event()

    def on_message(topic: Topic, value: bytes, seen_ns: int, sent_ns: int) -> None:
        del topic, seen_ns, sent_ns
        if b'"type":"stream"' in value and f'"meeting_id":"{meeting}"'.encode() in value:
            handled.set()

    folder = installation.directory / f"start-{number}"
    folder.mkdir()
    environment = installation.environment | {"MINUTED_STATE_DIR": str(folder / "state")}
    flow = FlowProcess("perceive", folder, environment)
    observer = Observer(link, (meeting,), on_message, (TIMELINE,))
    observer.start()
    try:
        begun = time.monotonic()
        flow.start()
        if not wait_for(handled.is_set, _PATIENCE_S, flow.check):
            raise InstallationError(
                f"no packet was handled within {_PATIENCE_S:.0f} s; the log is {flow.log}"
            )
        return time.monotonic() - begun
    finally:
        observer.close()
        flow.kill()


def _import_s() -> float:
    """Seconds that a fresh interpreter needs to import the flows."""
    code = "import time; t = time.perf_counter(); import flows.build; print(time.perf_counter() - t)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )
    return float(done.stdout)


def run(*, broker: str = "embedded", repeat: int = 5, seed: int = 0) -> dict[str, Any]:
    """The figures.

    Raises:
        InstallationError, BrokerError: a part did not come up.
    """
    scratch = Path(tempfile.mkdtemp(prefix="minuted-coldstart-"))
    kind: Any = "kafka" if broker == "kafka" else "embedded"
    try:
        with Installation(scratch, broker=kind, flows=()) as installation:
            taken_s: list[float] = []
            for number, meeting in enumerate(meeting_ids("start", repeat, installation.names.shards)):
                taken_s.append(_first_packet_s(installation, meeting, number, seed + number))
                progress(f"coldstart: {number + 1} of {repeat}: {taken_s[-1]:.2f} s")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    ranks = percentiles([1e3 * s for s in taken_s])
    return {
        "first_packet_s": {
            "p50": round(ranks["p50"] / 1e3, 2), "max": round(max(taken_s), 2), "n": len(taken_s),
            "first": round(taken_s[0], 2),
        },
        "import_s": round(_import_s(), 2),
        "broker": broker,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 1 where a part of the product failed, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--repeat", type=int, default=5, help="number of starts")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.repeat < 1:
        parser.error("--repeat starts at 1")
    try:
        figures = run(broker=given.broker, repeat=given.repeat, seed=given.seed)
    except BrokerError as error:
        progress(f"coldstart: {error}")
        return 2
    except InstallationError as error:
        progress(f"coldstart: {error}")
        return 1
    print_report("coldstart", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
