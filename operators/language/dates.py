"""Due dates in words: finding the phrase and working out the day, or leaving it open.

A phrase with two usual readings (*next Friday*, *the end of next week*) has no date: its words are
kept and a person decides.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from operators.language.words import in_order

_DAYS = {d: i for i, d in enumerate(in_order("monday tuesday wednesday thursday friday saturday sunday"))}
_MONTH_NAMES = in_order("""
    january february march april may june july august september october november december
""")
_MONTHS = {m: i + 1 for i, m in enumerate(_MONTH_NAMES)}
_NUMBER_WORDS = in_order("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty
""")
_SMALL = {w: i for i, w in enumerate(_NUMBER_WORDS)}
_ORDINAL_WORDS = in_order("""
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
""")
_ORDINALS = {w: i + 1 for i, w in enumerate(_ORDINAL_WORDS)}
_ORDINALS |= {f"twenty{gap}{w}": 21 + i for i, w in enumerate(_ORDINAL_WORDS[:9]) for gap in (" ", "-")}
_ORDINALS |= {"thirtieth": 30, "thirty first": 31, "thirty-first": 31}

_DAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?"
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_ORD = r"(?:\d{1,2}(?:st|nd|rd|th)|" + "|".join(sorted(_ORDINALS, key=len, reverse=True)) + ")"
_NUM = r"(?:\d{1,3}|a couple of|a few|an?|" + "|".join(sorted(_SMALL, key=len, reverse=True)) + ")"
_PART = (
    r"(?:early |late |first thing )?(?:in the )?"
    r"(?:morning|afternoon|evening|night|lunchtime|noon|at noon|at lunch)"
)
_CLOCK = (
    r"(?:half past |quarter (?:past|to) )?"
    rf"(?:\d{{1,2}}(?:[.:]\d\d)?|{'|'.join(_SMALL)})"
    r"(?: thirty| fifteen| forty five)?(?: ?(?:am|pm|o'clock))?|noon|midday|midnight|lunch|lunchtime|dinner|"
    r"breakfast|close of business|end of play"
)
_CALENDAR = (
    rf"(?:the )?{_ORD}(?: of)? {_MONTH}|{_MONTH}(?: the)? {_ORD}|"
    rf"{_MONTH} \d{{1,2}}(?! \w+ (?:people|euros?|percent))|\d{{1,2}} {_MONTH}"
)
_PREP = r"(?:by|before|until|till|on|for|at|in|from|to|not later than|no later than|latest|within|due|come)"

