"""Talk with made-up scores: a minutes model whose answers a test writes down."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from models.minutes.appraisal import Appraisal, Judgement
from models.minutes.inputs import Told, Window
from models.minutes.scores import UtteranceScores
from operators.understand.appraise import FIGURES
from operators.understand.cues import Figures
from operators.understand.engine import RuleEngine
from operators.understand.state import State
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken

CONTEXT = MeetingContext(attendees=(Attendee("Mira", "Mira"), Attendee("Tom", "Tom")))
LIKELY = FIGURES.index("likely")
PLAIN = Judgement(tuple(float(i == LIKELY) * 4 for i in range(len(FIGURES))), 0.0, 0.5, 0.5)
BY_SCORE = Appraisal(FIGURES, "table", dict.fromkeys(("action", "decision", "question"), PLAIN))
"""An item's probability is that of its surest utterance."""

Scores = Mapping[str, UtteranceScores]


class Says:
    """Scores by text; ``later`` are those once two more utterances are known."""

    name = "table"

    def __init__(self, at_once: Scores, later: Scores | None = None) -> None:
        self._at_once = at_once
        self._later = later if later is not None else at_once
        self.windows: list[tuple[str, ...]] = []

    def slices(self, spoken: Spoken) -> Iterator[None]:
        del spoken
        yield from ()

    def told(self, spoken: Spoken, cues: Figures) -> Told:
        assert len(cues) > 40
        return Told(spoken.text, 1, np.zeros((1, 768), np.float16), cues)

    def scores(self, window: Window, digest: bytes) -> Sequence[UtteranceScores]:
        assert len(digest) == 16
        self.windows.append(tuple(told.speaker for told in window.utterances))
        newest = len(window.utterances) - 1
        return [
            (self._later if newest - place >= 2 else self._at_once).get(told.speaker, UtteranceScores())
            for place, told in enumerate(window.utterances)
        ]


def said_by(*lines: tuple[str, str]) -> list[Spoken]:
    step = 5_000_000_000
    return [
        Spoken(f"u{n}", n * step, n * step + 3_000_000_000, who, text) for n, (who, text) in enumerate(lines)
    ]


def read(engine: RuleEngine, spoken: Sequence[Spoken]) -> State:
    state = engine.start(CONTEXT)
    for one in spoken:
        state = engine.step(state, one)
    return state


def standing(engine: RuleEngine, state: State, kind: str) -> list[DraftItem]:
    return [i for i in engine.items(state) if i.kind == kind and not i.withdrawn]
