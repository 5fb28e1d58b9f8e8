"""Rule files as they come with a meeting's log: whether one can be used, and its rules compiled."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Final

from contracts.messages import RuleFile
from contracts.sal import RuleError, RuleSet, load_rules
from operators.plain_text import plain

DEFAULT_RULES: Final = Path(__file__).resolve().parents[2] / "contracts" / "rules" / "default.sal"


@lru_cache(maxsize=64)
def compiled(content: str, name: str) -> RuleSet:
    """The rules of a file's text, compiled once in a process.

    Raises:
        RuleError: the file has mistakes.
    """
    return load_rules(content, name)


def default_rules() -> RuleSet:
    """The rules of the product."""
    return compiled(DEFAULT_RULES.read_text(encoding="utf-8"), DEFAULT_RULES.stem)


def why_unusable(file: RuleFile) -> str | None:
    """Why a rule file of a control message is not used; None where it is."""
    name = plain(file.name)
    if hashlib.sha256(file.content.encode("utf-8", "surrogatepass")).hexdigest() != file.sha256:
        return f"The rule file {name} was not used: its content is not what its hash says."
    try:
        compiled(file.content, file.name)
    except RuleError as error:
        return f"The rule file was not used: {plain(error.short())[:500]}."
    return None
