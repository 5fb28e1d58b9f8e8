"""What a sentence claims (numbers, names, dates, who does it) and whether given quotes bear it out.

Deliberately simple and apart from the rules that write items: words are compared, not understood.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from contracts.sal.words import skeleton
from operators.language.people import Roster
from operators.language.text import STOP, expand
from operators.language.words import words_in as word_set

_WORD: Final = re.compile(r"[^\W_]+(?:['’.,](?=[^\W_])[^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"[.?!:;…]\s*$|[\"“”(]\s*$")
_DIGITS: Final = re.compile(r"^(\d[\d,]*(?:\.\d+)?)(k|m|bn|st|nd|rd|th|am|pm|s|h|g|x)?$")


def _numbered(words: str, first: int, step: int = 1) -> dict[str, int]:
    return {word: first + step * place for place, word in enumerate(words.split())}


_UNITS: Final = _numbered(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""", 0
)  # fmt: skip
_TENS: Final = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10)
_SCALES: Final = {
    "dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "grand": 1e3, "million": 1e6, "billion": 1e9,
    "k": 1e3, "m": 1e6, "bn": 1e9,
}  # fmt: skip
_WORD_SCALES: Final = frozenset({"dozen", "hundred", "thousand", "million", "billion"})
_ORDINALS: Final = {"thirtieth": 30} | _numbered(
    """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""", 1
)  # fmt: skip
_FIRST_PERSON: Final = frozenset({"i", "me", "my", "mine", "myself"})
_SECOND_PERSON: Final = frozenset({"you", "your", "yours", "yourself", "please"})
_TAKING_ON: Final = re.compile(
    r"\b(?:will do|on it|can do|happy to|no problem|consider it done|got it|"
    r"you(?:['’]ll| will| shall) (?:\w+ )?(?:have|get|hear|receive|see)|leave that with)\b"
)
"""A speaker who takes something on without saying *I*."""

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAY_WORDS: Final = frozenset({*WEEKDAYS, *MONTHS, "today", "tomorrow", "tonight"})
_SHIFTED: Final = re.compile(r"\b(?:days?|weeks?|fortnight|months?) (?:from|after|before)\b|\bday after\b")
"""*Two days after Monday*: the day in the words is not the day that is meant."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: as written, lower case without possessive, and whether a sentence begins with it."""

    text: str
    low: str
    opens: bool


@lru_cache(maxsize=8192)
def words_in(text: str) -> tuple[Word, ...]:
    """Words of a text, hyphenated ones apart."""
    found: list[Word] = []
    previous_end = 0
    for match in _WORD.finditer(text):
        low = match.group().casefold().replace("’", "'")
        low = low[:-2] if low.endswith("'s") else low
        gap = text[previous_end : match.start()]
        found.append(Word(match.group(), low, not found or bool(_SENTENCE_END.search(gap))))
        previous_end = match.end()
    return tuple(found)


@dataclass(frozen=True)
class Said:
    """The quotes of an item's evidence with who said them, in order."""

    quotes: tuple[str, ...]
    speakers: tuple[str | None, ...]

    def lows(self) -> frozenset[str]:
        """All words of the quotes, lower case, with and without contractions opened."""
        return _lows(self.quotes)


