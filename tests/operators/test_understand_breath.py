"""What is said in one breath: several people's tasks, slips, conditions, jokes; and words that only look like something."""

import datetime as dt
from collections.abc import Sequence

import pytest

from operators.language.foreign import in_english
from operators.language.text import clauses_of
from operators.summary import summary
from operators.understand.engine import RuleEngine
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken

_DAY = dt.date(2026, 3, 10)
"""A Tuesday."""
Lines = Sequence[str]


def _read(lines: Lines, people: Sequence[str] = ()) -> tuple[list[DraftItem], str]:
    """Items that stand, and the summary as one text; a line is *Speaker: words*."""
    engine = RuleEngine()
    context = MeetingContext(date=_DAY, attendees=tuple(Attendee(name, name) for name in people))
    state = engine.start(context)
    for number, line in enumerate(lines):
        who, _, text = line.partition(": ")
        start = 5_000_000_000 * number
        state = engine.step(state, Spoken(f"u{number}", start, start + 3_000_000_000, who, text))
    state = engine.finish(state)
    items = engine.items(state)
    told = " ".join(s.text for s in summary(state, context, items))
    return [i for i in items if not i.withdrawn], told


def _tasks(lines: Lines, people: Sequence[str] = ()) -> list[tuple[str, str | None]]:
    return [(i.text, i.owner) for i in _read(lines, people)[0] if i.kind == "action_item"]


@pytest.mark.parametrize(
    ("lines", "tasks"),
    [
        (
            ["Rob: I'll phone the baker, Nina will hang the lamps by Friday, and Omar is going to fix the gate on Monday."],
            [("Phone the baker", "Rob"), ("Hang the lamps", "Nina"), ("Fix the gate", "Omar")],
        ),
        (
            ["Rob: Nina, can you order the cake, and Omar, could you book the band by Friday?", "Nina: Sure.", "Omar: Yes."],
            [("Order the cake", "Nina"), ("Book the band", "Omar")],
        ),
        (["Rob: I'll ask what Nina will do about the lamps by Friday."], [("Ask what Nina will do about the lamps", "Rob")]),
    ],
)  # fmt: skip
def test_each_of_several_people_gets_a_task_of_its_own(
    lines: Lines, tasks: list[tuple[str, str | None]]
) -> None:
    assert _tasks(lines) == tasks


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("I'll be back by Friday. Sorry, I mean Thursday.", "i will be back by thursday"),
        ("We need eleven, no wait, twelve lamps by Monday, or rather by Tuesday.", "we need twelve lamps by tuesday"),
        ("On the fourth of May. Correction, the fifth of May.", "on the fifth of may"),
        ("We asked all three. No one came.", "we asked all three|no one came"),
        ("Friday. No, Thursday is bad.", "friday|no thursday is bad"),
        ("We need two. Wait one minute.", "we need two|wait one minute"),
    ],
)  # fmt: skip
def test_what_is_put_right_at_once_was_never_said(said: str, read: str) -> None:
    assert "|".join(c.norm for c in clauses_of(said)) == read


def test_a_day_put_right_is_the_day_and_stands_in_the_text() -> None:
    items, told = _read(["Rob: I'll finish the poster by Friday. Sorry, I mean Thursday."])
    assert [(i.text, i.due, i.due_text) for i in items] == [
        ("Finish the poster", dt.date(2026, 3, 12), "Thursday")
    ]
    assert "Friday" not in told


def test_who_decided_puts_the_number_right_and_the_old_one_is_told_nowhere() -> None:
    items, told = _read(
        ["Rob: We agree to hire seven drummers.", "Nina: Sorry, six.", "Rob: Right, six drummers. Decided."]
    )
    assert ["six drummers" in i.text for i in items if i.kind == "decision"] == [True]
    assert "seven" not in told
    others, _ = _read(["Rob: We agree to hire seven drummers.", "Nina: Right, six chairs."])
    assert ["seven drummers" in i.text for i in others if i.kind == "decision"] == [True]


@pytest.mark.parametrize(
    "lines",
    [
        ["Rob: I'll just sell the boss by Friday, ha ha."],
        ["Rob: I'll order ninety cakes for tomorrow. Just kidding."],
        ["Rob: I'll rebuild the whole town by Monday.", "Nina: Yeah right."],
        ["Rob: I'll send the cats home by Monday.", "Nina: Very funny."],
        ["Rob: I'll send the cats home by Monday.", "Nina: Hm.", "Rob: I was only joking."],
        ["Rob: I'll rent the van on Saturday.", "Nina: We have one.", "Rob: Oh, then I won't."],
        ["Rob: I'll ring the school tomorrow.", "Nina: It's shut.", "Rob: Ah okay, then I needn't."],
    ],
)
def test_jokes_and_what_is_taken_back_are_no_tasks(lines: Lines) -> None:
    items, told = _read(lines)
    assert [i.text for i in items] == []
    assert "I'll" not in told


