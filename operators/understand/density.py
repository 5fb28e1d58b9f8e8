"""How much of a meeting is business: what is plainly agreed in much talk, and in little, is not the same."""

from typing import Final

from operators.understand.state import State

SPARSE: Final = 0.5
"""How sparse talk is from which a meeting has the thresholds of such talk."""
_FEW: Final = 0.02
_MANY: Final = 0.06
_AT_FIRST: Final = (6, 60)
_DENSE: Final = 0.3
"""How sparse talk may be that counts as dense all the same: several everyday meetings one after the other are."""
PLAINLY: Final = 0.6
"""Support from which rules take an item for one that was plainly said."""


def sparse(state: State) -> float:
    """How much a meeting is talk with few items in it, in tenths: 0 where one in sixteen utterances plainly is one, to 1.

    What rules find plain is counted on top of six items in sixty utterances that nobody said: a meeting begins as
    dense and becomes sparse little by little, where little is agreed in much talk.
    """
    plain = sum(
        not d.by_model and not d.withdrawn and d.family != "question" and d.support >= PLAINLY
        for d in state.drafts
    )
    rate = (_AT_FIRST[0] + plain) / (_AT_FIRST[1] + state.count)
    return round(min(1.0, max(0.0, (_MANY - rate) / (_MANY - _FEW))), 1)


def of_sparse_talk(thin: float) -> float:
    """How much of what holds in sparse talk holds where talk is so sparse: nothing in dense talk, all where it is 1."""
    return max(0.0, (thin - _DENSE) / (1.0 - _DENSE))
