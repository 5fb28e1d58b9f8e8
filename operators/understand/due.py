"""When an item is due, as it was said: which of the time phrases in and beside a clause is meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from operators.language.dates import DuePhrase, time_phrases
from operators.language.days import named_days
from operators.language.rules import piece_named
from operators.language.text import Clause, Token, stems
from operators.language.words import words_in
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import Due

_NOT_BESIDE: Final = frozenset(
    ("commit", "promise", "past", "reported", "assign", "hypothetical", "handover")
)
_OF_DAYS: Final = frozenset(("day", "date", "ordinal", "day_date", "relative", "day_after"))
_OTHER_MATTER: Final = re.compile(
    r"(?:and |so |but |because |then )*(?:(?:he|she|@|~)\b|they (?!(?:will |would |all |only )*(?:need|want|"
    r"must|expect)\b)(?:will|would|only|are|can|shut|close|open)\b"
    r"|(?:if|unless|in case) (?!.*\b(?:needs?|wants?|have to have|by|say|make it|fine|okay|suits?|works?)\b)"
    r"|i (?!need|want|must)(?!.*\b(?:it|that|them|this|one)\b)"
    r"|(?:on |at |in )?the [\w-]+ (?:is|was|are|were)\b)"
)
"""A clause beside a task that says when something else is: somebody else's doing, or what a day is like."""
_TOLD_TO: Final = re.compile(rf"(?:please |just |and |so |then )*(?:{piece_named('TASK_VERB')})\b")
_OWN: Final = re.compile(r"(?:and |then |so )+i (?:will|shall|can)\b")
_AWAY: Final = re.compile(
    r"\b(?:i|you|he|she|they|we|@|~) (?:is |am |are |will be |has been |have been )?(?:still |only |all )?"
    r"(?:away|off|out|gone|abroad|busy|on (?:holiday|leave|nights?|shift)|(?:in|at) (?:the |a )?[\w'-]+) $"
)
_FROM_A_DAY: Final = re.compile(
    r"\b(?:\d+(?:st|nd|rd|th)?|first|second|third|[a-z]+(?:day|(?<!mo)(?<!wi)th))(?: of [a-z]+)? $"
)
_TO_A_DAY: Final = re.compile(r" to (?:the )?(?:\d+(?:st|nd|rd|th)|first|second|third|[a-z]+(?:day|th))\b")
"""A day before *to the fourteenth*: from when till when something lasts."""
_OPENS_AT: Final = re.compile(
    r"(?:(?:and|but|so|then|because|only) )*(?:they|he|she|it|the [\w'-]+) (?:only |all )?(?:shuts?|closes?|opens?)(?= (?:at|on|"
    r"from|till|until|again|up)\b|$)"
)
"""What shuts or opens at a time by itself."""
_TAKES_ON: Final = frozenset(("commit", "promise", "offer"))
_IT_COMES: Final = re.compile(
    r"(?:(?:and|so|then|but) )*(?:(?:they|it) (?:will|would|should)(?: all)? be (?:ready|done|there|with you|finished|up|"
    r"right|live|printed|sent|posted|yours|on (?:your|the)|in (?:your|her|his|their|the))\b"
    r"|(?:they|you|he|she) (?:will|would|should) (?:have|get) (?:it|them|that|those)\b|it goes (?!to\b)"
    r"|i (?:am|will|would|can|shall)(?: just| then)? (?!be |have |need |want )[\w'-]+(?: through| in| on| up| over)? "
    r"(?:it|them|that|those)\b)"
)
"""When what somebody just took on is ready, or comes (*They'd be ready by Tuesday*, *It goes tonight*, *I'd do it Thursday*)."""
_DOES_IT: Final = re.compile(
    r"\bi (?:am|will|can|could|would|shall|had better)(?: just| then)? (?!have |need |want )[\w'-]+ (?:it|that|them|"
    r"this|those) $"
)
_TRAVELS: Final = re.compile(r"\b(?:i|he|she|they|we|@|~) (?:fly|flies|leave|leaves|travel|travels) $")
_TAKES_A_DAY: Final = re.compile(
    r"\b(?:confirm|book|reserve|announce|block|cancel|offer|propose)(?:s|ed|ing)? $"
)
_SHORT_CLAUSE: Final = 4
_LEANS: Final = words_in("it that this them those these one both same mine yours")
_OF_ANY_DAY: Final = stems(
    "fine good okay works work suits suit best better great perfect early earlier late later latest free sure do does done "
    "make possible deadline sounds works say said time day want need needed wait"
)
"""Words said of a day for any task (*Wednesday works.*)."""
_UNITS: Final = stems(
    "second minute hour day week month year euro pound dollar percent metre kilo litre people"
)
"""What is counted, which makes no two sentences one matter."""
_FROM_WHEN: Final = re.compile(
    r"\b(?:as of|starting|beginning|effective|valid|in force|since)(?: (?:on|from|the|as of))*$|\bfrom(?: the)?$"
)
"""What stands before a day from which something holds."""
_STARTS: Final = re.compile(
    r"\b(?:start|begin|open|launch|switch|take over|run|do|cover|stand in|move|join)(?:s|ning|ting|ing)?\b"
)
"""Work that begins on a day."""
_SLIPPED: Final = re.compile(
    r"^(?:(?:or|oh|but|and|well|hm) )*(?:no(?: (?:wait|sorry|actually|hang on|better|rather))?|wait|actually|rather|sorry|"
    r"hang on|hold on|on second thoughts?|make (?:it|that)|scratch that)\b(?! (?:problem|one|need|idea|worries|rush|hurry))"
)
"""How somebody opens who puts right what was just said (*Or no, I'd wait for the replies*)."""
_DAY_ANEW: Final = re.compile(
    r"(?:^|\b(?:so|then|say|rather|better|make it|make that|more like|it is|i mean|no|wait|actually|sorry|hang on|hold on"
    r"|(?:do|make|bring|send|have) (?:it|that|them))) $"
)
"""What stands before the day that then holds."""
_DAY_LAST: Final = re.compile(
    r"^(?: (?:then|instead|rather|please|okay|yes|it is|sorry|latest|at the latest|morning|afternoon|evening|night|@))*$"
)
_SLIP_REACH: Final = 4


