"""Writing: texts of items and sentences out of the words that were said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from operators.language.dates import DuePhrase
from operators.language.foreign import in_english
from operators.language.gist import (
    ENDS_AT,
    NUMBERS,
    counts,
    without_loose_end,
    without_remark,
)
from operators.language.text import STOP, Clause, Token, clause_of, clauses_of, expand, words_of
from operators.language.words import words_in
from operators.language.work import as_work, without_called, without_own

MAX_ITEM_WORDS = 32

_LEADING = words_in("""
    just also then now quickly definitely certainly personally please so okay right well and but
    actually maybe yes no fine good simply really still probably that's great
""")
_TRAILING = words_in("""
    okay please yes right then sorry too though actually really now yeah and so but or because
    with for by on at in to the a an of anyway mind alright ok yep honestly is are maybe until
    till before if when which who as i you we they ha haha hahaha hehe lol
""")
_ASIDE = re.compile(
    r"^(?:they|it is|it has|i am|i have|i know|i think|he|she|that is|you know|"
    r"you see|so that|because|if you|okay|yes|"
    r"i mean|but|honestly|no|then i|and then i know|would you|could you|will you|can you|is that|"
    r"(?:is|are|was|were|has|have|does|did) (?:it|they|he|she|there)|"
    r"as you know|leave (?:it|that) (?:to|with)|please|all right|for the love|we are|you are|so)\b"
)
_PRONOUN = words_in("""
    it that this them him her those these one there they he she everything
""")


_LEAD_IN = r"^(?:(?:okay|so|well|then|right|and|but|yes|good|fine|great|now|maybe|perhaps|all right|no) )*"
_PROPOSING = re.compile(
    r"^(?:(?:the |our |new |final |next )?decision: )(?:(?:we |that |to )?(?:decided |agreed )?(?:that |to )?)?|"
    + _LEAD_IN
    + r"(?:i (?:would )?(?:suggest|propose|move)(?: that)?|i (?:would )?say(?: that)? (?=we )|i would say|"
    r"i (?:think|believe|guess|feel)(?: that)?|my (?:suggestion|proposal|idea) (?:is|would be)(?: that| to)?|"
    r"let us(?: just| all| simply| rather| maybe| say| definitely)*|(?:shall|should|why do not) we(?: just)?|"
    r"(?:what|how) about|(?:it|that|this|which) is (?:now )?(?:decided|settled|agreed)(?: then)?(?: that)?|"
    r"we (?:have |all )?(?:decided|agreed)(?: that| to| on)?|agreed) "
)
"""What opens a proposal or its confirmation; the matter follows."""
_OPENING = re.compile(
    _LEAD_IN
    + r"(?:sorry (?:to interrupt|for interrupting|to cut in|for the interruption)|if i may|by the way|"
    r"(?:i (?:have|have got) |just )?(?:a|one|another)(?: more| last)?(?: quick| short)? question"
    r"(?: for (?:you|@|everyone))?) (?:but |and )?"
)
"""What only asks for the floor."""


def without_opening(tokens: Sequence[Token], opening: re.Pattern[str]) -> tuple[Token, ...]:
    """The words after an opening, where they still say something; else all of them."""
    said = clause_of(tuple(tokens))
    match = opening.match(said.norm)
    if match is None or match.end() >= len(said.norm):
        return tuple(tokens)
    rest = said.tokens[said.token_at(match.end()) :]
    return tuple(tokens) if len(rest) < 2 or says_little(rest) else rest


def without_proposing(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Words without *I think*, *let us* and the like before them."""
    return without_opening(tokens, _PROPOSING)


def task_tokens(clause: Clause, span: tuple[int, int] | None, dues: Sequence[DuePhrase]) -> tuple[Token, ...]:
    """Words of the task without time phrases, asides and empty ends."""
    first, last = span or (0, len(clause.norm))
    tokens = list(clause.between(first, last))
    timed = {t.first for due in dues for t in clause.between(due.first, due.last)}
    tokens = without_remark(as_work(without_called(tokens)), tasks=True)
    tokens = trim(_without_times(_until_aside(tokens), timed))
    return tuple(without_loose_end(without_own(tokens)[:MAX_ITEM_WORDS]))


