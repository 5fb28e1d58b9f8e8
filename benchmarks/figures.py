"""Pictures of measured figures: ``python -m benchmarks.figures REPORT.json … --out docs/figures``.

A report is the one JSON line of a benchmark. Known are ``speech`` (errors by kind of recording), ``loss`` (items
against lost packets), ``alignment`` (clock errors by setting) and ``latency`` of a pool (how many utterances were
there how soon). Each becomes an SVG file named after its benchmark.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 56, 56
_COLOURS: Final = ("#1f5fa8", "#c0392b", "#2e8b57", "#8e6bb0")
_INK: Final = "#333"


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: values of each series at each place, ``None`` where there is none.

    ``places`` are names (bars) or, where ``lines`` is true, numbers along the axis.
    """

    title: str
    across: str
    up: str
    places: tuple[str, ...]
    series: Mapping[str, tuple[float | None, ...]]
    lines: bool = False
    top: float | None = None


def of_speech(report: Mapping[str, Any]) -> Chart:
    """Word errors live and by faster-whisper on whole files, by kind of recording."""
    live, whole = report["wer"]["by_kind"], report["wer_whole_file"]["by_kind"]
    kinds = tuple(sorted(live, key=lambda k: float(live[k])))
    return Chart(
        "Word errors while it is said, and on the whole file", "kind of recording", "word error rate, %",
        tuple(k.replace("_", " ") for k in kinds),
        {
            "minuted, live": tuple(100 * float(live[k]) for k in kinds),
            "faster-whisper, whole file": tuple(100 * float(whole[k]) for k in kinds),
        },
    )  # fmt: skip


def of_loss(report: Mapping[str, Any]) -> Chart:
    """Items and words against the share of packets that were lost."""
    by_loss = report["by_loss"]
    shares = sorted(by_loss, key=float)
    return Chart(
        "What lost packets cost", "packets lost in bursts, %", "share", tuple(f"{100 * float(s):g}" for s in shares),
        {
            "item-F1": tuple(float(by_loss[s]["item_f1"]) for s in shares),
            "words heard": tuple(float(by_loss[s]["words_share"]) for s in shares),
        },
        lines=True, top=1.05,
    )  # fmt: skip


def of_alignment(report: Mapping[str, Any]) -> Chart:
    """The 99th percentile of clock errors between streams, by what was known of the clocks."""
    settings, pairs = ("calibrated", "flash", "blind"), ("sound_sound", "sound_video", "sound_slide")
    return Chart(
        "Clock error between streams: 99 of 100 are smaller", "what was known of the clocks", "ms", settings,
        {pair.replace("_", " – "): tuple(report[s].get(pair, {}).get("p99_ms") for s in settings) for pair in pairs},
    )  # fmt: skip


def of_latency(report: Mapping[str, Any]) -> Chart:
    """Share of utterances whose text stood on the log within a time after their last sample."""
    ranks = report["final_text_ms_ranks"]
    return Chart(
        "Text on the log after the last sample of an utterance", "share of utterances, %", "ms",
        tuple(ranks), {"minuted": tuple(float(ms) for ms in ranks.values())}, lines=True,
    )  # fmt: skip


CHARTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Chart]]] = {
    "speech": of_speech,
    "loss": of_loss,
    "alignment": of_alignment,
    "latency": of_latency,
}


def _ticks(top: float) -> list[float]:
    """About five round numbers from 0 to the top."""
    if top <= 0:
        return [0.0]
    step = next(s * 10.0**e for e in range(-6, 9) for s in (1, 2, 5) if s * 10.0**e * 5 >= top)
    return [step * n for n in range(int(top / step) + 1)]


def svg(chart: Chart) -> str:
    """The chart as an SVG document."""
    values = [v for row in chart.series.values() for v in row if v is not None]
    top = chart.top or 1.1 * max(values, default=1.0) or 1.0
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    slot = wide / max(1, len(chart.places))

    def at(place: float) -> float:
        return _LEFT + slot * (place + 0.5)

    def level(value: float) -> float:
        return _TOP + high * (1 - value / top)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(chart.title)}</text>',
        f'<text x="{_LEFT + wide / 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(chart.across)}</text>',
        f'<text transform="translate(16 {_TOP + high / 2}) rotate(-90)" text-anchor="middle">{escape(chart.up)}</text>',
    ]
    for tick in _ticks(top):
        y = level(tick)
        out.append(f'<path d="M{_LEFT} {y:.1f}h{wide}" stroke="#ddd"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for place, name in enumerate(chart.places):
        out.append(
            f'<text x="{at(place):.1f}" y="{_TOP + high + 18}" text-anchor="middle">{escape(name)}</text>'
        )
    for number, (name, row) in enumerate(chart.series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        out.append(f'<rect x="{_LEFT + 210 * number}" y="30" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{_LEFT + 210 * number + 15}" y="39">{escape(name)}</text>')
        out += (_line if chart.lines else _bars)(row, number, len(chart.series), colour, at, level, slot)
    return "\n".join([*out, "</svg>", ""])


Scale = Callable[[float], float]


def _line(
    row: Sequence[float | None], number: int, of: int, colour: str, at: Scale, level: Scale, slot: float
) -> list[str]:
    del number, of, slot
    known = [(at(i), level(v)) for i, v in enumerate(row) if v is not None]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in known]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _bars(
    row: Sequence[float | None], number: int, of: int, colour: str, at: Scale, level: Scale, slot: float
) -> list[str]:
    width = 0.7 * slot / of
    out = []
    for place, value in enumerate(row):
        if value is None:
            continue
        x, y = at(place) - 0.35 * slot + width * number, level(value)
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.92 * width:.1f}" height="{level(0) - y:.1f}" fill="{colour}"/>'
        )
        out.append(
            f'<text x="{x + 0.46 * width:.1f}" y="{y - 4:.1f}" text-anchor="middle" font-size="10">{value:.3g}</text>'
        )
    return out


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 for what is no report with a picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for path in given.reports:
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            chart = CHARTS[report["benchmark"]](report)
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"error: {path}: no report with a picture ({error})", file=sys.stderr)
            return 2
        target = given.out / f"{report['benchmark']}.svg"
        target.write_text(svg(chart), encoding="utf-8")
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
