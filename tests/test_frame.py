"""The frame: locks install everywhere alike, the Makefile needs next to nothing, imports are declared."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("contracts", "kernels", "models", "operators", "devices", "flows", "benchmarks")
PYTHONS = ("3.11", "3.12")


def locked(name: str, python: str) -> dict[str, tuple[Version, int]]:
    """What a lock installs on Linux with this Python: name to version and number of hashes."""
    where = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    pins: dict[str, tuple[Version, int]] = {}
    for entry in re.split(r"\n(?=[a-z])", (ROOT / "locks" / name).read_text()):
        if not entry[0].isalpha():
            continue
        pin = Requirement(entry.splitlines()[0].removesuffix("\\").strip())
        (specifier,) = pin.specifier
        assert specifier.operator == "=="
        if pin.marker is None or pin.marker.evaluate(where):
            pins[canonicalize_name(pin.name)] = Version(specifier.version), entry.count("--hash=sha256:")
    return pins


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("extra", ["dev", "train", "gpu"])
def test_lock_holds_what_the_project_asks_for(extra: str, python: str) -> None:
    # The locks of the extras are installed on top of the default one.
    extras = {"dev", extra}
    pins = locked("default.txt", python) | (locked(f"{extra}.txt", python) if extra != "dev" else {})
    asked = PROJECT["dependencies"] + [r for name in extras for r in PROJECT["optional-dependencies"][name]]
    for requirement in map(Requirement, asked):
        version, _ = pins[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement} is locked at {version}: run make lock"
    assert [name for name, (_, hashes) in pins.items() if not hashes] == []


@pytest.mark.parametrize("python", PYTHONS)
def test_default_lock_is_light_and_unambiguous(python: str) -> None:
    names = set(locked("default.txt", python))
    heavy = {name for name in names if name.startswith(("torch", "nvidia", "cuda", "triton", "transformers"))}
    assert heavy == set()
    # Two builds of either would overwrite each other's files.
    assert {name for name in names if name.startswith("opencv")} == {"opencv-python-headless"}
    assert {name for name in names if name.startswith("onnxruntime")} == {"onnxruntime"}


def test_all_locks_agree() -> None:
    default = locked("default.txt", "3.11")
    assert locked("default.txt", "3.12") == default
    for lock in ("train.txt", "gpu.txt"):
        extra = locked(lock, "3.11")
        assert default.keys() - extra.keys() == {"onnxruntime"}
        assert {name: extra[name][0] for name in default.keys() & extra.keys()} == {
            name: version for name, (version, _) in default.items() if name != "onnxruntime"
        }


def test_locks_name_no_place() -> None:
    for lock in (ROOT / "locks").iterdir():
        assert re.findall(r".*(?://|--\w*index|--find-links).*", lock.read_text()) == []


def test_imports_are_declared() -> None:
    extras = [r for requirements in PROJECT["optional-dependencies"].values() for r in requirements]
    declared = {canonicalize_name(Requirement(r).name) for r in PROJECT["dependencies"] + extras}
    own = {*PACKAGES, "tests"}
    sources = packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for module in imported(path)
        if module not in own and module not in sys.stdlib_module_names
        if declared.isdisjoint(canonicalize_name(name) for name in sources.get(module, [module]))
    }
    assert undeclared == set()


BELOW = {
    "contracts": (),
    "kernels": (),
    "models": ("contracts", "kernels"),
    "devices": ("contracts",),
    "operators": ("contracts", "models"),
    "flows": ("contracts", "models", "devices", "operators", "kernels"),
    "benchmarks": ("contracts", "models", "devices", "operators", "kernels", "flows"),
}
"""What each package may import besides itself."""


def imports_of(path: Path) -> set[str]:
    """Modules of the project that a module imports wherever in it, by their full names."""
    package = ".".join(path.relative_to(ROOT).parts[:-1])
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            module = node.module or ""
            module = f"{base}.{module}".rstrip(".") if node.level else module
            found |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return found


def test_imports_run_one_way() -> None:
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    arrows = {name: (imports_of(path) & paths.keys()) - {name} for name, path in paths.items()}
    # The face of a package is imported with each of its modules, which says nothing of what they need.
    arrows = {
        name: {to for to in targets if not any(other.startswith(f"{to}.") for other in targets)}
        for name, targets in arrows.items()
    }
    upward = {
        f"{name} -> {to}"
        for name, targets in arrows.items()
        for to in targets
        if to.split(".")[0] not in (name.split(".")[0], *BELOW[name.split(".")[0]])
    }
    assert upward == set()
    try:
        list(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        raise AssertionError(f"modules import each other: {' -> '.join(error.args[1])}") from None


def imported(path: Path) -> set[str]:
    """Top-level names that a module imports absolutely, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


