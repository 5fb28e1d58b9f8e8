"""How long after the end of speech text and items appear, measured from outside: by reading the topics.

``LatencyMeter`` only looks at messages and at when they were seen; it sits beside the flows, not in them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.topics import MINUTES, PARTIALS, TIMELINE

UNMATCHED_MS: Final = 10_000.0
"""What an utterance counts whose final text never appeared on the log."""
_NS_PER_MS: Final = 1_000_000
_WORD: Final = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True, slots=True)
class TrueUtterance:
    """What was really said: times in seconds from the meeting's start, exact to the sample."""

    id: str
    speaker: str | None
    start_s: float
    end_s: float
    text: str
    backchannel: bool = False


def normalised(text: str) -> str:
    """Words in lower case, nothing else: what two texts must share to count as the same."""
    return " ".join(_WORD.findall(text.lower()))


def percentiles(values: Sequence[float]) -> dict[str, float | int]:
    """``p50``, ``p95``, ``p99`` by the nearest-rank method and ``n``; zeros where there is nothing."""
    ordered = sorted(values)
    n = len(ordered)

    def at(share: float) -> float:
        return round(ordered[min(n - 1, max(0, -(-int(share * 1000) * n // 1000) - 1))], 1) if n else 0.0

    return {"p50": at(0.50), "p95": at(0.95), "p99": at(0.99), "n": n}


@dataclass(slots=True)
class _Shown:
    seen_ns: int
    speaker: str | None
    start_ns: int
    end_ns: int
    text: str
    state: str


@dataclass(slots=True)
class _ItemEvent:
    seen_ns: int
    evidence_end_s: float
    value: str
    stage: str


@dataclass(slots=True)
class LatencyMeter:
    """Collects what the topics show of one meeting. All times are TAI nanoseconds."""

    meeting_id: str
    start_ns: int | None = None
    records: dict[str, list[_Shown]] = field(default_factory=dict)
    partials: list[_Shown] = field(default_factory=list)
    items: dict[str, list[_ItemEvent]] = field(default_factory=dict)
    final_seen_ns: int | None = None

    def feed(self, topic: str, value: bytes, seen_ns: int) -> None:
        """One message of a topic (name without prefix), and when it was seen."""
        if value[:1] != b"{":
            return
        message = json.loads(value)
        if message.get("meeting_id") != self.meeting_id:
            return
        kind = message.get("type")
        if topic == TIMELINE.name and kind == "utterance":
            self._utterance(message, seen_ns)
        elif topic == TIMELINE.name and kind == "control" and message["control"]["type"] == "meeting_started":
            self.start_ns = message["control"].get("start_ns") or self.start_ns
        elif topic == PARTIALS.name and kind == "partial":
            self.partials.append(
                _Shown(
                    seen_ns,
                    message["speaker"],
                    message["start_ns"],
                    message["end_ns"],
                    message["text"],
                    "partial",
                )
            )
        elif topic == MINUTES.name:
            self._event(message, seen_ns)

    def _utterance(self, message: Mapping[str, Any], seen_ns: int) -> None:
        shown = _Shown(
            seen_ns,
            message["speaker"],
            message["raw_start_ns"],
            message["raw_end_ns"],
            message["text"],
            message["state"],
        )
        self.records.setdefault(message["id"], []).append(shown)

    def _event(self, message: Mapping[str, Any], seen_ns: int) -> None:
        if message["type"] in ("item_added", "item_changed"):
            item = message["item"]
            end_s = max((e["end_s"] for e in item["evidence"] if e["kind"] == "speech"), default=0.0)
            form = json.dumps([message["section"], item], sort_keys=True)
            self.items.setdefault(item["id"], []).append(_ItemEvent(seen_ns, end_s, form, message["stage"]))
        elif message["type"] == "item_withdrawn":
            self.items.pop(message["item_id"], None)
        elif message["type"] == "final":
            self.final_seen_ns = seen_ns

    def report(self, truth: Iterable[TrueUtterance]) -> dict[str, Any]:
        """The figures. ``n`` of the texts is the number of utterances in the truth."""
        true = list(truth)
        start = self.start_ns or 0
        final = {i: shown[-1] for i, shown in self.records.items() if shown[-1].state != "withdrawn"}
        first_ms, final_ms, lost, text_seen = [], [], 0, dict[str, int]()
        for utterance in true:
            end_ns = start + round(utterance.end_s * 1e9)
            match = self._best(utterance, final, start)
            if match is None:
                lost += 1
                final_ms.append(UNMATCHED_MS)
                continue
            seen = self._first_seen(match, final[match].text)
            text_seen[match] = seen
            final_ms.append((seen - end_ns) / _NS_PER_MS)
            first_ms.append(self._first_shown(utterance, match, start))
        ends = {match: u.end_s for u in true if (match := self._best(u, final, start)) is not None}
        item_ms, item_final_ms, after_text_ms = self._item_times(final, text_seen, ends, start)
        changed = [i for i in self.items.values() if any(e.stage == "provisional" for e in i) and len(i) > 1]
        return {
            "first_partial_ms": percentiles(first_ms),
            "final_text_ms": percentiles(final_ms),
            "item_ms": percentiles(item_ms),
            "item_final_form_ms": percentiles(item_final_ms),
            "item_after_text_ms": percentiles(after_text_ms),
            "provisional_changed": round(len(changed) / len(self.items), 3) if self.items else 0.0,
            "lost": lost,
            "words_right_speaker": self._right_speaker(true, final, start),
        }

    def _best(self, utterance: TrueUtterance, final: Mapping[str, _Shown], start: int) -> str | None:
        """Id of the shown utterance that covers the end of a true one, by the same speaker where one is named."""
        begin, end = start + round(utterance.start_s * 1e9), start + round(utterance.end_s * 1e9)
        best: tuple[int, str] | None = None
        for identity, shown in final.items():
            if (
                shown.speaker is not None
                and utterance.speaker is not None
                and shown.speaker != utterance.speaker
            ):
                continue
            # The last second counts: that is when the text of this utterance was complete.
            overlap = min(end, shown.end_ns) - max(begin, end - 1_000_000_000, shown.start_ns)
            if overlap > 0 and (best is None or overlap > best[0]):
                best = (overlap, identity)
        return None if best is None else best[1]

    def _first_seen(self, identity: str, text: str) -> int:
        wanted = normalised(text)
        return min(s.seen_ns for s in self.records[identity] if normalised(s.text) == wanted)

    def _first_shown(self, utterance: TrueUtterance, identity: str, start: int) -> float:
        """From the start of speech to the first sign of it, partial or not."""
        begin, end = start + round(utterance.start_s * 1e9), start + round(utterance.end_s * 1e9)
        seen = [self.records[identity][0].seen_ns]
        seen += [
            p.seen_ns
            for p in self.partials
            if p.speaker == utterance.speaker and p.start_ns < end and p.end_ns > begin
        ]
        return (min(seen) - begin) / _NS_PER_MS

    def _item_times(
        self, final: Mapping[str, _Shown], text_seen: Mapping[str, int], ends: Mapping[str, float], start: int
    ) -> tuple[list[float], list[float], list[float]]:
        first: list[float] = []
        formed: list[float] = []
        after_text: list[float] = []
        for events in self.items.values():
            last_form = next(e for e in events if e.value == events[-1].value)
            for out, event in ((first, events[0]), (formed, last_form)):
                said_by = self._said_by(event.evidence_end_s, final, ends, start)
                out.append((event.seen_ns - said_by) / _NS_PER_MS)
            heard = [
                i for i, s in final.items() if abs((s.end_ns - start) / 1e9 - events[0].evidence_end_s) < 0.05
            ]
            after_text += [(events[0].seen_ns - text_seen[i]) / _NS_PER_MS for i in heard if i in text_seen]
        return first, formed, after_text

    @staticmethod
    def _said_by(
        evidence_end_s: float, final: Mapping[str, _Shown], ends: Mapping[str, float], start: int
    ) -> int:
        """True end of the utterance on which the evidence ends; the evidence's own end where there is none."""
        for identity, shown in final.items():
            if identity in ends and abs((shown.end_ns - start) / 1e9 - evidence_end_s) < 0.05:
                return start + round(ends[identity] * 1e9)
        return start + round(evidence_end_s * 1e9)

    def _right_speaker(self, true: Sequence[TrueUtterance], final: Mapping[str, _Shown], start: int) -> float:
        """Share of shown words whose speaker is the one who spoke most of that time."""
        right = total = 0
        for shown in final.values():
            count = len(normalised(shown.text).split())
            shares: dict[str | None, int] = {}
            for u in true:
                overlap = min(start + round(u.end_s * 1e9), shown.end_ns) - max(
                    start + round(u.start_s * 1e9), shown.start_ns
                )
                if overlap > 0:
                    same = len(set(normalised(u.text).split()) & set(normalised(shown.text).split()))
                    shares[u.speaker] = shares.get(u.speaker, 0) + same
            total += count
            if shares and max(shares, key=lambda s: shares[s]) == shown.speaker:
                right += count
        return round(right / total, 4) if total else 0.0


def truth_of(raw: Mapping[str, Any]) -> list[TrueUtterance]:
    """Utterances of a room's ``truth.json``."""
    return [
        TrueUtterance(
            u["id"], u.get("speaker"), u["start_s"], u["end_s"], u["text"], bool(u.get("backchannel", False))
        )
        for u in raw["utterances"]
    ]


def latency_lines(report: Mapping[str, Any]) -> list[str]:
    """Two lines for people."""
    text, item = report["final_text_ms"], report["item_ms"]
    return [
        f"Text stood on the log {text['p50']:.0f} ms (p50), {text['p95']:.0f} ms (p95) after the last sample of an utterance "
        f"({text['n']} utterances, {report['lost']} lost).",
        f"Decisions, actions and questions followed {item['p50']:.0f} ms (p50), {item['p95']:.0f} ms (p95) after the last sample "
        f"of what they rest on ({item['n']} items).",
    ]
