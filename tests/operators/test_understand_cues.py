"""What the rules tell the model of one utterance."""

from operators.understand.cues import CUES, cues_of
from operators.understand.engine import RuleEngine
from operators.understand.types import Attendee, MeetingContext, Spoken

_CONTEXT = MeetingContext(attendees=(Attendee("Mira", "Mira"), Attendee("Tom", "Tom")))


def _figures(*said: tuple[str, str]) -> list[dict[str, float]]:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    out = []
    for number, (speaker, text) in enumerate(said):
        spoken = Spoken(f"u{number}", number * 4_000_000_000, number * 4_000_000_000 + 3, speaker, text)
        state, reading = engine.read(state, spoken)
        out.append(dict(zip(CUES, cues_of(reading), strict=True)))
    return out


def test_what_is_said_shows_in_its_figures() -> None:
    asked, taken, chat, undone = _figures(
        ("Mira", "Tom, can you send the offer to the printer by Friday?"),
        ("Tom", "Yes, I'll do that."),
        ("Mira", "My brother called the printer last week."),
        ("Mira", "Scratch that."),
    )
    assert asked["mode_request"] == asked["claim_you"] == asked["called"] == asked["due_deadline"] == 1
    assert asked["question_mark"] == 1
    assert asked["action"] > 0.3
    assert asked["leads"] == 1
    assert taken["accepts"] == taken["pending_request"] == 1
    assert taken["supported"] > 0.2
    assert chat["action"] == 0
    assert undone["takes_back"] == 1


def test_figures_lie_between_zero_and_one_for_anything_said() -> None:
    for figures in _figures(
        ("Mira", ""), ("Tom", "I will " * 900), ("Mira", "✨ 🎉 ??"), ("Tom", "да, конечно")
    ):
        assert len(figures) == len(CUES)
        assert all(0 <= value <= 1 for value in figures.values())
