"""Stages of the verifier's pipeline (`dvc.yaml`):

    python -m models.verifier.stages prepare --scripts DIR… --minutes DIR --split train --out FILE
    python -m models.verifier.stages train --examples FILE --out FILE
    python -m models.verifier.stages export --examples FILE --weights FILE --out verifier.onnx
    python -m models.verifier.stages evaluate --examples FILE --model verifier.onnx --out FILE

Corruptions are made in `prepare`, seeded; figures depend on nothing else, so that two runs give the same bytes.
"""

import argparse
import collections
import json
import pickle
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.verifier.corruptions import KINDS as CORRUPTIONS
from models.verifier.corruptions import UNSEEN, corrupted
from models.verifier.examples import Example, annotated_cases, examples_of, read_scripts
from models.verifier.export import export
from models.verifier.features import Case, features
from models.verifier.fit import FitSettings, Weights, calibrate, expected_calibration_error, fit, sigmoid
from models.verifier.session import VerifierModel

_WITHOUT_CONTEXT: Final = 0.5
"""Share of training cases whose surroundings are hidden: a provisional item has nothing after it yet."""


def prepare(scripts: Sequence[dict[str, Any]], minutes: Sequence[Path], seed: int) -> list[Example]:
    """Examples of these scripts: the product's items, the annotators' items, and corruptions of what holds.

    Raises:
        OSError: the product's minutes of a script are not there.
    """
    chance = random.Random(seed)
    out: list[Example] = []
    for script in scripts:
        name = script["meeting"]
        path = next((p for folder in minutes if (p := folder / name / "minutes.json").exists()), None)
        if path is None:
            raise FileNotFoundError(f"no minutes of {name}: python -m benchmarks.minutes makes them")
        told = examples_of(script, json.loads(path.read_text(encoding="utf-8")))
        research = not script["truth"].get("owners_known", True)
        holding = [e.case for e in told if e.holds]
        if not research:
            # The annotators' sentences are another style; research summaries are too far from what was said.
            told += [Example(case, True, name, "annotated") for case in annotated_cases(script)]
            holding += annotated_cases(script)
        out += told
        for case in holding:
            for kind in CORRUPTIONS:
                made = corrupted(case, kind, chance, holding)
                if made is not None:
                    out.append(Example(made, False, name, kind))
    return out


def rows_of(examples: Sequence[Example], seed: int, hide: float = 0.0) -> npt.NDArray[np.float32]:
    """Figures of examples; a share ``hide`` of them without what surrounds the evidence."""
    chance = random.Random(seed)
    rows = []
    for example in examples:
        case = example.case
        if chance.random() < hide and example.made not in ("taken_back", "neighbour_evidence"):
            case = replace(case, before=(), after=())
        rows.append(features(case))
    return np.stack(rows)


def weights_of(examples: Sequence[Example]) -> npt.NDArray[np.float64]:
    """Each kind of example counts alike as a whole, and what holds as much as what does not."""
    kinds = [("good",) if e.holds else ("bad", e.made) for e in examples]
    count = collections.Counter(kinds)
    bad = len([k for k in count if k[0] == "bad"])
    return np.array([(1.0 if k[0] == "good" else 1.0 / max(1, bad)) / count[k] for k in kinds]) * len(
        examples
    )


def train(
    examples: Sequence[Example], seed: int, settings: FitSettings, left_out: frozenset[str] = UNSEEN
) -> Weights:
    """Fit to all examples but the kinds of corruption that are left out."""
    used = [e for e in examples if e.made not in left_out]
    holds = np.array([e.holds for e in used])
    return fit(rows_of(used, seed, _WITHOUT_CONTEXT), holds, weights_of(used), settings)


def recalibrated(weights: Weights, examples: Sequence[Example], *, error_prior: float) -> Weights:
    """Calibrated on the product's own items: those that hold, and of those that do not the ones found and made."""
    own = [e for e in examples if e.made != "annotated" and e.made not in UNSEEN]
    return calibrate(weights, rows_of(own, 0), np.array([e.holds for e in own]), error_prior=error_prior)


def evaluate(
    examples: Sequence[Example], probability: npt.NDArray[np.float64], threshold: float, error_prior: float
) -> dict[str, Any]:
    """What passes at a threshold, by kind, and how true the probabilities are at the stated share of errors."""
    passed: dict[str, list[bool]] = collections.defaultdict(list)
    for example, p in zip(examples, probability, strict=True):
        kind = ("clean_" + (example.made or "items")) if example.holds else (example.made or "found")
        passed[kind].append(bool(p >= threshold))
    holds = np.array([e.holds for e in examples])
    share = np.where(holds, (1 - error_prior) / holds.sum(), error_prior / (~holds).sum())
    kinds = {k: {"n": len(v), "passed": round(float(np.mean(v)), 4)} for k, v in sorted(passed.items())}
    seen = [p for k in CORRUPTIONS if k not in UNSEEN for p in passed[k]]
    unseen = [p for k in UNSEEN for p in passed[k]]
    clean = [p for k in ("clean_items", "clean_annotated") for p in passed[k]]
    curve = [
        {
            "threshold": t,
            "escaped": round(float(np.mean(probability[~holds] >= t)), 4),
            "fallback": round(float(np.mean(probability[holds] < t)), 4),
        }
        for t in (0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999)
    ]
    reliability = []
    for low in np.arange(0.0, 1.0, 0.1):
        here = (probability >= low) & (probability < low + 0.1 + (low > 0.85))
        mass = share[here].sum()
        if mass > 0:
            told, true = (
                np.sum(share[here] * probability[here]) / mass,
                np.sum(share[here] * holds[here]) / mass,
            )
            reliability.append(
                {"told": round(float(told), 4), "held": round(float(true), 4), "share": round(float(mass), 4)}
            )
    return {
        "threshold": threshold, "error_prior": error_prior, "kinds": kinds,
        "escaped": {"seen": round(float(np.mean(seen)), 4), "unseen": round(float(np.mean(unseen)), 4)},
        "clean_items_fallback": round(1 - float(np.mean(clean)), 4),
        "own_items_fallback": round(1 - float(np.mean(passed["clean_items"])), 4),
        "auroc": round(_auroc(probability, holds), 4),
        "ece": round(expected_calibration_error(probability, holds, share), 4),
        "curve": curve, "reliability": reliability,
    }  # fmt: skip


