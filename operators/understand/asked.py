"""Open questions who does something, which a bare *I'll do it* answers before any task spoken of earlier."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from operators.language.words import words_in
from operators.understand.state import Draft

_WHO: Final = re.compile(
    r"(?:and |so |then |okay |but |right )*who(?:['’]s| is| are| will| can| could| would)? (?!knows\b|cares\b)(?P<what>.+)"
)
_OF_BEFORE: Final = words_in("it that this them those him her one")
"""*Who can do that?* asks for what was said before."""
_NOTHING_OWN: Final = words_in(
    "doing do does has wants takes taking have up free volunteers volunteer next is"
)


def asked_since(draft: Draft, drafts: Iterable[Draft]) -> bool:
    """Whether it was asked who does something else since a task was last spoken of."""
    return any(d.first_index > draft.last_index and _asks_who(d) for d in drafts)


def _asks_who(draft: Draft) -> bool:
    if draft.family != "question" or draft.solved:
        return False
    found = _WHO.match(draft.text.lower().rstrip("?. "))
    words = set() if found is None else set(found["what"].split())
    return bool(words - _NOTHING_OWN) and words.isdisjoint(_OF_BEFORE)
