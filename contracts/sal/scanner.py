"""Text of a rule to tokens, in one pass."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from lark import Token
from lark.lexer import Lexer

KEYWORDS: Final = (
    "assert", "all", "any", "no", "in", "and", "or", "not", "implies", "contains", "mentions", "subset",
    "when", "at", "on", "severity", "true", "false", "null",
)  # fmt: skip
_TOKEN: Final = re.compile(
    r"""
    (?P<SPACE>(?:[ \t\r\n]+|\#[^\n]*)+)
    | (?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<DATE>[0-9]{4}-[0-9]{2}-[0-9]{2})
    | (?P<NUMBER>[0-9]+(?:\.[0-9]+)?)
    | (?P<STRING>"(?:[^"\\\n]|\\.)*")
    | (?P<SIGN>[=!<>]=|[<>=:,.()\[\]+*-])
    """,
    re.VERBOSE,
)
_WORDS: Final = {word: word.upper() for word in KEYWORDS}
_SIGNS: Final = {
    **dict.fromkeys(("==", "!=", "<=", ">=", "<", ">"), "COMPARE"),
    "=": "_EQUAL", ":": "_COLON", ",": "_COMMA", ".": "_DOT", "(": "LPAREN", ")": "RPAREN", "[": "LBRACKET",
    "]": "RBRACKET", "+": "PLUS", "-": "MINUS", "*": "STAR",
}  # fmt: skip


class StrangeSign(Exception):
    """A character with which no token begins, at ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Scanner(Lexer):
    """Takes the place of the parser library's own lexer, which does more for each token than is needed here."""

    def __init__(self, settings: Any) -> None:
        del settings  # the terminals of the grammar are those above

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """Tokens with their places. Raises ``StrangeSign``."""
        place, match_at = 0, _TOKEN.match
        make: Callable[..., Token] = Token._future_new
        while place < len(text):
            match = match_at(text, place)
            if match is None:
                raise StrangeSign(place)
            kind, value, last = match.lastgroup, match.group(), match.end()
            if kind == "NAME":
                kind = _WORDS.get(value, kind)
            elif kind == "SIGN":
                kind = _SIGNS[value]
            if kind != "SPACE":
                yield make(kind, value, place, None, None, None, None, last)
            place = last
