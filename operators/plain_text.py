"""Foreign text made harmless: what was said or shown by others, on one line, without hidden characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links
    r"|\x1b[ -/]*[0-~]?"
)
"""Control sequences of ECMA-48, whole, so that their parameters do not stay behind as text."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories of characters that show nothing or change how others are shown."""


def plain(text: str) -> str:
    """One line without terminal sequences and without control, direction and zero-width characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (
        " " if ch.isspace() else ch
        for ch in _ESCAPES.sub("", text)
        if ch.isspace() or unicodedata.category(ch) not in _HIDDEN
    )
    return " ".join("".join(kept).split())
