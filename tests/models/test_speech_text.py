"""Loops, phantoms and hotwords, without any weights."""

from dataclasses import replace

import numpy as np
import pytest

from models.speech_hotwords import Word, first_doubt, reconcile
from models.speech_reading import Hypothesis, judge
from models.speech_text import (
    Evidence,
    collapse_loop,
    compression_ratio,
    degenerate,
    murmured,
    phantom,
    shorten_drawl,
    wordless,
)


def evidence(**changes: float) -> Evidence:
    values = {
        "duration_s": 1.5,
        "level_dbfs": -25.0,
        "no_speech_probability": 0.05,
        "average_log_probability": -0.3,
        "word_probability": 0.9,
        "compression_ratio": 1.0,
        "least_probability": 0.8,
    }
    return Evidence(**{**values, **changes})


@pytest.mark.parametrize(
    ("text", "seconds", "loop"),
    [
        ("Good morning, everyone.", 1.5, False),
        ("No, no, no, no.", 1.5, False),
        ("Yeah. Yeah. Yeah.", 1.5, False),
        ("ask what you can do. Ask what you can do. Ask what you can do. Ask what", 3.0, True),
        ("okay okay okay okay okay okay", 3.0, True),
        ("one two three four five six seven eight nine ten eleven", 0.6, True),
        ("", 1.0, False),
        ("Someone needs to update the price list. Someone needs to update the price list.", 4.0, True),
        (
            "I am not sure but I see no crashes now, so what I have is I am not sure but I see no crashes.",
            9.0,
            True,
        ),
        ("We could do that. We could do that on Monday.", 3.0, False),
    ],
)
def test_degenerate(text: str, seconds: float, loop: bool) -> None:
    assert degenerate(text, seconds) is loop


def test_a_loop_is_folded_to_one_turn() -> None:
    words = ["I", "will", "go.", "I", "will", "go.", "I", "will", "go.", "Then", "home"]
    assert [words[i] for i in collapse_loop(words)] == ["I", "will", "go.", "Then", "home"]
    said = ["then", "one", "image", "is", "extracted", "for", "each", "slide."]
    assert collapse_loop([*said, *said, *said[:3]]) == list(range(len(said)))
    assert collapse_loop([*said, *said, "Good."]) == [*range(len(said)), 2 * len(said)]
    honest = ["no", "no", "no", "not", "at", "all", "at", "all"]
    assert collapse_loop(honest) == list(range(len(honest)))


def test_compression_ratio_grows_with_repetition() -> None:
    assert compression_ratio("") == 0.0
    assert compression_ratio("all work and no play " * 12) > 2.4 > compression_ratio("all work and no play")


def test_a_phantom_phrase_needs_weak_sound() -> None:
    assert phantom("Thank you.", evidence()) == ""
    assert phantom("Thank you.", evidence(no_speech_probability=0.5)) == "phantom phrase"
    assert phantom("Thank you.", evidence(word_probability=0.3)) == "phantom phrase"
    assert phantom("We ship on Friday.", evidence(no_speech_probability=0.5)) == ""


def test_weak_evidence_alone_is_enough_when_it_is_weak_enough() -> None:
    assert (
        phantom("We ship on Friday.", evidence(no_speech_probability=0.9, word_probability=0.3))
        == "no speech"
    )
    assert phantom("We ship on Friday.", evidence(word_probability=0.1)) == "too unsure"
    assert phantom("We ship on Friday.", evidence(level_dbfs=-90.0)) == "digital silence"
    assert phantom(". . .", evidence()) == "no words"
    assert phantom("", evidence()) == ""


def test_a_few_words_need_more_evidence_than_a_sentence() -> None:
    laugh = evidence(no_speech_probability=0.65, average_log_probability=-1.4)
    cough = evidence(average_log_probability=-1.6, word_probability=0.4, least_probability=0.2)
    for weak in (laugh, cough):
        assert phantom("Okay.", weak) == "no speech"
        assert phantom("We ship on Friday.", weak) == ""
        assert phantom("Okay.", replace(weak, voice=0.8)) == "", "a clear voice"
    mumbled = evidence(no_speech_probability=0.65, average_log_probability=-0.9)
    unlikely = evidence(average_log_probability=-1.6, least_probability=0.5)
    for real in (mumbled, unlikely):
        assert phantom("Okay.", real) == ""


def test_laughter_is_no_sentence() -> None:
    laugh = evidence(average_log_probability=-1.3, word_probability=0.35, voice=0.6)
    assert phantom("So, I'll go again.", laugh) == "no speech"
    for real in (replace(laugh, voice=0.8), replace(laugh, word_probability=0.5), replace(laugh, voice=0.0)):
        assert phantom("So, I'll go again.", real) == ""


