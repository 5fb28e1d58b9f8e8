"""What align gives to the steps after it: one record a change, each with the setting of its meeting."""

from dataclasses import dataclass

from contracts.messages import Correction, NameCorrected, RuleFile
from operators.understand.engine import MeetingContext, Spoken


@dataclass(frozen=True, slots=True)
class SlideSpan:
    """A slide and the stretch of the timeline for which it stood."""

    id: str
    device: str
    start_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class GapSpan:
    """A missing stretch of a stream on the timeline."""

    stream: str
    start_ns: int
    end_ns: int
    what: str


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of the meeting itself."""

    context: MeetingContext
    start_ns: int
    tai_utc_offset_s: int
    rules: RuleFile | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """An utterance as the log first gives it, tentative or closed; replaces an earlier one of its id."""

    meeting_id: str
    setting: Setting
    spoken: Spoken


@dataclass(frozen=True, slots=True)
class Unheard:
    """An utterance turned out to be cross-talk or no speech."""

    meeting_id: str
    setting: Setting
    utterance_id: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Utterances whose place in the meeting's order will not change.

    ``anew``: they replace all settled before (a clock was corrected, or a stream came late).
    """

    meeting_id: str
    setting: Setting
    spoken: tuple[Spoken, ...]
    anew: bool
    gaps: tuple[GapSpan, ...]
    notices: tuple[str, ...]
    until_ns: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The whole meeting, in order."""

    meeting_id: str
    setting: Setting
    spoken: tuple[Spoken, ...]
    slides: tuple[SlideSpan, ...]
    gaps: tuple[GapSpan, ...]
    notices: tuple[str, ...]
    end_ns: int


@dataclass(frozen=True, slots=True)
class Corrected:
    """A person decided something about an item, or how a name is spelt."""

    meeting_id: str
    setting: Setting
    said: Correction | NameCorrected


@dataclass(frozen=True, slots=True)
class Purged:
    """All data of the meeting must go."""

    meeting_id: str


@dataclass(frozen=True, slots=True)
class Traced:
    """The trace to which what follows of this meeting belongs (W3C traceparent)."""

    meeting_id: str
    traceparent: str


Aligned = Traced | Heard | Unheard | Settled | Ended | Corrected | Purged
