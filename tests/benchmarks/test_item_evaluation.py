"""Evaluation of items: what judges them has not seen them, and what is counted is counted right."""

import collections
import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import head_scores, item_evaluation, item_stages, item_tables
from benchmarks.item_nested import by_source, counts_by_meeting, f1_of, figures, interval, nested, spread
from benchmarks.item_scores import EVERYDAY, RESEARCH, Counts, score_minutes
from benchmarks.items import Judged, Table, TableScorer, made_of
from benchmarks.scripts import Script
from models.everyday_meetings import FOLDER
from models.minutes.corpora import Annotated, Line
from models.minutes.inputs import Told, Window
from models.minutes.scores import HEADS, UtteranceScores
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine

_NAMES = ("storage-night", "site-morning", "hotel-kitchen", "estate-huddle", "flat-meeting", "office-move")


@lru_cache(maxsize=1)
def scripts() -> tuple[Script, ...]:
    """The first half of some training meetings, as whole meetings."""
    out = []
    for name in _NAMES:
        script: Script = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        assert script["split"] == "train"
        script["utterances"] = script["utterances"][:50]
        there = {u["id"] for u in script["utterances"]}
        script["truth"] = {
            section: [entry for entry in entries if set(entry["evidence"]) <= there]
            for section, entries in script["truth"].items()
        }
        out.append(script)
    return tuple(out)


@lru_cache(maxsize=1)
def table() -> Table:
    """Scores that know most of the truth."""
    out: dict[str, dict[str | int, Any]] = {}
    for script in scripts():
        tasks = {e for entry in script["truth"]["action_items"] for e in entry["evidence"]}
        ids = [u["id"] for u in script["utterances"]]
        scores = [
            UtteranceScores(action=0.9 if (name in tasks) != (row % 17 == 0) else 0.02)
            for row, name in enumerate(ids)
        ]
        out[script["meeting"]] = {"ids": ids, 0: scores, 2: scores, 8: scores}
    return out


@lru_cache(maxsize=1)
def made() -> tuple[Judged, ...]:
    return tuple(made_of([(s, EVERYDAY, s["meeting"]) for s in scripts()], table()))


def test_parts_hold_every_group_once_and_all_sources() -> None:
    many = [replace(made()[0], group=f"e{n % 7}") for n in range(14)]
    many += [replace(made()[0], group=f"r{n}", limits=RESEARCH) for n in range(6)]
    parts = spread(many, 3, 0)
    assert sorted(g for part in parts for g in part) == sorted({m.group for m in many})
    assert all({"e", "r"} == {g[0] for g in part} for part in parts)
    assert parts == spread(many, 3, 0) != spread(many, 3, 1)


def test_what_judges_a_meeting_has_not_seen_it() -> None:
    folds = nested(made(), 3, 3.0, 0)
    part = folds[0].groups
    wrong = [
        replace(m, candidates=tuple(replace(c, holds=not c.holds) for c in m.candidates))
        if m.group in part
        else m
        for m in made()
    ]
    changed = nested(wrong, 3, 3.0, 0)
    assert changed[0].appraisal == folds[0].appraisal
    assert all(one.appraisal != other.appraisal for one, other in zip(changed[1:], folds[1:], strict=True))


def test_a_meeting_scores_the_same_from_its_candidates_and_from_its_minutes() -> None:
    folds = nested(made(), 3, 3.0, 0)
    of = {g: fold.appraisal for fold in folds for g in fold.groups}
    scorer = TableScorer(table())
    for meeting, counts in zip(made(), counts_by_meeting(made(), folds), strict=True):
        scorer.begin(meeting.script["meeting"])
        found = item_stages.followed(meeting.script, HybridEngine(scorer=scorer, appraisal=of[meeting.group]))
        final = score_minutes(meeting.script, found.stages["final"], EVERYDAY)
        assert +final == +counts
    told = figures(made(), folds, 0)["everyday"]["action_items"]
    low, high = told["f1_interval"]
    assert 0.5 < low <= told["f1"] <= high <= 1.0


def test_the_interval_is_of_groups_not_of_meetings() -> None:
    section = "decisions"

    def counts(hit: int) -> Counts:
        return collections.Counter({(section, "hit"): hit, (section, "predicted"): 10, (section, "gold"): 10})

    same = {f"g{n}": counts(5) for n in range(8)}
    assert interval(same, f1_of(section), 0) == (0.5, 0.5)
    mixed = {f"g{n}": counts(10 if n % 2 else 0) for n in range(8)}
    low, high = interval(mixed, f1_of(section), 0)
    assert 0.1 <= low < 0.3 and 0.7 < high <= 0.9
    assert interval(mixed, f1_of(section), 0) == (low, high)


def test_pieces_of_meetings_are_not_scored() -> None:
    short = replace(made()[0], script=made()[0].script | {"utterances": made()[0].script["utterances"][:20]})
    assert by_source([made()[0], short, replace(short, limits=RESEARCH)]) == {
        "everyday": [0],
        "research": [2],
    }


