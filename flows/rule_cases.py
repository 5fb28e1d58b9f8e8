"""Test cases for rule files: small documents in YAML with what the rules should say of them."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.minutes import (
    ActionItem,
    Attendee,
    Evidence,
    Gap,
    Item,
    Origin,
    SlideShown,
    SummarySentence,
    UtteranceShown,
    Verdict,
)
from contracts.refusals import refusal_line
from contracts.sal import Checker, Document, MeetingFacts, RuleSet, settle
from contracts.sal.kinds import ITEM_LISTS

MAX_CASES_BYTES: Final = 4_000_000
_EVIDENCE: Final[dict[str, Any]] = {
    "kind": "speech", "start_s": 0.0, "end_s": 1.0, "device": "test", "speaker": None, "error_ms": 0.0,
    "sampling_ms": 0.0, "boundary_ms": 0.0,
}  # fmt: skip


class CaseError(ValueError):
    """A file of cases that cannot be read; the message is one line."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Quote(_Strict):
    quote: str
    speaker: str | None = None
    kind: Literal["speech", "slide", "picture"] = "speech"
    start_s: float = 0.0
    end_s: float = 1.0
    device: str = "test"


class _Item(_Strict):
    """An item in short: an id is made up, ``quotes`` are its evidence."""

    text: str
    id: str | None = None
    quotes: tuple[str | _Quote, ...] = ()
    confidence: float = 1.0
    origin: Origin = "rules"
    verdict: Verdict = "pass"


class _Action(_Item):
    owner: str | None = None
    due: datetime.date | None = None
    due_text: str | None = None


class _Person(_Strict):
    name: str
    speaker: str | None = None
    external: bool = False


class _Meeting(_Strict):
    meeting_id: str = "test"
    title: str | None = None
    date: datetime.date | None = None
    started: datetime.datetime | None = None
    duration_s: float = 0.0


class _Utterance(_Strict):
    text: str
    speaker: str | None = None
    start_s: float = 0.0
    end_s: float = 1.0


class _Given(_Strict):
    """The minutes of a case; everything may be left out."""

    meeting: _Meeting = _Meeting()
    attendees: tuple[str | _Person, ...] = ()
    key_topics: tuple[str, ...] = ()
    agenda: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    decisions: tuple[str | _Item, ...] = ()
    action_items: tuple[str | _Action, ...] = ()
    open_questions: tuple[str | _Item, ...] = ()
    answered_questions: tuple[str | _Item, ...] = ()
    notices: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    slides: tuple[SlideShown, ...] = ()
    utterances: tuple[_Utterance, ...] = ()


Outcome = Literal["holds", "fails", "unknown"]


class Case(_Strict):
    """One case. ``expect``: by rule, an outcome or the ids of the items that fail; ``actions``: by item id."""

    case: str
    at: Literal["item", "revision", "final"] = "final"
    document: _Given = _Given()
    expect: dict[str, Outcome | Annotated[tuple[str, ...], Field(strict=False)]] = {}
    actions: dict[str, Literal["keep", "repair", "review", "fallback", "drop"]] = {}


@dataclass(frozen=True, slots=True)
class Found:
    """How a case went: what differs from what was expected, in words."""

    case: str
    differences: tuple[str, ...]


def read_cases(path: Path) -> tuple[Case, ...]:
    """Cases of a YAML file. Raises ``CaseError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CaseError(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > MAX_CASES_BYTES:
        raise CaseError(f"{path}: has more than {MAX_CASES_BYTES:,} bytes")
    return cases_of(data.decode("utf-8", "replace"), str(path))


def cases_of(text: str, name: str) -> tuple[Case, ...]:
    """Cases of a YAML text. Raises ``CaseError``."""
    try:
        listed = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CaseError(f"{name}: is no YAML ({' '.join(str(error).split())[:200]})") from error
    if not isinstance(listed, list):
        raise CaseError(f"{name}: holds no list of cases")
    cases = []
    for number, entry in enumerate(listed, start=1):
        try:
            cases.append(Case.model_validate(entry))
        except ValidationError as error:
            raise CaseError(f"{name}: case {number}: {refusal_line(error)}") from error
    return tuple(cases)


def document_of(given: _Given) -> Document:
    """The document of a case. Items without an id are called d1, a1, q1 and r1 onwards by their section."""
    people = [
        Attendee(name=p, speaker=None, external=False) if isinstance(p, str) else Attendee(**p.model_dump())
        for p in given.attendees
    ]
    made = Document(MeetingFacts(**given.meeting.model_dump()), people, given.key_topics, given.agenda)
    for section, letter in zip(ITEM_LISTS, "daqr", strict=True):
        for number, entry in enumerate(getattr(given, section), start=1):
            made.put(section, _item_of(entry, f"{letter}{number}", section == "action_items"))
    made.replace("summary", [SummarySentence(text=text, evidence=()) for text in given.summary])
    for name in ("notices", "gaps", "slides"):
        made.replace(name, getattr(given, name))
    made.replace(
        "utterances",
        [UtteranceShown(id=f"u{n}", **u.model_dump()) for n, u in enumerate(given.utterances, 1)],
    )
    return made


def _item_of(entry: str | _Item, name: str, is_action: bool) -> Item:
    short = (_Action if is_action else _Item)(text=entry) if isinstance(entry, str) else entry
    evidence = tuple(
        Evidence(**_EVIDENCE | ({"quote": quote} if isinstance(quote, str) else quote.model_dump()))
        for quote in short.quotes
    )
    fields = short.model_dump(exclude={"quotes", "id"}) | {"id": short.id or name, "evidence": evidence}
    return ActionItem(**fields) if is_action else Item(**fields)


def run_case(rules: RuleSet, case: Case) -> Found:
    """Hold a case against the rules."""
    document = document_of(case.document)
    checker = Checker(rules, document)
    broken = checker.check(case.at)
    differences: list[str] = []
    by_name = {rule.name: rule for rule in rules.rules}
    for name, wanted in case.expect.items():
        if name not in by_name:
            differences.append(f"there is no rule “{name}”")
            continue
        rule = by_name[name]
        items = sorted(v.item_id for v in broken if v.rule == name and v.item_id is not None)
        fails = any(v.rule == name and v.judged for v in broken)
        unknown = not fails and rule.lists and checker.applies(rule) and bool(checker.unknown(rule))
        if isinstance(wanted, tuple):
            if items != sorted(wanted):
                differences.append(f"“{name}” fails for {_listed(items)}, not for {_listed(wanted)}")
            continue
        got = "fails" if fails else "unknown" if unknown or checker.undecided(rule) else "holds"
        if got != wanted:
            differences.append(f"“{name}” {_told(got)}, expected was that it {_told(wanted)}")
    if case.actions:
        settling = Checker(rules, document)
        actions: dict[str | None, str] = {d.item_id: d.action for d in settle(settling, case.at)}
        # What no repair has mended does not leave, whoever is asked as well.
        actions |= {v.item_id: "drop" for v in settling.check(case.at) if v.action != "review"}
        for item_id, action in case.actions.items():
            got = actions.get(item_id, "keep")
            if got != action:
                differences.append(f"{item_id}: {got}, expected was {action}")
    return Found(case.case, tuple(differences))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no item"


_TOLD: Final[Mapping[str, str]] = {"holds": "holds", "fails": "fails", "unknown": "cannot be judged"}


def _told(outcome: str) -> str:
    return _TOLD[outcome]
