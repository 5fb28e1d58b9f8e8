"""How many published revisions hold every assertion, before and after the guard, and what the guard costs.

Annotated meetings (the bundled everyday scripts; with ``--meetings`` and ``--utterances`` research meetings as well)
and random ones under the default and under random rule files go through verify and deliver. After every publication
the folded minutes are judged by an interpreter of the rules that was written apart from the compiler
(`benchmarks.brute_rules`). A rule that asks a person holds where the item is marked for one.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from scipy.stats import beta  # type: ignore[import-untyped]

from contracts.sal import RuleSet
from flows.latency import percentiles
from models.verifier.examples import read_scripts
from operators.verify.check import Verifier
from operators.verify.model_judge import ModelJudge
from operators.verify.rule_files import default_rules

from .compliance_holding import Tally
from .compliance_meetings import Fates, attack, escaped, f1, replay
from .compliance_random import random_meeting
from .report import print_report, progress

SCRIPTS: Final = Path(__file__).resolve().parents[1] / "models" / "everyday"
_AT_ONCE: Final = 12
_DEFAULT_RULES_SHARE: Final = 3
"""One of so many random meetings is held against the default rules, the others against rules of their own."""


def lower_bound(good: int, all_: int, confidence: float = 0.95) -> float:
    """One-sided Clopper-Pearson bound of a share, https://doi.org/10.1093/biomet/26.4.404."""
    if all_ == 0 or good == 0:
        return 0.0
    return float(beta.ppf(1 - confidence, good, all_ - good + 1))


def _guard() -> tuple[Verifier, RuleSet]:
    rules = default_rules()
    return Verifier(rules=rules, judge=ModelJudge()), rules


def _meetings(scripts: Sequence[dict[str, Any]], seed: int) -> tuple[Tally, Fates]:
    tally, fates = Tally(), Fates()
    verifier, rules = _guard()
    for script in scripts:
        fates.add(replay(script, verifier, rules, tally))
        if script.get("split") == "test":
            # Others have been trained on.
            fates.add(attack(script, verifier, seed))
    return tally, fates


def _random(seed: int, numbers: Iterable[int]) -> tuple[Tally, Fates]:
    tally = Tally()
    verifier, rules = _guard()
    for number in numbers:
        own = number % _DEFAULT_RULES_SHARE != 0
        random_meeting(seed, number, None if own else rules, verifier, tally)
    return tally, Fates()


def measure(scripts: Sequence[dict[str, Any]], revisions: int, seed: int, jobs: int) -> dict[str, Any]:
    """The figures of the report."""
    real, fates, begun = Tally(), Fates(), time.perf_counter()
    adversarial = Tally()
    with ProcessPoolExecutor(jobs) as pool:
        parts = [scripts[n::jobs] for n in range(jobs) if scripts[n::jobs]]
        for tally, found in pool.map(_meetings, parts, [seed] * len(parts)):
            real.add(tally)
            fates.add(found)
        progress(f"compliance: {real.revisions} revisions of annotated meetings, {real.broken_after} broken")
        number = 0
        while real.revisions + adversarial.revisions < revisions:
            batches = [range(number + n * _AT_ONCE, number + (n + 1) * _AT_ONCE) for n in range(jobs)]
            number += jobs * _AT_ONCE
            for tally, _ in pool.map(_random, [seed] * jobs, batches):
                adversarial.add(tally)
            progress(
                f"compliance: {real.revisions + adversarial.revisions} revisions, {number} random meetings"
            )
    whole = Tally()
    whole.add(real)
    whole.add(adversarial)
    good = whole.revisions - whole.broken_after
    guard_s = sum(whole.guard_s)
    clean = fates.clean.total()
    gold = fates.gold.total()
    return {
        "revisions": whole.revisions,
        "distinct_items": whole.items,
        "holding": {
            "before": round(1 - whole.broken_before / max(1, whole.drafts), 5),
            "before_annotated": round(1 - real.broken_before / max(1, real.drafts), 5),
            "after": round(good / max(1, whole.revisions), 7),
            "lower95_one_sided": round(lower_bound(good, whole.revisions), 7),
        },
        "broken_rules": whole.broken_rules,
        "gold_items": {
            name: round(fates.gold[name] / max(1, gold), 4)
            for name in ("pass", "review", "fallback", "withheld")
        },
        "item_f1": {"before": f1(fates.before), "after": f1(fates.after)},
        "corruptions": {
            kind: {name: counts[name] for name in ("caught", "fallback", "escaped")}
            for kind, counts in sorted(fates.corruptions.items())
        },
        "escaped": escaped(fates),
        "clean_items_fallback": round((fates.clean["fallback"] + fates.clean["withheld"]) / max(1, clean), 4),
        "clean_items_review": round(fates.clean["review"] / max(1, clean), 4),
        "clean_items": clean,
        "review_per_meeting_hour": round(real.review / max(1e-9, real.hours), 1),
        "guard_ms": percentiles([1e3 * s for s in real.guard_s]),
        "guard_ms_random": percentiles([1e3 * s for s in adversarial.guard_s]),
        "checks_per_s_core": round(whole.checks / max(1e-9, guard_s)),
        "random_meetings": number,
        "wall_s": round(time.perf_counter() - begun, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 done, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--revisions", type=int, default=185_000)
    parser.add_argument("--meetings", type=Path, help="research meetings, JSON lines")
    parser.add_argument("--utterances", type=Path, help="their utterances, JSON lines, gzipped")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if (given.meetings is None) != (given.utterances is None):
        parser.error("--meetings and --utterances go together")
    scripts = read_scripts([SCRIPTS], frozenset({"train", "test"}))
    if given.meetings is not None:
        from models.verifier.research import read_research

        try:
            scripts += read_research(given.meetings, given.utterances)
        except (OSError, ValueError, KeyError) as error:
            progress(f"compliance: {error}")
            return 2
    print_report("compliance", given.seed, measure(scripts, given.revisions, given.seed, given.jobs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
