"""Whether the flows of this machine are ready and turning: ``python -m flows.healthy [FLOW]``.

A running flow touches a file beside its state every few seconds, from the loop that reads its topics. The check
looks at the age of that file and at the process that wrote it. It is run every few seconds by supervisors, so
this module imports the standard library alone: a check costs 30 ms and not the second that a flow's imports take.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_STATE_DIR: Final = ".minuted/state"
"""As in the settings, which would take too long to import; a test holds both equal."""

STALE_S: Final = 30.0
"""A flow that has not turned for so long is stuck, or waits for its broker."""

_BEAT_EVERY_S: Final = 2.0
_FOLDER: Final = "alive"


class Heartbeat:
    """The sign of life of one source in one process; call it at each turn of the loop.

    Args:
        state_dir: state directory of the flow.
        flow: name of the flow.
        source: which of its sources this is.
    """

    def __init__(self, state_dir: Path, flow: str, source: str) -> None:
        self._file = state_dir / _FOLDER / f"{flow}.{source}.{os.getpid()}"
        self._next_s = 0.0

    def __call__(self) -> None:
        """Note that the loop turned; writes at most every two seconds."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        try:
            if self._next_s == 0.0:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._file.write_text(process_started(os.getpid()))
            else:
                os.utime(self._file)
        except OSError:
            pass  # a full disk stops the flow elsewhere, with a better reason; the check then says "stuck"
        self._next_s = now_s + _BEAT_EVERY_S


@dataclass(frozen=True, slots=True)
class Health:
    """What the check found; ``line`` is for people."""

    healthy: bool
    line: str


def health(state_dir: Path, flow: str | None = None) -> Health:
    """Look at the flow of this name, or at all that keep their state in this folder.

    Healthy: at least one process of it has turned since its models were warm, and each has within ``STALE_S``.
    """
    ages: dict[str, float] = {}
    for file in sorted((state_dir / _FOLDER).glob(f"{flow or '*'}.*.*")):
        name, _, rest = file.name.partition(".")
        source, _, pid = rest.rpartition(".")
        try:
            if pid.isdecimal() and process_started(int(pid)) == file.read_text():
                ages[f"{name} ({source}, process {pid})"] = time.time() - file.stat().st_mtime
        except OSError:
            continue  # gone since it was listed
    if not ages:
        told = f"flows.{flow} is not ready" if flow else "no flow is ready"
        return Health(False, f"{told} (state in {state_dir})")
    stuck = {name: age for name, age in ages.items() if age > STALE_S}
    if stuck:
        named = ", ".join(f"{name} has not turned for {age:.0f} s" for name, age in stuck.items())
        return Health(False, f"flows: {named}")
    return Health(True, f"ready: {', '.join(ages)}")


def forget_ended(state_dir: Path) -> None:
    """Remove what processes that have ended left behind."""
    for file in (state_dir / _FOLDER).glob("*.*.*"):
        pid = file.name.rpartition(".")[2]
        try:
            if not pid.isdecimal() or process_started(int(pid)) != file.read_text():
                file.unlink(missing_ok=True)
        except OSError:
            continue


def process_started(pid: int) -> str:
    """Start time of a running process in the system's own count; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self").exists():
            return ""
    else:
        return "" if fields[0] == "Z" else fields[19]
    try:  # macOS has no /proc; there the number alone must do
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    return "running"


def main(arguments: list[str] | None = None) -> int:
    """0 where the flow is healthy, 1 where not; one line says why."""
    names = sys.argv[1:] if arguments is None else arguments
    found = health(Path(os.environ.get("MINUTED_STATE_DIR", DEFAULT_STATE_DIR)), names[0] if names else None)
    print(found.line, file=sys.stdout if found.healthy else sys.stderr)
    return 0 if found.healthy else 1


if __name__ == "__main__":
    sys.exit(main())
