"""What lost packets cost: items of a room's minutes against its truth, from no loss to a tenth of all packets.

``--room DIR`` (the sample meeting), ``--seconds`` of it, ``--repeats`` seeds for each share. Packets are lost in
bursts, besides jitter and duplicates. Prints one JSON line: item-F1, share of words heard, gaps, and what stands in
the minutes though it was never said, for each share of loss.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from contracts.timeline import UtteranceRecord
from devices.faults import DeliveryFault

from .faulty_room import MS, Played, capture, play
from .report import print_report, progress

SAMPLE: Final = Path(__file__).parents[1] / "devices" / "sample"
TRUTH: Final = "truth.json"
SHARES: Final = (0.0, 0.01, 0.02, 0.05, 0.1)
_SECTIONS: Final = ("decisions", "action_items", "open_questions", "answered_questions")
_JITTER: Final = DeliveryFault(jitter_ns=6 * MS, jitter_shape=1.2, most_ns=150 * MS, duplicates=0.01)
Span = tuple[float, float]


def _true_spans(truth: Mapping[str, Any], section: str, until_s: float) -> list[list[Span]]:
    """Evidence of each true item that was complete by then, as spans in seconds."""
    said = {u["id"]: (float(u["start_s"]), float(u["end_s"])) for u in truth["utterances"]}
    found = [[said[i] for i in item["evidence"]] for item in truth[section]]
    return [spans for spans in found if max(end for _, end in spans) < until_s]


def _meet(one: Sequence[Span], other: Sequence[Span]) -> bool:
    return any(a < d and c < b for a, b in one for c, d in other)


def item_f1(minutes: Mapping[str, Any], truth: Mapping[str, Any], until_s: float) -> float:
    """F1 over all sections: an item is right where its evidence meets that of a true one not yet taken."""
    right = found = wanted = 0
    for section in _SECTIONS:
        free = _true_spans(truth, section, until_s)
        wanted += len(free)
        for item in minutes[section]:
            found += 1
            spans = [(e["start_s"], e["end_s"]) for e in item["evidence"] if e["kind"] == "speech"]
            match = next((t for t in free if _meet(spans, t)), None)
            if match is not None:
                free.remove(match)
                right += 1
    return 2 * right / (found + wanted) if found + wanted else 1.0


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def _figures(played: Played, truth: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Item-F1, words, gaps and invented quotes of one run."""
    spoken = [r for r in played.log if isinstance(r, UtteranceRecord) and r.state == "closed"]
    heard = {word for u in spoken for word in _words(u.text)}
    true = sum(len(_words(u["text"])) for u in truth["utterances"] if float(u["end_s"]) < seconds)
    quotes = [e["quote"] for s in _SECTIONS for item in played.minutes[s] for e in item["evidence"]]
    speech = [q for q in quotes if q]
    return {
        "item_f1": item_f1(played.minutes, truth, seconds),
        "words_share": sum(len(_words(u.text)) for u in spoken) / max(1, true),
        "gaps": float(len(played.minutes["gaps"])),
        "quotes_not_heard": float(sum(not set(_words(q)) <= heard for q in speech)),
    }


def measure(room: Path, seconds: float, shares: Sequence[float], repeats: int, seed: int) -> dict[str, Any]:
    """Means over the seeds for each share of loss, on the first seconds of a room folder with its truth."""
    truth = json.loads((room / TRUTH).read_text(encoding="utf-8"))
    captured = capture(room, seconds)
    by_loss: dict[str, Any] = {}
    for share in shares:
        runs = []
        for repeat in range(repeats if share else 1):
            played = play(captured, {}, replace(_JITTER, loss=share), seed + 100 * repeat)
            runs.append(_figures(played, truth, seconds))
            progress(f"loss {share:.0%}, run {repeat + 1}: item-F1 {runs[-1]['item_f1']:.3f}")
        by_loss[f"{share:g}"] = {name: round(statistics.fmean(r[name] for r in runs), 4) for name in runs[0]}
    return {"room": room.name, "repeats": repeats, "by_loss": by_loss}


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 2 when the room is not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--room", type=Path, default=SAMPLE)
    parser.add_argument("--seconds", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if not (given.room / TRUTH).is_file():
        print(f"error: {given.room}: a room with {TRUTH} is needed", file=sys.stderr)
        return 2
    if given.seconds <= 0 or given.repeats < 1 or not all(0 <= s < 1 for s in given.shares):
        print("error: --seconds and --repeats are positive, --shares lie from 0 to below 1", file=sys.stderr)
        return 2
    figures = measure(given.room, given.seconds, given.shares, given.repeats, given.seed)
    print_report("loss", given.seed, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
