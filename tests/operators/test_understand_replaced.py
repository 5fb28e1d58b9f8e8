"""Months of days said without one, dates of other sentences, days from which a rule holds, and values that are replaced."""

from __future__ import annotations

import datetime as dt

import pytest

from operators.understand.engine import RuleEngine
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken, UnderstandSettings

_PEOPLE = ("Mira", "Tom", "Ana")
_CONTEXT = MeetingContext(
    date=dt.date(2026, 3, 10), attendees=tuple(Attendee(name, name) for name in _PEOPLE)
)


def _items(lines: tuple[str, ...], kind: str) -> list[DraftItem]:
    engine = RuleEngine(UnderstandSettings(action_threshold=0.2, decision_threshold=0.2))
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, text = line.split(": ", 1)
        start = 5_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    return [i for i in engine.items(engine.finish(state)) if i.kind == kind and not i.withdrawn]


_WEDDING = "Mira: The wedding is on the third of May."


@pytest.mark.parametrize(
    ("lines", "due"),
    [
        # The same day was said with its month.
        ((_WEDDING, "Tom: I'll bring the cups on the third."), dt.date(2026, 5, 3)),
        ((_WEDDING, "Ana: Lovely month.", "Tom: I'll bring the cups on the third."), dt.date(2026, 5, 3)),
        # Another month is talked about, and nobody said whether it is meant.
        ((_WEDDING, "Tom: I'll paint the sign on the twentieth."), None),
        (("Mira: The hall is ours in June.", "Tom: I'll paint the sign by the twentieth."), None),
        # Nobody speaks of another month, or of one that is over.
        (("Mira: Nice weather.", "Tom: I'll paint the sign by the twentieth."), dt.date(2026, 3, 20)),
        (
            ("Mira: It rained on the third of February.", "Tom: I'll paint the sign by the twentieth."),
            dt.date(2026, 3, 20),
        ),
        (
            ("Mira: March may be cold.", "Tom: It may. I'll paint the sign by the twentieth."),
            dt.date(2026, 3, 20),
        ),
        # A deadline that falls once before the day that was named.
        (
            ("Mira: The fair is on the fourth of April.", "Tom: I'll print the flyers by the twenty-eighth."),
            dt.date(2026, 3, 28),
        ),
        # The month is told afterwards.
        (("Tom: I'll order the cups on the twenty-seventh.", "Mira: Of April, good."), dt.date(2026, 4, 27)),
        (("Tom: I'll order the cups by the fifth.", "Mira: May?", "Tom: May."), dt.date(2026, 5, 5)),
        (
            ("Tom: I'll order the cups by the twelfth.", "Ana: My birthday is the fourth.", "Tom: Of June?"),
            dt.date(2026, 3, 12),
        ),
        (
            ("Ana: My birthday is the twentieth of May.", "Tom: I'll order the cups by the twentieth."),
            dt.date(2026, 3, 20),
        ),
        # What may happen is no month.
        (("Tom: I'll order the cups by the fifth.", "Mira: May I come too?"), dt.date(2026, 4, 5)),
    ],
)
def test_a_day_without_its_month(lines: tuple[str, ...], due: dt.date | None) -> None:
    (item,) = _items(lines, "action_item")
    assert item.due == due
    assert item.due_text


def test_the_month_is_shown_by_the_evidence() -> None:
    (item,) = _items((_WEDDING, "Tom: I'll bring the cups on the third."), "action_item")
    assert [q.utterance_id for q in item.evidence] == ["u0", "u1"]
    assert item.due_text == "on the third"