def said_due(heard: Heard, place: int, last: bool = False) -> Due | None:
    """The due date stated in or beside a clause, with the words as they were said.

    ``last`` takes the last phrase of the clause, as in *Friday is too early, make it Tuesday*. Where two days are named
    as one (*Monday and Tuesday*) the words are kept and no day is chosen.
    """
    found = _due_near(heard, place)
    if found is None:
        return None
    at, phrase = _put_right(heard, found[0]) or found
    own = _meant(heard.clauses[place])
    if last and own and at == found[0]:
        dated = [d for d in own if d.kind != "ordinal"]
        at, phrase = place, (dated or own)[-1]
    clause = heard.clauses[at].clause
    tokens = clause.between(phrase.first, phrase.last)
    words = spoken_words(heard.spoken.text, tokens) if tokens else phrase.words
    return _with_day_beside(heard, at, Due(phrase, words, heard.spoken.id))


def spoken_words(text: str, tokens: Sequence[Token]) -> str:
    """A phrase as it stands in the text; of one with a slip in it (*by Friday, sorry, Thursday*) what follows that."""
    first = 0
    for place in range(1, len(tokens)):
        if any(sign.isalnum() for sign in text[tokens[place - 1].last : tokens[place].first]):
            first = place
    return text[tokens[first].first : tokens[-1].last]


