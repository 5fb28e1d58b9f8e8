"""Whether memory stays flat over a long meeting, replayed faster than it would have been.

Two stretches in one installation: hours of transcript, then minutes of sound (the sample meeting's microphones
over and over). Figures are of the flows with all their children; the start is taken once a tenth is over.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile

from contracts.topics import MINUTES
from devices.publisher import tai_now_ns
from flows.brokers import BrokerError
from flows.installation import Installation, InstallationError
from flows.observer import wait_for

from .report import print_report, progress
from .resources import ResourceWatch
from .rooms import SAMPLE, invented_talk
from .talk import Sender, lines_of
from .watching import Recorder, play

_UTTERANCE_S: Final = 4.5
"""About what one invented utterance lasts with the pause behind it."""
_WARM_SHARE: Final = 0.1
_PATIENCE_S: Final = 300.0
_RECORDINGS: Final = ("mic-1", "mic-2", "mic-3", "mic-4")


def flatness(series: Sequence[tuple[float, float]], media_s: float) -> dict[str, float]:
    """Start, end, maximum and slope (MB an hour of the meeting) of memory over a stretch.

    Args:
        series: seconds and MB; evenly spaced.
        media_s: length of the stretch on the meeting's own clock.
    """
    after = series[int(len(series) * _WARM_SHARE) :]
    if len(after) < 2:
        return {"rss_mb_start": 0.0, "rss_mb_end": 0.0, "rss_mb_max": 0.0, "slope_mb_per_hour": 0.0}
    seconds = np.array([s for s, _ in after])
    megabytes = np.array([mb for _, mb in after])
    faster = media_s / (series[-1][0] - series[0][0])
    slope = float(np.polyfit(seconds, megabytes, 1)[0]) / faster * 3600.0
    edge = max(1, len(after) // 20)
    return {
        "rss_mb_start": round(float(np.median(megabytes[:edge])), 1),
        "rss_mb_end": round(float(np.median(megabytes[-edge:])), 1),
        "rss_mb_max": round(float(megabytes.max()), 1),
        "slope_mb_per_hour": round(slope, 2),
    }


def _together(watch: ResourceWatch, names: Sequence[str]) -> list[tuple[float, float]]:
    series = [watch.watched[name].rss_mb for name in names]
    return [(moment[0][0], sum(mb for _, mb in moment)) for moment in zip(*series, strict=False)]


def _words(installation: Installation, hours: float, per_s: float, seed: int) -> dict[str, Any]:
    said = invented_talk(seed, max(2, round(hours * 3600 / _UTTERANCE_S)))
    media_s = max(u.end_s for u in said)
    progress(f"memory: {media_s / 3600:.2f} h of transcript, {len(said)} utterances, {per_s:.0f} a second")
    recorder = Recorder(installation, ("words",), (MINUTES,))
    pids = {name: flow.pid for name, flow in installation.flows.items()}
    try:
        with ResourceWatch(pids) as watch:
            Sender(installation.link).send(lines_of("words", said, tai_now_ns()), per_s)
            if not wait_for(lambda: recorder.finished(("words",)), _PATIENCE_S, installation.check):
                raise InstallationError(f"the minutes were not final after {_PATIENCE_S:.0f} s")
    finally:
        recorder.close()
    return flatness(_together(watch, tuple(pids)), media_s) | {
        "hours": round(media_s / 3600, 3),
        "by_process": {name: flatness(watch.watched[name].rss_mb, media_s) for name in pids},
    }


def _sound(installation: Installation, minutes: float, speed: float) -> dict[str, Any]:
    room = installation.directory / "sound"
    room.mkdir()
    for name in _RECORDINGS:
        samples, rate_hz = soundfile.read(SAMPLE / f"{name}.flac", dtype="int16")
        times = max(1, round(minutes * 60 * rate_hz / len(samples)))
        soundfile.write(room / f"{name}.flac", np.tile(samples, times), rate_hz)
    shutil.copy(SAMPLE / "room.json", room / "room.json")
    media_s = times * len(samples) / rate_hz
    progress(f"memory: {media_s / 60:.1f} min of sound, {speed:g} times faster")
    recorder = Recorder(installation, ("sound",), (MINUTES,))
    pids = {name: flow.pid for name, flow in installation.flows.items()}
    try:
        with ResourceWatch(pids) as watch:
            outcome = play(
                installation, recorder, [(room, "sound")], ("--speed", f"{speed:g}"), stagger_s=0.0,
                timeout_s=media_s / speed + _PATIENCE_S,
            )  # fmt: skip
            if outcome.unfinished:
                raise InstallationError(f"the minutes were not final: {outcome.unfinished['sound']}")
    finally:
        recorder.close()
    return flatness(_together(watch, tuple(pids)), media_s) | {
        "minutes": round(media_s / 60, 1),
        "by_process": {name: flatness(watch.watched[name].rss_mb, media_s) for name in pids},
    }


def measure(
    installation: Installation, *, hours: float, per_s: float, sound_minutes: float, speed: float, seed: int
) -> dict[str, Any]:
    """The figures of an installation that is up.

    Raises:
        InstallationError: a part ended, or took too long.
    """
    words = _words(installation, hours, per_s, seed)
    sound = _sound(installation, sound_minutes, speed) if sound_minutes > 0 else None
    top = {name: words[name] for name in ("rss_mb_start", "rss_mb_end", "rss_mb_max", "slope_mb_per_hour")}
    if sound is not None:
        top["rss_mb_max"] = max(top["rss_mb_max"], sound["rss_mb_max"])
    return top | {"transcript": words, "sound": sound}


def run(
    *, hours: float = 2.0, per_s: float = 40.0, sound_minutes: float = 10.0, speed: float = 3.0,
    broker: str = "embedded", seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Bring up an installation, measure it, and take it down.

    Raises:
        InstallationError, BrokerError: a part did not come up, ended, or took too long.
    """
    scratch = Path(tempfile.mkdtemp(prefix="minuted-memory-"))
    kind: Any = "kafka" if broker == "kafka" else "embedded"
    try:
        with Installation(scratch, broker=kind) as installation:
            figures = measure(
                installation, hours=hours, per_s=per_s, sound_minutes=sound_minutes, speed=speed, seed=seed
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return figures | {"broker": broker}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 1 where a part of the product failed, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=2.0, help="of transcript")
    parser.add_argument("--per-s", type=float, default=40.0, help="utterances sent a second")
    parser.add_argument("--sound-minutes", type=float, default=10.0, help="of four microphones; 0 for none")
    parser.add_argument("--speed", type=float, default=3.0, help="of the sound, times real time")
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.hours <= 0 or given.per_s <= 0 or given.speed <= 0:
        parser.error("--hours, --per-s and --speed are above 0")
    try:
        figures = run(
            hours=given.hours, per_s=given.per_s, sound_minutes=given.sound_minutes, speed=given.speed,
            broker=given.broker, seed=given.seed,
        )  # fmt: skip
    except BrokerError as error:
        progress(f"memory: {error}")
        return 2
    except InstallationError as error:
        progress(f"memory: {error}")
        return 1
    print_report("memory", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
