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
from .forward import content_forward, globals_forward
from .tiles import Launch

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

    def launch(self, capability: int) -> Launch:
        """Sizes that the launching functions choose on a GPU."""
        return Launch(self.tile or 16, self.type == "fp32", capability // 10)

    def constants(self, capability: int) -> dict[str, int]:
        """Values of its compile-time arguments."""
        launch = self.launch(capability)
        keys = launch.forward_keys if self.kernel is content_forward else launch.backward_keys
        sizes = {"D": _DEPTH, "DP": _DEPTH, "GP": self.globals, "BM": launch.tile, "BN": keys}
        return {name: value for name, value in sizes.items() if name in self.kernel.arg_names}

    def used(self, capability: int) -> bool:
        """Whether it would be launched on a GPU at all."""
        return self.kernel is not window_backward or self.launch(capability).whole_windows


def builds(quick: bool) -> Iterator[Build]:
    """What the launches in this package can ask for at 64 numbers a head; a few of them when quick."""
    for kernel in (content_forward, window_backward):
        yield Build(kernel, 128, 16)
    if quick:
        return
    for kernel in (queries_backward, keys_backward):
        for tile in (64, 128):
            yield Build(kernel, tile, 16)
            yield Build(kernel, tile, 16, "fp32")
    for kernel in (globals_forward, globals_backward):
        yield Build(kernel, None, 16)
    yield Build(content_forward, 128, 16, "fp32")
    for kernel in (content_forward, window_backward):
        for tile in (16, 32, 64):
            yield Build(kernel, tile, 16)
        yield Build(kernel, 128, 0)


def compile_for(build: Build, capability: int) -> dict[str, Any]:
    """Registers, spilled bytes, stack and shared memory of one kernel on one GPU."""
    constants = build.constants(capability)
    signature = {name: _type(name, build, constants) for name in build.kernel.arg_names}
    aligned = {
        (at,): [["tt.divisibility", 16]]
        for at, name in enumerate(build.kernel.arg_names)
        if signature[name].startswith("*") or name.endswith(("_row", "_head"))
    }
    source = ASTSource(fn=build.kernel, signature=signature, constexprs=constants, attrs=aligned)
    count = build.launch(capability).warps
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
    found = []
    for build in builds(arguments.quick):
        for gpu in CAPABILITIES:
            if not build.used(gpu):
                continue
            found.append(compile_for(build, gpu))
            print(found[-1], file=sys.stderr, flush=True)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
