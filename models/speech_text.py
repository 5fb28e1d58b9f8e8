"""What a recogniser's text tells about itself: loops, and words that nobody said.

Whisper never says "I heard nothing" in words. On noise it repeats itself or falls back on the closing phrases of
the videos it was trained on. Both are recognised here, from the text together with how sure the model was; a phrase
alone is never reason enough, people do say "thank you".
"""

import re
import zlib
from dataclasses import dataclass
from itertools import pairwise

PHANTOM_PHRASES = frozenset(
    {
        "thank you",
        "thank you so much",
        "thank you very much",
        "thank you for watching",
        "thanks for watching",
        "thank you for listening",
        "please subscribe",
        "subscribe to my channel",
        "see you next time",
        "see you in the next video",
        "you",
        "bye",
        "bye bye",
        "the end",
        "oh",
        "so",
        "um",
        "hmm",
        "i'm sorry",
        "im sorry",
        "music",
        "applause",
        "silence",
    }
)
"""Texts that the weights produce on sound without speech, normalised."""


@dataclass(frozen=True)
class Degenerate:
    """Limits beyond which a text is taken for a loop. `said_again`: so many words in a row, verbatim, twice in a piece."""

    compression_ratio: float = 2.4
    words_per_s: float = 6.5
    repeats: int = 4
    said_again: int = 8


@dataclass(frozen=True)
class Evidence:
    """How well a text is supported by its sound. Probabilities 0..1, log probability per token.

    `word_probability` is the mean over the words, `least_probability` that of the least sure one, `voice` the mean
    speech probability of the voiced frames.
    """

    duration_s: float
    level_dbfs: float
    no_speech_probability: float
    average_log_probability: float
    word_probability: float
    compression_ratio: float
    least_probability: float = 1.0
    voice: float = 0.0


LIMITS = Degenerate()

FEW_WORDS = 3
"""So many words are no sentence that would bear itself out."""

CLEAR_VOICE = 0.7
"""Mean speech probability of real words and murmurs; coughs, laughs and noises that pass for speech stay below."""


def normalised(text: str) -> list[str]:
    """Lower-case words without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))


def compression_ratio(text: str) -> float:
    """Length of the text over its length when compressed; above about 2.4 it repeats itself."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw)) if raw else 0.0


def degenerate(text: str, duration_s: float) -> bool:
    """Whether a search ran into a loop."""
    words = normalised(text)
    if len(words) < LIMITS.repeats:
        return False
    if compression_ratio(text) > LIMITS.compression_ratio:
        return True
    if len(words) > 3 + LIMITS.words_per_s * duration_s:
        return True
    return _longest_run(words) >= LIMITS.repeats or _said_again(words, LIMITS.said_again)


def _said_again(words: list[str], size: int) -> bool:
    """Whether a stretch of words stands in a text twice. People start over, but hardly verbatim for so long."""
    seen: dict[tuple[str, ...], int] = {}
    for start in range(len(words) - size + 1):
        before = seen.setdefault(tuple(words[start : start + size]), start)
        if start - before >= size and len(set(words[start : start + size])) > size // 2:
            return True
    return False


def _longest_run(words: list[str]) -> int:
    """How often a group of one to twelve words follows itself without a break, weighted by its length."""
    longest = 1
    for size in range(1, 13):
        run = 1
        groups = [words[start : start + size] for start in range(len(words) - size + 1)]
        for start in range(size):
            run = 1
            for before, after in pairwise(groups[start::size]):
                run = run + 1 if before == after else 1
                # Single words are honestly repeated ("no, no, no, no"), whole phrases hardly ever, sentences never.
                weight = -1 if size == 1 else 0 if size == 2 else 1 if size < 6 or run == 1 else 2
                longest = max(longest, run + weight)
    return longest


