"""Where a sentence ends in what was heard, so that what stands before can be settled while speech goes on.

Small weights put a full stop at the end of whatever sound they are given. So the words before it must be sure, and
they must be words with which a sentence can end.
"""

from collections.abc import Collection, Sequence
from typing import Final

from models.speech_hotwords import Word
from models.speech_text import normalised

LEAST_PROBABILITY: Final = 0.5
"""Mean probability of the last two words: less sure ones may read otherwise when more sound follows."""

AFTER_S: Final = 1.0
"""So much sound after a sentence makes the end of its last word sure."""

_GOES_ON: Final = """
    a an the and or but so because as if when while than who which of to from with into about for at by
    my your our their its we they i i'm we're you're they're he's she's very just like um uh er hm
    should would could must might shall may let's i'd we'd i'll we'll i've we've
    mr mrs ms dr prof vs
"""
"""Words after which a sentence mostly goes on, or that carry a full stop of their own."""

_OPEN: Final = frozenset(_GOES_ON.split())


def ends_sentence(words: Sequence[Word]) -> bool:
    """Whether a sentence ends with the last of these words, and surely so."""
    if not words:
        return False
    text = words[-1].text.rstrip("\"')”’")
    if not text.endswith((".", "?", "!")) or text.endswith(".."):
        return False
    bare = normalised(text)
    if not bare or (bare[-1] in _OPEN and not text.endswith("?")):
        return False
    last = words[-2:]
    return sum(word.probability for word in last) / len(last) >= LEAST_PROBABILITY


def settled_words(words: Sequence[Word], duration_s: float) -> int:
    """How many words, from the first on, stand whatever follows: up to the last sentence that ended a while ago.

    Args:
        words: with times from the first sample of the sound.
        duration_s: length of the sound; speech goes on at its end.

    The words that are settled, given alone, are all settled again.
    """
    for count in range(len(words), 0, -1):
        if words[count - 1].end_s <= duration_s - AFTER_S and ends_sentence(words[:count]):
            return count
    return 0


def ended_words(words: Sequence[Word]) -> int:
    """How many words, from the first on, seem to be whole sentences; what follows has to confirm it."""
    return next((count for count in range(len(words), 0, -1) if ends_sentence(words[:count])), 0)


def standing(sentences: Collection[str], words: Sequence[Word]) -> list[int]:
    """After how many of the words, not all of them, a sentence ends, as it was heard to end before.

    Small weights end a sentence wherever the sound was cut; so the whole of it has to say so too.

    Args:
        sentences: as `spoken_words` writes them.
        words: what was heard in the end.
    """
    return [
        count
        for count in range(1, len(words))
        if ends_sentence(words[:count]) and spoken_words(words[:count]) in sentences
    ]


def spoken_words(words: Sequence[Word]) -> str:
    """Words without capitals and punctuation, to compare what two passes heard."""
    return " ".join(normalised(" ".join(word.text for word in words)))
