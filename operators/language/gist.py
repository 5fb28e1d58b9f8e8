"""What of a sentence is the task or the matter: without who takes it on, remarks behind a comma and loose ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from operators.language import slips
from operators.language.text import Token, clause_of, stem, stems
from operators.language.words import words_in

NUMBERS = slips.NUMBERS | words_in("million dozen couple few")
TIMES = (
    slips.DAYS
    | slips.MONTHS
    | slips.RELATIVE
    | slips.ORDINALS
    | words_in("yesterday morning afternoon evening night noon minute hour day week weekend month year")
)
_MEASURES = words_in(
    "euro pound dollar penny pence cent per percent kilo litre liter metre meter mile o'clock time number"
)
_MOODS = words_in("""
    honestly absolutely obviously frankly perfect brilliant cool true exactly apparently fair enough alright mrs mr
    anyway though hello hi morning quite indeed course glad happy together later soon
""")
_NO_MATTER = frozenset(stem(w) for w in NUMBERS | TIMES | _MEASURES | _MOODS)


def names_matter(tokens: Sequence[Token]) -> bool:
    """Whether words name something to work on: no mere quantity or time, and more than yes and *that's what*."""
    found = stems(clause_of(tuple(t for t in tokens if not t.person)).norm) - _NO_MATTER
    return any(not f[:1].isdigit() and f != "'s" for f in found)


_OF_MYSELF = (
    r"(?:because )?i (?:know|owe|have|had|was|am|did|do not|think|guess|suppose|love|like|hate|live|work|"
    r"promised|said|told|rang|used)\b"
)
_OF_OTHERS = (
    r"(?:because )?(?:he|she|they|it|that|this|@|~) (?:is|are|was|were|has|have|had|did|does|said|told|knows?|owes?|likes?|"
    r"costs?|works?|closes?|opens?|can not|will not)\b(?! to\b)"
)
_ON_ANOTHER_DAY = r"(?:on|at|in) (?:\S+ ){1,3}(?:@|~|he|she|they|we|i|there) (?:is|are|am|has|have|was|were|can not|will not)\b"
_OF_THINGS = (
    r"(?:the|my|our|his|her|their) \S+ 's (?:shut|closed|open|away|off|out|gone|full|broken|down|ill|late|busy|empty)\b|"
    r"(?:the|my|our|his|her|their) (?!what\b|who\b)\S+ (?:is|are|was|were|has|have|had)\b(?! to\b)"
)
_REMARK = re.compile(rf"(?:{_OF_MYSELF}|{_OF_OTHERS}|{_ON_ANOTHER_DAY})")
_REMARK_ON_TASK = re.compile(rf"(?:{_OF_MYSELF}|{_OF_OTHERS}|{_ON_ANOTHER_DAY}|{_OF_THINGS})")
"""A sentence of its own behind a comma, about something else (*ring them, I know the officer*)."""
_SETS_SCENE = words_in(
    "if when unless once as on in at for from with after before by since because about whether who what"
)
_ARTICLES = words_in("the our my your this that these those a an his her their")


def counts(tokens: Sequence[Token]) -> bool:
    """Whether words up to the next comma say how many or how much."""
    ends = next((n + 1 for n, t in enumerate(tokens) if t.comma), len(tokens))
    return any(t.low in NUMBERS - {"one"} or t.low[:1].isdigit() for t in tokens[:ends])


def without_remark(tokens: list[Token], tasks: bool = False) -> list[Token]:
    """Words without what a speaker remarks behind a comma; how many of something, and more work, stay."""
    for place, token in enumerate(tokens[:-2]):
        if not token.comma or place < 1:
            continue
        rest = tokens[place + 1 :]
        if (_REMARK_ON_TASK if tasks else _REMARK).match(clause_of(tuple(rest)).norm) is None:
            continue
        if not tasks and _names_alone(tokens[: place + 1]):
            continue
        if counts(rest) or (place < 3 and tokens[0].low in _TELLING):
            continue
        ends = next((n + 1 for n, t in enumerate(rest[:-1]) if t.comma), len(rest))
        more = rest[ends:]
        goes_on = (
            len(more) > 2 and more[0].low in ("and", "then", "but") and more[1].low not in _SUBJECTS
        ) or (len(more) > 1 and more[0].low in ("not", "so") and more[1].low not in _SUBJECTS)
        return tokens[: place + 1] + (more if goes_on else [])
    return tokens


_TELLING = words_in("tell say warn remind write inform")
"""What follows behind a comma is what is told (*Tell Sam, the van is broken*)."""
_SUBJECTS = words_in("i we you he she they it that this there")


def _names_alone(tokens: Sequence[Token]) -> bool:
    """Words before a comma that are no statement: a scene, or what the rest is about (*the van, it is sold*)."""
    if tokens[0].low in _SETS_SCENE:
        return True
    return len(tokens) <= 4 and tokens[0].low in _ARTICLES and names_matter(tokens)


_LOOSE = words_in("till until since from because and or but so the a an of")
"""Words that no sentence ends with."""
ENDS_AT = words_in("till until by since before")


def without_loose_end(tokens: list[Token]) -> list[Token]:
    """Words without a last one that leans on more (*stays in the fridge till*)."""
    while len(tokens) > 1 and tokens[-1].low in _LOOSE:
        tokens = tokens[:-1]
    return tokens
