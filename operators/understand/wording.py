"""What an item's words say: those before them where they lean on something, and on what condition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from operators.compose import says_little, sentence, task_tokens, with_antecedent
from operators.language.gist import names_matter
from operators.language.rules import piece_named
from operators.language.text import STOP, Token, clause_of, stems
from operators.language.words import words_in
from operators.understand.hear import Heard, HeardClause
from operators.understand.joined import settled_text
from operators.understand.matter import names_topic
from operators.understand.naming import told, with_matter, work_in
from operators.understand.state import LEANT, Piece, State, piece_of

TASK_VERB = re.compile(rf"(?:{piece_named('TASK_VERB')})\b")
"""Verbs of work."""


def span_of(tokens: tuple[Token, ...]) -> tuple[int, int] | None:
    return (tokens[0].first, tokens[-1].last) if tokens else None


@dataclass(frozen=True, slots=True)
class Leant:
    """The utterance that an item's words needed, and the characters in it."""

    heard: Heard
    span: tuple[int, int] | None = None


def leant_on(heard: Heard, extra: Leant | None) -> tuple[Piece, ...]:
    """Evidence of another utterance that an item's words come from."""
    if extra is None or extra.heard is heard:
        return ()
    return (piece_of(extra.heard.spoken, extra.heard.index, LEANT, extra.span),)


def said_span(
    tokens: tuple[Token, ...], heard: Heard, place: int, extra: Leant | None
) -> tuple[int, int] | None:
    """Characters of an utterance that an item's words come from, those of the clauses beside it where it leans on them."""
    if extra is None or extra.heard is not heard:
        return span_of(tokens)
    beside = heard.clauses[max(0, place - 1) : place + 2]
    return beside[0].clause.tokens[0].first, beside[-1].clause.tokens[-1].last


_CONDITION = re.compile(
    r"(?:and |but |so |then |okay |well |maybe |@ )*"
    r"(?:if|unless|once|as soon as|provided|in case|when|as long as|after)\b"
    r"(?! (?:(?:that is |it is )?(?:okay|fine|all right|possible|necessary|need be|so)|i may|"
    r"you (?:like|want|do not mind|wish|agree|ask|insist)|(?:no one|you) minds?|not)\b)"
)
"""A condition before a promise, but for those that are only polite (*if you like*)."""


def condition_of(ahead: tuple[Token, ...]) -> tuple[Token, ...]:
    """The condition on which a task is taken on, in the words before it (*If the customer pays, I'll ...*)."""
    said = clause_of(ahead)
    if len(ahead) < 3 or _CONDITION.match(said.norm) is None:
        return ()
    first = next(n for n, t in enumerate(ahead) if t.low in _IF)
    return ahead[first:][:12]


_IF = words_in("if unless once as provided in when after")


def lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def worded(
    tokens: tuple[Token, ...],
    heard: Heard,
    place: int,
    state: State,
    ahead: tuple[Token, ...] = (),
    *,
    work: bool = True,
) -> tuple[str, frozenset[str], Leant | None]:
    """Text of an item, its content stems, and the earlier utterance whose words it needed.

    Words that say little alone (*do that*, *ask them*) get the clause before them, as it was said. ``work``: whether it is
    a task; of those things stand in the place of their pronouns.
    """
    text = sentence(tokens)
    known = stems(" ".join(t.low for t in tokens if not t.person))
    if work and _mere_time(tokens):
        return _at_a_time(text, known, heard, place, state)
    if work and " ".join(t.low for t in tokens) in _EMPTY:
        return _of_nothing(heard, place, state)
    if not says_little(tokens):
        if (
            ahead
            and len(ahead) <= 6
            and ahead[0].low in _DETERMINERS
            and heard.clauses[place].signals & _NAMES_FIRST
        ):
            about = stems(" ".join(t.low for t in ahead if not t.person))
            whole = (with_antecedent(text, ahead), known | about, Leant(heard))
            return whole if names_matter(ahead) else (text, known, None)
        return _explained(tokens, text, known, heard, place, state, ahead)
    if _pronoun(tokens):
        explained = _explained(tokens, text, known, heard, place, state, ahead)
        if explained[2] is not None or (known and of_a_person(tokens)):
            return explained
    topic = stems(" ".join(t.low for t in ahead if not t.person))
    if names_matter(ahead):
        both = told(text, tokens, ahead) if work else with_antecedent(text, ahead)
        return both, known | topic, Leant(heard)
    after = heard.clauses[place + 1] if place + 1 < len(heard.clauses) else None
    if after is not None and after.clause.stems and "assign" in heard.clauses[place].signals:
        return sentence(task_tokens(after.clause, None, after.dues)), known | after.clause.stems, Leant(heard)
    leaning: tuple[str, frozenset[str], Leant | None] | None = None
    for other, clause in _before(heard, place, state, 3):
        if other is heard and clause is not heard.clauses[place - 1]:
            continue
        enough = len(clause.clause.stems) >= 2 or (
            clause.clause.stems
            and other is not heard
            and (clause.signals & {"ask", "need"} or (clause.clause.question_mark and _topic(clause)))
        )
        if not enough or not _names_matter(clause) or (work and _AWAY.match(clause.clause.norm)):
            continue
        if clause.clause.stems <= known:
            break  # the same matter in other words: what was said before it is another
        words = _matter(clause, other.spoken.speaker == heard.spoken.speaker)
        if work and tokens and tokens[0].low not in STOP and tokens[0].low in {t.low for t in words}:
            words = _thing(clause) or words  # *Dirk should send her the list.* *I'll send it.*
        leans = words is clause.clause.tokens and _leans(words)
        if not names_matter(words):
            continue
        alone = len(tokens) == 1 and tokens[0].low in _ALL_SAID_BEFORE
        # *what I'd do*: what is done is all in the words before
        done = work_in(clause.clause.tokens) if work and (alone or text.lower() in _ONLY_DOES) else ""
        if alone:
            put = with_antecedent("", words)
        else:
            asked = clause.clause.question_mark
            put = told(text, tokens, words) if work else settled_text(text, tokens, clause_of(words, asked))
        span = span_of(clause.clause.tokens if done else words)
        whole = (done or put, known | stems(clause_of(words).norm), Leant(other, span))
        if not leans:
            return whole
        leaning = leaning or whole
    return leaning or (text, known, None)


