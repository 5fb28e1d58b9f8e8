"""Minutes of annotated meetings against their truth: which items are right, and whose and when.

An item matches an entry of the truth where its evidence covers at least half of one of the entry's utterances and
its text shares content words with them or with the entry; one to one, closest pairs first. An item with more
evidence than ``Limits`` allows matches nothing, and a span that overlaps an earlier item's by more than half does
not count: pointing everywhere is no way to be right.
"""

import collections
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from operators.language.words import words_in

SECTIONS: Final = ("decisions", "action_items", "open_questions")
_STOP: Final = words_in("""
    a an and are as at be by for from has have in is it its of on or that the their to was were will with
""")
_EVERYBODY: Final = frozenset(("all", "everyone", "everybody", "team", "group", "we"))
Span = tuple[float, float]
Counts = collections.Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What evidence may be; ``shared_words`` are the content words that text and truth must have in common."""

    spans: int = 8
    seconds: float = 60.0
    shortest_s: float = 0.3
    shared_words: int = 1


EVERYDAY: Final = Limits()
RESEARCH: Final = Limits(6, 30.0, 0.3, 2)


def words_of(text: str | None) -> list[str]:
    """Content words."""
    return [w for w in re.findall(r"[a-z0-9']+", (text or "").lower()) if w not in _STOP]


def f1(hit: int, predicted: int, gold: int) -> float:
    """Harmonic mean of precision and recall."""
    return 2 * hit / (predicted + gold) if predicted + gold else 0.0


def covered(
    items: Sequence[Mapping[str, Any]], script: Mapping[str, Any], limits: Limits
) -> list[frozenset[str]]:
    """Ids of the utterances that each item's evidence, as far as it counts, covers by half."""
    taken: list[Span] = []
    out: list[frozenset[str]] = []
    utterances = script["utterances"]
    starts = [u["start_s"] for u in utterances]
    longest = max((u["end_s"] - u["start_s"] for u in utterances), default=0.0)
    in_order = all(a <= b for a, b in pairwise(starts))
    for item in items:
        told = [(e["start_s"], e["end_s"]) for e in item["evidence"] if e.get("kind", "speech") == "speech"]
        spans = [(a, b) for a, b in told if b - a >= limits.shortest_s]
        if len(told) > limits.spans or sum(b - a for a, b in spans) > limits.seconds:
            spans = []
        fresh = [s for s in spans if not any(_overlap(s, t) > 0.5 * (s[1] - s[0]) for t in taken)]
        taken += fresh
        near = utterances
        if in_order and fresh:
            first = bisect_left(starts, min(a for a, _ in fresh) - longest)
            near = utterances[first : bisect_left(starts, max(b for _, b in fresh))]
        out.append(frozenset(u["id"] for u in near if _covers(fresh, _span(u))))
    return out


def _span(utterance: Mapping[str, Any]) -> Span:
    return utterance["start_s"], utterance["end_s"]


def _overlap(one: Span, other: Span) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def _covers(spans: Sequence[Span], said: Span) -> bool:
    return any(_overlap(span, said) >= 0.5 * max(1e-3, said[1] - said[0]) for span in spans)


def likeness(item: Mapping[str, Any], cover: frozenset[str], entry: Mapping[str, Any]) -> float:
    """How close an item is to an entry, by evidence and by words."""
    evidence = set(entry["evidence"])
    left, right = collections.Counter(words_of(item["text"])), collections.Counter(words_of(entry["text"]))
    common = sum((left & right).values())
    text = 2 * common / max(1, sum(left.values()) + sum(right.values()))
    return len(cover & evidence) / max(1, len(cover | evidence)) + text


def edges_of(
    items: Sequence[Mapping[str, Any]], section: str, script: Mapping[str, Any], limits: Limits
) -> list[list[int]]:
    """For each item the entries of the truth that it may stand for."""
    texts = {u["id"]: u["text"] for u in script["utterances"]}
    cover = covered(items, script, limits)
    out: list[list[int]] = []
    for item, ids in zip(items, cover, strict=True):
        own = set(words_of(item["text"]))
        need = min(limits.shared_words, max(1, len(own)))
        found = []
        for place, entry in enumerate(script["truth"][section]):
            said = set(words_of(entry["text"])).union(*(words_of(texts.get(e)) for e in entry["evidence"]))
            if ids & set(entry["evidence"]) and len(own & said) >= need:
                found.append(place)
        out.append(found)
    return out


