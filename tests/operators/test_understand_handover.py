"""Tasks that whoever has them gives away, and dates said anew: with everyday talk beside that must change nothing."""

import datetime as dt

import pytest

from models.minutes.scores import UtteranceScores
from operators.understand.conceive import conceived
from operators.understand.engine import RuleEngine
from operators.understand.hear import hear
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken

_PEOPLE = ("Ben", "Anna", "Tom", "Eve")
_CONTEXT = MeetingContext(date=dt.date(2026, 3, 9), attendees=tuple(Attendee(name, name) for name in _PEOPLE))
"""A Monday."""


def _task(about: str, *lines: str) -> DraftItem:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        start = 3_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 2_000_000_000, who, text))
    found = [
        i for i in engine.items(engine.finish(state)) if i.kind == "action_item" and about in i.text.lower()
    ]
    (item,) = found
    return item


NOTE = "Ben: I'll write the note to the staff by Friday."
BANK = "Ben: I'll ring the bank by Friday."
FORM = ("Ben: Tom, can you fill in the form by Friday?", "Tom: Sure, I'll do it.")


@pytest.mark.parametrize(
    ("about", "lines", "owner"),
    [
        ("note", (NOTE, "Anna: Shouldn't that come from me? I can do it.", "Ben: Would you? Oh, bless you."), "Anna"),
        ("note", (NOTE, "Anna: I'd rather it came from me.", "Ben: Okay, you write it."), "Anna"),
        ("bank", (BANK, "Anna: I'd love a cup of tea.", "Ben: Would you? I'll make some, lovely."), "Ben"),
        ("bank", (BANK, "Anna: I can lend you a pen for that.", "Ben: Would you? Thanks."), "Ben"),
        ("bank", (BANK, "Anna: I could eat that last biscuit.", "Ben: You take it."), "Ben"),
        ("bank", (BANK, "Anna: I'd better put the kettle on, it's cold.", "Ben: Would you? Thanks."), "Ben"),
        ("bank", (BANK, "Anna: I had a lovely weekend.", "Ben: So not me, I was in bed."), "Ben"),
        ("form", (*FORM, "Eve: I'm going to write myself a form of letter."), "Tom"),
        ("bank", (BANK, "Anna: I can do it if you like.", "Ben: Would you? No, I'll do it."), "Ben"),
        ("bank", (BANK, "Anna: They moved.", "Ben: So not me, I don't know them. Tom?", "Tom: Leave it to me."), "Tom"),
        ("bank", (BANK, "Anna: Somebody's parked on the grass.", "Ben: Not me, I came by bus."), "Ben"),
        ("form", (*FORM, "Tom: It wants a password.", "Ben: Then I'll have to do the form myself."), "Ben"),
        ("form", (*FORM, "Ben: I'll have to look at that form myself one day."), "Tom"),
        ("form", (*FORM, "Ben: I'd fill in the forms myself if I could read."), "Tom"),
        ("form", (*FORM, "Eve: There are the stickers too.", "Tom: Could you do those, Eve?", "Eve: I'd rather not."), "Tom"),
        ("cakes", ("Ben: I'll order the cakes.", "Anna: No, Ben, let me. I'll do it.", "Ben: Okay, you then."), "Anna"),
        ("lists", ("Ben: Please send me your lists by Monday.", "Anna: And the cake, I'll bake two on Saturday."), None),
    ],
)  # fmt: skip
def test_who_has_a_task_in_the_end(about: str, lines: tuple[str, ...], owner: str | None) -> None:
    assert _task(about, *lines).owner == owner


def test_a_task_that_is_handed_over_with_a_day_is_due_on_it() -> None:
    lines = (
        NOTE,
        "Anna: I'd rather it came from me.",
        "Ben: Okay, you write it. By Thursday, though.",
        "Anna: Yes.",
    )
    item = _task("note", *lines)
    assert (item.owner, item.due) == ("Anna", dt.date(2026, 3, 12))


TRACK = "Ben: I'll rewire the corner track on Friday."