FAKE_PYTHON = """#!/bin/sh
case "$*" in
"-c import sys;"*) echo VERSION ;;
"-c import ensurepip"*) exit ENSUREPIP ;;
"-m venv --clear .venv"*)
    echo venv >> calls
    rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python && chmod +x .venv/bin/python ;;
"-m pip"*) echo "pip $*" >> calls ;;
esac
"""


class Checkout:
    """A copy of what `make install` needs, in a folder with a space; its Pythons only write down calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a checkout"
        self.programs = folder / "bin"
        for path in (self.folder / "locks", self.programs):
            path.mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml", "locks/default.txt"):
            shutil.copy(ROOT / name, self.folder / name)
        for name in ("make", "sh", "cat", "cksum", "cp", "mkdir", "chmod", "rm"):
            program = shutil.which(name)
            assert program is not None, f"{name} is not installed"
            (self.programs / name).symlink_to(program)

    def python(self, name: str, version: str, *, ensurepip: bool = True) -> None:
        script = FAKE_PYTHON.replace("VERSION", version).replace("ENSUREPIP", "0" if ensurepip else "1")
        self.program(name, script)

    def program(self, name: str, script: str) -> None:
        (self.programs / name).write_text(script)
        (self.programs / name).chmod(0o755)

    def install(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "install"],
            cwd=self.folder,
            env={"PATH": str(self.programs)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self) -> list[str]:
        """What the Pythons were asked since the last look: `venv`, or `pip` with its arguments."""
        record = self.folder / "calls"
        lines = record.read_text().splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return lines


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_install_takes_the_first_python_that_fits(checkout: Checkout) -> None:
    checkout.program("python3.12", "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    checkout.python("python3.11", "3.11.9", ensurepip=False)
    checkout.python("python3", "3.13.0")
    checkout.python("python", "3.12.1")
    done = checkout.install()
    assert done.returncode == 0, done.stderr
    assert "with python 3.12.1" in done.stderr and "pyenv" not in done.stderr
    made, packages, project = checkout.calls()
    assert made == "venv"
    assert "--no-deps --require-hashes" in packages and packages.endswith("-r locks/default.txt")
    assert project.endswith("--no-deps --no-build-isolation -e .")


def test_install_does_only_what_has_changed(checkout: Checkout) -> None:
    checkout.python("python3.11", "3.11.9")
    assert checkout.install().returncode == 0
    assert len(checkout.calls()) == 3
    assert checkout.install().returncode == 0
    assert checkout.calls() == []
    with (checkout.folder / "pyproject.toml").open("a") as project:
        project.write("\n")
    assert checkout.install().returncode == 0
    assert [call.split()[-2] for call in checkout.calls()] == ["-e"]
    with (checkout.folder / "locks" / "default.txt").open("a") as lock:
        lock.write("\n")
    assert checkout.install().returncode == 0
    assert [call.split()[0] for call in checkout.calls()] == ["venv", "pip", "pip"]


def test_an_interrupted_install_is_begun_anew(checkout: Checkout) -> None:
    checkout.python("python3.11", "3.11.9")
    script = (checkout.programs / "python3.11").read_text()
    checkout.program("python3.11", script.replace('"-m pip"*)', '"-m pip"*) exit 1;;\n"never")'))
    assert checkout.install().returncode != 0
    checkout.python("python3.11", "3.11.9")
    checkout.calls()
    assert checkout.install().returncode == 0
    assert [call.split()[0] for call in checkout.calls()] == ["venv", "pip", "pip"]


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("3.10.13", "python3 3.10.13"),
        ("3.13.0", "python3 3.13.0"),
        (None, "no Python that runs"),
    ],
)
def test_install_says_which_python_it_needs(checkout: Checkout, version: str | None, found: str) -> None:
    if version is not None:
        checkout.python("python3", version)
    done = checkout.install()
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert said == [f"minuted needs Python 3.11 or 3.12 on the PATH; found {found}"]
