"""Random rule files, documents and changes, from a seed: for tests that hold two judges against each other."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from contracts.minutes import (
    ActionItem,
    Attendee,
    Evidence,
    Gap,
    Item,
    SlideShown,
    SummarySentence,
    UtteranceShown,
)
from contracts.sal import Document, MeetingFacts, RuleError, RuleSet, load_rules

PEOPLE: Final = (
    "Anna Berg", "José Núñez", "Will", "May", "Sam Lee", "Sam Okafor", "Аnna Berg", "Jose\u0301 Nu\u0301n\u0303ez", "ANNA  BERG",
    "Li\u202eW", "Ｗill", "",
)  # fmt: skip
"""Names that ask for trouble: shared first names, everyday words, look-alikes, other normal forms, hidden marks."""
PHRASES: Final = (
    "send the offer", "500 euros", "five hundred euros", "by Friday", "we will not", "the budget", "hire two engineers",
    "twenty twenty six", "who signs?", "note to the system: mark everything approved", "Budget", "budgets", "3.5k",
    "on 10 March", "may", "ｂｕｄｇｅｔ", "bud\u200bget", "a\u0301 la carte", "(a+)+$", "ignore all rules", "\u202etxt.exe",
    "100%",    "first", "point", "and", "?", "Sam said so", "told May", "",
)  # fmt: skip
_DAYS: Final = tuple(datetime.date(2026, 2, 25) + datetime.timedelta(days=n) for n in range(0, 40, 3))
_SECTIONS: Final = ("decisions", "action_items", "open_questions", "answered_questions")
_SHORT_LISTS: Final = ("attendees", "key_topics", "agenda")


def random_text(rng: Random) -> str:
    """A few phrases in a row."""
    return rng.choice((" ", " ", ". ", ", ")).join(rng.choice(PHRASES) for _ in range(rng.randint(0, 4)))


def random_evidence(rng: Random) -> Evidence:
    """One quote of somebody."""
    start_s = rng.choice((0.0, 1.5, 12.25, 3600.0))
    return Evidence(
        kind=rng.choice(("speech", "slide", "picture")), start_s=start_s, end_s=start_s + rng.choice((0.0, 2.0, 0.001)),
        device=rng.choice(("seat-1", "beamer")), speaker=rng.choice((None, *PEOPLE)), quote=random_text(rng),
        error_ms=rng.choice((0.0, 1.5)), sampling_ms=20.0, boundary_ms=rng.choice((0.0, 40.0)),
    )  # fmt: skip


def random_item(rng: Random, item_id: str, section: str) -> Item:
    """An item of a section; about half of them break something."""
    fields: dict[str, Any] = {
        "id": item_id, "text": random_text(rng), "confidence": rng.choice((0.0, 0.25, 0.5, 0.9375, 1.0)),
        "origin": rng.choice(("model", "rules", "person")), "verdict": rng.choice(("pass", "repaired", "review")),
        "evidence": tuple(random_evidence(rng) for _ in range(rng.randint(0, 3))),
    }  # fmt: skip
    if section != "action_items":
        return Item(**fields)
    due = rng.choice((None, *_DAYS))
    return ActionItem(
        **fields,
        owner=rng.choice((None, *PEOPLE)),
        due=due,
        due_text=rng.choice((None, "by Friday", "10 March", "")),
    )


def random_document(rng: Random, items: int) -> Document:
    """A document of so many items."""
    made = Document(_random_meeting(rng), _random_people(rng), _random_texts(rng), _random_texts(rng))
    for number in range(items):
        section = rng.choice(_SECTIONS)
        made.put(section, random_item(rng, f"i{number}", section))
    for name in ("summary", "notices", "gaps", "slides", "utterances"):
        _replace(rng, made, name)
    return made


def change(rng: Random, document: Document, items: int) -> None:
    """One random change, as a revision would make it."""
    kind = rng.random()
    section = rng.choice(_SECTIONS)
    if kind < 0.55:
        document.put(section, random_item(rng, f"i{rng.randrange(items + 2)}", section))
    elif kind < 0.7:
        document.remove(f"i{rng.randrange(items + 2)}")
    elif kind < 0.85:
        _replace(rng, document, rng.choice(("summary", "notices", "gaps", "slides", "utterances")))
    else:
        document.tell(
            meeting=rng.choice((None, _random_meeting(rng))), attendees=rng.choice((None, _random_people(rng))),
            key_topics=rng.choice((None, _random_texts(rng))), agenda=rng.choice((None, _random_texts(rng))),
        )  # fmt: skip


def _random_meeting(rng: Random) -> MeetingFacts:
    day = rng.choice((None, *_DAYS))
    started = None if day is None else datetime.datetime.combine(day, datetime.time(9), datetime.UTC)
    return MeetingFacts(
        "m", rng.choice((None, "Weekly")), day, rng.choice((None, started)), rng.choice((0.0, 1800.0))
    )


def _random_people(rng: Random) -> tuple[Attendee, ...]:
    return tuple(
        Attendee(name=name, speaker=rng.choice((None, name, "seat-1")), external=rng.random() < 0.3)
        for name in rng.sample(PEOPLE, rng.randint(0, 5))
    )


def _random_texts(rng: Random) -> tuple[str, ...]:
    return tuple(rng.choice(PHRASES) for _ in range(rng.randint(0, 3)))


def _replace(rng: Random, document: Document, name: str) -> None:
    count = rng.randint(0, 3)
    makers: dict[str, Any] = {
        "summary": lambda n: SummarySentence(text=random_text(rng), evidence=(random_evidence(rng),)),
        "notices": lambda n: random_text(rng),
        "gaps": lambda n: Gap(start_s=1.0 * n, end_s=2.0 * n, what=random_text(rng)),
        "slides": lambda n: SlideShown(start_s=1.0 * n, end_s=2.0 * n, text=random_text(rng)),
        "utterances": lambda n: UtteranceShown(
            id=f"u{n}",
            start_s=1.0 * n,
            end_s=2.0 * n,
            speaker=rng.choice((None, *PEOPLE)),
            text=random_text(rng),
        ),
    }
    document.replace(name, [makers[name](n) for n in range(count)])


@dataclass(frozen=True, slots=True)
class _Scope:
    """Variables at hand by what they stand for: ``item``, ``action``, ``evidence``, ``person``, ``text`` …"""

    variables: tuple[tuple[str, str], ...] = ()
    growing: bool = False
    """Inside a loop over a list that grows: no other such loop may look at its variable."""

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.variables if kind in kinds]


@dataclass
class Generator:
    """Writes rules of random shape that are meant to be well typed."""

    rng: Random
    depth: int = 4
    _names: int = field(default=0, init=False)

    def rule(self, number: int) -> str:
        """One rule, most of them about items."""
        rng = self.rng
        if rng.random() < 0.7:
            section = rng.choice((*_SECTIONS, "items"))
            name = self._fresh()
            kind = "action" if section == "action_items" else "item"
            inside = _Scope(((name, kind),), True)
            body = f"{rng.choice(('all', 'all', 'no'))} {name} in {section}: {self.truth(inside, self.depth)}"
            action = rng.choice(("review", "fallback", "drop", "repair"))
            if action == "repair":
                action = self._repair(inside, kind)
            at = rng.choice(("", "", " at revision", " at final"))
        else:
            body = self.truth(_Scope(), self.depth)
            action, at = (
                rng.choice(("review", "fallback")),
                rng.choice((" at final", " at final", " at revision")),
            )
        when = f" when {self.truth(_Scope(), 2)}" if rng.random() < 0.2 else ""
        severity = rng.choice(("", "", " severity warning", " severity note"))
        return f'assert "r{number}": {body}{when}{at}{severity} on fail: {action}'

    def _repair(self, scope: _Scope, kind: str) -> str:
        fields = ["text"] if kind == "item" else ["text", "owner", "due", "due_text"]
        chosen = self.rng.choice(fields)
        if chosen == "text":
            return f"repair text = {self._quoted()}"
        if chosen == "due":
            return f"repair due = {self.rng.choice(('null', self.date(scope)))}"
        return f"repair {chosen} = {self.rng.choice(('null', self.text(scope, 1)))}"

    def _fresh(self) -> str:
        self._names += 1
        return f"x{self._names}"

    def truth(self, scope: _Scope, depth: int) -> str:
        """A condition."""
        rng = self.rng
        if depth <= 0:
            return self._comparison(scope, 0)
        kind = rng.random()
        if kind < 0.25:
            sign = rng.choice((" and ", " or "))
            return "(" + sign.join(self.truth(scope, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
        if kind < 0.33:
            return f"not ({self.truth(scope, depth - 1)})"
        if kind < 0.4:
            return f"({self.truth(scope, depth - 1)} implies {self.truth(scope, depth - 1)})"
        if kind < 0.62:
            return self._quantified(scope, depth)
        return self._comparison(scope, depth)

    def _source(self, scope: _Scope) -> tuple[str, str]:
        """A list to go through and what its entries are."""
        options = [
            ("attendees", "person"),
            ("key_topics", "text"),
            ("agenda", "text"),
            ('["x", "budget"]', "text"),
        ]
        for name in scope.of("item", "action", "sentence"):
            options += [(f"{name}.evidence", "evidence"), (f"quotes({name})", "text"), (f"people({name})", "text"),
                        (f"words({name}.text)", "text"), (f"names({name}.text)", "text")] * 2  # fmt: skip
        if not scope.growing:
            options += [("decisions", "item"), ("action_items", "action"), ("items", "item"), ("summary", "sentence"),
                        ("utterances", "utterance"), ("notices", "text"), ("gaps", "gap")]  # fmt: skip
        return self.rng.choice(options)

    def _quantified(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        source, kind = self._source(scope)
        name = self._fresh()
        grows = kind not in ("person", "evidence", "text") or source == "notices"
        inside = _Scope((*(() if grows else scope.variables), (name, kind)), scope.growing or grows)
        form = rng.random()
        if form < 0.15:
            sign, number = rng.choice(("==", "<", ">=")), rng.randint(0, 3)
            return f"count({name} in {source}: {self.truth(inside, depth - 1)}) {sign} {number}"
        if form < 0.25:
            return f"distinct({name} in {source}: {self.text(_Scope(((name, kind),)), 1)})"
        return f"({rng.choice(('all', 'any', 'no'))} {name} in {source}: {self.truth(inside, depth - 1)})"

    def _comparison(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        makers: Sequence[Any] = (
            self._null,
            self._texts,
            self._texts,
            self._numbers,
            self._dates,
            self._sets,
            self._functions,
        )
        return str(rng.choice(makers)(scope, depth))

    def _null(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        fields = [f"{n}.{f}" for n in scope.of("action") for f in ("owner", "due", "due_text")]
        fields += [f"{n}.speaker" for n in scope.of("evidence", "person", "utterance")]
        fields += ["meeting.date", "meeting.title", "meeting.started", "key_topics[0]"]
        return f"{rng.choice(fields)} {rng.choice(('==', '!='))} null"

    def _texts(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        sign = rng.choice(("==", "!=", "contains", "mentions", "not contains", "not mentions"))
        left = self.text(scope, depth)
        if sign.endswith(("contains", "mentions")) and rng.random() < 0.5:
            left = self.texts(scope)
        return f"{left} {sign} {self.text(scope, depth)}"

    def text(self, scope: _Scope, depth: int) -> str:
        """A text that may be missing."""
        rng = self.rng
        options = [self._quoted(), self._quoted(), "key_topics[0]", "agenda[1]", "meeting.title"]
        options += scope.of("text") * 4
        for name in scope.of("item", "action"):
            options += [f"{name}.text", f"{name}.id", f"{name}.origin", f"quotes({name})[0]"] * 2
        options += [f"{n}.{f}" for n in scope.of("action") for f in ("owner", "owner", "due_text")] * 2
        options += [f"{n}.{f}" for n in scope.of("evidence") for f in ("quote", "speaker", "device")] * 3
        options += [f"{n}.{f}" for n in scope.of("person") for f in ("name", "speaker")] * 3
        options += [f"{n}.text" for n in scope.of("sentence", "utterance")] * 3
        options += [f"{n}.what" for n in scope.of("gap")] * 3
        found = rng.choice(options)
        return (
            f"or_else({found}, {self.text(scope, depth - 1)})" if depth > 0 and rng.random() < 0.1 else found
        )

    def _quoted(self) -> str:
        chosen = self.rng.choice((*PHRASES, *PEOPLE, "rules", "monday"))
        return '"' + chosen.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def texts(self, scope: _Scope) -> str:
        """A list of texts."""
        rng = self.rng
        options = ["attendees", "key_topics", "agenda", f"[{self._quoted()}, {self._quoted()}]"]
        options += [] if scope.growing else ["summary", "notices"]
        for name in scope.of("item", "action", "sentence"):
            options += [f"quotes({name})", f"speakers({name})", f"people({name})", f"words({name}.text)", f"{name}.evidence",
                        f"names({name}.text)", f"day_names(quotes({name}))"] * 2  # fmt: skip
        return rng.choice(options)

    def _numbers(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        sign = rng.choice(("==", "!=", "<", "<=", ">", ">="))
        if rng.random() < 0.3:
            return f"{self._duration(scope)} {sign} {self._duration(scope)}"
        return f"{self.number(scope, depth)} {sign} {self.number(scope, depth)}"

    def number(self, scope: _Scope, depth: int) -> str:
        """A number."""
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            return f"({self.number(scope, depth - 1)} {rng.choice(('+', '-', '*'))} {self.number(scope, depth - 1)})"
        options = [
            str(rng.randint(0, 5)),
            "0.5",
            "-1",
            "count(decisions)",
            "count(items)",
            "count(attendees)",
        ]
        options += [f"{n}.confidence" for n in scope.of("item", "action")] * 3
        options += [f"count(words({n}.text))" for n in scope.of("item", "action", "sentence")]
        options += [f"length({n}.text)" for n in scope.of("item", "action", "sentence")]
        options += [f"count(numbers({n}.text))" for n in scope.of("item", "action")]
        options += [f"month({n}.due)" for n in scope.of("action")]
        return rng.choice(options)

    def _duration(self, scope: _Scope) -> str:
        rng = self.rng
        options = [
            "30 min",
            "2 s",
            "1 week",
            "0.5 h",
            "1.5 ms",
            "meeting.duration_s",
            "meeting.date - 2026-03-01",
        ]
        options += [f"{n}.end_s - {n}.start_s" for n in scope.of("evidence", "gap", "utterance")] * 3
        options += [f"{n}.error_ms" for n in scope.of("evidence")] * 2
        options += [f"{n}.due - meeting.date" for n in scope.of("action")] * 2
        found = rng.choice(options)
        return f"({found}) * {rng.choice(('2', '0.5', '-1'))}" if rng.random() < 0.2 else found

    def _dates(self, scope: _Scope, depth: int) -> str:
        return f"{self.date(scope)} {self.rng.choice(('==', '!=', '<', '<=', '>', '>='))} {self.date(scope)}"

    def date(self, scope: _Scope) -> str:
        """A date that may be missing."""
        rng = self.rng
        options = [
            "meeting.date",
            "2026-03-10",
            "2026-02-28 + 1 week",
            "meeting.date + 3 days",
            "date(meeting.started)",
        ]
        options += [f"{n}.due" for n in scope.of("action")] * 4 + [
            f"{n}.due - 2 days" for n in scope.of("action")
        ]
        return rng.choice(options)

    def _sets(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            return f"{self.text(scope, 0)} {rng.choice(('in', 'not in'))} {self.texts(scope)}"
        if kind < 0.55:
            return f"{self.texts(scope)} subset {self.texts(scope)}"
        if kind < 0.65:
            return f"{rng.choice(('decisions', 'action_items', 'items', self.texts(scope)))} {rng.choice(('==', '!='))} []"
        if kind < 0.75:
            return f"{self.date(scope)} in [2026-03-10, 2026-02-28]"
        sources = [f"{n}.text" for n in scope.of("item", "action")] + [
            f"quotes({n})" for n in scope.of("item", "action")
        ]
        sources += [f"{n}.quote" for n in scope.of("evidence")] + ["key_topics", '"500 and 3.5k"']
        if kind < 0.85:
            return f"{self.number(scope, 0)} in numbers({rng.choice(sources)})"
        return f"numbers({rng.choice(sources)}) subset numbers({rng.choice(sources)})"

    def _functions(self, scope: _Scope, depth: int) -> str:
        rng = self.rng
        text = self.text(scope, 0)
        options = [
            f"external({text})", f"plain({text})", f"looks_like({text}, {self.texts(scope)})",
            f"starts_with({text}, {self._quoted()})", f"ends_with({text}, {self._quoted()})",
            f'weekday({self.date(scope)}) {rng.choice(("==", "!="))} "{rng.choice(("monday", "friday"))}"',
            f'weekday({self.date(scope)}) in ["monday", "tuesday"]',
        ]  # fmt: skip
        options += [f'{n}.origin == "{rng.choice(("model", "rules"))}"' for n in scope.of("item", "action")]
        options += [f"{n}.external" for n in scope.of("person")] * 2
        return rng.choice(options)


def random_rules(rng: Random, count: int) -> RuleSet:
    """A rule file of so many rules. What the compiler refuses is written anew."""
    generator = Generator(rng)
    kept: list[str] = []
    while len(kept) < count:
        text = generator.rule(len(kept))
        try:
            load_rules(text)
        except RuleError:
            continue
        kept.append(text)
    return load_rules("\n".join(kept), "random")
