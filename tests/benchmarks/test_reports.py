"""What benchmarks print, and what they read from /proc."""

import json
import os
import subprocess
import sys
import time

import pytest

from benchmarks.memory import flatness
from benchmarks.report import print_report
from benchmarks.resources import ResourceWatch, usage_of
from benchmarks.selfcheck import missing

SPIN = "import time; end = time.process_time() + {s}\nwhile time.process_time() < end: pass\nprint('done', flush=True); input()"


def test_a_report_is_one_line_with_machine_and_commit(capsys: pytest.CaptureFixture[str]) -> None:
    print_report("latency", 7, {"lost": 0})
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert (report["benchmark"], report["seed"], report["lost"]) == ("latency", 7, 0)
    assert report["commit"]
    assert {"cpu", "cores", "load_average", "python", "platform", "packages"} <= report["machine"].keys()


def test_missing_keys_are_named() -> None:
    wanted = {"a": (), "b": ("p50", "n"), "c": ("n",)}
    assert missing({"a": 1, "b": {"p50": 1, "n": 2}, "c": {"n": 1}}, wanted) == []
    assert missing({"b": {"p50": 1}, "c": 3}, wanted) == ["a", "b.n", "c.n"]


def test_usage_counts_children_living_and_ended() -> None:
    code = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {SPIN.format(s=0.3)!r}], stdin=subprocess.DEVNULL, check=False)\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SPIN.format(s=0.3)!r}], stdin=subprocess.PIPE)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert [process.stdout.readline() for _ in range(2)] == ["done\n", "done\n"]
        used = usage_of(process.pid)
        own = usage_of(os.getpid())
        process.stdin.close()
    assert used.cpu_s >= 0.55
    assert used.rss_mb > 10
    assert own.rss_mb > used.rss_mb


def test_cores_are_busy_time_over_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SPIN.format(s=0.4)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        with ResourceWatch({"one": process.pid}) as watch:
            assert process.stdout is not None and process.stdin is not None
            process.stdout.readline()
            time.sleep(0.3)
        process.stdin.close()
    assert watch.watched["one"].cpu_s >= 0.35
    assert watch.cores("one") * watch.duration_s == pytest.approx(watch.watched["one"].cpu_s)
    assert watch.peak_mb() == pytest.approx(watch.watched["one"].peak_mb)


def test_flat_memory_has_no_slope_and_growth_has_one() -> None:
    flat = flatness([(s / 4, 100.0) for s in range(400)], media_s=7200.0)
    assert (flat["rss_mb_start"], flat["rss_mb_end"], flat["slope_mb_per_hour"]) == (100.0, 100.0, 0.0)
    # 100 s of watching stand for two hours: 36 MB in that time are 18 MB an hour.
    grown = flatness([(s / 4, 100.0 + 0.09 * s) for s in range(401)], media_s=7200.0)
    assert grown["slope_mb_per_hour"] == pytest.approx(18.0, abs=0.01)
    assert grown["rss_mb_max"] == pytest.approx(136.0)
