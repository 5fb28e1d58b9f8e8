"""When it is said that what is spoken does not look English."""

from models.speech_hotwords import Word
from operators.speech.foreign import ForeignSettings


def words(count: int, probability: float) -> list[Word]:
    return [Word(0.3 * i, 0.3 * i + 0.2, "so", probability) for i in range(count)]


def test_two_long_unsure_pieces_of_one_microphone_are_told_of_once() -> None:
    speech = ForeignSettings().build()
    assert not speech.heard("mic-1/1", 5.0, words(10, 0.3))
    assert not speech.heard("mic-2/1", 5.0, words(10, 0.3))
    assert speech.heard("mic-1/1", 5.0, words(10, 0.3))
    assert not speech.heard("mic-2/1", 5.0, words(10, 0.3))


def test_short_pieces_say_nothing_and_a_sure_one_between_starts_anew() -> None:
    speech = ForeignSettings().build()
    assert not speech.heard("mic-1/1", 5.0, words(10, 0.3))
    assert not speech.heard("mic-1/1", 5.0, words(10, 0.8))
    assert not speech.heard("mic-1/1", 5.0, words(10, 0.3))
    assert not speech.heard("mic-1/1", 3.0, words(10, 0.2))
    assert not speech.heard("mic-1/1", 5.0, words(5, 0.2))
    assert speech.heard("mic-1/1", 5.0, words(10, 0.3))
