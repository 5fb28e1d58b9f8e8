"""Word lists in a form that people can read and a formatter leaves alone."""

from __future__ import annotations


def in_order(text: str) -> tuple[str, ...]:
    """Words of a text in their order."""
    return tuple(text.split())


def words_in(text: str) -> frozenset[str]:
    """Words of a text as a set."""
    return frozenset(text.split())