_AWAY = re.compile(
    r"(?:(?:and|but|so|well|oh|no) )*\S+ (?:is|are|am|'s|was|will be) (?:still |already |not )?"
    r"(?:ill|sick|away|off|out|busy|back|here|on holiday|on leave|abroad)\b"
)
"""Where somebody is: nothing to work on."""
_EMPTY = frozenset(("give me", "give us", "make it", "make that", "make this"))
"""What is left of *Give me until Friday* and *Make it Friday*: no work at all."""


def _of_nothing(heard: Heard, place: int, state: State) -> tuple[str, frozenset[str], Leant | None]:
    """What has to be done by the words right before such an answer; nothing where these are another's promise or question."""
    for other, clause in _before(heard, place, state, 2):
        if len(clause.clause.stems) < 2:
            continue
        words = clause.clause.tokens
        own = _FIRST_PERSON.match(clause.clause.norm) is not None or clause.clause.question_mark
        if own or _leans(words) or not _names_matter(clause):
            break
        return with_matter("", words), stems(clause_of(words).norm), Leant(other, span_of(words))
    return "", frozenset(), None


def _before(heard: Heard, place: int, state: State, most: int) -> Iterator[tuple[Heard, HeardClause]]:
    """Clauses before one, the latest first, and those of so many utterances before its own."""
    for clause in reversed(heard.clauses[:place]):
        yield heard, clause
    for other in reversed([h for h in state.recent[-most:] if h.index < heard.index]):
        for clause in reversed(other.clauses):
            yield other, clause


_ONLY_DOES = frozenset(
    ("do it", "do that", "do this", "have it", "have that", "get it done", "get that done")
)
_OPENS_TIME = words_in("when once before after until till while")
_TIME_WORDS = 7


def _mere_time(tokens: tuple[Token, ...]) -> bool:
    """Whether words only say when (*when the shop opens*)."""
    if not 2 < len(tokens) <= _TIME_WORDS or tokens[0].low not in _OPENS_TIME or any(t.comma for t in tokens):
        return False
    return not any(TASK_VERB.fullmatch(t.low) or t.low in ("you", "please") for t in tokens[1:])


def _at_a_time(
    text: str, known: frozenset[str], heard: Heard, place: int, state: State
) -> tuple[str, frozenset[str], Leant | None]:
    """The work that was asked for right before, at the time that is now named; nothing where there is none."""
    for other, clause in _before(heard, place, state, 2):
        words = task_tokens(clause.clause, None, clause.dues)
        if TASK_VERB.match(clause_of(words).norm) and len(words) > 1 and not says_little(words):
            more = stems(clause_of(words).norm)
            return f"{sentence(words)} {lowered(text)}", known | more, Leant(other, span_of(words))
    return "", frozenset(), None


_PERSONAL = words_in("him her")
_ALL_SAID_BEFORE = words_in("do that this mine me so")
_OPEN = words_in("them it him her")
_WITHOUT_THING = words_in("""
    make get take have keep leave call let put give see say think know find hold be is are was with do done doing
""")
"""Verbs with which *it* often means nothing in particular (*leave it at that*)."""


