"""Text of a rule file to syntax trees. The parser (LALR) takes time in proportion to the text."""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedToken

from . import tree
from .mistakes import Problem, meant
from .scanner import KEYWORDS as KEYWORDS
from .scanner import Scanner, StrangeSign
from .syntax_errors import explained, strange_sign

MAX_RULES: Final = 10_000
MAX_FILE_CHARS: Final = 4_000_000
MAX_RULE_CHARS: Final = 10_000
MAX_DEPTH: Final = 64
_MAX_DIGITS: Final = 15

GRAMMAR: Final = r"""
start: ASSERT STRING _COLON _expression clause*
clause: WHEN _expression | AT NAME | SEVERITY NAME | ON NAME _COLON NAME [assignment (_COMMA assignment)*]
assignment: NAME _EQUAL _expression

_expression: logic
?logic: negation ((IMPLIES | OR | AND) negation)*
?negation: NOT negation -> negated | (ALL | ANY | NO) NAME IN sum _COLON _expression -> quantified | comparison
?comparison: sum | sum COMPARE sum -> compared | sum (IN | CONTAINS | MENTIONS | SUBSET) sum -> compared
    | sum NOT (IN | CONTAINS | MENTIONS | SUBSET) sum -> compared_not
?sum: unary ((PLUS | MINUS | STAR) unary)*
?unary: MINUS unary -> minus | postfix
?postfix: atom | postfix _DOT NAME -> field | postfix LBRACKET NUMBER RBRACKET -> index
?atom: NUMBER -> number | NUMBER NAME -> duration | DATE -> date | STRING -> text
    | TRUE -> true | FALSE -> false | NULL -> null | NAME -> name
    | NAME LPAREN [_expression (_COMMA _expression)*] RPAREN -> call
    | NAME LPAREN _expression _COLON _expression RPAREN -> loop_call
    | LPAREN _expression RPAREN -> grouped
    | LBRACKET [_expression (_COMMA _expression)*] RBRACKET -> listed

%declare ASSERT ALL ANY NO IN AND OR NOT IMPLIES CONTAINS MENTIONS SUBSET WHEN AT ON SEVERITY TRUE FALSE NULL
%declare COMPARE PLUS MINUS STAR LPAREN RPAREN LBRACKET RBRACKET DATE NUMBER NAME STRING _COLON _COMMA _DOT _EQUAL
"""
UNITS_US: Final = {
    "ms": 1_000, "s": 1_000_000, "second": 1_000_000, "seconds": 1_000_000,
    "min": 60_000_000, "minute": 60_000_000, "minutes": 60_000_000,
    "h": 3_600_000_000, "hour": 3_600_000_000, "hours": 3_600_000_000,
    "day": 86_400_000_000, "days": 86_400_000_000, "week": 604_800_000_000, "weeks": 604_800_000_000,
}  # fmt: skip
"""Units of durations in microseconds."""

_Children = list[Any]


def _first(child: Any) -> int:
    first: int = child.start_pos if isinstance(child, Token) else child.first  # type: ignore[assignment]
    return first


def _last(child: Any) -> int:
    last: int = child.end_pos if isinstance(child, Token) else child.last  # type: ignore[assignment]
    return last


def _depth(*nodes: tree.Node) -> int:
    return 1 + max((node.depth for node in nodes), default=0)


