"""Words of an utterance as numbers: the buckets that its words and pairs of neighbouring words fall into.

A bucket stands for whatever falls into it, so no list of anybody's words goes into the weights, and words that
training never met have a place as well.
"""

import re
from itertools import pairwise
from typing import Final
from zlib import crc32

BUCKETS: Final = 1 << 15
"""Numbers that a word or pair may have; 0 stands for none."""

_MAX_WORDS: Final = 200
_MAX_CHARACTERS: Final = 8_000
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*|\?")

VERSION: Final = f"words and pairs in {BUCKETS} buckets of crc32, at most {_MAX_WORDS}"
"""What weights rely on."""


def grams_of(text: str) -> tuple[int, ...]:
    """Buckets of an utterance, each once, in rising order; the first and the last words where it has very many."""
    if len(text) > _MAX_CHARACTERS:
        half = _MAX_CHARACTERS // 2
        text = f"{text[:half]} {text[-half:]}"
    words = ["0" if word.isdigit() else word for word in _WORD.findall(text.lower().replace("’", "'"))]
    if len(words) > _MAX_WORDS:
        half = _MAX_WORDS // 2
        words = [*words[:half], *words[-half:]]
    said = {*words, *(f"{one} {next_}" for one, next_ in pairwise(words))}
    return tuple(sorted({1 + crc32(one.encode()) % (BUCKETS - 1) for one in said}))