@pytest.mark.parametrize(
    ("lines", "due"),
    [
        # The date of one sentence is not that of the next.
        (("Mira: Launch on the fifth. Tom, you do the invitations, please.", "Tom: Will do."), None),
        (("Mira: The bus leaves on Friday. I'll print the menus.",), None),
        (("Mira: Okay, Wednesday works. I'll print the menus.",), dt.date(2026, 3, 11)),
        (("Mira: We need the menus by Friday. I'll print them.",), dt.date(2026, 3, 13)),
        # From when something holds is no deadline, unless the work begins then.
        (
            ("Mira: Closed from April first. Tom, could you tell the porters?", "Tom: Yes, I'll do that."),
            None,
        ),
        (
            (
                "Mira: Closed from April first. Tom, could you tell the porters?",
                "Tom: Yes, I'll do that by Friday.",
            ),
            dt.date(2026, 3, 13),
        ),
        (("Mira: I'll start the new rota from Monday.",), dt.date(2026, 3, 16)),
        (
            ("Tom: I'll paint the gate by Friday.", "Mira: From the first of April, then, we are open."),
            dt.date(2026, 3, 13),
        ),
        # Whoever puts a day right at once.
        (
            ("Tom: I'll order the cups tomorrow. Or no, I'd wait for Ana, so on Friday.",),
            dt.date(2026, 3, 13),
        ),
        (("Tom: I'll ring Pete on Friday. Or no, he's off on Friday, say Monday.",), dt.date(2026, 3, 16)),
        (("Tom: I'll order the cups tomorrow. No problem, I'm off on Friday.",), dt.date(2026, 3, 11)),
        (
            ("Tom: I'll order the cups tomorrow. Actually Friday's my birthday, so on Friday we drink.",),
            dt.date(2026, 3, 11),
        ),
        (("Tom: I'll order the cups tomorrow. No, the shop is closed on Friday.",), dt.date(2026, 3, 11)),
    ],
)
def test_dates_of_other_sentences(lines: tuple[str, ...], due: dt.date | None) -> None:
    assert [i.due for i in _items(lines, "action_item")] == [due]


_LAUNCH = "Mira: Let's do the launch on the third of May."
_CHAIRS = "Mira: We'll order forty-five chairs for the hall."


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            (_LAUNCH, "Tom: That's a bank holiday.", "Mira: Then the fourth."),
            "Do the launch on the fourth of May",
        ),
        (
            (_LAUNCH, "Tom: Hm.", "Ana: Then the fourth. No wait, the fifth, on the fourth Tom is away."),
            "Do the launch on the fifth of May",
        ),
        (
            (_LAUNCH, "Tom: That's a bank holiday.", "Mira: Fifth it is.", "Tom: The fifth of May, noted."),
            "Do the launch on the fifth of May",
        ),
        ((_LAUNCH, "Tom: Sorry, the tenth of June."), "Do the launch on the tenth of June"),
        ((_CHAIRS, "Tom: Sixty, not forty-five."), "We'll order sixty chairs for the hall"),
        ((_CHAIRS, "Tom: That's too few.", "Ana: Then sixty."), "We'll order sixty chairs for the hall"),
        # No word of a replacement, a question, other things, the same day, other matters in between.
        ((_LAUNCH, "Tom: The fourth is my birthday."), "Do the launch on the third of May"),
        ((_LAUNCH, "Tom: Then the fourth?"), "Do the launch on the third of May"),
        (
            (_LAUNCH, "Tom: Then the fourth of July is next, with the fireworks."),
            "Do the launch on the third of May",
        ),
        (
            (_LAUNCH, "Tom: The van comes on the second.", "Mira: No, the fifth."),
            "Do the launch on the third of May",
        ),
        (
            (_CHAIRS, "Tom: How are the kids?", "Ana: Three now.", "Tom: No, four then."),
            "We'll order forty-five chairs for the hall",
        ),
        (
            (_LAUNCH, "Tom: My sister has six cats.", "Ana: Then seven next year."),
            "Do the launch on the third of May",
        ),
        (
            (_LAUNCH, "Tom: Then Saturday the second, my brother marries."),
            "Do the launch on the third of May",
        ),
        (
            (_CHAIRS, "Tom: How old is your cat?", "Ana: Oh, then nine."),
            "We'll order forty-five chairs for the hall",
        ),
        ((_CHAIRS, "Tom: Sorry, one second."), "We'll order forty-five chairs for the hall"),
        ((_CHAIRS, "Tom: Seventy, not thirty."), "We'll order forty-five chairs for the hall"),
        (
            (_LAUNCH, "Tom: I'll ring the printer by Thursday.", "Mira: Then the fourth."),
            "Do the launch on the third of May",
        ),
    ],
)
def test_the_last_value_stands(lines: tuple[str, ...], text: str) -> None:
    assert [i.text for i in _items(lines, "decision")][:1] == [text]
    replaced = text not in ("Do the launch on the third of May", "We'll order forty-five chairs for the hall")
    if replaced:
        assert len(_items(lines, "decision")) == 1


def test_who_accepts_says_when() -> None:
    lines = (
        "Mira: Right, fifteen then from April first. Tom, you'd change the booking system?",
        "Tom: I'll need the login from IT, but yes. By the end of next week.",
    )
    (item,) = _items(lines, "action_item")
    assert (item.text, item.owner) == ("Change the booking system", "Tom")
    assert (item.due, item.due_text) == (None, "By the end of next week")
