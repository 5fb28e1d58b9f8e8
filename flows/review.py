"""Cases that wait for a person: what stands on the topics, and answers to it as control messages."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ValidationError

from contracts.consumer import MinutesFold, read_event, read_state
from contracts.messages import Correction, MeetingPurged, NameCorrected
from contracts.minutes import Item, MinutesPurged, ReviewRequest, Section
from contracts.packet import MAGIC
from contracts.refusals import refusal_line
from contracts.timeline import TIMELINE_RECORD
from contracts.topics import MINUTES, REVIEW, STATE, TIMELINE
from operators.align.aligned import Ended, Heard, Unheard
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.kafka_link import BrokerLink
from operators.deliver.document import item_sha256
from operators.understand.types import Spoken

from .control_sender import ControlSender
from .topic_reader import Found, TopicReader

Choice = Literal["accept", "change", "reject"]
_NEAR_NS: Final = 5_000_000_000
"""How far from the time that a person names speech may be."""


class ReviewProblem(Exception):
    """A case, item or answer that cannot be used; the message is one line."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person wants an item to be."""

    text: str | None = None
    owner: str | None = None
    due: datetime.date | None = None
    clear: tuple[Literal["owner", "due"], ...] = ()


@dataclass(slots=True)
class Cases:
    """Cases and minutes as the topics tell them, in any order and however often."""

    newest: dict[tuple[str, str], ReviewRequest] = field(default_factory=dict)
    fold: MinutesFold = field(default_factory=MinutesFold)

    def feed(self, message: Found) -> None:
        """The next message of a review, minutes or state topic; what cannot be read is left out."""
        if message.value is None:
            return
        try:
            if message.topic == REVIEW.name:
                self._case(ReviewRequest.model_validate_json(message.value))
            elif message.topic == STATE.name:
                self.fold.load(read_state(message.value))
            elif message.topic == MINUTES.name:
                self.fold.apply(read_event(message.value))
        except ValidationError:
            return

    def _case(self, request: ReviewRequest) -> None:
        name = (request.meeting_id, request.request_id)
        known = self.newest.get(name)
        if known is None or (known.generation, known.version) < (request.generation, request.version):
            self.newest[name] = request

    def open(self, meeting_id: str | None = None) -> list[ReviewRequest]:
        """Cases that wait, by meeting and time."""
        waiting = [
            c for c in self.newest.values() if c.state == "open" and meeting_id in (None, c.meeting_id)
        ]
        return sorted(waiting, key=_place)

    def find(self, name: str, meeting_id: str | None) -> tuple[str, str, str | None]:
        """Meeting, item id and hash of the item that ``name`` means: a case, an item, or the beginning of one.

        Raises:
            ReviewProblem: nothing, or more than one thing, has this name.
        """
        found: dict[tuple[str, str], str | None] = {}
        for meeting, known in self.fold.meetings.items():
            items = [p.item for _, p in known.items.values() if p is not None]
            found |= {(meeting, i.id): item_sha256(i) for i in items if _called(name, i.id)}
        for case in self.newest.values():
            if _called(name, case.request_id) or _called(name, case.item_id):
                found[case.meeting_id, case.item_id] = case.item_sha256
        found = {key: v for key, v in found.items() if meeting_id in (None, key[0])}
        exact = {key: v for key, v in found.items() if key[1] == name}
        found = exact or found
        if len(found) != 1:
            raise ReviewProblem(
                f"{name}: no such case or item" if not found else f"{name}: {len(found)} items are called so"
            )
        ((meeting, item_id), sha256), *_ = found.items()
        return meeting, item_id, sha256


def _called(name: str, known: str) -> bool:
    return known == name or (len(name) >= 4 and known.startswith(name))


def _place(case: ReviewRequest) -> tuple[str, float, str]:
    return case.meeting_id, case.evidence[0].start_s if case.evidence else 0.0, case.request_id


def read_cases(link: BrokerLink, meeting_id: str | None, *, wait_s: float) -> Cases:
    """Everything that stands on the topics."""
    cases = Cases()
    with TopicReader(link, (REVIEW, STATE, MINUTES), meeting_id, wait_s=wait_s) as reader:
        for message in reader.to_end():
            cases.feed(message)
    return cases


# Answers


def correction(
    meeting_id: str, item_id: str, expected_sha256: str | None, choice: Choice, wanted: Wanted, by: str
) -> Correction:
    """The answer as a control message.

    Raises:
        ReviewProblem: a change says nothing, or sets and clears the same.
    """
    try:
        return Correction(
            meeting_id=meeting_id, correction_id=f"c-{secrets.token_hex(6)}", item_id=item_id, action=choice,
            expected_sha256=expected_sha256, by=by, text=wanted.text, owner=wanted.owner, due=wanted.due,
            clear=wanted.clear,
        )  # fmt: skip
    except ValidationError as error:
        raise ReviewProblem(refusal_line(error)) from error


