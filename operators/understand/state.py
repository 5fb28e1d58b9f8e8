"""What the rule engine remembers of a meeting: immutable, bounded, cheap to fork and to pickle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from models.minutes.inputs import Context
from operators.language.dates import DuePhrase
from operators.language.people import Roster
from operators.understand.hear import Heard
from operators.understand.sensed import SensePiece
from operators.understand.types import Family, MeetingContext, Quote, Spoken

MAIN = 3.0
"""Weight of the evidence that an item is made of."""
LEANT = 0.5
"""That of evidence that only says what an item's words are about."""
SURE_WORK = 0.4
LIKELY_WORK = 0.5
"""Support by rules, or probability by the model alone, from which later talk is taken to mean a task."""
MATTER = 1.0
"""That of evidence in which the matter that is decided was brought up."""
TOLD_BLOCK = 24
"""Utterances of which the two weightiest are kept for the summary."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who an action falls to, as stated: ``self``, ``you``, ``named``, ``group`` or ``none``.

    ``people`` are the names or the speaker label; more than one name means that it is unclear.
    """

    kind: str
    people: tuple[str, ...] = ()
    said: str = ""
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of speech an item rests on. Heavier ones are kept when there are too many."""

    quote: Quote
    index: int
    duration_ns: int
    weight: float
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A stated due date: the phrase that is resolved, and its words as they were said."""

    phrase: DuePhrase
    words: str
    said_in: str
    """The utterance that they were said in."""


@dataclass(frozen=True, slots=True)
class Named:
    """A time phrase of an utterance, whatever it is said of: whether it may say when something is due, and is asked."""

    due: Due
    meant: bool
    asked: bool


def later_due(known: Due | None, said: Due | None) -> Due | None:
    """The due date that holds after another was said: the last one, but no vague one in the place of a day."""
    if known is None or said is None:
        return said or known
    vague = said.phrase.kind in VAGUE_KINDS and known.phrase.kind not in VAGUE_KINDS
    return known if vague else said


VAGUE_KINDS = ("vague", "clock")
"""Kinds of time phrases that name no day of their own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the model says of one utterance that an item rests on."""

    action: float
    decision: float
    question: float
    answer: float
    summary: float
    withdrawn: float
    joins: float
    owner: tuple[tuple[str, float], ...] = ()
    due: float = 0.0
    """Probability that it says until when."""
    named: tuple[Named, ...] = ()
    """The times that it names."""

    def of(self, family: Family) -> float:
        """Probability that the utterance is part of an item of that family."""
        return {"action": self.action, "decision": self.decision, "question": self.question}[family]


@dataclass(frozen=True, slots=True)
class Around:
    """An utterance near an item that is likely part of one of its kind; ``words`` are what it says, shortened."""

    piece: Piece
    likely: float
    words: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An item in the making. ``support`` sums what speaks for it and against it."""

    id: str
    family: Family
    text: str
    support: float
    speaker: str | None
    claim: Claim
    due: Due | None
    evidence: tuple[Piece, ...]
    stems: frozenset[str]
    first_index: int
    last_index: int
    reasons: tuple[str, ...]
    mode: str = ""
    """``offer``, ``request``, ``propose``: still waits for an answer; else empty."""
    called: tuple[str, ...] = ()
    accepted: bool = False
    withdrawn: bool = False
    solved: bool = False
    agreed: tuple[str, ...] = ()
    senses: tuple[SensePiece, ...] = ()
    """What it rests on besides speech."""
    by_model: bool = False
    """No rule fired; the model's scores started it."""
    judged: tuple[tuple[int, Judged], ...] = ()
    """Utterances that it rests on, by number, and what the model says of each."""
    undone: float = 0.0
    """The surest sign by the model that it was taken back."""
    around: tuple[Around, ...] = ()
    """What the model takes for part of the same talk; the surest few."""
    worded_in: int | None = None
    """Number of the utterance that its words come from, where it is not the one that started it."""

    @property
    def likely_work(self) -> bool:
        """Whether enough speaks for it to be a task: what the rules saw, or the model alone where it is fairly sure."""
        if not self.by_model or self.support >= SURE_WORK:
            return self.support >= SURE_WORK
        return max((j.action for _, j in self.judged), default=0.0) >= LIKELY_WORK

    def grown(self, support: float, reason: str, piece: Piece | None = None, **changes: object) -> Draft:
        """The same item with one more thing that speaks for (or against) it."""
        evidence = self.evidence
        if piece is not None and all(p.quote.utterance_id != piece.quote.utterance_id for p in evidence):
            evidence = (*evidence, piece)
        reasons = self.reasons if reason in self.reasons else (*self.reasons, reason)
        last = max(self.last_index, piece.index) if piece else self.last_index
        changed = replace(
            self, support=self.support + support, reasons=reasons, evidence=evidence, last_index=last
        )
        return replace(changed, **changes) if changes else changed  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Hint:
    """An utterance of late that may be part of an item that is spoken of around it."""

    piece: Piece
    words: str
    action: float
    decision: float

    def of(self, family: Family) -> float:
        """Probability that it is part of an item of that family."""
        return {"action": self.action, "decision": self.decision, "question": 0.0}[family]


@dataclass(frozen=True, slots=True)
class Memory:
    """What the model remembers of a meeting, and a digest of all that it was told, in order."""

    context: Context = field(default_factory=Context)
    digest: bytes = b""
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True, slots=True)
class Telling:
    """An utterance that may stand in the summary."""

    quote: Quote
    index: int
    text: str
    weight: float
    stems: frozenset[str]
    speaker: str | None = None


@dataclass(frozen=True)
class State:
    """A meeting up to some utterance. ``recent`` is the window, ``drafts`` are in order of birth."""

    context: MeetingContext
    roster: Roster
    speakers: tuple[str, ...] = ()
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    recent: tuple[Heard, ...] = ()
    drafts: tuple[Draft, ...] = ()
    told: tuple[Telling, ...] = ()
    block: tuple[Telling, ...] = ()
    shares: dict[str, int] = field(default_factory=dict)
    finished: bool = False
    long_from: int | None = None
    """Index of the utterance with which the meeting became a long one; None before."""
    memory: Memory | None = None
    """None where only rules read."""


def piece_of(spoken: Spoken, index: int, weight: float, span: tuple[int, int] | None = None) -> Piece:
    """Evidence of one utterance: all of it, or the named characters of a very long one."""
    first, last = 0, len(spoken.text)
    duration = max(1, spoken.end_ns - spoken.start_ns)
    if span is not None and last > 0 and len(spoken.text) > 420:
        first, last = _around(spoken.text, span)
        duration = duration * (last - first) // len(spoken.text)
    return Piece(Quote(spoken.id, first, last), index, duration, weight, spoken.speaker)


def _around(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Up to about 420 characters around the cue, at word borders."""
    spare = max(0, 420 - (span[1] - span[0])) // 2
    first = max(0, span[0] - spare)
    last = min(len(text), span[1] + spare)
    while first > 0 and not text[first - 1].isspace():
        first -= 1
    while last < len(text) and not text[last].isspace():
        last += 1
    return first, last


def owners_of(draft: Draft, state: State) -> set[str | None]:
    """Names of those who have a task."""
    return {state.roster.of_speaker(p) for p in draft.claim.people}


def piece(heard: Heard, weight: float = 1.0) -> Piece:
    """This utterance as evidence."""
    tokens = heard.clauses[0].clause.tokens
    return piece_of(heard.spoken, heard.index, weight, (tokens[0].first, tokens[-1].last))