def _due_near(heard: Heard, place: int) -> tuple[int, DuePhrase] | None:
    """The time phrase of this clause, else of the clause after or before it that has no task itself."""
    order = [place, place + 1, place - 1]
    if "assign" in heard.clauses[place].signals:
        order += range(place + 2, len(heard.clauses))
    for index in order:
        if not 0 <= index < len(heard.clauses):
            continue
        other = heard.clauses[index]
        if index != place and _of_another(other):
            continue
        if index == place - 1 and (
            _told_before(other.clause, heard.clauses[place].clause)
            or _own_sentence(other.clause, heard.clauses[place].clause)
        ):
            continue
        meant = [d for d in _meant(other) if not begins(d, other.clause.norm, index == place)]
        if meant:
            return index, _deadline(meant, other.clause.norm)
    if heard.clauses[place].signals & _TAKES_ON:
        for index in range(place + 1, min(place + 4, len(heard.clauses))):
            other = heard.clauses[index]
            meant = list(_meant(other))
            days = all(d.kind in _OF_DAYS for d in meant)
            if meant and days and not other.clause.question_mark and _IT_COMES.match(other.clause.norm):
                return index, _deadline(meant, other.clause.norm)
    return None


def _of_another(clause: HeardClause) -> bool:
    """Whether a clause beside a task has a matter of its own, whose time it tells."""
    return bool(
        clause.signals & _NOT_BESIDE
        or ("request" in clause.signals and any(t.person for t in clause.clause.tokens))
        or (len(clause.clause.tokens) > 9 and not any(d.sets_deadline for d in clause.dues))
        or _OTHER_MATTER.match(clause.clause.norm)
    )


def _told_before(before: Clause, clause: Clause) -> bool:
    """Whether the clause before tells others what to do, and this one what the speaker will do then.

    *Send it through tonight, and I'll forward it.*
    """
    return bool(_OWN.match(clause.norm) and _TOLD_TO.match(before.norm))


def _own_sentence(before: Clause, clause: Clause) -> bool:
    """Whether the sentence before has a matter of its own, which the one of the task does not lean on.

    *Launch on the fifth. You do the invitations.* The date is that of the launch.
    """
    if not before.tokens or not before.tokens[-1].ends_clause:
        return False
    if {w for t in clause.tokens for w in t.low.split()} & _LEANS:
        return False
    kept = before.norm
    for phrase in reversed(tuple(time_phrases(before.norm))):
        kept = f"{kept[: phrase.first]} {kept[phrase.last :]}"
    own = stems(kept) - _OF_ANY_DAY - _UNITS
    return bool(own) and not own & clause.stems


def begins(phrase: DuePhrase, norm: str, own: bool) -> bool:
    """Whether a day is the one from which something holds (*from April first*), which is no deadline.

    It is the day of work that is said to begin then, in the clause of that work (``own``).
    """
    before = norm[: phrase.first].rstrip()
    if phrase.prep != "from" and _FROM_WHEN.search(before) is None:
        return False
    return not (own and _STARTS.search(before))


def _put_right(heard: Heard, at: int) -> tuple[int, DuePhrase] | None:
    """The day that takes the place of one in the same breath (*I'll order tomorrow. Or no, so on the twenty-seventh.*)."""
    last = min(len(heard.clauses), at + 1 + _SLIP_REACH)
    opened = next((i for i in range(at + 1, last) if _SLIPPED.match(heard.clauses[i].clause.norm)), None)
    if opened is None:
        return None
    found: tuple[int, DuePhrase] | None = None
    for index in range(opened, min(len(heard.clauses), opened + _SLIP_REACH)):
        clause, norm = heard.clauses[index], heard.clauses[index].clause.norm
        if clause.signals & {"assign", "request", "past", "reported"} or clause.clause.question_mark:
            break
        for day in named_days(norm, asked=False):
            if (
                not day.dropped
                and not begins(day.phrase, norm, own=True)
                and _DAY_ANEW.search(norm[: day.phrase.first])
                and _DAY_LAST.match(norm[day.phrase.last :])
            ):
                found = index, day.phrase
    return found


