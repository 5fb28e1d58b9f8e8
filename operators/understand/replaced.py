"""A day or an amount that was settled and is replaced by another within a few turns: the last one stands."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from operators.language.dates import month_in
from operators.language.days import named_days
from operators.language.text import stems
from operators.language.values import Value, values_in
from operators.understand.due import spoken_words
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import Draft, State, piece
from operators.understand.topic import asks_else, speaks_of_else

REPLACED: Final = "replaced by another"
_REACH: Final = 6
_SHORT: Final = 6
_AGAIN: Final = r"(?:then|no|wait|or|rather|sorry|actually|better|make it|make that|let us say|let us make it|say|i mean|hang on)"
_OPENS: Final = re.compile(
    rf"^(?:(?:so|and|but|oh|well|okay|right|yes|good|fine) )*(?:{_AGAIN} )+(?:(?:on|for|at) )?(?:the )?$"
)
_OPENS_PLAIN: Final = re.compile(
    r"^(?:(?:so|and|but|oh|well|okay|right|yes|good|fine) )*(?:(?:on|for|at) )?(?:the )?$"
)
_STANDS: Final = re.compile(r"^ (?:it is|then|instead)\b(?: (?:then|instead))?$")
_NOT_IT: Final = re.compile(r"^ (?:and )?not (?:the |on |for )?(?P<old>[\w -]+)$")
_CLOSES: Final = re.compile(r"^(?: (?:then|it is|instead|rather|please|okay|fine|good|right|yes|@))*$")
_REASON: Final = re.compile(
    r"^ (?:on|because|since|as|if|that|it|not|so|then|the|(?:i|we|he|she|they|you|@|~) (?:am|is|are|can|could|have|has|will))\b"
)
"""What follows a comma after the value: why it is so (*the fifth, on the fourth Kim is away*)."""
_NOT_MEANT: Final = frozenset(("past", "reported", "hypothetical", "joke", "request", "assign", "unknown"))


_NO_GOOD: Final = re.compile(
    r"\b(?:holiday|away|busy|booked|taken|closed|full|not|too (?:many|few|much|late|early))\b"
)
"""What is said against a day or an amount."""


def replace_value(heard: Heard, drafts: list[Draft], state: State) -> frozenset[str]:
    """Put a new day or amount in the place of the one that was settled just before; stems of the words that say so.

    *Let's do the launch on the third of May.* *That's a bank holiday.* *Then the fifth.* The words must show that one
    takes the place of the other, and nothing else may have been settled or handed out in between.
    """
    for clause in heard.clauses[:2]:
        found = _said(clause)
        if found is None:
            if _repeats(clause, heard, drafts):
                return clause.clause.stems
            continue
        new, old_words = found
        place = _target(heard, drafts, new, old_words)
        if place is None or (state.recent and asks_else(state.recent[-1], drafts[place])):
            continue
        since = [h for h in state.recent if h.index > drafts[place].last_index]
        if any(
            speaks_of_else(c, drafts[place]) and not _NO_GOOD.search(c.clause.norm)
            for h in since
            for c in h.clauses
        ):
            continue  # *The van comes on the second.* *No, the fifth.* is no word of the meeting
        draft = drafts[place]
        old = next(v for v in values_in(draft.text.lower()) if v.kind == new.kind)
        words = _as_written(new, clause, heard)
        words = _with_month(words, draft.text[old.first : old.last]) if new.kind == "date" else words
        text = f"{draft.text[: old.first]}{words}{draft.text[old.last :]}"
        text = text[:1].upper() + text[1:]
        drafts[place] = replace(
            draft.grown(0.1, REPLACED, piece(heard, 2.0)),
            text=text,
            stems=draft.stems - stems(old.words) | stems(words),
        )
        return clause.clause.stems
    return frozenset()


def _repeats(clause: HeardClause, heard: Heard, drafts: list[Draft]) -> bool:
    """Whether somebody only says once more what was put in the place of another (*The fifth of May, noted.*)."""
    said = values_in(clause.clause.norm)
    if len(said) != 1 or len(clause.clause.tokens) > _SHORT or clause.clause.question_mark:
        return False
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if (
            REPLACED not in draft.reasons
            or draft.withdrawn
            or not 0 < heard.index - draft.last_index <= _REACH
        ):
            continue
        same = [v for v in values_in(draft.text.lower()) if v.kind == said[0].kind]
        if any(_same(v.words, said[0].words) for v in same):
            drafts[place] = draft.grown(0.1, "said again", piece(heard, 1.0))
            return True
    return False


def _target(heard: Heard, drafts: list[Draft], new: Value, old_words: str | None) -> int | None:
    """The place of the decision whose value is meant: the latest that was spoken of, and nothing else since."""
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if draft.withdrawn or draft.mode == "refused" or draft.family == "question":
            continue
        if draft.first_index == heard.index or heard.index - draft.last_index > _REACH:
            return None
        if draft.family != "decision":
            return None
        values = values_in(draft.text.lower())
        same = [v for v in values if v.kind == new.kind]
        fits = len(same) == 1 and not _same(same[0].words, new.words)
        if fits and old_words is not None:
            fits = _same(same[0].words, old_words)
        return place if fits else None
    return None


def _said(clause: HeardClause) -> tuple[Value, str | None] | None:
    """The value that a clause puts in the place of another, and the other where it is named."""
    norm = clause.clause.norm
    if clause.clause.question_mark or clause.signals & _NOT_MEANT:
        return None
    dropped = {d.phrase.first for d in named_days(norm, asked=False) if d.dropped}
    for value in values_in(norm):
        before, after = norm[: value.first], norm[value.last :]
        if any(value.first <= at < value.last for at in dropped):
            continue
        aside = _NOT_IT.match(after)
        if aside is not None and (_OPENS.match(before) or _OPENS_PLAIN.match(before)):
            return value, aside["old"]
        tokens = clause.clause.between(value.first, value.last)
        reason = bool(tokens) and tokens[-1].comma and _REASON.match(after) is not None
        closed = reason or _CLOSES.match(after) is not None
        if closed and _OPENS.match(before):
            return value, None
        if _OPENS_PLAIN.match(before) and _STANDS.match(after):
            return value, None
        return None
    return None


def _same(one: str, other: str) -> bool:
    """Whether two values are the same; the month may be said of one of two alone."""
    left, right = (re.sub(r"[-, ]+", " ", w.lower()).removeprefix("the ").strip() for w in (one, other))
    if None not in (month_in(left), month_in(right)):
        return left == right
    left, right = (re.sub(r"(?: of)? (?:[a-z]+)$", "", w) if month_in(w) else w for w in (left, right))
    return left == right


def _as_written(value: Value, clause: HeardClause, heard: Heard) -> str:
    """A value as it was written; a number or ordinal with a small letter, wherever it stood."""
    tokens = clause.clause.between(value.first, value.last)
    words = spoken_words(heard.spoken.text, tokens) if tokens else value.words
    named = value.kind == "day" or month_in(words.split(" ")[0].lower()) is not None
    return words if named else words[:1].lower() + words[1:]


def _with_month(words: str, old: str) -> str:
    """*The fifth* said of *the third of May* is the fifth of May."""
    month = re.search(r" of (?P<name>[A-Za-z]+)$", old)
    known = month_in(words.lower()) is not None or month is None or month_in(month["name"].lower()) is None
    return words if known or month is None else words + month.group()
