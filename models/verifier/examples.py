"""Cases to learn from: the product's items of annotated meetings, held against what the annotators say.

A meeting is a script (`models/everyday/*.json`; research corpora are brought into the same form by
`models.verifier.research`) and the minutes that the product makes of it (`python -m benchmarks.minutes`). An item
holds where an annotated item of its kind rests on the same utterances and owner and date agree; it does not where it
rests on a trap, on something taken back, or names a wrong owner or date. What can be neither shown nor refuted is
left out.
"""

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from models.verifier import words as w
from models.verifier.features import Case, Heard, Item, Kind

SECTIONS: Final[Mapping[str, Kind]] = {
    "decisions": "decision",
    "action_items": "action_item",
    "open_questions": "open_question",
}
BEFORE: Final = 4
AFTER: Final = 6
"""Utterances around the evidence that a case shows."""
_FILLERS: Final = frozenset(
    w.listed("so and but well okay ok yes yeah right um uh er then now oh no sorry just also")
)
_GROUP: Final = frozenset({"all", "everyone", "everybody", "team", "group", "we"})


@dataclass(frozen=True, slots=True)
class Example:
    """A case, whether it holds, and where it comes from. ``made`` names the corruption that made it, or ``""``."""

    case: Case
    holds: bool
    meeting: str
    made: str = ""


def read_scripts(folders: Iterable[Path], splits: frozenset[str]) -> list[dict[str, Any]]:
    """Scripts of these splits (a script without one counts as ``train``), in order of their names.

    Raises:
        OSError, ValueError: one cannot be read.
    """
    found = []
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            script = json.loads(path.read_text(encoding="utf-8"))
            if script.get("split", "train") in splits:
                found.append(script)
    return found


def examples_of(script: Mapping[str, Any], minutes: Mapping[str, Any]) -> list[Example]:
    """What can be told of a meeting's items."""
    told: list[Example] = []
    for section, kind in SECTIONS.items():
        for entry in minutes[section]:
            ids = _utterances_of(entry, script)
            case = case_of(script, _item(entry, kind), ids, entry["evidence"])
            if case is None:
                continue
            holds = _holds(entry, kind, section, set(ids), script["truth"])
            if holds is not None:
                told.append(Example(case, holds, script["meeting"]))
    return told


def annotated_cases(script: Mapping[str, Any]) -> list[Case]:
    """The annotators' items as cases that hold, in the words that were said, with whole utterances as evidence.

    The text is the clause that shares most with the annotators' sentence: their own wording is freer than the
    product's ever is, and would teach that anything may be claimed.
    """
    texts = {u["id"]: u["text"] for u in script["utterances"]}
    found = []
    for section, kind in SECTIONS.items():
        for entry in script["truth"][section]:
            text = _said_as(entry["text"], [texts[i] for i in entry["evidence"] if i in texts])
            if text is None:
                continue
            owner = None if (entry.get("owner") or "").lower() in _GROUP else entry.get("owner")
            due = dt.date.fromisoformat(entry["due"]) if entry.get("due") else None
            item = Item(kind, text, owner, due, entry.get("due_text"))
            case = case_of(script, item, entry["evidence"], None)
            if case is not None:
                found.append(case)
    return found


def _said_as(sentence: str, texts: Sequence[str]) -> str | None:
    """The clauses in a row, of one utterance, that share most with a sentence; None where little is shared."""
    wanted = set(w.content(sentence))
    best: tuple[float, str] | None = None
    for text in texts:
        clauses = [
            c.strip() for c in re.split(r"(?<=[.?!;…])\s+|,\s+(?=(?:and|but|so|then)\b)", text) if c.strip()
        ]
        for first in range(len(clauses)):
            for last in range(first, min(first + 2, len(clauses))):
                part = " ".join(clauses[first : last + 1])
                mine = set(w.content(part))
                if len(mine) < 2:
                    continue
                score = len(mine & wanted) / (len(wanted) + 0.3 * len(mine))
                if best is None or score > best[0]:
                    best = (score, part)
    if best is None or best[0] < 0.3:
        return None
    words = list(w.tokens(best[1]))
    while len(words) > 3 and words[0].low in _FILLERS:
        words.pop(0)
    text = best[1][words[0].first :].rstrip(" .,;:")
    return text[:1].upper() + text[1:]


