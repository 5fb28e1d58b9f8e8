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
class Owners:
    """What tells who of those who may have a task has it; nobody where the likeliest is less likely than ``threshold``."""

    figures: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    threshold: float

    def probability(self, figures: Sequence[float]) -> float:
        """Probability that somebody with these figures has the task, as calibrated on held-out meetings."""
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
    owners: Owners | None = None
    """None where the words alone say whose a task is."""

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
            owners = None if told["owners"] is None else _owners(told["owners"])
            made = cls(figures, str(told["model"]), families, str(told["graph"]), owners)
        except OSError as error:
            raise AppraisalUnusable(f"{path}: cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AppraisalUnusable(f"{path}: holds no weights of items") from error
        numbers = [x for j in families.values() for x in (*j.weights, j.bias)]
        thresholds = [x for j in families.values() for x in (j.threshold, j.threshold_sparse)]
        sizes = {len(j.weights) for j in families.values()}
        if owners is not None:
            numbers += [*owners.weights, owners.bias]
            thresholds.append(owners.threshold)
        whole = owners is None or len(owners.weights) == len(owners.figures)
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
        owners = self.owners and {
            "threshold": round(self.owners.threshold, 5), "bias": round(self.owners.bias, 5),
            "figures": self.owners.figures, "weights": [round(w, 5) for w in self.owners.weights],
        }  # fmt: skip
        told = {
            "model": self.model, "graph": self.graph, "figures": self.figures, "families": families, "owners": owners,
        }  # fmt: skip
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _owners(part: Mapping[str, Any]) -> Owners:
    return Owners(
        tuple(map(str, part["figures"])),
        tuple(map(_number, part["weights"])),
        _number(part["bias"]),
        _number(part["threshold"]),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)
