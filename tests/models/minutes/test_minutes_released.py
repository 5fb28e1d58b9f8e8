"""The released network on meetings: more evidence is no less sure, and it is no clock."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.scripts import Script, context_of, spoken_of
from models.minutes.inputs import Context, Told, Window
from models.minutes.scores import UtteranceScores
from models.minutes.session import MinutesModel
from operators.understand.cues import CUES, cues_of
from operators.understand.engine import RuleEngine

FOLDER = Path(__file__).resolve().parents[3] / "models" / "everyday"


@lru_cache(maxsize=1)
def model() -> MinutesModel:
    return MinutesModel(CUES)


@lru_cache(maxsize=4)
def meeting(name: str) -> tuple[Script, tuple[Told, ...]]:
    """A training meeting, and what the network reads of it."""
    script: Script = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert script["split"] == "train"
    engine, told = RuleEngine(), []
    state = engine.start(context_of(script))
    for spoken in spoken_of(script):
        state, reading = engine.read(state, spoken)
        told.append(model().told(spoken.speaker or "", spoken.text, cues_of(reading)))
    return script, tuple(told)


def heard(told: tuple[Told, ...], before: Context | None = None) -> Context:
    context = before or Context()
    for one in told:
        context = context.heard(one)
    return context


def promises(script: Script) -> list[int]:
    at = {u["id"]: i for i, u in enumerate(script["utterances"])}
    return sorted(at[e] for action in script["truth"]["action_items"] for e in action["evidence"])


def test_a_promise_said_once_more_is_no_less_sure() -> None:
    script, told = meeting("storage-night")
    lost, held = [], 0
    for line in promises(script):
        if not 5 < line < len(told) - 4:
            continue
        newest = line + 3
        window = heard(told[: newest + 1]).window()
        place = len(window.utterances) - 1 - 3
        before = model().scores(window)[place].action
        if before < 0.2:
            continue
        again = heard((*told[: newest + 1], told[line])).window()
        after = model().scores(again)
        lost.append(before - max(after[-1].action, after[len(again.utterances) - 2 - 3].action))
        held += 1
    assert held >= 4
    assert max(lost) <= 0.05 and np.mean(lost) <= 0.0


def test_what_was_talked_of_long_ago_decides_little() -> None:
    """Joined to the end of another meeting, and with its own end cut off, a meeting scores much the same."""
    _, told = meeting("storage-night")
    _, other = meeting("site-morning")
    start, stop = 30, 60

    def scores(context: Context) -> list[UtteranceScores]:
        out = []
        for one in told[start:stop]:
            context = context.heard(one)
            out.append(model().scores(context.window())[-1])
        return out

    alone = scores(heard(told[:start]))
    joined = scores(heard(told[:start], heard(other)))
    for head in ("action", "decision"):
        one, two = (np.array([getattr(s, head) for s in found]) for found in (alone, joined))
        assert np.corrcoef(one, two)[0, 1] > 0.9, head
        assert np.abs(one - two).mean() < 0.08, head


def test_promises_score_above_other_talk() -> None:
    script, told = meeting("storage-night")
    mine = set(promises(script))
    context, found = Context(), []
    for line, one in enumerate(told):
        context = context.heard(one)
        found.append((model().scores(context.window())[-1].action, line in mine))
    yes = [p for p, is_one in found if is_one]
    no = [p for p, is_one in found if not is_one]
    assert np.mean(yes) > 4 * np.mean(no)


def test_words_said_next_reach_a_settled_score() -> None:
    script, told = meeting("storage-night")
    nothing = (0.0,) * len(CUES)
    moved = []
    for line in promises(script):
        now = heard(told[: line + 1])
        other = model().told("Somebody else", "Thanks, then that is done by you.", nothing)
        for grams in (other.grams, ()):
            moved.append(model().scores(now.heard(replace(other, grams=grams)).window())[-2].action)
    one, two = np.array(moved[::2]), np.array(moved[1::2])
    assert np.abs(one - two).max() > 0.01, "the words alone"


def test_an_empty_window_has_no_scores() -> None:
    assert model().scores(Window((model().told("", "", (0.0,) * len(CUES)),)))[0].due is not None