def addition(
    meeting_id: str, section: Section, wanted: Wanted, utterances: Iterable[str], by: str
) -> Correction:
    """Something that was missed, as a control message.

    Raises:
        ReviewProblem: text or utterances are missing.
    """
    name = secrets.token_hex(6)
    try:
        return Correction(
            meeting_id=meeting_id, correction_id=f"c-{name}", item_id=f"person/{name}", action="add",
            section=section, text=wanted.text, owner=wanted.owner, due=wanted.due, by=by,
            utterances=tuple(utterances),
        )  # fmt: skip
    except ValidationError as error:
        raise ReviewProblem(refusal_line(error)) from error


def renaming(meeting_id: str, name: str, heard: Iterable[str], by: str) -> NameCorrected:
    """How a name is written, as a control message.

    Raises:
        ReviewProblem: nothing is said to have been heard.
    """
    try:
        return NameCorrected(meeting_id=meeting_id, name=name, heard=tuple(heard), by=by)
    except ValidationError as error:
        raise ReviewProblem(refusal_line(error)) from error


def purging(meeting_id: str) -> MeetingPurged:
    """The message that a meeting must go. Raises ``ReviewProblem``."""
    try:
        return MeetingPurged(meeting_id=meeting_id)
    except ValidationError as error:
        raise ReviewProblem(refusal_line(error)) from error


def spoken_at(link: BrokerLink, meeting_id: str, at_s: float, *, wait_s: float) -> list[Spoken]:
    """Utterances that were under way at a time of the meeting, else the nearest one.

    Raises:
        ReviewProblem: nothing was said around that time.
    """
    align, known, zero_ns = Align(AlignSettings()), dict[str, Spoken](), 0
    with TopicReader(link, (TIMELINE,), meeting_id, wait_s=wait_s) as reader:
        for message in reader.to_end():
            if message.value is None or message.value[:4] == MAGIC:
                continue
            try:
                record = TIMELINE_RECORD.validate_json(message.value)
            except ValidationError:
                continue
            for change in align.read(record):
                if change.meeting_id != meeting_id:
                    continue
                if isinstance(change, Heard):
                    known[change.spoken.id], zero_ns = change.spoken, change.setting.start_ns
                elif isinstance(change, Unheard):
                    known.pop(change.utterance_id, None)
                elif isinstance(change, Ended):
                    known = {s.id: s for s in change.spoken}
    at_ns = zero_ns + round(at_s * 1e9)

    def distance(spoken: Spoken) -> int:
        return max(0, spoken.start_ns - at_ns, at_ns - spoken.end_ns)

    near = sorted(known.values(), key=lambda s: (distance(s), s.start_ns, s.id))
    if not near or distance(near[0]) > _NEAR_NS:
        raise ReviewProblem(f"nothing was said around {at_s:g} s of {meeting_id}")
    return [s for s in near if distance(s) == 0] or near[:1]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an answer: applied, or why not; ``done`` is None where nothing was heard of it in time."""

    done: bool | None
    told: str


def send_and_follow(
    link: BrokerLink, answer: Correction | NameCorrected, *, wait_s: float, patience_s: float = 30.0
) -> Outcome:
    """Send an answer and wait for what the minutes make of it."""
    with TopicReader(link, (MINUTES, REVIEW), answer.meeting_id, wait_s=patience_s) as reader:
        cases = Cases()
        for message in reader.to_end():
            cases.feed(message)
        before = _state_of(cases, answer)
        ControlSender(link, wait_s=patience_s).send(answer)
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            for message in reader.poll():
                cases.feed(message)
            if (outcome := _outcome(cases, answer, before)) is not None:
                return outcome
    return Outcome(None, f"sent; nothing was heard of it for {wait_s:g} s")


def _state_of(cases: Cases, answer: Correction | NameCorrected) -> tuple[int, Item | None, str]:
    known = cases.fold.meetings.get(answer.meeting_id)
    revision = known.revision if known is not None else 0
    if known is None or isinstance(answer, NameCorrected):
        return revision, None, ""
    placed = known.items.get(answer.item_id, (0, None))[1]
    case = next((c for c in cases.newest.values() if c.item_id == answer.item_id), None)
    return revision, None if placed is None else placed.item, "" if case is None else case.state


def _outcome(
    cases: Cases, answer: Correction | NameCorrected, before: tuple[int, Item | None, str]
) -> Outcome | None:
    now = _state_of(cases, answer)
    if isinstance(answer, NameCorrected):
        return Outcome(True, f"applied: revision {now[0]}") if now[0] > before[0] else None
    for case in cases.newest.values():
        if case.item_id == answer.item_id and answer.correction_id in case.reason:
            return Outcome(False, f"not applied: {case.reason}")
    item, waits = now[1], now[2]
    if item != before[1] or (before[2] == "open" and waits == "closed"):
        return Outcome(True, f"applied: revision {now[0]}")
    return None


def purged(messages: Iterable[Found], meeting_id: str) -> bool:
    """Whether minutes events say that a meeting was purged; what is no event says nothing."""
    for message in messages:
        if message.topic == MINUTES.name and message.value is not None:
            try:
                event = read_event(message.value)
            except ValidationError:
                continue
            if isinstance(event, MinutesPurged) and event.meeting_id == meeting_id:
                return True
    return False
