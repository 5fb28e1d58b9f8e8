"""Items judged by weights and thresholds from other meetings than those they are scored on.

What judges items (`benchmarks.items`) has weights and thresholds. Both are fitted here on all groups of meetings but
some, the thresholds on a cross-validation within them, and only then are the items of those groups looked at. Figures
of such items are not flattered by the choice of a threshold.
"""

import collections
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from models.minutes.appraisal import Appraisal

from .item_scores import EVERYDAY, SECTIONS, Counts, f1, report_of, score_minutes
from .items import SECTION_OF, Judged, Tallies, judge, judge_choices, published, with_choices

DRAWS: Final = 2000
WHOLE: Final = 50
"""Everyday scripts of fewer utterances are pieces of meetings: they teach, but a score on them says little."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Fold:
    """What judges the items of some groups of meetings, fitted on all others."""

    appraisal: Appraisal
    groups: frozenset[str]


def spread(made: Sequence[Judged], folds: int, seed: int) -> list[frozenset[str]]:
    """Groups of meetings in so many parts; everyday and research meetings are spread over all of them."""
    parts: list[set[str]] = [set() for _ in range(folds)]
    for everyday in (True, False):
        groups = sorted({m.group for m in made if (m.limits is EVERYDAY) == everyday})
        random.Random(f"{seed}:{everyday}").shuffle(groups)
        for number, group in enumerate(groups):
            parts[number % folds].add(group)
    return [frozenset(part) for part in parts if part]


def fitted_on(made: Sequence[Judged], folds: int, strength: float) -> Appraisal:
    """Weights from all these meetings, thresholds from a cross-validation within them."""
    found, appraisal = judge(made, folds, strength)
    least = Tallies.of(made, found).best(range(len(made)))
    families = {
        name: replace(j, threshold=least[name][0], threshold_sparse=least[name][1])
        for name, j in appraisal.families.items()
    }
    choices = judge_choices(made, found, least, folds)[1]
    return replace(appraisal, families=families, owners=choices["owner"], dates=choices["due"])


def nested(made: Sequence[Judged], folds: int, strength: float, seed: int) -> list[Fold]:
    """What judges each part of the meetings, from the other parts alone."""
    out = []
    for part in spread(made, folds, seed):
        rest = [m for m in made if m.group not in part]
        out.append(Fold(fitted_on(rest, folds, strength), part))
    return out


def counts_by_meeting(made: Sequence[Judged], folds: Sequence[Fold]) -> list[Counts]:
    """Counts of the published items of each meeting, as its fold judges them."""
    of = {group: fold.appraisal for fold in folds for group in fold.groups}
    return [judged_by(meeting, of[meeting.group]) for meeting in made]


def judged_by(meeting: Judged, appraisal: Appraisal) -> Counts:
    """Counts of what is published of one meeting."""
    sure = {c.item.id: appraisal.families[c.family].probability(c.figures) for c in meeting.candidates}
    counts: Counts = collections.Counter()
    meeting = with_choices(meeting, {"owner": appraisal.owners, "due": appraisal.dates})
    for family, section in SECTION_OF.items():
        judgement = appraisal.families[family]
        least = judgement.threshold_sparse if meeting.sparse else judgement.threshold
        minutes = {section: [c.entry for c in published(meeting, sure, family, least)]}
        counts.update(score_minutes(meeting.script, minutes, meeting.limits, (section,)))
    return counts


def interval(by_group: Mapping[str, Counts], value: Callable[[Counts], float], seed: int) -> Interval:
    """Where 95 % of the values lie when groups are drawn with replacement."""
    groups = [by_group[name] for name in sorted(by_group)]
    chance = np.random.default_rng(seed)
    values = []
    for drawn in chance.integers(len(groups), size=(DRAWS, len(groups))):
        total: Counts = collections.Counter()
        for number, times in collections.Counter(drawn.tolist()).items():
            for key, count in groups[number].items():
                total[key] += times * count
        values.append(value(total))
    low, high = np.quantile(values, (0.025, 0.975))
    return round(float(low), 3), round(float(high), 3)


def f1_of(section: str) -> Callable[[Counts], float]:
    """F1 of a section from counts."""
    return lambda counts: f1(*(counts[section, name] for name in ("hit", "predicted", "gold")))


def grouped(counts: Iterable[tuple[str, Counts]]) -> dict[str, Counts]:
    """Counts of each group, from those of its meetings."""
    out: dict[str, Counts] = collections.defaultdict(collections.Counter)
    for group, mine in counts:
        out[group].update(mine)
    return dict(out)


def told(by_group: Mapping[str, Counts], seed: int) -> dict[str, Any]:
    """Figures over all groups, F1 with its interval, and how many of the owners and dates given are wrong."""
    total: Counts = collections.Counter()
    for mine in by_group.values():
        total.update(mine)
    out = report_of(total)
    for section in SECTIONS:
        if total[section, "gold"]:
            out[section]["f1_interval"] = interval(by_group, f1_of(section), seed)
    if not out["owner"]["n"]:
        del out["owner"], out["due"]
    return out | {"groups": len(by_group)}


def by_source(made: Sequence[Judged]) -> dict[str, list[int]]:
    """Places of everyday and research meetings; pieces of meetings are left out."""
    out: dict[str, list[int]] = {"everyday": [], "research": []}
    for place, meeting in enumerate(made):
        everyday = meeting.limits is EVERYDAY
        if not everyday or len(meeting.script["utterances"]) >= WHOLE:
            out["everyday" if everyday else "research"].append(place)
    return {name: places for name, places in out.items() if places}


def figures(made: Sequence[Judged], folds: Sequence[Fold], seed: int) -> dict[str, Any]:
    """What `told` says of each source."""
    out = {}
    for name, places in by_source(made).items():
        counts = counts_by_meeting([made[place] for place in places], folds)
        out[name] = told(grouped(zip((made[place].group for place in places), counts, strict=True)), seed)
    return out
