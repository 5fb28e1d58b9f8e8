"""Annotated meetings of all sources in one form: what was said, and what of it the network is to find.

What a corpus does not annotate is marked unknown, not absent: research corpora know no open questions, everyday
scripts no summary. Some labels hold only once a later utterance was heard (a promise that is taken back three turns
later is a promise until then); they are unknown before.
"""

import collections
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.everyday_meetings import EverydayAction, EverydayMeeting
from models.minutes.noise import SUFFIX
from models.minutes.scores import ELSEWHERE, HEADS, NOBODY

UNKNOWN: Final = -1
RESEARCH: Final = ("ami", "icsi")
"""Sources of long meetings with few items."""
_ACTION, _DECISION, _QUESTION, _ANSWER, _SUMMARY, _WITHDRAWN, _PROBLEM, _ABSTRACT = range(len(HEADS))

Labels = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance as written."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Awaits:
    """A label that holds once the utterance ``until`` was heard, and is unknown before."""

    line: int
    head: int
    until: int


@dataclass(frozen=True)
class Annotated:
    """One meeting with truth. Lines are in their final order, everything else counts through them."""

    name: str
    source: str
    """``everyday``, ``snippet``, ``heard`` (one of these with a recogniser's errors), ``ami`` or ``icsi``."""
    group: str
    """Meetings of one group are trained on or tested on together."""
    lines: tuple[Line, ...]
    labels: Labels
    """(lines, heads): 1, 0 or ``UNKNOWN``."""
    weights: npt.NDArray[np.float32]
    """(lines,): how much a line counts."""
    awaits: tuple[Awaits, ...] = ()
    owners: Mapping[int, str] = field(default_factory=dict)
    """Owner of the work that a line speaks of: a speaker, ``NOBODY`` or ``ELSEWHERE``."""
    items: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of the items that a line belongs to."""
    dues: Mapping[int, str] = field(default_factory=dict)
    """Words of a date, in a line that says them."""


def everyday(meeting: EverydayMeeting, source: str) -> Annotated:
    """An everyday meeting."""
    said = sorted(meeting.utterances, key=lambda u: (round(u.start_s * 1e9), u.id))
    at = {u.id: i for i, u in enumerate(said)}
    made = _Everyday(meeting, [Line(u.id, u.speaker, u.text) for u in said], at)
    return made.annotated(source)


class _Everyday:
    """Labels of one everyday meeting in the making."""

    def __init__(self, meeting: EverydayMeeting, lines: list[Line], at: dict[str, int]) -> None:
        self._meeting, self._lines, self._at = meeting, lines, at
        self._labels = np.zeros((len(lines), len(HEADS)), np.int8)
        self._labels[:, (_ANSWER, _SUMMARY, _PROBLEM, _ABSTRACT)] = UNKNOWN
        self._weights = np.ones(len(lines), np.float32)
        self._awaits: list[Awaits] = []
        self._owners: dict[int, str] = {}
        self._items: dict[int, tuple[str, ...]] = {}
        self._dues: dict[int, str] = {}

    def annotated(self, source: str) -> Annotated:
        truth = self._meeting.truth
        for trap in truth.traps:
            self._trap(self._places(trap.evidence), trap.why, trap.needs)
        for entry in truth.withdrawn:
            self._withdrawn(self._places(entry.evidence))
        for number, decision in enumerate(truth.decisions):
            places = self._places(decision.evidence)
            self._belongs(places, f"d{number}")
            self._found(places, _DECISION, decision.needs)
        for number, question in enumerate(truth.open_questions):
            places = self._places(question.evidence)
            self._belongs(places, f"q{number}")
            self._found(places, _QUESTION, question.needs)
        for number, action in enumerate(truth.action_items):
            self._belongs(self._places(action.evidence), f"a{number}")
            self._action(action)
        return Annotated(
            self._meeting.meeting, source, self._meeting.meeting.removesuffix(SUFFIX), tuple(self._lines),
            self._labels, self._weights,
            tuple(self._awaits), self._owners, self._items, self._dues,
        )  # fmt: skip

    def _places(self, evidence: Iterable[str]) -> list[int]:
        return sorted(self._at[one] for one in evidence)

    def _belongs(self, places: list[int], item: str) -> None:
        for place in places:
            self._items[place] = (*self._items.get(place, ()), item)

    def _found(self, places: list[int], head: int, needs: str | None) -> None:
        # What only hands or a tone tell cannot be learned from words; its twin that goes the other way is unknown too.
        hidden = needs in ("picture", "sound")
        self._labels[places, head] = UNKNOWN if hidden else 1
        answers = self._labels[places, _ANSWER] == UNKNOWN
        self._labels[np.array(places)[answers], _ANSWER] = 0

    def _trap(self, places: list[int], why: str, needs: str | None) -> None:
        self._weights[places] = 2.0
        if needs in ("picture", "sound"):
            self._labels[places, :4] = UNKNOWN
            return
        self._labels[places, _ANSWER] = 0
        for earlier in places[:-1]:
            self._awaits += [Awaits(earlier, h, places[-1]) for h in (_ACTION, _DECISION, _QUESTION)]
        if len(places) > 1 and "answer" in why:
            self._labels[places[1:], _ANSWER] = 1

    def _withdrawn(self, places: list[int]) -> None:
        self._weights[places] = 2.0
        self._labels[places[-1], _WITHDRAWN] = 1
        for earlier in places[:-1]:
            self._awaits += [Awaits(earlier, h, places[-1]) for h in (_ACTION, _DECISION)]

    def _action(self, action: EverydayAction) -> None:
        places = self._places(action.evidence)
        self._found(places, _ACTION, action.needs)
        if action.owner_kind == "accepted" and action.owner is not None:
            accepted = [p for p in places if self._lines[p].speaker == action.owner]
            if accepted:
                self._awaits += [Awaits(p, _ACTION, accepted[0]) for p in places if p < accepted[0]]
        people = {person.name for person in self._meeting.attendees}
        for place in places:
            if action.owner_kind != "ambiguous":
                inside = action.owner is not None and action.owner in people
                self._owners[place] = (
                    NOBODY if action.owner is None else action.owner if inside else ELSEWHERE
                )
            if action.due_text and action.due_text.lower() in self._lines[place].text.lower():
                self._dues[place] = action.due_text


def research(source: str, meetings: Path, utterances: Path) -> list[Annotated]:
    """Meetings of a research corpus (AMI form, JSON Lines).

    Raises:
        OSError, ValueError, KeyError: a file cannot be read or is of another form.
    """
    said: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    with gzip.open(utterances, "rt", encoding="utf-8") as lines:
        for line in lines:
            utterance = json.loads(line)
            if utterance["text"].strip():
                said[utterance["meeting"]].append(utterance)
    told = [json.loads(line) for line in meetings.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [_research(source, one, said[one["meeting"]]) for one in told if said[one["meeting"]]]


def _research(source: str, meeting: dict[str, Any], said: Sequence[dict[str, Any]]) -> Annotated:
    said = sorted(said, key=lambda u: (round(float(u["start"]) * 1e9), u["id"]))
    section = {s["id"]: name for name, found in meeting["summary"].items() for s in found}
    linked = bool(meeting["annotated"].get("summlink"))
    labels = np.full((len(said), len(HEADS)), UNKNOWN, np.int8)
    asked = {u["id"] for u in said if _asks(u)}
    items: dict[int, tuple[str, ...]] = {}
    for row, u in enumerate(said):
        if linked:
            for head, name in ((_PROBLEM, "problem"), (_ABSTRACT, "abstract")):
                labels[row, head] = name in u["labels"]
            if source == "ami":
                labels[row, _ACTION] = "action" in u["labels"]
                labels[row, _DECISION] = "decision" in u["labels"]
        if u["extractive"] is not None:
            labels[row, _SUMMARY] = bool(u["extractive"])
        if asked:
            labels[row, _ANSWER] = any(r["id"] in asked and r["type"] != "NEG" for r in u["replies_to"])
        mine = tuple(link for link in u["links"] if section.get(link) in ("action", "decision"))
        if mine and source == "ami":
            items[row] = mine
    weights = np.array([1.0 if labels[row, :2].max() > 0 else 0.7 for row in range(len(said))], np.float32)
    lines = tuple(Line(u["id"], u["speaker"], u["text"]) for u in said)
    series = meeting.get("series") or meeting["meeting"][:-1]
    return Annotated(meeting["meeting"], source, series, lines, labels, weights, items=items)


def _asks(utterance: Mapping[str, Any]) -> bool:
    act = utterance["da"] or ""
    return bool(act.startswith(("el.", "q")))
