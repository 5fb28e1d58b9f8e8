"""Text as rules compare it: names letter by letter, phrases word by word, whatever their form.

Two foldings. ``folded`` is for names: case, width and spacing do not count, hidden characters are taken
out, but letters of another alphabet stay other letters, so that a look-alike is somebody else. ``phrase``
is for words in a text: there accents, inflection and look-alikes do not count either, so that a word
cannot hide from a rule behind a letter that only looks the same. All of it takes time in proportion to
the text; users give no patterns.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeVar

_Read = TypeVar("_Read")
_WORD: Final = re.compile(r"[^\W_]+(?:['.,:](?=[^\W_])[^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"[.?!:;…]\s*$|[\"“”(]\s*$")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Unicode categories of characters that show nothing or change how others are shown."""
_SHORT_CHARS: Final = 2_000
_REMEMBERED_CHARS: Final = 200_000
"""Few of the longer texts are remembered, and none beyond this length: they take memory."""


def _pairs(latin: str, *others: str) -> dict[int, str]:
    return {ord(letter): to for other in others for letter, to in zip(other, latin, strict=True)}


_LOOK_ALIKES: Final = {
    **_pairs("abehikmnopctyxzv", "ΑΒΕΗΙΚΜΝΟΡϹΤΥΧΖѴ"),
    **_pairs("abehikmopctyxsjdqw", "АВЕНІКМОРСТУХЅЈԀԚԜ", "аьеһікморстухѕјԁԛԝ"),
    **_pairs("aoviptkuex", "αονιρτκυεχ"),
    **_pairs("ouhng", "օսհոց"),
    **_pairs("iilhb", "ıɩӏнв"),
}
"""Letters of other alphabets by the Latin letter they look like (Unicode TR 39), both cases."""

_UNLIKE_PLURALS: Final = {
    "people": "person", "men": "man", "women": "woman", "children": "child", "feet": "foot",
    "was": "is", "were": "is", "are": "is", "has": "have", "had": "have", "did": "do", "does": "do",
    "done": "do", "went": "go", "gone": "go", "sent": "send", "bought": "buy", "chosen": "choose",
    "chose": "choose", "paid": "pay", "made": "make", "said": "say", "told": "tell", "gave": "give",
    "given": "give", "took": "take", "taken": "take", "wrote": "write", "written": "write",
}  # fmt: skip
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be by for from has have in is it its of on or that the their to was were will with
        i me my we us our you your he him his she her they them this these those there here do does did done
        not no yes so then than but if because just also very too up out off can could would should shall may
        might must am been being had get got go let about into any some all one what which who when where why
        how""",
    )
)
"""Words that say nothing about what a text is about."""
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAY_WORDS: Final = frozenset({*DAYS, *MONTHS, "today", "tomorrow", "tonight", "yesterday"})


def _remembering(read: Callable[[str], _Read]) -> Callable[[str], _Read]:
    """``read`` with a memory for many texts of ordinary length and a few long ones."""
    known = lru_cache(maxsize=4_096)(read)
    long = lru_cache(maxsize=8)(read)

    def look(text: str) -> _Read:
        if len(text) <= _SHORT_CHARS:
            return known(text)
        return long(text) if len(text) <= _REMEMBERED_CHARS else read(text)

    return look


def is_plain(text: str) -> bool:
    """Whether a text is free of control, direction and zero-width characters; spaces are no matter."""
    if text.isascii() and text.isprintable():
        return True
    return not any(unicodedata.category(ch) in _HIDDEN and not ch.isspace() for ch in text)


def _shown(text: str) -> str:
    """Compatibility form (NFKC) without what cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize(
        "NFKC", "".join(ch for ch in text if ch.isspace() or unicodedata.category(ch) not in _HIDDEN)
    )


@_remembering
def folded(text: str) -> str:
    """A name for comparison: NFKC, case and spacing folded, hidden characters out, alphabets kept apart."""
    shown = " ".join(_shown(text).casefold().split())
    return shown if shown.isascii() else unicodedata.normalize("NFKC", shown)


@_remembering
def skeleton(text: str) -> str:
    """What a text looks like: as ``folded``, and look-alikes and accents count as the Latin letter."""
    if text.isascii():
        return folded(text)
    apart = unicodedata.normalize("NFKD", _shown(text).translate(_LOOK_ALIKES))
    bare = "".join(ch for ch in apart if unicodedata.category(ch) != "Mn").translate(_LOOK_ALIKES)
    low = unicodedata.normalize("NFKC", bare.casefold().translate(_LOOK_ALIKES))
    return " ".join(low.split())


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Crude stem: *letters* and *letter*, *hiring* and *hire*, *agreed* and *agrees* are one word."""
    word = _UNLIKE_PLURALS.get(word, word)
    if word[:1].isdigit():
        return word.replace(",", "")
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


@_remembering
def words(text: str) -> tuple[str, ...]:
    """Words in order, in lower case, without possessive *'s*; accents and look-alikes folded."""
    found = _WORD.findall(skeleton(text).replace("’", "'"))
    return tuple(word[:-2] if word.endswith("'s") else word for word in found)


@_remembering
def phrase(text: str) -> str:
    """Stems of all words between single spaces, with one before and after: one phrase lies in another."""
    return f" {' '.join(map(stem, words(text)))} "


@_remembering
def content(text: str) -> frozenset[str]:
    """Stems of the words that say what a text is about."""
    return frozenset(stem(word) for word in words(text) if len(word) > 1 and word not in _STOP)


def contains(text: str, wanted: str) -> bool:
    """Whether the words of ``wanted`` stand in ``text`` side by side, in any inflection.

    Where ``wanted`` holds no word (*?*, *€*) its characters are looked for as they are.
    """
    sought = phrase(wanted)
    if sought != "  ":
        return sought in phrase(text)
    return folded(wanted) in folded(text)


def mentions(texts: Iterable[str], wanted: str) -> bool:
    """Whether at least half of the content words of ``wanted`` stand somewhere in ``texts``."""
    sought = content(wanted)
    if not sought:
        return True
    found: set[str] = set()
    for text in texts:
        found |= sought & content(text)
        if 2 * len(found) >= len(sought):
            return True
    return False


@_remembering
def names(text: str) -> tuple[str, ...]:
    """Words with a capital inside a sentence that are no everyday word and no day or month."""
    shown = _shown(text).replace("’", "'")
    found: list[str] = []
    previous_end = 0
    for match in _WORD.finditer(shown):
        word = match.group()
        gap = shown[max(previous_end, match.start() - 20) : match.start()]
        opens = previous_end == 0 or bool(_SENTENCE_END.search(gap))
        previous_end = match.end()
        bare = word[:-2] if word.endswith("'s") else word
        low = bare.casefold()
        everyday = low.split("'")[0] in _STOP or low in _DAY_WORDS
        if not opens and bare[0].isupper() and not everyday:
            found.append(bare)
    return tuple(dict.fromkeys(found))


@_remembering
def day_names(text: str) -> tuple[str, ...]:
    """Days and months that a text names, in lower case and singular; *may* and *march* with a capital."""
    shown = _shown(text).replace("’", "'")
    found: list[str] = []
    first = True
    for match in _WORD.finditer(shown):
        word = match.group()
        low = word.casefold().removesuffix("'s")
        low = low[:-1] if low[:-1] in DAYS else low
        is_word = low in ("may", "march") and (first or not word[0].isupper())
        first = bool(_SENTENCE_END.match(shown[match.end() : match.end() + 1]))
        if low in _DAY_WORDS and not is_word:
            found.append(low)
    return tuple(dict.fromkeys(found))
