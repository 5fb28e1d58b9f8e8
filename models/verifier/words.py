"""Words as the verifier sees them: tokens, rough stems, numbers, dates, and the cues of how something was said.

Apart from the rules that write items on purpose: a mistake there should not be repeated here.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


def listed(text: str) -> tuple[str, ...]:
    """Words that are written one after the other."""
    return tuple(text.split())


_TOKEN: Final = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
STOP: Final = frozenset(
    listed(
        """a an the and or but so of to in on at by for with from as that this these those it its is are was
    were be been being am do does did have has had i me my mine you your yours he him his she her hers
    we us our ours they them their theirs there here then than just well okay ok yes yeah right um uh er
    mm hm oh like will would shall should can could may might must let let's going go get got not no n't
    n if when what which who how why all any some about up out over into also too very really only
    please thanks thank"""
    )
)
_CONTRACTED: Final = {
    "i'll": "i will", "we'll": "we will", "you'll": "you will", "he'll": "he will", "she'll": "she will",
    "they'll": "they will", "it'll": "it will", "that'll": "that will", "i'm": "i am", "we're": "we are",
    "you're": "you are", "they're": "they are", "it's": "it is", "that's": "that is", "i've": "i have",
    "we've": "we have", "you've": "you have", "they've": "they have", "i'd": "i would", "we'd": "we would",
    "won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "shall not", "let's": "let us",
    # As a recogniser writes them that knows no apostrophes.
    "im": "i am", "ive": "i have", "ill": "i will", "dont": "do not", "cant": "can not", "wont": "will not",
    "didnt": "did not", "isnt": "is not", "doesnt": "does not", "thats": "that is", "lets": "let us",
}  # fmt: skip
NEGATIONS: Final = frozenset(listed("""not no never none nobody nothing neither nor without"""))
_NOT_WRITTEN: Final = frozenset(
    listed("cannot dont cant wont didnt isnt doesnt arent wasnt havent shouldnt wouldnt")
)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_UNITS: Final = {
    word: value
    for value, word in enumerate(
        listed(
            """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen"""
        )
    )
} | {
    word: 20 + 10 * n
    for n, word in enumerate(listed("""twenty thirty forty fifty sixty seventy eighty ninety"""))
}
_ORDINALS: Final = {
    word: value + 1
    for value, word in enumerate(
        listed(
    """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
    fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
)
    )
} | {"thirtieth": 30}  # fmt: skip
_SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "dozen": 12, "k": 1000}


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` as written, ``low`` folded, where it stands, and whether a clause ends after it."""

    text: str
    low: str
    first: int
    last: int
    ends: bool


@lru_cache(maxsize=16_384)
def tokens(text: str) -> tuple[Token, ...]:
    """Words and numbers in order; contractions stay one token."""
    found: list[Token] = []
    matches = list(_TOKEN.finditer(text))
    for number, match in enumerate(matches):
        until = matches[number + 1].start() if number + 1 < len(matches) else len(text)
        gap = text[match.end() : until]
        low = match.group().casefold().replace("’", "'")
        last = number + 1 == len(matches)
        found.append(
            Token(
                match.group(), low, match.start(), match.end(), last or bool(re.search(r"[.?!,;:…–—]", gap))
            )
        )
    return tuple(found)


@lru_cache(maxsize=16_384)
def plain(text: str) -> str:
    """Lower-case words with contractions opened, single spaces."""
    out = []
    for token in tokens(text):
        opened = _CONTRACTED.get(token.low)
        if opened is None:
            opened = f"{token.low[:-3]} not" if token.low.endswith("n't") else token.low.removesuffix("'s")
        out.append(opened)
    return " ".join(out)


@lru_cache(maxsize=16_384)
def stem(low: str) -> str:
    """A rough stem: endings of English inflection off."""
    word = low.removesuffix("'s")
    for ending, put in (
        ("ies", "y"),
        ("ing", ""),
        ("ied", "y"),
        ("ed", ""),
        ("es", ""),
        ("ly", ""),
        ("s", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + put
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=16_384)
def content(text: str) -> tuple[str, ...]:
    """Stems of the words that carry meaning, in order."""
    return tuple(stem(word) for word in plain(text).split() if word not in STOP and not _is_number(word))


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _UNITS or word in _SCALES or word in _ORDINALS


@lru_cache(maxsize=8_192)
def numbers(text: str) -> frozenset[float]:
    """Values of the numbers in a text, in digits or words; parts of a longer number count too."""
    found: set[float] = set()
    total = current = 0.0
    open_run = False
    for word in [*plain(text).split(), ""]:
        value = _value(word)
        if value is not None:
            found.add(value)
            joined = current + value if open_run and current >= 20 and value < 10 else None
            if joined is not None:
                found.add(total + joined)
                current = joined
            elif open_run and 10 <= current < 100 and 10 <= value < 100:
                # Twenty twenty-six, nine thirty.
                found.update((current * 100 + value,))
                current = current * 100 + value
            elif open_run and total and not current:
                current = value
                found.add(total + current)
            else:
                total, current = 0.0, value
            open_run = True
        elif open_run and word in _SCALES:
            current = (current or 1.0) * _SCALES[word]
            total, current = total + current, 0.0
            found.add(total)
        elif not (open_run and word == "and"):
            total, current, open_run = 0.0, 0.0, False
    return frozenset(found)


def negations(said: Sequence[Token]) -> int:
    """How many negations; a *no* that only answers does not count."""
    count = 0
    for place, token in enumerate(said):
        if token.low == "no":
            count += not token.ends and place > 0 and not said[place - 1].ends
        else:
            count += token.low in NEGATIONS or token.low.endswith("n't") or token.low in _NOT_WRITTEN
    return count


def _value(word: str) -> float | None:
    if not word:
        return None
    if word[0].isdigit():
        digits = re.match(r"\d+(?:[.,]\d+)*", word)
        try:
            return float(digits.group().replace(",", "")) if digits else None
        except ValueError:
            return None
    return _UNITS.get(word, _ORDINALS.get(word))


def due_matches(due: dt.date, words: str, meeting: dt.date) -> bool | None:
    """Whether a day agrees with words for it; None where the words say nothing that can be checked."""
    low = plain(words)
    said = set(low.split())
    ahead = (due - meeting).days
    verdicts: list[bool] = []
    shifted = bool(re.search(r"\b(?:from|after|before|but one)\b", low))
    days = {n for n, day in enumerate(WEEKDAYS) if day in said or f"{day}s" in said}
    if days and not shifted:
        verdicts.append(
            due.weekday() in days and 0 <= ahead <= (21 if "next" in said or "week" in said else 14)
        )
    months = {n for n, month in enumerate(MONTHS, 1) if month in said}
    if months:
        verdicts.append(due.month in months)
        exact = {v for v in numbers(words) if 1 <= v <= 31}
        if exact:
            verdicts.append(due.day in exact)
    elif re.search(r"\bthe \w+(?: first| second| third)?\b", low) and (exact := _ordinal_days(low)):
        verdicts.append(due.day in exact)
    if said & {"today", "tonight", "now", "afternoon"} and not days and not shifted:
        verdicts.append(ahead == 0)
    if "tomorrow" in said and not shifted:
        verdicts.append(ahead == 1)
    if "next week" in low and not days:
        verdicts.append(1 <= ahead <= 13)
    if re.search(r"\bthis week\b|\bend of (?:the |this )?week\b", low) and not days:
        verdicts.append(0 <= ahead <= 7)
    if "end of" in low and "month" in said:
        verdicts.append((due + dt.timedelta(days=1)).month != due.month or due.day >= 28)
    return all(verdicts) if verdicts else None


def _ordinal_days(low: str) -> set[float]:
    found: set[float] = {value for word, value in _ORDINALS.items() if word in low.split()}
    found |= {int(n) for n in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)\b", low)}
    if match := re.search(r"\b(twenty|thirty) (\w+)\b", low):
        tens = _UNITS[match.group(1)]
        if match.group(2) in _ORDINALS:
            found = {tens + _ORDINALS[match.group(2)]}
    return {day for day in found if 1 <= day <= 31}


DAY_WORDS: Final = re.compile(
    r"\b(?:"
    + "|".join((*WEEKDAYS, *(m for m in MONTHS if m not in ("may", "march"))))
    + r"|today|tonight|tomorrow|"
    r"next week|this week|end of (?:the |this )?(?:week|month|day)|by (?:may|march)|the \w+(?:st|nd|rd|th))\b"
)
COMMITS: Final = re.compile(
    r"\b(?:i (?:will|can|shall|am going to|am on|have got|would be happy to|take|do that|promise)|will do|on it|"
    r"leave (?:it|that|this) (?:with|to) me|mine|consider it done|count on me|happy to|my job|i am your|that is me|"
    r"that will be me|give it to me|put me down|sure|no problem|fine by me|of course)\b"
)
OF_ONESELF: Final = re.compile(r"\b(?:i|me|my|mine|myself)\b")
ASKS_SOMEBODY: Final = re.compile(
    r"\b(?:(?:can|could|would|will) you|you (?:will|should|need to|have to|can|take|do)|please|your job|over to you|"
    r"make sure|i need you|i want you|do not forget|get me|be so kind|has to|have to|needs to|should|must)\b"
)
DECIDES: Final = re.compile(
    r"\b(?:decided|decision|agreed|settled|let us|we (?:will|go|are going|take|keep|use|do|have agreed|drop|stay)|"
    r"go with|going with|it is (?:a )?(?:deal|done|final)|that is (?:it|final|decided|settled|that)|from now on|"
    r"approved|final|then it is|so it is|stick (?:with|to)|stay with|carried|nobody against|all in favour|done then)\b"
)
ACCEPTS: Final = re.compile(
    r"^(?:\w+ ){0,2}(?:yes|yeah|yep|okay|ok|agreed|fine|good|great|sure|perfect|sounds good|deal|done|right|exactly|"
    r"all right|absolutely|of course|will do|me too|no objection|works for me|happy with that|in favour)\b"
)
REFUSES: Final = re.compile(
    r"^(?:\w+ ){0,3}(?:no\b|nope|not (?:really|now|yet|today|a chance|me)|never|rather not|i would not|i do not think|"
    r"i am against|let us not|we can not|i can not|forget it|absolutely not|no way|over my)"
)
TAKES_BACK: Final = re.compile(
    r"\b(?:scratch that|forget (?:it|that|about|what)|never mind|take (?:that|it) back|cancel|called off|call it off|"
    r"changed my mind|change of plan|strike that|not any more|no longer|drop (?:it|that|the)|instead|leave it out|"
    r"on second thoughts?|actually no|we are not (?:doing|going)|let us not|does not stand|ignore (?:that|what)|"
    r"not needed|no need|park (?:it|that)|undo|withdraw\w*|i was wrong|other way round|back to)\b"
)
LEFT_OPEN: Final = re.compile(
    r"\b(?:(?:i|we|you|nobody|no one|they) (?:do not|did not|does not|can not|could not|never) (?:know|say|tell|think of)|"
    r"nobody knows|no one knows|no idea|(?:it|that|this) is (?:still )?open|leave (?:it|that) open|unanswered|who knows|"
    r"not sure|open question|find out|still open|do not know|a blank|knows that)\b"
)
HEDGES: Final = re.compile(
    r"\b(?:could|might|maybe|perhaps|what if|suppose|imagine|would be nice|one day|some day|some time|ideally|in theory|"
    r"wonder|possibly|if we (?:had|were|got|ever)|if i (?:had|were)|wish|would love|thinking of|not sure|probably|"
    r"i guess|in an ideal|should we ever|hypothetical\w*|worst case|let us say)\b"
)
JOKES: Final = re.compile(
    r"\b(?:joking|kidding|joke|ha ha|haha|laugh\w*|as if|dream on|in your dreams|on the moon|pigs|seriously though)\b"
)
PAST: Final = re.compile(
    r"\b(?:last (?:week|month|year|time|night|monday|tuesday|wednesday|thursday|friday|meeting|autumn|spring|summer|"
    r"winter)|yesterday|already|ago|back then|used to|was decided|had decided|they decided|head office|earlier this|"
    r"did (?:it|that)|have (?:sent|done|called|written|booked|ordered|finished)|sent it|done that)\b"
)
QUOTES_OTHERS: Final = re.compile(
    r"\b(?:(?!i |we |you )\w+ (?:said|says|told|wrote|asked|claimed|promised)|quote|according to|i quote|was like)\b"
)
QUESTION: Final = re.compile(
    r"^(?:(?:so|and|but|well|okay|right|sorry|now|then|um|uh|er) ){0,3}(?:what|who|when|where|why|how|which|whose|do|does|"
    r"did|is|are|was|were|can|could|should|shall|will|would|have|has|had|may|might) (?!not\b)"
)
