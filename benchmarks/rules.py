"""Rule language: how long files take to load, checks per second beside the same rules in Python and in CEL.

    python -m benchmarks.rules                        checks per second, incremental cost, load time
    python -m benchmarks.rules --fuzz 1000000         parser and compiler on that many spoilt rule files

One check is one rule on one item. Every way judges the same items and has to find the same failures; the
readers of texts (numbers, names) are shared, so what differs is the way from a rule to its truth. All times
are processor time of the one thread, so that other programs on the machine do not count.
"""

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any, Final

from contracts.minutes import ActionItem, Attendee, Evidence, Item
from contracts.sal import Checker, Document, MeetingFacts, RuleSet, load_rules
from contracts.sal.quantities import numbers, numbers_of_all
from contracts.sal.words import folded, is_plain

from .report import print_report, progress
from .rule_fuzz import fuzz

RULES: Final = """
assert "known owner": all a in action_items: a.owner == null or a.owner in attendees or external(a.owner)
    on fail: repair owner = null
assert "due ahead": all a in action_items: a.due == null or a.due >= meeting.date on fail: repair due = null
assert "due soon": all a in action_items: a.due == null or a.due <= meeting.date + 52 weeks on fail: review
assert "due in words": all a in action_items: a.due == null or a.due_text != null on fail: review
assert "grounded": all a in action_items: a.evidence != [] and numbers(a.text) subset numbers(quotes(a)) on fail: drop
assert "sure": all a in action_items: a.confidence >= 0.5 or a.origin == "person" on fail: review
assert "plain": all a in action_items: plain(a.text) and length(a.text) <= 400 on fail: fallback
assert "timed": all a in action_items: all e in a.evidence: e.start_s <= e.end_s and e.error_ms <= 1 s on fail: review
"""
"""Rules of the everyday kind, about action items."""
_PEOPLE: Final = ("Anna Berg", "José Núñez", "Sam Lee", "Priya Rao", "Tom Reed", "Ulla Holm")
_TASKS: Final = (
    "Send the offer",
    "Book room 12",
    "Pay the 500 euros",
    "Call the supplier",
    "Hire two engineers",
)
_DAY: Final = date(2026, 3, 2)

Judge = Callable[[], int]
"""Judges everything once and gives the number of failures."""


def meeting(rng: Random, items: int) -> Document:
    """A meeting with so many action items, one in eight of them against some rule."""
    outside = Attendee(name="Nora Quist", speaker=None, external=True)
    people = [*(Attendee(name=n, speaker=n, external=False) for n in _PEOPLE), outside]
    made = Document(MeetingFacts("m", "Weekly", _DAY), people, ("budget",))
    for number in range(items):
        made.put("action_items", action(rng, f"a{number}"))
    return made


def action(rng: Random, item_id: str) -> ActionItem:
    """One action item as meetings have them."""
    task, wrong = rng.choice(_TASKS), rng.random() < 1 / 8
    said = f"{rng.choice(_PEOPLE)}, please {task.lower()} by Friday."
    evidence = tuple(
        Evidence(
            kind="speech", start_s=12.5 + n, end_s=15.0 + n, device="seat-1", speaker=rng.choice(_PEOPLE), quote=said,
            error_ms=1.0, sampling_ms=20.0, boundary_ms=40.0,
        )
        for n in range(rng.randint(1, 2))
    )  # fmt: skip
    return ActionItem(
        id=item_id, text=f"{task}{' to 700 people' if wrong and rng.random() < 0.5 else ''}.", confidence=0.9, origin="rules",
        verdict="pass", evidence=evidence, owner="Zed" if wrong else rng.choice((None, *_PEOPLE, "Nora Quist")),
        due=rng.choice((None, date(2026, 3, 6), date(2026, 4, 1))), due_text="by Friday",
    )  # fmt: skip


def by_sal(rules: RuleSet, document: Document) -> Judge:
    """The rule language, from nothing each time."""
    return lambda: len(Checker(rules, document).check("item"))


