"""What is told of a piece in the end: one utterance, or one for each sentence that had been told before."""

from dataclasses import replace

import numpy as np
import pytest

from models.speech_recogniser import Recognition, Word
from models.speech_sentences import ended_words, spoken_words, standing
from operators.speech.piece import Piece
from operators.speech.told import beginning, decided

S = 1_000_000_000
START_NS = 100 * S


def heard(text: str) -> Recognition:
    """Half a second a word."""
    words = tuple(Word(n / 2, (n + 1) / 2, word, 0.9) for n, word in enumerate(text.split()))
    return Recognition(text, words, average_log_probability=-0.2, boundary_ms=100.0)


def piece(found: Recognition, *sentences: str) -> Piece:
    samples = round(len(found.words) / 2 * 16_000)
    tone = np.sin(np.arange(samples) * 2 * np.pi * 150 / 16_000) * 8_000
    return Piece(
        "room/1/3200", "room", "room", None, 3200, START_NS, START_NS + S // 10, START_NS + samples * 62_500,
        version=7, settled=6, pcm=tone.astype(np.int16).tobytes(), sentences=list(sentences),
    )  # fmt: skip


FOUND = heard("We meet there. Who comes? I do, and Ann.")


def test_where_nothing_was_told_before_a_piece_is_one_utterance() -> None:
    (told,) = decided(piece(FOUND), FOUND)
    assert (told.piece_id, told.version, told.text, told.follows_ns) == ("room/1/3200", 6, FOUND.text, None)
    assert decided(piece(FOUND, "we met there"), FOUND) == [told]
    assert decided(piece(FOUND, spoken_words(FOUND.words)), FOUND) == [told]


def test_a_sentence_that_still_reads_as_it_was_told_is_an_utterance_of_its_own() -> None:
    whole = piece(FOUND, "we meet there", "we meet there who comes", "we meet there who came")
    gaps = [(START_NS + S, START_NS + S + S // 5), (START_NS + S + S // 4, START_NS + 2 * S)]
    told = decided(replace(whole, gaps=gaps), FOUND)
    assert [part.text for part in told] == ["We meet there.", "Who comes?", "I do, and Ann."]
    assert [part.piece_id for part in told] == ["room/1/3200", "room/1/27200", "room/1/43200"]
    assert [part.start_ns - START_NS for part in told] == [S // 10, S * 3 // 2, S * 5 // 2]
    assert [part.end_ns - START_NS for part in told] == [S * 3 // 2, S * 5 // 2, S * 9 // 2]
    assert [part.follows_ns for part in told] == [told[1].start_ns, told[2].start_ns, None]
    assert [part.gaps for part in told] == [(gaps[0],), (gaps[1],), ()]
    assert all(part.prosody is not None for part in told)
    # Times of words go on counting from where the sound of the piece begins.
    assert [part.samples_start_ns for part in told] == [START_NS] * 3
    assert tuple(word for part in told for word in part.words) == FOUND.words


def test_words_without_any_length_leave_each_part_a_name_and_a_time_of_its_own() -> None:
    found = replace(FOUND, words=tuple(Word(0.0, 0.0, word.text, 0.9) for word in FOUND.words))
    told = decided(piece(FOUND, "we meet there", "we meet there who comes"), found)
    assert len({part.piece_id for part in told}) == 3
    assert all(part.start_ns < part.end_ns for part in told)
    assert [part.start_ns for part in told[1:]] == sorted({part.start_ns for part in told[1:]})


def test_the_beginning_ends_with_its_last_word() -> None:
    told = beginning(piece(FOUND), 4, FOUND, 3)
    assert (told.text, told.state, told.version) == ("We meet there.", "tentative", 4)
    assert told.end_ns == START_NS + S * 3 // 2
    assert len(told.words) == 3


@pytest.mark.parametrize(
    ("text", "ended"),
    [("We meet there. Who comes? I do", 5), ("We meet there.", 3), ("We meet there", 0), ("", 0)],
)
def test_sentences_that_seem_to_have_ended(text: str, ended: int) -> None:
    assert ended_words(heard(text).words) == ended


def test_what_stands_is_what_still_reads_the_same() -> None:
    words = heard("we meet there. who comes? I").words
    assert standing(["we meet there", "we meet there who comes i", "who comes"], words) == [3]
    # What only the cut made the end of a sentence is none.
    assert standing(["fasten your seat"], heard("fasten your seat belts. now").words) == []
    assert standing([], words) == []
