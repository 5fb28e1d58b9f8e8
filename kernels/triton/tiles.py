"""What the kernels share: reading and writing tiles of a packed tensor, and how launches are sized."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


def kernel(function: Callable[..., Any]) -> Any:
    """``triton.jit`` with a type."""
    return triton.jit(function)


@kernel
def load_rows(
    base: tl.tensor, rows: tl.tensor, present: tl.tensor, stride: tl.tensor, D: tl.constexpr, DP: tl.constexpr
) -> tl.tensor:
    """(rows, DP) of one head; 0 where a row is not present and beyond the head's depth."""
    depth = tl.arange(0, DP)
    mask = present[:, None]
    if D != DP:
        mask = mask & (depth < D)[None, :]
    # 64-bit offsets: a batch of a million tokens with 8 heads of 64 is near 2**31 numbers.
    return tl.load(base + rows.to(tl.int64)[:, None] * stride + depth[None, :], mask=mask, other=0.0)


@kernel
def store_rows(
    base: tl.tensor,
    rows: tl.tensor,
    present: tl.tensor,
    stride: tl.tensor,
    values: tl.tensor,
    D: tl.constexpr,
    DP: tl.constexpr,
) -> None:
    """The reverse of ``load_rows``."""
    depth = tl.arange(0, DP)
    mask = present[:, None]
    if D != DP:
        mask = mask & (depth < D)[None, :]
    where = base + rows.to(tl.int64)[:, None] * stride + depth[None, :]
    tl.store(where, values.to(base.dtype.element_ty), mask=mask)


@kernel
def times(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    """Matrix product in float32; float32 input is not rounded to tf32."""
    return tl.dot(a, b, input_precision="ieee")


@kernel
def allowed_pairs(
    looks: tl.tensor,
    seen: tl.tensor,
    q_rows: tl.tensor,
    k_rows: tl.tensor,
    q_present: tl.tensor,
    k_present: tl.tensor,
) -> tl.tensor:
    """(queries, keys): both present, and allowed by the table or the same token."""
    by_table = ((looks[:, None] >> seen[None, :]) & 1) == 1
    return q_present[:, None] & k_present[None, :] & (by_table | (q_rows[:, None] == k_rows[None, :]))


@dataclass(frozen=True)
class Launch:
    """Sizes of a launch, chosen so that nothing of note spills from registers (see ``ahead``)."""

    tile: int
    float32: bool
    capability: int = 9
    """Major compute capability: 8 for sm_80, 9 for sm_90."""

    @property
    def warps(self) -> int:
        """Warps of a program that holds a tile."""
        return 8 if self.tile > 64 else 4

    @property
    def forward_keys(self) -> int:
        """Keys of one step of the forward kernel; a whole window where it is one tile."""
        return min(self.tile, 32) if self.float32 else self.tile

    @property
    def backward_keys(self) -> int:
        """Keys or queries of one step of the two backward kernels of a long window."""
        return min(self.tile, 32 if self.float32 or self.capability < 9 else 64)

    @property
    def whole_windows(self) -> bool:
        """Whether one backward program can hold a window that is one tile."""
        return self.tile <= 32 or (self.capability >= 9 and not self.float32)


def launch_for(tile: int, packed: Tensor) -> Launch:
    """Sizes for a tensor's type and the device that it is on."""
    major = torch.cuda.get_device_capability(packed.device)[0] if packed.device.type == "cuda" else 9
    return Launch(tile, packed.dtype == torch.float32, major)


def padded(count: int, least: int = 16) -> int:
    """Next power of two, at least what a tensor core multiplies."""
    return max(least, 1 << (count - 1).bit_length()) if count > 0 else 0
