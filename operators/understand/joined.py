"""A decision that needs the words before it: both in one sentence, where one value or word only takes another's place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from operators.compose import sentence, statement_tokens, trim, with_antecedent
from operators.language.text import STOP, Clause, Token, clause_of, expand
from operators.language.values import Value, values_in
from operators.language.words import words_in
from operators.language.work import as_work

_SUBJECTS = words_in("i we you they he she")
_MEANT = words_in("it they them that this these those")
_ONLY_VALUE = re.compile(r"(?:(?:on|for|at|the) )*$")
_DENIES = re.compile(r"\b(?:not|no|never|without)\b")
_WOULD = re.compile(r"i would (?!not\b|like\b|rather\b|say\b|love\b|have\b)")
_ARTICLES = words_in("the a an our my your his her their this that")


def settled_text(text: str, tokens: Sequence[Token], about: Clause) -> str:
    """A short decision in the words of what it settles.

    *I'd plant on the fourth.* *Then the eighth.* is *Plant on the eighth*: the old value stands nowhere. A sentence of its own
    gets no other sentence before it; anything else comes after what it is about.
    """
    new = _only_value(text)
    if new is not None:
        return _with_value(text, new, about)
    other = _other_kind(tokens, about)
    if other:
        return other
    said = clause_of(tuple(tokens))
    complete = len(tokens) > 2 and bool(said.stems) and expand(tokens[0].text).split()[0] in _SUBJECTS
    explains = said.stems & about.stems and any(w in _MEANT for w in said.norm.split())
    needed = about.question_mark or len(about.tokens) <= 2 or bool(explains)
    return text if complete and not needed else with_antecedent(text, about.tokens)


def _only_value(text: str) -> Value | None:
    """The day or amount that is all a text says."""
    low = text.lower()
    values = values_in(low)
    alone = len(values) == 1 and values[0].last == len(low) and _ONLY_VALUE.match(low[: values[0].first])
    return values[0] if alone else None


def _with_value(text: str, new: Value, about: Clause) -> str:
    """What was said with the new value in the place of the old one; the new one alone where nobody can tell."""
    if _DENIES.search(about.norm):
        return text
    said = _statement(about)
    old = [v for v in values_in(said.lower()) if v.kind == new.kind]
    if not old:
        return with_antecedent(text, about.tokens)
    if len(old) > 1:
        return with_antecedent(text, about.tokens) if about.question_mark else text
    written = text[new.first : new.last]
    written = written if written[:1].isupper() and new.kind == "day" else written[:1].lower() + written[1:]
    whole = f"{said[: old[0].first]}{written}{said[old[0].last :]}"
    return whole[:1].upper() + whole[1:]


def _statement(about: Clause) -> str:
    tokens = as_work(list(statement_tokens(about)))
    opened = _WOULD.match(clause_of(tuple(tokens)).norm)
    if opened is not None:
        tokens = tokens[clause_of(tuple(tokens)).token_at(opened.end()) :]
    return sentence(trim(tokens))


def _other_kind(tokens: Sequence[Token], about: Clause) -> str:
    """*The picture goes on the north wall.* *South wall.*: on the south wall; nothing where no word takes another's place."""
    new = [t for t in tokens if t.low not in _ARTICLES]
    if not 2 <= len(new) <= 3 or any(t.low in STOP for t in new) or any(t.comma for t in new[:-1]):
        return ""
    said = list(trim(list(statement_tokens(about))))
    at = [n for n, t in enumerate(said) if t.low == new[-1].low]
    first = at[0] - len(new) + 1 if len(at) == 1 else 0
    if first < 2 or any(t.low in STOP or t.comma for t in said[first : at[0]]) or _DENIES.search(about.norm):
        return ""
    if said[first - 1].low not in _ARTICLES or [t.low for t in said[first : at[0]]] == [
        t.low for t in new[:-1]
    ]:
        return ""
    put = [replace(t, text=t.low, comma=False, ends_clause=False) if not t.person else t for t in new[:-1]]
    return sentence([*said[:first], *put, *said[at[0] :]])
