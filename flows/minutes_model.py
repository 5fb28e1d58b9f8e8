"""Which engine finds items: rules with the minutes model, or rules alone where the model is off or cannot be used."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from models.minutes.appraisal import RELEASED as RELEASED_ITEMS
from models.minutes.appraisal import Appraisal, AppraisalUnusable
from models.minutes.session import RELEASED, MinutesModel, MinutesModelUnusable, SessionSettings
from operators.log import say
from operators.settings import Settings
from operators.understand import when, whose
from operators.understand.appraise import FIGURES
from operators.understand.cues import CUES
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine
from operators.understand.model_scorer import ModelScorer

NO_MODEL: Final = "The minutes model could not be used; rules alone found what stands in these minutes."


@dataclass(frozen=True, slots=True)
class Understanding:
    """An engine, the version of its model (None: rules alone), and what minutes have to say of it."""

    engine: RuleEngine
    model: str | None = None
    notices: tuple[str, ...] = ()


def understanding(settings: Settings) -> Understanding:
    """The engine that the settings ask for; a model that cannot be used is said, once and in the minutes."""
    if settings.model == "rules":
        return Understanding(RuleEngine())
    try:
        scorer, appraisal = load_model(settings)
    except (MinutesModelUnusable, AppraisalUnusable) as error:
        say(f"flows.minutes: {error}; minutes are written by rules")
        return Understanding(RuleEngine(), None, (NO_MODEL,))
    return Understanding(HybridEngine(scorer=scorer, appraisal=appraisal), scorer.name)


def load_model(settings: Settings, threads: SessionSettings | None = None) -> tuple[ModelScorer, Appraisal]:
    """The model of the settings, warm, and the weights that judge items by it; by default on one thread.

    A folder or file of one's own has its ``items.json`` beside the graph.

    Raises:
        MinutesModelUnusable, AppraisalUnusable: they cannot be used.
    """
    graph, items = RELEASED, RELEASED_ITEMS
    if settings.model != "released":
        given = Path(settings.model)
        graph = given / RELEASED.name if os.path.isdir(given) else given
        items = graph.with_name(RELEASED_ITEMS.name)
    model = MinutesModel(CUES, graph, threads or SessionSettings())
    appraisal = Appraisal.read(items)
    of_choices = (appraisal.owners, whose.FIGURES), (appraisal.dates, when.FIGURES)
    if appraisal.figures != FIGURES or any(one and one.figures != names for one, names in of_choices):
        raise AppraisalUnusable(f"{items}: was made for other figures than this version computes")
    if appraisal.model != model.name:
        raise AppraisalUnusable(f"{items}: was made for the model {appraisal.model}, not for {model.name}")
    if appraisal.graph != model.digest:
        raise AppraisalUnusable(
            f"{items}: was made for another file than {graph}, which is damaged or not the one"
        )
    model.warm_up()
    return ModelScorer(model), appraisal
