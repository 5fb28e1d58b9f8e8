"""How much work a plan saves: products and bytes of fractal attention beside dense attention on the same batch."""

from dataclasses import dataclass

from .plan import Plan


@dataclass(frozen=True)
class Counts:
    """Of one forward pass. An operation is one multiplication or addition, of scores and values alone."""

    pairs: int
    """Pairs (query, key) whose score is computed: whole windows, whatever the allow table leaves of them."""
    dense_pairs: int
    """The same for dense attention: the square of all tokens."""
    operations: int
    dense_operations: int
    bytes_moved: int
    """Query, key and value read once, output and log-sum-exp written once, and the plan."""
    dense_bytes_moved: int
    """The same with one byte of mask for each pair instead of the plan."""

    @property
    def saved(self) -> float:
        """Part of dense attention's operations that is not done."""
        return 1.0 - self.operations / self.dense_operations if self.dense_operations else 0.0


def counts(plan: Plan, heads: int, depth: int, number_bytes: int) -> Counts:
    """Work of a forward pass over ``plan`` with so many heads of ``depth`` numbers of ``number_bytes`` bytes."""
    lengths = (plan.window_starts[1:] - plan.window_starts[:-1]).long()
    globals_ = (plan.global_starts[1:] - plan.global_starts[:-1]).long()
    starts = plan.window_starts.long()[plan.meeting_windows.long()]
    content = starts[1:] - starts[:-1]
    pairs = int((lengths * (lengths + globals_[plan.window_meeting.long()])).sum())
    pairs += int((globals_ * (content + globals_)).sum())
    dense_pairs = plan.tokens**2
    each = 4 * depth * heads  # a multiplication and an addition, once for scores and once for values
    tensors = plan.tokens * heads * (4 * depth * number_bytes + 4)
    return Counts(
        pairs=pairs,
        dense_pairs=dense_pairs,
        operations=pairs * each,
        dense_operations=dense_pairs * each,
        bytes_moved=tensors + sum(4 * x.numel() for x in plan.tensors()),
        dense_bytes_moved=tensors + dense_pairs,
    )
