"""Keeps a flow from being started twice on one state directory, where the second would hang or do harm."""

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from operators.settings import SettingsProblem

_WAIT_S: Final = 3.0
"""A flow that is started again may meet the end of its last run."""
_held: Final[dict[Path, IO[str]]] = {}
"""Locks of this process; they go with it, however it ends."""


def process_id(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Which process of a group this is, as ``bytewax.run`` finds it out; 0 for one alone."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("-i", "--process-id", default=environment.get("BYTEWAX_PROCESS_ID"))
    try:
        given = parser.parse_known_args(arguments)[0].process_id
        pod, group = environment.get("BYTEWAX_POD_NAME"), environment.get("BYTEWAX_STATEFULSET_NAME")
        if given is None and pod is not None and group is not None:
            given = pod.removeprefix(f"{group}-")
        return 0 if given is None else int(given)
    except (argparse.ArgumentError, ValueError):
        return 0  # Bytewax will say what is wrong with it


def lock_state(folder: Path, flow: str, process: int, wait_s: float = _WAIT_S) -> None:
    """Hold the place of this process of a flow in a state directory until the process ends.

    Raises:
        SettingsProblem: another process that runs holds it.
    """
    path = (folder / f"{flow}-{process}.lock").resolve()
    if path in _held:
        return
    file = path.open("a+")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() < deadline:
                time.sleep(0.1)
                continue
            file.seek(0)
            owner = file.read(20).strip() or "unknown"
            file.close()
            raise SettingsProblem(
                f"another flows.{flow} runs on the state directory {folder} (process {owner}); end it first, or "
                "give this one state and recovery directories of its own"
            ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    _held[path] = file


def lock_this_process(folder: Path, flow: str) -> None:
    """``lock_state`` for this process as its command line and environment number it."""
    lock_state(folder, flow, process_id(sys.argv[1:], os.environ))