_FORMS: dict[str, str] = {
    "iso": r"\d{4}-\d\d-\d\d",
    "now_after": (
        r"(?:as )?soon as (?:we are|i am|this is|the meeting is) "
        r"(?:done|finished|through|over|out)(?: here)?|"
        r"(?:right|straight|directly|just) after (?:this|the meeting|we finish|here)(?: meeting| call)?|"
        r"after (?:this|the) (?:meeting|call)|right away|straight ?away|this minute|immediately"
    ),
    "after_week": (
        rf"(?:a week|a fortnight|two weeks|{_NUM} (?:days|weeks)) (?:from|after) "
        rf"(?:today|tomorrow|now|(?:this |next |the )?{_DAY})|"
        rf"(?:a week|a fortnight) (?:today|tomorrow|on {_DAY})|{_DAY} week|today week|tomorrow week"
    ),
    "after": (
        rf"(?:in|within|give me) (?:the next )?{_NUM} (?:more )?(?:days|day|weeks|week|"
        rf"fortnight|months|month)"
        r"(?: time)?|within the (?:week|month|fortnight)|give me a fortnight|in a fortnight"
    ),
    "day_after": r"(?:the )?day after tomorrow",
    "vague": (
        rf"(?:the )?end of (?:the |this |next )?(?:day|week|month|quarter|year|term|season|{_MONTH})|"
        r"(?:early |late |beginning of |start of |middle of |mid )?(?:next|this) "
        r"(?:week|month|quarter|year|spring|summer|autumn|winter|term)|q[1-4]|"
        rf"{_NUM} (?:months?|years?) from (?:now|today)|"
        r"(?:the |our )?(?:next|following) (?:meeting|session|time|call|round|sprint)|"
        r"(?:the )?(?:first|second|third|fourth) quarter|christmas|easter"
    ),
    "day_date": (
        rf"(?:(?:this|next|the|coming) )?{_DAY}(?: week)?(?: the| that is the)? (?:{_CALENDAR}|{_ORD})(?! thing)"
    ),
    "date": _CALENDAR,
    "day": (
        rf"(?:(?:this coming|this|next|coming|the following) )?{_DAY}(?: next week| of next week| this week)?"
        rf"(?: {_PART})?(?: 's (?:call|meeting|session|round|stand-up|standup|issue|paper))?"
    ),
    "relative": (
        rf"(?:first thing |(?:{_CLOCK}) )?(?:today|tonight|tomorrow(?: first thing)?)"
        rf"(?: (?:at|by|before) (?:{_CLOCK}))?(?: {_PART}| night)?|"
        r"this (?:morning|afternoon|evening|noon|very day)|later today|in the morning|overnight"
    ),
    "ordinal": rf"the {_ORD}",
}
"""Time phrases, tried in this order at each place."""
_FIND = re.compile(
    rf"\b(?:(?P<prep>{_PREP}) )?(?P<early>(?:the )?(?:latest|very latest) )?(?:"
    + "|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS.items())
    + r")(?: at the latest| latest)?(?![\w-])"
)
_FIND_CLOCK = re.compile(rf"\b(?:by|before|at|until|till) (?P<when>{_CLOCK})(?: today)?(?![\w-])")
_FIND_NUMERIC = re.compile(
    r"\b(?:by|before|until|till) (?P<when>\d{1,2}[. ]\d{1,2}(?:[. ](?:\d\d){1,2})?)(?![\w-]|\.\d)"
)
"""*13/3*, *14.03.2026*: which of the numbers is the month is left to people."""
_GOES_ON = re.compile(
    r"^ (?:[a-z]+ o'clock|and|but|so|then|please|at|in|by|if|or|latest|morning|afternoon|evening|okay|yes|no|"
    r"right|i|we|you|he|she|it|they|that|works|is|will|because|not|rather|instead|from|with|for|to|@|~)\b|^ ?$"
)
_TALKED_ABOUT = re.compile(
    r"(?:\b(?:about|of|since|last|every|than|like|not|was|were|only|most|previous|past|on|that|but) ?| 's )$"
)


_CHANGING = re.compile(
    r"\b(?:cut|lower|rais|reduc|increas|decreas|grow|shrink|extend|shorten|delay|improv|multipl|divid|widen)\w*\b"
)


def _no_time(words: str, before: str, after: str) -> bool:
    """Whether numbers are no time: a part of something longer, an amount (*5 euros*, *cut it by 10*)."""
    if re.match(r"[./]\d", after) or after.startswith((" and a half", " percent", " per ")):
        return True
    if not words[0].isdigit() and words not in _SMALL:
        return False
    if words.isdigit() or words in _SMALL:
        return not 0 < _number(words) <= 12 or not _GOES_ON.match(after) or bool(_CHANGING.search(before))
    return not re.search("[ap]m|clock|:", words) and (
        not _GOES_ON.match(after) or bool(_CHANGING.search(before))
    )


_NEXT_TIME = re.compile(r"next (?:meeting|session|time|call|round|sprint)")


def _not_a_due_date(kind: str, prep: str | None, words: str, before: str, after: str) -> bool:
    """Whether a time phrase only names something (*about the Saturday*, *the first aid*, *not today*)."""
    if _TALKED_ABOUT.search(before) and not (prep and before.endswith("that ")):
        denied = before.endswith("not ") and prep in ("by", "before")
        return denied or not (
            prep in _DEADLINE or (prep is None and re.search(r"\b(?:that|only|on) $", before))
        )
    if prep in ("from", "after") and kind == "relative" and _LENGTH_BEFORE.search(before):
        return True
    if kind == "ordinal" and prep is None and not _GOES_ON.match(after):
        return True
    if (
        kind == "ordinal"
        and prep not in ("by", "before", "until", "till", "on")
        and not _GOES_ON.match(after)
    ):
        return True
    if kind in ("day", "ordinal") and prep is None and re.search(r"\b(?:the|a|this|our|my) $", before):
        return True
    if (
        kind in ("day", "ordinal")
        and prep in ("for", "from", "in")
        and re.match(r"^ (?:night|shift|game|rota)\b", after)
    ):
        return True
    return kind in ("vague", "clock") and prep in ("for", "from") and not _NEXT_TIME.search(words)


