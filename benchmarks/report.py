"""What every benchmark prints: one JSON line with its figures, the machine and the commit."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
_PACKAGES: Final = (
    "bytewax", "confluent-kafka", "ctranslate2", "faster-whisper", "numpy", "onnxruntime", "pydantic",
    "rocksdict",
)  # fmt: skip


def machine_facts() -> dict[str, Any]:
    """Processor, cores, load, interpreter and the packages that latency depends on."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "platform": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def commit() -> str:
    """Short hash of what is checked out, ``-dirty`` behind it where files differ, or ``unknown``."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return f"{head}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def print_report(benchmark: str, seed: int, figures: Mapping[str, Any]) -> None:
    """The one line on standard output: figures at top level, beside them what they were measured on."""
    line = {"benchmark": benchmark, **figures, "seed": seed, "commit": commit(), "machine": machine_facts()}
    print(json.dumps(line), flush=True)


def progress(text: str) -> None:
    """One line for people, on standard error."""
    print(text, file=sys.stderr, flush=True)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ("git", "-C", str(ROOT), *arguments), check=True, capture_output=True, text=True, timeout=20
    )
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