def _closes_idly(tokens: Sequence[Token], idle: frozenset[str]) -> bool:
    """Whether the last word can go: not the *then* of *till then*."""
    last = tokens[-1].low
    return last in idle and not (last == "then" and len(tokens) > 1 and tokens[-2].low in ENDS_AT)


_AFTER_NO = words_in("""
    i we you he she it they that this there the a an let our my your his her their no wait well but not then okay sorry
    please what who how when so and just
""")


def _opens_idly(tokens: Sequence[Token]) -> bool:
    """Whether the first word can go: *no* only where it answers, not where it denies (*no parking on Sunday*)."""
    first = tokens[0]
    if first.low not in _LEADING or first.low != "no" or len(tokens) == 1:
        return first.low in _LEADING
    return first.comma or first.ends_clause or expand(tokens[1].text).split()[0] in _AFTER_NO


def _without_times(tokens: list[Token], timed: set[int]) -> list[Token]:
    """Words without those of times; a comma behind these stays behind what is left."""
    kept: list[Token] = []
    for token in tokens:
        if token.first not in timed:
            kept.append(token)
        elif token.comma and kept:
            kept[-1] = replace(kept[-1], comma=True)
    return kept


def _until_aside(tokens: list[Token]) -> list[Token]:
    """Cut where the speaker turns to a remark after a comma (*..., they like me there*)."""
    for place, token in enumerate(tokens[:-1]):
        if (
            token.comma
            and place >= 2
            and not counts(tokens[place + 1 :])
            and _ASIDE.match(" ".join(expand(t.text) for t in tokens[place + 1 : place + 5]))
        ):
            return tokens[: place + 1]
    return tokens


def trim(tokens: list[Token]) -> list[Token]:
    while tokens and (_opens_idly(tokens) or (tokens[0].person and len(tokens) > 1 and tokens[0].comma)):
        tokens = tokens[1:]
    while tokens and _closes_idly(tokens, _TRAILING):
        tokens = tokens[:-1]
    if len(tokens) > 2 and tokens[-1].person and tokens[-2].comma:
        tokens = tokens[:-1]
    return tokens


def sentence(tokens: Iterable[Token]) -> str:
    """Tokens as a sentence: commas where they were, first letter large."""
    text = ""
    tokens = list(tokens)
    for place, token in enumerate(tokens):
        comma = token.comma and place + 1 < len(tokens)
        stop = token.ends_clause and place + 1 < len(tokens) and not comma
        written = token.joint and place + 1 < len(tokens) and tokens[place + 1].first <= token.last + 4
        word = f"{token.before}{token.text}{token.after}"
        text += word + ("," if comma or stop else "") + (token.joint if written else " ")
    text = re.sub(r"\bi\b(?=['’ ]|$)", "I", text).strip(" ,;")
    return text[:1].upper() + text[1:]


def says_little(tokens: Sequence[Token]) -> bool:
    """Whether the words need those before them to be understood (*do that*, *ask them*)."""
    content = [t for t in tokens if not t.person and any(w not in STOP for w in expand(t.text).split())]
    if any(t.low in _PRONOUN for t in tokens):
        return len(content) <= 1
    return len(content) == 0


def question_text(clause: Clause, span: tuple[int, int] | None) -> str:
    """A question as it was asked, with a question mark."""
    first, last = span or (0, len(clause.norm))
    tokens = list(without_opening(clause.between(first, last), _OPENING))[: MAX_ITEM_WORDS + 8]
    while len(tokens) > 3 and _opens_idly(tokens):
        tokens = tokens[1:]
    return sentence(tokens).rstrip("?.! ") + "?" if tokens else ""


def with_antecedent(text: str, antecedent: Sequence[Token]) -> str:
    """An item that needs the words before it: both, the matter first; the matter alone where that says all."""
    before = sentence(without_loose_end(trim(list(antecedent))[:18]))
    if not before or not text:
        return before or text
    return f"{before}: {inside(text)}"


def inside(text: str, names: frozenset[str] = frozenset()) -> str:
    """A sentence as it goes on after a colon; names of people keep their capital."""
    opening = text.split(" ", 1)[0]
    word = opening.rstrip(",.:")
    person = word.removesuffix("'s").removesuffix("’s").lower()
    if person in names or opening.endswith(":"):
        return text
    kept = word in ("I", "I'll", "I'm") or word.lower() in _CAPITALS or not word[1:].islower()
    return text if (kept and len(word) > 1) or word == "I" else text[:1].lower() + text[1:]


