"""Latency of a live meeting: published in real time by another process, watched from outside.

Latencies count from the stamp of the last speech sample of the true utterance, in milliseconds.
``hop_ms`` is the log between the flows: from the writer's stamp of an utterance record (when flows.perceive
handed it to its client, exact to the millisecond) until a reader with the flows' own settings has it.
``cpu_waited_s`` is how long threads of flows and broker were ready to run but had no processor: more than a
few seconds a minute, and the figures are those of a machine that did something else.

``--pool`` plays the rooms of ``make rooms`` in the forms that it is given and, with ``--audio-manifest``, real
conversations, one after the other, and pools their utterances; ``--rival-python`` adds a live run of
WhisperLiveKit on those of them that are one sound file with known words.

With ``--sound-only`` several meetings are sent by one process that has coded all of it before (``feeder.py``), since
publishers belong on other machines; with ``--publishers`` each by a ``minuted publish`` of its own.

``kept_up`` counts the meetings of which nearly all text (19 of 20 utterances) stood on the log within two seconds;
``shed`` the stretches that the log says were left out because the flow did not keep up, ``shed_meetings`` the meetings
that they belong to with the seconds from their first to their last, ``shed_utterances`` what was said in them, which
counts neither as lost nor in any other figure, ``hurried``
the meetings in which second looks were left out for that reason (partial texts are left out before that). A meeting
that is not final a while after its end stands in ``unfinished`` with how far it came, and what of it was not seen
by then counts as lost.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from devices.streams import InputError
from flows.brokers import BrokerError
from flows.installation import ROOT, Installation, InstallationError
from flows.latency import LatencySamples, percentiles

from .bare_loop import bare_loop_ms
from .latency_pool import pool
from .pool import real_speech, simulated_rooms
from .report import print_report, progress
from .resources import ResourceWatch
from .rooms import SAMPLE, Played, heard_room, meeting_ids, sound_room, spoken_room
from .watching import Recorder, play

_STAGGER_S: Final = 1.005
"""No multiple of a block's 20 ms: blocks of different meetings are not due together."""
_AFTER_END_S: Final = 90.0
_KEEPS_UP_MS: Final = 2_000.0
_LOOP_MESSAGES: Final = 200
_LOOP_EVERY_S: Final = 0.02


def measure(
    room: Played,
    installation: Installation,
    *,
    meetings: int,
    repeat: int,
    transcript_only: bool,
    loop_messages: int = _LOOP_MESSAGES,
    feed: bool = False,
) -> dict[str, Any]:
    """Play a room in an installation that is up; the figures of the report.

    Raises:
        InstallationError: a part ended or the minutes did not come.
    """
    loop = (
        bare_loop_ms(installation, messages=loop_messages, every_s=_LOOP_EVERY_S) if transcript_only else []
    )
    samples, lateness_ms, played_s = LatencySamples(), 0.0, 0.0
    unfinished: dict[str, str] = {}
    shed_meetings: dict[str, float] = {}
    kept_up = shed = hurried = 0
    flows = {name: flow.pid for name, flow in installation.flows.items()}
    options = ["--transcript-only"] if transcript_only else []
    ids = meeting_ids("words" if transcript_only else "sound", meetings * repeat, installation.names.shards)
    with ResourceWatch(flows | {"broker": installation.broker.pid}) as resources:
        for turn in range(repeat):
            names = ids[turn * meetings : (turn + 1) * meetings]
            progress(f"latency: meeting {turn + 1} of {repeat}, {meetings} at once, {room.duration_s:.0f} s")
            recorder = Recorder(installation, names)
            try:
                outcome = play(
                    installation, recorder, [(room.path, name) for name in names], options,
                    stagger_s=_STAGGER_S, timeout_s=room.duration_s + meetings * _STAGGER_S + _AFTER_END_S,
                    feed=feed,
                )  # fmt: skip
            finally:
                recorder.close()
            lateness_ms = max(lateness_ms, outcome.max_lateness_ms)
            unfinished |= outcome.unfinished
            played_s += room.duration_s
            shed += recorder.told_shed()
            hurried += recorder.told_hurried()
            for name in names:
                meter = recorder.meter(name)
                of_meeting = meter.samples(room.truth)
                out_s = meter.left_out_s((meter.start_ns or 0) + round(room.duration_s * 1e9))
                if out_s:
                    shed_meetings[name] = round(out_s, 1)
                kept_up += (
                    percentiles(of_meeting.final_text)["p95"] <= _KEEPS_UP_MS
                    and not out_s
                    and name not in unfinished
                )
                samples.add(of_meeting)
    figures = samples.report()
    if transcript_only:
        bare = percentiles(loop)
        figures |= {
            "bare_loop_ms": bare,
            "ratio_to_bare_loop": _ratio(figures["final_text_ms"]["p50"], bare["p50"]),
            "item_ratio_to_bare_loop": _ratio(figures["item_ms"]["p50"], bare["p50"]),
        }
    return figures | {
        "cpu_cores": round(resources.cores(*flows), 3),
        "cpu_cores_by_process": {name: round(resources.cores(name), 3) for name in resources.watched},
        "cpu_waited_s": round(resources.waited_s, 2),
        "rss_mb": round(resources.peak_mb(*flows), 1),
        "rss_mb_by_process": {name: round(w.peak_mb, 1) for name, w in resources.watched.items()},
        "max_lateness_ms": round(lateness_ms, 1),
        "played_s": round(played_s, 1),
        "kept_up": kept_up,
        "shed": shed,
        "shed_meetings": shed_meetings,
        "hurried": hurried,
        "unfinished": unfinished,
    }


