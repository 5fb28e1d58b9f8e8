"""How long after the end of speech text and items appear, measured from outside: by reading the topics.

``LatencyMeter`` only looks at messages and at when they were seen; it sits beside the flows, not in them.
Every latency counts from the stamp of the last speech sample of the true utterance it belongs to.
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
_NS_PER_S: Final = 1_000_000_000
_NEAR_NS: Final = 300_000_000
"""How far from its utterance a word may stand and still have been said in it."""
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

    def at(percent: int) -> float:
        # Rank ceil(percent / 100 * n), counted from one.
        return round(ordered[(percent * n + 99) // 100 - 1], 1) if n else 0.0

    return {"p50": at(50), "p95": at(95), "p99": at(99), "n": n}


@dataclass(slots=True)
class LatencySamples:
    """Single measurements of any number of meetings, in milliseconds."""

    first_partial: list[float] = field(default_factory=list)
    """First sign of an utterance; negative where it came while the person was still speaking."""
    first_shown: list[float] = field(default_factory=list)
    """The same from the utterance's first sample on."""
    final_text: list[float] = field(default_factory=list)
    item: list[float] = field(default_factory=list)
    item_final: list[float] = field(default_factory=list)
    item_after_text: list[float] = field(default_factory=list)
    hop: list[float] = field(default_factory=list)
    """From when a writer hands an utterance to the log until a reader has it."""
    provisional: int = 0
    """Items that first came from sound alone."""
    changed: int = 0
    """Those of them that were changed or withdrawn later."""
    lost: int = 0
    lost_ids: list[str] = field(default_factory=list)
    """Which, as meeting and utterance."""
    shed: int = 0
    """Utterances that fell into a stretch which the log says was left out; none of the other figures counts them."""
    words: int = 0
    """Shown words that somebody really said at that time."""
    words_right: int = 0
    """Those of them that the speaker shown really said."""

    def add(self, other: "LatencySamples") -> None:
        """Take in the measurements of another meeting."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def report(self) -> dict[str, Any]:
        """The figures; ``n`` of the texts is the number of utterances in the truth."""
        return {
            "first_partial_ms": percentiles(self.first_partial),
            "first_shown_after_start_ms": percentiles(self.first_shown),
            "final_text_ms": percentiles(self.final_text),
            "item_ms": percentiles(self.item),
            "item_final_ms": percentiles(self.item_final),
            "item_after_text_ms": percentiles(self.item_after_text),
            "hop_ms": percentiles(self.hop),
            "provisional_changed": round(self.changed / self.provisional, 3) if self.provisional else 0.0,
            "lost": self.lost,
            "lost_ids": list(self.lost_ids),
            "shed_utterances": self.shed,
            "words_right_speaker": round(self.words_right / self.words, 4) if self.words else 0.0,
        }


@dataclass(slots=True)
class _Shown:
    seen_ns: int
    device: str
    speaker: str | None
    start_ns: int
    end_ns: int
    text: str
    state: str


@dataclass(slots=True)
class _ItemEvent:
    seen_ns: int
    stage: str
    form: str
    """Section and item as they stand on the topic; empty where the item was withdrawn."""
    device: str | None = None
    """Of the speech that its evidence ends with, as are the times."""
    start_s: float = 0.0
    end_s: float = 0.0


@dataclass(slots=True)
class LatencyMeter:
    """Collects what the topics show of one meeting. All times are TAI nanoseconds."""

    meeting_id: str
    start_ns: int | None = None
    records: dict[str, list[_Shown]] = field(default_factory=dict)
    partials: dict[str, list[_Shown]] = field(default_factory=dict)
    items: dict[str, list[_ItemEvent]] = field(default_factory=dict)
    hop: list[float] = field(default_factory=list)
    final_seen_ns: int | None = None
    left_out: list[tuple[int, int]] = field(default_factory=list)
    """Stretches of sound that the log says were left out under load."""
    left_out_since: dict[str, int] = field(default_factory=dict)
    """Streams of sound that are left out still, and since when."""

    def feed(self, topic: str, value: bytes, seen_ns: int, sent_ns: int | None = None) -> None:
        """One message of a topic (name without prefix), when it was seen and when its writer sent it."""
        if value[:1] != b"{":
            return
        message = json.loads(value)
        if message.get("meeting_id") != self.meeting_id:
            return
        kind = message.get("type")
        if topic == TIMELINE.name and kind == "utterance":
            shown = _Shown(
                seen_ns, message["device"], message["speaker"], message["raw_start_ns"], message["raw_end_ns"],
                message["text"], message["state"],
            )  # fmt: skip
            self.records.setdefault(message["id"], []).append(shown)
            if sent_ns is not None:
                self.hop.append((seen_ns - sent_ns) / _NS_PER_MS)
        elif topic == TIMELINE.name and kind in ("gap", "stream") and message["stream"].endswith("/audio"):
            self._shed(message)
        elif topic == TIMELINE.name and kind == "control" and message["control"]["type"] == "meeting_started":
            self.start_ns = message["control"].get("start_ns") or self.start_ns
        elif topic == PARTIALS.name and kind == "partial":
            shown = _Shown(
                seen_ns, message["device"], message["speaker"], message["start_ns"], message["end_ns"],
                message["text"], "partial",
            )  # fmt: skip
            self.partials.setdefault(message["piece_id"], []).append(shown)
        elif topic == MINUTES.name:
            self._event(message, seen_ns)

    def _shed(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "gap" and message["what"] == "shed":
            self.left_out.append((message["raw_start_ns"], message["raw_end_ns"]))
        elif message["type"] == "stream" and message["state"] == "shed":
            self.left_out_since[message["stream"]] = message["raw_ns"]
        elif message["type"] == "stream":
            self.left_out_since.pop(message["stream"], None)

    def left_out_s(self, until_ns: int) -> float:
        """Seconds from the first to the last moment that was left out; what still is counts up to ``until_ns``."""
        spans = [*self.left_out, *((since, max(since, until_ns)) for since in self.left_out_since.values())]
        return (max(end for _, end in spans) - min(start for start, _ in spans)) / _NS_PER_S if spans else 0.0

    def _event(self, message: Mapping[str, Any], seen_ns: int) -> None:
        if message["type"] in ("item_added", "item_changed"):
            item = message["item"]
            event = _ItemEvent(
                seen_ns, message["stage"], json.dumps([message["section"], item], sort_keys=True)
            )
            speech = [e for e in item["evidence"] if e["kind"] == "speech"]
            if speech:
                last = max(speech, key=lambda e: (e["end_s"], e["start_s"]))
                event.device, event.start_s, event.end_s = last["device"], last["start_s"], last["end_s"]
            self.items.setdefault(item["id"], []).append(event)
        elif message["type"] == "item_withdrawn":
            gone = _ItemEvent(seen_ns, message["stage"], "")
            self.items.setdefault(message["item_id"], []).append(gone)
        elif message["type"] == "final":
            self.final_seen_ns = seen_ns

    def report(self, truth: Iterable[TrueUtterance]) -> dict[str, Any]:
        """The figures of this meeting."""
        return self.samples(truth).report()

    def samples(self, truth: Iterable[TrueUtterance]) -> LatencySamples:
        """The measurements of this meeting against what was really said."""
        true, start = list(truth), self.start_ns or 0
        final = {i: shown[-1] for i, shown in self.records.items() if shown[-1].state != "withdrawn"}
        out = LatencySamples(hop=list(self.hop))
        said_by: dict[str, int] = {}
        for utterance in true:
            begin_ns, end_ns = _span(utterance, start)
            match = _best(utterance, final, start)
            if match is None and self._was_left_out(begin_ns, end_ns):
                out.shed += 1
                continue
            if match is None:
                out.lost += 1
                out.lost_ids.append(f"{self.meeting_id}/{utterance.id}")
                out.final_text.append(UNMATCHED_MS)
                out.first_partial.append(UNMATCHED_MS)
                out.first_shown.append(UNMATCHED_MS)
                continue
            said_by[match] = max(end_ns, said_by.get(match, end_ns))
            out.final_text.append((self._text_seen(match, final[match].text) - end_ns) / _NS_PER_MS)
            shown_ns = self._first_shown(match, begin_ns)
            out.first_partial.append((shown_ns - end_ns) / _NS_PER_MS)
            out.first_shown.append((shown_ns - begin_ns) / _NS_PER_MS)
        self._items(out, final, said_by, start)
        for shown in final.values():
            right, counted = _right_words(shown, true, start)
            out.words_right += right
            out.words += counted
        return out

    def _was_left_out(self, begin_ns: int, end_ns: int) -> bool:
        return any(start < end_ns and begin_ns < end for start, end in self.left_out) or any(
            since < end_ns for since in self.left_out_since.values()
        )

    def _text_seen(self, identity: str, text: str) -> int:
        """When the text of an utterance first stood on the log as it stands in the end."""
        wanted = normalised(text)
        return min(s.seen_ns for s in self.records[identity] if normalised(s.text) == wanted)

    def _first_shown(self, identity: str, begin_ns: int) -> int:
        """When anything of this piece was first shown that reaches into the true utterance."""
        signs = [*self.records[identity], *self.partials.get(identity, ())]
        return min(
            (s.seen_ns for s in signs if s.end_ns > begin_ns), default=self.records[identity][0].seen_ns
        )

    def _items(
        self, out: LatencySamples, final: Mapping[str, _Shown], said_by: Mapping[str, int], start: int
    ) -> None:
        for events in self.items.values():
            provisional = events[0].stage == "provisional"
            out.provisional += provisional
            out.changed += provisional and any(e.form != events[0].form for e in events)
            if not events[-1].form:
                continue
            formed = next(e for e in events if e.form == events[-1].form)
            for values, event in ((out.item, events[0]), (out.item_final, formed)):
                piece = _piece_of(event, final, start)
                end_ns = start + round(event.end_s * _NS_PER_S)
                said_ns = end_ns if piece is None else said_by.get(piece, end_ns)
                values.append((event.seen_ns - said_ns) / _NS_PER_MS)
            piece = _piece_of(events[0], final, start)
            if piece is not None:
                text_ns = self._text_seen(piece, final[piece].text)
                out.item_after_text.append((events[0].seen_ns - text_ns) / _NS_PER_MS)


def _span(utterance: TrueUtterance, start: int) -> tuple[int, int]:
    return start + round(utterance.start_s * _NS_PER_S), start + round(utterance.end_s * _NS_PER_S)


def _best(utterance: TrueUtterance, final: Mapping[str, _Shown], start: int) -> str | None:
    """Id of the shown utterance that covers the end of a true one, by the same speaker where both are named."""
    begin_ns, end_ns = _span(utterance, start)
    # The last second counts: that is when the text of this utterance was complete.
    begin_ns = max(begin_ns, end_ns - _NS_PER_S)
    best: tuple[int, str] | None = None
    for identity, shown in final.items():
        named = shown.speaker is not None and utterance.speaker is not None
        if named and shown.speaker != utterance.speaker:
            continue
        overlap = min(end_ns, shown.end_ns) - max(begin_ns, shown.start_ns)
        if overlap > 0 and (best is None or overlap > best[0]):
            best = (overlap, identity)
    return None if best is None else best[1]


def _piece_of(event: _ItemEvent, final: Mapping[str, _Shown], start: int) -> str | None:
    """Id of the shown utterance in which an item's evidence ends."""
    if event.device is None:
        return None
    begin_ns = start + round(event.start_s * _NS_PER_S)
    end_ns = start + round(event.end_s * _NS_PER_S)
    overlaps = {
        identity: min(end_ns, shown.end_ns) - max(begin_ns, shown.start_ns)
        for identity, shown in final.items()
        if shown.device == event.device
    }
    best = max(overlaps, key=lambda identity: overlaps[identity], default=None)
    return best if best is not None and overlaps[best] > 0 else None


def _right_words(shown: _Shown, true: Sequence[TrueUtterance], start: int) -> tuple[int, int]:
    """Words of a shown utterance that its speaker said then, and those that anybody said then.

    Misheard words are nobody's and count neither way.
    """
    own: set[str] = set()
    others: set[str] = set()
    for utterance in true:
        begin_ns, end_ns = _span(utterance, start)
        if begin_ns - _NEAR_NS < shown.end_ns and shown.start_ns < end_ns + _NEAR_NS:
            said = own if utterance.speaker == shown.speaker else others
            said.update(_WORD.findall(utterance.text.lower()))
    words = _WORD.findall(shown.text.lower())
    right = sum(word in own for word in words)
    return right, right + sum(word in others and word not in own for word in words)


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