def test_thresholds_of_heads_come_from_other_parts() -> None:
    p = [np.array([0.9, 0.2, 0.1]), np.array([0.9, 0.8, 0.1])]
    holds = [np.array([True, False, False]), np.array([True, True, False])]
    found = head_scores.head_figures(p, holds, [0, 1])
    # The first part is judged from 0.8 on, the second only from 0.9 on: one of its two is missed.
    assert (found["precision"], found["recall"]) == (1.0, round(2 / 3, 3))
    assert found["auroc"] == found["ap"] == 1.0


def test_heads_are_read_by_the_ids_of_lines_and_not_where_the_truth_is_unknown() -> None:
    lines = tuple(Line(f"u{n}", "A", "words") for n in range(4))
    labels = np.full((4, len(HEADS)), -1, np.int8)
    labels[:, 0] = (1, 0, -1, 0)
    truth = Annotated("m", "ami", "m", lines, labels, np.ones(4, np.float32))
    likely = {"u0": 0.9, "u1": 0.1, "u2": 0.99, "u3": 0.2}
    order = ["u3", "u2", "u1", "u0"]
    found = head_scores.figures(
        [truth], {"m": {"ids": order, 8: [UtteranceScores(action=likely[name]) for name in order]}}, 2, 0
    )
    assert found["ami"]["ahead_8"]["action"]["lines"] == 3
    assert found["ami"]["ahead_8"]["action"]["f1"] == 1.0
    assert "owner" not in found["ami"]["ahead_8"]


def test_quiet_talk_is_a_minute_away_from_all_truth() -> None:
    said = [{"id": f"u{n}", "start_s": 30.0 * n, "end_s": 30.0 * n + 20, "text": "x"} for n in range(20)]
    truth: dict[str, Any] = {"decisions": [], "open_questions": []}
    truth["action_items"] = [{"text": "x", "evidence": ["u4"]}]
    script = {"utterances": said, "truth": truth}

    def item(*places: int) -> dict[str, Any]:
        return {"evidence": [{"start_s": 30.0 * n, "end_s": 30.0 * n + 20} for n in places]}

    minutes = {"decisions": [item(0), item(9), item(4)], "action_items": [item(6, 14)], "open_questions": []}
    found = item_stages.quiet(script, minutes)
    # Ten minutes of talk: the third holds the task, so the second to fourth are not quiet.
    assert (found["bins"], found["decisions"], found["action_items"]) == (7, 2, 0)
    assert item_stages.per_hour(found, ("decisions",)) == {"hours": 0.12, "decisions": 17.14}


class _Counting:
    """A network that says of every utterance how many were heard after it, and which one it is."""

    def scores(self, window: Window) -> Sequence[UtteranceScores]:
        newest = len(window.utterances) - 1
        return [
            UtteranceScores(action=(newest - place) / 100, owner=((told.speaker, 1.0),))
            for place, told in enumerate(window.utterances)
        ]


@pytest.mark.parametrize("length", [1, 2, 5, 9, 40])
def test_tables_hold_each_utterance_with_as_many_after_it_as_they_say(length: int) -> None:
    told = [Told(f"u{n}", 1, np.zeros((1, 4), np.float16), ()) for n in range(length)]
    found = item_tables.scored(told, _Counting().scores)
    assert set(found) == {0, 2, 8}
    for ahead, scores in found.items():
        assert [s.owner[0][0] for s in scores] == [t.speaker for t in told]
        later = [min(ahead, length - 1 - n) for n in range(length)]
        assert [round(100 * s.action) for s in scores] == later


def test_the_model_alone_starts_no_item_of_a_rule() -> None:
    script, silent = scripts()[0], item_evaluation._unscored(table())
    whole, nothing = (
        made_of([(script, EVERYDAY, "g")], silent, engine_of=engine_of)
        for engine_of in (item_evaluation._whole, item_evaluation._model_alone)
    )
    assert whole[0].candidates and not nothing[0].candidates
    (alone,) = made_of([(script, EVERYDAY, "g")], table(), engine_of=item_evaluation._model_alone)
    assert alone.candidates and all(c.draft.by_model for c in alone.candidates)


def test_both_command_lines_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for script in scripts():
        (tmp_path / f"{script['meeting']}.json").write_text(json.dumps(script), encoding="utf-8")
    (tmp_path / "table.pkl").write_bytes(pickle.dumps(table()))
    given = ["--scores", str(tmp_path / "table.pkl"), "--scripts", str(tmp_path)]
    changed = f"nothing={tmp_path / 'table.pkl'}"
    out = str(tmp_path / "folds.pkl")
    assert item_evaluation.main([*given, "--folds", "2", "--out", out, "--without", changed, "--ablate"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["without"]["nothing"] == {"meetings": told["meetings"], "everyday": told["everyday"]}
    rules = told["ablations"]["rules as shipped"]["everyday"]["action_items"]
    assert rules["gold"] == told["everyday"]["action_items"]["gold"] > 0
    assert item_stages.main([*given, "--folds", out]) == 0
    stages = json.loads(capsys.readouterr().out)
    assert stages["everyday"]["final"] == told["everyday"]
    assert stages["everyday"]["quiet"]["hours"] >= 0
    assert item_stages.main(["--scripts", str(tmp_path)]) == 2


def test_rules_follow_a_meeting_too() -> None:
    found = item_stages.followed(scripts()[0], RuleEngine())
    assert found.summary and found.stages["final"]["action_items"]