def by_hand(document: Document) -> Judge:
    """The same rules as a programmer writes them."""
    items: Sequence[Item] = tuple(document.lists["action_items"].entries.values())

    def judge() -> int:
        known = {folded(person.name) for person in document.attendees}
        outside = {folded(person.name) for person in document.attendees if person.external}
        today = document.meeting.date
        latest = None if today is None else date.fromordinal(today.toordinal() + 364)
        failed: list[tuple[str, str]] = []
        for item in items:
            assert isinstance(item, ActionItem)
            if (
                item.owner is not None
                and folded(item.owner) not in known
                and folded(item.owner) not in outside
            ):
                failed.append(("known owner", item.id))
            if item.due is not None and today is not None and item.due < today:
                failed.append(("due ahead", item.id))
            if item.due is not None and latest is not None and item.due > latest:
                failed.append(("due soon", item.id))
            if item.due is not None and item.due_text is None:
                failed.append(("due in words", item.id))
            if not item.evidence or not numbers(item.text).within(
                numbers_of_all(e.quote for e in item.evidence)
            ):
                failed.append(("grounded", item.id))
            if item.confidence < 0.5 and item.origin != "person":
                failed.append(("sure", item.id))
            if not is_plain(item.text) or len(item.text) > 400:
                failed.append(("plain", item.id))
            if any(e.start_s > e.end_s or e.error_ms > 1000 for e in item.evidence):
                failed.append(("timed", item.id))
        return len(failed)

    return judge


_CEL: Final = (
    "action_items.filter(a, !(a.owner == null || folded(a.owner) in known || folded(a.owner) in outside)).size()",
    "action_items.filter(a, !(a.due == null || a.due >= today)).size()",
    "action_items.filter(a, !(a.due == null || a.due <= latest)).size()",
    "action_items.filter(a, !(a.due == null || a.due_text != null)).size()",
    "action_items.filter(a, !(a.evidence.size() > 0 && within(a.text, a.evidence.map(e, e.quote)))).size()",
    'action_items.filter(a, !(a.confidence >= 0.5 || a.origin == "person")).size()',
    "action_items.filter(a, !(plain(a.text) && a.text.size() <= 400)).size()",
    "action_items.filter(a, !a.evidence.all(e, e.start_s <= e.end_s && e.error_ms <= 1000.0)).size()",
)


def by_cel(document: Document) -> Judge:
    """The same rules in CEL (Rust, through its Python binding), the items handed over as dictionaries.

    Raises ImportError where the package common-expression-language is not installed.
    """
    import cel

    programs = [cel.compile(text) for text in _CEL]
    items = [item.model_dump(mode="json") for item in document.lists["action_items"].entries.values()]
    context = cel.Context(
        variables={
            "action_items": items,
            "known": [folded(p.name) for p in document.attendees],
            "outside": [folded(p.name) for p in document.attendees if p.external],
            "today": _DAY.isoformat(),
            "latest": date.fromordinal(_DAY.toordinal() + 364).isoformat(),
        },
        functions={
            "folded": folded,
            "plain": is_plain,
            "within": lambda text, quotes: numbers(text).within(numbers_of_all(quotes)),
        },
    )
    return lambda: sum(int(program.execute(context)) for program in programs)


@dataclass(frozen=True)
class _Way:
    name: str
    judge: Judge