def _ratio(of: float, to: float) -> float | None:
    return round(of / to, 2) if to else None


def run(
    path: Path,
    *,
    broker: str = "embedded",
    meetings: int = 1,
    repeat: int = 1,
    transcript_only: bool = False,
    sound_only: bool = False,
    publishers: bool = False,
    flows: tuple[str, ...] = ("perceive", "minutes"),
    loop_messages: int = _LOOP_MESSAGES,
) -> dict[str, Any]:
    """Bring up an installation, play a room in it, and take it down.

    Raises:
        InstallationError, BrokerError, InputError, OSError, ValueError: what could not be had or read.
    """
    scratch = Path(tempfile.mkdtemp(prefix="minuted-latency-"))
    try:
        if transcript_only:
            room = spoken_room(path, scratch / "words")
        else:
            room = heard_room(path, scratch / "sound") if sound_only else sound_room(path)
        feed = sound_only and meetings > 1 and not publishers
        with Installation(
            scratch, broker="kafka" if broker == "kafka" else "embedded", flows=flows
        ) as installation:
            figures = measure(
                room, installation, meetings=meetings, repeat=repeat, transcript_only=transcript_only,
                loop_messages=loop_messages, feed=feed,
            )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return figures | {
        "room": path.name, "broker": broker, "meetings": meetings, "repeat": repeat,
        "transcript_only": transcript_only, "sound_only": sound_only,
        "sent_by": "feeder" if feed else "publishers", "flows": list(flows),
    }  # fmt: skip


def _pooled(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    folders = given.rooms
    if folders is None:
        folders = sorted(p.parent for p in (ROOT / "build" / "rooms").glob("*/truth.json"))
        if not folders:
            raise ValueError("no rooms in build/rooms; `make rooms` builds them")
    pooled = simulated_rooms(folders)
    if given.audio_manifest is not None:
        pooled += real_speech(given.audio_manifest, scratch)
    return pool(pooled, broker=given.broker, rival_python=given.rival_python)


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 1 where a part of the product failed, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--room", type=Path, default=SAMPLE, help="room folder with truth.json; default the sample"
    )
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--meetings", type=int, default=1, help="the room so often at the same time")
    parser.add_argument("--repeat", type=int, default=1, help="the room so often one after the other")
    parser.add_argument(
        "--transcript-only", action="store_true", help="its words instead of its sound and pictures"
    )
    parser.add_argument(
        "--sound-only", action="store_true", help="its sound without slides and camera: nobody decodes video"
    )
    parser.add_argument(
        "--publishers",
        action="store_true",
        help="minuted publish for each of them, on this machine's processors",
    )
    parser.add_argument("--one-flow", action="store_true", help="flows.room instead of the two flows")
    parser.add_argument(
        "--seed", type=int, default=0, help="nothing here is random; kept for every benchmark"
    )
    parser.add_argument("--pool", action="store_true", help="rooms and real speech, one after the other")
    parser.add_argument(
        "--rooms", type=Path, nargs="*", help="room folders of the pool; default all in build/rooms"
    )
    parser.add_argument("--audio-manifest", type=Path, help="real recordings of the pool, as JSON lines")
    parser.add_argument("--rival-python", type=Path, help="Python of an environment with whisperlivekit")
    given = parser.parse_args(arguments)
    if given.meetings < 1 or given.repeat < 1:
        parser.error("--meetings and --repeat start at 1")
    scratch = Path(tempfile.mkdtemp(prefix="minuted-pool-"))
    try:
        figures = _pooled(given, scratch) if given.pool else run(
            given.room, broker=given.broker, meetings=given.meetings, repeat=given.repeat,
            transcript_only=given.transcript_only, sound_only=given.sound_only,
            publishers=given.publishers, flows=("room",) if given.one_flow else ("perceive", "minutes"),
        )  # fmt: skip
    except (InputError, OSError, ValueError, BrokerError) as error:
        progress(f"latency: {error}")
        return 2
    except InstallationError as error:
        progress(f"latency: {error}")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print_report("latency", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