def collapse_loop(words: list[str]) -> list[int]:
    """Indices of the words to keep when a word stands five times in a row, a phrase four or three times.

    A sentence of six words or more is enough twice, and what begins it once more at the end goes with it.
    """
    bare = ["".join(normalised(word)) for word in words]
    kept = list(range(len(words)))
    for size in range(1, 13):
        position = 0
        result: list[int] = []
        while position < len(kept):
            group = [bare[i] for i in kept[position : position + size]]
            repeats = 1
            while group == [
                bare[i] for i in kept[position + repeats * size : position + (repeats + 1) * size]
            ]:
                repeats += 1
            enough = max(3, 6 - size) if size < 6 or len(set(group)) <= size // 2 else 2
            if len(group) == size and repeats >= enough:
                result.extend(kept[position : position + size])
                position += repeats * size
                rest = [bare[i] for i in kept[position:]]
                if size >= 6 and len(rest) < size and rest == group[: len(rest)]:
                    position = len(kept)
            else:
                result.append(kept[position])
                position += 1
        kept = result
    return kept


def murmured(text: str) -> bool:
    """Whether a text is nothing but "mm-hm", "hm" and the like."""
    words = normalised(text)
    return bool(words) and all(re.fullmatch(r"(m+|h+m+|m+h+m*)", word) for word in words)


def wordless(text: str) -> bool:
    """Whether a text is written without words: one letter over and over ("PPPPPP"), or laughter ("Hahaha.")."""
    words = normalised(text)
    if murmured(text):
        return False
    letters = "".join(words)
    if re.fullmatch(r"([a-z])\1{4,}", letters) or re.fullmatch(r"[abmw]*(h[ao]){2,}h?", letters):
        return True
    return bool(words) and all(re.fullmatch(r"(he){2,}h?", word) for word in words)


def shorten_drawl(word: str) -> str:
    """A letter said on and on ("Mmmmmmmm") is written twice, and a murmur ("Mm-h-h-h") always alike."""
    word = re.sub(r"([A-Za-z])\1{3,}", r"\1\1", word)
    return re.sub(r"^(M|m)m*(?:-?h+m*)+(?![A-Za-z])", r"\1m-hm", word)


def phantom(text: str, evidence: Evidence) -> str:
    """Why this text is held to be invented, or an empty string."""
    words = normalised(text)
    if not words:
        return "no words" if text else ""
    if evidence.level_dbfs < -75.0:
        return "digital silence"
    silence, unsure = evidence.no_speech_probability, evidence.word_probability
    # Limits measured: noise, hum, clicks and tones stay within them, the faintest real speech outside.
    if silence > 0.8 and (unsure < 0.55 or evidence.average_log_probability < -0.8):
        return "no speech"
    if silence > 0.55 and unsure < 0.34:
        return "no speech"
    if unsure < 0.15 or evidence.average_log_probability < -2.2:
        return "too unsure"
    if evidence.voice < CLEAR_VOICE and hardly_heard(
        text, silence, evidence.average_log_probability, evidence.least_probability
    ):
        return "no speech"
    if (
        0.0 < evidence.voice < CLEAR_VOICE
        and FEW_WORDS < len(words) <= 2 * FEW_WORDS
        and unsure < 0.4
        and evidence.average_log_probability < -1.2
    ):
        # What longer laughter is made into.
        return "no speech"
    weak = silence > 0.35 or unsure < 0.35 or evidence.average_log_probability < -1.1
    if weak and " ".join(words) in PHANTOM_PHRASES:
        return "phantom phrase"
    if weak and evidence.compression_ratio > LIMITS.compression_ratio:
        return "loop"
    return ""


def hardly_heard(text: str, silence: float, average_log_probability: float, least_probability: float) -> bool:
    """Whether a word or two are what a cough, a laugh or a murmur is made into.

    Such a text is unlikely as a whole, and either the sound does not pass for speech or one of the words does not
    fit it.
    """
    if len(normalised(text)) > FEW_WORDS:
        return False
    silent = silence > 0.55 and average_log_probability < -1.3
    return silent or (least_probability < 0.3 and average_log_probability < -1.5)
