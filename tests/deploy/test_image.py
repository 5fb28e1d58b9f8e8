"""The image: what it leaves out is not imported, and its own steps give a program that works.

No container engine is needed: the steps of deploy/Dockerfile are run in a clean folder.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_frame import PROJECT, imported, locked

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8")
LEFT_OUT = {
    line
    for line in (ROOT / "deploy" / "not-in-image.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
PARTS = ("contracts", "kernels", "models", "operators", "devices", "flows")


def file_of(module: str) -> Path | None:
    """The file of one of our modules, None where it is somebody else's or no module."""
    path = ROOT / module.replace(".", "/")
    return next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()), None)


def named(path: Path) -> set[str]:
    """Modules that a module imports or names in a string, as one that is run with -m is named."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            found.add(node.value)
    return {name for name in found if re.fullmatch(r"\w+(\.\w+)*", name)}


def reached() -> set[Path]:
    """Every module that the commands and the flows can come to."""
    found: set[Path] = set()
    waiting = list((ROOT / "flows").glob("*.py"))
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [file for file in map(file_of, named(path)) if file is not None]
    return found


def test_what_the_image_leaves_out_is_reached_from_nowhere_in_it() -> None:
    sources, files = packages_distributions(), reached()
    assert ROOT / "operators" / "media" / "child.py" in files, "a module that is run with -m is followed too"
    needed = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in imported(path)
        for name in sources.get(module, [])
        if canonicalize_name(name) in LEFT_OUT
    }
    assert needed == set(), "take these packages, and what they need, out of deploy/not-in-image.txt"
    assert not [path for path in files if path.parent == ROOT / "devices" / "rooms"]
    assert {path.relative_to(ROOT).parts[0] for path in files} <= {*PARTS}


def needed_by(requirements: list[str]) -> set[str]:
    """Names of these packages and of all that they ask for, less what the image leaves out."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in found or key[0] in LEFT_OUT:
            continue
        found.add(key)
        for asked in map(Requirement, distribution(wanted.name).requires or ()):
            if asked.marker is None or any(asked.marker.evaluate({"extra": e}) for e in ("", *wanted.extras)):
                waiting.append(asked)
    return {name for name, _ in found}


def test_the_image_has_what_the_program_asks_for_and_nothing_else() -> None:
    pins = set(locked("default.txt", f"{sys.version_info[0]}.{sys.version_info[1]}"))
    assert pins >= LEFT_OUT, "these are in the list and not in the lock"
    # setuptools makes the editable install.
    unneeded = pins - LEFT_OUT - needed_by(PROJECT["dependencies"]) - {"setuptools"}
    assert unneeded == set(), "add these to deploy/not-in-image.txt"
    assert not any(name.startswith("torch") for name in pins)


def test_the_context_has_everything_that_the_steps_copy() -> None:
    let_in = set(re.findall(r"^!(\S+)$", IGNORE, re.MULTILINE))
    assert let_in >= {
        *PARTS,
        "deploy/flow",
        "deploy/install.sh",
        "deploy/not-in-image.txt",
        "locks/default.txt",
    }
    assert not any((ROOT / name).name.startswith(".") for name in let_in)


def test_the_image_runs_as_nobody_in_particular_and_is_checked() -> None:
    assert re.search(r"^USER minuted$", DOCKERFILE, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["/usr/bin/tini", "--"\]$', DOCKERFILE, re.MULTILINE)
    assert '["python", "-m", "flows.healthy"]' in DOCKERFILE
    assert re.search(r"^FROM python:3\.12\.\d+-slim-bookworm$", DOCKERFILE, re.MULTILINE)


def steps() -> list[str]:
    """The commands of the Dockerfile that install something, mounts taken off."""
    commands = re.findall(r"^RUN (.*?[^\\])\n", DOCKERFILE, re.MULTILINE | re.DOTALL)
    joined = [re.sub(r"--mount=\S+", "", command.replace("\\\n", " ")) for command in commands]
    return [" ".join(command.split()) for command in joined if "install.sh" in command]


def context(folder: Path) -> Path:
    """The checkout as the builder gets it: tracked files, less what the ignore file keeps away."""
    let_in = re.findall(r"^!(\S+)$", IGNORE, re.MULTILINE)
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *let_in],
        check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_the_steps_of_the_image_give_a_program_that_works(tmp_path: Path) -> None:
    checkout, image, data = context(tmp_path / "checkout"), tmp_path / "opt", tmp_path / "data"
    data.mkdir()
    # Nothing of this environment but what reaches the package index.
    index = {
        k: v
        for k, v in os.environ.items()
        if k.startswith(("PIP_", "SSL_", "REQUESTS_")) or "proxy" in k.lower()
    }
    bare = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(data)}
    for step in steps():
        command = step.replace("/checkout", str(checkout)).replace("/opt/minuted", str(image))
        # The lock is for pip's own cache too, which makes this a matter of seconds where tests were run before.
        subprocess.run(
            ["sh", "-euc", command], check=True, cwd=data, env=bare | index | {"PYTHON": sys.executable}, timeout=400
        )  # fmt: skip
    assert len(steps()) == 2
    assert not (
        image
        / ".venv"
        / "lib"
        / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        / "site-packages"
        / "mypy"
    ).exists()
    minuted = image / ".venv" / "bin" / "minuted"
    told = subprocess.run(
        [str(minuted), "doctor", "--json"], check=True, cwd=data, env=bare, capture_output=True, text=True, timeout=120
    )  # fmt: skip
    findings = json.loads(told.stdout)
    assert {"torch", "dvc"}.isdisjoint(findings["packages"])
    for part in ("speech", "slides", "voice_activity", "embedded_broker"):
        assert not findings[part].startswith("does not work"), f"{part}: {findings[part]}"
    # The whole chain: broker, both flows, publisher, minutes.
    played = subprocess.run(
        [str(minuted), "demo", "--speed", "max", "--out", str(data / "out")], cwd=data, env=bare, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert played.returncode == 0, played.stdout[-2000:] + played.stderr
    assert json.loads((data / "out" / "minutes.json").read_text(encoding="utf-8"))["decisions"]