class _Builder(Transformer[Token, tree.Rule]):
    """Makes the nodes while the parser reads, bottom up, so that depth costs no stack."""

    def start(self, children: _Children) -> tree.Rule:
        return tree.Rule(
            _unquoted(children[1]), children[2], tuple(children[3:]), name_last=_last(children[1])
        )

    def clause(self, children: _Children) -> tree.Clause:
        head, first, last = children[0], _first(children[0]), _last(children[-1])
        if head.type == "WHEN":
            return tree.Clause(first, last, "when", condition=children[1])
        if head.type == "AT":
            return tree.Clause(_first(children[1]), last, "at", str(children[1]))
        if head.type == "SEVERITY":
            return tree.Clause(_first(children[1]), last, "severity", str(children[1]))
        if children[1] != "fail":
            raise Problem(first, _last(children[1]), f"“on {children[1]}” is not known", "write “on fail:”")
        action = children[2]
        return tree.Clause(
            _first(action), _last(action), "on fail", str(action), assignments=tuple(children[3:])
        )

    def assignment(self, children: _Children) -> tree.Assignment:
        return tree.Assignment(_first(children[0]), _last(children[1]), str(children[0]), children[1])

    def logic(self, children: _Children) -> tree.Node:
        return _implied(children)

    def sum(self, children: _Children) -> tree.Node:
        return _summed(children)

    def negated(self, children: _Children) -> tree.Node:
        return tree.Not(_first(children[0]), children[1].last, _depth(children[1]), children[1])

    def quantified(self, children: _Children) -> tree.Node:
        kind, variable, _, source, body = children
        return tree.Loop(
            _first(kind), body.last, _depth(source, body), kind.value, str(variable), source, body
        )

    def compared(self, children: _Children) -> tree.Node:
        left, sign, right = children
        return tree.Compare(left.first, right.last, _depth(left, right), sign.value, left, right)

    def compared_not(self, children: _Children) -> tree.Node:
        left, _, sign, right = children
        return tree.Compare(left.first, right.last, _depth(left, right), sign.value, left, right, True)

    def minus(self, children: _Children) -> tree.Node:
        of = children[1]
        if isinstance(of, tree.Literal) and of.kind in ("number", "duration"):
            return tree.Literal(_first(children[0]), of.last, 1, of.kind, -of.value)  # type: ignore[operator]
        return tree.Minus(_first(children[0]), of.last, _depth(of), of)

    def field(self, children: _Children) -> tree.Node:
        of, name = children
        return tree.Field(of.first, _last(name), _depth(of), of, str(name), _first(name))

    def index(self, children: _Children) -> tree.Node:
        of, _, at, close = children
        if not at.isdigit() or len(at) > 4:
            raise Problem(_first(at), _last(at), "a place in a list is a whole number below 10,000")
        return tree.Index(of.first, _last(close), _depth(of), of, int(at))

    def name(self, children: _Children) -> tree.Node:
        return tree.Name(_first(children[0]), _last(children[0]), 1, str(children[0]))

    def grouped(self, children: _Children) -> tree.Node:
        inner = children[1]
        inner.first, inner.last = _first(children[0]), _last(children[2])
        inner.depth += 1
        return inner  # type: ignore[no-any-return]

    def listed(self, children: _Children) -> tree.Node:
        parts = tuple(children[1:-1])
        return tree.ListOf(_first(children[0]), _last(children[-1]), _depth(*parts), parts)

    def call(self, children: _Children) -> tree.Node:
        arguments = tuple(children[2:-1])
        return tree.Call(
            _first(children[0]), _last(children[-1]), _depth(*arguments), str(children[0]), arguments
        )

    def loop_call(self, children: _Children) -> tree.Node:
        name, _, given, body, close = children
        if name.value not in ("count", "distinct"):
            raise Problem(
                _first(name), _last(name), f"{name} does not go through a list",
                "only count(x in LIST: CONDITION) and distinct(x in LIST: TEXT) do",
            )  # fmt: skip
        plainly = isinstance(given, tree.Compare) and given.operator == "in" and not given.negated
        if not plainly or not isinstance(given.left, tree.Name):
            raise Problem(given.first, given.last, f"write {name}(x in LIST: …)")
        return tree.Loop(
            _first(name), _last(close), _depth(given.right, body), name.value, given.left.name, given.right,
            body,
        )  # fmt: skip

    def number(self, children: _Children) -> tree.Node:
        return _literal(children[0], "number", _number(children[0]))

    def duration(self, children: _Children) -> tree.Node:
        number, unit = children
        if unit.value not in UNITS_US:
            raise Problem(
                _first(unit), _last(unit), f"“{unit}” is no unit of time",
                meant(unit.value, UNITS_US) or "use ms, s, min, h, days or weeks",
            )  # fmt: skip
        length = round(_number(number) * UNITS_US[unit.value])
        return tree.Literal(_first(number), _last(unit), 1, "duration", length)

    def date(self, children: _Children) -> tree.Node:
        (token,) = children
        try:
            return _literal(token, "date", datetime.date.fromisoformat(token.value))
        except ValueError:
            raise Problem(
                _first(token), _last(token), f"{token} is no day of the calendar", "write YYYY-MM-DD"
            ) from None

    def text(self, children: _Children) -> tree.Node:
        return _literal(children[0], "text", _unquoted(children[0]))

    def true(self, children: _Children) -> tree.Node:
        return _literal(children[0], "bool", True)

    def false(self, children: _Children) -> tree.Node:
        return _literal(children[0], "bool", False)

    def null(self, children: _Children) -> tree.Node:
        return _literal(children[0], "null", None)


def _split(children: _Children, sign: str) -> list[_Children]:
    """Operands and operators cut at every operator of one kind, which is left out."""
    parts: list[_Children] = [[]]
    for child in children:
        if isinstance(child, Token) and child.type == sign:
            parts.append([])
        else:
            parts[-1].append(child)
    return parts


