"""Summaries against abstracts: counted by hand."""

import random

import pytest

from benchmarks.minutes_summary import Summarised, figures, oracle, rouge, words_of

GOLD = "the remote control will be yellow and it will be cheap"


def test_rouge_is_the_f1_of_common_words_and_pairs() -> None:
    # the, remote, be, be of 4 and 11 words; "the remote" of 3 and 10 pairs.
    assert rouge("The remote be, be!", GOLD, 1) == pytest.approx(2 * 4 / (4 + 11))
    assert rouge("The remote be, be!", GOLD, 2) == pytest.approx(2 * 1 / (3 + 10))


def test_a_word_said_too_often_counts_as_often_as_the_abstract_has_it() -> None:
    assert rouge("will will will will", GOLD, 1) == pytest.approx(2 * 2 / (4 + 11))


def test_nothing_said_scores_nothing() -> None:
    assert rouge("", GOLD, 1) == rouge("", "", 2) == 0.0


def test_the_oracle_picks_what_is_like_the_abstract_and_keeps_to_its_room() -> None:
    said = [
        "um",
        "it will be yellow",
        "lunch is at noon",
        "the remote control will be cheap",
        "lunch is at noon",
    ]
    assert set(words_of(oracle(said, GOLD, 10))) == set(
        words_of("it will be yellow the remote control cheap")
    )
    assert oracle(said, GOLD, 5) == "it will be yellow"
    assert oracle(said, GOLD, 0) == oracle([], GOLD, 10) == oracle(said, "", 10) == ""


def test_the_oracle_is_no_worse_than_the_best_utterance() -> None:
    chance = random.Random(3)
    words = [*GOLD.split(), "lunch", "um", "so", "noon"]

    def value(text: str) -> float:
        return rouge(text, GOLD, 1) + rouge(text, GOLD, 2)

    for _ in range(30):
        said = [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(12)]
        best = oracle(said, GOLD, 15)
        assert len(words_of(best)) <= 15
        # Where one picked utterance ends and the next begins is a pair that nobody said.
        assert value(best) >= max(map(value, said)) - 0.05


def test_meetings_without_an_abstract_do_not_count() -> None:
    known = Summarised("the remote control will be cheap", GOLD, ["the remote control will be cheap"])
    found = figures([known, Summarised("lunch", "", ["lunch"])])
    assert found["meetings"] == 1
    assert found["rouge1"]["share"] == found["rouge2"]["share"] == 1.0
    assert figures([Summarised("lunch", "", ["lunch"])]) == {}