@pytest.mark.parametrize(
    ("about", "lines", "due"),
    [
        # Whoever has it says another day, in the words of the task or right after it.
        ("track", (TRACK, "Anna: Fine.", "Tom: Tea?", "Eve: No.", "Ben: I can do the track Thursday."), 12),
        ("call zoe", ("Ben: I will call Zoe on Friday.", "Anna: Okay.", "Ben: I will call Eve on Thursday."), 13),
        ("talk", ("Ben: I'll give the talk on Thursday.", "Anna: That's the stock count.",
                  "Ben: Friday then at six in the morning when they come on."), 13),
        # A date stands before its weekday.
        ("track", (TRACK, "Anna: I'm out.", "Ben: The nineteenth, then. Thursday."), 19),
        # When it is ready or comes, in the same breath.
        ("tickets", ("Ben: I'll make the tickets. On the old press. They'd be ready by Tuesday.",), 10),
        ("chairs", ("Ben: I'll order the chairs. The old ones broke. They will be missed on Friday.",), None),
        ("flyer", ("Ben: I'll print the flyer. It goes to the church on Sunday as it always did.",), None),
        # What a day is for, or how long something lasts, is no date of the task.
        ("movers", ("Ben: Tom, tell the movers, please.", "Tom: They close at five. I'll do it on my way out."), None),
        ("swap", ("Ben: The fourteenth to the twentieth of May. Can you swap, Tom?", "Tom: Sure, I'll swap."), None),
        ("samples", ("Ben: Tom, can you get the samples sent to the hotel?", "Tom: I've got the wedding till Wednesday.",
                     "Tom: Yes, I'll do it."), None),
        ("figures", ("Ben: They want the figures by Friday. Tom, can you send them?", "Tom: Sure."), 13),
    ],
)  # fmt: skip
def test_when_a_task_is_due_in_the_end(about: str, lines: tuple[str, ...], due: int | None) -> None:
    found = _task(about, *lines).due
    assert (found.day if found is not None else None) == due


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I can't, I'm at college all day with the exam", "none"),
        ("She'll open up the ramp for you on the day, I've asked her", "none"),
        ("He can wait outside, I'll check the ramp for you", "self"),
        ("my job the ramp at the back", "self"),
    ],
)
def test_what_only_the_model_found_is_the_speakers_where_the_words_allow_it(text: str, kind: str) -> None:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    heard = hear(Spoken("u0", 0, 1, "Ben", text), 0, state.roster, engine.rules)
    draft = conceived(heard, "action", UtteranceScores(action=0.9, owner=(("Ben", 0.9),)), state)
    assert draft is not None and draft.claim.kind == kind


def _tasks(*lines: str) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    engine = RuleEngine()
    state = engine.start(_CONTEXT)
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        start = 3_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 2_000_000_000, who, text))
    return {
        i.text: (i.owner, tuple(q.utterance_id for q in i.evidence))
        for i in engine.items(engine.finish(state))
        if i.kind == "action_item" and not i.withdrawn
    }


BRIGADE = "Ben: Somebody has to ask the fire brigade about the hydrant."
CARETAKER = "Ben: Somebody should tell the caretaker."


@pytest.mark.parametrize(
    ("about", "lines", "owner", "shown"),
    [
        (BRIGADE, ("Tom: Omar's away.", "Eve: I can ring them, I know the officer."), "Eve", ("u0", "u2")),
        (BRIGADE, ("Tom: Not me.", "Anna: Hm.", "Eve: Fine, I'll call them tomorrow."), "Eve", ("u0", "u3")),
        (BRIGADE, ("Tom: Omar's away.", "Eve: I'll do it together with the booking."), "Eve", ("u0", "u2")),
        (BRIGADE, ("Anna: Shall I ring them?", "Ben: Yes, please."), "Anna", ("u0", "u1", "u2")),
        (BRIGADE, ("Anna: I can ring them.", "Ben: No, you've got enough to do."), None, ("u0", "u1")),
        (BRIGADE, ("Tom: Hm.", "Eve: I can ring the baker about the rolls.", "Ben: Lovely."), None, ("u0",)),
        (BRIGADE, ("Tom: Hm.", "Eve: I'll tell them about the cake at the party."), None, ("u0",)),
        (BRIGADE, ("Tom: Hm.", "Eve: I'll paint them one day."), None, ("u0",)),
        (BRIGADE, ("Tom: Eve, can you open the window?", "Eve: I can do that."), None, ("u0",)),
        (CARETAKER, ("Anna: I told him yesterday.",), None, ("u0",)),
        (CARETAKER, ("Tom: He's deaf.", "Eve: I'll tell him on my way."), "Eve", ("u0", "u2")),
        ("Ben: All of you, tidy the desks by noon.", ("Tom: Okay.", "Eve: I'll do it on the bus."), None, ("u0",)),
    ],
)  # fmt: skip
def test_what_is_asked_of_the_room_is_one_with_the_promise_that_means_it(
    about: str, lines: tuple[str, ...], owner: str | None, shown: tuple[str, ...]
) -> None:
    found = [i for i in _tasks(about, *lines).values() if "u0" in i[1]]
    assert found == [(owner, shown)]


