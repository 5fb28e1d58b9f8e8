"""Figures of an item in the making, from the rules' support and the model's scores together."""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Final

from operators.compose import says_little
from operators.language.text import clauses_of
from operators.understand.birth import MOCKS
from operators.understand.density import of_sparse_talk
from operators.understand.state import Draft, Judged, State

_CLAIMS: Final = ("self", "you", "named", "group", "none")

_PLAIN: Final = (
    "by_rules", "by_model", "support", "support_high", "likely", "likely_main", "likely_second", "likely_sum",
    "other", "answer", "withdrawn", "undone", "summary", "joins", "judged_many", "mass",
    *(f"claim_{kind}" for kind in _CLAIMS), "claim_outside", "owner_agrees", "owner_nobody", "due", "due_date",
    "accepted", "agreed", "offer", "request", "propose", "waits", "said_again", "leads", "asked", "evidence",
    "stems", "words", "vague", "question_mark", "guarded",
)  # fmt: skip
FIGURES: Final = (*_PLAIN, "sparse", "place", "near_end", *(f"sparse_{name}" for name in _PLAIN))
"""Names of the figures, in order. What a figure weighs in talk with few items is another thing than in a short meeting."""


def figures_of(
    draft: Draft, state: State, thin: float, known: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Figures of one draft as the meeting stands; those of its place mean something once it is over.

    ``thin``: how sparse the talk is (`operators/understand/density.py`), worked out once for all drafts; ``known``: what
    `own_figures` gave for this draft.
    """
    plain = known if known is not None else own_figures(draft)
    thin = of_sparse_talk(thin)
    place = draft.first_index / max(1, state.count) if state.finished else 0.5
    near_end = float(state.finished and place >= 0.85)
    return (
        *plain,
        thin,
        thin * place,
        thin * near_end,
        *(thin * value for value in plain),
    )


def _logit(p: float) -> float:
    p = min(0.999, max(0.001, p))
    return log(p / (1 - p)) / 4


def own_figures(draft: Draft) -> tuple[float, ...]:
    """Those figures of a draft that depend on nothing else."""
    told = dict(draft.judged)
    main = _main(draft, told)
    mine = sorted((j.of(draft.family) for j in told.values()), reverse=True)
    best = mine[0] if mine else 0.0
    other = max((max(_others(j, draft)) for j in told.values()), default=0.0)
    support = 0.0 if draft.by_model else min(1.5, max(-0.5, draft.support))
    owner = dict(main.owner) if main is not None else {}
    likeliest = max(owner, key=lambda who: owner[who], default=None)
    claimed = draft.claim.people[0] if len(draft.claim.people) == 1 else None
    words = draft.text.split()
    reasons = set(draft.reasons)
    return tuple(
        float(value)
        for value in (
            not draft.by_model,
            draft.by_model,
            support,
            max(0.0, support - 0.6),
            _logit(best),
            _logit(main.of(draft.family)) if main is not None else _logit(best),
            _logit(mine[1]) if len(mine) > 1 else _logit(0.0),
            min(3.0, sum(mine)),
            _logit(other),
            _logit(max((j.answer for j in told.values()), default=0.0)),
            _logit(main.withdrawn) if main is not None else _logit(0.0),
            draft.undone,
            _logit(max((j.summary for j in told.values()), default=0.0)),
            main.joins if main is not None else 0.0,
            min(6, len(mine)) / 6,
            min(2.0, sum(a.likely for a in draft.around)),
            *(draft.claim.kind == kind for kind in _CLAIMS),
            draft.claim.outside,
            claimed is not None and claimed == likeliest,
            owner.get("", 0.0),
            draft.due is not None,
            draft.due is not None and draft.due.phrase.kind not in ("vague", "clock"),
            draft.accepted,
            min(2, len(draft.agreed)) / 2,
            draft.mode == "offer",
            draft.mode == "request",
            draft.mode == "propose",
            draft.mode == "asked",
            "said again" in reasons or "named again" in reasons,
            "said by who leads" in reasons,
            "asked directly" in reasons,
            min(6, len(draft.evidence)) / 6,
            min(8, len(draft.stems)) / 8,
            min(30, len(words)) / 30,
            _vague(draft.text),
            draft.text.endswith("?"),
            bool(reasons & _GUARDED),
        )
    )


_GUARDED: Final = frozenset(("not accepted", "refused", "rhetorical", MOCKS))


def _main(draft: Draft, told: dict[int, Judged]) -> Judged | None:
    """What the model says of the utterance that the item is made of."""
    for piece in sorted(draft.evidence, key=lambda p: (-p.weight, p.index)):
        if piece.index in told:
            return told[piece.index]
    return None


def _others(judged: Judged, draft: Draft) -> tuple[float, ...]:
    families = ("action", "decision", "question")
    return tuple(getattr(judged, name) for name in families if name != draft.family)


@lru_cache(maxsize=4096)
def _vague(text: str) -> bool:
    return says_little([t for clause in clauses_of(text) for t in clause.tokens])
