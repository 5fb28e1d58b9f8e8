"""What the network reads: bounded, a function of what was heard, and in the order that the operator wants."""

import numpy as np
import pytest

from models.minutes.encoder import MAX_PIECES, TEXT_WIDTH, pieces_of
from models.minutes.inputs import GLOBALS, WINDOW, Context, Layout, Told, Window, feeds
from models.minutes.words import BUCKETS

LAYOUT = Layout(("one", "two"), ("rise",), ("nods", "hands"), ("dates",))


def told(number: int, senses: bool = True) -> Told:
    chance = np.random.default_rng(number)
    return Told(
        "ABCD"[number % 4],
        3 + number % 7,
        (chance.normal(size=(1 + number % 3, TEXT_WIDTH)) * 0.05).astype(np.float16),
        (float(number % 2), 0.5),
        (0.3,) if senses and number % 3 == 0 else None,
        (1.0, 0.0) if senses and number % 4 == 0 else None,
        (0.5,) if senses and number % 5 == 0 else None,
        tuple(int(g) for g in sorted(chance.integers(1, BUCKETS, number % 5))),
    )


def heard(count: int) -> Context:
    context = Context()
    for number in range(count):
        context = context.heard(told(number))
    return context


def same(one: Window, other: Window) -> bool:
    mine, theirs = feeds([one], LAYOUT), feeds([other], LAYOUT)
    return all(np.array_equal(mine[name], theirs[name]) for name in mine)


def test_older_talk_is_kept_ever_coarser_and_none_of_it_is_lost() -> None:
    context, most = Context(), 0
    for number in range(5000):
        context = context.heard(told(number % 50))
        most = max(most, len(context.window().older))
    window = context.window()
    assert most <= 41 and len(window.utterances) == WINDOW
    assert sum(chunk.count for chunk in window.older) == 5000 - WINDOW
    counts = [chunk.count for chunk in window.older]
    assert counts == sorted(counts, reverse=True) and counts[0] >= 64 * counts[-1]


def test_the_same_talk_gives_the_same_window_whatever_was_asked_in_between() -> None:
    context = Context()
    for number in range(70):
        context = context.heard(told(number))
        context.window()
    assert same(context.window(), heard(70).window())
    assert not same(context.window(), heard(71).window())


def test_a_batch_is_its_windows_one_after_the_other() -> None:
    windows = [heard(60).window(), heard(1).window(), heard(25).window()]
    together = feeds(windows, LAYOUT)
    alone = [feeds([w], LAYOUT) for w in windows]
    for name in ("utterance", "place", "spoken", "text", "sound", "picture", "slide", "older", "modality"):
        assert np.array_equal(together[name], np.concatenate([one[name] for one in alone])), name
    assert len(together["order"]) == len(together["modality"])
    assert np.array_equal(np.sort(together["order"]), np.arange(len(together["order"])))
    assert together["grid"].shape == (3, WINDOW)
    flat = together["grid"].reshape(-1)
    assert np.array_equal(flat[together["cell"]], np.arange(len(together["cell"])))


def test_a_missing_sense_has_no_token() -> None:
    without = Window(tuple(told(n, senses=False) for n in range(12)))
    given = feeds([without], LAYOUT)
    assert set(given["modality"].tolist()) == {0, 1}
    assert given["sound"].shape == (0, 1) and given["picture"].shape == (0, 2)


def test_a_sense_that_a_network_does_not_read_goes_in_nowhere() -> None:
    given = feeds([heard(30).window()], Layout(LAYOUT.cues))
    assert not {"sound", "picture", "slide", "sound_of"} & set(given)
    assert set(given["modality"].tolist()) == {0, 1, 5}
    assert np.array_equal(np.sort(given["order"]), np.arange(len(given["order"])))


@pytest.mark.train
def test_the_plan_is_the_one_that_the_operator_makes() -> None:
    pytest.importorskip("torch")
    from models.minutes.train import plan_of

    given = feeds([heard(60).window(), heard(3).window(), heard(200).window()], LAYOUT)
    made = plan_of(given)
    names = ("window_starts", "window_meeting", "meeting_windows", "global_starts", "modality")
    for name in names:
        assert np.array_equal(given[name], getattr(made, name).numpy()), name
    assert made.tokens == len(given["order"]) + 3 * GLOBALS


@pytest.mark.parametrize(
    "text",
    ["", " ", "🙂🙂", "so " * 5000, "Yes. " * 3000, "a" * 100_000, "会議を始めます。", "What?! No... fine"],
)
def test_any_text_becomes_a_few_pieces(text: str) -> None:
    pieces = pieces_of(text)
    assert 1 <= len(pieces) <= MAX_PIECES
    assert all(len(piece.split()) <= 40 for piece in pieces)


def test_sentences_of_a_long_turn_stay_apart_and_none_of_its_words_is_lost() -> None:
    text = (
        "Well, you know how it was last year with the tent and all that rain, it was quite a thing. "
        "Anyway, I'll ring the hire people tomorrow and ask them for the bigger one. Lovely. Good."
    )
    pieces = pieces_of(text)
    assert " ".join(pieces) == text and len(pieces) == 3
    assert "I'll ring the hire people" in pieces[1]
