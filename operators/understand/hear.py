"""One utterance read by the rules: clauses, cues, time phrases and people, before any context."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from operators.language.dates import DuePhrase, due_phrases
from operators.language.foreign import in_english
from operators.language.people import EVERYDAY_WORDS, Mention, Roster, mentions_in
from operators.language.rules import Hit, Rule, hits_in
from operators.language.text import STOP, Clause, Token, clauses_of, expand, words_of
from operators.language.words import words_in
from operators.understand.types import Spoken

_RETRACTIONS = frozenset(("scratch_that", "unsaid"))
_NO_NAMES = words_in("""
    i monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december christmas easter english french german
    italian spanish portuguese dutch greek god lord saint
""")
_ASK_NEXT = re.compile(r"^(?:can|could|would|will) you\b")
_GOODBYE = re.compile(
    r"(?<![\w'])(?:(?<!to )(?<!i )(?<!can )(?<!will )(?<!we )see you(?! (?:have|had|are|is))|good ?bye|bye(?: bye)?|"
    r"(?:have|enjoy) (?:a|your|the) (?:nice |good |great |lovely )*(?:day|weekend|evening|week|holidays?)|"
    r"^(?:until|till) (?:then|next|tomorrow)[\w ]*$|talk to you (?:soon|next|tomorrow|then|on))\b"
)
_NOT_DONE = re.compile(
    r"(?<!why )\b(?:(?:(?:will|shall|can|could|would|is|are|am|does|did|must|should|has|have|i do|we do|they do) "
    r"(?:never|not|no longer)\b(?! (?:forget|only|just|later|until|till|mind|you|we))"
    r"|(?:no one|nobody|none of us) (?:will|shall|can|is|has|does)\b)"
    r".*?(?=$| (?:but|instead|only|rather|make it|make that|so|because|i|we|you|he|she|they|it)\b)"
    r"|not (?:before|earlier than|by|on)\b.{0,24})"
)
"""What is said not to happen, with the time named for it."""
_GREET = frozenset(
    ("thanks", "thank", "you", "okay", "no", "morning", "sorry", "hi", "hello", "and", "so", "right")
)


@dataclass(frozen=True, slots=True)
class HeardClause:
    """A clause with everything the rules found in it."""

    clause: Clause
    hits: tuple[Hit, ...]
    dues: tuple[DuePhrase, ...]
    signals: frozenset[str]
    retracts: bool = False
    """Takes back what was said before, whatever it was (*forget I said it*)."""

    def best(self, signal: str) -> Hit | None:
        """The strongest cue of a signal."""
        found = [h for h in self.hits if h.rule.signal == signal]
        return max(found, key=lambda h: h.rule.strength) if found else None


@dataclass(frozen=True, slots=True)
class Heard:
    """An utterance with its clauses. ``people`` maps the character where a name starts to who is meant."""

    spoken: Spoken
    index: int
    clauses: tuple[HeardClause, ...]
    people: dict[int, Mention]
    called: tuple[str, ...]
    """Attendees who are spoken to."""

    @property
    def words(self) -> int:
        """Number of words that count."""
        return sum(len(c.clause.tokens) for c in self.clauses)

    def remembered(self) -> Heard:
        """What later utterances look back at: without the cues themselves, so that it pickles small."""
        clauses = tuple(replace(c, hits=()) for c in self.clauses)
        return replace(self, clauses=clauses)

    def signals(self) -> frozenset[str]:
        """All signals of the utterance."""
        return frozenset().union(*(c.signals for c in self.clauses)) if self.clauses else frozenset()


_Read = tuple[tuple[HeardClause, ...], dict[int, Mention], tuple[str, ...]]
_READ: dict[tuple[str, str | None], tuple[tuple[Rule, ...], Roster, _Read]] = {}
"""What was read lately. Every utterance is read at least twice, when heard and when settled."""
_READ_KEPT = 512


def hear(spoken: Spoken, index: int, roster: Roster, rules: tuple[Rule, ...]) -> Heard:
    """Read one utterance; the result depends on its text and the attendees alone."""
    key = (spoken.text, spoken.speaker)
    known = _READ.get(key)
    if known is not None and known[0] is rules and known[1] == roster:
        return Heard(spoken, index, *known[2])
    read = _read(spoken, roster, rules)
    if len(_READ) >= _READ_KEPT:
        _READ.clear()
    _READ[key] = (rules, roster, read)
    return Heard(spoken, index, *read)


def _read(spoken: Spoken, roster: Roster, rules: tuple[Rule, ...]) -> _Read:
    words = words_of(spoken.text)
    english = in_english([t.low for t in words])
    tokens, people = _with_people(words, roster)
    people = {at: _of_others(mention, roster.of_speaker(spoken.speaker)) for at, mention in people.items()}
    heard: list[HeardClause] = []
    for clause in clauses_of(spoken.text, tokens):
        # Words of other languages look like English ones now and then, and mean something else.
        hits = hits_in(clause.norm, rules) if english else ()
        dues = _meant_dues(clause.norm) if english else ()
        heard.append(HeardClause(clause, hits, dues, frozenset()))
    called = _called(tuple(heard), people, spoken.speaker, roster)
    clauses = tuple(_meant(heard, place, bool(called)) for place in range(len(heard)))
    return clauses, people, called


def _of_others(mention: Mention, speaker: str | None) -> Mention:
    """A name that several have, without the speaker: nobody calls oneself."""
    names = tuple(name for name in mention.names if name != speaker)
    return replace(mention, names=names) if len(mention.names) > 1 and names else mention


def _meant_dues(norm: str) -> tuple[DuePhrase, ...]:
    """Time phrases of a clause but those of a goodbye (*see you next week*) and of what will not be done."""
    found = due_phrases(norm)
    if not found:
        return ()
    goodbye = _GOODBYE.search(norm)
    end = goodbye.start() if goodbye else len(norm)
    denied = [m.span() for m in _NOT_DONE.finditer(norm)]
    return tuple(
        d
        for d in found
        if d.first < end and (d.prep in ("until", "till") or not any(a < d.first < b for a, b in denied))
    )


def _meant(heard: list[HeardClause], place: int, called: bool) -> HeardClause:
    """A clause with the cues whose conditions hold; a short clause beside it may carry the time."""
    here = heard[place]
    clause = here.clause
    near = [h for h in heard[max(0, place - 1) : place + 2] if h is here or len(h.clause.tokens) <= 9]
    timed = any(h.dues for h in near)
    addressed = timed or called or clause.question_mark or " please" in f" {clause.norm}"
    hits = tuple(
        h for h in here.hits if (timed or not h.rule.needs_due) and (addressed or not h.rule.needs_address)
    )
    retracts = any(h.rule.name in _RETRACTIONS for h in hits)
    return HeardClause(clause, hits, here.dues, frozenset(h.rule.signal for h in hits), retracts)


def _with_people(tokens: list[Token], roster: Roster) -> tuple[list[Token], dict[int, Mention]]:
    """Join the words of each name into one token that cues see as ``@`` or ``~``."""
    mentions = {m.first: m for m in mentions_in(tokens, roster)}
    out: list[Token] = []
    people: dict[int, Mention] = {}
    index = 0
    while index < len(tokens):
        mention = mentions.get(index) or _expected_name(tokens, index, roster)
        if mention is None and _outside_name(tokens, index):
            mention = Mention(
                index, index, (), tokens[index].text.removesuffix("'s").removesuffix("’s"), "outside"
            )
        if mention is None:
            out.append(tokens[index])
            index += 1
            continue
        first, last = tokens[mention.first], tokens[mention.last]
        mark = "~" if mention.by == "outside" else "@"
        text = "".join(t.text + (t.joint or " ") for t in tokens[mention.first : mention.last + 1])
        text = text[: -len(last.joint or " ")]
        out.append(
            Token(
                text,
                text.lower().replace("’", "'"),
                first.first,
                last.last,
                last.ends_clause,
                last.comma,
                mark,
                last.joint,
                first.before,
                last.after,
            )
        )
        people[first.first] = mention
        index = mention.last + 1
    return out, people


def _expected_name(tokens: list[Token], index: int, roster: Roster) -> Mention | None:
    """A misheard name, where only a name makes sense: before *can you* or after *thank you*."""
    for width in (2, 1):
        if index + width > len(tokens) or any(
            t.low in STOP and t.low != "may" for t in tokens[index : index + width]
        ):
            continue
        after = " ".join(expand(t.text) for t in tokens[index + width : index + width + 2])
        before = tokens[index - 1].low if index else ""
        at_end = index + width == len(tokens) or tokens[index + width - 1].ends_clause
        thanked = at_end and before in ("thanks", "you", "no", "okay", "right", "sorry")
        asked = bool(_ASK_NEXT.match(after)) and (
            index == 0
            or before in _GREET
            or tokens[index - 1].comma
            or tokens[index - 1].ends_clause
            or width == 1
        )
        opens = index > 0 and tokens[index - 1].ends_clause
        handed = (
            index <= 2
            and not (opens and tokens[index].low in EVERYDAY_WORDS)
            and before in ("so", "and", "then", "better", "okay")
            and bool(re.match(r"^(?:the|brings|takes|does|gets|has|just)\b", after))
        )
        if thanked or asked or handed:
            names = roster.sounds_like("".join(t.low for t in tokens[index : index + width]))
            if len(names) == 1:
                said = " ".join(t.low for t in tokens[index : index + width])
                return Mention(index, index + width - 1, names, said, "sound")
    return None


def _outside_name(tokens: list[Token], index: int) -> bool:
    """A capital inside a sentence, alone, no article before it: somebody who is not on the list."""
    if index == 0 or tokens[index - 1].ends_clause:
        return _takes_on_work(tokens, index)
    if tokens[index - 1].after == ":":
        return _takes_on_work(tokens, index) or _is_given_work(tokens, index)
    token = tokens[index]
    low = expand(token.text).split()[0]
    if not token.text[0].isupper() or len(low) < 3 or low in STOP or low in _NO_NAMES or token.text.isupper():
        return False
    before = tokens[index - 1]
    after = tokens[index + 1] if index + 1 < len(tokens) and not token.ends_clause else None
    if before.low in ("the", "a", "an", "this", "that", "our", "my", "your", "in", "on", "at"):
        return False
    named = before.text[0].isupper() and before.low not in _NO_NAMES and not before.comma
    if named and index > 1 and not tokens[index - 2].ends_clause:
        return False
    return not (
        (after and after.text[0].isupper() and after.low not in ("i", "i'll", "i'm"))
        or (not token.text.isascii() and not token.text.isalpha())
    )


def _takes_on_work(tokens: list[Token], index: int) -> bool:
    """A capital at the start of a sentence is a name only where work follows (*Pavel will count ...*)."""
    word = tokens[index].text
    if not word[0].isupper() or word.isupper() or len(word) < 3 or tokens[index].ends_clause:
        return False
    low = expand(word).split()[0]
    if low in STOP or low in _NO_NAMES or low in _NO_CALLS:
        return False
    rest = " ".join(expand(t.text) for t in tokens[index + 1 : index + 7])
    return bool(_WORK_FOLLOWS.match(rest)) or (tokens[index].comma and bool(_ASKED.match(rest)))


def _is_given_work(tokens: list[Token], index: int) -> bool:
    """A capital after *Action item:* is a name where a verb of a person follows (*Zoe books a room*)."""
    word, rest = tokens[index].text, " ".join(expand(t.text) for t in tokens[index + 1 : index + 4])
    low = expand(word).split()[0]
    named = (
        word[0].isupper() and not word.isupper() and not tokens[index].ends_clause and not low.endswith("s")
    )
    return named and low not in STOP | _NO_NAMES | _NO_CALLS and bool(_HAS_WORK.match(rest))


_HAS_WORK = re.compile(
    r"(?:will|to|should|shall|has to|is to) [a-z]+|(?!is\b|was\b|has\b|does\b|goes\b|this\b|always\b|us\b)[a-z]{3,}s "
    r"(?:a|an|the|our|my|all|up|out|for|with|to|about)\b"
)
_NO_CALLS = words_in(
    "everyone everybody all guys folks team people friends colleagues hello hey hi first next finally"
)
_ASKED = re.compile(r"(?:please|(?:can|could|will|would) you(?: please)?) [a-z]+")


_WORK_FOLLOWS = re.compile(
    r"(?:gets the|takes the|will|is going to|shall|has to|is to) "
    r"(?!be\b|have|love|like|hate|never|not\b|know|think|see|come|go\b|want|need|"
    r"say|grumble|complain|laugh|understand)[a-z]+"
)


def _called(
    clauses: tuple[HeardClause, ...], people: dict[int, Mention], speaker: str | None, roster: Roster
) -> tuple[str, ...]:
    """Who is spoken to: a name at the edge of a clause that is not what the clause is about."""
    own = roster.of_speaker(speaker)
    called: list[str] = []
    for heard in clauses:
        tokens = heard.clause.tokens
        for place, token in enumerate(tokens):
            mention = people.get(token.first)
            if token.person != "@" or mention is None or mention.by == "outside":
                continue
            rest = " ".join(expand(t.text) for t in tokens[place + 1 : place + 4])
            lead = [t.low for t in tokens[:place]]
            opens = all(w in _OPENERS for w in lead) and (
                token.comma or place + 1 == len(tokens) or bool(_TO_YOU.match(rest))
            )
            closes = (
                place + 1 == len(tokens) and place > 0 and (tokens[place - 1].comma or _closing_name(lead))
            )
            inside = token.comma and place > 0 and tokens[place - 1].comma
            as_you = bool(_TO_YOU.match(rest)) and mention.by == "role"
            if (opens or closes or inside or as_you) and not token.low.endswith("'s"):
                called.extend(n for n in mention.names if n != own and len(mention.names) == 1)
    return tuple(dict.fromkeys(called))


_OPENERS = words_in("""
    so and okay right well then oh sorry but yes no thanks thank you now good hey please for our
    the as um
""")
_TO_YOU = re.compile(
    r"^(?:you|your|can|could|would you|will you|please|do you|are you|have you|did you|just|the|i)\b"
)


def _closing_name(lead: list[str]) -> bool:
    """*..., for typos, Tove* ends with who is spoken to; *I rang Tove* ends with an object."""
    return bool(lead) and lead[-1] in (
        "you",
        "thanks",
        "please",
        "okay",
        "then",
        "no",
        "yes",
        "sorry",
        "right",
        "there",
    )
