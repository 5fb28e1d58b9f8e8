"""The verifier model as the judge of the guard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from contracts.minutes import Section
from models.verifier.features import Case, Heard, Item, Kind
from models.verifier.session import RELEASED, VerifierModel
from operators.verify.judge import Claimed, Surroundings, Words

_KIND_OF: Final[Mapping[Section, Kind]] = {
    "decisions": "decision",
    "action_items": "action_item",
    "open_questions": "open_question",
}


class ModelJudge:
    """Asks the verifier model about decisions, actions and open questions; about others it has no opinion."""

    def __init__(self, path: Path = RELEASED) -> None:
        """Raises: models.verifier.session.VerifierUnusable: the weights cannot be used."""
        self._model = VerifierModel(path)
        self.name = self._model.name

    def probability(self, item: Claimed, evidence: tuple[Words, ...], context: Surroundings) -> float | None:
        """See `Judge`; speakers that nobody knows by name stay unknown."""
        kind = _KIND_OF.get(item.section)
        if kind is None or not evidence:
            return None
        return self._model.probability(
            Case(
                Item(kind, item.text, item.owner, item.due, item.due_text),
                _heard(evidence, "e"), _heard(context.before, "b"), _heard(context.after, "a"),
                context.attendees, (), context.date,
            )
        )  # fmt: skip


def _heard(words: tuple[Words, ...], where: str) -> tuple[Heard, ...]:
    return tuple(Heard(f"{where}{number}", w.speaker, w.text) for number, w in enumerate(words))