def pairs_of(
    items: Sequence[Mapping[str, Any]], section: str, script: Mapping[str, Any], limits: Limits
) -> list[tuple[int, int]]:
    """Items and entries one to one: the closest first, then as many more as can be placed."""
    truth = script["truth"][section]
    cover, edges = covered(items, script, limits), edges_of(items, section, script, limits)
    ranked = sorted(
        (-likeness(items[i], cover[i], truth[j]), i, j) for i, row in enumerate(edges) for j in row
    )
    left: set[int] = set()
    right: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for _, i, j in ranked:
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            pairs.append((i, j))
    return pairs


def score_minutes(
    script: Mapping[str, Any],
    minutes: Mapping[str, Any],
    limits: Limits = EVERYDAY,
    sections: Sequence[str] = SECTIONS,
) -> Counts:
    """Counts of one meeting: hits, predicted and gold by section, owners and dates, what was false and why."""
    counts: Counts = collections.Counter()
    truth = script["truth"]
    live = {e for section in SECTIONS for entry in truth[section] for e in entry["evidence"]}
    for section in sections:
        items, gold = minutes[section], truth[section]
        pairs = pairs_of(items, section, script, limits)
        cover = covered(items, script, limits)
        counts[section, "hit"] += len(pairs)
        counts[section, "predicted"] += len(items)
        counts[section, "gold"] += len(gold)
        matched = {i for i, _ in pairs}
        for place in range(len(items)):
            if place not in matched:
                counts["false", _fault(cover[place], truth, live)] += 1
        if section == "action_items" and truth.get("owners_known", True):
            for i, j in pairs:
                for key in ("owner", "due"):
                    verdict = verdict_of(items[i], gold[j], key)
                    counts[key, verdict] += 1
                    counts[key, "stated"] += bool(gold[j].get(key))
                    counts[key, "given"] += bool(items[i].get(key))
                    counts[key, "given_right"] += verdict == "right" and bool(items[i].get(key))
    return counts


def _fault(cover: frozenset[str], truth: Mapping[str, Any], live: set[str]) -> str:
    if not cover & live:
        for name in ("traps", "withdrawn"):
            if any(cover & set(entry["evidence"]) for entry in truth[name]):
                return name
    return "other"


def verdict_of(item: Mapping[str, Any], entry: Mapping[str, Any], key: str) -> str:
    """``right``, ``wrong`` (another value) or ``missing`` (none although it was stated)."""
    got, want = ((d.get(key) or "").strip().lower() or None for d in (item, entry))
    if key == "owner" and entry.get("owner_kind") == "group" and got and set(got.split()) & _EVERYBODY:
        got = None
    return "right" if got == want else "missing" if got is None else "wrong"


def report_of(counts: Counts) -> dict[str, Any]:
    """Precision, recall and F1 by section; shares of owners and dates; false items by what misled.

    Of owners and dates ``precision`` is that of those given, ``coverage`` how many are given for each that was stated.
    """
    out: dict[str, Any] = {}
    for section in SECTIONS:
        hit, predicted, gold = (counts[section, name] for name in ("hit", "predicted", "gold"))
        out[section] = {
            "f1": round(f1(hit, predicted, gold), 3), "precision": round(hit / max(1, predicted), 3),
            "recall": round(hit / max(1, gold), 3), "predicted": predicted, "gold": gold,
        }  # fmt: skip
    for key in ("owner", "due"):
        n = sum(counts[key, verdict] for verdict in ("right", "wrong", "missing"))
        out[key] = {
            verdict: round(counts[key, verdict] / max(1, n), 3) for verdict in ("right", "wrong", "missing")
        }
        out[key]["n"] = n
        given = counts[key, "given"]
        out[key]["precision"] = round(counts[key, "given_right"] / max(1, given), 3)
        out[key]["coverage"] = round(given / max(1, counts[key, "stated"]), 3)
    out["false"] = {name: counts["false", name] for name in ("traps", "withdrawn", "other")}
    return out