def test_murmurs_are_no_words() -> None:
    assert all(map(murmured, ("Mm-hm.", "Hm.", "Mm-hmm. Mm-", "Mhm")))
    assert not any(map(murmured, ("", "Mm-hm, yes.", "Him.", "Home.", "Oh.")))


@pytest.mark.parametrize(
    "text",
    ["PPPPPPPPPPPPPPPPPPPPP", "Aaaaaaa.", "Hahahaha!", "Ha ha ha.", "ahahaha", "Mwahaha.", "Hehe.", "hohoho"],
)
def test_what_is_written_without_words(text: str) -> None:
    assert wordless(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mmmmmmmm.",
        "Mm-hm.",
        "Aha.",
        "Ha.",
        "Ah.",
        "He, he",
        "Oh.",
        "Noooooo.",
        "Haha, yes.",
        "A B C",
        "Ohio",
    ],
)
def test_what_has_words_or_is_murmured(text: str) -> None:
    assert not wordless(text)


@pytest.mark.parametrize(
    ("written", "kept"), [("PPPPPPPPPPPP", ""), ("Ha ha ha ha", ""), ("Nooooooo no", "Noo no")]
)
def test_nothing_is_heard_where_there_are_no_words(written: str, kept: str) -> None:
    words = tuple(Word(0.1, 0.4, word, 0.9) for word in written.split())
    sound = np.full(8_000, 0.1, dtype=np.float32)
    found = judge(Hypothesis((1,), (1,), written, 0.1, -0.3), words, 100.0, sound, 1, 0.8)
    assert (found.text, found.suppressed) == (kept, "" if kept else "no words")


def test_drawl() -> None:
    assert shorten_drawl("Mmmmmmmmm.") == "Mmm."
    for murmur in ("Mm-hmm.", "Mm-h-h-h.", "Mhm.", "Mm-hm-hm."):
        assert shorten_drawl(murmur) == "Mm-hm."
    for word in ("Well", "Hm.", "mhmland", "Mm.", "Him"):
        assert shorten_drawl(word) == word


def heard(*words: tuple[str, float]) -> tuple[Word, ...]:
    return tuple(
        Word(i * 0.3, i * 0.3 + 0.3, text, probability) for i, (text, probability) in enumerate(words)
    )


def text(words: tuple[Word, ...]) -> str:
    return " ".join(word.text for word in words)


def test_a_sure_hotword_needs_no_second_look() -> None:
    assert first_doubt(heard(("Ben,", 0.9), ("hello", 0.2)), ("Ben",)) is None
    assert first_doubt(heard(("hello", 0.2), ("Ben,", 0.3)), ("Ben",)) == 1
    assert first_doubt(heard(("then", 0.3)), ("Ben",)) is None


def test_a_hotword_without_support_gives_way_to_what_was_heard() -> None:
    prompted = heard(("no", 0.9), ("party,", 0.9), ("Ben.", 0.31))
    plain = heard(("no", 0.9), ("party", 0.9), ("then.", 0.68))
    assert text(reconcile(prompted, plain, ("Ben",))) == "no party, then."


def test_a_hotword_with_support_stays() -> None:
    prompted = heard(("Ben,", 0.37), ("how", 0.9))
    plain = heard(("Then", 0.27), ("how", 0.9))
    assert text(reconcile(prompted, plain, ("Ben",))) == "Ben, how"


def test_spelling_alone_is_the_hotwords_to_say() -> None:
    prompted = heard(("the", 0.9), ("Brightwater", 0.39), ("files", 0.9))
    plain = heard(("the", 0.9), ("bright", 0.59), ("water", 0.98), ("files", 0.9))
    assert text(reconcile(prompted, plain, ("Brightwater import",))) == "the Brightwater files"


def test_a_hotword_out_of_nothing_must_be_probable() -> None:
    plain = heard(("for", 0.9), ("people", 0.9))
    weak = heard(("Ben,", 0.1), ("for", 0.9), ("people", 0.9))
    strong = heard(("Ben,", 0.7), ("for", 0.9), ("people", 0.9))
    assert text(reconcile(weak, plain, ("Ben",))) == "for people"
    assert text(reconcile(strong, plain, ("Ben",))) == "Ben, for people"


def test_other_differences_follow_the_prompted_reading() -> None:
    prompted = heard(("I", 0.9), ("suggest", 0.9), ("Thursday", 0.5))
    plain = heard(("I", 0.9), ("suggest", 0.9), ("verzley", 0.5))
    assert text(reconcile(prompted, plain, ("Ben",))) == "I suggest Thursday"
