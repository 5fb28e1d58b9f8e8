"""How sure an item is, and whose a task is: logistic models over its figures, fitted on held-out scores of the network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

RELEASED: Final = Path(__file__).with_name("items.json")
FAMILIES: Final = ("action", "decision", "question")
_LARGEST: Final = 1000.0


class AppraisalUnusable(Exception):
    """The weights cannot be used; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Weights of one family of items, and the probabilities from which one is published, in dense and in sparse talk."""

    weights: tuple[float, ...]
    bias: float
    threshold: float
    threshold_sparse: float

    def probability(self, figures: Sequence[float]) -> float:
        """Probability that an item with these figures is one, as calibrated on held-out meetings."""
        return _probability(self.weights, self.bias, figures)


@dataclass(frozen=True, slots=True)
class Choice:
    """What tells which of several owners, or days, a task has; none where the likeliest is less likely than ``threshold``."""

    figures: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    threshold: float

    def probability(self, figures: Sequence[float]) -> float:
        """Probability that one with these figures is the right one, as calibrated on held-out meetings."""
        return _probability(self.weights, self.bias, figures)


def _probability(weights: Sequence[float], bias: float, figures: Sequence[float]) -> float:
    total = bias + sum(w * f for w, f in zip(weights, figures, strict=True))
    return float(1.0 / (1.0 + np.exp(-min(30.0, max(-30.0, total)))))


@dataclass(frozen=True)
class Appraisal:
    """Weights of all families, the figures and the network that they were fitted for."""

    figures: tuple[str, ...]
    model: str
    families: Mapping[str, Judgement]
    graph: str = ""
    """SHA-256 of the network's file: weights that a disk or a hand has changed would go by the same name."""
    owners: Choice | None = None
    """None where the words alone say whose a task is."""
    dates: Choice | None = None
    """None where the words alone say when a task is due."""

    @classmethod
    def read(cls, path: Path = RELEASED) -> "Appraisal":
        """Raises: AppraisalUnusable: missing, broken or incomplete."""
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            figures = tuple(map(str, told["figures"]))
            families = {
                name: Judgement(
                    tuple(map(_number, part["weights"])),
                    _number(part["bias"]),
                    _number(part["threshold"]),
                    _number(part["threshold_sparse"]),
                )
                for name, part in told["families"].items()
            }
            choices = [None if told[name] is None else _choice(told[name]) for name in ("owners", "dates")]
            made = cls(figures, str(told["model"]), families, str(told["graph"]), *choices)
        except OSError as error:
            raise AppraisalUnusable(f"{path}: cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AppraisalUnusable(f"{path}: holds no weights of items") from error
        numbers = [x for j in families.values() for x in (*j.weights, j.bias)]
        thresholds = [x for j in families.values() for x in (j.threshold, j.threshold_sparse)]
        sizes = {len(j.weights) for j in families.values()}
        given = [choice for choice in choices if choice is not None]
        numbers += [x for choice in given for x in (*choice.weights, choice.bias)]
        thresholds += [choice.threshold for choice in given]
        whole = all(len(choice.weights) == len(choice.figures) for choice in given)
        if (
            set(families) != set(FAMILIES)
            or sizes != {len(figures)}
            or not whole
            or not np.isfinite(numbers).all()
        ):
            raise AppraisalUnusable(f"{path}: holds weights of other figures than it names")
        if max(map(abs, numbers)) > _LARGEST or not all(0 < x < 1 for x in thresholds):
            raise AppraisalUnusable(f"{path}: holds weights or thresholds beyond all reason")
        return made

    def write(self, path: Path) -> None:
        """As `read` takes it."""
        families = {
            name: {
                "threshold": round(j.threshold, 5), "threshold_sparse": round(j.threshold_sparse, 5), "bias": round(j.bias, 5),
                "weights": [round(w, 5) for w in j.weights],
            }
            for name, j in self.families.items()
        }  # fmt: skip
        told = {
            "model": self.model, "graph": self.graph, "figures": self.figures, "families": families,
            "owners": _told(self.owners), "dates": _told(self.dates),
        }  # fmt: skip
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _choice(part: Mapping[str, Any]) -> Choice:
    return Choice(
        tuple(map(str, part["figures"])),
        tuple(map(_number, part["weights"])),
        _number(part["bias"]),
        _number(part["threshold"]),
    )


def _told(choice: Choice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    return {
        "threshold": round(choice.threshold, 5), "bias": round(choice.bias, 5), "figures": choice.figures,
        "weights": [round(w, 5) for w in choice.weights],
    }  # fmt: skip


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)