def _deadline(dues: Sequence[DuePhrase], norm: str) -> DuePhrase:
    """When the speaker does it first (*it goes to print on Monday, I'm doing it tonight*), *by* phrases, dates."""
    return min(
        dues,
        key=lambda d: (
            len(dues) == 1 or not _DOES_IT.search(norm[: d.first]),
            not d.sets_deadline,
            d.kind in ("vague", "clock"),
            d.first,
        ),
    )


def _meant(clause: HeardClause) -> tuple[DuePhrase, ...]:
    """Time phrases of a clause that may say when its task is due; those that belong together as one."""
    norm = clause.clause.norm
    if _OPENS_AT.match(norm):
        return ()
    out: list[DuePhrase] = []
    for phrase in clause.dues:
        if _names_something(norm[: phrase.first], phrase) or _TO_A_DAY.match(norm[phrase.last :]):
            continue
        joined = _joined(out[-1], phrase, norm) if out else None
        if joined is None:
            out.append(phrase)
        else:
            out[-1] = joined
    return tuple(out)


def _names_something(before: str, phrase: DuePhrase) -> bool:
    """Whether a phrase says how long somebody is away, or is what the task is about (*confirm the nineteenth*)."""
    if phrase.prep in ("until", "till") and _AWAY.search(before):
        return True
    if phrase.kind in ("date", "ordinal") and phrase.prep is None and _TAKES_A_DAY.search(before):
        return True
    if phrase.words.startswith("to ") and _FROM_A_DAY.search(before):
        return True
    return phrase.kind in _OF_DAYS and _TRAVELS.search(before) is not None


def _joined(one: DuePhrase, other: DuePhrase, norm: str) -> DuePhrase | None:
    """Two phrases side by side as one: a time of day and its day, or two days, of which neither is chosen."""
    between = norm[one.last : other.first].strip()
    if other.kind not in _OF_DAYS:
        return None
    if one.kind == "clock" and not between:
        return DuePhrase(one.first, other.last, other.kind, other.words, one.prep)
    if not between and {one.kind, other.kind} in ({"day", "ordinal"}, {"day", "date"}) and other.prep is None:
        return DuePhrase(one.first, other.last, "day_date", f"{one.words} {other.words}", one.prep)
    if one.kind in _OF_DAYS and between in ("and", "or", "to") and other.prep in (None, one.prep):
        return DuePhrase(one.first, other.last, "vague", norm[one.first : other.last], one.prep)
    return None


def _with_day_beside(heard: Heard, at: int, due: Due) -> Due:
    """A weekday and a date in short clauses side by side are one day (*The fifteenth, then. Wednesday.*).

    Where they are not the same day, no day is chosen when they are resolved.
    """
    if due.phrase.kind not in ("day", "ordinal", "date"):
        return due
    wanted = ("ordinal", "date") if due.phrase.kind == "day" else ("day",)
    for index in (at - 1, at + 1):
        if not 0 <= index < len(heard.clauses):
            continue
        pair = sorted((index, at))
        short = all(len(heard.clauses[i].clause.tokens) <= _SHORT_CLAUSE for i in pair)
        found = [d for d in _meant(heard.clauses[index]) if d.kind in wanted]
        if not short or len(found) != 1 or len(_meant(heard.clauses[at])) != 1:
            continue
        phrases = (found[0], due.phrase) if index < at else (due.phrase, found[0])
        both = [heard.clauses[i].clause.between(p.first, p.last) for i, p in zip(pair, phrases, strict=True)]
        if not all(both):
            continue
        phrase = DuePhrase(
            due.phrase.first, due.phrase.last, "day_date", " ".join(p.words for p in phrases), due.phrase.prep
        )
        return Due(phrase, heard.spoken.text[both[0][0].first : both[1][-1].last], due.said_in)
    return due