def _implied(children: _Children) -> tree.Node:
    """*and* binds more strongly than *or*, and both more than *implies*, which groups to the right."""
    *before, found = [_either(part) for part in _split(children, "IMPLIES")]
    for left in reversed(before):
        found = tree.Implies(left.first, found.last, _depth(left, found), left, found)
    return found


def _either(children: _Children) -> tree.Node:
    return _logic("or", [_logic("and", part[::2]) for part in _split(children, "OR")])


def _logic(operator: Literal["and", "or"], parts: _Children) -> tree.Node:
    if len(parts) == 1:
        return parts[0]  # type: ignore[no-any-return]
    return tree.Logic(parts[0].first, parts[-1].last, _depth(*parts), operator, tuple(parts))


def _summed(children: _Children) -> tree.Node:
    """Products first, then sums from the left."""
    values: _Children = [children[0]]
    signs: list[Token] = []
    for sign, value in zip(children[1::2], children[2::2], strict=True):
        if sign.type == "STAR":
            values[-1] = _arithmetic(sign, values[-1], value)
        else:
            signs.append(sign)
            values.append(value)
    found: tree.Node = values[0]
    for sign, value in zip(signs, values[1:], strict=True):
        found = _arithmetic(sign, found, value)
    return found


def _arithmetic(sign: Token, left: tree.Node, right: tree.Node) -> tree.Node:
    operator: Any = sign.value
    return tree.Arithmetic(left.first, right.last, _depth(left, right), operator, left, right)


def _literal(token: Token, kind: tree.LiteralKind, value: Any) -> tree.Node:
    return tree.Literal(_first(token), _last(token), 1, kind, value)


def _number(token: Token) -> int | float:
    if len(token) > _MAX_DIGITS:
        raise Problem(_first(token), _last(token), f"a number has at most {_MAX_DIGITS} digits")
    return float(token) if "." in token else int(token)


_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def _unquoted(token: Token) -> str:
    inner = token.value[1:-1]
    if "\\" not in inner:
        return str(inner)

    def plain(match: re.Match[str]) -> str:
        if match.group(1) not in _ESCAPES:
            at = _first(token) + 1 + match.start()
            raise Problem(
                at, at + 2, f"“\\{match.group(1)}” means nothing in a text", 'write \\", \\\\, \\n or \\t'
            )
        return _ESCAPES[match.group(1)]

    return re.sub(r"\\(.)", plain, inner)


@cache
def _reader() -> Callable[[str], Any]:
    """The parser, built when the first rule is read: the tables take a moment."""
    return Lark(GRAMMAR, parser="lalr", lexer=Scanner, transformer=_Builder(), maybe_placeholders=False).parse


def parse_rule(text: str) -> tree.Rule:
    """One rule. Raises ``Problem`` with the place of its first mistake."""
    if len(text) > MAX_RULE_CHARS:
        raise Problem(
            0, 6, f"a rule has at most {MAX_RULE_CHARS:,} characters", "split it with several asserts"
        )
    try:
        rule: tree.Rule = _reader()(text)
    except UnexpectedToken as error:
        raise explained(error, text) from None
    except StrangeSign as error:
        raise strange_sign(error.place, text) from None
    if rule.body.depth > MAX_DEPTH or any(_clause_depth(clause) > MAX_DEPTH for clause in rule.clauses):
        raise Problem(
            rule.body.first,
            rule.body.last,
            f"nested more than {MAX_DEPTH} deep",
            "split it into several rules",
        )
    rule.text = text
    return rule


def _clause_depth(clause: tree.Clause) -> int:
    nodes = [a.value for a in clause.assignments]
    return _depth(*nodes, *([clause.condition] if clause.condition is not None else []))


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one rule with its place in the file, in characters and lines from 1."""

    text: str
    first: int
    line: int


_BEGIN: Final = re.compile(r"^[ \t]*(?=assert\b)", re.MULTILINE)
_NOTHING: Final = re.compile(r"(?:\s+|#[^\n]*)*+\Z")


def pieces(text: str) -> Iterator[Piece]:
    """The file cut before each line that begins with ``assert``; what stands before the first comes first."""
    borders = [match.end() for match in _BEGIN.finditer(text)]
    line, begun = 1, 0
    if not borders or _NOTHING.match(text, 0, borders[0]) is None:
        borders = [0, *borders]
    for first, last in zip(borders, [*borders[1:], len(text)], strict=True):
        line += text.count("\n", begun, first)
        begun = first
        yield Piece(text[first:last].rstrip(), first, line)
