"""Work as it is written down, however it was asked for or offered: *Could somebody ring them?* is *Ring them*."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from operators.language.rules import piece_named
from operators.language.text import Token, clause_of
from operators.language.words import words_in

_OPENS = r"(?:(?:and|so|then|okay|fine|well|yes|but|now|right|good|sure|no|great|perfect|also|or|maybe|perhaps|actually) )*"
_MANNER = r"(?:(?:just|also|gladly|happily|certainly|definitely|probably|maybe|perhaps|please|easily|then|possibly|quickly) )*"
_NO_WORK = r"(?!(?:not|never|be|only|see|have|hear|like|say|imagine|believe|mind|know|think|guess|say|agree|rather)\b)"
_ANYBODY = r"(?:someone|anyone|one of (?:us|you)|(?:any|some) of (?:us|you))"
_I_DO = (
    r"i (?:will|can|could|shall|must|might|should|am going to|have to|need to|want to|had better) "
    r"(?:(?:just|also|gladly|happily|certainly|definitely|probably|maybe|easily|then) )*(?!not\b|never\b|be\b|only\b|see\b)"
)
_ASKED = (
    rf"(?:can|could|would|will|might) (?:{_ANYBODY}|you|@|~) {_MANNER}{_NO_WORK}",
    rf"(?:shall|should) (?:i|we) {_MANNER}{_NO_WORK}",
    rf"(?:can|could|may) i {_MANNER}{_NO_WORK}",
    rf"(?:(?:do|would) you )?(?:want|need|like) me to {_MANNER}{_NO_WORK}",
    rf"{_ANYBODY} (?:should|could|must|has to|needs to|ought to|has got to|will have to|had better) {_MANNER}{_NO_WORK}",
    rf"{_ANYBODY} {_MANNER}(?=(?:{piece_named('TASK_VERB')})\b)",
    rf"who (?:will|can|could|would|is going to|is able to|wants to|would like to|has time to) {_MANNER}{_NO_WORK}",
)
_TO_DO = re.compile(rf"{_OPENS}(?:{'|'.join((_I_DO, *_ASKED))})")
"""How somebody takes on work, offers it or asks for it; the work follows."""
_WHO_DOES = re.compile(rf"{_OPENS}who (?:is (?P<doing>[a-z]+ing)|(?P<does>[a-z]+s)) ")
_VERB = re.compile(rf"(?:{piece_named('TASK_VERB')})")
_LEAST = 2
"""Words that are work at least: *can you* before one alone mostly only asks."""


def as_work(tokens: list[Token]) -> list[Token]:
    """*I'll do the booking* and *who does the booking* as the task that they are."""
    fronted = _fronted(tokens)
    if fronted:
        return fronted
    said = clause_of(tuple(tokens))
    match = _TO_DO.match(said.norm)
    if match is not None and match.end() < len(said.norm):
        return tokens[said.token_at(match.end()) :]
    match = _WHO_DOES.match(said.norm)
    if match is None:
        return tokens
    kind = "doing" if match["doing"] else "does"
    at = said.token_at(match.start(kind))
    verb = _plain_verb(match[kind]) if len(tokens) - at >= _LEAST else ""
    return [replace(tokens[at], text=verb, low=verb), *tokens[at + 1 :]] if verb else tokens


def _plain_verb(word: str) -> str:
    """A verb of work as it stands alone (*checks*, *picking*), empty where it is none."""
    if word.endswith("ing"):
        forms = (word[:-3], word[:-3] + "e", word[:-4] if word[-4:-3] == word[-5:-4] else "")
    elif word.endswith("s"):
        forms = (word[:-3] + "y" if word.endswith("ies") else "", word[:-1], word[:-2])
    else:
        return ""
    return next((form for form in forms if form and _VERB.fullmatch(form)), "")


_ARTICLES = words_in("the our my your this that these those his her their")
_ASKS = words_in("can could will would did")
_MEANT = words_in("it them that this those these")
_LONGEST = 7


def _fronted(tokens: list[Token]) -> list[Token]:
    """*The key, could you get it copied* as *get the key copied*; nothing where the thing is not said first."""
    ends = next((n for n, t in enumerate(tokens[:_LONGEST]) if t.comma), 0)
    asked = tokens[ends + 1 : ends + 3]
    if (
        not ends
        or tokens[0].low not in _ARTICLES
        or [t.low for t in asked[1:]] != ["you"]
        or asked[0].low not in _ASKS
    ):
        return []
    rest = tokens[ends + 3 :]
    if len(rest) < _LEAST or rest[1].low not in _MEANT or not _VERB.fullmatch(rest[0].low):
        return []
    last = replace(tokens[ends], comma=rest[1].comma, ends_clause=rest[1].ends_clause)
    first = replace(tokens[0], text=tokens[0].low)
    return [rest[0], first, *tokens[1:ends], last, *rest[2:]]


def without_called(tokens: list[Token]) -> list[Token]:
    """Words without the names of those who are spoken to, set off by commas (*clean it, Pip, before eight*)."""
    while len(tokens) > 1 and tokens[0].person and tokens[0].comma:
        tokens = tokens[1:]
    if len(tokens) > 2 and tokens[-1].person and tokens[-2].comma:
        tokens = tokens[:-1]
    kept: list[Token] = []
    for place, token in enumerate(tokens):
        if kept and place + 1 < len(tokens) and _is_called(tokens, place):
            goes_on = tokens[place + 1].low in _GOES_ON and kept[-1].low not in _GOES_ON
            kept[-1] = replace(kept[-1], comma=not goes_on)
            continue
        kept.append(token)
    return kept


_GOES_ON = words_in("""
    to from for by on at in with about into up out off until till before after today tomorrow tonight this next when if
    please so and
""")
"""Words before which no comma stands but for the name."""


def _is_called(tokens: Sequence[Token], place: int) -> bool:
    """Whether an attendee's name stands between commas and is no part of a list."""
    token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
    listed = before.person or after.person or after.low in ("and", "or")
    return token.person == "@" and token.comma and before.comma and not listed


_OWN = words_in("myself yourself ourselves yourselves himself herself themselves")
_OBJECT_FOLLOWS = words_in("by for to of with at about from like as than")


def without_own(tokens: list[Token]) -> list[Token]:
    """*Send it myself* without its last word, which is no object there (*introduce myself* stays)."""
    own = len(tokens) > 2 and tokens[-1].low in _OWN and tokens[-2].low not in _OBJECT_FOLLOWS
    return tokens[:-1] if own else tokens
