"""What the network says of an utterance."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from models.minutes.inputs import WINDOW, Window

HEADS: Final = ("action", "decision", "question", "answer", "summary", "withdrawn", "problem", "abstract")
"""Columns of the graph's output ``heads``. The last two only help training: research corpora annotate them."""

NOBODY: Final = ""
"""Owner label: everybody, or nobody at all."""

ELSEWHERE: Final = "*"
"""Owner label: somebody who says nothing in the window."""

Logits = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class UtteranceScores:
    """Calibrated probabilities of one utterance.

    ``question`` is that of a question which stays open as far as the window goes; ``withdrawn`` that of taking back
    what was proposed or promised; ``joins`` that of belonging to an item spoken of before, ``joins_to`` says to which
    utterances: (steps back, probability), the likeliest first. ``owner`` holds (speaker label, ``NOBODY`` or
    ``ELSEWHERE``; probability), the likeliest first; it means something where ``action`` does. ``due`` is (index
    of the piece of text, probability) where a piece states until when, or None where the utterance has no words.
    """

    action: float = 0.0
    decision: float = 0.0
    question: float = 0.0
    answer: float = 0.0
    summary: float = 0.0
    withdrawn: float = 0.0
    joins: float = 0.0
    joins_to: tuple[tuple[int, float], ...] = ()
    owner: tuple[tuple[str, float], ...] = ()
    due: tuple[int, float] | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """From logits to probabilities: ``sigmoid(slope * logit + shift)`` for each head."""

    slope: tuple[float, ...] = (1.0,) * len(HEADS)
    shift: tuple[float, ...] = (0.0,) * len(HEADS)

    def told(self) -> str:
        """As text, for the graph's metadata."""
        return json.dumps({"slope": self.slope, "shift": self.shift})

    @classmethod
    def read(cls, told: str) -> "Calibration":
        """The reverse of :meth:`told`.

        Raises:
            ValueError, KeyError: text of another form.
        """
        found = json.loads(told)
        made = cls(tuple(map(float, found["slope"])), tuple(map(float, found["shift"])))
        if len(made.slope) != len(HEADS) or len(made.shift) != len(HEADS):
            raise ValueError(f"calibration is not of {len(HEADS)} heads")
        return made


@dataclass(frozen=True, slots=True)
class Mixture:
    """What share of a head's logit the network's has, that of the words (:mod:`models.minutes.linear`) and that of
    the reader (:mod:`models.minutes.reading`)."""

    network: tuple[float, ...] = (1.0,) * len(HEADS)
    words: tuple[float, ...] = (0.0,) * len(HEADS)
    reader: tuple[float, ...] = (0.0,) * len(HEADS)

    def told(self) -> str:
        """As text."""
        return json.dumps({"network": self.network, "words": self.words, "reader": self.reader})

    @classmethod
    def read(cls, told: str) -> "Mixture":
        """The reverse of :meth:`told`.

        Raises:
            ValueError, KeyError: text of another form.
        """
        found = json.loads(told)
        made = cls(*(tuple(map(float, found[name])) for name in ("network", "words", "reader")))
        if {len(made.network), len(made.words), len(made.reader)} != {len(HEADS)}:
            raise ValueError(f"mixture is not of {len(HEADS)} heads")
        return made


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the graph returns for a batch: a row for each utterance; ``due`` one more for each piece of an utterance
    that has several, after those of all utterances."""

    heads: Logits
    owner: Logits
    joins: Logits
    due: Logits


def scores_of(
    outputs: Outputs, windows: Sequence[Window], calibration: Calibration
) -> list[list[UtteranceScores]]:
    """Scores of all utterances of each window, oldest first."""
    told: list[list[UtteranceScores]] = []
    row, piece = 0, len(outputs.heads)
    for window in windows:
        mine = []
        for place, said in enumerate(window.utterances):
            due, piece = due_of(outputs, row, piece, len(said.text))
            line = Outputs(outputs.heads[row], outputs.owner[row], outputs.joins[row], due)
            mine.append(scores_of_line(line, window, place, calibration))
            row += 1
        told.append(mine)
    return told


def due_of(outputs: Outputs, row: int, piece: int, pieces: int) -> tuple[Logits, int]:
    """Logits of an utterance's pieces, and where those of the next utterance with several begin."""
    if pieces == 1:
        return outputs.due[row : row + 1], piece
    return outputs.due[piece : piece + pieces], piece + pieces


def scores_of_line(outputs: Outputs, window: Window, place: int, calibration: Calibration) -> UtteranceScores:
    """Scores of the utterance at a place of a window, counted from the oldest; ``outputs`` are its rows alone."""
    slope, shift, due = np.array(calibration.slope), np.array(calibration.shift), outputs.due
    heads: Mapping[str, float] = dict(
        zip(HEADS, sigmoid(slope * outputs.heads + shift).tolist(), strict=True)
    )
    joins = softmax(outputs.joins)
    # Columns of both pointers are places from the newest utterance on; the last ones stand for nothing in the window.
    newest = len(window.utterances) - 1
    back = {newest - at - place: float(joins[at]) for at in range(WINDOW) if newest - at < place}
    best = int(due.argmax()) if len(due) else None
    return UtteranceScores(
        **{name: heads[name] for name in HEADS[:6]},
        joins=float(1.0 - joins[WINDOW]),
        joins_to=tuple(
            sorted(((-step, p) for step, p in back.items() if p > 0.05), key=lambda x: (-x[1], x[0]))
        ),
        owner=_owners(softmax(outputs.owner), window),
        due=None if best is None else (best, float(sigmoid(due[best]))),
    )


def _owners(pointer: npt.NDArray[np.float64], window: Window) -> tuple[tuple[str, float], ...]:
    found = {NOBODY: float(pointer[WINDOW]), ELSEWHERE: float(pointer[WINDOW + 1])}
    newest = len(window.utterances) - 1
    for at in range(min(WINDOW, newest + 1)):
        speaker = window.utterances[newest - at].speaker
        found[speaker] = found.get(speaker, 0.0) + float(pointer[at])
    return tuple(sorted(((who, p) for who, p in found.items() if p > 0.02), key=lambda x: (-x[1], x[0])))


def sigmoid(x: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Logistic function, in float64."""
    found: npt.NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(x.astype(np.float64), -60.0, 60.0)))
    return found


def softmax(x: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Probabilities of a row of scores."""
    raised = np.exp(x.astype(np.float64) - x.max())
    found: npt.NDArray[np.float64] = raised / raised.sum()
    return found
