"""Speed and memory of the minutes model: utterances a second, time of a window, batch curve, plan against measured.

Utterances are invented or from ``--scripts``; each meeting is an engine state of its own, and its utterances come in
turn with those of the others. ``window_ms`` is the time from an utterance to the items with it, at 1 and 12 meetings.
Memory is measured in processes of their own. ``two_processes`` is what a machine with two cores gets through, half
of 12 meetings in each process, as two workers of the minutes flow share them. ``flood``: twelve meetings, each with an
utterance every four seconds, and the same where one of them has a hundred times as many (`benchmarks/flooding.py`); from
arrival to published items, of the other eleven. ``mixed``: utterances whose scores differ in any bit where meetings
come mixed. Prints one JSON line.
"""

import argparse
import collections
import gc
import hashlib
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from flows.build import spare_the_loop
from flows.minutes_model import load_model
from models.minutes.appraisal import AppraisalUnusable
from models.minutes.inputs import WINDOW, Context, Window
from models.minutes.memory import memory_plan
from models.minutes.session import MinutesModel, MinutesModelUnusable, SessionSettings
from operators.settings import Settings
from operators.understand.cues import CUES
from operators.understand.hybrid import HybridEngine
from operators.understand.types import MeetingContext, Spoken

from .flooding import flooded
from .report import ROOT, print_report, progress
from .resources import usage_of
from .scripts import everyday_scripts, spoken_of

_MEMORY: Final = ((1, 50, 1), (1, 400, 1), (4, 150, 1), (8, 60, 1), (12, 100, 1), (6, 300, 2))
"""Meetings, utterances each, threads of the encoder: none of them was used to find the plan's figures."""
_BATCHES: Final = (1, 4, 12)
_TRIES: Final = 5
_WARM: Final = 60
"""Utterances before the clock runs in a process of two: their imports take unlike times."""
_LINE: Final = (
    "Could you send the numbers of the last quarter to the whole group by Friday afternoon, please?"
)
_PEOPLE: Final = ("Mira", "Tom", "Ana", "Leo")
_STEP_NS: Final = 4_000_000_000
_FLOODED: Final = 12
_FLOOD: Final = 100
_FLOOD_LINES: Final = 3
_DRAWS: Final = 4
"""Draws of arrival times: one alone has too few lines of the others for the slowest in a hundred."""
_FIGURES: Final = 97


def lines_of(folders: Sequence[Path], count: int, seed: int) -> list[tuple[str, str]]:
    """Speaker and text of utterances, in turn from all scripts, repeated with other words where there are too few."""
    said = [(s.speaker or "", s.text) for script in everyday_scripts(folders) for s in spoken_of(script)]
    draw = random.Random(seed)
    out = []
    for number in range(count):
        speaker, text = said[number % len(said)]
        again = number // len(said)
        out.append((speaker, f"{text} {draw.choice(_PEOPLE)} {again}" if again else text))
    return out


