"""Minutes of an annotated meeting, made in memory by the engine that finds items: what scorers read."""

from collections.abc import Iterable
from typing import Any, Final

from operators.summary import summary
from operators.understand.engine import RuleEngine
from operators.understand.types import DraftItem, Spoken

from .scripts import Script, context_of, spoken_of

SETTLED: Final = 2
"""Utterances after which an item counts as settled."""

LISTS = {
    "decision": "decisions",
    "action_item": "action_items",
    "open_question": "open_questions",
    "answered_question": "answered_questions",
}


def _evidence(quotes: tuple[Any, ...], by_id: dict[str, Spoken]) -> list[dict[str, Any]]:
    out = []
    for quote in quotes:
        said = by_id[quote.utterance_id]
        length = max(1, len(said.text))
        span = said.end_ns - said.start_ns
        out.append(
            {
                "kind": "speech",
                "start_s": (said.start_ns + span * quote.first / length) / 1e9,
                "end_s": (said.start_ns + span * quote.last / length) / 1e9,
                "device": said.device,
                "speaker": said.speaker,
                "quote": said.text[quote.first : quote.last],
                "error_ms": said.error_ms,
                "sampling_ms": said.sampling_ms,
                "boundary_ms": said.boundary_ms,
            }
        )
    return out


def entry_of(item: DraftItem, by_id: dict[str, Spoken], origin: str) -> dict[str, Any]:
    """An item as it stands in minutes.json, with the reasons and whether it was taken back."""
    entry: dict[str, Any] = {
        "id": item.id,
        "text": item.text,
        "confidence": item.confidence,
        "origin": origin,
        "verdict": "pass",
        "evidence": _evidence(item.evidence, by_id),
        "reasons": list(item.reasons),
        "withdrawn": item.withdrawn,
    }
    if item.kind == "action_item":
        entry |= {"owner": item.owner, "due": item.due and item.due.isoformat(), "due_text": item.due_text}
    return entry


def minutes_of(script: Script, engine: RuleEngine | None = None, stage: str = "final") -> dict[str, Any]:
    """Minutes of one script: ``utterances``, ``attendees``, ``date`` and so on in, minutes.json shape out."""
    engine = engine or RuleEngine()
    spoken, context = spoken_of(script), context_of(script)
    state = engine.start(context)
    stood = Stood(0 if stage == "provisional" else SETTLED)
    for utterance in spoken:
        state = engine.step(state, utterance)
        if stage != "final":
            stood.see(engine.items(state))
    state = engine.finish(state)
    found = engine.items(state) if stage == "final" else stood.items()
    items = tuple(i for i in found if not i.withdrawn)
    by_id = {s.id: s for s in spoken}
    minutes: dict[str, Any] = {"schema": "minuted.minutes/1", "meeting_id": script["meeting"]}
    minutes["summary"] = [
        {"text": s.text, "evidence": _evidence(s.evidence, by_id)} for s in summary(state, context, items)
    ]
    for name in LISTS.values():
        minutes[name] = []
    for item in items:
        minutes[LISTS[item.kind]].append(entry_of(item, by_id, engine.origin))
    return minutes


class Stood:
    """Items as they stood so many utterances after they first did, where they still stood then."""

    def __init__(self, later: int) -> None:
        self._later = later
        self._first: dict[str, int] = {}
        self._kept: dict[str, DraftItem] = {}
        self._count = 0

    def see(self, items: Iterable[DraftItem]) -> None:
        for item in items:
            if (
                not item.withdrawn
                and self._count - self._first.setdefault(item.id, self._count) == self._later
            ):
                self._kept[item.id] = item
        self._count += 1

    def items(self) -> tuple[DraftItem, ...]:
        return tuple(self._kept.values())