_LENGTH_BEFORE = re.compile(r"\b(?:an?|one|two|three|four|five|six|\d+) [\w-]+ $")
"""A length of time that counts from the day named after it; one that is worked out is a phrase of its own."""
_DEADLINE = ("by", "before", "until", "till", "to", "not later than", "no later than", "due", "within")


@dataclass(frozen=True, slots=True)
class DuePhrase:
    """A time phrase: character span in the clause's opened text, its kind and its words."""

    first: int
    last: int
    kind: str
    words: str
    prep: str | None

    @property
    def sets_deadline(self) -> bool:
        """Whether the words alone say *by then*."""
        return self.prep in _DEADLINE


_BARE = re.compile(
    r"^(?:(?:so|and|but|then|no|yes|okay|oh|well|right|fine|good|sorry|actually|better|rather|say|make it|by|"
    r"till|until) )*"
    rf"(?P<when>(?!(?:first|second|third)\b){_ORD})"
    r"(?=$| (?:then|it is|will do|would do|works|is|'s|fine|okay|good|at|latest|even|please|suits|not|if|"
    r"instead|easily|@)\b(?: [\w'@-]+){0,4}$)"
)
"""A day of the month without its article, where it is all that is said (*Sixteenth?*, *Twenty-eighth will do*)."""


def time_phrases(norm: str) -> Iterator[DuePhrase]:
    """All time phrases of a clause, whatever is said of them, in order."""
    if not _HINT.search(norm):
        return
    bare = _BARE.match(norm)
    if bare is not None and not re.match(rf" (?:of )?{_MONTH}", norm[bare.end() :]):
        words = norm[: bare.start("when")].split()
        prep = words[-1] if words and words[-1] in _DEADLINE else None
        yield DuePhrase(bare.start("when"), bare.end("when"), "ordinal", f"the {bare['when']}", prep)
    for match in _FIND.finditer(norm):
        kind = next(k for k in _FORMS if match.group(k))
        yield DuePhrase(match.start(), match.end(), kind, match.group(), match.group("prep"))


def due_phrases(norm: str) -> tuple[DuePhrase, ...]:
    """Time phrases of a clause that may say when something is due, in order, not overlapping."""
    if not _HINT.search(norm):
        return ()
    found: list[DuePhrase] = []
    for phrase in time_phrases(norm):
        before, after = norm[: phrase.first], norm[phrase.last :]
        bare = phrase.words == f"the {norm[phrase.first : phrase.last]}"
        if bare or not _not_a_due_date(phrase.kind, phrase.prep, phrase.words, before, after):
            found.append(phrase)
    for kind, form in (("vague", _FIND_NUMERIC), ("clock", _FIND_CLOCK)):
        for match in form.finditer(norm):
            if any(f.first < match.end() and match.start() < f.last for f in found):
                continue
            if _no_time(match.group("when"), norm[: match.start()], norm[match.end() :]):
                continue
            prep = match.group().split()[0]
            found.append(DuePhrase(match.start(), match.end(), kind, match.group(), prep))
    return tuple(sorted(found, key=lambda f: f.first))


_HINT = re.compile(
    r"day|night|tomorrow|week|month|morning|noon|evening|\b(?:twenty|thirty|\w+(?:th|st|nd|rd))\b|\b\d|"
    r"\bby\b|\bbefore\b|\bat\b|"
    r"until|till|after|soon as|straight|immediately|quarter|end of|next|fortnight|christmas|easter|time|"
    + "|".join(_MONTHS)
)


def _number(words: str) -> int:
    if words.isdigit():
        return int(words)
    return {"a": 1, "an": 1, "a couple of": 2, "a few": 0}.get(words, _SMALL.get(words, 0))


def day_of_month(words: str) -> int | None:
    """The number of a day in a date in words, null where there is none."""
    match = re.search(_ORD, words)
    if match:
        text = match.group()
        return int(text[:-2]) if text[0].isdigit() else _ORDINALS.get(text)
    match = re.search(r"\b(\d{1,2})\b", words)
    return int(match.group(1)) if match else None


def month_in(words: str) -> int | None:
    """The number of the month named in a date in words, null where there is none."""
    return next((i for m, i in _MONTHS.items() if re.search(rf"\b{m}\b", words)), None)


_JUST_OVER_DAYS = 60
"""A day that has been over for no longer than this is a slip of the tongue, or the next one in a year: nobody knows."""


