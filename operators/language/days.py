"""Days named in a clause, and which of them are only named as what no longer holds (*Friday's no use, make it Thursday*)."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from operators.language.dates import DuePhrase, day_of_month, resolve, time_phrases

DAY_KINDS: Final = frozenset(
    ("iso", "day", "date", "ordinal", "day_date", "relative", "day_after", "after_week", "after")
)
"""Kinds of time phrases that name a day."""
_SAID: Final = re.compile(
    r"\b(?:(?:i|you|we|@)(?: have| had| just)? (?:said|told (?:you|them|him|her|us))|promised|had|wrote|put|"
    r"pencilled in|agreed(?: on)?)(?: (?:it|that|them|down|in|about))?(?: (?:for|by|on|till|until|as|to|the))* $"
)
"""What was said before: as often to confirm it as to change it."""
_INSTEAD: Final = re.compile(
    r"\b(?:instead of|rather than|than|away from|forget|scrap|scratch|(?:spoke too soon|got it wrong) about)"
    r"(?: (?:it|that|them|down|in|about))?"
    r"(?: (?:for|by|on|till|until|as|to|the))* $"
)
"""What something else is put in the place of."""
_BAD_FOR: Final = re.compile(
    r"\b(?:no (?:good|use|help)|too late|useless|hopeless|impossible|not (?:possible|realistic|any good|ready|"
    r"going to (?:work|happen)))"
    r"(?: (?:to (?:me|us|them)|if it comes))?(?: (?:on|by|for|till|until|before|the))* $"
)
_DENIED: Final = re.compile(
    r"(?:\b(?:it|that|this) is |(?<!is )(?<!am )(?<!are )(?<!was )\b)(?:not|never)(?: (?:on|by|for|at|this|the|"
    r"that|even))* $"
)
_STILL: Final = re.compile(r"\bstill(?: (?:on|by|for|the))* $")
_MUCH: Final = r"(?: (?:just|a bit|a little|far|way|really|simply|probably|now|already|rather|kind of|sort of|actually|looking))*"
_FAILS: Final = re.compile(
    rf"^(?: [a-z']+){{0,2}}? (?:(?:'s|is|was|will be|would be|looks|seems|sounds|gets|are){_MUCH} "
    r"(?:no (?:good|use|help)|not (?:going to|good|possible|on|any good|any use|free|enough|realistic|great|"
    r"ideal)|too (?!good\b|great\b|nice\b|lovely\b|important\b)|out\b|"
    r"off\b|gone\b|dead\b|silly|daft|tight|late\b|early\b(?! enough)|hopeless|impossible|useless|wrong|"
    r"optimistic|full\b(?! of\b)|"
    r"bad\b|awful|"
    r"tricky|difficult|a (?:bank |public )?holiday|taken|blocked|booked|closed|pushing it|a problem)"
    r"|(?:does|will|can|would|is) not (?:really )?(?:work|do|suit|fit|happen|going to|be (?:enough|possible|ready))"
    r"|clashes|falls through|no longer"
    r"|(?:the|my|our) [\w'-]+ (?:'s|is) (?:in for|away|off|out|taken|gone|booked|closed|shut)\b)"
)
"""What is said of a day that will not do."""
_IS_FOR: Final = re.compile(r"^ (?:'s|is|was|will be|would be) the day (?:i|we) ")
"""What a day is for, which may or may not stand in the way of anything else."""
_UNABLE: Final = re.compile(
    r"\b(?:(?:can|could|will) not (?:do|make|manage|have|get|come)(?: (?:it|that|you|there|them))?(?: (?:on|by|"
    r"before|till|until|the|for))*"
    r"|(?:i|he|she|we|they|you|@|~) (?:am|is|are|will be) (?:still |only |all |both )?(?:away|off|out|gone|busy|"
    r"teaching|working|abroad|"
    r"travelling|not(?: (?:here|in|on|at|about|around|there|back|free))?)"
    r"(?: (?!(?:i|you|we|he|she|they|it|so|but|then|will|make|let)\b)[\w'-]+){0,6}?"
    r"|you are (?:still |only |all |both )?(?:on|at|with)"
    r"(?: (?!(?:i|you|we|he|she|they|it|so|but|then|will|make|let)\b)[\w'-]+){0,6}?"
    r"|[\w'-]+ (?:'s|is|are) (?:away|off|closed|shut|out|on holiday|not (?:in|there|open)|only (?:in|there|"
    r"open))(?: all| again)?) $"
)
"""Who is not there then: the day is named for something else than the task."""
_I_CANNOT: Final = re.compile(
    r"\bi (?:can|could|will) not (?:do|make|manage|finish) (?:it|that|them|those)(?: (?:on|by|before|for|the|till|until))* $"
)
"""What somebody will not have done then, whatever it is for."""
_ELSEWHERE: Final = re.compile(
    r"\b(?:(?:i|he|she|we|they|you|@|~) (?:am|is|are|will be) (?:still |only |all |both )?(?:on|in|at|with)"
    r"(?: (?!(?:i|you|we|he|she|they|it|so|but|then|will|make|let)\b)[\w'-]+){0,6}?"
    r"|(?:i|we|he|she|they|@) (?:have|has)(?: got)? (?:the|a|an|my|our) [\w' -]{3,30}?) $"
)
"""Where somebody is then or what they have on, which may be the very reason for the day."""
_READ: Final = 1200
_BESIDE: Final = 200
"""Characters of a clause that are looked through, and before each day: nobody speaks longer ones."""
_BUT: Final = re.compile(r"\b(?:but|so|then|make|say|rather|instead)\b")


@dataclass(frozen=True, slots=True)
class NamedDay:
    """A day in a clause. ``dropped``: it is named as one that does not hold, or no longer."""

    phrase: DuePhrase
    dropped: bool
    strongly: bool
    """Dropped by words that leave no doubt, not only by somebody who is away then."""
    doubtful: bool
    """Dropped only if another day is named in its place: the same words confirm a day, or say what it is for."""


def named_days(norm: str, asked: bool) -> tuple[NamedDay, ...]:
    """Days of a clause in order; ``asked`` says whether it ends with a question mark."""
    out: list[NamedDay] = []
    for phrase in time_phrases(norm[:_READ]):
        if phrase.kind not in DAY_KINDS:
            continue
        before, after = norm[max(0, phrase.first - _BESIDE) : phrase.first], norm[phrase.last :]
        strongly = bool(
            (_DENIED.search(before) and phrase.prep not in ("until", "till", "before"))
            or _FAILS.match(after)
            or _INSTEAD.search(before)
            or _BAD_FOR.search(before)
            or _I_CANNOT.search(before)
            or (asked and _STILL.search(before))
        )
        but = _BUT.search(before[-14:]) is not None
        unable = _UNABLE.search(before) is not None and not but
        said = _SAID.search(before) is not None or _IS_FOR.match(after) is not None
        beside = _ELSEWHERE.search(before) is not None and not but
        doubtful = (said or beside) and not (strongly or unable)
        out.append(NamedDay(phrase, strongly or unable or doubtful, strongly or said, doubtful))
    return tuple(out)


def same_day(one: DuePhrase, other: DuePhrase, today: dt.date | None) -> bool:
    """Whether two phrases mean the same day, by the calendar where the day of the meeting is known, else by their words."""
    if "ordinal" in (one.kind, other.kind) and {one.kind, other.kind} <= {"ordinal", "date", "day_date"}:
        return _number_in(one) == _number_in(other)
    if today is not None:
        left, right = resolve(one, today), resolve(other, today)
        if left is not None and right is not None:
            return left == right
    return bare_words(one) == bare_words(other)


def _number_in(phrase: DuePhrase) -> int | None:
    """The day of the month that a phrase names; the month may be said with one of two alone."""
    return day_of_month(phrase.words)


def bare_words(phrase: DuePhrase) -> str:
    """The words of a phrase without preposition and article."""
    return re.sub(
        r"^(?:(?:by|before|until|till|on|for|at|in|from|to|within|due|come|no later than|the|this|latest) )+",
        "",
        phrase.words,
    ).removesuffix(" at the latest")
