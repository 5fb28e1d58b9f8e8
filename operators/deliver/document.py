"""The folded minutes: what is published, put together as documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from contracts.audit import AuditHead
from contracts.messages import Correction
from contracts.minutes import (
    ActionItem,
    Attendee,
    Evidence,
    Gap,
    Item,
    MinutesDocument,
    MinutesState,
    Review,
    Section,
    SlideShown,
    SummarySentence,
    UtteranceShown,
    Versions,
)
from operators.plain_text import plain
from operators.understand.types import Spoken
from operators.verify.types import Stretch, Verified, attendees_of, seconds, started_at

SECTIONS: Final[tuple[Section, ...]] = ("decisions", "action_items", "open_questions", "answered_questions")
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What the minutes say of the meeting itself, from the newest draft."""

    title: str | None = None
    start_ns: int | None = None
    tai_utc_offset_s: int = 37
    duration_s: float = 0.0
    attendees: tuple[Attendee, ...] = ()
    gaps: tuple[Gap, ...] = ()
    notices: tuple[str, ...] = ()


def setting_of(verified: Verified) -> Setting:
    draft = verified.draft
    return Setting(
        title=plain(draft.context.title)[:1000] if draft.context.title else None,
        start_ns=draft.start_ns,
        tai_utc_offset_s=draft.tai_utc_offset_s,
        duration_s=seconds(draft.duration_ns, 0),
        attendees=attendees_of(draft),
        gaps=tuple(
            Gap(
                start_s=seconds(g.start_ns, draft.zero_ns),
                end_s=seconds(g.end_ns, draft.zero_ns),
                what=g.text,
                stream=g.device,
            )
            for g in sorted(draft.gaps, key=lambda g: (g.start_ns, g.end_ns, g.text, g.device))
        ),
        notices=verified.notices,
    )


def corrected(item: ActionItem | Item, correction: Correction) -> ActionItem | Item:
    """The item as a person wants it; owner and due apply to action items alone."""
    changes: dict[str, object] = {"origin": "person", "verdict": "pass", "confidence": 1.0}
    if correction.action == "change":
        changes |= {"text": plain(correction.text)} if correction.text is not None else {}
        if isinstance(item, ActionItem):
            changes |= _assigned(correction)
    return item.model_copy(update=changes)


def _assigned(correction: Correction) -> dict[str, object]:
    """Owner and due date as a person sets or clears them; the words of a date that holds no longer go too."""
    changes: dict[str, object] = {"owner": plain(correction.owner)} if correction.owner is not None else {}
    changes |= {"due": correction.due} if correction.due is not None else {}
    changes |= {"owner": None} if "owner" in correction.clear else {}
    return changes | ({"due": None, "due_text": None} if "due" in correction.clear else {})


def added(correction: Correction, evidence: tuple[Evidence, ...]) -> ActionItem | Item:
    """The item that a person says was missed."""
    item = Item(
        id=correction.item_id, text=plain(correction.text or ""), confidence=1.0, origin="person", verdict="pass",
        evidence=evidence,
    )  # fmt: skip
    if correction.section != "action_items":
        return item
    fields = {name: getattr(item, name) for name in Item.model_fields}
    bare = ActionItem(**fields, owner=None, due=None, due_text=None)
    return bare.model_copy(update=_assigned(correction))


def item_sha256(item: ActionItem | Item) -> str:
    """What identifies an item as it reads now."""
    return hashlib.sha256(item.to_bytes()).hexdigest()


class Identity(TypedDict):
    """What identifies a state of the minutes."""

    meeting_id: str
    generation: int
    revision: int


def folded(
    setting: Setting,
    identity: Identity,
    items: Sequence[tuple[Section, ActionItem | Item]],
    summary: tuple[SummarySentence, ...],
    waiting: int,
    versions: Versions,
    audit: AuditHead | None = None,
) -> MinutesState:
    """The minutes without transcript and slides; items by the start of their first evidence, then by id."""
    sections: dict[Section, list[ActionItem | Item]] = {name: [] for name in SECTIONS}
    for section, item in items:
        sections[section].append(item)
    for found in sections.values():
        found.sort(key=lambda i: (i.evidence[0].start_s if i.evidence else 0.0, i.id))
    actions = tuple(i for i in sections["action_items"] if isinstance(i, ActionItem))
    return MinutesState(
        schema="minuted.minutes/1",
        **identity,
        title=setting.title,
        started=started_at(setting.start_ns, setting.tai_utc_offset_s),
        start_ns=setting.start_ns,
        duration_s=setting.duration_s,
        attendees=(*setting.attendees, *_outsiders(setting, actions)),
        summary=summary,
        decisions=tuple(sections["decisions"]),
        action_items=actions,
        open_questions=tuple(sections["open_questions"]),
        answered_questions=tuple(sections["answered_questions"]),
        gaps=setting.gaps,
        notices=setting.notices,
        review=Review(waiting=waiting),
        versions=versions,
        audit=audit,
    )


def _outsiders(setting: Setting, actions: Iterable[ActionItem]) -> list[Attendee]:
    """People outside the meeting to whom something fell."""
    known = {label for a in setting.attendees for label in (a.name, a.speaker) if label}
    owners = {i.owner for i in actions if i.owner and i.owner not in known}
    return [Attendee(name=name, speaker=None, external=True) for name in sorted(owners)]


def document_of(
    state: MinutesState, utterances: Iterable[Spoken], slides: Iterable[Stretch], zero_ns: int
) -> MinutesDocument:
    """``minutes.json``: the state with transcript and slides, both in order of time."""
    return MinutesDocument(
        schema="minuted.minutes/1",
        **{name: getattr(state, name) for name in MinutesState.model_fields if name != "schema_"},
        slides=tuple(
            SlideShown(start_s=seconds(s.start_ns, zero_ns), end_s=seconds(s.end_ns, zero_ns), text=s.text)
            for s in sorted(slides, key=lambda s: (s.start_ns, s.end_ns, s.text))
        ),
        utterances=tuple(
            UtteranceShown(
                id=u.id,
                start_s=seconds(u.start_ns, zero_ns),
                end_s=seconds(u.end_ns, zero_ns),
                speaker=u.speaker,
                text=u.text,
            )
            for u in sorted(utterances, key=lambda u: (u.start_ns, u.id))
        ),
    )
