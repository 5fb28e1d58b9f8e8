"""Words of an utterance: tokens with their place, disfluencies removed, cut into clauses.

Recognisers write lower case without punctuation, people write commas; both must lead to the same
clauses, so cues never look at punctuation and clauses are also cut at connectives.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from operators.language.digits import in_a_row, means_something
from operators.language.foreign import in_english
from operators.language.slips import without_slips
from operators.language.words import words_in

MAX_TOKENS = 2000
"""Words read of one utterance; a longer one is a machine's fault and is cut here."""
MAX_CHARACTERS = 20 * MAX_TOKENS

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u093c\u093e-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
"""Marks that stand over, under or through the letter before them and part no word."""
_LETTER = rf"[^\W_][{_MARKS}]*"
_TOKEN = re.compile(rf"(?:{_LETTER})+(?:(?:['’.,]|(?<=\d):(?=\d\d))(?:{_LETTER})+)*(?:-(?![^\W_]))?")
_STRUCK = re.compile(
    r"(?<=[A-Za-z0-9])[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
"""Marks on a letter that together are no letter of their own, as whoever strikes words through writes them."""
_SIGN_BEFORE = re.compile(r"(?:^|(?<=[\s(\[,;\"“]))[-+−±~]?[$€£¥#@]?$")
"""A sign that belongs to the word after it: money, minus, number."""
_SIGN_AFTER = re.compile(r"^(?:\+\+|[°º][CF]?\b|[%‰€$£¥#+])(?![^\W_])")
"""A sign that belongs to the word before it: per cent, money, *C++*."""
_JOINTS = ("-", "/", "&", "@", "+", "_")
"""What two words can be written in one with."""
_BREAK = re.compile(r"[.?!;:…]|—|–|--|, and | - ")
_FILLERS = words_in("""
    um uh er erm eh hm hmm mm mhm uhm ah oh ugh huh
""")
_FILLER_PAIRS = frozenset({("you", "know"), ("i", "mean"), ("kind", "of"), ("sort", "of")})
_SPLIT = {
    "can't": "can not",
    "cannot": "can not",
    "cant": "can not",
    "won't": "will not",
    "wont": "will not",
    "dont": "do not",
    "doesnt": "does not",
    "didnt": "did not",
    "isnt": "is not",
    "im": "i am",
    "ive": "i have",
    "thats": "that is",
    "whats": "what is",
    "whos": "who is",
    "hes": "he is",
    "shes": "she is",
    "theres": "there is",
    "youre": "you are",
    "theyre": "they are",
    "youve": "you have",
    "weve": "we have",
    "theyve": "they have",
    "youll": "you will",
    "theyll": "they will",
    "itll": "it will",
    "thatll": "that will",
    "wasnt": "was not",
    "werent": "were not",
    "havent": "have not",
    "hasnt": "has not",
    "wouldnt": "would not",
    "couldnt": "could not",
    "shouldnt": "should not",
    "lets": "let us",
    "let's": "let us",
    "gonna": "going to",
    "gotta": "got to",
    "wanna": "want to",
    "dunno": "do not know",
    "shan't": "shall not",
    "ain't": "is not",
    "ok": "okay",
    "kay": "okay",
    "'cause": "because",
    "cos": "because",
    "cause": "because",
    "everybody": "everyone",
    "somebody": "someone",
    "nobody": "no one",
    "anybody": "anyone",
    "yep": "yes",
    "yeah": "yes",
    "yup": "yes",
    "aye": "yes",
    "nope": "no",
    "til": "till",
    "you'd": "you would",
}
_ENDINGS = {"'ll": "will", "'m": "am", "'re": "are", "'ve": "have", "'d": "would"}
_IS_AFTER = words_in("""
    i it that there here he she who what where when how why this one everything
""")
STOP = words_in("""
    a an and are as at be by for from has have in is it its of on or that the their to was were
    will with i me my mine we us our you your he him his she her they them this these those
    there here do does did done not no yes okay doing lovely great nice so then than but if because just also very
    really too well right now up out off down over can could would should shall may might must
    am been being had having get got go goes going come one thing things what which who whom
    whose when where why how all any some someone anyone everyone no none ones let about into
    onto like again still already only even please thank thanks sorry good fine think know say
    said mean want need maybe bit lot much many more most other another back see look sure
    something anything nothing way actually probably
""")
"""Words that say nothing about what a sentence is about."""
_SUBJECT = (
    r"(?:i|you|he|she|they|we|it|that|this|there|let us|who|what|where|when|why|how|"
    r"can|could|would|will|do|does|"
    r"please|everyone|someone|no one|all of|is|are|no|then)"
)
_CUT = re.compile(
    r"(?<= )(?:(?:so|and|but|because|(?<!till )(?<!until )(?<!by )then|only|okay|right|well|yes|or)"
    rf"(?= {_SUBJECT} )|so(?= (?:the|my|our|your) ))"
)

_RESOLVED = re.compile(
    r"(?<= )we (?:have |all |now )*(?:decided|agreed|resolved) (?:not to|to|on|that|against) "
)
_CONDITION = re.compile(
    r"(?:and |but |so |or )?(?:if|when|unless|whether|until|because|although|though|unlike)\b"
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word as it was written: ``first``/``last`` are its character span in the utterance."""

    text: str
    low: str
    first: int
    last: int
    ends_clause: bool
    comma: bool
    person: str = ""
    """``@`` for an attendee, ``~`` for a name of somebody else; cues see this instead of the name."""
    joint: str = ""
    """What stands between this word and the next where they are written in one (*twenty-sixth*, *R&D*)."""
    before: str = ""
    """Signs written in one with the word, before it (*$*, *#*)."""
    after: str = ""
    """Signs written in one with the word, after it (*%*, *++*)."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Words that belong together; ``norm`` is what cues read (lower case, contractions opened)."""

    tokens: tuple[Token, ...]
    norm: str
    starts: tuple[int, ...]
    question_mark: bool
    stems: frozenset[str]

    def token_at(self, offset: int) -> int:
        """Index of the token that holds character ``offset`` of ``norm``."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def between(self, first: int, last: int) -> tuple[Token, ...]:
        """Tokens whose words lie in characters ``first`` to ``last`` of ``norm``."""
        if last <= first:
            return ()
        return self.tokens[self.token_at(first) : self.token_at(last - 1) + 1]


@lru_cache(maxsize=65536)
def expand(word: str) -> str:
    """Lower-case word with its contraction opened: ``I'll`` gives ``i will``."""
    low = word.lower().replace("’", "'").rstrip("-")
    if low in _SPLIT:
        return _SPLIT[low]
    if low.endswith("n't"):
        return low[:-3] + " not"
    for ending, full in _ENDINGS.items():
        if low.endswith(ending) and len(low) > len(ending):
            return f"{low[: -len(ending)]} {full}"
    if low.endswith("'s"):
        if low[:-2] in ("everybody", "somebody", "nobody", "anybody"):
            return f"{_SPLIT[low[:-2]]} 's"
        return f"{low[:-2]} is" if low[:-2] in _IS_AFTER else f"{low[:-2]} 's"
    return low


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Crude stem, enough to see that *letters* and *letter*, *hiring* and *hire* are one matter."""
    low = word.lower().replace("’", "'")
    if low[:1].isdigit():
        return low.replace(",", "")
    if low.endswith("'s"):
        low = low[:-2]
    for ending in ("ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y"):
        if low.endswith(ending) and len(low) - len(ending) >= 3:
            low = low[: -len(ending)]
            break
    if len(low) > 3 and low[-1] == low[-2]:
        low = low[:-1]
    return low


def stems(words: str) -> frozenset[str]:
    """Stems of the content words of opened text."""
    return frozenset(stem(w) for w in words.split() if w not in STOP and len(w) > 1)


_MARKER = re.compile(
    r"(?:^|[.?!;\n] *)(?:(?:the |our |new |final |next )?(?:decision|action(?: item| point)?|to-?do|task))$",
    re.IGNORECASE,
)
"""A heading word said or written before an item, with a colon (*Decision: ...*)."""


def _raw_tokens(text: str) -> list[Token]:
    found: list[Token] = []
    text = text[:MAX_CHARACTERS]
    previous_end = 0
    for match in _TOKEN.finditer(text):
        if len(found) >= MAX_TOKENS:
            break
        gap = text[previous_end : match.start()]
        gap, before = _signed_before(gap, not found)
        if found and gap != " ":
            found[-1], gap = _followed(found[-1], gap)
        if found and gap != " ":
            if gap.strip() == ":" and _MARKER.search(text[max(0, previous_end - 24) : previous_end]):
                found[-1], gap = replace(found[-1], after=":"), " "
            range_ = gap == "–" and found[-1].text[-1].isdigit() and match.group()[0].isdigit()
            whole = gap in _JOINTS or range_
            found[-1] = replace(
                found[-1],
                ends_clause=not whole and bool(_BREAK.search(gap)),
                comma="," in gap,
                joint=gap if whole else "",
            )
        word = match.group()
        if not word.isascii():
            word = _STRUCK.sub("", unicodedata.normalize("NFC", word))
        low = word.lower().replace("’", "'")
        found.append(Token(word, low, match.start(), match.end(), False, False, before=before))
        previous_end = match.end()
    if found:
        last, _ = _followed(found[-1], text[previous_end:])
        found[-1] = replace(last, ends_clause=True, comma=False)
    return found


def _signed_before(gap: str, opens: bool) -> tuple[str, str]:
    """What stands before a word, cut into what divides it from the one before and its own signs."""
    match = _SIGN_BEFORE.search(gap)
    sign = match.group() if match is not None else ""
    return (gap[: len(gap) - len(sign)], sign) if opens or gap != sign else (gap, "")


def _followed(token: Token, gap: str) -> tuple[Token, str]:
    """A word with the signs that follow it, and what is left of the gap."""
    match = _SIGN_AFTER.match(gap)
    if match is None:
        return token, gap
    return replace(token, after=match.group()), gap[match.end() :]


def _without_fillers(tokens: list[Token]) -> list[Token]:
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        cut_off = token.text.endswith("-")
        if cut_off or (token.low in _FILLERS and not means_something(tokens, index)):
            if token.ends_clause and kept and not cut_off:
                kept[-1] = _closing(kept[-1])
            index += 1
            continue
        kept.append(token)
        index += 1
    return kept


def _without_pairs(tokens: list[Token]) -> list[Token]:
    """Words without *you know* and *I mean* where they stand apart."""
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        pair = (token.low, tokens[index + 1].low if index + 1 < len(tokens) else "")
        if (
            pair in _FILLER_PAIRS
            and (token.low in ("i", "you"))
            and (index == 0 or tokens[index - 1].comma or tokens[index + 1].comma)
        ):
            index += 2
            continue
        kept.append(token)
        index += 1
    return kept


def _closing(token: Token) -> Token:
    return replace(token, ends_clause=True, comma=False)


_NAMED = ("will", "may")


def _without_repeats(tokens: list[Token]) -> list[Token]:
    """Say a word or up to four words twice in a row and the second time counts."""
    kept: list[Token] = []
    for place, token in enumerate(tokens):
        kept.append(token)
        for width in (4, 3, 2, 1):
            if len(kept) < 2 * width:
                continue
            if kept[-1].low == kept[-1 - width].low and in_a_row(tokens, place):
                continue  # *two two four* is no stutter
            left, right = kept[-2 * width : -width], kept[-width:]
            if left[-1].ends_clause or (width == 1 and left[0].low in ("no", "yes", "very", "that")):
                continue
            if width == 1 and left[0].low in _NAMED and left[0].text.istitle() and right[0].text.islower():
                continue  # *Will will*
            if [t.low for t in left] == [t.low for t in right]:
                del kept[-2 * width : -width]
                break
    return kept


_SHORTENED = {"ill": "i'll", "id": "i'd"}
"""What recognisers without apostrophes write for *I will* and *I would*; both are words of their own too."""
_NOT_SHORTENED = words_in("""
    is are was were am be been being get gets got getting feel feels felt feeling fall falls fell falling taken look
    looks looked seem seems seemed very too quite really seriously terribly mentally the an a your my his her their our
    its this that no any by user photo student i he she it you we they
""")
_NOT_AFTER_I = words_in("""
    and or but with at in on for of to from today yesterday now because since is are was were people card cards number
    numbers health patients badge badges
""")


def _with_apostrophes(tokens: list[Token]) -> list[Token]:
    """*Ill ring him* is *I'll ring him*; *he fell ill* and *the id card* are what they are.

    Only what cues read changes; the word stays as it was written.
    """
    out: list[Token] = []
    for place, token in enumerate(tokens):
        meant = _SHORTENED.get(token.low)
        if meant is not None and token.text != "ID" and not token.ends_clause and place + 1 < len(tokens):
            before = tokens[place - 1].low if place and not tokens[place - 1].ends_clause else ""
            described = before in _NOT_SHORTENED or before.endswith(("'s", "'m", "'re"))
            if not described and not token.comma and tokens[place + 1].low not in _NOT_AFTER_I:
                token = replace(token, low=meant)
        out.append(token)
    return out


def words_of(text: str) -> list[Token]:
    """Words of an utterance without fillers, cut-off words, stutters and what is put right at once."""
    raw = _raw_tokens(text)
    if not in_english([t.low for t in raw]):
        return raw  # *um* and *er* are words elsewhere
    said = without_slips(_without_repeats(_without_fillers(_with_apostrophes(raw))))
    return _without_repeats(_without_pairs(said))


def clause_of(tokens: tuple[Token, ...], question_mark: bool = False) -> Clause:
    """Build the clause of some tokens."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for token in tokens:
        opened = (
            token.person + (" 's" if token.low.endswith("'s") else "") if token.person else expand(token.low)
        )
        if token.after == ":":
            opened += ":"
        starts.append(length)
        parts.append(opened)
        length += len(opened) + 1
    norm = " ".join(parts)
    return Clause(tokens, norm, tuple(starts), question_mark, stems(norm))


def clauses_of(text: str, tokens: list[Token] | None = None) -> tuple[Clause, ...]:
    """Clauses of an utterance, in order; ``tokens`` are its words where they were read before.

    Cut at sentence punctuation, and at a connective that is followed by a new subject.
    """
    tokens = words_of(text) if tokens is None else tokens
    out: list[Clause] = []
    begin = 0
    for index, token in enumerate(tokens):
        if not token.ends_clause and index + 1 < len(tokens):
            continue
        sentence = tuple(tokens[begin : index + 1])
        begin = index + 1
        asked = "?" in text[token.last : token.last + 3]
        out.extend(_cut(clause_of(sentence), asked))
    return tuple(out)


def _resolutions(sentence: Clause) -> Iterator[int]:
    """Where, after a comma, is said what was decided (*next point, the van, we have decided to sell it*).

    Recognisers put a comma for many a full stop.
    """
    for match in _RESOLVED.finditer(sentence.norm):
        index = sentence.token_at(match.start())
        if index and sentence.tokens[index - 1].comma and not _CONDITION.match(sentence.norm):
            yield index


_DOES = (
    r"(?:takes|does|brings|gets|writes|sends|makes|prepares|organi[sz]es|books|calls|rings|checks|covers|handles|draws|"
    r"orders|buys|collects|fetches|picks|prints|counts|sorts|chases|runs|paints|fixes|cleans|updates|tells|asks)\b"
)
_IS_TO = r"(?:will|shall|should|is going to|are going to|has to|needs to|is to)\b(?! not\b| never\b| be\b)"
_I_WILL = r"i (?:will|shall|am going to)\b(?! not\b| never\b| be\b)"
_WOULD_YOU = r"(?:can|could|would|will) you\b"
_PERSONS = rf"[@~](?: and [@~])? (?:{_IS_TO}|{_DOES}(?! that\b)|please\b|{_WOULD_YOU})"
_SHARED = re.compile(rf"(?<= )(?:(?:and|then|while|but|so) )*(?:{_PERSONS}|{_I_WILL})")
"""Where, after one task, the next is handed to somebody (*I'll call the bank, Carl will ..., Dora writes ...*)."""
_TASK_BEFORE = re.compile(rf"(?:^| )(?:{_PERSONS}|{_I_WILL}|{_WOULD_YOU}|please\b)")
_LEANS = words_in("""
    that if what when where who whom which whether think thinks hope guess know knows say says said sure because until
    till as believe suppose whatever whoever how why before after once unless the a than like see ask asks tell tells
""")
"""Words after which somebody's work is part of the sentence before (*see what Pete will do*)."""


def _handed_out(sentence: Clause) -> Iterator[int]:
    """Where the next of several tasks in one sentence starts."""
    begun = 0
    for match in _SHARED.finditer(sentence.norm):
        index = sentence.token_at(match.start())
        before = sentence.tokens[index - 1]
        said = sentence.norm[sentence.starts[begun] : match.start()]
        if index - begun < 3 or before.low in _LEANS or not _TASK_BEFORE.search(said):
            continue
        begun = index
        yield index


def _cut(sentence: Clause, asked: bool) -> list[Clause]:
    borders = [0]
    for match in _CUT.finditer(f"{sentence.norm} "):
        index = sentence.token_at(match.start())
        if index - borders[-1] >= 3:
            borders.append(index)
    borders = sorted({*borders, *_resolutions(sentence), *_handed_out(sentence)})
    borders.append(len(sentence.tokens))
    if len(borders) == 2:
        return [Clause(sentence.tokens, sentence.norm, sentence.starts, asked, sentence.stems)]
    return [
        clause_of(sentence.tokens[left:right], asked and right == len(sentence.tokens))
        for left, right in pairwise(borders)
    ]