def _calendar_date(words: str, today: dt.date) -> dt.date | None:
    day = day_of_month(words)
    month = month_in(words)
    if day is None or day < 1:
        return None
    if month is not None:
        for year in (today.year, today.year + 1):
            if day > calendar.monthrange(year, month)[1]:
                continue
            found = dt.date(year, month, day)
            if found >= today:
                return found
            if (today - found).days <= _JUST_OVER_DAYS:
                return None
        return None
    year, month = today.year, today.month
    for _ in range(12):
        if day <= calendar.monthrange(year, month)[1] and dt.date(year, month, day) >= today:
            return dt.date(year, month, day)
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return None


def _weekday(words: str, today: dt.date) -> dt.date | None:
    """The next such day; null when it is today (today or in a week?), said with *next*, or means every one."""
    if re.search(rf"\b(?:{'|'.join(_DAYS)})s\b", words):
        return None
    day = next(i for d, i in _DAYS.items() if d in words)
    ahead = (day - today.weekday()) % 7
    if "next week" in words:
        return today - dt.timedelta(days=today.weekday()) + dt.timedelta(days=7 + day)
    if re.search(r"\bnext\b|\bfollowing\b", words) or ahead == 0:
        return None
    return today + dt.timedelta(days=ahead)


def _week_after(words: str, today: dt.date) -> dt.date | None:
    if re.search(r"\b(?:today|now)\b", words):
        start: dt.date | None = today
    elif "tomorrow" in words:
        start = today + dt.timedelta(days=1)
    else:
        start = _weekday(re.sub(r"\bnext (?!week)", "", words), today)
    if start is None:
        return None
    match = re.search(rf"({_NUM}) (days|weeks)", words)
    if "fortnight" in words:
        days = 14
    elif match:
        days = _number(match.group(1)) * (7 if match.group(2) == "weeks" else 1)
    else:
        days = 7
    return start + dt.timedelta(days=days) if days else None


def _after(words: str, today: dt.date) -> dt.date | None:
    if "fortnight" in words:
        return today + dt.timedelta(days=14)
    match = re.search(rf"({_NUM}) (?:more )?(day|week|month)", words)
    if not match or "the " in words.replace("the next", ""):
        return None
    count = _number(match.group(1))
    if count == 0 or match.group(2) == "month":
        return None
    return today + dt.timedelta(days=count * (7 if match.group(2) == "week" else 1))


def resolve(phrase: DuePhrase | str, today: dt.date | None, kind: str | None = None) -> dt.date | None:
    """The day a phrase means when the meeting is held on ``today``; null if there is no one reading."""
    words = phrase if isinstance(phrase, str) else phrase.words
    kind = kind if isinstance(phrase, str) else phrase.kind
    if today is None or kind is None:
        return None
    if kind == "iso":
        try:
            return dt.date.fromisoformat(re.search(r"\d{4}-\d\d-\d\d", words).group())  # type: ignore[union-attr]
        except ValueError:
            return None
    if kind in ("date", "day_date", "ordinal"):
        found = _calendar_date(re.sub(rf"\b{_DAY}(?: week)?", "", words), today)
        named = next((i for d, i in _DAYS.items() if d in words), None)
        # *Friday the 14th* where the 14th is no Friday: one of the two was said wrong, and who knows which.
        return None if found is not None and named not in (None, found.weekday()) else found
    if kind == "day":
        return _weekday(words, today)
    if kind == "after_week":
        return _week_after(words, today)
    if kind == "after":
        return _after(words, today)
    if kind == "day_after":
        return today + dt.timedelta(days=2)
    if kind in ("now_after", "clock"):
        return today
    if kind == "relative":
        if "tomorrow" in words or words == "in the morning":
            return today + dt.timedelta(days=1)
        return None if words == "overnight" else today
    if kind == "vague":
        return _vague(words, today)
    return None


def _vague(words: str, today: dt.date) -> dt.date | None:
    if re.search(r"end of (?:the |this )?day", words):
        return today
    month = next((i for m, i in _MONTHS.items() if re.search(rf"end of {m}\b", words)), None)
    if month is None and re.search(r"end of (?:the |this )?month", words):
        month = today.month
    if month is None:
        return None
    year = today.year + (month < today.month)
    return dt.date(year, month, calendar.monthrange(year, month)[1])
