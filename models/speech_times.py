"""From tokens and where the decoder looked while it wrote them to words and their times."""

import numpy as np
import numpy.typing as npt

from models.speech_context import TOKEN_S


def join_parts(texts: list[str], groups: list[list[int]]) -> tuple[list[str], list[list[int]]]:
    """Attach punctuation and word parts to the word before them, and strip blanks."""
    joined_texts: list[str] = []
    joined_groups: list[list[int]] = []
    for text, group in zip(texts, groups, strict=True):
        bare = text.strip()
        if not bare and not joined_texts:
            continue
        continues = joined_texts and (not text.startswith(" ") or not any(c.isalnum() for c in bare))
        if continues:
            joined_texts[-1] += bare
            joined_groups[-1] = [*joined_groups[-1], *group]
        else:
            joined_texts.append(bare)
            joined_groups.append(list(group))
    return joined_texts, joined_groups


def jump_times(alignments: list[tuple[int, int]], tokens: int, duration_s: float) -> npt.NDArray[np.float64]:
    """Start time of each token and the end of the last, shape (tokens + 1,), never falling, within the piece."""
    times = np.full(tokens + 1, np.nan)
    for token, step in alignments:
        if token <= tokens and np.isnan(times[token]):
            times[token] = step * TOKEN_S
    if np.isnan(times[-1]):
        times[-1] = duration_s
    known = ~np.isnan(times)
    if not known.all():
        times = np.interp(np.arange(tokens + 1), np.flatnonzero(known), times[known])
    return np.minimum(np.maximum.accumulate(times), duration_s)