_CAPITALS = words_in("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december christmas easter
""")


def statement_tokens(clause: Clause) -> tuple[Token, ...]:
    """Words of a decision: all of the clause but what opens and closes a turn, and *I suggest* and the like."""
    tokens = list(without_opening(clause.tokens, _PROPOSING))
    while tokens and _opens_idly(tokens):
        tokens = tokens[1:]
    while tokens and _closes_idly(tokens, _CLOSERS):
        tokens = tokens[:-1]
    return tuple(without_loose_end(without_remark(tokens)[:MAX_ITEM_WORDS]))


_CLOSERS = words_in("okay then right yes yeah please sorry so and but mind alright ok")


@lru_cache(maxsize=8192)
def clean(text: str, limit: int = 30) -> str:
    """An utterance as sentences of the summary: fillers and asides out, at most ``limit`` words.

    Kept, since a summary that is made anew again and again weighs mostly what it weighed before.
    """
    written = text.split()
    if not in_english([w.casefold().strip('.,;:?!"()') for w in written]):
        # The words of other languages are nobody's fillers.
        return " ".join(written[:limit]) + (" …" if len(written) > limit else "")
    out: list[str] = []
    room = limit
    sentences = re.split(r"(?<=[.?!…])\s+", text)
    if len(words_of(text)) < sum(len(words_of(s)) for s in sentences):
        sentences = [text]  # a slip is put right in the next sentence
    for said in sentences:
        words = [t for clause in clauses_of(said) for t in clause.tokens]
        if words and _answers(words, out):
            out.append(sentence(words) + ".")
            room -= len(words)
            continue
        words = without_greeting(words)
        if words:
            words = list(without_opening(without_opening(words, _OPENING), _PROPOSING))
        tokens = trim(words)
        if len(tokens) < 4:
            continue
        if len(tokens) > room:
            if not out:
                out.append(sentence(tokens[:limit]) + " …")
            break
        out.append(sentence(tokens) + ("?" if said.rstrip().endswith("?") else "."))
        room -= len(tokens)
    if out:
        return " ".join(out)
    body = sentence([t for clause in clauses_of(text) for t in clause.tokens][:limit])
    return body + "." if body else ""


_GREETING = re.compile(
    r"(?:(?:oh|okay|right|well|and|so|yes|no|great) )*(?:thanks(?! to)|thank you|(?:cheers|hi|hey)(?= |$)(?! (?:cost|vest))|"
    r"hello|"
    r"(?:morning|welcome)(?= (?:all|everyone|everybody|back|to you|@)|$)|"
    r"good (?:morning|afternoon|evening)|good ?bye|bye|congratulations|happy birthday|you are welcome|"
    r"see you(?! (?:on )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday))|"
    r"loud and clear|(?:it is )?(?:nice|good|great|lovely) to (?:see|meet|have) you|how (?:are you|was your)|"
    r"(?:can|could) (?:you|everyone|everybody|you all) (?:all )?(?:hear|see) (?:me|us)|"
    r"(?:have|enjoy) (?:a|your|the) (?:nice |good |great |lovely )*(?:day|weekend|evening|holidays?))\b"
)
"""What opens greetings and thanks."""
_TALK_AFTER = 6
"""Words from which what follows a greeting is a sentence of the matter."""


def without_greeting(words: list[Token]) -> list[Token]:
    """Words of a sentence without the greeting or thanks that open it; none where little more is said."""
    if not words or _GREETING.match(clause_of(tuple(words)).norm) is None:
        return words
    place = next((n for n, t in enumerate(words) if t.comma), None)
    rest = words if place is None else words[place + 1 :]
    least = _TALK_AFTER if place is not None else _TALK_AFTER + 4
    counted = any(t.low[:1].isdigit() or t.low in NUMBERS for t in rest)
    return rest if len(rest) >= least or (counted and len(rest) >= 4) else []


def _answers(words: Sequence[Token], told: Sequence[str]) -> bool:
    """Whether a short sentence is an answer that what was told before it needs (*We take the bus. No.*)."""
    if not told or len(words) > 3:
        return False
    opened = expand(words[0].text).split()[0]
    denies = opened in ("no", "not", "never") or any(
        w == "not" for t in words for w in expand(t.text).split()
    )
    return denies or (opened == "yes" and told[-1].endswith("?"))
