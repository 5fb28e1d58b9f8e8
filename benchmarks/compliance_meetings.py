"""Annotated meetings through the steps of flows.minutes: what the guard does to right and to corrupted items."""

import collections
import datetime as dt
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contracts.messages import AttendeeInfo, MeetingStarted
from contracts.packet import Modality
from contracts.timeline import TIMELINE_RECORD
from devices.inputs import Room
from devices.streams import Stream, TextPiece
from devices.transcripts import TranscriptSource
from flows.files import log_values, perceive_room
from models.speech_recogniser import SpeechRecogniser
from models.verifier.corruptions import KINDS, UNSEEN, corrupted
from models.verifier.examples import SECTIONS, annotated_cases
from models.verifier.features import Case, Heard
from models.voice_activity import VoiceActivity
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.draft import Drafting
from operators.perceive.step import MediaWorkers
from operators.perceive.types import PerceiveSettings
from operators.understand.engine import RuleEngine
from operators.understand.types import Attendee, DraftItem, MeetingContext, Quote, Spoken
from operators.verify.check import Verifier
from operators.verify.types import Draft, VerifiedItem

from .compliance_holding import GuardedMeeting, Tally

_START_NS: Final = 1_800_000_000_000_000_000
_S: Final = 10**9


def drafts_of(script: Mapping[str, Any]) -> Iterator[Draft]:
    """Every draft that a meeting brings about, through log, alignment and rules as in the flow."""
    align, drafting = Align(AlignSettings()), Drafting(RuleEngine())
    workers = MediaWorkers(_no_recogniser)
    try:
        for message in perceive_room(_room(script), PerceiveSettings(), workers, VoiceActivity()):
            for value in log_values([message]):
                for change in align.read(TIMELINE_RECORD.validate_json(value)):
                    for drafted in drafting.on_batch([change]):
                        if isinstance(drafted, Draft):
                            yield drafted
    finally:
        workers.close()


def _no_recogniser() -> SpeechRecogniser:
    raise RuntimeError("a transcript needs no recogniser")


def _room(script: Mapping[str, Any]) -> Room:
    pieces = tuple(
        TextPiece(
            round(u["start_s"] * _S), max(1, round((u["end_s"] - u["start_s"]) * _S)), u["speaker"], u["text"]
        )
        for u in sorted(script["utterances"], key=lambda u: (u["start_s"], u["id"]))
    )
    meeting = script["meeting"]
    day = script.get("date")
    started = MeetingStarted(
        meeting_id=meeting, start_ns=_START_NS, title=script.get("title"),
        date=dt.date.fromisoformat(day) if day else None,
        attendees=tuple(
            AttendeeInfo(name=a["name"], speaker=a.get("speaker"), role=a.get("role"))
            for a in script.get("attendees", ())
        ),
        agenda=tuple(script.get("agenda", ())), key_topics=tuple(script.get("key_topics", ())),
        speech_source="transcript", streams=("captions/transcript",),
    )  # fmt: skip
    source = TranscriptSource(pieces)
    stream = Stream(
        meeting, "captions", Modality.TRANSCRIPT, source, Path("transcript"), _START_NS, source.duration_ns
    )
    return Room(meeting, (started,), (stream,), _START_NS, True)


@dataclass(slots=True)
class Fates:
    """What became of gold items, of items in general, and of corrupted ones."""

    gold: collections.Counter[str] = field(default_factory=collections.Counter)
    before: collections.Counter[str] = field(default_factory=collections.Counter)
    after: collections.Counter[str] = field(default_factory=collections.Counter)
    corruptions: dict[str, collections.Counter[str]] = field(default_factory=dict)
    clean: collections.Counter[str] = field(default_factory=collections.Counter)

    def add(self, other: "Fates") -> None:
        """Take in the counts of another."""
        for name in ("gold", "before", "after", "clean"):
            getattr(self, name).update(getattr(other, name))
        for kind, counts in other.corruptions.items():
            self.corruptions.setdefault(kind, collections.Counter()).update(counts)


def replay(script: Mapping[str, Any], verifier: Verifier, rules: Any, tally: Tally) -> Fates:
    """A meeting with truth through guard and ledger: counts for the tally, fates of its items."""
    meeting = GuardedMeeting(script["meeting"], rules, verifier, tally)
    last = None
    for draft in drafts_of(script):
        last = draft, meeting.feed(draft)
    fates = Fates()
    if last is None:
        return fates
    tally.hours += last[0].duration_ns / 3600e9
    draft, verified = last
    proposed = {item.id: item for item in draft.items if not item.withdrawn}
    judged = {item.item_id: item for item in verified.items}
    for section in SECTIONS:
        gold = script["truth"][section]
        kind = SECTIONS[section]
        before = [i for i in proposed.values() if i.kind == kind]
        after = [i for i in before if judged[i.id].verdict not in ("withheld", "withdrawn")]
        for counts, items in ((fates.before, before), (fates.after, after)):
            pairs = _matched(items, gold)
            counts.update(hit=len(pairs), predicted=len(items), gold=len(gold))
            if items is before:
                for item, _ in pairs:
                    fates.gold[_fate(judged[item.id])] += 1
    return fates