def reliability_figure(told: dict[str, Any]) -> str:
    """The reliability table as an SVG: probability told against the share that held, areas by how many."""
    size, edge = 360, 46

    def at(x: float, y: float) -> tuple[float, float]:
        return edge + x * (size - 2 * edge), size - edge - y * (size - 2 * edge)

    def text(x: float, y: float, what: str, extra: str = "") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{what}</text>'

    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{x0} {y1}V{y0}H{x1}" fill="none" stroke="#333"/>',
        f'<path d="M{x0} {y0}L{x1} {y1}" stroke="#999" stroke-dasharray="4 4"/>',
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(tick, tick)
        parts.append(text(x, y0 + 16, f"{tick:g}", 'text-anchor="middle"'))
        parts.append(text(x0 - 6, y + 4, f"{tick:g}", 'text-anchor="end"'))
    for point in told["reliability"]:
        x, y = at(point["told"], point["held"])
        radius = 3 + 14 * point["share"] ** 0.5
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#2a6fb0" fill-opacity="0.55"/>'
        )
    parts.append(text(size / 2, size - 10, "probability told", 'text-anchor="middle"'))
    parts.append(
        text(14, size / 2, "share that held", f'text-anchor="middle" transform="rotate(-90 14 {size / 2})"')
    )
    return "\n".join([*parts, "</svg>", ""])


def _auroc(probability: npt.NDArray[np.float64], holds: npt.NDArray[np.bool_]) -> float:
    order = np.argsort(probability, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    good, bad = holds.sum(), (~holds).sum()
    return float((ranks[holds].sum() - good * (good + 1) / 2) / (good * bad))


def _read(path: Path) -> list[Example]:
    found: list[Example] = pickle.loads(path.read_bytes())
    return found


def main(arguments: list[str] | None = None) -> int:
    """Command line; each stage reads files and writes one."""
    parser = argparse.ArgumentParser(description="stages of the verifier's pipeline")
    stages = parser.add_subparsers(dest="stage", required=True)
    for name in ("prepare", "train", "export", "evaluate"):
        stage = stages.add_parser(name)
        stage.add_argument("--out", type=Path, required=True)
        stage.add_argument("--seed", type=int, default=0)
        if name == "prepare":
            stage.add_argument("--scripts", type=Path, nargs="+", required=True)
            stage.add_argument("--minutes", type=Path, nargs="+", required=True)
            stage.add_argument("--split", default="train")
            continue
        stage.add_argument("--examples", type=Path, required=True)
        stage.add_argument("--error-prior", type=float, default=0.073)
        stage.add_argument("--threshold", type=float, default=0.99)
        stage.add_argument("--prior-against", type=float, default=FitSettings().prior_against)
        stage.add_argument("--strength", type=float, default=FitSettings().strength)
        stage.add_argument("--weights", type=Path)
        stage.add_argument("--model", type=Path)
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.stage == "prepare":
        scripts = read_scripts(given.scripts, frozenset({given.split}))
        given.out.write_bytes(pickle.dumps(prepare(scripts, given.minutes, given.seed)))
        return 0
    examples = _read(given.examples)
    if given.stage == "train":
        settings = FitSettings(prior_against=given.prior_against, strength=given.strength)
        weights = recalibrated(train(examples, given.seed, settings), examples, error_prior=given.error_prior)
        given.out.write_text(
            json.dumps(
                {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(weights).items()}
            )
        )
    elif given.stage == "export":
        raw = json.loads(given.weights.read_text())
        figures, bias, slopes, knots = (np.array(raw[k]) for k in ("figures", "bias", "slopes", "knots"))
        weights = Weights(figures, bias, slopes, knots, raw["shift"])
        print(export(weights, given.out))
    else:
        model = VerifierModel(given.model)
        cases: list[Case] = [e.case for e in examples]
        told = evaluate(examples, np.array(model.probabilities(cases)), given.threshold, given.error_prior)
        given.out.write_text(json.dumps(told, indent=1) + "\n")
        given.out.with_suffix(".svg").write_text(reliability_figure(told), encoding="utf-8")
    return 0


__all__ = ["evaluate", "prepare", "recalibrated", "rows_of", "sigmoid", "train", "weights_of"]

if __name__ == "__main__":
    sys.exit(main())