@lru_cache(maxsize=4096)
def _lows(quotes: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for quote in quotes:
        for word in words_in(quote):
            found.add(word.low)
            found.update(expand(word.text).split())
    return frozenset(found)


def _digit_value(low: str) -> float | None:
    match = _DIGITS.match(low)
    if match is None:
        return None
    value = float(match.group(1).replace(",", ""))
    return value * _SCALES.get(match.group(2) or "", 1.0)


def _word_value(low: str) -> float | None:
    for table in (_UNITS, _TENS, _ORDINALS):
        if low in table:
            return float(table[low])
    return None


def _value(low: str) -> float | None:
    value = _digit_value(low)
    return _word_value(low) if value is None else value


def _number_runs(text: str) -> list[list[str]]:
    """Words of each number: *five hundred*, *three point five*, *a dozen*."""
    runs: list[list[str]] = []
    run: list[str] = []
    for low in [*(word.low for word in words_in(text)), ""]:
        joins = bool(run) and (low in _SCALES or low in ("and", "point"))
        if _value(low) is not None or joins or low in _WORD_SCALES:
            run.append(low)
            continue
        while run and run[-1] in ("and", "point"):
            run.pop()
        if run:
            runs.append(run)
        run = []
    return runs


def _cardinal(run: Sequence[str]) -> float:
    """Value of a number read as one: scales multiply what stands before them, the rest adds up."""
    total = current = 0.0
    for place, low in enumerate(run):
        if low == "point":
            digits = "".join(
                str(int(v)) for w in run[place + 1 :] if (v := _word_value(w)) is not None and v < 10
            )
            return float(f"{int(total + current)}.{digits or 0}")
        if low in _SCALES:
            scaled = (current or 1.0) * _SCALES[low]
            total, current = (total, scaled) if _SCALES[low] <= 100 else (total + scaled, 0.0)
        else:
            current += _value(low) or 0.0
    return total + current


def _readings(run: Sequence[str]) -> frozenset[float]:
    """The number as one, and as a year or price said in two halves (*twenty twenty six*)."""
    found = {_cardinal(run)}
    for cut in range(1, len(run)):
        left, right = _cardinal(run[:cut]), _cardinal(run[cut:])
        if 10 <= left < 100 and 0 < right < 100 and not _SCALES.keys() & set(run):
            found.add(left * 100 + right)
    return frozenset(found)


@lru_cache(maxsize=4096)
def number_values(text: str) -> frozenset[float]:
    """Every value that a reader may find in the numbers of a text, in digits or words, parts included."""
    runs = _number_runs(text)
    parts = {value for run in runs for low in run if (value := _value(low)) is not None}
    return frozenset(parts).union(*(_readings(run) for run in runs))


def unsupported_numbers(text: str, said: Said) -> tuple[str, ...]:
    """Numbers of ``text`` that no quote holds, in digits or words."""
    lows = said.lows()
    missing: list[str] = []
    for run in _number_runs(text):
        if all(low in lows for low in run):
            continue
        values = frozenset().union(*(number_values(q) for q in said.quotes))
        if not _readings(run) & values:
            missing.append(" ".join(run))
    return tuple(missing)


def unsupported_names(text: str, said: Said, roster: Roster, granted: Iterable[str]) -> tuple[str, ...]:
    """Names in ``text`` (capitals inside a sentence, attendees anywhere) that no quote holds.

    ``granted`` are names that the evidence states without saying them: its speakers and the owner.
    """
    lows = said.lows()
    allowed = {w.low for name in granted for w in words_in(name)}
    heard: frozenset[str] | None = None
    missing: list[str] = []
    for word in words_in(text):
        if not word.text[0].isupper() or word.low in STOP or word.low in _DAY_WORDS:
            continue
        if word.low in lows or word.low in allowed or expand(word.text).split()[0] in STOP:
            continue
        if word.opens and word.low not in roster.by_call:
            continue
        if heard is None:
            sounding = {name for low in lows for name in roster.sounds_like(low)}
            heard = frozenset(w.low for name in sounding for w in words_in(name))
        if word.low not in heard:
            missing.append(word.text)
    return tuple(missing)


def written_apart(text: str, terms: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Words of ``text`` in a row that together spell a word of ``terms`` (*bright water*, *Brightwater*)."""
    wanted = {w.low: w.text for term in terms for w in words_in(term) if len(w.low) >= _LONG_ENOUGH}
    found: list[tuple[str, str]] = []
    words = words_in(text) if wanted else ()
    for width in (2, 3):
        for place in range(len(words) - width + 1):
            row = words[place : place + width]
            name = wanted.get("".join(w.low for w in row))
            if name is not None:
                found.append((" ".join(w.text for w in row), name))
    return tuple(found)


_LONG_ENOUGH: Final = 7
"""Letters of a word that others hardly spell by chance."""


def unsupported_dates(text: str, said: Said, due: dt.date | None) -> tuple[str, ...]:
    """Days and months named in ``text`` that no quote names and that are not those of ``due``."""
    lows = said.lows() | {low[:-1] for low in said.lows() if low.endswith("s")}
    derived = {WEEKDAYS[due.weekday()], MONTHS[due.month - 1]} if due is not None else set()
    missing: list[str] = []
    for word in words_in(text):
        low = word.low[:-1] if word.low.endswith("s") and word.low[:-1] in WEEKDAYS else word.low
        # "may" and "march" are months only with a capital inside a sentence.
        plain_word = low in ("may", "march") and (word.opens or not word.text[0].isupper())
        if low in _DAY_WORDS and not plain_word and low not in lows and low not in derived:
            missing.append(word.text)
    return tuple(missing)


@dataclass(frozen=True, slots=True)
class OwnerFinding:
    """Whether the quotes state the owner; ``ambiguous`` where the words fit several people alike."""

    stated: bool
    ambiguous: bool


def owner_finding(owner: str | None, external: bool, said: Said, roster: Roster) -> OwnerFinding:
    """Hold an owner against the quotes: name or role spoken, first person, or addressed and answering.

    Without an owner the only question is whether a spoken name fits several attendees.
    """
    if owner is not None and external:
        lows = said.lows()
        return OwnerFinding(any(w.low in lows for w in words_in(owner)), False)
    if owner is not None and _speaks_for_himself(owner, said, roster):
        return OwnerFinding(True, False)
    exact = [named for quote in said.quotes for named in _people_named(quote, roster)]
    if owner is not None and (owner,) in exact:
        return OwnerFinding(True, False)
    if any(len(named) > 1 and (owner is None or owner in named) for named in exact):
        return OwnerFinding(False, True)
    if owner is None:
        return OwnerFinding(False, False)
    sounding = [named for quote in said.quotes for named in _people_sounding(quote, roster)]
    return OwnerFinding((owner,) in sounding, any(len(n) > 1 and owner in n for n in sounding))


def look_alike(name: str, roster: Roster) -> str | None:
    """The attendee whose name looks the same as ``name`` though it is written otherwise; None where none does."""
    shape = skeleton(name)
    return next((p.name for p in roster.people if p.name != name and skeleton(p.name) == shape), None)


def _speaks_for_himself(owner: str, said: Said, roster: Roster) -> bool:
    own: list[str] = []
    others: list[str] = []
    for quote, speaker in zip(said.quotes, said.speakers, strict=True):
        (own if roster.of_speaker(speaker) == owner else others).append(quote)
    if not own:
        return False
    if _lows(tuple(own)) & _FIRST_PERSON:
        return True
    # Who says a first name that is also their own speaks of somebody else: that takes nothing on.
    answers = [q for q in own if not any(len(n) > 1 and owner in n for n in _people_named(q, roster))]
    if any(_TAKING_ON.search(q.casefold()) for q in answers):
        return True
    return bool(answers) and bool(_lows(tuple(others)) & _SECOND_PERSON)


_EVERYDAY: Final = STOP | {
    "mark",
    "will",
    "may",
    "hope",
    "grace",
    "rose",
    "joy",
    "art",
    "bill",
    "frank",
    "sue",
}
"""Words that are names only with a capital."""


def _said_together(quote: str, widths: Sequence[int]) -> Iterator[tuple[int, str, int, bool]]:
    """Words in a row: place, lower case, how many, and whether they may be a name and not everyday words."""
    words = words_in(quote)
    for index, word in enumerate(words):
        for width in widths:
            if index + width <= len(words):
                lows = " ".join(w.low for w in words[index : index + width])
                yield index, lows, width, width > 1 or lows not in _EVERYDAY or word.text[0].isupper()


def _people_named(quote: str, roster: Roster) -> list[tuple[str, ...]]:
    """Groups of attendees whom up to four words in a row name, by name or role."""
    found: list[tuple[str, ...]] = []
    words = words_in(quote)
    for index, lows, width, may_be_name in _said_together(quote, (4, 3, 2, 1)):
        found.append(roster.with_role(lows))
        if width == 1 and may_be_name:
            named = roster.named(lows)
            found.append(tuple(n for n in named if not _names_another(n, words, index, roster)))
        elif width == 2:
            found.append(roster.by_call.get(lows, ()))
    return [names for names in found if names]


def _names_another(name: str, words: Sequence[Word], index: int, roster: Roster) -> bool:
    """Whether a surname follows another first name: *Peter Berg* is not Anna Berg."""
    own = [w.low for w in words_in(name)]
    word, before = words[index], words[index - 1] if index else None
    if before is None or word.opens or len(own) < 2 or word.low == own[0] or before.low in own:
        return False
    foreign = before.text[0].isupper() and before.low not in STOP and before.low not in _BEFORE_SURNAMES
    return foreign and not roster.with_role(before.low) and before.low not in _DAY_WORDS


_BEFORE_SURNAMES: Final = word_set("""
    mr mrs ms miss mister madam sir dr doctor prof professor nurse sister mayor captain herr frau ask tell let have
    get maybe perhaps then so okay yes no well now here there thanks
""")
"""Words that may have a capital before a surname and are no first names."""


def _people_sounding(quote: str, roster: Roster) -> list[tuple[str, ...]]:
    """Groups of attendees whose names sound like one or two words."""
    return [
        names
        for _, lows, _, may_be_name in _said_together(quote, (2, 1))
        if may_be_name and (names := roster.sounds_like(lows.replace(" ", "")))
    ]


def occurs(phrase: str, said: Said) -> bool:
    """Whether the words of ``phrase`` stand in one quote in their order, fillers between them allowed."""
    wanted = _opened(phrase)
    return bool(wanted) and any(_in_order(wanted, _opened(quote)) for quote in said.quotes)


_GOES_ON: Final = re.compile(
    r"[./:-]\d|\s*%|\s+(?:percent|euros?|dollars?|pounds?|" + "|".join(MONTHS[:4] + MONTHS[5:]) + r"|May)\b|"
    r"[,.]?\s+(?:(?:no|sorry|or|or rather|i mean|actually|make that|make it)\b[,.]?\s+)+(?:(?:by|on|the|next|this)\s+)*"
    rf"(?:{'|'.join((*WEEKDAYS, *MONTHS[:4], *MONTHS[5:]))}|today|tomorrow|\d+(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
"""What makes other words of a date: the rest of it, an amount, or another day in its place."""


def goes_on(due_text: str, said: Said) -> bool:
    """Whether wherever the words of a date were said others follow that change it: *by 13/3*, *by Friday or Monday*."""
    words = r"\W+".join(re.escape(w) for w in due_text.split())
    rests = [q[m.end() :] for q in said.quotes for m in re.finditer(rf"(?<!\w){words}", q, re.IGNORECASE)]
    return bool(rests) and all(_GOES_ON.match(rest) for rest in rests)


def _opened(text: str) -> list[str]:
    return [part for word in words_in(text) for part in expand(word.low).split()]


def _in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """A greedy match from every place where the first word stands; at most twice the length wide."""
    for start, word in enumerate(words):
        if word != wanted[0]:
            continue
        place = 0
        for other in words[start : start + 2 * len(wanted) + 2]:
            if other == wanted[place]:
                place += 1
                if place == len(wanted):
                    return True
    return False


def due_fits(due: dt.date, due_text: str, meeting: dt.date | None) -> bool:
    """Whether a date agrees with the weekday, month, day and *today* or *tomorrow* in its words."""
    lows = [w.low for w in words_in(due_text)]
    shifted = bool(_SHIFTED.search(" ".join(lows)))
    days = {WEEKDAYS.index(d) for low in lows for d in (low, low.removesuffix("s")) if d in WEEKDAYS}
    if days and not shifted and due.weekday() not in days:
        return False
    months = {MONTHS.index(low) + 1 for low in lows if low in MONTHS}
    if months and due.month not in months:
        return False
    dated = [low for low in lows if months or low.endswith(("st", "nd", "rd", "th"))]
    numbers = {
        int(v) for low in dated if not low.endswith(("am", "pm")) and (v := _digit_value(low)) is not None
    }
    if numbers and not shifted and due.day not in numbers and due.year not in numbers:
        return False
    if meeting is None or shifted:
        return True
    if {"today", "tonight"} & set(lows) and "week" not in lows:
        return due == meeting
    return due == meeting + dt.timedelta(days=1) if "tomorrow" in lows and "week" not in lows else True
