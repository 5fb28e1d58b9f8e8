"""Why a rule cannot be read, in words for people, and what was probably meant."""

import re
from typing import Final

from lark import Token
from lark.exceptions import UnexpectedToken

from .mistakes import Problem, nearest
from .scanner import KEYWORDS

_NEEDS: Final = (
    ({"STRING"}, "a text in double quotes"),
    ({"_COLON"}, "“:”"), ({"IN"}, "“in”"), ({"_EQUAL"}, "“=”"), ({"NAME"}, "a name"), ({"NUMBER"}, "a whole number"),
)  # fmt: skip
_QUOTES: Final = 'write straight double quotes: "…"'
_FOREIGN: Final = {
    "&&": "write “and”", "||": "write “or”", "!": "write “not”", "&": "write “and”", "|": "write “or”", "'": _QUOTES,
    "“": _QUOTES, "”": _QUOTES, "„": _QUOTES, "‘": _QUOTES, "’": _QUOTES, "≠": "write “!=”", "≥": "write “>=”",
    "≤": "write “<=”", "∧": "write “and”", "∨": "write “or”", "¬": "write “not”", "→": "write “implies”",
    "−": "write “-”", "–": "write “-”", "×": "write “*”", ";": "leave it out: a rule ends where the next assert begins",
    "{": "use ( or [", "}": "use ) or ]", "/": "there is no division: multiply the other side",
}  # fmt: skip
"""Signs of other languages and of word processors, and what to write instead."""
_FOREIGN_WORDS: Final = {
    "forall": "all", "every": "all", "each": "all", "exists": "any", "some": "any", "none": "null", "nil": "null",
    "undefined": "null", "is": "==", "includes": "contains", "has": "contains", "if": "A implies B", "then": "implies",
    "where": "when", "equals": "==", "for": "all", "None": "null", "True": "true", "False": "false",
    "AND": "and", "OR": "or", "NOT": "not", "unless": "or", "matches": "contains", "like": "contains",
    "foreach": "all", "exist": "any", "xor": "!=", "isin": "in",
}  # fmt: skip


def explained(error: UnexpectedToken, text: str) -> Problem:
    """The parser's complaint about a token."""
    token, expected = error.token, set(error.expected)
    before = text if token.type == "$END" else text[: int(token.start_pos or 0)]
    if token.type == "$END":
        end = len(text)
        return Problem(
            max(0, end - 1), end, f"the rule ends too early: {_wanted(expected, before)} is missing"
        )
    first, last = int(token.start_pos or 0), int(token.end_pos or 0)
    if (problem := _from_elsewhere(token, text, before)) is not None:
        return problem
    wanted = _wanted(expected, before)
    words = [word for word in KEYWORDS if word.upper() in expected]
    near = nearest(token.value, words) if token.type == "NAME" and len(token) > 1 else ""
    hint = f"did you mean “{near}”?" if near else ""
    if token.type == "COMPARE" and "IMPLIES" in expected:
        hint = "comparisons do not chain: write a < b and b < c"
    if expected == {"ASSERT"} and not hint:
        hint = 'every rule begins with assert "name":'
    kind = "is a word of the language and " if token.type in {k.upper() for k in KEYWORDS} else ""
    return Problem(first, last, f"“{_short(token)}” {kind}cannot stand here: {wanted} is expected", hint)


_WORD_BEFORE: Final = re.compile(r"([A-Za-z]+)\s+\Z")


def _from_elsewhere(token: Token, text: str, before: str) -> Problem | None:
    """Signs and words of other languages, at the place of the error or just before it."""
    first, last = int(token.start_pos or 0), int(token.end_pos or 0)
    if text.startswith("=>", first):
        return Problem(first, first + 2, "“=>” is not part of the language", "write “implies”")
    if token.type == "_EQUAL":
        return Problem(first, last, "“=” does not compare", "write “==”")
    if text[first - 1 : first + 1] == "<>":
        return Problem(first - 1, last, "“<>” is not part of the language", "write “!=”")
    if token.type == "COMPARE" and before.rstrip().endswith(
        ("repair", " owner", " due", " text", " due_text")
    ):
        return Problem(first, last, f"“{token}” gives no value", "write FIELD = VALUE")
    if token.type == "NAME" and (hint := _FOREIGN_WORDS.get(token.value)):
        return Problem(first, last, f"“{token}” is not part of the language", f"write “{hint}”")
    word = _WORD_BEFORE.search(before[-60:])
    if word is not None and (hint := _FOREIGN_WORDS.get(word.group(1))):
        begin = len(before) - len(word.group())
        return Problem(
            begin,
            begin + len(word.group(1)),
            f"“{word.group(1)}” is not part of the language",
            f"write “{hint}”",
        )
    return None


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"


def _wanted(expected: set[str], before: str) -> str:
    """What should have come; ``before`` is the rule up to there, which tells open brackets."""
    if expected & {"RPAREN", "RBRACKET"} and (opened := _open_bracket(before)):
        return f"a closing “{opened}”"
    if _HEADED.search(before[-400:]):
        return "“:”"
    if "IMPLIES" in expected:  # a whole expression has been read
        return (
            "“:”"
            if "AT" not in expected
            else "an operator, a clause (when, at, severity, on fail) or the end"
        )
    if "LPAREN" in expected and "NUMBER" in expected:
        return "a value or a condition"
    for names, told in _NEEDS:
        if names & expected:
            return told
    return "“assert”" if "ASSERT" in expected else "a clause (when, at, severity, on fail)"


_HEADED: Final = re.compile(r"\b(?:all|any|no)\s+\w+\s+in\s[^:]*\Z")
"""A quantifier that still has no colon."""
_BRACKETS: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|[()\[\]]')


def _open_bracket(text: str) -> str:
    """The bracket that would close what is open at the end of ``text``."""
    opened: list[str] = []
    for sign in _BRACKETS.findall(text):
        if sign in ("(", "["):
            opened.append(")" if sign == "(" else "]")
        elif sign in (")", "]") and opened:
            opened.pop()
    return opened[-1] if opened else ""


def strange_sign(at: int, text: str) -> Problem:
    """A character that begins no token."""
    sign = text[at : at + 1]
    if sign == '"':
        end = text.find("\n", at)
        last = end if end >= 0 else len(text)
        return Problem(at, last, "this text has no closing quote", 'a text ends with " on the same line')
    for wide in (text[at : at + 2], sign):
        if wide in _FOREIGN:
            shown = f"the sign {wide}" if _FOREIGN[wide] == _QUOTES else f"“{wide}”"
            return Problem(at, at + len(wide), f"{shown} is not part of the language", _FOREIGN[wide])
    told = f"“{sign}”" if sign.isprintable() else f"the character U+{ord(sign):04X}"
    hint = "names are written in plain letters; other text belongs in quotes" if not sign.isascii() else ""
    return Problem(at, at + 1, f"{told} is not part of the language", hint)
