"""Whether what is said at a microphone is a language that the weights do not know.

English weights make fluent English of any language. What gives it away is that they are hardly sure of a word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from models.speech_hotwords import Word

NOT_ENGLISH: Final = (
    "Much of what was said does not look English; decisions, tasks and questions are found in English only."
)


@dataclass(frozen=True)
class ForeignSettings:
    """Pieces of so many seconds and words at least, `in_a_row` of them with a mean word probability below the limit.

    Shorter ones are often unsure in English too, and a single one may be a joke or a name.
    """

    least_s: float = 4.0
    least_words: int = 8
    unsure_below: float = 0.42
    in_a_row: int = 2

    def build(self) -> "ForeignSpeech":
        """The logic, with nothing heard yet."""
        return ForeignSpeech(self)


class ForeignSpeech:
    """Counts unsure pieces of each microphone of a meeting. Plain data, part of the meeting's state."""

    def __init__(self, settings: ForeignSettings) -> None:
        self._settings = settings
        self._unsure: dict[str, int] = {}
        self._told = False

    def heard(self, microphone: str, duration_s: float, words: Sequence[Word]) -> bool:
        """Take in a decided piece; True once, where it is time to say that this does not look English."""
        settings = self._settings
        if duration_s < settings.least_s or len(words) < settings.least_words:
            return False
        mean = sum(word.probability for word in words) / len(words)
        row = self._unsure.get(microphone, 0) + 1 if mean < settings.unsure_below else 0
        self._unsure[microphone] = row
        if self._told or row < settings.in_a_row:
            return False
        self._told = True
        return True