NOTE_ANNA = "Tom: Anna knows them all, so Anna, could you do it?"


@pytest.mark.parametrize(
    ("lines", "owner", "shown"),
    [
        (
            ("Ben: Anna, could you take the note? I'm away.", "Anna: Sure, no problem."),
            "Anna",
            ("u0", "u1", "u2"),
        ),
        ((NOTE_ANNA, "Anna: Yes, happy to."), "Anna", ("u0", "u1", "u2")),
        ((NOTE_ANNA, "Anna: Sorry, I can't."), "Ben", ("u0",)),
        (("Tom: Anna, could you check it?", "Anna: Yes, fine."), "Ben", ("u0",)),
        (("Tom: Anna, could you help him with it?", "Anna: Yes, fine."), "Ben", ("u0",)),
        (("Tom: Anna, could you do the salad?", "Anna: Okay, I'll do it."), "Ben", ("u0",)),
        (("Tom: The bins are full. Anna, could you take them out?", "Anna: Yes, okay."), "Ben", ("u0",)),
        (
            ("Eve: And who draws the map?", "Tom: You can do it, Anna?", "Anna: Yes, no problem."),
            "Ben",
            ("u0",),
        ),
        (("Tom: Anna, you take half of it?", "Anna: Okay."), "Ben", ("u0",)),
        (("Anna: If nobody comes I'll note it all down myself.",), "Ben", ("u0",)),
    ],
)
def test_who_is_asked_to_do_what_another_has(
    lines: tuple[str, ...], owner: str, shown: tuple[str, ...]
) -> None:
    tasks = _tasks(NOTE, *lines)
    assert tasks["Write the note to the staff"] == (owner, shown)
    assert owner == "Ben" or len(tasks) == 1, "what was asked is the task itself"


@pytest.mark.parametrize(
    "answer", ["Anna: Yes, she has them.", "Anna: Yes, Felix has them.", "Anna: Right.", "Eve: I can order the drinks."]
)  # fmt: skip
def test_yes_to_what_another_has_takes_nothing(answer: str) -> None:
    lines = ("Ben: You do the invitations, right?", "Eve: Me? No, I gave those to Tom's sister.", answer)
    assert all(owner is None for text, (owner, _) in _tasks(*lines).items() if "invitations" in text)


def test_a_task_is_passed_on_to_somebody_who_had_not_spoken_before() -> None:
    engine = RuleEngine()
    state = engine.start(MeetingContext(date=_CONTEXT.date))
    lines = (
        ("Marek", "I'll write the note."),
        ("Ines", "Jun wrote half of it, so Jun, you finish it?"),
        ("Jun", "Yes, fine."),
    )
    for number, (who, text) in enumerate(lines):
        start = 3_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 2_000_000_000, who, text))
    assert [(i.text, i.owner) for i in engine.items(engine.finish(state))] == [("Write the note", "Jun")]


def test_what_the_same_breath_names_and_does_not_do_takes_nothing_else_back() -> None:
    lines = (
        "Ben: I'll order the drinks by Friday.",
        "Anna: Good.",
        "Ben: Then a playlist. I'm not making it.",
    )
    assert _tasks(*lines)["Order the drinks"][0] == "Ben"
    assert not _tasks(*lines[:2], "Ben: I'm not making it after all.")