class Meetings:
    """Several running meetings; each utterance is timed from when it is handed over to its items."""

    def __init__(
        self, engine: HybridEngine, count: int, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._engine, self._clock = engine, clock
        self._states = [engine.start(MeetingContext()) for _ in range(count)]
        self._said = [0] * count

    def say(self, meeting: int, speaker: str, text: str) -> float:
        """Milliseconds that one utterance took."""
        at = self._said[meeting] = self._said[meeting] + 1
        spoken = Spoken(f"u{at}", at * _STEP_NS, (at + 1) * _STEP_NS - 1, speaker, text)
        begun = self._clock()
        state = self._engine.step(self._states[meeting], spoken)
        self._engine.items(state)
        self._states[meeting] = state
        return (self._clock() - begun) * 1e3


def ranks(times: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile, and how many."""
    told = {f"p{q}": round(float(np.percentile(times, q)), 2) for q in (50, 95, 99)} if times else {}
    return told | {"n": len(times)}


def speeds(engine: HybridEngine, lines: Sequence[tuple[str, str]], meetings: int) -> dict[str, Any]:
    """Utterances a second and time of a window with so many meetings in turn."""
    running = Meetings(engine, meetings)
    begun, used = time.perf_counter(), time.process_time()
    times = [running.say(number % meetings, *line) for number, line in enumerate(lines)]
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    return {
        "utterances_per_s": round(len(lines) / wall, 1), "utterances_per_core_s": round(len(lines) / cpu, 1),
        "window_ms": ranks(times),
    }  # fmt: skip


def throughput(model: MinutesModel) -> tuple[dict[str, float], float]:
    """Windows a second by how many go in one run, and pieces a second of the text encoder.

    The product runs one window at a time on one thread, whatever the gain of more would be: scores must not depend on
    batch mates, nor on how many cores a machine has.
    """
    number = iter(range(10**9))
    window = full_window(model)
    windows = {
        str(size): round(size * rate(partial(model.scores_together, [window] * size)), 1) for size in _BATCHES
    }
    return windows, round(rate(lambda: model.vectors(f"{next(number)} {_LINE}")), 1)


def rate(run: Callable[[], object]) -> float:
    """Runs a second, by the median of a few."""
    run()
    times = []
    for _ in range(_TRIES):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return 1.0 / max(1e-9, statistics.median(times))


def full_window(model: MinutesModel) -> Window:
    """A window as a long meeting has it."""
    context, told = Context(), model.told("", _LINE, (0.0,) * len(model.layout.cues))
    for turn in range(6 * WINDOW):
        context = context.heard(replace(told, speaker=f"s{turn % 4}"))
    return context.window()


def memory(scripts: Sequence[Path], configurations: Sequence[tuple[int, int, int]]) -> list[dict[str, Any]]:
    """Planned and measured growth of a process, in MB, for each configuration."""
    out = []
    for meetings, utterances, threads in configurations:
        command = [sys.executable, "-m", "benchmarks.model", "--child", f"{meetings},{utterances},{threads}"]
        command += ["--scripts", *map(str, scripts)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=600)
        grown = json.loads(done.stdout)["grown"]
        plan = memory_plan(meetings, utterances, SessionSettings(encoder_threads=threads)).total
        out.append({
            "meetings": meetings, "utterances": utterances, "threads": threads, "planned_mb": round(plan / 1e6, 1),
            "measured_mb": round(grown / 1e6, 1), "planned_to_measured": round(plan / grown, 3),
        })  # fmt: skip
        progress(json.dumps(out[-1]))
    return out


def unlike_in_parts(scripts: Sequence[Path], count: int, jobs: int, seed: int) -> dict[str, int]:
    """`unlike` of so many utterances, shared among processes with twelve meetings each."""
    lines = lines_of(scripts, count, seed)
    parts = [lines[count * part // jobs : count * (part + 1) // jobs] for part in range(jobs)]
    if jobs == 1:
        return unlike(lines, seed)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(unlike, parts, range(seed, seed + jobs)))
    return {name: sum(one[name] for one in found) for name in found[0]}


def unlike(lines: Sequence[tuple[str, str]], seed: int) -> dict[str, int]:
    """How many utterances have other scores, in any bit, when meetings come mixed in random order than one by one."""
    model, draw = MinutesModel(CUES), random.Random(seed)
    figures = [tuple(draw.choice((0.0, 0.3, 1.0)) for _ in model.layout.cues) for _ in range(_FIGURES)]

    def scores(order: Sequence[int]) -> list[bytes]:
        contexts, out = [Context()] * _FLOODED, [b""] * len(lines)
        for place in order:
            speaker, text = lines[place]
            told = model.told(speaker, text, figures[place % _FIGURES])
            contexts[place % _FLOODED] = contexts[place % _FLOODED].heard(told)
            last = model.scores(contexts[place % _FLOODED].window())[-1]
            out[place] = hashlib.sha256(repr(last).encode()).digest()
        return out

    alone = [place for m in range(_FLOODED) for place in range(m, len(lines), _FLOODED)]
    left = [collections.deque(range(m, len(lines), _FLOODED)) for m in range(_FLOODED)]
    mixed = []
    while any(left):
        mixed.append(draw.choice([q for q in left if q]).popleft())
    different = sum(a != b for a, b in zip(scores(alone), scores(mixed), strict=True))
    return {"utterances": len(lines), "different": different}


def side_by_side(scripts: Sequence[Path], utterances: int, seed: int) -> dict[str, Any]:
    """Utterances a second of two processes at once, each with half of twelve meetings."""
    command = [sys.executable, "-m", "benchmarks.model", "--scripts", *map(str, scripts)]
    running = [
        subprocess.Popen(
            [*command, "--half", str(utterances), "--seed", str(seed + part)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        )
        for part in range(2)
    ]  # fmt: skip
    told = [json.loads(process.communicate(timeout=600)[0]) for process in running]
    return {
        "utterances_per_s": round(sum(one["utterances_per_s"] for one in told), 1),
        "window_p99_ms": max(one["window_ms"]["p99"] for one in told),
    }


def _fresh_engine(settings: SessionSettings) -> HybridEngine:
    """One that remembers nothing; garbage is collected as in the flow."""
    scorer, appraisal = load_model(Settings(model="released"), settings)
    spare_the_loop()
    return HybridEngine(scorer=scorer, appraisal=appraisal)


def _half(scripts: Sequence[Path], utterances: int, seed: int) -> int:
    """Six meetings in this process, once its model has run a while."""
    scorer, appraisal = load_model(Settings(model="released"), SessionSettings())
    spare_the_loop()  # as the flow does before it is ready
    engine = HybridEngine(scorer=scorer, appraisal=appraisal)
    lines = lines_of(scripts, utterances + _WARM, seed)
    speeds(engine, lines[:_WARM], 6)
    print(json.dumps(speeds(engine, lines[_WARM:], 6)))
    return 0


def _child(scripts: Sequence[Path], told: str, seed: int) -> int:
    """Growth of this process when it loads the model and follows meetings."""
    meetings, utterances, threads = map(int, told.split(","))
    lines = lines_of(scripts, meetings * utterances, seed)
    from operators.understand.engine import RuleEngine

    rules = RuleEngine()
    state = rules.start(MeetingContext())
    for number, (speaker, text) in enumerate(lines[:200]):
        state = rules.step(state, Spoken(f"u{number}", number, number + 1, speaker, text))
    gc.collect()
    before = round(usage_of(os.getpid()).rss_mb * 1e6)
    scorer, appraisal = load_model(Settings(model="released"), SessionSettings(encoder_threads=threads))
    running = Meetings(HybridEngine(scorer=scorer, appraisal=appraisal), meetings)
    for number, line in enumerate(lines):
        running.say(number % meetings, *line)
    print(json.dumps({"grown": round(usage_of(os.getpid()).rss_mb * 1e6) - before}))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the model cannot be used."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scripts", type=Path, nargs="+", default=[ROOT / "models" / "everyday"])
    parser.add_argument("--utterances", type=int, default=1200)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument(
        "--mixed", type=int, default=120, help="utterances whose scores are compared in random order"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes that compare them")
    parser.add_argument("--only-mixed", action="store_true", help="compare scores, measure nothing else")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--half", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        return _child(given.scripts, given.child, given.seed)
    if given.half:
        return _half(given.scripts, given.half, given.seed)
    if given.only_mixed:
        mixed = unlike_in_parts(given.scripts, given.mixed, given.jobs, given.seed)
        print_report("model", given.seed, {"model": MinutesModel(CUES).name, "mixed": mixed})
        return 0
    settings = SessionSettings()
    try:
        scorer, appraisal = load_model(Settings(model="released"), settings)
    except (MinutesModelUnusable, AppraisalUnusable) as error:
        print(f"model: {error}", file=sys.stderr)
        return 2
    spare_the_loop()  # as the flow does before it is ready
    model = MinutesModel(CUES, settings=settings)
    windows_per_s, pieces_per_s = throughput(model)
    engine = HybridEngine(scorer=scorer, appraisal=appraisal)
    lines = lines_of(given.scripts, 2 * given.utterances, given.seed)
    told: dict[str, Any] = {
        "model": scorer.name,
        "threads": [settings.encoder_threads, settings.network_threads],
    }
    told["batch_curve_windows_per_s"], told["pieces_per_s"] = windows_per_s, pieces_per_s
    for part, meetings in enumerate((1, 12)):
        # Each part has lines of its own: the encoder remembers what was said before.
        mine = lines[part * given.utterances : (part + 1) * given.utterances]
        told[f"meetings_{meetings}"] = speeds(engine, mine, meetings)
        progress(f"{meetings} meetings: {json.dumps(told[f'meetings_{meetings}'])}")
    told["mixed"] = unlike_in_parts(given.scripts, given.mixed, given.jobs, given.seed)
    progress(f"mixed: {json.dumps(told['mixed'])}")
    count = _FLOOD_LINES * given.utterances
    mine = lines_of(given.scripts, count, given.seed + 1)
    told["flood"] = {
        f"{times}_times": ranks(
            [
                waited_ms
                for draw in range(_DRAWS)
                for waited_ms in flooded(_fresh_engine(settings), mine, times, _FLOOD, given.seed + draw)
            ]
        )
        for times in (1, _FLOOD)
    }
    progress(f"flood: {json.dumps(told['flood'])}")
    told["two_processes"] = side_by_side(given.scripts, given.utterances // 2, given.seed)
    progress(f"two processes: {json.dumps(told['two_processes'])}")
    if not given.no_memory:
        told["memory"] = memory(given.scripts, _MEMORY)
    print_report("model", given.seed, told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
