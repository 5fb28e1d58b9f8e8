"""The plan of a batch: which tokens form which window of which meeting, made once on the host.

Nothing that is decided here ever needs a look at the device: lengths that shapes and launches depend on are
plain integers beside the tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import torch
from torch import Tensor

MAX_MODALITIES: Final = 31
"""An allow table is one 32-bit mask for each modality, and the sign bit stays clear."""

MAX_TILE: Final = 128
"""Longest window that a GPU program holds as one tile; a longer one is cut into tiles of half of it."""

_MIN_TILE: Final = 16  # the smallest matrix product of a tensor core


@dataclass(frozen=True)
class Plan:
    """What the attention operator must know of a batch. All tensors are int32 and on one device.

    With W windows, M meetings, C content tokens, A modalities and N tiles:

    * ``window_starts`` (W + 1): first content token of each window, then C.
    * ``window_meeting`` (W): meeting of each window.
    * ``meeting_windows`` (M + 1): first window of each meeting, then W.
    * ``global_starts`` (M + 1): first global token of each meeting (from C on), then the number of all tokens.
    * ``modality`` (C): modality of each content token.
    * ``allow`` (A): bit k of entry q says that a token of modality q may attend to tokens of modality k.
    * ``tile_window``, ``tile_start`` (N): window and first token of each tile of at most ``tile`` tokens.
    * ``meeting_tiles`` (M + 1): first tile of each meeting, then N.
    """

    window_starts: Tensor
    window_meeting: Tensor
    meeting_windows: Tensor
    global_starts: Tensor
    modality: Tensor
    allow: Tensor
    tile_window: Tensor
    tile_start: Tensor
    meeting_tiles: Tensor
    tokens: int
    max_window: int
    max_globals: int
    tile: int

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors in the order in which the operator takes them."""
        return (
            self.window_starts,
            self.window_meeting,
            self.meeting_windows,
            self.global_starts,
            self.modality,
            self.allow,
            self.tile_window,
            self.tile_start,
            self.meeting_tiles,
        )

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Plan":
        """The same plan with its tensors on ``device``."""
        moved: dict[str, Any] = {
            field.name: value.to(device, non_blocking=non_blocking)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **moved)


def allow_table(modalities: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Masks for :func:`plan` from pairs (modality that looks, modality that is seen)."""
    masks = [0] * modalities
    for looks, seen in pairs:
        if not (0 <= looks < modalities and 0 <= seen < modalities):
            raise ValueError(f"allow pair ({looks}, {seen}) names a modality outside 0..{modalities - 1}")
        masks[looks] |= 1 << seen
    return masks


def plan(
    windows: Sequence[int],
    meetings: Sequence[int],
    globals_per_meeting: Sequence[int],
    modality: Sequence[int] | Tensor,
    allow: Sequence[int],
) -> Plan:
    """Plan of a batch, on the host.

    Args:
        windows: tokens of each window, at least one each.
        meetings: meeting of each window; the windows of a meeting stand together, in ascending order.
        globals_per_meeting: global tokens of each meeting, 0 where it has none; its length is the number of
            meetings, those without windows included.
        modality: modality of each content token, in packed order.
        allow: a mask for each modality, as :func:`allow_table` makes them.

    Raises:
        ValueError: lengths that do not belong together, an empty window, a meeting, modality or mask outside
            its range, windows of one meeting apart from each other.
    """
    lengths = _whole(windows, "windows")
    owners = _whole(meetings, "meetings")
    globals_ = _whole(globals_per_meeting, "globals_per_meeting")
    kinds = _whole(modality, "modality")
    masks = _whole(allow, "allow")
    _check(lengths, owners, globals_, kinds, masks)
    content = int(lengths.sum())
    counts = torch.bincount(owners, minlength=len(globals_))
    max_window = int(lengths.max()) if len(lengths) else 0
    tile = _tile(max_window)
    tiles = torch.div(lengths + (tile - 1), tile, rounding_mode="floor")
    tile_window = torch.repeat_interleave(torch.arange(len(lengths)), tiles)
    starts = _offsets(lengths)
    within = torch.arange(len(tile_window)) - _offsets(tiles)[tile_window]
    meeting_windows = _offsets(counts)
    return Plan(
        window_starts=starts.int(),
        window_meeting=owners.int(),
        meeting_windows=meeting_windows.int(),
        global_starts=(_offsets(globals_) + content).int(),
        modality=kinds.int(),
        allow=masks.int(),
        tile_window=tile_window.int(),
        tile_start=(starts[tile_window] + within * tile).int(),
        meeting_tiles=_offsets(tiles)[meeting_windows].int(),
        tokens=content + int(globals_.sum()),
        max_window=max_window,
        max_globals=int(globals_.max()) if len(globals_) else 0,
        tile=tile,
    )


def _tile(max_window: int) -> int:
    """Rows of a tile: the next power of two where windows fit, else half the largest."""
    if max_window > MAX_TILE:
        return MAX_TILE // 2
    return max(_MIN_TILE, 1 << (max_window - 1).bit_length() if max_window else 0)


def _whole(values: Sequence[int] | Tensor, name: str) -> Tensor:
    found = torch.as_tensor(values)
    if found.numel() == 0:
        return torch.zeros(0, dtype=torch.int64)
    if found.dim() != 1 or found.is_floating_point() or found.dtype == torch.bool:
        raise ValueError(f"{name} must be a flat sequence of whole numbers")
    return found.detach().to(device="cpu", dtype=torch.int64)


def _offsets(lengths: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])


def _check(lengths: Tensor, owners: Tensor, globals_: Tensor, kinds: Tensor, masks: Tensor) -> None:
    if len(lengths) != len(owners):
        raise ValueError(f"{len(lengths)} windows, but the meetings of {len(owners)}")
    if len(lengths) and int(lengths.min()) < 1:
        raise ValueError("a window must hold at least one token")
    if len(owners) and not (int(owners.min()) >= 0 and int(owners.max()) < len(globals_)):
        raise ValueError(f"a window's meeting is outside 0..{len(globals_) - 1}")
    if len(owners) > 1 and bool((owners[1:] < owners[:-1]).any()):
        raise ValueError("windows must stand in ascending order of their meetings")
    if len(globals_) and int(globals_.min()) < 0:
        raise ValueError("a meeting cannot have fewer than 0 global tokens")
    if len(kinds) != int(lengths.sum()):
        raise ValueError(f"{int(lengths.sum())} content tokens, but the modality of {len(kinds)}")
    if len(masks) > MAX_MODALITIES:
        raise ValueError(f"{len(masks)} modalities, at most {MAX_MODALITIES} fit")
    if len(kinds) and not (int(kinds.min()) >= 0 and int(kinds.max()) < len(masks)):
        raise ValueError(f"a token's modality is outside 0..{len(masks) - 1}")
    if len(masks) and not (int(masks.min()) >= 0 and int(masks.max()) < 1 << len(masks)):
        raise ValueError("an allow mask names a modality that the table does not have")
    if int(lengths.sum()) + int(globals_.sum()) >= 1 << 31:
        raise ValueError("a batch must have fewer than 2**31 tokens")


def dense_rows(packed: Tensor) -> Tensor:
    """The tensor itself where heads' numbers lie together, else a copy: attention reads past them where they do not."""
    return packed if packed.stride(-1) == 1 else packed.contiguous()
