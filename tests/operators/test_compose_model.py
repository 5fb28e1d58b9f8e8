"""The summary of a meeting that a model read along: who said what is worth telling, and only what is likely."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from models.minutes.inputs import Told, Window
from models.minutes.scores import UtteranceScores
from operators.summary import summary
from operators.understand.cues import Figures
from operators.understand.engine import Attendee, DraftItem, MeetingContext, Spoken, State
from operators.understand.hybrid import HybridEngine

_CONTEXT = MeetingContext(attendees=(Attendee("Mira Toth", "A"), Attendee("PM", "B", "project manager")))
_TALK = (
    ("A", "The battery of the remote control will last for two years in normal use."),
    ("B", "The price of the remote control is twenty five Euros for each of the shops."),
    ("C", "The weight of the remote control is that of a small apple in the hand."),
    ("A", "Um, I mean, you know, I'm just like, yeah, remote, battery, price, well, okay."),
    ("B", "I'll send the list of the shops to the factory by Friday."),
)


class _Worth:
    """A model for which all is worth telling."""

    name = "worth"

    def slices(self, spoken: Spoken) -> Iterator[None]:
        del spoken
        yield from ()

    def told(self, spoken: Spoken, cues: Figures) -> Told:
        return Told(spoken.text, 1, np.zeros((1, 768), np.float16), cues)

    def scores(self, window: Window, digest: bytes) -> Sequence[UtteranceScores]:
        return [UtteranceScores(summary=0.6)] * len(window.utterances)


def _read() -> tuple[State, tuple[DraftItem, ...]]:
    engine, step = HybridEngine(scorer=_Worth()), 5_000_000_000
    state = engine.start(_CONTEXT)
    for number, (speaker, text) in enumerate(_TALK):
        state = engine.step(state, Spoken(f"u{number}", number * step, number * step + 10**9, speaker, text))
    state = engine.finish(state)
    return state, engine.items(state)


def _lines(confidence: float) -> list[str]:
    state, items = _read()
    assert [i.kind for i in items] == ["action_item"]
    return [s.text for s in summary(state, _CONTEXT, [replace(i, confidence=confidence) for i in items])]


def test_what_is_told_says_who_said_it() -> None:
    lines = _lines(0.3)
    assert "Mira Toth: The battery of the remote control will last for two years in normal use." in lines
    assert (
        "The project manager: The price of the remote control is twenty five Euros for each of the shops."
        in lines
    )


def test_who_is_no_attendee_is_not_named() -> None:
    state, _ = _read()
    told = [
        s for s in summary(state, replace(_CONTEXT, attendees=()), ()) if s.text.startswith("The battery")
    ]
    assert told
    assert all(not line.startswith(("C:", "A:")) for line in _lines(0.3))


def test_chatter_is_not_told_where_whole_sentences_are_there() -> None:
    assert not any("Um" in line or "you know" in line for line in _lines(0.3))


def test_tasks_are_told_that_are_more_likely_than_not() -> None:
    task = "The project manager: send the list of the shops to the factory (by Friday)."
    assert task in _lines(0.6)
    assert task not in _lines(0.4)