def _pronoun(tokens: tuple[Token, ...]) -> str:
    """The pronoun that is the first thing after a task's verb (*ring them about the bill*), if any."""
    if len(tokens) < 2 or tokens[0].person or tokens[0].low in STOP - _WITHOUT_THING:
        return ""
    place = next((n for n, t in enumerate(tokens[:4]) if t.low in _OPEN), 0)
    if not place or any(t.person or t.low in _DETERMINERS - _PERSONAL or t.comma for t in tokens[:place]):
        return ""
    found = tokens[place].low
    if found == "her" and place + 1 < len(tokens) and tokens[place + 1].low not in _ENDS_THING | _AFTER_HER:
        return ""  # *her number*
    if place > 1 and tokens[place - 1].low not in _BEFORE_PRONOUN:
        return ""
    return found if found != "it" or tokens[0].low not in _WITHOUT_THING else ""


_AFTER_HER = words_in("a an the about whether what that how again back up directly soon")
_BEFORE_PRONOUN = words_in("to with for at about up out on off after from in")


def of_a_person(tokens: tuple[Token, ...]) -> bool:
    """Whether a task is done to *him* or *her*: it says what to do, if not to whom."""
    return _pronoun(tokens) in _PERSONAL


def _explained(
    tokens: tuple[Token, ...],
    text: str,
    known: frozenset[str],
    heard: Heard,
    place: int,
    state: State,
    ahead: tuple[Token, ...] = (),
) -> tuple[str, frozenset[str], Leant | None]:
    """The words of a task; where they leave open who or what is meant, with the thing that lines before name."""
    pronoun = _pronoun(tokens)
    if not pronoun:
        return text, known, None
    if pronoun in _PERSONAL and (words := _relative(ahead, ())):
        more = stems(" ".join(t.low for t in words if not t.person))
        return told(text, tokens, words), known | more, Leant(heard)
    for other, clause in _before(heard, place, state, 3):
        if pronoun in _PERSONAL:
            words = _somebody(clause, other, heard)
            if (
                not words
                and other is heard
                and not _HE_OR_SHE.isdisjoint(t.low for t in clause.clause.tokens)
            ):
                break  # who is meant was said before
        elif _only_names(clause, other, heard) and _pronoun(tokens) != "them":
            words = _thing(clause)
        elif clause.signals & _BRINGS_UP or clause.clause.question_mark:
            words = _thing(clause)
            if words and not (_reaches(clause.clause.tokens, words) and _reaches(tokens, ())):
                words = ()  # nobody rings forms
        else:
            words = ()
        about = stems(clause_of(words).norm)
        if not words or (pronoun not in _PERSONAL and (not names_matter(words) or about & known)):
            continue
        more = stems(" ".join(t.low for t in words if not t.person))
        whole = told(text, tokens, words, reaches=_reaches(tokens, ()))
        return whole, known | more, Leant(other, span_of(words))
    return text, known, None


def _only_names(clause: HeardClause, other: Heard, heard: Heard) -> bool:
    """Whether the line before only names a thing (*Bosun, the port winch.*)."""
    return heard.index - other.index == 1 and len(other.clauses) == 1 and bool(_topic(clause))


def _topic(clause: HeardClause) -> tuple[Token, ...]:
    """The words of a clause that only names a thing, but for whom it calls."""
    words = [t for t in clause.clause.tokens if not t.person]
    return names_topic(tuple(words[1:] if words and words[0].comma else words))


_REACHING = words_in("""
    ask tell ring call phone email e-mail mail text write inform warn remind contact invite thank talk speak asked told
    asking telling ringing calling
""")


def _reaches(tokens: tuple[Token, ...], thing: tuple[Token, ...]) -> bool:
    """Whether the verb before a thing, or that of a task, reaches out to somebody (*ask the fire brigade*)."""
    last = tokens.index(thing[0]) if thing else 1
    return any(t.low in _REACHING for t in tokens[max(0, last - 2) : last])


_BRINGS_UP = frozenset(("need", "group", "request", "assign", "ask", "propose"))
_OF_A_PERSON = re.compile(
    r"(?:(?:and|but|so|well|yes|no|oh) )*(?P<name>\S+)(?: 's)? (?:would|could|will|can|did|does|is|was|has|had|knows|knew|wants|"
    r"said|says|told|asked|might|should|did it)\b"
)
_HE_OR_SHE = words_in("he she him her he's she's his hers he'll she'll he'd she'd")


_KIN = words_in("""
    mother father mum mom dad brother sister son daughter cousin niece nephew uncle aunt wife husband partner boyfriend girlfriend
    grandmother grandfather grandma grandpa friend neighbour neighbor boss landlord landlady flatmate colleague guy man woman lady
    girl boy
""")
_OF_SOMEBODY = words_in("my our your his her their the that")
_LEADS_IN = words_in("and so then but well okay yes no oh maybe perhaps what about or")


