"""Whether talk is of a task, or of something else (*Is there any tea?*)."""

from __future__ import annotations

import re
from typing import Final

from operators.language.days import named_days
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, TIME_STEMS
from operators.understand.state import Draft

ANY_TASK: Final = stems(
    "do does done doing finish finished ready start manage suit suits best early earliest late latest okay fine "
    "realistic possible deadline need needed want wanted expect expected volunteer volunteers time free until till "
    "next"
)
"""Words of questions that may be asked about any task."""
_JUST_WHEN: Final = re.compile(r"\b(?:when|(?:which|what) (?:day|date))(?: (?:again|then|exactly))?$")
"""How a question ends that asks when what was just promised comes (*And I'd need the write-up when?*)."""
THINGS: Final = words_in("it that them this those these")


def asks_else(before: Heard, draft: Draft) -> bool:
    """Whether an utterance ends with a question about something else than a task.

    What answers it (*Monday*, *I can*, *No*) then says nothing about the task.
    """
    last = before.clauses[-1] if before.clauses else None
    if last is None or not last.clause.question_mark:
        return False
    norm = last.clause.norm
    return speaks_of_else(last, draft) and not named_days(norm, False) and not _JUST_WHEN.search(norm)


def speaks_of_else(clause: HeardClause, draft: Draft) -> bool:
    """Whether a clause has words of its own, none of a task and nothing that may stand for it (*it*, *that*)."""
    if {w for t in clause.clause.tokens for w in t.low.split()} & THINGS:
        return False
    known = clause.clause.stems - TIME_STEMS
    return bool(known - LIGHT - ANY_TASK) and not known & draft.stems
