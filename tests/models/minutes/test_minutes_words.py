"""The linear model over words: what of a text it reads, what it learns, and that the graph adds up the same."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from models.minutes.calibrate import mixed, mixture_of
from models.minutes.corpora import Annotated, Line
from models.minutes.held_out import Raw, newest_lines
from models.minutes.inputs import WINDOW, Context, Layout, Told, feeds
from models.minutes.linear import ROLES, Linear, LinearSettings, figures_of, fit, rows_of, scores
from models.minutes.scores import HEADS
from models.minutes.words import BUCKETS, grams_of

LAYOUT = Layout(("one", "two"))
SAID = ("I'll send it.", "Fine, fine.", "Who has the key?", "We take the tent", "", "It rained 3 days", "So.")


def meeting(number: int, count: int = 40) -> Annotated:
    """A meeting in which every promise is an action, and its answer a decision where somebody asked before."""
    chance = np.random.default_rng(number)
    said = chance.integers(0, len(SAID), count)
    labels = np.zeros((count, len(HEADS)), np.int8)
    labels[:, 0] = said == 0
    labels[1:, 1] = (said[1:] == 3) & (said[:-1] == 2)
    lines = tuple(Line(f"u{at}", "AB"[at % 2], SAID[one]) for at, one in enumerate(said))
    return Annotated(f"m{number}", "everyday", f"m{number}", lines, labels, np.ones(count, np.float32))


def cues_in(meetings: list[Annotated]) -> dict[tuple[str, str], tuple[float, ...]]:
    return {(m.name, line.id): (float(i % 2), 0.5) for m in meetings for i, line in enumerate(m.lines)}


def weights(seed: int) -> Linear:
    chance = np.random.default_rng(seed)
    words = chance.normal(size=(len(ROLES), len(HEADS), BUCKETS)).astype(np.float16).astype(np.float32)
    words[:, :, 0] = 0
    figures = chance.normal(size=(len(ROLES), len(HEADS), 3)).astype(np.float32)
    return Linear(words, figures, chance.normal(size=len(HEADS)).astype(np.float32))


def test_words_are_told_apart_and_numbers_are_not() -> None:
    assert grams_of("I'll ring Ben.") == grams_of("i’ll RING ben")
    assert grams_of("Room 3 is free") == grams_of("room 17 is free")
    assert set(grams_of("who has it")) < set(grams_of("who has it?"))
    assert grams_of("not now") != grams_of("now not")


@pytest.mark.parametrize("text", ["", "…", "🎉", "well " * 5000, "a b c d e f " * 900, "明日", "x" * 100_000])
def test_any_text_has_few_buckets(text: str) -> None:
    found = grams_of(text)
    assert len(found) <= 2 * 200 and list(found) == sorted(set(found))
    assert all(0 < one < BUCKETS for one in found)


def test_what_was_not_heard_yet_plays_no_part() -> None:
    truth = meeting(1)
    figures = figures_of(truth, cues_in([truth]))
    lines = np.arange(len(truth.lines))
    alone = rows_of(figures, lines)
    width = figures.shape[1]
    later = [role for role in (2, 4, 6) if alone[:, role * width : (role + 1) * width].nnz]
    assert later == []
    assert rows_of(figures, np.minimum(lines + 2, len(lines) - 1))[:, 2 * width : 3 * width].nnz


def test_it_learns_words_and_what_was_said_before() -> None:
    seen, unseen = [meeting(n) for n in range(8)], meeting(99, 120)
    cues = cues_in([*seen, unseen])
    model = fit(seen, cues, LinearSettings(inverse_penalty=30.0, iterations=25))
    short = [fit(seen[:2], cues, LinearSettings(iterations=2)).words for _ in range(2)]
    assert np.array_equal(short[0], short[1]), "seeded"
    found = scores(unseen, cues, model, 1)[2]
    for head in (0, 1):
        yes = unseen.labels[:, head] > 0
        assert found[yes, head].min() > found[~yes, head].max(), HEADS[head]


def test_the_better_of_two_gets_the_larger_share() -> None:
    meetings = [meeting(n, 120) for n in range(3)]
    chance = np.random.default_rng(5)
    good = {m.name: (2.0 * m.labels - 1).astype(np.float32) + chance.normal(size=m.labels.shape).astype(np.float32)
            for m in meetings}  # fmt: skip
    noise = {m.name: chance.normal(size=m.labels.shape).astype(np.float32) for m in meetings}
    nothing: dict[int, Any] = {}
    raw = {
        m.name: Raw(dict.fromkeys((0, 2, 8), noise[m.name]), nothing, nothing, nothing, newest_lines(120, 1))
        for m in meetings
    }
    words = {name: dict.fromkeys((0, 2, 8), one) for name, one in good.items()}
    other = {name: dict.fromkeys((0, 2, 8), -one) for name, one in noise.items()}
    mixture = mixture_of(meetings, raw, words, other)
    assert mixture.words[0] > 10 * max(mixture.network[0] - mixture.reader[0], 0)
    assert min(*mixture.network, *mixture.words, *mixture.reader) >= 0
    both = mixed(raw, words, other, mixture)["m1"].heads[2]
    network, said, read = (
        np.array(part, np.float32) for part in (mixture.network, mixture.words, mixture.reader)
    )
    expected = noise["m1"] * network + good["m1"] * said - noise["m1"] * read
    assert np.abs(both - expected).max() < 1e-5


@pytest.mark.train
def test_the_graph_adds_up_what_training_fitted() -> None:
    torch = pytest.importorskip("torch")
    from models.minutes.mixed import Words

    truth, model = meeting(3, 60), weights(4)
    cues = cues_in([truth])
    context, windows = Context(), []
    for line in truth.lines:
        told = Told(line.speaker, 3, np.zeros((1, 768), np.float16), cues[truth.name, line.id])
        context = context.heard(dataclasses.replace(told, grams=grams_of(line.text)))
        windows.append(context.window())
    expected = scores(truth, cues, model, 1)
    words = Words(model)
    for ahead in (0, 2, 8):
        for at in (0, 1, 5, 30, 51, 58, 59):
            newest = min(at + ahead, 59)
            given = {name: torch.from_numpy(x) for name, x in feeds([windows[newest]], LAYOUT).items()}
            found = words(given)[min(newest, WINDOW - 1) - (newest - at)].numpy()
            assert np.abs(found - expected[ahead][at]).max() < 1e-4
