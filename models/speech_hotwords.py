"""Keeps hotwords honest.

A prompt with names makes a small recogniser hear them where they were said, and also where they were not ("then" at
the end of a sentence becomes "Ben"). Both readings are therefore scored against the sound without the prompt, and a
hotword stands only where the sound supports it about as well as what would be heard otherwise, or where the two differ
in spelling alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rapidfuzz import fuzz

from models.speech_text import normalised

SUPPORT = 0.6
"""A hotword stands when its probability is at least this share of what it replaces."""

SURE = SUPPORT
"""A hotword at least this probable without the prompt stands whatever else is heard, so there is no second look."""

SAME_LETTERS = 85.0


@dataclass(frozen=True)
class Word:
    """One word as it was heard. Times count from the first sample of the piece."""

    start_s: float
    end_s: float
    text: str
    probability: float


def first_doubt(words: Sequence[Word], hotwords: tuple[str, ...]) -> int | None:
    """Place of the first hotword that the sound alone does not make sure; None where all are sure."""
    terms = _terms(hotwords)
    unsure = (
        place
        for place, word in enumerate(words)
        if word.probability < SURE and terms.intersection(normalised(word.text))
    )
    return next(unsure, None)


def reconcile(prompted: Sequence[Word], plain: Sequence[Word], hotwords: tuple[str, ...]) -> tuple[Word, ...]:
    """The prompted words, with unsupported hotwords replaced by what is heard without the prompt."""
    terms = _terms(hotwords)
    before = [" ".join(normalised(word.text)) for word in plain]
    after = [" ".join(normalised(word.text)) for word in prompted]
    kept: list[Word] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        there, here = list(plain[i1:i2]), list(prompted[j1:j2])
        if tag == "equal" or not any(terms.intersection(text.split()) for text in after[j1:j2]):
            kept.extend(here)
        else:
            kept.extend(here if _supported(here, there, terms) else there)
    return tuple(kept)


def _supported(here: list[Word], there: list[Word], terms: set[str]) -> bool:
    hot = [word.probability for word in here if terms.intersection(normalised(word.text))]
    weakest = min(hot)
    if not there:
        # Nothing at all is heard in this place without the prompt.
        return weakest >= 0.5
    letters = ["".join(normalised(" ".join(word.text for word in side))) for side in (here, there)]
    if weakest >= 0.2 and fuzz.ratio(*letters) >= SAME_LETTERS:
        return True
    return weakest >= SUPPORT * sum(word.probability for word in there) / len(there)


def _terms(hotwords: tuple[str, ...]) -> set[str]:
    return {term for hotword in hotwords for term in normalised(hotword)}