def _relative(tokens: tuple[Token, ...], around: Sequence[Token]) -> tuple[Token, ...]:
    """Somebody who is named by what they are to another (*my niece*, *Fi's sister*, *the fridge guy*), and nobody else."""
    first = next((n for n, t in enumerate(tokens) if t.low not in _LEADS_IN), len(tokens))
    last = next((n for n, t in enumerate(tokens[first : first + 4], first) if t.low in _KIN), 0)
    if not last or last == first:
        return ()
    words, rest = tokens[first : last + 1], tokens[last + 1 :]
    owned = words[0].low in _OF_SOMEBODY or (words[0].person == "@" and words[0].low.endswith(("'s", "’s")))
    plain = all(t.low not in STOP and not t.person for t in words[1:])
    others = any(t.person or t.low in _KIN for t in (*rest, *around))
    return words if owned and plain and not others else ()


def _somebody(clause: HeardClause, other: Heard, heard: Heard) -> tuple[Token, ...]:
    """The one person of whom a clause speaks, not who is talking or spoken to."""
    tokens = clause.clause.tokens
    named = [t for t in tokens if t.person]
    around = [t for c in other.clauses for t in c.clause.tokens]
    if heard.index - other.index <= 1:
        beside = [t for c in other.clauses if c is not clause for t in c.clause.tokens]
        if relative := _relative(tokens, beside):
            return relative
    if all(t.person != "@" for t in named) and any(t.low in _HE_OR_SHE for t in around):
        found = _OF_A_PERSON.match(clause.clause.norm)
        first = tokens[clause.clause.token_at(found.start("name"))] if found is not None else None
        if first is not None and first.text[0].isupper() and first.low not in STOP and first.text.isalpha():
            return (first,)
    speakers = {heard.spoken.speaker, other.spoken.speaker}
    spoken_to = {*heard.called, *other.called}
    meant = [
        t
        for t in named
        if t.person == "@"
        and not t.low.endswith(("'s", "’s"))
        and not {*(other.people[t.first].names if t.first in other.people else ())} & (speakers | spoken_to)
    ]
    strangers = {t.low for t in around if t.person == "~"}
    return (meant[0],) if len(meant) == 1 and len(named) == 1 and not strangers else ()


def _names_matter(clause: HeardClause) -> bool:
    """Whether a clause names something besides times and people."""
    timed = {t.first for d in clause.dues for t in clause.clause.between(d.first, d.last)}
    return names_matter([t for t in clause.clause.tokens if t.first not in timed])


def _leans(words: tuple[Token, ...]) -> bool:
    """Whether words need those before them in turn (*she wrote half of it*)."""
    return any(t.low in ("it", "them") for t in words)


_FIRST_PERSON = re.compile(r"(?:(?:and|so|then|okay|well|yes|but|now|oh|tomorrow|today) )*(?:i|we)\b")


_GIVES_WORK = frozenset(("commit", "promise", "assign", "request", "need", "group"))


_THINGS = words_in("the a an this these those")


_ENDS_THING = words_in("""
    to from for by on at in with and or but so if when because i we you he she it they that which who until till before
    after tomorrow today tonight ready done finished available open closed free okay fine is are was were about has have
    had will would can could should does did out again back
""")


def _matter(clause: HeardClause, same_speaker: bool) -> tuple[Token, ...]:
    """What a clause is about. Of a promise, a question and what somebody else does or did it is the thing alone:

    its *I* is not that of the item, and what was promised is an item of its own.
    """
    own = same_speaker and not clause.signals & _GIVES_WORK and not clause.clause.question_mark
    first_person = _FIRST_PERSON.match(clause.clause.norm) is not None
    if own or not (first_person or clause.clause.question_mark or clause.signals & _GIVES_WORK):
        return clause.clause.tokens
    return _thing(clause)


def _thing(clause: HeardClause) -> tuple[Token, ...]:
    """The first thing that a clause names, no stretch of time and no mere quantity (*half a day*)."""
    timed = {t.first for d in clause.dues for t in clause.clause.between(d.first, d.last)}
    tokens = clause.clause.tokens
    for first, token in enumerate(tokens):
        if token.low not in _THINGS or first + 1 == len(tokens) or token.first in timed:
            continue
        last = first + 1
        while last < len(tokens) and tokens[last].low not in _ENDS_THING and tokens[last].first not in timed:
            last += 1
            if tokens[last - 1].comma:
                break
        part = first > 0 and tokens[first - 1].low in ("half", "quarter", "of", "such", "quite")
        if not part and names_matter(tokens[first:last]):
            return tokens[first:last]
    return ()


_DETERMINERS = words_in("the our my your this that these those his her their")


_NAMES_FIRST = frozenset(("need", "group"))
"""Signals before which speakers often name the matter first (*the old chairs, somebody must ...*)."""
