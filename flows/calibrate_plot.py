"""The picture of clocks: what stamps were off by over time, as stamped and as placed, with the bound.

Scale of the error: straight to a millisecond, then logarithmic, so that seconds and the bound fit one panel.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from contracts.timeline import TIMELINE_RECORD, ClockRecord, MarkRecord
from operators.timeline import clock_in_force, to_timeline_ns

from .calibrate import Outcome
from .files import is_features

_WIDTH: Final = 720
_PANEL: Final = 130
_LEFT: Final = 80
_RIGHT: Final = 18
_TOP: Final = 48
_GAP: Final = 34
_TICKS_MS: Final = (1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
_INK: Final = "#333"
_STAMPED: Final = "#c0392b"
_PLACED: Final = "#1f5fa8"
_BOUND: Final = "#1f5fa8"
_MOST_POINTS: Final = 600


@dataclass(frozen=True, slots=True)
class Point:
    """At a time in s: error as stamped and as placed, and the bound that was said; ms."""

    at_s: float
    stamped_ms: float
    placed_ms: float
    bound_ms: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One device."""

    device: str
    points: tuple[Point, ...]


def panels_of_outcome(outcome: Outcome, span_s: float) -> list[Panel]:
    """What a measured calibration takes off, over the length of its recording."""
    panels: list[Panel] = []
    for one in outcome.measured:
        bound = one.uncertainty_ns / 1e6
        ends = [(at_s, one.offset_ns / 1e6 + one.skew_ppb * at_s * 1e-6) for at_s in (0.0, span_s)]
        panels.append(Panel(one.device, tuple(Point(at_s, error, 0.0, bound) for at_s, error in ends)))
    return panels


def panels_of_log(lines: Iterable[bytes]) -> list[Panel]:
    """How a meeting's clocks were followed: errors against what the log knows in the end.

    Raises:
        ValueError: a line is no record.
    """
    clocks: dict[str, list[ClockRecord]] = {}
    seen: list[tuple[str, int, int]] = []
    for line in lines:
        if not line.strip() or is_features(line):
            continue
        record = TIMELINE_RECORD.validate_json(line)
        if isinstance(record, ClockRecord):
            clocks.setdefault(record.device, []).append(record)
        elif isinstance(record, MarkRecord):
            device = record.stream.rpartition("/")[0]
            if device in clocks:
                seen.append((device, record.raw_ns, len(clocks[device])))
    placed = [(d, raw, known, to_timeline_ns(_at(clocks[d], known, raw), raw)) for d, raw, known in seen]
    zero_ns = min((time_ns for *_, time_ns in placed), default=0)
    panels: list[Panel] = []
    for device, records in sorted(clocks.items()):
        own = [(raw, known, time_ns) for one, raw, known, time_ns in placed if one == device]
        own = sorted(own[:: max(1, len(own) // _MOST_POINTS)], key=lambda found: found[2])
        points: list[Point] = []
        for place, (raw, known, time_ns) in enumerate(own):
            # Where a record came between two looks, the second shows both what held before and what held after.
            for held in dict.fromkeys((own[max(0, place - 1)][1], known)):
                record = _at(records[:held], held, raw)
                points.append(
                    Point(
                        (time_ns - zero_ns) / 1e9, (to_timeline_ns(records[0], raw) - time_ns) / 1e6,
                        (to_timeline_ns(record, raw) - time_ns) / 1e6, record.uncertainty_ns / 1e6,
                    )
                )  # fmt: skip
        if points:
            panels.append(Panel(device, tuple(points)))
    return panels


def _at(records: Sequence[ClockRecord], known: int, raw_ns: int) -> ClockRecord:
    """What holds for a stamp that came when so many records were known: set back, a clock has the same stamp twice."""
    return clock_in_force(records, records[known - 1].number, raw_ns) or records[0]


def svg(panels: Sequence[Panel]) -> str:
    """The picture as SVG: time to the right in s, one panel a device."""
    length_s = max((p.points[-1].at_s for p in panels), default=1.0) or 1.0
    height = _TOP + len(panels) * (_PANEL + _GAP) + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *_legend(),
    ]
    for number, panel in enumerate(panels):
        out += _panel(panel, _TOP + number * (_PANEL + _GAP), length_s)
    step = next(
        s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10**9) if length_s / s <= 9
    )
    for tick in range(0, math.floor(length_s) + 1, step):
        x = _x(tick, length_s)
        out.append(f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle" fill="{_INK}">{tick} s</text>')
    return "\n".join([*out, "</svg>", ""])


def _legend() -> list[str]:
    parts = (("as stamped", _STAMPED, 0), ("as placed", _PLACED, 110), ("bound", "", 210))
    out: list[str] = []
    for name, colour, x in parts:
        at = _LEFT + x
        if colour:
            out.append(f'<path d="M{at} 13h20" stroke="{colour}" stroke-width="2"/>')
        else:
            out.append(f'<rect x="{at}" y="8" width="20" height="10" fill="{_BOUND}" fill-opacity="0.18"/>')
        out.append(f'<text x="{at + 26}" y="17" fill="{_INK}">{name}</text>')
    return out


def _panel(panel: Panel, top: int, length_s: float) -> list[str]:
    most = max(max(abs(p.stamped_ms), abs(p.placed_ms), p.bound_ms) for p in panel.points)
    reach = _scaled(next((t for t in _TICKS_MS if t >= most), most))

    def y(value_ms: float) -> float:
        return top + _PANEL / 2 * (1 - _scaled(value_ms) / reach)

    right = _WIDTH - _RIGHT
    out = [f'<text x="{_LEFT}" y="{top - 6}" font-weight="bold" fill="{_INK}">{escape(panel.device)}</text>']
    ticks = [t for t in _TICKS_MS if _scaled(t) <= reach * 1.001]
    shown = ticks[-1:] if len(ticks) < 2 else [ticks[-1], *ticks[-3:-1:2]] if len(ticks) > 3 else ticks
    for tick in sorted({0.0, *shown, *(-t for t in shown)}):
        out.append(f'<path d="M{_LEFT} {y(tick):.1f}H{right}" stroke="#ddd"/>')
        out.append(
            f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="{_INK}">{_amount(tick)}</text>'
        )
    points = panel.points
    upper = [f"{_x(p.at_s, length_s):.1f} {y(p.bound_ms):.1f}" for p in points]
    lower = [f"{_x(p.at_s, length_s):.1f} {y(-p.bound_ms):.1f}" for p in reversed(points)]
    out.append(f'<path d="M{"L".join([*upper, *lower])}Z" fill="{_BOUND}" fill-opacity="0.18"/>')
    for colour, values in (
        (_STAMPED, [p.stamped_ms for p in points]),
        (_PLACED, [p.placed_ms for p in points]),
    ):
        line = "L".join(f"{_x(p.at_s, length_s):.1f} {y(v):.1f}" for p, v in zip(points, values, strict=True))
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    out.append(f'<path d="M{_LEFT} {top}V{top + _PANEL}H{right}" fill="none" stroke="{_INK}"/>')
    return out


def _x(at_s: float, length_s: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * max(0.0, at_s) / length_s


def _scaled(value_ms: float) -> float:
    """Straight to 1 ms, then a decade a step."""
    size = abs(value_ms)
    return math.copysign(size if size <= 1.0 else 1.0 + math.log10(size), value_ms)


def _amount(value_ms: float) -> str:
    if value_ms == 0.0:
        return "0"
    sign = "+" if value_ms > 0 else "−"
    size = abs(value_ms)
    return f"{sign}{size / 1000:g} s" if size >= 1000 else f"{sign}{size:g} ms"
