"""Built-in functions: what they take, what they give, and how they are explained in the documentation."""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from . import words
from .kinds import DATE, NUMBER, NUMBERS, TEXT, TEXTS, TRUTH, Kind
from .quantities import numbers, numbers_of_all

Wanted = Literal["text", "texts", "item", "date", "moment", "any", "same"]
"""What an argument may be: ``texts`` is a text or a list of them, ``same`` is of the first argument's type."""
_SPOKEN: Final = {
    "text": "a text", "texts": "a text or a list of texts", "item": "an item or a summary sentence",
    "date": "a date", "moment": "a moment", "any": "a value", "same": "a value of the same type",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in. ``needs`` are parts of the document whose held form comes as first argument.

    A missing ``texts`` counts as no text; any other missing argument makes the result missing.
    """

    name: str
    takes: tuple[Wanted, ...]
    gives: Kind
    run: Callable[..., Any]
    told: str
    example: str
    needs: str = ""
    one: Callable[[str], Any] | None = None
    """``run`` for a single text, where that is quicker."""

    @property
    def signature(self) -> str:
        """As a user reads it."""
        return f"{self.name}({', '.join(_SPOKEN[w] for w in self.takes)})"


def _each(read: Callable[[str], tuple[str, ...]]) -> Callable[[Iterable[str]], tuple[str, ...]]:
    def read_all(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found for text in texts for found in read(text)))

    return read_all


def quotes(item: Any) -> tuple[str, ...]:
    """Quotes of an item's evidence: what was said and what stood on slides, not how a picture is put into words."""
    return tuple([evidence.quote for evidence in item.evidence if evidence.kind != "picture"])


def speakers(item: Any) -> tuple[str, ...]:
    """Speakers of an item's evidence, as the streams call them."""
    return tuple(dict.fromkeys([e.speaker for e in item.evidence if e.speaker is not None]))


def people(labels: dict[str, str], item: Any) -> tuple[str, ...]:
    """Who stands behind an item: speakers of its evidence by label and by name, and its owner."""
    found = dict.fromkeys(speakers(item))
    found |= dict.fromkeys([labels[label] for label in found if label in labels])
    owner = getattr(item, "owner", None)
    return tuple(found | ({owner: None} if owner is not None else {}))


def _external(outside: frozenset[str], name: str) -> bool:
    return words.folded(name) in outside


def _looks_like(text: str, names: Iterable[str]) -> bool:
    """Whether a name is none of ``names`` but looks the same as one of them."""
    own, shape = words.folded(text), words.skeleton(text)
    return any(words.skeleton(n) == shape for n in names) and all(words.folded(n) != own for n in names)


def _starts(text: str, begin: str) -> bool:
    return words.folded(text).startswith(words.folded(begin))


def _ends(text: str, end: str) -> bool:
    return words.folded(text).endswith(words.folded(end))


def _weekday(day: datetime.date) -> str:
    return words.DAYS[day.weekday()]


FUNCTIONS: Final = {
    function.name: function
    for function in (
        Function("words", ("texts",), TEXTS, _each(words.words),
                 "its different words, in lower case, without accents and possessive *’s*",
                 "count(words(i.text)) <= 40"),
        Function("length", ("text",), NUMBER, len, "how many characters it has", "length(i.text) <= 400"),
        Function("numbers", ("texts",), NUMBERS, numbers_of_all,
                 "the numbers in it, in digits or words; *five hundred*, *500* and *0.5k* are one number",
                 "numbers(i.text) subset numbers(quotes(i))", one=numbers),
        Function("names", ("texts",), TEXTS, _each(words.names),
                 "words with a capital inside a sentence, days and months left out",
                 "all n in names(i.text): quotes(i) contains n or people(i) contains n"),
        Function("day_names", ("texts",), TEXTS, _each(words.day_names),
                 "days and months named in it, also *today*, *tomorrow*, *tonight* and *yesterday*",
                 "day_names(i.text) subset day_names(quotes(i))"),
        Function("quotes", ("item",), TEXTS, quotes,
                 "the quotes of its evidence: what was said, and what stood on slides", "quotes(i) != []"),
        Function("speakers", ("item",), TEXTS, speakers, "who speaks in its evidence, as the streams call them",
                 'speakers(i) != []'),
        Function("people", ("item",), TEXTS, people,
                 "who stands behind it: speakers of the evidence, by name too, and the owner",
                 "people(i) contains \"Anna\"", "labels"),
        Function("external", ("text",), TRUTH, _external,
                 "whether this is the name of somebody who is only talked of, not in the meeting",
                 "a.owner in attendees or external(a.owner)", "outside"),
        Function("looks_like", ("text", "texts"), TRUTH, _looks_like,
                 "whether it is none of the names but looks like one (letters of another alphabet)",
                 "not looks_like(a.owner, attendees)"),
        Function("plain", ("text",), TRUTH, words.is_plain,
                 "whether it is free of control, zero-width and direction-changing characters", "plain(i.text)"),
        Function("starts_with", ("text", "text"), TRUTH, _starts,
                 "whether it begins with the second text, case ignored", 'starts_with(i.text, "we ")'),
        Function("ends_with", ("text", "text"), TRUTH, _ends,
                 "whether it ends with the second text, case ignored", 'ends_with(q.text, "?")'),
        Function("weekday", ("date",), Kind("text", values=frozenset(words.DAYS)), _weekday,
                 "its day of the week, in lower case", 'weekday(a.due) not in ["saturday", "sunday"]'),
        Function("day", ("date",), NUMBER, lambda day: day.day, "day of the month", "day(a.due) <= 28"),
        Function("month", ("date",), NUMBER, lambda day: day.month, "month, 1 to 12", "month(a.due) != 8"),
        Function("year", ("date",), NUMBER, lambda day: day.year, "year", "year(a.due) < 2100"),
        Function("date", ("moment",), DATE, datetime.datetime.date, "its day",
                 "date(meeting.started) == meeting.date"),
        Function("or_else", ("any", "same"), TEXT, lambda value, instead: value,
                 "the first value, or the second where the first is missing",
                 'or_else(a.owner, "nobody") != "nobody"'),
    )
}  # fmt: skip
"""``count`` and ``distinct`` go through lists and are part of the grammar; ``count`` also counts a list."""
