"""Who is in the room, who sits where, and which words recognition should expect of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from contracts.messages import (
    AgendaChanged,
    AnyControl,
    AttendeesChanged,
    ChannelMapChanged,
    ChannelSpeaker,
    MeetingStarted,
    Position,
    SpeakerTurn,
    SpeakerTurns,
)
from operators.speech.delay import Arrangement

_HOTWORD_AGE_NS: Final = 10_000_000_000
_SLIDES_TOLD, _SLIDES_KEPT = 4, 64
_TERMS_OF_A_SLIDE: Final = 12
_INTRODUCES: Final = re.compile(r"\b(?:I'm|I am|my name is|my name's) ([^\W\d_]+)", re.IGNORECASE)

SHARED: Final = ""
"""Stands for the speaker of a microphone that the channel map gives to several people."""


@dataclass(frozen=True, slots=True)
class Seen:
    """When something was seen: device, number of the clock record that placed it, raw time."""

    device: str
    clock: int
    raw_ns: int


def told_from(shown_ns: int) -> int:
    """From which time of the timeline on recognition is told of a slide."""
    return shown_ns + _HOTWORD_AGE_NS


class People:
    """Plain data, changed by control messages and slides; part of the meeting's state."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.speakers: dict[tuple[str, int], str] = {}
        """Speaker by device and channel; ``SHARED`` where several are named for it."""
        self._seats: tuple[tuple[str, Position], ...] = ()
        self._microphones: dict[tuple[str, int], Position] = {}
        self._topics: tuple[str, ...] = ()
        self._turns: dict[str, tuple[SpeakerTurn, ...]] = {}
        self._slides: list[tuple[Seen, tuple[str, ...]]] = []

    def apply(self, control: AnyControl) -> None:
        """Take in a control message; those that say nothing of people are left alone."""
        match control:
            case MeetingStarted():
                self.names = tuple(a.name for a in control.attendees)
                self._topics = (*control.agenda, *control.key_topics)
                self.speakers = _speakers(control.channel_map)
                self._seats = tuple((s.speaker, s.position_m) for s in control.seats)
                self._microphones = {(m.device, m.channel): m.position_m for m in control.microphones}
            case AttendeesChanged():
                self.names = tuple(a.name for a in control.attendees)
            case ChannelMapChanged():
                self.speakers = _speakers(control.channel_map)
            case AgendaChanged():
                self._topics = (*control.agenda, *control.key_topics)
            case SpeakerTurns():
                self._turns[control.device] = tuple(sorted(control.turns, key=lambda t: t.start_ns))
            case _:
                pass

    def saw_slide(self, seen: Seen, lines: tuple[str, ...]) -> None:
        """A slide that stands from then on."""
        self._slides = [*self._slides[1 - _SLIDES_KEPT :], (seen, lines[:_TERMS_OF_A_SLIDE])]

    def terms(self, at_ns: int, timeline_ns: Callable[[Seen], int]) -> tuple[str, ...]:
        """What recognition should expect of speech that begins at a time of the timeline.

        Names, agenda, key topics, slides that had stood for a while: the same whenever the sound comes, and whatever
        was known of the slide's clock when it was shown.
        """
        words = [*self.names, *self._topics]
        told = [terms for seen, terms in self._slides if told_from(timeline_ns(seen)) <= at_ns]
        for terms in told[-_SLIDES_TOLD:]:
            words += terms
        return tuple(dict.fromkeys(words))

    def arrangement(self, device: str, channels: int) -> Arrangement | None:
        """How the seats lie to a device of several microphones; None where places are not known."""
        places = [self._microphones.get((device, channel)) for channel in range(channels)]
        known = [place for place in places if place is not None]
        if len(known) < 2 or len(known) < channels or not self._seats:
            return None
        return Arrangement.of(known, self._seats)

    def claimed_seat(self, speaker: str | None, text: str) -> str | None:
        """Whose name somebody gives as their own at a microphone that the channel map gives to another person."""
        if not speaker or speaker not in self.speakers.values():
            return None
        for match in _INTRODUCES.finditer(text):
            for other in self.speakers.values():
                if other and other != speaker and other.split()[0].casefold() == match[1].casefold():
                    return other
        return None

    def speaker(
        self,
        device: str,
        mapped: str | None,
        raw_start_ns: int,
        raw_end_ns: int,
        timeline_ns: Callable[[int], int],
    ) -> str | None:
        """Who speaks: by seat, or by speaker turns from outside where these cover at least half of it."""
        turns = self._turns.get(device)
        if mapped is not None or not turns:
            return mapped
        start, end = timeline_ns(raw_start_ns), timeline_ns(raw_end_ns)
        shares: dict[str, int] = {}
        for turn in turns:
            overlap = max(0, min(end, turn.end_ns) - max(start, turn.start_ns))
            shares[turn.speaker] = shares.get(turn.speaker, 0) + overlap
        best = max(sorted(shares), key=lambda s: shares[s])
        return best if 2 * shares[best] >= end - start else None


def _speakers(channel_map: tuple[ChannelSpeaker, ...]) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    for entry in channel_map:
        place = entry.device, entry.channel
        found[place] = entry.speaker if found.get(place, entry.speaker) == entry.speaker else SHARED
    return found