def case_of(
    script: Mapping[str, Any], item: Item, ids: Sequence[str], quotes: Sequence[Mapping[str, Any]] | None
) -> Case | None:
    """An item of a script with its evidence and surroundings; None where the evidence is not in it."""
    order = {u["id"]: place for place, u in enumerate(script["utterances"])}
    places = sorted({order[i] for i in ids if i in order})
    if not places:
        return None
    said = [Heard(u["id"], u["speaker"], u["text"]) for u in script["utterances"]]
    if quotes is None:
        evidence = tuple(said[p] for p in places)
    else:
        speech = [q for q in quotes if q["kind"] == "speech"]
        evidence = tuple(
            Heard(i, q["speaker"], q["quote"]) for i, q in zip(ids, speech, strict=True) if i in order
        )
    before = [said[p] for p in range(max(0, places[0] - BEFORE), places[0])]
    after = [said[p] for p in range(places[-1] + 1, min(len(said), places[-1] + 1 + AFTER))]
    people = script.get("attendees", ())
    return Case(
        item, evidence, tuple(before), tuple(after), tuple(a["name"] for a in people),
        tuple((a["speaker"], a["name"]) for a in people if a.get("speaker")),
        dt.date.fromisoformat(script["date"]) if script.get("date") else None,
    )  # fmt: skip


def _item(entry: Mapping[str, Any], kind: Kind) -> Item:
    due = entry.get("due")
    return Item(
        kind,
        entry["text"],
        entry.get("owner"),
        dt.date.fromisoformat(due) if due else None,
        entry.get("due_text"),
    )


def _utterances_of(entry: Mapping[str, Any], script: Mapping[str, Any]) -> list[str]:
    """Utterance of each piece of spoken evidence: the one that it overlaps most."""
    found = []
    for piece in entry["evidence"]:
        if piece["kind"] != "speech":
            continue
        best = max(
            script["utterances"],
            key=lambda u: (
                min(u["end_s"], piece["end_s"]) - max(u["start_s"], piece["start_s"])
                + (1000 if piece["quote"] in u["text"] and u["speaker"] == piece["speaker"] else 0)
            ),
        )  # fmt: skip
        found.append(best["id"])
    return found


def _holds(
    entry: Mapping[str, Any], kind: Kind, section: str, ids: set[str], truth: Mapping[str, Any]
) -> bool | None:
    same = [t for t in truth[section] if ids & set(t["evidence"])]
    if same and truth.get("owners_known", True):
        # A text that lacks what the item is about is neither right nor wrong.
        same = [t for t in same if _tells(entry["text"], t["text"])]
        if not same:
            return None
    if same:
        if kind != "action_item" or not truth.get("owners_known", True):
            return True
        return any(_agrees(entry, t) for t in same)
    live = {e for name in SECTIONS for t in truth[name] for e in t["evidence"]}
    doubtful = {e for name in ("traps", "withdrawn") for t in truth.get(name, ()) for e in t["evidence"]}
    if ids & doubtful and not ids & live:
        return False
    return None


def _tells(text: str, gold: str) -> bool:
    mine, wanted = set(w.content(text)), set(w.content(gold))
    return len(mine & wanted) >= min(2, len(wanted))


def _agrees(entry: Mapping[str, Any], gold: Mapping[str, Any]) -> bool:
    owner = (entry.get("owner") or "").lower() or None
    wanted = (gold.get("owner") or "").lower() or None
    group = gold.get("owner_kind") in ("group", "none") or wanted in _GROUP
    owner_right = owner == wanted or owner is None or (group and owner in _GROUP)
    return owner_right and (entry.get("due") in (None, gold.get("due")))