def _matched(
    items: Sequence[DraftItem], gold: Sequence[Mapping[str, Any]]
) -> list[tuple[DraftItem, Mapping[str, Any]]]:
    """One to one, most shared utterances first; ids of transcripts end with the place of the utterance."""
    edges = []
    for item in items:
        mine = {int(q.utterance_id.rsplit("/", 1)[1]) for q in item.evidence}
        for number, entry in enumerate(gold):
            shared = mine & {int(e.lstrip("u")) - 1 for e in entry["evidence"]}
            if shared:
                edges.append((-len(shared), item.id, number, item))
    used: set[int] = set()
    done: set[str] = set()
    pairs = []
    for _, item_id, number, item in sorted(edges, key=lambda e: e[:3]):
        if item_id not in done and number not in used:
            done.add(item_id)
            used.add(number)
            pairs.append((item, gold[number]))
    return pairs


def _fate(item: VerifiedItem) -> str:
    """``pass``, ``review`` (stands as it is, a person is asked), ``fallback`` or ``withheld``."""
    if item.verdict in ("withheld", "withdrawn"):
        return "withheld"
    return "pass" if item.verdict == "repaired" else item.verdict


def attack(script: Mapping[str, Any], verifier: Verifier, seed: int) -> Fates:
    """Items of a meeting as they should be, and each of them made untrue in every way that applies to it."""
    chance = random.Random(f"{seed}/{script['meeting']}")
    fates = Fates()
    holding = annotated_cases(script)
    for number, case in enumerate(holding):
        fates.clean[_fate(_judged(case, f"clean-{number}", verifier))] += 1
        for kind in KINDS:
            wrong = corrupted(case, kind, chance, holding)
            if wrong is None:
                continue
            told = _judged(wrong, f"{kind}-{number}", verifier)
            fates.corruptions.setdefault(kind, collections.Counter())[_outcome(told, wrong)] += 1
    return fates


def _outcome(told: VerifiedItem, wrong: Case) -> str:
    fate = _fate(told)
    if fate == "withheld":
        return "caught"
    if fate in ("fallback", "review"):
        return "fallback"
    item = wrong.item
    kept = told.text.casefold() == item.text.casefold() and told.owner == item.owner and told.due == item.due
    return "escaped" if kept else "caught"


def _judged(case: Case, name: str, verifier: Verifier) -> VerifiedItem:
    """One case as a final draft of its own."""
    spoken: dict[str, Spoken] = {}
    quotes = []
    at_ns = _START_NS

    def say(heard: Heard, quoted: bool) -> None:
        nonlocal at_ns
        number = len(spoken)
        utterance = Spoken(
            f"captions/1/{number}", at_ns, at_ns + 2 * _S, heard.speaker, heard.text, "captions"
        )
        spoken[utterance.id] = utterance
        at_ns += 3 * _S
        if quoted:
            quotes.append(Quote(utterance.id, 0, len(heard.text)))

    for heard in case.before:
        say(heard, False)
    for heard in case.evidence:
        say(heard, True)
    for heard in case.after:
        say(heard, False)
    item = case.item
    label = {name: label for label, name in case.speakers}
    drafted = DraftItem(
        f"{item.kind}:{name}", item.kind, item.text, 0.9, item.owner,
        item.owner is not None and item.owner not in case.attendees, item.due, item.due_text, tuple(quotes), False, (),
    )  # fmt: skip
    context = MeetingContext(
        "Attack", case.meeting_date, tuple(Attendee(a, label.get(a)) for a in case.attendees), (), ()
    )
    draft = Draft(
        name, "final", context, at_ns, (drafted,), spoken, zero_ns=_START_NS, start_ns=_START_NS,
        duration_ns=at_ns - _START_NS, speakers=tuple(sorted({s.speaker for s in spoken.values() if s.speaker})),
    )  # fmt: skip
    (told,) = verifier.verify(draft).items
    verifier.forget(name)
    return told


def escaped(fates: Fates) -> dict[str, float]:
    """Share of corruptions that left as pass: of kinds that training saw, and of those it did not."""
    counts = {"seen": [0, 0], "unseen": [0, 0]}
    for kind, outcome in fates.corruptions.items():
        which = counts["unseen" if kind in UNSEEN else "seen"]
        which[0] += outcome["escaped"]
        which[1] += outcome.total()
    return {name: round(out / max(1, all_), 4) for name, (out, all_) in counts.items()}


def f1(counts: Mapping[str, int]) -> float:
    """Harmonic mean of precision and recall."""
    return round(2 * counts["hit"] / max(1, counts["predicted"] + counts["gold"]), 4)
