"""The minutes model as the engine's scorer, with what it has said lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from models.minutes.inputs import Told, Window
from models.minutes.memory import ANSWERS_KEPT
from models.minutes.scores import UtteranceScores
from models.minutes.session import MinutesModel
from operators.language.text import MAX_CHARACTERS
from operators.understand.cues import Figures
from operators.understand.types import Spoken


class ModelScorer:
    """Asks the model; a window that was scored lately is not scored again, which changes no score."""

    def __init__(self, model: MinutesModel) -> None:
        self._model = model
        self.name = model.name
        self._kept: OrderedDict[bytes, Sequence[UtteranceScores]] = OrderedDict()

    def told(self, spoken: Spoken, cues: Figures) -> Told:
        """See `Scorer`."""
        return self._model.told(spoken.speaker or "", spoken.text[:MAX_CHARACTERS], cues)

    def slices(self, spoken: Spoken) -> Iterator[None]:
        """See `Scorer`."""
        yield from self._model.read_pieces(spoken.text[:MAX_CHARACTERS])

    def scores(self, window: Window, digest: bytes) -> Sequence[UtteranceScores]:
        """See `Scorer`."""
        found = self._kept.get(digest)
        if found is None:
            found = self._kept[digest] = self._model.scores(window)
            if len(self._kept) > ANSWERS_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(digest)
        return found
