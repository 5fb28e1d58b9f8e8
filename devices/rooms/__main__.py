"""Builds rooms from scripts.

    python -m devices.rooms [NAME...] [--out build/rooms] [--form default|seats|pair|mix|all] [--jobs 2]

A room of its script's own form is called as the script, one of another form NAME-FORM. A room that was made of the
same script, clips and program is left alone. The same of each give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devices.rooms.script import FORMS, Form, ScriptError, read_script

FOLDER: Final = Path(__file__).parent
STAMP: Final = ".made-of"
_MADE_WITH: Final = ("av", "numpy", "opencv-python-headless", "pyroomacoustics", "soundfile", "soxr")


@dataclass(frozen=True)
class Order:
    """One script and the folders wanted of it."""

    script: Path
    clips: Path
    folders: dict[Form, Path]
    stamp: str


def orders(scripts: Iterable[Path], clips: Path, out: Path, form: str) -> list[Order]:
    """What has to be built, up to date or not.

    Raises:
        ScriptError: a script that cannot be used.
    """
    found: list[Order] = []
    program = _program()
    for path in scripts:
        script = read_script(path)
        chosen = [f for f in FORMS if form in ("all", f) or (form == "default" and f == script.form)]
        name = script.meeting_id
        folders: dict[Form, Path] = {f: out / (name if f == script.form else f"{name}-{f}") for f in chosen}
        parts = [path.read_bytes()]
        parts += [kept.read_bytes() for kept in sorted(clips.glob(f"{name}.*"))]
        parts += [
            (path.parent / line.recording).read_bytes()
            for line in script.lines
            if line.recording is not None and (path.parent / line.recording).is_file()
        ]
        found.append(Order(path, clips, folders, hashlib.sha256(program + b"".join(parts)).hexdigest()))
    return found


def carry_out(order: Order) -> str | None:
    """Build what is missing or out of date; None, or one line that says what is wrong."""
    from devices.rooms.folder import build

    wanted: dict[Form, Path] = {
        form: f for form, f in order.folders.items() if not up_to_date(f, order.stamp)
    }
    if not wanted:
        return None
    try:
        build(order.script, order.clips, wanted)
    except ScriptError as fault:
        return str(fault)
    for folder in wanted.values():
        (folder / STAMP).write_text(order.stamp + "\n", encoding="utf-8")
    return None


def up_to_date(folder: Path, stamp: str) -> bool:
    """Whether the folder was made of what is here now."""
    path = folder / STAMP
    return path.is_file() and path.read_text("utf-8").strip() == stamp


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when all rooms are there, 2 with a line for each that cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m devices.rooms", description="Builds rooms from scripts.")
    parser.add_argument("names", nargs="*", help="scripts to build; all by default")
    parser.add_argument("--scripts", type=Path, default=FOLDER / "scripts", help="folder of scripts")
    parser.add_argument("--clips", type=Path, default=FOLDER / "clips", help="folder of kept clips")
    parser.add_argument("--out", type=Path, default=Path("build") / "rooms", help="folder the rooms go into")
    parser.add_argument("--form", choices=("default", "all", *FORMS), default="default")
    parser.add_argument("--jobs", type=int, default=2, help="how many rooms are built at once")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("pyroomacoustics") is None:
        print("rooms need pyroomacoustics: pip install pyroomacoustics", file=sys.stderr)
        return 2
    paths = [options.scripts / f"{name}.yaml" for name in options.names] or sorted(
        options.scripts.glob("*.yaml")
    )
    if not paths:
        print(f"{options.scripts}: holds no scripts", file=sys.stderr)
        return 2
    try:
        wanted = orders(paths, options.clips, options.out, options.form)
    except ScriptError as fault:
        print(fault, file=sys.stderr)
        return 2
    return _all_of(wanted, max(1, options.jobs))


def _all_of(wanted: Sequence[Order], jobs: int) -> int:
    failed = 0
    began = time.monotonic()
    with ProcessPoolExecutor(max_workers=min(jobs, len(wanted))) as pool:
        for order, problem in zip(wanted, pool.map(carry_out, wanted), strict=True):
            failed += problem is not None
            names = ", ".join(str(folder) for folder in order.folders.values())
            took = f"{time.monotonic() - began:.0f} s"
            print(problem or f"{names} ({took})", file=sys.stderr)
    return 2 if failed else 0


def _program() -> bytes:
    """What rooms are made with: this package, its acoustics and the versions of the libraries."""
    sources = [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in ("__main__", "speak")]
    sources.append(FOLDER.parent / "acoustics.py")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _MADE_WITH]
    return b"".join(path.read_bytes() for path in sources) + "\n".join(versions).encode()


if __name__ == "__main__":
    sys.exit(main())
