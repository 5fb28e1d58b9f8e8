"""What *it*, *them* or *her* is, put in its place where that is plain (*The labels?* *I'll print them*: print the labels)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from operators.compose import sentence, trim, with_antecedent, without_proposing
from operators.language.gist import NUMBERS, without_loose_end
from operators.language.rules import piece_named
from operators.language.text import STOP, Token, clause_of, expand
from operators.language.words import words_in
from operators.language.work import as_work, without_called

_SINGULAR = words_in("it that this")
_PLURAL = words_in("them those these")
_PERSONAL = words_in("him her")
_PARTICLES = words_in("up out off down over back away in on")
_FOLLOWS = _PARTICLES | words_in("""
    to from for by at with about into again before after until till when if and ready here there directly soon together too
    properly once as today tomorrow tonight
""")
_AFTER_HER = words_in("a an the what whether that how")
_LEADS_TO = words_in("to with for at about up out on off after from in into")
_ARTICLES = words_in("the a an our my your his her their this that these those")
_DEFINITE = _ARTICLES - {"a", "an"}
_IS = words_in("is are was were isn't aren't wasn't weren't")
_INSIDE = words_in("of for by at in on with from to")
_NO_NOUN = re.compile(r".*(?:ed|ing|ly|'s|’s)$")
_LIGHT = words_in("do have make get be leave keep let see say think know")
"""Verbs with which *it* often means what was said, and no thing."""
_LONGEST = 8


def told(text: str, tokens: Sequence[Token], words: Sequence[Token], *, reaches: bool = False) -> str:
    """A task with what it is about: in the place of its pronoun where it is plainly that, else behind it in brackets.

    Args:
        text: the task as a sentence.
        tokens: its words.
        words: what names the thing or the person.
        reaches: the task reaches out to somebody, so that *them* may be one shop.
    """
    place = _pronoun_at(tokens)
    words = _without_asking(words)
    thing = _thing_in(words, tokens[place].low, reaches) if place else ()
    if thing:
        return sentence(_put(tokens, place, thing))
    first = expand(tokens[0].text).split()[0] if tokens else ""
    verb = first not in STOP or first in _LIGHT | _OF_WORK
    return with_matter(text, words) if verb else with_antecedent(text, words)


def _without_asking(words: Sequence[Token]) -> tuple[Token, ...]:
    """*The notes, Ann, could you* without what only asks."""
    last = len(words)
    while last > 1 and words[last - 1].low in _ASKING:
        last -= 1
    return tuple(without_called(list(words[:last])))


_ASKING = words_in("can could would will shall should you i we please")
_OF_WORK = words_in("take put give go come look find hold call set")


def with_matter(text: str, words: Sequence[Token]) -> str:
    """A task, and in brackets behind it what it is about."""
    told_of = without_loose_end(trim(list(words))[:18])
    before = sentence(_small(told_of))
    if not before or not text:
        return sentence(told_of) or text
    return f"{text} ({before[:1].lower() + before[1:] if _opens_small(told_of) else before})"


def work_in(words: Sequence[Token]) -> str:
    """The work that somebody said has to be done (*I think we should paint the hall*), empty where none was named."""
    proposed = without_proposing(words)
    said = clause_of(proposed)
    opened = _SHOULD.match(said.norm)
    rest = list(said.tokens[said.token_at(opened.end()) :]) if opened else as_work(list(proposed))
    changed = len(rest) < len(words) and len(rest) > 1
    fits = changed and _VERB.match(clause_of(tuple(rest)).norm)
    return sentence(without_loose_end(trim(rest)[:18])) if fits else ""


_SHOULD = re.compile(
    r"(?:(?:and|so|then|but|well|okay|yes|maybe|perhaps) )*"
    r"(?:do we (?:need to |have to |want to )?|(?:we|you|they|one|someone) (?:really |just )?"
    r"(?:should|could|must|need to|have to|ought to|had better|might|would better) )(?!not\b|be\b|have\b)"
)
_VERB = re.compile(rf"(?:{piece_named('TASK_VERB')})\b (?!it\b|that\b|this\b|them\b|so\b)")


def _pronoun_at(tokens: Sequence[Token]) -> int:
    """Where the pronoun stands that is the first thing after a task's verb; 0 where none does."""
    place = next((n for n, t in enumerate(tokens[:4]) if t.low in _SINGULAR | _PLURAL | _PERSONAL), 0)
    if not place or any(t.person or t.comma or t.low in _DEFINITE for t in tokens[:place]):
        return 0
    first, found = tokens[0].low, tokens[place].low
    if (first in STOP and first not in _LIGHT) or (place > 1 and tokens[place - 1].low not in _LEADS_TO):
        return 0
    if first in _LIGHT and found in _SINGULAR:
        return 0
    after = tokens[place + 1].low if place + 1 < len(tokens) and not tokens[place].comma else ""
    fits = not after or after in _FOLLOWS or (found in _PERSONAL and after in _AFTER_HER)
    return place if fits else 0


