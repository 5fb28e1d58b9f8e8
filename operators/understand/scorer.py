"""What the engine asks a minutes model, and what it remembers of the answers."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from models.minutes.inputs import Told, Window
from models.minutes.scores import UtteranceScores
from operators.understand.cues import Figures
from operators.understand.state import Judged, Memory, Named
from operators.understand.types import Spoken


class Scorer(Protocol):
    """A minutes model. Its answers depend on what it is given and on nothing else."""

    name: str
    """Version of the weights, for `versions`."""

    def told(self, spoken: Spoken, cues: Figures) -> Told:
        """What the network reads of one utterance."""

    def slices(self, spoken: Spoken) -> Iterator[None]:
        """Do beforehand, bit by bit, what ``told`` will need; changes no answer."""

    def scores(self, window: Window, digest: bytes) -> Sequence[UtteranceScores]:
        """Scores of all utterances of a window, oldest first. Equal digests mean equal windows."""


def heard_by(
    scorer: Scorer, memory: Memory, spoken: Spoken, cues: Figures
) -> tuple[Memory, Sequence[UtteranceScores]]:
    """The memory with one more utterance, and the scores of what is still in its window, oldest first."""
    told = scorer.told(spoken, cues)
    digest = hashlib.blake2b(memory.digest, digest_size=16)
    for part in (spoken.text.encode(), (spoken.speaker or "").encode(), struct.pack(f"{len(cues)}f", *cues)):
        digest.update(len(part).to_bytes(4, "big") + part)
    for sense in (told.sound, told.picture, told.slide):
        digest.update(repr(sense).encode())
    after = replace(memory, context=memory.context.heard(told), digest=digest.digest())
    return after, scorer.scores(after.context.window(), after.digest)


def judged(scores: UtteranceScores, named: tuple[Named, ...] = ()) -> Judged:
    """What is kept of the scores with an item, and the times that the utterance names."""
    return Judged(
        scores.action, scores.decision, scores.question, scores.answer, scores.summary, scores.withdrawn,
        scores.joins, scores.owner[:2], scores.due[1] if scores.due is not None else 0.0, named,
    )  # fmt: skip