def test_thanks_that_sound_like_mockery_take_nothing() -> None:
    assert _tasks(["Rob: I'll send the whole list by Friday.", "Nina: Yeah, right, thanks."])


def test_a_condition_stays_with_the_task_and_a_polite_one_does_not() -> None:
    assert _tasks(["Rob: If the customer pays, I'll send the parts on Monday."]) == [
        ("Send the parts if the customer pays", "Rob")
    ]
    assert _tasks(["Rob: If you like, I'll send the parts on Monday."]) == [("Send the parts", "Rob")]


def test_plain_work_needs_no_date() -> None:
    assert _tasks(["Rob: I will call the plumber."]) == [("Call the plumber", "Rob")]
    assert _tasks(["Rob: I will call you a liar."]) == []


def test_nobodys_promise_stands_before_anothers_colon() -> None:
    lines = [
        "Rob: I will post the card by Monday.",
        "Nina: I will sign it on Sunday.",
        "Omar: I've bought it a stamp.",
    ]
    assert _tasks(lines) == [("Post the card", "Rob"), ("Sign the card", "Nina")]
    assert _tasks(["Rob: I'll write it by Friday.", "Nina: I'll print it by Monday."]) == [
        ("Write it", "Rob"),
        ("Print it", "Nina"),
    ]


def test_names_that_are_words_are_words_where_a_sentence_opens_with_them() -> None:
    people = ("Mark", "Bill", "Rose")
    assert _tasks(["Rose: Okay. Mark the boxes by Friday."], people) != [("The boxes", "Mark")]
    assert _tasks(["Rose: Okay. Mark will paint the boxes by Friday."], people) == [
        ("Paint the boxes", "Mark")
    ]
    assert _tasks(["Mark: I'll bill the club on Friday."], people) == [("Bill the club", "Mark")]


@pytest.mark.parametrize(
    "said",
    [
        ["Rob: Nina will send the list by Monday. Sorry, Omar will."],
        ["Rob: Nina will send the list by Friday. No wait, Omar will send the list, by Monday."],
        ["Rob: Nina will send the list by Monday.", "Nina: I can't.", "Omar: I'll do it then."],
        [
            "Omar: Hm.",
            "Nina: I'll send the list by Monday.",
            "Rob: Actually, can Omar do that?",
            "Omar: Sure.",
        ],
        ["Nina: I'll send the list by Monday.", "Omar: Let me do that.", "Nina: Lovely."],
        ["Rob: Nina will send the list by Monday.", "Omar: I'm writing to them anyway, I'll take that."],
    ],
)
def test_who_takes_a_task_over_has_it(said: Lines) -> None:
    ((_, owner),) = _tasks(said)
    assert owner == "Omar"
    ((day),) = [i.due for i in _read(said)[0]]
    assert day == dt.date(2026, 3, 16)


def test_a_task_of_ones_own_takes_nobody_elses() -> None:
    assert _tasks(["Nina: I'll send the list by Monday.", "Omar: I'll do the flyers by Friday."]) == [
        ("Send the list", "Nina"),
        ("Do the flyers", "Omar"),
    ]
    assert _tasks(["Nina: I'll send the list by Monday.", "Rob: Omar will be glad."]) == [
        ("Send the list", "Nina")
    ]


def test_of_two_of_one_name_the_one_who_is_not_speaking_is_meant() -> None:
    lines = ["Ida Lund: Ida, will you write the letter by Friday?", "Ida Berg: Yes, I will write the letter."]
    assert _tasks(lines, ("Ida Lund", "Ida Berg")) == [("Write the letter", "Ida Berg")]


@pytest.mark.parametrize(
    "said",
    [
        "Gut, dann machen wir das so.", "Je vais envoyer le rapport avant vendredi.", "Voy a llamar al banco mañana.",
        "金曜日までに報告書を送ります。",
    ],
)  # fmt: skip
def test_the_words_of_other_languages_are_nobodys_fillers(said: str) -> None:
    assert _read([f"Rob: {said}"]) == ([], said)
    assert not in_english(said.lower().strip(".").split())


@pytest.mark.parametrize(
    "said", ["Die Hard is on tonight", "um, so we go", "okay", "A la carte it is then", "Per person"]
)
def test_english_with_a_foreign_word_in_it_is_english(said: str) -> None:
    assert in_english(said.lower().split())


def test_marks_over_letters_part_no_word() -> None:
    struck = "".join(f"{sign}\u0336" for sign in "report")
    assert _tasks(
        [
            f"Rob: I will send the {struck} by Friday.",
            "Nina: Je\u0301ro\u0302me will call the bank by Monday.",
        ]
    ) == [
        ("Send the report", "Rob"),
        ("Call the bank", "Jérôme"),
    ]
