"""Compiles the kernels for GPUs that are not here, and says what registers and shared memory they take.

``python -m kernels.triton.ahead [--quick]`` prints one JSON list, an entry for each kernel, tile and GPU.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .backward import globals_backward, keys_backward, queries_backward, window_backward
from .forward import content_forward, globals_forward, warps

CAPABILITIES: Final = (80, 90)
_DEPTH: Final = 64
_FLOATS: Final = ("LSE", "PART", "PART_LSE", "PQ", "PK", "PV")
_NUMBERS: Final = ("scale", "scale2")
_USAGE: Final = re.compile(r"REG:(\d+) STACK:(\d+).*?LOCAL:(\d+)")


@dataclass(frozen=True)
class Build:
    """One kernel in one size: tile rows where it has tiles, padded global tokens."""

    kernel: Any
    tile: int | None
    globals: int
    type: str = "bf16"

    def constants(self) -> dict[str, int]:
        """Values of its compile-time arguments."""
        sizes = {"D": _DEPTH, "DP": _DEPTH, "GP": self.globals}
        if self.tile is not None:
            sizes |= {
                "BM": self.tile,
                "BN": self.tile if self.kernel is content_forward else min(self.tile, 64),
            }
        return {name: value for name, value in sizes.items() if name in self.kernel.arg_names}


def builds(quick: bool) -> Iterator[Build]:
    """What the launches in this package can ask for at 64 numbers a head; a few of them when quick."""
    yield Build(content_forward, 128, 16)
    yield Build(window_backward, 128, 16)
    if quick:
        return
    for tile in (16, 32, 64, 128):
        for globals_ in (0, 16):
            if (tile, globals_) != (128, 16):
                yield Build(content_forward, tile, globals_)
                yield Build(window_backward, tile, globals_)
    for tile in (64, 128):
        yield Build(queries_backward, tile, 16)
        yield Build(keys_backward, tile, 16)
    yield Build(globals_forward, None, 16)
    yield Build(globals_backward, None, 16)
    yield Build(content_forward, 128, 16, "fp32")
    yield Build(window_backward, 128, 16, "fp32")


def compile_for(build: Build, capability: int) -> dict[str, Any]:
    """Registers, spilled bytes, stack and shared memory of one kernel on one GPU."""
    constants = build.constants()
    signature = {name: _type(name, build, constants) for name in build.kernel.arg_names}
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, name in enumerate(build.kernel.arg_names)
        if signature[name].startswith("*") or name.endswith(("_row", "_head"))
    }
    source = ASTSource(fn=build.kernel, signature=signature, constexprs=constants, attrs=aligned)
    count = 4 if build.tile is None else warps(build.tile)
    stages = 2 if build.kernel in (content_forward, globals_forward, globals_backward) else 1
    made = triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": count, "num_stages": stages}
    )
    return {
        "kernel": build.kernel.__name__, "gpu": f"sm_{capability}", "type": build.type, "tile": build.tile,
        "globals": build.globals, "warps": count, "shared_bytes": made.metadata.shared,
        **_usage(made.asm["cubin"]),
    }  # fmt: skip


def _type(name: str, build: Build, constants: dict[str, int]) -> str:
    if name in constants:
        return "constexpr"
    if name in _NUMBERS:
        return "fp32"
    if name in _FLOATS:
        return "*fp32"
    if name.isupper() and name not in ("H", "G"):
        return f"*{build.type}"
    return "i32" if name in ("H", "G") or name.endswith(("_row", "_head")) else "*i32"


def _usage(cubin: bytes) -> dict[str, int]:
    """Read with the cuobjdump that Triton brings along."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        said = subprocess.run(
            [str(tool), "-res-usage", str(file)], check=True, capture_output=True, text=True, timeout=60
        )
    found = _USAGE.search(said.stdout)
    if found is None:
        raise RuntimeError(f"no register usage in what cuobjdump printed: {said.stdout[:200]!r}")
    registers, stack, local = map(int, found.groups())
    return {"registers": registers, "stack_bytes": stack, "spilled_bytes": max(stack, local)}


def main() -> int:
    """Compiles and prints."""
    parser = argparse.ArgumentParser(description="Compile the attention kernels for sm_80 and sm_90.")
    parser.add_argument(
        "--quick", action="store_true", help="only the two kernels of the shipped window budget"
    )
    arguments = parser.parse_args()
    print(json.dumps([compile_for(build, gpu) for build in builds(arguments.quick) for gpu in CAPABILITIES]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