def _thing_in(words: Sequence[Token], pronoun: str, reaches: bool) -> tuple[Token, ...]:
    """The one thing that words name, or of which they only say what it is like; nothing where it does not fit a pronoun."""
    tokens = tuple(trim(list(words)))
    ends = next((n for n, t in enumerate(tokens) if n and t.low in _IS), 0)
    if ends:
        if any(t.low in _ARTICLES or t.person for t in tokens[ends:]) or tokens[0].low not in _ARTICLES:
            return ()
        tokens = tokens[:ends]
    if not tokens or len(tokens) > _LONGEST or any(t.comma or t.ends_clause for t in tokens[:-1]):
        return ()
    if pronoun in _PERSONAL:
        return tokens
    if any(t.person for t in tokens) or not (_with_article(tokens) or _bare(tokens)):
        return ()
    head = next((n for n, t in enumerate(tokens) if n and t.low in _INSIDE), len(tokens)) - 1
    many = tokens[head].low.endswith("s") and not tokens[head].low.endswith(("ss", "us", "is"))
    many = many or (tokens[0].low in NUMBERS and tokens[0].low != "one")
    fits = many or reaches if pronoun in _PLURAL else not many
    return tokens if fits else ()


def _with_article(tokens: Sequence[Token]) -> bool:
    """*The fence by the creek*: an article, and no word of another clause."""
    if tokens[0].low not in _ARTICLES or len(tokens) < 2 or tokens[-1].low.endswith(("'s", "’s")):
        return False
    for before, token in pairwise(tokens):
        inside = token.low in _INSIDE or (token.low in _ARTICLES and before.low in _INSIDE)
        if not inside and (token.low in STOP or token.low in _ARTICLES):
            return False
    return tokens[-1].low not in _HAPPENED


_HAPPENED = words_in("""
    broke broken fell ran went came burst blew froze tore torn lost died stopped failed jammed cracked leaked moved arrived left
    rang wrote said closed opened changed rose dropped
""")
"""What is said of a thing is no name of it (*the pipe burst*)."""


def _bare(tokens: Sequence[Token]) -> bool:
    """*Log rotation*, *three bids*: two or three words that are nothing but a thing."""
    plain = all(t.low not in STOP and not _NO_NOUN.match(t.low) and t.text[1:].isalpha() for t in tokens)
    return 2 <= len(tokens) <= 3 and plain and all(t.text.islower() for t in tokens[1:])


def _put(tokens: Sequence[Token], place: int, thing: tuple[Token, ...]) -> list[Token]:
    """Words with a thing in the place of a pronoun; a long one goes behind a particle (*set up the long table*)."""
    old, rest = tokens[place], list(tokens[place + 1 :])
    before = [*tokens[:place]]
    if rest and len(thing) > 2 and rest[0].low in _PARTICLES and (len(rest) == 1 or rest[1].low in _FOLLOWS):
        old = rest[0]
        before.append(replace(rest.pop(0), comma=False, ends_clause=False))
    inner = [*_small(thing)]
    inner[-1] = replace(inner[-1], comma=old.comma, ends_clause=old.ends_clause, joint="")
    return [*before, *inner, *rest]


def _small(words: Sequence[Token]) -> list[Token]:
    """Words that go on inside a sentence."""
    first = list(words[:1])
    small = [replace(t, text=t.text[:1].lower() + t.text[1:]) if _opens_small(words) else t for t in first]
    return [*small, *words[1:]]


def _opens_small(words: Sequence[Token]) -> bool:
    """Whether the first word has its capital from the start of a sentence alone."""
    if not words or words[0].person or words[0].low in ("i", "i'm", "i'll", "i'd", "i've"):
        return False
    opened = expand(words[0].text).split()[0]
    return opened in STOP or opened in _ARTICLES or opened in NUMBERS or _bare(words)