def checks_per_s(seed: int, items: int, repeat: int) -> dict[str, Any]:
    """Every way on the same meeting, turn by turn, the best turn of each."""
    document = meeting(Random(seed), items)
    rules = load_rules(RULES)
    ways = [_Way("sal", by_sal(rules, document)), _Way("python", by_hand(document))]
    try:
        ways.append(_Way("cel", by_cel(document)))
    except ImportError:
        progress("rules: the package common-expression-language is not installed, so CEL is left out")
    failures = {way.name: way.judge() for way in ways}
    if len(set(failures.values())) != 1:
        raise RuntimeError(f"the ways differ: {failures}")
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    gc.collect()
    for _ in range(repeat):
        for way in ways:
            way.judge()  # unmeasured, so that nobody pays for what the way before left in the caches
            begun = time.thread_time()
            way.judge()
            times[way.name].append(time.thread_time() - begun)
    checks = len(rules.rules) * items
    figures: dict[str, Any] = {
        "checks_per_s": {name: round(checks / min(taken)) for name, taken in times.items()},
        "failures": failures["sal"],
        "items": items,
    }
    figures["times_python"] = round(min(times["sal"]) / min(times["python"]), 2)
    if "cel" in times:
        figures["times_faster_than_cel"] = round(min(times["cel"]) / min(times["sal"]), 2)
    return figures


def incremental_us(seed: int, sizes: Sequence[int], repeat: int) -> dict[str, Mapping[str, float]]:
    """Median and 99th percentile in µs of one changed item and its check, by items in the meeting.

    ``python_all`` is the same by hand-written code that goes through everything.
    """
    rules = load_rules(RULES)
    found: dict[str, Mapping[str, float]] = {}
    for size in sizes:
        rng = Random(seed)
        document = meeting(rng, size)
        for key in [k for k, item in document.lists["action_items"].entries.items() if item.owner == "Zed"]:
            document.remove(key)  # failures are told in full at each check, so their number is kept small
        checker = Checker(rules, document)
        checker.check("item")
        new = [action(rng, f"a{rng.randrange(size)}") for _ in range(repeat)]
        new = [item.model_copy(update={"owner": None, "text": "Call."}) for item in new]
        taken: list[float] = []
        for item in new:
            begun = time.thread_time()
            document.put("action_items", item)
            checker.check("item")
            taken.append((time.thread_time() - begun) * 1e6)
        taken.sort()
        whole = by_hand(document)
        begun = time.thread_time()
        whole()
        all_us = (time.thread_time() - begun) * 1e6
        found[str(size)] = {
            "p50": round(statistics.median(taken), 1),
            "p99": round(taken[int(len(taken) * 0.99)], 1),
            "python_all": round(all_us, 1),
        }
        progress(f"rules: one change among {size} items: {found[str(size)]['p50']} µs")
    return found


def load_ms(counts: Sequence[int]) -> dict[str, float]:
    """Milliseconds from text to closures, by number of rules."""
    lines = RULES.replace("\n ", " ").strip().splitlines()
    found: dict[str, float] = {}
    load_rules(RULES)
    for count in counts:
        text = "\n".join(lines[n % len(lines)].replace('assert "', f'assert "{n} ', 1) for n in range(count))
        begun = time.thread_time()
        load_rules(text)
        found[str(count)] = round((time.thread_time() - begun) * 1e3, 2)
    return found


def measure(
    seed: int, *, items: int = 400, repeat: int = 15, sizes: Sequence[int] = (10, 100, 1_000, 10_000),
    counts: Sequence[int] = (1, 10, 100, 1_000, 10_000),
) -> dict[str, Any]:  # fmt: skip
    """All figures but the fuzzing."""
    figures = checks_per_s(seed, items, repeat)
    progress(f"rules: {figures['checks_per_s']} checks/s")
    figures["change_us"] = incremental_us(seed, sizes, 50 * repeat)
    figures["load_ms"] = load_ms(counts)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--items", type=int, default=400, help="items of the meeting that is judged")
    parser.add_argument("--repeat", type=int, default=15, help="turns of each way")
    parser.add_argument(
        "--fuzz", type=int, default=0, metavar="N", help="spoilt rule files instead of figures"
    )
    options = parser.parse_args(arguments)
    if options.fuzz:
        figures = fuzz(options.fuzz, options.seed, progress)
        print_report("rules_fuzz", options.seed, figures)
        return 1 if figures["escaped"] else 0
    print_report("rules", options.seed, measure(options.seed, items=options.items, repeat=options.repeat))
    return 0


if __name__ == "__main__":
    sys.exit(main())
